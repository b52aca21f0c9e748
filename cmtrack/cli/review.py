"""``cmtrack review``: save a comparison as a document or a run, and set an alias."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cmtrack.cli.compare import (
    compared,
    comparison_command,
    in_store_of,
    verbose_option,
    write_csv,
)
from cmtrack.cli.flags import NEW_FILE, Answer, check_goes_with
from cmtrack.cli.frame import BadInput, echo, terminal, warn, working, writing

if TYPE_CHECKING:
    from cmtrack.tracking.publish import LoggedReview

_ENDINGS = (".html", ".md", ".json")


@comparison_command("review")
@click.option(
    "--output",
    "outputs",
    multiple=True,
    type=NEW_FILE,
    help="Write the review to this file (.html, .md or .json); repeatable.  [default: review.html]",
)
@click.option(
    "--bundle",
    "bundle_file",
    type=NEW_FILE,
    help="Write the review with its statistics, rule and versions as one .zip file, which `cmtrack "
    "verify` can check.",
)
@click.option(
    "--bundle-rows/--no-bundle-rows",
    "bundle_rows",
    default=True,
    show_default=True,
    help=(
        "Include the prediction of every row in the bundle, so that paired differences can be "
        "recomputed."
    ),
)
@click.option(
    "--log", is_flag=True, help="Write the review as an MLflow run, and tag the compared runs."
)
@click.option(
    "--experiment-for-review",
    metavar="NAME",
    help="Write the run of --log into this experiment.  [default: the experiment of the runs, with "
    '": reviews" after its name]',
)
@click.option(
    "--alias",
    metavar="NAME",
    help="Set this alias for the model version of the chosen run.",
)
@click.option(
    "--registered-model",
    metavar="NAME",
    help="Set --alias in this registered model, if the run has versions of several models.",
)
@verbose_option
def review_command(
    outputs: tuple[Path, ...],
    bundle_file: Path | None,
    bundle_rows: bool,
    log: bool,
    experiment_for_review: str | None,
    alias: str | None,
    registered_model: str | None,
    csv_file: Path | None,
    verbose: bool,
    **options: Any,
) -> Answer:
    """Rank runs and write a review of the resulting decision.

    You can use all options of `cmtrack compare`.
    """
    of_run = {"alias": alias, "registered_model": registered_model}
    check_goes_with("--log", log, experiment_for_review=experiment_for_review, **of_run)
    if registered_model is not None and alias is None:
        raise click.UsageError("--registered-model needs --alias")
    if not outputs and bundle_file is None:
        outputs = (Path("review.html"),)
    _check_endings(outputs, bundle_file)
    with working() as step:
        comparison = compared(step, **options)
        step("writing the review", 0, 0)
        from cmtrack.tracking.settings import lists_rows

        write_report = partial(comparison.report, rows=lists_rows())
        written = [str(_write(write_report, path)) for path in outputs]
        if bundle_file is not None:
            write_bundle = partial(comparison.bundle, rows=bundle_rows)
            written.append(str(_write(write_bundle, bundle_file)))
        write_csv(comparison, csv_file)
        logged: LoggedReview | None = None
        if log:
            step("logging to MLflow", 0, 0)
            with in_store_of(options):
                logged = comparison.log(experiment_name=experiment_for_review, **of_run)
            for problem in logged.problems:
                warn(problem)
    from cmtrack.cli.comparison_table import print_decision

    about = {"output": written, "logged": None if logged is None else vars(logged)}

    def show() -> None:
        print_decision(terminal(), comparison, verbose)
        _print_written(written, logged)

    return Answer(lambda: about | comparison.to_dict(), show)


def _check_endings(outputs: Iterable[Path], bundle_file: Path | None) -> None:
    if bundle_file is not None and bundle_file.suffix.lower() != ".zip":
        raise BadInput(f"--bundle must end in .zip, got {bundle_file.name!r}")
    for path in outputs:
        if path.suffix.lower() not in _ENDINGS:
            raise BadInput(f"--output must end in {', '.join(_ENDINGS)}, got {path.name!r}")


def _write(write: Callable[[Path], Path], path: Path) -> Path:
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        return write(path)


def _print_written(written: list[str], logged: LoggedReview | None) -> None:
    """Print the files of a review and what was logged."""
    from cmtrack.report import formatting as fmt

    echo("\nThe review:")
    for path in written:
        echo(f"  {path}{_sizes(Path(path))}")
    if logged is None:
        return
    tagged = fmt.counted(len(logged.tagged_runs), "run")
    if logged.tagged_models:
        tagged += f" and {fmt.counted(len(logged.tagged_models), 'logged model')}"
    echo(
        f"The review was logged as run {logged.run_id}. {tagged} got the tags cmtrack.rank "
        "and cmtrack.review."
    )
    if logged.versions:
        echo(f"Described: {', '.join(logged.versions)}")
    if logged.alias:
        echo(f"Alias: {logged.alias}")


def _sizes(path: Path) -> str:
    """Return the sizes of a bundle, or an empty text for any other file."""
    if path.suffix.lower() != ".zip":
        return ""
    from cmtrack.report.review.bundle import sizes

    total, rows = sizes(path)
    row_text = "without predictions by row"
    if rows:
        row_text = f"of which predictions by row {rows / 1e6:.1f} MB"
    return f" ({total / 1e6:.1f} MB, {row_text})"
