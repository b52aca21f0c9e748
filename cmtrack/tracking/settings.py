"""Privacy settings of a user, project or organisation: they determine which rows may be sent.

By default, a logged evaluation includes the evaluated rows: for each row, the actual and the
predicted label, the probabilities, the weight, the group, and the segment in each declared column.
The environment variable ``CMTRACK_PREDICTIONS``, or a project's ``pyproject.toml``, limits the rows
for every caller, regardless of the code::

    [tool.cmtrack]
    predictions = "off"     # or "labels", "auto", "on"

With "labels", rows are written without probabilities. With "auto", the arguments in the code
decide. With "on", all rows are written, regardless of their size.

The environment variable takes precedence over the project's file. The project's file is the nearest
``pyproject.toml`` with the setting, in the working directory or in a folder above it. A setting
that cannot be read counts as "off" and causes a single warning, so that private data stay on the
machine and training continues. The settings apply to ``log_evaluation``, the hooks, ``push`` and
the command line. They do not apply to ``Evaluation.save``, because this method sends nothing,
writes to a folder that the caller chooses, and provides the option ``rows=`` for the same purpose.
"""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cmtrack.archive import MAX_ROWS_BYTES
from cmtrack.base import BaseEvaluation
from cmtrack.evaluation import Evaluation
from cmtrack.evaluation.storage import file_without_ids, file_without_probabilities
from cmtrack.files import write_whole
from cmtrack.names import some_of
from cmtrack.report.html import without_rows
from cmtrack.rows.join import hashed_ids
from cmtrack.statistics.inputs import as_array
from cmtrack.statistics.predictions import Predictions, RowIds
from cmtrack.tracking import names
from cmtrack.tracking._warn import tell
from cmtrack.untrusted import read_file

if TYPE_CHECKING:
    from cmtrack.tracking.entry import Entry

VARIABLE = "CMTRACK_PREDICTIONS"
ROW_IDS = "CMTRACK_ROW_IDS"
KEPT_IDS = ("off", "hashed", "on")
"""Values of ``CMTRACK_ROW_IDS``, from the most restrictive to the least restrictive."""
PROJECT = "pyproject.toml"
SETTINGS = ("off", "labels", "auto", "on")
"""Values of ``CMTRACK_PREDICTIONS``, from the most restrictive to the least restrictive."""
_ALIKE = {"false": "off", "0": "off", "no": "off", "true": "on", "1": "on", "yes": "on"}
_MAX_PROJECT = 1 << 20

_told: set[str] = set()


@dataclass(frozen=True)
class KeptRows:
    """Decision about an evaluation's rows: the content to write, and the reason for omissions.

    ``content``: "off", "labels" or "all".
    ``limited``: whether all rows are omitted if their size exceeds 32 MB.
    ``reason``: the setting that causes an omission, such as ``CMTRACK_PREDICTIONS=off``; empty if
        nothing is omitted.
    """

    content: str
    limited: bool
    reason: str = ""


def kept_rows(asked: bool | str = "auto") -> KeptRows:
    """Combine the settings with the caller's argument ``predictions=``.

    Raises ValueError if ``predictions=`` is not a valid option.
    """
    wanted = _asked(asked)
    setting, source = _setting()
    if wanted == "off":
        return KeptRows("off", True, f"predictions={asked!r}")
    if setting == "off":
        return KeptRows("off", True, source)
    limited = wanted == "labels" or (wanted == "auto" and setting != "on")
    if setting == "labels":
        return KeptRows("labels", limited, source)
    if wanted == "labels":
        return KeptRows("labels", limited, f"predictions={asked!r}")
    return KeptRows("all", limited)


def lists_rows() -> bool:
    """Return True if a review may list rows, because the settings allow complete rows."""
    return kept_rows().content == "all"


def with_kept_rows(
    evaluation: BaseEvaluation, asked: bool | str = "auto"
) -> tuple[BaseEvaluation | None, str]:
    """Return the evaluation with the rows to write, and a sentence that describes these rows.

    Returns None instead of the evaluation if no rows are to be written.
    """
    setting = kept_rows(asked)
    if evaluation.rows is None:
        return None, "0 rows are logged: the evaluation has none."
    if setting.content == "off":
        return None, f"0 rows are logged ({setting.reason})."
    n_rows = len(evaluation.rows)
    if setting.content == "labels":
        evaluation = evaluation.without_probabilities()
    evaluation = _with_kept_ids(evaluation, setting)
    megabytes = evaluation.rows_size / 1e6
    if setting.limited and evaluation.rows_size > MAX_ROWS_BYTES:
        most = MAX_ROWS_BYTES >> 20
        return None, f"0 rows are logged: they need {megabytes:.0f} MB, more than {most} MB."
    contents = ", ".join(_contents_of(evaluation.rows))
    return (
        evaluation,
        f"{n_rows:,} rows are logged ({contents}; {megabytes:.1f} MB before compression). With "
        f"{VARIABLE}=off, the rows stay on this machine; with {VARIABLE}=labels, only their "
        "probabilities do.",
    )


