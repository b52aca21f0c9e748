"""The demo, which fits, evaluates and tracks models on the data of a real survey.

The survey is the 1996 American National Election Study. The models use the hyper-parameters in
appendix B of Markoulidakis et al. (2021), as far as they apply to these data.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from cmtrack.comparison import Comparison
from cmtrack.evaluation import Evaluation
from cmtrack.grouping import Grouping
from cmtrack.tracking import log_evaluation
from cmtrack.tracking.comparing import compare
from cmtrack.tracking.names import REPORT_FILE
from cmtrack.tracking.store import quiet, tracking_store

FEATURES = ("logpopul", "TVnews", "selfLR", "ClinLR", "DoleLR", "age", "educ", "income")
SEED = 1996


class Data(NamedTuple):
    """Features and answers of the people used for fitting, for calibration and for evaluation."""

    x_fit: Any
    y_fit: Any
    x_held: Any
    y_held: Any
    x_test: Any
    y_test: Any


def load() -> Data:
    """Split the 944 people: 60% for fitting, 20% for calibration and 20% for evaluation.

    The answer is the party identification, from 0 (strong Democrat) to 6 (strong Republican).
    ``vote`` is not used as a feature, because the intended vote almost reveals the answer.
    ``popul`` is not used either, because ``logpopul`` is its logarithm.

    The labelled calibration scores come from people who were not used to fit the model. Scores from
    cross-validation would come from several models that were fitted on different data. A decision
    tree returns only a few distinct scores, and they would differ from the scores of the evaluated
    tree, so the estimated prevalence would be wrong.

    Raises ImportError if statsmodels, which contains the data, is not installed.
    """
    try:
        from statsmodels.datasets import anes96
    except ImportError:
        raise ImportError(
            "the demo's data come with statsmodels: pip install '.[demo]' in the folder of "
            "cmtrack's source"
        ) from None
    from sklearn.model_selection import train_test_split

    frame = anes96.load_pandas().data
    x = frame[list(FEATURES)].to_numpy()
    y = frame["PID"].astype(int).to_numpy()
    x_train, x_test, y_train, y_test = train_test_split(
        x, y, test_size=0.2, stratify=y, random_state=SEED
    )
    x_fit, x_held, y_fit, y_held = train_test_split(
        x_train, y_train, test_size=0.25, stratify=y_train, random_state=SEED
    )
    return Data(x_fit, y_fit, x_held, y_held, x_test, y_test)


def question() -> Grouping:
    """Return the grouping of the demo: the parties, then Democrats against everybody else.

    The first step is relaxed, because it does not matter how strongly somebody leans towards a
    party. The positive group of the second step contains the people who do not support the
    Democrats. This step is strict, as in equation 46 of Markoulidakis et al. (2021), because a
    campaign may still convince an independent, so an independent must not be predicted as a
    Republican. Such a prediction is inside the positive group but is not a hit. It is called an
    intragroup mismatch (IM). Most independents are predicted as another class, so no threshold
    finds all positives, and the ROC curve ends below 1.
    """
    party = Grouping(
        {"democrat": [0, 1, 2], "independent": [3], "republican": [4, 5, 6]}, name="party"
    )
    side = Grouping(
        {"democrat": ["democrat"], "not democrat": ["independent", "republican"]},
        mode="strict",
        positive="not democrat",
        name="side",
    )
    return party.then(side)


QUICK = ("baseline", "decision tree", "logistic regression")


class Model(NamedTuple):
    """An unfitted scikit-learn classifier, its name, and the parameters that are logged."""

    name: str
    classifier: Any
    parameters: dict[str, Any]


def models(quick: bool = False) -> list[Model]:
    """Return seven classifiers and a baseline, or only three of these models if ``quick`` is true.

    The parameters come from tables A1 to A5 and A7 of Markoulidakis et al. (2021). The scores of
    the support vector machine are converted to probabilities by a sigmoid. The sigmoid is fitted on
    folds that were not used to fit the support vector machine.
    """
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.dummy import DummyClassifier
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC
    from sklearn.tree import DecisionTreeClassifier

    baseline = {"strategy": "prior"}
    tree = {"criterion": "entropy", "max_depth": 3}
    neighbours = {"n_neighbors": 5, "metric": "minkowski", "weights": "uniform"}
    machine = SVC(kernel="linear", random_state=SEED)
    forest = {"n_estimators": 100, "criterion": "gini"}
    network = {
        "hidden_layer_sizes": (6,),
        "activation": "relu",
        "solver": "adam",
        "max_iter": 100,
        "batch_size": 10,
    }
    regression = {"solver": "lbfgs", "max_iter": 300}

    def standardised(classifier: Any) -> Any:
        return make_pipeline(StandardScaler(), classifier)

    chosen = [
        Model("baseline", DummyClassifier(**baseline), baseline),
        Model("decision tree", DecisionTreeClassifier(**tree, random_state=SEED), tree),
        Model("k-nearest neighbours", standardised(KNeighborsClassifier(**neighbours)), neighbours),
        Model(
            "linear SVM",
            standardised(CalibratedClassifierCV(machine, method="sigmoid", cv=5)),
            {"kernel": "linear", "calibration": "sigmoid", "folds": 5},
        ),
        Model("random forest", RandomForestClassifier(**forest, random_state=SEED), forest),
        Model("neural network", standardised(MLPClassifier(**network, random_state=SEED)), network),
        Model("naive Bayes", GaussianNB(), {"densities": "gaussian"}),
        Model(
            "logistic regression",
            standardised(LogisticRegression(**regression, random_state=SEED)),
            regression,
        ),
    ]
    return [model for model in chosen if not quick or model.name in QUICK]


EXPERIMENT = "party identification (ANES 1996)"
# The positive group contains everybody who is not a Democrat. This metric uses all four counts of
# correct and wrong predictions, and is undefined for a baseline with the same prediction for
# everybody. It is logged, so MLflow's UI can sort the runs by it.
RANK_BY = "binary/matthews_corrcoef"
QUESTION = "Party identification, 1996: who is not a Democrat?"
REVIEW = "review.html"


@dataclass(frozen=True)
class DemoRun:
    """One model of the demo with its tracked run."""

    name: str
    run_id: str
    evaluation: Evaluation
    report: Path


@dataclass(frozen=True)
class DemoResult:
    """The runs of a demo, sorted by :data:`RANK_BY`, their comparison and its review."""

    directory: Path
    tracking_uri: str
    runs: tuple[DemoRun, ...]
    comparison: Comparison
    review: Path


def run_demo(
    directory: str | Path = "cmtrack-demo",
    *,
    quick: bool = False,
    progress: Callable[[str, int, int], object] | None = None,
) -> DemoResult:
    """Train and evaluate the models of the demo, and track each model and the review as a run.

    Raises ImportError if statsmodels is not installed.

    ``directory``: the folder for an SQLite tracking store ``mlflow.db``, a folder ``artifacts`` and
        ``review.html``. If you run the demo again in the same folder, new runs are added, and a
        review of the new runs replaces the previous review.
    ``quick``: whether to train three models instead of eight.
    ``progress``: function that is called with a description of the current step, the number of
        finished steps and the total number of steps.
    """
    folder = Path(directory).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    uri = f"sqlite:///{(folder / 'mlflow.db').as_posix()}"
    chosen = models(quick)
    n_steps = len(chosen) + 2

    def report_step(step: str, n_done: int) -> None:
        if progress is not None:
            progress(step, n_done, n_steps)

    report_step("reading the data and opening the store", 0)
    data = load()
    runs = []
    with quiet(), tracking_store(uri):
        experiment = _experiment(folder)
        for n_done, model in enumerate(chosen, 1):
            report_step(model.name, n_done)
            runs.append(_track(model, data, experiment, folder))
        report_step("comparing the models", n_steps - 1)
        comparison = compare([run.run_id for run in runs], rank_by=RANK_BY)
        review = comparison.report(folder / REVIEW, title=QUESTION)
        comparison.log(run_name="review")
        with suppress(ValueError):  # this version of MLflow may not be known to support views
            comparison.view()
    report_step("done", n_steps)
    return DemoResult(folder, uri, tuple(sorted(runs, key=_rank)), comparison, review)


def _track(model: Model, data: Data, experiment: str, folder: Path) -> DemoRun:
    import mlflow

    with mlflow.start_run(experiment_id=experiment, run_name=model.name) as run:
        mlflow.log_params({"model": model.name, **model.parameters})
        fitted = _fitted(model.classifier, data)
        logged = log_evaluation(
            data.y_test,
            y_prob=fitted.predict_proba(data.x_test),
            labels=range(7),
            grouping=question(),
            calibration=(data.y_held, fitted.predict_proba(data.x_held)),
            strict=True,
        )
    if not isinstance(logged.evaluation, Evaluation):  # strict=True raises an error earlier
        raise TypeError(f"expected an Evaluation, got {type(logged.evaluation).__name__}")
    run_id = str(run.info.run_id)
    return DemoRun(
        model.name,
        run_id,
        logged.evaluation,
        folder / "artifacts" / run_id / "artifacts" / REPORT_FILE,
    )


def _fitted(classifier: Any, data: Data) -> Any:
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        # Markoulidakis et al. also stop after this number of iterations, so the warning is
        # expected.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return classifier.fit(data.x_fit, data.y_fit)


def _experiment(folder: Path) -> str:
    """Create or restore the demo's experiment, and return its id."""
    from mlflow import MlflowClient

    client = MlflowClient()
    experiment = client.get_experiment_by_name(EXPERIMENT)
    if experiment is None:
        location = (folder / "artifacts").as_uri()
        return str(client.create_experiment(EXPERIMENT, artifact_location=location))
    if experiment.lifecycle_stage != "active":
        client.restore_experiment(experiment.experiment_id)
    return str(experiment.experiment_id)


def _rank(run: DemoRun) -> tuple[bool, float]:
    """Return a sort key that puts the best run first and runs with an undefined metric last."""
    value = run.evaluation.metrics[RANK_BY]
    return math.isnan(value), -value
