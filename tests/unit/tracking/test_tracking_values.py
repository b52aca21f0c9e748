"""What tracking reads, names and links, by hand and without a store: each rule at its bound."""

from __future__ import annotations

import errno
import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from cmtrack import Evaluation, Grouping, evaluate
from cmtrack.comparison import CompareOptions, Run
from cmtrack.report import Picture
from cmtrack.statistics import RowIds
from cmtrack.tracking import (
    _warn,
    artifacts,
    cache,
    dataset,
    description,
    manifest,
    mlflow_inside,
    names,
    settings,
    spool,
    steps,
    store,
    views,
)
from cmtrack.tracking import package as packages
from cmtrack.tracking.cache import digest_of
from cmtrack.tracking.store import _environment
from cmtrack.untrusted import without_credentials

Y = [0, 1, 1, 0, 2, 2]


@pytest.fixture(scope="module")
def evaluation() -> Evaluation:
    return evaluate(Y, [0, 1, 0, 0, 2, 1])


# -- a package of the spool ------------------------------------------------------------------------------------------


@pytest.fixture
def entry(evaluation: Evaluation, tmp_path: Path) -> Path:
    """A whole entry, without rows."""
    folder = tmp_path / "entry"
    (folder / "artifacts").mkdir(parents=True)
    evaluation.save(folder / "artifacts", rows=False)
    file = folder / "artifacts" / names.EVALUATION_FILE
    data = {
        "schema": 2,
        "run_id": "a" * 32,
        "model_id": None,
        "prefix": "",
        "step": 3,
        "tracking_uri": "http://host:5",
        "metrics": {"a": 0.5, "b": 1},
        "tags": {"cmtrack.digests": json.dumps({"evaluation": digest_of(file.read_bytes())})},
        "images": {},
        "table": "",
        "dataset": {"name": "d", "digest": "e"},
        "description": "",
        "timestamp": 5,
        "on_existing": "replace",
        "problems": ["p"],
    }
    (folder / "manifest.json").write_text(json.dumps(data))
    return folder


def changed(entry: Path, **values: Any) -> Path:
    file = entry / "manifest.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | values))
    return entry


