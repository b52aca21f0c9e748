"""What the tests share: problems, tables of every engine, components, clusters, faulty networks, scripts."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
"""The checkout."""
TESTS = ROOT / "tests"
