"""Measure how much code there is to read and how dense it is; refuse growth and puzzles.

plain_code.py                          print both tables; exit with 1 if something is refused
plain_code.py FILE ...                 list the puzzles of these files or folders
plain_code.py --accept                 store numbers that fell, and the shorter list of exempt files
plain_code.py --accept --reason TEXT   also store numbers that rose, and newly exempt files

The first table has these numbers for each room of a package:

nodes       syntax-tree nodes without Load, Store and Del contexts and docstrings: how much there
            is to understand
statements  statements of every kind, without docstrings
code        lines of code, without docstrings, comments, blank lines and imports
branchy     functions with more than 12 branches
wide        private functions with more than seven parameters
parallel    statements of the form `a, b = x, y`
ternaries   conditional expressions; `nested` in another one, `fstring` inside an f-string
repeat      a written sequence times a condition
andor       `(a and b) or c` with a literal c, and `{True: a, False: b}[...]`
skip        `# fmt: skip`
dense       nodes per statement: how much a statement asks of its reader; no formatter changes it
chars       characters per line of code, without indentation

The second table counts the places that could hide code from the first. A number is refused if it
is above the accepted number in `.ci/plain_code.toml`. Puzzles (`.ci/puzzles.py`) are refused in
each file that is not in `.ci/plain_code_exempt.txt`. That list only shrinks: a listed file without
puzzles is also refused.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import re
import subprocess
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import puzzles

ROOT = Path(__file__).resolve().parents[1]
ACCEPTED = ROOT / ".ci" / "plain_code.toml"
EXEMPT = ROOT / ".ci" / "plain_code_exempt.txt"
PACKAGES = {"cmtrack": "cmtrack", "integrations": "integrations/cmtrack_integrations"}
SUPPORT = ("docs/_ext", "tests/support")
"""Folders of Python code next to the packages, into which code of the product could be moved."""

COLUMNS = (
    "files",
    "nodes",
    "statements",
    "code",
    "docstrings",
    "functions",
    "branchy",
    "wide",
    "classes",
    "parallel",
    "ternaries",
    "nested",
    "fstring",
    "repeat",
    "andor",
    "comments",
    "skip",
)
LIMITED = (
    "nodes",
    "dense",
    "parallel",
    "ternaries",
    "nested",
    "fstring",
    "repeat",
    "andor",
    "branchy",
    "wide",
    "skip",
)
"""Numbers that may not rise. Lines, statements and comments may rise: plain code has more of them."""

CONTEXTS = (ast.Load, ast.Store, ast.Del)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DOCUMENTED = (ast.Module, ast.ClassDef, *FUNCTIONS)
IMPORTS = (ast.Import, ast.ImportFrom)
BRANCHES = (
    ast.If,
    ast.For,
    ast.While,
    ast.ExceptHandler,
    ast.IfExp,
    ast.BoolOp,
    ast.comprehension,
    ast.match_case,
)
MOST_BRANCHES = 12
MOST_PARAMETERS = 7
LAYOUT = {
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
    tokenize.COMMENT,
}

PAGE_PARTS = {".html", ".js", ".css", ".svg", ".jinja", ".j2"}
LONG_TEXT = 200
"""Strings with more characters are searched for code; shorter ones are messages."""
SQL = (
    r"\b(SELECT|INSERT INTO|UPDATE|DELETE FROM|CREATE (OR REPLACE )?(TEMP |MACRO |TABLE |VIEW ))\b"
)
MARKUP = r"</?[a-z][a-z0-9]*( [a-z-]+=|/?>)"  # HTML and SVG
STYLES = r"[\w-]+ ?\{\s*[\w-]+: ?[^{}]+[;}]"
JAVASCRIPT = r"=>|\b(function|const|let|var) \w+"
PYTHON = r"^\s*(def \w+\(|class \w+[(:]|import \w+|from [\w.]+ import )"
CODE_IN_TEXT = re.compile("|".join([SQL, MARKUP, STYLES, JAVASCRIPT, PYTHON]), re.MULTILINE)

Numbers = dict[str, float]


# ------------------------------------------------------------------------------- what a file has


def is_branchy(node: ast.AST) -> bool:
    """Return whether a function has too many branches."""
    if not isinstance(node, FUNCTIONS):
        return False
    return sum(isinstance(part, BRANCHES) for part in ast.walk(node)) > MOST_BRANCHES


def is_wide(node: ast.AST) -> bool:
    """Return whether a private function has too many parameters.

    A body that is only a docstring declares a call and does not count.
    """
    if not isinstance(node, FUNCTIONS) or not node.name.startswith("_"):
        return False
    only_documented = len(node.body) == 1 and docstring_of(node) is not None
    parameters = len(node.args.posonlyargs) + len(node.args.args) + len(node.args.kwonlyargs)
    return parameters > MOST_PARAMETERS and not only_documented


def count_conditionals_in_text(node: ast.AST) -> int:
    """Count the conditional expressions inside an f-string."""
    if not isinstance(node, ast.JoinedStr):
        return 0
    return puzzles.count_conditionals(node)


def is_disguised_conditional(node: ast.AST) -> bool:
    """Return whether an expression picks a value without being a conditional expression."""
    return puzzles.is_and_or(node) or puzzles.is_table_of_booleans(node)


MEASURES: dict[str, Callable[[ast.AST], int]] = {
    "nodes": lambda node: 1,
    "statements": lambda node: isinstance(node, ast.stmt),
    "functions": lambda node: isinstance(node, FUNCTIONS),
    "classes": lambda node: isinstance(node, ast.ClassDef),
    "branchy": is_branchy,
    "wide": is_wide,
    "parallel": puzzles.is_parallel_assignment,
    "ternaries": lambda node: isinstance(node, ast.IfExp),
    "nested": puzzles.is_nested_conditional,
    "fstring": count_conditionals_in_text,
    "repeat": puzzles.is_repeat_by_condition,
    "andor": is_disguised_conditional,
}
"""What a single node adds to a number."""


def docstring_of(node: ast.AST) -> ast.stmt | None:
    """Return the statement that is the docstring of a module, a class or a function."""
    if not isinstance(node, DOCUMENTED) or ast.get_docstring(node, clean=False) is None:
        return None
    return node.body[0]


def docstrings_in(tree: ast.AST) -> list[ast.stmt]:
    """Return the statements that are docstrings."""
    candidates = [docstring_of(node) for node in ast.walk(tree)]
    return [statement for statement in candidates if statement is not None]


def lines_of(statements: Iterable[ast.stmt]) -> set[int]:
    """Return the numbers of the lines that statements take."""
    lines: set[int] = set()
    for statement in statements:
        lines.update(range(statement.lineno, (statement.end_lineno or statement.lineno) + 1))
    return lines


def nodes_of_code(tree: ast.AST) -> list[ast.AST]:
    """Return the nodes of a syntax tree, without contexts and docstrings."""
    documentation = {id(part) for statement in docstrings_in(tree) for part in ast.walk(statement)}
    return [
        node
        for node in ast.walk(tree)
        if id(node) not in documentation and not isinstance(node, CONTEXTS)
    ]


def count_nodes(nodes: Iterable[ast.AST]) -> Counter[str]:
    """Count the nodes of a syntax tree by the numbers of the first table."""
    counts: Counter[str] = Counter()
    for node in nodes:
        for name, count in MEASURES.items():
            counts[name] += count(node)
    return counts


def count_lines(source: str, documentation: set[int], imports: set[int]) -> Counter[str]:
    """Count lines of code and of docstrings, comments, and the characters of code."""
    counts: Counter[str] = Counter()
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            counts["comments"] += 1
            counts["skip"] += "fmt: skip" in token.string
        if token.type not in LAYOUT:
            code.update(range(token.start[0], token.end[0] + 1))
    code -= documentation | imports
    lines = source.splitlines()
    counts["code"] = len(code)
    counts["docstrings"] = len(documentation)
    counts["characters"] = sum(len(lines[number - 1].strip()) for number in code)
    return counts


def measure(source: str) -> Counter[str]:
    """Count everything in a file."""
    tree = ast.parse(source)
    nodes = nodes_of_code(tree)
    documentation = lines_of(docstrings_in(tree))
    imports = lines_of(node for node in nodes if isinstance(node, IMPORTS))
    counts = count_nodes(nodes) + count_lines(source, documentation, imports)
    counts["files"] = 1
    return counts


def long_code_texts(source: str) -> Iterator[str]:
    """Yield the strings that are longer than ``LONG_TEXT`` and contain code."""
    nodes = nodes_of_code(ast.parse(source))
    formatted = [node for node in nodes if isinstance(node, ast.JoinedStr)]
    parts = {id(part) for node in formatted for part in node.values}
    constants = [node for node in nodes if isinstance(node, ast.Constant) and id(node) not in parts]
    for node in [*formatted, *constants]:
        text = text_of(node)
        if len(text) > LONG_TEXT and CODE_IN_TEXT.search(text):
            yield text


def text_of(node: ast.AST) -> str:
    """Return the text of a string; in an f-string, ``{}`` replaces each value."""
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part) for part in node.values)
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    return "{}"


# -------------------------------------------------------------------------------- the two tables


@dataclass(frozen=True)
class HidingPlace:
    """A place that could hide code from the first table, and how much code it has."""

    name: str
    files: int
    lines: int
    characters: int
    nodes: int = 0

    @property
    def limited(self) -> Numbers:
        """The numbers that may not rise: nodes of Python, lines and characters of all else."""
        if self.nodes:
            return {"nodes": self.nodes}
        return {"lines": self.lines, "characters": self.characters}


def rooms_of(package: Path) -> dict[str, Counter[str]]:
    """Return the counts of each folder and file of a package, and of the whole as "all"."""
    counts: dict[str, Counter[str]] = {}
    whole: Counter[str] = Counter()
    for path in sorted(package.rglob("*.py")):
        room = path.relative_to(package).parts[0]
        measured = measure(path.read_text(encoding="utf-8"))
        counts.setdefault(room, Counter()).update(measured)
        whole.update(measured)
    return {**counts, "all": whole}


def densities(counts: Mapping[str, int]) -> Numbers:
    """Return the nodes per statement and the characters per line of code."""
    dense = counts["nodes"] / max(1, counts["statements"])
    characters = counts["characters"] / max(1, counts["code"])
    return {"dense": round(dense, 2), "chars": round(characters, 1)}


def hiding_places(root: Path, packages: Iterable[Path]) -> list[HidingPlace]:
    """Measure all places that could hide code from the first table."""
    sources: list[str] = []
    pages: list[str] = []
    data: list[str] = []
    for path in sorted(
        file for package in packages for file in package.rglob("*") if file.is_file()
    ):
        if path.suffix == ".pyc":
            continue
        text = path.read_bytes().decode("utf-8", errors="replace")
        if path.suffix == ".py":
            sources.append(text)
        elif path.suffix in PAGE_PARTS:
            pages.append(text)
        else:  # also the stubs, from which `cmtrack._lazy` reads what a room exports
            data.append(text)
    texts = [text for source in sources for text in long_code_texts(source)]
    places = [
        hiding_place("templates and scripts of pages", pages),
        hiding_place(f"code in strings over {LONG_TEXT} characters", texts),
        hiding_place("data files read at run time", data),
    ]
    for folder in SUPPORT:
        files = [path.read_text(encoding="utf-8") for path in sorted((root / folder).rglob("*.py"))]
        nodes = sum(len(nodes_of_code(ast.parse(source))) for source in files)
        places.append(hiding_place(folder, files, nodes))
    return places


def hiding_place(name: str, texts: list[str], nodes: int = 0) -> HidingPlace:
    """Count the lines of texts, and their characters without indentation."""
    lines = [line.strip() for text in texts for line in text.splitlines()]
    return HidingPlace(name, len(texts), len(lines), sum(map(len, lines)), nodes)


def print_rooms(package: str, rooms: Mapping[str, Counter[str]]) -> None:
    """Print the first table."""
    titles = [f"{title:>11}" for title in (*COLUMNS, "dense", "chars")]
    print(f"{package:20}" + "".join(titles))
    for room, counts in rooms.items():
        numbers = [f"{counts[column]:>11,}" for column in COLUMNS]
        ratios = densities(counts)
        print(f"{room:20}" + "".join(numbers) + f"{ratios['dense']:>11.2f}{ratios['chars']:>11.1f}")
    print()


def print_hiding_places(places: Iterable[HidingPlace]) -> None:
    """Print the second table."""
    print(f"{'what could hide code':40}{'files':>11}{'lines':>11}{'characters':>12}{'nodes':>11}")
    for place in places:
        texts = f"{place.files:>11,}{place.lines:>11,}{place.characters:>12,}"
        print(f"{place.name:40}{texts}{place.nodes:>11,}")
    print()


# ----------------------------------------------------------------------------- what was accepted


@dataclass(frozen=True)
class Limit:
    """The largest accepted value of a number, and the reason of its last rise."""

    most: float
    reason: str = ""


Limits = dict[tuple[str, str], Limit]
"""Limits by the measured place, such as "cmtrack", and the name of the number."""
HEADING = """\
# The largest numbers that .ci/run accepts (.ci/plain_code.py explains them). To lower them:
#     python .ci/plain_code.py --accept
# A number rises only for a reason, which is stored next to it:
#     python .ci/plain_code.py --accept --reason "Counts of months are merged with those of days"
"""


def read_limits(text: str) -> Limits:
    """Read the accepted numbers."""
    limits: Limits = {}
    for place, numbers in tomllib.loads(text).items():
        for name, entry in numbers.items():
            limits[place, name] = Limit(entry["most"], entry.get("reason", ""))
    return limits


def write_limits(limits: Limits) -> str:
    """Return the text of the accepted numbers."""
    lines = [HEADING.rstrip()]
    current = ""
    for (place, name), limit in limits.items():
        if place != current:
            lines += ["", f"[{json.dumps(place)}]"]
            current = place
        reason = (
            f", reason = {json.dumps(limit.reason, ensure_ascii=False)}" if limit.reason else ""
        )
        lines.append(f"{name} = {{ most = {limit.most:_}{reason} }}")
    return "\n".join(lines) + "\n"


def risen(numbers: Mapping[tuple[str, str], float], limits: Limits) -> list[str]:
    """Return a sentence for each number that exceeds its limit or has none."""
    sentences = []
    for (place, name), number in numbers.items():
        limit = limits.get((place, name))
        if limit is None:
            sentences.append(f"{place}: {name} is {number:,}, and no number is accepted yet")
        elif number > limit.most:
            sentences.append(
                f"{place}: {name} is {number:,}, but at most {limit.most:,} is accepted"
            )
    return sentences


def accept(numbers: Mapping[tuple[str, str], float], limits: Limits, reason: str) -> Limits:
    """Return the new limits: lower ones, and with a reason also higher ones."""
    accepted: Limits = {}
    for key, number in numbers.items():
        before = limits.get(key)
        if before is None or number > before.most:
            if reason:
                accepted[key] = Limit(number, reason)
            elif before is not None:
                accepted[key] = before
        else:
            accepted[key] = Limit(number, before.reason)
    return accepted


# -------------------------------------------------------------------- puzzles, and who is exempt


def python_files(root: Path) -> list[str]:
    """Return the Python files that git tracks or would track, relative to the repository."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py"]
    listed = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout
    return sorted(name for name in set(listed.splitlines()) if (root / name).exists())


