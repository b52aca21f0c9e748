"""The article on multiclass metrics and kappa: its example, its errors, and what kappa's range really is.

Run it with `python examples/reproduce/kappa_article.py [--fast]`.
"""

from __future__ import annotations

import mlflow
import numpy as np
import pandas as pd

from cmtrack import Evaluation, log_evaluation
from cmtrack.plots import plot_confusion_matrix
from kappa import published
from kappa.figures import many_margins_figure, matthews_figure, same_margins_figure
from kappa.margins import extreme
from kappa.ratings import chance_terms, judged, kappa_of, margins
from kappa.simulated import (
    ACCURACY,
    KAPPA,
    MATTHEWS,
    contained,
    kappa_and_matthews,
    macro_f1_gaps,
    same_margins,
)
from kappa.tables import class_table, interval_table, kappa_table, point, range_table, reading_table
from study import Study, beside, study_command

TITLE = "Multiclass metrics and kappa: two chefs judge dishes"
SOURCE = (
    "MyDataModels, Multiclass Classification: Sorting Algorithms, an article on the web "
    "(mydatamodels.com/learn/multiclass-classification-sorting-algorithms)."
)
SEED = 74
SAMPLES = 100
"""Of a random table."""
GRADES = published.GRADES
ORDERED = ("No", "Maybe", "Exquisite")
WEIGHTED = ("cohen_kappa", "cohen_kappa_linear", "cohen_kappa_quadratic", "matthews_corrcoef")
COVERED = (
    "accuracy",
    "recall_macro",
    "precision_macro",
    "f1_macro",
    "f1_of_macro_means",
    *WEIGHTED,
)


def main(study: Study) -> None:
    """The table of dishes first, since all else needs it; then the article from its first number to its last."""
    chefs = table_of_dishes(study)
    houses(study, chefs)
    recall_and_its_total(study, chefs)
    macro_f1(study, chefs)
    chance_and_kappa(study, chefs)
    range_of_kappa(study, chefs)
    other_coefficients(study, chefs)
    intervals(study, chefs)


def table_of_dishes(study: Study) -> Evaluation:
    """The table of grades: nine readings of its digits, one that fits."""
    study.heading("The table of dishes: how its digits can be read")
    study.text(
        "In the article's text the columns of the table run together: "
        + ", ".join(f"{grade} {digits}" for grade, digits in published.DIGITS.items())
        + f". The article says that there are {published.DISHES} dishes. All ways to cut the rows into three numbers:"
    )
    frame, tables = reading_table()
    study.table(
        "readings", frame, "All readings of the digits, those with the right total first", digits=4
    )
    fitting = [judged(counts, GRADES) for counts in tables if counts.sum() == published.DISHES]
    chefs, other = sorted(fitting, key=lambda found: abs(found.metrics[KAPPA] - published.KAPPA))
    study.text(
        f"{len(fitting)} of {len(tables)} readings have {published.DISHES} dishes. Their kappas are "
        f"{chefs.metrics[KAPPA]:.6f} and {other.metrics[KAPPA]:.6f}, and {published.KAPPA} is published: only the "
        'first can be meant. Its rows are chef B ("Actual" in the article), its columns chef A ("Predicted").'
    )
    for name, evaluation in (
        ("the chefs' table", chefs),
        ("the chefs' table, other reading", other),
    ):
        _track(name, evaluation)
    title = f"Grades of {published.DISHES} dishes: chef B actual, chef A predicted"
    figure = plot_confusion_matrix(chefs.confusion_matrix.counts, GRADES, title=title)
    study.figure("dishes", figure, "The table of dishes as the product draws it.")
    study.outcome(
        "Table of 74 dishes",
        reproduced="read from run-together digits",
        near=f"{len(fitting)} of {len(tables)} readings have the total; one of these has a kappa near the published",
        not_possible="the table of the first ten dishes has no entries in the text",
    )
    return chefs


def houses(study: Study, chefs: Evaluation) -> None:
    """Three houses of students: two numbers in words, a matrix that is a picture."""
    study.heading("Accuracy and Co.: three houses")
    ours = {name: chefs.metrics[f"multiclass/{name}"] for name in published.HOUSES}
    cells = [
        {"number": name, "chefs (houses, published)": beside(ours[name], published.HOUSES[name])}
        for name in ours
    ]
    study.table(
        "houses",
        pd.DataFrame(cells),
        "The chefs' table beside what is published of the houses; † not equal",
    )
    study.text(
        "The matrix of the houses and the values of each house are pictures, so that they cannot be computed again. "
        f"The accuracy of the chefs' table is the same as printed, {ours['accuracy']:.4f}; its macro recall is "
        f"{ours['recall_macro']:.4f}, or {chefs.metrics['multiclass/precision_macro']:.4f} with rows and columns "
        f"exchanged, and neither is the {published.HOUSES['recall_macro']} of the houses."
    )
    study.outcome(
        "Houses: accuracy, macro recall, values of each house",
        reproduced="no",
        near=f"the chefs' table has {ours['accuracy']:.2f} and {ours['recall_macro']:.2f}, the houses "
        f"{published.HOUSES['accuracy']} and {published.HOUSES['recall_macro']}",
        not_possible="their confusion matrix is a picture, which the text does not hold",
    )


