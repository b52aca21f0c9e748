"""The options of an evaluation, each said once.

``evaluate``, ``evaluate_table``, ``Accumulator``, ``log_evaluation``, the hooks and the command line share
:class:`Options`. An option that is added there is in all of them, with its words, its default and its flag.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypedDict, TypeVar, cast, get_type_hints

from cmtrack.metrics.names import near

if TYPE_CHECKING:
    from cmtrack.grouping import Costs, Grouping, Label
    from cmtrack.metrics.metric import Metric

Taker = TypeVar("Taker", bound=Callable[..., Any])


@dataclass(frozen=True)
class About:
    """The words, the default and the check of an option.

    Attributes
    ----------
    kind : str
        Type and default, as numpydoc writes them.
    text : str
    default : object
    check : callable, optional
        From the value that was given to the one that is used; raises where no data could make it right.
    flag, help : str
        Of the command line; an option without a flag is not there, or is read from a file there.
    choices : mapping of str to object, optional
        What the command line takes, and what it stands for.
    several : bool
        Whether the flag may be repeated.
    of_flag : type, default str
        What the flag's value is.
    """

    kind: str
    text: str
    default: Any = None
    check: Callable[[Any], Any] = lambda value: value
    flag: str = ""
    help: str = ""
    choices: Mapping[str, Any] | None = None
    several: bool = False
    of_flag: type = str


# The checks import what they need when they are called: the command line shows its help without NumPy.


def _grouping(grouping: Any) -> Any:
    from cmtrack.grouping import Grouping

    if grouping is not None and not isinstance(grouping, Grouping):
        made = ": cmtrack.Grouping(...) makes one of it" if isinstance(grouping, Mapping) else ""
        raise TypeError(f"grouping must be a Grouping, got {type(grouping).__name__}{made}")
    return grouping


def _level(level: Any) -> Any:
    from cmtrack.metrics.intervals import check_level

    return check_level(level)


def _normalize(normalize: Any) -> Any:
    from cmtrack.statistics.probabilities import check_normalize

    return check_normalize(normalize)


def _weights_are(weights_are: Any) -> Any:
    from cmtrack.statistics.inputs import check_weights_are

    return check_weights_are(weights_are)


def _sections(sections: Any) -> Any:
    from cmtrack.evaluation.compute import check_sections

    return check_sections(sections)


def _reference(reference: Any) -> Any:
    from cmtrack.statistics.inputs import as_shares

    return None if reference is None else as_shares(reference, "reference")


def _costs(costs: Any) -> Any:
    from cmtrack.grouping import as_costs

    return None if costs is None else as_costs(costs)


def _threshold(threshold: Any) -> Any:
    from cmtrack.evaluation.threshold import Threshold
    from cmtrack.statistics.inputs import check_threshold

    return check_threshold(threshold.value if isinstance(threshold, Threshold) else threshold)


def _metrics(metrics: Any) -> Any:
    from cmtrack.metrics.own import own_metrics

    return own_metrics(metrics)


class Options(TypedDict, total=False):
    """Options of an evaluation of rows."""

    positive: Annotated[
        Label | None,
        About(
            "label, optional",
            "The positive class of two, or the positive group of a two-group step; by default the last one (a grouping "
            "may name its own). It is written down with the result.",
        ),
    ]
    grouping: Annotated[
        Grouping | None,
        About("Grouping, optional", "Classes put into groups, in one step or a chain.", check=_grouping),
    ]
    normalize: Annotated[
        bool | str,
        About(
            '"warn", True or False, default "warn"',
            "What is done with rows of probabilities that were rounded and sum to 0.98 to 1.02: they are scaled to sum "
            "to 1 and a warning gives their number, they are scaled without one, or they are refused. Rows further off "
            "are always refused.",
            default="warn",
            check=_normalize,
            flag="--normalize",
            help="Rows of rounded probabilities that sum to 0.98 to 1.02: scale and warn, scale, or refuse them.",
            choices={"warn": "warn", "yes": True, "no": False},
        ),
    ]
    weights_are: Annotated[
        str | None,
        About(
            '"frequency" or "sampling", optional',
            'What ``sample_weight`` holds. "frequency": a weight is a number of equal rows, which are all there. '
            '"sampling": it says how much of the population a row stands for; standard errors and intervals are robust '
            "(sandwich), whatever the scale of the weights. By default integers are frequencies and floats sampling "
            "weights, also floats that are whole numbers; the result says which (:attr:`Evaluation.weights_are`).",
            check=_weights_are,
            flag="--weights-are",
            help="What --weight holds: numbers of equal rows, or sampling weights. auto: integers are the former, "
            "floats the latter.",
            choices={"auto": None, "frequency": "frequency", "sampling": "sampling"},
        ),
    ]
    sections: Annotated[
        Sequence[str] | None,
        About(
            "list of str, optional",
            'The sections of metrics that are computed, such as ``["multiclass", "class"]``; by default all that '
            "apply: multiclass, spans, class, reduced, binary, cost (where costs are given), probability, calibration, "
            "confidence, spcc, prevalence and rough. The others are absent from ``Evaluation.metrics``, and from "
            "figures and reports; :meth:`Evaluation.with_sections` computes them later.",
            check=_sections,
            flag="--section",
            help="Section of metrics to compute, such as multiclass or binary; may be repeated. By default all that "
            "apply.",
            several=True,
        ),
    ]
    reference: Annotated[
        Mapping[Label, float] | Sequence[float] | None,
        About(
            "mapping of label to share, or sequence of length K, optional",
            "The shares of the classes that ``probability/log_skill`` and ``probability/brier_skill`` are measured "
            "against, such as those of the training set; by default the shares of the evaluated rows.",
            check=_reference,
        ),
    ]
    costs: Annotated[
        Costs | None,
        About(
            "Costs, mapping of (actual, predicted) to float, or path, optional",
            "What decisions cost, of classes or groups: the section ``cost/``. :meth:`Evaluation.price` adds it later, "
            "without the data. A path is of a file for :meth:`Costs.from_file`.",
            check=_costs,
            flag="--costs",
            help="YAML or JSON file with what decisions cost, of classes or groups.",
        ),
    ]
    threshold: Annotated[
        float | None,
        About(
            "float or Threshold, optional",
            "Threshold that makes the predictions from ``y_prob``: the positive class or group is predicted where its "
            "probability reaches this, and inside the chosen group the most probable class; infinity: never. "
            "By default the most probable of all classes is predicted. :meth:`Evaluation.threshold` chooses one, and "
            "its result is taken here as it is. ``y_pred`` must not be given then.",
            check=_threshold,
            flag="--threshold",
            help="Predict the positive class or group where its probability reaches this; needs no --y-pred.",
            of_flag=float,
        ),
    ]
    confidence_level: Annotated[
        float,
        About(
            "float, default 0.95",
            "Confidence level of the intervals, between 0 and 1.",
            default=0.95,
            check=_level,
            flag="--confidence-level",
            help="Confidence level of the intervals.",
            of_flag=float,
        ),
    ]
    extra_metrics: Annotated[
        Sequence[Metric],
        About(
            "sequence of Metric, optional",
            "Metrics of your own: each has value, standard error and interval like the others, and takes part in "
            "comparisons, rankings and gates.",
            default=(),
            check=_metrics,
        ),
    ]


_LATER = dict.fromkeys(("Costs", "Grouping", "Label", "Metric"), Any)
OPTIONS: dict[str, About] = {
    name: hint.__metadata__[0] for name, hint in get_type_hints(Options, None, _LATER, include_extras=True).items()
}
"""What is said of each option, by name."""


def complete(options: Mapping[str, Any], of: str) -> Options:
    """All options, checked: those that were given, and the defaults of the others.

    Parameters
    ----------
    options : mapping
    of : str
        The function's name, for errors.

    Raises
    ------
    ValueError, TypeError
        If there is no such option, or no data could make its value right; the text gives the rule and the value.
    """
    check_names(options, of)
    chosen: Any = {name: about.check(options.get(name, about.default)) for name, about in OPTIONS.items()}
    return cast(Options, chosen)


def check_names(options: Mapping[str, Any], of: str) -> None:
    """Refuse what is no option, as Python does.

    Raises
    ------
    TypeError
        The text names the option that was meant, where one is like it.
    """
    for name in options:
        if name not in OPTIONS:
            raise TypeError(f"{of}() got an unexpected keyword argument {name!r}{near(name, OPTIONS)}")


def unless_decided(y_pred: Any, options: Mapping[str, Any]) -> Any:
    """The predicted labels; None where the option ``threshold`` makes them from the probabilities."""
    return y_pred if options.get("threshold") is None else None


def takes_options(function: Taker) -> Taker:
    """Show the options in the signature and the docstring of what takes ``**options``, and of no other."""
    target: Any = function.__init__ if isinstance(function, type) else function  # type: ignore[misc]
    signature = inspect.signature(target)
    own = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    more = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=about.default, annotation=_type_of(name))
        for name, about in OPTIONS.items()
    ]
    target.__signature__ = signature.replace(parameters=[*own, *more])
    function.__doc__ = _with_entries(function.__doc__ or "")
    return function


def _type_of(name: str) -> str:
    """The type of an option as it is written, like those of a function's other parameters."""
    written = Options.__annotations__[name].__forward_arg__
    return re.sub(r"^Annotated\[\s*(.*?),\s*About\(.*$", r"\1", written, flags=re.DOTALL)


def _with_entries(text: str) -> str:
    """A docstring with an entry for each option in the place of ``**options``."""
    found = re.search(r"^( *)\*\*options\n(?:\1 +.*\n)*", text, flags=re.MULTILINE)
    if found is None:
        return text
    indent, entries = found[1], ""
    for name, about in OPTIONS.items():
        lines = textwrap.wrap(about.text, 112 - len(indent))
        entries += f"{indent}{name} : {about.kind}\n" + "".join(f"{indent}    {line}\n" for line in lines)
    return text[: found.start()] + entries + text[found.end() :]
