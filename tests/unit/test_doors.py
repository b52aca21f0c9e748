"""Tests enter by the doors of rooms; those that reach inside one are few, and say why."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from support import ROOT, TESTS

MOST_FILES = 70
MOST_NAMES = 150


def inner_modules() -> frozenset[str]:
    """Modules inside a room. A module directly in the package is a door, unless its name begins with an underscore."""
    files = (ROOT / "cmtrack").rglob("*.py")
    paths = [file.relative_to(ROOT).with_suffix("").parts for file in files]
    return frozenset(
        ".".join(parts)
        for parts in paths
        if parts[-1] != "__init__" and (len(parts) > 2 or parts[-1].startswith("_"))
    )


@dataclass
class Reach:
    """What a file takes from inside rooms: full names, and the lines of the statements that take them."""

    names: set[str] = field(default_factory=set)
    lines: set[int] = field(default_factory=set)


def reach(source: str, inner: frozenset[str]) -> Reach:
    """Find what a file takes by an import, and what a dotted string of it names.

    An imported module counts by the attributes that are read or patched.
    """
    nodes = list(ast.walk(ast.parse(source)))
    found = Reach()
    modules: dict[str, str] = {}
    for line, local, full in imports(nodes):
        if full in inner:
            modules[local] = full
        elif full.rpartition(".")[0] in inner:
            found.names.add(full)
        else:
            continue
        found.lines.add(line)
    used: dict[str, set[str]] = {local: set() for local in modules}
    for node in nodes:
        if isinstance(node, ast.Constant) and is_inside(node.value, inner):
            found.names.add(str(node.value))
            found.lines.add(node.lineno)
        local, attribute = attribute_of(node)
        if local in used:
            used[local].add(f"{modules[local]}.{attribute}")
    for local, names in used.items():
        found.names |= names or {modules[local]}
    return found


def imports(nodes: list[ast.AST]) -> Iterator[tuple[int, str, str]]:
    """Line, local name and full name of all that is imported, inside functions too."""
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                yield node.lineno, alias.asname or alias.name, f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.asname or alias.name, alias.name


def is_inside(value: object, inner: frozenset[str]) -> bool:
    """Whether a constant is the dotted name of an inner module, or of something in one."""
    if not isinstance(value, str) or not value.startswith("cmtrack."):
        return False
    if not re.fullmatch(r"cmtrack(\.\w+)+", value):
        return False
    parts = value.split(".")
    return any(".".join(parts[:end]) in inner for end in range(2, len(parts) + 1))


def attribute_of(node: ast.AST) -> tuple[str, str]:
    """A dotted name and its attribute, as in ``module.thing`` and ``setattr(module, "thing", ...)``; else nothing."""
    if isinstance(node, ast.Attribute):
        return dotted(node.value), node.attr
    if isinstance(node, ast.Call) and len(node.args) > 1:
        target, name = node.args[:2]
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            return dotted(target), name.value
    return "", ""


def dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return ""


def without_reason(source: str, lines: set[int]) -> list[int]:
    """Lines that have no comment, neither at their end nor directly above."""
    texts = ["", *source.splitlines()]

    def has_comment(line: int) -> bool:
        return re.search(r"(^|\s)# (?!noqa)", texts[line]) is not None

    return sorted(
        line
        for line in lines
        if not has_comment(line) and not texts[line - 1].lstrip().startswith("# ")
    )


@functools.cache
def reaches() -> dict[str, tuple[str, Reach]]:
    """Source and reach of each file of tests that reaches inside, by its path."""
    inner = inner_modules()
    out = {}
    for file in sorted(TESTS.rglob("*.py")):
        path = file.relative_to(ROOT)
        if {"golden", "data"} & set(path.parts):
            continue
        source = file.read_text(encoding="utf-8")
        found = reach(source, inner)
        if found.names:
            out[path.as_posix()] = source, found
    return out


@pytest.mark.slow
def test_few_tests_reach_inside_a_room() -> None:
    by_file = {path: found.names for path, (_, found) in reaches().items()}
    names = set().union(*by_file.values())
    greediest = sorted(by_file, key=lambda path: -len(by_file[path]))[:10]
    listed = "\n".join(f"{path}: {', '.join(sorted(by_file[path]))}" for path in greediest)
    assert len(by_file) <= MOST_FILES, (
        f"{len(by_file)} files reach inside, the greediest:\n{listed}"
    )
    assert len(names) <= MOST_NAMES, f"{len(names)} names are taken, most of them by:\n{listed}"


def test_each_reach_has_a_comment_that_says_why() -> None:
    silent = [
        f"{path}:{line}"
        for path, (source, found) in reaches().items()
        for line in without_reason(source, found.lines)
    ]
    assert not silent, "no comment says why the test reaches inside:\n" + "\n".join(silent)


# -- the count ---------------------------------------------------------------------------------------------------

INNER = frozenset(("cmtrack.room.module", "cmtrack.room.hall.other", "cmtrack._hidden"))


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("from cmtrack.room.module import thing, more", {"room.module.thing", "room.module.more"}),
        ("from cmtrack.room.module import thing as other", {"room.module.thing"}),
        ("def test():\n    from cmtrack.room.module import thing", {"room.module.thing"}),
        ("from cmtrack.room import module\nmodule.thing()\nmodule.thing", {"room.module.thing"}),
        ("from cmtrack.room import module as m\nsetattr(m, 'thing', 1)", {"room.module.thing"}),
        ("from cmtrack.room import module", {"room.module"}),
        ("import cmtrack.room.module\ncmtrack.room.module.thing()", {"room.module.thing"}),
        ("import cmtrack.room.hall.other as other\nother.x = 1", {"room.hall.other.x"}),
        ("patch('cmtrack.room.module.thing')", {"room.module.thing"}),
        ("patch('cmtrack.room.module.Thing.method')", {"room.module.Thing.method"}),
        ("from cmtrack import _hidden\n_hidden.thing", {"_hidden.thing"}),
        ("from cmtrack.room import thing\nimport cmtrack\nfrom cmtrack import evaluate", set()),
        ("'see cmtrack.room.module.thing', 'cmtrack.room.thing'", set()),
    ],
)
def test_what_reaches_inside_is_seen(source: str, names: set[str]) -> None:
    assert reach(source, INNER).names == {f"cmtrack.{name}" for name in names}


def test_a_helper_of_tests_counts_like_a_test() -> None:
    counted = reaches()
    inner = inner_modules()
    helpers = {
        path.relative_to(ROOT).as_posix()
        for path in (TESTS / "support").glob("*.py")
        if reach(path.read_text(encoding="utf-8"), inner).names
    }
    assert helpers <= set(counted)
    assert len(inner) > 150
    assert not {"cmtrack.untrusted", "cmtrack.comparison"} & inner


def test_a_comment_stands_on_the_line_or_above_it() -> None:
    take = "from cmtrack.room.module import thing"
    for source, silent in {
        take: [1],
        f"{take}  # a kernel": [],
        f"{take}  # noqa: E402": [1],
        f"# A kernel.\n{take}": [],
        f"# A kernel.\n\n{take}": [3],
        "# A kernel.\nx = [\n    'cmtrack.room.module.thing',\n]": [3],
    }.items():
        assert without_reason(source, reach(source, INNER).lines) == silent, source
