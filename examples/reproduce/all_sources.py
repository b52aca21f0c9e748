"""Every source, reproduced: the six scripts, and the overview of what came out.

Run it with `python examples/reproduce/all_sources.py`; `--fast` takes minutes instead of most of an hour.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click

from study import mode_options, prepare_store
from study.overview import SOURCES

HERE = Path(__file__).parent


@click.command(help=__doc__)
@mode_options
@click.option(
    "--jobs", type=click.IntRange(min=1), default=os.cpu_count() or 1, help="Scripts at a time."
)
def main(fast: bool, output: Path, jobs: int) -> None:
    """Run the scripts, the longest first, and exit with 1 if one of them fails."""
    prepare_store(output)  # once, before several scripts write to it
    started = time.perf_counter()
    with ThreadPoolExecutor(jobs) as pool:
        codes = list(pool.map(lambda name: _run(name, fast, output, threads=jobs == 1), SOURCES))
    for name, code in zip(SOURCES, codes, strict=True):
        click.echo(f"{name}: {'failed' if code else output / 'reports' / name / 'report.md'}")
    click.echo(f"{(time.perf_counter() - started) / 60:.1f} minutes")
    click.echo(f"mlflow ui --backend-store-uri sqlite:///{(output / 'mlflow.db').as_posix()}")
    sys.exit(1 if any(codes) else 0)


def _run(name: str, fast: bool, output: Path, *, threads: bool) -> int:
    environment = (
        dict(os.environ)
        if threads
        else os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    )
    command = [
        sys.executable,
        str(HERE / f"{name}.py"),
        "--output",
        str(output),
        *(["--fast"] if fast else []),
    ]
    return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    main()
