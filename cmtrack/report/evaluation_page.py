"""The report: one self-contained HTML page for a reviewer who did not run the model.

The MLflow UI shows it in a frame with ``sandbox="allow-scripts"``: no network, no storage. Everything is inline,
and the page reads the same without its script.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from typing import Any

from cmtrack.base import BaseEvaluation
from cmtrack.evaluation import Evaluation
from cmtrack.metrics.catalog import lookup, section_title, title
from cmtrack.metrics.names import encode_label
from cmtrack.names import quoted
from cmtrack.report import words
from cmtrack.report.html import render_page
from cmtrack.statistics import ReducedConfusionMatrix

MAX_CLASS_ROWS = 500
MAX_METRIC_ROWS = 3000
MAX_GROUPS = 30
CSS_PER_PIXEL = 96 / 130  # figures are drawn at 130 dots an inch
SMALL_FIGURE = 720  # up to this width two stand side by side on a wide screen

_READING = {
    "confusion_matrix": "Rows are actual classes, columns predicted ones; the diagonal holds the hits. Colours are "
    "shares of the row; rows of fewer than 20 samples are pale.",
    "reduced": "Rows are actual groups, columns predicted ones. " + words.MISMATCHES,
    "roc": "Up and left is better. The dotted line is chance. A dashed level line, where there is one, is the ceiling: "
    "the largest recall that any threshold can reach. The marker shows the predicted labels (most probable class).",
    "spcc_matrix": "How well the probabilities separate two classes, as if both had equally many samples: 1 is "
    "perfect, 0 is no separation. Dark cells are pairs that the scores do not separate; grey ones have fewer than 20 "
    "samples of a class. The sPCC metrics are those at the actual shares, which are lower for rare classes.",
    "score_histogram": "Scores by actual class, as shares of each class and as counts. The less the classes overlap, "
    "the better a threshold can separate them.",
    "prevalence_likelihood": "How plausible each share of positives is, given the scores. The interval ends where the "
    "solid curve crosses the dotted cut. Lines and marks show the actual share and simpler estimates.",
}


def report_html(
    evaluation: Evaluation, pictures: Mapping[str, bytes], *, title: str = "Evaluation", subtitle: str = ""
) -> str:
    """Write the report.

    Parameters
    ----------
    evaluation : Evaluation
    pictures : mapping of str to bytes
        PNG images by the names of :meth:`Evaluation.figures`; they are embedded.
    title, subtitle : str

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
        warnings=evaluation.warnings,
        level=f"{100 * evaluation.confidence_level:g} %",
        key_metrics=_key_metrics(evaluation),
        classes=_classes(evaluation),
        label_width=min(24, max(len(words.short(label)) for label in evaluation.labels) + 2),
        n_classes=len(evaluation.classes),
        mismatches=words.MISMATCHES,
        steps=[_step(evaluation, s) for s in evaluation.reduced if evaluation.has_section("reduced")],
        figures=[figure_entry(name, data) for name, data in pictures.items()],
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
        "title": title(name, _shown),
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


def _key_metrics(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Headline metrics in sections; the ends of an interval stand beside their value already."""
    sections: dict[str, list[dict[str, Any]]] = {}
    positive = "" if evaluation.positive is None else words.short(evaluation.positive)
    for name in evaluation.metrics:
        entry = lookup(name)
        if entry.headline and not name.endswith(("_low", "_high")):
            sections.setdefault(section_title(name, words.short, positive), []).append(metric_row(evaluation, name))
    return [{"name": name, "rows": rows} for name, rows in sections.items()]


def _shown(label: object) -> str:
    return quoted(words.short(label))


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


def figure_entry(name: str, data: bytes) -> dict[str, Any]:
    """A picture as the page shows it."""
    width = int.from_bytes(data[16:20], "big") if data[:4] == b"\x89PNG" else 0
    height = int.from_bytes(data[20:24], "big") if width else 0
    kind = "reduced" if name.startswith("reduced_") else name
    return {
        "name": name,
        "title": "Reduced matrix: " + name.removeprefix("reduced_") if kind == "reduced" else _figure_title(name),
        "reading": _READING.get(kind, ""),
        "source": "data:image/png;base64," + base64.b64encode(data).decode("ascii"),
        "width": round(width * CSS_PER_PIXEL),
        "height": round(height * CSS_PER_PIXEL),
        "small": 0 < width * CSS_PER_PIXEL <= SMALL_FIGURE,
    }


def _figure_title(name: str) -> str:
    titles = {"roc": "ROC curve", "spcc_matrix": "Separation of pairs of classes (one-vs-one sPCC at equal shares)"}
    return titles.get(name, name.replace("_", " ").capitalize())


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
