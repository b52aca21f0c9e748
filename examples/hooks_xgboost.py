"""
XGBoost: the rounds as steps of a run
=====================================

The callback logs the metrics of every twentieth round, and the full evaluation of the best round at the end. It needs
``pip install '.[xgboost]'``.
"""

import mlflow
import xgboost as xgb
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from cmtrack import Grouping
from cmtrack_integrations.xgboost import EvaluationCallback

STORE = "sqlite:///cmtrack-examples.db"
mlflow.set_tracking_uri(STORE)
mlflow.set_experiment("hooks")

# %%
# Ten digits in two groups: those with a closed loop, and the others.
digits = load_digits()
x, x_val, y, y_val = train_test_split(
    digits.data, digits.target, test_size=0.4, stratify=digits.target, random_state=0
)
loops = Grouping({"open": [1, 2, 3, 4, 5, 7], "loop": [0, 6, 8, 9]}, name="loops")
train, valid = xgb.DMatrix(x, y), xgb.DMatrix(x_val, y_val)

# %%
# Use the callback together with XGBoost's own early stopping.
with mlflow.start_run(run_name="XGBoost") as run:
    callback = EvaluationCallback(valid, every=20, grouping=loops)
    xgb.train(
        {"objective": "multi:softprob", "num_class": 10, "max_depth": 3, "eta": 0.5},
        train,
        num_boost_round=200,
        evals=[(valid, "valid")],
        early_stopping_rounds=10,
        callbacks=[callback],
        verbose_eval=10,
    )

print(callback.logged.evaluation)
print(f"rounds: {mlflow.get_run(run.info.run_id).data.tags['cmtrack.rounds']}")
callback.logged.evaluation.figures()["reduced_loops"].savefig("xgboost_loops.png")
print(f"Look at the run with: mlflow ui --backend-store-uri {STORE}")
