"""Command-line flags, generated from the option records when a command runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from cmtrack.cli.frame import echo_json, working
from cmtrack.cli.spellings import Command
from cmtrack.removed import reason

if TYPE_CHECKING:
    from cmtrack.options import Entry, Question

_OUTPUT_OPTIONS = (
    "outputs",
    "bundle_file",
    "bundle_rows",
    "summary_file",
    "comment_file",
    "csv_file",
    "verbose",
    "as_json",
)
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
NEW_FILE = click.Path(dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)
_json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object and nothing else."
)
tracking_uri_option = click.option(
    "--tracking-uri", metavar="URI", help="Tracking store. By default the one that MLflow uses."
)


class Answer(NamedTuple):
    """Result of a command: data for --json, a function that prints the data, and the exit code."""

    data: Callable[[], dict[str, Any]]
    show: Callable[[], object]
    exit: Exception | None = None


def answering(function: Callable[..., Answer]) -> Callable[..., None]:
    """Add the option --json to a command, and print the result that the command returns."""

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


def check_goes_with(flag: str, is_given: bool, **options: Any) -> None:
    """Refuse options that require ``flag`` if this flag is not given."""
    given = [f"--{name.replace('_', '-')}" for name, value in options.items() if value is not None]
    if given and not is_given:
        raise click.UsageError(f"{', '.join(given)} needs {flag}")


def asking(
    question: Callable[[], type[Question]], *names: str, base: type[click.Command] = Command
) -> type[click.Command]:
    """Return a command class whose flags are generated from a question.

    ``question`` is a function that returns the question, whose fields become flags. The function is
    called only when a command needs its flags, so that other commands do not import the question.
    ``names`` selects fields of the question; by default, all fields that define a flag.
    ``base`` is the class of a command that already has the flags of another question.
    """

    class Asking(base):  # type: ignore[misc,valid-type]
        def get_params(self, ctx: click.Context) -> list[click.Parameter]:
            """Return the command's own parameters, followed by the flags and the output options."""
            options = question().options()
            flags = [_flag(name, options[name]) for name in names or options if options[name].flag]
            params = super().get_params(ctx)
            after = [
                param for param in params if param.name in _OUTPUT_OPTIONS or "--help" in param.opts
            ]
            before = [param for param in params if param not in after]
            return [*before, *flags, *after]

    return Asking


def of_evaluate() -> type[Question]:
    """Return the question whose fields are the options of an evaluation."""
    from cmtrack.evaluation.spec import Spec

    return Spec


def of_compare() -> type[Question]:
    """Return the question whose fields are the options of a comparison."""
    from cmtrack.comparison.spec import CompareSpec

    return CompareSpec


class Choice(click.Choice):  # type: ignore[type-arg]  # it is generic since click 8.2
    """Type of a parameter whose value must be one of several texts.

    A value that was removed causes an error that names its replacement.
    """

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the chosen text."""
        removed = None if param is None else reason(f'compare({param.name}="{value}")')
        if removed is not None:
            self.fail(removed, param, ctx)
        return super().convert(value, param, ctx)


def _type_of(entry: Entry) -> click.ParamType[Any] | type:
    if entry.choices:
        return Choice(list(entry.choices))
    if entry.of_flag is Path:
        return FILE
    return entry.of_flag


def _flag(name: str, entry: Entry) -> click.Option:
    """Return the flag of a field."""
    choices = entry.choices or {}
    default = next((text for text in choices if choices[text] == entry.default), entry.default)
    if entry.several or entry.default == "":
        default = None
    return click.Option(
        [entry.flag, name],
        multiple=entry.several,
        default=default,
        show_default=default is not None,
        type=_type_of(entry),
        metavar=entry.metavar,
        help=entry.help,
        callback=partial(_check, entry),
    )


def _check(entry: Entry, ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    """Convert and check a flag's value; the command itself reads any file that the value names."""
    try:
        if value in (None, (), ""):
            value = entry.default
        elif entry.choices:
            value = entry.choices[value]
        else:
            value = entry.of_texts(value)
        return value if isinstance(value, Path) else entry.check(value)
    except (TypeError, ValueError) as error:
        raise click.BadParameter(str(error), ctx, param) from None
