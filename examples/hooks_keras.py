"""
Keras: a callback on validation data
====================================

The callback comes after the callback that restores the best weights, so the run gets the evaluation of the best
weights. It needs ``pip install '.[keras]'`` and a backend (``torch``, ``jax`` or ``tensorflow``; to use a backend other
than TensorFlow, set the environment variable ``KERAS_BACKEND``).
"""

import keras
import mlflow
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from cmtrack import Grouping
from cmtrack_integrations.keras import EvaluationCallback

STORE = "sqlite:///cmtrack-examples.db"
mlflow.set_tracking_uri(STORE)
mlflow.set_experiment("hooks")

# %%
# Ten digits in two groups: those with a closed loop, and the others.
digits = load_digits()
x, x_val, y, y_val = train_test_split(
    digits.data / 16, digits.target, test_size=0.4, stratify=digits.target, random_state=0
)
loops = Grouping({"open": [1, 2, 3, 4, 5, 7], "loop": [0, 6, 8, 9]}, name="loops")
keras.utils.set_random_seed(0)
model = keras.Sequential(
    [
        keras.Input((64,)),
        keras.layers.Dense(32, activation="relu"),
        keras.layers.Dense(10, activation="softmax"),
    ]
)
model.compile("adam", "sparse_categorical_crossentropy")

# %%
# Every fifth epoch is a step of the run.
with mlflow.start_run(run_name="Keras"):
    stop = keras.callbacks.EarlyStopping(monitor="val_loss", patience=2, restore_best_weights=True)
    callback = EvaluationCallback((x_val, y_val), every=5, grouping=loops)
    model.fit(
        x, y, validation_data=(x_val, y_val), epochs=10, verbose=2, callbacks=[stop, callback]
    )

print(callback.logged.evaluation)
print(f"Look at the run with: mlflow ui --backend-store-uri {STORE}")
