"""Command-line flags generated from the entries of a question when a command is called."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from cmtrack.cli.frame import echo_json, working
from cmtrack.removed import reason

if TYPE_CHECKING:
    from cmtrack.options import Entry, Question

_OF_OUTPUT = (
    "outputs",
    "bundle_file",
    "bundle_rows",
    "summary_file",
    "csv_file",
    "as_json",
    "help",
)
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
NEW_FILE = click.Path(dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)
_json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object and nothing else."
)
tracking_uri_option = click.option(
    "--tracking-uri", metavar="URI", help="Tracking store; by default MLflow's own choice."
)


class Answer(NamedTuple):
    """The data that a command answers with --json, what prints the answer without, and the exit that follows."""

    data: Callable[[], dict[str, Any]]
    show: Callable[[], object]
    exit: Exception | None = None


def answering(function: Callable[..., Answer]) -> Callable[..., None]:
    """Add --json to a command that gives an answer, and print that."""

    @wraps(function)
    def wrapped(*, as_json: bool, **options: Any) -> None:
        answer = function(**options)
        if as_json:
            with working():
                data = answer.data()
            echo_json(data)
        else:
            answer.show()
        if answer.exit is not None:
            raise answer.exit

    return _json_option(wrapped)


def check_goes_with(flag: str, there: bool, **options: Any) -> None:
    """Refuse options that were given without the flag which they belong to."""
    given = [f"--{name.replace('_', '-')}" for name, value in options.items() if value is not None]
    if given and not there:
        raise click.UsageError(f"{', '.join(given)} needs {flag}")


def asking(question: Callable[[], type[Question]], *names: str) -> type[click.Command]:
    """A kind of command with the flags of a question.

    ``question``: gives the question; it is called when the flags are wanted, so that other commands need not load it.
    ``names``: of its entries; by default all that have a flag.
    """

    class Asking(click.Command):
        def get_params(self, ctx: click.Context) -> list[click.Parameter]:
            """The command's own parameters, then the flags, then those of the output."""
            options, given = question().options(), super().get_params(ctx)
            flags = [_flag(name, options[name]) for name in names or options if options[name].flag]
            first = [one for one in given if one.name not in _OF_OUTPUT]
            return [*first, *flags, *(one for one in given if one.name in _OF_OUTPUT)]

    return Asking


def of_evaluate() -> type[Question]:
    """The question of an evaluation."""
    from cmtrack.evaluation.spec import Spec

    return Spec


def of_compare() -> type[Question]:
    """The question of a comparison."""
    from cmtrack.comparison.spec import CompareSpec

    return CompareSpec


class Choice(click.Choice):  # type: ignore[type-arg]  # it is generic since click 8.2
    """A choice among texts; a value that was removed raises an error that says what to use instead."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text that is meant."""
        removed = None if param is None else reason(f'compare({param.name}="{value}")')
        if removed is not None:
            self.fail(removed, param, ctx)
        return super().convert(value, param, ctx)


def _type_of(one: Entry) -> click.ParamType[Any] | type:
    if one.choices:
        return Choice(list(one.choices))
    if one.of_flag is Path:
        return FILE
    return one.of_flag


def _flag(name: str, one: Entry) -> click.Option:
    meant = next(
        (text for text, value in (one.choices or {}).items() if value == one.default), one.default
    )
    shown = None if one.several or one.default == "" else meant
    return click.Option(
        [one.flag, name],
        multiple=one.several,
        default=shown,
        show_default=shown is not None,
        type=_type_of(one),
        metavar=one.metavar,
        help=one.help,
        callback=partial(_checked, one),
    )


def _checked(one: Entry, ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    """A value as the library takes it; a file is read by the command."""
    try:
        read = one.choices.__getitem__ if one.choices else one.of_texts
        value = one.default if value in (None, (), "") else read(value)
        return value if isinstance(value, Path) else one.check(value)
    except (TypeError, ValueError) as error:
        raise click.BadParameter(str(error), ctx, param) from None
