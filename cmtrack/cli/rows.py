"""``cmtrack rows``: the rows behind a number of one run, or of several on the same rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cmtrack.cli.flags import FILE, Answer
from cmtrack.cli.frame import bad_input, passing_on, plain, terminal
from cmtrack.cli.group import main
from cmtrack.cli.stored import Store, of_stored, print_table
from cmtrack.names import quoted

if TYPE_CHECKING:
    import pandas as pd

    from cmtrack.comparison import Comparison
    from cmtrack.evaluation import Evaluation

_WIDTH = 200
_NAME = 12
_SIDES = ("predicted", "p of actual_", "p_")
_SEVERAL = ("broken", "fixed", "changed", "missed")


@main.command("rows")
@click.argument("runs", nargs=-1, required=True, metavar="RUN [RUN]...")
@click.option("--cell", nargs=2, metavar="ACTUAL PREDICTED", help="Rows of a cell of RUN's matrix.")
@click.option("--wrong", is_flag=True, help="Rows that RUN gets wrong; the default with one RUN.")
@click.option(
    "--confident",
    type=float,
    metavar="P",
    help="With --wrong or --cell: only rows that are predicted with a probability of at least P.",
)
@click.option("--step", help="A step of the grouping, whose groups count; by default the classes.")
@click.option(
    "--broken", is_flag=True, help="Rows that only the first RUN gets right; the default with two."
)
@click.option("--fixed", is_flag=True, help="Rows that only the second RUN gets right.")
@click.option("--changed", is_flag=True, help="Rows with other predictions.")
@click.option(
    "--missed",
    "--missed-by",
    type=click.IntRange(1),
    metavar="N",
    help="Rows that at least N RUNs miss.",
)
@click.option(
    "--table", type=FILE, help="Parquet or CSV file with columns of the rows, which are shown, too."
)
@click.option("--ids", metavar="COLUMN", help="Column of --table with the row ids of the run.")
@click.option(
    "--limit",
    type=click.IntRange(1),
    default=25,
    show_default=True,
    help="Largest number of rows to show.",
)
@of_stored
def rows_command(
    runs: tuple[str, ...],
    table: Path | None,
    ids: str | None,
    limit: int,
    store: Store,
    **asked: Any,
) -> Answer:
    """Print the rows behind a number.

    RUN is a run, or a folder that `cmtrack evaluate --output` wrote; its predictions by row must have been kept.
    Several runs must have been judged on the same rows.

    Exit codes: 0 success, 1 the work failed, 2 wrong usage or bad input, such as runs on different rows.
    """
    kinds = [name for name in (*_SEVERAL, "cell", "wrong") if asked[name]]
    if len(kinds) > 1:
        raise click.UsageError(f"choose one of {', '.join(f'--{name}' for name in kinds)}")
    kind = kinds[0] if kinds else "wrong" if len(runs) == 1 else "broken"
    least = {"cell": 1, "wrong": 1}.get(kind, 2)
    if len(runs) < least or (kind != "missed" and len(runs) > least):
        number = "2 or more" if kind == "missed" else least
        raise click.UsageError(f"--{kind} is of {number} runs, got {len(runs)}")
    if asked["confident"] is not None and kind not in ("cell", "wrong"):
        raise click.UsageError("--confident goes with --cell and --wrong")
    if ids and table is None:
        raise click.UsageError("--ids needs --table")
    from cmtrack.comparison.comparability import of_classes
    from cmtrack.evaluation.rows import TOTAL

    with passing_on(row_ids="--ids"):
        evaluations = [of_classes(store.load(run, lambda _: True)[1]) for run in runs]
        with bad_input(KeyError, say=lambda text: text.replace("at_least", "--missed")):
            frame, sentence = _chosen(kind, runs, evaluations, asked, table, ids, limit)
    total = int(frame.attrs.get(TOTAL, len(frame)))
    frame = frame.head(limit)
    about = {"kind": kind, "runs": list(runs), "total": total, "sentence": sentence}
    records = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return Answer(lambda: about | {"rows": records}, lambda: _print(kind, frame, total, sentence))


def _print(kind: str, frame: pd.DataFrame, total: int, sentence: str) -> None:
    from cmtrack.report import formatting as fmt

    def in_words(value: object) -> str:
        return fmt.number(value) if isinstance(value, float) else fmt.short(value, _WIDTH)

    shown = f", the first {len(frame):,}" if len(frame) < total else ""
    title = f"{kind}: {fmt.counted(total, 'row')}{shown}"
    # iterrows would make floats of class numbers
    rows = (map(in_words, values) for values in frame.itertuples(index=False, name=None))
    print_table(title, map(_head, frame), rows, right=0)
    if sentence:
        terminal().print(plain(sentence))


def _head(column: object) -> str:
    """Return a column's name in words that fold at spaces."""
    head = str(column).replace("probability_actual", "p of actual").replace("probability", "p")
    return head.replace("_", " ") if head.startswith(_SIDES) else head


