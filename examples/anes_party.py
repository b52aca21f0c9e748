"""
Which of six models should I take?
==================================

Six models predict the party of 944 people in a 1996 survey. Each is an MLflow run with one ``log_evaluation`` line,
and ``compare`` shows which of them differ significantly on 189 people. It needs ``pip install '.[demo]'``.
"""

import warnings

import mlflow
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from statsmodels.datasets import anes96

from cmtrack import Grouping, compare, load_evaluation, log_evaluation

STORE = "sqlite:///cmtrack-examples.db"
SEED = 1996

# %%
# The label 0 is a strong Democrat, 3 an independent, 6 a strong Republican. Whom they vote for is almost the answer, so
# it is not a feature. The held rows are labelled people that the fitted model has not seen. They calibrate the count.
people = anes96.load_pandas().data
x = people[["logpopul", "TVnews", "selfLR", "ClinLR", "DoleLR", "age", "educ", "income"]].to_numpy()
y = people["PID"].astype(int).to_numpy()
x_train, x_test, y_train, y_test = train_test_split(
    x, y, test_size=0.2, stratify=y, random_state=SEED
)
x_fit, x_held, y_fit, y_held = train_test_split(
    x_train, y_train, test_size=0.25, stratify=y_train, random_state=SEED
)

# %%
# The question has two steps. The first is the party (how strongly does not matter), the second is who is not a Democrat.
# An independent predicted as a Republican is in the correct group but still an error: an intragroup mismatch.
question = Grouping({"democrat": [0, 1, 2], "independent": [3], "republican": [4, 5, 6]}, name="party").then(
    Grouping(
        {"democrat": ["democrat"], "not democrat": ["independent", "republican"]},
        mode="strict", positive="not democrat", name="side",
    )
)  # fmt: skip
models = {
    "baseline": DummyClassifier(strategy="prior"),
    "decision tree": DecisionTreeClassifier(criterion="entropy", max_depth=3, random_state=SEED),
    "random forest": RandomForestClassifier(n_estimators=100, random_state=SEED),
    "naive Bayes": GaussianNB(),
    "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=300)),
    "neural network": make_pipeline(
        StandardScaler(),
        MLPClassifier(hidden_layer_sizes=(6,), max_iter=100, batch_size=10, random_state=SEED),
    ),
}

# %%
# One run for each model. A run has the whole evaluation: numbers, statistics, figures.
warnings.simplefilter("ignore", ConvergenceWarning)  # a hundred epochs, as in the literature
mlflow.set_tracking_uri(STORE)
mlflow.set_experiment("party identification")
runs = {}
for name, model in models.items():
    with mlflow.start_run(run_name=name) as run:
        model.fit(x_fit, y_fit)
        held = (y_held, model.predict_proba(x_held))
        log_evaluation(
            y_test, y_prob=model.predict_proba(x_test), grouping=question, calibration=held
        )
        runs[name] = run.info.run_id
for name, run_id in runs.items():
    print(f"{name:20} {load_evaluation(run_id)}")

# %%
# Which run should you take? All runs were evaluated on the same people, so their differences are paired.
comparison = compare(list(runs.values()))
print(comparison.summary())
comparison.figures()["ranking"].savefig("anes_ranking.png")
print(f"\nLook at the runs with: mlflow ui --backend-store-uri {STORE}")
