"""Several evaluations in one run: the same again, another one, others under prefixes; and the run's description."""

from __future__ import annotations

import contextlib
import errno
import json
import warnings
from html import unescape
from unittest import mock

import mlflow
import pytest
from mlflow.store.artifact.local_artifact_repo import LocalArtifactRepository

from cmtrack import Grouping, compare, evaluate, load_evaluation, log_evaluation, regroup_runs
from cmtrack.report import verdict
from cmtrack.tracking import EvaluationWarning, digests, tag
from support.problems import random_problem
from support.stores import push

pytestmark = pytest.mark.usefixtures("undrawn")

GROUPING = Grouping({"low": [0, 1], "high": [2]}, name="two")


@pytest.fixture
def first():
    y, _, p = random_problem(0, n=120, k=3, skill=1.2)
    return evaluate(y, y_prob=p)


@pytest.fixture
def second():
    return evaluate([0, 1, 1, 0, 1], [0, 1, 0, 0, 1])


def everything(store, run_id):
    run = store.get_run(run_id)
    history = {
        name: [(m.step, m.timestamp, m.value) for m in store.get_metric_history(run_id, name)]
        for name in run.data.metrics
    }
    files = [
        file.path
        for folder in ("", "images")
        for file in store.list_artifacts(run_id, folder or None)
    ]
    return run.data.tags, history, sorted(files), len(run.inputs.dataset_inputs)


@pytest.mark.slow
@pytest.mark.usefixtures("drawn")
def test_the_same_evaluation_again_changes_nothing(store, first):
    run_id = store.create_run("1").info.run_id
    log_evaluation(first, run_id=run_id, strict=True)
    before = everything(store, run_id)
    with warnings.catch_warnings():
        warnings.simplefilter("error", EvaluationWarning)
        assert log_evaluation(first, run_id=run_id).status == "completed"
    assert everything(store, run_id) == before
    log_evaluation(first, run_id=run_id, metrics="all", strict=True)  # more of the same is more
    assert set(everything(store, run_id)[1]) > set(before[1])


@pytest.mark.slow
@pytest.mark.usefixtures("drawn")
def test_another_evaluation_replaces_the_first_with_a_warning(store, first, second):
    run_id = store.create_run("1").info.run_id
    store.log_metric(run_id, "loss", 0.5)
    log_evaluation(first, run_id=run_id, figures="all", strict=True)
    with pytest.warns(EvaluationWarning) as warned:
        logged = log_evaluation(second, run_id=run_id)
    assert logged.status == "completed"
    (said,) = [str(one.message) for one in warned]
    assert (
        f"run {run_id} held an evaluation of 120 other rows, which was replaced: use prefix="
        in said
    )
    assert "MLflow keeps these old metrics" in said
    assert said == f"cmtrack: {logged.replaced}"
    assert load_evaluation(run_id) == second
    tags, history, files, _ = everything(store, run_id)
    assert "cmtrack_roc.png" not in files
    assert "cmtrack_confusion_matrix.png" in files
    stale = tags["cmtrack.stale_metrics"].split(", ")
    assert {"spcc/ovr_fisher", "confidence/error"} <= set(stale)
    assert "loss" not in stale
    assert not set(stale) & set(second.metrics)
    assert tags["cmtrack.samples"] == "5"
    assert set(history) - set(stale) - {"loss"} <= set(second.metrics)


@pytest.mark.slow
def test_tags_of_the_first_do_not_stay(store, first, second):
    run_id = store.create_run("1").info.run_id
    log_evaluation(first.regroup(GROUPING), run_id=run_id, strict=True)
    assert store.get_run(run_id).data.tags["cmtrack.positive"] == "high"
    with pytest.warns(EvaluationWarning, match="was replaced"):
        log_evaluation(evaluate([0, 1, 2, 2], [0, 1, 1, 2]), run_id=run_id, predictions=False)
    tags = store.get_run(run_id).data.tags
    assert {"cmtrack.positive", "cmtrack.groups"} & set(tags) == set()
    assert "predictions" not in digests(tags)
    with pytest.raises(ValueError, match="has no cmtrack_predictions"):
        load_evaluation(run_id, rows=True)