def recall_and_its_total(study: Study, chefs: Evaluation) -> None:
    """What recall is divided by."""
    study.heading("Recall: over the total actual")
    frame = class_table(chefs)
    study.table("recall", frame, "Recall, precision and F1 of the chefs' table", digits=4)
    fits = {
        side: int((frame["TP"] + frame["FN"] == frame[f"total {side}"]).sum())
        for side in ("actual", "predicted")
    }
    same = int(np.isclose(frame["TP / total predicted"], frame["precision"]).sum())
    study.text(
        'The article divides recall by the "total number predicted for one class, i.e., True Positives and False '
        f'Negatives". TP + FN is the total *actual* in {fits["actual"]} of {len(frame)} classes and the total '
        f"predicted in {fits['predicted']}. TP over the total predicted is precision, in {same} of {len(frame)}."
    )
    study.outcome(
        "Recall",
        reproduced="corrected: TP over the total actual of the class",
        near=f"TP + FN is the actual total in {fits['actual']} of {len(frame)} classes, the predicted one in "
        f"{fits['predicted']}",
    )


def macro_f1(study: Study, chefs: Evaluation) -> None:
    """Mean of F1, or F1 of the means."""
    study.heading("Macro F1 two ways")
    names = ("multiclass/f1_macro", "multiclass/f1_of_macro_means")
    rounds = study.track(range(study.pick(fast=60, full=2000)), "macro F1 of random tables")
    gaps = macro_f1_gaps(rounds, np.random.default_rng(SEED + 1), SAMPLES)
    least = 0.0 if abs(gaps.min()) < 1e-12 else gaps.min()  # rounding has no sign
    rows = [
        {"macro F1": name, "value": chefs.metrics[name], "interval": _interval(chefs, name)}
        for name in names
    ]
    study.table(
        "macro_f1",
        pd.DataFrame(rows),
        "Macro F1 of the chefs' table under its two definitions",
        digits=4,
    )
    study.text(
        "The article takes the mean of the classes' F1 (`f1_macro`). Other sources take the harmonic mean of macro "
        f"recall and macro precision (`f1_of_macro_means`). Over {len(gaps)} random tables of 3 x 3 classes and "
        f"{SAMPLES} samples the second is between {least:.4f} and {gaps.max():.4f} more, {np.median(gaps):.4f} in the "
        "median, and never less. So the name has to say which one it is."
    )
    study.outcome(
        "Macro F1",
        reproduced="both definitions",
        near=f"difference over random tables {least:.4f} to {gaps.max():.4f}",
        not_possible="the article's own values are pictures",
    )


def chance_and_kappa(study: Study, chefs: Evaluation) -> None:
    """Each number on the way to kappa."""
    study.heading("Chance agreement and kappa")
    frame, counts = kappa_table(chefs), chefs.confusion_matrix.counts
    study.table(
        "kappa", frame, "Every number of the article's example; † not equal as printed", digits=10
    )
    study.text(
        f"By the product: kappa {chefs.metrics[KAPPA]:.6f}, 95% interval {_interval(chefs, KAPPA)}."
    )
    (of_b, of_a), terms = margins(counts), chance_terms(counts)
    agreement, printed = chefs.metrics[ACCURACY], published.CHANCE_B_EXQUISITE
    slip = float(terms[1:].sum()) + printed * of_a[0]
    rounded = sum(published.CHANCE.values())
    readings = reading_table()[0].query("dishes == @published.DISHES")
    unread = readings.loc[(readings["kappa"] - chefs.metrics[KAPPA]).abs().idxmax()]
    study.text("Why the article has another kappa:")
    study.bullets(
        f"Chef B chose Exquisite {counts[0].sum()} times and chef A {counts[:, 0].sum()} times, which is {of_b[0]:.4f} "
        f"and {of_a[0]:.4f} of {published.DISHES}. No row or column has a share of {printed}: they are "
        f"{', '.join(f'{x:.4f}' for x in (*of_b, *of_a))}.",
        f"Chance(Exquisite) = {published.CHANCE['Exquisite']} is {printed} × {of_a[0]:.4f} = {printed * of_a[0]:.4f}: "
        f"the wrong share times the right one. Rightly it is {terms[0]:.4f}.",
        f"Chance(No) is {terms[1]:.4f}, printed {published.CHANCE['No']}.",
        f"With {printed} and exact numbers otherwise, p_e is {slip:.4f} and kappa {kappa_of(agreement, slip):.4f}, "
        f"which is the published {published.KAPPA}. So this one slip explains the value.",
        f"The printed terms do not: {' + '.join(map(str, published.CHANCE.values()))} = {rounded:.2f} and p_o "
        f"{agreement:.2f} give {kappa_of(round(agreement, 2), rounded):.4f}.",
        f"The other reading of the digits has Chance(No) = {unread['chance No']:.4f}, as printed, but "
        f"{unread['chance Exquisite']:.4f} and {unread['chance Maybe']:.4f} for the other grades, an agreement of "
        f"{unread['p_o']:.4f}, and kappa {unread['kappa']:.4f}.",
    )
    wrong = [name for name, _, cell in frame.itertuples(index=False) if "†" in cell]
    study.outcome(
        "Kappa example",
        reproduced="every number",
        near=f"kappa {chefs.metrics[KAPPA]:.6f} for {published.KAPPA}, p_e {terms.sum():.4f} for "
        f"{published.CHANCE_AGREEMENT}",
        not_possible=f"as printed, since the table does not give them: {', '.join(wrong)}",
    )


