"""Markoulidakis et al. (2021): reduced confusion matrices of eight algorithms on net promoter scores.

Run it with `python examples/reproduce/markoulidakis_2021.py [--fast] [--output FOLDER]`. The convolutional network
needs PyTorch (`pip install '.[torch]'`); without it, its column is left out. The real answers come with
`cmtrack[demo]`.
"""

from __future__ import annotations

import mlflow
import pandas as pd

from cmtrack import log_evaluation
from cmtrack.plots import plot_reduced_matrix
from nps import figures, published, recomputed, separable
from nps.algorithms import Size
from nps.data_report import data_and_algorithms
from nps.equations_report import equations, groupings
from nps.published import REGRESSION
from nps.ranking_report import real_answers, told_apart
from nps.reductions import NPS, ROWS_6, ROWS_8, ROWS_ROC, STEP_1, STEP_2, expanded, rows_7
from nps.survey import ROWS, Market, Split
from nps.table_8_report import table_8, table_8_recomputed
from nps.trials import (
    Trial,
    by_group,
    cells,
    columns,
    judge,
    matrix_spread,
    means,
    note,
    precision_with_zeros,
    spreads,
    track,
    values,
)
from study import Spread, Study, beside, nearness, study_command

TITLE = "Reduced confusion matrices on net promoter scores: Markoulidakis et al. (2021)"
SOURCE = (
    "Ioannis Markoulidakis, Ioannis Rallis, Ioannis Georgoulas, George Kopsiaftis, Anastasios Doulamis, Nikolaos "
    "Doulamis (2021), Multiclass Confusion Matrix Reduction Method and Its Application on Net Promoter Score "
    "Classification Problem, Technologies 9(4), 81."
)
SEED = 2021


def main(study: Study) -> None:
    """The source from its section 3 to its end, and then real answers."""
    seeds = range(SEED, SEED + study.pick(fast=2, full=20))
    rows = study.pick(fast=1270, full=ROWS)
    size = study.pick(fast=Size(trees=20, epochs=30), full=Size())
    market = Market()
    splits = [market.split(rows, seed) for seed in seeds]
    trials = [
        judge(s, NPS, k, size)
        for s, k in study.track(list(zip(splits, seeds, strict=True)), "surveys")
    ]
    # first from here on: its figures and runs are those that are shown
    shown = median_survey(trials)
    splits.insert(0, splits.pop(shown))
    trials.insert(0, trials.pop(shown))
    data_and_algorithms(study, market, trials, splits)
    groupings(study)
    equations(study, trials, SEED)
    figures_6_and_7(study, trials, splits)
    runs = tables_6_and_7(study, trials, rows)
    figure_8(study, trials)
    table_8(study, trials)
    table_8_recomputed(study, trials)
    figures_9_and_10(study, trials)
    told_apart(study, trials, runs)
    real_answers(study, size, SEED)


