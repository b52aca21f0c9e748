"""
Lightning: a callback next to the logger
========================================

``validation_step`` returns labels and logits. The callback does the rest, in the run of the logger. It needs
``pip install '.[lightning]'``.
"""

import lightning as L
import mlflow
import torch
from lightning.pytorch.loggers import MLFlowLogger
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset

from cmtrack import Grouping
from cmtrack_integrations.lightning import EvaluationCallback

STORE = "sqlite:///cmtrack-examples.db"


# %%
# ``validation_step`` returns the labels and logits that the callback collects.


class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10)
        )

    def training_step(self, batch, batch_idx):
        return torch.nn.functional.cross_entropy(self.layers(batch[0]), batch[1])

    def validation_step(self, batch, batch_idx):
        return {"y_true": batch[1], "logits": self.layers(batch[0])}

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.01)


def loader(x, y):
    return DataLoader(
        TensorDataset(torch.tensor(x, dtype=torch.float32) / 16, torch.tensor(y)), batch_size=64
    )


# %%
# Every second epoch is a step of the run.
if __name__ == "__main__":
    digits = load_digits()
    parts = train_test_split(
        digits.data, digits.target, test_size=0.4, stratify=digits.target, random_state=0
    )
    loops = Grouping({"open": [1, 2, 3, 4, 5, 7], "loop": [0, 6, 8, 9]}, name="loops")
    mlflow.set_tracking_uri(STORE)
    logger = MLFlowLogger(experiment_name="hooks", run_name="Lightning", tracking_uri=STORE)
    callback = EvaluationCallback(every=2, grouping=loops)  # it logs to the logger's run
    trainer = L.Trainer(
        max_epochs=5,
        accelerator="cpu",
        logger=logger,
        callbacks=[callback],
        enable_checkpointing=False,
        log_every_n_steps=10,
    )
    trainer.fit(Net(), loader(parts[0], parts[2]), loader(parts[1], parts[3]))
    print(callback.logged.evaluation)
    print(f"Look at the run with: mlflow ui --backend-store-uri {STORE}")
