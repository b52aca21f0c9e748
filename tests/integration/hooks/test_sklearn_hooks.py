"""scikit-learn: estimators, searches, cross-validation, scorers and Displays."""

from __future__ import annotations

import math
import pickle
import warnings

import matplotlib.pyplot as plt
import mlflow
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, matthews_corrcoef
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    RandomizedSearchCV,
    RepeatedStratifiedKFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    cross_val_predict,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from cmtrack import Grouping, compare, evaluate, load_evaluation
from cmtrack.metrics import CATALOG
from cmtrack.tracking import EvaluationWarning
from cmtrack_integrations.sklearn import (
    PrecisionRecallDisplay,
    PrevalenceDisplay,
    ReducedConfusionMatrixDisplay,
    ReducedRocDisplay,
    ReliabilityDisplay,
    cross_validate_evaluation,
    evaluate_estimator,
    get_scorer,
    log_candidates,
    log_estimator,
)
from cmtrack_integrations.sklearn.cross_validation import RANKED_TOGETHER
from support.problems import learning_problem
from support.stores import runs_of

pytestmark = pytest.mark.usefixtures("undrawn")

SIDE = Grouping({"left": [0, 1], "right": [2, 3]}, "strict", name="side")


@pytest.fixture(scope="module")
def data():
    """Features and labels of four classes: for training, and held out."""
    return learning_problem(4, 400, held=140, skill=1.3, seed=5)


@pytest.fixture(scope="module")
def fitted(data):
    x, y, _, _ = data
    return make_pipeline(StandardScaler(), LogisticRegression()).fit(x, y)


class Nearest(ClassifierMixin, BaseEstimator):
    """The nearest mean, and labels only."""

    def fit(self, x, y):
        self.classes_ = np.unique(y)
        self.means_ = np.stack([x[y == label].mean(axis=0) for label in self.classes_])
        return self

    def predict(self, x):
        return self.classes_[((x[:, None] - self.means_) ** 2).sum(axis=2).argmin(axis=1)]


# -- a fitted estimator --------------------------------------------------------------------------------------


def test_an_estimator_gives_the_evaluation_of_its_predictions(data, fitted):
    x, y, x_test, y_test = data
    expected = evaluate(
        y_test,
        fitted.predict(x_test),
        y_prob=fitted.predict_proba(x_test),
        grouping=SIDE,
        labels=[0, 1, 2, 3],
        calibration=(y[:100], fitted.predict_proba(x[:100])),
        target=fitted.predict_proba(x[100:]),
    )
    assert expected == evaluate_estimator(
        fitted, x_test, y_test, grouping=SIDE, calibration=(x[:100], y[:100]), target=x[100:]
    )


@pytest.mark.parametrize("form", [pd.DataFrame, csr_array, lambda x: x.tolist()])
def test_features_in_any_form(data, form):
    x, y, x_test, y_test = data
    model = LogisticRegression().fit(form(x), y)
    assert evaluate_estimator(model, form(x_test), y_test).metrics["multiclass/accuracy"] > 0.5


def test_the_decisions_are_those_of_predict(data):
    pytest.importorskip("sklearn", minversion="1.5")
    from sklearn.model_selection import FixedThresholdClassifier

    x, y, x_test, y_test = data
    model = FixedThresholdClassifier(
        LogisticRegression(), threshold=0.8, response_method="predict_proba"
    )
    model.fit(x, y > 1)
    evaluation = evaluate_estimator(model, x_test, y_test > 1)
    assert evaluation.metrics["multiclass/accuracy"] == accuracy_score(
        y_test > 1, model.predict(x_test)
    )
    assert evaluation.metrics["binary/roc_auc"] > evaluation.metrics["binary/recall"]


def test_a_threshold_decides_in_place_of_predict(store, data):
    x, y, held, labels = data
    model, name = LogisticRegression().fit(x, y), "right"
    scores = model.predict_proba(held)[:, 2:].sum(axis=1)
    found = evaluate_estimator(model, held, labels, grouping=SIDE, threshold=0.8)
    np.testing.assert_array_equal(found.rows.predicted >= 2, scores >= 0.8)
    assert (found.positive, found.decision_threshold) == (name, 0.8)
    with mlflow.start_run():
        logged = log_estimator(model, held, labels, grouping=SIDE, threshold=0.8, strict=True)
    assert logged.evaluation == found
    crossed = cross_validate_evaluation(model, x, y, cv=3, grouping=SIDE, threshold=0.8)
    whole = crossed.evaluation
    np.testing.assert_array_equal(
        whole.rows.predicted >= 2, crossed.y_prob[:, 2:].sum(axis=1) >= 0.8
    )
    assert all(fold.decision_threshold == 0.8 for fold in crossed.folds)


def test_a_class_that_was_not_trained_has_no_probability(data):
    x, y, x_test, y_test = data
    model = LogisticRegression().fit(x[y < 3], y[y < 3])
    evaluation = evaluate_estimator(model, x_test, y_test)
    assert evaluation.labels == (0, 1, 2, 3)
    assert evaluation.metrics["class/3/recall"] == 0
    assert (evaluation.rows.probabilities[:, 3] == 0).all()
    with pytest.raises(ValueError, match="labels must contain every class"):
        evaluate_estimator(model, x_test, y_test, labels=[0, 1])