def figures_6_and_7(study: Study, trials: list[Trial], splits: list[Split]) -> None:
    """The logistic regression's matrices: 11 x 11, 3 x 3 + IM, 2 x 2 + IM."""
    study.heading("Reductions of the logistic regression (Figures 6 and 7)")
    first = trials[0].evaluations[REGRESSION]
    drawn = first.figures()
    study.figure(
        "figure_6a",
        drawn["confusion_matrix"],
        "Figure 6a: 11 x 11, logistic regression, the median survey.",
    )
    study.figure(
        "figure_6b", drawn[f"reduced_{STEP_1}"], "Figure 6b: reduced to 3 x 3 + IM, relaxed."
    )
    study.figure(
        "figure_7",
        drawn[f"reduced_{STEP_2}"],
        "Figure 7, ours: reduced again to 2 x 2 + IM, strict.",
    )
    known = expanded(published.FIGURE_7)
    with mlflow.start_run(run_name="published Figure 7", tags={"data": "published"}):
        log_evaluation(known)
    step = known.reduced[STEP_2]
    figure = plot_reduced_matrix(
        step.counts, step.mismatches, step.labels, title="Published: 2 x 2 + IM"
    )
    study.figure(
        "figure_7_published", figure, "Figure 7 as published, reduced and drawn by the product."
    )
    scale = published.FIGURE_7.sum() / first.n_samples
    ours = matrix_spread(trials, REGRESSION, STEP_1).map(
        lambda s: Spread(s.mean * scale, s.sd * scale)
    )
    shown = pd.DataFrame(published.FIGURE_7, index=ours.index, columns=ours.columns)
    table = pd.DataFrame(
        {c: [beside(ours.loc[r, c], shown.loc[r, c], digits=0) for r in ours.index] for c in ours}
    )
    study.table(
        "figure_7_cells",
        table.set_index(ours.index),
        f"3 x 3 + IM beside Figure 7, rows actual, scaled to {published.FIGURE_7.sum()} customers. {note(trials)}",
    )
    predicted = means(ours)["passive"].sum()
    summed = [by_group(t, s, REGRESSION, NPS) for t, s in zip(trials, splits, strict=True)]
    passives = Spread.of([e.confusion_matrix.counts[:, 1].sum() * scale for e in summed])
    accuracy = Spread.of([e.metrics["multiclass/accuracy"] for e in summed])
    plain = Spread.of(values(trials, f"reduced/{STEP_1}/accuracy")[REGRESSION])
    study.text(
        f"In Figure 7, {published.FIGURE_7[:, 1].sum()} of {published.FIGURE_7.sum()} customers are predicted to be "
        f"passive and {published.FIGURE_7[1].sum()} are; in ours {predicted:.0f}. The reason lies in the order of "
        "the steps: the most probable of *eleven* scores is predicted, and then its group is taken. Promoters are "
        "split between 9 and 10, while most passives say 8, so that 8 wins where promoters are together more probable. "
        f"Whoever adds the probabilities of a group before choosing predicts {passives.mean:.0f} passives, with an "
        f"accuracy of {accuracy.mean:.3f} instead of {plain.mean:.3f}.",
        "Figure 6a is only a picture in the source, so that its 11 x 11 matrix cannot be compared cell by cell; its "
        "accuracy is in Table 6.",
    )
    counts = known.binary._asdict() if known.binary else {}
    same = counts == {name: float(value) for name, value in published.FIGURE_7_BINARY.items()}
    study.outcome(
        "Figure 6",
        reproduced="yes, on generated surveys",
        near=f"3 x 3: {nearness(means(ours), shown, digits=0)}",
        not_possible="the 11 x 11 matrix is printed as a picture",
    )
    study.outcome(
        "Figure 7",
        reproduced="exactly, from its own 3 x 3 matrix" if same else "no",
        near=", ".join(f"{name.upper()} {value:g}" for name, value in counts.items()),
    )