def range_of_kappa(study: Study, chefs: Evaluation) -> None:
    """From the least to 1, with chance at 0."""
    study.heading("The range of kappa: 0 is chance, not the worst case")
    counts = chefs.confusion_matrix.counts
    chance = float(chance_terms(counts).sum())
    rounds = study.track(range(study.pick(fast=60, full=1200)), "tables with the chefs' margins")
    tables = same_margins(rounds, counts, np.random.default_rng(SEED))
    by_chance = tables.loc[tables["chance"], "kappa"]
    named = {
        "the chefs": point(counts),
        "least agreement of these margins": point(extreme(counts, most=False)),
        "most agreement of these margins": point(extreme(counts, most=True)),
    }
    study.figure(
        "same_margins",
        same_margins_figure(tables, chance, named),
        "Margins fix p_e, and kappa is a line in the accuracy. At accuracy 0 the line is at −p_e / (1 − p_e); it gets "
        "there only if no class has more than all samples in both margins together.",
    )
    skewed = np.array([[81, 9], [9, 1]])
    opposite = np.array([[0, 5], [5, 0]])
    cases = {
        "the chefs": counts,
        "three classes, a third each": np.full((3, 3), 10),
        "two classes, half each": opposite,
        "two classes, 90% and 10%": skewed,
    }
    frame = range_table(cases)
    study.table("range", frame, "Least and most kappa that margins allow, by the product", digits=4)
    lines = [(row[0], row[1], (row[3], row[5])) for row in frame.itertuples(index=False)]
    study.figure(
        "many_margins",
        many_margins_figure(lines),
        "Thick: what the margins allow. Dotted: the line to accuracy 0. Where both raters give 90% of the samples to "
        f"one class, an accuracy of {chance_terms(skewed).sum():.2f} is chance.",
    )
    disagree = judged(opposite, ["yes", "no"])
    _track("two raters who always disagree", disagree)
    study.text(
        f'The article has kappa "close to {published.LEAST_KAPPA:g} in the worst case". The table {opposite.tolist()} '
        f"has kappa {disagree.metrics[KAPPA]:g}: two raters who always disagree. Raters who know nothing of each other "
        f"have {by_chance.mean():.4f} ± {by_chance.std():.4f} over {len(by_chance)} random tables with the chefs' "
        "margins: that is 0. Kappa is at least −p_e / (1 − p_e), which it has where the raters never agree. With the "
        f"chefs' margins this would be {-chance / (1 - chance):.4f}, but they must agree on some dishes, and the least "
        f"that a table can have is {named['least agreement of these margins'][1]:.4f}."
    )
    study.outcome(
        "Worst case of kappa",
        reproduced="corrected: 0 is chance; the least is −p_e / (1 − p_e), at worst −1",
        near=f"kappa {disagree.metrics[KAPPA]:g} for {opposite.tolist()}, published {published.LEAST_KAPPA:g}; raters "
        f"by chance {by_chance.mean():.3f} on average",
    )


