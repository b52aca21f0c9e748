"""The Lightning callback on the real framework, under both of its names."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import mlflow
import numpy as np
import pandas as pd
import pytest

from cmtrack import evaluate, load_evaluation
from cmtrack.tracking import EvaluationWarning
from support import ROOT, TESTS
from support.problems import learning_problem

torch = pytest.importorskip(
    "torch", reason="needs pip install '.[lightning]'", exc_type=ImportError
)
pytest.importorskip("lightning", reason="needs pip install '.[lightning]'", exc_type=ImportError)
from cmtrack_integrations.lightning import EvaluationCallback  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("undrawn")]

QUIET = {"enable_progress_bar": False, "enable_model_summary": False, "enable_checkpointing": False}


def package(name: str):
    return pytest.importorskip(
        name, reason=f"needs pip install {name.split('.')[0]}", exc_type=ImportError
    )


def loader(n: int, seed: int):
    x, y, _, _ = learning_problem(3, n, held=0, seed=seed)
    rows = torch.utils.data.TensorDataset(torch.tensor(x, dtype=torch.float32), torch.tensor(y))
    return torch.utils.data.DataLoader(rows, batch_size=32)


def model_of(base):
    class Model(base):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 3)

        def training_step(self, batch, index):
            return torch.nn.functional.cross_entropy(self.layer(batch[0]), batch[1])

        def validation_step(self, batch, batch_idx):
            return {"y_true": batch[1], "logits": self.layer(batch[0]), "loss": 0.0}

        def test_step(self, batch, index):
            return torch.softmax(self.layer(batch[0]), 1)

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.2)

    return Model()


def judged(model, data, dtype=torch.float64, **options):
    x, y = data.dataset.tensors
    with torch.no_grad():
        p = torch.cat([torch.softmax(model.layer(batch).to(dtype), 1) for batch in x.split(32)])
    return evaluate(y.numpy(), y_prob=p.numpy(), labels=[0, 1, 2], **options)


@pytest.mark.parametrize("name", ["lightning.pytorch", "pytorch_lightning"])
@pytest.mark.parametrize("every", [None, 2])
def test_the_last_validation_and_epochs_as_steps(store, name, every):
    framework = package(name)
    torch.manual_seed(0)
    model, valid = model_of(framework.LightningModule), loader(70, 1)
    callback = EvaluationCallback(every=every, strict=True)
    trainer = framework.Trainer(
        max_epochs=5,
        accelerator="cpu",
        logger=False,
        callbacks=[callback],
        num_sanity_val_steps=2,
        **QUIET,
    )
    with mlflow.start_run() as run:
        trainer.fit(model, loader(90, 0), valid)
    expected = judged(model, valid)
    assert load_evaluation(run.info.run_id) == expected == callback.logged.evaluation
    steps = [p.step for p in store.get_metric_history(run.info.run_id, "multiclass/accuracy")]
    assert steps == ([0] if every is None else [1, 3, 4])
    assert len(store.search_runs([run.info.experiment_id])) == 1


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_trainer_on_cuda_does_not_wait_for_the_batches(store, monkeypatch):
    framework = package("lightning.pytorch")
    from cmtrack_integrations.torch import EpochAccumulator

    fetched, seen = [], []
    update, fetch = EpochAccumulator.update, EpochAccumulator._fetch

    def updated(self, y_true, **parts):
        seen.append((y_true.cpu(), torch.softmax(parts["logits"].cpu().double(), 1)))
        torch.cuda.set_sync_debug_mode("error")
        update(self, y_true, **parts)
        torch.cuda.set_sync_debug_mode("default")

    monkeypatch.setattr(EpochAccumulator, "update", updated)
    monkeypatch.setattr(
        EpochAccumulator, "_fetch", lambda self: (fetched.append(1), fetch(self))[1]
    )
    callback = EvaluationCallback(strict=True)
    trainer = framework.Trainer(
        max_epochs=2,
        accelerator="gpu",
        devices=1,
        logger=False,
        callbacks=[callback],
        num_sanity_val_steps=0,
        **QUIET,
    )
    with mlflow.start_run() as run:
        trainer.fit(model_of(framework.LightningModule), loader(90, 0), loader(70, 1))
    y, p = (torch.cat(parts).numpy() for parts in zip(*seen[-3:], strict=True))
    assert load_evaluation(run.info.run_id) == evaluate(y, y_prob=p, labels=[0, 1, 2])
    # two epochs of three batches, and the last one is judged
    assert (len(seen), len(fetched)) == (6, 1)


def test_test_sets_under_a_prefix_and_a_function_that_collects(store):
    framework = package("lightning.pytorch")
    model, data = model_of(framework.LightningModule), loader(70, 2)
    names = ["a", "b", "c"]
    callbacks = [
        EvaluationCallback(strict=True),
        EvaluationCallback(
            on="test",
            prefix="test/",
            labels=names,
            collect=lambda p, batch: {"y_true": batch[1], "y_prob": p},
        ),
    ]
    trainer = framework.Trainer(accelerator="cpu", logger=False, callbacks=callbacks, **QUIET)
    with mlflow.start_run() as run:
        trainer.validate(model, data, verbose=False)
        trainer.test(model, data, verbose=False)
    expected = judged(model, data)
    assert load_evaluation(run.info.run_id) == expected
    tested = load_evaluation(run.info.run_id, prefix="test/")
    assert tested.labels == ("a", "b", "c")
    assert (tested.confusion_matrix.counts == expected.confusion_matrix.counts).all()


def test_rows_with_the_ignored_label_do_not_count(store):
    framework = package("lightning.pytorch")
    model, data = model_of(framework.LightningModule), loader(65, 2)
    x, y = data.dataset.tensors
    with torch.no_grad():
        p = torch.softmax(model.layer(x).double(), 1).numpy()
    expected = evaluate(y[4:].numpy(), y_prob=p[4:], labels=[0, 1, 2])
    y[:4] = -100

    def validated(batch, batch_idx):
        # 0-d labels in the last batch
        return {"y_true": batch[1].squeeze(), "logits": model.layer(batch[0]).squeeze()}

    model.validation_step = validated
    callback = EvaluationCallback(strict=True)
    trainer = framework.Trainer(accelerator="cpu", logger=False, callbacks=[callback], **QUIET)
    with mlflow.start_run() as run:
        trainer.validate(model, data, verbose=False)
    found = load_evaluation(run.info.run_id)
    assert found.labels_digest == expected.labels_digest
    assert found.metrics == pytest.approx(expected.metrics, nan_ok=True, abs=1e-6)


def test_batches_are_divided_into_segments(store):
    framework = package("lightning.pytorch")
    model, data = model_of(framework.LightningModule), loader(70, 2)

    def collect(p, batch):
        return {
            "y_true": batch[1],
            "y_prob": p,
            "segments": {"side": np.where(batch[0][:, 0].numpy() > 0, "right", "left")},
        }

    callback = EvaluationCallback(on="test", strict=True, collect=collect)
    trainer = framework.Trainer(accelerator="cpu", logger=False, callbacks=[callback], **QUIET)
    with mlflow.start_run() as run:
        trainer.test(model, data, verbose=False)
    side = np.where(data.dataset.tensors[0][:, 0].numpy() > 0, "right", "left")
    # as test_step returns probabilities
    expected = judged(model, data, torch.float32, segments={"side": side})
    assert load_evaluation(run.info.run_id) == expected
    found = callback.logged.evaluation.segments["side"].to_frame()
    pd.testing.assert_frame_equal(found, expected.segments["side"].to_frame())


def test_the_run_of_the_mlflow_logger_is_used_and_no_other(store):
    framework = package("lightning.pytorch")
    from lightning.pytorch.loggers import MLFlowLogger

    uri = mlflow.get_tracking_uri()
    logger = MLFlowLogger(experiment_name="e", tracking_uri=uri)
    model, valid = model_of(framework.LightningModule), loader(70, 1)
    callback = EvaluationCallback(strict=True)
    trainer = framework.Trainer(
        max_epochs=1,
        accelerator="cpu",
        logger=logger,
        callbacks=[callback],
        log_every_n_steps=1,
        **QUIET,
    )
    trainer.fit(model, loader(90, 0), valid)
    (run,) = store.search_runs([store.get_experiment_by_name("e").experiment_id])
    assert run.info.run_id == logger.run_id == callback.logged.run_id
    assert run.info.status == "FINISHED"
    assert load_evaluation(run.info.run_id) == judged(model, valid)
    trainer.validate(model, valid, verbose=False)  # the run has ended, and stays so
    assert store.get_run(run.info.run_id).info.status == "FINISHED"
    assert mlflow.active_run() is None


@pytest.mark.parametrize("strict", [False, True])
def test_what_fails_does_not_break_the_training_unless_strict(store, strict):
    framework = package("lightning.pytorch")
    model = model_of(framework.LightningModule)
    model.validation_step = lambda batch, batch_idx: {"loss": 1.0}
    callback = EvaluationCallback(strict=strict)
    trainer = framework.Trainer(
        max_epochs=2, accelerator="cpu", logger=False, callbacks=[callback], **QUIET
    )
    with mlflow.start_run() as run:
        if strict:
            with pytest.raises(ValueError, match="validation_step must return"):
                trainer.fit(model, loader(90, 0), loader(70, 1))
        else:
            with pytest.warns(
                EvaluationWarning, match="validation_step must return .*got dict with"
            ):
                trainer.fit(model, loader(90, 0), loader(70, 1))
            assert trainer.current_epoch == 2
    assert store.get_run(run.info.run_id).data.metrics == {}


def test_without_a_run_it_is_kept_and_none_is_opened(store):
    framework = package("lightning.pytorch")
    callback = EvaluationCallback()
    trainer = framework.Trainer(
        max_epochs=1, accelerator="cpu", logger=False, callbacks=[callback], **QUIET
    )
    with pytest.warns(EvaluationWarning, match="no run is active"):
        trainer.fit(model_of(framework.LightningModule), loader(90, 0), loader(70, 1))
    assert callback.logged.status == "saved"
    assert store.search_runs([store.get_experiment_by_name("e").experiment_id]) == []


SCRIPT = """
import sys
import torch
import lightning.pytorch as framework
from cmtrack_integrations.lightning import EvaluationCallback
sys.path.insert(0, sys.argv[1])
from test_hooks_lightning import QUIET, loader, model_of

