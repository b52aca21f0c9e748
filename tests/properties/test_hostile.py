"""Files and names from others: nothing in them is executed, nothing outside the folder is touched, no crash."""

from __future__ import annotations

import base64
import json
import os
import re
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import mlflow
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings

from cmtrack import (
    Costs,
    Evaluation,
    Grouping,
    Prefix,
    compare,
    evaluate,
    evaluate_families,
    evaluate_spans,
    load_evaluation,
    log_evaluation,
)
from cmtrack.archive import checked_table
from cmtrack.base import BaseEvaluation
from cmtrack.cli import main
from cmtrack.evaluation import loads
from cmtrack.metrics import decode_label, encode_label
from cmtrack.tracking import build_into

# Inside: `push` would send each changed entry that still reads, and take a hundred times as long.
from cmtrack.tracking.entry_file import read
from support.problems import random_guesses, random_labels, random_problem

pytestmark = pytest.mark.slow

Y, _, P = random_problem(0, n=60, k=3, skill=0.0)
JUDGED = evaluate(Y, y_prob=P, grouping=Grouping({"a": [0, 1], "b": [2]}, "strict", name="ab"))
TEXT = JUDGED.to_json()

NUMBERS = st.sampled_from([-1, -0.5, 1e-300, 1e-99, 0.5, 5, 10**15, 1e99, 1e308])
PLAIN = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 10**20),
    st.floats(allow_nan=False),
    st.text(max_size=8),
    st.lists(st.integers(-3, 3), max_size=3),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)


