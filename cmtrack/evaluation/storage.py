"""Storage of an evaluation of classes as plain data, and of its rows as a file."""

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
from cmtrack.statistics import ConfusionMatrix, LabelDigest, ScoreMoments
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

_LABELS_HASHED = "labels_hashed"
_BY_VALUE = "by value"
"""Value of ``labels_hashed`` for boolean or whole-float labels; cmtrack 0.2 did not store it."""

_SUM_OF_ROW = 1.05
"""Limit of a group's stored probability, because rows with a larger sum are rejected."""
_ROUNDING = 1e-9
"""Relative size, per row, up to which a negative sum of squares counts as a rounding error."""


def stored(evaluation: Evaluation) -> dict[str, Any]:
    """Return the fields of an :class:`Evaluation` as plain data, without its statistics."""
    labels = evaluation.labels
    fields: dict[str, Any] = {"labels": list(labels)}
    if _has_numbers_like_integers(labels) and evaluation.statistics.digest.stored is None:
        fields[_LABELS_HASHED] = _BY_VALUE
    fields |= evaluation.spec.to_plain()
    fields["notes"] = list(evaluation.remarks)
    fields["lost"] = sorted(lost.name for lost in evaluation.lost)
    fields |= evaluation.row_facts.to_plain()
    custom = {metric.name for metric in evaluation.extra_metrics}
    if custom:
        fields["extra_metrics"] = evaluation.extra_data()
    numbers = evaluation.kept_numbers or {}
    # Built-in metrics that are undefined in this order of the classes, each with the reason.
    other_order = {name: kept.reason for name, kept in numbers.items() if name not in custom}
    if other_order:
        fields["of_another_order"] = other_order
    return fields


def fields_of(data: dict[str, Any]) -> dict[str, Any]:
    """Read the fields of an :class:`Evaluation` from data that :mod:`cmtrack.archive` parsed."""
    labels = _read_labels(data["labels"])
    for name in ("positive", "grouping", "confidence_level"):  # in files of every schema
        if name not in data:
            raise KeyError(name)
    spec = Spec.from_plain(data).with_reference_of(labels).with_scores_of(labels)
    custom, numbers = own_from_data(data.get("extra_metrics", []), spec.confidence_level)
    for name, reason in data.get("of_another_order", {}).items():
        numbers[name] = Kept(math.nan, None, None, spec.confidence_level, str(reason))
    statistics = Statistics.from_plain(data["statistics"], labels)
    if spec.none is not None and spec.none not in labels:
        raise ValueError(f'the class that means "no span" must be a label, got {spec.none!r:.40}')
    _check_whole(statistics)
    if not statistics.ranking_only:
        _check_probable(statistics)
        if statistics.squares is not None:
            _check_probable(statistics.squares)
    weights_are = _read_weights_are(spec, statistics)
    spec = replace(spec, extra_metrics=custom, weights_are=weights_are)
    if spec.threshold is not None and not statistics.ranking_only:
        check_threshold_of_probabilities(spec.threshold)
    is_by_value = data.get(_LABELS_HASHED) == _BY_VALUE or spec.none is not None
    if not is_by_value and _has_numbers_like_integers(labels):
        statistics = _with_digest_of_values(statistics, weights_are)
    # These calls raise an error if the positive group, the grouping or the costs do not match the
    # labels.
    scored_step(labels, spec.grouping, spec.positive)
    if spec.costs is not None:
        spec.costs.matrix(labels, spec.grouping)
    # The statistics produce the notes on segments again, so the stored copies are dropped.
    derived = () if statistics.segments is None else statistics.segments.notes
    notes = [str(note) for note in data["notes"]]
    return {
        "statistics": statistics,
        "spec": spec,
        "of_rows": RowFacts.from_plain(data),
        "remarks": tuple(note for note in notes if note not in derived),
        "lost": frozenset(Lost[name] for name in data["lost"]),
        "kept_numbers": numbers or None,
    }


def _has_numbers_like_integers(labels: Sequence[Any]) -> bool:
    """Return True if labels are booleans or whole floats; cmtrack 0.2 hashed these as texts."""
    return any(type(same_label(label)) is not type(label) for label in labels)


def _with_digest_of_values(statistics: Statistics, weights_are: str | None) -> Statistics:
    """Add the digest that the current version would compute to statistics of cmtrack 0.2."""
    matrix = statistics.matrix
    rows = matrix.counts.sum(axis=1).astype(np.int64) if weights_are is None else None
    return replace(
        statistics, digest=LabelDigest.from_stored(statistics.digest, rows, matrix.labels)
    )


