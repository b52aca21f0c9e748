"""Files that the commands read: columns of Parquet or CSV, groupings, metrics."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from cmtrack.cli.frame import BadInput, bad_input, first_line
from cmtrack.names import some_of

if TYPE_CHECKING:
    import pandas as pd

    from cmtrack.grouping import Grouping
    from cmtrack.metrics.metric import Metric
    from cmtrack.sources import Source

Result = TypeVar("Result")
_BIG = 1 << 28


def read_predictions(
    path: Path,
    y_prob: str | None,
    segments: Sequence[str] = (),
    *,
    what: str = "y_prob",
    label_kinds: Sequence[type] | None = None,
    missing: Sequence[str] | None = None,
    **columns: str | None,
) -> tuple[dict[str, Any], Any, Callable[[str], Any]]:
    """The named columns of a file, and no others, as arguments of :func:`cmtrack.evaluate`.

    ``y_prob``: with one ``*`` it stands for many columns: what the star matches is the label.
    ``what``: the argument that these are.
    ``label_kinds``: the kinds that labels in a CSV file may have; by default all.
    ``missing``: texts that are missing values in a CSV file; by default those of pandas.
    ``columns``: those of other arguments, by argument.
    The result: the arguments, the label that a single column is of, and the parser of labels given as text.
    """
    names = _column_names(path, [*filter(None, (*columns.values(), y_prob))])
    given = {
        argument: find(name, names, path) for argument, name in columns.items() if name is not None
    }
    divided = divisions(segments, names)
    crossed = [(one,) if isinstance(one, str) else one for one in divided]
    single = [*given.values(), *(find(name, names, path) for pair in crossed for name in pair)]
    by_text: dict[str, str] = {}
    if y_prob is not None and "*" in y_prob and y_prob not in names:
        by_text = _matches(y_prob, [name for name in names if name not in single], path)
    elif y_prob is not None:
        single.append(find(y_prob, names, path))
    labels = [given[argument] for argument in ("y_true", "y_pred") if argument in given]
    texts = [given[argument] for argument in ("row_ids", "groups") if argument in given]
    texts += [name for pair in crossed for name in pair]
    numbers = {given.get("sample_weight"), y_prob, *by_text.values()}
    frame = _read(
        path,
        list(dict.fromkeys([*single, *by_text.values()])),
        labels=[name for name in labels if name not in numbers],
        texts=[name for name in texts if name not in numbers],
        missing=missing,
        **({} if label_kinds is None else {"label_kinds": label_kinds}),
    )
    as_label = _label_reader(frame[given["y_true"]], given["y_true"])
    data: dict[str, Any] = {argument: frame[name] for argument, name in given.items()}
    if "sample_weight" in given:
        data["sample_weight"] = _weights(frame, given["sample_weight"])
    if divided:
        data["segments"] = (frame, divided)
    positive: Any = None
    if by_text:
        prob: Any = {as_label(text): _numbers(frame, column) for text, column in by_text.items()}
        if len(prob) == 1:  # one column of a family: the probability of that label
            ((positive, prob),) = prob.items()
        data[what] = prob
    elif y_prob is not None:
        data[what] = _numbers(frame, y_prob)
    return data, positive, as_label


def divisions(segments: Sequence[str], names: Sequence[str]) -> list[str | tuple[str, ...]]:
    """The columns that ``--segment`` names; "A,B" crosses two, unless a column has that name."""
    return [
        text if text in names or "," not in text else tuple(text.split(",")) for text in segments
    ]


def belongs_in_a_table(files: Sequence[str], y_prob: str | None) -> bool:
    """True for files that are streamed: several, a big one, or one with list columns."""
    path = Path(files[0])
    if len(files) > 1 or not path.is_file() or path.stat().st_size > _BIG:
        return True
    import pyarrow as pa
    import pyarrow.parquet as pq

    from cmtrack.sources.table_file import file_kind, readable

    with bad_input():
        if y_prob is None or file_kind(path.name) != "Parquet":
            return False
        schema = readable(path, lambda: pq.read_schema(path))
    kind = schema.field(y_prob).type if y_prob in schema.names else pa.null()
    return bool(
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )


def open_predictions(
    files: Sequence[str],
    y_prob: str | None,
    segments: Sequence[str],
    label_kinds: Sequence[type],
    missing: Sequence[str],
    *,
    what: str,
    **columns: Any,
) -> Source:
    """The rows of files that are one table, with labels of one kind."""
    from cmtrack.sources import choose_columns, open_source

    source = open_source(list(files), [*filter(None, (*columns.values(), y_prob))], missing)
    names = source.schema.names
    y_true = columns["y_true"]
    if y_true not in names:
        raise BadInput(f"{files[0]} has no column {y_true!r}; {_near(y_true, names)}")
    divided = divisions(segments, names) or None
    chosen = choose_columns(names, y_prob=y_prob, segments=divided, what=what, **columns)
    return source.with_kinds(chosen, label_kinds)


def label_reader_of_files(source: Source, name: str) -> Callable[[str], Any]:
    """Parser of command-line text into labels of the column ``name`` of files."""
    from cmtrack.sources import label_kind

    schema = source.schema
    kind = label_kind(schema.field(name).type)
    return _reader_of(kind if kind in (int, float, bool) else str, name)


def read_columns(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    """The named columns of a file."""
    names = _column_names(path, columns)
    found = list(dict.fromkeys(find(name, names, path) for name in columns))
    return _read(path, found, texts=found)


def find(name: str, names: Sequence[str], path: Path) -> str:
    """The column of that name, or an error that names the near ones."""
    if name in names:
        return name
    raise BadInput(f"{path.name} has no column {name!r}; {_near(name, names)}")


def _near(name: str, names: Sequence[str]) -> str:
    lowered: dict[str, str] = {}
    for other in names:
        lowered.setdefault(other.lower(), other)
    near = [lowered[n] for n in difflib.get_close_matches(name.lower(), lowered, n=3, cutoff=0.5)]
    if near:
        return f"did you mean {' or '.join(map(repr, near))}?"
    return f"its columns are {some_of([*map(repr, names)], 12)}"


def _matches(pattern: str, names: Sequence[str], path: Path) -> dict[str, str]:
    """Columns by the text that the star matches."""
    from cmtrack.sources import match_pattern

    with bad_input(say=lambda text: f"--y-prob: {text}"):
        columns = match_pattern(pattern, names)
    if not columns:
        raise BadInput(f"no column of {path.name} matches {pattern!r}; {_near(pattern, names)}")
    return columns


def _label_reader(column: pd.Series[Any], name: str) -> Callable[[str], Any]:
    from pandas.api import types

    kind: Any = column.dtype
    if hasattr(kind, "categories"):
        kind = kind.categories.dtype
    kinds = {bool: types.is_bool_dtype, int: types.is_integer_dtype, float: types.is_float_dtype}
    return _reader_of(next((one for one, holds in kinds.items() if holds(kind)), str), name)


def _reader_of(kind: type, name: str) -> Callable[[str], Any]:
    """Parser of command-line text into labels of the column ``name``."""
    if kind is str:
        return lambda text: text
    booleans = {"true": True, "1": True, "false": False, "0": False}
    holds = {bool: "booleans", int: "integers", float: "numbers"}[kind]

    def convert_or_say(text: str) -> Any:
        try:
            return booleans[text.strip().lower()] if kind is bool else kind(text.strip())
        except (KeyError, ValueError):
            raise BadInput(f"{text!r} is no label of {name!r}, which holds {holds}") from None

    return convert_or_say


def _weights(frame: pd.DataFrame, name: str) -> Any:
    """Weights with the column's type, which decides their meaning."""
    numbers = _numbers(frame, name)
    return (
        numbers
        if getattr(frame[name].dtype, "kind", "f") == "f" or frame[name].isna().any()
        else frame[name]
    )


