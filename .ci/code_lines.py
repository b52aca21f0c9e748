"""Print the lines of code and of docstrings by room; docstrings, comments, blank lines and imports are not code.

With ``--budget 32500`` the exit status is 1 if ``cmtrack`` has more lines of code.
"""

from __future__ import annotations

import argparse
import ast
import io
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LAYOUT = {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER, tokenize.COMMENT}


def lines_of(node: ast.AST) -> range:
    """Numbers of a node's lines."""
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)  # type: ignore[attr-defined]


def docstrings(tree: ast.AST) -> Iterator[ast.AST]:
    """Statements that are docstrings."""
    for node in ast.walk(tree):
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if documented and ast.get_docstring(node, clean=False) is not None:
            yield node.body[0]


def count(source: str) -> tuple[int, int]:
    """Lines of code and of docstrings."""
    tree = ast.parse(source)
    documentation = {line for node in docstrings(tree) for line in lines_of(node)}
    importing = (node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))
    imports = {line for node in importing for line in lines_of(node)}
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    code = {line for token in tokens if token.type not in LAYOUT for line in range(token.start[0], token.end[0] + 1)}
    return len(code - documentation - imports), len(documentation)


def by_room(package: Path) -> tuple[Counter[str], Counter[str]]:
    """Lines of code and of docstrings of each folder and file of a package."""
    code, documentation = Counter[str](), Counter[str]()
    for file in sorted(package.rglob("*.py")):
        room = file.relative_to(package).parts[0]
        counted = count(file.read_text(encoding="utf-8"))
        code[room] += counted[0]
        documentation[room] += counted[1]
    return code, documentation


def main() -> int:
    """Print both packages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget", type=int, help="most lines of code in cmtrack")
    budget = parser.parse_args().budget
    over = False
    for package in (ROOT / "cmtrack", ROOT / "integrations" / "cmtrack_integrations"):
        code, documentation = by_room(package)
        print(f"{package.name:28}{'code':>8}{'docstrings':>12}")
        for room, number in [*code.items(), ("all", code.total())]:
            print(f"  {room:26}{number:>8,}{(documentation[room] if room != 'all' else documentation.total()):>12,}")
        over |= package.name == "cmtrack" and budget is not None and code.total() > budget
    return int(over)


if __name__ == "__main__":
    sys.exit(main())
