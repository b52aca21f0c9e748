"""Content of the report on an evaluation of classes: metrics, classes, grouping steps and facts."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

from cmtrack.base import BaseEvaluation
from cmtrack.comparison.record import versions
from cmtrack.evaluation import Evaluation
from cmtrack.grouping import Label
from cmtrack.metrics.class_curves import ClassCalibration
from cmtrack.metrics.metric import Metric
from cmtrack.metrics.names import encode_label, slug
from cmtrack.names import distinct
from cmtrack.report import formatting as fmt
from cmtrack.report import narrative, segments
from cmtrack.statistics import ReducedConfusionMatrix

MAX_CLASS_ROWS = 500
MAX_FIRST = 20
"""Number of classes that the page shows until the reader clicks a button to see the rest."""
MAX_WHOLE = 25
"""Largest number of classes that the page shows at once.

A button that shows up to five more classes would hardly save space.
"""
MAX_METRIC_ROWS = 3000
MAX_GROUPS = 30
"""Largest number of groups for which the page shows the confusion matrix of a grouping step."""
_NAME = 30
"""Maximum number of characters of a class name in a table."""
_CLASS_SCORES = {
    "roc_auc": "ROC AUC",
    "average_precision": "AP",
    "calibration_error": "Calibration error",
    "calibration_pvalue": "p (Holm)",
}
"""Table headings of the class metrics that come after precision, recall and F1."""


def content(evaluation: Evaluation) -> dict[str, Any]:
    """Return the values from which the page of a single-label evaluation is made."""
    calibration = evaluation.class_calibration() if evaluation.has_class_calibration else None
    steps = evaluation.reduced if evaluation.has_section("reduced") else []
    n_classes = len(evaluation.classes)
    return {
        "key_metrics": _key_metrics(evaluation),
        "classes": _classes(evaluation, calibration),
        "class_scores": [_CLASS_SCORES[name] for name in _class_scores(evaluation)],
        "class_calibration": "" if calibration is None else calibration.sentence(),
        "class_rows": MAX_FIRST if n_classes > MAX_WHOLE else n_classes,
        "n_classes": n_classes,
        "mismatches": narrative.MISMATCHES,
        "segments": segments.page_tables(evaluation),
        "steps": [_step(evaluation, step) for step in steps],
        "facts": _facts(evaluation),
        "head": _head(evaluation),
    }


def metric_row(evaluation: BaseEvaluation, name: str) -> dict[str, Any]:
    """Return the table row of a metric."""
    value = evaluation.metrics[name]
    interval = evaluation.intervals.get(name)
    metric = evaluation.catalog.lookup(name)
    if math.isnan(value):
        text = fmt.missing_word(evaluation, name)
    else:
        text = fmt.metric_value(metric, value, interval)
    return {
        "name": name,
        "title": evaluation.catalog.title(name, fmt.named),
        "value": text,
        "sort": value if math.isfinite(value) else "",
        "interval": fmt.metric_interval(metric, value, interval),
        "better": metric.better,
        "meaning": metric.formula,
        "source": metric.source,
        "page": _page(evaluation, metric),
        "undefined": evaluation.undefined.get(name, ""),
        "note": _note(evaluation, name),
        "counts": "",
    }


def _note(evaluation: BaseEvaluation, name: str) -> str:
    """Return words that the page shows next to a number that readers would misunderstand."""
    if name == "prevalence/bias":
        return "mean probability minus actual share; 0 is best"
    if name != "binary/matthews_corrcoef" or not isinstance(evaluation, Evaluation):
        return ""
    n = narrative.n_mismatches(evaluation)
    if not n:
        return ""
    return f"counts {fmt.counted(n, 'mismatch')} as hits"


def _page(evaluation: BaseEvaluation, metric: Metric) -> str:
    """Return the address of a metric's documentation, or an empty string if there is none.

    Custom metrics are not documented, and the package's metadata may lack a documentation site.
    """
    section = evaluation.catalog.sections.of(metric)
    if section is None or not site():
        return ""
    return f"{site()}reference/generated/metrics/{section.page}.html#{slug(metric.name)}"


@cache
def site() -> str:
    """Return the documentation site's address with a final slash.

    The text is empty if the address is not known.
    """
    from importlib.metadata import PackageNotFoundError, metadata

    try:
        lines = metadata("cmtrack").get_all("Project-URL") or ()
    except PackageNotFoundError:
        return ""
    address = dict(line.split(", ", 1) for line in lines).get("Documentation", "")
    if not (address.startswith("https://") and address.endswith("/")):
        return ""
    return address


def headline(evaluation: BaseEvaluation) -> list[str]:
    """Return the headline metrics, without those that repeat the title and value of another one.

    With two classes, the Matthews correlations of all classes and of the positive class are equal.
    """
    names: dict[tuple[str, float], str] = {}
    for name in evaluation.headline:
        number = (evaluation.catalog.title(name, fmt.named), evaluation.metrics[name])
        names.setdefault(number, name)
    return list(names.values())


def _key_metrics(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Return the headline metrics, grouped by section."""
    names = set(headline(evaluation))
    positive = ""
    if evaluation.positive is None:
        names.add(narrative.AREA_OF_CLASSES)
    else:
        positive = fmt.short(evaluation.positive)
    sections: dict[str, list[dict[str, Any]]] = {}
    for name, value in evaluation.metrics.items():
        # Every area is at most 1, so a ceiling of 1 adds nothing.
        is_no_ceiling = name.endswith("roc_auc_ceiling") and value == 1
        if name in names and not is_no_ceiling:
            title = evaluation.catalog.section_title(name, fmt.short, positive)
            sections.setdefault(title, []).append(metric_row(evaluation, name))
    return [{"name": title, "rows": rows} for title, rows in sections.items()]


