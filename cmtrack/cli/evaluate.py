"""``cmtrack evaluate``: predictions in a file."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cmtrack import untrusted
from cmtrack.cli.flags import (
    FILE,
    FOLDER,
    Answer,
    answering,
    asking,
    check_goes_with,
    of_evaluate,
    tracking_uri_option,
)
from cmtrack.cli.frame import (
    BadInput,
    Step,
    WorkFailed,
    bad_input,
    echo,
    terminal,
    warn,
    working,
)
from cmtrack.cli.group import main

if TYPE_CHECKING:
    from cmtrack.evaluation import Evaluation

_OF_THE_RUN = (
    "run_id",
    "experiment",
    "run_name",
    "prefix",
    "predictions",
    "dataset",
    "tracking_uri",
)
_WISHES: dict[str | None, bool | str] = {
    None: "auto",
    "auto": "auto",
    "labels": "labels",
    "on": True,
    "off": False,
}


@main.command("evaluate", cls=asking(of_evaluate))
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option("--y-true", required=True, metavar="COLUMN", help="Column of actual labels.")
@click.option(
    "--y-pred",
    metavar="COLUMN",
    help="Column of predicted labels; by default the most probable class.",
)
@click.option(
    "--y-prob",
    metavar="'p_*'|COLUMN",
    help="Columns of probabilities, where * stands for the label; or one column, of lists or for the positive class.",
)
@click.option(
    "--y-score",
    metavar="'d_*'|COLUMN",
    help="Columns of decision values instead, such as an SVC's, which are no probabilities: metrics of ranking only.",
)
@click.option("--labels", metavar="A,B,C", help="All classes in order, also those that no row has.")
@click.option(
    "--positive", metavar="LABEL", help="The positive class of two, or the positive group."
)
@click.option(
    "--grouping", "grouping_file", type=FILE, help="YAML or JSON file that groups the classes."
)
@click.option("--weight", "sample_weight", metavar="COLUMN", help="Column of sample weights.")
@click.option(
    "--groups",
    metavar="COLUMN",
    help="Column that names rows that belong together, such as persons.",
)
@click.option(
    "--row-ids",
    metavar="COLUMN",
    help="Column that names the rows: comparisons check that they are the same.",
)
@click.option(
    "--segment",
    "segments",
    metavar="COLUMN",
    multiple=True,
    help="Column that divides the rows, such as region, for metrics by segment; may be repeated. A,B: the crossings of "
    "two columns.",
)
@click.option(
    "--calibration",
    "calibration_file",
    type=FILE,
    help="File with the same columns, of labelled rows that the model was not trained on, for the prevalence.",
)
@click.option(
    "--missing",
    metavar="TEXT",
    multiple=True,
    help="Text that is a missing value in a CSV file, such as ''; repeatable. By default an empty field, NA, None, NaN "
    "and the other texts that pandas reads as missing.",
)
@click.option(
    "--output",
    type=FOLDER,
    help="Folder for the numbers (JSON), the figures (PNG) and the report (HTML).",
)
@click.option("--log", is_flag=True, help="Log to an MLflow run: a new one, or that of --run-id.")
@click.option("--run-id", help="An existing run to log to.")
@click.option(
    "--experiment", metavar="NAME", help="Experiment of the new run; created if it does not exist."
)
@click.option("--run-name", metavar="NAME", help="Name of the new run.")
@click.option(
    "--prefix",
    metavar="TEXT",
    help="Prefix of metric and file names, such as val/, to log several evaluations to a run.",
)
@click.option(
    "--predictions",
    type=click.Choice(["auto", "labels", "on", "off"]),
    help="Which rows are logged: all up to 32 MB (auto, the default), without probabilities, of any size, or none. "
    "CMTRACK_PREDICTIONS and pyproject.toml may allow less.",
)
@click.option(
    "--dataset", metavar="NAME", help="Name of the data; by default the number of rows and classes."
)
@tracking_uri_option
@answering
def evaluate_command(
    files: tuple[str, ...], output: Path | None, log: bool, **options: Any
) -> Answer:
    """Judge the predictions in FILE.

    FILE is .parquet, .csv or .tsv; several files, a glob or a folder are one table.
    """
    where = {name: options.pop(name) for name in _OF_THE_RUN}
    check_goes_with("--log", log, **where)
    if where["run_id"] is not None and (
        where["experiment"] is not None or where["run_name"] is not None
    ):
        raise click.UsageError(
            "--run-id names an existing run: leave out --experiment and --run-name"
        )
    if where["prefix"] is not None:
        from cmtrack.cli.compare import check_prefix

        check_prefix(where["prefix"])
    for name in files:
        if not (set(name) & set("*?[") or "://" in name or Path(name).exists()):
            raise click.BadParameter(f"File {name!r} does not exist.", param_hint="FILE")
    file = Path(files[0])
    done: dict[str, Any] = {"file": files[0] if len(files) == 1 else list(files)}
    with warnings.catch_warnings():
        # the summary tells what the evaluation warns of
        warnings.simplefilter("ignore", UserWarning)
        evaluation = _evaluate(files, 1 + bool(output) + log, **options)
    with working() as step:
        if output is not None:
            done["output"] = [str(path) for path in _write(evaluation, output, file, step)]
        if log:
            step("logging to MLflow", 1, 2)
            done |= _log(evaluation, file, where)
    from cmtrack.cli.summary import as_data, print_evaluation

    def show() -> None:
        print_evaluation(terminal(), evaluation)
        if output is not None:
            echo(f"\nWritten: {len(done['output'])} files; the report is {done['output'][-1]}")
        if log:
            echo(f"\nLogged to run {done['run_id']} in {done['tracking_uri']}\n{done['rows']}")

    return Answer(lambda: done | as_data(evaluation), show)


def _evaluate(
    files: tuple[str, ...],
    steps: int,
    *,
    y_prob: str | None,
    y_score: str | None,
    labels: str | None,
    positive: str | None,
    grouping_file: Path | None,
    groups: str | None,
    segments: tuple[str, ...],
    calibration_file: Path | None,
    missing: tuple[str, ...],
    **options: Any,
) -> Evaluation:
    """Evaluate a small file in memory, other files as one table."""
    columns = {name: options.pop(name) for name in ("y_true", "y_pred", "sample_weight", "row_ids")}
    scores = y_prob if y_score is None else y_score
    if columns["y_pred"] is None and scores is None:
        raise click.UsageError("give --y-pred or --y-prob, or both")
    if y_prob is not None and y_score is not None:
        raise click.UsageError(
            "give --y-prob or --y-score, not both: --y-score is for decision values"
        )
    if calibration_file is not None and y_prob is None:
        raise click.UsageError("--calibration needs --y-prob: it holds labels and probabilities")
    from cmtrack.cli import reading
    from cmtrack.evaluation import evaluate
    from cmtrack.grouping import Grouping
    from cmtrack.sources.texts import MISSING, grouped_labels, kinds_named

    grouping = (
        None if grouping_file is None else reading.read_file(Grouping.from_file, grouping_file)
    )
    groups_of_two = reading.two_groups(grouping)
    option = "y_prob" if y_score is None else "y_score"
    named_labels = [*([] if labels is None else labels.split(",")), *grouped_labels(grouping)]
    kinds = kinds_named(named_labels)
    missing_texts = missing or MISSING

    def question(as_label: Callable[[str], Any], of_column: Any = None) -> dict[str, Any]:
        order = None if labels is None else [as_label(text) for text in labels.split(",")]
        chosen = of_column
        if positive is not None:
            chosen = groups_of_two.get(positive, positive) if groups_of_two else as_label(positive)
        return {"labels": order, "positive": chosen, "grouping": grouping, **options}

    with bad_input(OSError, say=lambda text: _explained(text, files[0], scores)):
        if reading.belongs_in_a_table(files, scores):
            if groups is not None:
                raise BadInput(
                    "--groups needs one file of less than 256 MB without columns of lists: its rows are held in memory"
                )
            from cmtrack.evaluation.from_tables import evaluate_table
            from cmtrack.sources import open_source

            source = reading.open_predictions(
                files, scores, segments, kinds, missing_texts, what=option, **columns
            )
            calibration = None
            if calibration_file is not None:
                calibration = open_source(str(calibration_file), [columns["y_true"]], missing_texts)
            return evaluate_table(  # with a progress bar of its own
                source,
                **columns,
                y_prob=y_prob,
                y_score=y_score,
                calibration=calibration,
                segments=reading.divisions(segments, source.schema.names) or None,
                **question(reading.label_reader_of_files(source, columns["y_true"])),
            )
        with working() as step:
            step("reading and evaluating", 0, steps)
            data, of_column, as_label = reading.read_predictions(
                Path(files[0]),
                scores,
                segments,
                what=option,
                groups=groups,
                label_kinds=kinds,
                missing=missing_texts,
                **columns,
            )
            if calibration_file is not None:
                are_texts = as_label("0") == "0"
                held = reading.read_predictions(
                    calibration_file,
                    y_prob,
                    y_true=columns["y_true"],
                    label_kinds=(str,) if are_texts else kinds,
                    missing=missing_texts,
                )[0]
                data["calibration"] = held["y_true"], held["y_prob"]
            evaluation = evaluate(**data, **question(as_label, of_column))
            evaluation.metrics  # noqa: B018 - computed here, under the progress bar
            return evaluation


def _explained(text: str, file: str, y_prob: str | None) -> str:
    """An input error with advice for a person at the terminal."""
    if "missing labels" in text and not file.lower().endswith((".parquet", ".pq")):
        return f"{text} (in CSV files an empty field, NA and None are read as missing: --missing names other texts)"
    if text.startswith("y_prob must have shape") and y_prob is not None and "*" not in y_prob:
        return f"{text}; one column serves two classes only: name the column of each class by a pattern such as 'p_*'"
    return text


def _write(evaluation: Evaluation, folder: Path, file: Path, step: Step) -> list[Path]:
    """Write numbers, figures and report, under the names that a run gets."""
    from cmtrack.report.figures import draw_pictures
    from cmtrack.report.html import write_text
    from cmtrack.report.views import report_html
    from cmtrack.tracking.names import PREDICTIONS_FILE, REPORT_FILE
    from cmtrack.tracking.settings import with_kept_rows

    step("drawing figures", 0, 1)
    rows = with_kept_rows(evaluation)[0]
    written = [
        evaluation.save(folder, rows=False) if rows is None else rows.save(folder, rows=True)
    ]
    written += [path for path in [folder / PREDICTIONS_FILE] if path.exists()]
    pictures = draw_pictures(evaluation, step=step)
    for picture in pictures.values():
        written.append(folder / picture.file)
        written[-1].write_bytes(picture.content)
    report = report_html(evaluation, pictures, subtitle=file.name, rows=rows)
    return [*written, write_text(folder / REPORT_FILE, report)]


def _log(evaluation: Evaluation, file: Path, where: dict[str, str | None]) -> dict[str, str]:
    """Log to a run, and return its id and store."""
    from cmtrack.tracking import EvaluationWarning, log_evaluation
    from cmtrack.tracking.send import client_for
    from cmtrack.tracking.settings import with_kept_rows
    from cmtrack.tracking.store import create_run, end_run, experiment_named, quiet, tracking_store

    with quiet(), tracking_store(where["tracking_uri"]) as uri, warnings.catch_warnings():
        warnings.simplefilter("ignore", EvaluationWarning)  # told below, in one sentence
        client = client_for()
        run_id = where["run_id"]
        new = run_id is None
        if run_id is None:
            experiment = (
                where["experiment"] or os.environ.get("MLFLOW_EXPERIMENT_NAME") or "Default"
            )
            name = where["run_name"] or file.stem
            run_id = str(create_run(client, experiment_named(client, experiment), name).info.run_id)
        wish = _WISHES[where["predictions"]]
        rows = with_kept_rows(evaluation, wish)[1]
        logged = log_evaluation(
            evaluation,
            run_id=run_id,
            prefix=where["prefix"] or "",
            predictions=wish,
            dataset=where["dataset"],
        )
        if new:
            end_run(client, run_id, "FINISHED" if logged.status == "completed" else "FAILED")
    for problem in logged.problems:
        warn(problem)
    if logged.status != "completed":
        where_kept = "" if logged.path is None else f"; the evaluation is kept in {logged.path}"
        raise WorkFailed(f"the evaluation was not logged: {logged.error}{where_kept}")
    return {"run_id": run_id, "tracking_uri": untrusted.without_credentials(uri), "rows": rows}