@pytest.mark.parametrize(
    ("model", "words"), [(LinearSVC(), "decision_function"), (None, "no predict_proba")]
)
def test_a_classifier_without_probabilities_says_so(store, data, model, words):
    x, y, x_test, y_test = data

    model = (model or Nearest()).fit(x, y)
    evaluation = evaluate_estimator(make_pipeline(model), x_test, y_test, grouping=SIDE)
    assert words in evaluation.warnings[0]
    assert "CalibratedClassifierCV" in evaluation.warnings[0]
    assert "binary/roc_auc" not in evaluation.metrics
    with mlflow.start_run() as run:
        log_estimator(model, x_test, y_test, grouping=SIDE, strict=True)
    assert words in store.get_run(run.info.run_id).data.tags["cmtrack.warning"]
    assert words in load_evaluation(run.info.run_id).warnings[0]
    with pytest.raises(ValueError, match="calibration and target need probabilities"):
        evaluate_estimator(model, x_test, y_test, calibration=(x, y))


def test_several_outputs_are_refused(data):
    x, y, _, _ = data
    model = DummyClassifier().fit(x, np.column_stack((y, y)))
    with pytest.raises(ValueError, match="several outputs"):
        evaluate_estimator(model, x, y)


def test_one_line_after_fit(store, data, fitted):
    _, _, x_test, y_test = data
    with mlflow.start_run() as run:
        logged = log_estimator(
            fitted,
            x_test,
            y_test,
            grouping=SIDE,
            prefix="test/",
            step=2,
            metrics=["binary/f1"],
            row_ids=range(140),
        )
    assert logged.status == "completed"
    assert load_evaluation(run.info.run_id, prefix="test/") == logged.evaluation
    assert set(store.get_run(run.info.run_id).data.metrics) == {"test/binary/f1"}
    assert logged.evaluation.statistics.row_ids is not None


def test_failures_are_warnings(store, data, fitted, tmp_path):
    _, _, x_test, y_test = data
    wrong = Grouping({"a": [0], "b": [1]})
    with mlflow.start_run() as run:
        with pytest.warns(EvaluationWarning, match="not fitted"):
            assert log_estimator(LogisticRegression(), x_test, y_test).status == "failed"
        with pytest.warns(EvaluationWarning, match="got none for"):
            assert log_estimator(fitted, x_test, y_test, grouping=wrong).status == "failed"
        with pytest.warns(EvaluationWarning, match="cv_results_"):
            assert log_candidates(fitted, x_test, y_test) == ()
        with pytest.raises(NotFittedError):
            log_estimator(LogisticRegression(), x_test, y_test, strict=True)
        with pytest.raises(TypeError, match="no option 'groping'"):
            log_estimator(fitted, x_test, y_test, groping=SIDE)
    assert store.get_run(run.info.run_id).data.metrics == {}
    assert len(list((tmp_path / "cmtrack_spool").glob("*/inputs.npz"))) == 1


# -- cross-validation ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_out_of_fold_scores_are_those_of_scikit_learn(data):
    x, y, _, _ = data
    cv = StratifiedKFold(4, shuffle=True, random_state=0)
    model = LogisticRegression()
    found = cross_validate_evaluation(model, x, y, cv=cv, grouping=SIDE)
    expected = cross_val_predict(model, x, y, cv=cv, method="predict_proba")
    np.testing.assert_allclose(found.y_prob, expected)
    assert found.evaluation == evaluate(y, expected.argmax(axis=1), y_prob=expected, grouping=SIDE)
    assert not hasattr(model, "coef_")
    assert sum(fold.n_samples for fold in found.folds) == len(y)
    for (_, test), rows, fold in zip(cv.split(x, y), found.tests, found.folds, strict=True):
        np.testing.assert_array_equal(test, rows)
        rest = np.setdiff1d(np.arange(len(y)), test)
        assert fold == evaluate(
            y[test],
            y_prob=expected[test],
            grouping=SIDE,
            labels=[0, 1, 2, 3],
            calibration=(y[rest], expected[rest]),
        )
    table = found.to_frame()
    assert set(table["fold"]) == {"all", 0, 1, 2, 3}


@pytest.mark.slow
def test_out_of_fold_scores_calibrate_the_final_model(data, fitted):
    x, y, x_test, y_test = data
    found = cross_validate_evaluation(fitted, x, y)
    evaluation = evaluate_estimator(fitted, x_test, y_test, grouping=SIDE, calibration=found)
    expected = evaluate(
        y_test, y_prob=fitted.predict_proba(x_test), grouping=SIDE, calibration=found.calibration
    )
    assert evaluation == expected
    assert (
        evaluation.metrics["prevalence/calibrated"]
        != evaluate_estimator(fitted, x_test, y_test, grouping=SIDE).metrics[
            "prevalence/calibrated"
        ]
    )


EXPOSED = "the labelled scores are out of fold and come from other fits than the target's scores"


