"""The reproduction of Gubbels (2023), chapter 1: its fast mode from end to end, and its parts."""

from __future__ import annotations

import gzip
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.integrate import trapezoid
from sklearn.linear_model import LogisticRegression

from cmtrack import estimate_prevalence, evaluate
from correlation import binary, checklist, formulas, images, limits, multiclass
from correlation import published as known
from correlation.data import (
    Problem,
    log_normal,
    non_normal,
    non_normal_densities,
    normal,
    three_normals,
)
from correlation.explanations import by_equal_bins
from correlation.machines import Machine, machines, network, scored
from correlation.trials import Judged, Trials, judge
from support.reproductions import FastRun, run_fast

pytestmark = pytest.mark.slow

NAME = "gubbels_2023_correlation"
TABLES = [f"Table 1.{k}" for k in range(1, 8)]
FIGURES = [f"Figure 1.{k}" for k in range(1, 10)]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> FastRun:
    return run_fast(NAME, tmp_path_factory.mktemp("with a space") / "out", images.VARIABLE)


def test_every_published_table_and_figure_is_an_outcome(done: FastRun) -> None:
    formula = [item for item in done.outcomes if item not in TABLES + FIGURES]
    assert sorted([*TABLES, *FIGURES, *formula]) == sorted(done.outcomes)
    assert formula == ["Formulas of sections 0.2, 1.1 to 1.3 and appendix A"]
    assert all(row["reproduced"] and row["near"] for row in done.outcomes.values())
    for item in ("Table 1.2", "Table 1.5", "Table 1.6", "Table 1.7"):
        assert done.outcomes[item]["not possible, and why"], item
    table = done.outcomes["Table 1.3"]
    if images.PACKAGED.is_dir():
        assert re.match(r"48 numbers: median distance 0\.\d{4}, largest ", table["near"])
        assert not table["not possible, and why"]
    else:
        assert all(
            word in table["not possible, and why"] for word in (images.VARIABLE, images.PACKAGE)
        )


def test_figures_are_there_and_shown(done: FastRun) -> None:
    # then Figure 1.6 has pictures of a data set, and is not shown
    of_others = images.PACKAGED.is_dir()
    for k in range(1, 10):
        path = done.folder / ("pictures" if of_others and k == 6 else "") / f"figure_1_{k}.png"
        assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    shown = set(re.findall(r"\]\((\w+\.png)\)", done.report))
    assert shown == {path.name for path in done.folder.glob("*.png")}
    assert len(shown) == 11 - of_others


def test_nothing_of_this_machine_is_in_the_report(done: FastRun) -> None:
    assert str(done.folder.parents[1]) not in done.report
    assert not re.search(r"/(work|tmp|home|root|Users)/", done.report)
    assert not re.search(r"\bnan\b", done.report)
    assert "Warning" not in done.stderr
    assert "Traceback" not in done.stderr


def test_runs_are_in_the_store(done: FastRun) -> None:
    names = {run.info.run_name for run in done.runs()}
    pairs = {f"non-normal: {column}" for column in known.COLUMNS}
    three = {f"three classes: {column}" for column in known.COLUMNS}
    assert names == pairs | three | {"log-normal: score", "report"}
    for run in done.runs():
        assert run.info.status == "FINISHED"
        if run.info.run_name != "report":
            assert run.data.tags["cmtrack.status"] == "completed"
    forest = next(run for run in done.runs() if run.info.run_name == "non-normal: RFC")
    assert forest.data.params["n_estimators"] == "20"
    assert forest.data.params["labelled scores"] == "out of fold"
    svm = next(run for run in done.runs() if run.info.run_name == "non-normal: SVM")
    assert svm.data.params["kernel"] == "linear"
    assert {"mean/spcc/binary", "sd/spcc/binary", "spcc/binary", "prevalence/calibrated"} <= set(
        forest.data.metrics
    )
    values = [
        forest.data.metrics[name] for name in ("mean/spcc/binary", "sd/spcc/binary", "spcc/binary")
    ]
    # of two repeats
    assert abs(values[2] - values[0]) == pytest.approx(values[1] / np.sqrt(2), rel=1e-6)


