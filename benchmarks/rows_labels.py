"""Wrong labels: the fewest that decide, against brute force; suspicion against cleanlab's; what checks leave.

    python benchmarks/rows_labels.py [decide|moves|suspects|relabel]

``decide`` compares the fewest labels of accuracy, of a tie and of additive losses with all relabellings of 9 or 7 rows
(``CASES``, by default 500). ``moves`` compares those of metrics of two matrices with all choices of up to three labels
among 60 rows (90 cases). ``suspects`` plants wrong labels in three data sets (``REPEATS``, by default 10), also in the
training of six models by three folds: precision among as many rows as are planted, by suspicion and by cleanlab's
normalized margin of the mean probabilities (where cleanlab is installed), and planted labels against the excess of
``missed``. ``relabel`` checks the first 25 rows of the digits' list of two close runs, 5 % of the labels being wrong:
how far the lead then is from that by the true labels. Each part prints its bar.
"""

from __future__ import annotations

import itertools
import os
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from measure import table

CASES, REPEATS = int(os.environ.get("CASES", 500)), int(os.environ.get("REPEATS", 10))
COSTS = np.array([[0, 1, 4], [2, 0, 1], [6, 2, 0]])


def decide() -> None:
    """Cases in which the fewest labels are not those of brute force: 0 is the bar."""
    from cmtrack import Costs, compare, evaluate
    from cmtrack.metrics.paired import binomial_pvalues

    every = {n: np.array(list(itertools.product(range(3), repeat=n))) for n in (7, 9)}
    price = Costs.from_dict({"costs": [[i, j, int(COSTS[i, j])] for i in range(3) for j in range(3) if i != j]})
    cases, differences, draws = Counter[str](), Counter[str](), 0
    while min((cases[name] for name in ("order", "tied", "cost", "brier", "log loss")), default=0) < CASES / 5:
        rng = np.random.default_rng(draws)
        draws += 1
        n = 9 if draws % 2 else 7
        labels, y = every[n], rng.integers(0, 3, n)
        a, b = (np.where(rng.random(n) < skill, y, rng.integers(0, 3, n)) for skill in (0.9, 0.2))
        p, q = rng.dirichlet(np.ones(3), (2, n))
        rows, moved = np.arange(n), (labels != y).sum(axis=1)
        losses = {
            "order": ("multiclass/accuracy", {"y_pred": a}, {"y_pred": b}, -(np.eye(3)[a] - np.eye(3)[b])),
            "cost": ("cost/mean", {"y_pred": a}, {"y_pred": b}, (COSTS[:, a] - COSTS[:, b]).T),
            "brier": ("probability/brier", {"y_prob": p}, {"y_prob": q}, -2 * (p - q) + (p**2 - q**2).sum(1)[:, None]),
            "log loss": ("probability/log_loss", {"y_prob": p}, {"y_prob": q}, np.log(q) - np.log(p)),
        }
        for name, (metric, one, two, loss) in losses.items():
            runs = {key: evaluate(y, **side, labels=[0, 1, 2], costs=price) for key, side in (("A", one), ("B", two))}
            deciding = compare(runs, rank_by=metric).deciding("A", "B", metric=metric)
            lead = loss[rows, labels].sum(axis=1) * (-1 if deciding.leader == "A" else 1)
            turned = lead < -1e-9
            cases[name] += 1
            differences[name] += deciding.order != (int(moved[turned].min()) if turned.any() else None)
            if name == "order":
                right, right_2 = a == labels, b == labels
                only = (right & ~right_2).sum(axis=1), (right_2 & ~right).sum(axis=1)
                alike = ~(np.asarray(binomial_pvalues(*only)[1]) <= 0.05)
                cases["tied"] += 1
                differences["tied"] += deciding.tied != int(moved[alike].min())
    body = [(name, cases[name], differences[name]) for name in cases]
    table(("fewest labels of", "cases", "not the fewest (bar: 0)"), body)


def _f1(c: Any) -> Any:
    rows, columns, hits = c.sum(-1), c.sum(-2), np.diagonal(c, axis1=-2, axis2=-1)
    return (2 * hits / np.maximum(rows + columns, 1)).mean(-1)


def _mcc(c: Any) -> Any:
    rows, columns, n, hits = c.sum(-1), c.sum(-2), c.sum((-1, -2)), np.trace(c, axis1=-2, axis2=-1)
    below = np.sqrt((n**2 - (rows**2).sum(-1)) * (n**2 - (columns**2).sum(-1)))
    return (n * hits - (rows * columns).sum(-1)) / np.maximum(below, 1e-9)


