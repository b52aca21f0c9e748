"""A review with all that it is computed from in one file, and the verification of that file.

A bundle is untrusted: its files are checked against the digests of its manifest, the comparison is recomputed from the
statistics by the rule, and every number and sentence of its data is compared with that. The page in the bundle is not
compared: a fresh one is made of the recomputed comparison, and that is the one to read. Names, users, times, notes and
the like are as whoever made the bundle wrote them. Whoever changes the manifest changes its digest, which is what one
signs.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import re
import zipfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

from cmtrack import untrusted
from cmtrack.archive import FILE_NAME, ROWS_NAME
from cmtrack.base import BaseEvaluation
from cmtrack.comparison.compare import CompareOptions, compare_runs
from cmtrack.comparison.criterion import Criterion
from cmtrack.comparison.record import Record, versions
from cmtrack.comparison.result import Comparison
from cmtrack.comparison.rule import Rule, write_rule
from cmtrack.comparison.run import LeftOut, Listing, Run, StoppedRun
from cmtrack.comparison.spec import several
from cmtrack.evaluation import Evaluation
from cmtrack.evaluation.gates import Gate, GateResult
from cmtrack.evaluation.loading import loads
from cmtrack.files import write_whole
from cmtrack.removed import FAREWELL, STORED, WEIGHTS, RemovedFeature, reason
from cmtrack.report.review.data import as_plain, to_dict
from cmtrack.report.review.record import rule_of
from cmtrack.report.review.report import as_json, html, markdown
from cmtrack.schemas import BUNDLE
from cmtrack.statistics.predictions import Predictions
from cmtrack.untrusted import one_line, without_credentials

MANIFEST, RUNS, RULE, PAGE, TEXT, DATA = (
    "manifest.json",
    "runs.json",
    "rule.yaml",
    "review.html",
    "review.md",
    "review.json",
)
TOLERANCE = 1e-9
MAX_BYTES = 2 << 30
"""Most bytes of all files, once unpacked; beyond the first 256 MB at most 200 times those of the archive."""
_ALWAYS_READ = 256 << 20
_MAX_RATIO = 200
MAX_FILES = 20_000
_SINCE = (1980, 1, 1, 0, 0, 0)  # of every file: the same content, the same bytes
_OWN_TAGS = ("mlflow.runName", "mlflow.parentRunId", "mlflow.user")
_MANIFEST_KEYS = frozenset(("schema", "versions", "title", "rule", "files"))
_RUNS_KEYS = frozenset(
    (
        "judged",
        "criterion",
        "baseline",
        "stopped",
        "left_out",
        "passed_over",
        "looks",
        "notes",
        "record",
    )
)
_WRITTEN = "names, users, times and params of the runs, author, date, title and notes"
"""What a bundle cannot prove: it is as whoever made the bundle wrote it."""


# -- writing ---------------------------------------------------------------------------------------------------


def write(
    comparison: Comparison, path: Path, *, rows: bool = True, title: str | None = None
) -> Path:
    """Write a bundle; see :meth:`Comparison.bundle`."""
    if path.suffix.lower() != ".zip":
        raise ValueError(f"a bundle must end in .zip, got {path.name!r}")
    if comparison.listing is None or not comparison.judged or not comparison.how:
        raise ValueError(
            f"a bundle needs a comparison that cmtrack.compare made, with a judged run, got {comparison!r:.120}"
        )
    write_whole({path: packed(contents(comparison, rows=rows, title=title))})
    return path


def contents(
    comparison: Comparison, *, rows: bool = True, title: str | None = None
) -> dict[str, bytes]:
    """The files of a bundle by their names, the manifest last."""
    comparison = _of_kept_rows(comparison) if rows else comparison
    rule = rule_of(comparison)
    options = {name: comparison.how.get(name) for name in CompareOptions.deciding()}
    rule_file = write_rule(options, CompareOptions.defaults()) if rule is None else rule.content
    listed, files = _judged(comparison, rows)
    about = {
        "judged": listed,
        "criterion": {
            "metrics": comparison.criterion.metrics,
            "pareto": comparison.criterion.pareto,
        },
        "baseline": None if comparison.baseline is None else comparison.baseline.run_id,
        **_not_judged(comparison),
        "notes": comparison.notes,
        "record": asdict(comparison.record),
    }
    files |= {
        RULE: rule_file,
        RUNS: _json(about),
        PAGE: html(comparison, title, rows=rows).encode("utf-8"),
        TEXT: markdown(comparison, title).encode("utf-8"),
        DATA: as_json(comparison).encode("utf-8"),
    }
    manifest = {
        "schema": BUNDLE.newest,
        "versions": comparison.record.versions,
        "title": title,
        "rule": {"file": RULE if rule is None else rule.name, "given": rule is not None},
        "files": {
            name: {"sha256": _sha256(files[name]), "bytes": len(files[name])}
            for name in sorted(files)
        },
    }
    return {name: files[name] for name in sorted(files)} | {MANIFEST: _json(manifest)}


def packed(files: Mapping[str, bytes]) -> bytes:
    """A zip archive of these files; the same files give the same bytes."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, _SINCE)
            entry.create_system, entry.external_attr = 3, 0o100644 << 16
            entry.compress_type = (
                zipfile.ZIP_STORED if name.endswith(".parquet") else zipfile.ZIP_DEFLATED
            )
            archive.writestr(entry, content, compresslevel=6)
    return out.getvalue()


