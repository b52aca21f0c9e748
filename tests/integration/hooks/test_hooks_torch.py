"""The accumulator for PyTorch loops, in one process and in two."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import nullcontext

import mlflow
import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from cmtrack import Grouping, evaluate, load_evaluation
from cmtrack.tracking import EvaluationWarning
from support import ROOT
from support.problems import random_features, random_labels

torch = pytest.importorskip("torch", reason="needs pip install '.[torch]'", exc_type=ImportError)
from cmtrack_integrations.torch import EpochAccumulator, probabilities  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("undrawn")]


def batches(n: int = 90, k: int = 3, size: int = 32):
    codes = random_labels(n, k)
    y, logits = (
        torch.tensor(codes),
        torch.tensor(random_features(codes, k, 1.5, 1), dtype=torch.float32),
    )
    return y, logits, [(y[i : i + size], logits[i : i + size]) for i in range(0, n, size)]


def test_batches_of_an_epoch_are_one_evaluation(store):
    y, logits, parts = batches()
    grouping = Grouping({"a": [0], "b": [1, 2]}, name="ab")
    judge = EpochAccumulator(grouping=grouping, strict=True)
    expected = evaluate(
        y.numpy(), y_prob=torch.softmax(logits.double(), 1).numpy(), grouping=grouping
    )
    with mlflow.start_run() as run:
        for epoch in range(2):
            for target, output in parts:
                judge.update(target, logits=output.requires_grad_())
            logged = judge.log(step=epoch)
    assert load_evaluation(run.info.run_id) == expected == logged.evaluation
    assert [p.step for p in store.get_metric_history(run.info.run_id, "multiclass/accuracy")] == [
        0,
        1,
    ]
    assert logged.evaluation.rows is not None


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
def test_kinds_of_outputs(dtype):
    y, logits, _ = batches(k=2)
    logits = logits.to(dtype)
    single = torch.sigmoid(logits[:, 1].contiguous().double())
    for given, expected in (
        ({"logits": logits}, torch.softmax(logits.double(), 1)),
        ({"logits": logits[:, 1:].contiguous()}, single),
        ({"logits": logits[:, 1].contiguous()}, single),
        ({"y_prob": single[:, None]}, single),
    ):
        judge = EpochAccumulator(strict=True)
        judge.update(y, **given)
        assert judge.compute() == evaluate(y.numpy(), y_prob=expected.numpy())
    judge = EpochAccumulator(strict=True)
    judge.update(torch.nn.functional.one_hot(y), y_pred=logits.argmax(1))
    assert judge.compute() == evaluate(y.numpy(), logits.argmax(1).numpy())
    with pytest.raises(ValueError, match="logits must have shape"):
        probabilities(torch.zeros(2, 3, 4))


class Accelerator(torch.overrides.TorchFunctionMode):
    """All tensors are said to be on a device; whatever makes a program wait for it is counted."""

    WAITS = frozenset(
        {"cpu", "to", "numpy", "item", "tolist", "__array__", "__bool__", "__int__", "__float__"}
    )

    def __init__(self):
        super().__init__()
        self.waits = []

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function == torch.Tensor.device.__get__:
            return torch.device("cuda", 0)
        name = getattr(function, "__name__", "")
        if name in self.WAITS and not (name == "numpy" and self.waits[-1:] == ["cpu"]):
            self.waits.append(name)
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_an_epoch_on_a_device_is_fetched_once(dtype, monkeypatch):
    y, _logits, parts = batches()
    host = EpochAccumulator(strict=True)
    for target, output in parts:
        host.update(target, logits=output.to(dtype), sample_weight=target + 1.5, row_ids=target)
    expected = host.compute()
    judge = EpochAccumulator(strict=True)
    given = [(t, o.to(dtype), t + 1.5) for t, o in parts]
    with Accelerator() as device:
        for target, output, weight in given:
            judge.update(target, logits=output, sample_weight=weight, row_ids=target)
        assert device.waits == []
        assert judge.compute() == expected
        assert device.waits == ["cpu"]
        judge.reset()
        one_hot = torch.nn.functional.one_hot(y).to(torch.uint8)
        judge.update(one_hot, y_pred=y)  # the batch is judged when it is fetched
        device.waits.clear()
        assert judge.compute().metrics["multiclass/accuracy"] == 1
        assert device.waits == ["cpu"]
        monkeypatch.setattr("cmtrack_integrations.torch._DEVICE_BYTES", 1500)  # a batch and a half
        judge.reset()
        device.waits.clear()
        for target, output, weight in given:
            judge.update(target, logits=output, sample_weight=weight, row_ids=target)
        assert device.waits == ["cpu"]  # the memory of a device is bounded
        assert judge.compute() == expected
        judge.reset()
        judge.update(one_hot * 2, y_pred=y)
        with pytest.raises(ValueError, match="one-hot"):
            judge.compute()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("one_hot", [False, True])
def test_an_epoch_on_cuda_waits_for_nothing(dtype, one_hot, monkeypatch):
    y, logits, _ = batches(n=1000)
    y, logits, ids = y.cuda(), logits.to(dtype).cuda(), torch.arange(1000).flip(0).cuda()
    target = torch.nn.functional.one_hot(y) if one_hot else y
    p = torch.softmax(logits.cpu().double(), 1).numpy()
    weight = np.full(1000, 1.5)
    expected = evaluate(
        y.cpu().numpy()[::-1], y_prob=p[::-1], row_ids=np.arange(1000), sample_weight=weight
    )
    for most in (2**28, 20_000):  # bytes kept on the device: all, or a few batches
        monkeypatch.setattr("cmtrack_integrations.torch._DEVICE_BYTES", most)
        judge = EpochAccumulator(strict=True)
        fetched, fetch = [], judge._fetch

        def counted(fetched=fetched, fetch=fetch):
            fetched.append(1)
            torch.cuda.set_sync_debug_mode("default")
            fetch()
            torch.cuda.set_sync_debug_mode("error")

        monkeypatch.setattr(judge, "_fetch", counted)
        torch.cuda.set_sync_debug_mode("error")  # whatever else waits for the device raises
        try:
            for start in range(0, 1000, 64):
                part = slice(start, start + 64)
                weight = torch.full_like(ids[part], 1.5, dtype=torch.float32)
                judge.update(
                    target[part], logits=logits[part], sample_weight=weight, row_ids=ids[part]
                )
            assert bool(fetched) is (most < 2**28)
        finally:
            torch.cuda.set_sync_debug_mode("default")
        monkeypatch.setattr(judge, "_fetch", fetch)
        assert judge.compute() == expected


def test_a_loop_may_overwrite_its_batch():
    y, logits, _parts = batches()
    judge, target, output = (
        EpochAccumulator(strict=True),
        torch.empty(30, dtype=y.dtype),
        torch.empty(30, 3),
    )
    for start in range(0, 90, 30):
        target.copy_(y[start : start + 30])
        output.copy_(torch.softmax(logits[start : start + 30], 1))
        judge.update(target, y_prob=output)
    assert judge.compute() == evaluate(y.numpy(), y_prob=torch.softmax(logits, 1).numpy())


def test_names_of_classes_and_a_class_that_never_occurs():
    y, logits, _ = batches()
    keep = y < 2
    names = ["cat", "dog", "fish"]
    judge = EpochAccumulator(labels=names, strict=True)
    judge.update(y[keep], logits=logits[keep], sample_weight=torch.ones(int(keep.sum())) * 2)
    p = torch.softmax(logits[keep].double(), 1).numpy()
    weight = np.full(int(keep.sum()), 2.0)
    assert judge.compute() == evaluate(
        np.array(names)[y[keep].numpy()], y_prob=p, labels=names, sample_weight=weight
    )
    judge = EpochAccumulator(strict=True)
    judge.update(y[keep], logits=logits[keep])
    assert judge.compute().labels == (0, 1, 2)


def test_columns_of_a_batch_go_by_their_index():
    names = [f"row {k}" for k in range(8)]
    labels = pd.Series([0, 1] * 4, index=names)
    half = pd.Series(["first"] * 4 + ["second"] * 4, index=names)
    aligned = EpochAccumulator(strict=True)
    aligned.update(labels, y_prob=labels, segments={"half": half})
    shuffled = EpochAccumulator(strict=True)
    shuffled.update(
        labels, y_prob=labels.sample(frac=1, random_state=0), segments={"half": half.iloc[::-1]}
    )
    evaluation = shuffled.compute()
    assert evaluation == aligned.compute()
    assert evaluation.metrics["multiclass/accuracy"] == 1


def test_row_ids_leave_each_row_in_once():
    y, logits, _ = batches()
    ids = torch.arange(90).flip(0)
    judge = EpochAccumulator(strict=True)
    for part in (slice(0, 50), slice(40, 90)):
        judge.update(y[part], logits=logits[part], row_ids=ids[part])
    p = torch.softmax(logits.double(), 1).numpy()
    assert judge.compute() == evaluate(y.numpy()[::-1], y_prob=p[::-1], row_ids=np.arange(90))


@pytest.mark.parametrize("crossed", [False, True])
def test_batches_are_divided_into_segments(crossed):
    y, logits, _ = batches()
    regions = [["north", "south", None][i % 3] for i in range(60)] + ["east"] * 30
    bands = torch.arange(90) // 40
    names = ["region", ("region", "band")] if crossed else ["region", "band"]
    judge = EpochAccumulator(strict=True)
    for i in range(0, 90, 30):  # the last batch has one region
        part = {"region": regions[i : i + 30], "band": bands[i : i + 30]}
        judge.update(
            y[i : i + 30], logits=logits[i : i + 30], segments=(part, names) if crossed else part
        )
    whole = {"region": np.array(regions, dtype=object), "band": bands.numpy()}, names
    expected = evaluate(y.numpy(), y_prob=torch.softmax(logits.double(), 1).numpy(), segments=whole)
    found = judge.compute()
    assert found == expected
    assert list(found.segments) == list(expected.segments)
    for name, table in expected.segments.items():
        pd.testing.assert_frame_equal(found.segments[name].to_frame(), table.to_frame())


def test_batches_of_other_segments_are_refused():
    y, logits, _ = batches()
    columns = {"region": ["north", "south", "east"] * 30, "band": torch.arange(90) // 40}
    judge = EpochAccumulator(strict=True)
    judge.update(y, logits=logits, segments=columns)
    for other in (None, {"region": columns["region"]}):
        with pytest.raises(ValueError, match="all batches must have the same parts"):
            judge.update(y, logits=logits, segments=other)
    with pytest.raises(ValueError, match="all batches must have the same segments"):
        judge.update(y, logits=logits, segments=(columns, [("region", "band")]))
    with pytest.raises(
        ValueError, match=r"one entry per row in each part, got .*'segments region': 2"
    ):
        judge.update(y, logits=logits, segments={"region": ["north", "south"]})
    assert judge.compute().n_samples == 90


def test_what_fails_is_a_warning_unless_strict(store):
    y, logits, _ = batches()
    judge = EpochAccumulator()
    judge.update(y, logits=logits[:-1])
    judge.update(y, logits=logits)
    with (
        mlflow.start_run(),
        pytest.warns(EvaluationWarning, match="a batch must have one entry per row"),
    ):
        assert judge.log() is None
    with pytest.warns(
        EvaluationWarning, match="there must be at least one row to evaluate, got none"
    ):
        assert judge.compute() is None
    judge.update(y, logits=logits)
    with pytest.warns(EvaluationWarning, match="no run is active"):
        assert judge.log().status == "saved"
    with pytest.raises(ValueError, match="a batch must have one entry per row"):
        EpochAccumulator(strict=True).update(y, logits=logits[:-1])
    assert len(store.search_runs([store.get_experiment_by_name("e").experiment_id])) == 1


SCRIPT = """
import sys, warnings
import torch, torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
from cmtrack_integrations.torch import EpochAccumulator