def puzzles_by_file(root: Path, names: Iterable[str]) -> dict[str, list[puzzles.Puzzle]]:
    """Return the puzzles of each file that has some."""
    found: dict[str, list[puzzles.Puzzle]] = {}
    for name in names:
        listed = list(puzzles.find_puzzles((root / name).read_text(encoding="utf-8")))
        if listed:
            found[name] = listed
    return found


def read_exempt(text: str) -> dict[str, str]:
    """Read the exempt files, each with its reason, if any."""
    exempt: dict[str, str] = {}
    for line in text.splitlines():
        name, _, reason = line.partition("#")
        if name.strip():
            exempt[name.strip()] = reason.strip()
    return exempt


EXEMPT_HEADING = """\
# Files that may have puzzles (.ci/puzzles.py). The list only shrinks: a file without any leaves it
# with `python .ci/plain_code.py --accept`.
"""


def write_exempt(exempt: Mapping[str, str]) -> str:
    """Return the text of the list of exempt files."""
    lines = []
    for name, reason in sorted(exempt.items()):
        comment = f"  # {reason}" if reason else ""
        lines.append(f"{name}{comment}\n")
    return EXEMPT_HEADING + "".join(lines)


def refused(found: Mapping[str, list[puzzles.Puzzle]], exempt: Iterable[str]) -> list[str]:
    """Return a sentence for each puzzle without exemption, and for each needless exemption."""
    exempt = set(exempt)
    sentences = []
    for name, listed in found.items():
        if name not in exempt:
            sentences += [sentence_of(name, puzzle) for puzzle in listed]
    for name in sorted(exempt - set(found)):
        sentences.append(
            f"{name} has no puzzles, or is gone: take it off {EXEMPT.name} (--accept does)"
        )
    return sentences