def tables_6_and_7(study: Study, trials: list[Trial], rows: int) -> dict[str, str]:
    """Two tables of all algorithms; their runs."""
    study.heading("Tables 6 and 7")
    all_rows = ROWS_6 | {f"3 x 3 + IM: {k}": v for k, v in rows_7(NPS).items()} | ROWS_8 | ROWS_ROC
    runs = track("survey", trials, all_rows, rows_of_data=rows)
    zeros = precision_with_zeros(trials)
    six = pd.concat((spreads(trials, ROWS_6), zeros))
    known = pd.concat(
        (published.TABLE_6, published.TABLE_6.loc[["Precision"]].set_axis(zeros.index))
    )
    study.table("table_6", cells(six, known), f"Table 6, 11 x 11. {note(trials)}")
    gaps = [
        (means(six).loc[row] - known.loc[row]).abs().median()
        for row in ("Precision", zeros.index[0])
    ]
    study.text(
        *_far(six.drop(zeros.index), published.TABLE_6),
        "Some scores are never predicted, and have no precision. The product leaves them out of the mean; "
        "other libraries "
        "count them as 0, as the last row does. The source does not say what it did. Its precision is "
        f"{gaps[0]:.3f} (median of the algorithms) from ours by the first reading, and {gaps[1]:.3f} by the second: "
        f"{'the second is more likely' if gaps[1] < gaps[0] else 'the first is more likely'}.",
    )
    seven = spreads(trials, rows_7(NPS))
    study.table("table_7", cells(seven, published.TABLE_7), f"Table 7, 3 x 3 + IM. {note(trials)}")
    accuracy = means(seven).loc["Accuracy"]
    ahead = published.TABLE_7.loc["Accuracy"]
    better = [name for name in columns(trials) if ahead[name] > ahead[REGRESSION]]
    study.text(
        *_far(seven, published.TABLE_7),
        "In the generated market the inclination to recommend is a weighted sum of satisfactions with one "
        "bend, so that "
        f"little is left for the other algorithms to find: the best of them comes to "
        f"{accuracy.drop(REGRESSION).max():.3f}, "
        f"the logistic regression to {accuracy[REGRESSION]:.3f}. In the source {' and '.join(better)} are "
        "better than the "
        "logistic regression. Its market has something that a weighted sum does not show, and no published number says "
        "what. The generator was fitted to the logistic regression's Figure 7, and not to these.",
    )
    for number, ours, table in ((6, six, published.TABLE_6), (7, seven, published.TABLE_7)):
        study.outcome(
            f"Table {number}",
            reproduced="yes, on generated surveys",
            near=nearness(means(ours).loc[table.index], table[columns(trials)]),
            not_possible="the survey is confidential; the F1 row follows no single definition",
        )
    f1 = recomputed.f1_rows()
    study.table(
        "f1_rows",
        f1,
        "F1 rows: published, and from the published precision and recall as Table 3 defines it",
    )
    impossible = {
        t: int((f1.loc[f"{t}, can be equal"] == "no").sum())
        for t in ("Table 6", "Table 7", "Table 8")
    }
    exact = expanded(published.FIGURE_7).metrics
    matrix = [exact[f"multiclass/{name}"] for name in ("f1_of_macro_means", "f1_macro")]
    study.text(
        "Table 3 defines macro F1 as the F1 of the macro means. Whatever the rounding, the F1 row cannot be that in "
        + ", ".join(f"{n} columns of {t}" for t, n in impossible.items())
        + ". The mean of the classes' F1 explains some: for the logistic regression, Figure 7 gives "
        f"{matrix[0]:.3f} by Table 3 and {matrix[1]:.3f} as mean, where Table 7 prints "
        f"{published.TABLE_7.loc['F1-score', REGRESSION]:.2f}. Both are metrics of the product under names of "
        "their own, "
        "and both are in our tables; beside the published row stands the mean."
    )
    return runs


def figure_8(study: Study, trials: list[Trial]) -> None:
    """The logistic regression before and after each step."""
    study.heading("What the reductions do to the metrics (Figure 8)")
    chosen = (ROWS_6, rows_7(NPS), ROWS_8)
    known = (published.TABLE_6, published.TABLE_7, published.TABLE_8)
    ours = [spreads(trials, _four(rows))[REGRESSION] for rows in chosen]
    ours = [s.set_axis(["accuracy", "precision", "recall", "F1"]) for s in ours]
    shown = [table[REGRESSION].iloc[:4].set_axis(ours[0].index) for table in known]
    figure = figures.steps_figure(ours, shown, "Logistic regression, original and reduced")
    study.figure(
        "figure_8",
        figure,
        "Figure 8: bars ours with their spread, diamonds published (Tables 6 to 8).",
    )
    change = pd.DataFrame(
        {name: [s[name].mean for s in ours] for name in ours[0].index}, index=_STEPS
    ).T
    same = max(
        abs(
            t.evaluations[REGRESSION].metrics["binary/accuracy"]
            - t.evaluations[REGRESSION].metrics[f"reduced/{STEP_1}/accuracy"]
        )
        for t in trials
    )
    study.text(
        f"The relaxed step lifts the accuracy from {change.loc['accuracy', _STEPS[0]]:.2f} to "
        f"{change.loc['accuracy', _STEPS[1]]:.2f}, because more pairs count as hits, not because anything is predicted "
        f"better. The strict step leaves it unchanged (largest difference {same:.3g}), as equation 23 says. The other "
        "three change their meaning there: up to 3 x 3 they are macro means over classes, then of the positive group."
    )
    published_change = pd.concat(shown, axis=1).set_axis(_STEPS, axis=1)
    study.outcome(
        "Figure 8", reproduced="yes, on generated surveys", near=nearness(change, published_change)
    )