def test_numbers_that_must_come_out(done: FastRun) -> None:
    wrong = done.table("formulas").set_index("where")
    expected = {
        "section 1.1, MCC": (0.000235, 0.565772),
        "appendix A, n²(n−1)q": (142374, 136200),
        "eq. 1.6": (0.184, 0.92),
        "section 1.2.2, average index d'e": (2.622648, 1.7324765),
        "section 1.2.2, Bayes index d'b": (0.6166, 1.8569223),
        "section 0.2, eq. 2, 3 and 5": (1.470588, 0.029412),
        "section 1.3.1, Fisher's average": (0.9966, 0.7870782),
    }
    for where, (printed, right) in expected.items():
        assert wrong.loc[where, "printed"] == pytest.approx(printed, abs=5e-5), where
        assert wrong.loc[where, "right"] == pytest.approx(right, abs=5e-5), where
    summaries = done.table("one_vs_one_summaries").set_index("summary of the six entries")["value"]
    assert summaries["Fisher's average"] == pytest.approx(0.825532, abs=1e-6)
    assert not np.isclose(summaries, known.TABLE_1_6.loc["sPCC-OvO", "NN"], atol=5e-5).any()
    counts = done.table("counts_behind").set_index("machine")
    assert counts.loc["NN (cal.)", ["TP", "FN", "FP", "TN"]].tolist() == [34, 466, 0, 4500]
    assert counts.loc["NN (cal.)", "MCC from these"] == pytest.approx(0.2482, abs=5e-5)
    assert (counts["agree"] == "yes").sum() == 7
    assert (
        "0.8069, balanced accuracy 0.3343 and MCC 0.0451, exactly as published"
        in done.report.replace("\n", " ")
    )
    assert "would have to be -0.0091 instead of -0.1916" in done.report


def test_limits_say_which_columns_cannot_be(done: FastRun) -> None:
    frame = done.table("limits").set_index("metric")
    for metric in ("sPCC", "Accuracy", "MCC"):
        assert frame.loc[metric, "published RFC"] > frame.loc[metric, "best possible"]
        assert (
            frame.loc[metric, "our RFC on its training rows"] > frame.loc[metric, "published RFC"]
        )
    network = done.table("table_1_2_network").set_index("metric")
    assert network.loc["Bias", "published is inside"] == "no"
    assert -0.1 <= network.loc["Bias", "least"] <= network.loc["Bias", "most"] <= 0.9


# -- parts -----------------------------------------------------------------------------------------------------------


def test_distributions_are_those_of_the_source() -> None:
    rng = np.random.default_rng(1)
    for draw in (normal, non_normal):
        sample = draw(rng, (45_000, 5_000))
        assert sample.x.shape == (50_000, 1)
        assert np.bincount(sample.y).tolist() == [45_000, 5_000]
    low, high = (sample.x[sample.y == k, 0] for k in (0, 1))
    assert low.mean() == pytest.approx(0.05 * 3, abs=0.02)
    assert high.mean() == pytest.approx(0.1 * 1 + 0.9 * 4, abs=0.05)
    assert (low > 1.5).mean() == pytest.approx(0.05, abs=0.005)
    assert (high < 2.5).mean() == pytest.approx(0.10, abs=0.02)
    three = three_normals(rng, (500, 100, 20))
    assert np.allclose(
        [three.x[three.y == k].mean(axis=0) for k in (1, 2, 3)], 4 * np.eye(3), atol=0.4
    )
    assert np.bincount(three.y).tolist() == [0, 500, 100, 20]
    scores = log_normal(rng, 1000)
    assert (scores.x[scores.y == 1] > 0).all()
    assert (scores.x[scores.y == 0] < 0).all()


def test_densities_fit_the_samples() -> None:
    x = np.linspace(-4, 8, 1201)
    sample = non_normal(np.random.default_rng(2), (100_000, 100_000))
    for k, density in enumerate(non_normal_densities(x)):
        assert trapezoid(density, x) == pytest.approx(1.0, abs=1e-6)
        assert trapezoid(density[x <= 3], x[x <= 3]) == pytest.approx(
            (sample.x[sample.y == k] <= 3).mean(), abs=0.005
        )