def _contents_of(rows: Any) -> list[str]:
    """Return words that describe the content of the rows."""
    contents = ["matches and confusions, no codes"]
    if isinstance(rows, Predictions):
        contents = ["actual and predicted labels"]
    if getattr(rows, "source", None) is not None:
        contents.append("probabilities")
    ids = getattr(rows, "ids", None)
    if ids is not None:
        contents.append("hashes of the row ids" if ids.hashed else "row ids")
    if rows.design.weights is not None:
        contents.append("weights")
    if rows.design.clusters is not None:
        contents.append("groups")
    if getattr(rows, "segments", None):
        contents.append("segments")
    return contents


def _with_kept_ids(evaluation: BaseEvaluation, kept: KeptRows) -> BaseEvaluation:
    """Return the evaluation with the row ids that the setting allows: ids, hashes or no ids."""
    rows = evaluation.rows
    if not isinstance(evaluation, Evaluation) or not isinstance(rows, Predictions) or not rows.ids:
        return evaluation
    setting = kept_ids()
    if kept.content != "all":
        setting = "off"
    ids: RowIds | None = None
    if setting == "on" or (setting == "hashed" and rows.ids.hashed):
        ids = replace(rows.ids, stored=True)
    elif setting == "hashed":
        try:
            ids = RowIds(hashed_ids(rows.ids.values), hashed=True, stored=True)
        except ValueError as error:
            tell(f"{error}: no row ids are written")
    return replace(evaluation, rows=replace(rows, ids=ids))


def kept_ids() -> str:
    """Read the setting ``CMTRACK_ROW_IDS``: "off", "hashed" or "on".

    The setting counts as "off" if it is missing or invalid.
    """
    setting = os.environ.get(ROW_IDS, "").strip().lower() or "off"
    if setting in KEPT_IDS:
        return setting
    _tell_once(
        f"{ROW_IDS} must be one of {', '.join(KEPT_IDS)}, got {setting!r:.60}: "
        "no row ids are written"
    )
    return "off"


def kept_inputs(
    arrays: Mapping[str, Any], asked: bool | str = "auto"
) -> tuple[dict[str, Any], str]:
    """Return the inputs of a failed evaluation that may be stored, and the reason for omissions."""
    try:
        setting = kept_rows(asked)
    except ValueError:
        setting = KeptRows("off", True, f"predictions={asked!r}")
    if setting.content == "off":
        return {}, setting.reason
    kept = {
        name: values
        for name, values in arrays.items()
        if setting.content == "all" or _has_no_scores(name, values)
    }
    if "row_ids" in kept and kept_ids() != "on":
        del kept["row_ids"]
    return kept, setting.reason if len(kept) < len(arrays) else ""


def _has_no_scores(name: str, values: Any) -> bool:
    """Return False for probabilities and scores, even if they were passed as labels by mistake."""
    if name not in ("y_true", "y_pred") or values is None:
        return name not in ("y_prob", "y_score")
    array = as_array(values)
    if array.ndim == 0 or array.size != len(array):
        return False
    return all(map(_is_label, array.ravel().tolist()))


def _is_label(value: Any) -> bool:
    try:
        return float(value).is_integer() or not math.isfinite(float(value))
    except (TypeError, ValueError):
        return value is None or isinstance(value, (str, bytes))


def safe(asked: bool | str) -> bool | str:
    """Return the caller's ``predictions=`` if its value is valid, otherwise False."""
    try:
        _asked(asked)
    except ValueError:
        return False
    return asked