def figures_9_and_10(study: Study, trials: list[Trial]) -> None:
    """ROC curves and areas, with ceilings."""
    study.heading("ROC curves and areas (Figures 9 and 10)")
    study.figure(
        "figure_9",
        figures.roc_figure(trials[0], "ROC, 2 x 2 + IM"),
        "Figure 9: the median survey; dashes right of the frame are the ceilings.",
    )
    roc = trials[0].evaluations[REGRESSION].figures()["roc"]
    study.figure(
        "figure_9_regression",
        roc,
        "The logistic regression alone, with chance line, ceiling and interval (median survey).",
    )
    figure = figures.area_figure(trials, "Areas under the ROC curves, 2 x 2 + IM")
    study.figure(
        "figure_10",
        figure,
        "Figure 10, and what it leaves out: mean and standard deviation over the surveys.",
    )
    table = cells(spreads(trials, ROWS_ROC))
    study.table(
        "areas",
        table,
        "Areas, ceilings and normalised areas, mean ± standard deviation over the surveys",
    )
    four = separable.best_four(trials)
    study.table(
        "best_four", four, "The claim of section 5.4: CNN, ANN, logistic regression and SVM lead"
    )
    area, ceiling = (values(trials, ROWS_ROC[row]).mean() for row in ("AUC", "ceiling"))
    top = area.idxmax()
    last = area.idxmin()
    study.text(
        f"The area cannot exceed its ceiling, and chance is half of it. From {last} to {top} the mean area "
        "grows by the "
        f"factor {area[top] / area[last]:.2f} and the ceiling by {ceiling[top] / ceiling[last]:.2f}; what is left is "
        f"{area[top] / area[last] / (ceiling[top] / ceiling[last]):.2f} in the normalised area, which says how well "
        "detractors are told from the others. The ceiling says how well passives are told from promoters. Figure 10 "
        "mixes the two.",
    )
    where = four["surveys where those claimed lead"]
    study.outcome(
        "Figure 9",
        reproduced="yes, on generated surveys",
        near="curves from (0, 0) to (1, ceiling)",
        not_possible="the published curves are a picture",
    )
    study.outcome(
        "Figure 10",
        reproduced="yes, with ceilings and normalised areas",
        near=f"those that the source names lead in {where.iloc[0]} surveys by area, in {where.iloc[1]} by "
        "normalised "
        "area",
        not_possible="the published areas are a picture; areas with different ceilings are not comparable",
    )


_STEPS = ["11 x 11", "3 x 3 + IM", "2 x 2 + IM"]


def median_survey(trials: list[Trial]) -> int:
    """The place of the survey with the median accuracy of the logistic regression in 3 x 3 + IM."""
    accuracy = values(trials, f"reduced/{STEP_1}/accuracy")[REGRESSION]
    return int(accuracy.argsort().iloc[len(trials) // 2])


def _four(rows: dict[str, str]) -> dict[str, str]:
    return {
        k: v
        for k, v in rows.items()
        if k in ("Accuracy", "Precision", "Recall", "F1-score", "F1-Score")
    }


def _far(ours: pd.DataFrame, known: pd.DataFrame) -> list[str]:
    """Which cells are far from the published ones."""
    shown = cells(ours.loc[known.index], known)
    far = [
        f"{name} ({row.lower()})"
        for row in shown.index
        for name in shown
        if shown.loc[row, name].endswith("†")
    ]
    gap = means(ours).loc[known.index] - known[shown.columns]
    return [
        f"{len(far)} of {shown.size} numbers are more than two of our spreads from the published ones"
        + (f": {', '.join(far)}." if far else ".")
        + f" Ours are higher in {int((gap > 0).to_numpy().sum())}."
    ]


if __name__ == "__main__":
    study_command("markoulidakis_2021", TITLE, SOURCE, main)()
