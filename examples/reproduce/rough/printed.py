"""Formulas as they are printed; their matrices have predicted classes in rows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def alpha_as_printed(n: npt.ArrayLike) -> float:
    """Equations 3.5 and 3.6, left: the weights n_i. + n_.i, the denominator with n_i. + n_.i - n_ii.

    Parameters
    ----------
    n : array-like of shape (K, K)
        Rows predicted, columns actual.
    """
    table = np.asarray(n, dtype=np.float64)
    both, hits = table.sum(axis=1) + table.sum(axis=0), np.diag(table)
    alpha = np.divide(hits, both - hits, out=np.zeros(len(table)), where=both > hits)
    return float(both @ alpha / (both - hits).sum())


def middle_of_3_6(n: npt.ArrayLike) -> float:
    """Equation 3.6, middle: sum of hits over sum of n_i. + n_.i - n_ii."""
    table = np.asarray(n, dtype=np.float64)
    both, hits = table.sum(axis=1) + table.sum(axis=0), np.diag(table)
    return float(hits.sum() / (both - hits).sum())


def upper_bound_as_printed(sizes: npt.ArrayLike, hits: npt.ArrayLike) -> Floats:
    """After Example 1: |Upp(Y_i)| is at least n_i + n_i - n_ii."""
    return 2.0 * np.asarray(sizes, dtype=np.float64) - np.asarray(hits, dtype=np.float64)
