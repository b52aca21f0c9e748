"""Stored form of an evaluation of classes: statistics to compute from and numbers to read, and a file of its rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import numpy.typing as npt

from cmtrack import archive
from cmtrack.evaluation._regrouping import Lost
from cmtrack.evaluation.compute import scored_step
from cmtrack.evaluation.row_facts import RowFacts
from cmtrack.evaluation.spec import Spec
from cmtrack.grouping.step import same_label
from cmtrack.metrics.own import Kept
from cmtrack.metrics.own import from_data as own_from_data
from cmtrack.statistics import LabelDigest, ScoreMoments
from cmtrack.statistics.collected import Statistics
from cmtrack.statistics.counting import Codes, count_pairs
from cmtrack.statistics.decision_cells import given_to_old
from cmtrack.statistics.design import Design
from cmtrack.statistics.inputs import (
    FREQUENCY,
    SAMPLING,
    FloatArray,
    IntArray,
    check_threshold_of_probabilities,
    not_whole,
)
from cmtrack.statistics.labels import encode_row_ids
from cmtrack.statistics.predictions import Predictions, RowIds
from cmtrack.statistics.probabilities import DECISIONS, as_probabilities
from cmtrack.statistics.segment_values import SegmentRows
from cmtrack.statistics.spans import OTHER_DOCUMENTS, SpanRows
from cmtrack.statistics.top_scores import TopScoreCounts

if TYPE_CHECKING:
    from cmtrack.evaluation.result import Evaluation

_LABELS_HASHED, _BY_VALUE = "labels_hashed", "by value"
"""Entry of evaluations whose labels are booleans or whole floats. Files of cmtrack 0.2 do not have it."""

_SUM_OF_ROW = 1.05
"""More than the probabilities of a row sum to, as they are read, and so more than that of a group."""


def stored(evaluation: Evaluation) -> dict[str, Any]:
    """The fields of an :class:`Evaluation` as plain data, without its statistics."""
    extra, numbers = (
        {metric.name for metric in evaluation.extra_metrics},
        evaluation.kept_numbers or {},
    )
    # metrics of cmtrack's own that mean nothing in this order of the classes, and the reasons
    other_order = {name: kept.reason for name, kept in numbers.items() if name not in extra}
    hashed_by_value = (
        _has_numbers_like_integers(evaluation.labels)
        and evaluation.statistics.digest.stored is None
    )
    return {
        "labels": list(evaluation.labels),
        **({_LABELS_HASHED: _BY_VALUE} if hashed_by_value else {}),
        **evaluation.spec.to_plain(),
        "notes": list(evaluation.remarks),
        "lost": sorted(lost.name for lost in evaluation.lost),
        **evaluation.row_facts.to_plain(),
        **({"extra_metrics": evaluation.extra_data()} if extra else {}),
        **({"of_another_order": other_order} if other_order else {}),
    }


def fields_of(data: dict[str, Any]) -> dict[str, Any]:
    """Read the fields of an :class:`Evaluation` from plain data of :func:`cmtrack.archive.parse`."""
    labels = _read_labels(data["labels"])
    data["positive"], data["grouping"], data["confidence_level"]  # files of every schema have them
    spec = Spec.from_plain(data).with_reference_of(labels)
    extra, read = own_from_data(data.get("extra_metrics", []), spec.confidence_level)
    reasons = data.get("of_another_order", {})
    read |= {
        name: Kept(math.nan, None, None, spec.confidence_level, str(reason))
        for name, reason in reasons.items()
    }
    statistics = Statistics.from_plain(data["statistics"], labels)
    if spec.none is not None and spec.none not in labels:
        raise ValueError(
            f"the class that stands for no span must be a label, got {spec.none!r:.40}"
        )
    _check_whole(statistics)
    for sums in (statistics, statistics.squares):
        if sums is not None and not statistics.ranking_only:
            _check_probable("moments", sums.moments, float(sums.matrix.total))
            _check_probable("score_moments", sums.score_moments, float(sums.matrix.total))
    weights_are = spec.weights_are
    if weights_are is None:
        weights_are = _weights_of_old(statistics, spec.none)
    elif (weights_are == SAMPLING) != statistics.has_sampling_weights:
        raise ValueError(
            f"{weights_are} weights must have squares if they are sampling weights, and only then"
        )
    spec = replace(spec, extra_metrics=extra, weights_are=weights_are)
    if spec.threshold is not None and not statistics.ranking_only:
        check_threshold_of_probabilities(spec.threshold)
    if (
        data.get(_LABELS_HASHED) != _BY_VALUE
        and spec.none is None
        and _has_numbers_like_integers(labels)
    ):
        statistics = _with_digest_of_values(statistics, weights_are)
    scored_step(labels, spec.grouping, spec.positive)  # they must go together
    if spec.costs is not None:
        spec.costs.matrix(labels, spec.grouping)  # these, too
    derived = () if statistics.segments is None else statistics.segments.notes
    return {
        "statistics": statistics,
        "spec": spec,
        "of_rows": RowFacts.from_plain(data),
        "remarks": tuple(note for note in map(str, data["notes"]) if note not in derived),
        "lost": frozenset(Lost[name] for name in data["lost"]),
        "kept_numbers": read or None,
    }


def _has_numbers_like_integers(labels: Sequence[Any]) -> bool:
    """True for booleans or whole floats among the labels, which cmtrack 0.2 hashed as their texts."""
    return any(type(same_label(label)) is not type(label) for label in labels)


def _with_digest_of_values(statistics: Statistics, weights_are: str | None) -> Statistics:
    """The statistics of a file of cmtrack 0.2 with a digest that today's evaluations can have."""
    matrix = statistics.matrix
    rows = matrix.counts.sum(axis=1).astype(np.int64) if weights_are is None else None
    return replace(
        statistics, digest=LabelDigest.from_stored(statistics.digest, rows, matrix.labels)
    )


