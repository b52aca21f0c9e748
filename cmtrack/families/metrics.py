"""Metrics computed from label sets whose codes are grouped into families.

All metrics except the macro averages are ratios of sums over documents, ``Σ_d a·t_d / Σ_d b·t_d``,
with the tallies ``t_d`` of a document. Documents are the sampling units, so standard errors are
computed from the sums of products of the tallies.

The denominator of a share is the number of all labels, predicted and actual. A label is a match if
it is on both sides of its document. A label is confused if it is unmatched and the other side
contains an unmatched code of the same family. Otherwise the label is out of family. Hierarchical
measures count the codes of a document and all ancestors of these codes (Kiritchenko, Matwin, Famili
2005).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from cmtrack._lazy import cached_property
from cmtrack.digits import count
from cmtrack.families.counts import (
    ACTUAL,
    HITS,
    MACROS,
    PREDICTED,
    DocumentRows,
    FamilyStatistics,
    Sums8,
)
from cmtrack.metrics.catalog import Sections
from cmtrack.metrics.cells import ratio
from cmtrack.metrics.function import Function
from cmtrack.metrics.metric import Metric, Section
from cmtrack.metrics.names import encode_label
from cmtrack.metrics.results import Clusters, Results
from cmtrack.metrics.samples import Samples, Sums
from cmtrack.metrics.views import Views
from cmtrack.names import quoted, some_of
from cmtrack.statistics.inputs import FloatArray, IntArray

FEW = 20
"""Number of documents below which the shares of a code or a family are marked as approximate."""


class CodeAverage(Function):
    """Macro average: the mean of a ratio over all codes for which the ratio is defined.

    The standard error assumes that codes are independent, unless standard errors that treat
    documents as the sampling units are known.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, codes: IntArray) -> float:
        """Return the mean over the codes whose ratio is defined."""
        return macro_averages(codes)[self.name][0]

    def spread(self, codes: IntArray) -> float:
        """Return the standard error of the macro average, assuming independent codes."""
        return macro_averages(codes)[self.name][1]


_FALIS = "Falis, Hierarchical Confusion Matrices"
_SOKOLOVA = "Sokolova & Lapalme (2009)"
_KIRITCHENKO = "Kiritchenko et al. (2005)"
_NO_PREDICTED = "no code was predicted"
_NO_ACTUAL = "no document has a code"
_NO_LABEL = "there is no code"


def _ratio(name: str, value: Any, source: str, reason: str, formula: str, **words: Any) -> Metric:
    usual = {"low": 0.0, "high": 1.0, "interval": "logit", "headline": False, "of": "documents"}
    words = {**usual, "source": source, "reason": reason, "formula": formula, **words}
    return Metric(f"family/{name}", value, **words)


def _of_both(
    name: str, value: Any, source: str, reason: str, formulas: tuple[str, str], **words: Any
) -> tuple[Metric, Metric]:
    """Return two metrics with the same formula: one over all documents, and one for each family."""
    of_all, of_family = formulas
    return (
        _ratio(name, value, source, reason, of_all, headline=True, **words),
        _ratio(f"<family>/{name}", value, source, reason, of_family, of="family", **words),
    )


def _macro(name: str, formula: str, *, headline: bool = False) -> Metric:
    return Metric(
        f"family/{name}",
        CodeAverage(name),
        of="codes",
        low=0.0,
        high=1.0,
        source=_SOKOLOVA,
        formula=formula,
        reason="no code has a defined value",
        headline=headline,
    )


