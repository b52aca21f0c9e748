"""The script that counts lines of code says what it counts."""

from __future__ import annotations

import runpy

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


def test_code_is_neither_docstrings_nor_comments_nor_imports() -> None:
    count = runpy.run_path(str(ROOT / ".ci" / "code_lines.py"))["count"]
    assert count(SOURCE) == (3 + 4 + 1, 4 + 1)
