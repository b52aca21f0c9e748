"""Party identification, 1996: several models, each an MLflow run with one `log_evaluation` line.

Run it with `python examples/anes_party.py`; it needs `pip install 'cmtrack[demo]'`. `cmtrack demo` does the same with
more models and a progress bar.
"""

import warnings
from pathlib import Path

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

from cmtrack import Grouping, load_evaluation, log_evaluation

STORE = f"sqlite:///{Path('cmtrack-examples.db').resolve().as_posix()}"
SEED = 1996

# 944 people; 0 is a strong democrat, 3 an independent, 6 a strong republican. Whom they vote for is nearly the
# answer, so it is no feature.
people = anes96.load_pandas().data
x = people[["logpopul", "TVnews", "selfLR", "ClinLR", "DoleLR", "age", "educ", "income"]].to_numpy()
y = people["PID"].astype(int).to_numpy()
x_train, x_test, y_train, y_test = train_test_split(x, y, test_size=0.2, stratify=y, random_state=SEED)
# Labelled scores for the prevalence: people that the fitted model has not seen.
x_fit, x_held, y_fit, y_held = train_test_split(x_train, y_train, test_size=0.25, stratify=y_train, random_state=SEED)

# Which party (how strongly does not matter), and then: who is not a Democrat? An independent taken for a republican is
# on the right side, but still an error: an intragroup mismatch.
question = Grouping({"democrat": [0, 1, 2], "independent": [3], "republican": [4, 5, 6]}, name="party").then(
    Grouping(
        {"democrat": ["democrat"], "not democrat": ["independent", "republican"]},
        mode="strict",
        positive="not democrat",
        name="side",
    )
)

models = {
    "baseline": DummyClassifier(strategy="prior"),
    "decision tree": DecisionTreeClassifier(criterion="entropy", max_depth=3, random_state=SEED),
    "random forest": RandomForestClassifier(n_estimators=100, random_state=SEED),
    "naive Bayes": GaussianNB(),
    "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=300)),
    "neural network": make_pipeline(
        StandardScaler(), MLPClassifier(hidden_layer_sizes=(6,), max_iter=100, batch_size=10, random_state=SEED)
    ),
}

warnings.simplefilter("ignore", ConvergenceWarning)  # a hundred epochs, as in the literature
mlflow.set_tracking_uri(STORE)
mlflow.set_experiment("party identification")
runs = {}
for name, model in models.items():
    with mlflow.start_run(run_name=name) as run:
        model.fit(x_fit, y_fit)
        held = (y_held, model.predict_proba(x_held))
        log_evaluation(y_test, y_prob=model.predict_proba(x_test), grouping=question, calibration=held)
        runs[name] = run.info.run_id

for name, run_id in runs.items():
    evaluation = load_evaluation(run_id)  # the run holds all of it: numbers, statistics, figures
    print(f"{name:20} {evaluation}")
print(f"\nLook at the runs with: mlflow ui --backend-store-uri {STORE}")