_OF_BOTH = (
    _of_both(
        "match_share",
        lambda t: 2 * t.hits / t.labels,
        _FALIS,
        _NO_LABEL,
        (
            "2 matches / (predicted + actual labels); equals f1_micro",
            "2 matches / (predicted + actual labels of the family); equals f1_micro",
        ),
        title="share of matching labels",
        brief="match share",
    ),
    _of_both(
        "confusion_share",
        lambda t: (t.predicted_confused + t.actual_confused) / t.labels,
        _FALIS,
        _NO_LABEL,
        (
            "unmatched labels whose family has an unmatched code on the other side / labels",
            "confused labels / labels of the family",
        ),
        title="share of labels confused within their family",
        brief="confused",
        better="lower",
    ),
    _of_both(
        "oof_share",
        lambda t: (t.predicted_outside + t.actual_outside) / t.labels,
        _FALIS,
        _NO_LABEL,
        (
            "unmatched labels whose family has no unmatched code on the other side / labels",
            "labels out of family / labels of the family",
        ),
        title="share of labels out of family",
        brief="out of family",
        better="lower",
    ),
    _of_both(
        "precision_micro",
        lambda t: t.hits / t.predicted,
        _SOKOLOVA,
        _NO_PREDICTED,
        (
            "matches / predicted codes, over all documents",
            "matches / predicted codes of the family",
        ),
    ),
    _of_both(
        "recall_micro",
        lambda t: t.hits / t.actual,
        _SOKOLOVA,
        _NO_ACTUAL,
        ("matches / actual codes, over all documents", "matches / actual codes of the family"),
    ),
    _of_both(
        "f1_micro",
        lambda t: 2 * t.hits / t.labels,
        _SOKOLOVA,
        _NO_LABEL,
        (
            "2 matches / (predicted + actual codes), over all documents",
            "2 matches / (predicted + actual codes of the family)",
        ),
    ),
)

FAMILY = Section(
    "family",
    "All documents",
    (
        *(of_all for of_all, _ in _OF_BOTH),
        _ratio(
            "confusion_share_predicted",
            lambda t: t.predicted_confused / t.predicted,
            _FALIS,
            _NO_PREDICTED,
            "confused predicted codes / predicted codes",
            better="lower",
            title="share of predicted codes confused within their family",
            brief="confused, predicted",
        ),
        _ratio(
            "oof_share_predicted",
            lambda t: t.predicted_outside / t.predicted,
            _FALIS,
            _NO_PREDICTED,
            "predicted codes out of family / predicted codes",
            better="lower",
            title="share of predicted codes out of family",
            brief="out of family, predicted",
        ),
        _ratio(
            "confusion_share_actual",
            lambda t: t.actual_confused / t.actual,
            _FALIS,
            _NO_ACTUAL,
            "confused actual codes / actual codes",
            better="lower",
            title="share of actual codes confused within their family",
            brief="confused, actual",
        ),
        _ratio(
            "oof_share_actual",
            lambda t: t.actual_outside / t.actual,
            _FALIS,
            _NO_ACTUAL,
            "actual codes out of family / actual codes",
            better="lower",
            title="share of actual codes out of family",
            brief="out of family, actual",
        ),
        _ratio(
            "hierarchical_precision",
            lambda t: t.shared_nodes / t.predicted_nodes,
            _KIRITCHENKO,
            _NO_PREDICTED,
            "Σ |P∩A| / Σ |P|, sets of codes with all their ancestors",
            headline=True,
            brief="hier. precision",
            title="hierarchical precision",
        ),
        _ratio(
            "hierarchical_recall",
            lambda t: t.shared_nodes / t.actual_nodes,
            _KIRITCHENKO,
            _NO_ACTUAL,
            "Σ |P∩A| / Σ |A|",
            headline=True,
            title="hierarchical recall",
            brief="hier. recall",
        ),
        _ratio(
            "hierarchical_f1",
            lambda t: 2 * t.shared_nodes / (t.predicted_nodes + t.actual_nodes),
            _KIRITCHENKO,
            _NO_LABEL,
            "2 Σ |P∩A| / (Σ |P| + Σ |A|)",
            headline=True,
            title="hierarchical F1",
            brief="hier. F1",
        ),
        _macro("precision_macro", "mean of precision over codes"),
        _macro("recall_macro", "mean of recall over codes"),
        _macro("f1_macro", "mean of F1 over codes", headline=True),
        *(of_family for _, of_family in _OF_BOTH),
        _ratio(
            "<family>/support",
            lambda t: t.actual,
            "",
            "",
            "actual codes of the family",
            high=math.inf,
            better="",
            interval="",
            of="family",
        ),
    ),
)
FIRST = (
    "family/f1_micro",
    "family/precision_micro",
    "family/recall_micro",
    "family/hierarchical_f1",
)
"""The most important headline metrics of an evaluation of families, in order."""
OF_FAMILIES = Sections(FAMILY, places=("cmtrack.families.metrics.OF_FAMILIES",))


