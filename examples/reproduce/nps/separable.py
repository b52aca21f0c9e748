"""What can be told apart: the algorithms on the same validation set, with the product's paired comparison."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import kendalltau, norm

from cmtrack import Comparison, compare, paired_differences
from nps import published
from nps.trials import Trial, columns, values
from study import Spread

LEVEL = 0.05
PUBLISHED = {
    "multiclass/accuracy": published.TABLE_6.loc["Accuracy"],
    "multiclass/precision_macro": published.TABLE_6.loc["Precision"],
    "multiclass/recall_macro": published.TABLE_6.loc["Recall"],
    "reduced/nps/accuracy": published.TABLE_7.loc["Accuracy"],
    "reduced/nps/precision_macro": published.TABLE_7.loc["Precision"],
    "reduced/nps/recall_macro": published.TABLE_7.loc["Recall"],
    "binary/precision": published.TABLE_8.loc["Precision"],
    "binary/recall": published.TABLE_8.loc["Recall"],
    "binary/f1": published.TABLE_8.loc["F1-Score"],
}
"""Metrics by which the source ranks, and whose published values can be right."""
_PUBLISHED_COLUMNS = (
    "published leader",
    "published gaps beyond chance",
    "published leader's gaps beyond chance",
    "order, Kendall's τ",
)
AREAS = ("binary/roc_auc", "binary/roc_auc_normalized")


def told_apart(comparison: Comparison) -> tuple[int, int]:
    """Pairs of runs whose difference is not by chance (adjusted for all pairs), and all pairs."""
    ranking = comparison.ranking
    if ranking is None:
        raise ValueError("no run is ranked")
    pvalues = ranking.pvalues[np.triu_indices(len(ranking.runs), 1)]
    return int((pvalues < LEVEL).sum()), len(pvalues)


def separability(trials: Sequence[Trial]) -> pd.DataFrame:
    """By metric: who leads, how many pairs are told apart, and what would be of the published differences."""
    rows = {}
    for metric in (*PUBLISHED, *AREAS):
        compared = [compare(trial.evaluations, rank_by=metric) for trial in trials]
        apart = [told_apart(comparison) for comparison in compared]
        rankings = [c.ranking for c in compared if c.ranking is not None]
        leaders = pd.Series([ranking.leader.name for ranking in rankings]).value_counts()
        row = {
            "pairs": str(apart[0][1]),
            "told apart": _words(Spread.of([found for found, _ in apart])),
            "tied with the leader": _words(
                Spread.of([len(ranking.tied) - 1 for ranking in rankings])
            ),
            "leads most often": f"{leaders.index[0]} ({leaders.iloc[0]} of {len(trials)})",
        }
        rows[metric] = row | _of_published(metric, trials)
    return pd.DataFrame(rows).T.rename_axis("metric")


def paired_errors(metric: str, trials: Sequence[Trial]) -> pd.DataFrame:
    """Standard error of the difference of each pair on the same rows, as a mean over the trials."""
    names = columns(trials)
    out = pd.DataFrame(np.nan, index=names, columns=names)
    for a, b in combinations(names, 2):
        pairs = [(t.evaluations[a], t.evaluations[b]) for t in trials]
        out.loc[a, b] = float(
            np.mean(
                [
                    paired_differences(x, y, metrics=[metric])[metric].standard_error
                    for x, y in pairs
                ]
            )
        )
    return out


def _of_published(metric: str, trials: Sequence[Trial]) -> dict[str, str]:
    if metric not in PUBLISHED:
        return dict.fromkeys(_PUBLISHED_COLUMNS, "–")
    known = PUBLISHED[metric][columns(trials)]
    errors = paired_errors(metric, trials)
    pairs = list(combinations(known.index, 2))
    limit = norm.isf(LEVEL / 2 / len(pairs))
    rows = trials[0].evaluations[known.index[0]].n_samples
    scale = np.sqrt(rows / published.FIGURE_7.sum())  # to the source's number of validation rows
    beyond = [
        pair
        for pair in pairs
        if abs(known[pair[0]] - known[pair[1]]) > limit * scale * errors.loc[pair]
    ]
    ours = values(trials, metric).mean()
    leaders = list(known.index[known == known.max()])
    words = (
        " and ".join(leaders),
        str(len(beyond)),
        str(sum(leaders[0] in pair for pair in beyond)),
        f"{kendalltau(known, ours[known.index]).statistic:.2f}",
    )
    return dict(zip(_PUBLISHED_COLUMNS, words, strict=True))


def best_four(trials: Sequence[Trial]) -> pd.DataFrame:
    """Section 5.4's claim: CNN, ANN, logistic regression and SVM have the four largest areas."""
    rows = {}
    for metric in AREAS:
        table = values(trials, metric)
        claimed = [name for name in published.BEST_BY_ROC if name in table]
        top = [set(row.nlargest(len(claimed)).index) for _, row in table.iterrows()]
        mean = table.mean().sort_values(ascending=False)
        rows[metric] = {
            "algorithms by mean": ", ".join(f"{name} {value:.3f}" for name, value in mean.items()),
            "surveys where those claimed lead": f"{sum(set(claimed) == found for found in top)} of {len(top)}",
        }
    return pd.DataFrame(rows).T.rename_axis("area")


def review(runs: dict[str, str], folder: Path, rank_by: str, title: str) -> Comparison:
    """Compare tracked runs, write the review, and log it."""
    comparison = compare(list(runs.values()), rank_by=rank_by)
    comparison.report(folder / "review.md", title=title)
    comparison.log(run_name="review")
    return comparison


def _words(spread: Spread) -> str:
    return f"{spread.mean:.1f}" + ("" if np.isnan(spread.sd) else f" ± {spread.sd:.1f}")


def pairs_told_apart(trials: Sequence[Trial], metric: str) -> str:
    """How many pairs are told apart, as words: mean ± deviation over the trials, of all pairs."""
    counted = [told_apart(compare(trial.evaluations, rank_by=metric)) for trial in trials]
    return f"{_words(Spread.of([found for found, _ in counted]))} of {counted[0][1]}"
