"""The demo's models, with the hyper-parameters of Markoulidakis et al. (2021), appendix B, where these apply."""

from __future__ import annotations

from typing import Any, NamedTuple

SEED = 1996
QUICK = ("baseline", "decision tree", "logistic regression")


class Model(NamedTuple):
    """A name, an unfitted scikit-learn classifier, and the parameters worth logging."""

    name: str
    classifier: Any
    parameters: dict[str, Any]


def models(quick: bool = False) -> list[Model]:
    """Seven classifiers and a baseline; a quick run takes three."""
    chosen = [
        Model("baseline", *_baseline()),
        Model("decision tree", *_tree()),
        Model("k-nearest neighbours", *_neighbours()),
        Model("linear SVM", *_svm()),
        Model("random forest", *_forest()),
        Model("neural network", *_network()),
        Model("naive Bayes", *_bayes()),
        Model("logistic regression", *_regression()),
    ]
    return [model for model in chosen if not quick or model.name in QUICK]


def _standardised(classifier: Any) -> Any:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), classifier)


def _baseline() -> tuple[Any, dict[str, Any]]:
    from sklearn.dummy import DummyClassifier

    return DummyClassifier(strategy="prior"), {"strategy": "prior"}


def _tree() -> tuple[Any, dict[str, Any]]:
    """Table A1."""
    from sklearn.tree import DecisionTreeClassifier

    parameters = {"criterion": "entropy", "max_depth": 3}
    return DecisionTreeClassifier(**parameters, random_state=SEED), parameters


def _neighbours() -> tuple[Any, dict[str, Any]]:
    """Table A2."""
    from sklearn.neighbors import KNeighborsClassifier

    parameters = {"n_neighbors": 5, "metric": "minkowski", "weights": "uniform"}
    return _standardised(KNeighborsClassifier(**parameters)), parameters


def _svm() -> tuple[Any, dict[str, Any]]:
    """Table A3; probabilities by a sigmoid that is fitted on folds which the machine has not seen."""
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.svm import SVC

    calibrated = CalibratedClassifierCV(SVC(kernel="linear", random_state=SEED), method="sigmoid", cv=5)
    return _standardised(calibrated), {"kernel": "linear", "calibration": "sigmoid", "folds": 5}


def _forest() -> tuple[Any, dict[str, Any]]:
    """Table A4."""
    from sklearn.ensemble import RandomForestClassifier

    parameters = {"n_estimators": 100, "criterion": "gini"}
    return RandomForestClassifier(**parameters, random_state=SEED), parameters


def _network() -> tuple[Any, dict[str, Any]]:
    """Table A5: one hidden layer of 6."""
    from sklearn.neural_network import MLPClassifier

    parameters = {
        "hidden_layer_sizes": (6,),
        "activation": "relu",
        "solver": "adam",
        "max_iter": 100,
        "batch_size": 10,
    }
    return _standardised(MLPClassifier(**parameters, random_state=SEED)), parameters


def _bayes() -> tuple[Any, dict[str, Any]]:
    from sklearn.naive_bayes import GaussianNB

    return GaussianNB(), {"densities": "gaussian"}


def _regression() -> tuple[Any, dict[str, Any]]:
    """Table A7."""
    from sklearn.linear_model import LogisticRegression

    parameters = {"solver": "lbfgs", "max_iter": 300}
    return _standardised(LogisticRegression(**parameters, random_state=SEED)), parameters