def _numbers(frame: pd.DataFrame, name: str) -> Any:
    from pandas.api import types

    if not types.is_numeric_dtype(frame[name].dtype):
        raise BadInput(f"column {name!r} must hold numbers, got {frame[name].dtype}")
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
    """The groups of the last step that has two, by their texts; none without such a step."""
    steps = () if grouping is None else grouping.steps
    return next(
        (
            {str(group): group for group in step.labels}
            for step in steps[::-1]
            if len(step.labels) == 2
        ),
        {},
    )


def read_metrics(named: Sequence[str]) -> list[Metric]:
    """The metrics that ``--metrics`` names; each file or module is executed once."""
    import contextlib
    import sys
    from collections.abc import Mapping

    from cmtrack.metrics.metric import Metric
    from cmtrack.metrics.own import own_metrics

    spaces: dict[str, dict[str, Any]] = {}
    metrics: list[Metric] = []
    for text in named:
        place, _, name = text.rpartition(":")
        if not place or not name:
            raise BadInput(f"--metrics must be FILE.py:NAME, got {text!r}")
        if place not in spaces:
            try:
                with contextlib.redirect_stdout(sys.stderr):
                    spaces[place] = _executed(place)
            except (Exception, SystemExit) as error:  # whatever the user's code raises
                why = f"{type(error).__name__}: {first_line(error)}"
                raise BadInput(f"--metrics: {place} cannot be executed: {why}") from None
        space = spaces[place]
        if name not in space:
            there = [other for other, value in space.items() if isinstance(value, Metric)]
            raise BadInput(
                f"--metrics: {place} has no {name!r}; its metrics are {', '.join(there) or 'none'}"
            )
        given = space[name]
        given = (
            [given]
            if isinstance(given, Metric)
            else given.values()
            if isinstance(given, Mapping)
            else given
        )
        with bad_input(
            say=lambda why_not: f"--metrics {text}: {why_not.replace('extra_metrics', name)}"  # noqa: B023
        ):
            metrics += own_metrics(given)
            own_metrics(metrics)
    return metrics


def _executed(place: str) -> dict[str, Any]:
    """Names that a Python file or module defines; it can import modules in its folder."""
    import importlib
    import runpy
    import sys

    sys.path.append(str(Path(place).absolute().parent if place.endswith(".py") else Path.cwd()))
    return runpy.run_path(place) if place.endswith(".py") else vars(importlib.import_module(place))


def read_file(read: Callable[[Path], Result], path: Path) -> Result:
    """The grouping, the costs or the rule of a YAML or JSON file; an error names the file."""
    with bad_input(say=lambda text: text if text.startswith(path.name) else f"{path.name}: {text}"):
        return read(path)
