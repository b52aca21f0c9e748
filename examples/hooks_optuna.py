"""Optuna: every trial is a nested run, and the study ends in a ranking that knows what is a tie.

Run it with `python examples/hooks_optuna.py`; it needs `pip install 'cmtrack[optuna]'`.
"""

from pathlib import Path

import mlflow
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from cmtrack_integrations.optuna import EvaluatedTrials, compare_study

STORE = f"sqlite:///{Path('cmtrack-examples.db').resolve().as_posix()}"
mlflow.set_tracking_uri(STORE)
mlflow.set_experiment("hooks")

data = load_breast_cancer()
x, x_val, y, y_val = train_test_split(data.data, data.target, test_size=0.5, stratify=data.target, random_state=0)

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
    study.optimize(objective, n_trials=12, show_progress_bar=True)

    comparison = compare_study(study, tie_breakers=["params.n_estimators"])  # as good, and smaller

print(comparison.summary())
print(f"Optuna's best trial is {study.best_trial.number}; with ties broken by size it is {comparison.best.name!r}")
comparison.report("hooks_optuna.html")
print(f"Read hooks_optuna.html, or look at the runs with: mlflow ui --backend-store-uri {STORE}")
