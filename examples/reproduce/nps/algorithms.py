"""The eight algorithms with the parameters of appendix B."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from nps import published
from nps.network import ConvolutionalClassifier, has_torch
from nps.survey import FloatArray, Split

SCALED = ("Logistic Regr.", "SVM", "CNN", "ANN")
LEFT_OPEN = (
    "Missing answers: the median of the attribute among the training rows, for all algorithms.",
    f"Standardised features: for {', '.join(SCALED)}; all scores are 0 to 10, so that the others take them as they "
    "are. The scores of ANES differ in scale; there k-NN is standardised, too.",
    "SVM: how eleven classes come from a machine of two, and its probabilities. Ours: scikit-learn's machines for "
    "pairs of scores, and a sigmoid for each score that is fitted on five folds; the most probable score is predicted.",
    "Naïve Bayes: its kind. Ours: normal densities.",
    "ANN: standardisation, learning rate, regularisation. Ours: standardised, 0.001, none; all epochs are run.",
    "CNN: number of filters, padding, optimiser. Ours: 32, none (nine attributes give seven values and one pool), Adam "
    "with 0.001; the attributes in the order in which the source lists them, which a convolution depends on.",
    "k-NN: the power of Minkowski's distance. Ours: 2.",
    "The degree of the polynomial (Table A3) has no effect on a linear kernel.",
)

_READ: dict[tuple[str, str], str] = {
    ("Decision Trees", "Function measuring quality of split"): "criterion",
    ("Decision Trees", "Maximum depth of tree"): "max_depth",
    ("Decision Trees", "Weights associated with classes"): "class_weight",
    ("k-NN", "Number of neighbors"): "n_neighbors",
    ("k-NN", "Distance metric"): "metric",
    ("k-NN", "Weight function"): "weights",
    ("SVM", "Kernel type"): "estimator__kernel",
    ("SVM", "Degree of polynomial kernel function"): "estimator__degree",
    ("SVM", "Weights associated with classes"): "estimator__class_weight",
    ("Random Forest", "Number of trees"): "n_estimators",
    ("Random Forest", "Measurements of quality of split"): "criterion",
    ("ANN", "Number of hidden neurons"): "hidden_layer_sizes",
    ("ANN", "Activation function applied for the input and hidden layer"): "activation",
    ("ANN", "Optimizer network function"): "solver",
    ("ANN", "Epochs used"): "max_iter",
    ("ANN", "Batch size"): "batch_size",
    ("CNN", "Kernel size"): "kernel_size",
    ("CNN", "Pool size"): "pool_size",
    ("CNN", "Epochs used"): "epochs",
    ("CNN", "Batch size"): "batch_size",
    ("Logistic Regr.", "Maximum number of iterations"): "max_iter",
    ("Logistic Regr.", "Algorithm used in optimization"): "solver",
    ("Logistic Regr.", "Weights associated with classes"): "class_weight",
}
_BY_MAKE = {
    ("ANN", "Activation function applied for the output layer"): "softmax",
    ("ANN", "Calculated loss"): "cross-entropy",
    ("CNN", "Model"): "layers in a row (PyTorch)",
    ("CNN", "Activation function applied"): "ReLU",
    ("CNN", "Calculated loss"): "cross-entropy",
}


class Size(NamedTuple):
    """What a fast mode makes smaller: trees of the forest, epochs of the two networks."""

    trees: int = 100
    epochs: int = 100


def algorithms(seed: int, size: Size, *, scaled: tuple[str, ...] = SCALED) -> dict[str, Pipeline]:
    """Unfitted classifiers by the source's names; without the CNN where PyTorch is not installed."""
    made: dict[str, Any] = {
        "Logistic Regr.": LogisticRegression(solver="lbfgs", max_iter=300),
        "SVM": CalibratedClassifierCV(SVC(kernel="linear", degree=3), method="sigmoid", cv=5),
        "k-NN": KNeighborsClassifier(n_neighbors=5, metric="minkowski", weights="uniform"),
        "Decision Trees": DecisionTreeClassifier(
            criterion="entropy", max_depth=3, random_state=seed
        ),
        "Random Forest": RandomForestClassifier(
            n_estimators=size.trees, criterion="gini", random_state=seed
        ),
        "Naïve Bayes": GaussianNB(),
        "CNN": ConvolutionalClassifier(
            kernel_size=3, pool_size=4, epochs=size.epochs, batch_size=128, random_state=seed
        ),
        "ANN": MLPClassifier(
            hidden_layer_sizes=(6,),
            activation="relu",
            solver="adam",
            alpha=0.0,
            max_iter=size.epochs,
            batch_size=10,
            n_iter_no_change=size.epochs,
            random_state=seed,
        ),
    }
    if not has_torch():
        del made["CNN"]
    return {
        name: _pipeline(made[name], name in scaled) for name in published.ALGORITHMS if name in made
    }


def _pipeline(classifier: Any, scaled: bool) -> Pipeline:
    steps = [SimpleImputer(strategy="median"), *([StandardScaler()] if scaled else []), classifier]
    return make_pipeline(*steps)


def fitted(classifier: Pipeline, split: Split) -> Pipeline:
    """Fit on the training part.

    The ANN stops after as many epochs as Table A5 says, converged or not: scikit-learn's warning of that is no news.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return classifier.fit(split.x_train, split.y_train)


def probabilities(classifier: Pipeline, split: Split) -> FloatArray:
    """Of all classes for the validation part; 0 for a class that the training part does not have."""
    out = np.zeros((len(split.x_valid), len(split.labels)))
    out[:, np.searchsorted(split.labels, classifier.classes_)] = classifier.predict_proba(
        split.x_valid
    )
    return out


def parameters(classifier: Pipeline) -> dict[str, Any]:
    """What is worth logging: the classifier's own parameters that are no objects."""
    plain = (str, int, float, tuple)
    return {
        name: value
        for name, value in classifier[-1].get_params().items()
        if isinstance(value, plain)
    }


def parameter_table(made: dict[str, Pipeline]) -> pd.DataFrame:
    """Tables A1 to A7 beside what the classifiers have; "–" for an algorithm that is not there."""
    rows = []
    for algorithm, (table, wanted) in published.PARAMETERS.items():
        for name, value in wanted.items():
            ours = _own(made, algorithm, name)
            same = ours != "–" and (not value.isdigit() or value in ours.strip("(,)").split())
            row = {
                "table": table,
                "algorithm": algorithm,
                "parameter": name,
                "published": value,
                "ours": ours,
            }
            rows.append(row | {"as printed": "yes" if same else "no"})
    return pd.DataFrame(rows)


def _own(made: dict[str, Pipeline], algorithm: str, name: str) -> str:
    if algorithm not in made:
        return "–"
    if (algorithm, name) in _BY_MAKE:
        return _BY_MAKE[algorithm, name]
    read = _READ[algorithm, name]
    value = made[algorithm][-1].get_params()[read]
    return "1 (none)" if value is None else str(value)