def other_coefficients(study: Study, chefs: Evaluation) -> None:
    """Kappa beside weighted kappas and Matthews' correlation for several classes."""
    study.heading("Kappa, weighted kappas and Matthews' correlation")
    order = [GRADES.index(grade) for grade in ORDERED]
    ordered = judged(chefs.confusion_matrix.counts[np.ix_(order, order)], ORDERED)
    two = judged([[25, 5], [10, 60]], ("no", "yes"))
    cases = {
        f"dishes, {', '.join(GRADES)}": chefs,
        f"dishes, {' < '.join(ORDERED)}": ordered,
        f"two classes, {two.confusion_matrix.counts.tolist()}": two,
    }
    rows = [
        {"table": t} | {name: e.metrics[f"multiclass/{name}"] for name in WEIGHTED}
        for t, e in cases.items()
    ]
    study.table("coefficients", pd.DataFrame(rows), "Kappa, its weighted forms and R_K", digits=6)
    rounds = study.track(range(study.pick(fast=60, full=2000)), "kappa and R_K of random tables")
    tables = kappa_and_matthews(rounds, np.random.default_rng(SEED + 2), SAMPLES)
    kappa, matthews = chefs.metrics[KAPPA], chefs.metrics[MATTHEWS]
    study.figure(
        "matthews",
        matthews_figure(tables, (matthews, kappa)),
        f"Random tables of 3 x 3 classes and {SAMPLES} samples. Both coefficients have the numerator p_o − p_e; R_K "
        "divides it by the spread of the margins, which is never more than 1 − p_e.",
    )
    beyond = int((tables["kappa"].abs() > tables["matthews"].abs() + 1e-12).sum())
    quadratic = [
        evaluation.metrics["multiclass/cohen_kappa_quadratic"] for evaluation in (chefs, ordered)
    ]
    study.text(
        'The article says that "all these metrics", also MCC, apply to several classes, and does not define MCC there. '
        "The product takes Gorodkin's R_K; for two classes it is the usual coefficient "
        f"({two.metrics[MATTHEWS]:.6f} and {two.metrics['binary/matthews_corrcoef']:.6f} for the last table). Kappa is "
        f"farther from zero than R_K in {beyond} of {len(tables)} random tables. Weighted kappas need an order of the "
        f"classes, and {', '.join(GRADES)} is none: in the order {', '.join(ORDERED)} the quadratic kappa is "
        f"{quadratic[1]:.4f} instead of {quadratic[0]:.4f}, while kappa does not change."
    )
    study.outcome(
        "MCC for several classes",
        reproduced="defined as R_K, beside kappa and its weighted forms",
        near=f"chefs: R_K {matthews:.4f}, kappa {kappa:.4f}; kappa beyond R_K in {beyond} of {len(tables)} tables",
        not_possible="no published value",
    )


def intervals(study: Study, chefs: Evaluation) -> None:
    """What the article leaves out: how far so few dishes can be trusted."""
    study.heading(f"Intervals: what {published.DISHES} dishes can tell")
    repeats = study.pick(fast=60, full=4000)
    rounds = study.track(range(repeats), "coverage of the intervals")
    names = [f"multiclass/{name}" for name in COVERED]
    frame = interval_table(chefs, contained(rounds, chefs, names, np.random.default_rng(SEED + 3)))
    caption = (
        f"95% intervals of the chefs' table; coverage over {repeats} tables drawn with its shares"
    )
    study.table("intervals", frame, caption, digits=4)
    low, high = chefs.intervals[KAPPA]
    by_coverage = frame.set_index("metric")["coverage"].sort_values()
    study.text(
        f"With {published.DISHES} dishes kappa is known to about ±{(high - low) / 2:.2f}, many times the article's "
        f"error of {abs(chefs.metrics[KAPPA] - published.KAPPA):.2f}. The coverage is how often the interval of a "
        "table of as many dishes, drawn with the chefs' shares, holds the value of the chefs' table. With so few "
        "dishes the intervals that are symmetric about the value (macro averages, kappas) are a little too short: the "
        f"lowest coverage is {by_coverage.iloc[0]:.3f} ({by_coverage.index[0]}); R_K, whose interval is not, has "
        f"{by_coverage[MATTHEWS]:.3f}."
    )
    study.outcome(
        "Intervals",
        reproduced="added, by the product",
        near=f"coverage of kappa's 95% interval {by_coverage[KAPPA]:.3f} over {repeats} tables",
        not_possible="none published",
    )


def _track(name: str, evaluation: Evaluation) -> None:
    with mlflow.start_run(run_name=name):
        mlflow.log_param("table", evaluation.confusion_matrix.counts.tolist())
        log_evaluation(evaluation, strict=True)


def _interval(evaluation: Evaluation, name: str) -> str:
    low, high = evaluation.intervals[name]
    return f"[{low:.4f}, {high:.4f}]"


if __name__ == "__main__":
    study_command("kappa_article", TITLE, SOURCE, main)()
