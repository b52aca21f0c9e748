"""Images of handwritten digits: ten classes in groups, and how many eights there are in a pile nobody has labelled.

Run it with `python examples/digits_images.py`.
"""

from pathlib import Path

import mlflow
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

from cmtrack import Grouping, estimate_prevalence, log_evaluation

STORE = f"sqlite:///{Path('cmtrack-examples.db').resolve().as_posix()}"
mlflow.set_tracking_uri(STORE)
mlflow.set_experiment("handwritten digits")
images = load_digits()

# -- ten classes -------------------------------------------------------------------------------------------------
# A sorting machine first asks how a digit is drawn, then whether it closes a loop. The second step is hybrid: among
# the digits without a loop any mix-up is fine, among those with one 6 and 9 may be exchanged (a sheet held upside
# down) but nothing else. So a 0 read as an 8 is on the right side and still an error: an intragroup mismatch.
closed = [0, 6, 8, 9]
loops = Grouping(
    {"open": [1, 2, 3, 4, 5, 7], "loop": closed},
    mode={"open": "relaxed", "loop": [(6, 9), (9, 6)]},
    positive="loop",
    name="loops",
)
x_fit, x_test, y_fit, y_test = train_test_split(
    images.data, images.target, test_size=0.5, stratify=images.target, random_state=0
)
for name, model in {
    "naive Bayes": GaussianNB(var_smoothing=1e-2),
    "logistic regression": LogisticRegression(max_iter=300, C=1e-3),
}.items():
    with mlflow.start_run(run_name=name):
        probabilities = model.fit(x_fit, y_fit).predict_proba(x_test)
        logged = log_evaluation(y_test, y_prob=probabilities, grouping=loops)
    print(f"{name:20} {logged.evaluation}")
    print(logged.evaluation.reduced["loops"].to_frame(), "\n")

# -- three or eight: the share in an unlabelled pile -----------------------------------------------------------------
# The left half of each image is lost, so the model is often wrong. It has seen threes and eights alike; in the new
# pile eights are rare. Counting its answers, or summing its probabilities, carries the old shares over to the new
# pile; the labelled scores of images that it was not trained on correct for that.
half = images.images[:, :, 4:].reshape(len(images.target), -1)
chosen = np.isin(images.target, (3, 8))
x, y = half[chosen], images.target[chosen]
x_fit, x_rest, y_fit, y_rest = train_test_split(x, y, train_size=60, stratify=y, random_state=0)
x_held, x_new, y_held, y_new = train_test_split(x_rest, y_rest, test_size=0.5, stratify=y_rest, random_state=0)
pile = np.concatenate((np.flatnonzero(y_new == 3), np.flatnonzero(y_new == 8)[:12]))  # few eights, labels hidden
model = LogisticRegression(C=1e-3).fit(x_fit, y_fit)
scores = model.predict_proba(x_new[pile])[:, 1]
held_scores = model.predict_proba(x_held)[:, 1]

estimate = estimate_prevalence(scores, calibration=(y_held, held_scores), positive=8)
print(f"share of eights among {len(pile)} new images")
print(f"  truth                  {(y_new[pile] == 8).mean():.3f}")
print(f"  answers counted        {(scores > 0.5).mean():.3f}")
print(f"  probabilities summed   {scores.mean():.3f}")
print(f"  calibrated             {estimate.value:.3f}  [{estimate.low:.3f}, {estimate.high:.3f}]")
source = ("new images", "labelled eights", "labelled threes")[int(np.argmax(estimate.shares))]
print(f"  more {source} would narrow the interval most\n")

with mlflow.start_run(run_name="three or eight"):  # judged on the labelled images, with the pile as the target
    log_evaluation(y_held, y_prob=held_scores, positive=8, target=scores)
print(f"Look at the runs with: mlflow ui --backend-store-uri {STORE}")
