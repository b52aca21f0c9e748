"""Options of evaluations as records: each entry defines the texts and rules of one option.

A record such as :class:`cmtrack.evaluation.spec.Spec` is a frozen dataclass whose fields are
created by :func:`entry`. Signatures, docstrings, command-line flags, checks, stored forms and merge
rules are derived from its entries, so a new entry appears in all of them. A test checks that the
new option changes at least one result.
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
    """Return the probabilities; if they are in ``options`` as ``y_proba``, remove them there.

    Raises
    ------
    TypeError
        If both ``y_prob`` and ``y_proba`` are given.
    """
    if "y_proba" not in options:
        return y_prob
    if y_prob is not None:
        raise TypeError("y_prob and y_proba are two spellings of one argument: pass only one")
    return options.pop("y_proba")


def _same(value: Any) -> Any:
    """Return a value unchanged; most options need no check and no conversion for files."""
    return value


@dataclass(frozen=True)
class Entry:
    """Definition of one option: its texts, default, check, flag and stored form.

    Attributes
    ----------
    kind : str
        Type and default in the form of numpydoc. Callers cannot set an entry without a kind,
        because its value follows from the other arguments.
    text : str
    default : object
    check : callable, optional
        Function that converts the value in the call to the value that is used. The function raises
        an error if the value is invalid no matter what the data are.
    flag, help : str
        The command-line flag and its help text. An option without a flag cannot be set on the
        command line, or is read from a file.
    choices : mapping of str to object, optional
        Maps each possible value of the flag to the value of the option.
    several : bool
        Whether the flag may be repeated.
    of_flag : type, default str
        Type of the flag's value; ``Path`` if the flag names a file to read.
    of_texts : callable, optional
        Function that converts the values of a repeated flag to the value of the option.
    metavar : str
        The name that the help shows for the flag's value.
    form : str
        Description of the values that a rule file may contain, for error messages. An option
        without a form cannot be set in a rule file.
    write, read : callable, optional
        Functions that convert the value to plain data and back. An entry without ``write`` is not
        stored.
    merge : callable, optional
        Function that combines the values of two evaluations into the value of the merged
        evaluation, or raises ValueError. By default the two values must be equal.
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


def late(path: str, *arguments: Any, optional: bool = False) -> Callable[[Any], Any]:
    """Return a function that imports another function at the first call and then calls it.

    ``path``: module and name of the imported function, such as ``cmtrack.grouping:as_costs``.
    ``arguments``: arguments that are passed after the value.
    ``optional``: whether None stays None without a call of the function.
    """

    def call(value: Any) -> Any:
        if optional and value is None:
            return None
        return pkgutil.resolve_name(path)(value, *arguments)

    return call


def entry(
    kind: str = "", text: str = "", default: Any = None, *, compare: bool = True, **details: Any
) -> Any:
    """Declare an option as a field; ``details`` are further attributes of its :class:`Entry`."""
    described = Entry(kind, text, default, **details)
    return dataclasses.field(default=default, compare=compare, metadata={"entry": described})