def accept_files(found: Iterable[str], exempt: Mapping[str, str], reason: str) -> dict[str, str]:
    """Return the exempt files that still have puzzles, and with a reason also new ones."""
    accepted = {}
    for name in found:
        if name in exempt:
            accepted[name] = exempt[name]
        elif reason:
            accepted[name] = reason
    return accepted


def sentence_of(name: str, puzzle: puzzles.Puzzle) -> str:
    """Return the place of a puzzle, and what to write instead."""
    return f"{name}:{puzzle.line}: {puzzle.form}: {puzzle.instead}"


# ----------------------------------------------------------------------------------- the command


def list_puzzles(paths: Iterable[str]) -> int:
    """Print the puzzles of files and folders, exempt or not; return 1 if there are some."""
    files: list[str] = []
    for path in paths:
        inside = [
            name
            for name in python_files(ROOT)
            if (ROOT / name).is_relative_to(Path(path).resolve())
        ]
        if not inside:
            raise ValueError(
                f"{path} must be a Python file of the repository, or a folder that has some"
            )
        files += inside
    found = puzzles_by_file(ROOT, files)
    for name, listed in found.items():
        for puzzle in listed:
            print(sentence_of(name, puzzle))
    return int(bool(found))


def main() -> int:
    """Print both tables; return 1 if a number rose or a file has a puzzle."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paths", nargs="*", help="only list the puzzles of these files and folders")
    parser.add_argument("--accept", action="store_true", help="store numbers that fell")
    parser.add_argument("--reason", default="", help="with --accept, also store numbers that rose")
    options = parser.parse_args()
    if options.reason and not options.accept:
        parser.error("--reason needs --accept")
    if options.paths:
        return list_puzzles(options.paths)

    numbers: dict[tuple[str, str], float] = {}
    for package, folder in PACKAGES.items():
        rooms = rooms_of(ROOT / folder)
        print_rooms(package, rooms)
        whole = {**rooms["all"], **densities(rooms["all"])}
        numbers.update({(package, name): whole.get(name, 0) for name in LIMITED})
    places = hiding_places(ROOT, [ROOT / folder for folder in PACKAGES.values()])
    print_hiding_places(places)
    for place in places:
        numbers.update({(place.name, name): number for name, number in place.limited.items()})

    limits = read_limits(ACCEPTED.read_text(encoding="utf-8"))
    exempt = read_exempt(EXEMPT.read_text(encoding="utf-8"))
    found = puzzles_by_file(ROOT, python_files(ROOT))
    if options.accept:
        limits = accept(numbers, limits, options.reason)
        exempt = accept_files(found, exempt, options.reason)
        ACCEPTED.write_text(write_limits(limits), encoding="utf-8")
        EXEMPT.write_text(write_exempt(exempt), encoding="utf-8")
    problems = risen(numbers, limits) + refused(found, exempt)
    print("\n".join(problems) or "Nothing rose, and no file has a new puzzle.")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