def _read_weights_are(spec: Spec, statistics: Statistics) -> str | None:
    """Return the kind of the weights; raise ValueError if the statistics have a different kind.

    Early versions of cmtrack did not store the kind of the weights. In files of early versions,
    weights that are whole numbers stand for repeated rows.
    """
    has_sampling_weights = statistics.has_sampling_weights
    if spec.weights_are is not None:
        if (spec.weights_are == SAMPLING) != has_sampling_weights:
            raise ValueError(
                "statistics must have sums of squares if the weights are sampling weights, and "
                f"none otherwise, got {spec.weights_are} weights"
            )
        return spec.weights_are
    if has_sampling_weights:
        return SAMPLING
    is_weighted = spec.none is None and statistics.matrix.total != statistics.digest.rows
    return FREQUENCY if is_weighted else None


def _read_labels(labels: Any) -> tuple[Any, ...]:
    is_list = isinstance(labels, list)
    if not is_list or not all(isinstance(label, (str, int, float)) for label in labels):
        raise ValueError(f"labels must be strings or numbers, got {labels!r:.80}")
    if not all(math.isfinite(label) for label in labels if isinstance(label, float)):
        raise ValueError(f"labels that are numbers must be finite, got {labels!r:.80}")
    if len(set(labels)) < len(labels):
        raise ValueError(f"labels must be distinct, got {labels!r:.80}")
    return tuple(labels)


# -- statistics ----------------------------------------------------------------------------------


def _check_whole(statistics: Statistics) -> None:
    """Raise ValueError if counts are fractions or above 2**63, unless they are weighted."""
    parts = {}
    if not statistics.has_sampling_weights:
        parts = {"matrix": statistics.matrix.counts, **_counts_of(statistics)}
    for name in ("target", "target_tops", "labelled", "labelled_tops"):
        part = getattr(statistics, name)
        if part is not None:
            parts[name] = part.sums if isinstance(part, TopScoreCounts) else part.counts
    for name, counts in parts.items():
        # If several models scored a target, each row is split into equal parts, one part for each
        # model.
        if name.startswith("target"):
            if counts.max(initial=0) >= 2.0**63:
                raise ValueError(f"target must have fewer than 2**63 rows, got {counts.max():g}")
        elif counts.dtype.kind == "f" and not_whole(counts).any():
            raise ValueError(
                f"{name} must contain whole numbers of rows below 2**63, unless the weights "
                "are fractions"
            )


def _counts_of(statistics: Statistics) -> dict[str, npt.NDArray[Any]]:
    """Return the parts of the statistics that count every evaluated row exactly once."""
    counts: dict[str, npt.NDArray[Any]] = {}
    for name in ("moments", "score_moments", "losses", "scores", "decisions", "tops", "ranks"):
        part = getattr(statistics, name)
        if part is None:
            continue
        if name in ("tops", "ranks"):
            counts[name] = part.table.sums
        elif name in ("scores", "decisions"):
            counts[name] = part.counts
        else:
            counts[name] = part.n
    for name in ("hits", "class_scores"):
        tables = getattr(getattr(statistics, name), "tables", ())
        counts |= {f"{name} {k}": table.counts for k, table in enumerate(tables)}
    if statistics.segments is None:
        return counts
    for column, segment in statistics.segments.columns.items():
        of_column = f"of {column!r:.80}"
        for name, part in (("moments", segment.moments), ("losses", segment.losses)):
            if part is not None:
                counts[f"{name} {of_column}"] = part.n
        if segment.ranks is not None:
            counts[f"ranks {of_column}"] = segment.ranks.counts
    return counts


def _check_probable(statistics: Statistics) -> None:
    """Raise ValueError if moments are impossible for scores between 0 and 1."""
    total = float(statistics.matrix.total)
    for name in ("moments", "score_moments"):
        moments: ScoreMoments | None = getattr(statistics, name)
        if moments is None:
            continue
        largest = max(
            float(np.abs(part).max(initial=0.0)) for part in (moments.m2, moments.m3, moments.m4)
        )
        mean = np.abs(moments.mean).max(initial=0.0)
        # Sums of even powers can only be negative because of rounding when statistics are merged.
        least = min(float(part.min(initial=0.0)) for part in (moments.m2, moments.m4))
        is_negative = least < -_ROUNDING * total
        if mean > _SUM_OF_ROW or largest > total * _SUM_OF_ROW or is_negative:
            raise ValueError(f"{name} must be moments of scores between 0 and 1")


# -- rows: a compact Parquet file ----------------------------------------------------------------

_PROBABILITY = "prob/"
_TEXTS = ("y_true", "y_pred")
_NUMBERS = ("sample_weight", "group")
_IDS = "row_id"
_HASHES = "row_hash"
_SEGMENT = "segment/"


