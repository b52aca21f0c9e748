"""The hooks of the Hugging Face Trainer on the real framework, with a tiny model made on the spot."""

from __future__ import annotations

import math

import mlflow
import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from cmtrack import evaluate, load_evaluation
from cmtrack.metrics import lookup
from cmtrack.tracking import EvaluationWarning
from support.problems import random_labels
from support.stores import runs_of

torch = pytest.importorskip(
    "torch", reason="needs pip install '.[transformers]'", exc_type=ImportError
)
transformers = pytest.importorskip(
    "transformers", reason="needs pip install '.[transformers]'", exc_type=ImportError
)
pytest.importorskip(
    "accelerate", reason="needs pip install '.[transformers]'", exc_type=ImportError
)
from cmtrack_integrations.transformers import EvaluationCallback, compute_metrics  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("undrawn")]

NAMES = ["bad", "fair", "good"]


class Rows(torch.utils.data.Dataset):
    def __init__(self, n: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.y = random_labels(n, 3, rng)
        self.x = np.where(
            rng.random((n, 8)) < 0.5, self.y[:, None] + 1, rng.integers(1, 20, (n, 8))
        )

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, place: int) -> dict:
        return {
            "input_ids": torch.tensor(self.x[place]),
            "attention_mask": torch.ones(8, dtype=torch.long),
            "labels": torch.tensor(self.y[place]),
        }


TRAIN, VALID = Rows(64, 0), Rows(50, 1)


def trainer_of(tmp_path, judge, callbacks=(), **options):
    transformers.set_seed(0)
    config = transformers.BertConfig(
        vocab_size=20,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=8,
        num_labels=3,
    )
    given = {
        "report_to": [],
        "num_train_epochs": 3,
        "eval_strategy": "epoch",
        "save_strategy": "no",
        **options,
    }
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path / "out"),
        per_device_train_batch_size=16,
        learning_rate=5e-3,
        use_cpu=True,
        disable_tqdm=True,
        **given,
    )
    return transformers.Trainer(
        transformers.BertForSequenceClassification(config),
        arguments,
        train_dataset=TRAIN,
        eval_dataset=VALID,
        compute_metrics=judge,
        callbacks=list(callbacks),
    )


def judged(trainer, data=VALID, **options):
    logits = torch.tensor(trainer.predict(data).predictions)
    return evaluate(
        np.array(NAMES)[data.y],
        y_prob=torch.softmax(logits.double(), 1).numpy(),
        labels=NAMES,
        **options,
    )


def test_the_trainer_gets_the_headline_and_the_run_the_last_evaluation(store, tmp_path):
    judge = compute_metrics(labels=NAMES, strict=True)
    callback = EvaluationCallback(judge, every=1)
    trainer = trainer_of(tmp_path, judge, [callback])
    with mlflow.start_run() as run:
        trainer.train()
    trainer.remove_callback(callback)
    expected = judged(trainer)
    assert load_evaluation(run.info.run_id) == expected
    history = store.get_metric_history(run.info.run_id, "multiclass/accuracy")
    assert [p.step for p in history] == [4, 8, 12, 12]
    seen = [entry for entry in trainer.state.log_history if "eval_loss" in entry]
    assert [entry["eval_multiclass/accuracy"] for entry in seen] == [p.value for p in history[:3]]
    names = {n for n in seen[0] if "/" in n}
    assert names == {f"eval_{n}" for n in expected.metrics if lookup(n).headline}
    assert all(isinstance(seen[0][n], float) for n in names)
    assert len(runs_of(store)) == 1


def test_the_best_checkpoint_is_what_is_logged_at_the_end(store, tmp_path):
    judge = compute_metrics(labels=NAMES, strict=True)
    trainer = trainer_of(
        tmp_path,
        judge,
        [EvaluationCallback(judge)],
        save_strategy="epoch",
        load_best_model_at_end=True,
        metric_for_best_model="multiclass/matthews_corrcoef",
        greater_is_better=False,  # so that the best is not the last
    )
    with mlflow.start_run() as run:
        trainer.train()
    best = trainer.state.best_global_step
    assert best < 12
    assert store.get_run(run.info.run_id).data.tags["cmtrack.best_step"] == f"{best} of 12"
    found = load_evaluation(run.info.run_id)
    assert found.metrics["multiclass/matthews_corrcoef"] == trainer.state.best_metric
    assert found == judged(trainer)


def test_evaluate_and_predict_outside_a_training_log_under_their_prefix(store, tmp_path):
    judge = compute_metrics(labels=NAMES, prefix="x/", strict=True)
    trainer = trainer_of(tmp_path, judge, [EvaluationCallback(judge)])
    with mlflow.start_run() as run:
        trainer.evaluate()
        trainer.predict(TRAIN)
        trainer.evaluate({"one": VALID, "two": TRAIN})
    run_id = run.info.run_id
    for prefix, rows in (("x/", 50), ("x/test/", 64), ("x/one/", 50), ("x/two/", 64)):
        assert load_evaluation(run_id, prefix=prefix).n_samples == rows


