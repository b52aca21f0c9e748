"""Writes one of each file that cmtrack stores: ``python tests/golden/make.py FOLDER`` under the version to be kept.

A folder here is named after the version of cmtrack that wrote it; its files are never changed, and the code of every
later version reads them (tests/unit/evaluation/test_stored.py). A schema gets a new number when a file of the old one
needs a migration to be read: then write a new folder with the last version of the old schema first.

A folder may have one of these only, if nothing else has a new schema.

evaluation/   ``Evaluation.save``: probabilities, weights, a two-group step
regrouped/    ``Evaluation.save`` of a regrouping without the data: what it lost, clusters, costs, a metric of one's own
families/     ``FamilyEvaluation.save``
review.json   ``Comparison.report``
spool/        what ``log_evaluation`` left: an entry that is whole, for a store that gave no connection; one that was
              cut off by SIGKILL after the evaluation itself; the inputs of an evaluation that failed
"""

from __future__ import annotations

import dataclasses
import os
import shutil
import signal
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

CUT_OFF = "--cut-off"
NOBODY = "http://127.0.0.1:9"
RUN, OTHER = "0" * 31 + "1", "0" * 31 + "2"


def rows() -> tuple[np.ndarray, np.ndarray]:
    """Labels and probabilities of 60 samples of three classes, each predicted at least once."""
    rng = np.random.default_rng(1)
    y = np.repeat(["ant", "bee", "wasp"], (30, 18, 12))
    logits = rng.normal(size=(60, 3)) + 2 * (y[:, None] == np.array(["ant", "bee", "wasp"]))
    return y, np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)


def make(folder: Path) -> None:
    """Write everything but the entry that is cut off."""
    import mlflow

    from cmtrack import (
        Grouping,
        Metric,
        Prefix,
        compare,
        evaluate,
        evaluate_families,
        log_evaluation,
    )

    y, p = rows()
    grouping = Grouping(
        {"harmless": ["ant"], "stings": ["bee", "wasp"]},
        mode={"harmless": "strict", "stings": [("bee", "wasp")]},
    )
    whole = evaluate(
        y, y_prob=p, grouping=grouping, sample_weight=np.tile([0.5, 1.5], 30), row_ids=np.arange(60)
    )
    whole.save(folder / "evaluation")
    gain = Metric("custom/gain", lambda b: 2 * b.tp - b.fp, of="binary", better="higher")
    asked = {
        "costs": {("harmless", "stings"): 3.0},
        "extra_metrics": [gain],
        "reference": [0.5, 0.25, 0.25],
    }
    kept = evaluate(
        y, y_prob=p, grouping=grouping, groups=np.arange(60) // 4, threshold=0.4, **asked
    )
    kept = dataclasses.replace(kept, rows=None)
    kept.regroup(Grouping({"flies": ["wasp"], "crawls": ["ant", "bee"]})).save(folder / "regrouped")
    true = [["A.1", "B.2"], ["A.1"], ["B.1", "B.2"], ["A.2"], ["C.1", "A.1"]]
    predicted = [["A.1", "B.1"], ["A.2"], ["B.1"], ["A.2", "C.1"], ["C.1", "A.1"]]
    evaluate_families(true, predicted, Prefix(separator=".")).save(folder / "families")
    models = {"first": evaluate(y, y_prob=p), "second": evaluate(y, y_prob=p[:, [1, 0, 2]])}
    compare(models).report(folder / "review.json")
    os.environ["CMTRACK_SPOOL"] = str(folder / "spool")
    mlflow.set_tracking_uri(NOBODY)
    _one_figure()
    two = np.where(y == "ant", "ant", "other")
    log_evaluation(
        two, y_prob=1 - p[:, 0], labels=["ant", "other"], run_id=RUN, prefix="val/", step=3
    )
    log_evaluation(two, y_pred=["ant"] * 59, run_id=RUN)


def _one_figure() -> None:
    """Keep the files small: the entry gets one of its figures."""
    from cmtrack.tracking import contents

    draw = contents._draw

    def draw_one(evaluation: Any, pictures: dict[str, Any], *more: Any) -> None:
        drawn: dict[str, Any] = {}
        draw(evaluation, drawn, *more)
        pictures |= {name: picture for name, picture in drawn.items() if picture.chart}

    contents._draw = draw_one


def cut_off(folder: Path) -> None:
    """Log an evaluation, and be killed before its figures are drawn."""
    import mlflow

    from cmtrack import log_evaluation
    from cmtrack.tracking import contents

    os.environ["CMTRACK_SPOOL"] = str(folder / "spool")
    mlflow.set_tracking_uri(NOBODY)
    contents._draw = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
    y, p = rows()
    log_evaluation(y, y_prob=p, run_id=OTHER, prefix="test/")


if __name__ == "__main__":
    target = Path(sys.argv[-1]).absolute()
    if sys.argv[1] == CUT_OFF:
        cut_off(target)
    else:
        shutil.rmtree(target, ignore_errors=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            make(target)
        os.system(f'"{sys.executable}" "{__file__}" {CUT_OFF} "{target}"')
