"""Time counts, metrics and evaluations of arrays, compared with scikit-learn, torchmetrics, PyCM, pandas and the floor.

The floor is the time to read the same arrays once (the faster of their maximum and their sum). Code that looks at every
row cannot be below 1×. The times in one row of a table were measured in turns on the same arrays. "wall" is the ratio
of elapsed times, "processor" the ratio of the processor times of all threads. Both are medians over the rounds. Each
"cmtrack" time includes the checks of the input. Its metrics include intervals, which no peer here computes.

The eight scikit-learn calls are accuracy_score, balanced_accuracy_score, macro precision_score, recall_score and
f1_score, weighted f1_score, cohen_kappa_score and matthews_corrcoef. torchmetrics' nine metrics are these eight and the
confusion matrix, in one MetricCollection that shares its counts.

Memory is the largest resident size during the call, in a new process that already has the input, minus the size before
the call, relative to the bytes of the input.

python benchmarks/arrays_speed.py [--rows 100000,1000000,10000000] [--classes 2,11,100] [--repeats 5]
    [--only counts,strings,metrics,probabilities,memory,many] [--quick]
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from measure import (
    COMPARED,
    Action,
    Peak,
    Times,
    compared,
    in_fresh_process,
    interleaved,
    labels_of,
    numbers,
    probabilities_of,
    reading,
    say,
    table,
)

from cmtrack import ConfusionMatrix, Grouping, evaluate

Array = npt.NDArray[Any]
MAX_CELLS = 2 * 10**8  # of an array of probabilities: 1.6 GB as float64
MANY = (
    (1000, 1000, "float64"), (2000, 2000, "float64"), (2000, 2000, "float32"), (4000, 5000, "float32"),
    (5000, 5000, "labels only"), (100_000, 5000, "labels only"),
)  # fmt: skip
SCORES = "roc_auc_score, one-vs-rest"
SCORES_AND_CURVES = "AUC, AP, log loss, Brier score, curves"


def sklearn_eight(y: Any, p: Any) -> None:
    """Make eight calls, each of which counts again."""
    from sklearn import metrics as sk

    sk.accuracy_score(y, p)
    sk.balanced_accuracy_score(y, p)
    sk.precision_score(y, p, average="macro")
    sk.recall_score(y, p, average="macro")
    sk.f1_score(y, p, average="macro")
    sk.f1_score(y, p, average="weighted")
    sk.cohen_kappa_score(y, p)
    sk.matthews_corrcoef(y, p)


def sklearn_scores(y: Array, probabilities: Array) -> None:
    """Compute the usual scores of probabilities, and both curves of the positive or of every class."""
    from sklearn import metrics as sk

    classes = range(probabilities.shape[1])
    if len(classes) == 2:
        classes = range(1, 2)
        sk.roc_auc_score(y, probabilities[:, 1])
    else:
        sk.roc_auc_score(y, probabilities, multi_class="ovr")
    sk.log_loss(y, probabilities)
    sk.brier_score_loss(y, probabilities)
    for k in classes:
        sk.average_precision_score(y == k, probabilities[:, k])
        sk.roc_curve(y == k, probabilities[:, k])
        sk.precision_recall_curve(y == k, probabilities[:, k])


def torch_nine(classes: int, checked: bool) -> Callable[[Any, Any], object]:
    """Return a collection that is made once and reset before each use."""
    from torchmetrics import MetricCollection
    from torchmetrics import classification as tm

    same: dict[str, Any] = {"num_classes": classes, "validate_args": checked}
    collection = MetricCollection(
        {
            "accuracy": tm.MulticlassAccuracy(average="micro", **same),
            "balanced accuracy": tm.MulticlassAccuracy(average="macro", **same),
            "precision": tm.MulticlassPrecision(average="macro", **same),
            "recall": tm.MulticlassRecall(average="macro", **same),
            "f1": tm.MulticlassF1Score(average="macro", **same),
            "f1 weighted": tm.MulticlassF1Score(average="weighted", **same),
            "kappa": tm.MulticlassCohenKappa(**same),
            "mcc": tm.MulticlassMatthewsCorrCoef(**same),
            "counts": tm.MulticlassConfusionMatrix(**same),
        }
    )

    def call(predicted: Any, target: Any) -> object:
        collection.reset()
        collection.update(predicted, target)
        return collection.compute()

    return call


def pycm_all(y: Array, p: Array) -> None:
    """Compute the matrix and its overall statistics."""
    from pycm import ConfusionMatrix as Pycm

    Pycm(actual_vector=y, predict_vector=p).overall_stat  # noqa: B018


def of_counts(y: Array, p: Array, classes: int) -> dict[str, Action]:
    """Confusion counts of whole numbers."""
    import torch
    from sklearn.metrics import confusion_matrix
    from torchmetrics.functional.classification import multiclass_confusion_matrix

    target, predicted = torch.from_numpy(y), torch.from_numpy(p)
    return {
        "ConfusionMatrix.from_predictions": lambda: ConfusionMatrix.from_predictions(y, p),
        "scikit-learn": lambda: confusion_matrix(y, p),
        "torchmetrics": lambda: multiclass_confusion_matrix(predicted, target, classes),
        "torchmetrics, unchecked": lambda: multiclass_confusion_matrix(
            predicted, target, classes, validate_args=False
        ),
        "pandas.crosstab": lambda: pd.crosstab(y, p),
        "floor: both columns read once": reading(y, p),
    }


def of_texts(y: Any, p: Any) -> dict[str, Action]:
    """Confusion counts of texts."""
    from sklearn.metrics import confusion_matrix

    return {
        "ConfusionMatrix.from_predictions": lambda: ConfusionMatrix.from_predictions(y, p),
        "scikit-learn": lambda: confusion_matrix(y, p),
        "pandas.crosstab": lambda: pd.crosstab(y, p),
    }


def of_metrics(y: Array, p: Array, classes: int) -> dict[str, Action]:
    """Every metric of labels."""
    import torch
    from sklearn.metrics import classification_report

    target, predicted = torch.from_numpy(y), torch.from_numpy(p)
    nine, unchecked = torch_nine(classes, True), torch_nine(classes, False)
    return {
        "evaluate(y, pred).metrics": lambda: evaluate(y, p).metrics,
        "scikit-learn, eight calls": lambda: sklearn_eight(y, p),
        "scikit-learn, classification_report": lambda: classification_report(
            y, p, output_dict=True
        ),
        "PyCM, overall statistics": lambda: pycm_all(y, p),
        "torchmetrics, nine": lambda: nine(predicted, target),
        "torchmetrics, nine, unchecked": lambda: unchecked(predicted, target),
        "floor: both columns read once": reading(y, p),
    }


def of_probabilities(
    y: Array, probabilities: Array, grouping: Grouping | None, auc: bool
) -> dict[str, Action]:
    """Every metric of probabilities, including its intervals and the warnings."""
    from sklearn.metrics import roc_auc_score

    def one_vs_rest() -> object:
        if probabilities.shape[1] == 2:
            return roc_auc_score(y, probabilities[:, 1])
        return roc_auc_score(y, probabilities, multi_class="ovr")

    def evaluated() -> object:
        evaluation = evaluate(y, y_prob=probabilities, grouping=grouping)
        return evaluation.metrics, evaluation.intervals, evaluation.warnings

    actions: dict[str, Action] = {"evaluate(y, y_prob=P).metrics": evaluated}
    if auc:
        actions[SCORES] = one_vs_rest
        actions[SCORES_AND_CURVES] = lambda: sklearn_scores(y, probabilities)
    actions["floor: P read once"] = reading(probabilities)
    return actions


def texts(codes: Array, classes: int, kind: str) -> Any:
    """Labels as texts: fixed-width, objects, categories, or pandas' own strings."""
    names = np.array([f"class {i:03d}" for i in range(classes)])
    if kind == "<U9":
        return names[codes]
    if kind == "objects":
        return names.astype(object)[codes]
    if kind == "categories":
        return pd.Categorical.from_codes(codes, categories=pd.Index(names))
    return pd.Series(pd.array(names, dtype="str")).take(codes).reset_index(drop=True)


