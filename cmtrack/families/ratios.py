"""The ratios of sums of tallies that are metrics of families."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cmtrack.families.tallies import TALLIES
from cmtrack.statistics.inputs import FloatArray


@dataclass(frozen=True, eq=False)
class Ratio:
    """Numerator and denominator as weights (8,) of the tallies, and why the ratio may be undefined."""

    above: FloatArray
    below: FloatArray
    reason: str


def _weights(words: str) -> FloatArray:
    out = np.zeros(len(TALLIES))
    for word in words.split():
        times, name = (2.0, word[2:]) if word.startswith("2*") else (1.0, word)
        out[TALLIES.index(name)] = times
    return out


def _ratio(above: str, below: str, reason: str) -> Ratio:
    return Ratio(_weights(above), _weights(below), reason)


_PREDICTED = "hits predicted_confused predicted_outside"
_ACTUAL = "hits actual_confused actual_outside"
_LABELS = "2*hits predicted_confused predicted_outside actual_confused actual_outside"
_NO_PREDICTED, _NO_ACTUAL, _NO_LABEL = "no code was predicted", "no document has a code", "there is no code"

FAMILY_RATIOS = {
    "match_share": _ratio("2*hits", _LABELS, _NO_LABEL),
    "confusion_share": _ratio("predicted_confused actual_confused", _LABELS, _NO_LABEL),
    "oof_share": _ratio("predicted_outside actual_outside", _LABELS, _NO_LABEL),
    "precision_micro": _ratio("hits", _PREDICTED, _NO_PREDICTED),
    "recall_micro": _ratio("hits", _ACTUAL, _NO_ACTUAL),
    "f1_micro": _ratio("2*hits", _LABELS, _NO_LABEL),
}
"""Also of single families."""

RATIOS = FAMILY_RATIOS | {
    "confusion_share_predicted": _ratio("predicted_confused", _PREDICTED, _NO_PREDICTED),
    "oof_share_predicted": _ratio("predicted_outside", _PREDICTED, _NO_PREDICTED),
    "confusion_share_actual": _ratio("actual_confused", _ACTUAL, _NO_ACTUAL),
    "oof_share_actual": _ratio("actual_outside", _ACTUAL, _NO_ACTUAL),
    "hierarchical_precision": _ratio("shared_nodes", "predicted_nodes", _NO_PREDICTED),
    "hierarchical_recall": _ratio("shared_nodes", "actual_nodes", _NO_ACTUAL),
    "hierarchical_f1": _ratio("2*shared_nodes", "predicted_nodes actual_nodes", _NO_LABEL),
}
