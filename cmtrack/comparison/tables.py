"""``compare_tables``: compare models whose predictions are in files or frames, without MLflow."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cmtrack.comparison.compare import CompareOptions, compare_evaluations
from cmtrack.comparison.result import Comparison
from cmtrack.evaluation import Evaluation, evaluate
from cmtrack.evaluation.labelled_rows import LabelledRows, StoredColumns
from cmtrack.evaluation.spec import Spec
from cmtrack.grouping import Label
from cmtrack.sources.frames import name_of
from cmtrack.sources.table_file import column_names

_MODEL = "{model}"
"""The placeholder for a model's name in the name of a column."""


def compare_tables(
    tables: Any,
    *,
    y_true: str,
    y_pred: str | None = None,
    y_prob: str | None = None,
    y_score: str | None = None,
    labels: Sequence[Label] | None = None,
    sample_weight: str | None = None,
    groups: str | None = None,
    row_ids: str | None = None,
    segments: Sequence[str | tuple[str, ...]] | None = None,
    **options: Any,
) -> Comparison:
    """Compare models whose predictions are in files or frames.

    No tracking store is needed, and none is created.

    Parameters
    ----------
    tables : table, list of tables, or mapping of str to table
        Each table contains the predictions of one model for the same rows: a path, or a frame of
        pandas, Polars, PyArrow, DuckDB or Ibis. A model has the name of its file without the
        ending, or its key in the mapping. If the name of a column of predictions contains
        ``{model}``, one table contains the predictions of all models.
    y_true : str
        Column of actual labels.
    y_pred, y_prob, y_score : str, optional
        Columns of predicted labels, of probabilities and of decision values. ``*`` stands for a
        label, as in ``"p_*"``, and ``{model}`` for the name of a model, as in ``"pred_{model}"``.
    labels
        As in :func:`cmtrack.evaluate`.
    sample_weight, groups : str, optional
        Columns of weights and of clusters.
    row_ids : str, optional
        Column of row ids. The rows of all tables are put in the order of the first table's ids.
        Without ids, all tables must have the same labels in the same order.
    segments : list of str, or of tuples of str, optional
        Columns that divide the rows into segments, by which the leader is also compared with the
        next models. A tuple crosses the named columns.
    **options
        The options of :class:`cmtrack.evaluation.spec.Spec` and of
        :class:`cmtrack.comparison.spec.CompareSpec`, such as ``rank_by`` and ``positive``.

    Returns
    -------
    Comparison

    Raises
    ------
    ValueError
        If a column does not exist, if row ids are repeated, or if the tables do not contain the
        same rows with the same labels.
    TypeError
        If the rows are on a cluster, or an option does not exist.

    Examples
    --------
    >>> import pandas as pd
    >>> from cmtrack import compare_tables
    >>> rows = pd.DataFrame({"y": [0, 1] * 50, "pred_forest": [0, 1] * 45 + [1, 0] * 5})
    >>> rows["pred_linear"] = [0, 1] * 35 + [1, 0] * 15
    >>> comparison = compare_tables(
    ...     rows, y_true="y", y_pred="pred_{model}", rank_by="multiclass/accuracy"
    ... )
    >>> comparison.best.name
    'forest'
    """
    of_evaluation, of_comparison = _split(options)
    stored = StoredColumns(y_pred, y_prob, y_score)
    if not stored:
        raise ValueError("the tables need predictions: give y_pred, y_prob or y_score")
    columns: dict[str, Any] = {
        "sample_weight": sample_weight,
        "groups": groups,
        "row_ids": row_ids,
        "segments": segments,
    }
    named = _named(tables)
    in_messages = [name_of(table) for table in named.values()]
    if len(set(in_messages)) < len(named):
        in_messages = list(named)
    by_name = {
        model: LabelledRows.read(
            table, y_true, name=name, labels=_label_columns(table, y_true, y_pred), **columns
        )
        for (model, table), name in zip(named.items(), in_messages, strict=True)
    }
    _check_same_rows(list(by_name.values()))
    models = _models(by_name, stored, labels or ())
    predicted = _predictions(models, stored)
    if labels is None:
        labels = _labels_of_all(models, predicted)
    evaluations = {
        name: _evaluated(rows, predicted[name], labels, of_evaluation)
        for name, rows in models.items()
    }
    return compare_evaluations(evaluations, CompareOptions(**of_comparison, segments=segments))