@pytest.mark.slow
def test_out_of_fold_scores_of_a_target_that_one_model_scores_are_warned_of(store, data, fitted):
    x, y, x_test, y_test = data
    found = cross_validate_evaluation(fitted, x, y, cv=4, grouping=SIDE)
    labels, scores, ids = found.calibration
    np.testing.assert_array_equal(labels, y)
    np.testing.assert_array_equal(scores, found.y_prob)
    for fold, test in enumerate(found.tests):
        assert (ids[test] == fold).all()
    assert not any(EXPOSED in warning for warning in found.evaluation.warnings)
    evaluation = evaluate_estimator(fitted, x_test, y_test, grouping=SIDE, calibration=found)
    assert any(EXPOSED in warning for warning in evaluation.warnings)
    with mlflow.start_run():
        logged = log_estimator(
            fitted, x_test, y_test, grouping=SIDE, calibration=found, strict=True
        )
    assert load_evaluation(logged.run_id).warnings == evaluation.warnings


@pytest.mark.slow
def test_the_models_of_the_folds_score_a_target(data, fitted):
    x, y, x_test, y_test = data
    cv = StratifiedKFold(4, shuffle=True, random_state=0)
    found = cross_validate_evaluation(fitted, x, y, cv=cv, grouping=SIDE)
    expected = [
        clone(fitted).fit(x[train], y[train]).predict_proba(x_test) for train, _ in cv.split(x, y)
    ]
    np.testing.assert_allclose(found.score(x_test), expected)
    np.testing.assert_allclose(found.score(x_test, [3, 2, 1, 0]), np.array(expected)[:, :, ::-1])
    np.testing.assert_array_equal(found.calibration_for([3, 2, 1, 0])[1], found.y_prob[:, ::-1])
    whole = evaluate(
        y,
        y_prob=found.y_prob,
        grouping=SIDE,
        target=expected,
        calibration=(y, found.y_prob, found.fold_ids),
    )
    assert not any(EXPOSED in warning for warning in whole.warnings)
    assert whole.prevalence.n_target == pytest.approx(len(x_test))
    for target in (x_test, expected, np.stack(expected), pd.DataFrame(x_test)):
        again = cross_validate_evaluation(fitted, x, y, cv=cv, grouping=SIDE, target=target)
        assert again.evaluation.prevalence.value == pytest.approx(whole.prevalence.value, rel=1e-9)
        assert again.evaluation.intervals["prevalence/calibrated"] == pytest.approx(
            (whole.prevalence.low, whole.prevalence.high)
        )
    judged = evaluate_estimator(
        fitted, x_test, y_test, grouping=SIDE, calibration=found, target=x_test
    )
    assert not any(EXPOSED in warning for warning in judged.warnings)
    assert judged.prevalence.value == pytest.approx(whole.prevalence.value, rel=1e-9)


def test_models_of_the_folds_that_are_not_kept_score_nothing_later(data, fitted):
    x, y, x_test, y_test = data
    found = cross_validate_evaluation(
        fitted, x, y, cv=3, grouping=SIDE, target=x_test, keep_models=False
    )
    assert found.models is None
    assert found.evaluation.prevalence.n_target == pytest.approx(len(x_test))
    assert not any(EXPOSED in warning for warning in found.evaluation.warnings)
    with pytest.raises(ValueError, match="need keep_models=True, got keep_models=False"):
        found.score(x_test)
    judged = evaluate_estimator(
        fitted, x_test, y_test, grouping=SIDE, calibration=found, target=x_test
    )
    assert any(EXPOSED in warning for warning in judged.warnings)
    with pytest.raises(ValueError, match="LinearSVC has no probabilities to score a target with"):
        cross_validate_evaluation(LinearSVC(), x, y, cv=3).score(x_test)
    with pytest.raises(
        ValueError, match="target needs probabilities: LinearSVC has no predict_proba"
    ):
        cross_validate_evaluation(LinearSVC(), x, y, cv=3, target=x_test)


@pytest.mark.slow
def test_weights_groups_fit_parameters_and_workers(data):
    x, y, _, _ = data
    groups = np.arange(len(y)) // 4
    weights = 1.0 + (y == 0)
    options = {
        "cv": StratifiedGroupKFold(3),
        "groups": groups,
        "sample_weight": weights,
        "row_ids": np.arange(len(y)),
        "fit_params": {"sample_weight": weights},
    }
    found = cross_validate_evaluation(LogisticRegression(), x, y, n_jobs=2, **options)
    assert (
        found.evaluation
        == cross_validate_evaluation(LogisticRegression(), x, y, **options).evaluation
    )
    assert found.evaluation.cluster_errors
    assert found.evaluation.n_samples == weights.sum()
    for train, test in StratifiedGroupKFold(3).split(x, y, groups):
        model = LogisticRegression().fit(x[train], y[train], sample_weight=weights[train])
        np.testing.assert_allclose(found.y_prob[test], model.predict_proba(x[test]))


def test_text_labels_and_a_class_that_a_fold_does_not_train_on(data):
    x, y, _, _ = data
    names = np.array(["a", "b", "c", "d"])[y]
    names[0] = "e"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        found = cross_validate_evaluation(LogisticRegression(), x, names, cv=3)
    assert found.evaluation.labels == ("a", "b", "c", "d", "e")
    assert all(fold.labels == found.evaluation.labels for fold in found.folds)
    assert found.y_prob[0, 4] == 0