def test_an_entry_is_read_as_it_was_written(entry: Path) -> None:
    package = manifest.read(entry)
    assert (package.run_id, package.model_id, package.prefix, package.step) == (
        "a" * 32,
        None,
        "",
        3,
    )
    assert (package.tracking_uri, package.timestamp, package.problems) == (
        "http://host:5",
        5,
        ("p",),
    )
    assert package.metrics == {"a": 0.5, "b": 1.0}
    largest = {
        "metrics": {"a": sys.float_info.max},
        "step": (1 << 63) - 1,
        "timestamp": -(1 << 63) + 1,
        "table": "t",
    }
    package = manifest.read(changed(entry, **largest, dataset=dict.fromkeys(dataset.FIELDS, "")))
    assert (package.metrics["a"], package.step, package.table) == (
        sys.float_info.max,
        (1 << 63) - 1,
        "t",
    )
    package = manifest.read(
        changed(entry, run_id=None, prefix=None, step=None, tracking_uri=None, model_id="m-1")
    )
    assert (package.run_id, package.prefix, package.step, package.model_id) == (
        None,
        "",
        None,
        "m-1",
    )


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"run_id": "a/b"}, "run_id must be an id"),
        ({"run_id": 1}, "run_id must be a str, got int"),
        ({"model_id": ".."}, "model_id must be an id"),
        ({"prefix": "../"}, "prefix must start with"),
        ({"step": True}, "step must be a whole number, got True"),
        ({"step": 1.0}, "step must be a whole number, got 1.0"),
        ({"step": 1 << 63}, "step must be a number of 64 bits, got one of 64"),
        ({"timestamp": None}, "timestamp must be a int, got NoneType"),
        ({"timestamp": -(1 << 63)}, "timestamp must be a number of 64 bits"),
        ({"tracking_uri": "ftp://a"}, "a tracking URI must be of one of the schemes"),
        ({"metrics": {"a": True}}, "metrics must be finite numbers, got True"),
        ({"metrics": {"a": "1"}}, "metrics must be finite numbers, got '1'"),
        ({"metrics": {"a": 10**400}}, "metrics must be finite numbers"),
        ({"tags": {"mlflow.user": "x"}}, "tags must be called cmtrack"),
        ({"tags": {"cmtrack.a": 1}}, "tags must hold texts"),
        ({"tags": {}}, "is damaged: it is not the file that was written"),
        (
            {"images": {"a": "absent.png"}},
            "names a file that the entry does not hold: 'absent.png'",
        ),
        ({"table": "../a"}, "table must be a plain name"),
        ({"dataset": {"name": "d"}}, "dataset must hold name and digest"),
        (
            {"dataset": {"name": "d", "digest": "e", "more": ""}},
            "dataset must hold name and digest",
        ),
        ({"problems": "p"}, "problems must be a list"),
        ({"schema": 3}, "reads up to 2"),
    ],
)
def test_an_entry_with_a_wrong_value_is_refused(
    entry: Path, values: dict[str, Any], says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        manifest.read(changed(entry, **values))


def test_an_entry_with_other_files_is_refused(entry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for text, says in (
        ("[]", "must hold a mapping, got list"),
        ("{", "is damaged"),
        ('{"a": NaN}', "no number"),
    ):
        (entry / "manifest.json").rename(entry / "kept")
        (entry / "manifest.json").write_text(text)
        with pytest.raises(ValueError, match=says):
            manifest.read(entry)
        (entry / "kept").rename(entry / "manifest.json")
    monkeypatch.setattr(manifest, "MAX_FILES", 1)
    assert manifest.read(entry).step == 3
    size = (entry / "artifacts" / names.EVALUATION_FILE).stat().st_size
    monkeypatch.setattr(manifest, "MAX_BYTES", size)
    assert manifest.read(entry).step == 3
    monkeypatch.setattr(manifest, "MAX_BYTES", size - 1)
    with pytest.raises(ValueError, match="an entry must hold at most 1 files and 0 GB"):
        manifest.read(entry)
    monkeypatch.undo()
    (entry / "artifacts" / "folder").mkdir()
    with pytest.raises(ValueError, match="artifacts must be plain files, got 'folder'"):
        manifest.read(entry)
    (entry / "artifacts" / "folder").rmdir()
    (entry / "artifacts" / "link").symlink_to(entry / "manifest.json")
    with pytest.raises(ValueError, match="artifacts must be plain files, got 'link'"):
        manifest.read(entry)
    (entry / "artifacts" / "link").unlink()
    (entry / "artifacts").rename(entry / "elsewhere")
    (entry / "artifacts").symlink_to(entry / "elsewhere")
    with pytest.raises(ValueError, match="an entry must hold a folder 'artifacts'"):
        manifest.read(entry)


def test_an_entry_may_have_just_its_limits(entry: Path) -> None:
    def sparse(file: str, size: int) -> None:
        with (entry / file).open("r+b" if (entry / file).exists() else "wb") as opened:
            opened.truncate(size)

    whole = (entry / "manifest.json").read_bytes()
    for size, says in (
        (16 << 20, "is damaged: JSONDecodeError"),
        ((16 << 20) + 1, "must not be larger than 16 MB"),
    ):
        sparse("manifest.json", size)
        with pytest.raises(ValueError, match=says):
            manifest.read(entry)
    (entry / "manifest.json").write_bytes(whole)
    left = (4 << 30) - (entry / "artifacts" / names.EVALUATION_FILE).stat().st_size
    sparse("artifacts/a", left)
    assert manifest.read(entry).step == 3
    for size, number in ((left + 1, 0), (0, 999)):
        sparse("artifacts/a", size)
        for k in range(number):
            assert k < 998 or manifest.read(entry).step == 3
            (entry / "artifacts" / f"{k}").touch()
        with pytest.raises(ValueError, match="an entry must hold at most 1000 files and 4 GB"):
            manifest.read(entry)
    sparse("intent.json", 1 << 20)
    with pytest.raises(json.JSONDecodeError):
        spool.read_intent(entry)
    sparse("intent.json", (1 << 20) + 1)
    with pytest.raises(ValueError, match=r"'intent\.json' must not be larger than 1 MB"):
        spool.read_intent(entry)


def test_images_lie_in_a_folder_of_their_own_or_among_the_files(entry: Path) -> None:
    (entry / "artifacts" / "a.png").write_bytes(b"x")
    changed(entry, images={"cmtrack/a": "a.png"})
    assert manifest.read(entry).images == {"cmtrack/a": "a.png"}
    (entry / "charts").mkdir()
    with pytest.raises(ValueError, match=r"names a file that the entry does not hold: 'a\.png'"):
        manifest.read(entry)
    (entry / "artifacts" / "a.png").rename(entry / "charts" / "a.png")
    assert manifest.read(entry).images == {"cmtrack/a": "a.png"}


def test_rows_that_are_gone_or_damaged_are_a_problem_and_no_end(entry: Path) -> None:
    tags = json.loads((entry / "manifest.json").read_text())["tags"]["cmtrack.digests"]
    both = {"cmtrack.digests": json.dumps(json.loads(tags) | {"predictions": "0" * 32})}
    package = manifest.read(changed(entry, tags=both))
    assert package.problems == ("p", f"the rows in {names.PREDICTIONS_FILE}: it is gone")
    (entry / "artifacts" / names.PREDICTIONS_FILE).write_bytes(b"x")
    assert manifest.read(entry).problems[1] != package.problems[1]


def test_the_spool_lists_what_waits(entry: Path) -> None:
    spooled = entry.rename(entry.with_name("20260102T030405000006-abc"))
    [waiting] = manifest.listing(spooled.parent)
    assert (waiting.kind, waiting.made) == ("evaluation", "2026-01-02 03:04:05")
    assert (waiting.what, waiting.meant_for) == (
        "evaluation of ? samples",
        f"run {'a' * 32} in http://host:5",
    )
    changed(spooled, prefix="val/", run_id=None, tags={})
    assert [one.kind for one in manifest.listing(spooled.parent)] == ["damaged"]
    assert spool.made("20260102T030405000006-abc") == 1767323045000
    assert spool.made("no-time") is None


# -- names -----------------------------------------------------------------------------------------------------------


def test_tags_and_files_have_their_prefix() -> None:
    assert (names.tag("status"), names.tag("status", "val/"), names.tag("grouping", "a/b.")) == (
        "cmtrack.status",
        "cmtrack.val.status",
        "cmtrack.a/b.groups",
    )
    assert names.former_tag("grouping", "val/") == "cmtrack.val.grouping"
    assert names.told({"cmtrack.grouping": "old"}, "grouping") == "old"
    assert names.told({"cmtrack.grouping": "old", "cmtrack.groups": "new"}, "grouping") == "new"
    assert names.file_name("a.json", "my val/x/") == "my_val_x_a.json"
    assert names.digest_key("cmtrack_evaluation.json") == "evaluation"
    assert [names.check_prefix(one) for one in ("", "a", "val/", "_a b-c.d/")] == [
        "",
        "a",
        "val/",
        "_a b-c.d/",
    ]
    for wrong in ("/a", "a//b", "a..b", "a\n", "ä", "-a"):
        with pytest.raises(ValueError, match="prefix must start with a letter"):
            names.check_prefix(wrong)


def test_digests_are_read_from_one_tag_or_from_those_of_before() -> None:
    assert names.digests({"cmtrack.labels_digest": "x", "cmtrack.other": "y"}) == {"labels": "x"}
    one = {"cmtrack.val.digests": '{"labels": "x", "n": 1}', "cmtrack.val.labels_digest": "old"}
    assert names.digests(one, "val/") == {"labels": "x"}
    for damaged in ("{", "[]", "1"):
        assert names.digests({"cmtrack.digests": damaged}) == {}
    tags = names.with_digests(
        {"cmtrack.labels_digest": "x", "cmtrack.groups": "g", "cmtrack.grouping": "g"},
        "",
        {"schema": "s"},
    )
    assert tags == {"cmtrack.groups": "g", "cmtrack.digests": '{"labels": "x", "schema": "s"}'}
    assert json.loads(names.with_digests(tags, "", {"labels": None})["cmtrack.digests"]) == {
        "schema": "s"
    }


def test_metrics_are_chosen_by_name_or_section(evaluation: Evaluation) -> None:
    chosen = names.chosen_metrics
    assert chosen(evaluation, "all") == dict(evaluation.metrics)
    assert list(chosen(evaluation, "headline")) == list(evaluation.headline)
    assert chosen(evaluation, ["multiclass/accuracy"]) == {
        "multiclass/accuracy": pytest.approx(4 / 6)
    }
    section = chosen(evaluation, ["multiclass/*"])
    assert len(section) > 5
    assert {name.partition("/")[0] for name in section} == {"multiclass"}
    for wrong, says in (
        ("most", "must be 'headline', 'all' or a list"),
        (["multiclass/acuracy"], "has no metric"),
        (["multiclas/*"], "has no metric"),
    ):
        with pytest.raises(ValueError, match=says):
            chosen(evaluation, wrong)


# -- descriptions ----------------------------------------------------------------------------------------------------


def test_a_block_replaces_its_own_and_touches_nothing_else() -> None:
    block = description.with_block
    once = block("By Ann.\n", "Result\nmore", "val/")
    assert once == "By Ann.\n\nResult <!-- cmtrack val/ -->\nmore\n\n<!-- /cmtrack val/ -->"
    assert block("", "Result") == "Result <!-- cmtrack -->\n\n<!-- /cmtrack -->"
    assert (
        block(once, "New", "val/")
        == "By Ann.\n\nNew <!-- cmtrack val/ -->\n\n<!-- /cmtrack val/ -->"
    )
    assert block(once, "Best", "[review]", first=True).startswith(
        "By Ann.\n\nBest <!-- cmtrack [review] -->"
    )
    assert block(once, "Last", "[review]").startswith(once)
    room = 8000 - len(once) - len("\n\nX <!-- cmtrack -->\n\n<!-- /cmtrack -->")
    full = block(once, "X" + "x" * room)
    assert len(full) == 8000
    shorter = block(once, "XX" + "x" * room)  # the other block keeps its first line
    assert "Result <!-- cmtrack val/ -->\n\n<!-- /cmtrack val/ -->" in shorter
    assert description.has_block(shorter)
    without = block(once, "X" * 9000)
    assert without == once
    assert not description.has_block(without)


def test_links_lead_to_files_that_are_there() -> None:
    text = "[Report](artifact:a.html) ![plot](artifact:p%20q.png)\n\n\n\n[gone](artifact:b.html)."
    assert description.with_links(text, "1", "r", {"a.html", "p%20q.png"}) == (
        "[Report](#/experiments/1/runs/r/artifacts/a.html) ![plot](get-artifact?path=p%20q.png&run_uuid=r)\n\n."
    )
    assert description.with_links("x [a](artifact:a)", "1", "r", {}) == "x"


def test_a_description_has_the_result_two_warnings_and_six_numbers(
    evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = description.description(evaluation, "my val/", {}, report=True).split("\n\n")
    assert lines[0].startswith(
        "**Evaluation “my val”**: On 6 samples of 3 classes the accuracy is 66.7 %"
    )
    assert lines[0].endswith("[Report](artifact:my_val_cmtrack_report.html)")
    assert (len(lines), lines[1].partition("** ")[0]) == (3, "**Warning:")
    assert lines[-1].splitlines()[:3] == [
        "| metric | value | 95 % interval |",
        "|---|---|---|",
        "| my val/multiclass/accuracy | 0.667 | [0.300, 0.903] |",
    ]
    plain = evaluate([False, True, True, False] * 20, y_prob=[0.2, 0.7, 0.4, 0.6] * 20)
    one = evaluate(Y, [0, 1, 0, 0, 2, 1], headline=["multiclass/f1_weighted"])
    assert "| multiclass/f1_weighted | 0.656 |" in description.description(
        one, "", {}, report=False
    )
    text = description.description(plain, "", {}, report=False)
    assert "artifact:" not in text
    assert text.startswith("**Evaluation**: Finds 20 of 40 samples of “True” (50.0 %")
    table = [row.split(" | ")[0] for row in text.splitlines() if row.startswith("| ")]
    assert table == [
        "| metric",
        "| multiclass/accuracy",
        "| multiclass/matthews_corrcoef",
        "| binary/f1",
        "| binary/recall",
        "| binary/precision",
        "| binary/roc_auc",
    ]
    for count, end in (
        (2, "**Warning:** w1"),
        (3, "**Warning:** w1 (1 more warning in the report.)"),
        (4, "(2 more warnings in the report.)"),
    ):
        warned = tuple(f"w{k}" for k in range(count))
        monkeypatch.setattr(Evaluation, "warnings", property(lambda _, warned=warned: warned))
        lines = description.description(evaluation, "", {}, report=False).split("\n\n")
        assert (len(lines), lines[2].endswith(end)) == (4, True)


def test_a_description_shows_the_matrix_of_two_groups_before_that_of_the_charts(
    evaluation: Evaluation,
) -> None:
    def picture(name: str, chart: bytes = b"") -> Picture:
        return Picture(name, f"The [{name}]", "", f"{name} 1.png", chart=chart)

    pictures = {
        name: picture(name, chart)
        for name, chart in (("roc", b""), ("matrix", b"x"), ("reduced_two", b""))
    }
    shown = description.description(evaluation, "val/", pictures, report=False).split("\n\n")[2]
    assert shown == "![The matrix](artifact:val_matrix%201.png)"
    two = evaluate(
        Y, [0, 1, 0, 0, 2, 1], grouping=Grouping({"low": [0, 1], "two": [2]}, positive="two")
    )
    name = f"reduced_{two.reduced[-1].name}"
    shown = description.description(two, "", pictures | {name: picture(name)}, report=False)
    assert f"(artifact:{name}%201.png)" in shown
    assert "(artifact:matrix%201.png)" in description.description(
        two, "", {"matrix": pictures["matrix"]}, report=False
    )


# -- artifacts -------------------------------------------------------------------------------------------------------


def test_a_folder_of_artifacts_is_a_path_or_on_a_server() -> None:
    for uri, path in (
        ("/a/b", "/a/b"),
        ("file:///a%20b", "/a b"),
        ("file://localhost/a", "/a"),
        ("a", "a"),
    ):
        assert artifacts.folder_of(uri) == Path(path)
        assert artifacts.folder_of(uri, "http://host") == Path(path)
    assert artifacts.folder_of("s3://bucket/a") is None
    assert artifacts.folder_of("mlflow-artifacts:/1") is None
    for uri in ("file://host/a", "//host/a", "\\\\host\\a"):
        for server in ("http://host", "https://host"):
            with pytest.raises(ValueError, match="its artifacts lie on another machine"):
                artifacts.folder_of(uri, server)
    assert artifacts.folder_of("//host/a", "sqlite:///a.db") == Path("//host/a")


def test_only_the_tracking_server_and_listed_ones_are_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    allowed = artifacts._allowed
    assert artifacts.origin("HTTPS://Host/a") == ("https", "host", 443)
    assert artifacts.origin("http://host:80/a") == artifacts.origin("http://host")
    for uri, server in (
        ("https://host/a", "https://host:443"),
        ("http://host:5/a", "http://host:5"),
        ("s3://a", "http://h"),
    ):
        assert allowed(uri, server) == uri
    for uri in ("https://other/a", "http://host/a", "https://host:444/a"):
        with pytest.raises(ValueError, match="its artifacts must lie on the tracking server"):
            allowed(uri, "https://host")
    monkeypatch.setenv(artifacts.HOSTS, "other, http://third:8 ,")
    assert [allowed(one, "https://host") for one in ("https://other/a", "http://third:8/a")]
    for uri in ("http://other/a", "https://third:8/a"):
        with pytest.raises(ValueError, match="its artifacts must lie on the tracking server"):
            allowed(uri, "https://host")


def test_a_body_may_have_just_its_limit() -> None:
    class Answer:
        def iter_content(self, size: int) -> list[bytes]:
            assert size == 1 << 20
            return [b"ab", b"c"]

    assert artifacts._streamed(Answer(), 3) == b"abc"
    with pytest.raises(ValueError, match="larger than 0 MiB"):
        artifacts._streamed(Answer(), 2)


class Reply:
    """An answer of a server."""

    def __init__(self, status: int, body: bytes = b"abc") -> None:
        self.status_code, self.body, self.closed = status, body, 0

    def iter_content(self, size: int) -> list[bytes]:
        return [self.body]

    def close(self) -> None:
        self.closed += 1


def test_a_file_is_read_from_a_folder_or_its_server(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from mlflow.exceptions import MlflowException

    (tmp_path / "a").write_bytes(b"abc")
    assert artifacts.read(str(tmp_path), "a", "sqlite:///x", 3) == b"abc"
    with pytest.raises(ValueError, match="must be a plain name"):
        artifacts.read(str(tmp_path), "../a", "")
    first, asked = Reply(200), []
    replies = [first]

    def answer(folder: str, path: str, **how: Any) -> Reply:
        asked.append((folder, path, how["stream"]))
        assert how["retry_codes"] == {408, 429, 502, 503, 504}
        if isinstance(replies[-1].body, str):
            raise MlflowException(replies[-1].body)
        return replies[-1]

    monkeypatch.setattr(artifacts.mlflow_inside, "get", answer)
    assert artifacts.read("http://host/f", "a b", "http://host", 3) == b"abc"
    assert (asked, first.closed) == ([("http://host/f", "/a%20b", True)], 1)
    for reply, kind, says in (
        (Reply(404), FileNotFoundError, "there is no such file"),
        (Reply(201), OSError, "host answers 201"),
        (Reply(500), OSError, "host answers 500"),
        (Reply(200, b"abcd"), ValueError, "larger than 0 MiB"),
        (Reply(200, "at http://u:p@host"), OSError, "^at http://host$"),  # type: ignore[arg-type]
    ):
        replies.append(reply)
        with pytest.raises(kind, match=says):
            artifacts.read("http://host/f", "a", "http://host", 3)
    with pytest.raises(ValueError, match="its artifacts must lie on the tracking server"):
        artifacts.read("http://other/f", "a", "http://host", 3)

    class Repository:
        def download_artifacts(self, name: str, scratch: str) -> str:
            if name == "a":
                return str(tmp_path / name)
            raise MlflowException("no", error_code=int(name))

    monkeypatch.setattr(artifacts.mlflow_inside, "artifact_repository", lambda *_: Repository())
    assert artifacts.read("s3://bucket/f", "a", "http://host", 3) == b"abc"
    with pytest.raises(ValueError, match="must not be larger"):
        artifacts.read("s3://bucket/f", "a", "http://host", 2)
    from mlflow.protos.databricks_pb2 import INTERNAL_ERROR, RESOURCE_DOES_NOT_EXIST

    with pytest.raises(FileNotFoundError, match="no"):
        artifacts.read("s3://bucket/f", str(RESOURCE_DOES_NOT_EXIST), "http://host")
    with pytest.raises(OSError, match="no") as refused:
        artifacts.read("s3://bucket/f", str(INTERNAL_ERROR), "http://host")
    assert not isinstance(refused.value, FileNotFoundError)


def test_a_client_files_only_where_it_may() -> None:
    class Client:
        tracking_uri = "https://host"

    with pytest.raises(artifacts.NoFolder, match="its artifacts must lie on the tracking server"):
        artifacts.filing(Client(), "https://other/a").list_artifacts("r")  # type: ignore[arg-type]


# -- the cache, what is said, datasets and steps ---------------------------------------------------------------------


def test_the_cache_gives_what_it_was_given(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CMTRACK_CACHE", str(tmp_path))
    contents = [bytes([k]) * 100 for k in range(3)]
    digests = [digest_of(content) for content in contents]
    for age, (digest, content) in enumerate(zip(digests, contents, strict=True)):
        assert cache.cached(digest) is None
        cache.keep(digest, content)
        os.utime(tmp_path / digest[:2] / digest, (age, age))
    cache.trim(300)
    assert [(tmp_path / digest[:2] / digest).exists() for digest in digests] == [True] * 3
    cache.trim(299)
    assert [(tmp_path / digest[:2] / digest).exists() for digest in digests] == [False, True, True]
    assert cache.cached(digests[1]) == contents[1]  # used just now
    cache.trim(100)
    assert [(tmp_path / digest[:2] / digest).exists() for digest in digests] == [False, True, False]
    (tmp_path / digests[1][:2] / digests[1]).write_bytes(b"other")
    assert cache.cached(digests[1]) is None
    assert not (tmp_path / digests[1][:2] / digests[1]).exists()
    assert len(digests[0]) == 32
    cache.keep(digests[0], contents[0])
    assert (tmp_path / digests[0][:2] / digests[0]).stat().st_mode & 0o777 == 0o600
    cache.trim(0)
    cache.keep("../x", b"x")
    assert cache.cached("../x") is None
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == []
    for k, size in enumerate((1 << 30, 1 << 30, 0)):
        digest = digest_of(bytes([k]))
        cache.keep(digest, bytes([k]))
        with (tmp_path / digest[:2] / digest).open("r+b") as file:
            file.truncate(size)
        os.utime(tmp_path / digest[:2] / digest, (k, k))
    cache.trim()
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 3  # 2 GB
    with (tmp_path / digest[:2] / digest).open("r+b") as file:
        file.truncate(1)
    cache.trim()
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 2
    monkeypatch.delenv("CMTRACK_CACHE")
    assert cache.cache_folder().name == "cmtrack"


def test_what_is_said_is_one_line_without_credentials(capsys: pytest.CaptureFixture[str]) -> None:
    assert _warn.first_line(ValueError("http://u:p@host\nmore")) == "http://host"
    assert _warn.first_line(ValueError()) == "ValueError"
    with pytest.warns(_warn.EvaluationWarning, match=r"^cmtrack: a\\x1b at http://host$"):
        _warn.tell("a\x1b at http://u:p@host")
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _warn.tell("on")
    assert capsys.readouterr().err == "cmtrack: on\n"
    assert without_credentials("http://host") == "http://host"


def test_a_data_set_has_a_name_and_its_columns(evaluation: Evaluation) -> None:
    assert dataset.checked_name(None) is None
    assert dataset.checked_name("a" * 500) == "a" * 500
    assert dataset.checked_name(" a\nb ") == "a b"
    for wrong, kind in (
        ("a" * 501, ValueError),
        (" ", ValueError),
        ("", ValueError),
        (1, TypeError),
    ):
        with pytest.raises(kind, match="dataset must be a name"):
            dataset.checked_name(wrong)
    entry = dataset.described(evaluation, None)
    assert entry["name"] == "6 rows of 3 classes"
    assert json.loads(entry["profile"]) == {
        "rows": 6,
        "classes": 3,
        "counts": {"0": 2, "1": 2, "2": 2},
    }
    assert [one["name"] for one in json.loads(entry["schema"])["mlflow_colspec"]] == [
        "y_true",
        "y_pred",
    ]
    for weights, kind in (([1, 1, 2, 1, 1, 1], "long"), (np.full(6, 1.5), "double")):
        entry = dataset.described(evaluate(Y, Y, sample_weight=weights), "mine")
        assert entry["name"] == "mine"
        assert json.loads(entry["profile"])["sum_of_weights"] == sum(weights)
        assert json.loads(entry["schema"])["mlflow_colspec"][2] == {
            "type": kind,
            "name": "sample_weight",
            "required": True,
        }
    many = dataset.described(evaluate([0, 1], [0, 1], labels=range(201)), None)
    assert (len(json.loads(many["profile"])["counts"]), many["name"]) == (
        200,
        "2 rows of 201 classes",
    )
    scored = evaluate([False, True, True], y_prob=[0.2, 0.7, 0.4])
    columns = json.loads(dataset.described(scored, None)["schema"])["mlflow_colspec"]
    assert [one["type"] for one in columns[:2]] == ["boolean", "boolean"]
    assert [dataset._kind(labels) for labels in ((1, 2), (1, 2.5), ("a", 1), (0.5,))] == [
        "long",
        "string",
        "string",
        "double",
    ]


def test_a_server_may_get_a_password_a_token_or_a_certificate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from mlflow.utils import rest_utils

    variables = ("USERNAME", "PASSWORD", "TOKEN", "AUTH", "AWS_SIGV4", "CLIENT_CERT_PATH")
    for name in variables:
        monkeypatch.delenv(f"MLFLOW_TRACKING_{name}", raising=False)
    assert not mlflow_inside.has_secret("http://host")
    for name in variables[1:]:
        with monkeypatch.context() as patch:
            patch.setenv(f"MLFLOW_TRACKING_{name}", "true")
            assert mlflow_inside.has_secret("http://host")
    monkeypatch.setattr(
        rest_utils,
        "http_request",
        lambda creds, path, method, **how: (creds.host, path, method, how),
    )
    asked = mlflow_inside.get("http://host", "/version", timeout=3)
    assert asked == ("http://host", "/version", "GET", {"raise_on_status": False, "timeout": 3})


def test_autologging_is_off_inside_where_mlflow_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    from mlflow.utils import autologging_utils as autologging

    with mlflow_inside.without_autologging():
        assert autologging._AUTOLOGGING_GLOBALLY_DISABLED
    assert not autologging._AUTOLOGGING_GLOBALLY_DISABLED
    monkeypatch.delitem(sys.modules, "mlflow")
    with mlflow_inside.without_autologging():
        assert not autologging._AUTOLOGGING_GLOBALLY_DISABLED
        assert "mlflow" not in sys.modules


def test_a_report_is_due_after_ten_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(steps.time, "monotonic", lambda: now[0])
    steps.forget()
    place, other = ("u", "r", ""), ("u", "r", "val/")
    assert (steps.is_due(place), steps.is_due(place), steps.is_due(other)) == (True, False, True)
    now[0] = 109.9
    assert not steps.is_due(place)
    now[0] = 110.0
    assert (steps.is_due(place), steps.is_due(place)) == (True, False)
    made: list[int] = []
    steps.later(place, lambda: made.append(1))
    steps.later(place, lambda: made.append(2))  # the last step alone
    assert steps._waiting[place][1].daemon  # no program ends later for it
    steps.finish()
    steps.finish()
    assert made == [2]

    def fail() -> None:
        raise OSError("no room")

    steps.later(place, fail)
    with pytest.warns(
        UserWarning, match="the report of the last step in run r was not logged: no room"
    ):
        steps.finish()
    now[0] = 119.9
    assert not steps.is_due(place)  # counted from when it was made
    steps.later(place, lambda: made.append(3))
    steps.forget()
    steps.finish()
    assert made == [2]


def test_an_environment_variable_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CMTRACK_ANY", "a")
    with _environment("CMTRACK_ANY", "b") as before:
        assert (before, os.environ["CMTRACK_ANY"]) == ("a", "b")
    assert os.environ["CMTRACK_ANY"] == "a"
    monkeypatch.delenv("CMTRACK_ANY")
    with _environment("CMTRACK_ANY") as before:
        os.environ["CMTRACK_ANY"] = "c"
        assert before is None
    assert "CMTRACK_ANY" not in os.environ


class Store:
    """A client that remembers what it was asked."""

    tracking_uri = "http://host"

    def __init__(self, stage: str = "active", absent: bool = False) -> None:
        self.experiment = (
            None if absent else SimpleNamespace(experiment_id=7, lifecycle_stage=stage)
        )
        self.links: str | None = None

    def get_experiment_by_name(self, name: str) -> Any:
        return self.experiment

    def create_experiment(self, name: str, location: str | None) -> int:
        return 8

    def set_terminated(self, run_id: str, status: str) -> None:
        self.links = os.environ.get("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT")


def test_an_experiment_is_found_or_made_and_a_deleted_one_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert store.experiment_named(Store(), "e") == "7"  # type: ignore[arg-type]
    assert store.experiment_named(Store(absent=True), "e") == "8"  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="the experiment 'e' is deleted: it accepts no run"):
        store.experiment_named(Store("deleted"), "e")  # type: ignore[arg-type]
    monkeypatch.delenv("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", raising=False)
    for uri, links in (("http://host", None), ("http://u:p@host", "true")):
        client = Store()
        client.tracking_uri = uri
        store.end_run(client, "r")  # type: ignore[arg-type]
        assert client.links == links


def test_the_tracking_uri_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    import mlflow

    before = mlflow.get_tracking_uri()
    with store.tracking_store(None) as uri:
        assert uri == before
    for first in ("http://a", None):  # set in the program, or in the environment alone
        mlflow.set_tracking_uri(first)
        if first is None:
            monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://b")
        with store.tracking_store("http://c") as uri:
            assert (uri, mlflow.get_tracking_uri()) == ("http://c", "http://c")
        assert mlflow.get_tracking_uri() == (first or "http://b")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://d")  # nothing was left set in the program
    assert mlflow.get_tracking_uri() == "http://d"
    mlflow.set_tracking_uri("http://e")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://d")
    with store.tracking_store("http://c"):
        assert mlflow.get_tracking_uri() == "http://c"
    assert (mlflow.get_tracking_uri(), os.environ["MLFLOW_TRACKING_URI"]) == (
        "http://e",
        "http://d",
    )
    mlflow.set_tracking_uri(None)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    with store.tracking_store("http://c"):
        assert mlflow.is_tracking_uri_set()
    assert not mlflow.is_tracking_uri_set()
    monkeypatch.undo()
    mlflow.set_tracking_uri(None)


def test_a_run_has_a_data_set_by_name_and_digest() -> None:
    one = SimpleNamespace(dataset=SimpleNamespace(name="n", digest="d"))
    run = SimpleNamespace(inputs=SimpleNamespace(dataset_inputs=[one]))
    assert dataset.is_there(run, {"name": "n", "digest": "d"})
    assert not dataset.is_there(run, {"name": "n", "digest": "e"})
    for without in (
        object(),
        SimpleNamespace(inputs=None),
        SimpleNamespace(inputs=SimpleNamespace(dataset_inputs=[])),
    ):
        assert not dataset.is_there(without, {"name": "n", "digest": "d"})


# -- the spool -------------------------------------------------------------------------------------------------------


def test_a_lock_is_held_by_one(tmp_path: Path) -> None:
    entry = tmp_path / "e"
    entry.mkdir()
    with spool.claimed(entry) as first, spool.claimed(entry) as second:
        assert (first, second) == (True, False)
    with spool.claimed(entry) as again:
        assert again
    with spool.claimed(entry, "run 1") as one, spool.claimed(entry, "run 2") as other:
        assert (one, other) == (True, True)
        with spool.claimed(entry, "run 1") as third:
            assert not third
        with spool.claimed(entry, "run 1", anew=True) as fourth:
            assert fourth
    assert sorted(path.name for path in tmp_path.iterdir()) == ["e"]  # locks of places go
    with spool.claimed(tmp_path / "gone") as absent:
        assert not absent


def test_an_unfinished_entry_is_left_when_nobody_writes_it(tmp_path: Path) -> None:
    entry = tmp_path / ".20260101T000000000000-a"
    entry.mkdir()
    (entry / spool.INTENT).write_text("{}")
    assert spool.entries(tmp_path) == []  # written just now, and without a lock
    for age, kinds in ((spool.GRACE - 60, []), (spool.GRACE + 60, ["unfinished"])):
        for path in (entry / spool.INTENT, entry):
            os.utime(path, (time.time() - age,) * 2)
        assert [one.kind for one in spool.entries(tmp_path)] == kinds
    (tmp_path / "20260101T000000000000-a").mkdir()  # the finished one is there
    assert spool.entries(tmp_path) == []


def test_entries_are_told_apart_by_their_files(tmp_path: Path) -> None:
    for name, file in (
        ("2-b", spool.MANIFEST),
        ("1-a", spool.INPUTS),
        ("3-c", "other"),
        ("0-d.sent", spool.MANIFEST),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / file).write_text("12")
    (tmp_path / "4-link").symlink_to(tmp_path / "2-b")
    (tmp_path / "2-b" / "folder").mkdir()  # what it holds has no size of its own
    (tmp_path / "2-b" / "folder" / "link").symlink_to(tmp_path / "1-a" / spool.INPUTS)
    found = spool.entries(tmp_path)
    assert [(one.name, one.kind, one.size, one.foreign) for one in found] == [
        ("1-a", "inputs", 2, False),
        ("2-b", "evaluation", 2, False),
    ]
    spool.remove(tmp_path / "2-b")
    assert not (tmp_path / "2-b").exists()
    for text in ("[]", "{"):
        (tmp_path / "1-a" / spool.INTENT).write_text(text)
        with pytest.raises(ValueError, match=r"."):
            spool.read_intent(tmp_path / "1-a")


def test_a_draft_is_hidden_until_it_is_whole(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CMTRACK_SPOOL", str(tmp_path / "spool"))
    with spool.new_entry(run_id="r", tracking_uri="http://u:p@host") as draft:
        assert draft.folder is not None
        assert draft.folder.name.startswith(".")
        assert (draft.folder.stat().st_mode & 0o777, draft.folder.parent) == (
            0o700,
            tmp_path / "spool",
        )
        assert spool.read_intent(draft.folder) == {
            "run_id": "r",
            "tracking_uri": "http://host",
            "schema": 1,
        }
        draft.write("artifacts/a", b"x")
        assert (draft.folder / "artifacts/a").stat().st_mode & 0o777 == 0o600
        place = draft.settle()
    assert place is not None
    assert not place.name.startswith(".")
    with pytest.raises(ValueError, match="no"), spool.new_entry() as draft:
        raise ValueError("no")
    with pytest.raises(KeyboardInterrupt), spool.new_entry() as draft:
        raise KeyboardInterrupt  # before it was given an evaluation
    assert [path.name for path in (tmp_path / "spool").iterdir()] == [place.name]

    def interrupted() -> None:
        with spool.new_entry() as draft:
            draft.write("artifacts/a", b"x")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as interrupt:
        interrupted()
    assert f"the evaluation is kept in {tmp_path}" in interrupt.value.__notes__[0]
    entry = spool.keep_inputs(
        {"y_true": np.array(["a", None], dtype=object), "y_pred": [1, 2], "y_prob": None}
    )
    assert entry is not None
    with np.load(entry / spool.INPUTS) as arrays:
        assert {name: arrays[name].tolist() for name in arrays} == {
            "y_true": ["a", "None"],
            "y_pred": [1, 2],
        }


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Path]:
    """Two places for entries; a file whose name begins with "no" is refused by the first."""
    two = [tmp_path / "first", tmp_path / "second"]
    write = spool.write_private

    def refusing(path: Path, content: bytes) -> None:
        if path.name.startswith("no") and two[0] in path.parents:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(path, content)

    monkeypatch.setattr(spool, "write_private", refusing)
    monkeypatch.setattr(spool, "_places", lambda: iter(two))
    return two


def names_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_place_that_refuses_is_left_with_all_files(
    places: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    with spool.new_entry(run_id="r") as draft:
        draft.write("artifacts/a", b"a")
        draft.write("artifacts/no", b"b")
        assert draft.folder is not None
        assert draft.folder.parent == places[1]
        entry = draft.settle()
    assert entry is not None
    assert names_in(entry) == [".lock", "artifacts/a", "artifacts/no", "intent.json"]
    assert draft.refusals == [f"{places[0]}: No space left on device"]
    assert not places[0].exists()
    with spool.claimed(entry) as ours:
        assert ours
    rename, held = os.replace, []

    def refuses(old: Path, new: Path) -> None:
        if places[0] in Path(new).parents and Path(old).is_dir():
            with spool.claimed(Path(old)) as ours:
                held.append(not ours)
            raise OSError("no name")
        rename(old, new)

    monkeypatch.setattr(os, "replace", refuses)
    with spool.new_entry() as draft:
        assert draft.settle().parent == places[1]
    assert draft.refusals == [f"{places[0]}: no name"]
    assert held == [True]  # nobody sends what has not its name yet
    monkeypatch.setattr(spool, "_places", lambda: iter(places[:1]))
    with spool.new_entry() as draft:
        draft.write("artifacts/no", b"b")
        draft.write("artifacts/c", b"c")
        assert (draft.folder, draft.settle()) == (None, None)
        assert list(draft.content) == ["intent.json", "artifacts/no", "artifacts/c"]


@pytest.mark.parametrize("settled", [False, True])
def test_an_interrupt_keeps_what_is_in_memory_only(places: list[Path], settled: bool) -> None:
    def interrupted() -> None:
        with spool.new_entry() as draft:
            draft.write("artifacts/a", b"a")
            draft.content["artifacts/b"] = b"b"  # the interrupt came before it was written
            if settled:
                os.replace(draft.folder, draft.folder.with_name(draft.folder.name[1:]))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    [entry] = places[0].iterdir()
    assert entry.name.startswith(".") != settled
    assert names_in(entry) == [".lock", "artifacts/a", "artifacts/b", "intent.json"]
    assert [one.kind for one in spool.entries(places[0])] == ["unfinished"] * (not settled)

    def again() -> None:
        with spool.new_entry(of=entry) as draft:
            draft.write("artifacts/a", b"c")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        again()
    assert list(places[0].iterdir()) == [entry]
    with spool.new_entry(of=entry) as draft:
        assert (draft.folder.parent, draft.content) == (places[0], {})
        assert draft.folder.name.startswith(f".{entry.name.lstrip('.')}.")
        new = draft.settle() if not settled else None
    assert settled or (new == entry.with_name(entry.name[1:]) and new.is_dir())


def test_what_killed_processes_left_goes_with_its_entry(tmp_path: Path) -> None:
    for name in ("e", ".e", ".e.1234", ".e.sent", ".f.1", "f"):
        (tmp_path / name).mkdir()
    spool.remove(tmp_path / "e")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".f.1", "f"]
    spool.remove(tmp_path / "f")
    assert not tmp_path.exists()


def test_temporary_places_of_others_are_not_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    own = tmp_path / "cmtrack-spool-a"
    own.mkdir()
    (tmp_path / "cmtrack-spool-b").symlink_to(own)
    (tmp_path / "cmtrack-spool-c").write_text("")
    monkeypatch.setattr(spool.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(spool, "_MEMORY", tmp_path / "memory")
    assert spool._temporary_bases() == [tmp_path]
    (tmp_path / "memory").mkdir()
    assert spool._temporary_bases() == [tmp_path, tmp_path / "memory"]
    monkeypatch.setenv("CMTRACK_SPOOL", str(tmp_path / "x"))
    assert spool.spool_folders() == [tmp_path / "x", spool._of_user(), own]
    candidates = list(spool._places())
    assert candidates[:3] == [tmp_path / "x", spool._of_user(), own]
    assert [path.parent for path in candidates[3:]] == [tmp_path / "memory"]
    entry = spool.Entry(own, "inputs")
    assert not entry.foreign
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert (spool._own_temporaries(tmp_path), entry.foreign) == ([], True)


def test_a_lock_says_who_writes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import fcntl

    lock, closed, close = tmp_path / ".lock", [], os.close
    lock.write_text("")
    assert spool._abandoned(tmp_path)
    with spool.claimed(tmp_path) as ours:
        assert ours
        assert not spool._abandoned(tmp_path)
    monkeypatch.setattr(os, "close", lambda handle: closed.append(handle) or close(handle))
    for error, says in (
        (BlockingIOError(), BlockingIOError),
        (PermissionError(), BlockingIOError),
        (OSError(), None),
    ):

        def flock(*_: Any, error: OSError = error) -> None:
            raise error

        monkeypatch.setattr(fcntl, "flock", flock)
        if says is None:  # a file system without locks
            assert spool._acquire(lock) is None
        else:
            with pytest.raises(says):
                spool._acquire(lock)
        assert lock.exists() == (says is not None)
        assert not spool._abandoned(tmp_path)
    assert len(closed) == 5
    with spool.claimed(tmp_path) as without_locks:
        assert without_locks
    monkeypatch.setattr(spool.os, "open", Mock(side_effect=OSError("read only")))
    with spool.claimed(tmp_path) as unwritable:
        assert unwritable
    lock.write_text("")
    assert not spool._abandoned(tmp_path)  # somebody else's


def test_a_forked_worker_holds_no_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[int] = []
    monkeypatch.setattr(os, "close", closed.append)
    monkeypatch.setattr(spool, "_held", {98, 99})
    assert not spool._is_linked(97)
    spool._release(97)
    spool._forked()
    spool._release(98)
    assert (sorted(closed), spool._held) == ([98, 99], set())


# -- settings --------------------------------------------------------------------------------------------------------


@pytest.fixture
def project(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    (tmp_path / "inside").mkdir()
    monkeypatch.chdir(tmp_path / "inside")
    for variable in (settings.VARIABLE, settings.ROW_IDS):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(settings, "_told", set())
    return tmp_path / "pyproject.toml"


@pytest.mark.parametrize(
    ("setting", "asked", "content", "limited"),
    [
        ("auto", "auto", "all", True),
        ("auto", True, "all", False),
        ("auto", "labels", "labels", True),
        ("auto", False, "off", True),
        ("on", "auto", "all", False),
        ("on", "labels", "labels", True),
        ("labels", "auto", "labels", True),
        ("labels", True, "labels", False),
        ("labels", False, "off", True),
        ("off", True, "off", True),
        ("yes", "auto", "all", False),
        ("0", True, "off", True),
    ],
)
def test_the_stricter_of_setting_and_wish_holds(
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    setting: str,
    asked: Any,
    content: str,
    limited: bool,
) -> None:
    monkeypatch.setenv(settings.VARIABLE, setting)
    kept = settings.kept_rows(asked)
    assert (kept.content, kept.limited) == (content, limited)
    assert bool(kept.reason) == (content != "all")
    monkeypatch.delenv(settings.VARIABLE)
    value = {"yes": "true", "0": '"0"'}.get(setting, f'"{setting}"')
    project.write_text(f"[tool.cmtrack]\npredictions = {value}\n")
    assert (settings.kept_rows(asked).content, settings.kept_rows(asked).limited) == (
        content,
        limited,
    )
    assert settings.lists_rows() == (settings.kept_rows().content == "all")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[tool.cmtrack]\npredictions = 1", "must be one of off, labels, auto, on, got 1"),
        ("[tool.cmtrack]\npredictoins = 'on'", "did you mean 'predictions'"),
        ("[tool]\ncmtrack = 1", "tool.cmtrack must be a table"),
        ("tool = 1", "cannot be read"),
        ("[", "cannot be read"),
    ],
)
def test_a_setting_that_cannot_be_read_is_off_and_said_once(
    project: Path, text: str, says: str
) -> None:
    project.write_text(text)
    with pytest.warns(UserWarning, match=says) as warned:
        contents = [settings.kept_rows(True).content for _ in range(2)]
    assert contents == ["off", "off"]
    assert len(warned) == 1


def test_the_file_of_a_project_may_have_just_its_limit(project: Path) -> None:
    text = "[tool.cmtrack]\npredictions = 'labels'\n#"
    project.write_text(text.ljust(1 << 20, "x"))
    assert settings.kept_rows().content == "labels"
    project.write_text(text.ljust((1 << 20) + 1, "x"))
    with pytest.warns(
        UserWarning, match=r"pyproject\.toml cannot be read: .*must not be larger than 1 MB"
    ):
        assert settings.kept_rows().content == "off"


def test_without_a_setting_the_wish_holds(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project.write_text("[tool.other]\nx = 1\n[tool.cmtrack]\nsomething = 2\n")
    assert settings.kept_rows() == settings.KeptRows("all", True)
    for wrong in ("all", "on", 1.5, None, 2):
        with pytest.raises(ValueError, match="predictions must be True, False, 'auto' or 'labels'"):
            settings.kept_rows(wrong)  # type: ignore[arg-type]
        assert settings.safe(wrong) is False  # type: ignore[arg-type]
    assert [settings.safe(one) for one in (True, False, "auto", "labels")] == [
        True,
        False,
        "auto",
        "labels",
    ]
    assert settings.kept_ids() == "off"
    for given, taken in ((" Hashed ", "hashed"), ("on", "on"), ("", "off")):
        monkeypatch.setenv(settings.ROW_IDS, given)
        assert settings.kept_ids() == taken
    monkeypatch.setenv(settings.ROW_IDS, "all")
    with pytest.warns(
        UserWarning, match="CMTRACK_ROW_IDS must be one of off, hashed, on, got 'all'"
    ) as warned:
        assert (settings.kept_ids(), settings.kept_ids()) == ("off", "off")
    assert len(warned) == 1


def test_inputs_of_a_failed_evaluation_are_kept_as_rows_are(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrays = {
        "y_true": ["a"],
        "y_pred": [0.25],
        "y_prob": [[1.0]],
        "row_ids": ["x"],
        "sample_weight": [2.0],
    }
    wide, reason = settings.kept_inputs(arrays)
    assert (set(wide), reason) == ({"y_true", "y_pred", "y_prob", "sample_weight"}, "")
    monkeypatch.setenv(settings.ROW_IDS, "on")
    assert set(settings.kept_inputs(arrays)[0]) == set(arrays)
    narrow, reason = settings.kept_inputs(arrays, "labels")
    assert (set(narrow), reason) == ({"y_true", "row_ids", "sample_weight"}, "predictions='labels'")
    assert settings.kept_inputs(arrays, False) == ({}, "predictions=False")
    assert settings.kept_inputs(arrays, "wrong") == ({}, "predictions='wrong'")
    for values, labels in (
        ([1.0, 2.0], True),
        ([1.5], False),
        ([np.nan, 1.0], True),
        (["a", None], True),
        ([[1], [2]], True),
        ([[1, 2]], False),
        (3, False),
        ([object()], False),
    ):
        assert settings._no_scores("y_true", values) == labels
    assert settings._no_scores("y_true", None)
    assert not settings._no_scores("y_score", None)


def test_rows_are_said_by_what_they_hold(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = evaluate([0, 1, 1], y_prob=[0.2, 0.7, 0.4], sample_weight=[1, 2, 1])
    kept, says = settings.with_kept_rows(rows)
    assert kept is not None
    assert says.startswith(
        "3 rows are logged (actual and predicted labels, probabilities, weights; 0.0 MB"
    )
    kept, says = settings.with_kept_rows(rows, "labels")
    assert kept is not None
    assert "(actual and predicted labels, weights;" in says
    assert settings.with_kept_rows(rows, False) == (None, "0 rows are logged (predictions=False).")
    monkeypatch.setattr(settings, "MAX_ROWS_BYTES", 2 << 20)
    monkeypatch.setattr(Evaluation, "rows_size", 2 << 20)
    assert settings.with_kept_rows(rows)[0] is not None
    monkeypatch.setattr(Evaluation, "rows_size", 3_400_000)
    assert settings.with_kept_rows(rows) == (
        None,
        "0 rows are logged: all rows have 3 MB, more than 2 MB.",
    )
    assert "; 3.4 MB before compression)" in settings.with_kept_rows(rows, True)[1]


@pytest.mark.parametrize(
    ("setting", "given", "hashed", "taken"),
    [
        ("on", ("a", "b", "c"), False, ("a", "b", "c")),
        ("off", ("a", "b", "c"), False, None),
        ("hashed", ("a", "b", "c"), False, "hashes"),
        ("hashed", ("h", "i", "j"), True, ("h", "i", "j")),
        ("on", ("h", "i", "j"), True, ("h", "i", "j")),
        ("off", ("h", "i", "j"), True, None),
    ],
)
def test_ids_of_rows_are_written_as_the_setting_says(
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    setting: str,
    given: Any,
    hashed: bool,
    taken: Any,
) -> None:
    monkeypatch.setenv(settings.ROW_IDS, setting)
    monkeypatch.setenv("CMTRACK_ID_KEY", "key")
    evaluation = evaluate([0, 1, 1], [0, 1, 0])
    rows = replace(evaluation.rows, ids=RowIds(np.array(given), hashed=hashed, stored=False))  # type: ignore[type-var]
    evaluation = replace(evaluation, rows=rows)
    kept, says = settings.with_kept_rows(evaluation)
    assert kept is not None
    ids = kept.rows.ids  # type: ignore[union-attr]
    if taken is None:
        assert (ids, "ids" in says) == (None, False)
        return
    assert (ids.stored, ids.hashed) == (True, hashed or taken == "hashes")
    assert ("hashes of the row ids" in says, "row ids" in says) == (ids.hashed, True)
    assert (tuple(ids.values) == given) == (taken != "hashes")
    labels, _ = settings.with_kept_rows(evaluation, "labels")
    assert labels.rows.ids is None  # type: ignore[union-attr]
    without = evaluate([0, 1, 1], [0, 1, 0])
    assert settings.with_kept_rows(without)[0] is without


@pytest.mark.parametrize(
    ("rows", "ids", "columns", "says"),
    [
        ("auto", "on", ["prob/0", "prob/1", "row_id"], ""),
        ("auto", "off", ["prob/0", "prob/1"], "row ids in {} (CMTRACK_ROW_IDS=off)"),
        ("labels", "on", [], "probabilities of the rows in {} (CMTRACK_PREDICTIONS=labels)"),
        ("off", "on", None, "rows in {} (CMTRACK_PREDICTIONS=off)"),
    ],
)
def test_rows_that_may_no_longer_be_sent_are_taken_out(
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    rows: str,
    ids: str,
    columns: Any,
    says: str,
) -> None:
    import pyarrow.parquet as pq

    one = evaluate([0, 1, 1], y_prob=[0.25, 0.75, 0.5], row_ids=["a", "b", "c"])
    monkeypatch.setenv(settings.ROW_IDS, "on")
    listed, _ = settings.with_kept_rows(one)
    assert listed is not None
    to = packages.Destination("r", "val/", figures=False)
    folder = tmp_path / "entry"
    made = packages.build(
        one,
        lambda name, content: spool.write_private(folder / name, content),
        to,
        rows=listed.write_rows,
        listed=listed,
    )
    whole, file = (
        replace(made, folder=folder),
        folder / "artifacts" / "val_cmtrack_predictions.parquet",
    )
    page, before = folder / "artifacts" / "val_cmtrack_report.html", file.read_bytes()
    shown = page.read_bytes()
    monkeypatch.setenv(settings.VARIABLE, rows)
    monkeypatch.setenv(settings.ROW_IDS, ids)
    package, taken = settings.allowed(whole)
    assert taken == ((f"the {says.format(file.name)}",) if says else ())
    assert (package == whole, page.read_bytes() == shown) == (not says, not says)
    assert json.loads((folder / "manifest.json").read_text())["tags"] == package.tags
    digest = names.digests(package.tags, "val/").get("predictions")
    if columns is None:
        assert (file.exists(), digest) == (False, None)
        assert settings.allowed(package) == (package, ())
        return
    assert set(pq.read_schema(file).names) == {"y_true", "y_pred", *columns}
    assert (digest, file.read_bytes() == before) == (digest_of(file.read_bytes()), not says)
    assert settings.allowed(package) == (package, ())


# -- views -----------------------------------------------------------------------------------------------------------


def test_a_line_of_links_has_five_and_the_newest_first() -> None:
    def link(k: int) -> str:
        return f"[v{k}](#/experiments/1/runs?viewStateShareKey=cmtrack{k:012x})"

    note, tags = "mine", {views.TAG + f"cmtrack{k:012x}" for k in range(9)}
    for k in range(7):
        note = views.with_link(note, link(k), f"cmtrack{k:012x}", tags)
    assert note == " · ".join(link(k) for k in (6, 5, 4, 3, 2)) + " <!-- cmtrack views -->\n\nmine"
    again = views.with_link(note, link(4), f"cmtrack{4:012x}", tags)
    assert again == " · ".join(link(k) for k in (4, 6, 5, 3, 2)) + " <!-- cmtrack views -->\n\nmine"
    assert views.with_link("", link(1), "k", ()) == f"{link(1)} <!-- cmtrack views -->"


def test_a_view_that_fits_to_the_letter_is_whole() -> None:
    cards = [{"metricKey": str(k)} for k in range(4)]
    state: dict[str, Any] = {"compareRunCharts": []}
    whole, left = views.fitted(state, cards, views.Form(10_000, named=False), "n", 7)
    assert left == 0
    assert views.fitted(state, cards, views.Form(len(whole), named=False), "n", 7) == (whole, 0)
    assert views.fitted(state, cards, views.Form(len(whole) - 1, named=False), "n", 7)[1] > 0
    many = [{"metricKey": digest_of(bytes([k]))} for k in range(6)]
    for count in range(7):
        value, _ = views.fitted(state, many[:count], views.Form(10_000, named=False), "n", 7)
        assert views.fitted(state, many, views.Form(len(value), named=False), "n", 7) == (
            value,
            6 - count,
        )
    named = json.loads(views.fitted(state, [], views.Form(10_000, named=True), "n", 7)[0])
    assert (named["name"], named["createdAt"], named["updatedAt"]) == ("n", 7, 7)
    assert named["state"].startswith("deflate;")


ACCURACY, MCC = "multiclass/accuracy", "multiclass/matthews_corrcoef"


def run(letter: str, metrics: dict[str, float], params: dict[str, str], **tags: str) -> Run:
    return Run(letter * 32, letter, "1", "http://host", metrics, params, tags)


RUNS = [
    run("a", {ACCURACY: 0.5, MCC: 0.4, "loss": 1.0}, {"depth": "1", "seed": "1", "same": "s"}),
    run(
        "b",
        {ACCURACY: 0.6, MCC: 0.4, "a`b": 1.0},
        {"depth": "2", "same": "s", "c`d": "1"},
        **{"cmtrack.rank": "1"},
    ),
]


def compared(rank_by: Any = ACCURACY, require: Any = (), **how: Any) -> Any:
    options = CompareOptions(rank_by=rank_by, require=require)
    return SimpleNamespace(how=how, criterion=options.criterion, gates=options.gates)


def test_a_view_shows_what_decides() -> None:
    notes: list[str] = []
    state, cards = views._state(compared(require=f"{MCC} > 0.1"), RUNS, notes)
    card = {"metricSectionId": "cmtrack", "isGenerated": False, "deleted": False}
    axes = {"xaxis": {"key": ACCURACY, "type": "METRIC"}, "yaxis": {"key": MCC, "type": "METRIC"}}
    lines = {
        "selectedParams": ["depth", "seed"],
        "selectedMetrics": [ACCURACY],
        "showAllRuns": False,
    }
    assert state == {
        "searchFilter": "tags.`cmtrack.status` = 'completed'",
        "orderByKey": f"metrics.`{ACCURACY}`",
        "orderByAsc": False,
        "startTime": "ALL",
        "lifecycleFilter": "Active",
        "modelVersionFilter": "All Runs",
        "datasetsFilter": [],
        "runsExpanded": {},
        "runsPinned": [],
        "runsHidden": [],
        "runsVisibilityMap": {},
        "selectedColumns": [
            "tags.`cmtrack.rank`",
            f"metrics.`{ACCURACY}`",
            f"metrics.`{MCC}`",
            "params.`depth`",
            "params.`seed`",
        ],
        "runsHiddenMode": "SHOW_ALL",
        "isAccordionReordered": True,
        "viewMaximized": False,
        "runListHidden": False,
        "compareRunSections": [
            {
                "uuid": "cmtrack",
                "name": "cmtrack",
                "display": True,
                "isReordered": True,
                "deleted": False,
                "isGenerated": False,
                "columns": 2,
                "cardHeight": 360,
            },
        ],
        "compareRunCharts": [
            {**card, "type": "BAR", "metricKey": ACCURACY, "runsCountToCompare": 50, "uuid": "c0"},
            {**card, "type": "SCATTER", **axes, "runsCountToCompare": 100, "uuid": "c1"},
            {**card, "type": "PARALLEL", **lines, "runsCountToCompare": 100, "uuid": "c2"},
        ],
        "groupBy": None,
        "groupsExpanded": {},
        "autoRefreshEnabled": True,
        "useGroupedValuesInCharts": True,
        "hideEmptyCharts": True,
        "globalLineChartConfig": {
            "xAxisKey": "step",
            "lineSmoothness": 0,
            "selectedXAxisMetricKey": "",
        },
    }
    gone = {"metricSectionId": "cmtrack", "isGenerated": True, "deleted": True}
    assert cards == [
        {"type": "BAR", "metricKey": MCC, **gone, "uuid": "d0"},
        {"type": "BAR", "metricKey": "loss", **gone, "uuid": "d1"},
    ]
    assert notes == []


@pytest.mark.parametrize(
    ("asked", "runs", "shows", "notes"),
    [
        (
            {"rank_by": "probability/brier"},
            2,
            {"orderByKey": f"metrics.`{ACCURACY}`", "orderByAsc": False},
            ["The runs did not log probability/brier, so"],
        ),
        ({"grouping": 1}, 2, {}, ["The view shows the logged values: the ranking"]),
        ({"costs": 1}, 2, {}, ["The view shows the logged values: the ranking"]),
        (
            {"runs": [1]},
            2,
            {"searchFilter": f"attributes.run_id IN ('{'a' * 32}', '{'b' * 32}')"},
            [],
        ),
        (
            {"runs": [1], "experiment_names": ["e"]},
            2,
            {"searchFilter": "tags.`cmtrack.status` = 'completed'"},
            [],
        ),
        (
            {"filter_string": " a = 1 "},
            2,
            {"searchFilter": "a = 1 and tags.`cmtrack.status` = 'completed'"},
            [],
        ),
        (
            {"prefix": "val/"},
            2,
            {"orderByKey": "attributes.start_time", "orderByAsc": False, "compareRunCharts": []},
            [f"The runs did not log {ACCURACY}, so"],
        ),
        ({}, 1, {"selectedColumns": [f"metrics.`{ACCURACY}`", f"metrics.`{MCC}`"]}, []),
        ({"rank_by": [ACCURACY, MCC]}, 2, {}, []),
    ],
)
def test_a_view_says_what_it_cannot_show(
    asked: Any, runs: int, shows: Any, notes: list[str]
) -> None:
    given: list[str] = []
    state, _ = views._state(compared(**asked), RUNS[:runs], given)
    assert {name: state[name] for name in shows} == shows
    assert [note[: len(start)] for note, start in zip(given, notes, strict=True)] == notes


def test_a_view_draws_each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def kinds(charts: list[Any]) -> list[str]:
        return [chart["type"] for chart in charts]

    charts = views._charts
    assert kinds(charts([ACCURACY], "", ["depth"], "", RUNS)) == ["BAR"]
    assert kinds(charts([], MCC, ["depth", "seed"], "", RUNS)) == []
    four = charts(["a", "b", "c", "d"], "b", ["depth", "seed"], "", RUNS)
    assert (kinds(four), four[-1]["selectedMetrics"]) == (
        ["BAR"] * 3 + ["SCATTER", "PARALLEL"],
        ["a", "b", "c"],
    )
    monkeypatch.setattr(
        views, "_images", lambda one: [f"{one.name}/{views.IMAGE_KEY}", views.IMAGE_KEY]
    )
    image = charts([ACCURACY], "", [], "", RUNS)[-1]
    assert (image["type"], image["imageKeys"], image["step"], image["runsCountToCompare"]) == (
        "IMAGE",
        [views.IMAGE_KEY],
        0,
        10,
    )
    assert kinds(charts([ACCURACY], "", [], "c/", RUNS)) == ["BAR"]
    _, cards = views._state(compared(), RUNS, [])
    assert [card["imageKeys"] for card in cards if card["type"] == "IMAGE"] == [
        [f"{name}/{views.IMAGE_KEY}"] for name in "ab"
    ]
    assert views._second(compared(), RUNS, [ACCURACY], [ACCURACY, MCC], "") == MCC
    same = [run("a", {ACCURACY: 0.5, MCC: 0.5}, {})]
    assert views._second(compared(), same, [ACCURACY], [ACCURACY, MCC], "") == ""
    assert views._second(compared(), same, [], [ACCURACY, MCC], "") == ACCURACY
    assert (
        views._second(compared(), RUNS, [ACCURACY, "loss"], [ACCURACY, "loss", MCC], "") == "loss"
    )
    many = [
        run(
            letter,
            {},
            {f"p{k}": letter for k in range(40)} | ({"only": "1"} if letter == "a" else {}),
        )
        for letter in "ab"
    ]
    assert views._differing(many) == sorted(f"p{k}" for k in range(40))[:6]
    named = SimpleNamespace(how={"runs": ["a"]})
    for count, listed in ((60, True), (61, False)):
        assert (
            views._filter(named, RUNS[:1] * count, "").startswith("attributes.run_id IN (")
            == listed
        )
    assert views._differing([run("a", {}, {"only": "1", "z": "1"}), run("b", {}, {"z": "2"})]) == [
        "z",
        "only",
    ]


@pytest.mark.parametrize(
    ("version", "form"),
    [
        ("3.5.0", views.Form(5_000, named=False)),
        ("3.15.9", views.Form(5_000, named=False)),
        ("3.16.0", views.Form(20_000, named=True)),
        ("3.99", views.Form(20_000, named=True)),
        ("3.4.9", None),
        ("4.0.0", None),
    ],
)
def test_a_view_has_the_form_of_its_version(version: str, form: Any) -> None:
    if form is None:
        with pytest.raises(
            ValueError, match=r"saved views are known from MLflow 3\.5 to 3\.x, and this server has"
        ):
            views.form_for(version)
    else:
        assert views.form_for(version) == form


def test_the_version_is_that_of_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    import mlflow
    from mlflow.exceptions import MlflowException

    asked: list[Any] = []
    answers = [SimpleNamespace(status_code=200, text="3.6.1"), SimpleNamespace(status_code=404)]
    monkeypatch.setattr(
        views.mlflow_inside,
        "get",
        lambda *given, **how: asked.append((given, how)) or answers.pop(0),
    )
    client = SimpleNamespace(tracking_uri="http://u:p@host")
    assert views.server_version(client) == "3.6.1"
    assert asked == [(("http://u:p@host", "/version"), {"max_retries": 1, "timeout": (3.0, 10.0)})]
    with pytest.raises(
        ValueError, match="http://host answers 404 when it is asked for its version"
    ):
        views.server_version(client)
    monkeypatch.setattr(views.mlflow_inside, "get", Mock(side_effect=MlflowException("gone")))
    with pytest.raises(ConnectionError, match="http://host did not answer: gone"):
        views.server_version(client)
    assert (
        views.server_version(SimpleNamespace(tracking_uri="postgresql+psycopg://host"))
        == mlflow.__version__
    )
    with pytest.raises(
        ValueError,
        match="a saved view needs MLflow's own server, got a tracking URI of the scheme 'x'",
    ):
        views.server_version(SimpleNamespace(tracking_uri="x://a"))


def test_a_view_is_of_the_experiment_of_the_chosen_run(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[Any] = []
    client = SimpleNamespace(
        tracking_uri="http://host",
        get_experiment=lambda _: SimpleNamespace(tags={}),
        set_experiment_tag=lambda *tag: written.append(tag),
    )
    monkeypatch.setattr(views, "client_for", lambda _: client)
    monkeypatch.setattr(views, "server_version", lambda _: "3.17.2")
    both = [SimpleNamespace(run=RUNS[0]), SimpleNamespace(run=replace(RUNS[1], experiment_id="2"))]
    comparison = compared()
    vars(comparison).update(runs=both, failed=[], best=SimpleNamespace(run_id="b" * 32))
    began = time.time()
    view = views.save_view(comparison, "n" * 100)
    assert (view.experiment_id, view.mlflow_version) == ("2", "3.17.2")
    assert view.notes == ("1 of 2 runs are in other experiments: a view is of one.",)
    assert view.link == f"http://host/#/experiments/2/runs?viewStateShareKey={view.key}"
    assert view.charts == f"{view.link}&compareRunsMode=CHART"
    assert [key for _, key, _ in written] == [views.TAG + view.key, views.NOTE]
    assert began * 1000 - 1 <= json.loads(written[0][2])["createdAt"] <= time.time() * 1000
    comparison.best = None
    assert views.save_view(comparison).experiment_id == "1"
    assert views.save_view(comparison).name == f"cmtrack: {ACCURACY}"
    for wrong in ("n" * 101, " ", "a\nb", 5):
        with pytest.raises(
            ValueError, match="a view's name must be a text of one line and at most"
        ):
            views.save_view(comparison, wrong)
    comparison.runs = [SimpleNamespace(run=replace(RUNS[0], tracking_uri=""))]
    with pytest.raises(ValueError, match="a saved view needs runs of a tracking store"):
        views.save_view(comparison)
    comparison.runs = []
    with pytest.raises(
        ValueError, match="a view needs a run that is ranked or that a gate stopped"
    ):
        views.save_view(comparison)
