"""The question of a comparison: one declaration for each option.

The signature and the docstring of :func:`cmtrack.compare`, the flags of the commands, the keys of a
rule file and the snippet that makes a review again are made from it.
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

# The checks import what they need when they are called, so that the command line shows its help
# without NumPy.


def several(given: Any) -> list[Any]:
    """The values of an option: a text alone is a list of one."""
    return [given] if isinstance(given, str) else list(given)


# -- what an option may be -------------------------------------------------------------------------


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
    if isinstance(shares, Mapping):  # names as texts, as in files
        if not all(map(_is_number, shares.values())):
            raise TypeError(f"at must be a share, or shares by class or group, got {shares!r:.60}")
        return {str(name): float(share) for name, share in shares.items()}
    if shares is None:
        return shares
    if not (_is_number(shares) and 0 <= shares <= 1):
        raise ValueError(
            f"at must be a share between 0 and 1, or shares by class or group, got {shares!r:.60}"
        )
    return float(shares)


def shares_of(texts: Sequence[str], option: str = "at") -> float | dict[str, float]:
    """Parse a share of the command line, such as ``0.02``, or by name, such as ``spam=0.02``."""
    named: dict[str, float] = {}
    for text in texts:
        name, sign, share = text.rpartition("=")
        try:
            number = float(share)
        except ValueError:
            raise ValueError(f"{option} must be a share or NAME=SHARE, got {text!r}") from None
        if not sign and len(texts) > 1:
            raise ValueError(f"{option} without a name stands alone, got {len(texts)} of them")
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


# What a rule file may say of it.


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
        raise TypeError("a label: a text, a number, true or false")
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
            raise TypeError("a mapping in this file, so that the digest holds for it")
        return late(f"cmtrack.grouping:{kind}.from_dict")(value)

    return inside


def _of_file(fields: Mapping[str, Any]) -> str:
    deciding = [
        f"``{n}``"
        for n, one in fields.items()
        if isinstance(one, Field) and one.metadata["entry"].form
    ]
    return (
        f"A YAML file of what decides: {', '.join(deciding)}, named as here; groupings and costs "
        "are written in the file itself. It is the whole rule: an argument that contradicts it is "
        "refused. The review prints the file's digest, which shows that the rule was fixed before."
    )


_A_NUMBER: dict[str, Any] = {"of_flag": float, "form": "a number", "read": _number}


@dataclass(frozen=True, eq=False)
class CompareSpec(Question):
    """The options of :func:`cmtrack.compare`, in their order, with their defaults."""

    experiment_names: Sequence[str] | None = entry(
        "sequence of str, optional",
        "The experiments whose runs are compared, if ``runs`` names none; by default the active "
        "one.",
        flag="--experiment",
        help="Take the runs of this experiment; repeatable.",
        metavar="NAME",
        several=True,
    )
    filter_string: str = entry(
        'str, default ""',
        "MLflow's filter, such as ``\"params.model = 'forest' and tags.stage = 'final'\"``; the "
        "store applies it.",
        "",
        flag="--filter",
        help='Take only the runs that match this filter of MLflow, such as "params.model = '
        "'forest'\".",
        metavar="TEXT",
    )
    rank_by: RankBy | None = entry(
        "str, sequence of str or mapping, optional",
        "A metric's name (its direction is known), or several names for a Pareto front: the runs "
        "that no other run beats, being at least as good in every metric and better in one. By "
        "default the Matthews correlation of the positive group, or of all classes where there "
        "is none; for sets of codes the micro F1.",
        flag="--rank-by",
        help="Rank by this metric, by default the Matthews correlation. Several make a Pareto "
        "front.",
        metavar="METRIC",
        several=True,
        form="a metric's name, or a list of names",
        read=_rank_by,
    )
    require: str | Sequence[str] = entry(
        "str or sequence of str",
        'Gates such as ``"class/3/recall >= 0.6"``, ``"prevalence/bias.abs <= 0.01"`` or '
        '``"binary/roc_auc.low > '
        '0.8"`` (an end of the interval); ``.difference`` is the one from ``against``. '
        '``"segment/region/*/binary/recall.low >= 0.6"`` must hold in all segments, by '
        "simultaneous intervals; "
        "``segment/region/north/...`` in one. A run that fails a gate is listed, but not ranked.",
        (),
        flag="--require",
        help="Require this of every run, such as 'class/3/recall >= 0.6', 'prevalence/bias.abs "
        "<= 0.01', 'binary/roc_auc.low > 0.8', 'multiclass/accuracy.difference.low > -0.01' or, "
        "of all segments, 'segment/region/*/binary/recall.low >= 0.6'; a run that fails it is "
        "not ranked; repeatable.",
        metavar="GATE",
        several=True,
        form="a gate, or a list of gates",
        read=_texts,
    )
    tie_breakers: str | Sequence[str] = entry(
        "str or sequence of str",
        "What chooses among the runs that may be the best, within a margin of the leader: a "
        "metric, "
        '``"params.depth"``, ``"metrics.seconds asc"``, ``"tags.size desc"``. A metric of '
        "cmtrack goes by its own "
        "direction; of anything else the smallest value wins, or with ``desc`` the largest.",
        (),
        flag="--tie-breaker",
        help="Choose among runs that may be the best, within the margin, by this: a metric, "
        "'params.depth', 'metrics.seconds asc' or 'tags.size desc'; repeatable.",
        metavar="RULE",
        several=True,
        form="a tie-breaker, or a list of them",
        read=_texts,
    )
    margin: float | None = entry(
        "float, optional",
        "What a tie-breaker may give up against the leader, in units of the metric. By default "
        "the paired standard error of each run's difference (the one-standard-error rule of "
        "Breiman, Friedman, Olshen and Stone 1984). With a number, it chooses among runs that "
        "are shown not to be worse by more than this: the lower end of their simultaneous "
        "interval is at least ``-margin`` (non-inferiority).",
        check=_margin,
        flag="--margin",
        help="Largest loss for a tie-breaker, in units of the metric: it chooses among runs that "
        "are shown not to be worse than the best by more. By default it chooses among runs "
        "within one standard error of the leader.",
        **_A_NUMBER,
    )
    equivalence: float | None = entry(
        "float, optional",
        "A run has the status “equivalent within” this where it is shown to differ from the "
        "leader by less, in units of the metric: both one-sided tests reject (Schuirmann 1987), "
        "so the interval of the difference at twice the error (90% for 95%) lies within plus "
        "and minus this. Runs that are merely not shown to differ are not equivalent. No run is "
        "called equivalent if a share has fewer than 20 rows, or another metric fewer than 20 "
        "rows of a class. As gates: ``multiclass/accuracy.difference.low > -0.01`` and "
        "``.difference.high < 0.01``.",
        check=_equivalence,
        flag="--equivalence",
        help="Call runs equivalent that are shown to differ from the leader by less than this, "
        "in units of the metric.",
        **_A_NUMBER,
    )
    at: float | Mapping[Label, float] | None = entry(
        "float or mapping of label to float, optional",
        "Judge every run where the actual classes have these shares, as "
        ":meth:`cmtrack.Evaluation.at` does: of the positive class or group, or by class or "
        "group. Rows are weighted, so all values, gates and differences are those there.",
        check=_shares,
        flag="--at",
        help="Judge every run where the positive class or group has this share, or that of this "
        "NAME; repeatable.",
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
        help="Use this confidence level for the intervals and the ties.",
        **_A_NUMBER,
    )
    grouping: Grouping | None = entry(
        "Grouping, optional",
        "Re-reduce every run under this grouping. Without it, runs of different groupings get "
        "rankings of their own where ``rank_by``, ``require`` or ``tie_breakers`` read a metric "
        "that depends on the grouping.",
        flag="--grouping",
        help="Judge every run under the grouping of this YAML or JSON file.",
        of_flag=Path,
        form="a grouping",
        read=_held("Grouping"),
    )
    positive: Label | None = entry(
        "label, optional",
        "The positive group of ``grouping``.",
        flag="--positive",
        help="Take this as the positive group of the grouping.",
        metavar="GROUP",
        form="a label",
        read=_label,
    )
    costs: Costs | Mapping[tuple[Any, Any], float] | str | Path | None = entry(
        "Costs, mapping of (actual, predicted) to float, or path, optional",
        'Price every run by these costs, of classes or groups: ``rank_by="cost/mean"``, and '
        "gates on it. Without them, "
        "runs that were priced differently get rankings of their own by their costs.",
        check=late("cmtrack.grouping:as_costs", optional=True),
        flag="--costs",
        help="Price every run by the costs of this YAML or JSON file (cost/mean).",
        of_flag=Path,
        form="costs",
        read=_held("Costs"),
    )
    segments: str | Sequence[str | tuple[str, ...]] | None = entry(
        "str or sequence of str, optional",
        "Columns that the runs were evaluated by (``evaluate(..., segments=)``), a tuple of names "
        "for crossed ones: the leader and the next 5 runs are compared by segment, row by row "
        "where the rows' segments are at hand, and "
        'tested for being "better overall, but worse for some" (Gail, Simon 1985).',
        check=_segments,
        flag="--segment",
        help="Compare the leader with the next runs by this column that the runs were evaluated "
        "by; repeatable.",
        metavar="COLUMN",
        several=True,
        form="a column, or a list of columns and of lists of columns",
        read=_divisions,
    )
    against: Any = entry(
        "run reference, optional",
        "The baseline of ``.difference`` gates. It is ranked with the others.",
        flag="--against",
        help="Take differences from this run or model URI.",
        metavar="RUN",
        form="a run",
        read=_text,
    )
    block: str | None = entry(
        "str, optional",
        'For repeated runs: what tells the repetitions apart, such as ``"params.fold"`` or '
        '``"params.seed"``.',
        flag="--block",
        help="Compare models over repeated runs, numbered by this, such as 'params.fold'.",
        metavar="NAME",
        form="a text such as params.fold",
        read=_text,
    )
    model: str | None = entry(
        "str, optional",
        'For repeated runs: what names the model, such as ``"params.model"``; by default all '
        "parameters but the block.",
        flag="--model",
        help="Tell the models of repeated runs apart by this, such as 'params.model'.",
        metavar="NAME",
        form="a text such as params.model",
        read=_text,
    )
    block_kind: str = entry(
        '"auto", "folds" or "seeds"',
        'What the blocks are; "auto": seeds if all blocks hold the same test rows, folds if each '
        "has rows of its own "
        "and the name of ``block`` says so or the classes are divided evenly. Anything else is "
        "refused.",
        "auto",
        flag="--block-kind",
        help="Treat the repeated runs as this kind.",
        choices={kind: kind for kind in ("auto", "folds", "seeds")},
        form="a text",
        read=_text,
    )
    test_train_ratio: float | None = entry(
        "float, optional",
        "For folds: rows of a test part over rows of its training part; by default 1 / (folds - "
        "1).",
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
        "At most this many runs of one data set are read and tested: the best by their logged "
        "values.",
        50,
        check=_limit,
        flag="--limit",
        help="Read and test at most this many runs of one data set, the best by their logged "
        "values.",
        of_flag=int,
    )
    max_runs: int | None = entry(
        "int or None, default 5000",
        "At most this many runs are listed from each store, the best first.",
        5000,
    )
    tracking_uri: str | Sequence[str] | None = entry(
        "str or sequence of str, optional",
        "One store or several; by default MLflow's own choice.",
        flag="--tracking-uri",
        help="Ask this tracking store, by default MLflow's own choice; repeatable.",
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
        "Metrics of your own, computed for every run, also for those that were logged without "
        "them. A metric that the runs were logged with has its logged numbers without this, but "
        "no differences by row and no regrouped values.",
        (),
        flag="--extra-metrics",
        help="Take metrics of your own from this file, or module: NAME is a Metric, or a list or "
        "dict of them. The file is executed, with all that you may do; repeatable.",
        metavar="FILE.py:NAME",
        several=True,
    )
    rule: Any = entry(
        "path, optional",
        _of_file(locals()),
        flag="--rule",
        help="Decide by this YAML file (rank_by, require, margin and more), written before the "
        "results are seen; its digest is printed.",
        of_flag=Path,
    )

    @classmethod
    def deciding(cls) -> dict[str, Entry]:
        """The options that decide, which a rule file may hold; the others name the runs."""
        return {name: one for name, one in cls.entries().items() if one.form}

    @classmethod
    def defaults(cls) -> dict[str, Any]:
        """The defaults by name."""
        return {name: one.default for name, one in cls.entries().items()}


class CompareArguments(TypedDict, total=False):
    """Types of the options of a comparison, which :class:`CompareSpec` describes."""

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
