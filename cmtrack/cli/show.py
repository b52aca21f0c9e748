"""``cmtrack show``: the evaluation that a run holds."""

from __future__ import annotations

import click

from cmtrack.cli.frame import echo_json, plain_errors, terminal, working


@click.command("show")
@click.argument("run")
@click.option("--prefix", default="", help="As it was logged, where a run holds several evaluations.")
@click.option("--tracking-uri", metavar="URI", help="Tracking store; by default MLflow's own choice.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
@plain_errors
def show_command(run: str, prefix: str, tracking_uri: str | None, as_json: bool) -> None:
    """Print the evaluation that RUN holds: a run id, a logged model's id, or a URI such as models:/name@champion."""
    with working() as step:
        step("reading the run", 0, 1)
        from cmtrack.cli import summary
        from cmtrack.tracking import load_evaluation
        from cmtrack.tracking.runs import client_for, find
        from cmtrack.tracking.store import quiet, tracking_store

        with quiet(), tracking_store(tracking_uri):
            found = find(run, [client_for()])
            prefix = found.logged_prefix(prefix)
            evaluation = load_evaluation(found, prefix=prefix)
        data = summary.as_data(evaluation)
    if as_json:
        echo_json({"run_id": found.run_id, "prefix": prefix} | data)
        return
    summary.print_evaluation(terminal(), evaluation)
