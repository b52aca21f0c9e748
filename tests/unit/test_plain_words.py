"""The script that looks for phrases that read as translated finds each kind, in every kind of file."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import plain_words
from support import ROOT

PHRASES = [
    "the model would stay inside, too.",
    "its error is that of the counts",
    "two runs that cannot be told apart",
    "what it calls so is spam",
    "the table stands below",
    "read the rows anew",
    "so many rows",
    "metrics of your own",
    "the runs in place of a model",
    "39.7 % of the rows",
    "that is no share",
    "no row tells the class",
    "Of the classes two are shown",
    "the file knows its version",
    "a table of what is logged",
]
GOOD = "cmtrack also logs 39.7% of the rows. There is no run named “a”. The table is below."


@pytest.mark.parametrize(
    ("phrase", "pattern"), list(zip(PHRASES, plain_words.PATTERNS, strict=True))
)
def test_each_pattern_finds_its_phrase(phrase: str, pattern: tuple[str, str]) -> None:
    hits, words = plain_words.hits_of([("here", phrase)])
    assert [hit.advice for hit in hits] == [pattern[1]]
    assert words == len(phrase.split())


def test_good_sentences_have_no_hits() -> None:
    assert plain_words.hits_of([("here", GOOD)]) == ([], len(GOOD.split()))


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("page.md", "```\nread anew\n```\nread anew\n", 4),
        ("module.py", "anew = 1\nread = f'read {anew} anew'\n", 2),
        ("module.py", "anew = 1\n# read anew\n", 2),
        ("page.html", "<style>\nanew\n</style>\n{% if anew %}<b\nid=anew>anew</b>{% endif %}\n", 5),
        ("page.js", "const x = 1;\nsay('read anew');\n", 2),
    ],
)
def test_each_kind_of_file_is_searched_in_its_prose(
    tmp_path: Path, name: str, text: str, line: int
) -> None:
    file = tmp_path / name
    file.write_text(text)
    hits, _ = plain_words.hits_of(plain_words.prose_of_paths([tmp_path]))
    assert [hit.place for hit in hits] == [f"{file}:{line}"]


def test_the_script_refuses_a_rate_above_the_limit_and_lists_added_lines(tmp_path: Path) -> None:
    scripts = tmp_path / ".ci"
    scripts.mkdir()
    shutil.copy(ROOT / ".ci" / "plain_words.py", scripts)
    (tmp_path / "cmtrack").mkdir()
    (tmp_path / "integrations").mkdir()
    (tmp_path / "docs").mkdir()
    for name in plain_words.PARTS["docs"]:
        file = tmp_path / name
        if file.suffix:
            file.parent.mkdir(exist_ok=True)
            file.write_text(f"{GOOD}\n" * 300)
    module = tmp_path / "cmtrack" / "module.py"
    module.write_text(f'"""{GOOD}"""\n')

    def run(*options: str, diff: str = "") -> tuple[int, str]:
        command = [sys.executable, scripts / "plain_words.py", *options]
        done = subprocess.run(command, input=diff, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout

    assert run()[0] == 0
    module.write_text(f'"""{GOOD} Read them anew."""\n')
    code, printed = run()
    assert code == 1
    assert "code: 1 hits in" in printed
    assert f"{module}:1: 'anew'" in printed
    listed = run("--diff", diff="+++ b/anew\n-anew\n+read anew\n")[1].splitlines()
    assert listed[0].startswith("+: 'anew'")
    assert listed[-1] == "1 hits in 2 words"
