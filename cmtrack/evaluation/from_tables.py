"""``evaluate_table``: the function that turns a file or table into an :class:`Evaluation`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

from cmtrack.evaluation.compute import deciding, scored_step, scores_first
from cmtrack.evaluation.from_arrays import (
    assemble,
    check_order,
    one_of_both,
    prices_of,
    with_calibration,
)
from cmtrack.evaluation.input_remarks import columns_in_text_order, input_warnings, warn_of_input
from cmtrack.evaluation.result import Evaluation
from cmtrack.evaluation.spec import Options, Spec, takes_options
from cmtrack.grouping import ComposedStep, Grouping, Label
from cmtrack.grouping.step import plain
from cmtrack.options import probabilities_of
from cmtrack.sources import (
    Columns,
    Source,
    Work,
    check_kinds,
    choose_columns,
    find_source,
    label_kind,
    open_source,
)
from cmtrack.sources.source import Reading, watched
from cmtrack.sources.texts import KINDS, grouped_labels, kinds_named
from cmtrack.statistics.collected import Statistics
from cmtrack.statistics.counted_for import Counting
from cmtrack.statistics.inputs import listed
from cmtrack.statistics.kernel import Kernel, Tally
from cmtrack.statistics.labels import declared_order, encode_labels, number_labels


@takes_options
def evaluate_table(
    table: Any,
    *,
    y_true: str,
    y_pred: str | None = None,
    y_prob: str | Sequence[str] | Mapping[Label, str] | None = None,
    y_score: str | Sequence[str] | Mapping[Label, str] | None = None,
    labels: Sequence[Label] | None = None,
    calibration: Any = None,
    target: Any = None,
    sample_weight: str | None = None,
    row_ids: str | None = None,
    segments: Sequence[str | tuple[str, ...]] | None = None,
    progress: bool | None = None,
    **options: Unpack[Options],
) -> Evaluation:
    """Evaluate, batch by batch, predictions that are stored in files or in a frame of any engine.

    The rows are read once, in batches of columns, and the same code counts them for all kinds of
    tables. Files, DuckDB, Polars, pandas, PyArrow and Ibis stream their batches to this process.
    With Spark, Dask and Ray, the workers count the rows and return only small statistics. The
    counts, and all metrics computed from them, equal the results of :func:`cmtrack.evaluate` on the
    same rows. Moments are equal up to rounding.

    The workers of a cluster need the same version of cmtrack as this process. Install cmtrack in
    the workers' image or environment, or send it with the job. ``wheel`` is the file that ``pip
    wheel --no-deps .`` creates.

    - Spark: ``spark.archives`` with an environment packed by venv-pack or conda-pack. If the
      workers already have NumPy, SciPy and PyArrow, ``spark.addArtifact`` or ``addPyFile`` with the
      wheel is enough.
    - Dask: the plug-in ``PipInstall([wheel])`` or ``UploadDirectory``.
    - Ray: ``ray.init(runtime_env={"py_modules": [wheel]})``.

    Parameters
    ----------
    table : path, list of paths, or frame
        A file, glob or folder of Parquet or CSV; or a DuckDB relation, a frame of Polars
        (DataFrame, LazyFrame), pandas, PyArrow, PySpark, Dask or Ibis, a Ray data set, any other
        object that streams Arrow, or a :class:`cmtrack.sources.Source`. The table is read once. If
        the table contains probabilities and nothing specifies the classes (``labels``, ``y_prob``
        by label, a grouping or categories), the columns of labels are read twice. In CSV files,
        columns of labels, ids and segments are converted to numbers only if no value loses a digit.
        All columns of labels are converted to the same type.
    y_true : str
        Column of actual labels.
    y_pred : str, optional
        Column of predicted labels. By default, each row is assigned to the class with the highest
        probability (to the first class if several are tied).
    y_prob : str, list of str, or mapping of label to str, optional
        The columns with the probability of each class: a list in the order of ``labels``, a mapping
        by label, or a pattern such as ``"p_*"``, in which the star stands for the label. A single
        column must contain lists of K probabilities or, if there are two classes, the probability
        of the positive class.
    y_score : str, list of str, or mapping of label to str, optional
        Columns of decision values instead of probabilities, in the forms of ``y_prob``. Only
        ranking metrics can be computed from decision values.
    labels
        As in :func:`cmtrack.evaluate`.
    calibration : path, frame, (y, scores) or (y, scores, fold_ids), optional
        Labelled, held-out rows: a table with the same columns of labels and probabilities, or
        arrays as in :func:`cmtrack.evaluate`.
    target : path, frame or array-like, optional
        Unlabelled rows whose prevalence is estimated: a table with the same columns of
        probabilities, or arrays. If you pass ``fold_ids``, ``target`` must be a list with one array
        for each fold's model.
    sample_weight : str, optional
        Column of non-negative weights. The option ``weights_are`` sets the meaning of the weights.
        By default, the meaning depends on the type of the column.
    row_ids : str, optional
        Column of integers or strings that name the rows. The rows of a table have no fixed order.
        If there are no ids, two evaluations are therefore assumed to be of the same data if each
        label has the same number of rows in both.
    segments : list of str, or of tuples of str, optional
        Columns of categories that divide the rows, for :attr:`Evaluation.segments`. A tuple of
        names crosses the named columns. Rows with a missing value form their own segment. If a
        column contains more than 1,000 values (at most 10,000 are allowed), only the 999 values
        with the most rows become individual segments. The other values of the column form one
        segment, and a note reports this.
    progress : bool, optional
        Whether to show on stderr how many rows were read. By default, progress is shown if stderr
        is a terminal.
    **options
        As in :class:`cmtrack.evaluation.spec.Spec`.

    Returns
    -------
    Evaluation
        The evaluation does not keep the rows, so its attribute ``rows`` is None.

    Raises
    ------
    ValueError
        If the input is invalid. The error message states the violated rule, the invalid value and
        the number of rows.
    TypeError
        If the kind of table is not supported, or a column's name is not a text.
    RuntimeError
        If the workers of a cluster do not have cmtrack.

    Warns
    -----
    UserWarning
        The warnings of :func:`cmtrack.evaluate`, except the warning about probability columns whose
        order does not match the predictions.

    Notes
    -----
    The rows are read once, by one thread for each core. Each thread needs memory for one batch, not
    for the whole table. A Parquet file of 10⁶ rows with 11 probabilities takes about 0.5 s of
    processor time.

    Examples
    --------
    >>> import pandas as pd
    >>> from cmtrack import evaluate_table
    >>> rows = pd.DataFrame({"y": ["no", "yes", "yes"]})
    >>> rows["p_no"] = [0.9, 0.2, 0.6]
    >>> rows["p_yes"] = [0.1, 0.8, 0.4]
    >>> rows.to_parquet("rows.parquet")
    >>> evaluate_table("rows.parquet", y_true="y", y_prob="p_*").confusion_matrix.counts.tolist()
    [[1, 0], [1, 1]]
    """
    y_prob = probabilities_of(y_prob, options)
    spec = Spec.of(options, evaluate_table)
    grouping = spec.grouping
    scores_name, scores, normalize = one_of_both(y_pred, y_prob, y_score, spec.normalize)
    if y_prob is None and (calibration is not None or target is not None):
        raise ValueError("calibration and target need y_prob, got none")
    source = open_source(table, _names_of(y_true, y_pred, scores, sample_weight, row_ids, segments))
    columns = choose_columns(
        source.schema.names,
        y_true=y_true,
        y_pred=y_pred,
        y_prob=scores,
        sample_weight=sample_weight,
        row_ids=row_ids,
        what=scores_name,
        segments=segments,
    )
    named_labels = grouped_labels(grouping)
    if labels is not None:
        named_labels = [*labels, *named_labels]
    source = source.with_kinds(columns, kinds_named(named_labels))
    columns = check_kinds(columns, source.schema, spec.weights_are)
    calibration_table = _source_of(calibration, columns.names)
    target_table = _source_of(target, columns.names)
    classes = _Classes(source, columns, labels, grouping)
    order = classes.find_before_reading()
    passes = [source, calibration_table, target_table]
    if order is None and columns.scores:
        passes.append(source)  # read it once more to find the classes
    n_passes = sum(each is not None for each in passes)
    with watched(progress, n_passes) as begin:
        reader = _Reader(source, columns, begin, normalize, ("y_true", scores_name))
        tally: Tally | None = None
        if order is None:
            tally = reader.count_as_they_come(with_lists=grouping is not None)
            order = classes.find_in_rows(tally)
        step, alone = _scored(columns, order, grouping, spec.positive)
        predictions = {"y_pred": y_pred, scores_name: scores}
        given = [name for name, column in predictions.items() if column is not None]
        step = deciding(step, spec.threshold, order, given)
        check_order(spec, order, labels is not None)
        prices = prices_of(spec, order)
        counting = Counting(order, step, grouping, prices, spec.ordered)
        # If the classes had to be found in the rows and there are no scores, the rows are already
        # counted.
        if columns.scores or tally is None:
            tally = reader.count(counting, reader.places(counting, alone), classes.declared)
        statistics = tally.statistics(order, reader.categories)
        if columns.scores and y_prob is not None:
            scored = Counting(order, step)
            statistics = with_calibration(
                statistics,
                scored,
                None if calibration_table is not None else calibration,
                None if target_table is not None else target,
                normalize,
            )
            if calibration_table is not None:
                names = ("calibration y", "calibration scores")
                side = reader.count_beside(calibration_table, names, scored, alone)
                statistics = _with_calibration_table(statistics, side, step)
            if target_table is not None:
                side = reader.count_beside(target_table, ("target", "target"), scored, alone)
                statistics = _with_target_table(statistics, side, step)
    warn_of_input(input_warnings(statistics))
    evaluation = assemble(statistics, step, spec, columns.weights_are)
    if labels is None and columns.scores and columns.declared is None:
        remark = columns_in_text_order(order)
        if remark:
            return replace(evaluation, remarks=(remark,))
    return evaluation


@dataclass(eq=False)
class _Classes:
    """Finder of a table's classes, which it lists in the same order as :func:`cmtrack.evaluate`."""

    source: Source
    columns: Columns
    labels: Sequence[Label] | None
    grouping: Grouping | None
    declared: bool = False

    def find_before_reading(self) -> tuple[Label, ...] | None:
        """Return the classes named by labels, categories or columns; None if none are named."""
        if self.labels is not None:
            return _checked(self.labels)
        categories = self._categories
        if any(categories_of_column is not None for categories_of_column in categories):
            first = categories[0]
            if first and all(others == first for others in categories):
                return _checked(first)
            return None
        kinds = {label_kind(self.source.schema.field(name).type) for name in self._names}
        if len(kinds) > 1 or (self.columns.lists and self.grouping is not None):
            return None
        kind = kinds.pop()
        if kind is None or kind is object:
            return None
        declared = self._declared(len(self.columns.scores))
        if declared is not None:
            self.declared = True
            return _checked(declared_order(declared, kind))
        return (False, True) if kind is bool else None

    def find_in_rows(self, tally: Tally) -> tuple[Label, ...]:
        """Return the classes that occur in rows or are named by categories, columns or groups."""
        categories = [values for values in self._categories if values is not None]
        seen = {name: list(labels) for name, labels in tally.seen.items()}
        declared = None
        if categories:
            columns = (*seen.values(), *categories)
            union = list(dict.fromkeys(label for column in columns for label in column))
            if set(union) == set(categories[0]):
                return _checked(categories[0])
            seen = dict.fromkeys(seen, union)
        else:
            widths = tally.faults.lengths or [len(self.columns.scores)]
            declared = self._declared(max(widths))
        # encode_labels needs columns of equal length, so shorter columns are padded with the first
        # label.
        longest = max(len(labels) for labels in seen.values())
        padded = {
            name: labels + labels[:1] * (longest - len(labels)) for name, labels in seen.items()
        }
        return encode_labels(padded, None, declared)[0]

    @property
    def _names(self) -> list[str]:
        return [name for name in (self.columns.y_true, self.columns.y_pred) if name is not None]

    @property
    def _categories(self) -> list[list[Any] | None]:
        return [self.source.categories(name) for name in self._names]

    def _declared(self, width: int) -> list[Any] | None:
        """Return the classes named by the columns of probabilities or by the groups."""
        if self.columns.declared is not None and len(self.columns.declared) > 1:
            return list(self.columns.declared)
        if self.grouping is None:
            return None
        classes = grouped_labels(self.grouping)
        return classes if width < 2 or width == len(classes) else None