def places(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """All paths into nested data."""
    out = [path] if path else []
    if isinstance(data, dict):
        for key in data:
            out += places(data[key], (*path, key))
    elif isinstance(data, list):
        for key in range(min(len(data), 4)):
            out += places(data[key], (*path, key))
    return out


def changed(data: Any, path: tuple[Any, ...], value: Any) -> Any:
    """A copy with another value at a path; REMOVED takes it out."""
    copy = json.loads(json.dumps(data))
    at = copy
    for key in path[:-1]:
        at = at[key]
    if value is REMOVED:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return copy


REMOVED = object()
REFUSED = "^(this is not a cmtrack evaluation: |the kind of the evaluation is |the evaluation (has schema|is damaged: ))"
DATA = json.loads(TEXT)
PART = 1 if os.environ.get("CMTRACK_TEST_ALL") else 5
FUZZ = settings(max_examples=200 // PART, deadline=None, suppress_health_check=list(HealthCheck))


def read_or_refused(reader: Callable[[], Any], words: str) -> Any:
    """What a reader gives; None where it refuses, which it has to do in such words and not in those of a library."""
    try:
        return reader()
    except ValueError as error:
        refused = str(error)
    assert re.search(words, refused), refused
    return None


def opens(text: str) -> None:
    """Either it is refused in words of its own, or it is an evaluation that has all its numbers."""
    evaluation = read_or_refused(lambda: loads(text), REFUSED)
    if evaluation is None:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        assert isinstance(evaluation.metrics, dict)
        assert evaluation.intervals.keys() <= evaluation.metrics.keys()
        assert evaluation.standard_errors.keys() <= evaluation.metrics.keys()
    assert loads(evaluation.to_json()) == evaluation


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hostile")


def of_many_kinds() -> dict[str, BaseEvaluation]:
    """Evaluations that have every statistic among them."""
    rng = np.random.default_rng(3)
    halves = rng.integers(0, 2, 60)
    two = np.where(halves, 0.6, 0.4) + rng.uniform(-0.3, 0.3, 60)
    weights = rng.uniform(0.5, 1.5, 60)
    left, right = (
        [(0, 0, 2, "a"), (0, 3, 5, "b"), (1, 1, 2, "a")],
        [(0, 0, 2, "a"), (1, 1, 2, "b"), (2, 1, 2, "b")],
    )
    costs = Costs({(0, 1): 2.0, (1, 2): 3.0})
    sets = [{"a.1", "a.2"}, {"b.1"}, set()], [{"a.1"}, {"b.2", "a.2"}, {"b.1"}]
    return {
        "grouped": JUDGED,
        "without scores": evaluate(Y, P.argmax(axis=1)),
        "weighted": evaluate(
            Y,
            y_prob=P,
            grouping=JUDGED.grouping,
            sample_weight=weights,
            row_ids=range(60),
            costs=costs,
        ),
        "repeated rows": evaluate(halves, y_prob=two, sample_weight=1 + Y),
        "clusters": evaluate(Y, y_prob=P, groups=np.arange(60) // 5),
        "segments": evaluate(
            Y, y_prob=P, segments={"half": halves, "letter": np.array(list("xyz"))[Y]}
        ),
        "decision values": evaluate(halves, y_score=two - 0.5),
        "target": evaluate(halves, y_prob=two, calibration=(halves[::-1], two[::-1]), target=two),
        "target of classes": evaluate(Y, y_prob=P, calibration=(Y, P), target=P[:30]),
        "spans": evaluate_spans(left, right),
        "families": evaluate_families(*sets, Prefix(".")),
    }


KINDS = {name: json.loads(evaluation.to_json()) for name, evaluation in of_many_kinds().items()}
TO_READ = ("metrics", "intervals", "undefined", "warnings")
PLACES = {
    name: [path for path in places(data) if path[0] not in TO_READ] for name, data in KINDS.items()
}


@FUZZ
@pytest.mark.parametrize("kind", KINDS, ids=lambda name: name.replace(" ", "-"))
@given(data=st.data())
def test_an_evaluation_with_anything_anywhere_is_refused_or_has_all_its_numbers(kind, data):
    path = data.draw(st.sampled_from(PLACES[kind]))
    opens(
        json.dumps(
            changed(KINDS[kind], path, data.draw(st.one_of(PLAIN, NUMBERS, st.just(REMOVED))))
        )
    )


@FUZZ
@given(st.integers(0, len(TEXT)), st.integers(0, 30), st.text(max_size=10))
def test_an_evaluation_with_other_characters_is_refused_or_has_all_its_numbers(start, length, text):
    opens(TEXT[:start] + text + TEXT[start + length :])


@settings(FUZZ, max_examples=150 // PART)
@given(st.integers(0, len(TEXT) - 1))
def test_no_beginning_of_an_evaluation_loads_as_whole(scratch, end):
    file = scratch / "cmtrack_evaluation.json"
    file.write_text(TEXT[:end], encoding="utf-8")
    with pytest.raises(ValueError, match="this is not a cmtrack evaluation"):
        Evaluation.load(file)


@pytest.mark.parametrize(
    "text",
    [
        "!!python/object/apply:os.system ['touch hacked']",
        "!!python/object/new:os.system ['touch hacked']",
        "groups: !!python/name:os.system",
        "groups: {a: [0], b: [1]}\nmode: !!python/object/apply:os.system ['touch hacked']",
        "groups: &a [*a]",
        "groups: {a: {from: 0, to: 1.0e+300}, b: [1]}",
        "groups: {a: {from: 0, to: 100000000000}, b: [1]}",
        "- " * 5000,
        "{" * 5000,
        "a: &a [x,x]\nb: &b [*a,*a]\nc: &c [*b,*b]\ngroups: {a: *c, b: [1]}",
    ],
)
def test_a_grouping_file_builds_no_objects(tmp_path, monkeypatch, text):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "g.yaml").write_text(text)
    with pytest.raises((ValueError, TypeError)):
        Grouping.from_file(tmp_path / "g.yaml")
    assert not (tmp_path / "hacked").exists()


@settings(FUZZ, max_examples=300 // PART)
@given(st.text(max_size=60))
def test_any_text_is_a_grouping_or_refused(scratch, text):
    (scratch / "g.yaml").write_text(text, encoding="utf-8", errors="replace")
    try:
        grouping = Grouping.from_file(scratch / "g.yaml")
    except (ValueError, TypeError):
        return
    assert isinstance(grouping, Grouping)


# -- the spool -------------------------------------------------------------------------------------------------------


def push(folder: Path | None = None) -> list[dict[str, Any]]:
    """What ``cmtrack push`` says of each entry of a spool."""
    where = [] if folder is None else ["--folder", str(folder)]
    run = CliRunner().invoke(main, ["push", *where, "--json"])
    assert run.exit_code in (0, 1), run.output
    return json.loads(run.stdout)["entries"]


def entry(folder: Path) -> Path:
    build_into(JUDGED, folder, run_id="r", tracking_uri="sqlite:///x.db")
    return folder


def entry_of_0_2(folder: Path) -> Path:
    """The same, with the file that cmtrack 0.2 wrote in place of entry.json."""
    file = entry(folder) / "entry.json"
    values = json.loads(file.read_text(encoding="utf-8"))
    for name in ("metric_names", "dataset_name", "has_rows"):
        del values[name]
    (folder / "manifest.json").write_text(
        json.dumps(values | {"schema": 2, "on_existing": "replace"}), encoding="utf-8"
    )
    file.unlink()
    return folder


ENTRIES = {"entry.json": entry, "manifest.json": entry_of_0_2}


@pytest.fixture(scope="module", params=ENTRIES)
def stored(request, scratch) -> tuple[Path, dict[str, Any]]:
    file = ENTRIES[request.param](scratch / request.param) / request.param
    return file, json.loads(file.read_text(encoding="utf-8"))


@FUZZ
@given(data=st.data())
def test_an_entry_with_anything_anywhere_is_refused_or_reads(stored, data):
    file, good = stored
    folder = file.parent
    path = data.draw(st.sampled_from(places(good)))
    bad = changed(good, path, data.draw(st.one_of(PLAIN, st.just(REMOVED))))
    file.write_text(json.dumps(bad), encoding="utf-8")
    package = read_or_refused(
        lambda: read(folder),
        r"\bmust | is damaged: |names a file that|has schema|is not a finite number",
    )
    if package is None:
        return
    assert all(name.startswith("cmtrack.") for name in package.tags)
    assert set(package.images.values()) <= set(package.files)


@pytest.mark.parametrize("name", ENTRIES)
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"images": {"k": "../../secret.png"}}, "names a file that is not in the entry"),
        ({"images": {"k": "/etc/passwd"}}, "names a file that is not in the entry"),
        ({"table": "../up.json"}, "table must be a plain name"),
        ({"prefix": "../"}, "prefix must start with"),
        ({"tags": {"mlflow.user": "root"}}, "tags must be named cmtrack"),
        ({"metrics": {"a": "1"}}, "metrics must be finite numbers"),
        ({"metrics": {"a": True}}, "metrics must be finite numbers"),
        ({"run_id": 3}, "run_id must be a str, got int"),
        ({"dataset": {"name": "x"}}, "dataset must have name and digest"),
    ],
)
def test_an_entry_names_nothing_outside_its_folder(tmp_path, change, words, name):
    folder = ENTRIES[name](tmp_path / "entry")
    good = json.loads((folder / name).read_text(encoding="utf-8"))
    (folder / name).write_text(json.dumps(good | change), encoding="utf-8")
    with pytest.raises(ValueError, match=words):
        read(folder)


