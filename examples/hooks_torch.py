"""
PyTorch: a training loop in one process or several
==================================================

Each epoch is a step of the run. The script runs in one process, or in two with
``torchrun --nproc_per_node=2 examples/hooks_torch.py``. It needs ``pip install '.[torch]'``.
"""

import os

import mlflow
import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from cmtrack import Grouping
from cmtrack_integrations.torch import EpochAccumulator

STORE = "sqlite:///cmtrack-examples.db"
many = "RANK" in os.environ  # set by torchrun
if many:
    dist.init_process_group("gloo")
first = not many or dist.get_rank() == 0


def loader(x, y):
    data = TensorDataset(
        torch.tensor(x, dtype=torch.float32) / 16, torch.tensor(y), torch.arange(len(y))
    )
    return DataLoader(
        data, batch_size=64, sampler=DistributedSampler(data, shuffle=False) if many else None
    )


# %%
# An ordinary network on images of digits.
digits = load_digits()
parts = train_test_split(
    digits.data, digits.target, test_size=0.4, stratify=digits.target, random_state=0
)
train, valid = loader(parts[0], parts[2]), loader(parts[1], parts[3])
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))
if many:
    model = torch.nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

# %%
# The accumulator adds up the batches of all processes. The ids show which rows a sampler repeated.
run_id = None
if first:  # only rank 0 opens and ends the run
    mlflow.set_tracking_uri(STORE)
    mlflow.set_experiment("hooks")
    run_id = mlflow.start_run(run_name="PyTorch").info.run_id
loops = Grouping({"open": [1, 2, 3, 4, 5, 7], "loop": [0, 6, 8, 9]}, name="loops")
judge = EpochAccumulator(grouping=loops, run_id=run_id)

for epoch in range(5):
    for x, y, _ in train:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    with torch.no_grad():
        for x, y, ids in valid:
            judge.update(y, logits=model(x), row_ids=ids)
    logged = judge.log(step=epoch)
    if first:
        print(f"epoch {epoch}: {logged.evaluation}")

if first:
    mlflow.end_run()
    print(f"Look at the run with: mlflow ui --backend-store-uri {STORE}")
if many:
    dist.destroy_process_group()