def sizes(path: Path) -> tuple[int, int]:
    """Bytes of a bundle, and of these the bytes of predictions by row."""
    with zipfile.ZipFile(path) as archive:
        rows = sum(
            entry.compress_size
            for entry in archive.infolist()
            if entry.filename.endswith(ROWS_NAME)
        )
    return path.stat().st_size, rows


def _judged(comparison: Comparison, rows: bool) -> tuple[list[dict[str, Any]], dict[str, bytes]]:
    """Facts of the judged runs, and their files; in the order of their ids."""
    read = _reads(comparison)
    listed, files = [], {}
    for place, candidate in enumerate(
        sorted(comparison.judged, key=lambda one: (one.run_id, one.name)), 1
    ):
        folder, evaluation = f"runs/{place:04}", candidate.evaluation
        files[f"{folder}/{FILE_NAME}"] = evaluation.to_json().encode("utf-8")
        status = "none" if evaluation.rows is None else "kept" if rows else "left out"
        if status == "kept":
            files[f"{folder}/{ROWS_NAME}"] = _rows_file(evaluation)
        listed.append({"run": _run_data(candidate.run, read), "folder": folder, "rows": status})
    return listed, files


def _rows_file(evaluation: BaseEvaluation) -> bytes:
    content = io.BytesIO()
    evaluation.write_rows(content)
    return content.getvalue()


def _of_kept_rows(comparison: Comparison) -> Comparison:
    """The comparison by the stored probabilities, with 7 digits: evaluations in memory have more."""
    evaluations, same = {}, True
    options = CompareOptions(
        **{name: comparison.how[name] for name in (*CompareOptions.deciding(), "rule")}
    )
    for candidate in comparison.judged:
        evaluation = candidate.evaluation
        held = evaluation.rows
        if (
            isinstance(evaluation, Evaluation)
            and isinstance(held, Predictions)
            and held.probabilities is not None
        ):
            stored = evaluation.with_rows(_rows_file(evaluation)).rows
            assert isinstance(stored, Predictions)
            if not np.array_equal(np.asarray(stored.probabilities), held.probabilities):
                same = False
                # groups are counted from the rows: they are counted again
                evaluation = options.prepared(
                    replace(evaluation, rows=replace(held, source=stored.source))
                )
        evaluations[candidate.run_id] = evaluation
    if same:
        return comparison
    assert comparison.listing is not None  # it was asked for
    anew = compare_runs(comparison.listing, evaluations, comparison.criterion, options)
    return replace(anew, notes=comparison.notes)