@dataclass(frozen=True)
class Question:
    """Base class for the options of all kinds of evaluations; all have a confidence level."""

    if TYPE_CHECKING:

        @property
        def confidence_level(self) -> float:
            """The confidence level of the intervals."""

    @classmethod
    def entries(cls) -> dict[str, Entry]:
        """Return all entries by name, in the order of the fields."""
        return {field.name: field.metadata["entry"] for field in dataclasses.fields(cls)}

    @classmethod
    def options(cls) -> dict[str, Entry]:
        """Return only the entries that a caller can set, by name."""
        return {name: entry for name, entry in cls.entries().items() if entry.kind}

    @classmethod
    def of(cls, given: Mapping[str, Any], caller: Callable[..., Any]) -> Self:
        """Check the options of a call, and return them as a record of this class.

        Parameters
        ----------
        given : mapping
            The options that the call sets. All other options get their defaults.
        caller : callable
            The called function or class, which error messages name.

        Raises
        ------
        ValueError, TypeError
            If an option does not exist, or its value is invalid no matter what the data are. The
            message states the rule and the invalid value.
        """
        cls.check_names(given, caller)
        values = {}
        for name, option in cls.options().items():
            values[name] = option.check(given.get(name, option.default))
        return cls(**values)

    @classmethod
    def check_names(cls, given: Mapping[str, Any], caller: Callable[..., Any]) -> None:
        """Raise TypeError for an unknown option; the message suggests a similar argument."""
        options = cls.options()
        for name in given:
            if name in options:
                continue
            removed = reason(f"{caller.__name__}({name}=)")
            if removed is not None:
                raise TypeError(removed)
            hint = near(name, inspect.signature(caller).parameters)
            raise TypeError(
                f"{caller.__name__}() got an unexpected keyword argument {name!r}{hint}"
            )

    def given(self) -> dict[str, Any]:
        """Return the options by name, so that they can be passed as arguments of a call."""
        return {name: getattr(self, name) for name in self.options()}

    def to_plain(self) -> dict[str, Any]:
        """Return the entries that are stored as plain data."""
        data = {}
        for name, described in self.entries().items():
            if described.write is not None:
                data[name] = described.write(getattr(self, name))
        return data

    @classmethod
    def from_plain(cls, data: Mapping[str, Any]) -> Self:
        """Read the data that :meth:`to_plain` wrote; missing entries get their defaults.

        Raises
        ------
        ValueError, and other errors in ``archive.DAMAGED``
            If the data are damaged.
        """
        values = {}
        for name, described in cls.entries().items():
            if described.write is None or name not in data:
                continue
            # If the default is None, it is stored as null. ``read`` does not have to handle null.
            if data[name] is not None or described.default is not None:
                values[name] = described.read(data[name])
        return cls(**values)

    def merged(self, other: Self, what: str) -> Self:
        """Return the options for the merged evaluation of two sets of rows.

        Raises
        ------
        ValueError
            If the values of an entry cannot be merged. The message names the entry.
        """
        changed = {}
        for field in dataclasses.fields(self):
            name = field.name
            merge = field.metadata["entry"].merge
            ours = getattr(self, name)
            theirs = getattr(other, name)
            if merge is not None:
                changed[name] = merge(ours, theirs)
            elif field.compare and ours != theirs:
                raise ValueError(
                    f"{what} must have the same {name} to be merged, got {ours!r} and {theirs!r}"
                )
        return dataclasses.replace(self, **changed)


def takes(question: type[Question], options: type) -> Callable[[Taker], Taker]:
    """Decorate a function that takes ``**options``: list them in its signature and docstring."""

    def show_options(function: Taker) -> Taker:
        target: Any = function
        if isinstance(function, type):
            target = function.__init__  # type: ignore[misc]
        signature = inspect.signature(target)
        parameters = [
            parameter
            for parameter in signature.parameters.values()
            if parameter.kind is not inspect.Parameter.VAR_KEYWORD
        ]
        for name, option in question.options().items():
            parameter = inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=option.default,
                annotation=_type_of(options, name),
            )
            parameters.append(parameter)
        target.__signature__ = signature.replace(parameters=parameters)
        function.__doc__ = _with_entries(function.__doc__ or "", question)
        return function

    return show_options


def _type_of(options: type, name: str) -> str:
    """Return an option's type as a text, in the form used for other parameters."""
    return str(options.__annotations__[name].__forward_arg__)


def _with_entries(text: str, question: type[Question]) -> str:
    """Replace ``**options`` in a docstring with an entry for each option."""
    section = re.search(r"^( *)\*\*options\n(?:\1 +.*\n)*", text, flags=re.MULTILINE)
    if section is None:
        return text
    indent = section[1]
    lines = []
    for name, option in question.options().items():
        lines.append(f"{indent}{name} : {option.kind}\n")
        sentences = textwrap.fill(option.text, 112 - len(indent))
        lines.append(textwrap.indent(sentences, f"{indent}    ") + "\n")
    return text[: section.start()] + "".join(lines) + text[section.end() :]


# ``Options`` was in this module before it moved to the module of the evaluation's options.
__getattr__ = found_in(__name__, {"Options": "cmtrack.evaluation.spec"})
