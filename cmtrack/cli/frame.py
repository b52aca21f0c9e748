"""Code that all commands share: one-sentence errors, exit codes, progress on stderr, and output.

Commands print only through :func:`echo`, :func:`echo_json` or :func:`terminal`. The names of runs,
labels and groups and a server's answers are written by other people. They may contain control
sequences that change what a terminal shows.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cmtrack.names import as_sentence
from cmtrack.untrusted import one_line, printable, printable_json

if TYPE_CHECKING:
    from rich.console import Console
    from rich.segment import Segment

Function = TypeVar("Function", bound=Callable[..., Any])
Step = Callable[[str, int, int], object]


# The runner of GitHub, Azure or TeamCity executes a line with one of these markers. A word joiner
# inside the marker prevents this.
_RUNNER_COMMAND = re.compile(r":(?=:)|#(?=#(?:\[|vso|teamcity))")


def inert(text: str) -> str:
    """Return text without anything that controls a terminal or a pipeline runner."""
    return _RUNNER_COMMAND.sub("\\g<0>\u2060", printable(text))


class Failed(click.ClickException):
    """Error with a single sentence for the user, which may quote a server's answer."""

    def __init__(self, message: str) -> None:
        super().__init__(inert(message))


class WorkFailed(Failed):
    """Error that occurs during the work of a command; the exit code is 1."""

    exit_code = 1


class BadInput(Failed):
    """Error in the input; the exit code is 2, as for click's usage errors."""

    exit_code = 2


class NotDecided(Failed):
    """Error that prevents the answer of a command whose exit code 1 is an answer."""

    exit_code = 2


@contextlib.contextmanager
def plain_errors() -> Iterator[None]:
    """Turn an unexpected error into one sentence and exit code 1, without a stack trace."""
    try:
        yield
    except (click.ClickException, click.Abort, click.exceptions.Exit):
        raise
    except (ImportError, OSError, ValueError) as error:
        raise WorkFailed(first_line(error)) from None
    except Exception as error:
        raise WorkFailed(f"{type(error).__name__}: {first_line(error)}") from None


@contextlib.contextmanager
def errors_exit_with_2(interrupted: str) -> Iterator[None]:
    """Turn every error into one sentence and exit code 2.

    Pipelines read exit code 1 as an answer, so no error may use this code.

    ``interrupted``: the sentence if the user interrupts the command.
    """
    try:
        with plain_errors():
            yield
    except (KeyboardInterrupt, click.Abort):
        raise NotDecided(interrupted) from None
    except click.ClickException as error:
        if error.exit_code == 2:
            raise
        raise NotDecided(error.message) from None


def first_line(error: BaseException) -> str:
    """Return the first line of an error's text, or its type if the text is empty."""
    text = str(error)
    if isinstance(error, KeyError) and error.args:
        # The text of a KeyError is the repr of its argument.
        text = str(error.args[0])
    return next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)


@contextlib.contextmanager
def bad_input(*more: type[Exception], say: Callable[[str], str] = str) -> Iterator[None]:
    """Turn the library's input errors into one sentence and exit code 2."""
    kinds: tuple[type[Exception], ...] = (TypeError, ValueError, *more)
    try:
        yield
    except kinds as error:
        raise BadInput(say(first_line(error))) from None


@contextlib.contextmanager
def writing(path: Path, kind: type[Failed] = WorkFailed) -> Iterator[None]:
    """Turn an error that occurs while writing a file into one sentence."""
    try:
        yield
    except OSError as error:
        raise kind(f"{path} cannot be written: {error.strerror or first_line(error)}") from None


def append_summary(path: Path, markdown: str, kind: type[Failed] = WorkFailed) -> None:
    """Append Markdown, in which names are escaped, to the file of a job's summary page."""
    with writing(path, kind), path.open("a", encoding="utf-8") as file:
        file.write(f"{markdown}\n\n")


@contextlib.contextmanager
def passing_on(**flags: str) -> Iterator[None]:
    """Print each of the library's warnings once, with flags instead of argument names."""
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always", UserWarning)
        yield
    texts = [str(warning.message) for warning in raised if warning.category is UserWarning]
    for text in dict.fromkeys(texts):
        for argument, flag in flags.items():
            text = text.replace(f"{argument}=", flag)
        warn(text)


@contextlib.contextmanager
def working() -> Iterator[Step]:
    """Show a progress bar if stderr is a terminal; meanwhile, send all other output to stderr."""
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = terminal(stderr=True)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TimeElapsedColumn(),
    )
    bar = Progress(
        *columns,
        console=console,
        transient=True,
        disable=not console.is_terminal,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    task = bar.add_task("starting", total=None)

    def step(text: str, done: int, total: int) -> None:
        bar.update(task, description=one_line(text), completed=done, total=total)

    with contextlib.redirect_stdout(sys.stderr), bar:
        yield step


def echo(text: str = "", *, err: bool = False) -> None:
    """Print a line after escaping control characters and commands for a pipeline runner."""
    click.echo(inert(text), err=err)


def terminal(*, stderr: bool = False) -> Console:
    """Return a Rich console for tables and coloured text that escapes control characters.

    The console's colours are not escaped, because they are styles rather than text.
    """
    from rich.console import Console

    class Terminal(Console):
        def render(self, *args: Any, **options: Any) -> Iterator[Segment]:
            for segment in super().render(*args, **options):
                yield segment if segment.control else segment._replace(text=inert(segment.text))

    return Terminal(stderr=stderr)


def plain(text: object) -> Any:
    """Return text for Rich without markup, escaped before Rich measures its width."""
    from rich.text import Text

    return Text(printable(str(text)))


_TOGETHER = re.compile(r"(?:\S+ )?\[\S+, \S+\]\S*|\S+ (?:[<=>]|[<>]=) \S+|\S+")
"""A word, or words that belong together: a number with its interval, ``p < 0.001``."""


def print_text(console: Console, text: str, *, indent: int = 0, label: str = "") -> None:
    """Print a sentence or several, without a line break inside a number and its interval.

    ``label``: a coloured word before the text, such as "Warning:".
    """
    from rich.cells import cell_len
    from rich.text import Text

    room = console.width - indent
    lines = [label]
    for word in _TOGETHER.findall(printable(text)):
        longer = f"{lines[-1]} {word}".lstrip()
        if lines[-1] and cell_len(longer) > room:
            lines.append(word)
        else:
            lines[-1] = longer
    shown = Text("\n".join(" " * indent + line for line in lines))
    shown.stylize("yellow", indent, indent + len(label))
    console.print(shown)


def echo_json(data: Any) -> None:
    """Print a JSON object, in which numbers that are not finite become null."""
    click.echo(
        printable_json(json.dumps(_finite(data), ensure_ascii=False, allow_nan=False, default=str))
    )


def _finite(data: Any) -> Any:
    if isinstance(data, dict):
        return {str(name): _finite(value) for name, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_finite(value) for value in data]
    if isinstance(data, float) and not math.isfinite(data):
        return None
    return data


def warn(text: str) -> None:
    """Print a warning on stderr, and continue."""
    echo(f"Warning: {as_sentence(text)}", err=True)
