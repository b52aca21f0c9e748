"""CatBoost: one line after `fit`, with the stages of the model as steps of the run.

Run it with `python examples/hooks_catboost.py`; it needs `pip install 'cmtrack[catboost]'`.
"""

from pathlib import Path

import mlflow
from catboost import CatBoostClassifier
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split

from cmtrack_integrations.catboost import log_fitted

STORE = f"sqlite:///{Path('cmtrack-examples.db').resolve().as_posix()}"
mlflow.set_tracking_uri(STORE)
mlflow.set_experiment("hooks")

wine = load_wine()
x, x_val, y, y_val = train_test_split(wine.data, wine.target, test_size=0.5, stratify=wine.target, random_state=0)

with mlflow.start_run(run_name="CatBoost") as run:
    model = CatBoostClassifier(
        iterations=200, depth=3, learning_rate=0.3, early_stopping_rounds=20, verbose=10, allow_writing_files=False
    ).fit(x, y, eval_set=(x_val, y_val))
    logged = log_fitted(model, x_val, y_val, every=10)

print(logged.evaluation)
print(f"rounds: {mlflow.get_run(run.info.run_id).data.tags['cmtrack.rounds']}")
print(f"Look at the run with: mlflow ui --backend-store-uri {STORE}")