def _not_judged(comparison: Comparison) -> dict[str, Any]:
    """Statements on runs whose evaluations were not read: they cannot be recomputed."""
    listing, read = comparison.listing, _reads(comparison)
    assert listing is not None  # it was asked for
    left_out = [
        {"run": _run_data(one.run, read), "reason": one.reason, "last": one.last, "before": before}
        for before, some in ((True, listing.unreadable), (False, listing.incomplete))
        for one in some
    ]
    stopped = [
        {
            "run": _run_data(stop.run, read),
            "gates": [[result.gate.text, result.value] for result in stop.gates],
        }
        for stop in listing.stopped
    ]
    passed_over = [_run_data(run, read) for run in listing.passed_over]
    return {
        "stopped": stopped,
        "left_out": left_out,
        "passed_over": passed_over,
        "looks": listing.looks,
    }


def _reads(comparison: Comparison) -> set[str]:
    """Names of the tags and logged metrics that the rule reads, such as "tags.stage"."""
    how = comparison.how
    texts = several(how.get("tie_breakers") or ())
    texts += [text for text in (how.get("block"), how.get("model")) if text]
    return {text.strip().removesuffix(" asc").removesuffix(" desc").strip() for text in texts}


def _run_data(run: Run, read: set[str]) -> dict[str, Any]:
    """The facts of a run that its review shows or its rule reads; no password, and no other tag."""
    facts = {field.name: getattr(run, field.name) for field in fields(Run)}
    return facts | {
        "tracking_uri": without_credentials(run.tracking_uri),
        "artifact_uri": "",
        "metrics": {
            name: value for name, value in run.metrics.items() if f"metrics.{name}" in read
        },
        "tags": {
            name: text
            for name, text in run.tags.items()
            if name in _OWN_TAGS or f"tags.{name}" in read
        },
    }


def _json(data: Any) -> bytes:
    return (
        json.dumps(as_plain(data), ensure_ascii=False, indent=1, allow_nan=False) + "\n"
    ).encode("utf-8")


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


# -- verifying -------------------------------------------------------------------------------------------------


class NoBundle(ValueError):
    """The file is no bundle that can be verified."""


class Outcome(Enum):
    """The outcome of verifying a bundle; the value is the word for people."""

    VERIFIED = "verified"
    STATISTICS_ONLY = "statistics only: the review was not verified"
    REMOVED = FAREWELL
    CHANGED = "NOT as it was written"


@dataclass(frozen=True)
class Verification:
    """The result of verifying a bundle.

    ``files``: held to the manifest.
    ``numbers``: recomputed.
    ``problems``: files and numbers that are not what the bundle says; none of a bundle that is whole.
    ``removed``: what a feature wrote that this version no longer has, and what to use instead.
    ``not_recomputed``: parts of the review that could not be made anew, and why.
    ``stated``: facts that no bundle can prove, such as those on runs that were not judged.
    ``sha256``: digest of the manifest, which holds the digests of all files.
    ``rule``: the rule's file and digest.
    ``made_with``, ``read_with``: versions of cmtrack.
    ``page``: a fresh page of the recomputed comparison, since the bundle's is not compared; empty where it could not be
        recomputed.
    """

    files: int
    numbers: int
    problems: tuple[str, ...]
    removed: tuple[str, ...]
    not_recomputed: tuple[str, ...]
    stated: tuple[str, ...]
    sha256: str
    rule: str
    made_with: str
    read_with: str
    page: str = field(default="", repr=False)

    @property
    def outcome(self) -> Outcome:
        """Outcome of the verification: a review of which a part was not made anew is not verified."""
        if self.problems:
            return Outcome.CHANGED
        if self.removed:
            return Outcome.REMOVED
        return Outcome.STATISTICS_ONLY if self.not_recomputed else Outcome.VERIFIED

    @property
    def passed(self) -> bool:
        """True if all data of the review were recomputed from the bundle, and are the same."""
        return self.outcome is Outcome.VERIFIED


