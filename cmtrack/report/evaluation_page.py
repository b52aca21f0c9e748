"""The report: one self-contained HTML page for a reviewer who did not run the model.

The MLflow UI shows it in a frame with ``sandbox="allow-scripts"``: no network, no storage. Everything is inline,
and the page reads the same without its script.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cmtrack.base import BaseEvaluation
from cmtrack.evaluation import Evaluation
from cmtrack.metrics.catalog import lookup, own_of
from cmtrack.metrics.names import decode_label, encode_label
from cmtrack.report import words
from cmtrack.report.html import figure_block, render_page
from cmtrack.statistics import ReducedConfusionMatrix

if TYPE_CHECKING:
    from cmtrack.report.figures import Picture

MAX_CLASS_ROWS = 500
MAX_METRIC_ROWS = 3000
MAX_GROUPS = 30

_SECTIONS = {
    "multiclass": "All classes",
    "binary": "Positive group against the rest (2×2+IM)",
    "spans": "Spans",
    "spcc": "Separation by the probabilities (sPCC)",
    "prevalence": "Prevalence",
}
_WORDS = {
    "f1": "F1", "roc": "ROC", "auc": "AUC", "corrcoef": "correlation", "matthews": "Matthews", "cohen": "Cohen",
    "ovr": "one-vs-rest,", "ovo": "one-vs-one,", "fisher": "Fisher mean", "min": "smallest", "sd": "s.d.",
}  # fmt: skip


def report_html(
    evaluation: Evaluation,
    pictures: Mapping[str, Picture],
    *,
    title: str = "Evaluation",
    subtitle: str = "",
    problems: Sequence[str] = (),
) -> str:
    """Write the report.

    Parameters
    ----------
    evaluation : Evaluation
    pictures : mapping of str to Picture
        The figures, which are embedded.
    title, subtitle : str
    problems : sequence of str
        What could not be drawn.

    Returns
    -------
    str
        One HTML document without any reference to the outside.
    """
    sentences = words.verdict(evaluation)
    return render_page(
        "report.html",
        title=title,
        subtitle=subtitle,
        lead=sentences[:2],
        verdict=sentences[2:],
        warnings=[*evaluation.warnings, *(f"Not drawn: {problem}." for problem in problems)],
        level=f"{100 * evaluation.confidence_level:g} %",
        key_metrics=_key_metrics(evaluation),
        classes=_classes(evaluation),
        label_width=min(24, max(len(words.short(label)) for label in evaluation.labels) + 2),
        n_classes=len(evaluation.classes),
        mismatches=words.MISMATCHES,
        steps=[_step(evaluation, s) for s in evaluation.reduced if evaluation.has_section("reduced")],
        figures=[figure_block(picture) for picture in pictures.values()],
        all_metrics=all_metrics(evaluation),
        n_metrics=len(evaluation.metrics),
        facts=_facts(evaluation),
    )


def metric_row(evaluation: BaseEvaluation, name: str) -> dict[str, Any]:
    """A metric as the tables show it."""
    value, ends = evaluation.metrics[name], evaluation.intervals.get(name)
    entry = lookup(name)
    return {
        "name": name,
        "title": _metric_title(name),
        "value": words.count(value) if is_count(name) else words.number(value, ends),
        "sort": value if math.isfinite(value) else "",
        "interval": words.interval(value, ends),
        "better": entry.better,
        "meaning": entry.formula,
        "source": entry.source,
        "undefined": evaluation.undefined.get(name, ""),
    }


def is_count(name: str) -> bool:
    """Whether a metric counts samples."""
    entry = lookup(name)
    return math.isinf(entry.high) and not entry.better


def _metric_title(name: str) -> str:
    parts = name.split("/")[2 if name.startswith("reduced/") else 1 :]
    if "<" in lookup(name).name:
        parts = [*map(decode_label, parts[:-1]), parts[-1]]
    if own_of(name):
        return lookup(name).heading()
    last = " ".join(_WORDS.get(word, word) for word in parts[-1].split("_"))
    return " · ".join([*(words.short(part) for part in parts[:-1]), last])


def _key_metrics(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Headline metrics in sections; the ends of an interval stand beside their value already."""
    sections: dict[str, list[dict[str, Any]]] = {}
    for name in evaluation.metrics:
        entry = lookup(name)
        if entry.headline and not name.endswith(("_low", "_high")):
            sections.setdefault(_section(evaluation, name), []).append(metric_row(evaluation, name))
    return [{"name": name, "rows": rows} for name, rows in sections.items()]


def _section(evaluation: Evaluation, name: str) -> str:
    head, *rest = name.split("/")
    if head == "reduced":
        return f"Grouped: {words.short(decode_label(rest[0]))}"
    shown = _SECTIONS.get(head, head)
    if evaluation.positive is not None and head in ("binary", "prevalence"):
        shown = f"{shown} · positive: {words.short(evaluation.positive)}"
    return shown