@pytest.mark.slow
@pytest.mark.usefixtures("drawn")
def test_where_nothing_may_be_replaced_the_second_waits(store, first, second):
    run_id = store.create_run("1").info.run_id
    log_evaluation(first, run_id=run_id, strict=True)
    before = everything(store, run_id)
    with pytest.warns(EvaluationWarning, match="holds an evaluation of .*: use prefix="):
        kept = log_evaluation(second, run_id=run_id, on_existing="error")
    assert kept.status == "saved"
    assert everything(store, run_id) == before
    (again,) = push()
    assert (again.status, "holds an evaluation of " in again.reason) == ("kept", True)
    with pytest.warns(
        EvaluationWarning, match="on_existing must be 'replace' or 'error', got 'keep'"
    ):
        log_evaluation(second, run_id=run_id, on_existing="keep")


@pytest.mark.slow
def test_steps_take_the_place_of_each_other_without_a_word(store, first, second):
    run_id = store.create_run("1").info.run_id
    with warnings.catch_warnings():
        warnings.simplefilter("error", EvaluationWarning)
        for step, evaluation in enumerate((first, second, first)):
            log_evaluation(evaluation, run_id=run_id, step=step, strict=True)
    assert [m.step for m in store.get_metric_history(run_id, "multiclass/accuracy")] == [0, 1, 2]
    assert load_evaluation(run_id) == first


@pytest.mark.slow
@pytest.mark.usefixtures("drawn")
def test_a_store_that_removes_no_files_says_so(store, first, second, monkeypatch):
    def refuse(*_: object) -> None:
        raise NotImplementedError("not here")

    monkeypatch.setattr(
        "mlflow.store.artifact.local_artifact_repo.LocalArtifactRepository.delete_artifacts", refuse
    )
    run_id = store.create_run("1").info.run_id
    log_evaluation(first, run_id=run_id, figures="all", strict=True)
    with pytest.warns(EvaluationWarning):
        logged = log_evaluation(second, run_id=run_id)
    assert logged.problems == ("files of the replaced evaluation could not be removed: not here",)
    assert load_evaluation(run_id) == second


# -- the description -------------------------------------------------------------------------------------------------


def note(store, run_id):
    return store.get_run(run_id).data.tags["mlflow.note.content"]


@pytest.mark.slow
def test_each_evaluation_has_its_own_named_block(store, first, second):
    run_id = store.create_run("1").info.run_id
    log_evaluation(first, run_id=run_id, strict=True)
    log_evaluation(second, run_id=run_id, prefix="train/", strict=True)
    text = note(store, run_id)
    accuracy = [f"{e.metrics['multiclass/accuracy']:.3f}" for e in (first, second)]
    whole, train = text.split("<!-- /cmtrack -->")
    assert whole.startswith("**Evaluation**: On 120 rows of 3 classes, the accuracy is ")
    assert f"| multiclass/accuracy | {accuracy[0]} |" in whole
    assert "**Evaluation “train”**: The model finds " in train
    assert " predictions are correct" in train
    assert "2 of 3 rows of “1”" in train
    assert f"| train/multiclass/accuracy | {accuracy[1]} |" in train
    with pytest.warns(EvaluationWarning, match="was replaced"):
        log_evaluation(first, run_id=run_id, prefix="train/")
    again = note(store, run_id)
    assert again.split("<!-- /cmtrack -->")[0] == whole
    assert f"| train/multiclass/accuracy | {accuracy[0]} |" in again
    assert again.count("**Evaluation “train”**") == 1


@pytest.mark.slow
def test_a_persons_own_words_stay(store, first, second):
    run_id = store.create_run("1").info.run_id
    store.set_tag(run_id, "mlflow.note.content", "# My run\nwith | a table |\n")
    log_evaluation(first, run_id=run_id, strict=True)
    mine = note(store, run_id) + "\n\nAn afterthought."
    assert mine.startswith("# My run\nwith | a table |\n")
    store.set_tag(run_id, "mlflow.note.content", mine)
    with pytest.warns(EvaluationWarning, match="was replaced"):
        log_evaluation(second, run_id=run_id)
    text = note(store, run_id)
    assert text.startswith("# My run\nwith | a table |\n")
    assert text.endswith("\n\nAn afterthought.")
    assert text.count("**Evaluation**") == 1
    assert "3 rows" in text