def test_log_normal_scores_have_the_population_value() -> None:
    sample = log_normal(np.random.default_rng(3), 100_000)
    scaled = (sample.x[:, 0] - sample.x.min()) / np.ptp(sample.x)
    metrics = evaluate(sample.y, y_prob=scaled).metrics
    assert metrics["spcc/binary"] == pytest.approx(np.exp(-0.5), abs=0.01)
    assert metrics["binary/roc_auc"] == 1.0


def test_no_machine_beats_the_limit() -> None:
    best = limits.best_possible(cells=2000, thresholds=60)
    assert best["Accuracy"] == pytest.approx(0.97043, abs=1e-4)
    assert best["sPCC"] == pytest.approx(0.86547, abs=1e-4)
    assert best["AUROC"] == pytest.approx(0.98481, abs=1e-4)
    rng = np.random.default_rng(4)
    train, test = (non_normal(rng, (90_000, 10_000)) for _ in range(2))
    p = LogisticRegression().fit(train.x, train.y).predict_proba(test.x)[:, 1]
    metrics = evaluate(test.y, y_prob=p).metrics
    assert metrics["multiclass/accuracy"] <= best["Accuracy"] + 0.002
    assert metrics["spcc/binary"] <= best["sPCC"]
    assert metrics["binary/roc_auc"] <= best["AUROC"] + 0.002


@pytest.mark.parametrize(
    "counts", [(397, 103, 41, 4459), (0, 500, 0, 4500), (34, 466, 0, 4500), (500, 0, 4500, 0)]
)
def test_counts_come_back_from_accuracy_and_balanced_accuracy(
    counts: tuple[int, int, int, int],
) -> None:
    metrics = limits.from_counts(*counts).metrics
    rounded = (
        round(metrics[f"multiclass/{name}"], 4) for name in ("accuracy", "balanced_accuracy")
    )
    assert limits.table_behind(*rounded) == counts


def test_statements_that_hold() -> None:
    frame = formulas.right_statements()
    assert (frame["printed"] - frame["computed"]).abs().max() < 0.0015
    assert frame["computed"].notna().all()


def test_calibration_scores_are_of_rows_the_scorer_has_not_seen() -> None:
    rng = np.random.default_rng(5)
    problem = Problem(non_normal(rng, (900, 100)), non_normal(rng, (900, 100)))
    by_name = {machine.name: machine for machine in machines(0, 1000, trees=20, folds=3)}
    assert list(by_name) == list(known.MACHINES)
    forest = scored(by_name["RFC"], problem, folds=3)
    assert len(forest.labelled[0]) == 1000
    honest, own = (
        evaluate(y, y_prob=p).metrics["multiclass/accuracy"]
        for y, p in (forest.labelled, forest.trained)
    )
    assert own > 0.995 > 0.98 > honest
    network_scores = scored(by_name["NN"], problem)
    assert len(network_scores.labelled[0]) == 300
    assert len(network_scores.trained[0]) == 700


def test_calibration_corrects_another_share() -> None:
    rng = np.random.default_rng(6)
    problem = Problem(non_normal(rng, (2700, 300)), non_normal(rng, (2970, 30)))
    one = judge(Machine("LogReg", LogisticRegression()), problem, folds=3)
    assert one.calibrated is not None
    assert one.plain.metrics["prevalence/bias"] > 0.02
    assert abs(one.calibrated.metrics["prevalence/bias"]) < 0.008
    assert one.estimate.low < 0.01 < one.estimate.high


def test_a_dead_network_is_not_calibrated() -> None:
    rng = np.random.default_rng(7)
    problem = Problem(normal(rng, (90, 10)), normal(rng, (90, 10)))
    constant = LogisticRegression(C=1e-300, max_iter=1)
    one = judge(Machine("constant", constant), problem, folds=2)
    assert one.calibrated is None
    trials = Trials()
    trials.add([one])
    assert trials.unidentified("constant") == 1
    assert np.isnan(trials.spread("sPCC", "constant (cal.)").mean)
    assert trials.beside().loc["constant (cal.)", "sPCC"] == "–"


