"""Time an epoch on an accelerator: the cost of collecting its predictions, compared with other ways to collect them.

A network scores batches that are on the device. The loop is timed without and with each way of collecting labels and
probabilities. `EpochAccumulator` and the arrays of each batch then give the same numbers; torchmetrics computes
a few other metrics. PyTorch's profiler counts the transfers to the host. Without CUDA, the loop runs on the processor,
where nothing has to be transferred.

python benchmarks/accelerator.py [--rows 1e6] [--classes 2,11] [--batch 1024] [--width 1024,8192]
    [--repeats 5]
"""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Callable, Iterator
from itertools import pairwise, product
from typing import Any

import numpy as np
import torch
from measure import Action, interleaved, numbers, shown, table

from cmtrack import Evaluation, evaluate
from cmtrack_integrations.torch import EpochAccumulator, probabilities

PEERS = importlib.util.find_spec("torchmetrics") is not None
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
Collect = Callable[[torch.Tensor, torch.Tensor], object]
Way = Callable[[], tuple[Collect, Callable[[], object]]]
"""Starts an epoch: returns the function for each batch, and the function for the end."""


class Epoch:
    """Batches of features and labels on the device, and a network that scores them."""

    def __init__(self, rows: int, classes: int, batch: int, width: int) -> None:
        torch.manual_seed(0)
        self.rows, self.classes, self.batch = rows, classes, batch
        self.y = torch.randint(classes, (rows,), device=DEVICE)
        self.x = torch.randn(rows, 64, device=DEVICE)
        self.x[torch.arange(rows, device=DEVICE), self.y] += 1.5
        sizes = (64, width, width, classes)
        layers = [
            part for a, b in pairwise(sizes) for part in (torch.nn.Linear(a, b), torch.nn.ReLU())
        ]
        self.network = torch.nn.Sequential(*layers[:-1]).to(DEVICE)

    def batches(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Yield labels and logits of each batch."""
        with torch.no_grad():
            for start in range(0, self.rows, self.batch):
                part = slice(start, start + self.batch)
                yield self.y[part], self.network(self.x[part])

    def run(self, collect: Collect) -> None:
        """Run once over all batches, until the device has finished."""
        for y, logits in self.batches():
            collect(y, logits)
        if DEVICE.type == "cuda":
            torch.cuda.synchronize()


def timed(epoch: Epoch, way: Way) -> Action:
    """Return the loop with one way of collecting, including the end."""

    def action() -> None:
        collect, end = way()
        epoch.run(collect)
        end()

    return action


def transfers(action: Action) -> str:
    """Return the number of copies from the device to the host."""
    if DEVICE.type != "cuda":
        return "–"
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        action()
    return f"{sum(event.count for event in profile.key_averages() if 'DtoH' in event.key):,}"


def by_batch(epoch: Epoch) -> Evaluation:
    """Collect arrays of each batch, as usual loops do, and evaluate all of them."""
    labels, outputs = [], []

    def collect(y: torch.Tensor, logits: torch.Tensor) -> None:
        labels.append(y.cpu())
        outputs.append(logits.cpu())

    epoch.run(collect)
    y_prob = torch.softmax(torch.cat(outputs).double(), 1).numpy()
    return evaluate(torch.cat(labels).numpy(), y_prob=y_prob, labels=range(epoch.classes))


def ways(epoch: Epoch) -> dict[str, Way]:
    """Return how each way collects a batch, and what it does after the last batch."""

    def ours() -> tuple[Collect, Callable[[], object]]:
        judge = EpochAccumulator(strict=True)

        def joined() -> object:
            rows, _labels, _error = judge._own()
            return probabilities(rows["logits"])

        return lambda y, logits: judge.update(y, logits=logits), joined

    def arrays() -> tuple[Collect, Callable[[], object]]:
        batches: list[Any] = []

        def joined() -> object:
            return [np.concatenate(parts) for parts in zip(*batches, strict=True)]

        return lambda y, logits: batches.append(
            (y.cpu().numpy(), torch.softmax(logits, 1).cpu().numpy())
        ), joined

    def peers() -> tuple[Collect, Callable[[], object]]:
        from torchmetrics import MetricCollection
        from torchmetrics.classification import (
            MulticlassAUROC,
            MulticlassCalibrationError,
            MulticlassConfusionMatrix,
        )

        metrics = MetricCollection(
            {
                "matrix": MulticlassConfusionMatrix(epoch.classes, validate_args=False),
                "auc": MulticlassAUROC(epoch.classes, thresholds=200, validate_args=False),
                "calibration": MulticlassCalibrationError(epoch.classes, validate_args=False),
            }
        ).to(DEVICE)
        return lambda y, logits: metrics.update(torch.softmax(logits, 1), y), metrics.compute

    peer = {"torchmetrics: matrix, AUC, calibration": peers} if PEERS else {}
    return {
        "bare loop": lambda: (lambda y, logits: None, list),
        "EpochAccumulator": ours,
        "arrays of each batch": arrays,
        **peer,
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", default="1e6")
    parser.add_argument("--classes", default="2,11")
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--width", default="1024,8192", help="of the network's two hidden layers")
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    name = torch.cuda.get_device_name() if DEVICE.type == "cuda" else "the processor"
    print(f"PyTorch {torch.__version__} on {name}, batches of {given.batch:,} rows\n")
    lines = []
    for rows in numbers(given.rows):
        for classes, width in product(numbers(given.classes), numbers(given.width)):
            epoch = Epoch(rows, classes, given.batch, width)
            judge = EpochAccumulator(strict=True)
            if DEVICE.type == "cuda":
                torch.cuda.set_sync_debug_mode("error")  # whatever waits for the device raises
            for y, logits in epoch.batches():
                judge.update(y, logits=logits)
            if DEVICE.type == "cuda":
                torch.cuda.set_sync_debug_mode("default")
            same = "equal" if judge.compute() == by_batch(epoch) else "OTHER"

            times = interleaved(
                {name: timed(epoch, way) for name, way in ways(epoch).items()}, given.repeats
            )
            # the profiler keeps every launch
            few = Epoch(100 * given.batch, classes, given.batch, width)
            for name, way in ways(few).items():
                ratio, copies = (
                    shown(times[name].over(times["bare loop"])),
                    transfers(timed(few, way)),
                )
                equal = same if name == "EpochAccumulator" else ""
                lines.append(
                    (
                        rows,
                        classes,
                        width,
                        name,
                        ratio,
                        shown(times[name].median * 1e3),
                        copies,
                        equal,
                    )
                )
    table(
        (
            "rows",
            "classes",
            "width",
            "",
            "/ bare loop",
            "ms",
            "transfers in 100 batches",
            "evaluation",
        ),
        lines,
    )


if __name__ == "__main__":
    main()
