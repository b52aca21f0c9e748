"""ICD-9-like codes of discharge notes: two models, each an MLflow run with one `log_evaluation` line, then compared.

Run it with `python examples/icd9_families.py`. It takes about half a minute and leaves its store and its figures in
the current folder.
"""

from pathlib import Path

import mlflow
import numpy as np
from rich.progress import track
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import MultiLabelBinarizer

from cmtrack import Prefix, compare, evaluate_families, load_evaluation, log_evaluation

STORE = f"sqlite:///{Path('cmtrack-examples.db').resolve().as_posix()}"
FIGURES = Path("icd9-figures")
SEED = 9


def make_notes(n_notes: int, *, n_words: int = 400, seed: int = SEED) -> tuple[np.ndarray, list[set[str]], list[str]]:
    """Notes as counts of words, with the codes that a coder gave them.

    There are eight families (three digits) of two to nine codes (two more digits), like 364.01. A family has words of
    its own, twelve of them, and each of its codes two more: codes of a family are much harder to tell apart than
    families, as in ICD-9. A note has one to six codes, frequent ones far more often than rare ones, and 80 words: of
    its codes, of their families, and any others. One code in twenty is coded as its sibling, as coders do.

    Returns
    -------
    (counts of shape (n_notes, n_words), sets of codes, all codes)
    """
    rng = np.random.default_rng(seed)
    families = {str(family): int(size) for family, size in zip(range(360, 368), (2, 9, 5, 4, 7, 3, 6, 4), strict=True)}
    codes = [f"{family}.{k:02}" for family, size in families.items() for k in range(size)]
    words_of_family = {family: rng.choice(n_words, 12) for family in families}
    words_of_code = {code: rng.choice(n_words, 2) for code in codes}
    frequency = rng.permutation(np.arange(1.0, len(codes) + 1) ** -0.7)
    counts, sets = np.zeros((n_notes, n_words), dtype=np.float32), []
    for note in track(range(n_notes), "writing notes"):
        own = rng.choice(codes, rng.integers(1, 7), replace=False, p=frequency / frequency.sum())
        vocabulary = np.concatenate([w for c in own for w in (words_of_family[c[:3]], np.repeat(words_of_code[c], 3))])
        topical = rng.choice(vocabulary, 56)
        np.add.at(counts[note], np.concatenate((topical, rng.integers(0, n_words, 24))), 1)
        sets.append({_coded(code, families, rng) for code in own})
    return counts, sets, codes


def _coded(code: str, families: dict[str, int], rng: np.random.Generator) -> str:
    family = code[:3]
    return f"{family}.{rng.integers(families[family]):02}" if rng.random() < 0.05 else code


counts, sets, codes = make_notes(5000)
binarizer = MultiLabelBinarizer(classes=codes)
y = binarizer.fit_transform(sets)
x = np.log1p(counts)
train, test = slice(0, 3500), slice(3500, None)

models = {
    "logistic regression": OneVsRestClassifier(LogisticRegression(C=0.3, max_iter=300)),
    "nearest neighbours": KNeighborsClassifier(5, metric="cosine"),
}

mlflow.set_tracking_uri(STORE)
mlflow.set_experiment("ICD-9 families")
runs = {}
for name, model in track(models.items(), "training"):
    with mlflow.start_run(run_name=name) as run:
        model.fit(x[train], y[train])
        evaluation = evaluate_families(y[test], model.predict(x[test]), Prefix(separator="."), codes=codes)
        log_evaluation(evaluation)
        runs[name] = run.info.run_id

for name, run_id in runs.items():
    print(f"{name:20} {load_evaluation(run_id)}")

# The question of a coder who sees a suggestion: is it right, and if not, what is?
evaluation = load_evaluation(runs["logistic regression"])
table = evaluation.code_table()
often_wrong = table[~table["too_few_predicted"]].nlargest(3, "confused_given_predicted")["code"]
for code in often_wrong:
    print(evaluation.given_predicted(code))

comparison = compare(list(runs.values()), rank_by="family/hierarchical_f1")
print(comparison.summary())

FIGURES.mkdir(exist_ok=True)
for name, figure in evaluation.figures().items():
    figure.savefig(FIGURES / f"{name}.png")
print(f"\nFigures are in {FIGURES}/; look at the runs with: mlflow ui --backend-store-uri {STORE}")
