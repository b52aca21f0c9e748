"""The one registry of every metric: each section's declarations, and where a name is looked up.

The README's table, reports, rankings, gates, intervals and the logged names read it. Sections of counts declare their
metrics with their functions, in the files of the sections; the declarations here are of sections whose values are
computed together. Parts in angle brackets stand for a class label, a step's name or a group's name.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

from cmtrack.metrics.binary import BINARY
from cmtrack.metrics.metric import Metric
from cmtrack.metrics.multiclass import MULTICLASS, REDUCED, SPANS
from cmtrack.metrics.per_class import CLASSES, GROUPS
from cmtrack.rough.metrics import DUENTSCH, ROUGH, ROUGH_CLASSES

MARKOULIDAKIS = "Markoulidakis et al. (2021)"
GUBBELS = "Gubbels (2023)"
INF = math.inf


def _rows(
    section: str, of: str, source: str, low: float, high: float, better: str, interval: str, table: str
) -> list[Metric]:
    """Read lines ``name | formula``; a star after the name marks a headline metric."""
    out = []
    for line in filter(None, map(str.strip, table.splitlines())):
        name, formula = (part.strip() for part in line.split("|", 1))
        words: dict[str, Any] = {"of": of, "formula": formula, "low": low, "high": high, "better": better}
        words |= {"source": source, "interval": interval, "headline": name.endswith("*")}
        out.append(Metric(f"{section}/{name.rstrip('*')}", None, **words))
    return out


SCORES = (
    *_rows("binary", "probabilities", f"{MARKOULIDAKIS}, section 4.3", 0, 1, "higher", "logit", """
        roc_auc* | area under (FPR, TPR); with mismatches at most the ceiling
        roc_auc_normalized | roc_auc / roc_auc_ceiling; chance is 1/2
    """),
    *_rows("binary", "probabilities", f"{MARKOULIDAKIS}, section 4.3", 0, 1, "higher", "wilson", """
        roc_auc_ceiling* | largest recall that any threshold reaches
    """),
    *_rows("spcc", "probabilities", f"{GUBBELS}, eq. 1.9-1.10", -1, 1, "higher", "atanh", """
        binary* | sample correlation of the positive group's indicator and its score
        ovr/<label> | correlation of one class's indicator and its score over all samples
    """),
    *_rows("spcc", "probabilities", f"{GUBBELS}, section 1.3.1, with the factor 1/m", -1, 1, "higher", "atanh", """
        ovr_fisher* | tanh of the mean atanh of the one-vs-rest correlations
        ovr_min* | smallest one-vs-rest correlation
        ovo_fisher | tanh of the mean atanh of the one-vs-one correlations
        ovo_min | smallest one-vs-one correlation
    """),
    *_rows("spcc", "probabilities", f"{GUBBELS}, section 1.2.2", 0, INF, "higher", "wald", """
        d_a | |μ₁ − μ₀| / √((v₁ + v₀) / 2)
        d_e | 2 |μ₁ − μ₀| / (√v₁ + √v₀)
        d_b | −2 Φ⁻¹(e), e the Bayes error at equal priors of the binned densities
    """),
    *_rows("prevalence", "probabilities", "", 0, 1, "", "wilson", """
        actual* | share of actual positives
        classify_and_count | share of predicted positives
    """),
    *_rows("prevalence", "probabilities", f"{GUBBELS}, section 1.2.3", 0, 1, "", "wald", """
        expected | mean score
    """),
    *_rows("prevalence", "probabilities", f"{GUBBELS}, section 1.2.3", 0, INF, "", "wald", """
        expected_count | sum of scores
        expected_count_sd_labels_only | √Σ s (1 − s): the labels' spread, not the count's error
    """),
    *_rows("prevalence", "probabilities", f"{GUBBELS}, section 1.2.3", -1, 1, "nearest zero", "wald", """
        bias* | (Σ s − Σ y) / n
    """),
    *_rows("prevalence", "probabilities", f"{GUBBELS}, section 0.4", 0, 1, "", "profile", """
        calibrated* | maximum-likelihood share of positives, by labelled score densities
    """),
    *_rows("prevalence", "probabilities", f"{GUBBELS}, section 0.4", 0, 1, "", "", """
        calibrated_low* | lower end of its interval
        calibrated_high* | upper end of its interval
    """),
    *_rows("prevalence", "probabilities", f"{GUBBELS}, section 0.4", 0, INF, "", "profile", """
        calibrated_count | calibrated share times the target's size
    """),
    *_rows("prevalence", "probabilities", f"{GUBBELS}, section 0.4", -1, 1, "nearest zero", "profile", """
        calibrated_bias | calibrated − actual
    """),
    *_rows("prevalence", "probabilities", "variance by source", 0, 1, "", "", """
        share_target | share of the error that comes from the target's size
        share_positives | share that comes from the labelled positives
        share_negatives | share that comes from the labelled negatives
    """),
    *_rows("prevalence", "probabilities", "Pearson's X² of target against mixture", 0, 1, "", "", """
        fit_pvalue | small: not only the prevalence changed
    """),
    *_rows("prevalence/<label>", "probabilities", "", 0, 1, "", "wilson", """
        actual | share of the class
    """),
    *_rows("prevalence/<label>", "probabilities", f"{GUBBELS}, section 1.2.3", 0, 1, "", "wald", """
        expected | mean probability of the class
    """),
    *_rows("prevalence/<label>", "probabilities", f"{GUBBELS}, section 1.2.3", -1, 1, "nearest zero", "wald", """
        bias | expected − actual
    """),
    *_rows("prevalence/<label>", "probabilities", f"{GUBBELS}, section 0.4", 0, 1, "", "profile", """
        calibrated | maximum-likelihood share of the class, all classes jointly
    """),
    *_rows("prevalence/<label>", "probabilities", f"{GUBBELS}, section 0.4", 0, 1, "", "", """
        calibrated_low | lower end of its interval
        calibrated_high | upper end of its interval
    """),
)  # fmt: skip

FAMILIES = (
    *_rows("family", "label sets", "Falis, Hierarchical Confusion Matrices", 0, 1, "higher", "logit", """
        match_share* | 2 matches / labels, predicted and actual ones together; equals f1_micro
    """),
    *_rows("family", "label sets", "Falis, Hierarchical Confusion Matrices", 0, 1, "lower", "logit", """
        confusion_share* | labels, no match, with an unmatched code of their family on the other side / labels
        oof_share* | labels, no match, without one (out of family) / labels
        confusion_share_predicted | confused predicted codes / predicted codes
        oof_share_predicted | predicted codes out of family / predicted codes
        confusion_share_actual | confused actual codes / actual codes
        oof_share_actual | actual codes out of family / actual codes
    """),
    *_rows("family", "label sets", "Sokolova & Lapalme (2009)", 0, 1, "higher", "logit", """
        precision_micro* | matches / predicted codes, over all documents
        recall_micro* | matches / actual codes, over all documents
        f1_micro* | 2 matches / (predicted + actual codes), over all documents
    """),
    *_rows("family", "label sets", "Sokolova & Lapalme (2009)", 0, 1, "higher", "wald", """
        precision_macro | mean of precision over codes
        recall_macro | mean of recall over codes
        f1_macro* | mean of F1 over codes
    """),
    *_rows("family", "label sets", "Kiritchenko et al. (2005)", 0, 1, "higher", "logit", """
        hierarchical_precision* | Σ |P∩A| / Σ |P|, sets of codes with all their ancestors
        hierarchical_recall* | Σ |P∩A| / Σ |A|
        hierarchical_f1* | 2 Σ |P∩A| / (Σ |P| + Σ |A|)
    """),
    *_rows("family/<family>", "label sets", "Falis, Hierarchical Confusion Matrices", 0, 1, "higher", "logit", """
        match_share | 2 matches / labels of the family; equals f1_micro
    """),
    *_rows("family/<family>", "label sets", "Falis, Hierarchical Confusion Matrices", 0, 1, "lower", "logit", """
        confusion_share | confused labels / labels of the family
        oof_share | labels out of family / labels of the family
    """),
    *_rows("family/<family>", "label sets", "Sokolova & Lapalme (2009)", 0, 1, "higher", "logit", """
        precision_micro | matches / predicted codes of the family
        recall_micro | matches / actual codes of the family
        f1_micro | 2 matches / (predicted + actual codes of the family)
    """),
    *_rows("family/<family>", "label sets", "", 0, INF, "", "", """
        support | actual codes of the family
    """),
)  # fmt: skip

GRANULES = (
    *_rows("rough", "granules", f"{DUENTSCH}, eq. 3.3", 0, 1, "higher", "", """
        gamma | share of samples in granules of a single class
    """),
    *_rows("rough", "granules", f"{DUENTSCH}, eq. 3.5", 0, 1, "higher", "", """
        alpha | Σ lower / Σ upper approximations
    """),
    *_rows("rough/<label>", "granules", "Pawlak (1982)", 0, INF, "", "", """
        lower | lower approximation: samples in granules inside the class
        upper | upper approximation: samples in granules that meet the class
    """),
    *_rows("rough/<label>", "granules", f"{DUENTSCH}, eq. 3.4", 0, 1, "higher", "", """
        alpha | lower / upper
        lower_share | lower / actual total
        upper_share | actual total / upper
    """),
)  # fmt: skip

_TITLES = {
    "matthews_corrcoef": ("Matthews correlation", "MCC"),
    "cohen_kappa": ("Cohen's kappa", "kappa"),
    "cohen_kappa_linear": ("Cohen's kappa, linear weights", "linear kappa"),
    "cohen_kappa_quadratic": ("Cohen's kappa, quadratic weights", "quadratic kappa"),
    "roc_auc": ("area under the ROC curve", "ROC AUC"),
    "roc_auc_normalized": ("normalised area under the ROC curve", "normalised AUC"),
    "roc_auc_ceiling": ("ceiling of the ROC curve", "ROC ceiling"),
    "f1": ("F1", "F1"),
    "f1_macro": ("macro F1", "macro F1"),
    "f1_weighted": ("weighted F1", "weighted F1"),
    "f1_of_macro_means": ("F1 of the macro means", "F1 of means"),
    "precision_macro": ("macro precision", "macro precision"),
    "recall_macro": ("macro recall", "macro recall"),
    "precision_micro": ("micro precision", "micro precision"),
    "recall_micro": ("micro recall", "micro recall"),
    "f1_micro": ("micro F1", "micro F1"),
    "precision_macro_zero": ("macro precision, undefined as 0", "macro precision (0)"),
    "precision_weighted_zero": ("weighted precision, undefined as 0", "weighted precision (0)"),
    "recall_macro_zero": ("macro recall, undefined as 0", "macro recall (0)"),
    "f1_macro_zero": ("macro F1, undefined as 0", "macro F1 (0)"),
    "match_share": ("share of matching labels", "match share"),
    "confusion_share": ("share of labels confused within their family", "confused"),
    "oof_share": ("share of labels out of family", "out of family"),
    "hierarchical_precision": ("hierarchical precision", "hier. precision"),
    "hierarchical_recall": ("hierarchical recall", "hier. recall"),
    "hierarchical_f1": ("hierarchical F1", "hier. F1"),
    "ovr_fisher": ("separation of each class from the rest (sPCC, Fisher mean)", "sPCC ovr"),
    "ovr_min": ("separation of the worst class from the rest (sPCC)", "sPCC ovr min"),
    "ovo_fisher": ("separation of pairs of classes (sPCC, Fisher mean)", "sPCC ovo"),
    "ovo_min": ("separation of the worst pair of classes (sPCC)", "sPCC ovo min"),
    "bias": ("prevalence bias", "prev. bias"),
    "calibrated_bias": ("calibrated prevalence bias", "calibrated bias"),
}
"""Titles for people, in full and for the head of a table, by the last part of the name; others are that part itself."""

_DECLARED: tuple[Metric, ...] = (
    *MULTICLASS,
    *CLASSES,
    *REDUCED,
    *GROUPS,
    *BINARY,
    *SCORES,
    *FAMILIES,
    *SPANS,
    *ROUGH,
    *ROUGH_CLASSES,
    *GRANULES,
)

CATALOG: tuple[Metric, ...] = tuple(
    replace(metric, title=titles[0], brief=titles[1])
    if (titles := _TITLES.get(metric.name.rsplit("/", 1)[1])) and not metric.title
    else metric
    for metric in _DECLARED
)
_EXACT = {metric.name: metric for metric in CATALOG if "<" not in metric.name}
_PATTERNS: dict[str, list[tuple[re.Pattern[str], Metric]]] = {metric.section: [] for metric in CATALOG}
for _metric in CATALOG:
    if "<" in _metric.name:
        _escaped = re.escape(_metric.name).replace(r"\<", "<").replace(r"\>", ">")
        _PATTERNS[_metric.section].append((re.compile(re.sub(r"<\w+>", "[^/]+", _escaped)), _metric))


_OWN: dict[str, Metric] = {}
"""Metrics of users' own that this process has met, by name: their words, wherever a name is read."""


def declare(metric: Metric) -> None:
    """Make a metric of one's own known by its name; one that a file declares does not replace one with a function."""
    if metric.value is not None or metric.name not in _OWN:
        _OWN[metric.name] = metric


def own_of(name: str) -> str | None:
    """What a metric of one's own is a function of; None for any other name."""
    return _OWN[name].of if name in _OWN else None


def known_names() -> tuple[str, ...]:
    """Names of all metrics, also of one's own that this process has met."""
    return (*(metric.name for metric in CATALOG), *_OWN)


def lookup(name: str) -> Metric:
    """The catalog's entry of a full metric name such as ``class/7/recall``.

    Raises
    ------
    KeyError
        If no metric has that name.
    """
    if name in _EXACT:
        return _EXACT[name]
    if name in _OWN:
        return _OWN[name]
    for pattern, metric in _PATTERNS.get(name.split("/", 1)[0], []):
        if pattern.fullmatch(name):
            return metric
    raise KeyError(f"no metric is called {name!r}")