def test_coarse_bins_lose_what_the_default_keeps() -> None:
    rng = np.random.default_rng(8)
    y = np.repeat([0, 1], [900, 100])
    scores = 0.45 + 0.01 * rng.normal(2.0 * y).clip(-4, 4)  # all in the bin from .4 to .5
    _, coarse = by_equal_bins(scores, y, scores)
    assert np.ptp(coarse) == 0
    estimate = estimate_prevalence(scores, calibration=(y, scores))
    assert np.ptp(estimate.posterior(scores)) > 0.5


def test_network_is_that_of_the_source() -> None:
    given = network(0, epochs=3).get_params()
    assert given["hidden_layer_sizes"] == (5, 5, 5)
    assert given["activation"] == "relu"
    assert given["max_iter"] == 3


def test_areas_of_three_classes_are_those_of_a_library() -> None:
    from sklearn.metrics import roc_auc_score

    rng = np.random.default_rng(9)
    y = rng.integers(1, 4, 300)
    p = rng.dirichlet(np.ones(3), 300) + 0.4 * np.eye(3)[y - 1]
    p /= p.sum(axis=1, keepdims=True)
    assert multiclass.rest_area(y, p) == pytest.approx(roc_auc_score(y, p, multi_class="ovr"))
    assert multiclass.pair_area(y, p) == pytest.approx(roc_auc_score(y, p, multi_class="ovo"))
    assert multiclass.needed_entry(known.TABLE_1_6.loc["sPCC-OvO", "NN"]) == pytest.approx(
        -0.0091, abs=5e-5
    )


def test_area_ignores_increasing_maps_and_the_share_of_positives() -> None:
    rng = np.random.default_rng(10)
    problem = Problem(non_normal(rng, (900, 100)), non_normal(rng, (900, 100)))
    one = judge(Machine("LogReg", LogisticRegression()), problem, folds=3)
    maps = checklist.under_transformations(one).set_index("map")
    assert maps["AUROC"].drop("calibrated").nunique() == 1
    assert maps.loc["(s + 1) / 3, linear", "sPCC"] == pytest.approx(maps.loc["score s", "sPCC"])
    assert abs(maps.loc["s³", "sPCC"] - maps.loc["score s", "sPCC"]) > 0.005
    shares = checklist.at_other_shares(one)
    assert np.ptp(shares["AUROC"]) < 1e-9
    assert np.ptp(shares["BA"]) < 1e-9
    assert shares["sPCC"].iloc[1:].is_monotonic_decreasing
    assert shares["sPCC"].iloc[-1] < 0.5 * shares["sPCC"].iloc[1]


# -- images ----------------------------------------------------------------------------------------------------------


def idx(array: np.ndarray, *, kind: int = 8, dimensions: int | None = None) -> bytes:
    """An idx file's bytes, gzipped."""
    dimensions = array.ndim if dimensions is None else dimensions
    header = struct.pack(">HBB", 0, kind, dimensions) + struct.pack(f">{array.ndim}I", *array.shape)
    return gzip.compress(header + array.astype(np.uint8).tobytes())


@pytest.fixture
def fashion(tmp_path: Path) -> Iterator[Path]:
    """A folder with the four files: 12 and 4 images of each class, of 3 x 2 pixels, the class in the last one."""
    for part, times in (("train", 12), ("test", 4)):
        y = np.tile(np.arange(10), times)
        x = np.zeros((len(y), 3, 2))
        x[:, 2, 1] = 20 * y
        for name, array in zip(images.FILES[part], (x, y), strict=True):
            (tmp_path / name).write_bytes(idx(array))
    return tmp_path