@pytest.mark.parametrize(
    ("file", "unfinished"),
    [
        ("entry.json", False),
        ("entry.json", True),
        ("manifest.json", False),
        ("intent.json", True),
    ],
)
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"run_id": "../1"}, "run_id must be an id of letters"),
        ({"model_id": 3}, "model_id must be a str, got int"),
        ({"step": True}, "step must be a whole number, got True"),
        ({"prefix": ["a"]}, "prefix must be a str, got list"),
        ({"tracking_uri": "ftp://host"}, "a tracking URI must have one of the schemes"),
    ],
    ids=["run", "model", "step", "prefix", "store"],
)
def test_every_file_of_an_entry_says_where_it_belongs_under_the_same_checks(
    tmp_path, file, unfinished, change, words
):
    good = {
        "schema": 1,
        "run_id": "1" * 32,
        "model_id": None,
        "prefix": "",
        "step": None,
        "tracking_uri": "http://host:1",
    }
    if not unfinished:
        folder = ENTRIES[file](tmp_path / "20260101T000000000000-00000000")
        good = json.loads((folder / file).read_text(encoding="utf-8"))
    else:  # of an evaluation whose process was killed before it was built
        folder = tmp_path / ".20260101T000000000000-00000000"
        folder.mkdir(mode=0o700)
    (folder / file).write_text(json.dumps(good | change), encoding="utf-8")
    (folder / file).chmod(0o600)
    os.utime(folder / file, (0, 0))
    os.utime(folder, (0, 0))
    (pushed,) = push(tmp_path)
    assert pushed["status"] == "refused"
    assert words in pushed["reason"]


