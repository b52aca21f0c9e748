"""Bundles, which are files that contain a review with all of its data, and their verification.

A bundle is untrusted. Verification checks the files in a bundle against the digests in the
manifest, and recomputes the comparison from the stored statistics and the rule. Every number and
sentence in the bundle's data is then compared with the recomputed comparison. Verification does not
check the page in the bundle, so read the new page of the recomputed comparison instead. Names,
users, times and notes cannot be verified. To protect a bundle against changes, sign the digest of
its manifest, because any change of the bundle changes this digest.
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

MANIFEST = "manifest.json"
RUNS = "runs.json"
RULE = "rule.yaml"
PAGE = "review.html"
TEXT = "review.md"
DATA = "review.json"
TOLERANCE = 1e-9
"""Largest relative difference between two numbers that are treated as equal.

Sums may differ slightly because processors round differently.
"""
MAX_BYTES = 2 << 30
"""Maximum total size in bytes of all unpacked files.

If the total size exceeds 256 MB, it must also be at most 200 times the size of the archive.
"""
_ALWAYS_READ = 256 << 20
_MAX_RATIO = 200
MAX_FILES = 20_000
_SINCE = (1980, 1, 1, 0, 0, 0)
"""The date of every file in an archive, which is the first date that a zip archive can store.

Because the date is fixed, archives with the same content consist of the same bytes.
"""
_PLAIN_FILE = 0o100644 << 16
"""Mode of every file in an archive, which makes it readable for all and writable for its owner."""
_UNIX = 3
"""Code of the operating system that made an archive, which decides how modes are interpreted."""
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
"""Parts of a review that are stated in a bundle but cannot be verified."""


# -- writing ---------------------------------------------------------------------------------------


def write(
    comparison: Comparison, path: Path, *, rows: bool = True, title: str | None = None
) -> Path:
    """Write a bundle; see :meth:`Comparison.bundle`."""
    if path.suffix.lower() != ".zip":
        raise ValueError(f"a bundle must end in .zip, got {path.name!r}")
    if comparison.listing is None or not comparison.judged or not comparison.how:
        raise ValueError(
            "a bundle needs a comparison that cmtrack.compare made, with a judged run, got "
            f"{comparison!r:.120}"
        )
    write_whole({path: packed(contents(comparison, rows=rows, title=title))})
    return path


def contents(
    comparison: Comparison, *, rows: bool = True, title: str | None = None
) -> dict[str, bytes]:
    """Return a mapping from names to contents of a bundle's files, with the manifest last."""
    if rows:
        comparison = _with_stored_probabilities(comparison)
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


def digest_of_manifest(files: Mapping[str, bytes]) -> str:
    """Return the SHA-256 of a bundle's manifest, which changes if any file changes."""
    return _sha256(files[MANIFEST])