@pytest.mark.slow
def test_folds_are_divided_into_segments(store, data):
    x, y, _, _ = data
    bands = pd.Categorical.from_codes(
        np.arange(len(y)) % 3, ["young", "middle", "old"], ordered=True
    )
    frame = pd.DataFrame(
        {"region": np.where(np.arange(len(y)) < 100, "north", "south"), "age": bands}
    )
    wanted = (frame, ["region", ("region", "age")])
    found = cross_validate_evaluation(LogisticRegression(), x, y, cv=KFold(4), segments=wanted)
    expected = evaluate(y, y_prob=found.y_prob, labels=found.evaluation.labels, segments=wanted)
    assert found.evaluation == expected
    assert found.evaluation.segments["region"]["north"].n_samples == 100
    for fold, test in zip(found.folds, found.tests, strict=True):
        said = [text for text in fold.warnings if "has only one value in this fold" in text]
        if len(np.unique(frame["region"].iloc[test])) == 1:
            assert list(fold.segments) == ["region × age"]
            assert said == [
                "segments: “region” has only one value in this fold, so this fold is not "
                "divided by it"
            ]
            continue
        own = evaluate(
            y[test],
            y_prob=found.y_prob[test],
            labels=expected.labels,
            segments=(frame.iloc[test], wanted[1]),
        )
        assert list(fold.segments) == list(own.segments)
        assert said == []
        for name, table in own.segments.items():
            pd.testing.assert_frame_equal(fold.segments[name].to_frame(), table.to_frame())
    with mlflow.start_run() as run:
        logged = found.log()
    assert load_evaluation(run.info.run_id) == found.evaluation
    assert [load_evaluation(one.run_id) for one in logged[1:]] == list(found.folds)


def test_bad_segments_are_refused_before_the_fits(store, data):
    x, y, _, _ = data
    bad = {"age": np.linspace(0, 1, len(y))}
    with pytest.raises(ValueError, match="'age' must contain categories"):
        cross_validate_evaluation(None, x, y, cv=3, segments=bad)
    search = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=3).fit(x, y)
    search.estimator = None
    with mlflow.start_run(), pytest.warns(EvaluationWarning, match="'age' must contain categories"):
        assert log_candidates(search, x, y, segments=bad) == ()


def test_rows_of_a_cross_validation_go_by_their_index(data):
    x, y, _, _ = data
    order = np.random.default_rng(0).permutation(len(y))
    names = np.arange(len(y)) + 1000
    region, weights = (
        pd.Series(v, index=names) for v in (np.where(x[:, 0] > 0, "a", "b"), 1.0 + (y == 0))
    )
    expected = cross_validate_evaluation(
        LogisticRegression(), x, y, cv=3, segments={"region": region}, sample_weight=weights
    )
    found = cross_validate_evaluation(
        LogisticRegression(),
        x,
        pd.Series(y, index=names),
        cv=3,
        segments={"region": region.iloc[order]},
        sample_weight=weights.iloc[order],
    )
    assert found.evaluation == expected.evaluation
    assert found.folds == expected.folds


def test_features_go_by_the_index_of_the_labels(data, fitted):
    x, y, x_test, y_test = data
    names = np.arange(len(y_test)) + 1000
    order = np.random.default_rng(0).permutation(len(names))
    features = pd.DataFrame(x_test, index=names).iloc[order]
    labels = pd.Series(y_test, index=names)
    expected = evaluate_estimator(fitted, x_test, y_test, calibration=(x_test, y_test))
    found = evaluate_estimator(fitted, features.to_numpy(), y_test, calibration=(features, labels))
    # arrays: by position
    assert found.metrics["multiclass/accuracy"] < 0.5 < expected.metrics["multiclass/accuracy"]
    model = clone(fitted).fit(pd.DataFrame(x), y)
    expected = evaluate_estimator(model, pd.DataFrame(x_test), y_test)
    found = evaluate_estimator(model, features, labels)
    assert found == expected
    assert (
        get_scorer("multiclass/accuracy")(model, features, labels)
        == expected.metrics["multiclass/accuracy"]
    )
    by_folds = [
        cross_validate_evaluation(model, rows, labels, cv=3).evaluation
        for rows in (x_test, features)
    ]
    assert (
        by_folds[0].confusion_matrix.counts.tolist() == by_folds[1].confusion_matrix.counts.tolist()
    )
    with pytest.raises(ValueError, match="y and X must contain the same rows"):
        evaluate_estimator(model, features.rename(index={1007: 7}), labels)


def test_repeated_splits_are_refused(data):
    x, y, _, _ = data
    with pytest.raises(ValueError, match="exactly one test part, got row 0 in 2"):
        cross_validate_evaluation(
            LogisticRegression(), x, y, cv=RepeatedStratifiedKFold(n_splits=3, n_repeats=2)
        )


