"""
Transformers: the same metrics for the Trainer and for the run
==============================================================

A tiny BERT with random weights reads images of digits, pixel by pixel. Nothing is downloaded. The metrics choose the
best checkpoint, which is evaluated at the end. It needs ``pip install '.[transformers]'``.
"""

import tempfile

import mlflow
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    Trainer,
    TrainingArguments,
    set_seed,
)

from cmtrack_integrations.transformers import EvaluationCallback, compute_metrics

STORE = "sqlite:///cmtrack-examples.db"

# %%
# An image is a sentence of 64 words: its pixels, from 0 to 16.


class Images(torch.utils.data.Dataset):
    def __init__(self, pixels, digits):
        self.pixels, self.digits = pixels.astype(int), digits

    def __len__(self):
        return len(self.digits)

    def __getitem__(self, place):
        return {
            "input_ids": torch.tensor(self.pixels[place]),
            "labels": torch.tensor(self.digits[place]),
        }


given = load_digits()
x, x_val, y, y_val = train_test_split(
    given.data, given.target, test_size=0.4, stratify=given.target, random_state=0
)

# %%
# ``compute_metrics`` gives the Trainer the metrics of the run, so that they can choose the best checkpoint.
set_seed(0)
mlflow.set_tracking_uri(STORE)
mlflow.set_experiment("hooks")
judge = compute_metrics(labels=list(range(10)))
callback = EvaluationCallback(judge)
config = BertConfig(
    vocab_size=17,
    hidden_size=64,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=64,
    max_position_embeddings=64,
    num_labels=10,
)
with tempfile.TemporaryDirectory() as folder, mlflow.start_run(run_name="Transformers") as run:
    Trainer(
        BertForSequenceClassification(config),
        TrainingArguments(
            folder,
            num_train_epochs=10,
            learning_rate=3e-3,
            per_device_train_batch_size=32,
            eval_strategy="epoch",
            save_strategy="epoch",
            load_best_model_at_end=True,
            metric_for_best_model="multiclass/matthews_corrcoef",
            report_to=[],
            use_cpu=True,
        ),
        train_dataset=Images(x, y),
        eval_dataset=Images(x_val, y_val),
        compute_metrics=judge,
        callbacks=[callback],
    ).train()

print(callback.logged.evaluation)
print(f"step: {mlflow.get_run(run.info.run_id).data.tags['cmtrack.best_step']}")
print(f"Look at the run with: mlflow ui --backend-store-uri {STORE}")
