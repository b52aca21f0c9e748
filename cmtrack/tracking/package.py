"""All files, metrics and tags of a logged evaluation, first as a folder on disk.

The folder is whole before anything is sent: what cannot be sent is not lost, and what is sent later is the same.
``artifacts/`` holds the files; ``manifest.json`` the metrics, tags, the description and where they belong. No
password is written.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from functools import partial
from io import BytesIO
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

from cmtrack import schemas, untrusted
from cmtrack.base import BaseEvaluation
from cmtrack.evaluation import Evaluation
from cmtrack.files import PARTIAL, write_whole
from cmtrack.names import quoted
from cmtrack.report.formatting import BETWEEN
from cmtrack.report.views import report_html, segments_json, table_json
from cmtrack.tracking import dataset as datasets
from cmtrack.tracking import names
from cmtrack.tracking.cache import digest_of
from cmtrack.tracking.description import description
from cmtrack.tracking.spool import ARTIFACTS, CHARTS, MANIFEST, write_private

if TYPE_CHECKING:
    from cmtrack.report.figures import Picture

Figures: TypeAlias = str | bool | Sequence[str]


def checked_figures(figures: Figures) -> Figures:
    """The figures that were asked for.

    ValueError if they are another word than "auto" and "all"; TypeError if they are no names.
    """
    if isinstance(figures, str):
        if figures not in ("auto", "all"):
            raise ValueError(
                f"figures must be 'auto', 'all', True, False or a list of names, got {figures!r}"
            )
    elif not isinstance(figures, bool):
        names = tuple(figures) if isinstance(figures, Iterable) else (figures,)
        if not all(isinstance(name, str) for name in names):
            raise TypeError(
                f"figures must be 'auto', 'all', True, False or a list of names, got {figures!r:.80}"
            )
        return names
    return figures


@dataclass(frozen=True)
class Placed:
    """Place of an evaluation; by default in no run yet.

    ``tracking_uri``: the store that it is meant for.
    ``on_existing``, "replace" or "error": what becomes of another evaluation that the run holds under the prefix.
    """

    run_id: str | None = None
    prefix: str = ""
    step: int | None = None
    model_id: str | None = None
    tracking_uri: str | None = None
    on_existing: str = "replace"


@dataclass(frozen=True)
class Destination(Placed):
    """Place of an evaluation, and the parts to log, as :func:`cmtrack.log_evaluation` takes them.

    ``run_name``: for the figures and the report; empty where it is not known.
    """

    metrics: str | Sequence[str] = "headline"
    predictions: bool | str = "auto"
    dataset: str | None = None
    run_name: str = ""
    figures: Figures = "auto"


@dataclass(frozen=True)
class Package(Placed):
    """A folder that is ready to be sent to a run.

    ``folder``: None where no place on this machine could be written: then only its metrics and tags can be sent.
    ``metrics``: finite values by the name that MLflow gets.
    ``images``: file in ``charts/`` by image key; earlier versions had them in ``artifacts/``.
    ``table``: file in ``artifacts/`` that the artifact view shows as a table.
    ``dataset``: of the evaluated data, as :mod:`cmtrack.tracking.dataset` has it.
    ``description``: Markdown for the run's description, where it is one block of several; its links are made when it is
        sent.
    ``timestamp``: when it was made, milliseconds since 1970: sending twice gives the same points of a metric.
    ``tracking_uri``: without credentials.
    ``problems``: what could not be made.
    """

    _: KW_ONLY
    folder: Path | None
    metrics: dict[str, float]
    tags: dict[str, str]
    images: dict[str, str]
    table: str
    dataset: dict[str, str]
    description: str
    timestamp: int
    problems: tuple[str, ...] = ()

    @property
    def files(self) -> list[str]:
        """Names of the files to upload, the evaluation first, then the smallest.

        Rows whose digest is not among the tags are none of them, nor is what a process that was killed left half
        written.
        """
        if self.folder is None:
            return []
        sizes = {path.name: path.stat().st_size for path in (self.folder / ARTIFACTS).iterdir()}
        first, rows = (
            names.file_name(name, self.prefix)
            for name in (names.EVALUATION_FILE, names.PREDICTIONS_FILE)
        )
        with_rows = names.digest_key(names.PREDICTIONS_FILE) in names.digests(
            self.tags, self.prefix
        )
        left_out = (PARTIAL, names.PREDICTIONS_FILE)
        out = (
            name for name in sizes if not name.endswith(left_out) or (with_rows and name == rows)
        )
        return sorted(out, key=lambda name: (name != first, sizes[name], name))

    def path_of(self, name: str) -> Path:
        """The path of a file to upload; ValueError if no folder could be written."""
        if self.folder is None:
            raise ValueError(f"a package without a folder has no files, such as {name!r:.80}")
        return self.folder / ARTIFACTS / name

    def image(self, file: str) -> bytes | None:
        """An image for the charts; packages of earlier versions have it among their artifacts."""
        if self.folder is None:
            return None
        paths = (
            path for part in (CHARTS, ARTIFACTS) if (path := self.folder / part / file).is_file()
        )
        return next((path.read_bytes() for path in paths), None)

    def with_rows(self, content: bytes | None) -> Package:
        """The package with tags for this file of rows; None removes them."""
        key, file = (
            names.digest_key(names.PREDICTIONS_FILE),
            names.file_name(names.PREDICTIONS_FILE, self.prefix),
        )
        changed = (
            {key: None, names.ROWS_FILE: None}
            if content is None
            else digests({file: content}, self.prefix)
        )
        return replace(self, tags=names.with_digests(self.tags, self.prefix, changed))


def build(
    evaluation: BaseEvaluation,
    write: Callable[[str, bytes], object],
    to: Destination,
    *,
    rows: Callable[[BinaryIO], object] | None = None,
    listed: BaseEvaluation | None = None,
    report: bool = True,
    timestamp: int | None = None,
    problems: Iterable[str] = (),
) -> Package:
    """Make the whole package, file by file.

    The evaluation itself comes first, then its rows. A figure or a table that fails is named in ``problems`` and left
    out; it never takes the rest with it.

    ``write``: called with a name, such as ``artifacts/cmtrack_report.html``, and the content.
    ``to``: the report is without figures if it has none.
    ``rows``: writes the rows' predictions into the file that it gets.
    ``listed``: with the rows that the report may list.
    ``timestamp``: as :class:`Package` has it; by default now.
    ``problems``: what was missing before.
    """
    prefix, under = to.prefix, to.prefix.strip("/ ._-")
    data = datasets.described(evaluation, to.dataset)
    timestamp = int(time.time() * 1000) if timestamp is None else timestamp
    written: dict[str, bytes] = {}
    problems = list(problems)

    def attempt(what: str, action: Callable[[], object]) -> None:
        try:
            action()
        except Exception as error:
            kind = "" if isinstance(error, ImportError) else f"{type(error).__name__}: "
            problems.append(f"{what}: {kind}{error}")

    def keep(name: str, content: str | bytes) -> None:
        file = names.file_name(name, prefix)
        written[file] = content.encode("utf-8") if isinstance(content, str) else content
        write(f"{ARTIFACTS}/{file}", written[file])

    keep(names.EVALUATION_FILE, evaluation.to_json())
    if rows is not None:
        attempt("predictions", lambda: keep(names.PREDICTIONS_FILE, _in_memory(rows)))
    pictures: dict[str, Picture] = {}
    day = time.strftime("%Y-%m-%d", time.gmtime(timestamp / 1000))
    if to.figures is not False:
        about = {"run": to.run_name, "step": to.step, "data": data["name"], "date": day}
        attempt("figures", lambda: _draw(evaluation, pictures, problems, about, to.figures))
    images = {}
    files = {name: picture for name, picture in pictures.items() if picture.content}
    for picture in pictures.values():
        if picture.content:
            keep(picture.file, picture.content)
        if picture.chart:
            images[prefix + names.IMAGE_KEY] = names.file_name(picture.file, prefix)
            write(f"{CHARTS}/{names.file_name(picture.file, prefix)}", picture.chart)
    undrawn = tuple(problems)
    words = (
        f"Evaluation {quoted(under)}" if under else "",
        f"step {to.step}" if to.step is not None else "",
        to.dataset or "",
        f"run {to.run_id}" if to.run_id else "",
        f"model {to.model_id}" if to.model_id else "",
    )
    subtitle = BETWEEN.join(filter(None, (*words, day)))
    seen = {name: picture for name, picture in pictures.items() if picture.svg}
    page = partial(report_html, title=to.run_name or None, subtitle=subtitle, problems=undrawn)
    if report:
        attempt("report", lambda: keep(names.REPORT_FILE, page(evaluation, seen, rows=listed)))
    attempt("class table", lambda: keep(names.CLASSES_FILE, table_json(evaluation)))
    if isinstance(evaluation, Evaluation) and evaluation.segments:
        attempt("segment table", lambda: keep(names.SEGMENTS_FILE, segments_json(evaluation)))
    chosen = names.chosen_metrics(evaluation, to.metrics)
    finite = {prefix + name: value for name, value in chosen.items() if math.isfinite(value)}
    with_report = names.file_name(names.REPORT_FILE, prefix) in written
    place: dict[str, Any] = {one.name: getattr(to, one.name) for one in fields(Placed)}
    if to.tracking_uri is not None:
        place["tracking_uri"] = untrusted.without_credentials(to.tracking_uri)
    package = Package(
        **place,
        folder=None,
        metrics={name[: names.MAX_NAME]: value for name, value in finite.items()},
        tags=_tags(
            evaluation,
            prefix,
            [name for name in chosen if not math.isfinite(chosen[name])],
            written,
        ),
        images=images,
        table=names.file_name(names.CLASSES_FILE, prefix),
        dataset=data,
        description=description(evaluation, prefix, files, report=with_report),
        timestamp=timestamp,
        problems=tuple(problems),
    )
    write(MANIFEST, _manifest(package))
    return package


def build_into(
    evaluation: BaseEvaluation,
    folder: Path,
    *,
    listed: BaseEvaluation | None = None,
    **options: Any,
) -> Package:
    """Make the whole package in a given folder, with options of :class:`Destination`."""

    def write(name: str, content: bytes) -> None:
        write_private(folder / name, content)

    return replace(build(evaluation, write, Destination(**options), listed=listed), folder=folder)


def rewrite(package: Package, files: Mapping[str, bytes] = MappingProxyType({})) -> None:
    """Rewrite artifacts of a package, then its manifest; each file is replaced atomically."""
    assert package.folder is not None
    changed = {package.folder / ARTIFACTS / name: content for name, content in files.items()}
    write_whole(changed | {package.folder / MANIFEST: _manifest(package)}, private=True)


def _manifest(package: Package) -> bytes:
    plain = {name: value for name, value in vars(package).items() if name != "folder"}
    return json.dumps(
        {"schema": schemas.MANIFEST.newest, **plain}, ensure_ascii=False, indent=1
    ).encode("utf-8")


def _in_memory(write: Callable[[BinaryIO], object]) -> bytes:
    content = BytesIO()
    write(content)
    return content.getvalue()


def _draw(
    evaluation: BaseEvaluation,
    pictures: dict[str, Picture],
    problems: list[str],
    about: dict[str, Any],
    figures: Figures,
) -> None:
    from cmtrack.report.figures import About, draw_pictures

    wanted = "auto" if figures is True else figures or ()
    pictures |= draw_pictures(evaluation, problems, figures=wanted, about=About(**about))


def _tags(
    evaluation: BaseEvaluation, prefix: str, undefined: list[str], written: dict[str, bytes]
) -> dict[str, str]:
    tags = {"samples": f"{evaluation.n_samples:.15g}"}
    if not isinstance(evaluation, Evaluation):
        parts = {
            name: f"{evaluation.sizes[name]} {name}, {part}" for name, part in evaluation.design
        }
        tags |= {"kind": evaluation.kind, **parts}
    if evaluation.positive is not None:
        tags["positive"] = str(evaluation.positive)
    if evaluation.grouping is not None:
        tags["grouping"] = evaluation.grouping.describe()
    tags |= {name: text for name, text in evaluation.design if name == "costs"}
    if undefined:
        tags["undefined"] = ", ".join(undefined)
    if evaluation.warnings:
        tags["warnings"] = "\n".join(evaluation.warnings)
    ids = evaluation.statistics.row_ids
    entries = {
        "schema": str(schemas.EVALUATION.newest),
        "labels": evaluation.labels_digest,
        "row_ids": None if ids is None else str(ids),
    }
    readable = {names.tag(name, prefix): names.tag_text(text) for name, text in tags.items()}
    return names.with_digests(readable, prefix, entries | digests(written, prefix))


def digests(written: dict[str, bytes], prefix: str) -> dict[str, str]:
    """Digests that identify the written files, by the keys of :func:`cmtrack.tracking.names.digests`."""
    entries = {}
    for name in (names.EVALUATION_FILE, names.PREDICTIONS_FILE):
        file = names.file_name(name, prefix)
        if file in written:
            entries[names.digest_key(name)] = digest_of(written[file])
            # a regrouped evaluation may have pointed elsewhere
            if prefix and name == names.PREDICTIONS_FILE:
                entries[names.ROWS_FILE] = file
    return entries