def verify(path: str | Path) -> Verification:
    """Check a bundle's files against its manifest, recompute its comparison, and compare the review's data with it.

    NoBundle if it is no bundle, a damaged archive, or one of a newer version; OSError if it cannot be read.
    """
    try:
        allowed = max(_ALWAYS_READ, _MAX_RATIO * Path(path).stat().st_size)
        files = untrusted.unzipped(Path(path), min(MAX_BYTES, allowed), MAX_FILES)
        manifest = _manifest(files)
    except ValueError as error:
        raise NoBundle(f"{path} is no bundle of cmtrack: {error}") from None
    result = _Compared()
    result.problems = list(_changed(files, manifest["files"]))
    if not result.problems:
        try:
            _recompute(files, manifest, result)
        except RemovedFeature as error:
            result.removed.append(str(error))
        except (
            KeyError,
            TypeError,
            ValueError,
            AttributeError,
            IndexError,
            OverflowError,
            RecursionError,
        ) as error:
            why = (
                str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
            )
            result.problems = [f"the comparison cannot be computed from the bundle: {why}"]
    rule = manifest["rule"]["file"] if manifest["rule"]["given"] else "no rule file was given"
    return Verification(
        files=len(files) - 1,
        numbers=result.numbers,
        problems=tuple(map(one_line, result.problems)),
        removed=tuple(map(one_line, result.removed)),
        not_recomputed=tuple(map(one_line, result.lacking)),
        stated=tuple(map(one_line, (_WRITTEN, *result.stated))),
        sha256=_sha256(files[MANIFEST]),
        rule=f"{one_line(rule)}, SHA-256 {_sha256(files.get(RULE, b''))}",
        made_with=one_line(manifest["versions"].get("cmtrack", "unknown")),
        read_with=versions().get("cmtrack", "unknown"),
        page=result.page,
    )


def _manifest(files: Mapping[str, bytes]) -> dict[str, Any]:
    if MANIFEST not in files:
        raise ValueError(f"it holds no {MANIFEST}")
    data = untrusted.parsed_json(files[MANIFEST])
    if not isinstance(data, dict):
        raise ValueError(f"{MANIFEST} must hold a mapping, got {type(data).__name__}")
    data = BUNDLE.migrated(data)
    rule, listed, made = data.get("rule"), data.get("files"), data.get("versions")
    if (
        not isinstance(rule, dict)
        or not isinstance(rule.get("file"), str)
        or not isinstance(rule.get("given"), bool)
    ):
        raise ValueError(f"{MANIFEST}: rule must hold file and given")
    if not isinstance(made, dict) or not all(isinstance(number, str) for number in made.values()):
        raise ValueError(f"{MANIFEST}: versions must map names to texts")
    if not isinstance(listed, dict) or not all(isinstance(one, dict) for one in listed.values()):
        raise ValueError(f"{MANIFEST}: files must map names to their digests and sizes")
    if not isinstance(data.get("title"), (str, type(None))):
        raise ValueError(f"{MANIFEST}: title must be a text")
    _refuse_unknown(data, _MANIFEST_KEYS, MANIFEST)
    return data


def _refuse_unknown(data: Mapping[str, Any], known: Collection[str], file: str) -> None:
    """ValueError if a file holds a key that no version writes: nobody would check it."""
    unknown = sorted(set(data) - set(known))
    if unknown:
        raise ValueError(f"{file} holds {unknown[0]!r:.80}, which no bundle has")