def packed(files: Mapping[str, bytes]) -> bytes:
    """Return a zip archive of files, which is byte for byte the same for the same files."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, _SINCE)
            entry.create_system = _UNIX
            entry.external_attr = _PLAIN_FILE
            # Parquet is compressed already.
            entry.compress_type = zipfile.ZIP_DEFLATED
            if name.endswith(".parquet"):
                entry.compress_type = zipfile.ZIP_STORED
            archive.writestr(entry, data, compresslevel=6)
    return content.getvalue()


def sizes(path: Path) -> tuple[int, int]:
    """Return the size of a bundle in bytes, and the number of these bytes for predictions."""
    with zipfile.ZipFile(path) as archive:
        rows = sum(
            entry.compress_size
            for entry in archive.infolist()
            if entry.filename.endswith(ROWS_NAME)
        )
    return path.stat().st_size, rows


def _judged(comparison: Comparison, rows: bool) -> tuple[list[dict[str, Any]], dict[str, bytes]]:
    """Return facts about the evaluated runs and the files of these runs, sorted by run id."""
    read = _reads(comparison)
    candidates = sorted(comparison.judged, key=lambda candidate: (candidate.run_id, candidate.name))
    facts = []
    files = {}
    for number, candidate in enumerate(candidates, 1):
        folder = f"runs/{number:04}"
        evaluation = candidate.evaluation
        files[f"{folder}/{FILE_NAME}"] = evaluation.to_json().encode("utf-8")
        status = "left out"
        if evaluation.rows is None:
            status = "none"
        elif rows:
            status = "kept"
            files[f"{folder}/{ROWS_NAME}"] = _rows_file(evaluation)
        facts.append({"run": _run_data(candidate.run, read), "folder": folder, "rows": status})
    return facts, files


def _with_stored_probabilities(comparison: Comparison) -> Comparison:
    """Return the comparison with probabilities rounded to 7 digits, as a file stores them.

    Probabilities in memory have more digits, so a verification would compute different numbers.
    """
    if comparison.listing is None:
        raise ValueError("a bundle needs a comparison that cmtrack.compare made")
    options = CompareOptions(
        **{name: comparison.how[name] for name in (*CompareOptions.deciding(), "rule")}
    )
    evaluations = {}
    is_changed = False
    for candidate in comparison.judged:
        evaluation = candidate.evaluation
        stored = with_stored_rows(evaluation)
        if stored is not None:
            is_changed = True
            # The groups depend on the rows, so count them again.
            evaluation = options.prepared(stored)
        evaluations[candidate.run_id] = evaluation
    if not is_changed:
        return comparison
    recomputed = compare_runs(comparison.listing, evaluations, comparison.criterion, options)
    return replace(recomputed, notes=comparison.notes)


def with_stored_rows(evaluation: BaseEvaluation) -> Evaluation | None:
    """Return an evaluation with its probabilities rounded in the same way as in a file.

    Returns None if rounding changes nothing.
    """
    rows = evaluation.rows
    if not isinstance(evaluation, Evaluation) or not isinstance(rows, Predictions):
        return None
    if rows.probabilities is None:
        return None
    stored = evaluation.with_rows(_rows_file(evaluation)).rows
    if not isinstance(stored, Predictions):
        raise TypeError(f"stored rows must be predictions, got {type(stored).__name__}")
    if np.array_equal(np.asarray(stored.probabilities), rows.probabilities):
        return None
    return replace(evaluation, rows=replace(rows, source=stored.source))


def _rows_file(evaluation: BaseEvaluation) -> bytes:
    content = io.BytesIO()
    evaluation.write_rows(content)
    return content.getvalue()


def _not_judged(comparison: Comparison) -> dict[str, Any]:
    """Return the data on runs whose evaluations were not read, which cannot be recomputed."""
    listing = comparison.listing
    if listing is None:
        raise ValueError("a bundle needs a comparison that cmtrack.compare made")
    read = _reads(comparison)
    left_out = []
    for before, runs in ((True, listing.unreadable), (False, listing.incomplete)):
        for unranked in runs:
            facts = {"reason": unranked.reason, "last": unranked.last, "before": before}
            left_out.append({"run": _run_data(unranked.run, read), **facts})
    stopped = [
        {
            "run": _run_data(stop.run, read),
            "gates": [[result.gate.text, result.value] for result in stop.gates],
        }
        for stop in listing.stopped
    ]
    return {
        "stopped": stopped,
        "left_out": left_out,
        "passed_over": [_run_data(run, read) for run in listing.passed_over],
        "looks": listing.looks,
    }


def _reads(comparison: Comparison) -> set[str]:
    """Return the tags and logged metrics that the rule reads, such as "tags.stage"."""
    how = comparison.how
    texts = several(how.get("tie_breakers") or ())
    texts += [text for text in (how.get("block"), how.get("model")) if text]
    return {text.strip().removesuffix(" asc").removesuffix(" desc").strip() for text in texts}


def _run_data(run: Run, read: set[str]) -> dict[str, Any]:
    """Return the facts about a run that are shown in the review or read by the rule.

    Passwords, and tags that the rule does not read, are removed.
    """
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
    text = json.dumps(as_plain(data), ensure_ascii=False, indent=1, allow_nan=False)
    return f"{text}\n".encode()


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


# -- verifying -------------------------------------------------------------------------------------


class NoBundle(ValueError):
    """Error raised if a file is not a bundle that can be verified."""


class Outcome(Enum):
    """The outcome of verifying a bundle, whose value is the word that people read."""

    VERIFIED = "verified"
    STATISTICS_ONLY = "statistics only: the review was not verified"
    REMOVED = FAREWELL
    CHANGED = "NOT as it was written"


@dataclass(frozen=True)
class Verification:
    """The result of verifying a bundle.

    ``files``: number of files whose digests were compared with the manifest.
    ``numbers``: number of values that were recomputed and compared.
    ``problems``: files and numbers that differ from what the bundle states; empty if nothing was
        changed.
    ``removed``: data that belong to a feature that cmtrack no longer has, and what to use instead.
    ``not_recomputed``: parts of the review that could not be recomputed, and why.
    ``stated``: facts that are stated in a bundle but cannot be verified, such as facts about runs
        that were not evaluated.
    ``sha256``: digest of the manifest, which lists the digests of all files.
    ``rule``: the file name and the digest of the rule.
    ``made_with``: version of cmtrack that made the bundle.
    ``read_with``: version of cmtrack that verified the bundle.
    ``page``: a new page that shows the recomputed comparison, because the page in the bundle is not
        compared; empty if the comparison could not be recomputed.
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
        """The outcome; a review counts as verified only if all of its parts were recomputed."""
        if self.problems:
            return Outcome.CHANGED
        if self.removed:
            return Outcome.REMOVED
        return Outcome.STATISTICS_ONLY if self.not_recomputed else Outcome.VERIFIED

    @property
    def passed(self) -> bool:
        """True if all data of the review were recomputed from the bundle without a difference."""
        return self.outcome is Outcome.VERIFIED


