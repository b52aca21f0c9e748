"""
Is a wrong code at least in the correct family?
===============================================

A sheet has three handwritten digits. A model predicts which digits are on it: a set of codes. Each code belongs to a
family, “open” or “loop”, as ICD-9 codes belong to their first three digits. ``evaluate_families`` shows how often a
code is correct, wrong within its family, or out of its family. The sheets are made from scikit-learn's images.
"""

import mlflow
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

from cmtrack import Prefix, compare, evaluate_families, log_evaluation

STORE = "sqlite:///cmtrack-examples.db"
LOOPS = (0, 6, 8, 9)

# %%
# The left half of each image is removed, so that the models make many errors.
images = load_digits()
half = images.images[:, :, 4:].reshape(len(images.target), -1)
codes = np.array([f"{'loop' if digit in LOOPS else 'open'}.{digit}" for digit in images.target])
x_fit, x_test, y_fit, y_test = train_test_split(
    half, codes, train_size=300, stratify=codes, random_state=0
)
sheets = np.arange(len(y_test) // 3 * 3).reshape(-1, 3)  # three images each
actual = [set(y_test[sheet]) for sheet in sheets]

# %%
# One run for each model.
mlflow.set_tracking_uri(STORE)
mlflow.set_experiment("sheets of digits")
logged = {}
for name, model in {
    "logistic regression": LogisticRegression(max_iter=2000),
    "naive Bayes": GaussianNB(),
}.items():
    with mlflow.start_run(run_name=name) as run:
        found = model.fit(x_fit, y_fit).predict(x_test)
        evaluation = evaluate_families(
            actual, [set(found[sheet]) for sheet in sheets], Prefix(separator=".")
        )
        log_evaluation(evaluation)
        logged[name] = run.info.run_id, evaluation
    print(f"{name:20} {evaluation}")

# %%
# Somebody who sees a suggestion wants to know whether it is correct, and if not, which code is.
evaluation = logged["logistic regression"][1]
table = evaluation.code_table()
for code in table.nlargest(3, "confused_given_predicted")["code"]:
    print(evaluation.given_predicted(code))
evaluation.figures()["family_matrix"].savefig("families_matrix.png")

# %%
# Which model? For families, use a metric that gives half credit for the correct family.
comparison = compare([run_id for run_id, _ in logged.values()], rank_by="family/hierarchical_f1")
print(comparison.summary())
print(f"\nLook at the runs with: mlflow ui --backend-store-uri {STORE}")
