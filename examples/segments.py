"""
For whom does the model fail?
=============================

A model tells who of 944 people of a survey is no Democrat. The segments in which it fails are found by a search,
tested, drawn, and told in three sentences. It needs ``pip install '.[demo]'``.
"""

import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from statsmodels.datasets import anes96

from cmtrack import evaluate

# %%
# The label 3 is an independent, 4 to 6 a Republican. Each person is scored by a model of others.
people = anes96.load_pandas().data
x = people[["logpopul", "TVnews", "selfLR", "ClinLR", "DoleLR", "age", "educ", "income"]]
y = (people["PID"] >= 3).map({True: "other", False: "Democrat"}).to_numpy()
model = make_pipeline(StandardScaler(), LogisticRegression())
p = cross_val_predict(model, x, y, cv=10, method="predict_proba")

segments = pd.DataFrame(
    {
        "age": pd.cut(
            people["age"], [0, 30, 45, 60, 120], labels=["to 30", "31 to 45", "46 to 60", "over 60"]
        ),
        "education": pd.cut(
            people["educ"], [0, 3, 5, 7], labels=["school", "some college", "degree"]
        ),
        "income": pd.cut(people["income"], [0, 12, 18, 24], labels=["low", "middle", "high"]),
        "ideology": pd.cut(people["selfLR"], [0, 3, 4, 7], labels=["left", "middle", "right"]),
    }
)
evaluation = evaluate(
    y, y_prob=p, labels=["Democrat", "other"], positive="other", segments=segments
)

# %%
# Found: every segment of one column and of two crossed ones, with at least 60 people.
search = evaluation.worst_segments("multiclass/accuracy", depth=2, min_rows=60)
worst = search.segments[0]
print(
    f"Of {search.searched} searched segments, {len(search.found())} are worse by more than chance explains; the "
    f"worst is {worst.text}: {worst.value:.0%} of {worst.rows} people are classed right (adjusted p "
    f"= {worst.p_adjusted:.3f})."
)

# %%
# Tested: the declared segments, with intervals that hold for all of them together.
ideology = evaluation.segments["ideology"].to_frame("multiclass/accuracy").iloc[0]
print(
    f"By ideology, {ideology['segment']!r} is worst: {ideology['value']:.0%} right against {ideology['rest']:.0%} of "
    f"the rest, a difference of {100 * ideology['difference']:.0f} points "
    f"[{100 * ideology['difference_low']:.0f}, {100 * ideology['difference_high']:.0f}]."
)
gap = evaluation.segments["education"].disparity("multiclass/accuracy")
sure = "which chance may explain" if gap.gap_low <= 0 else "more than chance explains"
print(
    f"By education the best and the worst segment are {100 * gap.gap:.0f} points apart "
    f"[{100 * gap.gap_low:.0f}, {100 * gap.gap_high:.0f}], {sure}."
)

# %%
# Drawn, and in a page that one can send.
evaluation.figures()["segments_ideology"].savefig("segments_ideology.png")
evaluation.report("segments_report.html")