def verify(path: str | Path) -> Verification:
    """Check a bundle's files, recompute its comparison, and compare the review's data with it.

    Raises NoBundle if the file is not a bundle, if the archive is damaged, or if a newer version of
    cmtrack made it. Raises OSError if the file cannot be read.
    """
    try:
        files = _unzipped(path)
        manifest = _manifest(files)
    except ValueError as error:
        raise NoBundle(f"{path} is not a bundle of cmtrack: {error}") from None
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
            # Messages of errors from other libraries are hard to understand without the type of the
            # error.
            reason_text = str(error)
            if not isinstance(error, ValueError):
                reason_text = f"{type(error).__name__}: {error}"
            result.problems = [f"the comparison cannot be computed from the bundle: {reason_text}"]
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


def _unzipped(path: str | Path) -> dict[str, bytes]:
    """Return the files of an archive by name; raise ValueError if it is too large or damaged."""
    allowed = max(_ALWAYS_READ, _MAX_RATIO * Path(path).stat().st_size)
    return untrusted.unzipped(Path(path), min(MAX_BYTES, allowed), MAX_FILES)


def read_evaluations(path: str | Path) -> dict[str, BaseEvaluation]:
    """Return the evaluations in a bundle by run id; verify the bundle first."""
    files = _unzipped(path)
    return _read_evaluations(files, untrusted.parsed_json(files[RUNS])["judged"])


def _manifest(files: Mapping[str, bytes]) -> dict[str, Any]:
    """Return the checked manifest; raise ValueError if the manifest is invalid."""
    if MANIFEST not in files:
        raise ValueError(f"{MANIFEST} is missing")
    data = untrusted.parsed_json(files[MANIFEST])
    if not isinstance(data, dict):
        raise ValueError(f"{MANIFEST} must contain a mapping, got {type(data).__name__}")
    data = BUNDLE.migrated(data)
    rule = data.get("rule")
    listed = data.get("files")
    made = data.get("versions")
    if (
        not isinstance(rule, dict)
        or not isinstance(rule.get("file"), str)
        or not isinstance(rule.get("given"), bool)
    ):
        raise ValueError(f"{MANIFEST}: rule must contain file and given")
    if not isinstance(made, dict) or not all(isinstance(number, str) for number in made.values()):
        raise ValueError(f"{MANIFEST}: versions must map names to texts")
    if not isinstance(listed, dict) or not all(isinstance(one, dict) for one in listed.values()):
        raise ValueError(f"{MANIFEST}: files must map names to their digests and sizes")
    if not isinstance(data.get("title"), (str, type(None))):
        raise ValueError(f"{MANIFEST}: title must be a text")
    _refuse_unknown(data, _MANIFEST_KEYS, MANIFEST)
    return data


def _refuse_unknown(data: Mapping[str, Any], known: Collection[str], file: str) -> None:
    """Raise ValueError if a file contains an unknown key, because no check would cover it."""
    unknown = sorted(set(data) - set(known))
    if unknown:
        raise ValueError(f"{file} holds {unknown[0]!r:.80}, which no bundle has")


def _changed(files: Mapping[str, bytes], listed: Mapping[str, Any]) -> Iterator[str]:
    """Yield a problem for each file that differs from the manifest or is missing."""
    for name in sorted({*listed, *(set(files) - {MANIFEST}), RUNS, RULE, PAGE, TEXT, DATA}):
        if name not in files:
            yield f"{name} is missing"
        elif name not in listed:
            yield f"{name} was added: it is not in the manifest"
        elif _sha256(files[name]) != listed[name].get("sha256"):
            yield f"{name} was changed: its SHA-256 differs from the manifest"