def _changed(files: Mapping[str, bytes], listed: Mapping[str, Any]) -> Iterator[str]:
    """Files that are not those of the manifest, and those without which nothing can be verified."""
    for name in sorted({*listed, *(set(files) - {MANIFEST}), RUNS, RULE, PAGE, TEXT, DATA}):
        if name not in files:
            yield f"{name} is missing"
        elif name not in listed:
            yield f"{name} was added: the manifest does not hold it"
        elif _sha256(files[name]) != listed[name].get("sha256"):
            yield f"{name} was changed: its SHA-256 is not that of the manifest"


def _recompute(files: Mapping[str, bytes], manifest: dict[str, Any], compared: _Compared) -> None:
    """Recompute the comparison, make the review anew, and compare both with the bundle."""
    about = untrusted.parsed_json(files[RUNS])
    stated = compared.without_removed(untrusted.parsed_json(files[DATA]))
    _refuse_unknown(about, _RUNS_KEYS, RUNS)
    evaluations, without_rows = {}, False
    for one in about["judged"]:
        evaluation = loads(files[f"{one['folder']}/{FILE_NAME}"].decode("utf-8"))
        if one["rows"] == "kept":
            evaluation = evaluation.with_rows(files[f"{one['folder']}/{ROWS_NAME}"])
        without_rows |= one["rows"] == "left out"
        evaluations[one["run"]["run_id"]] = evaluation
    by = about["criterion"]
    criterion = Criterion(tuple(by["metrics"]))
    if len(criterion.metrics) > 1 and not by["pareto"]:
        raise RemovedFeature(reason(WEIGHTS))
    rule = Rule.parse(files[RULE], manifest["rule"]["file"])
    options = CompareOptions(rule=rule)
    options.check()
    # 0.2 wrote the weights of a sum; of a single metric they say nothing
    stated["criterion"].pop("weights", None)
    if criterion.pareto and any(
        run["p_set"] is not None for one in stated["rankings"] for run in one["runs"]
    ):
        raise RemovedFeature(f"{DATA} has p-values of a Pareto front")
    if options.criterion is not None and options.criterion != criterion:
        compared.problems.append(f"{RULE} ranks by {options.criterion}, the review by {criterion}")
        return
    prepared = {run_id: options.prepared(evaluation) for run_id, evaluation in evaluations.items()}
    compared.stated = _stated_only(about)
    if without_rows:
        compared.lacking.append(
            "differences, p-values and standings: the rows that they need were left out"
        )
    read = {*criterion.metrics, *(gate.metric for gate in options.gates)}
    of_classes = [
        evaluation for evaluation in prepared.values() if isinstance(evaluation, Evaluation)
    ]
    custom = sorted(
        read & {metric.name for evaluation in of_classes for metric in evaluation.extra_metrics}
    )
    if custom:
        compared.lacking.append(
            f"differences in {', '.join(custom)}, which need its function: a bundle holds none"
        )
    if compared.lacking:
        _compare_values(stated, prepared, criterion, compared)
        return
    decided = {name: getattr(options, name) for name in CompareOptions.deciding()}
    # A removed option is ignored here: if it was not at its default, the rule named it and nothing came this far.
    known = {
        name: value for name, value in stated["how"].items() if reason(f"compare({name}=)") is None
    }
    stated["how"] = known
    asked = known | decided  # in the order of the call
    asked["rule"] = rule if manifest["rule"]["given"] else None
    comparison = compare_runs(_listing(about, asked), prepared, criterion, options)
    comparison = replace(comparison, notes=tuple(map(str, about["notes"])))
    paired = [pair["column"] for pair in stated["segments"] if pair["paired"]]
    if paired:
        columns = ", ".join(dict.fromkeys(paired))
        compared.lacking.append(
            f"differences by {columns}: a bundle does not hold each row's segment"
        )
    version, title = manifest["versions"].get("cmtrack"), manifest["title"]
    # which this version does not write
    foreign = version != versions().get("cmtrack") or bool(compared.removed)
    if foreign:
        compared.lacking.append(
            f"the review of cmtrack {version}, which may word and compute it differently"
        )
    anew = to_dict(comparison)
    if not _is_newer(version):  # a newer version may have added a key
        _refuse_unknown(stated, anew, DATA)
    skipped, derived = (
        {"segments", "summary", "notes"} if compared.lacking else set(),
        ("looks", "resolution"),
    )
    # a number is named rather than the sentence on it
    for texts in (False, True)[: 1 + (not compared.lacking)]:
        compared.numbers, compared.texts = 0, texts
        for name in sorted(
            set(anew) - skipped,
            key=lambda name: (name in ("summary", "notes"), name in derived, name),
        ):
            compared.compare(stated.get(name), anew[name], name)
    compared.page = html(comparison, title)
    if foreign:  # numbers of another version that differ prove nothing
        compared.lacking += compared.problems
        compared.problems = []


