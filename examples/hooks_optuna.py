"""
Optuna: which trial should I take?
==================================

Every trial is a nested run. At the end, the study ranks the trials and shows which of them may be the best. It needs
``pip install '.[optuna]'``.
"""

import mlflow
import optuna
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from cmtrack_integrations.optuna import EvaluatedTrials, compare_study

STORE = "sqlite:///cmtrack-examples.db"
mlflow.set_tracking_uri(STORE)
mlflow.set_experiment("hooks")
optuna.logging.set_verbosity(optuna.logging.WARNING)  # the ranking shows more than a line per trial

# %%
# Malignant or benign, classified by thirty measurements of cells.
data = load_breast_cancer()
x, x_val, y, y_val = train_test_split(
    data.data, data.target, test_size=0.5, stratify=data.target, random_state=0
)

# %%
# ``judge`` logs the trial's run and returns the metric that Optuna maximises.
with mlflow.start_run(run_name="Optuna"):
    judge = EvaluatedTrials("binary/matthews_corrcoef")

    def objective(trial):
        model = RandomForestClassifier(
            n_estimators=trial.suggest_int("n_estimators", 2, 60, log=True),
            max_depth=trial.suggest_int("max_depth", 1, 8),
            max_features=trial.suggest_float("max_features", 0.05, 1.0),
            random_state=0,
        ).fit(x, y)
        return judge(trial, y_val, y_prob=model.predict_proba(x_val))

    study = judge.create_study(study_name="forest")
    study.optimize(objective, n_trials=6)


# %%
# Among the trials that may be the best, take the smallest forest.
comparison = compare_study(study, tie_breakers=["params.n_estimators"])
print(comparison.summary())
print(
    f"Optuna's best trial is {study.best_trial.number}; with ties broken by size it is {comparison.best.name!r}"
)
comparison.figures()["ranking"].savefig("optuna_ranking.png")
comparison.report("hooks_optuna.html")
print(f"Read hooks_optuna.html, or look at the runs with: mlflow ui --backend-store-uri {STORE}")
