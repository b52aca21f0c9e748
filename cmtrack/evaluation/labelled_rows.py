"""Labelled rows of a table in memory, and the columns in which predictions are stored."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cmtrack.names import did_you_mean


@dataclass(frozen=True)
class LabelledRows:
    """Rows with actual labels, in memory, so that several models can be evaluated on them.

    ``frame`` is a pandas frame, and ``name`` is its name in messages. All other attributes are
    names of columns; see :func:`cmtrack.evaluate_model`.
    """

    frame: Any
    name: str
    y_true: str
    sample_weight: str | None = None
    groups: str | None = None
    row_ids: str | None = None
    segments: tuple[str | tuple[str, ...], ...] = ()

    @classmethod
    def read(
        cls,
        table: Any,
        y_true: str,
        *,
        sample_weight: str | None = None,
        groups: str | None = None,
        row_ids: str | None = None,
        segments: Sequence[str | tuple[str, ...]] | None = None,
        labels: Sequence[str] = (),
        name: str | None = None,
    ) -> LabelledRows:
        """Read all columns of a table; raise ValueError if a named column does not exist.

        ``labels``: further columns of labels, such as stored predictions.
        ``name``: the table's name in messages, by default the name of the file.
        """
        from cmtrack.sources.frames import name_of, read_rows

        divisions = tuple(segments or ())
        texts = [name for name in (groups, row_ids) if name is not None]
        texts += columns_of_segments(divisions)
        frame = read_rows(table, labels=[y_true, *labels], texts=texts)
        name = name or name_of(table)
        rows = cls(frame, name, y_true, sample_weight, groups, row_ids, divisions)
        for column in [*rows.used, *labels]:
            rows.column(column)
        return rows

    @property
    def used(self) -> list[str]:
        """Names of the columns that are not features."""
        single = (self.y_true, self.sample_weight, self.groups, self.row_ids)
        named = [name for name in single if name is not None]
        return [*named, *columns_of_segments(self.segments)]

    def column(self, name: str) -> Any:
        """Return a column; raise ValueError if it does not exist."""
        if name not in self.frame.columns:
            hint = did_you_mean(name, list(map(str, self.frame.columns)))
            raise ValueError(f"{self.name} has no column {name!r}{hint}")
        return self.frame[name]

    def in_order_of(self, ids: Any) -> LabelledRows:
        """Return the rows in the order of a column with the same ids."""
        by_id = self.frame.set_index(self.row_ids, drop=False)
        return replace(self, frame=by_id.loc[ids].reset_index(drop=True))

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of :func:`cmtrack.evaluate`, except the predictions."""
        arguments = {"y_true": self.column(self.y_true)}
        for name in ("sample_weight", "groups", "row_ids"):
            column = getattr(self, name)
            if column is not None:
                arguments[name] = self.column(column)
        if self.segments:
            arguments["segments"] = (self.frame, list(self.segments))
        return arguments


@dataclass(frozen=True)
class StoredColumns:
    """Names of the columns that contain predictions; all are None if there are no such columns.

    In each name, words in braces are placeholders: ``{version}`` stands for a version's number,
    ``{role}`` for its role such as "champion", and ``{model}`` for a model's name. ``*`` stands for
    a label.
    """

    y_pred: str | None = None
    y_prob: str | None = None
    y_score: str | None = None

    def __bool__(self) -> bool:
        return bool(self.named)

    @property
    def named(self) -> dict[str, str]:
        """The given names by argument."""
        names = {"y_pred": self.y_pred, "y_prob": self.y_prob, "y_score": self.y_score}
        return {argument: name for argument, name in names.items() if name is not None}

    def predictions(
        self, rows: LabelledRows, values: Mapping[str, str], without: Collection[str] = ()
    ) -> dict[str, Any]:
        """Return a model's predictions; raise ValueError if a column does not exist.

        ``values``: the text for each placeholder.
        ``without``: columns of other models, which no pattern matches.
        """
        by_argument: dict[str, Any] = {}
        for argument, name in self.named.items():
            for placeholder, text in values.items():
                name = name.replace(f"{{{placeholder}}}", text)
            by_argument[argument] = _stored(rows, name, argument, without)
        return by_argument


def columns_of_segments(divisions: Sequence[str | tuple[str, ...]]) -> list[str]:
    """Return the columns that segments use, including both columns of a crossing."""
    names: list[str] = []
    for division in divisions:
        if isinstance(division, str):
            names.append(division)
        else:
            names += division
    return names


def _stored(rows: LabelledRows, name: str, argument: str, without: Collection[str]) -> Any:
    """Return a column of predictions, or a mapping from labels to columns for a pattern."""
    if "*" not in name or name in rows.frame.columns:
        return rows.column(name)
    from cmtrack.sources import match_pattern

    free = [column for column in map(str, rows.frame.columns) if column not in without]
    columns = match_pattern(name, free, argument)
    if not columns:
        raise ValueError(f"no column of {rows.name} matches {name!r}")
    return {label: rows.column(column) for label, column in columns.items()}
