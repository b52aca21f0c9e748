"""The script that measures the code counts what it says, and refuses growth and puzzles."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import plain_code
import puzzles
from plain_code import Limit
from support import ROOT

SOURCE = '''"""A module.

Of two lines.
"""

import math  # no code
from os import (
    path,
)

LIMIT = """
text
"""  # three lines of code


def root(x):
    """The root."""

    # a comment
    return math.sqrt(
        x
    )


def stub(): ...
'''

PUZZLES = {
    "a conditional inside a conditional": [
        "x = a if b else c if d else e",
        "x = f(a if b else c) if d else e",
    ],
    "a conditional inside an f-string": ['x = f\'{n} row{"" if n == 1 else "s"}\''],
    "a sequence times a condition": [
        "x = 's' * (n > 1)",
        "x = bool(n) * [a, b]",
        "x = (a,) * (not b)",
        "x = f'{a}' * (b and c)",
    ],
    "(a and b) or c": [
        "x = (a and b) or ''",
        "x = (a and 'yes') or b",
        "x = a and b or c and [d] or e",
    ],
    "an index that is a condition": [
        "x = ('no', 'yes')[n > 1]",
        "x = {True: a, False: b}[c]",
        "x = words[bool(n)]",
        "x = words[not n]",
        "x = words[int(n > 1)]",
        "x = words[len(n) > 1]",
        "x = words[name in names]",
    ],
    "a parallel assignment of unrelated values": [
        "weights, labels = read(batch), counting.labels",
        "[weights, labels] = first, second",
        "low, high = 0, 1",
        "weights, labels = self.weights, self.labels",
        "rows, columns = count_rows(table), count_columns(table)",
        "total, rows = total + x, rows + 1",
        "pair = low, high = 0, 1",
        "low, *others = first, second, third",
    ],
    "a loop over one tuple": [
        "for weights, labels in [(read(batch), counting.labels)]:\n    pass",
        "x = [a + b for a, b in ((c, d),)]",
    ],
}
PLAIN = [
    "x = a if b else c",
    "x = [a if b else c, d if e else f]",
    "x = f'{n} rows' if n else 'no row'",
    "x = 's' * n",
    "x = n * (n > 1)",
    "x = (a and b) or c",
    "x = a > 1 and b > 1 or c > 1",
    "x = a or b or ''",
    "x = values[values > 0]",
    "x = values[weights > 0]",
    "x = {True: a, 1.5: b}",
    "x = {'yes': a, 'no': b}[c]",
    "x = names[name or 'all']",
    "low, high = interval",
    "a, b = b, a",
    "a, b = b, a + b",
    "low, high = centre - half, centre + half",
    "ours, theirs = count_rows(first), count_rows(second)",
    "rows, columns = matrix.sum(axis=1), matrix.sum(axis=0)",
    "for a, b in [(c, d), (e, f)]:\n    pass",
    "for a, b in pairs:\n    pass",
]


@pytest.mark.parametrize(
    ("form", "source"), [(form, source) for form in PUZZLES for source in PUZZLES[form]]
)
def test_a_puzzle_is_found_where_it_is(form: str, source: str) -> None:
    found = list(puzzles.find_puzzles(f"first = 1\n{source}\nlast = 1\n"))
    assert [(puzzle.line, puzzle.form) for puzzle in found] == [(2, form)]


def test_every_form_has_a_puzzle_here() -> None:
    assert set(PUZZLES) == {form.name for form in puzzles.FORMS}


@pytest.mark.parametrize("source", PLAIN)
def test_plain_code_has_no_puzzle(source: str) -> None:
    assert list(puzzles.find_puzzles(source)) == []


def test_ruff_refuses_two_statements_on_a_line() -> None:
    pytest.importorskip("ruff")
    command = [
        sys.executable,
        "-m",
        "ruff",
        "check",
        "--no-cache",
        "--stdin-filename",
        "cmtrack/example.py",
        "-",
    ]
    checked = subprocess.run(
        command, cwd=ROOT, input="a = 1; b = 2\n", capture_output=True, text=True, check=False
    )
    assert "E702" in checked.stdout


def test_code_is_neither_docstrings_nor_comments_nor_imports() -> None:
    counts = plain_code.measure(SOURCE)
    assert (counts["code"], counts["docstrings"]) == (3 + 4 + 1, 4 + 1)
    assert counts["comments"] == 3
    assert counts["functions"] == 2
    # Two imports, the assignment, two functions, the return and the `...` of the stub.
    assert counts["statements"] == 7
    characters = [
        'LIMIT = """',
        "text",
        '"""  # three lines of code',
        "def root(x):",
        "return math.sqrt(",
        "x",
        ")",
    ]
    assert counts["characters"] == sum(map(len, [*characters, "def stub(): ..."]))


