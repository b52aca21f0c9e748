"""All algorithms on one data set, on many, and their metrics side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import mlflow
import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline

from cmtrack import Evaluation, Grouping, evaluate, log_evaluation
from nps import published
from nps.algorithms import SCALED, Size, algorithms, fitted, parameters, probabilities
from nps.survey import Split
from study import Spread, beside
from study.beside import NOTE


@dataclass(frozen=True)
class Trial:
    """The algorithms on one validation set."""

    evaluations: dict[str, Evaluation]
    classifiers: dict[str, Pipeline]


def judge(
    split: Split, grouping: Grouping, seed: int, size: Size, *, scaled: tuple[str, ...] = SCALED
) -> Trial:
    """Fit every algorithm on the training part and evaluate it on the validation part."""
    made = algorithms(seed, size, scaled=scaled)
    evaluations = {}
    for name, classifier in made.items():
        scores = probabilities(fitted(classifier, split), split)
        evaluations[name] = evaluate(
            split.y_valid, y_prob=scores, labels=split.labels, grouping=grouping
        )
    return Trial(evaluations, made)


def spreads(trials: Sequence[Trial], rows: Mapping[str, str]) -> pd.DataFrame:
    """`Spread` of each metric over the trials: rows by name, a column for each algorithm."""
    return pd.DataFrame(
        {
            name: {row: Spread.of(values(trials, metric)[name]) for row, metric in rows.items()}
            for name in trials[0].evaluations
        }
    )


def values(trials: Sequence[Trial], metric: str) -> pd.DataFrame:
    """One metric: a row for each trial, a column for each algorithm."""
    return pd.DataFrame(
        [{name: e.metrics[metric] for name, e in trial.evaluations.items()} for trial in trials]
    )


def precision_with_zeros(trials: Sequence[Trial]) -> pd.DataFrame:
    """Macro precision where a class that is never predicted counts as 0, as `Spread`; one row."""
    labels = next(iter(trials[0].evaluations.values())).labels

    def value(evaluation: Evaluation) -> float:
        return float(
            np.nan_to_num(
                [evaluation.metrics[f"class/{label}/precision"] for label in labels]
            ).mean()
        )

    spread = {
        name: Spread.of([value(t.evaluations[name]) for t in trials])
        for name in trials[0].evaluations
    }
    return pd.DataFrame(
        [pd.Series(spread, dtype=object)], index=["Precision, 0 where never predicted"]
    )


def means(ours: pd.DataFrame) -> pd.DataFrame:
    """The means of a table of spreads."""
    return ours.map(lambda spread: spread.mean)


def cells(ours: pd.DataFrame, known: pd.DataFrame | None = None) -> pd.DataFrame:
    """Ours beside what is published, where it is."""

    def cell(row: str, column: str) -> str:
        inside = known is not None and row in known.index and column in known.columns
        return beside(
            ours.loc[row, column],
            float(known.loc[row, column]) if inside and known is not None else None,
        )

    return pd.DataFrame({c: {r: cell(r, c) for r in ours.index} for c in ours.columns}).rename_axis(
        "metric"
    )


def track(
    what: str, trials: Sequence[Trial], rows: Mapping[str, str], *, rows_of_data: int
) -> dict[str, str]:
    """An MLflow run for each algorithm: the first trial in full, means and deviations of all; run ids by name."""
    runs = {}
    table = spreads(trials, rows)
    for name, evaluation in trials[0].evaluations.items():
        with mlflow.start_run(
            run_name=name if what == "survey" else f"{what}: {name}", tags={"data": what}
        ) as run:
            settings = parameters(trials[0].classifiers[name])
            mlflow.log_params(
                {
                    "model": name,
                    "data": what,
                    "rows": rows_of_data,
                    "repeats": len(trials),
                    **settings,
                }
            )
            log_evaluation(evaluation)
            kept = {}
            for row, metric in rows.items():
                kept |= {
                    f"mean/{metric}": table.loc[row, name].mean,
                    f"sd/{metric}": table.loc[row, name].sd,
                }
            mlflow.log_metrics({key: value for key, value in kept.items() if np.isfinite(value)})
            runs[name] = run.info.run_id
    return runs


def matrix_spread(trials: Sequence[Trial], name: str, step: str) -> pd.DataFrame:
    """Cells of one algorithm's reduced matrix over the trials, as `Spread`."""
    reduced = [trial.evaluations[name].reduced[step] for trial in trials]
    counts = np.array([r.counts for r in reduced])
    frame = [
        [Spread.of(counts[:, i, j]) for j in range(counts.shape[2])] for i in range(counts.shape[1])
    ]
    labels = list(reduced[0].labels)
    return pd.DataFrame(frame, index=pd.Index(labels, name="actual"), columns=labels)


def by_group(trial: Trial, split: Split, name: str, grouping: Grouping) -> Evaluation:
    """One algorithm that predicts the group with the largest sum of probabilities, instead of the best single class."""
    step = grouping.steps[0]
    members = {label: list(step.groups[label]) for label in step.labels}
    scores = probabilities(trial.classifiers[name], split)
    home = {member: label for label, inside in members.items() for member in inside}
    summed = np.column_stack(
        [scores[:, np.isin(split.labels, inside)].sum(axis=1) for inside in members.values()]
    )
    return evaluate([home[y] for y in split.y_valid], y_prob=summed, labels=list(members))


def columns(trials: Sequence[Trial]) -> list[str]:
    """The algorithms that are there, in the source's order."""
    return [name for name in published.ALGORITHMS if name in trials[0].evaluations]


def note(trials: Sequence[Trial]) -> str:
    """How to read cells with ours beside published."""
    return NOTE.format(n=len(trials)).capitalize()