def _weights_of_old(statistics: Statistics, none: Any) -> str | None:
    """Kind of the weights of an evaluation that an earlier version wrote: whole numbers meant repeated rows."""
    if statistics.has_sampling_weights:
        return SAMPLING
    weighted = none is None and statistics.matrix.total != statistics.digest.rows
    return FREQUENCY if weighted else None


def _read_labels(labels: Any) -> tuple[Any, ...]:
    if not isinstance(labels, list) or not all(
        isinstance(label, (str, int, float)) for label in labels
    ):
        raise ValueError(f"labels must be texts or numbers, got {labels!r:.80}")
    if not all(math.isfinite(label) for label in labels if isinstance(label, float)):
        raise ValueError(f"labels that are numbers must be finite, got {labels!r:.80}")
    if len(set(labels)) < len(labels):
        raise ValueError(f"labels must be distinct, got {labels!r:.80}")
    return tuple(labels)


# -- statistics ----------------------------------------------------------------------------------------------


def _check_whole(statistics: Statistics) -> None:
    """Refuse fractions and numbers beyond 2**63 where rows were counted, or repeated rows."""
    parts = {}
    if not statistics.has_sampling_weights:
        parts = {"matrix": statistics.matrix.counts, **_counts_of(statistics)}
    for name in ("target", "target_tops", "labelled", "labelled_tops"):
        if (part := getattr(statistics, name)) is not None:
            parts[name] = part.sums if isinstance(part, TopScoreCounts) else part.counts
    for name, counts in parts.items():
        if name.startswith("target"):  # of rows that several models scored, shares
            if counts.max(initial=0) >= 2.0**63:
                raise ValueError(f"target must be fewer than 2**63 rows, got {counts.max():g}")
        elif counts.dtype.kind == "f" and not_whole(counts).any():
            raise ValueError(
                f"{name} must be whole numbers of rows below 2**63, unless weights are fractions"
            )