def _recompute(files: Mapping[str, bytes], manifest: dict[str, Any], compared: _Compared) -> None:
    """Recompute the comparison and its review, and compare both with the bundle."""
    about = untrusted.parsed_json(files[RUNS])
    stated = compared.without_removed(untrusted.parsed_json(files[DATA]))
    _refuse_unknown(about, _RUNS_KEYS, RUNS)
    evaluations = _read_evaluations(files, about["judged"])
    criterion = Criterion(tuple(about["criterion"]["metrics"]))
    if len(criterion.metrics) > 1 and not about["criterion"]["pareto"]:
        raise RemovedFeature(reason(WEIGHTS))
    rule = Rule.parse(files[RULE], manifest["rule"]["file"])
    options = CompareOptions(rule=rule)
    options.check()
    # Version 0.2 wrote the weights of a sum of metrics, which have no effect on a single metric.
    stated["criterion"].pop("weights", None)
    if criterion.pareto and _has_pvalues(stated):
        raise RemovedFeature(f"{DATA} has p-values of a Pareto front")
    if options.criterion is not None and options.criterion != criterion:
        compared.problems.append(f"{RULE} ranks by {options.criterion}, the review by {criterion}")
        return
    prepared = {run_id: options.prepared(evaluation) for run_id, evaluation in evaluations.items()}
    compared.stated = _stated_only(about)
    compared.lacking += _lacking(about, options, criterion, prepared)
    if compared.lacking:
        _compare_values(stated, prepared, criterion, compared)
        return
    # If a removed option does not have its default value, it is in the rule, which is refused
    # above. If it has its default value, it has no effect.
    stated["how"] = {
        name: value for name, value in stated["how"].items() if reason(f"compare({name}=)") is None
    }
    # Restore the order of the arguments in the call.
    how = stated["how"] | {name: getattr(options, name) for name in CompareOptions.deciding()}
    how["rule"] = rule if manifest["rule"]["given"] else None
    comparison = compare_runs(_listing(about, how), prepared, criterion, options)
    comparison = replace(comparison, notes=tuple(map(str, about["notes"])))
    _compare_review(stated, comparison, manifest, compared)


def _read_evaluations(
    files: Mapping[str, bytes], judged: Sequence[Mapping[str, Any]]
) -> dict[str, BaseEvaluation]:
    """Return the evaluations in a bundle by run id, with rows if the bundle contains them."""
    evaluations = {}
    for entry in judged:
        folder = entry["folder"]
        evaluation = loads(files[f"{folder}/{FILE_NAME}"].decode("utf-8"))
        if entry["rows"] == "kept":
            evaluation = evaluation.with_rows(files[f"{folder}/{ROWS_NAME}"])
        evaluations[entry["run"]["run_id"]] = evaluation
    return evaluations


def _has_pvalues(stated: Mapping[str, Any]) -> bool:
    """Return whether the rankings in a review contain the p-values of being the best."""
    return any(
        run["p_set"] is not None for ranking in stated["rankings"] for run in ranking["runs"]
    )


def _lacking(
    about: Mapping[str, Any],
    options: CompareOptions,
    criterion: Criterion,
    evaluations: Mapping[str, BaseEvaluation],
) -> Iterator[str]:
    """Yield the reasons why the comparison cannot be recomputed from the bundle."""
    if any(entry["rows"] == "left out" for entry in about["judged"]):
        yield "differences, p-values and standings: the rows that they need were left out"
    read = {*criterion.metrics, *(gate.metric for gate in options.gates)}
    custom = {
        metric.name
        for evaluation in evaluations.values()
        if isinstance(evaluation, Evaluation)
        for metric in evaluation.extra_metrics
    }
    if custom & read:
        names = ", ".join(sorted(custom & read))
        yield f"differences in {names}, which need its function: a bundle contains no functions"


def _compare_review(
    stated: dict[str, Any],
    comparison: Comparison,
    manifest: Mapping[str, Any],
    compared: _Compared,
) -> None:
    """Compare a review's data with the data of a recomputed comparison."""
    paired = dict.fromkeys(pair["column"] for pair in stated["segments"] if pair["paired"])
    if paired:
        compared.lacking.append(
            f"differences by {', '.join(paired)}: a bundle does not contain each row's segment"
        )
    version = manifest["versions"].get("cmtrack")
    compared.is_foreign = version != versions().get("cmtrack") or bool(compared.removed)
    if compared.is_foreign:
        compared.lacking.append(
            f"the review of cmtrack {version}, which may word and compute it differently"
        )
    computed = to_dict(comparison)
    # A newer version may have added a key.
    if not _is_newer(version):
        _refuse_unknown(stated, computed, DATA)
    _compare_data(stated, computed, compared)
    compared.page = html(comparison, manifest["title"])
    if compared.is_foreign:
        # A difference from the numbers that another version computed proves nothing.
        compared.lacking += compared.problems
        compared.problems = []