def _kappa(c: Any) -> Any:
    w = np.subtract.outer(range(3), range(3)) ** 2
    chance = np.einsum("...i,...j,ij->...", c.sum(-1), c.sum(-2), w) / c.sum((-1, -2))
    return 1 - (c * w).sum((-1, -2)) / chance


def moves() -> None:
    """Cases in which up to three labels suffice, and the greedy choice needs more: 0 is the bar."""
    from cmtrack.rows.deciding import fewest_by_moves

    out = []
    for name, metric in (("macro F1", _f1), ("Matthews correlation", _mcc), ("quadratic kappa", _kappa)):
        solved = more = fewer = 0
        for seed in range(30):
            rng = np.random.default_rng(seed)
            y = rng.integers(0, 3, 60)
            a, b = (np.where(rng.random(60) < skill, y, rng.integers(0, 3, 60)) for skill in (0.75, 0.7))
            types, counts = np.unique(np.column_stack((y, a, b)), axis=0, return_counts=True)
            tables = np.zeros((2, 3, 3))
            for side, answer in enumerate((a, b)):
                np.add.at(tables[side], (y, answer), 1.0)
            if metric(tables[0]) < metric(tables[1]):
                tables, types = tables[::-1], types[:, [0, 2, 1]]
            found = fewest_by_moves(types, counts, 3, lambda one, two, of=metric: float(of(one) - of(two)))
            best = _fewest(tables, types, counts, metric)
            solved += best is not None
            more += best is not None and (found is None or found > best)
            fewer += found is not None and found <= 3 and (best is None or found < best)
        out.append((name, 30, solved, more, fewer))
    table(("metric", "cases", "turned by up to 3", "greedy needs more (bar: 0)", "greedy claims fewer (bar: 0)"), out)


def _fewest(tables: Any, types: Any, counts: Any, metric: Callable[[Any], Any]) -> int | None:
    """Fewest of up to three labels that turn the order, of all choices."""
    steps = [(k, new) for k, kind in enumerate(types) for new in range(3) if new != kind[0]]
    change = np.zeros((len(steps), 2, 3, 3))
    for place, (k, new) in enumerate(steps):
        for side, answer in enumerate(types[k][1:]):
            change[place, side, types[k][0], answer] -= 1
            change[place, side, new, answer] += 1
    for size in (1, 2, 3):
        chosen = np.array(list(itertools.combinations_with_replacement(range(len(steps)), size)))
        used = np.array([step[0] for step in steps])[chosen]
        enough = np.ones(len(chosen), dtype=bool)
        for column in range(size):
            enough &= (used == used[:, [column]]).sum(axis=1) <= counts[used[:, column]]
        after = tables + change[chosen[enough]].sum(axis=1)
        if (metric(after[:, 0]) - metric(after[:, 1]) < -1e-12).any():
            return size
    return None


def _data() -> Iterator[tuple[str, Any, Any]]:
    from sklearn.datasets import load_breast_cancer, load_digits, make_classification

    yield "digits", *load_digits(return_X_y=True)
    yield "breast cancer", *load_breast_cancer(return_X_y=True)
    yield (
        "made, 6 classes",
        *make_classification(2_000, 20, n_informative=10, n_redundant=0, n_classes=6, class_sep=1.6, random_state=1),
    )


