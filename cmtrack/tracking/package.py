"""Everything that an evaluation leaves in a run, first as a folder on disk.

The folder is whole before anything is sent: what cannot be sent is not lost, and what is sent later is the same.
``artifacts/`` holds the files; ``manifest.json`` the metrics, tags and where they belong.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cmtrack.evaluation.face import Judged
from cmtrack.evaluation.storage import SCHEMA
from cmtrack.metrics.names import encode_label
from cmtrack.tracking import names
from cmtrack.tracking.cache import digest_of
from cmtrack.tracking.spool import MANIFEST
from cmtrack.tracking.tables import description
from cmtrack.tracking.views import Views, views_of

_MAX_TAG = 4000


@dataclass(frozen=True)
class Package:
    """A folder that is ready to be sent to a run.

    Attributes
    ----------
    folder : Path
    run_id : str or None
    prefix : str
    step : int or None
    model_id : str or None
    metrics : dict of str to float
        Finite values by the name that MLflow gets.
    tags : dict of str to str
    images : dict of str to str
        File in ``artifacts/`` by image key.
    table : str
        File in ``artifacts/`` that the artifact view shows as a table.
    dataset : dict of str to str
        Name and digest of the evaluated data.
    description : str
        Markdown for the run's description.
    timestamp : int
        When it was made, milliseconds since 1970: sending twice gives the same points of a metric.
    tracking_uri : str or None
        The store that it is meant for.
    problems : tuple of str
        What could not be made.
    """

    folder: Path
    run_id: str | None
    prefix: str
    step: int | None
    model_id: str | None
    metrics: dict[str, float]
    tags: dict[str, str]
    images: dict[str, str]
    table: str
    dataset: dict[str, str]
    description: str
    timestamp: int
    tracking_uri: str | None = None
    problems: tuple[str, ...] = field(default=())

    @property
    def artifacts(self) -> Path:
        """The folder of files to upload."""
        return self.folder / "artifacts"


def build(
    evaluation: Judged,
    folder: Path,
    *,
    run_id: str | None = None,
    prefix: str = "",
    step: int | None = None,
    model_id: str | None = None,
    metrics: str | Sequence[str] = "headline",
    tracking_uri: str | None = None,
    extra: Callable[[Path], object] | None = None,
) -> Package:
    """Write the whole package into ``folder``.

    The evaluation itself comes first. A figure or a table that fails is named in ``problems`` and left out; it
    never takes the rest with it. ``extra`` may write one more file (it gets its path).
    """
    artifacts = folder / "artifacts"
    artifacts.mkdir(parents=True)
    problems: list[str] = []

    def attempt(what: str, action: Callable[[], object]) -> None:
        try:
            action()
        except Exception as error:
            problems.append(f"{what}: {type(error).__name__}: {error}")

    def write(name: str, content: str | bytes) -> None:
        path = artifacts / names.file_name(name, prefix)
        path.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)

    write(names.EVALUATION_FILE, evaluation.to_json())
    views = views_of(evaluation)
    pictures: dict[str, bytes] = {}
    attempt("figures", lambda: _draw(evaluation, views, pictures, problems))
    files = {name: _picture_file(name) for name in pictures}
    for name, content in pictures.items():
        write(files[name], content)
    attempt("report", lambda: write(names.REPORT_FILE, views.report(evaluation, pictures)))
    attempt("class table", lambda: write(names.CLASSES_FILE, _as_table(evaluation, views)))
    if extra is not None:
        attempt("predictions", lambda: extra(artifacts / names.file_name(names.PREDICTIONS_FILE, prefix)))
    chosen = names.chosen_metrics(evaluation, metrics)
    finite = {prefix + name: value for name, value in chosen.items() if math.isfinite(value)}
    image = names.file_name(files[views.image], prefix) if views.image in files else None
    package = Package(
        folder=folder,
        run_id=run_id,
        prefix=prefix,
        step=step,
        model_id=model_id,
        metrics={_short(name): value for name, value in finite.items()},
        tags=_tags(evaluation, views, prefix, [name for name in chosen if not math.isfinite(chosen[name])])
        | _digests(artifacts, prefix),
        images={prefix + names.IMAGE_KEY: image} if image else {},
        table=names.file_name(names.CLASSES_FILE, prefix),
        dataset={"name": names.file_name("evaluated rows", prefix), "digest": evaluation.labels_digest},
        description=description(evaluation),
        timestamp=int(time.time() * 1000),
        tracking_uri=tracking_uri,
        problems=tuple(problems),
    )
    write_manifest(package)
    return package


def write_manifest(package: Package) -> None:
    """Write what a package holds beside its files, whole or not at all."""
    plain = {name: value for name, value in vars(package).items() if name != "folder"}
    partial = package.folder / f".{MANIFEST}"
    partial.write_text(json.dumps(plain, ensure_ascii=False, indent=1), encoding="utf-8")
    os.replace(partial, package.folder / MANIFEST)


def _draw(evaluation: Judged, views: Views, pictures: dict[str, bytes], problems: list[str]) -> None:
    from cmtrack.plots.drawing import as_pictures

    pictures |= as_pictures(lambda failed: views.figures(evaluation, on_error=failed), problems)


def _picture_file(name: str) -> str:
    return f"cmtrack_{encode_label(name).replace(' ', '_')}.png"


def _as_table(evaluation: Judged, views: Views) -> str:
    return str(views.table(evaluation).to_json(orient="split", index=False, force_ascii=False))


def _tags(evaluation: Judged, views: Views, prefix: str, undefined: list[str]) -> dict[str, str]:
    tags = views.tags | {
        "schema": str(SCHEMA),
        "labels_digest": evaluation.labels_digest,
        "samples": f"{evaluation.n_samples:.15g}",
    }
    if evaluation.statistics.row_ids is not None:
        tags["row_ids_digest"] = str(evaluation.statistics.row_ids)
    if evaluation.positive is not None:
        tags["positive"] = str(evaluation.positive)
    if evaluation.grouping is not None:
        tags["grouping"] = evaluation.grouping.describe()
    if undefined:
        tags["undefined"] = ", ".join(undefined)
    if evaluation.warnings:
        tags["warnings"] = "\n".join(evaluation.warnings)
    return {names.tag(name, prefix): _cut(text) for name, text in tags.items()}


def _digests(artifacts: Path, prefix: str) -> dict[str, str]:
    """What later readers know the files by."""
    tags = {}
    for name in (names.EVALUATION_FILE, names.PREDICTIONS_FILE):
        path = artifacts / names.file_name(name, prefix)
        if path.exists():
            tags[names.digest_tag(name, prefix)] = digest_of(path.read_bytes())
            if prefix and name == names.PREDICTIONS_FILE:  # a regrouped evaluation may have pointed elsewhere
                tags[names.tag(names.ROWS_FILE, prefix)] = path.name
    return tags


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_TAG else text[: _MAX_TAG - 1] + "…"


def _short(name: str) -> str:
    return name[: names.MAX_NAME]