@pytest.mark.parametrize("name", ENTRIES)
def test_an_entry_with_infinite_numbers_is_refused(tmp_path, name):
    folder = ENTRIES[name](tmp_path / "entry")
    text = (folder / name).read_text(encoding="utf-8")
    (folder / name).write_text(re.sub(r'("multiclass/accuracy": )[\d.]+', r"\1Infinity", text))
    with pytest.raises(ValueError, match="must not contain Infinity"):
        read(folder)


def test_links_and_folders_among_the_files_are_refused(tmp_path):
    (tmp_path / "secret").write_text("s")
    folder = entry(tmp_path / "entry")
    (folder / "artifacts" / "link.txt").symlink_to(tmp_path / "secret")
    with pytest.raises(ValueError, match=r"artifacts must be plain files, got 'link\.txt'"):
        read(folder)
    (folder / "artifacts" / "link.txt").unlink()
    (folder / "artifacts" / "deeper").mkdir()
    with pytest.raises(ValueError, match="artifacts must be plain files, got 'deeper'"):
        read(folder)


def test_a_damaged_entry_is_refused_and_stays_and_takes_no_other_with_it(store, tmp_path):
    run_id = store.create_run("1").info.run_id
    for place in ("a", "b"):
        build_into(JUDGED, tmp_path / "cmtrack_spool" / place, run_id=run_id)
    file = tmp_path / "cmtrack_spool" / "a" / "artifacts" / "cmtrack_evaluation.json"
    file.write_bytes(file.read_bytes()[:-30])
    (tmp_path / "cmtrack_spool" / "c").symlink_to(tmp_path)  # no entry
    (tmp_path / "cmtrack_spool" / "d.txt").write_text("nor this")
    first, second = push()
    assert (first["status"], second["status"]) == ("refused", "sent")
    assert "cmtrack_evaluation.json is damaged" in first["reason"]
    assert Path(first["entry"]).is_dir()
    assert load_evaluation(run_id) == JUDGED


# -- predictions -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def parquet(scratch) -> bytes:
    JUDGED.write_rows(scratch / "p.parquet")
    return (scratch / "p.parquet").read_bytes()


@FUZZ
@given(data=st.data())
def test_predictions_with_other_bytes_are_refused_or_read(parquet, data):
    start = data.draw(st.integers(0, len(parquet)))
    inserted, length = data.draw(st.binary(max_size=12)), data.draw(st.integers(0, 40))
    content = parquet[:start] + inserted + parquet[start + length :]
    found = read_or_refused(lambda: JUDGED.with_rows(content), "the predictions ")
    assert found is None or len(found.rows) == 60


def no_table_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow.parquet as pq

    def read(*_: object, **__: object) -> None:
        raise AssertionError("it was read")

    monkeypatch.setattr(pq, "read_table", read)
    monkeypatch.setattr(pq.ParquetFile, "read", read)


def written(columns: dict[str, Any]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), file, compression="zstd")
    return bytes(file.getvalue())


BOMBS: dict[str, tuple[int, Callable[[], dict[str, Any]], str]] = {
    "more rows than the evaluation": (60, lambda: many("y_true", "y_pred"), "must have 60 rows"),
    "rows without end, as said": (
        3_000_000,
        lambda: many("y_true", "y_pred", "sample_weight"),
        "must not be larger",
    ),
    "texts for probabilities": (
        2,
        lambda: {"y_true": ["0"] * 2, "y_pred": ["0"] * 2, "prob/0": ["a"] * 2},
        "prob/0",
    ),
    "lists for labels": (1, lambda: {"y_true": [[["0"]]], "y_pred": ["0"]}, "y_true"),
    "one huge text": (
        1,
        lambda: {"y_true": ["0" * (40 << 20)], "y_pred": ["0"]},
        "must not be larger",
    ),
}


def many(*names: str) -> dict[str, Any]:
    """Columns of 3 million rows in some kB."""
    import pyarrow as pa

    zeros = pa.DictionaryArray.from_arrays(pa.array(np.zeros(3_000_000, np.int32)), pa.array(["0"]))
    return {name: np.zeros(3_000_000) if name == "sample_weight" else zeros for name in names}


