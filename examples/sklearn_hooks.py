"""
Is a model better over the folds? scikit-learn's cross-validation and search
============================================================================

Cross-validated models are ranked over the folds. A search optimises the metric of your choice and logs its candidates.
Figures are drawn in scikit-learn's way. It needs ``pip install '.[demo]'``.
"""

import mlflow
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
    cross_validate_evaluation,
    get_scorer,
    log_candidates,
    log_estimator,
)

STORE = "sqlite:///cmtrack-examples.db"
SEED = 1996

# %%
# Party identification of 944 people: 0 is a strong Democrat, 3 an independent, 6 a strong Republican.
people = anes96.load_pandas().data
x = people[["logpopul", "TVnews", "selfLR", "ClinLR", "DoleLR", "age", "educ", "income"]]
y = people["PID"].astype(int)
x_train, x_test, y_train, y_test = train_test_split(
    x, y, test_size=0.25, stratify=y, random_state=SEED
)
republican = Grouping({"other": [0, 1, 2, 3], "republican": [4, 5, 6]}, name="republican")
folds = StratifiedKFold(4, shuffle=True, random_state=SEED)
mlflow.set_tracking_uri(STORE)
mlflow.set_experiment("scikit-learn hooks")

# %%
# Models over the folds: each row is predicted by a model that has not seen it, and each fold is a nested run.
regression = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
logged = []
for name, model in {"logistic regression": regression, "naive Bayes": GaussianNB()}.items():
    with mlflow.start_run(run_name=name):
        validated = cross_validate_evaluation(
            model, x_train, y_train, cv=folds, grouping=republican
        )
        logged += validated.log()[1:]  # the first entry is the whole evaluation
    print(f"{name:20} {validated.evaluation}")
comparison = compare(
    [one.run_id for one in logged], block="params.fold", rank_by="binary/matthews_corrcoef"
)
print(f"\n{comparison.summary()}")

# %%
# A search that optimises the metric of your choice, its candidates, and the best one on held-out people. The count of
# Republicans among them is calibrated with scores of rows that the scorer has not seen.
wanted = get_scorer("binary/matthews_corrcoef", grouping=republican)
search = GridSearchCV(regression, {"logisticregression__C": [0.003, 0.3]}, scoring=wanted, cv=folds)
with mlflow.start_run(run_name="search"):
    search.fit(x_train, y_train)
    print(f"the search took {search.best_params_}")
    candidates = log_candidates(search, x_train, y_train, grouping=republican)
    out_of_fold = cross_validate_evaluation(
        search.best_estimator_, x_train, y_train, cv=folds, grouping=republican
    )
    best = log_estimator(search, x_test, y_test, grouping=republican, calibration=out_of_fold)
for one in candidates:  # the best candidate of the search first
    print(f"candidate              {one.evaluation}")
print(f"best, on held-out rows {best.evaluation}")
print(f"Republicans among them {best.evaluation.prevalence}")

# %%
# Figures in scikit-learn's way.
matrix = ReducedConfusionMatrixDisplay.from_estimator(search, x_test, y_test, grouping=republican)
matrix.figure_.savefig("sklearn_reduced.png")
curve = ReducedRocDisplay.from_estimator(search, x_test, y_test, grouping=republican)
curve.figure_.savefig("sklearn_roc.png")
print(f"Look at the runs with: mlflow ui --backend-store-uri {STORE}")