run_id, folder, mode = sys.argv[1:]
dist.init_process_group("gloo")
rank = dist.get_rank()
data = TensorDataset(*torch.load(f"{folder}/rows.pt"))
loader = DataLoader(data, batch_size=16, sampler=DistributedSampler(data, shuffle=False))
judge = EpochAccumulator(run_id=run_id, predictions=False if mode in ("merge", "segments") else "auto")
for target, output, ids in loader:
    if mode == "broken" and rank == 1:
        output = output[:-1]
    if mode == "empty" and rank == 1:
        continue
    # rank 0 has the even rows, rank 1 the odd ones
    half = {"half": ["odd" if i % 2 else "even" for i in ids.tolist()]} if mode == "segments" else None
    judge.update(target, logits=output, row_ids=None if mode == "plain" else ids, segments=half)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    logged = judge.log(step=3)
told = [str(w.message) for w in caught if "cmtrack" in str(w.message)]
open(f"{folder}/rank{rank}", "w").write(repr((None if logged is None else logged.status, told)))
dist.barrier()
dist.destroy_process_group()
"""


@pytest.mark.parametrize("mode", ["rows", "merge", "segments", "plain", "broken", "empty"])
def test_two_processes_log_one_evaluation_from_rank_0(store, tmp_path, mode):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    y, logits, _ = batches(n=91)
    torch.save((y, logits, torch.arange(91)), tmp_path / "rows.pt")
    with mlflow.start_run() as run:
        pass
    environment = {
        **os.environ,
        "MLFLOW_TRACKING_URI": mlflow.get_tracking_uri(),
        "PYTHONPATH": f"{ROOT}:{ROOT / 'integrations'}",
        "OMP_NUM_THREADS": "1",
    }
    subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"),
            *(str(script), run.info.run_id, str(tmp_path), mode),
        ],
        check=True,
        timeout=300,
        cwd=tmp_path,
        env=environment,
        capture_output=True,
    )
    ranks = [eval((tmp_path / f"rank{rank}").read_text()) for rank in range(2)]
    assert ranks[1] == (None, [])
    assert len(store.search_runs([store.get_experiment_by_name("e").experiment_id])) == 1
    if mode == "broken":
        assert ranks[0][0] is None
        assert "rank 1: ValueError: a batch must have one entry per row" in ranks[0][1][0]
        assert store.get_run(run.info.run_id).data.metrics == {}
        return
    assert ranks[0] == ("completed", [])
    y, p, ids = y.numpy(), torch.softmax(logits.double(), 1).numpy(), np.arange(91)
    if mode == "plain":  # the sampler repeats the first row to make the ranks even
        y, p, ids = np.append(y, y[0]), np.concatenate((p, p[:1])), None
    if mode == "empty":
        y, p, ids = y[::2], p[::2], ids[::2]
    found = load_evaluation(run.info.run_id)
    half = {"half": np.where(ids % 2 == 1, "odd", "even")} if mode == "segments" else None
    expected = evaluate(y, y_prob=p, row_ids=ids, segments=half)
    assert found.confusion_matrix == expected.confusion_matrix
    assert found.metrics == pytest.approx(expected.metrics, nan_ok=True)
    if mode != "merge":
        assert found == expected
    files = {item.path for item in store.list_artifacts(run.info.run_id)}
    assert ("cmtrack_predictions.parquet" in files) is (mode not in ("merge", "segments"))
    assert [p.step for p in store.get_metric_history(run.info.run_id, "multiclass/accuracy")] == [3]


@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("shift", [17, 25])
def test_confident_logits_keep_their_order(columns, shift):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    score = torch.tensor(rng.normal(size=400) + y + shift, dtype=torch.float32)
    logits = torch.stack((torch.zeros(400), score), 1)[:, -columns:]
    judge = EpochAccumulator(strict=True)
    judge.update(torch.tensor(y), logits=logits)
    found = judge.compute().metrics["binary/roc_auc"]
    assert found == pytest.approx(roc_auc_score(y, score.numpy()), abs=1e-12)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.float32])
@pytest.mark.parametrize("part", ["y_pred", "logits", "y_prob"])
def test_rows_with_the_ignored_label_do_not_count(part, dtype):
    y = torch.tensor([0, 1, -100, 1, -100, 0])
    outputs = torch.tensor([0, 1, 1, 0, 0, 0])
    values = outputs if part == "y_pred" else torch.eye(2)[outputs]
    weights = torch.arange(6) + 1.0
    regions = ["north", "south", "east", "south", "east", "north"]
    judge = EpochAccumulator(strict=True)
    for rows in (slice(0, 3), slice(3, 6)):
        judge.update(
            y[rows].to(dtype),
            **{part: values[rows]},
            sample_weight=weights[rows],
            row_ids=torch.arange(6)[rows],
            segments={"region": regions[rows]},
        )
    evaluation = judge.compute()
    assert evaluation.labels == (0, 1)
    assert evaluation.confusion_matrix.counts.tolist() == [[7, 0], [4, 2]]
    assert set(evaluation.segments["region"].to_frame()["segment"]) == {"north", "south"}


def test_the_ignored_label_with_names_of_classes_on_a_device():
    y = torch.tensor([0, 1, -100, 1, -100, 0])
    logits = torch.eye(2)[[0, 1, 1, 0, 0, 0]]
    judge = EpochAccumulator(labels=["cat", "dog"], strict=True)
    with Accelerator() as device:
        judge.update(y, logits=logits)
        assert device.waits == []
        evaluation = judge.compute()
    assert evaluation.labels == ("cat", "dog")
    assert evaluation.confusion_matrix.counts.tolist() == [[2, 0], [1, 1]]


@pytest.mark.parametrize("kind", [list, np.array])
def test_a_class_of_the_number_minus_100_counts(kind):
    y = torch.tensor([0, 1, -100, 1, -100, 0])
    judge = EpochAccumulator(labels=kind([-100, 0, 1]), strict=True)
    judge.update(y, y)
    assert judge.compute().confusion_matrix.counts.tolist() == [[2, 0, 0], [0, 2, 0], [0, 0, 2]]


def test_a_batch_without_a_row_that_counts():
    y, logits, parts = batches()
    ignored = torch.full((5,), -100)
    whole = EpochAccumulator(strict=True)
    divided = EpochAccumulator(strict=True)
    whole.update(y, logits=logits)
    divided.update(ignored, logits=torch.randn(5, 3))
    divided.update(y[:0], logits=logits[:0])
    for target, output in parts:
        divided.update(target, logits=output)
    assert divided.compute() == whole.compute()
    empty = EpochAccumulator(strict=True)
    empty.update(ignored, logits=torch.randn(5, 3))
    with pytest.raises(
        ValueError, match=r"at least one row to evaluate, got none: .* rows with the label -100"
    ):
        empty.compute()


@pytest.mark.parametrize("on_device", [False, True])
@pytest.mark.parametrize("part", ["logits", "y_prob"])
@pytest.mark.parametrize("columns", [1, 3])
def test_a_last_batch_of_one_row_may_be_squeezed(columns, part, on_device):
    y = torch.arange(65) % max(columns, 2)
    outputs = torch.randn(65, columns, generator=torch.Generator().manual_seed(0))
    if part == "y_prob":
        outputs = torch.softmax(outputs, 1) if columns > 1 else torch.sigmoid(outputs)
    bands = torch.arange(65) // 33
    weights = torch.arange(65) + 1.0
    whole = EpochAccumulator(strict=True)
    whole.update(y, **{part: outputs}, sample_weight=weights, segments={"band": bands})
    expected = whole.compute()
    squeezed = EpochAccumulator(strict=True)
    with Accelerator() if on_device else nullcontext():
        for rows in (slice(0, 32), slice(32, 64), slice(64, 65)):
            squeezed.update(
                y[rows].squeeze(),
                **{part: outputs[rows].squeeze()},
                sample_weight=weights[rows].squeeze(),
                segments={"band": bands[rows].squeeze()},
            )
        assert squeezed.compute() == expected


def test_the_labels_of_one_row_may_keep_their_axis():
    y = torch.tensor([1, 0, 2])
    logits = torch.randn(3, 3, generator=torch.Generator().manual_seed(0))
    expected = evaluate(
        y.numpy(), y_prob=torch.softmax(logits.double(), 1).numpy(), labels=[0, 1, 2]
    )
    for labels in (y, y[:, None], torch.nn.functional.one_hot(y)):
        judge = EpochAccumulator(strict=True)
        for row in range(3):
            judge.update(labels[row : row + 1], logits=logits[row].tolist())
        found = judge.compute()
        assert found.metrics == pytest.approx(expected.metrics, nan_ok=True)


def test_logits_are_of_one_form_in_an_epoch():
    y, logits, _ = batches()
    judge = EpochAccumulator(strict=True)
    judge.update(y, logits=logits)
    with pytest.raises(ValueError, match="all batches must have the same parts"):
        judge.update(y, y_prob=torch.softmax(logits, 1))
    with pytest.raises(
        ValueError, match=r"logits must have shape \(n,\) or \(n, K\), got \(90, 3, 1\)"
    ):
        judge.update(y, logits=logits[:, :, None])
    with pytest.raises(ValueError, match="a batch must have y_prob or logits, got both"):
        judge.update(y, y_prob=torch.softmax(logits, 1), logits=logits)
