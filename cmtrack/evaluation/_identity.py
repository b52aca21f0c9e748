"""Checks whether two evaluations are comparable or equal, and the ``repr`` of an evaluation."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from cmtrack.digits import count, significant
from cmtrack.grouping.step import same_label

if TYPE_CHECKING:
    from cmtrack.evaluation.result import Evaluation


def design(evaluation: Evaluation) -> tuple[tuple[str, str], ...]:
    """Return the options and data that evaluations must share to be ranked together."""
    grouping = evaluation.grouping
    parts = [
        ("labels", repr(evaluation.labels)),
        ("grouping", "" if grouping is None else repr(_without_positive(grouping.to_dict()))),
        ("positive", str(same_label(evaluation.positive))),
    ]
    if evaluation.prices is not None:
        # Adding 0.0 turns -0.0 into 0.0: the two numbers are equal, but their bytes differ.
        prices = (evaluation.prices + 0.0).tobytes()
        parts.append(("costs", hashlib.sha256(prices).hexdigest()))
    if evaluation.none is not None:
        parts.append(("none", repr(evaluation.none)))
    return tuple(parts)


def is_equal(first: Evaluation, second: Evaluation) -> bool:
    """Return True if the statistics, the options, the row facts and the notes are equal."""
    names = "statistics", "spec", "row_facts", "notes"
    return (
        all(getattr(first, name) == getattr(second, name) for name in names)
        and first.extra_data() == second.extra_data()
    )


def line_of_text(evaluation: Evaluation) -> str:
    """Return the ``repr`` of an evaluation: its number of rows and three headline metrics."""
    if evaluation.none is not None:
        names = ["spans/f1_micro", "spans/f1_macro"]
        head = f"{count(evaluation.n_samples)} spans, {len(evaluation.classes)} labels"
    else:
        names = ["multiclass/accuracy", "multiclass/matthews_corrcoef"]
        head = f"{_size(evaluation)}, {len(evaluation.labels)} classes"
        if evaluation.positive is not None:
            head += f", positive {evaluation.positive!r}"
            names = ["binary/matthews_corrcoef", "binary/roc_auc", "multiclass/accuracy"]
    metrics = evaluation.metrics
    numbers = [
        f"{evaluation.catalog.lookup(name).heading(brief=True)} {significant(metrics[name])}"
        for name in names
        if name in metrics
    ]
    if not numbers:
        return f"Evaluation({head})"
    return f"Evaluation({head}: {', '.join(numbers)})"


def _size(evaluation: Evaluation) -> str:
    """Return text that states the number of rows and the kind of their weights."""
    kind = evaluation.weights_are
    if kind is None:
        return f"{count(evaluation.n_samples)} rows"
    rows = evaluation.statistics.digest.rows
    return f"{rows:,} rows ({kind} weight {count(evaluation.n_samples)})"


def _without_positive(plain: Any) -> Any:
    """Remove the positive group from the plain data of a grouping.

    The positive group is stored as a separate part of the design. Classes that are booleans or
    whole floats are replaced by the equal integers.
    """
    if isinstance(plain, dict):
        is_step = "groups" in plain  # a group may have the name "positive"
        return {
            same_label(name): _without_positive(value)
            for name, value in plain.items()
            if not (is_step and name == "positive")
        }
    if isinstance(plain, list):
        return [_without_positive(value) for value in plain]
    return same_label(plain)
