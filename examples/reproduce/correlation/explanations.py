"""Why numbers of Tables 1.1 and 1.2 differ from ours, and which of them cannot be."""

from __future__ import annotations

import numpy as np
import pandas as pd

from cmtrack import estimate_prevalence, evaluate
from cmtrack.prevalence.mixture import Mixture
from correlation import binary, modes
from correlation import published as known
from correlation.data import SIZES, FloatArray, IntArray, Problem, non_normal
from correlation.limits import from_counts, table_behind
from correlation.machines import UPDATES, fitted, platt_svm, probabilities
from correlation.trials import CALIBRATED, METRICS, Judged, Trials, judged
from study import Study

STUCK = 0.02
"""A bias that a trained machine does not have by chance in the source's numbers of rows."""


def network_of_one_epoch(
    study: Study, number: str, trials: Trials, networks: list[Judged], published: pd.DataFrame
) -> pd.DataFrame:
    """The source's network between ours; returns the table by metric."""
    frame = binary.network_table(trials, networks, published)
    caption = (
        f"Table {number}, the network: published, ours after up to {UPDATES} steps ({trials.repeats} repeats), and "
        f"ours after one epoch ({len(networks)} seeds, calibrated with fresh rows)"
    )
    study.table(f"table_{number.replace('.', '_')}_network", frame, caption, digits=4)
    stuck = int((np.abs(trials.values["Bias", "NN"]) > STUCK).sum())
    silent = int(np.isnan(trials.values["MCC", "NN"]).sum())
    study.text(
        f"A network this small can get stuck: of {trials.repeats} that were trained so long, {stuck} have a bias "
        f"beyond ±{STUCK}, and {silent} label all rows alike, so that they have no MCC."
    )
    return frame.set_index("metric")


def unsure_fits(trials: Trials) -> str:
    """What the product says of calibration scores of separate classes."""
    counts = {name: int((np.array(values) < 0.05).sum()) for name, values in trials.fits.items()}
    said = ", ".join(f"{name} {count}" for name, count in counts.items())
    return (
        f"cmtrack's test of whether the labelled scores fit those of the target rejects in some of the "
        f"{trials.repeats} repeats ({said}). Where the classes are separate the machines of two folds differ only in "
        f"how near to 0 and 1 their scores lie; the test sees that, and the share of positives does not depend on it."
    )


def forest_beyond_the_best(study: Study, trials: Trials) -> None:
    frame = binary.limit_table(trials)
    study.table(
        "limits", frame, "The published forest, and the best that any machine can expect", digits=4
    )
    limits = frame.set_index("metric")
    published = known.TABLE_1_2["RFC"]
    n, positives = sum(SIZES), SIZES[1]
    tp, _, fp, _ = table_behind(published["Accuracy"], published["BA"])
    called, mass = tp + fp, published["Bias"] * n + positives
    means = trials.means().loc["sPCC", list(known.MACHINES)]
    study.text(
        f"The densities of the two classes are given, so the best possible machine is known: its accuracy is "
        f"{limits.loc['Accuracy', 'best possible']:.4f}, its sPCC {limits.loc['sPCC', 'best possible']:.4f}. The "
        f"published forest has {published['Accuracy']:.4f} and {published['sPCC']:.4f}, "
        f"{limits.loc['Accuracy', 'errors above the best']:.1f} and {limits.loc['sPCC', 'errors above the best']:.1f} "
        f"standard errors of a test set ({trials.first[0].y.size} rows) beyond it. New rows of these distributions do "
        f"not give that. A forest that has seen some of its test rows would: on its own training rows ours has an "
        f"accuracy of {limits.loc['Accuracy', 'our RFC on its training rows']:.4f}. On new rows ours has rank "
        f"{int(means.rank(ascending=False)['RFC'])} of four by sPCC, where the source's is the best by far: trees that "
        f"are grown to the end learn single rows.",
        f"The forest's published bias hardly fits its labels: {called} rows are labelled positive, so that they alone "
        f"have probabilities of at least {called / 2:.1f} in sum, and the bias of {published['Bias']:.4f} leaves "
        f"{mass:.0f} for all rows together: {mass / called:.3f} on average for a row labelled positive, at most.",
    )


