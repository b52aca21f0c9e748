"""A registered model is evaluated on new rows: it scores them, or its stored predictions are read."""

from __future__ import annotations

import json

import mlflow
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import LinearSVC

from cmtrack import evaluate, evaluate_model, load_evaluation, log_evaluation
from cmtrack.cli import main
from cmtrack.tracking import quiet, tracking_store
from support.stores import sqlite_store

pytestmark = pytest.mark.usefixtures("undrawn")

FEATURES = ["age", "income", "size"]


def rows(n: int, seed: int) -> pd.DataFrame:
    """Labelled rows, with an id and a region that are not features."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, 3)), columns=FEATURES)
    frame["y"] = np.where(frame["age"] + rng.normal(size=n) > 0, "yes", "no")
    frame["id"] = np.arange(n)
    frame["region"] = rng.choice(["north", "south"], n)
    return frame


TRAINING = rows(300, 0)
JUNE = rows(200, 1)


class Majority(mlflow.pyfunc.PythonModel):
    """A model without access to its inside that always predicts "no"."""

    def predict(self, context, model_input, params=None):
        return np.full(len(model_input), "no")


def register(model, example: bool = True) -> None:
    """Register a fitted model as the next version of "party"."""
    shown = TRAINING[FEATURES].head(3) if example else None
    with mlflow.start_run():
        mlflow.sklearn.log_model(
            model,
            name="model",
            registered_model_name="party",
            input_example=shown,
            serialization_format="pickle",
            # MLflow would find the requirements in another process, which takes seconds.
            pip_requirements=[],
        )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("registry")


@pytest.fixture(scope="module")
def models(folder):
    """Versions 1 to 4 of "party": probabilities, labels only, numbers, and a model without a signature."""
    logistic = LogisticRegression().fit(TRAINING[FEATURES], TRAINING["y"])
    with quiet(), tracking_store(sqlite_store(folder / "mlflow.db")) as uri:
        mlflow.create_experiment("parties", artifact_location=(folder / "artifacts").as_uri())
        mlflow.set_experiment("parties")
        register(logistic)
        register(LinearSVC().fit(TRAINING[FEATURES], TRAINING["y"]))
        register(Ridge().fit(TRAINING[FEATURES], TRAINING["y"] == "yes"))
        register(logistic, example=False)
        client = mlflow.MlflowClient()
        client.set_registered_model_alias("party", "champion", 1)
        yield {"client": client, "logistic": logistic, "uri": uri}


def test_a_model_with_probabilities_scores_the_rows(models) -> None:
    evaluation = evaluate_model(
        "models:/party@champion", JUNE, y_true="y", row_ids="id", positive="yes"
    )
    probabilities = models["logistic"].predict_proba(JUNE[FEATURES])
    direct = evaluate(
        JUNE["y"], y_prob=probabilities, labels=["no", "yes"], row_ids=JUNE["id"], positive="yes"
    )
    assert evaluation.metrics == direct.metrics
    assert evaluation.rows is not None


@pytest.mark.parametrize("kind", ["parquet", "csv", "polars", "arrow"])
def test_every_table_gives_the_same_evaluation(models, tmp_path, kind: str) -> None:
    if kind == "parquet":
        table = tmp_path / "june.parquet"
        JUNE.to_parquet(table)
    elif kind == "csv":
        table = tmp_path / "june.csv"
        JUNE.to_csv(table, index=False)
    else:
        table = pytest.importorskip("polars").DataFrame(JUNE.to_dict("list"))
        if kind == "arrow":
            table = table.to_arrow()
    found = evaluate_model("models:/party/1", table, y_true="y", row_ids="id")
    expected = evaluate_model("models:/party/1", JUNE, y_true="y", row_ids="id")
    assert found.metrics == expected.metrics


def test_without_a_signature_the_features_are_the_columns_that_nothing_names(models) -> None:
    frame = JUNE.rename(columns={"y": "answer", "id": "number", "region": "area"})
    evaluation = evaluate_model(
        "models:/party/4", frame, y_true="answer", row_ids="number", segments=["area"]
    )
    expected = evaluate_model("models:/party/1", JUNE, y_true="y")
    assert evaluation.metrics["probability/log_loss"] == pytest.approx(
        expected.metrics["probability/log_loss"], abs=1e-12
    )
    assert set(evaluation.segments["area"]) == {"north", "south"}


def test_a_model_of_labels_gives_label_metrics_and_says_so(models) -> None:
    with pytest.warns(UserWarning, match="version 2 gives labels only, so metrics of probab"):
        evaluation = evaluate_model("models:/party/2", JUNE, y_true="y", positive="yes")
    assert "binary/recall" in evaluation.metrics
    assert "binary/roc_auc" not in evaluation.metrics


def test_a_python_model_is_evaluated_by_its_labels(models) -> None:
    with mlflow.start_run():
        mlflow.pyfunc.log_model(
            name="model",
            python_model=Majority(),
            registered_model_name="no-sayer",
            pip_requirements=[],
        )
    with pytest.warns(UserWarning, match="version 1 gives labels only"):
        evaluation = evaluate_model(
            "models:/no-sayer/latest", JUNE, y_true="y", row_ids="id", segments=["region"]
        )
    assert evaluation.metrics["multiclass/accuracy"] == np.mean(JUNE["y"] == "no")


def test_a_label_that_the_model_does_not_know_has_no_probability(models) -> None:
    frame = JUNE.copy()
    frame.loc[:2, "y"] = "maybe"
    with pytest.warns(UserWarning, match="3 rows have the label 'maybe', which version 1 does not"):
        evaluation = evaluate_model("models:/party/1", frame, y_true="y")
    assert evaluation.labels == ("no", "yes", "maybe")
    assert evaluation.metrics["class/maybe/recall"] == 0
    assert np.all(evaluation.rows.probabilities[:, 2] == 0)


def test_labels_in_another_order_keep_their_probabilities(models) -> None:
    expected = evaluate_model("models:/party/1", JUNE, y_true="y")
    found = evaluate_model("models:/party/1", JUNE, y_true="y", labels=["yes", "maybe", "no"])
    assert found.labels == ("yes", "maybe", "no")
    for name in ("probability/log_loss", "multiclass/accuracy"):
        assert found.metrics[name] == pytest.approx(expected.metrics[name], abs=1e-12)
    with pytest.raises(ValueError, match="labels must contain all classes of version 1"):
        evaluate_model("models:/party/1", JUNE, y_true="y", labels=["yes", "maybe"])


def test_a_missing_label_is_refused(models) -> None:
    frame = JUNE.copy()
    frame.loc[4, "y"] = None
    with pytest.raises(ValueError, match="missing labels"):
        evaluate_model("models:/party/1", frame, y_true="y")


def test_the_model_comes_from_the_store_of_the_client(models, tmp_path) -> None:
    expected = evaluate_model("models:/party/1", JUNE, y_true="y")
    with tracking_store(sqlite_store(tmp_path / "other.db")):
        found = evaluate_model("models:/party/1", JUNE, y_true="y", client=models["client"])
    assert found.metrics == expected.metrics


def test_stored_predictions_are_read_and_no_model_is_loaded(models, monkeypatch) -> None:
    frame = JUNE.copy()
    probabilities = models["logistic"].predict_proba(JUNE[FEATURES])
    frame["v3_p_no"], frame["v3_p_yes"] = probabilities.T
    monkeypatch.setattr(mlflow.pyfunc, "load_model", None)
    evaluation = evaluate_model("models:/party/3", frame, y_true="y", y_prob="v{version}_p_*")
    direct = evaluate(JUNE["y"], y_prob={"no": probabilities[:, 0], "yes": probabilities[:, 1]})
    assert evaluation.metrics == direct.metrics


@pytest.mark.parametrize(
    ("uri", "change", "message"),
    [
        ("models:/prty/1", {}, r"there is no registered model 'prty'; did you mean 'party'\?"),
        ("models:/party/9", {}, "party has no version 9, the newest is 4"),
        ("models:/party@best", {}, "party has no alias 'best'; its aliases are 'champion'"),
        ("party", {}, "a registered model must have the form 'models:/name/3'"),
        ("models:/party/1", {"y_true": "yy"}, r"the table has no column 'yy'; did you mean 'y'\?"),
        ("models:/party/1", {"row_ids": "ident"}, "the table has no column 'ident'"),
        (
            "models:/party/1",
            {"table": JUNE.drop(columns="age")},
            "version 1 needs the column 'age', which the table does not have",
        ),
        ("models:/party/3", {}, "version 3 predicts numbers such as .*: cmtrack compares classif"),
        ("models:/party/1", {"y_prob": "v{version}_*"}, r"no column of the table matches 'v1_\*'"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(models, uri: str, change: dict, message: str) -> None:
    arguments = {"table": JUNE, "y_true": "y"} | change
    with pytest.raises(ValueError, match=message):
        evaluate_model(uri, arguments.pop("table"), **arguments)


def test_model_code_that_is_switched_off_is_not_worked_around(models, monkeypatch) -> None:
    monkeypatch.setenv("MLFLOW_ALLOW_PICKLE_DESERIALIZATION", "false")
    message = "version 1 cannot be loaded: MLFLOW_ALLOW_PICKLE_DESERIALIZATION=false forbids it"
    with pytest.raises(ValueError, match=message):
        evaluate_model("models:/party/1", JUNE, y_true="y")


def test_rows_on_a_cluster_are_refused(models) -> None:
    from cmtrack.sources import Cluster

    class Far(Cluster):
        schema = None

        def tallies(self, work):
            return []

    with pytest.raises(TypeError, match="rows must be in this process to be compared in pairs"):
        evaluate_model("models:/party/1", Far(), y_true="y")


def test_a_logged_evaluation_belongs_to_the_version(models) -> None:
    evaluation = evaluate_model("models:/party/1", JUNE, y_true="y")
    with mlflow.start_run() as run:
        logged = log_evaluation(evaluation, model="models:/party@champion", strict=True)
    assert logged.status == "completed"
    assert mlflow.get_run(run.info.run_id).data.tags["cmtrack.model"] == "models:/party/1"
    found = load_evaluation("models:/party/1")
    assert found.metrics["multiclass/accuracy"] == evaluation.metrics["multiclass/accuracy"]


def test_an_unknown_version_never_stops_the_script(models) -> None:
    with mlflow.start_run(), pytest.warns(UserWarning, match="party has no version 9"):
        logged = log_evaluation([0, 1], [0, 1], model="models:/party/9")
    assert logged.status == "saved"
    assert logged.path is not None
    with mlflow.start_run(), pytest.raises(ValueError, match="give model or model_id, got both"):
        log_evaluation([0, 1], [0, 1], model="models:/party/1", model_id="m-1", strict=True)


def test_the_command_scores_and_logs_to_the_history(models, tmp_path) -> None:
    JUNE.to_parquet(tmp_path / "june.parquet")
    command = [
        "evaluate",
        str(tmp_path / "june.parquet"),
        "--y-true=y",
        "--model=models:/party@champion",
        "--row-ids=id",
        "--log",
    ]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 0, result.output
    scored = "Scored 200 rows with version 1 of party: 3 features, probabilities of 2 classes."
    assert scored in result.output
    client = models["client"]
    experiment = client.get_experiment_by_name("party: history")
    assert client.get_registered_model("party").tags["cmtrack.history"] == experiment.experiment_id
    (run, *_) = client.search_runs([experiment.experiment_id])
    assert run.data.tags["cmtrack.model"] == "models:/party/1"
    again = CliRunner().invoke(main, [*command, "--json"])
    assert json.loads(again.stdout)["model"] == "models:/party/1"
    assert len(client.search_runs([experiment.experiment_id])) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--tracking-uri=sqlite:///no.db"], "--tracking-uri needs --log or --model"),
        (["--model=models:/party/1", "--calibration={june}"], "--calibration does not work with"),
        (["--model=models:/party/1", "{june}"], "--model needs one file, got 2"),
        (["--model=models:/party/1", "--y-prob=p", "--y-score=d"], "give --y-prob or --y-score, "),
    ],
)
def test_the_command_refuses_options_that_conflict(models, files, options, message: str) -> None:
    given = [option.format(**files) for option in options]
    result = CliRunner().invoke(main, ["evaluate", files["june"], "--y-true=y", *given])
    assert result.exit_code == 2, result.output
    assert f"Error: {message}" in result.stderr


@pytest.fixture(scope="module")
def files(folder):
    """Paths of the rows of June, without ages, and with a label that no model knows."""
    unknown = JUNE.copy()
    unknown.loc[:10, "y"] = "maybe"
    tables = {"june": JUNE, "without_age": JUNE.drop(columns="age"), "unknown": unknown}
    for name, table in tables.items():
        table.to_parquet(folder / f"{name}.parquet")
    return {name: str(folder / f"{name}.parquet") for name in tables}


REFUSED = [
    ("models:/party/9", "june", [], "party has no version 9, the newest is 4"),
    ("models:/prty/1", "june", [], "there is no registered model 'prty'; did you mean 'party'?"),
    ("models:/party/2", "june", ["--y-true=yy"], "june.parquet has no column 'yy'; did you mean 'y'?"),
    ("models:/party/2", "june", ["--segment=region,0"], "june.parquet has no column '0'"),
    ("models:/party/2", "without_age", [], "version 2 needs the column 'age', which without_age.parquet does not have"),
    ("models:/party/3", "june", [], "version 3 predicts numbers such as 0.568: cmtrack compares classifiers"),
]  # fmt: skip


@pytest.mark.parametrize(("model", "file", "options", "message"), REFUSED)
@pytest.mark.parametrize("command", ["evaluate", "promote"])
def test_both_commands_refuse_bad_input_in_one_sentence(
    models, files, command: str, model: str, file: str, options: list[str], message: str
) -> None:
    arguments = {
        "evaluate": [files[file], f"--model={model}"],
        "promote": [model, f"--data={files[file]}"],
    }
    given = [command, *arguments[command], "--y-true=y", *options]
    result = CliRunner().invoke(main, given)
    assert result.exit_code == 2, result.output
    assert result.stderr.splitlines() == [f"Error: {message}"]


@pytest.mark.parametrize("command", ["evaluate", "promote"])
def test_both_commands_say_how_to_do_without_switched_off_code(
    models, files, monkeypatch, command: str
) -> None:
    monkeypatch.setenv("MLFLOW_ALLOW_PICKLE_DESERIALIZATION", "false")
    arguments = {
        "evaluate": [files["june"], "--model=models:/party/2"],
        "promote": ["models:/party/2", f"--data={files['june']}"],
    }
    result = CliRunner().invoke(main, [command, *arguments[command], "--y-true=y"])
    assert result.exit_code == 2, result.output
    assert result.stderr.splitlines() == [
        "Error: version 2 cannot be loaded: MLFLOW_ALLOW_PICKLE_DESERIALIZATION=false forbids it. "
        "Score the rows elsewhere and name the columns: --y-prob 'v{version}_p_*'"
    ]


def test_promote_scores_the_models_and_says_what_it_could_not_compare(models, files) -> None:
    command = ["promote", "models:/party/2", "--y-true=y", "--row-ids=id", "--dry-run"]
    accuracy = "--rank-by=multiclass/accuracy"
    result = CliRunner().invoke(main, [*command, f"--data={files['unknown']}", accuracy, "--json"])
    assert result.exit_code == 3, result.output
    notes = json.loads(result.stdout)["notes"]
    assert "11 rows have the label 'maybe', which version 1 does not know" in notes
    assert "version 2 gives labels only, so metrics of probabilities are missing" in notes
    loss = "--rank-by=probability/log_loss"
    refused = CliRunner().invoke(main, [*command, f"--data={files['june']}", loss])
    assert refused.exit_code == 2
    assert refused.stderr.splitlines() == [
        "Error: the rule ranks by probability/log_loss, and version 2 gives labels only"
    ]
