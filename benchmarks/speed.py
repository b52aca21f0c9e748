"""All speed and memory benchmarks, one after the other: arrays, logging, tables.

python benchmarks/speed.py [--quick] > tables.md
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

PARTS = {
    "arrays_speed.py": ["--quick"],
    "log_speed.py": ["--repeats", "3", "--large", "0", "--first-repeats", "0"],
    "tables_speed.py": ["--rows", "1e5", "--growth", "", "--widths", "", "--repeats", "1"],
}
"""The scripts, and the options that make each of them quick."""


def main() -> None:
    """Print the Markdown tables of every part."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="small tables, few repeats")
    options = parser.parse_args()
    for script, quick in PARTS.items():
        print(f"## {script}\n", flush=True)
        path = Path(__file__).with_name(script)
        subprocess.run([sys.executable, str(path), *(quick if options.quick else [])], check=True)


if __name__ == "__main__":
    main()