def _split(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the options of an evaluation and of a comparison; TypeError for an unknown option."""
    for_evaluation = Spec.options().keys()
    for_comparison = CompareOptions.options().keys() - for_evaluation
    for name in options:
        if name not in for_evaluation | for_comparison:
            raise TypeError(f"compare_tables() got an unexpected option {name!r}")
    of_evaluation = {name: options[name] for name in options if name in for_evaluation}
    of_comparison = {name: options[name] for name in options if name in for_comparison}
    if "confidence_level" in options:
        of_comparison["confidence_level"] = options["confidence_level"]
    return of_evaluation, of_comparison


def _named(tables: Any) -> dict[str, Any]:
    """Return the tables by name: the key, the file's name without its ending, or "table 2"."""
    listed = tables if isinstance(tables, (list, tuple, Mapping)) else [tables]
    if not len(listed):
        raise ValueError("tables must contain at least one table, got none")
    if isinstance(tables, Mapping):
        return {str(name): table for name, table in tables.items()}
    names = [
        Path(table).stem if isinstance(table, (str, Path)) else f"table {k}"
        for k, table in enumerate(listed, 1)
    ]
    if len(set(names)) < len(names):
        # Files with the same name are in different folders.
        names = [str(table) for table in listed]
    if len(set(names)) < len(names):
        raise ValueError(f"each table must be given once, got {sorted(names)}")
    return dict(zip(names, listed, strict=True))


def _models(
    by_name: Mapping[str, LabelledRows], stored: StoredColumns, labels: Sequence[Label]
) -> dict[str, LabelledRows]:
    """Return the rows of each model; columns with ``{model}`` give several models of a table."""
    patterns = [name for name in stored.named.values() if _MODEL in name]
    if not patterns:
        return _in_one_order(by_name)
    if len(by_name) > 1:
        raise ValueError(f"columns with {_MODEL} need one table, got {len(by_name)}")
    (rows,) = by_name.values()
    # The column y_true is not a model, even if it matches y_{model}.
    columns = [column for column in map(str, rows.frame.columns) if column not in rows.used]
    # Where a label begins is certain only in columns of labels, or if the labels are known.
    pattern = min(patterns, key=lambda name: "*" in name)
    texts = {str(label) for label in (*labels, *rows.column(rows.y_true).dropna().unique())}
    names = _model_names(pattern, columns, texts)
    if not names:
        raise ValueError(f"no column of {rows.name} matches {pattern!r}")
    return dict.fromkeys(names, rows)


def _predictions(
    models: Mapping[str, LabelledRows], stored: StoredColumns
) -> dict[str, dict[str, Any]]:
    """Return the predictions of each model, by argument of :func:`cmtrack.evaluate`."""
    predicted = {}
    taken: set[str] = set()
    # Longer names come first, because the pattern of "rf" also matches the columns of "rf_big".
    for name in sorted(models, key=len, reverse=True):
        predicted[name] = stored.predictions(models[name], {"model": name}, without=taken)
        if any(_MODEL in pattern for pattern in stored.named.values()):
            for found in predicted[name].values():
                columns = found.values() if isinstance(found, Mapping) else [found]
                taken.update(str(column.name) for column in columns)
    return predicted


def _label_columns(table: Any, y_true: str, y_pred: str | None) -> list[str]:
    """Return the columns of predicted labels, which get the type of the actual labels in a CSV."""
    if y_pred is None:
        return []
    if _MODEL not in y_pred:
        return [y_pred]
    if not isinstance(table, (str, Path)) or not Path(table).is_file():
        return []
    names = _model_names(y_pred, column_names(Path(table), [y_true]), ())
    columns = [y_pred.replace(_MODEL, name) for name in names]
    return [column for column in columns if column != y_true]


def _model_names(pattern: str, columns: Sequence[str], labels: Collection[str]) -> list[str]:
    """Return the names that ``{model}`` stands for in the names of columns, each name once."""
    start, end = pattern.split(_MODEL, 1)
    found = re.compile(f"{_as_regex(start, labels)}(.+?){_as_regex(end, labels)}")
    matches = [found.fullmatch(column) for column in columns]
    return list(dict.fromkeys(match[1] for match in matches if match))


def _as_regex(text: str, labels: Collection[str]) -> str:
    """Return a regular expression in which ``*`` stands for a label."""
    any_label = "|".join(map(re.escape, labels)) or ".+"
    return f"(?:{any_label})".join(map(re.escape, text.split("*")))


# -- the same rows in one order --------------------------------------------------------------------


def _check_same_rows(tables: Sequence[LabelledRows]) -> None:
    """Raise ValueError unless all tables contain the rows and labels of the first one."""
    first = tables[0]
    if first.row_ids is not None:
        for rows in tables:
            _check_ids_once(rows)
    for rows in tables[1:]:
        if first.row_ids is None:
            _check_equal_labels(first, rows)
        else:
            _check_equal_ids(first, rows)


def _check_ids_once(rows: LabelledRows) -> None:
    ids = rows.column(str(rows.row_ids))
    missing = ids[ids.isna()]
    if len(missing):
        raise ValueError(
            f"{rows.row_ids} must not be null, got null in {_count(missing, 'row')} of {rows.name}"
        )
    repeated = ids[ids.duplicated()]
    if len(repeated):
        raise ValueError(
            f"{rows.row_ids} must not repeat, got {_count(repeated, 'repeat')} in {rows.name}, "
            f"such as {repeated.iloc[0]}"
        )


def _check_equal_labels(first: LabelledRows, rows: LabelledRows) -> None:
    """Compare labels row by row."""
    n_first = len(first.frame)
    n_rows = len(rows.frame)
    if n_rows != n_first:
        raise ValueError(
            f"{first.name} has {n_first:,} rows, {rows.name} {n_rows:,}: row ids pair them"
        )
    differing = np.flatnonzero(_labels(first) != _labels(rows))
    if len(differing):
        raise ValueError(
            f"{first.y_true} differs in {_count(differing, 'row')} of {first.name} and "
            f"{rows.name}, such as row {differing[0]}: row ids pair the rows"
        )


def _check_equal_ids(first: LabelledRows, rows: LabelledRows) -> None:
    """Compare ids, and labels of equal ids."""
    name = str(first.row_ids)
    for one, other in ((first, rows), (rows, first)):
        ids = one.column(name)
        alone = ids[~ids.isin(other.column(name))]
        if len(alone):
            raise ValueError(
                f"{one.name} has {_count(alone, 'id')} that {other.name} does not have, such as "
                f"{alone.iloc[0]}"
            )
    ids = first.column(name)
    differing = ids[_labels(first) != _labels(rows.in_order_of(ids))].tolist()
    if len(differing):
        raise ValueError(
            f"{first.y_true} differs for {_count(differing, 'id')} of {first.name} and "
            f"{rows.name}, such as {differing[0]}"
        )


def _count(rows: Any, noun: str) -> str:
    """Return the number of rows with a noun, such as "1 id" or "1,200 ids"."""
    plural = "" if len(rows) == 1 else "s"
    return f"{len(rows):,} {noun}{plural}"


def _labels(rows: LabelledRows) -> Any:
    """Return the actual labels; missing labels are None, because NaN differs from itself."""
    labels = rows.column(rows.y_true)
    return labels.astype(object).where(labels.notna(), None).to_numpy()


def _in_one_order(by_name: Mapping[str, LabelledRows]) -> dict[str, LabelledRows]:
    """Return the tables with the rows of all in the order of the first table's ids."""
    tables = list(by_name.values())
    name = tables[0].row_ids
    if name is None:
        return dict(by_name)
    order = tables[0].column(name)
    return {model: rows.in_order_of(order) for model, rows in by_name.items()}


# -- evaluations -----------------------------------------------------------------------------------


def _labels_of_all(
    models: Mapping[str, LabelledRows], predicted: Mapping[str, Mapping[str, Any]]
) -> list[Label] | None:
    """Return all labels if models only predict labels, so that all have the same classes.

    Columns of probabilities state the classes, so the result is None for them.
    """
    values: set[Any] = set()
    for name, rows in models.items():
        if predicted[name].keys() != {"y_pred"}:
            return None
        values.update(rows.column(rows.y_true).dropna().unique().tolist())
        values.update(predicted[name]["y_pred"].dropna().unique().tolist())
    return sorted(values, key=lambda label: (str(type(label)), label))


def _evaluated(
    rows: LabelledRows,
    predicted: Mapping[str, Any],
    labels: Sequence[Label] | None,
    options: Mapping[str, Any],
) -> Evaluation:
    arguments = rows.arguments() | dict(predicted)
    return evaluate(**arguments, labels=labels, **options)