def remove_forbidden_rows(entry: Entry) -> tuple[str, ...]:
    """Remove the rows that may no longer be sent; return a text that describes the removed rows.

    The rows are also removed from the entry's folder, so that they cannot be sent later.
    """
    setting = kept_rows()
    ids = kept_ids()
    rows = next((name for name in entry.files if name.endswith(names.PREDICTIONS_FILE)), None)
    content = None if rows is None else entry.path_of(rows).read_bytes()
    narrowed = _narrowed(content, setting, ids)
    is_whole = narrowed == content
    if is_whole and setting.content == "all" and (ids == "on" or rows is not None):
        return ()  # the report lists only rows that may be sent
    pages = _stripped_pages(entry)
    # Change the pages first, then the rows. If the process ends in between, a later push removes
    # the rows.
    write_whole(pages, private=True)
    if rows is not None and not is_whole:
        entry.tags = entry.tags_with_rows(narrowed)
        entry.rewrite({} if narrowed is None else {rows: narrowed})
        if narrowed is None:
            entry.path_of(rows).unlink()
        removed = {"off": "rows", "labels": "probabilities of the rows", "all": "row ids"}
        return (f"the {removed[setting.content]} in {rows} ({_reason(setting, ids)})",)
    if pages:
        listed = some_of([page.name for page in pages], 3)
        return (f"the rows listed in {listed} ({_reason(setting, ids)})",)
    return ()


def _narrowed(content: bytes | None, setting: KeptRows, ids: str) -> bytes | None:
    """Return the part of a file of rows that the settings allow, or None if they allow no rows."""
    if content is None or setting.content == "off":
        return None
    if setting.content == "labels":
        return file_without_probabilities(content)
    return content if ids == "on" else file_without_ids(content, hashes=ids == "off")


def _stripped_pages(entry: Entry) -> dict[Path, bytes]:
    """For each report in an entry that lists rows, return a copy without rows."""
    stripped = {}
    for name in entry.files:
        if name.endswith(names.REPORT_FILE):
            path = entry.path_of(name)
            content = path.read_bytes()
            without = without_rows(content)
            if without != content:
                stripped[path] = without
    return stripped


def _reason(setting: KeptRows, ids: str) -> str:
    return f"{ROW_IDS}={ids}" if setting.content == "all" else setting.reason


# -- sources of settings ---------------------------------------------------------------------------


def _asked(asked: Any) -> str:
    if isinstance(asked, (bool, np.bool_)):
        return "on" if asked else "off"
    if asked in ("auto", "labels"):
        return str(asked)
    raise ValueError(f"predictions must be True, False, 'auto' or 'labels', got {asked!r:.60}")


def _setting() -> tuple[str, str]:
    """Return the setting and its source; the default setting is "auto"."""
    text = os.environ.get(VARIABLE, "").strip()
    if text:
        return _read(text, VARIABLE, f"{VARIABLE}={text}")
    try:
        folder = Path.cwd()
    except OSError:  # the folder was removed
        return "auto", ""
    for path in (parent / PROJECT for parent in (folder, *folder.parents)):
        value = _of_project(path)
        if value is not None:
            return value
    return "auto", ""


def _of_project(path: Path) -> tuple[str, str] | None:
    """Return the setting from a project's file and its source, or None if it is not set."""
    try:
        if not path.is_file():
            return None
        content = read_file(path.resolve(), _MAX_PROJECT)
        table = tomllib.loads(content.decode("utf-8")).get("tool", {}).get("cmtrack", {})
    except (OSError, ValueError, AttributeError) as error:
        return _unreadable(f"{path} cannot be read: {error}", str(path))
    if not isinstance(table, Mapping):
        return _unreadable(f"{path}: tool.cmtrack must be a table, got {table!r:.60}", str(path))
    if "predictions" in table:
        value = table["predictions"]
        return _read(
            value, f"predictions of [tool.cmtrack] in {path}", f"predictions = {value!r} in {path}"
        )
    meant = get_close_matches("predictions", list(table), n=1)
    if meant:
        return _unreadable(
            f"{path}: [tool.cmtrack] has {meant[0]!r}: did you mean 'predictions'?", str(path)
        )
    return None


def _read(value: Any, what: str, source: str) -> tuple[str, str]:
    text = str(value).strip().lower() if isinstance(value, (str, bool)) else ""
    text = _ALIKE.get(text, text)
    if text in SETTINGS:
        return text, source
    return _unreadable(f"{what} must be one of {', '.join(SETTINGS)}, got {value!r:.60}", source)


def _unreadable(problem: str, source: str) -> tuple[str, str]:
    """Warn that a setting cannot be read, and return "off" and the setting's source."""
    _tell_once(f"{problem}: no rows are written or sent until this is corrected")
    return "off", source


def _tell_once(problem: str) -> None:
    """Warn about a setting only once per process, because a training reads it at each step."""
    if problem not in _told:
        _told.add(problem)
        tell(problem)
