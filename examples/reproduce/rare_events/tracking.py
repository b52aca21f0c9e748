"""Each method as an MLflow run, and their comparison."""

from __future__ import annotations

import mlflow
import numpy as np

from cmtrack import compare, log_evaluation
from rare_events.methods import Data, Method
from rare_events.tables import stacked
from study import Spread, Study


def tracked(
    study: Study, data: Data, done: dict[str, Method], by_weight: dict[float, Method]
) -> None:
    """Each method as a run, and their comparison."""
    study.heading("Tracked and compared")
    first, last = data.layout.weights[0], data.layout.weights[-1]
    middle = data.layout.weights[len(data.layout.weights) // 2]
    runs: dict[str, tuple[Method, dict[str, str]]]
    runs = {m: (done[m], {"method": m}) for m in ("state of the art", "bootstrap", "ensemble")}
    for weight in (first, middle, last):
        runs[f"class weight {weight:.4g}"] = (by_weight[weight], {"method": "class weights"})
    ids: dict[str, str] = {}
    withdrawn: list[str] = []
    for name, (method, parameters) in study.track(runs.items(), "logging"):
        scored = method.repeats[0]
        with mlflow.start_run(run_name=name) as run:
            mlflow.log_params(
                parameters | scored.machine.get_params() | {"calibration": "out-of-fold"}
            )
            logged = log_evaluation(
                data.target.y,
                y_prob=scored.target,
                labels=[0, 1],
                calibration=scored.labelled["out-of-fold"],
            )
            if "prevalence/calibrated" in logged.evaluation.undefined:
                withdrawn.append(f"{name} (p = {logged.evaluation.prevalence.fit_pvalue:.1g})")
            mlflow.log_metrics(_over_repeats(method))
            ids[name] = run.info.run_id
    if withdrawn:
        study.text(
            f"{len(withdrawn)} of {len(ids)} runs have no calibrated prevalence: {', '.join(withdrawn)}. The test of "
            "the fit rejects that the target is a mixture of the labelled scores. Out-of-fold scores come from "
            "machines with fewer training rows, and against a target of this size the difference shows. The product "
            "withdraws such an estimate (p < 0.01), and a ranking by it leaves these runs out."
        )
    four = [
        name
        for name in ids
        if name not in (f"class weight {first:.4g}", f"class weight {middle:.4g}")
    ]
    words = []
    for rank_by in ("prevalence/bias", "spcc/binary", "prevalence/calibrated_bias"):
        comparison = compare([ids[name] for name in four], rank_by=rank_by)
        study.text(
            f'`compare(..., rank_by="{rank_by}")` of the four methods says:',
            f"> {comparison.summary()}",
        )
        ranking = comparison.ranking
        if ranking is not None:
            words.append(
                f"{ranking.runs[0].name} by `{rank_by}`, with {len(ranking.tied) - 1} others tied"
            )
    study.text(
        f"First come {'; '.join(words)}. Votes of labels put most websites at exactly zero, which helps the sum and "
        "sPCC of the ensemble. It does not help the count, once that is calibrated with honest scores: there the "
        "thesis' question, which of the four methods, is not the one that matters.",
        "The runs hold the first repeat of each method, with out-of-fold scores and the product's default density "
        "model, and the means and standard deviations over the repeats as metrics.",
    )


def _over_repeats(method: Method) -> dict[str, float]:
    everything = stacked(method.frames).drop(columns="Actual positives")
    metrics = {}
    for (calibration, output), rows in everything.groupby(level=["calibration", "output"]):
        for column in rows:
            spread = Spread.of(rows[column])
            name = f"{calibration} {output}/{column.strip('.').replace('. ', ' ').lower()}"
            found = {f"mean/{name}": spread.mean, f"sd/{name}": spread.sd}
            metrics |= {key: value for key, value in found.items() if np.isfinite(value)}
    return metrics
