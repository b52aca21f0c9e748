"""The demo: real models on a real survey, fitted, evaluated and tracked.

The survey is the 1996 American National Election Study; the models have the hyper-parameters of
Markoulidakis et al. (2021), appendix B, where these apply.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
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
    """Features and answers for fitting, for calibration and for evaluation."""

    x_fit: Any
    y_fit: Any
    x_held: Any
    y_held: Any
    x_test: Any
    y_test: Any


def load() -> Data:
    """Split the 944 people: 60% to fit, 20% for calibration, 20% to evaluate.

    The answer is the party identification 0 (strong democrat) to 6 (strong republican). ``vote`` is
    not a feature: whom somebody is going to vote for is nearly the answer. ``popul`` is not one
    either: ``logpopul`` has the same content.

    The labelled scores for calibration come from people that the same fitted model has not seen.
    Scores from cross-validation would come from different fits. For a decision tree, their few
    distinct values would differ from the scores of the evaluated tree, and the estimated prevalence
    would be wrong.

    ImportError if statsmodels, which brings the data, is not installed.
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
    """Return the grouping of the demo: the party, then Democrats against all others.

    The first step is relaxed: how strongly somebody leans does not matter. The second asks for the
    people whom a democratic campaign could not count on, and is strict, as in equation 46 of
    Markoulidakis et al. (2021): an independent, who may be won over, must not be predicted as a
    republican. Such a prediction stays in the positive group but is not a hit: it is an intragroup
    mismatch (IM). Most independents are predicted as another class, so no threshold finds all
    positives, and the ceiling of the ROC curve is below 1.
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
    """A name, an unfitted scikit-learn classifier, and the parameters worth logging."""

    name: str
    classifier: Any
    parameters: dict[str, Any]


def models(quick: bool = False) -> list[Model]:
    """Return seven classifiers and a baseline, or three of these for a quick run.

    The parameters come from tables A1 to A5 and A7 of the source. The probabilities of the support
    vector machine come from a sigmoid that is fitted on folds that the machine has not seen.
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
# The question is who is not a Democrat. This metric counts all four kinds of correct and wrong
# answers to it, and is undefined for a baseline that gives everybody the same answer. It is logged,
# so MLflow's UI can sort by it.
RANK_BY = "binary/matthews_corrcoef"
QUESTION = "Party identification, 1996: who is not a Democrat?"
REVIEW = "review.html"


@dataclass(frozen=True)
class DemoRun:
    """The run of one model."""

    name: str
    run_id: str
    evaluation: Evaluation
    report: Path


@dataclass(frozen=True)
class DemoResult:
    """All runs of a demo, best first by :data:`RANK_BY`, with their comparison and its review."""

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
    """Train, evaluate and track the demo's models, with a run for each model and for the review.

    ImportError if statsmodels is not installed.

    ``directory``: the folder for an SQLite tracking store ``mlflow.db``, a folder ``artifacts`` and
        ``review.html``. Another demo in this folder adds its runs, and replaces the review with a
        review of these runs.
    ``quick``: whether to train three models instead of eight.
    ``progress``: called with a description of the step, the steps done and the number of steps.
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
    if not isinstance(logged.evaluation, Evaluation):  # strict=True raises before this
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
        # The source stops after the same number of iterations.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return classifier.fit(data.x_fit, data.y_fit)


def _experiment(folder: Path) -> str:
    """Create or restore the demo's experiment, with artifacts next to the store; return its id."""
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
    """Return the key that sorts the best run first, and runs with an undefined metric last."""
    value = run.evaluation.metrics[RANK_BY]
    return math.isnan(value), -value
