"""Content of the report of an evaluation: metrics in sections, classes, grouping steps, and what was evaluated."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

from cmtrack.base import BaseEvaluation
from cmtrack.comparison.record import versions
from cmtrack.evaluation import Evaluation
from cmtrack.metrics.class_curves import ClassCalibration
from cmtrack.metrics.metric import Metric
from cmtrack.metrics.names import encode_label, slug
from cmtrack.names import distinct
from cmtrack.report import formatting as fmt
from cmtrack.report import narrative, segments
from cmtrack.statistics import ReducedConfusionMatrix

MAX_CLASS_ROWS = 500
MAX_FIRST = 20
"""Classes before the fold, where there are more than a few others."""
MAX_METRIC_ROWS = 3000
MAX_GROUPS = 30
_NAME = 30


def content(evaluation: Evaluation) -> dict[str, Any]:
    """The page for single-label classes, apart from what all kinds share."""
    judged = evaluation.class_calibration() if evaluation.has_class_calibration else None
    return {
        "key_metrics": _key_metrics(evaluation),
        "classes": _classes(evaluation, judged),
        "class_scores": [head for head, _ in _class_scores(evaluation)],
        "class_calibration": "" if judged is None else judged.sentence(),
        "class_rows": MAX_FIRST
        if len(evaluation.classes) > MAX_FIRST + 5
        else len(evaluation.classes),
        "n_classes": len(evaluation.classes),
        "mismatches": narrative.MISMATCHES,
        "segments": segments.page_tables(evaluation),
        "steps": [
            _step(evaluation, s) for s in evaluation.reduced if evaluation.has_section("reduced")
        ],
        "facts": _facts(evaluation),
        "head": _head(evaluation),
    }


def metric_row(evaluation: BaseEvaluation, name: str) -> dict[str, Any]:
    """A metric as the tables show it."""
    value, ends = evaluation.metrics[name], evaluation.intervals.get(name)
    entry = evaluation.catalog.lookup(name)
    return {
        "name": name,
        "title": evaluation.catalog.title(name, fmt.named),
        "value": fmt.missing_word(evaluation, name)
        if math.isnan(value)
        else fmt.metric_value(entry, value, ends),
        "sort": value if math.isfinite(value) else "",
        "interval": fmt.metric_interval(entry, value, ends),
        "better": entry.better,
        "meaning": entry.formula,
        "source": entry.source,
        "page": _page(evaluation, entry),
        "undefined": evaluation.undefined.get(name, ""),
    }


def _page(evaluation: BaseEvaluation, metric: Metric) -> str:
    """The address of a metric's page on the site; empty for a custom metric, or without a site."""
    section = evaluation.catalog.sections.of(metric)
    if section is None or not site():
        return ""
    return f"{site()}reference/generated/metrics/{section.page}.html#{slug(metric.name)}"


@cache
def site() -> str:
    """The address of the site, ending in a slash, where the distribution names one."""
    from importlib.metadata import PackageNotFoundError, metadata

    try:
        lines = metadata("cmtrack").get_all("Project-URL") or ()
    except PackageNotFoundError:
        return ""
    address = dict(line.split(", ", 1) for line in lines).get("Documentation", "")
    return address if address.startswith("https://") and address.endswith("/") else ""