@pytest.mark.parametrize("bomb", BOMBS, ids=lambda name: name.replace(" ", "-"))
def test_a_parquet_bomb_is_refused_before_it_is_read(monkeypatch, bomb):
    rows, columns, said = BOMBS[bomb]
    content = written(columns())
    assert len(content) < 100_000
    monkeypatch.setattr("cmtrack.archive._ALWAYS_READ", 1 << 24)
    no_table_is_read(monkeypatch)
    with pytest.raises(ValueError, match=f"predictions .*{said}"):
        checked_table(content, rows, ("y_true", "y_pred"), ("sample_weight", "prob/0"))


def test_other_columns_of_a_parquet_file_are_not_read():
    content = written({"y_true": ["0"], "y_pred": ["0"], "else": [b"0" * (32 << 20)]})
    assert checked_table(content, 1, ("y_true", "y_pred"), ("group",)).column_names == [
        "y_true",
        "y_pred",
    ]


def test_predictions_of_other_rows_are_refused(parquet, monkeypatch):
    no_table_is_read(monkeypatch)
    with pytest.raises(ValueError, match="must have 3 rows, the number in the evaluation, got 60"):
        evaluate([0, 1, 2], [0, 1, 2]).with_rows(parquet)


def packed(*shape: int) -> dict[str, Any]:
    """An array of zeros as it stands in a file."""
    content = zlib.compress(bytes(8 * int(np.prod(shape))), 9)
    return {"dtype": "<i8", "shape": list(shape), "zlib": base64.b64encode(content).decode()}


DIGEST = DATA["statistics"]["digest"]
LARGE = {"dtype": "<i8", "shape": [1 << 26], "zlib": ""}  # 512 MB, as it says
ZLIB_BOMBS = {
    "a matrix of other classes": (
        {"digest": DIGEST, "matrix": packed(2000, 2000)},
        r"shape \(3, 3\), got \(2000",
    ),
    "moments of other classes": (
        {
            **DATA["statistics"],
            "moments": {name: packed(2000, 3) for name in ("n", "mean", "m2", "m3", "m4")},
        },
        "must have shape",
    ),
    "many arrays": (
        {"digest": DIGEST, "scores": {f"{k}": LARGE for k in range(20)}},
        "its arrays must not be larger",
    ),
    "many arrays of many scores": (
        {"digest": DIGEST, "class_scores": [{"counts": LARGE}] * 20},
        "its arrays must not be larger",
    ),
    "counts in planes": (
        {
            **DATA["statistics"],
            "ranks": {"dtype": "<i8", "shape": [3, 3], "planes": packed(10**6)["zlib"]},
        },
        "must be 72, got more",
    ),
    "scores of more classes": (
        {**DATA["statistics"], "class_scores": []},
        "counts must be for 3 scores",
    ),
    "hits of more classes": (
        {**DATA["statistics"], "hits": {"accept": packed(1, 2000, 2000), "tables": []}},
        r"shape \(any, 3, 3\), got \(1, 2000",
    ),
    "decisions of more classes": (
        {
            **DATA["statistics"],
            "decisions": dict.fromkeys(("costs", "counts", "mean", "m2"), packed(2000, 2000)),
        },
        "must have shape",
    ),
    "squares of squares": (
        {"squares": {"squares": {"a": LARGE, "b": LARGE, "c": LARGE}}},
        "its arrays must not be larger",
    ),
    "more than it says": (
        {
            **DATA["statistics"],
            "scores": {"exact": True, "values": {**packed(10**6), "shape": [3]}, "counts": []},
        },
        "must be 24, got more",
    ),
    "a shape without end": (
        {"digest": DIGEST, "matrix": {**LARGE, "shape": [1 << 40] * 8}},
        "must not need more than",
    ),
    "a shape of many sides": (
        {"digest": DIGEST, "matrix": {**LARGE, "shape": [1] * 100_000}},
        "must not need more than",
    ),
    "a shape of texts": (
        {"digest": DIGEST, "matrix": {**LARGE, "shape": ["3", "3"]}},
        "must not need more than",
    ),
}