def test_the_run_of_the_mlflow_callback(store, tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "e")
    judge = compute_metrics(labels=NAMES, strict=True)
    callback = EvaluationCallback(judge)
    trainer = trainer_of(tmp_path, judge, [callback], report_to=["mlflow"], num_train_epochs=1)
    trainer.train()
    (run,) = runs_of(store)  # opened and ended by Transformers, before this callback's turn
    assert run.info.run_id == callback.logged.run_id
    assert run.info.status == "FINISHED"
    assert run.data.metrics["multiclass/accuracy"] == run.data.metrics["eval_multiclass/accuracy"]
    assert mlflow.active_run() is None


def test_metrics_of_batches_and_of_tokens():
    rng = np.random.default_rng(0)
    logits, y = rng.normal(size=(6, 5, 3)), rng.integers(0, 3, (6, 5))
    y[:, 3:] = -100
    y[0, 0] = -100
    p = torch.softmax(torch.tensor(logits), -1).numpy()
    expected = evaluate(y[y >= 0], y_prob=p[y >= 0], labels=[0, 1, 2])
    judge = compute_metrics(strict=True, metrics="all")
    whole = judge(transformers.EvalPrediction(logits, y))
    assert judge.evaluation == expected
    assert whole == pytest.approx(expected.metrics, nan_ok=True)
    judge = compute_metrics(strict=True)
    for part in (slice(0, 2), slice(2, 4)):
        assert (
            judge(
                transformers.EvalPrediction(torch.tensor(logits[part]), torch.tensor(y[part])),
                False,
            )
            == {}
        )
    judge(
        transformers.EvalPrediction((torch.tensor(logits[4:]), None), torch.tensor(y[4:])),
        compute_result=True,
    )
    assert judge.evaluation == expected
    assert judge(transformers.EvalPrediction(logits, y)) == {
        n: whole[n] for n in whole if lookup(n).headline
    }


def test_rows_with_the_ignored_label_do_not_count():
    rng = np.random.default_rng(0)
    logits, y = rng.normal(size=(30, 3)), rng.integers(0, 3, 30)
    p = torch.softmax(torch.tensor(logits), 1).numpy()
    expected = evaluate(y[4:], y_prob=p[4:], labels=[0, 1, 2])
    y[:4] = -100
    judge = compute_metrics(strict=True)
    for labels in (y, y[:, None]):
        judge(transformers.EvalPrediction(logits, labels))
        assert judge.evaluation == expected
    for labels in (y[:-1], y[:, None][:-1]):
        with pytest.raises(
            ValueError, match="label_ids must have one label per row of the predictions, 30, got 29"
        ):
            judge(transformers.EvalPrediction(logits, labels))


@pytest.mark.parametrize("columns", [1, 2])
def test_confident_logits_keep_their_order(columns):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    score = (rng.normal(size=400) + y + 25).astype(np.float32)
    logits = np.stack((np.zeros(400, dtype=np.float32), score), 1)[:, -columns:]
    judge = compute_metrics(strict=True)
    judge(transformers.EvalPrediction(logits, y))
    found = judge.evaluation.metrics["binary/roc_auc"]
    assert found == pytest.approx(roc_auc_score(y, score), abs=1e-12)


def test_batches_in_the_trainer(store, tmp_path):
    judge = compute_metrics(labels=NAMES, strict=True)
    trainer = trainer_of(
        tmp_path, judge, [EvaluationCallback(judge)], batch_eval_metrics=True, num_train_epochs=1
    )
    with mlflow.start_run() as run:
        trainer.train()
    assert load_evaluation(run.info.run_id).n_samples == 50


def test_what_fails_does_not_break_the_training_unless_strict(store, tmp_path):
    judge = compute_metrics(labels=["only", "two"])
    options = {"save_strategy": "epoch", "load_best_model_at_end": True, "num_train_epochs": 1}
    trainer = trainer_of(
        tmp_path,
        judge,
        [EvaluationCallback(judge)],
        metric_for_best_model="multiclass/accuracy",
        **options,
    )
    with mlflow.start_run() as run, pytest.warns(EvaluationWarning, match="evaluation failed"):
        trainer.train()
    assert trainer.state.global_step == 4
    (seen,) = (entry for entry in trainer.state.log_history if "eval_loss" in entry)
    assert math.isnan(seen["eval_multiclass/accuracy"])
    assert store.get_run(run.info.run_id).data.metrics == {}
    judge = compute_metrics(labels=["only", "two"], strict=True)
    with mlflow.start_run(), pytest.raises(ValueError, match="y_true must be in"):
        trainer_of(tmp_path, judge, [EvaluationCallback(judge)]).train()
    judge = compute_metrics(labels=NAMES)
    callback = EvaluationCallback(judge)
    with pytest.warns(EvaluationWarning, match="no run is active"):
        trainer_of(tmp_path, judge, [callback], num_train_epochs=1).train()
    assert callback.logged.status == "saved"
    with pytest.raises(TypeError, match="judge must be the object that compute_metrics"):
        EvaluationCallback(lambda p: {})
