"""Files that a user or a job names are plain ones of a bounded size; a sentence says which is not, nothing hangs."""

from __future__ import annotations

import hashlib
import io
import json
import os
import threading
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from cmtrack import (
    Costs,
    Evaluation,
    FamilyEvaluation,
    Grouping,
    compare,
    evaluate,
    evaluate_families,
)
from cmtrack.cli import main
from cmtrack.comparison import Rule
from cmtrack.untrusted import parsed_yaml

WAIT = 60.0
"""Seconds after which a reader counts as hanging."""


def finished(read: Callable[[], Any]) -> BaseException | None:
    """What reading ended in; a reader that waits for a pipe or an endless device fails the test."""
    out: list[BaseException | None] = []

    def run() -> None:
        try:
            read()
            out.append(None)
        except BaseException as error:
            out.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(WAIT)
    assert out, "it hangs"
    return out[0]


def verify(path: Path) -> None:
    """Verify a bundle; ValueError, with the sentence that the command prints, if it cannot be read."""
    run = CliRunner().invoke(main, ["verify", str(path)])
    if run.exit_code == 2:
        raise ValueError(" ".join(run.output.split()))


READERS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "grouping": (Grouping.from_file, "g.yaml"),
    "grouping as JSON": (Grouping.from_file, "g.json"),
    "costs": (Costs.from_file, "c.yaml"),
    "rule": (Rule.from_file, "r.yml"),
    "bundle": (verify, "review.zip"),
    "evaluation": (Evaluation.load, "cmtrack_evaluation.json"),
    "families": (FamilyEvaluation.load, "cmtrack_evaluation.json"),
}
COMMANDS = {
    "verify": (["verify", "{}"], "review.zip"),
    "compare by a rule": (["compare", "--rule", "{}"], "r.yaml"),
    "grouping": (
        ["evaluate", "data.csv", "--y-true", "y", "--y-pred", "p", "--grouping", "{}"],
        "g.yaml",
    ),
    "costs": (
        ["evaluate", "data.csv", "--y-true", "y", "--y-pred", "p", "--costs", "{}"],
        "c.yaml",
    ),
    "table": (["evaluate", "{}", "--y-true", "y", "--y-pred", "p"], "t.csv"),
}
KINDS = {"pipe": "a pipe", "folder": "a folder", "zeros": "a device"}


def put(path: Path, kind: str) -> Path:
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero")
    return path


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reader", READERS)
def test_what_is_no_plain_file_is_said_and_not_waited_for(tmp_path, reader, kind):
    read, name = READERS[reader]
    path = put(tmp_path / name, kind)
    error = finished(lambda: read(path))
    # an evaluation may be named by its folder
    if kind == "folder" and name.endswith("evaluation.json"):
        assert isinstance(error, FileNotFoundError)
        return
    assert isinstance(error, ValueError)
    assert f"{str(path)!r} must be a plain file, got {KINDS[kind]}" in str(error)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("command", COMMANDS)
def test_commands_say_it_and_exit_with_2(tmp_path, monkeypatch, command, kind):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.csv").write_text("y,p\n0,0\n1,1\n")
    words, name = COMMANDS[command]
    put(tmp_path / name, kind)
    out: list[Any] = []
    assert (
        finished(
            lambda: out.append(CliRunner().invoke(main, [word.format(name) for word in words]))
        )
        is None
    )
    assert out[0].exit_code == 2
    says = [f"{name}' must be a plain file, got {KINDS[kind]}"]
    if kind == "folder":  # click's own word, and a folder stands for the tables in it
        says += [f"File '{name}' is a directory", f"the folder '{name}' has no"]
    assert any(text in out[0].output for text in says)


def test_verify_says_which_folder_is_no_bundle():
    run = CliRunner().invoke(main, ["verify", "."])
    assert run.exit_code == 2
    assert (
        run.output.strip()
        == "Error: . is not a bundle of cmtrack: '.' must be a plain file, got a folder"
    )


def sparse(path: Path) -> Path:
    with path.open("wb") as file:
        file.truncate(3 << 30)
    return path


@pytest.mark.parametrize("reader", READERS)
def test_a_file_of_3_gb_is_not_read(tmp_path, monkeypatch, reader):
    read, name = READERS[reader]
    path, asked = sparse(tmp_path / name), []
    fdopen = os.fdopen

    class Counted(io.BufferedReader):
        def read(self, size: Any = -1, /) -> bytes:
            asked.append(size)
            return super().read(size)

    def counted(handle: int, mode: str) -> Counted:
        return Counted(fdopen(handle, mode).detach())

    monkeypatch.setattr("cmtrack.untrusted.os.fdopen", counted)
    with pytest.raises(ValueError, match=r"must not be larger than|the archive is damaged"):
        read(path)
    assert (
        sum(size if size and size > 0 else 1 << 16 for size in asked) <= 1 << 20
    )  # the end of an archive is looked for