def test_nodes_are_counted_without_contexts_and_docstrings() -> None:
    # A module, an assignment, two names, an addition with its operator, and a constant.
    assert plain_code.measure("a = b + 1")["nodes"] == 7
    assert plain_code.measure('"""A module."""\na = b + 1')["nodes"] == 7


@pytest.mark.parametrize(
    ("name", "source", "number"),
    [
        ("parallel", "a, b = c, d\n[e, f] = g, h\ni, j = k", 2),
        ("ternaries", "a = b if c else d if e else f", 2),
        ("nested", "a = b if c else d if e else f", 1),
        ("fstring", "a = f'{b if c else d} {e if f else g}'", 2),
        ("repeat", "a = 's' * (b > 1) + 's' * c", 1),
        ("andor", "a = (b and c) or 1\nd = {True: e, False: f}[g]\nh = (b and c) or d", 2),
        (
            "branchy",
            "def f():\n" + "    if a: pass\n" * 13 + "def g():\n" + "    if a: pass\n" * 12,
            1,
        ),
        ("wide", "def _f(a, b, c, d, e, f, g, h): pass\ndef g(a, b, c, d, e, f, g, h): pass", 1),
        (
            "wide",
            "def _f(a, b, c, d, e, f, g): pass\ndef _g(a, b, c, d, e, f, g, h):\n    '''Words.'''",
            0,
        ),
        ("skip", "a = 1  # fmt: skip\nb = '# fmt: skip'", 1),
        ("classes", "class A:\n    '''Words.'''\n    class B: pass", 2),
    ],
)
def test_each_measure_counts_its_form(name: str, source: str, number: int) -> None:
    assert plain_code.measure(source)[name] == number


def test_rooms_are_folders_and_files_of_a_package(tmp_path: Path) -> None:
    (tmp_path / "room" / "inner").mkdir(parents=True)
    (tmp_path / "room" / "a.py").write_text("a = 1\n")
    (tmp_path / "room" / "inner" / "b.py").write_text("b = 1\nc = 1\n")
    (tmp_path / "alone.py").write_text("d = 1\n")
    rooms = plain_code.rooms_of(tmp_path)
    assert {room: (counts["files"], counts["statements"]) for room, counts in rooms.items()} == {
        "alone.py": (1, 1),
        "room": (2, 3),
        "all": (3, 4),
    }
    assert plain_code.densities(rooms["all"]) == {"dense": round(15 / 4, 2), "chars": 5.0}


LONG = "x" * plain_code.LONG_TEXT


@pytest.mark.parametrize(
    "code",
    [
        "SELECT a FROM b",
        '<div class="cell">',
        "</p>",
        "const total = 1",
        "rows.map(row => row.id)",
        ".cell { color: red; }",
        "\ndef f(x):",
        "\nimport os",
    ],
)
def test_long_strings_with_code_are_found(code: str) -> None:
    text = code + LONG
    assert list(plain_code.long_code_texts(f"a = {text!r}")) == [text]
    braced = text.replace("{", "{{").replace("}", "}}")
    assert list(plain_code.long_code_texts(f"a = f{braced + '{b}'!r}")) == [text + "{}"]
    assert list(plain_code.long_code_texts(f"a = {code!r}")) == []


@pytest.mark.parametrize(
    "source",
    [
        f"a = 'Select rows from this table. {LONG}'",
        f"a = f'{{b:g}} of the rows of {{c}} < {{d}} are from {LONG}'",
        f"'''Words and <b>code</b> {LONG}'''",
        f"a = 1  # SELECT a FROM b {LONG}",
    ],
)
def test_long_prose_docstrings_and_comments_are_no_code(source: str) -> None:
    assert list(plain_code.long_code_texts(source)) == []


def test_what_could_hide_code_is_measured(tmp_path: Path) -> None:
    package = tmp_path / "package"
    contents = {
        "package/a.py": f"a = 'SELECT b FROM c {LONG}'\n",
        "package/page.html": "<p>\n  <b>\n",
        "package/script.js": "let a;\n",
        "package/__init__.pyi": "a: int\n",
        "docs/_ext/b.py": "b = 1\n",
        "tests/support/c.py": "c = 1\nd = 1\n",
    }
    for name, text in contents.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    pages, texts, data, extensions, support = plain_code.hiding_places(tmp_path, [package])
    assert (pages.files, pages.limited) == (2, {"lines": 3, "characters": 3 + 3 + 6})
    assert (texts.files, texts.limited) == (
        1,
        {"lines": 1, "characters": len("SELECT b FROM c ") + len(LONG)},
    )
    assert (data.files, data.limited) == (1, {"lines": 1, "characters": 6})
    assert (extensions.files, extensions.limited) == (1, {"nodes": 4})
    assert (support.files, support.limited) == (1, {"nodes": 7})


