"""The printed formulas of section 0.2, chapter 1 and appendix A that give wrong numbers, beside right ones."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.stats import norm

from cmtrack import evaluate
from correlation.limits import from_counts
from correlation.published import F1_EXAMPLE, TABLE_1_7_OVR

Y = np.array([1, 0, 0, 1, 0, 1, 0, 0, 0, 1])
S = np.array([0.9, 0.2, 0.4, 0.6, 0.1, 0.3, 0.35, 0.05, 0.5, 0.8])
"""Ten labelled scores, on which printed formulas are tried."""

TP, FN, FP, TN = 30, 12, 9, 49
"""A table of counts for the same."""

COLUMNS = ["where", "printed", "right", "what is wrong"]
MEAN_A, SD_A, MEAN_B, SD_B = 0.0, 0.5, 1.3, 2.0
"""Two normals of unequal variance."""


def wrong_formulas() -> pd.DataFrame:
    """One row per formula: what it gives as printed, what is right, and why."""
    rows = [*_on_counts(), *_on_scores(), _bayes_index(), _prior(), _fisher()]
    return pd.DataFrame(rows, columns=COLUMNS)


def right_statements() -> pd.DataFrame:
    """Statements of the same sections that hold as printed."""
    labels = from_counts(TP, FN, FP, TN).metrics["multiclass/matthews_corrcoef"]
    y, hits = np.repeat([1, 1, 0, 0], [TP, FN, FP, TN]), np.repeat([1, 0, 1, 0], [TP, FN, FP, TN])
    as_scores = evaluate(y, y_prob=hits.astype(float)).metrics["spcc/binary"]
    pair, total = _pair_constant(), evaluate(Y, y_prob=S).metrics["spcc/binary"]
    spread = S.std(ddof=1)
    f1 = from_counts(5, 0, 0.005 * 995, 0.995 * 995).metrics
    signs = _sign_example()
    return pd.DataFrame(
        [
            ["appendix A: sPCC of labels = MCC", as_scores, labels],
            [
                "eq. 1.10 (means of predictions)",
                np.sqrt(pair) * (S[Y == 1].mean() - S[Y == 0].mean()) / spread,
                total,
            ],
            [
                "section 1.1: precision of the example",
                F1_EXAMPLE["precision"],
                f1["binary/precision"],
            ],
            ["section 1.1: F1 of the example", F1_EXAMPLE["F1"], f1["binary/f1"]],
            ["section 1.3.1: sign of r21 in the example", -1.0, signs],
        ],
        columns=["statement", "printed", "computed"],
    )


def _pair_constant() -> float:
    positives, n = int(Y.sum()), len(Y)
    return positives * (n - positives) / (n * (n - 1))


def _on_counts() -> list[list[object]]:
    n = TP + FN + FP + TN
    right = from_counts(TP, FN, FP, TN).metrics["multiclass/matthews_corrcoef"]
    top = TP * TN - FN * FP
    y, hits = np.repeat([1, 1, 0, 0], [TP, FN, FP, TN]), np.repeat([1, 0, 1, 0], [TP, FN, FP, TN])
    covariance = n * n * (n - 1) * float(np.cov(y, hits)[0, 1])
    terms = TP * (TN + FP) * (TN + FN) - FN * (TN + FP) * (TP + FP) - FP * (TP + FN) * (TN + FN)
    return [
        [
            "section 1.1, MCC",
            top / ((TP + FN) * (TP + FP) * (TN + FP) * (TN + FN)),
            right,
            "the root is missing",
        ],
        [
            "appendix A, last line",
            top / ((TP + FN) * (TP + FP) * (TN + FN) * (TN + FN)),
            right,
            "the root is missing, and TN + FN stands where TN + FP belongs",
        ],
        [
            "appendix A, n²(n−1)q",
            terms + TN * (TP + FN) * (TP + FN),
            covariance,
            "the last term has (TP+FN) twice; the collected form after it is right",
        ],
    ]


def _on_scores() -> list[list[object]]:
    metrics = evaluate(Y, y_prob=S).metrics
    n, positive, negative = len(Y), S[Y == 1], S[Y == 0]
    high, low = (positive - S.mean()).sum(), (negative - S.mean()).sum()
    covariance = (n - 1) * float(np.cov(Y, S)[0, 1])
    within = positive.std(ddof=1) + negative.std(ddof=1)
    printed = (
        4 * positive.var(ddof=1) / (_pair_constant() * within**2) * metrics["spcc/binary"] ** 2
    )
    return [
        [
            "eq. 1.6",
            len(negative) / n * high + len(positive) / n * low,
            covariance,
            "the second bracket is added, but must be subtracted; eq. 1.9 is right",
        ],
        [
            "section 1.2.2, average index d'e",
            printed,
            metrics["spcc/d_e"],
            "the right side is the square of the index, and has the positives' variance for the variance of all",
        ],
    ]


def _bayes_index() -> list[object]:
    """The source's probabilities read as cdfs of the two variables, against those of the likelihood ratio."""
    raw = 2 * norm.ppf((norm.cdf(0, MEAN_A, SD_A) + 1 - norm.cdf(0, MEAN_B, SD_B)) / 2)
    x = np.linspace(-12.0, 14.0, 200_001)
    density = [norm.pdf(x, MEAN_A, SD_A), norm.pdf(x, MEAN_B, SD_B)]
    error = 0.5 * np.minimum(*density).sum() * (x[1] - x[0])
    what = (
        f"limit 0 is that of the log likelihood ratio, not of X and Y: for N({MEAN_A:g}, {SD_A:g}²) and "
        f"N({MEAN_B:g}, {SD_B:g}²). cmtrack has the index from bins of the scores (`spcc/d_b`), "
        f"{binned_bayes_index():.4f} here"
    )
    return ["section 1.2.2, Bayes index d'b", raw, -2 * norm.ppf(error), what]