def _counts_of(statistics: Statistics) -> dict[str, npt.NDArray[Any]]:
    """Parts of the statistics that count the evaluated rows, each of them once."""
    counts: dict[str, Any] = {
        name: part.n
        for name in ("moments", "score_moments", "losses")
        if (part := getattr(statistics, name)) is not None
    }
    counts |= {
        name: part.counts
        for name in ("scores", "decisions")
        if (part := getattr(statistics, name)) is not None
    }
    counts |= {
        name: part.table.sums
        for name in ("tops", "ranks")
        if (part := getattr(statistics, name)) is not None
    }
    for name in ("hits", "class_scores"):
        tables = getattr(getattr(statistics, name), "tables", ())
        counts |= {f"{name} {k}": table.counts for k, table in enumerate(tables)}
    for column, one in ({} if statistics.segments is None else statistics.segments.columns).items():
        parts = {"moments": one.moments, "losses": one.losses}
        counts |= {
            f"{name} of {column!r:.80}": part.n for name, part in parts.items() if part is not None
        }
        counts |= {} if one.ranks is None else {f"ranks of {column!r:.80}": one.ranks.counts}
    return counts


def _check_probable(name: str, moments: ScoreMoments | None, total: float) -> None:
    """Refuse means and central moments that scores between 0 and 1 cannot have."""
    if moments is None:
        return
    largest = max(
        float(np.abs(part).max(initial=0.0)) for part in (moments.m2, moments.m3, moments.m4)
    )
    if np.abs(moments.mean).max(initial=0.0) > _SUM_OF_ROW or largest > total * _SUM_OF_ROW:
        raise ValueError(f"{name} must be of scores between 0 and 1")


# -- rows: a compact Parquet file ---------------------------------------------------------------------

_PROBABILITY = "prob/"
_TEXTS, _NUMBERS = ("y_true", "y_pred"), ("sample_weight", "group")
_IDS, _HASHES = "row_id", "row_hash"
_SEGMENT = "segment/"


def predictions_size(rows: Predictions | SpanRows) -> int:
    """Bytes of the uncompressed columns."""
    if isinstance(rows, SpanRows):
        return len(rows.matches) * 16
    columns = 0 if rows.probabilities is None else rows.probabilities.shape[1]
    ids = rows.ids.values.nbytes if rows.ids is not None and rows.ids.stored else 0
    return (
        len(rows)
        * (
            8
            + _score_type(rows).itemsize * columns
            + sum(_code_type(one).itemsize for one in rows.segments)
        )
        + ids
    )


def _score_type(rows: Predictions) -> np.dtype[Any]:
    """The type of stored probabilities, or of decision values."""
    is_decision = rows.source is not None and rows.source.ranking_only
    return np.dtype(np.float64 if is_decision else np.float32)


def _code_type(segments: SegmentRows) -> np.dtype[Any]:
    """The smallest type that numbers the segments of a column."""
    return np.min_scalar_type(max(len(segments.values) - 1, 0))


def write_predictions(path: Path | BinaryIO, rows: Predictions | SpanRows) -> None:
    """Write columns y_true, y_pred, sample_weight, group, ``prob/<label>``, ``segment/<column>``, and stored row ids.

    Labels are dictionary-coded texts in the order of the evaluation's labels; probabilities are float32, decision
    values float64, since those far from 0 would be tied in single precision. Of segments
    the places in :attr:`SegmentCounts.values` of the evaluation's statistics are written, which hold their values.
    """
    pa, _ = archive.parquet()
    rows = rows.matches if isinstance(rows, SpanRows) else rows
    texts = pa.array([str(label) for label in rows.labels])
    table: dict[str, Any] = {
        name: pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), texts)
        for name, codes in (("y_true", rows.actual), ("y_pred", rows.predicted))
    }
    if rows.design.weights is not None:
        table["sample_weight"] = rows.design.weights
    if rows.design.clusters is not None:
        table["group"] = rows.design.clusters
    if rows.ids is not None and rows.ids.stored:
        hashed = rows.ids.hashed
        table[_HASHES if hashed else _IDS] = (
            rows.ids.values if hashed else list(map(str, rows.ids.values.tolist()))
        )
    if rows.probabilities is not None:
        kind = _score_type(rows)
        for k, label in enumerate(rows.labels):
            table[f"{_PROBABILITY}{label}"] = rows.probabilities[:, k].astype(kind)
    for one in rows.segments:
        table[f"{_SEGMENT}{one.name}"] = one.codes.astype(_code_type(one))
    archive.write_table(path, table)