@pytest.mark.slow
def test_a_regrouped_evaluation_gets_a_block_of_its_own(store, first):
    with mlflow.start_run() as run:
        log_evaluation(first, strict=True)
    (done,) = regroup_runs([run.info.run_id], GROUPING)
    text = note(store, run.info.run_id)
    assert done.status == "completed"
    assert "**Evaluation**: On 120 rows of 3 classes" in text
    assert "**Evaluation “two”**: The model finds " in text
    assert "of “high”" in text
    assert compare([run.info.run_id], prefix="two_").best.run_id == run.info.run_id


@pytest.mark.slow
@pytest.mark.usefixtures("drawn")
def test_the_first_lines_answer_and_lead_on(store, first):
    run_id = store.create_run("1").info.run_id
    evaluation = first.regroup(GROUPING)
    log_evaluation(evaluation, run_id=run_id, prefix="val set/", strict=True)
    lines = [line for line in note(store, run_id).splitlines() if line]
    plain = [unescape(line.replace("\\", "")) for line in lines]
    address = f"#/experiments/1/runs/{run_id}/artifacts/val_set_cmtrack_report.html"
    said = verdict(evaluation)
    assert (
        plain[0]
        == f"**Evaluation “val set”**: {said[0]} [Report]({address}) <!-- cmtrack val set/ -->"
    )
    assert said[0].startswith("The model finds ")
    assert not any(said[1] in line for line in plain)  # the report answers further questions
    pictures = [line for line in lines if line.startswith("!")]
    picture = f"get-artifact?path=val_set_cmtrack_reduced_two.png&run_uuid={run_id}"
    assert pictures == [f"![Reduced confusion matrix “two”]({picture})"]
    assert sum(line.startswith("| val set/") for line in lines) == 6
    files = {file.path for file in store.list_artifacts(run_id)}
    assert {"val_set_cmtrack_report.html", "val_set_cmtrack_reduced_two.png"} <= files


@pytest.mark.slow
@pytest.mark.usefixtures("drawn")
def test_warnings_stand_before_the_picture(store):
    evaluation = evaluate(["a", "a", "b", "c"], ["a", "a", "a", "a"])
    run_id = store.create_run("1").info.run_id
    log_evaluation(evaluation, run_id=run_id, strict=True)
    text = note(store, run_id)
    assert 0 < text.index("**Warning:**") < text.index("![")
    assert text.count("**Warning:**") == min(2, len(evaluation.warnings))


def test_a_label_makes_no_markdown_and_no_link(store):
    bad = "](artifact:x) **b** <i> ![p](http://h/) | x"
    run_id = store.create_run("1").info.run_id
    log_evaluation(["a", bad, bad], ["a", bad, "a"], positive=bad, run_id=run_id, strict=True)
    block = note(store, run_id)
    assert "<i>" not in block
    assert "**b**" not in block
    assert r"\!\[p\](http://h/)" in block


def test_links_lead_only_to_files_that_are_there(store, first):
    run_id = store.create_run("1").info.run_id
    with failing_upload("cmtrack_report.html"), pytest.warns(EvaluationWarning, match="refused"):
        log_evaluation(first, run_id=run_id)
    assert "[Report](" not in note(store, run_id)
    log_evaluation(first, run_id=run_id, prefix="whole/", strict=True)
    address = f"#/experiments/1/runs/{run_id}/artifacts/whole_cmtrack_report.html"
    assert f"[Report]({address})" in note(store, run_id)


