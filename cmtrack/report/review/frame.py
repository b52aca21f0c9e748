"""A comparison as a table: one row per run, or per model of repeated runs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from cmtrack.comparison.blocks import RepeatedRanking
from cmtrack.comparison.ranking import RankedRun, Ranking
from cmtrack.comparison.result import Comparison, ModelComparison
from cmtrack.report.review.standing import standing
from cmtrack.untrusted import for_page

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = (
    "ranking", "rank", "name", "run_id", "status", "value", "low", "high", "difference", "difference_low",
    "difference_high", "pvalue", "p_holm", "p_max_t", "p_set", "probability_best", "expected_rank", "rank_low",
    "rank_high", "tied", "within_margin", "chosen", "paired", "reason",
)  # fmt: skip
MODEL_COLUMNS = (
    "rank", "name", "run_id", "status", "mean", "sd", "blocks", "difference", "difference_low", "difference_high",
    "pvalue", "p_holm", "worse", "equivalent", "better", "average_rank", "tied", "within_margin", "chosen", "reason",
)  # fmt: skip
_HTML = ("rank", "name", "status", "value", "mean", "low", "high", "difference", "difference_low", "difference_high",
         "probability_best", "rank_low", "rank_high", "p_set", "p_holm", "equivalent", "reason")  # fmt: skip
_WHOLE = ("ranking", "rank", "rank_low", "rank_high", "blocks")
_FLAGS = ("tied", "within_margin", "chosen", "paired")


def to_frame(comparison: Comparison) -> pd.DataFrame:
    """One row per run: the ranked ones best first, then those stopped by a gate, then those left out.

    Of a criterion of several metrics each has a column of its own, by its name; so has each parameter in which the
    ranked runs differ, as ``params.<name>``. ``reason`` holds the gates that a run fails, why it is left out, or why
    its differences are unpaired.
    """
    import pandas as pd

    of_models = isinstance(comparison, ModelComparison)
    columns = list(MODEL_COLUMNS if of_models else COLUMNS)
    if not of_models and not comparison.criterion.single:
        place = columns.index("difference")
        columns[place:place] = comparison.criterion.metrics
    params = [] if of_models else _varying(comparison)
    frame = pd.DataFrame(list(_rows(comparison, params)), columns=columns + [f"params.{name}" for name in params])
    for name in columns:
        if name in _WHOLE:
            frame[name] = frame[name].astype("Int64")
        elif name in _FLAGS:
            frame[name] = frame[name].astype("boolean")
        elif name not in ("name", "run_id", "status", "reason"):
            frame[name] = frame[name].astype("float64")
    return frame


def to_html(comparison: Comparison) -> str:
    """The decision and the table, for a notebook."""
    from cmtrack.report.review.words import decision

    said = "".join(f"<p>{escape(sentence)}</p>" for sentence in decision(comparison))
    frame = to_frame(comparison)
    shown = frame[[name for name in frame.columns if name in _HTML or name in comparison.criterion.metrics]]
    if not (comparison.criterion.pareto or isinstance(comparison, ModelComparison)):
        shown = shown.drop(columns="p_holm", errors="ignore")  # p_set decides: one p-value on a page
    shown = shown.dropna(axis="columns", how="all")
    return for_page(said + shown.to_html(index=False, float_format="{:.4f}".format, na_rep="", escape=True))


def _varying(comparison: Comparison) -> list[str]:
    """Parameters in which the ranked runs differ."""
    params = [run.run.params for run in comparison.runs]
    names = dict.fromkeys(name for of_run in params for name in of_run)
    return [name for name in names if len({of_run.get(name) for of_run in params}) > 1]


def _rows(comparison: Comparison, params: Sequence[str]) -> Iterator[dict[str, Any]]:
    for place, ranking in enumerate(comparison.rankings, 1):
        if isinstance(ranking, RepeatedRanking):
            yield from _models(ranking)
            continue
        for run in ranking.runs:
            own = {f"params.{name}": run.run.params.get(name) for name in params}
            yield own | _ranked(place, run, ranking, several=not comparison.criterion.single)
    for stop in comparison.failed:
        failing = "; ".join(str(result) for result in stop.gates if not result.passed)
        yield {"name": stop.name, "run_id": stop.run_id, "status": "stopped by a gate", "reason": failing}
    for left in comparison.left_out:
        yield {"name": left.run.name, "run_id": left.run.run_id, "status": "left out", "reason": left.reason}


def _ranked(place: int, run: RankedRun, ranking: Ranking, several: bool) -> dict[str, Any]:
    own = {name: getattr(run, name) for name in COLUMNS if hasattr(run, name)}
    metrics = dict(run.values or {}) if several else {}
    # a run alone is paired with nothing
    paired = None if len(ranking.runs) == 1 else not run.unpaired
    said = {"ranking": place, "status": standing(run, ranking), "paired": paired, "reason": run.unpaired}
    return own | metrics | said


def _models(ranking: RepeatedRanking) -> Iterator[dict[str, Any]]:
    for model in ranking.models:
        own = {name: getattr(model, name) for name in MODEL_COLUMNS if hasattr(model, name)}
        blocks = sum(math.isfinite(value) for value in ranking.scores[:, ranking.models.index(model)])
        yield own | {"status": standing(model, ranking), "blocks": blocks, "reason": ""}