def test_a_link_that_the_user_named_is_followed(tmp_path):
    (tmp_path / "g.yaml").write_text("groups: {low: [0, 1], high: [2]}")
    (tmp_path / "link.yaml").symlink_to(tmp_path / "g.yaml")
    assert Grouping.from_file(tmp_path / "link.yaml") == Grouping({"low": [0, 1], "high": [2]})
    (tmp_path / "circle.yaml").symlink_to(tmp_path / "circle.yaml")
    with pytest.raises(OSError, match="symbolic links"):
        Grouping.from_file(tmp_path / "circle.yaml")


MANY = "groups:\n" + "".join(f"- [g{k}, [{k}]]\n" for k in range(50_000))


@pytest.mark.parametrize("read", [Grouping.from_file, Costs.from_file, Rule.from_file])
def test_a_file_that_nobody_wrote_is_refused_by_its_size(tmp_path, read):
    path = tmp_path / "many.yaml"
    path.write_text(MANY)
    began = time.process_time()
    with pytest.raises(
        ValueError, match=r"'many.yaml' must not be larger than 64 kB, got 977,788 bytes"
    ):
        read(path)
    assert time.process_time() - began < 5


@pytest.mark.slow
def test_50000_groups_that_json_holds_are_a_grouping_at_once(tmp_path):
    path = tmp_path / "many.json"
    path.write_text(
        json.dumps({"groups": [[f"g{k}", [k]] for k in range(50_000)], "mode": "strict"})
    )
    began = time.process_time()
    assert len(Grouping.from_file(path).groups) == 50_000
    assert time.process_time() - began < 20
    path.write_text(" " * (5 << 20))
    with pytest.raises(ValueError, match="must not be larger than 4 MB"):
        Grouping.from_file(path)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: &x [1]\nb: *x", "a text must not have anchors or aliases"),
        ("a: 1\na: 2", "each key must be given only once, got 'a' twice"),
        ("a: {b: 1, b: 2}", "each key must be given only once, got 'b' twice"),
        ("? [1]\n: 2", "unhashable type"),
        ("a: {<<: {b: 1}}", "could not determine a constructor"),
        ("a: !!python/object/apply:os.system [ls]", "could not determine a constructor"),
        ("[" * 30_000, "a text must not be nested more than 64 levels deep"),
        ("- " * 30_000, "a text must not be nested more than 64 levels deep"),
        ("a: " + "9" * 5000, "Exceeds the limit"),
        ("a: [", "while parsing"),
        ("a: \x00", "unacceptable character|control characters"),
    ],
    ids=lambda text: text[:12],
)
def test_yaml_is_plain_data_or_refused(text, says):
    with pytest.raises(ValueError, match=says):
        parsed_yaml(text.encode(), "a text")


@pytest.mark.slow
def test_yaml_of_the_largest_size_takes_no_time():
    began = time.process_time()
    for text in (
        "x: [" + "a," * 32_000 + "a]",
        "".join(f"a{k}: 1\n" for k in range(7_000)),
        "[" + "[]," * 21_000 + "]",
    ):
        assert parsed_yaml(text.encode(), "a text")
    assert time.process_time() - began < 20


def test_a_bundle_with_a_rule_of_4_mb_is_refused_at_once(tmp_path):
    rule = b"x: [" + b"a," * (2 << 20) + b"a]"
    files = {
        "rule.yaml": rule,
        "runs.json": b'{"judged": [], "criterion": {"metrics": [], "weights": [], "pareto": 0}}',
    }
    files |= dict.fromkeys(("review.html", "review.md"), b"x") | {"review.json": b"{}"}
    listed = {
        name: {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
        for name, content in files.items()
    }
    manifest = {
        "schema": 1,
        "versions": {},
        "title": None,
        "rule": {"file": "rule.yaml", "given": True},
        "files": listed,
    }
    with zipfile.ZipFile(tmp_path / "review.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in {**files, "manifest.json": json.dumps(manifest).encode()}.items():
            archive.writestr(name, content)
    assert (tmp_path / "review.zip").stat().st_size < 100_000
    began = time.process_time()
    run = CliRunner().invoke(main, ["verify", str(tmp_path / "review.zip"), "--json"])
    assert time.process_time() - began < 10
    (problem,) = json.loads(run.stdout)["problems"]
    assert problem.endswith(": rule.yaml must not be larger than 1 MB, got 4,194,310 bytes")


@pytest.mark.slow
def test_a_rule_that_no_bundle_could_be_read_with_is_not_written(tmp_path):
    labels = range(300)
    costs = Costs({(a, p): 2 for a in labels for p in labels if a != p})
    runs = {"a": evaluate([0, 1] * 10, [0, 1] * 10, labels=labels, sections=["cost"], costs=costs)}
    comparison = compare(runs, rank_by="cost/mean", costs=costs)
    with pytest.raises(ValueError, match="the rule must not be larger than 1 MB, got "):
        comparison.bundle(tmp_path / "review.zip")


def test_what_was_saved_is_read_from_its_folder_and_its_file(tmp_path):
    evaluation, families = (
        evaluate([0, 1, 1], [0, 1, 0]),
        evaluate_families([["a1"]], [["a1"]], families=lambda c: c[0]),
    )
    assert (
        Evaluation.load(evaluation.save(tmp_path / "one"))
        == evaluation
        == Evaluation.load(tmp_path / "one")
    )
    assert FamilyEvaluation.load(families.save(tmp_path / "two")) == families
