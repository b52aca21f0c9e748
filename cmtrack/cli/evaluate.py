"""``cmtrack evaluate``: evaluate the predictions in a file."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
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
from cmtrack.cli.row_options import RowQuestion, check_files, check_scores, row_options, with_flags

if TYPE_CHECKING:
    from cmtrack.cli.reading import NamedColumns
    from cmtrack.evaluation import Evaluation
    from cmtrack.tracking.model_rows import EvaluatedModel

_RUN_OPTIONS = (
    "run_id",
    "experiment",
    "run_name",
    "prefix",
    "predictions",
    "dataset",
    "tracking_uri",
)
_PREDICTIONS: dict[str | None, bool | str] = {
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
    help=(
        "Column of predicted labels. By default, the class with the highest probability is "
        "predicted."
    ),
)
@click.option(
    "--y-prob",
    metavar="'p_*'|COLUMN",
    help="Columns of probabilities, in which * stands for the label. You can also name one "
    "column that contains lists or the probability of the positive class.",
)
@click.option(
    "--y-score",
    metavar="'d_*'|COLUMN",
    help="Columns of decision values instead of probabilities, for example from an SVC. Only "
    "ranking metrics are computed from them.",
)
@click.option(
    "--model",
    metavar="URI",
    help="Registered model that scores the rows, such as models:/name/3 or models:/name@champion. "
    "With --y-pred, --y-prob or --y-score, its stored predictions are read instead; {version} in "
    "a column's name stands for the number of its version.",
)
@row_options
@click.option(
    "--calibration",
    "calibration_file",
    type=FILE,
    help="File with labelled rows that the model was not trained on, in the same columns. These "
    "rows calibrate the prevalence estimate.",
)
@click.option(
    "--missing",
    metavar="TEXT",
    multiple=True,
    help="Text that marks a missing value in a CSV file, such as ''; repeatable. By default, an "
    "empty field, NA, None, NaN and the other strings that pandas reads as missing.",
)
@click.option(
    "--output",
    type=FOLDER,
    help="Folder for the numbers (JSON), the figures (PNG) and the report (HTML).",
)
@click.option("--log", is_flag=True, help="Log to a new MLflow run, or to the run of --run-id.")
@click.option("--run-id", metavar="RUN", help="Existing run to log to, by its id.")
@click.option(
    "--experiment",
    metavar="NAME",
    help="Experiment for the new run. The experiment is created if it does not exist.",
)
@click.option("--run-name", metavar="NAME", help="Name of the new run.")
@click.option(
    "--prefix",
    metavar="TEXT",
    help="Prefix of metric and file names, such as val/, to log several evaluations to one run.",
)
@click.option(
    "--predictions",
    type=click.Choice(["auto", "labels", "on", "off"]),
    help="Rows to log: auto (the default) logs rows up to 32 MB, labels logs them without "
    "probabilities, on logs them at any size, and off logs none. CMTRACK_PREDICTIONS and "
    "pyproject.toml may restrict this further.",
)
@click.option(
    "--dataset",
    metavar="NAME",
    help="Name of the data. By default, the name is made from the number of rows and classes.",
)
@tracking_uri_option
@answering
def evaluate_command(
    files: tuple[str, ...], output: Path | None, log: bool, model: str | None, **options: Any
) -> Answer:
    """Evaluate the predictions in FILE.

    FILE is .parquet, .csv or .tsv. You can also pass several files, a glob or a folder, which are
    read as one table.
    """
    run_options = {name: options.pop(name) for name in _RUN_OPTIONS}
    _check_run_options(log, run_options, has_store=log or model is not None)
    check_files(files, "FILE")
    file = Path(files[0])
    done: dict[str, Any] = {"file": files[0] if len(files) == 1 else list(files)}
    with warnings.catch_warnings():
        # The summary prints the evaluation's warnings.
        warnings.simplefilter("ignore", UserWarning)
        n_steps = 1 + (output is not None) + log
        scored = None
        if model is None:
            evaluation = _evaluate(files, n_steps, **options)
        else:
            scored = _evaluate_model(model, files, run_options["tracking_uri"], **options)
            evaluation = scored.evaluation
            run_options["model"] = scored.version.uri
            done["model"] = scored.version.uri
    with working() as step:
        if output is not None:
            done["output"] = [str(path) for path in _write(evaluation, output, file, step)]
        if log:
            step("logging to MLflow", 1, 2)
            done |= _log(evaluation, file, run_options)
    from cmtrack.cli.summary import as_data, print_evaluation

    def show() -> None:
        if scored is not None:
            echo(f"{scored.sentence()}\n")
        print_evaluation(terminal(), evaluation)
        if output is not None:
            echo(f"\nWritten: {len(done['output'])} files; the report is {done['output'][-1]}")
        if log:
            echo(f"\nLogged to run {done['run_id']} in {done['tracking_uri']}\n{done['rows']}")

    return Answer(lambda: done | as_data(evaluation), show)


def _check_run_options(log: bool, options: Mapping[str, Any], has_store: bool) -> None:
    """Refuse conflicting options of a run before any file is read."""
    of_the_run = dict(options)
    tracking_uri = of_the_run.pop("tracking_uri")
    check_goes_with("--log or --model", has_store, tracking_uri=tracking_uri)
    check_goes_with("--log", log, **of_the_run)
    names_new_run = options["experiment"] is not None or options["run_name"] is not None
    if options["run_id"] is not None and names_new_run:
        raise click.UsageError(
            "--run-id names an existing run; leave out --experiment and --run-name"
        )
    if options["prefix"] is not None:
        from cmtrack.cli.compare import check_prefix

        check_prefix(options["prefix"])


def _evaluate(
    files: tuple[str, ...],
    n_steps: int,
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
    """Evaluate a small file in memory, and a large file or several files as a streamed table."""
    columns = {name: options.pop(name) for name in ("y_true", "y_pred", "sample_weight", "row_ids")}
    scores = y_prob if y_score is None else y_score
    if columns["y_pred"] is None and scores is None:
        raise click.UsageError("give --y-pred or --y-prob, or both")
    check_scores(y_prob, y_score)
    if calibration_file is not None and y_prob is None:
        raise click.UsageError(
            "--calibration needs --y-prob, because the calibration file contains labels and "
            "probabilities"
        )
    from cmtrack.cli import reading
    from cmtrack.sources.texts import MISSING, grouped_labels, kinds_named

    question = RowQuestion.read(labels, positive, grouping_file, options)
    named = reading.NamedColumns(
        by_argument=columns,
        scores=scores,
        scores_argument="y_prob" if y_score is None else "y_score",
        segments=segments,
        label_kinds=kinds_named([*(question.order or ()), *grouped_labels(question.grouping)]),
        missing=missing or MISSING,
    )
    with bad_input(OSError, say=lambda text: _explain(text, files[0], scores)):
        if not reading.belongs_in_a_table(files, scores):
            named = replace(named, by_argument={**columns, "groups": groups})
            return _evaluate_file(Path(files[0]), named, question, calibration_file, n_steps)
        if groups is not None:
            raise BadInput(
                "--groups needs one file of less than 256 MB without columns of lists, because "
                "its rows are held in memory"
            )
        return _evaluate_table(files, named, question, calibration_file)


def _evaluate_model(
    model: str,
    files: tuple[str, ...],
    tracking_uri: str | None,
    *,
    y_pred: str | None,
    y_prob: str | None,
    y_score: str | None,
    labels: str | None,
    positive: str | None,
    grouping_file: Path | None,
    segments: tuple[str, ...],
    calibration_file: Path | None,
    missing: tuple[str, ...],
    y_true: str,
    sample_weight: str | None,
    groups: str | None,
    row_ids: str | None,
    **options: Any,
) -> EvaluatedModel:
    """Evaluate a registered model on the rows of one file."""
    for flag, value in {"--calibration": calibration_file, "--missing": missing}.items():
        if value:
            raise click.UsageError(f"{flag} does not work with --model")
    if len(files) > 1:
        raise click.UsageError(f"--model needs one file, got {len(files)}")
    check_scores(y_prob, y_score)
    from cmtrack.cli import reading
    from cmtrack.evaluation.labelled_rows import LabelledRows, StoredColumns
    from cmtrack.tracking.model_rows import evaluate_version
    from cmtrack.tracking.registry import find_version
    from cmtrack.tracking.store import client_for, quiet, tracking_store

    question = RowQuestion.read(labels, positive, grouping_file, options)
    with (
        working() as step,
        bad_input(OSError, say=with_flags),
        quiet(),
        tracking_store(tracking_uri),
    ):
        step("scoring and evaluating", 0, 1)
        version = find_version(model, client_for())
        rows = LabelledRows.read(
            files[0],
            y_true,
            sample_weight=sample_weight,
            groups=groups,
            row_ids=row_ids,
            segments=reading.divisions(segments, ()),
        )
        as_label = reading.label_reader(rows.column(y_true), y_true)
        arguments = question.arguments(as_label)
        evaluated = evaluate_version(
            version,
            rows,
            StoredColumns(y_pred, y_prob, y_score),
            labels=arguments.pop("labels", None),
            options=arguments,
        )
        evaluated.evaluation.metrics  # noqa: B018 - computed here, under the progress bar
    for note in evaluated.notes:
        warn(note)
    return evaluated


def _evaluate_table(
    files: Sequence[str], named: NamedColumns, question: RowQuestion, calibration_file: Path | None
) -> Evaluation:
    """Evaluate files as one table with ``evaluate_table``, and show a progress bar."""
    from cmtrack.cli import reading
    from cmtrack.evaluation.from_tables import evaluate_table
    from cmtrack.sources import open_source

    source = reading.open_predictions(files, named)
    y_true = str(named.by_argument["y_true"])
    arguments: dict[str, Any] = {**named.by_argument, named.scores_argument: named.scores}
    if calibration_file is not None:
        arguments["calibration"] = open_source(str(calibration_file), [y_true], named.missing)
    return evaluate_table(
        source,
        **arguments,
        segments=reading.divisions(named.segments, source.schema.names) or None,
        **question.arguments(reading.label_reader_of_files(source, y_true)),
    )


def _evaluate_file(
    path: Path,
    named: NamedColumns,
    question: RowQuestion,
    calibration_file: Path | None,
    n_steps: int,
) -> Evaluation:
    """Evaluate a file in memory."""
    from cmtrack.cli.reading import read_predictions
    from cmtrack.evaluation import evaluate

    with working() as step:
        step("reading and evaluating", 0, n_steps)
        predictions = read_predictions(path, named)
        arguments = predictions.arguments
        if calibration_file is not None:
            # The labels of the calibration file get the type of labels in the evaluated file.
            are_texts = predictions.as_label("0") == "0"
            named = replace(
                named,
                by_argument={"y_true": named.by_argument["y_true"]},
                segments=(),
                label_kinds=(str,) if are_texts else named.label_kinds,
            )
            calibration = read_predictions(calibration_file, named).arguments
            arguments["calibration"] = (calibration["y_true"], calibration["y_prob"])
        # --positive overrides the label of a single column of probabilities.
        arguments |= question.arguments(predictions.as_label)
        evaluation = evaluate(**arguments)
        evaluation.metrics  # noqa: B018 - computed here, under the progress bar
        return evaluation


def _explain(text: str, file: str, scores: str | None) -> str:
    """Return an input error with advice on the command's options."""
    if "missing labels" in text and not file.lower().endswith((".parquet", ".pq")):
        return (
            f"{text} (in CSV files an empty field, NA and None are read as missing; --missing "
            "changes this)"
        )
    if text.startswith("y_prob must have shape") and scores is not None and "*" not in scores:
        return (
            f"{text}; one column is enough only for two classes. For more, name the columns of all "
            "classes with a pattern such as 'p_*'"
        )
    return text