def network_that_cannot_be(study: Study, trials: Trials) -> None:
    networks = binary.barely_trained(non_normal, modes.networks(study))
    network_of_one_epoch(study, "1.2", trials, networks, known.TABLE_1_2)
    alike = binary.nearest(networks, known.TABLE_1_2.loc["sPCC", "NN"])
    study.figure(
        "figure_1_4_network",
        alike.plain.figures()["score_histogram"],
        f"Figure 1.4d and 1.4h, the network of one epoch whose sPCC ({alike.plain.metrics['spcc/binary']:.4f}) is "
        f"nearest to the published one, before and after calibration, as cmtrack draws it.",
    )
    plain, calibrated = known.TABLE_1_2["NN"], known.TABLE_1_2["NN (cal.)"]
    share = SIZES[1] / sum(SIZES)
    tp, fn, fp, tn = table_behind(calibrated["Accuracy"], calibrated["BA"])
    mcc = from_counts(tp, fn, fp, tn).metrics["multiclass/matthews_corrcoef"]
    constant = estimate_prevalence(
        np.full(100, 0.1), calibration=(np.repeat([0, 1], 50), np.full(100, 0.1))
    )
    study.text(
        f"After one epoch, {np.mean([binary.all_negative(one) for one in networks]):.0%} of our networks label every "
        f"row negative, as the source's (accuracy {1 - share:.4f}), with an AUROC of "
        f"{np.median([one.plain.metrics['binary/roc_auc'] for one in networks]):.2f} in the median. Calibrated with "
        f"rows that they have not seen, the same networks have an sPCC of "
        f"{np.median([one.calibrated.metrics['spcc/binary'] for one in networks if one.calibrated]):.4f} and a bias of "
        f"{np.median([one.calibrated.metrics['prevalence/bias'] for one in networks if one.calibrated]):.4f} in the "
        f"median: the scores need only rank the rows.",
        coarse_bins(networks),
        f"**Bias {plain['Bias']:.4f}.** A bias is the mean probability minus the share of positives, so it lies "
        f"between {-share:.1f} and {1 - share:.1f} here. {plain['Bias']:.4f} is outside. It might be a sum that was "
        f"not divided by the number of rows; the bias would then be {plain['Bias'] / sum(SIZES):.4f}.",
        f"**The calibrated network.** sPCC {calibrated['sPCC']:.1f}, AUROC {calibrated['AUROC']:.1f} and bias "
        f"{calibrated['Bias']:.1f} say that all its probabilities are 0. Labels from one probability are all alike. "
        f"But accuracy and balanced accuracy stand for TP {tp}, FN {fn}, FP {fp}, TN {tn}, whose MCC is {mcc:.4f}, as "
        f"published. The labels came from something else than the probabilities. Where both classes have the same "
        f"scores cmtrack gives no share and no probabilities ({constant.undefined['value']}); that happened "
        f"{trials.unidentified('NN')} times in {trials.repeats} trained networks and "
        f"{sum(one.calibrated is None for one in networks)} times in {len(networks)} of one epoch.",
        f"**Text and table.** The text gives {known.TEXT_NETWORK_AUROC} for the network's AUROC, the table "
        f"{plain['AUROC']}.",
    )


def coarse_bins(networks: list[Judged]) -> str:
    """What a calibration with ten equal bins over [0, 1] makes of scores that all lie close together."""
    constant, at_zero = 0, []
    for one in networks:
        share, posterior = by_equal_bins(one.scored.test, *one.scored.labelled)
        if np.ptp(posterior) > 0:
            continue
        constant += 1
        if share == 0:
            at_zero.append(evaluate(one.y, y_prob=posterior).metrics)
    text = (
        f"How a calibration can make one constant of a network that ranks the rows well: with ten bins of equal width "
        f"over [0, 1] in place of cmtrack's densities, the calibrated probabilities of {constant} of the "
        f"{len(networks)} networks are one constant, because nearly all scores lie in one bin."
    )
    if at_zero:
        first = at_zero[0]
        text += (
            f" In {len(at_zero)} of these it is 0, with an AUROC of {first['binary/roc_auc']:.4f} and a bias of "
            f"{first['prevalence/bias']:.4f}: the published column. That the source used such bins is a guess."
        )
    return text


def by_equal_bins(
    test: FloatArray, y: IntArray, labelled: FloatArray, n_bins: int = 10
) -> tuple[float, FloatArray]:
    """Estimate the share of positives and their probabilities by bins of equal width over [0, 1]."""
    edges = np.linspace(0.0, 1.0, n_bins + 1)
    densities = []
    for label in (0, 1):
        counts = np.histogram(labelled[y == label], edges)[0] + 0.5
        densities.append(counts / counts.sum())
    negatives, positives = densities
    bins = np.clip((test * n_bins).astype(np.int64), 0, n_bins - 1)
    mixture = Mixture(positives, negatives, np.bincount(bins, minlength=n_bins).astype(np.float64))
    share = mixture.maximise()
    return share, (share * positives / mixture.mix(share))[bins]


