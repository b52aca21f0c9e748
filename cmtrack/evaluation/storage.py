"""An evaluation of classes as plain data: statistics to compute from, numbers to read."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from cmtrack import archive
from cmtrack.base import BaseEvaluation
from cmtrack.evaluation.steps import scored_step
from cmtrack.families.result import FamilyEvaluation
from cmtrack.grouping import Grouping
from cmtrack.metrics.own import from_data as own_from_data
from cmtrack.statistics import ConfusionMatrix, LabelDigest, ScoreCounts, ScoreMoments
from cmtrack.statistics.collected import Statistics
from cmtrack.statistics.cross_moments import CrossMoments
from cmtrack.statistics.scores import grid_centres
from cmtrack.statistics.top_scores import CELLS, TopScoreCounts

if TYPE_CHECKING:
    from cmtrack.evaluation.result import Evaluation


def loads(text: str) -> BaseEvaluation:
    """The evaluation of whatever kind that a text holds.

    Raises
    ------
    ValueError
        If the text is damaged, of a newer schema, or of a kind that this version does not know.
    """
    from cmtrack.evaluation.result import Evaluation

    data = archive.parse(text)
    readers: dict[str, type[BaseEvaluation]] = {one.kind: one for one in (Evaluation, FamilyEvaluation)}
    kind = data.get("kind", archive.CLASSES)
    if kind not in readers:
        raise ValueError(f"the evaluation is of the kind {kind!r}, this version reads {list(readers)}: upgrade cmtrack")
    return readers[kind].from_data(data)


def to_json(evaluation: Evaluation) -> str:
    """The JSON text. NaN is written as null."""
    return json.dumps(
        {
            "schema": archive.SCHEMA,
            "kind": evaluation.kind,
            "labels": list(evaluation.labels),
            "positive": evaluation.positive,
            **({} if evaluation.none is None else {"none": evaluation.none}),
            **({} if evaluation.sections is None else {"sections": list(evaluation.sections)}),
            "grouping": None if evaluation.grouping is None else evaluation.grouping.to_dict(),
            "confidence_level": evaluation.confidence_level,
            "notes": list(evaluation.notes),
            "cluster_errors": evaluation.cluster_errors,
            **({"extra_metrics": evaluation.extra_data()} if evaluation.extra_metrics else {}),
            **archive.to_read(evaluation),
            "statistics": _write(evaluation.statistics),
        },
        ensure_ascii=False,
        allow_nan=False,
    )


def from_data(data: dict[str, Any]) -> Evaluation:
    """The evaluation that plain data of :func:`cmtrack.archive.parse` hold.

    Raises
    ------
    ValueError
        If they are damaged.
    """
    from cmtrack.evaluation.result import Evaluation

    try:
        labels, grouping = _read_labels(data["labels"]), data["grouping"]
        level = archive.read_level(data["confidence_level"])
        own, kept = own_from_data(data.get("extra_metrics", []), level)
        evaluation = Evaluation(
            _read(data["statistics"], labels),
            grouping=None if grouping is None else Grouping.from_dict(grouping),
            positive=data["positive"],
            confidence_level=level,
            notes=tuple(map(str, data["notes"])),
            cluster_errors=_read_errors(data.get("cluster_errors")),
            none=data.get("none"),
            sections=_read_sections(data.get("sections")),
            extra_metrics=own,
            kept_numbers=kept or None,
        )
        if evaluation.none is not None and evaluation.none not in labels:
            raise ValueError(f"the class that stands for no span must be a label, got {evaluation.none!r:.40}")
        scored_step(labels, evaluation.grouping, evaluation.positive)  # they must go together
        return evaluation
    except archive.DAMAGED as error:
        raise ValueError(f"the evaluation is damaged: {type(error).__name__}: {error}") from None


def _read_labels(labels: Any) -> tuple[Any, ...]:
    if not isinstance(labels, list) or not all(isinstance(label, (str, int, float)) for label in labels):
        raise ValueError(f"labels must be texts or numbers, got {labels!r:.80}")
    if len(set(labels)) < len(labels):
        raise ValueError("labels must be distinct")
    return tuple(labels)


def _read_sections(data: Any) -> tuple[str, ...] | None:
    """Sections as they are called; those that a later version knows say nothing here."""
    if data is None:
        return None
    if not isinstance(data, list) or not data or not all(isinstance(name, str) for name in data):
        raise ValueError(f"sections must be a list of names, got {data!r:.80}")
    return tuple(data)


def _read_errors(data: dict[str, float] | None) -> dict[str, float] | None:
    return None if data is None else {str(name): float(value) for name, value in data.items()}


# -- statistics ----------------------------------------------------------------------------------------------


def _write(statistics: Statistics) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for item in fields(statistics):
        value = getattr(statistics, item.name)
        if value is None:
            continue
        if isinstance(value, ConfusionMatrix):
            out[item.name] = archive.encode_array(value.counts)
        elif isinstance(value, LabelDigest):
            out[item.name] = str(value)
        elif isinstance(value, ScoreMoments):
            out[item.name] = {f.name: archive.encode_array(getattr(value, f.name)) for f in fields(value)}
        elif isinstance(value, ScoreCounts):
            out[item.name] = {
                "exact": value.exact,
                "counts": archive.encode_array(value.counts),
                **({"values": archive.encode_array(value.values)} if value.exact else {}),
            }
        elif isinstance(value, TopScoreCounts):
            out[item.name] = archive.encode_array(value.counts)
        elif isinstance(value, CrossMoments):
            out[item.name] = archive.encode_array(value.sums)
        elif isinstance(value, Statistics):
            out[item.name] = _write(value)
        else:
            out[item.name] = value
    return out


def _read(data: dict[str, Any], labels: tuple[Any, ...]) -> Statistics:
    kept: dict[str, Any] = {}
    size = len(labels)
    for name, value in data.items():
        if name == "matrix":
            kept[name] = ConfusionMatrix(archive.decode_array(value, (size, size)), labels)
        elif name in ("digest", "row_ids"):
            kept[name] = LabelDigest.parse(value)
        elif name in ("moments", "score_moments"):
            kept[name] = _read_moments(value, size if name == "moments" else 2)
        elif name in ("scores", "labelled", "target"):
            kept[name] = _read_scores(value)
        elif name in ("tops", "labelled_tops", "target_tops"):
            kept[name] = TopScoreCounts(archive.decode_array(value, (None, size, CELLS)))
        elif name == "cross":
            kept[name] = CrossMoments(archive.decode_array(value, (size, 2 * size + 1, 2 * size + 1)))
        elif name == "labels_variance":
            kept[name] = float(value)
        elif name == "scaled_rows":
            kept[name] = _whole_number(value)
        elif name == "squares":
            kept[name] = _read(value, labels)
        else:
            raise ValueError(f"unknown statistic {name!r}")
    return Statistics(**kept)


def _whole_number(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"a number of rows must be a whole number from 0, got {value!r:.40}")
    return value


def _read_moments(data: dict[str, Any], rows: int) -> ScoreMoments:
    moments = ScoreMoments(
        **{name: archive.decode_array(value, (rows,) if name == "n" else (rows, None)) for name, value in data.items()}
    )
    if moments.n.shape != (rows,) or any(
        getattr(moments, name).shape != moments.mean.shape or len(moments.mean) != rows for name in ("m2", "m3", "m4")
    ):
        raise ValueError(f"moments must have {rows} rows, got {moments.n.shape} and {moments.mean.shape}")
    return moments


def _read_scores(data: dict[str, Any]) -> ScoreCounts:
    exact = bool(data["exact"])
    values = archive.decode_array(data["values"], (None,)) if exact else grid_centres()
    counts = archive.decode_array(data["counts"], (None, len(values)))
    return ScoreCounts(values, counts, exact)