def _is_newer(version: str | None) -> bool:
    """True if this version of cmtrack is newer than the installed one."""

    def numbers(text: str | None) -> list[int]:
        return [int(number) for number in re.findall(r"\d{1,9}", text or "")[:3]]

    return numbers(version) > numbers(versions().get("cmtrack"))


def _stated_only(about: Mapping[str, Any]) -> list[str]:
    hows, out = (
        {
            "stopped": "stopped by {} logged values",
            "left_out": "left out",
            "passed_over": "passed over",
        },
        [],
    )
    for name, how in hows.items():
        if n := len(about[name]):
            runs, its = ("runs that were", "their") if n > 1 else ("run that was", "its")
            out.append(f"statements on {n} {runs} {how.format(its)}")
    return out


def _listing(about: Mapping[str, Any], asked: Mapping[str, Any]) -> Listing:
    runs = {one["run"]["run_id"]: _as_run(one["run"]) for one in about["judged"]}
    left_out = [
        (LeftOut(_as_run(o["run"]), str(o["reason"]), bool(o["last"])), o["before"])
        for o in about["left_out"]
    ]
    return Listing(
        tuple(runs.values()),
        stopped=tuple(
            StoppedRun(_as_run(o["run"]), tuple(map(_as_result, o["gates"])))
            for o in about["stopped"]
        ),
        passed_over=tuple(map(_as_run, about["passed_over"])),
        incomplete=tuple(one for one, before in left_out if not before),
        unreadable=tuple(one for one, before in left_out if before),
        baseline=None if about["baseline"] is None else runs[about["baseline"]],
        how=dict(asked),
        record=Record(**{field.name: about["record"][field.name] for field in fields(Record)}),
        looks=_as_looks(about.get("looks", (0, 0))),
    )


def _as_looks(data: Any) -> tuple[int, int]:
    runs, reviews = data
    if not all(type(number) is int and number >= 0 for number in (runs, reviews)):
        raise ValueError(f"{RUNS}: looks must be two whole numbers, got {data!r:.40}")
    return runs, reviews


def _as_run(data: Mapping[str, Any]) -> Run:
    """Read a run from a bundle; other types are refused."""
    kinds = {
        "start_time": int,
        "end_time": int,
        "model_size": int,
        "metrics": dict,
        "params": dict,
        "tags": dict,
        "model_ids": list,
        "datasets": list,
    }
    for attribute in fields(Run):
        kind = kinds.get(attribute.name, str)
        if not isinstance(data[attribute.name], kind) or isinstance(data[attribute.name], bool):
            raise ValueError(
                f"{RUNS}: {attribute.name} must be a {kind.__name__}, got {data[attribute.name]!r:.40}"
            )
    for name in ("params", "tags"):
        if not all(isinstance(text, str) for text in data[name].values()):
            raise ValueError(f"{RUNS}: {name} must hold texts")
    facts = {field.name: data[field.name] for field in fields(Run)}
    datasets = tuple((str(name), str(digest)) for name, digest in facts["datasets"])
    metrics = {name: float(value) for name, value in facts["metrics"].items() if value is not None}
    return Run(
        **facts | {"model_ids": tuple(facts["model_ids"]), "datasets": datasets, "metrics": metrics}
    )