@dataclass(eq=False)
class _Reader:
    """Counter of the rows that a source provides, which raises ValueError for invalid rows."""

    source: Source
    columns: Columns
    begin: Reading
    normalize: bool | str
    what: tuple[str, str] = ("y_true", "y_prob")
    name: str = "rows"
    width: int = 0

    def count_as_they_come(self, with_lists: bool) -> Tally:
        """Count rows before the classes are known; if there are scores, only count the labels."""
        columns = self.columns
        if columns.scores:
            columns = replace(columns, weight=None, row_ids=None, segments=())
            if not (columns.lists and with_lists):
                columns = replace(columns, scores=(), lists=False)
        kernel = Kernel(None, weights_are=columns.weights_are, segments=columns.segments)
        tally = self._read("labels" if self.columns.scores else "rows", columns, kernel)
        self._refuse(tally, ())
        return tally

    def count(
        self, counting: Counting, places: dict[int, list[int]], declared: bool = False
    ) -> Tally:
        """Count all rows of the table, and return the counts.

        Raises ValueError if rows are invalid; the message states the number of invalid rows.
        """
        tally = self._read(self.name, self.columns, self._kernel(counting, places))
        self._refuse(tally, counting.labels, declared)
        if self.columns.lists and self.width not in places:
            _place(self.columns, self.width, counting, None)
        return tally

    def places(self, counting: Counting, alone: int | None) -> dict[int, list[int]]:
        """Return the column of each class's probability, for each possible number of columns.

        If the columns do not match the classes, invalid numbers in the columns are reported first.
        """
        order = counting.labels
        if not self.columns.scores:
            return {}
        widths = [len(self.columns.scores)]
        if self.columns.lists:
            widths = [len(order)]
            if len(order) == 2:  # with two classes, a list may contain one probability
                widths.append(1)
        try:
            return {width: _place(self.columns, width, counting, alone) for width in widths}
        except ValueError:
            kernel = replace(self._kernel(Counting(order), {}), only_faults=True)
            self._refuse(self._read("what is wrong", self.columns, kernel), order)
            raise

    @property
    def categories(self) -> dict[str, list[Any]]:
        """The values of each categorical segment column, in the order of the categories."""
        by_name = {name: self.source.categories(name) for name in self.columns.dividing}
        return {name: values for name, values in by_name.items() if values is not None}

    def count_beside(
        self, source: Source, names: tuple[str, str], counting: Counting, alone: int | None
    ) -> Statistics:
        """Return the statistics of a calibration or target table with the same score columns.

        ``names``: the names of the table's labels and scores in messages; the two names are equal
            if the table contains no labels.
        """
        y_true = self.columns.y_true if names[0] != names[1] else None
        scores = list(self.columns.scores)
        try:
            columns = choose_columns(source.schema.names, y_true=y_true, y_prob=scores)
            are_texts = all(isinstance(label, str) for label in counting.labels)
            source = source.with_kinds(columns, (str,) if are_texts else KINDS)
            columns = replace(check_kinds(columns, source.schema), declared=self.columns.declared)
        except ValueError as error:
            raise ValueError(f"{names[1]}: {error}") from None
        name = names[1].split()[0]
        reader = _Reader(source, columns, self.begin, self.normalize, names, name)
        tally = reader.count(counting, reader.places(counting, alone))
        if reader.width != self.width:
            raise ValueError(
                f"{names[1]} and y_prob must have the same number of probabilities per row, got "
                f"{reader.width} and {self.width}"
            )
        return tally.statistics(counting.labels)

    def _kernel(self, counting: Counting, places: dict[int, list[int]]) -> Kernel:
        columns = self.columns
        return Kernel(
            counting, places, self.normalize, columns.weights_are, segments=columns.segments
        )

    def _read(self, name: str, columns: Columns, kernel: Kernel) -> Tally:
        return self.source.count(Work(columns, kernel), self.begin(name, self.source.n_rows))

    def _refuse(self, tally: Tally, order: Sequence[Label], declared: bool = False) -> None:
        columns = self.columns
        faults = tally.faults
        if columns.lists and faults.lengths:
            faults.refuse_lengths(columns.scores[0])
        self.width = max(faults.lengths, default=len(columns.scores))
        faults.refuse(self.what, columns.parts(self.width), self.normalize, order, declared)
        if tally.weights_are_zero:
            raise ValueError("sample_weight must be above 0 in at least one row, got 0 in all")


