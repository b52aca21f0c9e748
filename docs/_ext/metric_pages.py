"""Pages of the metrics, from their registry: an index, and one page for each section."""

from __future__ import annotations

import math
import re

from cmtrack.metrics.catalog import SECTIONS
from cmtrack.metrics.metric import BETTER, Metric, Section

SCALES = {
    "wilson": "Wilson",
    "count": "Wilson, times the number of samples",
    "wald": "Wald",
    "atanh": "atanh",
    "logit": "logit",
    "log": "log",
    "profile": "profile likelihood",
    "square": "of its square",
}
"""Ways of an interval; what they are stands in ``reference/metrics.md``."""
ABOUT = {
    "multiclass": "Of every evaluation of classes. Averages over classes say which average they are, and which classes "
    "they pass over.",
    "class-label": "One set for each class; `<label>` stands for it. They are in `evaluation.class_table()`; MLflow "
    "gets those that `metrics=` names. What each is computed from: "
    "[What the numbers mean](../../../concepts/reading_numbers.md).",
    "spans": "Of {py:func}`cmtrack.evaluate_spans`: labelled spans, such as entities in texts.",
    "reduced-step": "Of each step of a grouping, with its intragroup mismatches (IM) kept apart: "
    "[The reduced matrix](../../../concepts/reduced_matrix.md).",
    "binary": "Of the positive one of two classes or groups. The six counts are TP, FN, FP, TN and the intragroup "
    "mismatches IMP (of the positive group) and IMN (of the other): "
    "[Mismatches](../../../concepts/mismatches.md), [The ceiling](../../../concepts/ceiling.md).\n\n"
    "In the formulas P_actual = TP + FN + IMP, P_predicted = TP + FP + IMP, and n is the sum of all six. NPV is the "
    "negative predictive value, FNR the miss rate, FPR the fall-out, FDR and FOR the false discovery and "
    "false omission rates. PIMR and NIMR are the mismatches' shares of the actual positives and negatives, PPIMR and "
    "NPIMR those of the predicted ones.",
    "cost": "Where costs are given: [Costs and thresholds](../../../guide/decisions.md).",
    "probability": "Proper scores of the probabilities: "
    "[Are the probabilities right?](../../../guide/probabilities.md)",
    "probability-step": "The same scores for the groups of each step, whose probability is the sum over their classes.",
    "calibration": "Of the positive group's score: [Are the probabilities right?](../../../guide/probabilities.md)",
    "confidence": "Of the probability that the prediction is a hit: "
    "[Are the probabilities right?](../../../guide/probabilities.md)",
    "confidence-step": "The same for each step of a grouping: a hit is one of the group, mismatches are none.",
    "spcc": "The sample Pearson correlation of what is actual and the scores: [sPCC](../../../concepts/spcc.md).",
    "prevalence": "How many positives there are: "
    "[How many positives are there?](../../../guide/count_positives.md). Without `calibration=` the evaluated "
    "rows calibrate themselves: those that begin with `calibrated` are then close to the actual share by construction. "
    "Of more than two classes there is one set for each, `<label>` stands for it.",
    "family": "Of {py:func}`cmtrack.evaluate_families`: a set of codes for each document, and codes in families. "
    "Those with `<family>` are of one family.",
    "rough": "Bounds that a confusion matrix gives, and what a {py:class}`cmtrack.GranuleTable` knows exactly: "
    "[Rough sets](../../../concepts/rough_sets.md).",
}
"""What a section is, by the name of its page."""
TITLES = {"family": "Codes in families"}
"""Of pages, where the one over a report's numbers says less."""


def slug(name: str) -> str:
    """The anchor of a metric, and the file of a section: ``class-label-recall`` for ``class/<label>/recall``."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def page_of(section: Section) -> str:
    """The name of a section's page."""
    first = section.metrics[0].name.split("/")
    several = section.name in ("class", "reduced") or first[1] == "<step>"
    return slug("/".join(first[:2])) if several else slug(section.name)


def interval(metric: Metric) -> str:
    """How its interval is made, in a word or two."""
    if hasattr(metric.value, "interval"):
        return str(getattr(metric.value, "scale", "bracket"))
    return SCALES.get(metric.interval, "none")


def scope(metric: Metric) -> str:
    """Its range."""
    if metric.low == 0 and metric.high == math.inf:
        return "≥ 0"
    return f"{metric.low:g} … {metric.high:g}".replace("inf", "∞").replace("-", "−")


def index() -> str:
    """The table of all metrics: a line for each, with a link to its words."""
    lines = ["| metric | title | better |", "|---|---|---|"]
    for section in SECTIONS:
        for metric in section.metrics:
            name = f"[`{metric.name}`](generated/metrics/{page_of(section)}.md#{slug(metric.name)})"
            title = plain(_title(metric)) + (" **•**" if metric.headline else "")
            lines.append(f"| {name} | {title} | {_better(metric) or '–'} |")
    return "\n".join(lines) + "\n"


def section_page(section: Section) -> str:
    """The page of a section: a heading, an anchor and what the registry knows of each metric."""
    title = TITLES.get(section.name) or re.sub(r": \{step\}", ", by step", section.title)
    parts = [f"# {plain(title)}\n", ABOUT[page_of(section)], ""]
    for metric in section.metrics:
        parts += [f"({slug(metric.name)})=", f"## {plain(_title(metric))}\n", f"`{metric.name}`\n"]
        known = {
            "Formula": plain(metric.formula),
            "Range": scope(metric),
            "Better": _better(metric) or "neither, it is not ranked",
            "Interval": interval(metric),
            "Computed from": metric.needs,
            "Undefined (NaN)": metric.reason and f"where {plain(metric.reason)}",
            "In MLflow": "logged by default" if metric.headline else "where `metrics=` names it",
            "Source": plain(metric.source),
        }
        parts += [f":{field}: {text}" for field, text in known.items() if text] + [""]
    return "\n".join(parts)


def _better(metric: Metric) -> str:
    """The direction that is better: higher, lower, nearest zero, or none."""
    return BETTER.get(metric.better, "").removesuffix(" is better").removesuffix(" is best")


def _title(metric: Metric) -> str:
    """Its title with the parts that vary as they stand in its name, first letter large."""
    if not metric.title and metric.name.startswith("binary/") and len(metric.name) <= len("binary/ppimr"):
        return metric.name.removeprefix("binary/").upper()
    title = metric.heading().format_map({part: f"<{part}>" for part in re.findall(r"<(\w+)>", metric.name)})
    return title if title[:2].isupper() or title.startswith("sPCC") else title[0].upper() + title[1:]


def plain(text: str) -> str:
    """Text in which Markdown finds no marks."""
    return re.sub(r"([\\`*_<>\[\]|${}])", r"\\\1", text)


def pages() -> dict[str, str]:
    """Every page by its place under ``reference/generated``."""
    written = {f"metrics/{page_of(section)}": section_page(section) for section in SECTIONS}
    toctree = "\n".join(["```{toctree}", ":hidden:", "", *(f"generated/{place}" for place in written), "```"])
    return {f"{place}.md": text for place, text in written.items()} | {"metrics_index.txt": f"{index()}\n{toctree}\n"}
