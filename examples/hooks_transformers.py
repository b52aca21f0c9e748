"""Transformers: the same metrics for the `Trainer` and for the run, and the best checkpoint at the end.

Run it with `python examples/hooks_transformers.py`; it needs `pip install 'cmtrack[transformers]'`. Nothing is
downloaded: a tiny BERT with random weights learns to tell the topic of generated sentences.
"""

import tempfile
from pathlib import Path

import mlflow
import numpy as np
import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

from cmtrack_integrations.transformers import EvaluationCallback, compute_metrics

STORE = f"sqlite:///{Path('cmtrack-examples.db').resolve().as_posix()}"
TOPICS = ["food", "music", "sport"]
WORDS = 30  # ten words of each topic


class Sentences(torch.utils.data.Dataset):
    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        self.topic = rng.integers(0, 3, n)
        on_topic = rng.random((n, 12)) < 0.3
        any_word, own_word = rng.integers(0, WORDS, (n, 12)), rng.integers(0, 10, (n, 12))
        self.words = np.where(on_topic, 10 * self.topic[:, None] + own_word, any_word)

    def __len__(self):
        return len(self.topic)

    def __getitem__(self, place):
        return {"input_ids": torch.tensor(self.words[place]), "labels": torch.tensor(self.topic[place])}


set_seed(0)
mlflow.set_tracking_uri(STORE)
mlflow.set_experiment("hooks")
judge = compute_metrics(labels=TOPICS)
callback = EvaluationCallback(judge)
config = BertConfig(
    vocab_size=WORDS,
    hidden_size=32,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=32,
    max_position_embeddings=12,
    num_labels=3,
)
with tempfile.TemporaryDirectory() as folder, mlflow.start_run(run_name="Transformers") as run:
    Trainer(
        BertForSequenceClassification(config),
        TrainingArguments(
            folder,
            num_train_epochs=5,
            learning_rate=3e-3,
            per_device_train_batch_size=32,
            eval_strategy="epoch",
            save_strategy="epoch",
            load_best_model_at_end=True,
            metric_for_best_model="multiclass/matthews_corrcoef",
            report_to=[],
            use_cpu=True,
        ),
        train_dataset=Sentences(600, 0),
        eval_dataset=Sentences(300, 1),
        compute_metrics=judge,
        callbacks=[callback],
    ).train()

print(callback.logged.evaluation)
print(f"step: {mlflow.get_run(run.info.run_id).data.tags['cmtrack.best_step']}")
print(f"Look at the run with: mlflow ui --backend-store-uri {STORE}")