def _as_result(data: Sequence[Any]) -> GateResult:
    gate, value = Gate.parse(data[0]), data[1]
    return gate.check({gate.metric: math.nan if value is None else float(value)}, {})


class _Compared:
    """Comparison of stated and recomputed numbers."""

    def __init__(self) -> None:
        self.texts, self.numbers, self.page = False, 0, ""
        self.problems: list[str] = []
        self.removed: list[str] = []
        self.lacking: list[str] = []
        self.stated: list[str] = []

    def without_removed(self, stated: Any, where: str = "") -> Any:
        """Return the data without the keys that only a removed feature wrote, and list those that have a value."""
        if isinstance(stated, list):
            return [self.without_removed(value, where) for value in stated]
        if not isinstance(stated, dict):
            return stated
        kept = {}
        for name, value in stated.items():
            key = f"{where}.{name}" if where else name
            sentence = f"{DATA} has the key {key}"
            if key not in STORED:
                kept[name] = self.without_removed(value, key)
            elif value not in (None, [], {}) and sentence not in self.removed:
                self.removed.append(sentence)
        return kept

    def compare(self, stated: Any, computed: Any, where: str) -> None:
        """Compare two values of JSON; the first difference is named."""
        if self.problems:
            return
        if isinstance(stated, dict) and isinstance(computed, dict):
            for name in [*stated, *(name for name in computed if name not in stated)]:
                self.compare(stated.get(name), computed.get(name), f"{where}.{name}")
        elif isinstance(stated, list) and isinstance(computed, list):
            if len(stated) != len(computed):
                self.problems.append(
                    f"{DATA}: {where} has {len(stated)} entries, recomputed {len(computed)}"
                )
            for place, (ours, theirs) in enumerate(zip(stated, computed, strict=False)):
                self.compare(ours, theirs, f"{where}[{place}]")
        elif isinstance(stated, str) and isinstance(computed, str):
            if self.texts and stated != computed:
                self.problems.append(
                    f"{DATA}: {where} reads {stated!r:.80}, recomputed {computed!r:.80}"
                )
        else:
            self.numbers += isinstance(stated, (int, float)) and not isinstance(stated, bool)
            if not _equal(stated, computed):
                self.problems.append(
                    f"{DATA}: {where} is {stated!r:.40}, recomputed {computed!r:.40}"
                )


def _equal(stated: Any, computed: Any) -> bool:
    numbers = all(
        isinstance(one, (int, float)) and not isinstance(one, bool) for one in (stated, computed)
    )
    if not numbers:
        return type(stated) is type(computed) and bool(stated == computed)
    return bool(abs(stated - computed) <= TOLERANCE * max(1.0, abs(stated)))


def _compare_values(
    stated: Mapping[str, Any],
    evaluations: Mapping[str, BaseEvaluation],
    criterion: Criterion,
    compared: _Compared,
) -> None:
    """Compare the values of single runs and their intervals: they need no rows."""
    for place, ranking in enumerate(stated["rankings"]):
        for run in ranking["runs"]:
            judged, where = evaluations[run["run_id"]], f"rankings[{place}], run {run['name']}"
            values = as_plain({name: judged.metrics[name] for name in criterion.metrics})
            compared.compare(run["values"], values, f"{where}, values")
            if criterion.single:
                name = criterion.metrics[0]
                ends = judged.intervals.get(name, (math.nan, math.nan))
                computed = as_plain([judged.metrics[name], *ends])
                compared.compare(
                    [run["value"], run["low"], run["high"]],
                    computed,
                    f"{where}, value, low and high",
                )
    if stated["repeated"] is not None:
        for model in stated["repeated"]["models"]:
            values = [
                evaluations[run["run_id"]].metrics[criterion.metrics[0]] for run in model["runs"]
            ]
            compared.compare(
                model["mean"], float(sum(values) / len(values)), f"model {model['name']}, mean"
            )