def file_without_probabilities(content: bytes) -> bytes:
    """The file of rows without its probabilities and row ids; the same bytes where it has none."""
    return _file_without(
        content, lambda name: name.startswith(_PROBABILITY) or name in (_IDS, _HASHES)
    )


def file_without_ids(content: bytes, hashes: bool) -> bytes:
    """The file of rows without its row ids, and without hashes of them too; the same bytes where it has none."""
    return _file_without(content, lambda name: name == _IDS or (hashes and name == _HASHES))


def _file_without(content: bytes, dropped: Callable[[str], bool]) -> bytes:
    """The file without some of its columns."""
    pa, pq = archive.parquet()
    try:
        names = pq.read_schema(pa.BufferReader(content)).names
    except Exception as error:
        raise ValueError(f"the predictions are damaged: {type(error).__name__}: {error}") from None
    if not any(map(dropped, names)):
        return content
    file = BytesIO()
    more = (name for name in names if name.startswith((_SEGMENT, _PROBABILITY)))
    texts, numbers = (
        [n for n in kind if not dropped(n)]
        for kind in ((*_TEXTS, _IDS), (*_NUMBERS, _HASHES, *more))
    )
    pq.write_table(archive.checked_table(content, None, texts, numbers), file, compression="zstd")
    return file.getvalue()


def read_predictions(content: bytes, evaluation: Evaluation) -> Predictions | SpanRows:
    """Read what :func:`write_predictions` wrote for an evaluation, from the file's bytes."""
    spans = evaluation.none is not None
    expected = (
        int(evaluation.statistics.matrix.total) if spans else evaluation.statistics.digest.rows
    )
    names = {str(label): k for k, label in enumerate(evaluation.labels)}
    columns = [f"{_PROBABILITY}{label}" for label in evaluation.labels]
    segments = (
        []
        if evaluation.statistics.segments is None
        else list(evaluation.statistics.segments.columns)
    )
    numbers = (*_NUMBERS, *(f"{_SEGMENT}{name}" for name in segments))
    table = archive.checked_table(content, expected, (*_TEXTS, _IDS), (*numbers, *columns, _HASHES))
    try:
        codes = {column: _codes(table[column], names) for column in _TEXTS}
        probabilities = None
        if columns[0] in table.column_names:
            given = np.column_stack([table[c].to_numpy() for c in columns])
            probabilities = given.astype(np.float64)
            # cmtrack 0.2 wrote them
            if evaluation.statistics.ranking_only and given.dtype == np.float32:
                probabilities = given_to_old(probabilities)
        optional = {
            name: table[name].to_numpy() if name in table.column_names else None for name in numbers
        }
    except Exception as error:
        raise ValueError(f"the predictions are damaged: {type(error).__name__}: {error}") from None
    weights = _weights(optional["sample_weight"])
    clusters = optional["group"]
    if clusters is not None:
        clusters = _codes_below(1 << 31, clusters, "i", "groups that are whole numbers from 0")
    design = Design(len(codes["y_true"]), weights, clusters)
    _check_same(codes["y_true"], codes["y_pred"], weights, evaluation)
    ranking_only = evaluation.statistics.ranking_only
    if probabilities is not None:
        normalize = DECISIONS if ranking_only else False
        read = as_probabilities(
            probabilities, evaluation.labels, expected, what="the predictions", normalize=normalize
        )
        probabilities = read.array
    rows = Predictions.from_arrays(
        evaluation.labels,
        codes["y_true"],
        codes["y_pred"],
        design,
        probabilities,
        ranking_only,
    )
    if not spans:
        named = {name: optional[f"{_SEGMENT}{name}"] for name in segments}
        return replace(rows, segments=_segments(named, evaluation), ids=_ids(table, evaluation))
    size = evaluation.statistics.digest.rows + OTHER_DOCUMENTS
    if not design.has_clusters or int(design.units.max(initial=0)) >= size:
        raise ValueError(
            f"the predictions must name documents below {size}, as the evaluation of spans has them"
        )
    return SpanRows(rows, size)


