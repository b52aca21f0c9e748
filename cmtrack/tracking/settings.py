"""Privacy settings of a user, project or organisation: which rows may be written and sent.

By default an evaluation that is logged carries the judged rows along: each row's actual and
predicted label, its probabilities, weight and group, and its segment by each declared column. The
environment variable ``CMTRACK_PREDICTIONS`` or a project's ``pyproject.toml`` limits that for every
caller on the machine, whatever the code asks for::

    [tool.cmtrack]
    predictions = "off"     # or "labels", "auto", "on"

"labels" writes rows without probabilities, "auto" what the code says, "on" rows of any size.

The environment goes before the project, whose file is the nearest one, from the working directory
upwards, that has the setting. A setting that cannot be read counts as "off" and is warned of once:
what is private stays here, and the training goes on. ``log_evaluation``, the hooks, ``push`` and
the command line are bound by it. ``Evaluation.save`` is not: it writes into a folder that its
caller names, sends nothing, and goes by its own ``rows=``.
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
"""From the strictest to the widest."""
PROJECT = "pyproject.toml"
SETTINGS = ("off", "labels", "auto", "on")
"""From the strictest to the widest."""
_ALIKE = {"false": "off", "0": "off", "no": "off", "true": "on", "1": "on", "yes": "on"}
_MAX_PROJECT = 1 << 20

_told: set[str] = set()


@dataclass(frozen=True)
class KeptRows:
    """The decision on which rows of an evaluation are written.

    ``content``, "off", "labels" or "all".
    ``limited``: whether rows of more than 32 MB are left out.
    ``reason``: what leaves something out, such as ``CMTRACK_PREDICTIONS=off``; empty where nothing
    does.
    """

    content: str
    limited: bool
    reason: str = ""


def kept_rows(asked: bool | str = "auto") -> KeptRows:
    """Apply the settings to a caller's ``predictions=``.

    ValueError if the caller asks for something that there is not.
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
    return (
        KeptRows("labels", limited, f"predictions={asked!r}")
        if wanted == "labels"
        else KeptRows("all", limited)
    )


def lists_rows() -> bool:
    """True where a review may list rows: where the settings let them be written with their probabilities."""
    return kept_rows().content == "all"


def with_kept_rows(
    evaluation: BaseEvaluation, asked: bool | str = "auto"
) -> tuple[BaseEvaluation | None, str]:
    """The evaluation with the rows to write (None without any), and a sentence on them."""
    setting = kept_rows(asked)
    if evaluation.rows is None:
        return None, "0 rows are logged: the evaluation has none."
    if setting.content == "off":
        return None, f"0 rows are logged ({setting.reason})."
    if setting.content == "labels":
        evaluation = evaluation.without_probabilities()
    evaluation = _with_kept_ids(evaluation, setting)
    rows, size = evaluation.rows, evaluation.rows_size
    assert rows is not None  # asked above
    if setting.limited and size > MAX_ROWS_BYTES:
        return (
            None,
            f"0 rows are logged: all rows have {size / 1e6:.0f} MB, more than "
            f"{MAX_ROWS_BYTES >> 20} MB.",
        )
    held = (
        ["actual and predicted labels"]
        if isinstance(rows, Predictions)
        else ["matches and confusions, no codes"]
    )
    if getattr(rows, "source", None) is not None:
        held.append("probabilities")
    ids = getattr(rows, "ids", None)
    if ids is not None:
        held.append("hashes of the row ids" if ids.hashed else "row ids")
    columns = {
        "weights": rows.design.weights,
        "groups": rows.design.clusters,
        "segments": getattr(rows, "segments", None) or None,
    }
    held += [name for name, there in columns.items() if there is not None]
    sentence = f"{len(rows):,} rows are logged ({', '.join(held)}; {size / 1e6:.1f} MB before compression)."
    return (
        evaluation,
        f"{sentence} {VARIABLE}=off keeps rows on this machine, {VARIABLE}=labels the "
        f"probabilities.",
    )


def _with_kept_ids(evaluation: BaseEvaluation, kept: KeptRows) -> BaseEvaluation:
    """The evaluation with the ids of its rows that are written: hashes, or none, as the setting says."""
    if not (
        isinstance(evaluation, Evaluation)
        and isinstance(evaluation.rows, Predictions)
        and evaluation.rows.ids
    ):
        return evaluation
    ids, setting = evaluation.rows.ids, kept_ids()
    wanted: RowIds | None = None
    if kept.content == "all" and (setting == "on" or (setting == "hashed" and ids.hashed)):
        wanted = replace(ids, stored=True)
    elif kept.content == "all" and setting == "hashed":
        try:
            wanted = RowIds(hashed_ids(ids.values), hashed=True, stored=True)
        except ValueError as error:
            tell(f"{error}: no row ids are written")
    return replace(evaluation, rows=replace(evaluation.rows, ids=wanted))