class Codes(Samples):
    """Document counts by code, from which macro averages are computed."""

    def __init__(self, codes: IntArray) -> None:
        self.codes = codes

    def argument(self) -> IntArray:
        """Return the counts of documents for each code, shape (L, 5)."""
        return self.codes


class FamilyViews(Views):
    """Access to the samples from which a family evaluation's metrics are computed."""

    def __init__(self, statistics: FamilyStatistics) -> None:
        self.statistics = statistics

    def of(self, metric: Metric, step: str = "") -> Samples:
        """Return the samples from which a metric is computed."""
        return getattr(self, metric.of)

    def names(self, metric: Metric, step: str = "") -> dict[int, str] | None:
        """Return the texts that stand for the families in the names of a metric per family."""
        if metric.of != "family":
            return None
        return self._families

    @cached_property
    def _families(self) -> dict[int, str]:
        families = self.statistics.families.names
        return {number: encode_label(family) for number, family in enumerate(families)}

    @cached_property
    def documents(self) -> Sums:
        """Tallies summed over all documents."""
        counts = self.statistics
        return Sums(
            Sums8,
            counts.sums.astype(np.float64),
            counts.products.astype(np.float64),
            counts.digest.rows,
        )

    @cached_property
    def family(self) -> Sums:
        """Tallies of each family, summed over all documents."""
        sums, products = family_tallies(self.statistics)
        return Sums(Sums8, sums.T, np.moveaxis(products, 0, -1), self.statistics.digest.rows)

    @cached_property
    def codes(self) -> Codes:
        """The samples with the counts of each code."""
        return Codes(self.statistics.codes)

    def influence(self, metric: Metric, rows: DocumentRows) -> FloatArray | None:
        """Return each document's influence on a metric over all documents, shape (n,).

        Returns None for a metric of a single family, because tallies by family are not stored for
        documents.
        """
        if metric.of == "codes":
            return rows.macros[:, MACROS.index(metric.name.rsplit("/", 1)[1])]
        if metric.of != "documents":
            return None
        psi = metric.influence_in(self.documents)
        if psi is None or not np.isfinite(psi).all():
            return None
        return self.documents.of_rows(psi, rows.tallies)


def family_results(
    statistics: FamilyStatistics,
    confidence_level: float = 0.95,
    macro_errors: Mapping[str, float] | None = None,
) -> Results:
    """Return every metric with its standard error and interval.

    ``macro_errors``: standard errors of the macro averages that account for the dependence of codes
    in the same document. By default, codes are assumed to be independent.
    """
    results = Results(confidence_level, Clusters(macro_errors or {}))
    FamilyViews(statistics).put(results, FAMILY)
    return results


def _counts(codes: IntArray) -> FloatArray:
    """Count the matched, predicted and actual documents of each code, shape (3, L)."""
    return codes.T[[HITS, PREDICTED, ACTUAL]].astype(np.float64)


def code_ratios(codes: IntArray) -> dict[str, FloatArray]:
    """Return the precision, recall and F1 of each code as arrays (L,), with NaN if undefined."""
    hits, predicted, actual = _counts(codes)
    return {
        "precision": ratio(hits, predicted),
        "recall": ratio(hits, actual),
        "f1": ratio(2 * hits, predicted + actual),
    }


def macro_averages(codes: IntArray) -> dict[str, tuple[float, float]]:
    """Return macro averages, and standard errors that assume independent codes.

    Each average includes only the codes whose ratio is defined. The variance of a precision or a
    recall is the variance of a share, p (1 - p) / n. The variance of an F1 is computed by the delta
    method.

    ``codes``, shape (L, 5): the counts that :class:`FamilyStatistics` stores as ``codes``.
    """
    hits, predicted, actual = _counts(codes)
    values = code_ratios(codes)
    labels = predicted + actual
    f1 = values["f1"]
    unmatched = labels - 2 * hits
    variances = {
        "precision": ratio(values["precision"] * (1 - values["precision"]), predicted),
        "recall": ratio(values["recall"] * (1 - values["recall"]), actual),
        "f1": ratio(hits * (2 - 2 * f1) ** 2 + unmatched * f1**2, labels**2),
    }
    averages = {}
    for name, value in values.items():
        defined = np.isfinite(value)
        n_defined = int(defined.sum())
        mean = math.nan
        error = math.nan
        if n_defined:
            mean = float(value[defined].mean())
            error = math.sqrt(float(variances[name][defined].sum())) / n_defined
        averages[f"{name}_macro"] = (mean, error)
    return averages


