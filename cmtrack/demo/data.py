"""The 1996 American National Election Study, and the question that the demo asks of it."""

from __future__ import annotations

from typing import Any, NamedTuple

from cmtrack.grouping import Grouping

FEATURES = ("logpopul", "TVnews", "selfLR", "ClinLR", "DoleLR", "age", "educ", "income")
SEED = 1996


class Data(NamedTuple):
    """Features and answers: to fit, held out of the fit for calibration, and to be judged on."""

    x_fit: Any
    y_fit: Any
    x_held: Any
    y_held: Any
    x_test: Any
    y_test: Any


def load() -> Data:
    """Split the 944 people: 20 % to be judged on, 20 % for calibration, 60 % to fit.

    The answer is the party identification 0 (strong democrat) to 6 (strong republican). ``vote`` is no feature:
    whom somebody is going to vote for is nearly the answer. ``popul`` is none either: ``logpopul`` says the same.

    The labelled scores for calibration come from people that the very same fitted model has not seen. Scores from
    cross-validation come from other fits of it; a decision tree's few distinct scores are then others than those of
    the tree that is judged, and its prevalence would be estimated from densities that do not fit.

    Raises
    ------
    ImportError
        If statsmodels, which brings the data, is not installed.
    """
    try:
        from statsmodels.datasets import anes96
    except ImportError:
        raise ImportError("the demo's data come with statsmodels: pip install 'cmtrack[demo]'") from None
    from sklearn.model_selection import train_test_split

    frame = anes96.load_pandas().data
    x, y = frame[list(FEATURES)].to_numpy(), frame["PID"].astype(int).to_numpy()
    x_train, x_test, y_train, y_test = train_test_split(x, y, test_size=0.2, stratify=y, random_state=SEED)
    x_fit, x_held, y_fit, y_held = train_test_split(
        x_train, y_train, test_size=0.25, stratify=y_train, random_state=SEED
    )
    return Data(x_fit, y_fit, x_held, y_held, x_test, y_test)


def question() -> Grouping:
    """The grouping of the demo: the party, then Democrats against all others.

    The first step is relaxed: how strongly somebody leans does not matter. The second asks for the people whom a
    democratic campaign could not count on, and is strict, as in equation 46 of Markoulidakis et al. (2021): an
    independent, who may be won over, must not be taken for a republican. Such a mistake stays in the positive
    group but is no hit: it is an intragroup mismatch (IM), and since most independents are taken for something
    else, no threshold finds all positives: the ceiling of the ROC curve lies below 1.
    """
    party = Grouping({"democrat": [0, 1, 2], "independent": [3], "republican": [4, 5, 6]}, name="party")
    side = Grouping(
        {"democrat": ["democrat"], "not democrat": ["independent", "republican"]},
        mode="strict",
        positive="not democrat",
        name="side",
    )
    return party.then(side)
