"""Chapter 1 of Gubbels (2023): the sample Pearson correlation on synthetic data and on pairs of images.

Run it with `python examples/reproduce/gubbels_2023_correlation.py [--fast] [--output FOLDER]`. Where Debian's package
dataset-fashion-mnist is installed, or the environment variable FASHION_MNIST names a folder with the four `.gz` files
of Fashion-MNIST, the image pairs are the source's own.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
from scipy.stats import norm

from cmtrack import evaluate
from correlation import binary, checklist, explanations, figures, formulas, images, modes
from correlation import published as known
from correlation.data import log_normal, non_normal, normal
from correlation.machines import UPDATES
from correlation.three_classes_report import table_1_6
from correlation.tracking import log_machine
from correlation.trials import CALIBRATED, METRICS, Trials
from study import Spread, Study, beside, nearness, study_command
from study.beside import NOTE

TITLE = "The sample Pearson correlation of classifiers: Gubbels (2023), chapter 1"
SOURCE = (
    "Luuk W. G. Gubbels (2023), The sample Pearson Correlation Coefficient for classification models and identifying "
    "platform economy businesses from web-scraped data, master's thesis, Eindhoven University of Technology."
)
CLASSES = ("class 1", "class 2")


def introduction(study: Study) -> None:
    study.text(
        f"All metrics, intervals and calibrated shares are cmtrack's. Numbers are means over {modes.repeats(study)} "
        "repeats with new data and new seeds; the source has one run, and gives no parameters of its machines but the "
        "linear kernel and the layers of its network. Ours are scikit-learn's defaults. "
        "Means leave out what is undefined, such as the MCC of a machine that labels all rows alike.",
        "**Calibration.** The source does not say which labelled scores its calibration takes the densities from; it "
        "has no rows but those of training and test. A flexible machine is too sure of the rows that it was trained "
        "on, and shares that are estimated with these are wrong. Here the linear SVM, the "
        "logistic regression and the forest are calibrated with out-of-fold scores, and the network with 30% of the "
        "training rows that it has not seen, because networks of two folds give scores that cannot be compared. The "
        "table *Labelled scores of three kinds* below shows what each choice costs.",
        "**Labels.** A plain machine labels from ½ on. A calibrated one labels where its recalibrated probability is "
        "at least ½, which is where the two densities cross, weighted by the estimated shares: the source's “more "
        "optimal τ”.",
        "Class 2 is the positive class, as in the source's data sets.",
    )


def section_1_1(study: Study) -> None:
    study.heading("Formulas of section 0.2, sections 1.1 to 1.3 and appendix A")
    wrong, right = formulas.wrong_formulas(), formulas.right_statements()
    study.table(
        "formulas",
        wrong,
        "Formulas that give wrong numbers as printed, each on a small example",
        digits=4,
    )
    study.table("statements", right, "Statements that hold as printed", digits=4)
    agree = int((right["printed"] - right["computed"]).abs().lt(0.002).sum())
    study.outcome(
        "Formulas of sections 0.2, 1.1 to 1.3 and appendix A",
        reproduced=f"{len(right)} statements checked, {agree} hold",
        near=f"{len(wrong)} formulas do not give the number that they stand for",
        not_possible="; ".join(wrong["where"]) + ": misprinted, see the table",
    )


def table_1_1(study: Study) -> None:
    study.heading("Normally distributed data: Figures 1.1 and 1.2, Table 1.1")
    size = modes.sizes(study)
    make = partial(binary.drawn, normal, size=size)
    trials = binary.run_case(
        study, "normal", make, repeats=modes.repeats(study), logged=not study.fast
    )
    figure_of_classes(
        study, "1.1", make(0).test, "Figure 1.1: two normal classes", limits=(-2.5, 6.5)
    )
    figure_of_probabilities(study, "1.2", trials, "Figure 1.2: probabilities by class, normal data")
    compared(study, "1.1", trials, known.TABLE_1_1)
    networks = binary.barely_trained(normal, modes.networks(study))
    barely = explanations.network_of_one_epoch(study, "1.1", trials, networks, known.TABLE_1_1)
    study.text(
        f"All machines separate the classes, in the source and here. The source's network is the exception, with a "
        f"bias of {known.TABLE_1_1.loc['Bias', 'NN']:.4f}. In up to {UPDATES} steps of Adam, the same layers "
        f"come to a bias of {beside(trials.spread('Bias', 'NN'), digits=4)}. "
        f"After one epoch they give {barely.loc['Bias', 'least']:.2f} to "
        f"{barely.loc['Bias', 'most']:.2f}, though the median AUROC is "
        f"{np.median([one.plain.metrics['binary/roc_auc'] for one in networks]):.2f}. So the source's network looks "
        f"hardly trained, and its bias says nothing about networks.",
        explanations.unsure_fits(trials),
    )
    gap = trials.means().drop(columns=["NN", "NN (cal.)"])
    study.outcome(
        "Table 1.1",
        reproduced="all machines, plain and calibrated",
        near=nearness(gap, known.TABLE_1_1, digits=4) + " without the network",
        not_possible="the network's plain column: its training is not described; one epoch gives numbers of that kind",
    )


def table_1_2(study: Study) -> Trials:
    study.heading("Non-normally distributed data: Figures 1.3 and 1.4, Table 1.2")
    size = modes.sizes(study)
    make = partial(binary.drawn, non_normal, size=size)
    trials = binary.run_case(study, "non-normal", make, repeats=modes.repeats(study))
    figure_of_classes(
        study, "1.3", make(0).test, "Figure 1.3: two sums of normals", limits=(-2.5, 6.5)
    )
    figure_of_probabilities(
        study, "1.4", trials, "Figure 1.4: probabilities by class, non-normal data"
    )
    compared(study, "1.2", trials, known.TABLE_1_2)
    explanations.forest_beyond_the_best(study, trials)
    explanations.network_that_cannot_be(study, trials)
    explanations.areas_that_must_agree(study, trials)
    explanations.biases_off(study, trials)
    explanations.counts_behind(study)
    explanations.labelled_scores(study)
    study.outcome(
        "Table 1.2",
        reproduced="all machines, plain and calibrated",
        near=nearness(trials.means()[["SVM", "LogReg"]], known.TABLE_1_2, digits=4)
        + " in SVM and LogReg",
        not_possible="RFC: better than any machine can be on new rows; NN: bias outside its range; NN (cal.): labels "
        "that its constant probabilities cannot give; AUROC of the SVM: not that of LogReg, though both only "
        "increase with x",
    )
    return trials


def figure_1_5(study: Study) -> None:
    study.heading("Log-normal scores: Figure 1.5")
    kept = []
    for seed in study.track(range(modes.repeats(study)), "log-normal"):
        sample = log_normal(np.random.default_rng([seed, 5]))
        scores = sample.x[:, 0]
        # a linear map changes neither sPCC nor AUROC
        scaled = (scores - scores.min()) / np.ptp(scores)
        kept.append(evaluate(sample.y, y_prob=scaled))
        if seed == 0:
            title = "Figure 1.5: log-normal X (class 1) and −X (class 0)"
            drawing = figures.class_histogram(
                sample, ("−X (class 0)", "X (class 1)"), title, "score", limits=(-15, 15)
            )
            study.figure(
                "figure_1_5",
                drawing,
                "Two classes that never overlap, and whose sPCC is far from 1.",
            )
    spreads = {
        name: Spread.of([e.metrics[name] for e in kept])
        for name in ("spcc/binary", "binary/roc_auc", "spcc/d_a")
    }
    log_machine("log-normal", "score", kept[0], spreads, {})
    population = np.exp(-0.5)
    d_a = spreads["spcc/d_a"].mean
    study.text(
        f"sPCC {beside(spreads['spcc/binary'], known.LOG_NORMAL_SPCC, digits=4)}, population e^(−1/2) = "
        f"{population:.4f}; AUROC {beside(spreads['binary/roc_auc'], known.LOG_NORMAL_AUROC, digits=4)}. The published "
        f"sample is {abs(known.LOG_NORMAL_SPCC - population) / spreads['spcc/binary'].sd:.1f} standard deviations off "
        f"the population. So an sPCC of 1 does not mean “perfectly separable”, it means scores that are constant "
        f"within each class; and 0 means equal class means, not “indistinguishable” (section 1.3.1).",
        f"The relation d'a = √2 z(AUROC) of section 1.2.2 needs normal classes, of any two variances: here d'a is "
        f"{d_a:.3f}, which would mean an AUROC of {norm.cdf(d_a / np.sqrt(2)):.3f} where it is 1.",
    )
    study.outcome(
        "Figure 1.5",
        reproduced="figure, sPCC and AUROC",
        near=f"sPCC {spreads['spcc/binary'].mean:.4f} ± {spreads['spcc/binary'].sd:.4f}, published "
        f"{known.LOG_NORMAL_SPCC}; AUROC {spreads['binary/roc_auc'].mean:.1f}, published {known.LOG_NORMAL_AUROC:.1f}",
    )


def tables_1_3_and_1_4(study: Study) -> Trials:
    given = images.image_set(fast=study.fast)
    study.heading(f"Two pairs of images ({given.name}): Figures 1.6 to 1.8, Tables 1.3 and 1.4")
    study.text(given.rule)
    if not given.published:
        study.text(
            "The source uses Fashion-MNIST (Xiao, Rasul and Vollgraf 2017, https://github.com/zalandoresearch/"
            f"fashion-mnist). Install Debian's package `{images.PACKAGE}`, or download its four `.gz` files into a "
            f"folder and run this script with `{images.VARIABLE}=folder`: the pairs are then the source's own, beside "
            "its numbers. That takes some minutes more, most of it for the linear SVM on 12,000 images."
        )
    study.figure(
        "figure_1_6",
        figures.image_samples(given),
        "Figure 1.6: an image of each class.",
        kept=not given.published,
    )
    near = "other images than the source's: not compared"
    why = (
        ""
        if given.published
        else f"Fashion-MNIST: install {images.PACKAGE}, or set {images.VARIABLE} to its folder"
    )
    study.outcome(
        "Figure 1.6",
        reproduced=f"a sample of each class of {given.name}",
        near="a picture",
        not_possible=why,
    )
    hard = Trials()
    for pair, number, figure, published in (
        (given.easy, "1.3", "1.7", known.TABLE_1_3),
        (given.hard, "1.4", "1.8", known.TABLE_1_4),
    ):
        times, folds = modes.of_images(study, published=given.published)
        hard = binary.run_case(
            study,
            f"{pair.key} images",
            pair.make,
            repeats=times,
            folds=folds,
            same_rows=given.published,
            logged=not study.fast,
        )
        names = f"{pair.names[0]} and {pair.names[1]}"
        title = f"Figure {figure}: probabilities by class, {names} ({pair.key} pair)"
        sides = [f"class {k + 1}: {name}" for k, name in enumerate(pair.names)]
        drawing = figures.probability_panels(hard.first, sides, title)
        study.figure(f"figure_{figure.replace('.', '_')}", drawing, f"{title}, first repeat.")
        frame = hard.beside(published if given.published else None)
        caption = f"Table {number}: {names}, the {pair.key} pair; {NOTE.format(n=times)}"
        study.table(
            f"table_{number.replace('.', '_')}",
            frame,
            caption if given.published else caption.split(";")[0],
        )
        study.table(
            f"table_{number.replace('.', '_')}_published",
            by_machine(published),
            f"Table {number} as published",
            digits=4,
        )
        if given.published:
            near = nearness(hard.means(), published, digits=4)
            explanations.distances_of_images(study, hard, number, published)
            explanations.gaussian_kernel(study, hard, number, pair.make(0), published)
            if pair is given.hard and not study.fast:
                why = explanations.images_that_differ(study, hard, published)
        done = f"{names} of {given.name}, all machines"
        study.outcome(
            f"Figure {figure}",
            reproduced=done,
            near="a picture",
            not_possible="" if given.published else why,
        )
        study.outcome(f"Table {number}", reproduced=done, near=near, not_possible=why)
        words_on_images(study, hard, number)
    return hard


def words_on_images(study: Study, trials: Trials, number: str) -> None:
    """What calibration changes where training and test rows are alike."""
    changes = []
    for row in ("sPCC", "Accuracy", "AUROC", "Bias"):
        gaps = [
            trials.spread(row, one.machine.name + CALIBRATED).mean
            - trials.spread(row, one.machine.name).mean
            for one in trials.first
        ]
        changes.append(f"{row} by {min(gaps):+.4f} to {max(gaps):+.4f}")
    study.text(
        f"Table {number}: calibration changes {', '.join(changes)}. The test rows have the training rows' share of "
        "positives, so that there is nothing to gain but for a machine whose probabilities were off."
    )


def table_1_5(study: Study, cases: dict[str, Trials]) -> None:
    study.heading("Which metric has which property: Table 1.5")
    study.table(
        "table_1_5_published",
        known.TABLE_1_5.rename_axis("property").reset_index(),
        "Table 1.5 as published",
    )
    errors = checklist.sampling_errors(cases)
    study.table(
        "sampling_errors", errors, "Property 3: what sampling does to four metrics", digits=4
    )
    trials = cases["non-normal"]
    regression = next(one for one in trials.first if one.machine.name == "LogReg")
    shares = checklist.at_other_shares(regression)
    study.table(
        "other_shares",
        shares,
        "Property 1: the same scores (LogReg, non-normal) at other shares",
        digits=4,
    )
    maps = checklist.under_transformations(regression)
    study.table("maps", maps, "Increasing maps of the same scores (LogReg, non-normal)", digits=6)
    plain, scaled = (
        checklist.widths_against(errors, "sPCC", "AUROC", c) for c in errors.columns[[3, 5]]
    )
    more = int((scaled > 1).sum())
    study.text(
        f"**Sampling errors.** The source says that AUROC is heavily influenced by sampling errors and sPCC is not. "
        f"The interval of sPCC is {plain.min():.1f} to {plain.max():.1f} times as wide as that of AUROC. Measured in "
        f"the range from a machine that knows nothing to a perfect one, which is half as long for AUROC, it is "
        f"{scaled.min():.1f} to {scaled.max():.1f} times as wide, wider in {more} of {len(scaled)} rows. So a “no” for "
        f"AUROC and a “yes” for sPCC has no ground here.",
        f"**Imbalance.** From {shares.index[0]} to {shares.index[-1]} positives, with the same scores in each class, "
        f"sPCC goes from {shares['sPCC'].iloc[0]:.3f} to {shares['sPCC'].iloc[-1]:.3f} and MCC from "
        f"{shares['MCC'].iloc[0]:.3f} to {shares['MCC'].iloc[-1]:.3f}, while AUROC and BA stay. sPCC sees the "
        f"imbalance, which is of use where positives are counted, but values at two shares cannot be compared.",
        f"**Maps.** AUROC is the same for every increasing map, not only for linear ones as section 1.1 says; sPCC is "
        f"the same for linear ones only ({maps['sPCC'].iloc[0]:.4f}, and {maps['sPCC'].iloc[2]:.4f} for the cube). A "
        f"calibration changes AUROC only where it is not strictly increasing, as the source's cannot be: its AUROC "
        f"differs between plain and calibrated by up to "
        f"{max(changed_areas(t) for t in (known.TABLE_1_2, known.TABLE_1_3, known.TABLE_1_4)):.4f} for machines other "
        f"than the network, ours by {max(changed_areas(t.means()) for t in cases.values()):.4f}.",
    )
    study.outcome(
        "Table 1.5",
        reproduced="each property measured",
        near="property 2 as published, property 3 not, property 1 depends on what is asked",
        not_possible="“AUROC heavily influenced by sampling errors, sPCC not”: the intervals say otherwise",
    )


def changed_areas(table: pd.DataFrame) -> float:
    """How far calibration moves AUROC, over the machines other than the network."""
    areas = table.loc["AUROC"]
    return max(abs(areas[name] - areas[f"{name} (cal.)"]) for name in ("SVM", "LogReg", "RFC"))


def figure_of_classes(
    study: Study, number: str, sample: object, title: str, *, limits: tuple[float, float]
) -> None:
    drawing = figures.class_histogram(sample, CLASSES, title, limits=limits)
    study.figure(
        f"figure_{number.replace('.', '_')}", drawing, f"{title}, test rows of the first repeat."
    )
    study.outcome(f"Figure {number}", reproduced="the two classes", near="same distributions")


def figure_of_probabilities(study: Study, number: str, trials: Trials, title: str) -> None:
    drawing = figures.probability_panels(trials.first, CLASSES, title)
    study.figure(f"figure_{number.replace('.', '_')}", drawing, f"{title}, first repeat.")
    study.outcome(
        f"Figure {number}",
        reproduced="eight panels, counts on a logarithmic axis",
        near="same shapes but for the network's, see the table",
    )


def compared(study: Study, number: str, trials: Trials, published: pd.DataFrame) -> None:
    caption = f"Table {number}; {NOTE.format(n=trials.repeats)}"
    study.table(f"table_{number.replace('.', '_')}", trials.beside(published), caption)


def by_machine(table: pd.DataFrame) -> pd.DataFrame:
    return table.T[list(METRICS)].rename_axis("machine")


def main(study: Study) -> None:
    introduction(study)
    section_1_1(study)
    table_1_1(study)
    sums = table_1_2(study)
    figure_1_5(study)
    hard = tables_1_3_and_1_4(study)
    table_1_5(study, {"non-normal": sums, "hard images": hard})
    table_1_6(study)


if __name__ == "__main__":
    study_command("gubbels_2023_correlation", TITLE, SOURCE, main)()
