"""
How does the net promoter score change from month to month?
===========================================================

Customers answer a question from 0 to 10. The net promoter score is the share of the answers 9 and 10 less the share of
the answers 0 to 6. Many customers only write a comment, so a model predicts their answers. **The data of this example is
made up**: 2,000 comments a month, of which 150 random ones come with an answer.
"""

import numpy as np
from sklearn.linear_model import LogisticRegression

from cmtrack import Grouping, estimate_prevalence, evaluate

# %%
# Customers are less happy in March. The model was trained on older comments.
rng = np.random.default_rng(0)


def comments(n, mood):
    feeling = rng.normal(mood, 1, n)
    answers = np.clip(np.round(7.2 + 2.2 * feeling), 0, 10).astype(int)
    return feeling[:, None] + rng.normal(0, 0.8, (n, 3)), answers


model = LogisticRegression(max_iter=1000).fit(*comments(3000, 0))
moods = {"2026-01": 0, "2026-02": 0.1, "2026-03": -0.5}
drawn = [comments(2000, mood) for mood in moods.values()]
y = np.concatenate([answers for _, answers in drawn])
p = model.predict_proba(np.concatenate([words for words, _ in drawn]))
month = np.repeat(list(moods), 2000)
answered = np.tile(np.arange(2000) < 150, 3)

# %%
# How good is the model? ``ordered=True`` adds metrics of ordered classes, and ``scores="nps"`` the score of the
# predictions and its bias. ``Grouping.nps()`` groups the answers into detractors, passives and promoters.
evaluation = evaluate(
    y[answered],
    y_prob=p[answered],
    labels=range(11),
    ordered=True,
    scores="nps",
    grouping=Grouping.nps(),
)
for name in ("ordinal/mae", "ordinal/within_1", "reduced/nps/accuracy", "score/nps_bias"):
    low, high = evaluation.intervals[name]
    print(f"{name:22} {evaluation.metrics[name]:6.3f}  [{low:.3f}, {high:.3f}]")
print(evaluation.score("nps"))

# %%
# The score of each month uses the answers of this month, and the probabilities of the comments without an answer.
table = estimate_prevalence(
    p[~answered],
    by={"month": month[~answered]},
    calibration=(y[answered], p[answered]),
    calibration_by={"month": month[answered]},
)
points = np.select([y >= 9, y >= 7], [100, 0], -100)
for name in moods:
    score = table.score("nps", [name])
    truth = points[~answered & (month == name)].mean()
    print(
        f"{name}  {100 * score.value:+.0f} [{100 * score.low:+.0f}, {100 * score.high:+.0f}]"
        f"  in truth {truth:+.0f}"
    )

# %%
# Did it change? The interval of a difference takes into account that two months may use the same labelled rows.
for first, second in (("2026-01", "2026-02"), ("2026-02", "2026-03")):
    change = table.score_change(first, second, "nps")
    print(
        f"{first} to {second}  {100 * change.value:+.0f} "
        f"[{100 * change.low:+.0f}, {100 * change.high:+.0f}]"
    )