def _write(evaluation: Evaluation, folder: Path, file: Path, step: Step) -> list[Path]:
    """Write numbers, figures and report under the file names that a logged run uses."""
    from cmtrack.report.figures import draw_pictures
    from cmtrack.report.html import write_text
    from cmtrack.report.views import report_html
    from cmtrack.tracking.names import PREDICTIONS_FILE, REPORT_FILE
    from cmtrack.tracking.settings import with_kept_rows

    step("drawing figures", 0, 1)
    rows = with_kept_rows(evaluation)[0]
    if rows is None:
        written = [evaluation.save(folder, rows=False)]
    else:
        written = [rows.save(folder, rows=True)]
    predictions_file = folder / PREDICTIONS_FILE
    if predictions_file.exists():
        written.append(predictions_file)
    pictures = draw_pictures(evaluation, step=step, figures="all")
    for picture in pictures.values():
        path = folder / picture.file
        path.write_bytes(picture.content)
        written.append(path)
    report = report_html(evaluation, pictures, subtitle=file.name, rows=rows)
    return [*written, write_text(folder / REPORT_FILE, report)]


def _log(evaluation: Evaluation, file: Path, options: dict[str, str | None]) -> dict[str, str]:
    """Log an evaluation; return the run's id, its store and a sentence on its rows."""
    from cmtrack.tracking import EvaluationWarning, log_evaluation
    from cmtrack.tracking.registry import find_version, history_experiment
    from cmtrack.tracking.settings import with_kept_rows
    from cmtrack.tracking.store import (
        client_for,
        create_run,
        end_run,
        experiment_named,
        quiet,
        tracking_store,
    )

    with quiet(), tracking_store(options["tracking_uri"]) as uri, warnings.catch_warnings():
        # The command prints each problem below in one sentence.
        warnings.simplefilter("ignore", EvaluationWarning)
        client = client_for()
        run_id = options["run_id"]
        is_new = run_id is None
        model = options.get("model")
        if run_id is None:
            by_environment = os.environ.get("MLFLOW_EXPERIMENT_NAME")
            experiment = options["experiment"] or by_environment
            if experiment is None and model is not None:
                experiment_id = history_experiment(find_version(model, client), client)
            else:
                experiment_id = experiment_named(client, experiment or "Default")
            run = create_run(client, experiment_id, options["run_name"] or file.stem)
            run_id = str(run.info.run_id)
        predictions = _PREDICTIONS[options["predictions"]]
        rows = with_kept_rows(evaluation, predictions)[1]
        logged = log_evaluation(
            evaluation,
            run_id=run_id,
            model=model,
            prefix=options["prefix"] or "",
            predictions=predictions,
            dataset=options["dataset"],
        )
        if is_new:
            end_run(client, run_id, "FINISHED" if logged.status == "completed" else "FAILED")
    for problem in logged.problems:
        warn(problem)
    if logged.status != "completed":
        text = f"the evaluation was not logged: {logged.error}"
        if logged.path is not None:
            text += f"; the evaluation is kept in {logged.path}"
        raise WorkFailed(text)
    return {"run_id": run_id, "tracking_uri": untrusted.without_credentials(uri), "rows": rows}