def document_errors(statistics: FamilyStatistics, rows: DocumentRows) -> dict[str, float]:
    """Return standard errors of the macro averages, with documents as the sampling units."""
    n = statistics.digest.rows
    return {
        f"family/{name}": float(np.linalg.norm(rows.macros[:, column])) / n
        for column, name in enumerate(MACROS)
    }


def family_tallies(statistics: FamilyStatistics) -> tuple[FloatArray, FloatArray]:
    """Return each family's tallies summed over documents (F, 5), and sums of products (F, 5, 5).

    Only the first five tallies are included, because the remaining tallies count nodes rather than
    codes.
    """
    family, matched, predicted, actual, documents = statistics.patterns.T
    has_siblings = (predicted > 0) & (actual > 0)
    columns = (
        matched,
        predicted * has_siblings,
        actual * has_siblings,
        predicted * ~has_siblings,
        actual * ~has_siblings,
    )
    table = np.stack(columns, axis=1).astype(np.float64)
    n_families = len(statistics.families.names)
    sums = np.zeros((n_families, 5))
    products = np.zeros((n_families, 5, 5))
    np.add.at(sums, family, table * documents[:, None])
    np.add.at(products, family, table[:, :, None] * table[:, None, :] * documents[:, None, None])
    return sums, products


# -- warnings -------------------------------------------------------------------------------------


def _repeated_codes(statistics: FamilyStatistics) -> Iterator[str]:
    for n, side in zip(statistics.repeated.tolist(), ("y_true_sets", "y_pred_sets"), strict=True):
        if n == 1:
            yield f"1 code of {side} occurs more than once in a document and counts once"
        elif n:
            yield f"{n} codes of {side} occur more than once in a document and count once"


def _codes_without_ratio(statistics: FamilyStatistics) -> Iterator[str]:
    _, predicted, actual = _counts(statistics.codes)
    never_predicted = int((predicted == 0).sum())
    never_actual = int((actual == 0).sum())
    if never_predicted:
        yield (
            f"{never_predicted} of {len(actual)} codes are never predicted, so "
            "macro precision leaves them out"
        )
    if never_actual:
        yield (
            f"{never_actual} of {len(actual)} codes are in no document, so "
            "macro recall leaves them out"
        )


def _rare_codes(statistics: FamilyStatistics) -> Iterator[str]:
    actual = statistics.codes[:, ACTUAL]
    n_rare = int(((actual > 0) & (actual < FEW)).sum())
    if not n_rare:
        return
    text = f"{n_rare} of {len(actual)} codes occur in fewer than {FEW} documents; their"
    if n_rare == 1:
        text = f"1 of {len(actual)} codes occurs in fewer than {FEW} documents; its"
    text += " shares are approximate"
    if 2 * n_rare > len(actual):
        text += "; most codes are this rare, so the intervals of macro averages are too narrow"
    yield text


def _rare_families(statistics: FamilyStatistics) -> Iterator[str]:
    families = statistics.families
    sizes = np.bincount(families.family_of_code, statistics.codes[:, ACTUAL], len(families.names))
    rare = [
        f"{quoted(name)} (n = {count(n)})"
        for name, n in zip(families.names, sizes, strict=True)
        if 0 < n < FEW
    ]
    if rare:
        noun = "family" if len(rare) == 1 else "families"
        yield (
            f"fewer than {FEW} labels of the {noun} {some_of(rare, 8)}: their intervals are "
            "approximate"
        )


_WARNINGS = (_repeated_codes, _codes_without_ratio, _rare_codes, _rare_families)


def family_warnings(statistics: FamilyStatistics) -> tuple[str, ...]:
    """Return warnings about repeated codes, undefined ratios, rare codes and rare families."""
    return tuple(text for warning in _WARNINGS for text in warning(statistics))


def never_predicted(statistics: FamilyStatistics) -> IntArray:
    """Return the positions of codes that occur in a document but are never predicted."""
    _, predicted, actual = _counts(statistics.codes)
    return np.flatnonzero((actual > 0) & (predicted == 0))