def _scores(x: Any, y: Any) -> list[Any]:
    """Out-of-fold probabilities of six models that learn these labels, by three folds."""
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.tree import DecisionTreeClassifier

    models = (
        KNeighborsClassifier(10), GaussianNB(), LinearDiscriminantAnalysis(),
        RandomForestClassifier(60, random_state=0),
        LogisticRegression(C=0.1, max_iter=200), DecisionTreeClassifier(min_samples_leaf=5, random_state=0),
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [
            cross_val_predict(make_pipeline(StandardScaler(), model), x, y, cv=3, method="predict_proba")
            for model in models
        ]


def _planted(truth: Any, share: float, like: Any, rng: Any) -> Any:
    """Labels of which a share is wrong: any other class, or the one that a class is taken for most often."""
    size = int(truth.max()) + 1
    y, wrong = truth.copy(), rng.choice(len(truth), round(share * len(truth)), replace=False)
    y[wrong] = (truth[wrong] + rng.integers(1, size, len(wrong))) % size if like is None else like[truth[wrong]]
    return y


def _compared(y: Any, scores: list[Any]) -> Any:
    from cmtrack import compare, evaluate

    runs = {f"m{k}": evaluate(y, y_prob=p, labels=range(p.shape[1])) for k, p in enumerate(scores)}
    return compare(runs, rank_by="multiclass/accuracy")


def suspects() -> None:
    """Precision among as many rows as labels are planted, and the excess; bars: margin − .02, and 2.5 % of the rows."""
    from cmtrack.comparison.rows import suspicion

    try:
        from cleanlab.rank import get_label_quality_scores
    except ImportError:
        get_label_quality_scores = None
    out = []
    for name, x, truth in _data():
        clean = sum(_scores(x, truth))
        clean[np.arange(len(truth)), truth] = -1
        like = np.array([np.bincount(clean[truth == c].argmax(1)).argmax() for c in range(truth.max() + 1)])
        for kind, share, toward in (("any, 2 %", 0.02, None), ("any, 8 %", 0.08, None), ("confusing, 5 %", 0.05, like)):
            ours, theirs, excess = [], [], []
            for seed in range(REPEATS):
                y = _planted(truth, share, toward, np.random.default_rng(seed))
                scores, bad = _scores(x, y), y != truth
                comparison = _compared(y, scores)
                doubt = suspicion([run.evaluation.rows for run in comparison.runs])
                ours.append(bad[np.argsort(-doubt, kind="stable")[: bad.sum()]].mean())
                excess.append(comparison.missed().excess)
                if get_label_quality_scores is not None:
                    rank = get_label_quality_scores(y, sum(scores) / len(scores), method="normalized_margin")
                    theirs.append(bad[np.argsort(rank, kind="stable")[: bad.sum()]].mean())
            off, bar = abs(np.mean(excess) - bad.sum()), 0.025 * len(y)
            met = not theirs or np.mean(ours) >= np.mean(theirs) - 0.02
            row = [f"{np.mean(v):.3f} ± {_error(v):.3f}" if v else "not installed" for v in (ours, theirs)]
            shown = f"{np.mean(excess):.1f} ± {_error(excess):.1f}"
            out.append((name, kind, *row, _met(met), int(bad.sum()), shown, f"{bar:.0f}: {_met(off <= bar)}"))
    heads = ("data", "planted", "suspicion", "cleanlab's margin", "margin − .02", "planted", "excess", "within")
    table(heads, out)


def relabel() -> None:
    """Distance of the lead from that by the true labels, before and after 25 checks; the bar of this list is .5."""
    name, x, truth = next(_data())
    left: dict[str, list[float]] = {"before": [], "random": [], "suspicion alone": [], "this list": []}
    for seed in range(REPEATS):
        rng = np.random.default_rng(seed)
        y = _planted(truth, 0.05, None, rng)
        scores = _scores(x, y)
        answers = [p.argmax(axis=1) for p in scores]
        rates = [(answer == truth).mean() for answer in answers]
        first, second = min(
            itertools.combinations(range(len(rates)), 2), key=lambda pair: abs(rates[pair[0]] - rates[pair[1]])
        )
        comparison = _compared(y, scores)
        pair = answers[first], answers[second]
        doubt = comparison.missed(1).to_frame().sort_values("suspicion", ascending=False, kind="stable")["row"]
        checks = {
            "before": [],
            "random": rng.choice(len(y), 25, replace=False),
            "suspicion alone": doubt[:25],
            "this list": comparison.deciding(f"m{first}", f"m{second}").rows["row"][:25],
        }
        for key, rows in checks.items():
            seen = y.copy()
            seen[np.asarray(rows, dtype=int)] = truth[np.asarray(rows, dtype=int)]
            leads = [int((pair[0] == labels).sum() - (pair[1] == labels).sum()) for labels in (seen, truth)]
            left[key].append(abs(leads[0] - leads[1]))
    row = [f"{np.mean(v):.2f} ± {_error(v):.2f}" for v in left.values()]
    table(("data", *left, "at most .5"), [(f"{name}, any, 5 %", *row, _met(np.mean(left["this list"]) <= 0.5))])


def _error(values: list[float]) -> float:
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


def _met(holds: Any) -> str:
    return "met" if holds else "NOT met"


if __name__ == "__main__":
    for part in sys.argv[1:] or ("decide", "moves", "suspects", "relabel"):
        {"decide": decide, "moves": moves, "suspects": suspects, "relabel": relabel}[part]()