@contextlib.contextmanager
def failing_upload(name):
    """The store takes all files but one, which is too large for it."""
    real = LocalArtifactRepository.log_artifact

    def log_artifact(repository, path, *given, **options):
        if path.endswith(name):
            raise OSError(errno.EFBIG, "too large")
        real(repository, path, *given, **options)

    with mock.patch.object(LocalArtifactRepository, "log_artifact", log_artifact):
        yield


@pytest.mark.slow
def test_a_review_goes_before_the_others_and_after_a_persons_words(store, first):
    ids = [store.create_run("1", run_name=name).info.run_id for name in "ab"]
    for run_id in ids:
        store.set_tag(run_id, "mlflow.note.content", "mine")
        log_evaluation(first, run_id=run_id, strict=True)
    before = note(store, ids[0])
    texts = []
    for _ in range(2):  # the second review takes the place of the first
        compare(ids, rank_by="multiclass/accuracy").log()
        texts.append(note(store, ids[0]))
    for text in texts:
        assert text.startswith("mine\n\n")
        assert text.count("<!-- cmtrack (review) -->") == 1
        assert text.index("<!-- cmtrack (review) -->") < text.index("**Evaluation**")
        assert text.endswith(before.removeprefix("mine"))


BLOCKS_BEFORE = {
    "whose label came first": "<!-- cmtrack -->\nold\n\n| t |\n\n<!-- /cmtrack -->",
    "of the first version": (
        "| cmtrack | value | 95% interval |\n|---|---|---|\n| multiclass/accuracy | 0.4321 | |"
    ),
}


@pytest.mark.parametrize("before", BLOCKS_BEFORE.values(), ids=BLOCKS_BEFORE)
def test_a_block_of_an_earlier_version_is_replaced(store, second, before):
    run_id = store.create_run("1").info.run_id
    store.set_tag(run_id, "mlflow.note.content", f"{before}\n\nmine")
    log_evaluation(second, run_id=run_id, strict=True)
    text = note(store, run_id)
    assert before not in text
    assert "old" not in text
    assert "0.4321" not in text
    assert "mine" in text
    assert text.count("**Evaluation**") == text.count("<!-- /cmtrack -->") == 1


@pytest.mark.slow
def test_an_evaluation_of_ones_own_is_not_taken_for_a_regrouped_one(store, first, second):
    with mlflow.start_run() as run:
        log_evaluation(first, strict=True)
    regroup_runs([run.info.run_id], GROUPING)
    assert "cmtrack.two.regrouped_from" in store.get_run(run.info.run_id).data.tags
    with pytest.warns(EvaluationWarning, match="was replaced"):
        log_evaluation(second, run_id=run.info.run_id, prefix="two_")
    assert not [name for name in store.get_run(run.info.run_id).data.tags if "regroup" in name]
    (left,) = regroup_runs([run.info.run_id], GROUPING)
    assert (left.status, "was not made by regrouping" in left.reason) == ("left out", True)


# -- tags --------------------------------------------------------------------------------------------------------------


TAGS_BEFORE = {
    "schema": "schema",
    "labels": "labels_digest",
    "row_ids": "row_ids_digest",
    "evaluation": "evaluation_digest",
    "predictions": "predictions_digest",
    "predictions_file": "predictions_file",
    "regrouping": "regrouping",
}
"""Tags of earlier versions by the entry of ``cmtrack.digests`` that has taken their place."""
SHORT_BEFORE = {"groups": "grouping", "nan": "undefined", "warning": "warnings"}
"""Earlier names of readable tags."""


def as_before(store, run_id, prefix=""):
    """Give a run the tags that earlier versions wrote, one for each digest, and their names of those for people."""
    found = store.get_run(run_id).data.tags
    for name, former in SHORT_BEFORE.items():
        if tag(name, prefix) in found:
            store.set_tag(
                run_id, tag(name, prefix).removesuffix(name) + former, found[tag(name, prefix)]
            )
            store.delete_tag(run_id, tag(name, prefix))
    for entry, text in digests(found, prefix).items():
        store.set_tag(run_id, tag(TAGS_BEFORE[entry], prefix), text)
    store.delete_tag(run_id, tag("digests", prefix))


