"""What Markoulidakis et al. (2021) print: Tables 6 to 8, Figure 7, and the parameters of Tables A1 to A7."""

from __future__ import annotations

import numpy as np
import pandas as pd

ALGORITHMS = (
    "Logistic Regr.",
    "SVM",
    "k-NN",
    "Decision Trees",
    "Random Forest",
    "Naïve Bayes",
    "CNN",
    "ANN",
)
REGRESSION = ALGORITHMS[0]
BEST_BY_ROC = ("CNN", "ANN", "Logistic Regr.", "SVM")
"""Section 5.4: "clearly outperform the rest of the algorithms"."""
ATTRIBUTES = (
    "tariff plan",
    "network voice service",
    "network data service",
    "shops",
    "call center",
    "website",
    "mobile application",
    "billing",
    "roaming service",
)
RESPONSES = 2500
"""Section 5.1: "approximately"."""
VALIDATION_SHARE = 0.2
SCORES = tuple(range(11))
GROUPS = ("detractor", "passive", "promoter")
FIGURE_7 = np.array([[20, 59, 1], [4, 185, 23], [2, 127, 88]])
"""Logistic regression, 3 x 3 + IM: rows actual, columns predicted, in the order of `GROUPS`."""
FIGURE_7_BINARY = {"tp": 273, "fn": 6, "imp": 150, "fp": 60, "tn": 20, "imn": 0}


def _table(rows: dict[str, tuple[float, ...]]) -> pd.DataFrame:
    return pd.DataFrame.from_dict(rows, orient="index", columns=list(ALGORITHMS))


TABLE_6 = _table(
    {
        "Accuracy": (0.37, 0.38, 0.34, 0.39, 0.33, 0.31, 0.38, 0.37),
        "Precision": (0.16, 0.17, 0.17, 0.23, 0.19, 0.17, 0.21, 0.14),
        "Recall": (0.15, 0.17, 0.16, 0.22, 0.17, 0.15, 0.19, 0.17),
        "F1-score": (0.13, 0.14, 0.16, 0.21, 0.18, 0.15, 0.19, 0.15),
    }
)
TABLE_7 = _table(
    {
        "Accuracy": (0.58, 0.56, 0.60, 0.51, 0.54, 0.56, 0.63, 0.57),
        "Precision": (0.68, 0.65, 0.62, 0.50, 0.55, 0.54, 0.66, 0.69),
        "Recall": (0.51, 0.48, 0.56, 0.50, 0.50, 0.58, 0.60, 0.52),
        "F1-score": (0.50, 0.53, 0.58, 0.50, 0.51, 0.57, 0.62, 0.51),
    }
)
TABLE_8 = _table(
    {
        "Accuracy": (0.58, 0.56, 0.60, 0.51, 0.54, 0.56, 0.63, 0.57),
        "Precision": (0.57, 0.55, 0.60, 0.52, 0.54, 0.62, 0.62, 0.56),
        "Recall": (0.64, 0.61, 0.63, 0.52, 0.58, 0.54, 0.65, 0.62),
        "F1-Score": (0.60, 0.58, 0.61, 0.52, 0.56, 0.58, 0.63, 0.59),
        "Specificity": (0.09, 0.07, 0.16, 0.15, 0.11, 0.27, 0.19, 0.10),
        "Miss Rate": (0.01, 0.01, 0.05, 0.10, 0.05, 0.19, 0.04, 0.02),
        "Negative Predictive Value": (0.11, 0.09, 0.18, 0.15, 0.13, 0.21, 0.21, 0.13),
        "Fall Out Rate": (0.14, 0.10, 0.10, 0.10, 0.12, 0.06, 0.09, 0.13),
        "False Discovery Rate": (0.12, 0.10, 0.10, 0.10, 0.12, 0.07, 0.09, 0.12),
        "False Omission Rate": (0.03, 0.01, 0.11, 0.18, 0.11, 0.32, 0.08, 0.04),
        "Fowlkes-Mallows index": (0.60, 0.58, 0.61, 0.52, 0.56, 0.58, 0.63, 0.59),
        "Mathews Correlation Coefficient": (0.33, 0.37, 0.35, 0.37, 0.36, 0.34, 0.38, 0.36),
        "PIMR": (0.35, 0.39, 0.32, 0.38, 0.37, 0.27, 0.31, 0.36),
        "PPIMR": (0.31, 0.35, 0.30, 0.38, 0.35, 0.31, 0.30, 0.32),
    }
)

PARAMETERS: dict[str, tuple[str, dict[str, str]]] = {
    "Decision Trees": (
        "Table A1",
        {
            "Function measuring quality of split": "Entropy",
            "Maximum depth of tree": "3",
            "Weights associated with classes": "1",
        },
    ),
    "k-NN": (
        "Table A2",
        {"Number of neighbors": "5", "Distance metric": "Minkowski", "Weight function": "uniform"},
    ),
    "SVM": (
        "Table A3",
        {
            "Kernel type": "Linear",
            "Degree of polynomial kernel function": "3",
            "Weights associated with classes": "1",
        },
    ),
    "Random Forest": (
        "Table A4",
        {"Number of trees": "100", "Measurements of quality of split": "Gini index"},
    ),
    "ANN": (
        "Table A5",
        {
            "Number of hidden neurons": "6",
            "Activation function applied for the input and hidden layer": "ReLU",
            "Activation function applied for the output layer": "Softmax",
            "Optimizer network function": "Adam",
            "Calculated loss": "Sparse categorical cross-entropy",
            "Epochs used": "100",
            "Batch size": "10",
        },
    ),
    "CNN": (
        "Table A6",
        {
            "Model": "Sequential (array of Keras Layers)",
            "Kernel size": "3",
            "Pool size": "4",
            "Activation function applied": "ReLU",
            "Calculated loss": "categorical cross-entropy",
            "Epochs used": "100",
            "Batch size": "128",
        },
    ),
    "Logistic Regr.": (
        "Table A7",
        {
            "Maximum number of iterations": "300",
            "Algorithm used in optimization": "L-BFGS",
            "Weights associated with classes": "1",
        },
    ),
}
"""Naïve Bayes (appendix B.7) has no table."""