NODES = ("cmtrack", "nodes")
DENSE = ("cmtrack", "dense")


def test_a_number_rises_only_for_a_reason() -> None:
    limits = {NODES: Limit(100), DENSE: Limit(9.5, "earlier")}
    numbers = {NODES: 101, DENSE: 9.25}
    assert plain_code.risen(numbers, limits) == [
        "cmtrack: nodes is 101, but at most 100 is accepted"
    ]
    lowered = plain_code.accept(numbers, limits, reason="")
    assert lowered == {NODES: Limit(100), DENSE: Limit(9.25, "earlier")}
    raised = plain_code.accept(numbers, limits, reason="a new feature")
    assert raised == {NODES: Limit(101, "a new feature"), DENSE: Limit(9.25, "earlier")}
    assert plain_code.risen(numbers, raised) == []


def test_a_number_that_was_never_accepted_is_refused() -> None:
    assert plain_code.risen({NODES: 5}, {}) == [
        "cmtrack: nodes is 5, and no number is accepted yet"
    ]
    assert plain_code.accept({NODES: 5}, {}, reason="") == {}


def test_accepted_numbers_are_read_as_they_were_written() -> None:
    limits = {
        NODES: Limit(344_300, 'a "new" \\ é feature'),
        DENSE: Limit(9.74),
        ("docs/_ext", "nodes"): Limit(0),
    }
    text = plain_code.write_limits(limits)
    assert plain_code.read_limits(text) == limits
    assert "dense = { most = 9.74 }" in text.splitlines()


def test_files_with_puzzles_are_refused_unless_they_are_exempt() -> None:
    found = {"a.py": [puzzles.Puzzle(3, "a form", "write it plainly")]}
    assert plain_code.refused(found, {}) == ["a.py:3: a form: write it plainly"]
    assert plain_code.refused(found, {"a.py": ""}) == []
    (stale,) = plain_code.refused(found, {"a.py": "", "b.py": ""})
    assert stale.startswith("b.py has no puzzles")


def test_the_list_of_exempt_files_grows_only_for_a_reason() -> None:
    exempt = {"a.py": "earlier", "b.py": ""}
    assert plain_code.accept_files(["a.py", "c.py"], exempt, reason="") == {"a.py": "earlier"}
    grown = plain_code.accept_files(["a.py", "c.py"], exempt, reason="merged")
    assert grown == {"a.py": "earlier", "c.py": "merged"}
    assert plain_code.read_exempt(plain_code.write_exempt(grown)) == grown


@pytest.mark.slow  # a process for each run of the command
@pytest.mark.skipif(shutil.which("git") is None, reason="git lists the files")
def test_the_command_fails_after_growth_and_accepts_it_for_a_reason(tmp_path: Path) -> None:
    scripts = tmp_path / ".ci"
    scripts.mkdir()
    for name in ("plain_code.py", "puzzles.py"):
        shutil.copy(ROOT / ".ci" / name, scripts)
    for name in ("plain_code.toml", "plain_code_exempt.txt"):
        (scripts / name).touch()
    module = tmp_path / "cmtrack" / "module.py"
    module.parent.mkdir()
    module.write_text("a = 1\n")
    subprocess.run(["git", "init", "-q", tmp_path], check=True)

    def run(*arguments: str) -> tuple[int, str]:
        command = [sys.executable, scripts / "plain_code.py", *arguments]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout

    assert run()[0] == 1, "no number is accepted yet"
    assert run("--accept", "--reason", "the first numbers")[0] == 0
    assert run()[0] == 0

    module.write_text("a, b = 1, 2\n")
    code, printed = run()
    assert code == 1
    assert "cmtrack: parallel is 1, but at most 0 is accepted" in printed
    assert "cmtrack/module.py:1: a parallel assignment of unrelated values" in printed
    assert run("cmtrack") == (1, printed.splitlines()[-1] + "\n")
    assert run("--accept")[0] == 1
    assert run("--accept", "--reason", "for now")[0] == 0

    module.write_text("a = 1\n")
    code, printed = run()
    assert code == 1
    assert "cmtrack/module.py has no puzzles" in printed
    assert run("--accept")[0] == 0
    assert "parallel = { most = 0," in (scripts / "plain_code.toml").read_text()

    assert run("cmtrack") == (0, "")
    assert run("elsewhere")[0] == 1
    assert run("--reason", "without --accept")[0] == 2
