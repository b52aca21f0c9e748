"""
How does MLflow's own evaluator give these metrics?
===================================================

``mlflow.models.evaluate`` accepts ``"cmtrack"`` as an evaluator, for a logged model and for a table of predictions.
MLflow's own validation accepts the result. It needs ``pip install '.[demo]'``.
"""

import mlflow
from mlflow.models import MetricThreshold, infer_signature
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from statsmodels.datasets import anes96

from cmtrack import load_evaluation

STORE = "sqlite:///cmtrack-examples.db"

people = anes96.load_pandas().data
features = ["logpopul", "TVnews", "selfLR", "ClinLR", "DoleLR", "age", "educ", "income"]
table = people[features].astype(float).assign(party=people["PID"].astype(int))
train, test = train_test_split(table, test_size=0.25, stratify=table["party"], random_state=1996)
train, held = train_test_split(train, test_size=0.3, stratify=train["party"], random_state=1996)

mlflow.set_tracking_uri(STORE)
mlflow.set_experiment("mlflow.models.evaluate")
model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)).fit(
    train[features], train["party"]
)
options = {
    "grouping": {
        "name": "republican",
        "groups": {"other": {"from": 0, "to": 3}, "republican": {"from": 4, "to": 6}},
    },
    "calibration": (held["party"], model.predict_proba(held[features])),
}

# %%
# A model: cmtrack finds its probabilities, and its metrics are linked to it once.
with mlflow.start_run(run_name="model") as run:
    info = mlflow.sklearn.log_model(
        model, name="party", signature=infer_signature(test[features], [0])
    )
    result = mlflow.models.evaluate(
        info.model_uri,
        test,
        targets="party",
        model_type="classifier",
        evaluators=["default", "cmtrack"],
        evaluator_config={"cmtrack": options, "default": {"log_model_explainability": False}},
    )
for name in (
    "accuracy_score",
    "multiclass/accuracy",
    "binary/matthews_corrcoef",
    "prevalence/calibrated",
):
    print(f"{name:26} {result.metrics[name]:.4f}")
print(
    "artifacts:", ", ".join(sorted(name for name in result.artifacts if name.startswith("cmtrack")))
)
load_evaluation(run.info.run_id).figures()["reduced_republican"].savefig("mlflow_republican.png")

# %%
# A table of predictions: you have to name the columns of probabilities.
scored = test[["party"]].assign(
    predicted=model.predict(test[features]),
    **{
        f"p_{label}": p
        for label, p in zip(model.classes_, model.predict_proba(test[features]).T, strict=True)
    },
)
static = mlflow.models.evaluate(
    data=scored,
    targets="party",
    predictions="predicted",
    model_type="classifier",
    evaluators="cmtrack",
    evaluator_config={"y_prob": "p_*", **options},
)
print(f"the same number: {static.metrics['binary/matthews_corrcoef']:.4f}")

# %%
# MLflow's own validation accepts the result.
mlflow.validate_evaluation_results(
    {"binary/matthews_corrcoef": MetricThreshold(threshold=0.4, greater_is_better=True)}, result
)
print(f"validated; look at the runs with: mlflow ui --backend-store-uri {STORE}")
