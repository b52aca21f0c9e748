"""Base class of all evaluations: metrics by name, files, figures and reports."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, Protocol, Self

import numpy.typing as npt

from cmtrack import archive
from cmtrack.grouping import Grouping, Label
from cmtrack.metrics.catalog import Catalog
from cmtrack.metrics.intervals import Interval
from cmtrack.metrics.metric import Metric
from cmtrack.metrics.results import ByName, Results
from cmtrack.options import Question
from cmtrack.statistics import Design, LabelDigest
from cmtrack.statistics.inputs import FloatArray, listed

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


class Digests(Protocol):
    """Protocol for statistics that contain digests of the evaluated rows."""

    @property
    def digest(self) -> LabelDigest:
        """Digest of the actual labels."""

    @property
    def row_ids(self) -> LabelDigest | None:
        """Digest of the ids of the rows; None if the rows have no ids."""

    def to_plain(self) -> dict[str, Any]:
        """Return the statistics as plain data."""


class Rows(Protocol):
    """Protocol for the evaluated rows, each of which is a row of data or a document."""

    @property
    def design(self) -> Design:
        """The weights and the clusters of the rows."""

    def __len__(self) -> int: ...


class BaseEvaluation(ABC):
    """Base of :class:`~cmtrack.Evaluation` and :class:`~cmtrack.FamilyEvaluation`.

    Logging, comparing and reporting use only the members of this class.

    Attributes
    ----------
    statistics : object
        The counts and sums that were computed from the data. The statistics are small and can be
        merged.
    spec : Question
        The options of the evaluation.
    rows : object or None
        The evaluated rows, if available. Paired comparisons need them.
    """

    kind: ClassVar[str]
    """Value of ``kind`` in files that store objects of this class."""
    first_metrics: ClassVar[tuple[str, ...]]
    """Names of the most important headline metrics of this class, in order."""
    unit: ClassVar[str] = "row"
    """The word for a row of this evaluation in messages and reports."""
    statistics: Digests
    spec: Question
    rows: Rows | None

    @property
    def confidence_level(self) -> float:
        """The confidence level of the intervals."""
        return self.spec.confidence_level

    @property
    def grouping(self) -> Grouping | None:
        """The groups of classes, if the evaluation uses groups."""
        return None

    @property
    def positive(self) -> Label | None:
        """The positive class if there are two classes, or the positive group."""
        return None

    @property
    @abstractmethod
    def notes(self) -> tuple[str, ...]:
        """Remarks that were added when the evaluation was created."""

    def asking(self, **changes: Any) -> Self:
        """Evaluate the same data with different options."""
        spec = replace(self.spec, **changes)
        # Every evaluation is a dataclass, which this abstract class cannot declare.
        changed: Self = replace(self, spec=spec)  # type: ignore[type-var]
        return changed

    # -- numbers ---------------------------------------------------------------------------------

    @property
    @abstractmethod
    def _results(self) -> Results: ...

    @property
    def metrics(self) -> dict[str, float]:
        """Every metric by its full name; NaN if the metric is undefined (see :attr:`undefined`)."""
        return ByName(self._results.metrics)

    @property
    def intervals(self) -> dict[str, Interval]:
        """Confidence intervals (low, high) by metric name, for all metrics with an interval."""
        return ByName(self._results.intervals, "interval of")

    @property
    def standard_errors(self) -> dict[str, float]:
        """Standard errors by metric name, for all metrics with a standard error."""
        return ByName(self._results.errors, "standard error of")

    @property
    def infinite(self) -> frozenset[str]:
        """Names of undefined metrics that are infinitely bad, so that rankings put them last."""
        return frozenset(self._results.infinite)

    @property
    def undefined(self) -> dict[str, str]:
        """For each metric that is NaN, the reason why it is undefined."""
        return ByName(self._results.undefined, "undefined metric")

    @property
    @abstractmethod
    def warnings_by_section(self) -> tuple[tuple[str, str], ...]:
        """Each warning with the section of metrics that it is about.

        The section is "" if the warning is about all metrics.
        """

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about numbers that are not reliable."""
        return tuple(warning for _, warning in self.warnings_by_section)

    @property
    def headline(self) -> tuple[str, ...]:
        """Names of the metrics that are shown first and logged to a run, most important first."""
        names = [name for name in self.metrics if self.catalog.lookup(name).headline]
        return tuple(
            dict.fromkeys([*(name for name in self.first_metrics if name in names), *names])
        )

    def influence(self, metric: str) -> FloatArray | None:
        """Return the contribution of each row to a metric's standard error, shape (n,).

        If rows are labelled with sets of codes, the result contains one contribution per document.
        With contributions psi and weights w, the standard error of the metric is
        ``sqrt(sum (w psi)^2) / sum w``. To get the standard error of the difference between two
        models on the same rows, subtract their contributions row by row. The result is None if the
        metric has no influence function.

        Raises
        ------
        ValueError
            If the evaluation has no rows.
        KeyError
            If no metric has that name.

        Examples
        --------
        >>> from cmtrack import evaluate
        >>> evaluate([0, 1, 1, 1], [0, 1, 0, 1]).influence("multiclass/accuracy").tolist()
        [0.25, 0.25, -0.75, 0.25]
        """
        if self.rows is None:
            raise ValueError(
                "influence values need rows, but this evaluation was merged or loaded without "
                "its rows"
            )
        return self._influence_of(metric)

    def answers(self, metric: str) -> npt.NDArray[Any] | None:
        """Encode the part of each prediction that a metric depends on, shape (n,), or return None.

        If two evaluations of the same rows have the same code for a row, the row does not
        contribute to their difference.
        """
        if self.rows is None:
            return None
        return self._answers_to(metric)

    def _answers_to(self, metric: str) -> npt.NDArray[Any] | None:
        return None

    def with_metrics(self, extra_metrics: Sequence[Metric]) -> BaseEvaluation:
        """Return the evaluation with custom metrics added.

        Raises
        ------
        TypeError
            If custom metrics are given, but the rows do not have exactly one label each.

        Examples
        --------
        >>> from cmtrack import Metric, evaluate
        >>> gain = Metric("custom/gain", lambda b: 5 * b.tp - b.fp, of="binary")
        >>> evaluate([0, 1, 1, 0], [0, 1, 0, 1]).with_metrics([gain]).metrics["custom/gain"]
        4.0
        """
        if extra_metrics:
            names = listed([metric.name for metric in extra_metrics])
            raise TypeError(
                "extra_metrics are computed from counts of single labels, so a "
                f"{type(self).__name__} does not accept them, got {names}"
            )
        return self

    @abstractmethod
    def _influence_of(self, metric: str) -> FloatArray | None: ...

    # -- what was evaluated ----------------------------------------------------------------------

    @property
    @abstractmethod
    def labels(self) -> tuple[Label, ...]:
        """The classes, or codes, in order."""

    @property
    def sizes(self) -> dict[str, int]:
        """Numbers of classes, codes or other parts of the labels, by the name of the part."""
        return {}

    @property
    @abstractmethod
    def n_samples(self) -> float:
        """Number (or total weight) of evaluated rows, spans or documents."""

    @property
    def labels_digest(self) -> str:
        """Digest of the actual labels of all rows; identical test rows have the same digest."""
        return str(self.statistics.digest)

    @property
    @abstractmethod
    def design(self) -> tuple[tuple[str, str], ...]:
        """Names and values of the options that must be equal for two evaluations to be ranked."""

    @property
    @abstractmethod
    def catalog(self) -> Catalog:
        """The metrics of this evaluation: the built-in metrics of its kind, and custom ones."""

    @abstractmethod
    def classes_passed_over(self, metric: str) -> tuple[Label, ...]:
        """Return the labels that an average skips because they are never predicted."""

    def at_level(self, confidence_level: float) -> Self:
        """Return the evaluation with intervals at a different confidence level."""
        if confidence_level == self.confidence_level:
            return self
        return self.asking(confidence_level=confidence_level)

    # -- files -----------------------------------------------------------------------------------

    def save(self, directory: str | Path, *, rows: bool | str = "auto") -> Path:
        """Write ``cmtrack_evaluation.json`` into a folder, and return the file's path.

        Parameters
        ----------
        directory : path
        rows : "auto", True or False, default "auto"
            Whether to write the rows, which paired comparisons need, to
            ``cmtrack_predictions.parquet`` in the folder. "auto" writes the rows if they take at
            most 32 MB before compression. If the rows take more, a warning says that they were not
            written.

        Notes
        -----
        ``CMTRACK_PREDICTIONS`` and ``[tool.cmtrack] predictions`` limit what is logged to a run.
        These settings do not apply to this method, because it only writes to the folder that you
        choose.

        The statistics of 11 classes take about 0.3 MB of JSON. For K classes, the size grows with
        K², or with K³ for up to 30 classes with probabilities. 10⁶ rows with 11 probabilities each
        exceed the limit of 32 MB. With ``rows=True``, they take 47 MB, and writing them takes about
        0.6 s.

        Examples
        --------
        >>> from cmtrack import Evaluation, evaluate
        >>> evaluate([0, 1, 1, 0], [0, 1, 0, 0]).save("results").name
        'cmtrack_evaluation.json'
        >>> Evaluation.load("results").metrics["multiclass/accuracy"]
        0.75
        """
        return archive.save(self, Path(directory), rows)

    @classmethod
    def load(cls, directory: str | Path, *, rows: bool = True) -> Self:
        """Read the files that :meth:`save` wrote; ``directory`` may also be the JSON file itself.

        Parameters
        ----------
        directory : path
        rows : bool, default True
            Whether to read the rows, if they were saved. Without the rows, ``.rows`` is None and
            comparisons are unpaired.

        Raises
        ------
        FileNotFoundError
            If the folder does not contain an evaluation, or the file does not exist.
        ValueError
            If the file is damaged, is of another kind, or has a newer schema than this version can
            read.
        """
        path = Path(directory)
        evaluation = cls.from_data(archive.parse(archive.read_file(path), cls.kind))
        if not rows:
            return evaluation
        return archive.with_rows(evaluation, path)

    def to_json(self) -> str:
        """Return the text that :meth:`save` writes."""
        return archive.to_json(self, self._stored())

    @abstractmethod
    def _stored(self) -> dict[str, Any]:
        """Return the options and the additional stored fields as plain data, without statistics."""

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> Self:
        """Rebuild the evaluation from the plain data of :meth:`to_json`.

        Raises
        ------
        ValueError
            If the data are damaged.
        """
        try:
            return cls(**cls._fields_of(data))
        except archive.DAMAGED as error:
            raise ValueError(
                f"the evaluation is damaged: {type(error).__name__}: {error}"
            ) from None

    @classmethod
    @abstractmethod
    def _fields_of(cls, data: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of a stored evaluation."""

    @abstractmethod
    def without_probabilities(self) -> Self:
        """Return the evaluation after removing the probabilities from its rows."""

    @property
    @abstractmethod
    def rows_size(self) -> int:
        """Size of all columns of the rows in bytes, before compression."""

    @abstractmethod
    def write_rows(self, file: Path | BinaryIO) -> None:
        """Write the rows as Parquet.

        Notes
        -----
        Writing needs one pass over the rows. 10⁶ rows with 11 probabilities each take about 0.6 s
        and 47 MB.

        Examples
        --------
        >>> import io
        >>> import pyarrow.parquet as pq
        >>> from cmtrack import evaluate
        >>> file = io.BytesIO()
        >>> evaluate([0, 1, 1], [0, 1, 0]).write_rows(file)
        >>> pq.read_table(file).num_rows
        3
        """

    @abstractmethod
    def with_rows(self, content: bytes) -> Self:
        """Return the evaluation with rows that are read from the output of :meth:`write_rows`.

        Raises
        ------
        ValueError
            If the rows are damaged, or belong to another evaluation.
        """

    # -- views -----------------------------------------------------------------------------------

    def to_frame(self) -> pd.DataFrame:
        """Return a frame with each metric's value, interval and direction."""
        from cmtrack._pandas import pd

        intervals = self.intervals
        undefined = self.undefined
        rows = []
        for name, value in self.metrics.items():
            low, high = intervals.get(name, (math.nan, math.nan))
            better = self.catalog.lookup(name).better
            rows.append((name, value, low, high, better, undefined.get(name, "")))
        return pd.DataFrame(rows, columns=["metric", "value", "low", "high", "better", "undefined"])

    def figures(
        self, *, on_error: Callable[[str, Exception], object] | None = None
    ) -> Mapping[str, Figure]:
        """Return all figures that apply to this evaluation, by name.

        Parameters
        ----------
        on_error : callable (name, error), optional
            Function that is called for each figure that cannot be drawn. The result does not
            contain these figures. If you pass ``on_error``, all figures are drawn at once. By
            default, each figure is drawn when it is first used, and errors are raised at that time.

        Notes
        -----
        Each figure that you use takes about 0.1 s. Iterating over the names draws all figures.

        Examples
        --------
        >>> from cmtrack import evaluate
        >>> figures = evaluate([0, 1, 1, 0], [0, 1, 0, 0]).figures()
        >>> figures["confusion_matrix"].savefig("confusion.png")
        """
        from cmtrack.report.figures import draw_figures

        return draw_figures(self, on_error)

    def _repr_html_(self) -> str:
        from cmtrack.report.views import notebook_html

        return notebook_html(self)

    def report(
        self,
        path: str | Path,
        *,
        title: str | None = None,
        rows: bool = True,
        table: Any = None,
        row_ids: Any = None,
        images: str | None = None,
    ) -> Path:
        """Write the report, a single HTML file that does not load anything from the network.

        The page is the same as the page that :func:`~cmtrack.log_evaluation` logs, but it also
        contains the figures that are not logged to a run.

        Parameters
        ----------
        path : path
            Path of the file, which must end in ``.html``. Missing folders are created.
        title : str, optional
            Title of the page; by default "Evaluation".
        rows : bool, default True
            Whether the page lists rows for each of the most frequent confusions, at most 25 rows
            per confusion. Ids are shown only if they are stored with the rows
            (``CMTRACK_ROW_IDS``). A page that is logged to a run lists the rows that are logged to
            this run.
        table : frame, mapping of columns, or path, optional
            At most 12 columns to show next to the listed rows. Texts are cut at 200 characters. A
            page that is logged to a run never contains these columns.
        row_ids : str or array-like of shape (n,), optional
            As in :meth:`cmtrack.Evaluation.rows_where`. If ``row_ids`` is a column of the table,
            the page does not show this column.
        images : str, optional
            Name of the table's column that contains the http or https addresses of images. The page
            shows them as links, because it does not load anything.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        ValueError
            If the evaluation has no rows, the rows of the table do not match the evaluated rows, or
            an address is not valid.
        """
        from cmtrack.report.views import write_report

        return write_report(self, path, title, rows, table, row_ids, images)

    def card(self, title: str = "Evaluation") -> str:
        """Return a Markdown section for a model card, with the sentences from the report.

        The section contains the result, the headline metrics with intervals, a description of the
        data, the segments and the warnings.

        Examples
        --------
        >>> from cmtrack import evaluate
        >>> print(evaluate([0, 1, 1, 0], [0, 1, 0, 0]).card("On four rows")[:15])
        ## On four rows
        """
        from cmtrack.report.views import card

        return card(self, title)

    def __radd__(self, other: object) -> Self:
        if other == 0:  # sum(...) starts with the number 0
            return self
        return NotImplemented
