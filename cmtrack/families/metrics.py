"""Metrics of label sets in families of codes.

All but the macro averages are ratios of sums over documents, ``Σ_d a·t_d / Σ_d b·t_d`` with a
document's tallies ``t_d``; documents are the sampling unit, so the standard error follows from the
sums of products of the tallies.

Shares are of labels, predicted and actual ones together. A label is a match (on both sides of its
document), confused (not so, but an unmatched code of its family is on the other side), or out of
family. Hierarchical measures count the codes of a document with all their ancestors (Kiritchenko,
Matwin, Famili 2005).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
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


class CodeAverage(Function):
    """A mean over codes; without errors by document, its error takes the codes as independent."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, codes: IntArray) -> float:
        """The macro average of a ratio over the codes."""
        return macro_averages(codes)[self.name][0]

    def spread(self, codes: IntArray) -> float:
        """The standard error."""
        return macro_averages(codes)[self.name][1]


_FALIS, _SOKOLOVA = "Falis, Hierarchical Confusion Matrices", "Sokolova & Lapalme (2009)"
_KIRITCHENKO = "Kiritchenko et al. (2005)"
_NO_PREDICTED, _NO_ACTUAL, _NO_LABEL = (
    "no code was predicted",
    "no document has a code",
    "there is no code",
)


def _ratio(name: str, value: Any, source: str, reason: str, formula: str, **words: Any) -> Metric:
    usual = {"low": 0.0, "high": 1.0, "interval": "logit", "headline": False, "of": "documents"}
    return Metric(
        f"family/{name}",
        value,
        **{**usual, "source": source, "reason": reason, "formula": formula, **words},
    )


def _macro(name: str, formula: str, **words: Any) -> Metric:
    fields = {
        "of": "codes",
        "low": 0.0,
        "high": 1.0,
        "headline": False,
        "source": _SOKOLOVA,
        **words,
    }
    return Metric(
        f"family/{name}",
        CodeAverage(name),
        formula=formula,
        reason="no code has a defined value",
        **fields,
    )


_WORSE: dict[str, Any] = {"better": "lower"}
_OF_BOTH: tuple[tuple[str, Any, str, str, str, str, dict[str, Any]], ...] = (
    (
        "match_share",
        lambda t: 2 * t.hits / t.labels,
        _FALIS,
        _NO_LABEL,
        "2 matches / labels, predicted and actual ones together; equals f1_micro",
        "2 matches / labels of the family; equals f1_micro",
        {"title": "share of matching labels", "brief": "match share"},
    ),
    (
        "confusion_share",
        lambda t: (t.predicted_confused + t.actual_confused) / t.labels,
        _FALIS,
        _NO_LABEL,
        "unmatched labels with an unmatched code of their family on the other side / labels",
        "confused labels / labels of the family",
        {"title": "share of labels confused within their family", "brief": "confused", **_WORSE},
    ),
    (
        "oof_share",
        lambda t: (t.predicted_outside + t.actual_outside) / t.labels,
        _FALIS,
        _NO_LABEL,
        "unmatched labels without such a code (out of family) / labels",
        "labels out of family / labels of the family",
        {"title": "share of labels out of family", "brief": "out of family", **_WORSE},
    ),
    (
        "precision_micro",
        lambda t: t.hits / t.predicted,
        _SOKOLOVA,
        _NO_PREDICTED,
        "matches / predicted codes, over all documents",
        "matches / predicted codes of the family",
        {},
    ),
    (
        "recall_micro",
        lambda t: t.hits / t.actual,
        _SOKOLOVA,
        _NO_ACTUAL,
        "matches / actual codes, over all documents",
        "matches / actual codes of the family",
        {},
    ),
    (
        "f1_micro",
        lambda t: 2 * t.hits / t.labels,
        _SOKOLOVA,
        _NO_LABEL,
        "2 matches / (predicted + actual codes), over all documents",
        "2 matches / (predicted + actual codes of the family)",
        {},
    ),
)
"""Name, value, source, reason, formula over all documents and over those of a family, words."""

