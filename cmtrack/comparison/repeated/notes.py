"""What a reader of an analysis must know: what was left out, and what its methods assume."""

from __future__ import annotations

from cmtrack.comparison.repeated.pairs import Pairwise
from cmtrack.comparison.repeated.result import Kind

BLOCK = {"folds": "fold", "seeds": "seed", "datasets": "data set"}


def what_to_know(kind: Kind, pairwise: Pairwise, left_out: int, k: int) -> tuple[str, ...]:
    """Sentences on what was left out and what is assumed, for k models."""
    n, pairs = pairwise.blocks, k * (k - 1) // 2
    found = []
    if left_out:
        found.append(
            f"{left_out} of {n + left_out} {BLOCK[kind]}s have no value of some model and are not tested. The mean"
            " of a model is over all its values."
        )
    if n < 2:
        found.append(f"There is only one {BLOCK[kind]}, so nothing is tested and all models are tied.")
    if pairwise.note and n > 1:
        found.append(f"{pairwise.note}.")
    if k > 2:
        found.append(
            f"p-values are adjusted for all {pairs} pairs of models (Holm 1979), and the intervals of the differences"
            " hold for all of them at once (Bonferroni). The posterior probabilities are for one pair each and decide"
            " nothing."
        )
    if kind == "folds":
        found.append(
            "Folds share training rows, and the variance is corrected for that (Nadeau and Bengio 2003). Rank tests"
            " assume independent blocks and are not shown for folds of one data set."
        )
        errors = [pair.difference.test_rows for pair in pairwise.pairs]
        if n > 1 and all(errors):
            found.append(
                "A difference is significant only if it is so by the spread of the folds and by the sampling error of"
                " their test rows: the wider of the two intervals is shown, and the larger p-value."
            )
        elif n > 1:
            found.append(
                "The sampling error of the test rows is not known for every pair of models (no predictions by row):"
                " there, only the spread of the folds decides, which can be small by luck."
            )
    elif kind == "seeds":
        if all(pair.difference.method == "seeds and test rows" for pair in pairwise.pairs):
            found.append("Standard errors hold both the variation over the seeds and the sampling of the test rows.")
        elif n > 1:
            found.append(
                "The sampling error of the test rows is not known for every pair of models: there, the standard error"
                " is that of the seeds alone, and the result holds for these test rows only."
            )
        found.append("Seeds on the same test rows are not independent data sets, so rank tests are not shown.")
    else:
        found.append(
            "Each data set counts once, whatever its size, and is assumed to be independent of the others. Ties and"
            " cliques follow from the signed-rank tests."
        )
        methods = [pair.difference.method for pair in pairwise.pairs]
        found.append(f"Signed-rank test: {', '.join(_by_pairs(methods))}.")
    return tuple(found)


_LAWS = {"exact": "exact", "exact, ties": "exact with ties", "normal": "normal approximation"}


def _by_pairs(methods: list[str]) -> list[str]:
    """The test's distributions with their numbers of pairs: "exact for 1 pair", "exact with ties for 14"."""
    names = sorted(set(methods))
    found = [f"{_LAWS.get(name, name)} for {methods.count(name)}" for name in names]
    return [f"{found[0]} pair{'' if methods.count(names[0]) == 1 else 's'}", *found[1:]]
