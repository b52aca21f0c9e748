"""Names of an evaluation's files, tags and metrics in a run, all under one prefix."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence

from cmtrack import untrusted
from cmtrack.archive import FILE_NAME, ROWS_NAME
from cmtrack.base import BaseEvaluation
from cmtrack.evaluation import Evaluation
from cmtrack.metrics.names import OF_SEGMENTS, near_metric

EVALUATION_FILE = FILE_NAME
REPORT_FILE = "cmtrack_report.html"
CLASSES_FILE = "cmtrack_classes.json"
SEGMENTS_FILE = "cmtrack_segments.json"
PREDICTIONS_FILE = ROWS_NAME
DIGESTS = "digests"
"""Tag of what programs know an evaluation by, as JSON; see :func:`digests`.

The other tags are for people.
"""
ROWS_FILE = "predictions_file"
"""Its entry that names the file of the rows' predictions, if that has another prefix."""
REGROUPING = "regrouping"
"""Entry of it: a digest of all that a regrouped evaluation was made from, and how."""
TAGS_BEFORE = {
    "schema": "schema",
    "labels": "labels_digest",
    "row_ids": "row_ids_digest",
    "evaluation": "evaluation_digest",
    "predictions": "predictions_digest",
    ROWS_FILE: "predictions_file",
    REGROUPING: "regrouping",
}
"""The tags of their own that earlier versions wrote, by entry."""
SHORT = {"grouping": "groups", "undefined": "nan", "warnings": "warning", "criterion": "rank_by"}
"""Readable tags, by their names in earlier versions.

Next to long values MLflow's pages cut names of more than 15 letters.
"""
KIND_TAG = "cmtrack.kind"
REVIEW = "review"
IMAGE_KEY = "cmtrack/confusion_matrix"
MAX_NAME = 250
MAX_PREFIX = 150
"""Characters of a prefix: MLflow takes 250 for a tag, and a file system 255 bytes for a name."""
MAX_TAG = 4000
"""Characters of a tag's text, and of a review's parameter: every store takes 5,000."""

_LEGAL_PREFIX = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_ ./-]*")


def tag_text(text: str) -> str:
    """A text that fits into a tag; an ellipsis stands for what is left out."""
    return text if len(text) <= MAX_TAG else text[: MAX_TAG - 1] + "…"


def check_prefix(prefix: str) -> str:
    """Validate a prefix by MLflow's rules for metric names and image keys.

    ValueError if it holds other characters than letters, digits, ``_ - . /`` and spaces, or a path
    that climbs.
    """
    if not isinstance(prefix, str):
        raise ValueError(f"prefix must be a text, got {type(prefix).__name__}")
    if prefix and (not _LEGAL_PREFIX.fullmatch(prefix) or "//" in prefix or ".." in prefix):
        raise ValueError(
            "prefix must start with a letter or digit and hold letters, digits and _-./, "
            f"got {prefix!r}"
        )
    return prefix


def prefix_to_log(prefix: str | None) -> str:
    """Return the prefix under which an evaluation is logged: ``val`` becomes ``val/``.

    Without one the metrics would be called ``valbinary/f1``. ValueError as by :func:`check_prefix`,
    or if it is so long that files or tags could not be named.
    """
    checked = check_prefix(prefix or "")
    if len(checked) > MAX_PREFIX:
        raise ValueError(f"prefix must have at most {MAX_PREFIX} characters, got {len(checked)}")
    ends_in_a_word = checked[-1:].isalnum()
    return f"{checked}/" if ends_in_a_word else checked


def under_prefix(prefix: str) -> str:
    """The words on a prefix after "an evaluation"; empty without one."""
    return f" under the prefix {prefix!r}" if prefix else ""


def file_name(name: str, prefix: str = "") -> str:
    """A root-level file name: the compare page of the MLflow UI lists no others."""
    return prefix.replace("/", "_").replace(" ", "_") + name


def tag(name: str, prefix: str = "") -> str:
    """A tag's name, such as ``cmtrack.status`` or ``cmtrack.val.status``."""
    middle = prefix.strip("/ ._-")
    name = SHORT.get(name, name)
    return f"cmtrack.{middle}.{name}" if middle else f"cmtrack.{name}"