def areas_that_must_agree(study: Study, trials: Trials) -> None:
    svm, regression = (np.array(trials.values["AUROC", name]) for name in ("SVM", "LogReg"))
    published = known.TABLE_1_2.loc["AUROC"]
    mean, error = regression.mean(), trials.standard_error("AUROC", "LogReg")
    study.text(
        f"**AUROC of the SVM.** With one feature, the SVM and the logistic regression both increase with x, so that "
        f"they rank the rows alike and have the same AUROC on the same rows: here they differ by at most "
        f"{np.abs(svm - regression).max():.1e}. Published are {published['SVM']} and {published['LogReg']} (the latter "
        f"is also the network's). Other test rows do not explain it: with a standard error of {error:.4f} "
        f"about {mean:.4f}, {published['SVM']} is {(mean - published['SVM']) / error:.0f} errors below."
    )


def biases_off(study: Study, trials: Trials) -> None:
    published = known.TABLE_1_2.loc["Bias"]
    regression = next(one for one in trials.first if one.machine.name == "LogReg")
    y, p = regression.scored.trained
    parts = []
    for name in ("SVM", "LogReg", "RFC"):
        error = trials.standard_error("Bias", name)
        parts.append(
            f"{name} {published[name]:.4f} ({abs(published[name]) / error:.0f} standard errors)"
        )
    study.text(
        f"**Bias of the plain machines.** The probabilities of a logistic regression add up to the number of positives "
        f"of its training rows (ours: bias {evaluate(y, y_prob=p).metrics['prevalence/bias']:.1e} there), and the test "
        f"rows come from the same distributions in the same numbers. So its bias is a sampling error, as are those of "
        f"the other trained machines here, but not the published ones: {', '.join(parts)}. Together with the forest "
        f"and the AUROC of the SVM this says that the source's training and test rows were not drawn alike, or not as "
        f"described, for all machines."
    )


def counts_behind(study: Study) -> None:
    frame = binary.tables_behind(known.TABLE_1_2)
    study.table(
        "counts_behind",
        frame,
        "Table 1.2: the counts that accuracy and balanced accuracy leave",
        digits=4,
    )
    agree = int((frame["agree"] == "yes").sum())
    defined = int(frame["MCC from these"].notna().sum())
    study.text(
        f"The published labels are consistent: in {agree} of {defined} columns the MCC of these counts is the "
        f"published one, up to rounding. An MCC without positive labels is undefined (0 / 0), not {0.0:.1f}."
    )


def labelled_scores(study: Study) -> None:
    frame = binary.calibration_table(study, repeats=modes.repeats(study))
    study.table(
        "labelled_scores",
        frame,
        "Labelled scores of three kinds: estimated minus actual share of positives, for a target with the training "
        f"share and for one with {binary.RARE:.0%} positives",
    )
    first = frame.set_index(["machine", "labelled scores"])
    study.text(
        "In all test cases of the source the test rows have the training rows' share of positives, so that there is "
        "nothing to correct: the plain sums are near the truth already (third column), except those of a network that "
        "was hardly trained. What the calibration is for is a target with another share (fifth and sixth column). With "
        f"{binary.RARE:.0%} positives the plain sum of the forest is off by "
        f"{first.loc[('RFC', 'out of fold'), 'sum, rare']} of the rows, the estimate with out-of-fold scores by "
        f"{first.loc[('RFC', 'out of fold'), 'calibrated, rare']}, that with training scores by "
        f"{first.loc[('RFC', 'training rows'), 'calibrated, rare']}. The forest is the machine that is too sure of its "
        "training rows; the others have few parameters, and hardly differ. cmtrack's test "
        "of fit rejects the network's out-of-fold scores in "
        f"{first.loc[('NN', 'out of fold'), 'fit p < .05, same share']} of the repeats, its held-out ones in "
        f"{first.loc[('NN', 'held out'), 'fit p < .05, same share']}."
    )


def distances_of_images(study: Study, trials: Trials, number: str, published: pd.DataFrame) -> None:
    """How far each machine is from its published column, in standard errors of the test images."""
    means = trials.means()
    errors = pd.DataFrame(
        {c: [trials.standard_error(row, c) for row in METRICS] for c in means}, index=means.index
    )
    gaps = ((means - published) / errors).abs()
    frame = pd.DataFrame({"median": gaps.median(), "largest": gaps.max(), "in": gaps.idxmax()})
    name = f"table_{number.replace('.', '_')}_distances"
    caption = f"Table {number}: distances from the published numbers, in standard errors of our test images"
    study.table(name, frame.rename_axis("machine"), caption, digits=1)
    if study.fast:
        study.text(
            "In the fast mode these are 200 images of each kind, and say nothing about the source's numbers."
        )
        return
    rows = trials.first[0].y.size
    near = int((gaps < 1).to_numpy().sum())
    study.text(
        f"{near} of {gaps.size} numbers of Table {number} are within one standard error of a test set of {rows} "
        f"images. The test images are the source's own, so that its machines, with its settings, would give its "
        f"numbers. SVM and logistic regression have no seed and are judged once; the forest and the network over "
        f"{trials.repeats} seeds."
    )


