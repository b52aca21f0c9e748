"""Encoding of labels in metric names: reversible, unique, and valid in MLflow.

MLflow accepts letters, digits, spaces and the characters ``_ - .`` in names, and a slash separates
sections. Every other character becomes ``_u<hex>_``. An underscore before a ``u`` is encoded in the
same way, so that different labels always get different names.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cmtrack.grouping import Label

MAX_LENGTH = 80
OF_SEGMENTS = "segment/"
"""Prefix of the names of segment metrics."""
_ILLEGAL = re.compile(r"[^\w .-]|_(?=u)", re.UNICODE)
_OUTER = re.compile(r"\A[. ]|[. ]\Z")
"""A dot or a space at the beginning or at the end of a name."""
_ESCAPE = re.compile(r"_u([0-9a-f]*)_")


def segment_parts(name: str) -> tuple[str, str, str] | None:
    """Split the name of a segment metric into its encoded column, value and metric.

    Such a name has the form ``segment/<column>/<value>/<metric>``. The result is None for any other
    name.
    """
    if not name.startswith(OF_SEGMENTS):
        return None
    parts = name.removeprefix(OF_SEGMENTS).split("/", 2)
    if len(parts) < 3 or not all(parts):
        return None
    column, value, metric = parts
    return column, value, metric


def encode_label(label: Label) -> str:
    """Encode a label as a part of a metric name.

    If the encoded text is longer than 80 characters, the result contains only the beginning of the
    text and a digest. The whole label is stored in the evaluation.
    """
    text = str(label)
    if not text:
        return "_u_"
    encoded = _ILLEGAL.sub(_escape, text)
    # "." and ".." would be names of folders, and MLflow removes dots and spaces at the ends of a
    # name.
    encoded = _OUTER.sub(_escape, encoded)
    if len(encoded) > MAX_LENGTH:
        digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
        encoded = f"{encoded[: MAX_LENGTH - 14].rstrip('. ')}--{digest}"
    return encoded


def _escape(match: re.Match[str]) -> str:
    return f"_u{ord(match.group()):x}_"


def decode_label(name: str) -> str:
    """Return the text of a label from its encoded form, unless it was shortened."""
    return _ESCAPE.sub(lambda match: chr(int(match.group(1), 16)) if match.group(1) else "", name)


def slug(name: str) -> str:
    """Return the anchor of a metric in the docs.

    The anchor of ``class/<label>/recall``, for example, is ``class-label-recall``.
    """
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def near(name: str, known: Iterable[str]) -> str:
    """Return a hint such as ``; did you mean 'a' or 'b'?`` with names similar to an unknown name.

    The hint is empty if no name is similar.
    """
    names = list(dict.fromkeys(known))
    lowered: dict[str, list[str]] = {}
    for full in names:
        for text in (full, "/".join(map(decode_label, full.split("/"))), _last_part(full)):
            lowered.setdefault(text.lower(), []).append(full)
    wanted = name.lower()
    matches = get_close_matches(wanted, lowered, n=3, cutoff=0.6)
    if not matches:
        matches = [text for text in lowered if wanted and wanted in text][:3]
    return _did_you_mean(full for text in matches for full in lowered[text])


def near_metric(name: str, known: Iterable[str]) -> str:
    """Return a hint like :func:`near` for a metric; it lists names with the same last part first.

    ``f1`` and scikit-learn's ``f1_score`` suggest ``binary/f1``, and ``multiclass/log_loss``
    suggests ``probability/log_loss``. Metrics of spans and of families are suggested only if the
    name contains that word.
    """
    names = list(dict.fromkeys(known))
    section = name.partition("/")[0].lower() if "/" in name else ""
    wanted = _last_part(name).lower().removesuffix("_score")
    wanted = _USUAL_NAMES.get(wanted, wanted)
    if not section.startswith(_OTHER_TASKS):
        names = [full for full in names if not full.startswith(_OTHER_TASKS)] or names
    alike = [full for full in names if wanted and wanted in _last_part(full)]

    def distance(full: str) -> tuple[bool, bool, bool, bool]:
        last = _last_part(full)
        return (
            not full.startswith(section),
            last != wanted,
            "<" in full,
            not last.startswith(wanted),
        )

    return _did_you_mean(sorted(alike, key=distance)) or near(name, names)


_OTHER_TASKS = ("spans", "family")
_USUAL_NAMES = {
    "auc": "roc_auc",
    "auprc": "average_precision",
    "auroc": "roc_auc",
    "brier_score_loss": "brier",
    "mcc": "matthews_corrcoef",
    "sensitivity": "recall",
}
"""Names of metrics in other libraries, if the last part of the name is different in cmtrack.
"""


def _last_part(name: str) -> str:
    return name.rsplit("/", 1)[-1]


def _did_you_mean(names: Iterable[str]) -> str:
    shown = list(dict.fromkeys(names))[:3]
    return f"; did you mean {' or '.join(map(repr, shown))}?" if shown else ""