def readable_tag(tags: Mapping[str, str], name: str, prefix: str = "") -> str | None:
    """The value of a readable tag, also under its former name."""
    return tags.get(tag(name, prefix), tags.get(former_tag(name, prefix)))


def former_tag(name: str, prefix: str) -> str:
    """The name that earlier versions gave to a tag of :data:`SHORT`."""
    return tag(name, prefix).removesuffix(SHORT.get(name, name)) + name


def digest_key(name: str) -> str:
    """The key in :func:`digests` of a file: ``evaluation`` for ``cmtrack_evaluation.json``."""
    return name.removeprefix("cmtrack_").split(".")[0]


def digests(tags: Mapping[str, str], prefix: str = "") -> dict[str, str]:
    """Machine-readable facts of an evaluation from a run's tags, by key.

    The entries are ``schema``, ``labels`` and ``row_ids`` (digests of the evaluated rows),
    ``evaluation`` and ``predictions`` (digests of files), :data:`ROWS_FILE` and :data:`REGROUPING`.
    Tags of earlier versions are read, too. A damaged tag says nothing.
    """
    text = tags.get(tag(DIGESTS, prefix))
    if text is None:
        before = {entry: tags.get(tag(name, prefix)) for entry, name in TAGS_BEFORE.items()}
        return {entry: value for entry, value in before.items() if value is not None}
    try:
        data = untrusted.parsed_json(text)
    except ValueError:
        return {}
    if not isinstance(data, dict):
        return {}
    return {key: value for key, value in data.items() if isinstance(value, str)}


def with_digests(
    tags: Mapping[str, str], prefix: str, changed: Mapping[str, str | None]
) -> dict[str, str]:
    """Tags with changed values of :func:`digests`; None removes a key."""
    former_tags = {tag(name, prefix) for name in TAGS_BEFORE.values()}
    former_tags |= {former_tag(name, prefix) for name in SHORT}
    entries = {**digests(tags, prefix), **changed}
    stored = {entry: text for entry, text in entries.items() if text is not None}
    others = {name: text for name, text in tags.items() if name not in former_tags}
    return others | {tag(DIGESTS, prefix): json.dumps(stored)}


def finite_metrics(
    evaluation: BaseEvaluation, chosen: str | Sequence[str], prefix: str
) -> tuple[dict[str, float], list[str]]:
    """The metrics of :func:`chosen_metrics` that MLflow takes, by the names that it gets.

    Also returns the names of those that are not finite.
    """
    finite: dict[str, float] = {}
    undefined: list[str] = []
    for name, value in chosen_metrics(evaluation, chosen).items():
        if math.isfinite(value):
            finite[(prefix + name)[:MAX_NAME]] = value
        else:
            undefined.append(name)
    return finite, undefined


def chosen_metrics(evaluation: BaseEvaluation, chosen: str | Sequence[str]) -> dict[str, float]:
    """The metrics to log, by full name.

    ValueError if a name is in no evaluation.

    ``chosen``, "headline", "all" or sequence of names: a name may end in ``/*`` to stand for a
        whole section, and ``*`` stands for all metrics.
        ``segment/<column>/<value>/<metric>`` is a metric of a segment, of all segments of the
        column with ``*`` in the place of the value.
    """
    metrics = evaluation.metrics
    if isinstance(chosen, str):
        if chosen not in ("headline", "all"):
            raise ValueError(
                f"metrics must be 'headline', 'all' or a list of names, got {chosen!r}"
            )
        chosen = evaluation.headline if chosen == "headline" else ["*"]
    values: dict[str, float] = {}
    for name in chosen:
        if name.startswith(OF_SEGMENTS) and isinstance(evaluation, Evaluation):
            values |= evaluation.segments.named(name)
            continue
        if name == "*":
            return dict(metrics)
        named = [name] if name in metrics else []
        if name.endswith("/*"):
            named = [metric for metric in metrics if metric.startswith(name[:-1])]
        if not named:
            raise ValueError(f"this evaluation has no metric {name!r}{near_metric(name, metrics)}")
        values |= {metric: metrics[metric] for metric in named}
    return values