def _key_metrics(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Headline metrics in sections; the ends of an interval stand beside their value already."""
    sections: dict[str, list[dict[str, Any]]] = {}
    positive = "" if evaluation.positive is None else fmt.short(evaluation.positive)
    first = {
        *evaluation.headline,
        *([narrative.AREA_OF_CLASSES] if evaluation.positive is None else []),
    }
    for name in evaluation.metrics:
        if name in first and not (
            name.endswith("roc_auc_ceiling") and evaluation.metrics[name] == 1
        ):
            title = evaluation.catalog.section_title(name, fmt.short, positive)
            sections.setdefault(title, []).append(metric_row(evaluation, name))
    return [{"name": name, "rows": rows} for name, rows in sections.items()]


def _classes(evaluation: Evaluation, judged: ClassCalibration | None) -> list[dict[str, Any]]:
    if not evaluation.has_section("class"):
        return []
    confused = {error[0]: error[1:] for error in narrative.confusions(evaluation)}
    brief = dict(zip(evaluation.labels, distinct(evaluation.labels, _NAME), strict=True))
    adjusted = (
        {} if judged is None else {tested.label: tested.pvalue_holm for tested in judged.classes}
    )
    rows = []
    for label in evaluation.classes:
        prefix = f"class/{encode_label(label)}"
        row = _scores(evaluation, prefix, label) | {"shown": brief[label] or fmt.short(label)}
        row["support"] = evaluation.metrics[f"{prefix}/support"]
        row["support_shown"] = fmt.count(row["support"])
        row["share"] = fmt.percent(
            row["support"] / evaluation.n_samples if evaluation.n_samples else math.nan
        )
        row["scores"] = [
            metric_row(evaluation, f"{prefix}/{name}") for _, name in _class_scores(evaluation)
        ]
        if judged is not None:  # the p-value of the class alone stands in the table of all metrics
            p = adjusted[label]
            row["scores"][-1] |= {
                "value": fmt.p_text(p, judged.least),
                "sort": "" if math.isnan(p) else p,
            }
        row |= {"confused": "", "confused_sort": 0}
        if label in confused:
            predicted, count, share = confused[label]
            text = f"{brief[predicted] or fmt.short(predicted)} ({fmt.count(count)}, {fmt.percent(share)})"
            row |= {"confused": text, "confused_sort": count}
        rows.append(row)
    if len(rows) > MAX_CLASS_ROWS:  # the weakest ones are what a reviewer looks for
        rows = sorted(rows, key=lambda row: (row["f1"]["sort"] == "", row["f1"]["sort"]))[
            :MAX_CLASS_ROWS
        ]
    return rows


def _class_scores(evaluation: Evaluation) -> list[tuple[str, str]]:
    """Heads and names of the available metrics by class, besides precision, recall and F1."""
    heads = {
        "roc_auc": "ROC AUC",
        "average_precision": "AP",
        "calibration_error": "Calibration error",
        "calibration_pvalue": "p (Holm)",
    }
    prefix = f"class/{encode_label(evaluation.labels[0])}"
    return [
        (head, name) for name, head in heads.items() if f"{prefix}/{name}" in evaluation.metrics
    ]


def _scores(evaluation: Evaluation, prefix: str, label: object) -> dict[str, Any]:
    rows = {
        name: metric_row(evaluation, f"{prefix}/{name}") for name in ("precision", "recall", "f1")
    }
    return {"label": str(label), "shown": fmt.short(label), **rows}


def _step(evaluation: Evaluation, step: ReducedConfusionMatrix) -> dict[str, Any]:
    prefix = f"reduced/{encode_label(step.name)}"
    mismatches = [fmt.count(im.item()) for im in step.mismatches]
    groups = [
        _scores(evaluation, f"{prefix}/{encode_label(group)}", group) | {"mismatches": text}
        for group, text in zip(step.labels, mismatches, strict=True)
    ]
    counts = [[fmt.count(number.item()) for number in row] for row in step.counts]
    cells = [[*row, text] for row, text in zip(counts, mismatches, strict=True)]
    return {
        "name": str(step.name),
        "labels": [str(g) for g in step.labels],
        "cells": cells if len(step.labels) <= MAX_GROUPS else [],
        "mismatches": mismatches,
        "any_mismatch": bool(step.mismatches.any()),
        "total": fmt.count(step.total),
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
        listed = fmt.in_row(members, 24)
        rule = mode if isinstance(mode, str) else f"hybrid, {len(mode)} accepted pairs"
        texts.append(f"{fmt.short(group)} = {listed} ({rule})")
    return "; ".join(texts)


def all_metrics(evaluation: BaseEvaluation) -> list[dict[str, Any]]:
    """Every metric as the tables show it; where there are very many, without those of single classes or families."""
    names = list(evaluation.metrics)
    if len(names) > MAX_METRIC_ROWS:
        names = [
            name
            for name in names
            if not {"<label>", "<family>"} & set(evaluation.catalog.lookup(name).name.split("/"))
        ]
    return [metric_row(evaluation, name) for name in names]


_WEIGHTS = {
    "frequency": "frequencies: a weight is a number of equal samples",
    "sampling": "sampling weights: a weight says how much of the population a sample stands for; errors and intervals "
    "are robust (sandwich)",
}


def _head(evaluation: Evaluation) -> list[str]:
    """The line under the title."""
    parts = [fmt.samples(evaluation), fmt.counted(len(evaluation.classes), "class")]
    if evaluation.positive is not None:
        parts.append(f"positive group {fmt.named(evaluation.positive)}")
    if evaluation.reduced:
        parts.append(
            f"grouped by {', then '.join(fmt.named(step.name) for step in evaluation.reduced)}"
        )
    return [*parts, f"{fmt.level(evaluation.confidence_level)} intervals"]


def _facts(evaluation: Evaluation) -> list[tuple[str, str]]:
    facts = [
        ("Samples", fmt.samples(evaluation)),
        ("Classes", f"{len(evaluation.classes)}: {fmt.in_row(evaluation.classes, 60)}"),
    ]
    if evaluation.positive is not None:
        facts.append(
            (
                "Positive group",
                f"{fmt.short(evaluation.positive)} (against {fmt.short(evaluation.negative)})",
            )
        )
    facts += [
        (f"Grouping step “{s.name}”", describe_step(evaluation, s.name)) for s in evaluation.reduced
    ]
    if evaluation.costs is not None:
        facts.append(("Costs", fmt.short(evaluation.costs.describe(), 600)))
    if evaluation.prevalence is not None and not evaluation.calibrates_itself:
        given = evaluation.statistics.labelled is not None
        facts.append(
            (
                "Labelled scores",
                "given for calibration" if given else "the evaluated samples, cross-fitted",
            )
        )
    if evaluation.weights_are is not None:
        facts.append(("Weights", _WEIGHTS[evaluation.weights_are]))
    return [*facts, *last_facts(evaluation, "labels")]


def last_facts(evaluation: BaseEvaluation, of: str) -> list[tuple[str, str]]:
    """The last facts of every evaluation."""
    return [
        ("Confidence level of intervals", fmt.level(evaluation.confidence_level)),
        (f"Digest of the actual {of}", evaluation.labels_digest),
        ("Written by", f"cmtrack {versions().get('cmtrack', '')}".rstrip()),
    ]


# -- the table of MLflow's views -------------------------------------------------------------------------------


def class_table(evaluation: Evaluation) -> list[dict[str, Any]]:
    """One row per class, the label first: the artifact view groups runs by the first column."""
    names, rows = ("recall", "precision", "f1"), []
    for row in evaluation.class_rows():
        ends = {name: (name, f"{name}_low", f"{name}_high") for name in names}
        numbers = {part: fmt.rounded(row[part]) for name in names for part in ends[name]}
        # the view that compares runs opens with the second column, and shows it on one line
        result = fmt.BETWEEN.join(
            fmt.named_value(name, *(row[part] for part in ends[name])) for name in names
        )
        rows.append(
            {"label": str(row["label"]), "result": result, "support": row["support"], **numbers}
        )
    return rows
