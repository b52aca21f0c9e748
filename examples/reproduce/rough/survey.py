"""Many random tables: how often each claim holds, and how sharp the bounds are."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from rough.claims import checked
from rough.printed import alpha_as_printed
from rough.random_tables import KINDS, random_classifier, random_table


def survey(
    rounds: Iterable[int], rng: np.random.Generator
) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, int]]:
    """Violations, numbers of single tables, and how many tables there were of each kind of classifier.

    Returns
    -------
    violations : DataFrame
        Claims by kinds of classifiers: tables in which the claim fails for a class; NaN where it does not apply.
    numbers : DataFrame
        One row per table of the classifier of most frequent classes: accuracy, gamma, alpha as printed and corrected,
        classes, whether alpha and gamma of the granules are linked like those of the confusion matrix, and by how many
        samples, as a share of all, each bound misses the approximation.
    tables : dict of str to int
    """
    failed: dict[str, dict[str, float]] = {kind: {} for kind in KINDS}
    tables, numbers = dict.fromkeys(KINDS, 0), []
    for _ in rounds:
        table = random_table(rng)
        for kind in KINDS:
            classifier = random_classifier(table, kind, rng)
            if classifier is None:
                continue
            tables[kind] += 1
            for claim, holds in checked(table, classifier).items():
                failed[kind][claim] = failed[kind].get(claim, 0) + (not holds)
        majority = random_classifier(table, KINDS[1], rng)
        assert majority is not None  # every table has one
        bounds, exact = table.bounds(majority), table.approximations()
        found = {
            "accuracy": bounds.gamma_upper,
            "gamma": exact.gamma,
            "corrected": bounds.weighted_alpha_upper,
            "printed": alpha_as_printed(table.confusion_matrix(majority).counts.T),
            "classes": len(table.labels),
            "linked": bool(np.isclose(exact.weighted_alpha, exact.gamma / (2 - exact.gamma))),
        }
        lower = {
            "nl*": bounds.hits,
            "nl**": bounds.lower_upper_bound,
            "nl^m": bounds.majority_lower_upper_bound,
        }
        upper = {
            "nu*": bounds.union,
            "nu**": bounds.upper_lower_bound,
            "nu^m": bounds.majority_upper_lower_bound,
        }
        found |= {
            name: float((bound - exact.lower).sum()) / table.total for name, bound in lower.items()
        }
        found |= {
            name: float((exact.upper - bound).sum()) / table.total for name, bound in upper.items()
        }
        numbers.append(found)
    violations = pd.DataFrame(failed)[list(KINDS)]
    return violations.loc[list(failed[KINDS[1]])], pd.DataFrame(numbers), tables
