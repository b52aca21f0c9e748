"""
Which labels should I check first?
==================================

The digits of scikit-learn, with 40 labels made wrong on purpose: 20 at random, and 20 where one of the models errs. Five
models are compared. The example lists the rows that most models get wrong first. Neither the models nor the list know
which labels are wrong. It needs ``pip install '.[demo]'``.
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from cmtrack import compare, evaluate

# %%
# Each image is predicted by a model that was not trained on it.
x, truth = load_digits(return_X_y=True)
models = {
    "nearest": KNeighborsClassifier(5),
    "forest": RandomForestClassifier(50, random_state=0),
    "logistic": make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=200)),
    "tree": DecisionTreeClassifier(random_state=0, min_samples_leaf=5),
    "naive": GaussianNB(),
}
scores = {
    name: cross_val_predict(model, x, truth, cv=3, method="predict_proba")
    for name, model in models.items()
}

# %%
# Wrong labels: 20 labels become any other digit. 20 become the forest's prediction where it is wrong, like labels that a
# model proposed and somebody confirmed.
rng = np.random.default_rng(0)
labels, answers = truth.copy(), scores["forest"].argmax(axis=1)
anywhere = rng.choice(np.flatnonzero(answers == truth), 20, replace=False)
labels[anywhere] = (truth[anywhere] + rng.integers(1, 10, 20)) % 10
followed = rng.choice(np.flatnonzero(answers != truth), 20, replace=False)
labels[followed] = answers[followed]
planted = np.flatnonzero(labels != truth)

# %%
# Rows that all models get wrong: errors that models share may be wrong labels, but need not be.
runs = {name: evaluate(labels, y_prob=p) for name, p in scores.items()}
comparison = compare(runs, rank_by="multiclass/accuracy")
missed = comparison.missed()
print(missed.sentence)
print(
    f"Of the 20 labels that are wrong anywhere, {np.isin(anywhere, missed.to_frame()['row']).sum()} are among them."
)

# %%
# If fewer models must get a row wrong, the list is longer, and a smaller part of its labels is wrong.
for models_wrong in (5, 4, 3, 2):
    rows = comparison.missed(models_wrong).to_frame()["row"]
    found = np.isin(rows, planted).sum()
    print(
        f"At least {models_wrong} models get {len(rows)} rows wrong: {found} of them have a planted label."
    )

# %%
# Wrong labels that follow a model are not among the rows that all models get wrong. They favour that model.
right = {name: np.mean(scores[name].argmax(axis=1) == truth) for name in ("nearest", "forest")}
seen = {name: comparison[name].evaluation.metrics["multiclass/accuracy"] for name in right}
for name, accuracy in right.items():
    print(f"{name}: accuracy {accuracy:.4f} by the true labels, {seen[name]:.4f} by these")

# %%
# The page has the same list for the run to take and its rival.
comparison.report("wrong_labels.html")
