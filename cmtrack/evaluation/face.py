"""What every kind of evaluation has in common: all that logging and comparing need."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from cmtrack.evaluation.result import Evaluation
from cmtrack.evaluation.storage import KIND as CLASSES
from cmtrack.evaluation.storage import from_data as classes_from_data
from cmtrack.evaluation.storage import parse
from cmtrack.families.result import FamilyEvaluation
from cmtrack.families.storage import KIND as FAMILIES
from cmtrack.families.storage import from_data as families_from_data
from cmtrack.grouping import Grouping, Label
from cmtrack.metrics.intervals import Interval
from cmtrack.statistics import LabelDigest
from cmtrack.statistics.inputs import FloatArray, IntArray

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


class Digests(Protocol):
    """Which rows were judged."""

    @property
    def digest(self) -> LabelDigest: ...
    @property
    def row_ids(self) -> LabelDigest | None: ...


class Rows(Protocol):
    """The judged rows, one by one: samples or documents."""

    @property
    def weights(self) -> FloatArray | IntArray | None: ...
    @property
    def clusters(self) -> IntArray | None: ...
    def __len__(self) -> int: ...


class Judged(Protocol):
    """An :class:`Evaluation` or a :class:`FamilyEvaluation`.

    ``design`` says by name what must be the same for two of them to be put in one order, besides the data.
    ``influence`` gives what each row adds to the error of a metric, or None where that is not known.
    """

    @property
    def statistics(self) -> Digests: ...
    @property
    def rows(self) -> Rows | None: ...
    @property
    def confidence_level(self) -> float: ...
    @property
    def metrics(self) -> dict[str, float]: ...
    @property
    def intervals(self) -> dict[str, Interval]: ...
    @property
    def standard_errors(self) -> dict[str, float]: ...
    @property
    def undefined(self) -> dict[str, str]: ...
    @property
    def warnings(self) -> tuple[str, ...]: ...
    @property
    def labels(self) -> tuple[Label, ...]: ...
    @property
    def n_samples(self) -> float: ...
    @property
    def labels_digest(self) -> str: ...
    @property
    def grouping(self) -> Grouping | None: ...
    @property
    def positive(self) -> Label | None: ...
    @property
    def design(self) -> tuple[tuple[str, str], ...]: ...
    def influence(self, metric: str) -> FloatArray | None: ...
    def to_json(self) -> str: ...
    def classes_passed_over(self, metric: str) -> tuple[Label, ...]: ...
    def save(self, directory: str | Path, *, rows: bool | str = "auto") -> Path: ...
    def to_frame(self) -> pd.DataFrame: ...
    def figures(self) -> dict[str, Figure]: ...


KINDS = (Evaluation, FamilyEvaluation)


def loads(text: str) -> Evaluation | Any:
    """The evaluation of whatever kind that a text holds.

    Raises
    ------
    ValueError
        If the text is damaged, of a newer schema, or of a kind that this version does not know.
    """
    data = parse(text)
    readers = {CLASSES: classes_from_data, FAMILIES: families_from_data}
    kind = data.get("kind", CLASSES)
    if kind not in readers:
        raise ValueError(f"the evaluation is of the kind {kind!r}, this version reads {list(readers)}: upgrade cmtrack")
    return readers[kind](data)
