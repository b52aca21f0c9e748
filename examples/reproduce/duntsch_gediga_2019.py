"""Düntsch and Gediga (2019): rough confusion matrices, their example, their bounds, their formulas as printed.

Run it with `python examples/reproduce/duntsch_gediga_2019.py [--fast]`.
"""

from __future__ import annotations

import mlflow
import numpy as np
import pandas as pd

from cmtrack import (
    ConfusionMatrix,
    GranuleTable,
    evaluate,
    granule_table,
    log_evaluation,
    rough_bounds,
)
from cmtrack.plots import plot_confusion_matrix
from rough import published
from rough.claims import MAJORITY_ONLY, PRINTED_WRONG
from rough.equations import equation_table
from rough.example import beside_table, partition, partition_table, with_sums
from rough.figures import alpha_figure, sharpness_figure
from rough.printed import alpha_as_printed, upper_bound_as_printed
from rough.random_tables import KINDS, table_of
from rough.survey import survey
from study import Study, study_command

TITLE = "Confusion matrices and rough sets"
SOURCE = "Düntsch, I. and Gediga, G. (2019), Confusion matrices and rough set data analysis, arXiv:1902.01487."
SEED = 1902
MEANT = ("Price", "Sound")
NAMES = {"high": "Y_1", "low": "Y_2"}


def main(study: Study) -> None:
    """The example table by table, then the formulas, then the bounds on many tables."""
    study.text(
        "The source's matrices have predicted classes as rows and actual ones as columns (its Tables 1 and 2). The "
        "product's have actual classes as rows. Tables that are compared are shown the source's way."
    )
    study.outcome("Tables 1, 2, 4", reproduced="layouts without numbers", near="nothing to compare")
    partition_of_example(study)
    table = tables_5_to_7(study)
    example_numbers(study, table)
    equations(study, table)
    without_condition(study)
    bounds_on_random_tables(study)
    notation(study)


def partition_of_example(study: Study) -> None:
    """Table 3, and which attributes give the partition of Example 1."""
    study.heading("Table 3 and the partition of Example 1")
    study.table("table3", published.TABLE_3.reset_index(), "Table 3 of the source")
    frame = partition_table()
    study.table(
        "partitions",
        frame,
        "All sets of attributes of Table 3: the partition, and the quality gamma",
        digits=4,
    )
    printed = ", ".join(published.EXAMPLE_ATTRIBUTES)
    fitting = frame.loc[frame["as published"] == "yes", "attributes"].tolist()
    screens = published.TABLE_3.loc[[1, 6], "Screen"].tolist()
    row = frame.set_index("attributes").loc[printed]
    study.text(
        f"Example 1 takes {printed}. They do not give its partition: the objects 1 and 6 are in one granule there, but "
        f"their screens are {screens[0]} and {screens[1]}. {printed} give {row['partition']} with gamma "
        f"{row['gamma']:g}. Of all {len(frame)} sets of attributes only {' and '.join(fitting)} gives the published "
        "partition, so this is what is meant."
    )
    study.outcome(
        "Table 3, Example 1: partition",
        reproduced=f"with {fitting[0]}",
        near=f"equal for {len(fitting)} of {len(frame)} sets of attributes",
        not_possible=f"with {printed}, as printed: 1 and 6 differ in Screen",
    )


def tables_5_to_7(study: Study) -> GranuleTable:
    """The granule frequency matrix, the relabelled one, and the confusion matrix."""
    study.heading("Tables 5, 6 and 7")
    sets = published.TABLE_3
    table = granule_table(sets, sets["d"], attributes=list(MEANT), labels=list(NAMES))
    assert partition(MEANT) == published.PARTITION  # the granules are X_1 to X_4, in this order
    classifier = published.CLASSIFIER
    matrix = table.confusion_matrix(classifier)
    granules = [f"X_{k + 1}" for k in range(len(table.counts))]
    ours = {
        5: (with_sums(table.counts, granules), published.TABLE_5, "granule frequencies"),
        6: (
            with_sums(table.counts, [NAMES[c] for c in classifier]),
            published.TABLE_6,
            "relabelled by f",
        ),
        7: (
            with_sums(matrix.counts.T, [f"predicted {c}" for c in NAMES.values()]),
            published.TABLE_7,
            "confusion matrix, rows predicted",
        ),
    }
    for number, (mine, theirs, what) in ours.items():
        study.table(
            f"table{number}",
            beside_table(mine, theirs),
            f"Table {number}: {what}; published in brackets",
        )
        equal = int((mine.to_numpy() == theirs.to_numpy()).sum())
        study.outcome(
            f"Table {number}", reproduced="yes", near=f"{equal} of {theirs.size} numbers equal"
        )
    title = "Table 7: rows actual, columns predicted"
    figure = plot_confusion_matrix(matrix.counts, [f"{NAMES[c]} ({c})" for c in NAMES], title=title)
    study.figure(
        "table7",
        figure,
        "Table 7 as the product draws it, which has rows and columns the other way round.",
    )
    for name, attributes in (
        ("Example 1", MEANT),
        ("Example 1 as printed", published.EXAMPLE_ATTRIBUTES),
    ):
        _track(name, list(attributes))
    return table


