"""Options of a comparison, each of which is declared only here.

The declarations generate the signature and the docstring of :func:`cmtrack.compare`, the flags of
the commands, the keys of a rule file, and the snippet that repeats a review.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from cmtrack.options import Entry, Question, entry, late, takes
from cmtrack.removed import WEIGHTS, RemovedFeature, reason

if TYPE_CHECKING:
    from cmtrack.comparison.criterion import RankBy
    from cmtrack.grouping import Costs, Grouping, Label
    from cmtrack.metrics.metric import Metric

# The checks import modules only when they run, so that the command line shows its help without
# NumPy.


def several(given: Any) -> list[Any]:
    """Return the values of an option as a list; a single text becomes a list with one text."""
    return [given] if isinstance(given, str) else list(given)


# -- checks of options -----------------------------------------------------------------------------


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _margin(margin: float | None) -> float | None:
    if margin is not None and not (_is_number(margin) and 0 <= margin < math.inf):
        raise ValueError(f"margin must be a finite number that is not negative, got {margin!r:.60}")
    return margin


def _equivalence(margin: float | None) -> float | None:
    if margin is not None and not (_is_number(margin) and 0 < margin < math.inf):
        raise ValueError(f"equivalence must be a finite margin above 0, got {margin!r:.60}")
    return margin


def _shares(shares: Any) -> Any:
    if isinstance(shares, Mapping):  # use texts as names, as in files
        if not all(map(_is_number, shares.values())):
            raise TypeError(f"at must map classes or groups to shares, got {shares!r:.60}")
        return {str(name): float(share) for name, share in shares.items()}
    if shares is None:
        return shares
    if not (_is_number(shares) and 0 <= shares <= 1):
        raise ValueError(
            f"at must be a share between 0 and 1, or shares by class or group, got {shares!r:.60}"
        )
    return float(shares)


def shares_of(texts: Sequence[str], option: str = "at") -> float | dict[str, float]:
    """Parse class shares from the command line, such as ``0.02`` or ``spam=0.02``."""
    named: dict[str, float] = {}
    for text in texts:
        name, sign, share = text.rpartition("=")
        try:
            number = float(share)
        except ValueError:
            raise ValueError(f"{option} must be a share or NAME=SHARE, got {text!r}") from None
        if not sign and len(texts) > 1:
            raise ValueError(f"{option} needs a name for each of several shares, got {text!r}")
        if not sign:
            return number
        if name in named:
            raise ValueError(f"{option} must name a class or group once, got {name!r} twice")
        named[name] = number
    return named


def _limit(limit: int) -> int:
    if limit < 1:
        raise ValueError(f"limit must be at least 1, got {limit!r}")
    return limit


def _segments(segments: Any) -> list[str] | None:
    if segments is None:
        return None
    from cmtrack.statistics.segment_values import division_name, divisions_of

    return [
        division_name(one)
        for one in divisions_of([segments] if isinstance(segments, str) else segments)
    ]


# Values of options in a rule file.


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise TypeError("a text")
    return value


def _texts(value: Any) -> str | list[str]:
    if isinstance(value, list) and value:
        return [_text(one) for one in value]
    return _text(value)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise TypeError("a finite number")
    return float(value)


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise TypeError("a whole number that is not negative")
    return value


def _rank_by(value: Any) -> Any:
    if isinstance(value, dict):
        raise RemovedFeature(reason(WEIGHTS))
    return _texts(value)


def _label(value: Any) -> Any:
    if not isinstance(value, (str, int, float, bool)):
        raise TypeError("a label: a string, a number, true or false")
    return value


def _divisions(value: Any) -> Any:
    if isinstance(value, list) and value:
        return [
            tuple(map(_text, one)) if isinstance(one, list) and one else _text(one) for one in value
        ]
    return _text(value)


def _held(kind: str) -> Callable[[Any], Any]:
    def inside(value: Any) -> Any:
        if not isinstance(value, dict):
            raise TypeError("a mapping in this file, so that the digest covers it")
        return late(f"cmtrack.grouping:{kind}.from_dict")(value)

    return inside


def _of_file(fields: Mapping[str, Any]) -> str:
    deciding = [
        f"``{n}``"
        for n, one in fields.items()
        if isinstance(one, Field) and one.metadata["entry"].form
    ]
    return (
        f"A YAML file with the options that decide: {', '.join(deciding)}. Groupings and costs "
        "are written in the file itself. The file is the whole rule: an argument that differs from "
        "it raises an error. The review prints the file's digest, which identifies the rule."
    )


_A_NUMBER: dict[str, Any] = {"of_flag": float, "form": "a number", "read": _number}


@dataclass(frozen=True, eq=False)
class CompareSpec(Question):
    """The options of :func:`cmtrack.compare`, in order, with their defaults."""

    experiment_names: Sequence[str] | None = entry(
        "sequence of str, optional",
        "The experiments whose runs are compared if you do not pass ``runs``. By default, the "
        "active experiment.",
        flag="--experiment",
        help="Use the runs of this experiment; repeatable.",
        metavar="NAME",
        several=True,
    )
    filter_string: str = entry(
        'str, default ""',
        "An MLflow filter that selects the runs, such as ``\"params.model = 'forest' and "
        "tags.stage = 'final'\"``.",
        "",
        flag="--filter",
        help="Use only runs that match this MLflow filter, such as \"params.model = 'forest'\".",
        metavar="TEXT",
    )
    rank_by: RankBy | None = entry(
        "str, sequence of str or mapping, optional",
        "Name of a metric, or several names for a Pareto front. A run is on the front if no "
        "other run is at least as good in every metric and better in one. By default, runs are "
        "ranked by the Matthews correlation of the positive group or, without a positive "
        "group, of all classes. Evaluations of sets of codes are ranked by the micro F1.",
        flag="--rank-by",
        help="Rank by this metric, by default the Matthews correlation; repeat it for a Pareto "
        "front.",
        metavar="METRIC",
        several=True,
        form="a metric's name, or a list of names",
        read=_rank_by,
    )
    require: str | Sequence[str] = entry(
        "str or sequence of str",
        'Gates such as ``"class/3/recall >= 0.6"``, ``"prevalence/bias.abs <= 0.01"`` or '
        '``"binary/roc_auc.low > 0.8"`` (the lower limit of the interval). ``.difference`` is '
        'the difference from ``against``. ``"segment/region/*/binary/recall.low >= 0.6"`` must '
        "hold in all segments, with simultaneous intervals. ``segment/region/north/...`` must "
        "hold only in the segment “north”. A run that fails a gate is listed, but not ranked.",
        (),
        flag="--require",
        help="Require that runs pass this gate, such as 'class/3/recall >= 0.6', "
        "'prevalence/bias.abs <= 0.01', 'binary/roc_auc.low > 0.8', "
        "'multiclass/accuracy.difference.low > -0.01' or, for all segments, "
        "'segment/region/*/binary/recall.low >= 0.6'; repeatable.",
        metavar="GATE",
        several=True,
        form="a gate, or a list of gates",
        read=_texts,
    )
    tie_breakers: str | Sequence[str] = entry(
        "str or sequence of str",
        "Rules that choose among the runs that may be the best, within a margin of the leader: a "
        "metric, "
        '``"params.depth"``, ``"metrics.seconds asc"``, ``"tags.size desc"``. For a metric of '
        "cmtrack, the best value wins. "
        "For anything else, the smallest value wins or, with ``desc``, the largest value.",
        (),
        flag="--tie-breaker",
        help="Choose among runs that may be the best, within the margin, by this rule: a metric, "
        "'params.depth', 'metrics.seconds asc' or 'tags.size desc'; repeatable.",
        metavar="RULE",
        several=True,
        form="a tie-breaker, or a list of them",
        read=_texts,
    )
    margin: float | None = entry(
        "float, optional",
        "Largest loss, relative to the leader, that a tie-breaker may accept, in units of the "
        "metric. By default, the limit is the paired standard error of each run's difference "
        "from the leader (the one-standard-error rule of Breiman, Friedman, Olshen and Stone "
        "1984). With a number, a tie-breaker chooses among runs that are shown to be worse by "
        "at most ``margin``: the lower limit of their simultaneous interval is at least "
        "``-margin`` (non-inferiority).",
        check=_margin,
        flag="--margin",
        help="Let tie-breakers choose among runs that are shown to be worse than the best by at "
        "most this margin, in units of the metric. By default they choose among runs within one "
        "standard error of the leader.",
        **_A_NUMBER,
    )
    equivalence: float | None = entry(
        "float, optional",
        "Margin, in units of the metric, for the status “equivalent within”. A run gets this "
        "status if both one-sided tests show that it differs from the leader by less than the "
        "margin (Schuirmann 1987). The interval of the difference at twice the error rate (a "
        "90% interval if the confidence level is 95%) is then within the margin. Runs without "
        "a significant difference are not always equivalent. A run never gets the status if a "
        "share is computed from fewer than 20 rows, or if a class has fewer than 20 rows for "
        "any other metric. You can write the same condition as two gates: "
        "``multiclass/accuracy.difference.low > -0.01`` and ``.difference.high < 0.01``.",
        check=_equivalence,
        flag="--equivalence",
        help="Mark runs as equivalent that are shown to differ from the leader by less than this "
        "margin, in units of the metric.",
        **_A_NUMBER,
    )
    at: float | Mapping[Label, float] | None = entry(
        "float or mapping of label to float, optional",
        "Evaluate every run for other class shares, as :meth:`cmtrack.Evaluation.at` does: the "
        "share of the positive class or group, or shares by class or group. Rows are weighted, so "
        "all values, gates and differences are for these shares.",
        check=_shares,
        flag="--at",
        help="Evaluate every run for this share of the positive class or group, or of the class "
        "or group NAME; repeatable.",
        metavar="[NAME=]SHARE",
        several=True,
        of_texts=shares_of,
        form="a share, or shares by class",
        read=_shares,
    )
    confidence_level: float = entry(
        "float, default 0.95",
        "Confidence level of all intervals; a run may be the best unless it is ruled out at this "
        "level.",
        0.95,
        check=late("cmtrack.metrics.intervals:check_level"),
        flag="--confidence-level",
        help="Use this confidence level for all intervals, and to rule out runs as the best.",
        **_A_NUMBER,
    )
    grouping: Grouping | None = entry(
        "Grouping, optional",
        "Evaluate every run under this grouping. Without it, runs with different groupings are in "
        "separate rankings if ``rank_by``, ``require`` or ``tie_breakers`` use a metric that "
        "depends on the grouping.",
        flag="--grouping",
        help="Evaluate every run with the grouping in this YAML or JSON file.",
        of_flag=Path,
        form="a grouping",
        read=_held("Grouping"),
    )
    positive: Label | None = entry(
        "label, optional",
        "The positive group of ``grouping``.",
        flag="--positive",
        help="Use this group as the positive group of the grouping.",
        metavar="GROUP",
        form="a label",
        read=_label,
    )
    costs: Costs | Mapping[tuple[Any, Any], float] | str | Path | None = entry(
        "Costs, mapping of (actual, predicted) to float, or path, optional",
        "Price every run by these costs of classes or groups, for "
        '``rank_by="cost/mean"`` and for gates on costs. Without them, '
        "runs with different costs are in separate rankings if a metric depends on costs.",
        check=late("cmtrack.grouping:as_costs", optional=True),
        flag="--costs",
        help="Compute cost/mean of every run from the costs in this YAML or JSON file.",
        of_flag=Path,
        form="costs",
        read=_held("Costs"),
    )
    segments: str | Sequence[str | tuple[str, ...]] | None = entry(
        "str or sequence of str, optional",
        "Segment columns of the evaluations (``evaluate(..., segments=)``). A tuple of names "
        "selects crossed columns. The leader is compared with the next 5 runs by segment, row "
        'by row if the rows and their segments are available, and tested for "better overall, '
        'but worse for some" (Gail, Simon 1985).',
        check=_segments,
        flag="--segment",
        help="Compare the leader with the next runs by segments of this column; repeatable.",
        metavar="COLUMN",
        several=True,
        form="a column, or a list of columns and of lists of columns",
        read=_divisions,
    )
    against: Any = entry(
        "run reference, optional",
        "The baseline of ``.difference`` gates. It is ranked with the other runs.",
        flag="--against",
        help="Compute differences from this baseline, a run or a model URI.",
        metavar="RUN",
        form="a run",
        read=_text,
    )
    block: str | None = entry(
        "str, optional",
        "For repeated runs: the parameter or tag that identifies the repetition, such as "
        '``"params.fold"`` or ``"params.seed"``.',
        flag="--block",
        help="Compare models over repeated runs. This parameter or tag, such as 'params.fold', "
        "identifies the repetition.",
        metavar="NAME",
        form="a text such as params.fold",
        read=_text,
    )
    model: str | None = entry(
        "str, optional",
        "For repeated runs: the parameter or tag that identifies the model, such as "
        '``"params.model"``. By default, all parameters except the block identify the model.',
        flag="--model",
        help="Identify the models of repeated runs by this parameter or tag, such as "
        "'params.model'.",
        metavar="NAME",
        form="a text such as params.model",
        read=_text,
    )
    block_kind: str = entry(
        '"auto", "folds" or "seeds"',
        'Kind of the blocks. With "auto", blocks are seeds if all of them have the same test '
        "rows. They are folds if all of them have different rows, and ``block`` is named like "
        "a fold or the classes are divided evenly. Anything else raises an error.",
        "auto",
        flag="--block-kind",
        help="Treat the blocks of repeated runs as this kind.",
        choices={kind: kind for kind in ("auto", "folds", "seeds")},
        form="a text",
        read=_text,
    )
    test_train_ratio: float | None = entry(
        "float, optional",
        "For folds: the number of test rows divided by the number of training rows. The "
        "default is 1 / (folds - 1).",
        **_A_NUMBER,
    )
    prefix: str = entry(
        'str, default ""',
        "The prefix that the evaluations were logged under.",
        "",
        flag="--prefix",
        help="Read the evaluations that were logged under this prefix.",
    )
    limit: int = entry(
        "int, default 50",
        "Maximum number of runs to read and test for each data set. The runs with the best "
        "logged values are read.",
        50,
        check=_limit,
        flag="--limit",
        help="Read and test at most this many runs for each data set. The runs with the best "
        "logged values are read.",
        of_flag=int,
    )
    max_runs: int | None = entry(
        "int or None, default 5000",
        "Maximum number of runs to list from each store, best first.",
        5000,
    )
    tracking_uri: str | Sequence[str] | None = entry(
        "str or sequence of str, optional",
        "One or several tracking stores; by default MLflow's current store.",
        flag="--tracking-uri",
        help="Use this tracking store, by default MLflow's current store; repeatable.",
        metavar="URI",
        several=True,
    )
    seed: int = entry(
        "int, default 0",
        "Seed of the random draws.",
        0,
        of_flag=int,
        form="a whole number",
        read=_whole,
    )
    extra_metrics: Sequence[Metric] = entry(
        "sequence of Metric, optional",
        "Custom metrics to compute for every run, including runs that were logged without them. "
        "If a custom metric was logged but is not given here, its logged numbers are used, without "
        "differences by row and without regrouped values.",
        (),
        flag="--extra-metrics",
        help="Use custom metrics from this file or module: NAME is a Metric, or a list or dict of "
        "metrics. The file is executed with your permissions; repeatable.",
        metavar="FILE.py:NAME",
        several=True,
    )
    rule: Any = entry(
        "path, optional",
        _of_file(locals()),
        flag="--rule",
        help="Use the rule in this YAML file (rank_by, require, margin and more). Write the rule "
        "before you see the results. The review prints the file's digest.",
        of_flag=Path,
    )

    @classmethod
    def deciding(cls) -> dict[str, Entry]:
        """Return the options that affect the decision, which a rule file may contain.

        All options that do not affect the decision serve to select the runs.
        """
        return {name: one for name, one in cls.entries().items() if one.form}

    @classmethod
    def defaults(cls) -> dict[str, Any]:
        """Return the default value of each option by name."""
        return {name: one.default for name, one in cls.entries().items()}


class CompareArguments(TypedDict, total=False):
    """Types of the options that :class:`CompareSpec` describes."""

    experiment_names: Sequence[str] | None
    filter_string: str
    rank_by: RankBy | None
    require: str | Sequence[str]
    tie_breakers: str | Sequence[str]
    margin: float | None
    equivalence: float | None
    at: float | Mapping[Label, float] | None
    confidence_level: float
    grouping: Grouping | None
    positive: Label | None
    costs: Costs | Mapping[tuple[Any, Any], float] | str | Path | None
    segments: str | Sequence[str | tuple[str, ...]] | None
    against: Any
    block: str | None
    model: str | None
    block_kind: str
    test_train_ratio: float | None
    prefix: str
    limit: int
    max_runs: int | None
    tracking_uri: str | Sequence[str] | None
    seed: int
    extra_metrics: Sequence[Metric]
    rule: Any


takes_options = takes(CompareSpec, CompareArguments)
