"""
For whom does the model fail?
=============================

A model predicts which of 944 people in a survey are not Democrats. A search finds the segments in which it fails. They
are then tested, drawn and described in three sentences. It needs ``pip install '.[demo]'``.
"""

import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from statsmodels.datasets import anes96

from cmtrack import evaluate

# %%
# The label 3 is an independent, 4 to 6 a Republican. A model that was trained on other people scores each person.
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
# Search: every segment of one column or two crossed columns, with at least 60 people.
search = evaluation.worst_segments("multiclass/accuracy", depth=2, min_rows=60)
worst = search.segments[0]
print(
    f"{len(search.found())} of {search.searched} searched segments are worse than chance explains. The worst is "
    f"{worst.text}: {worst.value:.0%} of {worst.rows} people are classified correctly (adjusted p "
    f"= {worst.p_adjusted:.3f})."
)

# %%
# Test: the declared segments, with simultaneous intervals.
ideology = evaluation.segments["ideology"].to_frame("multiclass/accuracy").iloc[0]
print(
    f"By ideology, {ideology['segment']!r} is worst: {ideology['value']:.0%} correct, against {ideology['rest']:.0%} of "
    f"the rest, a difference of {100 * ideology['difference']:.0f} points "
    f"[{100 * ideology['difference_low']:.0f}, {100 * ideology['difference_high']:.0f}]."
)
gap = evaluation.segments["education"].disparity("multiclass/accuracy")
sure = "which chance may explain" if gap.gap_low <= 0 else "more than chance explains"
print(
    f"By education, the best and the worst segment are {100 * gap.gap:.0f} points apart "
    f"[{100 * gap.gap_low:.0f}, {100 * gap.gap_high:.0f}], {sure}."
)

# %%
# Drawing: a figure, and a page that you can send.
evaluation.figures()["segments_ideology"].savefig("segments_ideology.png")
evaluation.report("segments_report.html")
