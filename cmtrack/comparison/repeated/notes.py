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
            f"{left_out} of {n + left_out} {BLOCK[kind]}s miss a value of some model and are left out of the tests;"
            " the summary has the values that there are."
        )
    if n < 2:
        found.append(f"One {BLOCK[kind]} shows no variation: nothing is tested, and no model is told apart.")
    if pairwise.note and n > 1:
        found.append(f"{pairwise.note}.")
    if k > 2:
        found.append(
            f"p-values are adjusted for all {pairs} pairs (Holm), as the best was chosen by the same scores;"
            " intervals and posteriors are for one pair each."
        )
    if kind == "folds":
        found.append(
            "Folds share training rows, so the variance is corrected for it (Nadeau and Bengio 2003). Friedman's and"
            " the other rank tests take blocks for independent, and are not shown for folds of one data set."
        )
    elif kind == "seeds":
        if all(pair.difference.method == "seeds and test rows" for pair in pairwise.pairs):
            found.append("Errors are those of the seeds and of the test rows together.")
        elif n > 1:
            found.append(
                "The sampling error of the test rows is not known for every pair: there, the errors are those of the"
                " seeds alone, and hold for these test rows only."
            )
        found.append("Seeds on the same test rows are no independent data sets: rank tests are not shown.")
    else:
        found.append(
            "Each data set counts once, whatever its size, and is taken to be independent of the others. Ties and"
            " cliques are those of the signed-rank tests; Nemenyi's depend on which other models take part."
        )
        methods = [pair.difference.method for pair in pairwise.pairs]
        how = ", ".join(f"{name} for {methods.count(name)}" for name in sorted(set(methods)))
        found.append(f"Distribution of the signed ranks, by number of pairs: {how}.")
    return tuple(found)
