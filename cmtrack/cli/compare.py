"""``cmtrack compare``: runs in order, and which differences are real."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from cmtrack.cli.comparison_options import compared, comparison_options, write_csv
from cmtrack.cli.frame import echo_json, plain_errors, terminal, working


@click.command("compare")
@comparison_options
@plain_errors
def compare_command(csv_file: Path | None, as_json: bool, **options: Any) -> None:
    """Rank evaluated runs, and say which differences are real.

    RUN is a run id, a logged model's id, or a model URI such as models:/name@champion. Runs that were judged on
    different data, or in different ways, get rankings of their own.

    Exit codes: 0 there is a ranking or every run was stopped by a gate, 1 the work failed (no such run, no server),
    2 wrong usage or bad input.
    """
    with working() as step:
        comparison = compared(step, **options)
        write_csv(comparison, csv_file)
        data = comparison.to_dict() if as_json else {}
    if as_json:
        echo_json(data)
        return
    from cmtrack.cli.comparison_table import print_comparison

    print_comparison(terminal(), comparison)