def _classes(evaluation: Evaluation, calibration: ClassCalibration | None) -> list[dict[str, Any]]:
    """Return a row for each class; of many classes, those with the lowest F1 come first."""
    if not evaluation.has_section("class"):
        return []
    confused = {
        actual: (predicted, count, share)
        for actual, predicted, count, share in narrative.confusions(evaluation)
    }
    brief_names = {
        label: brief or fmt.short(label)
        for label, brief in zip(evaluation.labels, distinct(evaluation.labels, _NAME), strict=True)
    }
    adjusted = {}
    if calibration is not None:
        adjusted = {tested.label: tested.pvalue_holm for tested in calibration.classes}
    rows = []
    for label in evaluation.classes:
        row = _class_row(evaluation, label) | {"shown": brief_names[label]}
        if calibration is not None:
            # This p-value is adjusted. The table of all metrics shows the p-value before
            # adjustment.
            p = adjusted[label]
            row["scores"][-1]["value"] = fmt.p_text(p, calibration.least)
            row["scores"][-1]["sort"] = "" if math.isnan(p) else p
        if label in confused:
            predicted, count, share = confused[label]
            numbers = f"{fmt.count(count)}, {fmt.percent(share)}"
            row["confused"] = f"{brief_names[predicted]} ({numbers})"
            row["confused_sort"] = count
        rows.append(row)
    if len(rows) > MAX_WHOLE:
        # A reviewer looks for the weakest classes. Classes without an F1 are last.
        rows.sort(key=lambda row: (row["f1"]["sort"] == "", row["f1"]["sort"]))
    return rows[:MAX_CLASS_ROWS]


def _class_row(evaluation: Evaluation, label: Label) -> dict[str, Any]:
    """Return the row of a class, in which the most frequent confusion is not yet filled in."""
    prefix = f"class/{encode_label(label)}"
    support = evaluation.metrics[f"{prefix}/support"]
    share = support / evaluation.n_samples if evaluation.n_samples else math.nan
    return {
        **_scores(evaluation, prefix, label),
        "support": support,
        "support_shown": fmt.count(support),
        "share": fmt.percent(share),
        "scores": [
            metric_row(evaluation, f"{prefix}/{name}") for name in _class_scores(evaluation)
        ],
        "confused": "",
        "confused_sort": 0,
    }