@pytest.mark.parametrize("bomb", ZLIB_BOMBS, ids=lambda name: name.replace(" ", "-"))
def test_arrays_that_unpack_to_more_than_an_evaluation_holds_are_refused(bomb):
    statistics, said = ZLIB_BOMBS[bomb]
    with pytest.raises(ValueError, match=said):
        loads(json.dumps({**DATA, "statistics": statistics}))


@pytest.mark.parametrize("place", ["", "labels", "grouping", "statistics", "notes"])
def test_json_that_is_nested_without_end_is_refused(scratch, place):
    deep = "[" * 200_000 + "]" * 200_000
    text = deep if not place else json.dumps({**DATA, place: "HERE"}).replace('"HERE"', deep)
    (scratch / "cmtrack_evaluation.json").write_text(text)
    with pytest.raises(ValueError, match="nested more deeply"):
        Evaluation.load(scratch)


@pytest.mark.parametrize(
    "number", ["9" * 5000, "1e999", "-1e999", "NaN", "1" + "0" * 400], ids=lambda text: text[:4]
)
def test_numbers_without_end_are_refused(number):
    for place in ("confidence_level", "schema"):
        with pytest.raises(ValueError, match="evaluation"):
            loads(json.dumps({**DATA, place: "HERE"}).replace('"HERE"', number))


def test_an_evaluation_file_that_is_too_large_or_no_file_is_refused(tmp_path, monkeypatch):
    file = JUDGED.save(tmp_path)
    (tmp_path / "link.json").symlink_to(file)
    assert Evaluation.load(tmp_path / "link.json") == JUDGED  # one's own links are followed
    monkeypatch.setattr("cmtrack.archive.MAX_BYTES", 1000)
    with pytest.raises(ValueError, match="must not be larger"):
        Evaluation.load(tmp_path)


# -- names -----------------------------------------------------------------------------------------------------------

NASTY = [
    "<script>alert(1)</script>",
    "</td></tr><h1>x",
    "a|b\n|---|",
    "**bold** [x](http://evil)",
    "\"quoted\" 'it'",
    "line\nbreak\r\ttab",
    "🙈🙉",
    "עברית‮txt",
    "../../etc/passwd",
    "C:\\x",
    "x" * 10_000,
    " ",
    ".",
    "%s {0} ${HOME} $x^2$",
    "NaN",
    "\x07bell",
]


@settings(FUZZ, max_examples=1000 // PART)
@given(st.text(max_size=40))
def test_labels_become_legal_names_and_come_back(label):
    name = encode_label(label)
    assert re.fullmatch(r"[\w .-]+", name)
    assert name not in (".", "..")
    assert len(name) <= 80
    if "--" not in name or len(name) < 70:
        assert decode_label(name) == label


def test_nasty_labels_and_run_names_stay_text_from_end_to_end(store, tmp_path):
    before = {path for path in tmp_path.rglob("*") if "artifacts" not in path.parts}
    y = random_labels(300 + len(NASTY), len(NASTY))
    names = np.array(NASTY, dtype=object)
    for place, title in enumerate(NASTY[:3]):
        with mlflow.start_run(run_name=title) as run:
            guess = random_guesses(y, len(NASTY), 0.7 - 0.1 * place, place + 1)
            log_evaluation(names[y], names[guess], labels=NASTY, metrics="all", strict=True)
            run_id = run.info.run_id
    assert load_evaluation(run_id).labels == tuple(NASTY)
    comparison = compare(experiment_names=["e"], rank_by="multiclass/accuracy")
    page = comparison.report(tmp_path / "review.html").read_text(encoding="utf-8")
    report = next((tmp_path / "artifacts" / run_id / "artifacts").glob("*report.html")).read_text(
        encoding="utf-8"
    )
    for text in (page, report):
        assert "<script>alert" not in text
        assert "<h1>x" not in text
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    markdown = comparison.report(tmp_path / "review.md").read_text(encoding="utf-8")
    assert "<script>alert" not in markdown.replace("\\<", "")
    assert not any(line.startswith("|---|\n") for line in markdown.split("\n\n")[0].splitlines())
    made = {path for path in tmp_path.rglob("*") if "artifacts" not in path.parts} - before
    assert {path.name for path in made} <= {
        "review.html",
        "review.md",
        "mlflow.db",
        "mlflow.db-journal",
        "cache",
    }