def _scored(
    columns: Columns, order: tuple[Label, ...], grouping: Grouping | None, positive: Label | None
) -> tuple[ComposedStep | None, int | None]:
    """Return the scored step, and the class that a single column of probabilities refers to."""
    alone = None
    if columns.declared is not None and len(columns.scores) == 1:
        alone = _positions(columns.declared, order).index(0)
        if positive is None and grouping is None:
            positive = order[alone]
    return scored_step(order, grouping, positive), alone


def _place(columns: Columns, width: int, counting: Counting, alone: int | None) -> list[int]:
    """Return the position of each class's probability column; -1 for a class without a column."""
    order = counting.labels
    if width == 1 and len(order) == 2:
        is_first = alone == 0 if alone is not None else scores_first(order, counting.step)
        return [0, -1] if is_first else [-1, 0]
    if columns.declared is not None:
        return _positions(columns.declared, order)
    if width != len(order):
        expected = f"(n_samples, {len(order)})"
        if len(order) == 2:
            expected += " or (n_samples,)"
        noun = "column" if width == 1 else "columns"
        raise ValueError(
            f"{columns.what} must have shape {expected} for the labels {listed(order, 12)}, got "
            f"{width} {noun}; name all classes of the model with labels="
        )
    return list(range(width))


def _positions(names: Sequence[Label], order: tuple[Label, ...]) -> list[int]:
    """Return the position of each class in a list of names; -1 if a class is not in the list."""
    by_text = {str(name): position for position, name in enumerate(names)}
    positions = [by_text.get(str(label), -1) for label in order]
    missing = [label for label, position in zip(order, positions, strict=True) if position < 0]
    is_one_of_two = len(order) == 2 and len(names) == 1 and len(missing) == 1
    if missing and not is_one_of_two:
        raise ValueError(
            f"y_prob must have a column for each label, {listed(missing)} not in "
            f"{listed(names, 20)}"
        )
    strange = [name for position, name in enumerate(names) if position not in positions]
    if strange:
        raise ValueError(
            f"columns of y_prob must be labels, got {listed(strange)}; labels are "
            f"{listed(order, 20)}"
        )
    return positions


