"""The standing of a run or model: one word for it, and the sentences that are made of it.

The p-value that decides is the one that is shown: a run is "behind" where its p-value of being among the best is at
most one less the confidence level.
"""

from __future__ import annotations

import math
from typing import Any

from cmtrack.report import words
from cmtrack.report.review.titles import and_list, level

STANDINGS = ("chosen", "leads", "tied", "behind")


def standing(run: Any, ranking: Any) -> str:
    """ "chosen", "leads", "tied" or "behind": the word for a run of a ranking, or a model of repeated runs."""
    if run.chosen:
        return "chosen"
    if run is ranking.leader and not ranking.criterion.pareto:
        return "leads"
    return "tied" if run.tied else "behind"


def all_others(n: int, noun: str) -> str:
    """ "the other run is", "both other runs are", "all 5 other runs are"."""
    if n == 1:
        return f"the other {noun} is"
    return f"{'both' if n == 2 else f'all {n}'} other {noun}s are"


def standing_sentences(tied: list[str], behind: list[str], unsure: list[str], confidence_level: float) -> list[str]:
    """Which runs or models are tied with the leader, and which are behind it; names as they are to be shown."""
    at = level(confidence_level)
    said = []
    if tied:
        said.append(f"Not distinguishable from it ({at}): {and_list(tied)}.")
    if unsure:
        said.append(f"Not tested, as no error is known: {and_list(unsure)}.")
    if behind:
        many = len(behind) > 4 and not (tied or unsure)
        names = f"all {len(behind)} others" if many else and_list(behind)
        said.append(f"Significantly worse{'' if tied else f' ({at})'}: {names}.")
    return said


def gap_words(difference: float, ends: tuple[float, float], direction: str, name: str) -> str:
    """ "0.019 lower than “A” [−0.049, 0.012]"; the interval is that of the signed difference."""
    if difference == 0:
        return f"equal to {name} {words.interval(difference, ends)}".rstrip()
    shown = words.number(abs(difference), ends if all(map(math.isfinite, ends)) else None)
    way = "lower than" if difference < 0 else "higher than"
    if direction == "nearest zero":
        way = "closer to zero than" if difference < 0 else "farther from zero than"
    return f"{shown} {way} {name} {words.interval(difference, ends)}".rstrip()