def _chosen(
    kind: str,
    runs: tuple[str, ...],
    evaluations: list[Evaluation],
    asked: dict[str, Any],
    table: Any,
    ids: str | None,
    limit: int,
) -> tuple[pd.DataFrame, str]:
    """The frame of the chosen rows, and a sentence on them."""
    from cmtrack.comparison.rows import pair_of, together_with
    from cmtrack.evaluation.rows import MISMATCH, joined_columns, step_called

    one, step = evaluations[0], asked["step"]
    if kind in ("cell", "wrong"):
        groups = one.labels if step is None else step_called(one, step).labels
        named = {str(label): label for label in (MISMATCH, *groups)}
        actual, predicted = [named.get(text, text) for text in asked["cell"] or ()] or (None, None)
        right = False if kind == "wrong" else None
        frame = one.rows_where(
            actual,
            predicted,
            step,
            right,
            confident=asked["confident"],
            table=table,
            row_ids=ids,
            limit=limit,
        )
        return frame, ""
    comparison, names = _compared(runs, evaluations, step)
    sentence = ""
    if kind == "missed":
        missed = comparison.missed(asked["missed"])
        frame, sentence = missed.to_frame(), missed.sentence
    else:
        frame = comparison.rows(names[0], names[1], kind)
        if kind != "changed":
            side = "class" if step is None else f"group of the step {quoted(step)}"
            sentence = (
                f"In these rows only {quoted(names[kind == 'fixed'])} predicts the right {side}."
            )
    # runs of other rows are joined by ids: a place is one among the rows that they share
    if table is not None:
        shared = together_with(comparison) if kind == "missed" else pair_of(comparison, *names)
        one = next(iter(shared.values()))
        attributes = {
            name: column.iloc[frame["row"]]
            for name, column in joined_columns(one, table, ids).items()
        }
        new = {
            f"table_{name}" if name in frame else name: column.to_numpy()
            for name, column in attributes.items()
        }
        frame = frame.assign(**new)
    return frame, sentence


def _compared(
    runs: tuple[str, ...], evaluations: list[Evaluation], step: str | None
) -> tuple[Comparison, list[str]]:
    from cmtrack.comparison import CompareOptions, compare_evaluations
    from cmtrack.evaluation.rows import step_called
    from cmtrack.metrics.names import encode_label
    from cmtrack.names import distinct

    names = distinct(runs, _NAME)
    if len(set(runs)) < len(runs):
        raise ValueError(f"runs must be named once each, got {', '.join(runs)}")
    if step is not None:
        step_called(evaluations[0], step)
    metric = "multiclass/accuracy" if step is None else f"reduced/{encode_label(step)}/accuracy"
    return compare_evaluations(
        dict(zip(names, evaluations, strict=True)), CompareOptions(rank_by=metric)
    ), names
