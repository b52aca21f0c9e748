"""An evaluation as one versioned JSON file: statistics to compute from, numbers to read."""

from __future__ import annotations

import base64
import json
import math
import os
import warnings
import zlib
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cmtrack import untrusted
from cmtrack.evaluation.steps import scored_step
from cmtrack.grouping import Grouping
from cmtrack.metrics.own import from_data as own_from_data
from cmtrack.schemas import EVALUATION
from cmtrack.statistics import ConfusionMatrix, LabelDigest, ScoreCounts, ScoreMoments
from cmtrack.statistics.collected import Statistics
from cmtrack.statistics.cross_moments import CrossMoments
from cmtrack.statistics.scores import grid_centres
from cmtrack.statistics.top_scores import CELLS, TopScoreCounts

if TYPE_CHECKING:
    from cmtrack.evaluation.face import Judged
    from cmtrack.evaluation.result import Evaluation

SCHEMA = EVALUATION.newest
FILE_NAME = "cmtrack_evaluation.json"
ROWS_NAME = "cmtrack_predictions.parquet"
MAX_ROWS_BYTES = 32 << 20
"""Most bytes of rows, before compression, that are kept where that is left to cmtrack ("auto")."""
KIND = "classes"
"""Of single labels; files without a kind are of this one."""
_OWNERS = {KIND: "Evaluation.load", "families": "FamilyEvaluation.load"}
DAMAGED = (
    KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, RecursionError, zlib.error,
)  # fmt: skip
"""What reading a file that was changed by others may end in."""

MAX_BYTES = 4 << 30
"""Largest file that is read."""

_PLAIN_SIZE = 512
_MOST_BYTES_OF_ROWS = 4 << 30
_MAX_ARRAYS = 1 << 30
"""Bytes of the largest array, and of all arrays together beside those that grow with the square of the classes."""
_BY_SQUARE = 16 * (5 + 4 * 64)
"""Bytes of the latter per squared class: the counts, four moments, four tables of 64 cells; twice where weighted."""


def save(evaluation: Evaluation, directory: Path, keep_rows: bool | str = "auto") -> Path:
    """Write the file, and that of the rows beside it, each whole or not at all."""
    from cmtrack.evaluation.rows import predictions_size, write_predictions

    return save_with_rows(evaluation, directory, keep_rows, predictions_size, write_predictions)


def load(path: Path, with_rows: bool = True) -> Evaluation:
    """Read the file, or the file of that name in a folder, and that of the rows beside it."""
    from cmtrack.evaluation.rows import read_predictions

    evaluation: Evaluation = load_with_rows(loads(read_file(path)), path, read_predictions if with_rows else None)
    return evaluation


def save_with_rows(
    evaluation: Any,
    directory: Path,
    keep_rows: bool | str,
    size: Callable[[Any], int],
    write: Callable[[Path, Any], None],
) -> Path:
    """Write an evaluation's text, and its rows beside it where they are wanted.

    The rows of an evaluation that stood there before are removed first: rows never stand beside another evaluation.

    Raises
    ------
    ValueError
        If rows must be kept and there are none, or ``keep_rows`` is none of "auto", True and False.
    """
    if not (isinstance(keep_rows, bool) or keep_rows == "auto"):
        raise ValueError(f'rows must be "auto", True or False, got {keep_rows!r}')
    rows = evaluation.rows
    if keep_rows is True and rows is None:
        raise ValueError("rows=True needs an evaluation with rows, this one has none (loaded without them, or merged)")
    target = directory / ROWS_NAME
    target.unlink(missing_ok=True)
    path = write_file(evaluation.to_json(), directory)
    if rows is None or keep_rows is False:
        return path
    needed = size(rows)
    if keep_rows == "auto" and needed > MAX_ROWS_BYTES:
        warnings.warn(
            f"the rows are not kept: they need {needed / 2**20:,.0f} MB, and up to {MAX_ROWS_BYTES >> 20} MB are kept "
            "by default (rows=True keeps them); without them, comparisons of the loaded evaluation are not paired",
            UserWarning,
            stacklevel=4,
        )
        return path
    partial = target.with_name(f".{ROWS_NAME}.{os.getpid()}")
    write(partial, rows)
    os.replace(partial, target)
    return path


def load_with_rows(evaluation: Any, path: Path, read: Callable[[bytes, Any], Any] | None) -> Any:
    """The evaluation with the rows that stand beside its file, where there are any.

    Raises
    ------
    ValueError
        If they are damaged, or of another evaluation.
    """
    file = (path if path.is_dir() else path.parent) / ROWS_NAME
    if read is None or not file.exists():
        return evaluation
    try:
        return replace(evaluation, rows=read(untrusted.read_file(file, _MOST_BYTES_OF_ROWS), evaluation))
    except (OSError, ValueError) as error:
        raise ValueError(f"{file}: {error}; rows=False loads the evaluation without its rows") from None