def test_a_classifier_without_probabilities_is_cross_validated(data):
    x, y, _, _ = data
    found = cross_validate_evaluation(LinearSVC(random_state=0), x, y, cv=3)
    assert found.y_prob is None
    assert "LinearSVC has no predict_proba" in found.folds[0].warnings[0]
    expected = cross_val_predict(LinearSVC(random_state=0), x, y, cv=3, method="decision_function")
    np.testing.assert_allclose(found.y_score, expected)
    whole = evaluate(y, found.y_pred, y_score=expected)
    assert found.evaluation.metrics == pytest.approx(whole.metrics, nan_ok=True)
    assert "multiclass/roc_auc_ovr_macro" in whole.metrics
    assert RANKED_TOGETHER in found.evaluation.warnings
    assert not any(RANKED_TOGETHER in fold.warnings for fold in found.folds)
    for fold, test in zip(found.folds, found.tests, strict=True):
        ranked = evaluate(y[test], found.y_pred[test], y_score=expected[test]).metrics
        assert (
            fold.metrics["multiclass/roc_auc_ovr_macro"] == ranked["multiclass/roc_auc_ovr_macro"]
        )
    with pytest.raises(ValueError, match="no probabilities to calibrate with"):
        _ = found.calibration


@pytest.mark.slow
def test_folds_are_nested_runs_that_compare_ranks(store, data):
    x, y, _, _ = data
    models = {
        "logistic": LogisticRegression(),
        "guess": DummyClassifier(strategy="stratified", random_state=0),
    }
    for name, model in models.items():
        with mlflow.start_run(run_name=name) as run:
            done = cross_validate_evaluation(model, x, y, cv=4, grouping=SIDE).log(
                params={"seed": 1}, strict=True
            )
            assert mlflow.active_run().info.run_id == run.info.run_id
        assert [logged.status for logged in done] == ["completed"] * 5
        for place, logged in enumerate(done[1:]):
            child = store.get_run(logged.run_id)
            assert child.data.params == {"model": name, "fold": str(place), "seed": "1"}
            assert child.data.tags["mlflow.parentRunId"] == run.info.run_id
            assert child.info.run_name == f"{name}: fold {place}"
            assert child.info.status == "FINISHED"
    comparison = compare(
        experiment_names=["e"],
        block="params.fold",
        rank_by="multiclass/matthews_corrcoef",
        model="params.model",
        filter_string="params.fold != ''",
    )
    assert comparison.repeated.kind == "folds"
    assert comparison.best.name == "logistic"
    assert len(comparison.repeated.block_names) == 4
    # without any help
    assert compare(experiment_names=["e"], block="params.fold").best.name == "logistic"


@pytest.mark.slow
def test_folds_without_a_run_are_kept(store, data, tmp_path):
    x, y, _, _ = data
    found = cross_validate_evaluation(LogisticRegression(), x, y, cv=2)
    with pytest.warns(EvaluationWarning, match="no run is active") as caught:
        done = found.log()
    assert [logged.status for logged in done] == ["saved"] * 3
    assert len({logged.path for logged in done}) == 3
    assert len(caught) == 3
    assert runs_of(store) == []
    with pytest.raises(ValueError, match="no run is active"):
        found.log(strict=True)


@pytest.mark.slow
def test_a_server_that_is_down_keeps_every_fold(store, data, tmp_path):
    x, y, _, _ = data
    found = cross_validate_evaluation(LogisticRegression(), x, y, cv=2)
    mlflow.set_tracking_uri("http://127.0.0.1:9")
    with pytest.warns(EvaluationWarning, match="does not answer"):
        done = found.log(run_id="0" * 32)
    assert [logged.status for logged in done] == ["saved"] * 3


# -- searches ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_candidates_of_a_search_are_judged_out_of_fold_on_the_same_folds(store, data):
    x, y, x_test, y_test = data
    cv = StratifiedKFold(3, shuffle=True, random_state=1)
    grid = {"logisticregression__C": [1e-4, 1.0, 100.0]}
    search = GridSearchCV(make_pipeline(StandardScaler(), LogisticRegression()), grid, cv=cv).fit(
        x, y
    )
    half = np.where(np.arange(len(y)) % 2, "odd", "even")
    with mlflow.start_run(run_name="search") as run:
        best = log_estimator(search, x_test, y_test, grouping=SIDE, strict=True)
        done = log_candidates(
            search, x, y, max_candidates=2, grouping=SIDE, strict=True, segments={"half": half}
        )
    assert best.evaluation == evaluate_estimator(
        search.best_estimator_, x_test, y_test, grouping=SIDE
    )
    assert len(done) == 2
    ranks = search.cv_results_["rank_test_score"]
    assert [store.get_run(logged.run_id).data.params["rank"] for logged in done] == [
        str(r) for r in sorted(ranks)[:2]
    ]
    for logged in done:
        child = store.get_run(logged.run_id)
        assert child.data.tags["mlflow.parentRunId"] == run.info.run_id
        place = int(child.data.params["candidate"])
        assert child.data.params["logisticregression__C"] == str(
            grid["logisticregression__C"][place]
        )
        model = clone(search.estimator).set_params(**search.cv_results_["params"][place])
        expected = cross_val_predict(model, x, y, cv=cv, method="predict_proba")
        np.testing.assert_allclose(logged.evaluation.rows.probabilities, expected)
        divided = evaluate(
            y, expected.argmax(axis=1), y_prob=expected, grouping=SIDE, segments={"half": half}
        )
        found = logged.evaluation.segments["half"].to_frame()
        pd.testing.assert_frame_equal(found, divided.segments["half"].to_frame())
    comparison = compare([logged.run_id for logged in done])
    assert len(comparison.ranking.runs) == 2