def _class_scores(evaluation: Evaluation) -> list[str]:
    """Return the available class metrics that come after precision, recall and F1 in a table."""
    prefix = f"class/{encode_label(evaluation.labels[0])}"
    return [name for name in _CLASS_SCORES if f"{prefix}/{name}" in evaluation.metrics]


def _scores(evaluation: Evaluation, prefix: str, label: Label) -> dict[str, Any]:
    """Return precision, recall and F1 of a class or a group."""
    row: dict[str, Any] = {"label": str(label), "shown": fmt.short(label)}
    for name in ("precision", "recall", "f1"):
        row[name] = metric_row(evaluation, f"{prefix}/{name}")
    return row


def _step(evaluation: Evaluation, step: ReducedConfusionMatrix) -> dict[str, Any]:
    """Return the groups of a grouping step, and its confusion matrix with a mismatch column."""
    prefix = f"reduced/{encode_label(step.name)}"
    mismatches = [fmt.count(mismatched.item()) for mismatched in step.mismatches]
    groups = []
    cells = []
    for group, counts, mismatched in zip(step.labels, step.counts, mismatches, strict=True):
        scores = _scores(evaluation, f"{prefix}/{encode_label(group)}", group)
        groups.append(scores | {"mismatches": mismatched})
        row = [*map(fmt.count, counts.tolist())]
        if step.mismatches.any():
            row.append(mismatched)
        cells.append(row)
    return {
        "name": str(step.name),
        "labels": [str(group) for group in step.labels],
        "cells": cells if len(step.labels) <= MAX_GROUPS else [],
        "mismatches": mismatches,
        "any_mismatch": bool(step.mismatches.any()),
        "total": fmt.count(step.total),
        "groups": groups,
        "positive": None if step.positive is None else str(step.positive),
        "text": describe_step(evaluation, step.name),
    }


def describe_step(evaluation: Evaluation, name: str) -> str:
    """Return a description of a grouping step, and the meaning of its modes.

    An example is ``promoter = 9, 10 (relaxed); …. relaxed: any member of the group is correct``.
    """
    if evaluation.grouping is None:
        return ""
    step = next(step for step in evaluation.grouping.steps if step.name == name)
    modes = step.to_dict()["mode"]
    if not isinstance(modes, list):
        # If all groups have the same mode, the step stores it once.
        modes = [modes] * len(step.groups)
    texts = []
    for (group, members), mode in zip(step.groups.items(), modes, strict=True):
        rule = mode
        if not isinstance(mode, str):
            rule = f"hybrid, {len(mode)} accepted pairs"
        texts.append(f"{fmt.short(group)} = {fmt.in_row(members, 24)} ({rule})")
    meanings = [f"{mode}: {meaning}" for mode, meaning in _MODES.items() if mode in modes]
    return ". ".join(["; ".join(texts), *meanings])


_MODES = {
    "relaxed": "any member of the group is correct",
    "strict": "another member of the group is a mismatch",
}
"""The meaning of each mode that applies to all pairs of classes of a group."""


def all_metrics(evaluation: BaseEvaluation) -> list[dict[str, Any]]:
    """Return a row for each metric, but omit class and family metrics if there are too many."""
    names = list(evaluation.metrics)
    if len(names) > MAX_METRIC_ROWS:
        names = [name for name in names if not _is_of_label(evaluation.catalog.lookup(name))]
    return [metric_row(evaluation, name) for name in names]


def _is_of_label(metric: Metric) -> bool:
    """Return whether a metric describes a single class or a single family."""
    return not {"<label>", "<family>"}.isdisjoint(metric.name.split("/"))


_WEIGHTS = {
    "frequency": "frequency weights: a weight is a number of identical rows",
    "sampling": "sampling weights: a weight is the part of the population that the row represents; "
    "standard errors and intervals are robust (sandwich)",
}


def _head(evaluation: Evaluation) -> list[str]:
    """Return the parts of the line that the page shows under its title."""
    texts = [fmt.samples(evaluation), fmt.counted(len(evaluation.classes), "class")]
    if evaluation.positive is None:
        texts[1] += _class_sizes(evaluation)
    else:
        texts.append(_positive_group(evaluation))
    if evaluation.reduced:
        steps = ", then ".join(fmt.named(step.name) for step in evaluation.reduced)
        texts.append(f"grouped by {steps}")
    return [*texts, f"{fmt.level(evaluation.confidence_level)} intervals"]