def example_numbers(study: Study, table: GranuleTable) -> None:
    """Success ratio, gamma, approximations and bounds of the example."""
    study.heading("Example 1: success ratio, gamma and bounds")
    exact, bounds = table.approximations(), table.bounds(published.CLASSIFIER)
    (hits, all_), (certain, _) = published.SUCCESS_RATIO, published.GAMMA
    rows = [
        ("success ratio", bounds.gamma_upper, hits / all_),
        ("gamma", exact.gamma, certain / all_),
        ("alpha from the granules", exact.weighted_alpha, np.nan),
        ("alpha from the confusion matrix (3.6 corrected)", bounds.weighted_alpha_upper, np.nan),
        ("alpha as printed (3.5)", alpha_as_printed(bounds_matrix(table)), np.nan),
    ]
    frame = pd.DataFrame(rows, columns=["number", "ours", "published"])
    study.table("example", frame, "Numbers of Example 1", digits=6)
    per_class = bounds.to_frame().join(exact.to_frame()[["lower", "upper", "alpha"]])
    study.table(
        "example_bounds",
        per_class,
        "Example 1 by class: exact approximations and every bound",
        digits=4,
    )
    study.figure("exact", exact.figure(), "What the granules of Example 1 tell.")
    study.figure("bounds", bounds.figure(), "What the confusion matrix of Example 1 alone tells.")
    equal = int(np.isclose(frame["ours"], frame["published"]).sum())
    study.text(
        "Both published numbers come out. The source's f takes the most frequent class of each granule, with a tie in "
        f"X_1. Of the bounds the product says: {bounds.condition_text}"
    )
    study.outcome(
        "Example 1: success ratio and gamma", reproduced="yes", near=f"{equal} of 2 equal"
    )


def bounds_matrix(table: GranuleTable) -> np.ndarray:
    """The confusion matrix of Example 1 with rows predicted."""
    return np.asarray(table.confusion_matrix(published.CLASSIFIER).counts.T)


def equations(study: Study, table: GranuleTable) -> None:
    """Equations 3.3 to 3.6 on the example, as printed and corrected."""
    study.heading("Equations 3.3 to 3.6")
    exact, bounds, n = (
        table.approximations(),
        table.bounds(published.CLASSIFIER),
        bounds_matrix(table),
    )
    g, gamma = bounds.gamma_upper, exact.gamma
    frame = equation_table(table, published.CLASSIFIER)
    study.table(
        "equations", frame, f"The equations on Table 7, {n.tolist()} with rows predicted", digits=6
    )
    study.bullets(
        f"Equation 3.5 as printed is {alpha_as_printed(n):.4f} on the source's own Table 7: more than 1, for a mean of "
        f"shares. The weights n_i. + n_.i do not sum to the denominator. With n_i. + n_.i - n_ii they do, and the "
        f"middle of equation 3.6 follows: {bounds.weighted_alpha_upper:.4f}.",
        f"The gamma of equation 3.6 is the accuracy, {g:.4f}, which is only an upper bound of the gamma of equation "
        f"3.3, {gamma:.4f}. With the latter the right side is {gamma / (2 - gamma):.4f}. That is alpha of the "
        f"granules, sum of nl over sum of nu = {exact.weighted_alpha:.4f}: with two classes each upper approximation "
        "is what the other class's lower one leaves. With more classes it is not (see the random tables).",
        'In equation 3.4 "ni / nu_i" must be n_i / nu_i.',
    )
    for number in ("3.3", "3.4", "3.5", "3.6"):
        some = frame[frame["equation"] == number]
        fails = some.loc[some["holds"] == "no", "side"].tolist()
        study.outcome(
            f"eq. {number}",
            reproduced="corrected" if fails else "yes",
            near=f"{int((some['holds'] == 'yes').sum())} of {len(some)} readings hold",
            not_possible="; ".join(fails),
        )