def write_file(text: str, directory: Path) -> Path:
    """Write an evaluation's text into a folder, whole or not at all."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / FILE_NAME
    partial = path.with_name(f".{FILE_NAME}.{os.getpid()}")
    partial.write_text(text, encoding="utf-8")
    os.replace(partial, path)
    return path


def read_file(path: Path) -> str:
    """The text of the file, or of the file of that name in a folder."""
    if path.is_dir():
        path = path / FILE_NAME
    if not path.is_file():
        raise FileNotFoundError(f"there is no evaluation at {path}")
    try:
        return untrusted.read_file(path.resolve(), MAX_BYTES).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"this is no evaluation of cmtrack: {error}") from None


def dumps(evaluation: Evaluation) -> str:
    """The JSON text. NaN is written as null."""
    return json.dumps(
        {
            "schema": SCHEMA,
            "kind": KIND,
            "labels": list(evaluation.labels),
            "positive": evaluation.positive,
            **({} if evaluation.none is None else {"none": evaluation.none}),
            **({} if evaluation.sections is None else {"sections": list(evaluation.sections)}),
            "grouping": None if evaluation.grouping is None else evaluation.grouping.to_dict(),
            "confidence_level": evaluation.confidence_level,
            "notes": list(evaluation.notes),
            "cluster_errors": evaluation.cluster_errors,
            **({"extra_metrics": evaluation.extra_data()} if evaluation.extra_metrics else {}),
            **to_read(evaluation),
            "statistics": _write(evaluation.statistics),
        },
        ensure_ascii=False,
        allow_nan=False,
    )


def to_read(evaluation: Judged) -> dict[str, Any]:
    """What every kind of evaluation writes for people and other programs; it follows from the statistics."""
    return {
        "labels_digest": evaluation.labels_digest,
        "metrics": {name: value if math.isfinite(value) else None for name, value in evaluation.metrics.items()},
        "intervals": {name: list(ends) for name, ends in evaluation.intervals.items()},
        "undefined": evaluation.undefined,
        "warnings": list(evaluation.warnings),
    }


def loads(text: str) -> Evaluation:
    """Read :func:`dumps`.

    Raises
    ------
    ValueError
        If the text is damaged, of another kind, or of a newer schema.
    """
    return from_data(parse(text, KIND))


def from_data(data: dict[str, Any]) -> Evaluation:
    """The evaluation that plain data of :func:`parse` hold.

    Raises
    ------
    ValueError
        If they are damaged.
    """
    from cmtrack.evaluation.result import Evaluation

    try:
        labels, grouping = _read_labels(data["labels"]), data["grouping"]
        level = read_level(data["confidence_level"])
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
    except DAMAGED as error:
        raise ValueError(f"the evaluation is damaged: {type(error).__name__}: {error}") from None


def parse(text: str, kind: str | None = None) -> dict[str, Any]:
    """The plain data of an evaluation's text.

    Parameters
    ----------
    kind : str, optional
        The kind that it must be of.

    Raises
    ------
    ValueError
        If the text is no evaluation, of a newer schema, or of another kind.
    """
    try:
        data: dict[str, Any] = untrusted.parsed_json(text)
        data["schema"]
        found = data.get("kind", KIND)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"this is no evaluation of cmtrack: {error}") from None
    data = EVALUATION.migrated(data)
    if not isinstance(found, str):
        raise ValueError(f"the evaluation is damaged: its kind must be a text, got {found!r:.40}")
    if kind is not None and found != kind:
        raise ValueError(
            f"this is an evaluation of the kind {found!r}, not {kind!r}: "
            f"{_OWNERS.get(found, 'a newer cmtrack')} reads it"
        )
    try:
        _check_sizes(data)
    except ValueError as error:
        raise ValueError(f"the evaluation is damaged: {error}") from None
    return data


def _check_sizes(data: dict[str, Any]) -> None:
    """Refuse an evaluation whose arrays are larger, once unpacked, than its classes make them; nothing is unpacked."""
    labels, total, waiting = data.get("labels"), 0, [data.get("statistics")]
    while waiting:
        found = waiting.pop()
        if not isinstance(found, dict):
            continue
        if "zlib" in found:
            total += untrusted.array_bytes(found.get("shape"), _MAX_ARRAYS)
        waiting += found.values()
    classes = len(labels) if isinstance(labels, list) else 0
    allowed = _MAX_ARRAYS + _BY_SQUARE * classes**2
    if total > allowed:
        raise ValueError(f"its arrays must have at most {allowed:,} bytes, got {total:,}")


def _read_labels(labels: Any) -> tuple[Any, ...]:
    if not isinstance(labels, list) or not all(isinstance(label, (str, int, float)) for label in labels):
        raise ValueError(f"labels must be texts or numbers, got {labels!r:.80}")
    if len(set(labels)) < len(labels):
        raise ValueError("labels must be distinct")
    return tuple(labels)


def read_level(level: Any) -> float:
    """A confidence level out of a file."""
    if not 0 < float(level) < 1:
        raise ValueError(f"confidence_level must lie between 0 and 1, got {level!r}")
    return float(level)


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
            out[item.name] = encode_array(value.counts)
        elif isinstance(value, LabelDigest):
            out[item.name] = str(value)
        elif isinstance(value, ScoreMoments):
            out[item.name] = {f.name: encode_array(getattr(value, f.name)) for f in fields(value)}
        elif isinstance(value, ScoreCounts):
            out[item.name] = {
                "exact": value.exact,
                "counts": encode_array(value.counts),
                **({"values": encode_array(value.values)} if value.exact else {}),
            }
        elif isinstance(value, TopScoreCounts):
            out[item.name] = encode_array(value.counts)
        elif isinstance(value, CrossMoments):
            out[item.name] = encode_array(value.sums)
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
            kept[name] = ConfusionMatrix(decode_array(value, (size, size)), labels)
        elif name in ("digest", "row_ids"):
            kept[name] = LabelDigest.parse(value)
        elif name in ("moments", "score_moments"):
            kept[name] = _read_moments(value, size if name == "moments" else 2)
        elif name in ("scores", "labelled", "target"):
            kept[name] = _read_scores(value)
        elif name in ("tops", "labelled_tops", "target_tops"):
            kept[name] = TopScoreCounts(decode_array(value, (None, size, CELLS)))
        elif name == "cross":
            kept[name] = CrossMoments(decode_array(value, (size, 2 * size + 1, 2 * size + 1)))
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
        **{name: decode_array(value, (rows,) if name == "n" else (rows, None)) for name, value in data.items()}
    )
    if moments.n.shape != (rows,) or any(
        getattr(moments, name).shape != moments.mean.shape or len(moments.mean) != rows for name in ("m2", "m3", "m4")
    ):
        raise ValueError(f"moments must have {rows} rows, got {moments.n.shape} and {moments.mean.shape}")
    return moments


def _read_scores(data: dict[str, Any]) -> ScoreCounts:
    exact = bool(data["exact"])
    values = decode_array(data["values"], (None,)) if exact else grid_centres()
    counts = decode_array(data["counts"], (None, len(values)))
    return ScoreCounts(values, counts, exact)


def encode_array(array: npt.NDArray[Any]) -> Any:
    """Small arrays as nested lists, large ones as compressed little-endian bytes."""
    if array.size <= _PLAIN_SIZE:
        return array.tolist()
    kind = "<i8" if array.dtype.kind == "i" else "<f8"
    packed = zlib.compress(np.ascontiguousarray(array, dtype=kind).tobytes(), 6)
    return {"dtype": kind, "shape": list(array.shape), "zlib": base64.b64encode(packed).decode("ascii")}


def decode_array(data: Any, expected: tuple[int | None, ...] | None = None) -> npt.NDArray[Any]:
    """Read :func:`encode_array`.

    Parameters
    ----------
    data : list or dict
    expected : tuple of int or None, optional
        The shape that it must have, None for any length; what has another is not unpacked.

    Raises
    ------
    ValueError
        If the data are damaged, or of another shape.
    """
    if isinstance(data, list):
        array = np.array(data)
        if array.dtype.kind not in "if":
            raise ValueError(f"an array must hold numbers, got {array.dtype}")
        _check_shape(array.shape, expected)
        return array.astype(np.int64 if array.dtype.kind == "i" else np.float64)
    kind, size = data["dtype"], untrusted.array_bytes(data["shape"], _MAX_ARRAYS)
    if kind not in ("<i8", "<f8"):
        raise ValueError(f"an array of {kind!r:.20} is not read")
    shape = tuple(data["shape"])
    _check_shape(shape, expected)
    return np.frombuffer(untrusted.unpacked(data["zlib"], size), dtype=kind).reshape(shape).astype(kind[1:])


def _check_shape(shape: tuple[int, ...], expected: tuple[int | None, ...] | None) -> None:
    if expected is None:
        return
    if len(shape) != len(expected) or any(want not in (None, n) for want, n in zip(expected, shape, strict=True)):
        wanted = ", ".join("any" if want is None else str(want) for want in expected)
        raise ValueError(f"an array must have shape ({wanted}), got {shape}")