def _checked(labels: Sequence[Any]) -> tuple[Label, ...]:
    """Convert labels to classes; raise ValueError or TypeError if they cannot be classes."""
    classes = [plain(label) for label in labels]
    return number_labels({"labels": classes}, classes).labels


def _with_calibration_table(
    statistics: Statistics, side: Statistics, step: ComposedStep | None
) -> Statistics:
    """Add the labelled scores of a calibration table to the statistics."""
    scaled_rows = _scaled_rows(statistics, side)
    if step is None:
        return replace(statistics, scaled_rows=scaled_rows, labelled_tops=side.tops)
    if side.scores is None:
        raise TypeError("a table that is counted by a scored step must have scores")
    scores = side.scores.channels((2, 3), (0, 1))
    if not scores.counts.any(axis=1).all():
        rows = side.matrix.counts.sum(axis=1).tolist()
        # Only one group has rows. The message names the class with the most rows.
        label = side.matrix.labels[rows.index(max(rows))]
        raise ValueError(
            f"calibration must have labels of both {list(step.labels)}, got {sum(rows)} labels "
            f"like {label!r} only"
        )
    return replace(statistics, scaled_rows=scaled_rows, labelled=scores)


def _with_target_table(
    statistics: Statistics, side: Statistics, step: ComposedStep | None
) -> Statistics:
    """Add the scores of a target table to the statistics."""
    scaled_rows = _scaled_rows(statistics, side)
    if step is not None and side.scores is not None:
        scores = side.scores.channels((0, 1, 2, 3))
        return replace(statistics, scaled_rows=scaled_rows, target=scores)
    if side.tops is None:
        raise TypeError("a table of classes with probabilities must have top scores")
    return replace(statistics, scaled_rows=scaled_rows, target_tops=side.tops.pooled())


def _scaled_rows(statistics: Statistics, side: Statistics) -> int | None:
    return ((statistics.scaled_rows or 0) + (side.scaled_rows or 0)) or None


def _names_of(*arguments: Any) -> list[str]:
    """Return all column names that occur in nested arguments."""
    names: list[str] = []
    for argument in arguments:
        if isinstance(argument, str):
            names.append(argument)
        elif isinstance(argument, Mapping):
            names += _names_of(*argument.values())
        elif isinstance(argument, Sequence):
            names += _names_of(*argument)
    return names


def _source_of(side: Any, names: Sequence[str]) -> Source | None:
    """Return the source of a calibration or target set that is a table; None for arrays."""
    if side is None or (isinstance(side, str) and side == "cross-fit"):
        return None
    return find_source(side, names)