@pytest.mark.slow
def test_candidates_of_several_metrics_go_by_the_one_that_chose(store, data):
    x, y, _, _ = data
    scoring = {
        "mcc": get_scorer("multiclass/matthews_corrcoef"),
        "bias": get_scorer("prevalence/bias", grouping=SIDE),
    }
    search = RandomizedSearchCV(
        LogisticRegression(),
        {"C": [1e-4, 1.0]},
        n_iter=2,
        cv=3,
        scoring=scoring,
        refit="bias",
        random_state=0,
    ).fit(x, y)
    with mlflow.start_run():
        done = log_candidates(search, x, y, max_candidates=1, strict=True)
    params = store.get_run(done[0].run_id).data.params
    assert params["candidate"] == str(search.best_index_)
    with mlflow.start_run(), pytest.raises(ValueError, match="max_candidates must be"):
        log_candidates(search, x, y, max_candidates=0, strict=True)


# -- beside MLflow's autologging -----------------------------------------------------------------------------


@pytest.fixture
def autologging(store, monkeypatch):
    """Models are logged too; what they require is not found out, for which each is loaded in a process of its own."""
    monkeypatch.setattr("mlflow.models.infer_pip_requirements", lambda *_, fallback: fallback)
    mlflow.sklearn.autolog(log_models=True, silent=True)
    yield store
    mlflow.sklearn.autolog(disable=True, silent=True)


def headline(evaluation):
    return {name for name in evaluation.headline if math.isfinite(evaluation.metrics[name])}


@pytest.mark.slow
def test_autologging_gets_no_stray_metric_run_or_parameter(autologging, data):
    x, y, x_test, y_test = data
    with mlflow.start_run() as alone:
        LogisticRegression().fit(x, y)
    before = autologging.get_run(alone.info.run_id).data
    with mlflow.start_run() as run:
        model = LogisticRegression().fit(x, y)
        logged = log_estimator(
            model, x_test, y_test, grouping=SIDE, calibration=(x_test, y_test), strict=True
        )
        found = cross_validate_evaluation(LinearSVC(), x, y, cv=2)
    after = autologging.get_run(run.info.run_id).data
    assert set(after.metrics) == set(before.metrics) | headline(logged.evaluation)
    assert after.params == before.params
    assert len(runs_of(autologging)) == 2
    cross_validate_evaluation(LogisticRegression(), x, y, cv=2)  # outside of a run
    assert len(runs_of(autologging)) == 2
    assert found.folds
    with mlflow.start_run() as again:  # and it goes on afterwards
        LogisticRegression().fit(x, y)
    assert set(autologging.get_run(again.info.run_id).data.metrics) == set(before.metrics)


@pytest.mark.slow
def test_autologging_of_a_search_and_our_scorers(autologging, data):
    x, y, x_test, y_test = data
    scoring = get_scorer("binary/matthews_corrcoef", grouping=SIDE)
    with mlflow.start_run() as run:
        search = GridSearchCV(LogisticRegression(), {"C": [0.01, 1.0]}, cv=2, scoring=scoring).fit(
            x, y
        )
        own = set(autologging.get_run(run.info.run_id).data.metrics)
        runs = len(runs_of(autologging))
        logged = log_estimator(search, x_test, y_test, grouping=SIDE, strict=True)
        done = log_candidates(search, x, y, grouping=SIDE, strict=True)
    assert set(autologging.get_run(run.info.run_id).data.metrics) == own | headline(
        logged.evaluation
    )
    assert len(runs_of(autologging)) == runs + 2
    for one in done:
        child = autologging.get_run(one.run_id).data
        assert set(child.metrics) == headline(one.evaluation)
        assert set(child.params) == {"C", "candidate", "rank", "model"}


# -- scorers -------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_scorer_for_every_metric_that_has_a_direction(data, fitted):
    _, _, x_test, y_test = data
    step, labels = "side", [0, 1, 2, 3]
    full = evaluate(
        y_test, y_prob=fitted.predict_proba(x_test), grouping=SIDE, labels=labels
    ).metrics
    plain = evaluate(y_test, y_prob=fitted.predict_proba(x_test), labels=labels).metrics
    tried = 0
    for metric in CATALOG:
        if metric.needs not in ("labels", "two groups", "probabilities"):
            continue
        name = (
            metric.name.replace("<step>", step).replace("<group>", "right").replace("<label>", "2")
        )
        if not metric.better:
            with pytest.raises(ValueError, match="metric must have a direction, got "):
                get_scorer(name)
            continue
        values = full if name in full else plain
        if name not in values:  # such as the granules of other evaluations
            continue
        score = get_scorer(name, grouping=SIDE if name in full else None)(fitted, x_test, y_test)
        expected = {
            "higher": values[name],
            "lower": -values[name],
            "nearest zero": -abs(values[name]),
        }
        assert score == pytest.approx(expected[metric.better], nan_ok=True), name
        tried += 1
    assert tried > 50


def test_a_scorer_agrees_with_scikit_learn_in_cross_validate_with_workers(data):
    x, y, _, _ = data
    scoring = {
        "ours": get_scorer("multiclass/matthews_corrcoef"),
        "loss": get_scorer("reduced/side/mismatch_rate", grouping=SIDE),
        "auc": get_scorer("binary/roc_auc", grouping=SIDE, positive="left"),
    }
    found = cross_validate(
        LogisticRegression(),
        x,
        y,
        cv=3,
        scoring={**scoring, "theirs": "matthews_corrcoef"},
        n_jobs=2,
    )
    np.testing.assert_allclose(found["test_ours"], found["test_theirs"])
    assert (found["test_loss"] <= 0).all()
    assert (found["test_auc"] > 0).all()