def gaussian_kernel(
    study: Study, trials: Trials, number: str, problem: Problem, published: pd.DataFrame
) -> None:
    """Whether the published SVM of a pair of images is one with a linear or with a Gaussian kernel."""
    scores = probabilities(
        fitted(platt_svm(modes.folds(study), "rbf"), problem.train), problem.test.x
    )
    metrics = evaluate(problem.test.y, y_prob=scores).metrics
    gaussian = pd.Series({row: metrics[name] for row, name in METRICS.items()})
    rows = {
        "linear, ours": trials.means()["SVM"],
        "Gaussian, ours": gaussian,
        "published": published["SVM"],
    }
    frame = pd.DataFrame(rows).T.rename_axis("kernel of the SVM")
    name = f"table_{number.replace('.', '_')}_svm"
    study.table(
        name,
        frame,
        f"Table {number}, the SVM: the kernel (scikit-learn's C = 1, Platt's sigmoid)",
        digits=4,
    )
    if study.fast:
        return
    off = (frame.round(4) - frame.loc["published"]).abs().drop("published").median(axis=1)
    equal = {
        kind: int(np.isclose(row.round(4), published["SVM"]).sum())
        for kind, row in frame.iterrows()
    }
    study.text(
        f"**The SVM of Table {number}.** With a Gaussian kernel {equal['Gaussian, ours']} of {len(gaussian)} numbers "
        f"are the published ones to the last digit (median distance {off['Gaussian, ours']:.4f}), with a linear one "
        f"{equal['linear, ours']} (median distance {off['linear, ours']:.4f}). The source names a linear kernel; its "
        f"column is nearer to scikit-learn's default, which is Gaussian."
    )


def images_that_differ(study: Study, trials: Trials, published: pd.DataFrame) -> str:
    """What explains the other columns of Table 1.4 that are not ours; returns all of it in a few words."""
    forest = next(one for one in trials.first if one.machine.name == "RFC")
    on_training = judged(
        forest.machine, forest.y, forest.scored._replace(labelled=forest.scored.trained)
    ).calibrated
    of_training = (
        "undefined" if on_training is None else f"{on_training.metrics[METRICS['sPCC']]:.4f}"
    )
    _, bins = by_equal_bins(forest.scored.test, *forest.scored.labelled)
    binned, name = evaluate(forest.y, y_prob=bins).metrics[METRICS["AUROC"]], "RFC" + CALIBRATED
    hits, biases = trials.values["Accuracy", "NN"], trials.values["Bias", "NN"]
    study.text(
        f"**The forest.** Plain, ours has an sPCC of {trials.spread('sPCC', 'RFC').mean:.4f} and an AUROC of "
        f"{trials.spread('AUROC', 'RFC').mean:.4f}; published are {published.loc['sPCC', 'RFC']:.4f} and "
        f"{published.loc['AUROC', 'RFC']:.4f}. Calibrated, the published AUROC falls to "
        f"{published.loc['AUROC', name]:.4f} and the sPCC to {published.loc['sPCC', name]:.4f}; ours are "
        f"{trials.spread('AUROC', name).mean:.4f} and {trials.spread('sPCC', name).mean:.4f}. A strictly increasing "
        f"map does not change an AUROC, coarse bins do: with ten equal ones the first repeat has {binned:.4f}. Scores "
        f"of the forest's own training rows as labelled scores lower its sPCC to {of_training}. Both go the published "
        f"way, and neither as far.",
        f"**The network.** Ours has an accuracy of {min(hits):.4f} to {max(hits):.4f} over {trials.repeats} seeds and "
        f"a bias of {min(biases):+.4f} to {max(biases):+.4f}; published are {published.loc['Accuracy', 'NN']:.4f} and "
        f"{published.loc['Bias', 'NN']:+.4f}. Its training is not described.",
    )
    return (
        "SVM: its numbers are those of a Gaussian kernel, not of the linear one that the text names; RFC (cal.): "
        "densities not described; NN: training not described"
    )
