"""What all commands share: one-sentence errors, exit codes, progress on stderr, JSON alone on stdout."""

from __future__ import annotations

import contextlib
import functools
import json
import math
import sys
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import click

Function = TypeVar("Function", bound=Callable[..., Any])
Step = Callable[[str, int, int], object]


class WorkFailed(click.ClickException):
    """The work could not be done: exit code 1."""

    exit_code = 1


class BadInput(click.ClickException):
    """What was given is wrong: exit code 2, as click's own usage errors."""

    exit_code = 2


def plain_errors(function: Function) -> Function:
    """Turn anything unforeseen into one sentence and exit code 1; no stack trace reaches the terminal."""

    @functools.wraps(function)
    def wrapped(*args: Any, **options: Any) -> Any:
        try:
            return function(*args, **options)
        except (click.ClickException, click.Abort, click.exceptions.Exit):
            raise
        except (ImportError, OSError, ValueError) as error:
            raise WorkFailed(first_line(error)) from None
        except Exception as error:
            raise WorkFailed(f"{type(error).__name__}: {first_line(error)}") from None

    return wrapped  # type: ignore[return-value]


def first_line(error: BaseException) -> str:
    """The first line of an error's text, or its kind where it has none."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


@contextlib.contextmanager
def working() -> Iterator[Step]:
    """A progress bar on stderr, where that is a terminal; whatever is printed meanwhile goes to stderr, too."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
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
        bar.update(task, description=text, completed=done, total=total)

    with contextlib.redirect_stdout(sys.stderr), bar:
        yield step


def echo_json(data: Any) -> None:
    """One JSON object; numbers that are not finite become null."""
    click.echo(json.dumps(_finite(data), ensure_ascii=False, allow_nan=False, default=str))


def _finite(data: Any) -> Any:
    if isinstance(data, dict):
        return {str(name): _finite(value) for name, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_finite(value) for value in data]
    if isinstance(data, float) and not math.isfinite(data):
        return None
    return data


def warn(text: str) -> None:
    """A line on stderr that does not end the command."""
    click.echo(f"Warning: {text}", err=True)