def test_a_scorer_in_a_grid_search_and_its_clones(data):
    x, y, x_test, y_test = data
    scorer = get_scorer("binary/matthews_corrcoef", grouping=SIDE, positive="left", labels=range(4))
    search = clone(
        GridSearchCV(LogisticRegression(), {"C": [1e-3, 1.0]}, cv=3, scoring=scorer, n_jobs=2)
    ).fit(x, y)
    assert search.best_params_ == {"C": 1.0}
    assert search.score(x_test, y_test) == scorer(search, x_test, y_test)
    again = pickle.loads(pickle.dumps(scorer))
    assert again == scorer
    assert again(search, x_test, y_test) == scorer(search, x_test, y_test)
    assert repr(scorer).startswith("get_scorer('binary/matthews_corrcoef', grouping=")


def test_a_scorer_asks_for_probabilities_only_where_it_needs_them(data):
    x, y, x_test, y_test = data
    model = LinearSVC().fit(x, y)
    assert get_scorer("multiclass/matthews_corrcoef")(model, x_test, y_test) == pytest.approx(
        matthews_corrcoef(y_test, model.predict(x_test))
    )
    with pytest.raises(ValueError, match="needs probabilities; LinearSVC has no predict_proba"):
        get_scorer("spcc/ovr_min")(model, x_test, y_test)


@pytest.mark.parametrize(
    ("metric", "sign"),
    [
        ("probability/log_loss", -1),
        ("probability/brier", -1),
        ("probability/log_skill", 1),
        ("calibration/error", -1),
        ("binary/average_precision", 1),
        ("cost/mean", -1),
        ("cost/saved", 1),
    ],
)
def test_scores_of_probabilities_and_of_costs_are_those_of_the_evaluation(
    data, fitted, metric, sign
):
    _, _, x_test, y_test = data
    costs = {("left", "right"): 5, ("right", "left"): 1} if metric.startswith("cost/") else None
    scorer = get_scorer(metric, grouping=SIDE, costs=costs)
    expected = evaluate_estimator(fitted, x_test, y_test, grouping=SIDE, costs=costs).metrics[
        metric
    ]
    assert scorer(fitted, x_test, y_test) == sign * expected
    assert pickle.loads(pickle.dumps(scorer)) == scorer
    assert ("costs=Costs(" in repr(scorer)) == (costs is not None)


def test_an_infinite_loss_scores_last(data):
    x, y, x_test, y_test = data
    tree = DecisionTreeClassifier(random_state=0).fit(x, y)
    assert get_scorer("probability/log_loss")(tree, x_test, y_test) == -math.inf
    with pytest.raises(ValueError, match=r"cost/mean needs costs: get_scorer\('cost/mean', costs="):
        get_scorer("cost/mean")


@pytest.mark.parametrize(
    ("metric", "text"),
    [
        ("binary/mcc", "there is no metric named 'binary/mcc'"),
        ("binary/tp", "neither high nor low values are better"),
        ("prevalence/actual", "neither high nor low values are better"),
    ],
)
def test_what_cannot_score_is_said_at_once(metric, text):
    with pytest.raises(ValueError, match=text):
        get_scorer(metric)


def test_a_metric_that_the_data_do_not_have_is_said(data, fitted):
    _, _, x_test, y_test = data
    with pytest.raises(ValueError, match="these data have no metric 'binary/f1'"):
        get_scorer("binary/f1")(fitted, x_test, y_test)


def test_an_undefined_score_is_nan(data):
    x, y, x_test, y_test = data
    model = DummyClassifier().fit(x, y)
    assert math.isnan(get_scorer("multiclass/matthews_corrcoef")(model, x_test, y_test))


