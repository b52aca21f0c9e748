"""Which two groups an evaluation scores."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cmtrack.grouping import ComposedStep, Grouping, Label


def scored_step(labels: tuple[Label, ...], grouping: Grouping | None, positive: Label | None) -> ComposedStep | None:
    """The last two-group step of a chain, or two classes as they are; None where there is neither.

    Raises
    ------
    ValueError
        If ``positive`` is given and is neither one of two groups nor one of two classes.
    """
    step = None
    if grouping is not None:
        two = [composed for composed in grouping.compose(labels) if len(composed.labels) == 2]
        step = two[-1] if two else None
    if step is None and len(labels) == 2:
        step = ComposedStep("classes", labels, np.arange(2), np.eye(2, dtype=bool), 1)
    if positive is None:
        return step
    if step is None:
        raise ValueError(
            f"positive={positive!r} needs two classes or a grouping step of two groups, got {len(labels)} classes"
        )
    if positive not in step.labels:
        raise ValueError(f"positive must be one of {list(step.labels)}, got {positive!r}")
    return replace(step, positive=step.labels.index(positive))