def kept_ids() -> str:
    """The setting ``CMTRACK_ROW_IDS``: "off" (default), "hashed" or "on"; one that cannot be read is "off"."""
    given = os.environ.get(ROW_IDS, "").strip().lower()
    if given and given not in KEPT_IDS and given not in _told:
        _told.add(given)
        tell(
            f"{ROW_IDS} must be one of {', '.join(KEPT_IDS)}, got {given!r:.60}: no row ids are "
            f"written",
        )
    return given if given in KEPT_IDS else "off"


def kept_inputs(
    arrays: Mapping[str, Any], asked: bool | str = "auto"
) -> tuple[dict[str, Any], str]:
    """The inputs of a failed evaluation that may be stored, and why others may not."""
    try:
        setting = kept_rows(asked)
    except ValueError:
        setting = KeptRows("off", True, f"predictions={asked!r}")
    if setting.content == "off":
        return {}, setting.reason
    out = {
        name: values
        for name, values in arrays.items()
        if (setting.content == "all" or _no_scores(name, values))
        and (name != "row_ids" or kept_ids() == "on")
    }
    return out, setting.reason if len(out) < len(arrays) else ""


def _no_scores(name: str, values: Any) -> bool:
    """False for probabilities and scores, also where they were given as labels by mistake."""
    if name not in ("y_true", "y_pred") or values is None:
        return name not in ("y_prob", "y_score")
    array = as_array(values)
    return (
        array.ndim > 0 and array.size == len(array) and all(map(_is_label, array.ravel().tolist()))
    )


def _is_label(value: Any) -> bool:
    try:
        return float(value).is_integer() or not math.isfinite(float(value))
    except (TypeError, ValueError):
        return value is None or isinstance(value, (str, bytes))


def safe(asked: bool | str) -> bool | str:
    """The caller's ``predictions=`` if valid, else False."""
    try:
        _asked(asked)
    except ValueError:
        return False
    return asked


def narrow(entry: Entry) -> tuple[str, ...]:
    """Take rows that may no longer be sent out of an entry; return what was removed.

    The rows are taken out of its folder, too: what may not be sent is not kept for later.
    """
    setting, ids = kept_rows(), kept_ids()
    rows = next((name for name in entry.files if name.endswith(names.PREDICTIONS_FILE)), None)
    content = None if rows is None else entry.path_of(rows).read_bytes()
    narrowed = _narrowed(content, setting, ids)
    is_whole = narrowed == content
    if is_whole and setting.content == "all" and (ids == "on" or rows is not None):
        return ()  # what the page lists is what the rows hold
    pages = _stripped_pages(entry)
    # The pages first, then the rows: a process that ends in between leaves nothing that a later push would send.
    write_whole(pages, private=True)
    if rows is not None and not is_whole:
        entry.tags = entry.tags_with_rows(narrowed)
        entry.rewrite({} if narrowed is None else {rows: narrowed})
        if narrowed is None:
            entry.path_of(rows).unlink()
        what = {"off": "rows", "labels": "probabilities of the rows", "all": "row ids"}
        return (f"the {what[setting.content]} in {rows} ({_reason(setting, ids)})",)
    if pages:
        listed = some_of([page.name for page in pages], 3)
        return (f"the rows listed in {listed} ({_reason(setting, ids)})",)
    return ()


def _narrowed(content: bytes | None, setting: KeptRows, ids: str) -> bytes | None:
    """The part of a file of rows that the settings allow; None if none of it."""
    if content is None or setting.content == "off":
        return None
    if setting.content == "labels":
        return file_without_probabilities(content)
    return content if ids == "on" else file_without_ids(content, hashes=ids == "off")


def _stripped_pages(entry: Entry) -> dict[Path, bytes]:
    """The reports of an entry that list rows, without them."""
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
    """The setting and its source; "auto" by default."""
    given = os.environ.get(VARIABLE, "").strip()
    if given:
        return _read(given, VARIABLE, f"{VARIABLE}={given}")
    try:
        folder = Path.cwd()
    except OSError:  # it was removed
        return "auto", ""
    for path in (parent / PROJECT for parent in (folder, *folder.parents)):
        value = _of_project(path)
        if value is not None:
            return value
    return "auto", ""


def _of_project(path: Path) -> tuple[str, str] | None:
    """The setting in a project's file; None if absent."""
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
    if problem not in _told:
        _told.add(problem)
        tell(f"{problem}: no rows are written or sent until this is corrected")
    return "off", source