def binned_bayes_index(size: int = 50_000, seed: int = 1) -> float:
    """``spcc/d_b`` of a sample of the same two normals, the scores scaled into [0, 1]."""
    rng = np.random.default_rng(seed)
    scores = np.concatenate((rng.normal(MEAN_A, SD_A, size), rng.normal(MEAN_B, SD_B, size)))
    scaled = (scores - scores.min()) / np.ptp(scores)
    return evaluate(np.repeat([0, 1], size), y_prob=scaled).metrics["spcc/d_b"]


def _prior() -> list[object]:
    """Equations 2, 3 and 5: the prior of the training set above, that of the target below."""
    high, low, trained, target = 0.6, 0.2, 0.5, 0.01
    below = target * high + (1 - target) * low
    what = "the training prior stands above, the target's below: a probability above 1; both must be the target's"
    return ["section 0.2, eq. 2, 3 and 5", trained * high / below, target * high / below, what]


def _fisher() -> list[object]:
    z = np.arctanh(TABLE_1_7_OVR)
    what = "the factor 1/m is missing; with it, the one-vs-rest value of Table 1.6 comes out of Table 1.7"
    return [
        "section 1.3.1, Fisher's average",
        float(np.tanh(z.sum())),
        float(np.tanh(z.mean())),
        what,
    ]


def _sign_example() -> float:
    """Section 1.3.1: average probabilities (2/3, 1/3, 0), (1/2, 1/4, 1/4), (0, 0, 1) make r21 negative."""
    means = np.array([[2 / 3, 1 / 3, 0], [1 / 2, 1 / 4, 1 / 4], [0, 0, 1]])
    shift = np.array([0.02, -0.02, 0.0])
    p = np.concatenate((means[:2] + shift, means[:2] - shift, means[2:], means[2:]))
    matrix = evaluate([0, 1, 0, 1, 2, 2], y_prob=p).spcc_matrix
    signs = np.sign(matrix)
    others = ~np.eye(3, dtype=bool)
    others[1, 0] = False
    return float(signs[1, 0]) if (signs[others] > 0).all() else np.nan
