"""Options that say how the rows of a file are evaluated, for all commands that evaluate rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from cmtrack.cli.flags import FILE
from cmtrack.cli.frame import Function

if TYPE_CHECKING:
    from cmtrack.grouping import Grouping

_ROW_OPTIONS = (
    click.option(
        "--labels", metavar="A,B,C", help="All classes in order, including classes without rows."
    ),
    click.option(
        "--positive",
        metavar="LABEL",
        help="The positive class if there are two classes, or the positive group of the grouping.",
    ),
    click.option(
        "--grouping", "grouping_file", type=FILE, help="YAML or JSON file that groups the classes."
    ),
    click.option("--weight", "sample_weight", metavar="COLUMN", help="Column of sample weights."),
    click.option(
        "--groups",
        metavar="COLUMN",
        help=(
            "Column of clusters. Rows with the same value belong together, such as all rows about "
            "one person."
        ),
    ),
    click.option(
        "--row-ids",
        metavar="COLUMN",
        help="Column of row ids. Comparisons use them to check that all runs have the same rows.",
    ),
    click.option(
        "--segment",
        "segments",
        metavar="COLUMN",
        multiple=True,
        help="Column that divides the rows into segments, such as region; repeatable. Metrics are "
        "also computed for each segment. A,B crosses two columns.",
    ),
)

SCORE_FLAGS = {"y_pred": "--y-pred ", "y_prob": "--y-prob ", "y_score": "--y-score "}
"""The flags of columns with predictions, as messages begin them, by argument of the library."""


def with_flags(text: str) -> str:
    """Return a message of the library that names columns by flags instead of arguments."""
    for argument, flag in SCORE_FLAGS.items():
        text = text.replace(f"{argument}=", flag)
    return text


def row_options(function: Function) -> Function:
    """Add options to a command: classes, grouping, weights, clusters, ids and segments of rows."""
    for option in reversed(_ROW_OPTIONS):
        function = option(function)
    return function


def check_files(files: Sequence[str], hint: str) -> None:
    """Raise a usage error if a file does not exist; a pattern or an address is not checked.

    ``hint``: the argument or option that names the files.
    """
    for name in files:
        is_pattern = set(name) & set("*?[") or "://" in name
        if not is_pattern and not Path(name).exists():
            raise click.BadParameter(f"File {name!r} does not exist.", param_hint=hint)


def check_scores(y_prob: str | None, y_score: str | None) -> None:
    """Raise a usage error if columns of both probabilities and decision values are given."""
    if y_prob is not None and y_score is not None:
        raise click.UsageError(
            "give --y-prob or --y-score, not both; --y-score is for decision values"
        )


class RowQuestion(NamedTuple):
    """Options of an evaluation, in which labels are texts from the command line."""

    order: list[str] | None
    positive: str | None
    grouping: Grouping | None
    options: dict[str, Any]

    @classmethod
    def read(
        cls,
        labels: str | None,
        positive: str | None,
        grouping_file: Path | None,
        options: dict[str, Any],
    ) -> RowQuestion:
        """Return the options of a command after reading the file of the grouping."""
        from cmtrack.cli.reading import read_file
        from cmtrack.grouping import Grouping

        order = None if labels is None else labels.split(",")
        grouping = None
        if grouping_file is not None:
            grouping = read_file(Grouping.from_file, grouping_file)
        return cls(order, positive, grouping, options)

    def arguments(self, as_label: Callable[[str], Any]) -> dict[str, Any]:
        """Return the arguments for ``evaluate``, with labels of the same type as in the file."""
        from cmtrack.cli.reading import two_groups

        arguments = {"grouping": self.grouping, **self.options}
        if self.order is not None:
            arguments["labels"] = [as_label(text) for text in self.order]
        if self.positive is not None:
            groups = two_groups(self.grouping)
            if groups:
                arguments["positive"] = groups.get(self.positive, self.positive)
            else:
                arguments["positive"] = as_label(self.positive)
        return arguments