def predictions_size(rows: Predictions | SpanRows) -> int:
    """Return the size of the uncompressed columns in bytes."""
    if isinstance(rows, SpanRows):
        return len(rows.matches) * 16  # two labels of 4 bytes and a document of 8 bytes
    row_size = 8  # two labels of 4 bytes
    if rows.probabilities is not None:
        row_size += _score_type(rows).itemsize * rows.probabilities.shape[1]
    row_size += sum(_code_type(segments).itemsize for segments in rows.segments)
    size = len(rows) * row_size
    if rows.ids is not None and rows.ids.stored:
        size += rows.ids.values.nbytes
    return size


def _score_type(rows: Predictions) -> np.dtype[Any]:
    """Return the type in which probabilities or decision values are stored."""
    is_decision = rows.source is not None and rows.source.ranking_only
    return np.dtype(np.float64 if is_decision else np.float32)


def _code_type(segments: SegmentRows) -> np.dtype[Any]:
    """Return the smallest integer type that can represent the positions of a column's segments."""
    return np.min_scalar_type(max(len(segments.values) - 1, 0))


def write_predictions(path: Path | BinaryIO, rows: Predictions | SpanRows) -> None:
    """Write rows to a Parquet file.

    The columns are y_true, y_pred, sample_weight, group, ``prob/<label>``, ``segment/<column>`` and
    row ids. Labels are dictionary-coded texts in the order of the evaluation's labels.
    Probabilities are float32. Decision values are stored as float64, because decision values far
    from 0 could become ties in single precision. Segments are stored as positions in
    :attr:`SegmentCounts.values` of the evaluation's statistics.
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
        if rows.ids.hashed:
            table[_HASHES] = rows.ids.values
        else:
            table[_IDS] = [str(row_id) for row_id in rows.ids.values.tolist()]
    if rows.probabilities is not None:
        kind = _score_type(rows)
        for k, label in enumerate(rows.labels):
            table[f"{_PROBABILITY}{label}"] = rows.probabilities[:, k].astype(kind)
    for segments in rows.segments:
        table[f"{_SEGMENT}{segments.name}"] = segments.codes.astype(_code_type(segments))
    archive.write_table(path, table)


def file_without_probabilities(content: bytes) -> bytes:
    """Remove probabilities and row ids from a file of rows; unchanged if it contains neither."""
    return _file_without(
        content, lambda name: name.startswith(_PROBABILITY) or name in (_IDS, _HASHES)
    )


def file_without_ids(content: bytes, hashes: bool) -> bytes:
    """Remove row ids from a file of rows; the file is unchanged if it contains no ids.

    ``hashes``: True to also remove the hashes of row ids.
    """
    return _file_without(content, lambda name: name == _IDS or (hashes and name == _HASHES))


def _file_without(content: bytes, is_dropped: Callable[[str], bool]) -> bytes:
    pa, pq = archive.parquet()
    try:
        names = pq.read_schema(pa.BufferReader(content)).names
    except Exception as error:
        raise ValueError(f"the predictions are damaged: {type(error).__name__}: {error}") from None
    if not any(is_dropped(name) for name in names):
        return content
    file = BytesIO()
    texts = [name for name in (*_TEXTS, _IDS) if not is_dropped(name)]
    numbers = [*_NUMBERS, _HASHES]
    numbers += [name for name in names if name.startswith((_SEGMENT, _PROBABILITY))]
    numbers = [name for name in numbers if not is_dropped(name)]
    pq.write_table(archive.checked_table(content, None, texts, numbers), file, compression="zstd")
    return file.getvalue()


def read_predictions(content: bytes, evaluation: Evaluation) -> Predictions | SpanRows:
    """Read the rows of an evaluation from the bytes that :func:`write_predictions` wrote."""
    statistics = evaluation.statistics
    is_of_spans = evaluation.none is not None
    expected = int(statistics.matrix.total) if is_of_spans else statistics.digest.rows
    names = {str(label): k for k, label in enumerate(evaluation.labels)}
    scores = [f"{_PROBABILITY}{label}" for label in evaluation.labels]
    segment_names = [] if statistics.segments is None else list(statistics.segments.columns)
    numbers = [*_NUMBERS, *(f"{_SEGMENT}{name}" for name in segment_names)]
    table = archive.checked_table(content, expected, (*_TEXTS, _IDS), (*numbers, *scores, _HASHES))
    try:
        codes = {column: _codes(table[column], names) for column in _TEXTS}
        probabilities = None
        if scores[0] in table.column_names:
            stored_scores = np.column_stack([table[column].to_numpy() for column in scores])
            probabilities = stored_scores.astype(np.float64)
            if statistics.ranking_only and stored_scores.dtype == np.float32:  # cmtrack 0.2
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
    if probabilities is not None:
        probabilities = as_probabilities(
            probabilities,
            evaluation.labels,
            expected,
            what="the predictions",
            normalize=DECISIONS if statistics.ranking_only else False,
        ).array
    rows = Predictions.from_arrays(
        evaluation.labels,
        codes["y_true"],
        codes["y_pred"],
        design,
        probabilities,
        statistics.ranking_only,
    )
    if is_of_spans:
        return _span_rows(rows, statistics.digest.rows + OTHER_DOCUMENTS)
    segments = {name: optional[f"{_SEGMENT}{name}"] for name in segment_names}
    return replace(rows, segments=_segments(segments, evaluation), ids=_ids(table, evaluation))


def _span_rows(rows: Predictions, size: int) -> SpanRows:
    """Convert rows into rows of spans, whose clusters are documents numbered below ``size``."""
    if not rows.design.has_clusters or int(rows.design.units.max(initial=0)) >= size:
        raise ValueError(
            f"the predictions must have document numbers below {size}, the number of documents in "
            "the evaluation"
        )
    return SpanRows(rows, size)


def _ids(table: Any, evaluation: Evaluation) -> RowIds | None:
    """Read the row ids or their hashes, and check them against the evaluation's digest."""
    column = next((name for name in (_IDS, _HASHES) if name in table.column_names), None)
    if column is None:
        return None
    values = table[column].to_numpy()
    if column == _HASHES:
        if values.dtype != np.uint64 or len(np.unique(values)) < len(values):
            raise ValueError(
                "the row-id hashes in the predictions must be whole numbers, and no two rows "
                "may share one"
            )
        return RowIds(values, hashed=True, stored=True)
    digest = evaluation.statistics.row_ids
    is_same = digest is not None
    if digest is not None and digest.ordered:  # only digests of ordered ids can be compared
        is_same = LabelDigest.from_codes(*encode_row_ids(values, len(values))) == digest
    if not is_same:
        raise ValueError("the row ids in the predictions must match the row ids in the evaluation")
    return RowIds(values, stored=True)


