"""The one registry of every metric: name, formula, range, direction, source, need, interval, headline.

The README's table, the plots' axes, the ranking's direction, the intervals' scales and the logged names read it.
Parts in angle brackets stand for a class label, a step's name or a group's name.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from cmtrack.metrics.names import decode_label

MARKOULIDAKIS = "Markoulidakis et al. (2021)"
GUBBELS = "Gubbels (2023)"
DUENTSCH = "Düntsch & Gediga (2019)"
INF = math.inf


@dataclass(frozen=True)
class Metric:
    """What is known of a metric.

    Attributes
    ----------
    name : str
        As in ``Evaluation.metrics``, with ``<label>``, ``<step>`` and ``<group>`` for the parts that vary.
    formula : str
    low, high : float
        Its range.
    better : "higher", "lower", "nearest zero" or ""
        What a comparison prefers; empty for counts and descriptions, which are not ranked.
    needs : "labels", "two groups", "probabilities", "label sets", "spans" or "granules"
        The least that it is computed from ("probabilities" of two groups where the section says so).
    source : str
    scale : "wilson", "count", "wald", "atanh", "logit", "profile" or ""
        How its interval is made.
    headline : bool
        Whether it is logged as an MLflow metric by default.
    """

    name: str
    formula: str
    low: float
    high: float
    better: str
    needs: str
    source: str
    scale: str = ""
    headline: bool = False

    @property
    def section(self) -> str:
        """The part before the first slash."""
        return self.name.split("/")[0]


def _rows(
    section: str, needs: str, source: str, low: float, high: float, better: str, scale: str, table: str
) -> list[Metric]:
    """Read lines ``name | formula``; a star after the name marks a headline metric."""
    out = []
    for line in filter(None, map(str.strip, table.splitlines())):
        name, formula = (part.strip() for part in line.split("|", 1))
        headline = name.endswith("*")
        full = f"{section}/{name.rstrip('*')}"
        out.append(Metric(full, formula, low, high, better, needs, source, scale, headline))
    return out


CATALOG: tuple[Metric, ...] = (
    *_rows("multiclass", "labels", "Sokolova & Lapalme (2009)", 0, 1, "higher", "wilson", """
        accuracy* | Σ C_ii / n
        recall_weighted | mean of recall weighted by support; equals accuracy
    """),
    *_rows("multiclass", "labels", "Sokolova & Lapalme (2009)", 0, 1, "higher", "wald", """
        balanced_accuracy* | mean of recall over classes
        precision_macro | mean of precision over classes
        recall_macro | mean of recall over classes
        f1_macro* | mean of F1 over classes
        precision_weighted | mean of precision weighted by support
        f1_weighted | mean of F1 weighted by support
    """),
    *_rows("multiclass", "labels", "scikit-learn, zero_division=0", 0, 1, "higher", "wald", """
        precision_macro_zero | precision_macro, a class that is never predicted counted as 0
        precision_weighted_zero | precision_weighted, a class that is never predicted counted as 0
        f1_macro_zero | f1_macro, a class that is neither actual nor predicted counted as 0
    """),
    *_rows("multiclass", "labels", f"{MARKOULIDAKIS}, Table 3", 0, 1, "higher", "wald", """
        f1_of_macro_means | harmonic mean of precision_macro and recall_macro
    """),
    *_rows("multiclass", "labels", "Cohen (1960, 1968)", -1, 1, "higher", "wald", """
        cohen_kappa* | (p_o − p_e) / (1 − p_e)
        cohen_kappa_linear | 1 − Σ W P / Σ W T Q, W = |i − j| / (K − 1), in label order
        cohen_kappa_quadratic | 1 − Σ W P / Σ W T Q, W = (i − j)² / (K − 1)², in label order
    """),
    *_rows("multiclass", "labels", "Gorodkin (2004)", -1, 1, "higher", "atanh", """
        matthews_corrcoef* | (p_o − Σ T Q) / √((1 − Σ T²)(1 − Σ Q²))
    """),
    *_rows("class/<label>", "labels", "Sokolova & Lapalme (2009)", 0, 1, "higher", "wilson", """
        precision | C_ii / predicted total
        recall | C_ii / actual total
    """),
    *_rows("class/<label>", "labels", "van Rijsbergen (1979)", 0, 1, "higher", "wald", """
        f1 | 2 C_ii / (actual + predicted total)
    """),
    *_rows("class/<label>", "labels", "", 0, INF, "", "count", """
        support | actual total
    """),
    *_rows("reduced/<step>", "labels", f"{MARKOULIDAKIS}, Table 4", 0, 1, "higher", "wilson", """
        accuracy* | Σ TP_g / n
    """),
    *_rows("reduced/<step>", "labels", f"{MARKOULIDAKIS}, Tables 3 and 4", 0, 1, "higher", "wald", """
        precision_macro | mean of precision over groups
        recall_macro | mean of recall over groups
        f1_macro* | mean of F1 over groups
        f1_of_macro_means | harmonic mean of precision_macro and recall_macro
    """),
    *_rows("reduced/<step>", "labels", "scikit-learn, zero_division=0", 0, 1, "higher", "wald", """
        precision_macro_zero | precision_macro, a group that is never predicted counted as 0
        f1_macro_zero | f1_macro, a group that is neither actual nor predicted counted as 0
    """),
    *_rows("reduced/<step>", "labels", "Gorodkin (2004)", -1, 1, "higher", "atanh", """
        matthews_corrcoef | R_K of the groups; a mismatch counts as agreement of its group
    """),
    *_rows("reduced/<step>", "labels", f"{MARKOULIDAKIS}, eq. 7", 0, 1, "lower", "wilson", """
        mismatch_rate* | Σ IM_g / n
    """),
    *_rows("reduced/<step>/<group>", "labels", f"{MARKOULIDAKIS}, Table 4", 0, 1, "higher", "wilson", """
        precision | TP_g / (TP_g + FP_g + IM_g)
        recall | TP_g / (TP_g + FN_g + IM_g)
    """),
    *_rows("reduced/<step>/<group>", "labels", f"{MARKOULIDAKIS}, Table 4", 0, 1, "higher", "wald", """
        f1 | 2 TP_g / (actual + predicted total)
    """),
    *_rows("reduced/<step>/<group>", "labels", f"{MARKOULIDAKIS}, eq. 7", 0, INF, "", "count", """
        mismatches | IM_g: right group, a pair of classes that is not accepted
    """),
    *_rows("binary", "two groups", f"{MARKOULIDAKIS}, fig. 5", 0, INF, "", "count", """
        tp | hits of the positive group
        fn | actual positives predicted negative
        imp | intragroup mismatches of the positive group
        fp | actual negatives predicted positive
        tn | hits of the negative group
        imn | intragroup mismatches of the negative group
    """),
    *_rows("binary", "two groups", f"{MARKOULIDAKIS}, Table 5", 0, 1, "higher", "wilson", """
        accuracy | (TP + TN) / n
        recall* | TP / (TP + FN + IMP)
        specificity* | TN / (TN + FP + IMN)
        precision* | TP / (TP + FP + IMP)
        npv | TN / (TN + FN + IMN)
    """),
    *_rows("binary", "two groups", f"{MARKOULIDAKIS}, Table 5", 0, 1, "lower", "wilson", """
        fnr | FN / (TP + FN + IMP)
        fpr | FP / (TN + FP + IMN)
        fdr | FP / (TP + FP + IMP)
        for | FN / (TN + FN + IMN)
    """),
    *_rows("binary", "two groups", f"{MARKOULIDAKIS}, eq. 29-32", 0, 1, "lower", "wilson", """
        pimr | IMP / (TP + FN + IMP)
        nimr | IMN / (TN + FP + IMN)
        ppimr | IMP / (TP + FP + IMP)
        npimr | IMN / (TN + FN + IMN)
    """),
    *_rows("binary", "two groups", f"{MARKOULIDAKIS}, Table 2", 0, 1, "higher", "wald", """
        f1* | 2 TP / (P_actual + P_predicted)
        fowlkes_mallows | TP / √(P_actual · P_predicted)
        balanced_accuracy | (recall + specificity) / 2
        threat_score | TP / (P_actual + P_predicted − TP)
    """),
    *_rows("binary", "two groups", f"{MARKOULIDAKIS}, Table 2", 0, 1, "lower", "wald", """
        prevalence_threshold | √FPR / (√TPR + √FPR)
    """),
    *_rows("binary", "two groups", f"{MARKOULIDAKIS}, Table 2", -1, 1, "higher", "wald", """
        informedness | recall − fall-out
        markedness | precision − false omission rate
    """),
    *_rows("binary", "two groups", f"{MARKOULIDAKIS}, eq. 28 corrected", -1, 1, "higher", "atanh", """
        matthews_corrcoef* | ((TP + IMP)(TN + IMN) − FN · FP) / √(P_act P_pred N_act N_pred)
    """),
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
    *_rows("spans", "spans", "Nakayama (2018), seqeval", 0, 1, "higher", "wilson", """
        precision_micro* | right spans / predicted spans
        recall_micro* | right spans / actual spans
    """),
    *_rows("spans", "spans", "Nakayama (2018), seqeval", 0, 1, "higher", "wald", """
        f1_micro* | 2 right spans / (predicted + actual spans)
        precision_macro | mean of precision over the labels of spans
        recall_macro | mean of recall over the labels of spans
        f1_macro* | mean of F1 over the labels of spans
        precision_macro_zero | precision_macro, a label that is never predicted counted as 0
        recall_macro_zero | recall_macro, a label that is never actual counted as 0
    """),
    *_rows("rough", "labels", f"{DUENTSCH}, eq. 3.6", 0, 1, "higher", "wilson", """
        gamma_upper | at least the quality of approximation γ: Σ C_ii / n, the accuracy
    """),
    *_rows("rough", "labels", f"{DUENTSCH}, eq. 3.5-3.6 corrected", 0, 1, "higher", "wald", """
        alpha_upper | at least the weighted accuracy of approximation: Σ C_ii / (2n − Σ C_ii)
    """),
    *_rows("rough/<label>", "labels", f"{DUENTSCH}, theorem 4.1", 0, INF, "", "", """
        lower_upper_bound | at least the lower approximation: C_ii, less 1 if the class is also predicted for others
    """),
    *_rows("rough/<label>", "labels", f"{DUENTSCH}, theorem 4.2", 0, INF, "", "", """
        upper_lower_bound | at most the upper approximation: actual or predicted, plus 1 for each class it is taken for
    """),
    *_rows("rough/<label>", "labels", f"{DUENTSCH}, eq. 3.4", 0, 1, "higher", "wilson", """
        alpha_upper | at least the accuracy of approximation: C_ii / (actual + predicted total − C_ii)
    """),
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

_EXACT = {metric.name: metric for metric in CATALOG if "<" not in metric.name}
_PATTERNS: dict[str, list[tuple[re.Pattern[str], Metric]]] = {metric.section: [] for metric in CATALOG}
for _metric in CATALOG:
    if "<" in _metric.name:
        _escaped = re.escape(_metric.name).replace(r"\<", "<").replace(r"\>", ">")
        _PATTERNS[_metric.section].append((re.compile(re.sub(r"<\w+>", "[^/]+", _escaped)), _metric))


def lookup(name: str) -> Metric:
    """The catalog's entry of a full metric name such as ``class/7/recall``.

    Raises
    ------
    KeyError
        If no metric has that name.
    """
    if name in _EXACT:
        return _EXACT[name]
    for pattern, metric in _PATTERNS.get(name.split("/", 1)[0], []):
        if pattern.fullmatch(name):
            return metric
    raise KeyError(f"no metric is called {name!r}")


def title(name: str) -> str:
    """A metric's name for people: labels decoded, underscores as spaces."""
    section, *parts = name.split("/")
    *middle, last = parts or [""]
    words = [section, *map(decode_label, middle), last.replace("_", " ")]
    return " · ".join(words)