def groupings(classes: int) -> dict[str, Grouping | None]:
    """Return the groupings to time: NPS for its eleven classes; two groups and none for a hundred classes."""
    halves = Grouping(
        {"low": range(classes // 2), "high": range(classes // 2, classes)}, name="halves"
    )
    if classes == 2:
        return {"": None}
    return {"NPS": Grouping.nps()} if classes == 11 else {"two groups": halves, "none": None}


def timed(actions: dict[str, Action], small: dict[str, Action], repeats: int) -> dict[str, Times]:
    """Time actions after each has run on a small input, so that imports and set-up do not count."""
    for action in small.values():
        action()
    return interleaved(actions, repeats)


def counts_table(rows: list[int], classes: list[int], repeats: int) -> None:
    lines = []
    for n in rows:
        for k in classes:
            say(f"counts, {n:,} rows, {k} classes")
            times = timed(
                of_counts(*labels_of(n, k), k), of_counts(*labels_of(2000, k), k), repeats
            )
            lines += compared(times, (n, k))
    print("Confusion counts of int64 labels\n")
    table(("rows", "classes", *COMPARED), lines)


def strings_table(rows: list[int], classes: int, repeats: int) -> None:
    lines = []
    for n in rows:
        for kind in ("<U9", "objects", "categories", "pandas str"):
            say(f"texts ({kind}), {n:,} rows, {classes} classes")
            y, p = (texts(codes, classes, kind) for codes in labels_of(n, classes))
            few = (texts(codes, classes, kind) for codes in labels_of(2000, classes))
            lines += compared(timed(of_texts(y, p), of_texts(*few), repeats), (n, classes, kind))
    print("Confusion counts of texts\n")
    table(("rows", "classes", "labels", *COMPARED), lines)


def metrics_table(rows: list[int], classes: list[int], repeats: int) -> None:
    lines = []
    for n in rows:
        for k in classes:
            say(f"metrics, {n:,} rows, {k} classes")
            times = timed(
                of_metrics(*labels_of(n, k), k), of_metrics(*labels_of(2000, k), k), repeats
            )
            lines += compared(times, (n, k))
    print("Every metric of int64 labels, with intervals\n")
    table(("rows", "classes", *COMPARED), lines)


def probabilities_table(rows: list[int], classes: list[int], repeats: int) -> None:
    lines = []
    for n in rows:
        for k in classes:
            if n * k > MAX_CELLS:
                continue
            y = labels_of(n, k)[0]
            few = y[:2000]
            for dtype in ("float64", "float32"):
                probabilities = probabilities_of(y, k, dtype)
                for i, (name, grouping) in enumerate(groupings(k).items()):
                    say(f"probabilities, {n:,} rows, {k} classes, {dtype} {name}")
                    auc = not i and n * k <= 2 * 10**7
                    actions = of_probabilities(y, probabilities, grouping, auc)
                    small = of_probabilities(few, probabilities[: len(few)], grouping, auc)
                    lines += compared(timed(actions, small, repeats), (n, k, dtype, name))
                del probabilities
    print("Every metric of probabilities, with intervals\n")
    table(("rows", "classes", "P", "grouping", *COMPARED), lines)


MEMORY = (
    "counts, int64",
    "counts, <U9",
    "counts, objects",
    "labels only",
    "probabilities float64",
    "probabilities float32",
)


def peak_of(what: str, rows: int, classes: int) -> tuple[int, int]:
    """Return the peak memory above the input, and the size of the input, in bytes, of one call in this process."""
    warnings.simplefilter("ignore")
    y, p = labels_of(rows, classes)
    grouping = next(iter(groupings(classes).values()))

    def call(part: slice) -> object:
        if what.startswith("counts"):
            return ConfusionMatrix.from_predictions(given[0][part], given[1][part])
        if what == "labels only":
            return evaluate(y[part], p[part]).metrics
        return evaluate(y[part], y_prob=given[1][part], grouping=grouping).metrics

    kind = what.rpartition(" ")[2]
    given: tuple[Array, Array] = (y, p)
    if kind in ("<U9", "objects"):
        given = texts(y, classes, kind), texts(p, classes, kind)
        del y, p
    elif what.startswith("probabilities"):
        given = y, probabilities_of(y, classes, kind)
        del p
    call(slice(0, 3000))  # what is imported and set up once
    with Peak() as peak:
        call(slice(None))
    return peak.bytes, sum(array.nbytes for array in given)


def memory_table(rows: list[int], classes: int) -> None:
    lines = []
    for n in rows:
        for what in MEMORY:
            say(f"memory, {what}, {n:,} rows, {classes} classes")
            above, size = in_fresh_process(peak_of, what, n, classes)
            lines.append(
                (
                    n,
                    classes,
                    what,
                    f"{above / 2**20:,.1f}",
                    f"{size / 2**20:,.0f}",
                    f"{above / size:.1%}",
                )
            )
    print("Memory above the input\n")
    table(("rows", "classes", "call", "peak, MiB", "input, MiB", "share"), lines)


def peak_of_many(n: int, classes: int, kind: str) -> tuple[int, int, float]:
    """Return memory and processor time of the numbers of n rows of many classes, and the bytes of the probabilities."""
    y, p = labels_of(n, classes)
    given = (
        {"y_pred": p} if kind == "labels only" else {"y_prob": probabilities_of(y, classes, kind)}
    )
    # what is imported and set up once
    assert evaluate(np.arange(9) % 3, y_prob=np.eye(3)[np.arange(9) % 3]).metrics
    start = time.process_time()
    with Peak() as peak:
        evaluation = evaluate(y, labels=range(classes), **given)
        assert evaluation.metrics
        assert evaluation.intervals
        assert evaluation.warnings is not None
    return peak.bytes, sum(array.nbytes for array in given.values()), time.process_time() - start


def many_table() -> None:
    lines = []
    for n, classes, kind in MANY:
        say(f"memory, {kind}, {n:,} rows, {classes:,} classes")
        above, size, took = in_fresh_process(peak_of_many, n, classes, kind)
        lines.append(
            (n, classes, kind, f"{size / 2**20:,.1f}", f"{above / 2**20:,.0f}", f"{took:.1f}")
        )
    print("Memory of many classes above the input\n")
    table(("rows", "classes", "given", "input, MiB", "peak, MiB", "processor, s"), lines)


def main() -> None:
    """Print Markdown tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=numbers, default=[10**5, 10**6, 10**7])
    parser.add_argument("--classes", type=numbers, default=[2, 11, 100])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument(
        "--only",
        default="counts,strings,metrics,probabilities,memory,many",
        help="tables, by a comma",
    )
    parser.add_argument("--quick", action="store_true", help="a hundred thousand rows, 11 classes")
    options = parser.parse_args()
    rows, classes = ([10**5], [11]) if options.quick else (options.rows, options.classes)
    warnings.simplefilter("ignore")
    middle = 11 if 11 in classes else classes[0]
    tables: dict[str, Action] = {
        "counts": lambda: counts_table(rows, classes, options.repeats),
        "strings": lambda: strings_table(rows, middle, options.repeats),
        "metrics": lambda: metrics_table(rows, classes, options.repeats),
        "probabilities": lambda: probabilities_table(rows, classes, options.repeats),
        "memory": lambda: memory_table([n for n in rows if n >= 10**6] or rows, middle),
        "many": many_table,
    }
    for name in options.only.split(","):
        if name not in tables:
            parser.error(f"--only takes {', '.join(tables)}, got {name!r}")
        tables[name]()


if __name__ == "__main__":
    main()
