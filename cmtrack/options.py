"""A question as a record: words and rules of each of its entries, and all that is made from it.

A frozen dataclass whose fields are made by :func:`entry` is such a record: :class:`cmtrack.evaluation.spec.Spec` of an
evaluation. Signatures, docstrings, flags of the command line, checks, stored forms and the rules of merging are made
from its entries. An entry that is added is in all of them; a test wants a number that it changes.
"""

from __future__ import annotations

import dataclasses
import inspect
import pkgutil
import re
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, TypeVar

from cmtrack._lazy import found_in
from cmtrack.metrics.names import near
from cmtrack.removed import reason

if TYPE_CHECKING:
    from cmtrack.evaluation.spec import Options as Options

Taker = TypeVar("Taker", bound=Callable[..., Any])


def probabilities_of(y_prob: Any, options: Any) -> Any:
    """Return ``y_prob``, which scikit-learn and MLflow spell ``y_proba``; that spelling leaves ``options``.

    Raises
    ------
    TypeError
        If both spellings are given.
    """
    if "y_proba" not in options:
        return y_prob
    if y_prob is not None:
        raise TypeError("y_prob and y_proba are two spellings of one argument: give one of them")
    return options.pop("y_proba")


def _same(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class Entry:
    """Words, default, check, flag and stored form of an entry of a question.

    Attributes
    ----------
    kind : str
        Type and default, as numpydoc writes them; an entry without one is no option, but follows from the call.
    text : str
    default : object
    check : callable, optional
        From the value that was given to the one that is used; raises where no data could make it right.
    flag, help : str
        Of the command line; an option without a flag is not there, or is read from a file there.
    choices : mapping of str to object, optional
        What the command line takes, and what it stands for.
    several : bool
        True for a flag that may be repeated.
    of_flag : type, default str
        Type of the flag's value; of a path, that of a file that is read.
    of_texts : callable, optional
        From the values of a flag that is repeated to that of the option.
    metavar : str
        The flag's value, as its help calls it.
    form : str
        What a rule file may say of it, for errors; an option without one does not decide.
    write, read : callable, optional
        To and from plain data; without ``write`` the entry is not stored.
    merge : callable, optional
        From two values to that of the merged result, or ValueError; by default they must be equal.
    """

    kind: str = ""
    text: str = ""
    default: Any = None
    check: Callable[[Any], Any] = _same
    flag: str = ""
    help: str = ""
    choices: Mapping[str, Any] | None = None
    several: bool = False
    of_flag: type = str
    of_texts: Callable[[Any], Any] = _same
    metavar: str | None = None
    form: str = ""
    write: Callable[[Any], Any] | None = _same
    read: Callable[[Any], Any] = _same
    merge: Callable[[Any, Any], Any] | None = None


def late(place: str, *more: Any, optional: bool = False) -> Callable[[Any], Any]:
    """A function that is imported when it is called, with more arguments; ``optional``: None stays None."""
    return lambda value: (
        None if optional and value is None else pkgutil.resolve_name(place)(value, *more)
    )


def entry(
    kind: str = "", text: str = "", default: Any = None, *, compare: bool = True, **more: Any
) -> Any:
    """A field of a question, with an :class:`Entry` of these words."""
    return dataclasses.field(
        default=default, compare=compare, metadata={"entry": Entry(kind, text, default, **more)}
    )


@dataclass(frozen=True)
class Question:
    """The base of the questions of all kinds of evaluations, which all have a confidence level."""

    if TYPE_CHECKING:

        @property
        def confidence_level(self) -> float:
            """The confidence level of the intervals."""

    @classmethod
    def entries(cls) -> dict[str, Entry]:
        """The entries by name, in order."""
        return {field.name: field.metadata["entry"] for field in dataclasses.fields(cls)}

    @classmethod
    def options(cls) -> dict[str, Entry]:
        """The entries that a caller gives."""
        return {name: entry for name, entry in cls.entries().items() if entry.kind}

    @classmethod
    def of(cls, given: Mapping[str, Any], caller: Callable[..., Any]) -> Self:
        """The question of a call, checked: what was given, and the defaults of the rest.

        Parameters
        ----------
        given : mapping
        caller : callable
            The function or class that was called, for errors.

        Raises
        ------
        ValueError, TypeError
            If there is no such option, or no data could make its value right; the text gives the rule and the value.
        """
        cls.check_names(given, caller)
        return cls(**{n: one.check(given.get(n, one.default)) for n, one in cls.options().items()})

    @classmethod
    def check_names(cls, given: Mapping[str, Any], caller: Callable[..., Any]) -> None:
        """Raise TypeError for an unknown option, with the argument of the caller that was probably meant."""
        options = cls.options()
        for name in given:
            if name not in options:
                removed = reason(f"{caller.__name__}({name}=)")
                if removed is not None:
                    raise TypeError(removed)
                hint = near(name, inspect.signature(caller).parameters)
                raise TypeError(
                    f"{caller.__name__}() got an unexpected keyword argument {name!r}{hint}"
                )

    def given(self) -> dict[str, Any]:
        """The options by name, as a call takes them."""
        return {name: getattr(self, name) for name in self.options()}

    def to_plain(self) -> dict[str, Any]:
        """Plain data of the entries that are stored."""
        return {
            n: one.write(getattr(self, n))
            for n, one in self.entries().items()
            if one.write is not None
        }

    @classmethod
    def from_plain(cls, data: Mapping[str, Any]) -> Self:
        """Read :meth:`to_plain`; absent entries have their default.

        Raises
        ------
        ValueError, and others of ``archive.DAMAGED``
            If they are damaged.
        """
        stored = {n: one for n, one in cls.entries().items() if one.write is not None and n in data}
        absent = {
            name for name, one in stored.items() if data[name] is None and one.default is None
        }
        return cls(
            **{name: one.read(data[name]) for name, one in stored.items() if name not in absent}
        )

    def merged(self, other: Self, what: str) -> Self:
        """The question of the results of two sets of rows together.

        Raises
        ------
        ValueError
            If an entry differs; the text names it.
        """
        changed = {}
        for field in dataclasses.fields(self):
            name, rule = field.name, field.metadata["entry"].merge
            ours, theirs = getattr(self, name), getattr(other, name)
            if rule is not None:
                changed[name] = rule(ours, theirs)
            elif field.compare and ours != theirs:
                raise ValueError(
                    f"{what} must have the same {name} to be merged, got {ours!r} and {theirs!r}"
                )
        return dataclasses.replace(self, **changed)


def takes(question: type[Question], options: type) -> Callable[[Taker], Taker]:
    """Show the options of a question in the signature and the docstring of what takes ``**options``."""

    def shown(function: Taker) -> Taker:
        target: Any = function.__init__ if isinstance(function, type) else function  # type: ignore[misc]
        signature = inspect.signature(target)
        fixed = [
            p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD
        ]
        more = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=one.default,
                annotation=_type_of(options, name),
            )
            for name, one in question.options().items()
        ]
        target.__signature__ = signature.replace(parameters=[*fixed, *more])
        function.__doc__ = _with_entries(function.__doc__ or "", question)
        return function

    return shown


def _type_of(options: type, name: str) -> str:
    """The type of an option as it is written, like those of a function's other parameters."""
    return str(options.__annotations__[name].__forward_arg__)


def _with_entries(text: str, question: type[Question]) -> str:
    """A docstring with an entry for each option in the place of ``**options``."""
    place = re.search(r"^( *)\*\*options\n(?:\1 +.*\n)*", text, flags=re.MULTILINE)
    if place is None:
        return text
    indent, written = place[1], ""
    for name, one in question.options().items():
        lines = textwrap.wrap(one.text, 112 - len(indent))
        written += f"{indent}{name} : {one.kind}\n" + "".join(
            f"{indent}    {line}\n" for line in lines
        )
    return text[: place.start()] + written + text[place.end() :]


# where it was before the record
__getattr__ = found_in(__name__, {"Options": "cmtrack.evaluation.spec"})