def _classes(evaluation: Evaluation) -> list[dict[str, Any]]:
    if not evaluation.has_section("class"):
        return []
    confused = {actual: (predicted, count, share) for actual, predicted, count, share in words.confusions(evaluation)}
    rows = []
    for label in evaluation.classes:
        row = _scores(evaluation, f"class/{encode_label(label)}", label)
        row["support"] = evaluation.metrics[f"class/{encode_label(label)}/support"]
        row["share"] = words.percent(row["support"] / evaluation.n_samples if evaluation.n_samples else math.nan)
        row["confused"] = ""
        if label in confused:
            predicted, count, share = confused[label]
            row["confused"] = f"{words.short(predicted, 40)} ({words.count(count)}, {words.percent(share)})"
        row["confused_sort"] = confused[label][1] if label in confused else 0
        rows.append(row)
    if len(rows) > MAX_CLASS_ROWS:  # the weakest ones are what a reviewer looks for
        rows = sorted(rows, key=lambda row: (row["f1"]["sort"] == "", row["f1"]["sort"]))[:MAX_CLASS_ROWS]
    for row in rows:
        row["support_shown"] = words.count(row["support"])
    return rows


def _scores(evaluation: Evaluation, prefix: str, label: object) -> dict[str, Any]:
    row: dict[str, Any] = {"label": str(label), "shown": words.short(label)}
    for name in ("precision", "recall", "f1"):
        row[name] = metric_row(evaluation, f"{prefix}/{name}")
    return row


def _step(evaluation: Evaluation, step: ReducedConfusionMatrix) -> dict[str, Any]:
    prefix = f"reduced/{encode_label(step.name)}"
    groups = []
    for group, im in zip(step.labels, step.mismatches, strict=True):
        row = _scores(evaluation, f"{prefix}/{encode_label(group)}", group)
        row["mismatches"] = words.count(im.item())
        groups.append(row)
    small = len(step.labels) <= MAX_GROUPS
    cells = [
        [*(words.count(v.item()) for v in counts), words.count(im.item())]
        for counts, im in zip(step.counts, step.mismatches, strict=True)
    ]
    return {
        "name": str(step.name),
        "labels": [str(g) for g in step.labels],
        "cells": cells if small else [],
        "mismatches": [words.count(im.item()) for im in step.mismatches],
        "any_mismatch": bool(step.mismatches.any()),
        "total": words.count(step.total),
        "groups": groups,
        "positive": None if step.positive is None else str(step.positive),
        "text": describe_step(evaluation, step.name),
    }


def describe_step(evaluation: Evaluation, name: str) -> str:
    """A grouping step in words: ``promoter = 9, 10 (relaxed); …``."""
    if evaluation.grouping is None:
        return ""
    step = next(step for step in evaluation.grouping.steps if step.name == name)
    data = step.to_dict()
    modes = data["mode"] if isinstance(data["mode"], list) else [data["mode"]] * len(step.groups)
    texts = []
    for (group, members), mode in zip(step.groups.items(), modes, strict=True):
        listed = _listed([words.short(m, 40) for m in members])
        rule = mode if isinstance(mode, str) else f"hybrid, {len(mode)} accepted pairs"
        texts.append(f"{words.short(group)} = {listed} ({rule})")
    return "; ".join(texts)


def _listed(names: Sequence[str], most: int = 24) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def all_metrics(evaluation: BaseEvaluation) -> list[dict[str, Any]]:
    """Every metric as the tables show it; where there are very many, without those of single classes or families."""
    names = list(evaluation.metrics)
    if len(names) > MAX_METRIC_ROWS:
        names = [name for name in names if not {"<label>", "<family>"} & set(lookup(name).name.split("/"))]
    return [metric_row(evaluation, name) for name in names]


def _facts(evaluation: Evaluation) -> list[tuple[str, str]]:
    labels = _listed([words.short(label, 40) for label in evaluation.classes], 60)
    facts = [
        ("Samples", words.samples(evaluation)),
        ("Classes", f"{len(evaluation.classes)}: {labels}"),
    ]
    if evaluation.positive is not None:
        facts.append(("Positive", f"{words.short(evaluation.positive)} (against {words.short(evaluation.negative)})"))
    facts += [(f"Grouping step “{s.name}”", describe_step(evaluation, s.name)) for s in evaluation.reduced]
    if evaluation.prevalence is not None:
        given = evaluation.statistics.labelled is not None
        facts.append(("Labelled scores", "given for calibration" if given else "the evaluated samples, cross-fitted"))
    if evaluation.statistics.squares is not None:
        facts.append(("Weights", "fractional; intervals use the effective sample size"))
    facts.append(("Confidence level of intervals", f"{100 * evaluation.confidence_level:g} %"))
    facts.append(("Digest of the actual labels", evaluation.labels_digest))
    facts.append(version_fact())
    return facts


def version_fact() -> tuple[str, str]:
    """What wrote the report."""
    return "Written by", f"cmtrack {_version()}".rstrip()


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("cmtrack")
    except PackageNotFoundError:
        return ""
