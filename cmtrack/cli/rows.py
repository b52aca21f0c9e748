"""``cmtrack rows``: list the rows behind a number of one run, or of runs on the same rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cmtrack.cli.flags import FILE, Answer
from cmtrack.cli.frame import bad_input, passing_on, print_text, terminal
from cmtrack.cli.group import main
from cmtrack.cli.stored import Store, of_stored, print_table
from cmtrack.names import quoted

if TYPE_CHECKING:
    import pandas as pd

    from cmtrack.comparison import Comparison
    from cmtrack.evaluation import Evaluation

_WIDTH = 200
_NAME = 12
_LABELLED_HEADS = ("predicted", "p of actual_", "p_")
_OF_ACTUAL = "probability_actual"
_OF_RUNS = ("broken", "fixed", "changed", "missed")
_OF_ONE_RUN = ("cell", "wrong")


@main.command("rows")
@click.argument("runs", nargs=-1, required=True, metavar="RUN [RUN]...")
@click.option(
    "--cell", nargs=2, metavar="ACTUAL PREDICTED", help="Rows in a cell of the confusion matrix."
)
@click.option(
    "--wrong", is_flag=True, help="Errors of RUN. This is the default if you name one run."
)
@click.option(
    "--confident",
    type=float,
    metavar="P",
    help="With --wrong or --cell, only rows predicted with a probability of at least P.",
)
@click.option(
    "--step",
    metavar="NAME",
    help=(
        "Step of the grouping. A prediction is then correct if it has the actual group in this "
        "step. By default, it must have the actual class."
    ),
)
@click.option(
    "--broken",
    is_flag=True,
    help=(
        "Rows that only the first RUN predicts correctly. This is the default if you name two runs."
    ),
)
@click.option("--fixed", is_flag=True, help="Rows that only the second RUN predicts correctly.")
@click.option("--changed", is_flag=True, help="Rows that the two runs predict differently.")
@click.option(
    "--missed",
    type=click.IntRange(1),
    metavar="N",
    help="Rows that at least N runs predict incorrectly.",
)
@click.option(
    "--table", type=FILE, help="Parquet or CSV file with more columns of the rows to show."
)
@click.option("--row-ids", metavar="COLUMN", help="Column of --table with the row ids of the runs.")
@click.option(
    "--max-rows",
    type=click.IntRange(1),
    metavar="N",
    default=25,
    show_default=True,
    help="Show at most this many rows.",
)
@of_stored
def rows_command(
    runs: tuple[str, ...],
    table: Path | None,
    row_ids: str | None,
    max_rows: int,
    store: Store,
    **asked: Any,
) -> Answer:
    """Print the rows behind a number.

    RUN is a run, or a folder that `cmtrack evaluate --output` wrote. The run must contain its
    row-level predictions. If you pass several runs, they must have been evaluated on the same rows.

    Exit codes: 0 success, 1 the work failed, 2 wrong usage or bad input, such as runs on different
    rows.
    """
    kind = _kind_of(runs, asked)
    if asked["confident"] is not None and kind not in _OF_ONE_RUN:
        raise click.UsageError("--confident needs --cell or --wrong")
    if row_ids and table is None:
        raise click.UsageError("--row-ids needs --table")
    from cmtrack.comparison.comparability import of_classes
    from cmtrack.evaluation.rows import TOTAL

    sentence = ""
    names = list(runs)
    with passing_on(row_ids="--row-ids"):
        evaluations = [of_classes(store.load(run, lambda _: True)[1]) for run in runs]
        with bad_input(KeyError, say=lambda text: text.replace("at_least", "--missed")):
            if kind in _OF_ONE_RUN:
                options = {"table": table, "row_ids": row_ids, "limit": max_rows}
                frame = _rows_of_run(evaluations[0], kind, asked, options)
            else:
                comparison, names = _compare(runs, evaluations, asked["step"])
                frame, sentence = _rows_of_runs(comparison, names, kind, asked)
                if table is not None:
                    frame = _join_table(frame, _indexed_by(comparison, names, kind), table, row_ids)
    total = int(frame.attrs.get(TOTAL, len(frame)))
    frame = frame.head(max_rows)
    about = {"kind": kind, "runs": list(runs), "total": total, "sentence": sentence}
    records = frame.astype(object).where(frame.notna(), None).to_dict("records")

    def show() -> None:
        run_names = store.names_of(runs)
        shown = frame
        if kind == "missed":
            # The probabilities of many runs do not fit on a terminal.
            shown = frame.loc[:, ~frame.columns.str.startswith("probability")]
        title = _title(kind, asked, run_names)
        _print(title, shown, total, dict(zip(names, run_names, strict=True)))
        if kind == "missed":
            print_text(terminal(), sentence)

    return Answer(lambda: about | {"rows": records}, show)


def _title(kind: str, asked: dict[str, Any], names: list[str]) -> str:
    """Return what the rows have in common, as the end of "24 rows ..."."""
    if kind == "changed":
        return f"that {quoted(names[0])} and {quoted(names[1])} predict differently"
    if kind == "missed":
        return f"that at least {asked['missed']} of {len(names)} runs predict incorrectly"
    if kind == "cell":
        actual, predicted = asked["cell"]
        return f"of {quoted(actual)} that {quoted(names[0])} predicts as {quoted(predicted)}"
    side = "class" if asked["step"] is None else f"group of the step {quoted(asked['step'])}"
    if kind == "wrong":
        return f"of which {quoted(names[0])} predicts the wrong {side}"
    winner = names[1] if kind == "fixed" else names[0]
    return f"of which only {quoted(winner)} predicts the correct {side}"


def _print(title: str, frame: pd.DataFrame, total: int, names: dict[str, str]) -> None:
    """Print rows as a table.

    ``title``: the end of the title, after the number of rows.
    ``names``: the name of each run, by its name in the frame.
    """
    from cmtrack.report import formatting as fmt

    def as_text(value: object) -> str:
        return fmt.number(value) if isinstance(value, float) else fmt.short(value, _WIDTH)

    for column in frame.columns[frame.columns.str.startswith(_OF_ACTUAL)]:
        # If a run is right in all rows, both probabilities are the same.
        if frame[column].equals(frame[column.replace(_OF_ACTUAL, "probability")]):
            frame = frame.drop(columns=column)
    shown = f", the first {len(frame):,}" if len(frame) < total else ""
    # iterrows would convert integer labels to floats.
    rows = (map(as_text, values) for values in frame.itertuples(index=False, name=None))
    heads = [_head(column, names) for column in frame]
    print_table(f"{fmt.counted(total, 'row')} {title}{shown}", heads, rows, right=0)


def _head(column: object, names: dict[str, str]) -> str:
    """Return the name of a column with spaces, where Rich can break the line."""
    head = str(column).replace(_OF_ACTUAL, "p of actual").replace("probability", "p")
    if not head.startswith(_LABELLED_HEADS):
        return head
    for name, run_name in names.items():
        if head.endswith(f"_{name}"):
            head = f"{head.removesuffix(name)}{run_name}"
            break
    return head.replace("_", " ")


def _kind_of(runs: tuple[str, ...], asked: dict[str, Any]) -> str:
    """Return which kind of rows the flags select, after checking the number of runs."""
    kinds = [name for name in (*_OF_RUNS, *_OF_ONE_RUN) if asked[name]]
    if len(kinds) > 1:
        raise click.UsageError(f"choose one of {', '.join(f'--{name}' for name in kinds)}")
    if kinds:
        kind = kinds[0]
    elif len(runs) == 1:
        kind = "wrong"
    else:
        kind = "broken"
    n_runs = 1 if kind in _OF_ONE_RUN else 2
    if kind == "missed" and len(runs) < n_runs:
        raise click.UsageError(f"--missed needs 2 or more runs, got {len(runs)}")
    noun = "run" if n_runs == 1 else "runs"
    if kind != "missed" and len(runs) != n_runs:
        raise click.UsageError(f"--{kind} needs {n_runs} {noun}, got {len(runs)}")
    return kind


def _rows_of_run(
    evaluation: Evaluation, kind: str, asked: dict[str, Any], options: dict[str, Any]
) -> pd.DataFrame:
    """Return the rows in a cell of the matrix, or the rows with errors."""
    from cmtrack.evaluation.rows import MISMATCH, step_called

    step = asked["step"]
    labels = evaluation.labels if step is None else step_called(evaluation, step).labels
    label_by_text = {str(label): label for label in (MISMATCH, *labels)}
    actual = predicted = None
    if kind == "cell":
        actual, predicted = [label_by_text.get(text, text) for text in asked["cell"]]
    right = False if kind == "wrong" else None
    return evaluation.rows_where(
        actual, predicted, step, right, confident=asked["confident"], **options
    )


def _rows_of_runs(
    comparison: Comparison, names: list[str], kind: str, asked: dict[str, Any]
) -> tuple[pd.DataFrame, str]:
    """Return the rows that runs predict differently or incorrectly, and a sentence about them."""
    if kind == "missed":
        missed = comparison.missed(asked["missed"])
        return missed.to_frame(), missed.sentence
    frame = comparison.rows(names[0], names[1], kind)
    if kind == "changed":
        return frame, ""
    step = asked["step"]
    side = "class" if step is None else f"group of the step {quoted(step)}"
    name = names[1] if kind == "fixed" else names[0]
    return frame, f"Only {quoted(name)} predicts the correct {side} of these rows."


def _indexed_by(comparison: Comparison, names: list[str], kind: str) -> Evaluation:
    """Return the evaluation whose row numbers the frame uses.

    If runs were evaluated on different rows, their rows are joined by id. In this case, a row
    number is a position among the shared rows.
    """
    from cmtrack.comparison.rows import pair_of, together_with

    shared = together_with(comparison) if kind == "missed" else pair_of(comparison, *names)
    return next(iter(shared.values()))


def _join_table(
    frame: pd.DataFrame, evaluation: Evaluation, table: Path, row_ids: str | None
) -> pd.DataFrame:
    """Add the columns of a table to the rows."""
    from cmtrack.evaluation.rows import joined_columns

    columns = {}
    for name, column in joined_columns(evaluation, table, row_ids).items():
        head = f"table_{name}" if name in frame else name
        columns[head] = column.iloc[frame["row"]].to_numpy()
    return frame.assign(**columns)


def _compare(
    runs: tuple[str, ...], evaluations: list[Evaluation], step: str | None
) -> tuple[Comparison, list[str]]:
    """Return the comparison of the runs, and their names in it."""
    from cmtrack.comparison import CompareOptions, compare_evaluations
    from cmtrack.evaluation.rows import step_called
    from cmtrack.metrics.names import encode_label
    from cmtrack.names import distinct

    names = distinct(runs, _NAME)
    if len(set(runs)) < len(runs):
        raise ValueError(f"each run must be named once, got {', '.join(runs)}")
    metric = "multiclass/accuracy"
    if step is not None:
        step_called(evaluations[0], step)
        metric = f"reduced/{encode_label(step)}/accuracy"
    pair = dict(zip(names, evaluations, strict=True))
    return compare_evaluations(pair, CompareOptions(rank_by=metric)), names
