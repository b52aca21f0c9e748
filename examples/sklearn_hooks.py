"""scikit-learn and cmtrack: cross-validated models ranked over the folds, a search with its candidates, Displays.

Run it with `python examples/sklearn_hooks.py` (about a minute); it writes to a local SQLite store.
"""

from pathlib import Path

import mlflow
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from statsmodels.datasets import anes96

from cmtrack import Grouping, compare
from cmtrack_integrations.sklearn import (
    ReducedConfusionMatrixDisplay,
    ReducedRocDisplay,
    ReliabilityDisplay,
    cross_validate_evaluation,
    get_scorer,
    log_candidates,
    log_estimator,
)

STORE = f"sqlite:///{Path('cmtrack-examples.db').resolve().as_posix()}"
SEED = 1996

# Party identification of 944 people: 0 is a strong democrat, 3 an independent, 6 a strong republican.
people = anes96.load_pandas().data
x = people[["logpopul", "TVnews", "selfLR", "ClinLR", "DoleLR", "age", "educ", "income"]]
y = people["PID"].astype(int)
x_train, x_test, y_train, y_test = train_test_split(x, y, test_size=0.25, stratify=y, random_state=SEED)
republican = Grouping({"other": [0, 1, 2, 3], "republican": [4, 5, 6]}, name="republican")
folds = StratifiedKFold(5, shuffle=True, random_state=SEED)

mlflow.set_tracking_uri(STORE)
mlflow.set_experiment("scikit-learn hooks")

# 1. Models over the folds: each row judged by a model that has not seen it, each fold a nested run.
models = {
    "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)),
    "naive Bayes": GaussianNB(),
    "random forest": RandomForestClassifier(200, min_samples_leaf=5, random_state=SEED),
}
logged = []
for name, model in models.items():
    with mlflow.start_run(run_name=name):
        validated = cross_validate_evaluation(model, x_train, y_train, cv=folds, grouping=republican)
        logged += validated.log()[1:]  # the first one is the whole
    print(f"{name:20} {validated.evaluation}")
comparison = compare([one.run_id for one in logged], block="params.fold", rank_by="binary/matthews_corrcoef")
print(f"\n{comparison.summary()}\n")

# 2. A search that optimises what matters, its candidates, and the best one on held-out people. Its count of
#    republicans is calibrated by scores that the fitted model did not make on rows it had seen.
search = GridSearchCV(
    make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)),
    {"logisticregression__C": [0.003, 0.03, 0.3, 3.0]},
    scoring=get_scorer("binary/matthews_corrcoef", grouping=republican),
    cv=folds,
)
with mlflow.start_run(run_name="search"):
    search.fit(x_train, y_train)
    print(f"the search took {search.best_params_}")
    candidates = log_candidates(search, x_train, y_train, grouping=republican)
    out_of_fold = cross_validate_evaluation(search.best_estimator_, x_train, y_train, cv=folds, grouping=republican)
    best = log_estimator(search, x_test, y_test, grouping=republican, calibration=out_of_fold)
for one in candidates:  # the search's best first
    print(f"candidate              {one.evaluation}")
print(f"best, on held-out rows {best.evaluation}")
print(f"republicans among them {best.evaluation.prevalence}")

# 3. Figures in scikit-learn's manner.
for display, file in (
    (ReducedConfusionMatrixDisplay.from_estimator(search, x_test, y_test, grouping=republican), "reduced.png"),
    (ReducedRocDisplay.from_estimator(search, x_test, y_test, grouping=republican), "roc.png"),
    (ReliabilityDisplay.from_estimator(search, x_test, y_test, grouping=republican), "reliability.png"),
):
    display.figure_.savefig(file)
    print(f"wrote {file}")
print(f"\nLook at the runs with: mlflow ui --backend-store-uri {STORE}")
