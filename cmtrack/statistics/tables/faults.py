"""What is wrong with the numbers of a table, and in how many rows: asked only after the survey has found a fault."""

from __future__ import annotations

from typing import Any, NoReturn

import narwhals as nw
import numpy as np

from cmtrack.statistics.probabilities import ROUNDING, Normalize, most_off, sum_rule
from cmtrack.statistics.tables.columns import Columns
from cmtrack.statistics.tables.tallies import WEIGHT, Run


def explain_probabilities(
    frame: nw.LazyFrame[Any], columns: Columns, run: Run, n_rows: int, what: str, normalize: Normalize
) -> NoReturn:
    """Raise the ValueError that says which probabilities are wrong."""
    terms: dict[str, nw.Expr] = {}
    for c in columns.given:
        terms[f"missing_{c}"] = _missing(c)
        terms[f"infinite_{c}"] = _infinite(c)
        terms[f"outside_{c}"] = _finite(c) & ((nw.col(c) < -ROUNDING) | (nw.col(c) > 1 + ROUNDING))
    if len(columns.given) > 1:
        terms["off"] = nw.col("off") > most_off(normalize)
    found = _count(frame, terms, run)
    for c, part in zip(columns.given, columns.parts, strict=True):
        _refuse_missing(what, found, c, n_rows, f" ({part})")
    for c, part in zip(columns.given, columns.parts, strict=True):
        if found[f"outside_{c}"]:
            ends = run("what is wrong", frame.select(nw.col(c).min().alias("low"), nw.col(c).max().alias("high")))
            worst = ends["low"][0] if ends["low"][0] < -ROUNDING else ends["high"][0]
            raise ValueError(
                f"{what} must lie in [0, 1], got {worst} and the like in {found[f'outside_{c}']} of {n_rows} rows "
                f"({part}); decision scores are welcome in estimate_prevalence and in cmtrack.metrics"
            )
    worst = run("what is wrong", frame.select(nw.col("off").max().alias("off")))["off"][0]
    raise ValueError(
        f"each row of {what} must sum to 1, {found['off']} of {n_rows} rows do not: the worst is off by {worst:.6g} "
        f"({sum_rule(normalize)})"
    )


def explain_weights(frame: nw.LazyFrame[Any], run: Run, n_rows: int) -> NoReturn:
    """Raise the ValueError that says which weights are wrong."""
    negative = _finite(WEIGHT) & (nw.col(WEIGHT) < 0)
    terms = {f"missing_{WEIGHT}": _missing(WEIGHT), f"infinite_{WEIGHT}": _infinite(WEIGHT), "negative": negative}
    found = _count(frame, terms, run)
    _refuse_missing("sample_weight", found, WEIGHT, n_rows, "", " and not negative")
    if found["negative"]:
        least = run("what is wrong", frame.select(nw.col(WEIGHT).min().alias("low")))["low"][0]
        shown = f"negative ones in {found['negative']} of {n_rows} rows, the least is {least}"
        raise ValueError(f"sample_weight must be finite and not negative, got {shown}")
    raise ValueError("sample_weight must be finite in sum, got a sum beyond the range of numbers")


def _refuse_missing(what: str, found: dict[str, int], name: str, n_rows: int, part: str, also: str = "") -> None:
    missing, infinite = found[f"missing_{name}"], found[f"infinite_{name}"]
    if missing or infinite:
        kind = " or ".join(["NaN or null"] * bool(missing) + ["infinity"] * bool(infinite))
        raise ValueError(f"{what} must be finite{also}, got {kind} in {missing + infinite} of {n_rows} rows{part}")


def _count(frame: nw.LazyFrame[Any], terms: dict[str, nw.Expr], run: Run) -> dict[str, int]:
    one, none = nw.lit(1, nw.Int64), nw.lit(0, nw.Int64)
    flags = {f"fault_{name}": nw.when(term).then(one).otherwise(none) for name, term in terms.items()}
    sums = [nw.col(f"fault_{name}").sum().alias(name) for name in terms]
    found = run("what is wrong", frame.with_columns(**flags).select(*sums))
    return {name: int(found[name][0]) for name in terms}


def _missing(name: str) -> nw.Expr:
    return nw.col(name).is_null() | nw.col(name).is_nan()


def _infinite(name: str) -> nw.Expr:
    return ~_missing(name) & (nw.col(name).abs() == np.inf)


def _finite(name: str) -> nw.Expr:
    return ~_missing(name) & (nw.col(name).abs() < np.inf)