def _compare_data(
    stated: Mapping[str, Any], computed: Mapping[str, Any], compared: _Compared
) -> None:
    """Compare the parts of a review: first numbers and then, if all can be recomputed, texts.

    Only the first difference is reported, and a number tells the reader more than the sentence that
    contains the number.
    """

    def order(name: str) -> tuple[bool, bool, str]:
        return name in ("summary", "notes"), name in ("looks", "resolution"), name

    names = sorted(computed, key=order)
    passes = [False, True]
    if compared.lacking:
        names = [name for name in names if name not in ("segments", "summary", "notes")]
        passes = [False]
    for with_texts in passes:
        compared.texts = with_texts
        compared.numbers = 0
        for name in names:
            compared.compare(stated.get(name), computed[name], name)


def _is_newer(version: str | None) -> bool:
    """Return whether a version of cmtrack is newer than the installed version."""

    def numbers(text: str | None) -> list[int]:
        return [int(number) for number in re.findall(r"\d{1,9}", text or "")[:3]]

    return numbers(version) > numbers(versions().get("cmtrack"))


def _stated_only(about: Mapping[str, Any]) -> list[str]:
    """Return sentences that list the facts about runs that cannot be recomputed."""
    outcomes = {
        "stopped": "stopped by {} logged values",
        "left_out": "left out",
        "passed_over": "passed over",
    }
    statements = []
    for name, outcome in outcomes.items():
        n = len(about[name])
        if n == 1:
            statements.append(f"statements on 1 run that was {outcome.format('its')}")
        elif n:
            statements.append(f"statements on {n} runs that were {outcome.format('their')}")
    return statements


def _listing(about: Mapping[str, Any], how: Mapping[str, Any]) -> Listing:
    """Return the listing of runs that is stated in a bundle."""
    runs = {entry["run"]["run_id"]: _as_run(entry["run"]) for entry in about["judged"]}
    unreadable = []
    incomplete = []
    for entry in about["left_out"]:
        unranked = LeftOut(_as_run(entry["run"]), str(entry["reason"]), bool(entry["last"]))
        if entry["before"]:
            unreadable.append(unranked)
        else:
            incomplete.append(unranked)
    stopped = [
        StoppedRun(_as_run(entry["run"]), tuple(map(_as_result, entry["gates"])))
        for entry in about["stopped"]
    ]
    return Listing(
        tuple(runs.values()),
        stopped=tuple(stopped),
        passed_over=tuple(map(_as_run, about["passed_over"])),
        incomplete=tuple(incomplete),
        unreadable=tuple(unreadable),
        baseline=None if about["baseline"] is None else runs[about["baseline"]],
        how=dict(how),
        record=Record(**{field.name: about["record"][field.name] for field in fields(Record)}),
        looks=_as_looks(about.get("looks", (0, 0))),
    )


def _as_looks(data: Any) -> tuple[int, int]:
    runs, reviews = data
    if not all(type(number) is int and number >= 0 for number in (runs, reviews)):
        raise ValueError(f"{RUNS}: looks must be two whole numbers, got {data!r:.40}")
    return runs, reviews


def _as_run(data: Mapping[str, Any]) -> Run:
    """Return a run from a bundle; raise ValueError if a value has the wrong type."""
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
    facts = {attribute.name: data[attribute.name] for attribute in fields(Run)}
    for name, value in facts.items():
        kind = kinds.get(name, str)
        # A bool is also an int.
        if not isinstance(value, kind) or isinstance(value, bool):
            raise ValueError(f"{RUNS}: {name} must be a {kind.__name__}, got {value!r:.40}")
    for name in ("params", "tags"):
        if not all(isinstance(text, str) for text in facts[name].values()):
            raise ValueError(f"{RUNS}: {name} must contain texts")
    metrics = facts["metrics"].items()
    facts["metrics"] = {name: float(value) for name, value in metrics if value is not None}
    facts["datasets"] = tuple((str(name), str(digest)) for name, digest in facts["datasets"])
    facts["model_ids"] = tuple(facts["model_ids"])
    return Run(**facts)