def test_fashion_is_read_where_the_environment_names_its_folder(
    fashion: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(images.VARIABLE, str(fashion))
    given = images.image_set(fast=True)
    assert given.published
    assert (given.easy.codes, given.hard.codes) == ((8, 9), (0, 6))
    assert given.easy.names == ("bag", "ankle boot")
    assert given.shown.shape == (10, 3, 2)
    problem = given.hard.make(0)
    assert problem.train.x.shape == (24, 6)
    assert problem.test.x.shape == (8, 6)
    # 0 and 6 become 0 and 1
    assert (problem.train.y == (problem.train.x[:, 5] * 255 / 20).round() / 6).all()
    assert (problem.train.x[:, :5] == 0).all()


def test_fashion_is_found_where_the_package_puts_it_unless_the_environment_names_another_folder(
    fashion: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(images.VARIABLE, raising=False)
    monkeypatch.setattr(images, "PACKAGED", fashion)
    assert images.image_set(fast=True).published
    monkeypatch.setenv(images.VARIABLE, str(tmp_path / "elsewhere"))
    with pytest.raises(FileNotFoundError, match=r"elsewhere.* is missing"):
        images.image_set(fast=True)


def test_a_machine_without_a_seed_is_judged_once_where_the_rows_stay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    study: Any = SimpleNamespace(track=lambda items, what: items, pick=lambda fast, full: fast)
    judged: list[str] = []

    def counted(machine: Machine, *args: object, **options: object) -> Judged:
        judged.append(machine.name)
        return judge(machine, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(binary, "judge", counted)
    rng = np.random.default_rng(11)
    problem = Problem(non_normal(rng, (180, 60)), non_normal(rng, (180, 60)))
    trials = binary.run_case(
        study, "same", lambda seed: problem, repeats=2, folds=2, same_rows=True, logged=False
    )
    assert judged == ["SVM", "LogReg", "RFC", "NN", "RFC", "NN"]
    assert trials.repeats == 2
    assert trials.spread("sPCC", "SVM").sd == 0.0
    assert trials.spread("sPCC", "RFC").sd > 0.0


def test_digits_are_split_without_the_images_that_chose_the_pairs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(images.VARIABLE, raising=False)
    monkeypatch.setattr(images, "PACKAGED", tmp_path / "none")
    given = images.image_set(fast=True)
    assert not given.published
    assert given.hard.codes != given.easy.codes
    first, again, other = (given.hard.make(seed) for seed in (0, 0, 1))
    assert np.array_equal(first.train.x, again.train.x)
    assert not np.array_equal(first.train.x, other.train.x)
    assert first.train.x.shape[1] == 4 * 8
    assert len(first.train.y) + len(first.test.y) == pytest.approx(0.75 * 2 * 178, abs=6)
    accuracy = {}
    for pair in (given.easy, given.hard):
        problem = pair.make(0)
        accuracy[pair.key] = LogisticRegression().fit(*problem.train).score(*problem.test)
    assert accuracy["easy"] > 0.97 > 0.92 > accuracy["hard"]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        pytest.param(b"not gzip", "not a whole gzip file", id="no gzip"),
        pytest.param(idx(np.zeros((2, 3, 2)))[:-12], "not a whole gzip file", id="cut"),
        pytest.param(gzip.compress(b"\0\0"), "not an idx file", id="too short"),
        pytest.param(gzip.compress(b"\1\0\x08\3" + bytes(12)), "not an idx file", id="wrong magic"),
        pytest.param(idx(np.zeros((2, 3, 2)), kind=13), "unsigned bytes", id="floats"),
        pytest.param(idx(np.zeros(200)), "in 3 dimensions, got 8 in 1", id="one dimension"),
        pytest.param(
            gzip.compress(gzip.decompress(idx(np.zeros((2, 3, 2)))) + b"\0"),
            "after its header, got 13",
            id="more",
        ),
        pytest.param(
            gzip.compress(gzip.decompress(idx(np.zeros((2, 3, 2))))[:-1]),
            "after its header, got 11",
            id="fewer",
        ),
    ],
)
def test_damaged_files_are_refused(data: bytes, says: str, tmp_path: Path) -> None:
    path = tmp_path / "images.gz"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=says):
        images.read_idx(path, 3)


def test_wrong_folders_are_refused(fashion: Path) -> None:
    labels = fashion / images.FILES["test"][1]
    labels.write_bytes(idx(np.zeros(39)))
    with pytest.raises(ValueError, match="40 test images have 39 labels"):
        images.read_part(fashion, "test")
    labels.write_bytes(idx(np.tile(np.arange(5), 8)))
    with pytest.raises(ValueError, match="must be 0 to 9"):
        images.read_part(fashion, "test")
    labels.unlink()
    with pytest.raises(FileNotFoundError, match=r"t10k-labels-idx1-ubyte\.gz is missing"):
        images.read_part(fashion, "test")
