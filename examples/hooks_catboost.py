"""
CatBoost: the stages of a model as steps of a run
=================================================

``log_fitted`` is one line after ``fit``. The metrics of every tenth stage become steps of the run. The full evaluation
uses the stage that early stopping kept. It needs ``pip install '.[catboost]'``.
"""

import mlflow
from catboost import CatBoostClassifier
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split

from cmtrack_integrations.catboost import log_fitted

STORE = "sqlite:///cmtrack-examples.db"
mlflow.set_tracking_uri(STORE)
mlflow.set_experiment("hooks")

# %%
# Wine of three growers, classified by thirteen measurements.
wine = load_wine()
x, x_val, y, y_val = train_test_split(
    wine.data, wine.target, test_size=0.5, stratify=wine.target, random_state=0
)

# %%
# ``every=10`` logs a step of the run for every ten stages.
with mlflow.start_run(run_name="CatBoost") as run:
    model = CatBoostClassifier(
        iterations=200,
        depth=3,
        learning_rate=0.3,
        early_stopping_rounds=20,
        verbose=False,
        allow_writing_files=False,
    ).fit(x, y, eval_set=(x_val, y_val))
    logged = log_fitted(model, x_val, y_val, every=10)

print(logged.evaluation)
print(f"rounds: {mlflow.get_run(run.info.run_id).data.tags['cmtrack.rounds']}")
logged.evaluation.figures()["confusion_matrix"].savefig("catboost_wine.png")
print(f"Look at the run with: mlflow ui --backend-store-uri {STORE}")
