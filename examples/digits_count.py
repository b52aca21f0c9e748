"""
How many eights are in unlabelled images?
=========================================

A model was trained on equal numbers of threes and eights. In a new pile, eights are rare. If you count the model's
predictions, or sum its probabilities, the old shares affect the result. ``estimate_prevalence`` corrects for that with
labelled images that the model was not trained on.
"""

import mlflow
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from cmtrack import estimate_prevalence, log_evaluation

# %%
# The left half of each image is removed, so that the model makes many errors. The labels of the pile are hidden from it.
images = load_digits()
half = images.images[:, :, 4:].reshape(len(images.target), -1)
chosen = np.isin(images.target, (3, 8))
x, y = half[chosen], images.target[chosen]
x_fit, x_rest, y_fit, y_rest = train_test_split(x, y, train_size=60, stratify=y, random_state=0)
x_held, x_new, y_held, y_new = train_test_split(
    x_rest, y_rest, test_size=0.5, stratify=y_rest, random_state=0
)
pile = np.concatenate((np.flatnonzero(y_new == 3), np.flatnonzero(y_new == 8)[:12]))
model = LogisticRegression(C=1e-3).fit(x_fit, y_fit)
scores = model.predict_proba(x_new[pile])[:, 1]
held_scores = model.predict_proba(x_held)[:, 1]

# %%
# The calibrated share has an interval. The estimate also shows what would make the interval narrower.
estimate = estimate_prevalence(scores, calibration=(y_held, held_scores), positive=8)
print(f"share of eights among {len(pile)} new images")
print(f"  truth                  {(y_new[pile] == 8).mean():.3f}")
print(f"  answers counted        {(scores > 0.5).mean():.3f}")
print(f"  probabilities summed   {scores.mean():.3f}")
print(f"  calibrated             {estimate.value:.3f}  [{estimate.low:.3f}, {estimate.high:.3f}]")
source = ("new images", "labelled eights", "labelled threes")[int(np.argmax(estimate.shares))]
print(f"  more {source} would narrow the interval most")
estimate.figure().savefig("digits_count.png")

# %%
# The same as a run: evaluated on the labelled images, with the pile as the target.
mlflow.set_tracking_uri("sqlite:///cmtrack-examples.db")
mlflow.set_experiment("three or eight")
with mlflow.start_run(run_name="half an image"):
    logged = log_evaluation(y_held, y_prob=held_scores, positive=8, target=scores)
print(logged.evaluation.prevalence)