@pytest.mark.slow
def test_digests_stand_in_one_tag_and_all_others_are_for_people(store, first):
    run_id = store.create_run("1").info.run_id
    log_evaluation(first, run_id=run_id, strict=True)
    log_evaluation(first, run_id=run_id, prefix="val/", strict=True)
    tags = store.get_run(run_id).data.tags
    ours = {name for name in tags if name.startswith("cmtrack.")}
    assert ours == {
        f"cmtrack.{middle}{name}"
        for middle in ("", "val.")
        for name in ("digests", "samples", "status")
    } | {"cmtrack.val.part"}  # of a run with several evaluations
    assert json.loads(tags["cmtrack.digests"]) == {
        "schema": "2",
        "labels": first.labels_digest,
        "evaluation": digests(tags)["evaluation"],
        "predictions": digests(tags)["predictions"],
    }
    assert digests(tags, "val/")["predictions_file"] == "val_cmtrack_predictions.parquet"


@pytest.mark.parametrize(
    "text", ["{", "[1]", '{"evaluation": 3}', "[" * 100_000], ids=["cut", "list", "number", "deep"]
)
def test_a_damaged_tag_of_digests_says_nothing(text):
    assert digests({"cmtrack.digests": text, "cmtrack.evaluation_digest": "x"}) == {}


@pytest.mark.slow
def test_runs_with_the_tags_of_earlier_versions_are_read_as_before(store, first):
    ids = []
    for name in ("a", "b"):
        with mlflow.start_run(run_name=name) as run:
            log_evaluation(first, strict=True)
        ids.append(run.info.run_id)
    before = digests(store.get_run(ids[0]).data.tags)
    as_before(store, ids[0])
    assert digests(store.get_run(ids[0]).data.tags) == before
    assert load_evaluation(ids[0], rows=True).rows is not None
    (ranking,) = compare(ids).rankings  # the same data: one was logged by an earlier version
    assert len(ranking.runs) == 2
    (done,) = regroup_runs(ids[:1], GROUPING)
    assert done.status == "completed"
    as_before(store, ids[0], "two_")
    assert {"cmtrack.two.grouping", "cmtrack.two.warnings"} & set(store.get_run(ids[0]).data.tags)
    (again,) = regroup_runs(ids[:1], GROUPING)
    assert again.already_done
    assert again.warnings == done.warnings
    store.set_tag(ids[0], "cmtrack.evaluation_digest", "0" * 32)
    with pytest.raises(ValueError, match="is not the file that was logged"):
        load_evaluation(ids[0])


def test_names_of_tags_are_shown_whole_by_mlflow(store, first):
    run_id = store.create_run("1").info.run_id
    log_evaluation(evaluate([0, 0, 1, 2], [0, 0, 1, 1], grouping=GROUPING), run_id=run_id)
    tags = {
        name: text
        for name, text in store.get_run(run_id).data.tags.items()
        if name.startswith("cmtrack.")
    }
    assert {"cmtrack.groups", "cmtrack.warning"} <= set(tags)
    # MLflow cuts the longer of name and value, and both where both have more than 15 letters
    assert [
        name for name, text in tags.items() if len(name) > 15 and len(name) + len(text) > 30
    ] == []


@pytest.mark.slow
def test_tags_of_earlier_versions_go_when_an_evaluation_is_sent(store, first, second):
    run_id = store.create_run("1").info.run_id
    log_evaluation(first, run_id=run_id, strict=True)
    expected = store.get_run(run_id).data.tags
    as_before(store, run_id)
    with warnings.catch_warnings():
        # it is the same evaluation: nothing is replaced
        warnings.simplefilter("error", EvaluationWarning)
        log_evaluation(first, run_id=run_id, strict=True)
    assert store.get_run(run_id).data.tags == expected
    as_before(store, run_id)
    with pytest.warns(
        EvaluationWarning,
        match=r"held an evaluation of 120 other rows, which was replaced",
    ):
        log_evaluation(second, run_id=run_id)
    assert not {tag(name) for name in TAGS_BEFORE.values()} & set(store.get_run(run_id).data.tags)