def _as_result(data: Sequence[Any]) -> GateResult:
    """Return a gate's result for a logged value, where None stands for an undefined value."""
    gate = Gate.parse(data[0])
    value = math.nan if data[1] is None else float(data[1])
    return gate.check({gate.metric: value}, {})


class _Compared:
    """The comparison between the data that a bundle states and the recomputed data.

    ``texts``: whether to compare texts in addition to numbers.
    ``is_foreign``: whether a different version of cmtrack wrote the stated data.
    ``numbers``: the number of compared numbers.
    ``page``: the page of the recomputed comparison.
    ``lacking``: parts that cannot be recomputed, and the reason for each part.
    """

    def __init__(self) -> None:
        self.texts = False
        self.is_foreign = False
        self.numbers = 0
        self.page = ""
        self.problems: list[str] = []
        self.removed: list[str] = []
        self.lacking: list[str] = []
        self.stated: list[str] = []

    def without_removed(self, stated: Any, where: str = "") -> Any:
        """Return the data without keys that were written only by a removed feature.

        If a removed key has a value, the key is also added to a list.
        """
        if isinstance(stated, list):
            return [self.without_removed(value, where) for value in stated]
        if not isinstance(stated, dict):
            return stated
        data = {}
        for name, value in stated.items():
            key = f"{where}.{name}" if where else name
            sentence = f"{DATA} has the key {key}"
            if key not in STORED:
                data[name] = self.without_removed(value, key)
            elif value not in (None, [], {}) and sentence not in self.removed:
                self.removed.append(sentence)
        return data

    def compare(self, stated: Any, computed: Any, where: str) -> None:
        """Compare two JSON values; only the first difference is added to the problems."""
        if self.problems:
            return
        if isinstance(stated, dict) and isinstance(computed, dict):
            keys = stated | computed
            if self.is_foreign:  # an older version may lack a newer key
                keys = stated
            for name in keys:
                self.compare(stated.get(name), computed.get(name), f"{where}.{name}")
        elif isinstance(stated, list) and isinstance(computed, list):
            if len(stated) != len(computed):
                self._differ(where, f"has {len(stated)} entries", str(len(computed)))
            for place, (ours, theirs) in enumerate(zip(stated, computed, strict=False)):
                self.compare(ours, theirs, f"{where}[{place}]")
        elif isinstance(stated, str) and isinstance(computed, str):
            if self.texts and stated != computed:
                self._differ(where, f"reads {stated!r:.80}", f"{computed!r:.80}")
        else:
            if _is_number(stated):
                self.numbers += 1
            if not _equal(stated, computed):
                self._differ(where, f"is {stated!r:.40}", f"{computed!r:.40}")

    def _differ(self, where: str, stated: str, computed: str) -> None:
        self.problems.append(f"{DATA}: {where} {stated}, recomputed {computed}")


def _equal(stated: Any, computed: Any) -> bool:
    """Return whether two JSON values are equal, if numbers may differ by the tolerance."""
    if not _is_number(stated) or not _is_number(computed):
        return type(stated) is type(computed) and bool(stated == computed)
    return bool(abs(stated - computed) <= TOLERANCE * max(1.0, abs(stated)))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _compare_values(
    stated: Mapping[str, Any],
    evaluations: Mapping[str, BaseEvaluation],
    criterion: Criterion,
    compared: _Compared,
) -> None:
    """Compare the values and intervals of individual runs, which do not require rows."""
    first_metric = criterion.metrics[0]
    for place, ranking in enumerate(stated["rankings"]):
        for run in ranking["runs"]:
            evaluation = evaluations[run["run_id"]]
            where = f"rankings[{place}], run {run['name']}"
            values = as_plain({name: evaluation.metrics[name] for name in criterion.metrics})
            compared.compare(run["values"], values, f"{where}, values")
            if criterion.single:
                interval = evaluation.intervals.get(first_metric, (math.nan, math.nan))
                numbers = as_plain([evaluation.metrics[first_metric], *interval])
                stated_numbers = [run["value"], run["low"], run["high"]]
                compared.compare(stated_numbers, numbers, f"{where}, value, low and high")
    if stated["repeated"] is not None:
        for model in stated["repeated"]["models"]:
            values = [evaluations[run["run_id"]].metrics[first_metric] for run in model["runs"]]
            mean = float(sum(values) / len(values))
            compared.compare(model["mean"], mean, f"model {model['name']}, mean")
