"""
LightGBM: early stopping inside the callback
============================================

The callback stops the training, so the run gets the evaluation of the best iteration. It needs
``pip install '.[lightgbm]'``.
"""

import lightgbm as lgb
import mlflow
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from cmtrack_integrations.lightgbm import EvaluationCallback

STORE = "sqlite:///cmtrack-examples.db"
mlflow.set_tracking_uri(STORE)
mlflow.set_experiment("hooks")

# %%
# Malignant or benign, classified by thirty measurements of cells.
data = load_breast_cancer()
names = data.target_names[data.target]  # "malignant", "benign"
x, x_val, y, y_val = train_test_split(
    data.data, names, test_size=0.4, stratify=names, random_state=0
)

# %%
# Pass ``early_stopping=15`` to the callback: LightGBM's own early stopping would end the training first.
with mlflow.start_run(run_name="LightGBM") as run:
    callback = EvaluationCallback(x_val, y_val, positive="malignant", every=20, early_stopping=15)
    lgb.LGBMClassifier(n_estimators=300, verbose=-1).fit(
        x, y, eval_set=[(x_val, y_val)], callbacks=[callback, lgb.log_evaluation(10)]
    )

print(callback.logged.evaluation)
print(f"rounds: {mlflow.get_run(run.info.run_id).data.tags['cmtrack.rounds']}")
callback.logged.evaluation.figures()["roc"].savefig("lightgbm_roc.png")
print(f"Look at the run with: mlflow ui --backend-store-uri {STORE}")