def without_condition(study: Study) -> None:
    """A counterexample to the bounds of section 3, which are said without condition 4.1."""
    study.heading("Section 3 needs condition 4.1")
    table = table_of([[0, 4], [3, 0], [1, 2]])
    classifier = ("Y_1", "Y_1", "Y_2")
    exact, bounds = table.approximations(), table.bounds(classifier)
    frame = pd.DataFrame(
        {
            "class": exact.labels,
            "nl_i": exact.lower,
            "n_ii": bounds.hits,
            "n_i. + n_.i - n_ii": bounds.union,
            "2 n_i - n_ii (as printed)": upper_bound_as_printed(
                exact.class_sizes, bounds.hits
            ).astype(int),
            "nu_i": exact.upper,
        }
    )
    study.table(
        "counterexample", frame, f"Granules {table.counts.tolist()}, f = {', '.join(classifier)}"
    )
    below = [
        str(c)
        for c, lower, hits in zip(exact.labels, exact.lower, bounds.hits, strict=True)
        if lower > hits
    ]
    above = [
        str(c)
        for c, union, upper in zip(exact.labels, bounds.union, exact.upper, strict=True)
        if union > upper
    ]
    broken = ", ".join(f"X_{s + 1}" for s in bounds.broken_by)
    study.text(
        'Section 3 says that "given the resulting confusion matrix" |Low(Y_i)| is at most n_ii, and |Upp(Y_i)| at '
        f"least n_i. + n_.i - n_ii (printed n_i + n_i - n_ii). Here {broken} is put into a class of which it has no "
        f"sample, so that condition 4.1 is broken, and the first fails for {', '.join(below)}, the second for "
        f"{', '.join(above)}. The product, which counts granules from 0, says so: {bounds.condition_text}"
    )
    study.outcome(
        "Bounds after Example 1",
        reproduced="corrected: n_i. + n_.i - n_ii, under condition 4.1",
        near=f"counterexample without it: {int(bounds.union.max())} for an upper approximation of "
        f"{int(exact.upper[bounds.union.argmax()])}",
        not_possible="as printed, n_i + n_i - n_ii; see the random tables",
    )