# -- Displays ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_displays_draw_what_the_evaluation_holds(data, fitted):
    plt.close("all")  # what other tests left
    x, y, x_test, y_test = data
    expected = evaluate_estimator(fitted, x_test, y_test, grouping=SIDE)
    matrix = ReducedConfusionMatrixDisplay.from_estimator(
        fitted, x_test, y_test, grouping=SIDE, step="side"
    )
    np.testing.assert_array_equal(matrix.reduced.counts, expected.reduced["side"].counts)
    same = ReducedConfusionMatrixDisplay.from_predictions(
        y_test, fitted.predict(x_test), grouping=SIDE
    )
    np.testing.assert_array_equal(same.reduced.mismatches, expected.reduced["side"].mismatches)
    roc = ReducedRocDisplay.from_estimator(fitted, x_test, y_test, grouping=SIDE)
    assert roc.roc.ceiling == expected.roc.ceiling < 1
    again = ReducedRocDisplay.from_predictions(
        y_test, fitted.predict_proba(x_test), grouping=SIDE, title="t"
    )
    np.testing.assert_array_equal(again.roc.tpr, roc.roc.tpr)
    assert again.ax_.get_title() == "t"
    curve = PrecisionRecallDisplay.from_estimator(fitted, x_test, y_test, grouping=SIDE)
    assert curve.curve.average_precision == expected.metrics["binary/average_precision"]
    reliable = ReliabilityDisplay.from_estimator(fitted, x_test, y_test, grouping=SIDE)
    np.testing.assert_array_equal(reliable.curve.recalibrated, expected.calibration.recalibrated)
    legend = " ".join(
        text.get_text() for text in reliable.figure_.axes[1].get_legend().get_texts()
    ).split()
    low, high = expected.intervals["calibration/error"]
    # no error beyond noise: its end alone is shown
    assert (expected.metrics["calibration/error"], low) == (0, 0)
    assert f"calibration error 0 to {high:.3f} (95%)" in " ".join(legend)
    two = LogisticRegression().fit(x[130:], y[130:] > 1)  # the rows before are for the calibration
    prevalence = PrevalenceDisplay.from_estimator(two, x_test, calibration=(x[:130], y[:130] > 1))
    assert 0 < prevalence.estimate.low < prevalence.estimate.value < prevalence.estimate.high < 1
    mirrored = PrevalenceDisplay.from_estimator(
        two, x_test, calibration=(x[:130], y[:130] > 1), positive=False
    )
    assert mirrored.estimate.value == pytest.approx(1 - prevalence.estimate.value, abs=0.03)
    for display in (matrix, same, roc, again, curve, reliable, prevalence):
        assert isinstance(display.figure_, Figure)
        assert display.ax_ in display.figure_.axes
        assert display._repr_png_()[:4] == b"\x89PNG"
    assert plt.get_fignums() == []


def test_a_display_draws_into_given_axes(data, fitted):
    _, _, x_test, y_test = data
    figure, axes = plt.subplots(1, 4)
    try:
        matrix = ReducedConfusionMatrixDisplay.from_estimator(
            fitted, x_test, y_test, grouping=SIDE, ax=axes[0]
        )
        roc = ReducedRocDisplay.from_estimator(fitted, x_test, y_test, grouping=SIDE, ax=axes[1])
        scores = np.random.default_rng(0).beta(2, 3, 200)
        held = (np.arange(200) % 2, np.clip(scores + 0.2 * (np.arange(200) % 2), 0, 1))
        prevalence = PrevalenceDisplay.from_predictions(
            scores, calibration=held, ax=axes[2], title="share"
        )
        reliable = ReliabilityDisplay.from_predictions(
            held[0], held[1], labels=[0, 1], ax=axes[3], title="right?"
        )
        assert [display.ax_ for display in (matrix, roc, prevalence, reliable)] == list(axes)
        assert {display.figure_ for display in (matrix, roc, prevalence, reliable)} == {figure}
        assert axes[3].get_title() == "right?"
        assert reliable.plot().figure_ is not figure
        assert axes[2].get_title() == "share"
        assert roc.plot().figure_ is not figure
    finally:
        plt.close(figure)


def test_a_roc_needs_two_groups_and_a_display_a_drawing(data, fitted):
    _, _, x_test, y_test = data
    with pytest.raises(ValueError, match="a ROC curve needs"):
        ReducedRocDisplay.from_estimator(fitted, x_test, y_test)
    with pytest.raises(ValueError, match="a precision-recall curve needs"):
        PrecisionRecallDisplay.from_predictions(y_test, fitted.predict_proba(x_test))
    with pytest.raises(ValueError, match="a reliability curve needs"):
        ReliabilityDisplay.from_estimator(fitted, x_test, y_test)
    with pytest.raises(ValueError, match="a reliability curve needs"):
        ReliabilityDisplay.from_predictions(y_test > 1, None, y_score=x_test[:, 0])
    with pytest.raises(ValueError, match="two classes"):
        PrevalenceDisplay.from_estimator(fitted, x_test, calibration=(x_test, y_test))
    assert (
        ReducedRocDisplay(
            evaluate_estimator(fitted, x_test, y_test, grouping=SIDE).roc
        )._repr_png_()
        is None
    )


def encoded(names):
    """A classifier that was fitted on class numbers, as XGBoost's must be, and its rows with their labels."""
    X, codes, _, _ = learning_problem(len(names), held=0)
    return LogisticRegression().fit(X, codes), X, np.array(names)[codes]


@pytest.mark.parametrize("names", [["bad", "good"], ["low", "mid", "high"]], ids=["two", "three"])
def test_a_classifier_of_encoded_labels_gets_its_names_in_its_order(names):
    model, X, y = encoded(names)
    found = evaluate_estimator(model, X, y, labels=names)
    expected = evaluate(
        y, np.array(names)[model.predict(X)], y_prob=model.predict_proba(X), labels=names
    )
    assert found == expected
    assert found.metrics["multiclass/accuracy"] > 0.5


def test_a_classifier_of_encoded_labels_without_names_says_what_to_do():
    model, X, y = encoded(["bad", "good"])
    with pytest.raises(
        ValueError, match=r"labels that the classifier was fitted on, .*labels=\['bad', 'good'\]"
    ):
        evaluate_estimator(model, X, y)
    with pytest.raises(ValueError, match="labels must contain every class of the classifier"):
        evaluate_estimator(model, X, y, labels=["bad", "good", "other"])