def _ids(table: Any, evaluation: Evaluation) -> RowIds | None:
    """The ids of the rows, which must have the evaluation's digest; or hashes of them, each of one row."""
    column = next((name for name in (_IDS, _HASHES) if name in table.column_names), None)
    if column is None:
        return None
    values = table[column].to_numpy()
    if column == _HASHES:
        if values.dtype != np.uint64 or len(np.unique(values)) < len(values):
            raise ValueError(
                "the predictions must have hashes of row ids that are whole numbers, each of one row"
            )
        return RowIds(values, hashed=True, stored=True)
    digest = evaluation.statistics.row_ids
    if digest is None or (
        digest.ordered and LabelDigest.from_codes(*encode_row_ids(values, len(values))) != digest
    ):
        raise ValueError("the predictions must have the row ids of the evaluation: they are others")
    return RowIds(values, stored=True)


def _weights(column: npt.NDArray[Any] | None) -> FloatArray | IntArray | None:
    if column is None:
        return None
    if column.dtype.kind not in "if" or not np.isfinite(column).all() or column.min(initial=0) < 0:
        raise ValueError("the predictions must have weights that are finite and not negative")
    return column.astype(np.int64) if column.dtype.kind == "i" else column.astype(np.float64)


def _codes_below(size: int, column: npt.NDArray[Any], kinds: str, words: str) -> IntArray:
    if (
        column.dtype.kind not in kinds
        or not 0 <= column.min(initial=0) <= column.max(initial=0) < size
    ):
        raise ValueError(f"the predictions must have {words}")
    return column.astype(np.int64)


def _segments(
    columns: dict[str, npt.NDArray[Any] | None], evaluation: Evaluation
) -> tuple[SegmentRows, ...]:
    """The segment of each row by each column; none of files of earlier versions, which do not hold them."""
    counted = evaluation.statistics.segments
    if counted is None or all(column is None for column in columns.values()):
        return ()
    columns_read = []
    for name, column in columns.items():
        values = counted.columns[name].values
        if column is None:
            raise ValueError(
                f"the predictions must have the segments by {name!r:.80}, as those by others"
            )
        words = f"segments by {name!r:.80} that are whole numbers from 0 to {len(values) - 1}"
        columns_read.append(
            SegmentRows(name, values, _codes_below(len(values), column, "iu", words))
        )
    return tuple(columns_read)


def _check_same(
    actual: IntArray,
    predicted: IntArray,
    weights: FloatArray | IntArray | None,
    evaluation: Evaluation,
) -> None:
    """Refuse rows of another evaluation: they must give its counts, and their labels its digest."""
    statistics = evaluation.statistics
    counts = count_pairs(Codes(actual), Codes(predicted), len(evaluation.labels), weights)
    same = np.allclose(counts, statistics.matrix.counts, rtol=1e-9, atol=1e-9)
    if same and evaluation.none is None:
        same = statistics.digest.is_of(actual, evaluation.labels)
    if not same:
        raise ValueError(
            "the predictions must give the evaluation's counts: they are of another evaluation"
        )


def _codes(column: Any, names: dict[str, int]) -> IntArray:
    """Class codes of a column of texts, by its dictionary."""
    encoded = column.combine_chunks()
    if not hasattr(encoded, "dictionary"):
        encoded = encoded.dictionary_encode()
    place = np.array([names[text] for text in encoded.dictionary.to_pylist()], dtype=np.int64)
    return place[encoded.indices.to_numpy(zero_copy_only=False)]
