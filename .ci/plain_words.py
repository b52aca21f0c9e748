"""Count phrases that read as translated, and refuse them above a rate for each part of the project.

plain_words.py                    print the hits per 1,000 words by part; exit with 1 above a rate
plain_words.py FILE ...           list the hits of these files or folders
git diff BASE | plain_words.py --diff     list the hits in the lines that a change adds

Prose is Markdown outside its code, the comments and strings of Python, and templates and scripts of
pages without their tags, styles and Jinja blocks. A hit is a place to look at: write what the advice
says, or something better. A sentence is not good because no pattern matches it. Read it aloud.
"""

from __future__ import annotations

import argparse
import io
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

PARTS = {
    "docs": (
        "README.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "docs",
        "examples/README.md",
        "benchmarks/README.md",
    ),
    "code": ("cmtrack", "integrations"),
}
MOST = 0.5
"""Hits per 1,000 words that are accepted. Well-kept libraries have 0.1 to 0.4."""

PATTERNS = (
    (r",\s+too[.;:,)]", "put “also” before the verb"),
    (r"\b(that|those) of\b", "repeat the noun"),
    (
        r"\b(is|are|be|been|was|were) (told|said|asked|judged)\b|\btold (apart|from)\b",
        "say who does what: reported, checked, evaluated; not significantly different",
    ),
    (r"\bcalls? so\b|\btaken for\b", "predicted"),
    (r"\b(stands?|lies) (in|on|at|below|above|here|there|under|beside)\b", "is"),
    (
        r"\b(mend(s|ed|ing)?|anew|dearer|surest|beside|likewise|besides|upwards)\b",
        "fix, again, costs more, most confident, next to, also, or more",
    ),
    (
        r"\b(so|as) (many|much|heavy|large|long) (as|rows|of)\b|\bso many\b",
        "a number and a noun",
    ),
    (r"\bof (its|their|one's|your) own\b", "its own …, custom"),
    (r"\bin place of\b", "instead of"),
    (r"\d %", "39.7%, without a space"),
    (
        r"(?<!\b[Tt]here )\b(is|are) no (?!longer|more|fewer|better|worse)[a-z]+\b",
        "is not a …",
    ),
    (r"\bno \w+ (tells|says|knows|holds)\b|\bnone (is|of them)\b", "a subject that can act"),
    (r"(?:^|[.:;]\s+)(Of|By) (a|the|each|two|several|these|those|an)\b", "the subject first"),
    (
        r"\bhas asked\b|\b(file|page|run|JSON|table|figure|frame) (knows|says|tells)\b",
        "people read; files list or show",
    ),
    (
        r"(?:^|[.;:]\s+|\b(of|for|by|in) )what (is|was|are|were|has|have|one|a|the)\b",
        "name the thing",
    ),
)
"""Each pattern, and what to write instead."""

COMPILED = tuple((re.compile(pattern), advice) for pattern, advice in PATTERNS)


@dataclass(frozen=True)
class Hit:
    """A phrase in a line, and what to write instead."""

    place: str
    line: str
    phrase: str
    advice: str

    def __str__(self) -> str:
        return f"{self.place}: {self.phrase.strip()!r} ({self.advice}): {self.line.strip()[:120]}"


def prose_of_markdown(text: str) -> Iterator[tuple[int, str]]:
    """Lines outside blocks of code."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield number, line


def prose_of_python(text: str) -> Iterator[tuple[int, str]]:
    """Lines of comments and strings, those inside f-strings among them."""
    kinds = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", -1)}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in kinds:
            yield from enumerate(token.string.splitlines(), token.start[0])


def prose_of_page(text: str) -> Iterator[tuple[int, str]]:
    """Lines of a template or a script, without tags, styles and Jinja blocks."""
    markup = r"<style.*?</style>|<[^>]*>|\{[{%#].*?[}%#]\}"
    prose = re.sub(markup, lambda found: " " + "\n" * found[0].count("\n"), text, flags=re.DOTALL)
    yield from enumerate(prose.splitlines(), 1)


READERS = {
    ".md": prose_of_markdown,
    ".py": prose_of_python,
    ".html": prose_of_page,
    ".js": prose_of_page,
}


def prose_of_paths(paths: Iterable[Path]) -> Iterator[tuple[str, str]]:
    """Each line of prose with its place, from files and from all files below folders."""
    for path in paths:
        files = [path] if path.is_file() else sorted(path.rglob("*"))
        for file in files:
            if "_build" in file.parts or "generated" in file.parts:
                continue
            reader = READERS.get(file.suffix)
            if reader is None:
                continue
            for number, line in reader(file.read_text(encoding="utf-8")):
                yield f"{file}:{number}", line


def prose_of_diff(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Lines that a diff adds."""
    for line in lines:
        if line.startswith("+") and not line.startswith("+++"):
            yield "+", line[1:]


def hits_of(prose: Iterable[tuple[str, str]]) -> tuple[list[Hit], int]:
    """Return the hits and the number of words."""
    hits = []
    words = 0
    for place, line in prose:
        words += len(line.split())
        for pattern, advice in COMPILED:
            found = pattern.search(line)
            if found is not None:
                hits.append(Hit(place, line, found[0], advice))
    return hits, words


def main() -> int:
    """Print the requested hits or rates; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--diff", action="store_true", help="read a diff from the standard input")
    options = parser.parse_args()
    if options.diff or options.paths:
        prose = prose_of_diff(sys.stdin) if options.diff else prose_of_paths(options.paths)
        hits, words = hits_of(prose)
        print(*hits, sep="\n")
        print(f"{len(hits)} hits in {words:,} words")
        return 0
    refused = False
    for part, names in PARTS.items():
        hits, words = hits_of(prose_of_paths(ROOT / name for name in names))
        rate = 1000 * len(hits) / words
        print(f"{part}: {len(hits)} hits in {words:,} words, {rate:.2f} per 1,000 (at most {MOST})")
        if rate > MOST:
            refused = True
            print(*hits[:40], sep="\n")
    return int(refused)


if __name__ == "__main__":
    sys.exit(main())
