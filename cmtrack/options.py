"""Options of evaluations as records: each entry has the words and rules of one option.

Such a record is a frozen dataclass whose fields are made by :func:`entry`, such as
:class:`cmtrack.evaluation.spec.Spec` of an evaluation. Signatures, docstrings, command-line flags,
checks, stored forms and the rules of merging are made from its entries, so a new entry appears in
all of them. A test then requires a number that the new option changes.
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
    """Return ``y_prob``, or ``y_proba``, scikit-learn's spelling, and remove it from ``options``.

    Raises
    ------
    TypeError
        If both spellings are given.
    """
    if "y_proba" not in options:
        return y_prob
    if y_prob is not None:
        raise TypeError("y_prob and y_proba are two spellings of one argument: pass only one")
    return options.pop("y_proba")


def _same(value: Any) -> Any:
    """Return a value unchanged, which is the check and the stored form of most options."""
    return value


@dataclass(frozen=True)
class Entry:
    """Words, default, check, flag and stored form of an option.

    Attributes
    ----------
    kind : str
        Type and default, as numpydoc writes them. An entry without a kind is not an option: its
        value follows from the call.
    text : str
    default : object
    check : callable, optional
        Converts the value in the call to the value that is used. Raises if the value is invalid for
        all data.
    flag, help : str
        Flag of the command line. An option without a flag is not on it, or is read from a file.
    choices : mapping of str to object, optional
        The option's value for each value of the flag.
    several : bool
        True for a flag that may be repeated.
    of_flag : type, default str
        Type of the flag's value; ``Path`` for a file to read.
    of_texts : callable, optional
        Converts the values of a repeated flag to the option's value.
    metavar : str
        The name of the flag's value in the help.
    form : str
        The values that a rule file may state, for errors. An option without a form is not in rule
        files.
    write, read : callable, optional
        Convert to and from plain data. Without ``write``, the entry is not stored.
    merge : callable, optional
        Converts two values to the value of the merged result, or raises ValueError. By default the
        values must be equal.
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
    """Return a function that is imported when it is first called.

    ``path``: the function's module and name, such as ``cmtrack.grouping:as_costs``.
    ``arguments``: arguments after the value.
    ``optional``: whether the function is skipped for None, which stays None.
    """

    def call(value: Any) -> Any:
        if optional and value is None:
            return None
        return pkgutil.resolve_name(path)(value, *arguments)

    return call


def entry(
    kind: str = "", text: str = "", default: Any = None, *, compare: bool = True, **details: Any
) -> Any:
    """Declare an option as a field; ``details`` are other attributes of its :class:`Entry`."""
    described = Entry(kind, text, default, **details)
    return dataclasses.field(default=default, compare=compare, metadata={"entry": described})


@dataclass(frozen=True)
class Question:
    """Base of the options of all kinds of evaluations; each has a confidence level."""

    if TYPE_CHECKING:

        @property
        def confidence_level(self) -> float:
            """The confidence level of the intervals."""

    @classmethod
    def entries(cls) -> dict[str, Entry]:
        """Return the entries by name, in order."""
        return {field.name: field.metadata["entry"] for field in dataclasses.fields(cls)}

    @classmethod
    def options(cls) -> dict[str, Entry]:
        """Return the entries that a caller can set."""
        return {name: entry for name, entry in cls.entries().items() if entry.kind}

    @classmethod
    def of(cls, given: Mapping[str, Any], caller: Callable[..., Any]) -> Self:
        """Check the options of a call, and return them as a record.

        Parameters
        ----------
        given : mapping
            The options of the call; other options have their defaults.
        caller : callable
            The called function or class, for errors.

        Raises
        ------
        ValueError, TypeError
            If an option does not exist, or its value is invalid for all data. The message states
            the rule and the value.
        """
        cls.check_names(given, caller)
        values = {}
        for name, option in cls.options().items():
            values[name] = option.check(given.get(name, option.default))
        return cls(**values)

    @classmethod
    def check_names(cls, given: Mapping[str, Any], caller: Callable[..., Any]) -> None:
        """Raise TypeError for an unknown option, and name the argument that was probably meant."""
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
        """Return the options by name, as arguments of a call."""
        return {name: getattr(self, name) for name in self.options()}

    def to_plain(self) -> dict[str, Any]:
        """Return the stored entries as plain data."""
        data = {}
        for name, described in self.entries().items():
            if described.write is not None:
                data[name] = described.write(getattr(self, name))
        return data

    @classmethod
    def from_plain(cls, data: Mapping[str, Any]) -> Self:
        """Read the data of :meth:`to_plain`; absent entries get their default.

        Raises
        ------
        ValueError, and others of ``archive.DAMAGED``
            If the data are damaged.
        """
        values = {}
        for name, described in cls.entries().items():
            if described.write is None or name not in data:
                continue
            # ``read`` does not have to handle null, which means a default of None.
            if data[name] is not None or described.default is not None:
                values[name] = described.read(data[name])
        return cls(**values)

    def merged(self, other: Self, what: str) -> Self:
        """Return the options of the merged results of two sets of rows.

        Raises
        ------
        ValueError
            If an entry differs; the message names it.
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
    """Show the options in the signature and docstring of a function with ``**options``."""

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
    """Return an option's type in the written form of other parameters."""
    return str(options.__annotations__[name].__forward_arg__)


def _with_entries(text: str, question: type[Question]) -> str:
    """Replace ``**options`` in a docstring by an entry for each option."""
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