def bounds_on_random_tables(study: Study) -> None:
    """Every claim on many random tables, under condition 4.1 and without it."""
    study.heading("Lemma 4.1, theorems 4.1 to 4.4: random tables")
    rounds = study.track(range(study.pick(fast=250, full=12_000)), "random granule tables")
    failed, numbers, tables = survey(rounds, np.random.default_rng(SEED))
    shown = failed.rename_axis("claim").apply(
        lambda column: column.map(lambda n: "–" if np.isnan(n) else f"{n:.0f}")
    )
    many = ", ".join(f"{kind}: {n:,}" for kind, n in tables.items())
    study.table("claims", shown, f"Tables in which a claim fails for some class ({many} tables)")
    under = failed[list(KINDS[:2])]
    right, wrong = under.drop(index=list(PRINTED_WRONG)), under.loc[list(PRINTED_WRONG)]
    total = int(right.to_numpy().sum())
    breaking = failed[KINDS[2]].drop(index=[*PRINTED_WRONG, *MAJORITY_ONLY])
    fails = breaking[breaking > 0].index.tolist()
    study.text(
        f"Under condition 4.1 the {len(right)} corrected claims and theorems fail in {total} of "
        f"{tables[KINDS[0]] + tables[KINDS[1]]:,} tables. With a classifier that breaks the condition {len(fails)} of "
        f"{len(breaking)} fail somewhere, as the source says of theorem 4.1: {'; '.join(fails)}."
    )
    study.text("The claims as printed fail also under the condition:")
    study.bullets(
        *(
            f"{claim}: fails in {int(row.iloc[0]):,} tables with any classifier, in {int(row.iloc[1]):,} with that of "
            f"the most frequent class, of {tables[KINDS[0]]:,}"
            for claim, row in wrong.iterrows()
        )
    )
    between = numbers.query("0 < gamma < 1")
    linked = between.groupby(between["classes"].gt(2))["linked"].agg(["sum", "size"])
    study.text(
        "Alpha of the granules (sum of nl over sum of nu) is gamma / (2 - gamma), gamma of equation 3.3, in "
        f"{int(linked.loc[False, 'sum']):,} of {int(linked.loc[False, 'size']):,} tables with two classes and a gamma "
        f"that is neither 0 nor 1, but in {int(linked.loc[True, 'sum']):,} of {int(linked.loc[True, 'size']):,} with "
        "more. So alpha and gamma of the granules are interchangeable for two classes only; those "
        "of the confusion matrix always are."
    )
    as_printed, meant = (
        int(failed.loc[f"Theorem 4.4, {word}", KINDS[1]])
        for word in ("as printed: nl** <= nu^m", "corrected: nu** <= nu^m")
    )
    study.text(
        f"Theorem 4.4 has nl** on its left side. It holds ({as_printed} violations), but says nothing: nl** is at most "
        f"n_jj, and n_jj is a term of nu^m. What is meant is nu**, which holds as well ({meant} violations) and makes "
        "nu^m the sharper bound."
    )
    n = np.asarray(published.TABLE_7.iloc[:2, :2])
    example = rough_bounds(ConfusionMatrix(n.T, ("Y_1", "Y_2")))
    study.figure(
        "alpha",
        alpha_figure(
            numbers, (example.gamma_upper, alpha_as_printed(n), example.weighted_alpha_upper)
        ),
        f"Equation 3.5 on {len(numbers):,} random tables with the classifier of most frequent classes. As printed it "
        f"is more than 1 in {int((numbers['printed'] > 1).sum()):,} of them, up to {numbers['printed'].max():.2f}.",
    )
    bound_names = ["nl*", "nl**", "nl^m", "nu*", "nu**", "nu^m"]
    sharp = pd.DataFrame(
        {"mean": numbers[bound_names].mean(), "median": numbers[bound_names].median()}
    )
    sharp.index.name = "bound"
    study.table(
        "sharpness",
        sharp,
        "How far the sum of a bound is from the approximations, per sample",
        digits=4,
    )
    study.figure(
        "sharpness",
        sharpness_figure(numbers),
        "Boxes hold the middle half of the random tables, whiskers 90% of them. Upper approximations overlap, so that "
        "their sum can be several times the number of samples.",
    )
    claims_of = {
        "Lemma 4.1": "Lemma 4.1",
        "Condition 4.1: predicted classes": "section 4:",
        "Theorem 4.1": "Theorem 4.1",
        "Theorem 4.2": "Theorem 4.2",
        "Theorem 4.3": "Theorem 4.3",
        "Theorem 4.4": "Theorem 4.4",
    }
    for item, start in claims_of.items():
        some = failed[failed.index.str.startswith(start)]
        kept = int(np.nansum(some[list(KINDS[:2])].to_numpy()))
        lost = some[KINDS[2]].max()
        without = (
            ""
            if np.isnan(lost)
            else f"; without it up to {int(lost):,} of {tables[KINDS[2]]:,} tables fail"
        )
        study.outcome(
            item,
            reproduced="checked on random tables",
            near=f"{kept} violations under condition 4.1{without}",
            not_possible="printed with nl** on the left, where nu** is meant"
            if item == "Theorem 4.4"
            else "",
        )


def notation(study: Study) -> None:
    """Slips that change no number."""
    study.heading("Slips that change no number")
    study.bullets(
        "Section 2 sets f_r(x) = x for a deterministic granule; the class must be meant: f_r(x) = Y_j where x is in a "
        "granule inside Y_j.",
        "Table 4 has c_ji for granule j and class i, the text c_ij for granule i and class j. The product's table has "
        "granules as rows.",
        "Section 4 introduces n*_j := n_jj, and uses it as nl*_j.",
        "The explanation of nu*_j is right if rows are predicted classes, as in Table 2.",
    )


def _track(name: str, attributes: list[str]) -> None:
    """A run with the evaluation of the classifier of most frequent classes, and the exact approximations."""
    sets = published.TABLE_3
    table = granule_table(sets, sets["d"], attributes=attributes, labels=list(NAMES))
    assigned = dict(zip(table.values, table.majority(), strict=True))
    predicted = [assigned[tuple(row)] for row in sets[attributes].itertuples(index=False)]
    with mlflow.start_run(run_name=name):
        mlflow.log_params(
            {"attributes": ", ".join(attributes), "classifier": "most frequent class"}
        )
        log_evaluation(
            evaluate(sets["d"], predicted, labels=list(NAMES), positive="high"), strict=True
        )
        mlflow.log_metrics(table.approximations().metrics)


if __name__ == "__main__":
    study_command("duntsch_gediga_2019", TITLE, SOURCE, main)()
