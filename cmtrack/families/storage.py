"""A family evaluation as one versioned JSON file: statistics to compute from, numbers to read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from cmtrack.archive import DAMAGED, SCHEMA, decode_array, encode_array, read_level, to_read
from cmtrack.families.counts import FamilyStatistics, PairCounts
from cmtrack.families.hierarchy import Families
from cmtrack.families.tallies import TALLIES, Tallies
from cmtrack.statistics import LabelDigest
from cmtrack.statistics.inputs import IntArray

if TYPE_CHECKING:
    from cmtrack.families.result import FamilyEvaluation


def to_json(evaluation: FamilyEvaluation) -> str:
    """The JSON text. NaN is written as null."""
    families = evaluation.statistics.families
    return json.dumps(
        {
            "schema": SCHEMA,
            "kind": evaluation.kind,
            "families": {"level": families.level, "chosen": families.chosen, "paths": families.paths},
            "matching": evaluation.matching,
            "confidence_level": evaluation.confidence_level,
            "notes": list(evaluation.notes),
            "macro_errors": evaluation.macro_errors,
            **to_read(evaluation),
            "statistics": _write(evaluation.statistics),
        },
        ensure_ascii=False,
        allow_nan=False,
    )


def from_data(data: dict[str, Any]) -> FamilyEvaluation:
    """The evaluation that plain data hold.

    Raises
    ------
    ValueError
        If they are damaged.
    """
    from cmtrack.families.result import FamilyEvaluation

    try:
        errors = data["macro_errors"]
        return FamilyEvaluation(
            _read(data["statistics"], _families(data["families"])),
            matching=str(data["matching"]),
            confidence_level=read_level(data["confidence_level"]),
            notes=tuple(map(str, data["notes"])),
            macro_errors=None if errors is None else {str(name): float(value) for name, value in errors.items()},
        )
    except DAMAGED as error:
        raise ValueError(f"the evaluation is damaged: {type(error).__name__}: {error}") from None


def digest_of_paths(paths: Iterable[tuple[Any, ...]], level: int) -> str:
    """A short digest of codes with their families."""
    text = json.dumps([level, [[str(node) for node in path] for path in paths]])
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _families(data: dict[str, Any]) -> Families:
    paths = tuple(tuple(path) for path in data["paths"])
    if not paths or not all(paths):
        raise ValueError("every code must have a path")
    if not all(isinstance(node, (str, int, float)) for path in paths for node in path):
        raise ValueError("codes and families must be texts or numbers")
    return Families(paths, int(data["level"]), bool(data["chosen"]))


def _write(statistics: FamilyStatistics) -> dict[str, Any]:
    out: dict[str, Any] = {
        "digest": str(statistics.digest),
        "codes": encode_array(statistics.codes),
        "pairs": _write_pairs(statistics.pairs),
        "patterns": encode_array(statistics.patterns),
        "sums": encode_array(statistics.tallies.sums),
        "products": encode_array(statistics.tallies.products),
        "repeated": encode_array(statistics.repeated),
    }
    if statistics.row_ids is not None:
        out["row_ids"] = str(statistics.row_ids)
    if statistics.together is not None and statistics.alone is not None:
        out["together"] = _write_pairs(statistics.together)
        out["alone"] = encode_array(statistics.alone)
    return out


def _write_pairs(pairs: PairCounts) -> dict[str, Any]:
    return {name: encode_array(getattr(pairs, name)) for name in ("keys", "masses", "surplus")}


def _read(data: dict[str, Any], families: Families) -> FamilyStatistics:
    size = len(families.codes)
    return FamilyStatistics(
        families,
        LabelDigest.parse(data["digest"]),
        _whole(data["codes"], (size, 5)),
        _read_pairs(data["pairs"], size),
        _whole(data["patterns"], (None, 5)),
        Tallies(_whole(data["sums"], (len(TALLIES),)), _whole(data["products"], (len(TALLIES),) * 2)),
        _whole(data["repeated"], (2,)),
        _read_pairs(data["together"], size) if "together" in data else None,
        _whole(data["alone"], (size, 2)) if "alone" in data else None,
        LabelDigest.parse(data["row_ids"]) if "row_ids" in data else None,
    )


def _read_pairs(data: dict[str, Any], size: int) -> PairCounts:
    keys = _whole(data["keys"], (None,))
    if len(keys) and (keys[0] < 0 or keys[-1] >= size * size or (np.diff(keys) <= 0).any()):
        raise ValueError(f"keys of pairs must increase below {size * size}")
    return PairCounts(keys, _whole(data["masses"], (len(keys), 4)), _whole(data["surplus"], (size, 2)))


def _whole(data: Any, shape: tuple[int | None, ...]) -> IntArray:
    if data == [] and shape[0] in (None, 0):  # an empty table loses its second dimension as a list
        return np.zeros(tuple(n or 0 for n in shape), dtype=np.int64)
    array = decode_array(data, shape)
    if array.dtype.kind != "i":
        raise ValueError(f"an array must hold whole numbers, got {array.dtype}")
    return array
