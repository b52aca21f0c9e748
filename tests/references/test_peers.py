"""The same numbers as model-diagnostics for the parts of a score, as fairlearn for metrics by segment, and as SliceLine
and DivExplorer for the segments of a search.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, precision_score, recall_score
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cmtrack import Evaluation, evaluate
from support.problems import random_labels, random_problem, random_scores

NAMES = ("miscalibration", "discrimination", "uncertainty", "score")


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", ["brier", "log"])
@pytest.mark.parametrize("digits", [2, 12])
def test_the_parts_of_a_score_are_model_diagnostics(loss: str, weighted: bool, digits: int) -> None:
    scoring = pytest.importorskip("model_diagnostics.scoring", exc_type=ImportError)
    rng = np.random.default_rng(digits)
    y = random_labels(700, 2, rng, [0.6, 0.4])
    s = np.clip(random_scores(y, 1.2, rng, slope=1.5, digits=digits), 0.005, 0.995)
    w = rng.gamma(2, 1, 700) if weighted else None
    curve = evaluate(y, y_prob=s, sample_weight=w).calibration
    assert curve is not None
    function: Any = scoring.SquaredError() if loss == "brier" else scoring.LogLoss()
    found = scoring.decompose(y, s, weights=w, scoring_function=function).to_dicts()[0]
    ours = getattr(curve, loss)
    for name in NAMES:
        assert getattr(ours, name) == pytest.approx(found[name], abs=1e-10), name


def test_metrics_by_segment_are_fairlearns() -> None:
    fairlearn = pytest.importorskip("fairlearn.metrics", exc_type=ImportError)
    y, predicted, p = random_problem(3, n=900, k=2)
    region = np.random.default_rng(0).choice(
        ["north", "south", "east", "west"], 900, p=[0.4, 0.3, 0.2, 0.1]
    )
    evaluation = evaluate(y, predicted, y_prob=p, segments=pd.DataFrame({"region": region}))
    peers = {
        "multiclass/accuracy": accuracy_score,
        "binary/recall": recall_score,
        "binary/precision": precision_score,
    }
    frame = fairlearn.MetricFrame(
        metrics=peers, y_true=y, y_pred=predicted, sensitive_features=region
    )
    table = evaluation.segments["region"]
    for name in peers:
        own = table.to_frame([name]).set_index("segment")["value"]
        for segment, value in frame.by_group[name].items():
            assert own[segment] == pytest.approx(value, abs=1e-12)
            assert table[segment].metrics[name] == pytest.approx(value, abs=1e-12)
        disparity = table.disparity(name)
        assert disparity.gap == pytest.approx(frame.difference()[name], abs=1e-12)
        assert disparity.ratio == pytest.approx(frame.ratio()[name], abs=1e-12)


def _votes() -> tuple[pd.DataFrame, Any, Any, int]:
    datasets = pytest.importorskip("statsmodels.datasets", exc_type=ImportError)
    people = datasets.anes96.load_pandas().data
    x = people[["logpopul", "TVnews", "selfLR", "ClinLR", "DoleLR", "age", "educ", "income"]]
    bands = {
        "age": [0, 30, 45, 60, 120],
        "educ": [0, 3, 5, 7],
        "income": [0, 12, 18, 24],
        "selfLR": [0, 3, 4, 7],
    }
    columns = pd.DataFrame(
        {name: pd.cut(people[name], ends).astype(str) for name, ends in bands.items()}
    )
    return columns, *_out_of_fold(x, people["PID"] >= 3), 60


def _affairs() -> tuple[pd.DataFrame, Any, Any, int]:
    datasets = pytest.importorskip("statsmodels.datasets", exc_type=ImportError)
    people = datasets.fair.load_pandas().data
    x = people.drop(columns="affairs")
    columns = x[["rate_marriage", "age", "yrs_married", "religious", "educ"]].astype(str)
    return columns, *_out_of_fold(x, people["affairs"] > 0), 100


def _planted() -> tuple[pd.DataFrame, Any, Any, int]:
    """A segment of about 188 rows with three times the errors of the others."""
    rng = np.random.default_rng(18)
    codes = rng.integers(0, 4, (3000, 8))
    inside = (codes[:, 0] == 0) & (codes[:, 1] == 0)
    y = random_labels(3000, 2, rng)
    columns = pd.DataFrame(codes.astype(str), columns=list("abcdefgh"))
    # .45 and .15 of them wrong
    return columns, y, random_scores(y, np.where(inside, 0.25, 2.07), rng), 100


def _out_of_fold(x: pd.DataFrame, y: pd.Series) -> tuple[Any, Any]:
    model = make_pipeline(StandardScaler(), LogisticRegression())
    return y.to_numpy().astype(int), cross_val_predict(model, x, y, cv=5, method="predict_proba")[
        :, 1
    ]


SAMPLES: dict[str, Any] = {"votes": _votes, "affairs": _affairs, "planted": _planted}
SEGMENT_METRICS = ("multiclass/accuracy", "probability/log_loss")


@pytest.fixture(scope="module", params=list(SAMPLES))
def searchable(
    request: pytest.FixtureRequest,
) -> tuple[pd.DataFrame, Evaluation, dict[str, Any], int]:
    """Columns, an evaluation, the losses of its rows by metric, and the least number of rows."""
    columns, y, p, min_rows = SAMPLES[request.param]()
    evaluation = evaluate(y, y_prob=p, segments=columns)
    losses = {
        "multiclass/accuracy": y != (p > 0.5),
        "probability/log_loss": -np.log(np.where(y == 1, p, 1 - p)),
    }
    return columns, evaluation, losses, min_rows


@pytest.mark.parametrize("metric", SEGMENT_METRICS)
def test_the_worst_segments_are_slicelines(searchable: Any, metric: str) -> None:
    slicefinder = pytest.importorskip("sliceline.slicefinder", exc_type=ImportError)
    columns, evaluation, losses, min_rows = searchable
    found = evaluation.worst_segments(metric, depth=2, min_rows=min_rows, n_permutations=1)
    peer = slicefinder.Slicefinder(alpha=0.95, k=10, max_l=2, min_sup=min_rows, verbose=False)
    peer.fit(columns.to_numpy(), losses[metric].astype(float))
    ours = {frozenset(one.where): one for one in found.segments}
    best = sorted((one for one in found.segments if one.score > 0), key=lambda one: -one.score)[:10]
    theirs = [
        (
            frozenset(
                (name, value) for name, value in zip(columns, row, strict=True) if value is not None
            ),
            told,
        )
        for row, told in zip(peer.top_slices_, peer.top_slices_statistics_, strict=True)
    ]
    assert [where for where, _ in theirs[:1]] == [
        frozenset(one.where) for one in best[:1]
    ]  # both empty where no score is positive
    assert [one.score for one in best] == pytest.approx(
        [told["slice_score"] for _, told in theirs], abs=1e-9
    )
    for where, told in theirs:
        assert ours[where].score == pytest.approx(told["slice_score"], abs=1e-9)
        assert ours[where].rows == told["slice_size"]
        mean = told["slice_average_error"]
        value = 1 - mean if metric == "multiclass/accuracy" else mean
        assert ours[where].value == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize("metric", SEGMENT_METRICS)
def test_the_divergences_are_divexplorers(searchable: Any, metric: str) -> None:
    divexplorer = pytest.importorskip("divexplorer", exc_type=ImportError)
    columns, evaluation, losses, min_rows = searchable
    found = evaluation.worst_segments(metric, depth=2, min_rows=min_rows, n_permutations=1)
    kind = "boolean_outcomes" if metric == "multiclass/accuracy" else "quantitative_outcomes"
    table = divexplorer.DivergenceExplorer(
        columns.assign(loss=losses[metric] * 1)
    ).get_pattern_divergence(min_support=(min_rows - 0.5) / len(columns), **{kind: ["loss"]})
    table = table[table["length"].between(1, 2)]
    theirs = table.set_index("itemset")
    sign = -1 if metric == "multiclass/accuracy" else 1
    ours = {
        frozenset(f"{name}={value}" for name, value in one.where): one for one in found.segments
    }
    assert set(ours) == set(theirs.index)
    for where, one in ours.items():
        assert sign * one.divergence == pytest.approx(theirs["loss_div"][where], abs=1e-9)
        assert one.rows == theirs["support_count"][where]
    assert max(ours, key=lambda where: sign * ours[where].divergence) == theirs["loss_div"].idxmax()
