"""The methods on their training sets, and the table that three of them have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pandas as pd

from rare_events import published
from rare_events.bootstrap import PositiveBootstrap
from rare_events.ensemble import ExpertEnsemble
from rare_events.layout import Layout
from rare_events.machine import TextMachine
from rare_events.tables import comparable, side_by_side
from rare_events.variants import Scored, score, variants
from rare_events.websites import Websites
from study import Study, nearness

CONVENTION = "ours over {n} training sets, mean ± standard deviation; published in brackets; † more than two of our spreads away"
BUILD: dict[str, Callable[[Layout, int], Any]] = {
    "state of the art": lambda layout, seed: TextMachine(),
    "bootstrap": lambda layout, seed: PositiveBootstrap(
        layout.machines["bootstrap"], random_state=seed
    ),
    "ensemble": lambda layout, seed: ExpertEnsemble(layout.machines["ensemble"], random_state=seed),
}


class Data(NamedTuple):
    """What all methods share."""

    layout: Layout
    target: Websites
    held_out: Websites


class Method(NamedTuple):
    """Repeats of a method: scores, and the published columns of each."""

    repeats: list[Scored]
    frames: list[pd.DataFrame]


def repeated(study: Study, data: Data, method: str, build: Callable[[Layout, int], Any]) -> Method:
    """A method on each of its training sets."""
    repeats = []
    for repeat in study.track(range(data.layout.repeats[method]), method):
        training = data.layout.training(method, repeat)
        scored = score(
            build(data.layout, repeat),
            training,
            data.target,
            data.held_out,
            folds=data.layout.folds,
        )
        if repeat:
            scored.machine = None  # the first is enough to look at
        repeats.append(scored)
    return Method(repeats, [variants(data.target.y, scored) for scored in repeats])


def weighted(study: Study, data: Data, weight: float) -> Method:
    """Class weights with one weight."""
    return repeated(study, data, "class weights", lambda layout, seed: TextMachine(weight))


def method_table(study: Study, data: Data, method: str, table: str, done: Method) -> None:
    """One of Tables 2.1-2.3."""
    study.heading(f"{table}: {method}")
    printed = published.TABLES[table]
    caption = f"{table}. {CONVENTION.format(n=len(done.frames))}. Calibrated rows of the thesis stand beside in-sample"
    study.table(table.lower().replace(" ", "-"), side_by_side(done.frames, printed), caption)
    own, theirs = comparable(done.frames, printed)
    study.outcome(
        table,
        reproduced=f"all four variants, over {len(done.frames)} training sets, calibrated in three ways",
        near=nearness(own, theirs, digits=3),
        not_possible="the thesis' websites are not public",
    )
