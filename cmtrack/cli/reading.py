"""Functions that read the files of commands: Parquet and CSV columns, groupings, metrics."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from cmtrack.cli.frame import BadInput, bad_input, first_line
from cmtrack.names import some_of

if TYPE_CHECKING:
    import pandas as pd

    from cmtrack.grouping import Grouping
    from cmtrack.metrics.metric import Metric
    from cmtrack.sources import Source

Result = TypeVar("Result")
_BIG = 1 << 28


@dataclass(frozen=True)
class NamedColumns:
    """The columns of a file that the options name, and rules for reading texts from a CSV file.

    Attributes
    ----------
    by_argument : mapping of str to str or None
        For each argument of :func:`cmtrack.evaluate` except the scores, the name of its column.
    scores : str or None
        The column of scores, or a pattern of columns with one ``*`` instead of the label.
    scores_argument : str
        The argument that takes the scores, ``y_prob`` or ``y_score``.
    segments : sequence of str
    label_kinds : sequence of type
        The allowed types of labels.
    missing : sequence of str
        Texts that are read as missing values.
    """

    by_argument: Mapping[str, str | None]
    scores: str | None
    scores_argument: str
    segments: Sequence[str]
    label_kinds: Sequence[type]
    missing: Sequence[str]

    @property
    def wanted(self) -> list[str]:
        """The names of single columns, and the pattern for the scores."""
        return [*filter(None, (*self.by_argument.values(), self.scores))]


class FilePredictions(NamedTuple):
    """Arguments for :func:`cmtrack.evaluate`, and a parser that converts texts to labels."""

    arguments: dict[str, Any]
    as_label: Callable[[str], Any]


def read_predictions(path: Path, named: NamedColumns) -> FilePredictions:
    """Read only the named columns of a file."""
    from cmtrack.evaluation.labelled_rows import columns_of_segments

    names = _column_names(path, named.wanted)
    by_argument = {
        argument: find(name, names, path)
        for argument, name in named.by_argument.items()
        if name is not None
    }
    divided = divisions(named.segments, names)
    segments = [find(name, names, path) for name in columns_of_segments(divided)]
    columns = [*by_argument.values(), *segments]
    scores_by_label = _score_columns(named.scores, names, columns, path)
    columns += scores_by_label.values()
    if named.scores is not None and not scores_by_label:
        columns.append(find(named.scores, names, path))
    # A column that is also used for numbers keeps its type.
    numbers = {by_argument.get("sample_weight"), named.scores, *scores_by_label.values()}
    labels = {by_argument.get("y_true"), by_argument.get("y_pred")} - numbers
    texts = {by_argument.get("row_ids"), by_argument.get("groups"), *segments} - numbers
    columns = list(dict.fromkeys(columns))
    frame = _read(
        path,
        columns,
        labels=[name for name in columns if name in labels],
        texts=[name for name in columns if name in texts],
        label_kinds=named.label_kinds,
        missing=named.missing,
    )
    as_label = label_reader(frame[by_argument["y_true"]], by_argument["y_true"])
    arguments: dict[str, Any] = {argument: frame[name] for argument, name in by_argument.items()}
    if "sample_weight" in by_argument:
        arguments["sample_weight"] = _weights(frame, by_argument["sample_weight"])
    if divided:
        arguments["segments"] = (frame, divided)
    if scores_by_label:
        scores = {as_label(text): _numbers(frame, name) for text, name in scores_by_label.items()}
        arguments[named.scores_argument] = scores
        if len(scores) == 1:  # one column: the probability of its label
            ((arguments["positive"], arguments[named.scores_argument]),) = scores.items()
    elif named.scores is not None:
        arguments[named.scores_argument] = _numbers(frame, named.scores)
    return FilePredictions(arguments, as_label)


def _score_columns(
    scores: str | None, names: Sequence[str], others: Sequence[str], path: Path
) -> dict[str, str]:
    """Return the columns that match a pattern, by label; empty if a single column is named."""
    if scores is None or "*" not in scores or scores in names:
        return {}
    return _matches(scores, [name for name in names if name not in others], path)


def divisions(segments: Sequence[str], names: Sequence[str]) -> list[str | tuple[str, ...]]:
    """Return the columns of ``--segment``. "A,B" crosses two columns, unless it is a column."""
    return [
        tuple(text.split(",")) if "," in text and text not in names else text for text in segments
    ]


def belongs_in_a_table(files: Sequence[str], scores: str | None) -> bool:
    """Return whether to stream: for several files, a large file, or a file with a list column."""
    path = Path(files[0])
    if len(files) > 1 or not path.is_file() or path.stat().st_size > _BIG:
        return True
    import pyarrow.parquet as pq
    from pyarrow import types

    from cmtrack.sources.table_file import file_kind, readable

    with bad_input():
        if scores is None or file_kind(path.name) != "Parquet":
            return False
        schema = readable(path, lambda: pq.read_schema(path))
    if scores not in schema.names:
        return False
    kind = schema.field(scores).type
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def open_predictions(files: Sequence[str], named: NamedColumns) -> Source:
    """Return the rows of several files as one table, in which all labels have the same type."""
    from cmtrack.sources import choose_columns, open_source

    source = open_source(list(files), named.wanted, named.missing)
    names = source.schema.names
    y_true = str(named.by_argument["y_true"])
    if y_true not in names:
        raise BadInput(f"{files[0]} has no column {y_true!r}; {_near(y_true, names)}")
    columns = choose_columns(
        names,
        y_prob=named.scores,
        segments=divisions(named.segments, names) or None,
        what=named.scores_argument,
        **named.by_argument,
    )
    return source.with_kinds(columns, named.label_kinds)


def label_reader_of_files(source: Source, name: str) -> Callable[[str], Any]:
    """Return a parser that converts command-line text to labels of the column ``name``."""
    from cmtrack.sources import label_kind

    kind = label_kind(source.schema.field(name).type)
    return _reader_of(kind if kind in (int, float, bool) else str, name)


def label_reader_of_table(files: Sequence[str], name: str) -> Callable[[str], Any]:
    """Return a parser that converts command-line text to labels of a column in files."""
    from cmtrack.sources import open_source

    source = open_source(list(files), [name])
    if name not in source.schema.names:
        raise BadInput(f"{files[0]} has no column {name!r}; {_near(name, source.schema.names)}")
    return label_reader_of_files(source, name)


def read_columns(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    """Read the named columns of a file."""
    names = _column_names(path, columns)
    found = list(dict.fromkeys(find(name, names, path) for name in columns))
    return _read(path, found, texts=found)


def find(name: str, names: Sequence[str], path: Path) -> str:
    """Return the name if it is a column; otherwise raise an error that suggests similar names."""
    if name in names:
        return name
    raise BadInput(f"{path.name} has no column {name!r}; {_near(name, names)}")


def _near(name: str, names: Sequence[str]) -> str:
    """Return similar names for an error message, or the first names if none are similar."""
    by_lower: dict[str, str] = {}
    for other in names:
        by_lower.setdefault(other.lower(), other)
    matches = difflib.get_close_matches(name.lower(), by_lower, n=3, cutoff=0.5)
    near = [by_lower[lower] for lower in matches]
    if near:
        return f"did you mean {' or '.join(map(repr, near))}?"
    return f"its columns are {some_of([*map(repr, names)], 12)}"


def _matches(pattern: str, names: Sequence[str], path: Path) -> dict[str, str]:
    """Find the columns that match a pattern, by the text that ``*`` stands for."""
    from cmtrack.sources import match_pattern

    with bad_input(say=lambda text: f"--y-prob: {text}"):
        columns = match_pattern(pattern, names)
    if not columns:
        raise BadInput(f"no column of {path.name} matches {pattern!r}; {_near(pattern, names)}")
    return columns


def label_reader(column: pd.Series[Any], name: str) -> Callable[[str], Any]:
    """Return a parser that converts command-line text to labels of a column."""
    from pandas.api import types

    kind: Any = column.dtype
    if hasattr(kind, "categories"):
        kind = kind.categories.dtype
    if types.is_bool_dtype(kind):
        return _reader_of(bool, name)
    if types.is_integer_dtype(kind):
        return _reader_of(int, name)
    if types.is_float_dtype(kind):
        return _reader_of(float, name)
    return _reader_of(str, name)


def _reader_of(kind: type, name: str) -> Callable[[str], Any]:
    """Return a parser that converts command-line text to labels of a given type."""
    if kind is str:
        return lambda text: text
    booleans = {"true": True, "1": True, "false": False, "0": False}
    holds = {bool: "booleans", int: "integers", float: "numbers"}[kind]

    def convert(text: str) -> Any:
        try:
            # bool("false") is True
            return booleans[text.strip().lower()] if kind is bool else kind(text.strip())
        except (KeyError, ValueError):
            raise BadInput(f"{text!r} is not a label in {name!r}, which contains {holds}") from None

    return convert


def _weights(frame: pd.DataFrame, name: str) -> Any:
    """Return weights in the type of their column: integers count rows, and floats do not."""
    numbers = _numbers(frame, name)
    is_float = getattr(frame[name].dtype, "kind", "f") == "f"
    return numbers if is_float or frame[name].isna().any() else frame[name]


def _numbers(frame: pd.DataFrame, name: str) -> Any:
    from pandas.api import types

    if not types.is_numeric_dtype(frame[name].dtype):
        raise BadInput(f"column {name!r} must contain numbers, got {frame[name].dtype}")
    return frame[name].to_numpy(dtype="float64", na_value=float("nan"))


def _column_names(path: Path, wanted: Sequence[str]) -> list[str]:
    from cmtrack.sources.table_file import column_names

    with bad_input():
        return column_names(path, wanted)


def _read(path: Path, columns: list[str], **options: Any) -> pd.DataFrame:
    from cmtrack.sources.table_file import read_frame

    with bad_input():
        return read_frame(path, columns, **options)


def two_groups(grouping: Grouping | None) -> dict[Any, Any]:
    """Return the groups of the last step with two groups, by text; empty if no step has two."""
    steps = () if grouping is None else grouping.steps
    pairs = [step.labels for step in steps if len(step.labels) == 2]
    return {str(group): group for group in pairs[-1]} if pairs else {}


def read_metrics(named: Sequence[str]) -> list[Metric]:
    """Return the metrics given as ``--extra-metrics``; execute each file or module only once."""
    from cmtrack.metrics.metric import Metric
    from cmtrack.metrics.own import own_metrics

    modules: dict[str, dict[str, Any]] = {}
    metrics: list[Metric] = []
    for text in named:
        module, _, name = text.rpartition(":")
        if not module or not name:
            raise BadInput(f"--extra-metrics must be FILE.py:NAME, got {text!r}")
        if module not in modules:
            modules[module] = _execute(module)
        values = modules[module]
        if name not in values:
            found = [other for other, value in values.items() if isinstance(value, Metric)]
            listed = ", ".join(found) or "none"
            raise BadInput(f"--extra-metrics: {module} has no {name!r}; its metrics are {listed}")
        with bad_input(say=partial(_say_of_metrics, text, name)):
            metrics += own_metrics(_listed(values[name]))
            # Refuse two files that define the same metric.
            own_metrics(metrics)
    return metrics


def _listed(value: Any) -> Any:
    """Return a single metric as a list, and a mapping as its values."""
    from cmtrack.metrics.metric import Metric

    if isinstance(value, Metric):
        return [value]
    return value.values() if isinstance(value, Mapping) else value


def _say_of_metrics(option: str, name: str, error: str) -> str:
    """Return an error about metrics in which the option replaces the argument name."""
    return f"--extra-metrics {option}: {error.replace('extra_metrics', name)}"


def _execute(module: str) -> dict[str, Any]:
    """Return the names that a Python file or module defines; a file can import from its folder."""
    import contextlib
    import importlib
    import runpy
    import sys

    is_file = module.endswith(".py")
    sys.path.append(str(Path(module).absolute().parent if is_file else Path.cwd()))
    try:
        # stdout is only for the answer of the command.
        with contextlib.redirect_stdout(sys.stderr):
            return runpy.run_path(module) if is_file else vars(importlib.import_module(module))
    except (Exception, SystemExit) as error:  # whatever the user's code raises
        reason = f"{type(error).__name__}: {first_line(error)}"
        raise BadInput(f"--extra-metrics: {module} cannot be executed: {reason}") from None


def read_file(read: Callable[[Path], Result], path: Path) -> Result:
    """Read a grouping, costs or a rule from a file; errors name the file."""
    with bad_input(say=lambda text: text if text.startswith(path.name) else f"{path.name}: {text}"):
        return read(path)