FAMILY = Section(
    "family",
    "All documents",
    (
        *(
            _ratio(name, value, source, reason, formula, headline=True, **words)
            for name, value, source, reason, formula, _, words in _OF_BOTH
        ),
        _ratio(
            "confusion_share_predicted",
            lambda t: t.predicted_confused / t.predicted,
            _FALIS,
            _NO_PREDICTED,
            "confused predicted codes / predicted codes",
            **_WORSE,
            title="share of predicted codes confused within their family",
            brief="confused, predicted",
        ),
        _ratio(
            "oof_share_predicted",
            lambda t: t.predicted_outside / t.predicted,
            _FALIS,
            _NO_PREDICTED,
            "predicted codes out of family / predicted codes",
            **_WORSE,
            title="share of predicted codes out of family",
            brief="out of family, predicted",
        ),
        _ratio(
            "confusion_share_actual",
            lambda t: t.actual_confused / t.actual,
            _FALIS,
            _NO_ACTUAL,
            "confused actual codes / actual codes",
            **_WORSE,
            title="share of actual codes confused within their family",
            brief="confused, actual",
        ),
        _ratio(
            "oof_share_actual",
            lambda t: t.actual_outside / t.actual,
            _FALIS,
            _NO_ACTUAL,
            "actual codes out of family / actual codes",
            **_WORSE,
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
        *(
            _ratio(f"<family>/{name}", value, source, reason, formula, of="family", **words)
            for name, value, source, reason, _, formula, words in _OF_BOTH
        ),
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
OF_FAMILIES = Sections(FAMILY, places=("cmtrack.families.metrics.OF_FAMILIES",))


class Codes(Samples):
    """Counts of each code."""

    def __init__(self, codes: IntArray) -> None:
        self.codes = codes

    def argument(self) -> IntArray:
        """Return the counts (L, 5)."""
        return self.codes


class FamilyViews(Views):
    """The views of a family evaluation."""

    def __init__(self, statistics: FamilyStatistics) -> None:
        self.statistics = statistics

    def of(self, metric: Metric, step: str = "") -> Samples:
        """Return the samples that a metric is a function of."""
        return getattr(self, metric.of)

    def names(self, metric: Metric, step: str = "") -> dict[int, str] | None:
        """Return the families' parts of names, for a metric of each family."""
        return self._families if metric.of == "family" else None

    @cached_property
    def _families(self) -> dict[int, str]:
        return {f: encode_label(family) for f, family in enumerate(self.statistics.families.names)}

    @cached_property
    def documents(self) -> Sums:
        """All documents."""
        counts = self.statistics
        return Sums(
            Sums8,
            counts.sums.astype(np.float64),
            counts.products.astype(np.float64),
            counts.digest.rows,
        )

    @cached_property
    def family(self) -> Sums:
        """The documents of each family."""
        sums, products = family_tallies(self.statistics)
        return Sums(Sums8, sums.T, np.moveaxis(products, 0, -1), self.statistics.digest.rows)

    @cached_property
    def codes(self) -> Codes:
        """The codes."""
        return Codes(self.statistics.codes)

    def influence(self, metric: Metric, rows: DocumentRows) -> FloatArray | None:
        """Influence values (n,) of an overall metric; None for a single family, which has no values by document."""
        if metric.of == "codes":
            return rows.macros[:, MACROS.index(metric.name.rsplit("/", 1)[1])]
        psi = metric.influence_in(self.documents) if metric.of == "documents" else None
        return (
            None
            if psi is None or not np.isfinite(psi).all()
            else self.documents.of_rows(psi, rows.tallies)
        )


def family_results(
    statistics: FamilyStatistics,
    confidence_level: float = 0.95,
    macro_errors: Mapping[str, float] | None = None,
) -> Results:
    """Every metric with its error and interval.

    ``macro_errors``: standard errors of the macro averages that allow for codes of one document; by
        default codes count as independent of each other.
    """
    results = Results(confidence_level, Clusters(macro_errors or {}))
    FamilyViews(statistics).put(results, FAMILY)
    return results


def code_ratios(codes: IntArray) -> dict[str, FloatArray]:
    """Precision, recall and F1 of each code, shape (L,), NaN where undefined."""
    hits, predicted, actual = (
        codes[:, column].astype(np.float64) for column in (HITS, PREDICTED, ACTUAL)
    )
    return {
        "precision": ratio(hits, predicted),
        "recall": ratio(hits, actual),
        "f1": ratio(2 * hits, predicted + actual),
    }


def macro_averages(codes: IntArray) -> dict[str, tuple[float, float]]:
    """Means over the codes where a ratio is defined, and standard errors with the codes taken as independent.

    ``codes``, shape (L, 5): as in :class:`FamilyStatistics`.
    """
    hits, predicted, actual = (
        codes[:, column].astype(np.float64) for column in (HITS, PREDICTED, ACTUAL)
    )
    values = code_ratios(codes)
    p, r, f = values["precision"], values["recall"], values["f1"]
    false, missed = predicted - hits, actual - hits
    variances = {
        "precision": ratio(p * (1 - p), predicted),
        "recall": ratio(r * (1 - r), actual),
        "f1": ratio(hits * (2 - 2 * f) ** 2 + (false + missed) * f**2, (predicted + actual) ** 2),
    }
    out = {}
    for name, value in values.items():
        defined = np.isfinite(value)
        many = int(defined.sum())
        error = math.sqrt(float(variances[name][defined].sum())) / many if many else math.nan
        out[f"{name}_macro"] = (float(value[defined].mean()) if many else math.nan), error
    return out


def document_errors(statistics: FamilyStatistics, rows: DocumentRows) -> dict[str, float]:
    """Standard errors of the macro averages, with documents as the sampling units."""
    n = statistics.digest.rows
    return {
        f"family/{name}": float(np.linalg.norm(rows.macros[:, k])) / n
        for k, name in enumerate(MACROS)
    }


def family_tallies(statistics: FamilyStatistics) -> tuple[FloatArray, FloatArray]:
    """Sums (F, 5) and sums of products (F, 5, 5) of each family's first five tallies over documents."""
    family, matched, predicted, actual, documents = statistics.patterns.T
    both = (predicted > 0) & (actual > 0)
    table = np.stack(
        (matched, predicted * both, actual * both, predicted * ~both, actual * ~both), axis=1
    ).astype(np.float64)
    size = len(statistics.families.names)
    sums, products = np.zeros((size, 5)), np.zeros((size, 5, 5))
    np.add.at(sums, family, table * documents[:, None])
    np.add.at(products, family, table[:, :, None] * table[:, None, :] * documents[:, None, None])
    return sums, products


def family_warnings(statistics: FamilyStatistics) -> tuple[str, ...]:
    """Warnings: repeated codes, rare codes, codes without a defined ratio, rare families."""
    out = []
    for n, side in zip(statistics.repeated.tolist(), ("y_true_sets", "y_pred_sets"), strict=True):
        if n:
            out.append(
                f"{n} {'code' if n == 1 else 'codes'} of {side} {'occurs' if n == 1 else 'occur'} more than once in a "
                f"document and {'counts' if n == 1 else 'count'} once"
            )
    predicted, actual = statistics.codes[:, PREDICTED], statistics.codes[:, ACTUAL]
    total = len(actual)
    never_called, never_held = int((predicted == 0).sum()), int((actual == 0).sum())
    if never_called:
        out.append(
            f"{never_called} of {total} codes are never predicted: macro precision leaves them out"
        )
    if never_held:
        out.append(
            f"{never_held} of {total} codes are in no document: macro recall leaves them out"
        )
    rare = int(((actual > 0) & (actual < FEW)).sum())
    if rare:
        out.append(
            f"{rare} of {total} codes {'occurs' if rare == 1 else 'occur'} in fewer than {FEW} documents; "
            f"{'its' if rare == 1 else 'their'} shares are approximate"
            + (
                "; as most codes are that rare, the intervals of macro averages are too narrow"
                if 2 * rare > total
                else ""
            )
        )
    held = np.bincount(statistics.families.family_of_code, actual, len(statistics.families.names))
    few = [
        f"{quoted(name)} (n = {count(n)})"
        for name, n in zip(statistics.families.names, held, strict=True)
        if 0 < n < FEW
    ]
    if few:
        shown = some_of(few, 8)
        out.append(
            f"fewer than {FEW} labels of the {'family' if len(few) == 1 else 'families'} {shown}: approximate intervals"
        )
    return tuple(out)


def never_predicted(statistics: FamilyStatistics) -> IntArray:
    """Places of the codes that are actual in some document and never predicted."""
    predicted, actual = statistics.codes[:, PREDICTED], statistics.codes[:, ACTUAL]
    return np.asarray(np.flatnonzero((actual > 0) & (predicted == 0)))