def _class_sizes(evaluation: Evaluation) -> str:
    """Return the number of rows of the smallest and the largest class, in words."""
    if evaluation.none is not None or not evaluation.classes:
        return ""
    names = [f"class/{encode_label(label)}/support" for label in evaluation.classes]
    sizes = [evaluation.metrics[name] for name in names if name in evaluation.metrics]
    if not sizes or evaluation.weights_are is not None:
        return ""
    if min(sizes) == max(sizes):
        return f" with {fmt.counted(sizes[0], 'row')} each"
    return f" with {fmt.count(min(sizes))} to {fmt.counted(max(sizes), 'row')} each"


def _positive_group(evaluation: Evaluation) -> str:
    """Return the positive group with its classes and its share of the rows, in words."""
    cells = evaluation.binary
    step = evaluation.scored
    text = f"positive group {fmt.named(evaluation.positive)}"
    if step is not None and step.in_positive.sum() > 1:
        names = zip(evaluation.labels, step.in_positive.tolist(), strict=True)
        text += f" (classes {fmt.in_row([label for label, is_in in names if is_in], 8)})"
    if cells is None or not cells.total > 0:
        return text
    share = fmt.percent(cells.actual_positives / cells.total)
    if evaluation.weights_are is not None:
        return f"{text}: {share}"
    return f"{text}: {fmt.counted(cells.actual_positives, 'row')} ({share})"


def _facts(evaluation: Evaluation) -> list[tuple[str, str]]:
    """Return facts about an evaluation of classes, each with a name."""
    classes = fmt.in_row(evaluation.classes, 60)
    facts = [
        ("Rows", fmt.samples(evaluation)),
        ("Classes", f"{len(evaluation.classes)}: {classes}"),
    ]
    if evaluation.positive is not None:
        groups = f"{fmt.short(evaluation.positive)} (against {fmt.short(evaluation.negative)})"
        facts.append(("Positive group", groups))
    facts += [
        (f"Grouping step “{step.name}”", describe_step(evaluation, step.name))
        for step in evaluation.reduced
    ]
    if evaluation.costs is not None:
        facts.append(("Costs", fmt.short(evaluation.costs.describe(), 600)))
    if evaluation.prevalence is not None and not evaluation.calibrates_itself:
        source = "the evaluated rows, cross-fitted"
        if evaluation.statistics.labelled is not None:
            source = "separate rows (argument calibration)"
        facts.append(("Labelled scores", source))
    if evaluation.weights_are is not None:
        facts.append(("Weights", _WEIGHTS[evaluation.weights_are]))
    return [*facts, *last_facts(evaluation, "labels")]


def last_facts(evaluation: BaseEvaluation, truth: str) -> list[tuple[str, str]]:
    """Return the facts at the end of the page, which are the same for all kinds of evaluation.

    ``truth``: the noun that the page uses for the actual values.
    """
    return [
        ("Confidence level of intervals", fmt.level(evaluation.confidence_level)),
        (f"Digest of the actual {truth}", evaluation.labels_digest),
        ("Written by", f"cmtrack {versions().get('cmtrack', '')}".rstrip()),
    ]


# -- the table for MLflow's views ------------------------------------------------------------------


def class_table(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Return a row for each class.

    The label comes first, because MLflow's artifact view groups runs by the first column.
    """
    rows = []
    for row in evaluation.class_rows():
        numbers: dict[str, float | None] = {}
        texts = []
        for name in ("recall", "precision", "f1"):
            keys = (name, f"{name}_low", f"{name}_high")
            numbers |= {key: fmt.rounded(row[key]) for key in keys}
            texts.append(fmt.named_value(name, *(row[key] for key in keys)))
        rows.append(
            {
                "label": str(row["label"]),
                # MLflow's view that compares runs shows the second column first, on one line.
                "result": fmt.BETWEEN.join(texts),
                "support": row["support"],
                **numbers,
            }
        )
    return rows