if __name__ == "__main__":
    torch.manual_seed(0)
    model, valid = model_of(framework.LightningModule), loader(70, 1)
    callback = EvaluationCallback(run_id=sys.argv[2], every=1, predictions=sys.argv[3] == "rows")
    trainer = framework.Trainer(
        max_epochs=2, accelerator="cpu", devices=2, strategy="ddp", logger=False, callbacks=[callback], **QUIET
    )
    trainer.fit(model, loader(90, 0), valid)
    if trainer.is_global_zero:
        torch.save(model.state_dict(), sys.argv[4])
    print(trainer.global_rank, callback.logged and callback.logged.status)
"""


@pytest.mark.parametrize("mode", ["rows", "merged"])
def test_two_processes_log_one_evaluation_from_rank_0(store, tmp_path, mode):
    framework = package("lightning.pytorch")
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    with mlflow.start_run() as run:
        pass
    done = subprocess.run(
        [
            sys.executable,
            str(script),
            str(Path(__file__).parent),
            run.info.run_id,
            mode,
            str(tmp_path / "model.pt"),
        ],
        check=True,
        timeout=300,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "MLFLOW_TRACKING_URI": mlflow.get_tracking_uri(),
            "PYTHONPATH": f"{ROOT}:{ROOT / 'integrations'}:{TESTS}",
            "OMP_NUM_THREADS": "1",
        },
    )
    assert "0 completed" in done.stdout
    assert "1 None" in done.stdout
    model = model_of(framework.LightningModule)
    model.load_state_dict(torch.load(tmp_path / "model.pt"))
    expected, found = judged(model, loader(70, 1)), load_evaluation(run.info.run_id)
    np.testing.assert_array_equal(found.confusion_matrix.counts, expected.confusion_matrix.counts)
    assert found.metrics == pytest.approx(expected.metrics, nan_ok=True, abs=1e-6)
    if mode == "rows":
        assert found.labels_digest == expected.labels_digest
    assert [p.step for p in store.get_metric_history(run.info.run_id, "multiclass/accuracy")] == [
        0,
        1,
    ]
    assert len(store.search_runs([run.info.experiment_id])) == 1
