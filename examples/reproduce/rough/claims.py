"""Every inequality of the source, checked on one table and classifier with the product's numbers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cmtrack import GranuleTable, RoughApproximations, RoughBounds
from rough.printed import alpha_as_printed, middle_of_3_6, upper_bound_as_printed
from rough.random_tables import Classifier

Bools = npt.NDArray[np.bool_]
TOLERANCE = 1e-12
PRINTED_WRONG = (
    "3.4 with p^i = nl_i / nu_i",
    "3.6: left side = middle",
    "3.5: alpha as printed <= 1",
    "3.6 with gamma of 3.3: alpha = gamma / (2 - gamma)",
    "after Example 1, as printed: 2 n_i - n_ii <= nu_i",
)
"""Claims that fail also under condition 4.1."""
MAJORITY_ONLY = (
    "Theorem 4.3: nl <= nl^m",
    "Theorem 4.3: nl^m <= nl**",
    "Theorem 4.4, as printed: nl** <= nu^m",
    "Theorem 4.4, corrected: nu** <= nu^m",
    "Theorem 4.4: nu^m <= nu",
)


def checked(table: GranuleTable, classifier: Classifier) -> dict[str, bool]:
    """Whether each claim holds, for all classes of the table."""
    exact, bounds = table.approximations(), table.bounds(classifier)
    n = table.confusion_matrix(classifier).counts.T  # rows predicted, as in the source
    claims = _of_section_3(exact, bounds, n) | _lemma(table, classifier, n)
    predicted, hits, sizes = n.sum(axis=1), bounds.hits, exact.class_sizes
    claims |= {
        "Theorem 4.1: nl <= nl**": exact.lower <= bounds.lower_upper_bound,
        "Theorem 4.1: nl** <= nl*": bounds.lower_upper_bound <= hits,
        "Theorem 4.1: nl* <= |Y|": hits <= sizes,
        "section 4: predicted <= nu": predicted <= exact.upper,
        "Theorem 4.2: |Y| <= nu*": sizes <= bounds.union,
        "Theorem 4.2: nu* <= nu**": bounds.union <= bounds.upper_lower_bound,
        "Theorem 4.2: nu** <= nu": bounds.upper_lower_bound <= exact.upper,
    }
    least, most = bounds.majority_lower_upper_bound, bounds.majority_upper_lower_bound
    if least is not None and most is not None:
        values = (
            exact.lower <= least,
            least <= bounds.lower_upper_bound,
            bounds.lower_upper_bound <= most,
            bounds.upper_lower_bound <= most,
            most <= exact.upper,
        )
        claims |= dict(zip(MAJORITY_ONLY, values, strict=True))
    return {name: bool(np.all(value)) for name, value in claims.items()}


def _of_section_3(
    exact: RoughApproximations, bounds: RoughBounds, n: npt.NDArray
) -> dict[str, Bools | bool]:
    share, gamma, g = exact.class_sizes / exact.class_sizes.sum(), exact.gamma, bounds.gamma_upper
    wrong = dict(
        zip(
            PRINTED_WRONG,
            (
                np.isclose(
                    exact.alpha, exact.lower_share * exact.lower / exact.upper, atol=TOLERANCE
                ),
                np.isclose(alpha_as_printed(n), middle_of_3_6(n), atol=TOLERANCE),
                alpha_as_printed(n) <= 1 + TOLERANCE,
                np.isclose(bounds.weighted_alpha_upper, gamma / (2 - gamma), atol=TOLERANCE),
                upper_bound_as_printed(exact.class_sizes, bounds.hits) <= exact.upper,
            ),
            strict=True,
        )
    )
    return {
        "3.3: gamma = sum of n_i / n * p_i": np.isclose(gamma, share @ exact.lower_share),
        "3.4: alpha_i = p_i * p^i, p^i = n_i / nu_i": np.isclose(
            exact.alpha, exact.lower_share * exact.upper_share
        ),
        "3.4: alpha_i <= n_ii / (n_i. + n_.i - n_ii)": exact.alpha
        <= bounds.alpha_upper + TOLERANCE,
        "3.6 corrected: alpha = g / (2 - g), g the accuracy": np.isclose(
            bounds.weighted_alpha_upper, g / (2 - g)
        ),
        "3.6 corrected: middle = g / (2 - g)": np.isclose(middle_of_3_6(n), g / (2 - g)),
        "gamma <= accuracy": gamma <= g + TOLERANCE,
        "section 3: nl_i <= n_ii": exact.lower <= bounds.hits,
        "after Example 1, corrected: n_i. + n_.i - n_ii <= nu_i": bounds.union <= exact.upper,
        **wrong,
    }


def _lemma(table: GranuleTable, classifier: Classifier, n: npt.NDArray) -> dict[str, Bools | bool]:
    assigned = np.array([table.labels.index(label) for label in classifier])
    exact = table.approximations()
    inside = table.deterministic
    own = table.counts.argmax(axis=1)
    lower_kept = [
        all(assigned[granule] == k for granule in granules)
        for k, granules in enumerate(exact.lower_granules)
    ]
    return {
        "Lemma 4.1 (i)": assigned[inside] == own[inside],
        "Lemma 4.1 (ii)": np.array(lower_kept),
        "Lemma 4.1 (iii)": ~n[np.diag(n) == 0].any(axis=1),
    }