def _weights(column: npt.NDArray[Any] | None) -> FloatArray | IntArray | None:
    if column is None:
        return None
    if column.dtype.kind not in "if" or not np.isfinite(column).all() or column.min(initial=0) < 0:
        raise ValueError("the weights in the predictions must be finite and not negative")
    if column.dtype.kind == "i":
        return column.astype(np.int64)
    return column.astype(np.float64)


def _codes_below(size: int, column: npt.NDArray[Any], kinds: str, words: str) -> IntArray:
    is_kind = column.dtype.kind in kinds
    if not is_kind or not 0 <= column.min(initial=0) <= column.max(initial=0) < size:
        raise ValueError(f"the predictions must have {words}")
    return column.astype(np.int64)


def _segments(
    columns: dict[str, npt.NDArray[Any] | None], evaluation: Evaluation
) -> tuple[SegmentRows, ...]:
    """Read the segments of the rows by column; files of earlier versions contain no segments."""
    counted = evaluation.statistics.segments
    if counted is None or all(column is None for column in columns.values()):
        return ()
    segments = []
    for name, column in columns.items():
        values = counted.columns[name].values
        if column is None:
            raise ValueError(
                "the predictions must contain the segments of every column, got none for "
                f"{name!r:.80}"
            )
        words = f"segments by {name!r:.80} that are whole numbers from 0 to {len(values) - 1}"
        codes = _codes_below(len(values), column, "iu", words)
        segments.append(SegmentRows(name, values, codes))
    return tuple(segments)


def _check_same(
    actual: IntArray,
    predicted: IntArray,
    weights: FloatArray | IntArray | None,
    evaluation: Evaluation,
) -> None:
    """Raise ValueError if the counts or the label digest of rows differ from the evaluation."""
    statistics = evaluation.statistics
    pairs = count_pairs(Codes(actual), Codes(predicted), len(evaluation.labels), weights)
    counts = ConfusionMatrix.of_table(pairs, evaluation.labels).counts
    same = np.allclose(counts, statistics.matrix.counts, rtol=1e-9, atol=1e-9)
    if same and evaluation.none is None:
        same = statistics.digest.is_of(actual, evaluation.labels)
    if not same:
        raise ValueError(
            "the predictions do not add up to the counts in the evaluation, so they belong to "
            "another evaluation"
        )


def _codes(column: Any, names: dict[str, int]) -> IntArray:
    """Convert a column of texts to class codes."""
    encoded = column.combine_chunks()
    if not hasattr(encoded, "dictionary"):
        encoded = encoded.dictionary_encode()
    classes = np.array([names[text] for text in encoded.dictionary.to_pylist()], dtype=np.int64)
    return classes[encoded.indices.to_numpy(zero_copy_only=False)]
