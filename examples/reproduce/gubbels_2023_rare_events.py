"""Gubbels (2023), sections 0.2-0.4, chapter 2 and appendix B: how many platforms are there among 29,712 websites?

``python examples/reproduce/gubbels_2023_rare_events.py [--fast] [--output FOLDER]``
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from cmtrack import evaluate
from rare_events import audit, figures, published
from rare_events.beyond import honest_scores, what_calibration_needs
from rare_events.by_themselves import published_alone
from rare_events.ensemble import misread_votes
from rare_events.introduction import introduction
from rare_events.layout import FAST, FULL
from rare_events.methods import BUILD, CONVENTION, Data, Method, method_table, repeated, weighted
from rare_events.section_0 import calibration_formulas, platt_scaling
from rare_events.tables import as_printed, comparable, counted, means, side_by_side, stacked
from rare_events.tracking import tracked
from rare_events.variants import CALIBRATIONS
from study import Spread, Study, beside, nearness, study_command

TITLE = "Rare events: four methods to count platforms by their websites"
SOURCE = (
    "Gubbels, L. W. G. (2023). The sample Pearson Correlation Coefficient for classification models and identifying "
    "platform economy businesses from web-scraped data. Master's thesis, Eindhoven University of Technology. "
    "Sections 0.1-0.4, chapter 2 and appendix B."
)
LAST = published.TABLE_2_4


def main(study: Study) -> None:
    """The source, in its order."""
    layout = study.pick(fast=FAST, full=FULL)
    data = Data(layout, layout.target(), layout.held_out())
    introduction(study, data)
    published_alone(study)
    done = {
        "state of the art": repeated(study, data, "state of the art", BUILD["state of the art"])
    }
    calibration_formulas(study, data, done["state of the art"])
    platt_scaling(study)
    state_of_the_art(study, data, done["state of the art"])
    by_weight = {weight: weighted(study, data, weight) for weight in layout.weights}
    class_weights(study, data, by_weight, done["state of the art"])
    done["class weights"] = by_weight[layout.weights[-1]]
    for method, table in (("bootstrap", "Table 2.2"), ("ensemble", "Table 2.3")):
        done[method] = repeated(study, data, method, BUILD[method])
        method_table(study, data, method, table, done[method])
        (bootstrap_words if method == "bootstrap" else ensemble_words)(study, data, done[method])
    summary(study, data, done)
    honest_scores(study, data)
    what_calibration_needs(study, data)
    tracked(study, data, done, by_weight)


def state_of_the_art(study: Study, data: Data, done: Method) -> None:
    """Table 2.1, Figures 2.1 and 2.2."""
    y = data.target.y
    method_table(study, data, "state of the art", "Table 2.1", done)
    own, printed = means(done.frames), published.TABLES["Table 2.1"]
    auroc = Spread.of(stacked(done.frames).xs(("none", "probabilities"), level=(1, 2))["AUROC"])
    counts = {c: own.loc[(c, "probabilities"), "Pos. Est."] for c in CALIBRATIONS}
    study.text(
        f"The difficulty is near: AUROC {beside(auroc, printed.loc[('No', 'Yes'), 'AUROC'], digits=4)}. Our websites "
        f"give {own.loc[('none', 'labels'), 'Pos. Est.']:.0f} labels above one half "
        f"({printed.loc[('No', 'No'), 'Pos. Est.']:.0f}), and probabilities that sum to "
        f"{own.loc[('none', 'probabilities'), 'Pos. Est.']:.0f} ({printed.loc[('No', 'Yes'), 'Pos. Est.']:.0f}).",
        f"The thesis' pattern is there: calibration with in-sample scores takes the sum down, to "
        f"{counts['in-sample']:.0f} ({printed.loc[('Yes', 'Yes'), 'Pos. Est.']:.0f}), and leaves it at "
        f"{counts['in-sample'] / data.layout.positives:.1f} times the truth of {data.layout.positives}. With "
        f"out-of-fold scores the mean estimate is {counts['out-of-fold']:.0f}, "
        f"with held-out ones {counts['held-out']:.0f}. No label and no machine differs between these.",
    )
    scored = done.repeats[0]
    study.figure(
        "figure-2.1",
        figures.histograms(
            y, scored, "in-sample", "State of the art, calibrated with in-sample scores"
        ),
        "Figure 2.1. Scores of one machine by class, before and after calibration",
    )
    high = 0.7
    negatives = scored.target[y == 0]
    after = scored.estimate("in-sample").posterior(scored.target)
    evaluation = evaluate(
        y, y_prob=scored.target, labels=[0, 1], calibration=scored.labelled["out-of-fold"]
    )
    study.text(
        f"Others that look like platforms are the bump of the thesis: {int((negatives > high).sum())} others score "
        f"above {high}, more than the {int((scored.target[y == 1] > high).sum())} platforms there. Recalibrated "
        f"probabilities reach {after.max():.2f} at most."
    )
    study.outcome(
        "Figure 2.1",
        reproduced="four histograms",
        near=f"{int((negatives > high).sum())} others above {high}; the "
        "bump is a shoulder rather than a second peak",
    )
    drawn, meet = figures.rates(evaluation, "State of the art")
    study.figure(
        "figure-2.2a", drawn, "Figure 2.2a. True positive and true negative rate by threshold"
    )
    study.figure(
        "figure-2.2b", evaluation.figures()["roc"], "Figure 2.2b. ROC curve of the same machine"
    )
    rows = evaluation.metrics
    study.text(
        f"The rates meet at {meet:.2f} (published: around {published.SEPARATING_THRESHOLD}). AUROC is "
        f"{rows['binary/roc_auc']:.3f} and sPCC {rows['spcc/binary']:.3f}: the first does not know how rare platforms "
        "are. At the prevalence of the training set the same scores would have an sPCC of "
        f"{_spcc_at_half(y, scored.target):.3f}.",
    )
    study.outcome(
        "Figure 2.2",
        reproduced="both panels",
        near=f"rates meet at {meet:.2f} (published about "
        f"{published.SEPARATING_THRESHOLD}), AUROC {rows['binary/roc_auc']:.4f} "
        f"({printed.loc[('No', 'Yes'), 'AUROC']})",
    )


def _spcc_at_half(y: np.ndarray, scores: np.ndarray) -> float:
    """sPCC if both classes were equally frequent, by weights."""
    weight = np.where(y == 1, 0.5 / y.mean(), 0.5 / (1 - y.mean()))
    return evaluate(y, y_prob=scores, labels=[0, 1], sample_weight=weight).metrics["spcc/binary"]


def class_weights(study: Study, data: Data, by_weight: dict[float, Method], before: Method) -> None:
    """Tables B.1 and B.2, Figures 2.3 and 2.4."""
    for table in ("Table B.1", "Table B.2"):
        study.heading(f"{table}: class weights")
        printed = published.weights_of(table)
        chosen = {
            w: m
            for w, m in by_weight.items()
            if f"{w:.4f}" in {f"{float(text):.4f}" for text in printed}
        }
        rows, ours, theirs = [], [], []
        for weight, done in chosen.items():
            own = published.WEIGHTS.loc[as_printed(weight)]
            rows.append(side_by_side(done.frames, own).assign(weight=f"{weight:.4f}"))
            pair = comparable(done.frames, own)
            for frame, several in zip(pair, (ours, theirs), strict=True):
                several.append(frame.rename(index=lambda name, w=weight: f"weight {w:.1f}, {name}"))
        frame = pd.concat(rows).set_index("weight").reset_index()
        caption = CONVENTION.format(n=data.layout.repeats["class weights"])
        study.table(table.lower().replace(" ", "-"), frame, f"{table}. {caption}")
        study.outcome(
            table,
            reproduced=f"{len(chosen)} of {len(printed)} weights, all variants",
            near=nearness(pd.concat(ours), pd.concat(theirs), digits=3),
            not_possible="the thesis' websites are not public",
        )
    trend = pd.concat({w: means(m.frames) for w, m in by_weight.items()}, names=["weight"])
    study.heading("Figures 2.3 and 2.4: class weights")
    study.figure(
        "figure-2.3",
        figures.by_weight(trend, published.WEIGHTS),
        "Figure 2.3. Bias and sPCC by the weight of the positive class",
    )
    first, last = data.layout.weights[0], data.layout.weights[-1]
    estimates = trend["Pos. Est."].unstack(["calibration", "output"])
    theirs = published.WEIGHTS["Pos. Est."].unstack(["BayesCal?", "Proba?"])
    spans = {
        "summed": (
            estimates["none", "probabilities"].loc[[first, last]],
            theirs["No", "Yes"].loc[["1.2589", "100.0"]],
        ),
        "in-sample": (
            estimates["in-sample", "probabilities"].loc[[first, last]],
            theirs["Yes", "Yes"].loc[["1.2589", "100.0"]],
        ),
    }
    words = {
        name: f"{own.iloc[0]:.0f} to {own.iloc[1]:.0f} ({their.iloc[0]:.0f} to {their.iloc[1]:.0f})"
        for name, (own, their) in spans.items()
    }
    first_sum = published.TABLES["Table 2.1"].loc[("No", "Yes"), "Pos. Est."]
    falls = (
        means(before.frames).loc[("none", "probabilities"), "Pos. Est."]
        / spans["summed"][0].iloc[0],
        first_sum / spans["summed"][1].iloc[0],
    )
    r = trend.xs("probabilities", level="output")["sPCC"].unstack("calibration")
    their_r = published.WEIGHTS.xs("Yes", level="Proba?")["sPCC"].unstack("BayesCal?")
    held, fold = (estimates[c, "probabilities"] for c in ("held-out", "out-of-fold"))
    study.text(
        f"Without calibration the estimate grows with the weight, as published: from {words['summed']}. Our scores are "
        "nearer to the middle, so that the sums are higher: real websites are easier to be sure of. Calibrated with "
        "in-sample scores the estimate goes from "
        f"{words['in-sample']}. It moves with how closely the machine fits its own training rows, not with the target; "
        "that a weight gives the truth is a coincidence. Held-out scores give "
        f"{held.min():.0f} to {held.max():.0f} and out-of-fold ones {fold.min():.0f} to {fold.max():.0f} over all "
        "weights: for a count the weight hardly matters, because a weight hardly changes the order of the scores.",
        f"From the state of the art to the first weight, with {published.TRAINED_NEGATIVES['class weights']} others in "
        f"training instead of {published.TRAINED_NEGATIVES['state of the art']}, the sum falls by a factor of "
        f"{falls[0]:.1f} here and of {falls[1]:.1f} in the thesis. More others alone do not explain the second; the "
        "two training sets may differ in more than size, as sections 2.1.1 and 2.2 do.",
        f"Calibration raises the sPCC of probabilities at {int((r['in-sample'] > r['none']).sum())} of {len(r)} "
        f"weights ({int((their_r['Yes'] > their_r['No']).sum())} of {len(their_r)} published).",
    )
    frame = by_weight[last].repeats[0]
    study.outcome(
        "Figure 2.3",
        reproduced=f"{len(by_weight)} weights, published points in the same axes",
        near=f"estimates from the first to the last weight: {words['summed']} not calibrated, {words['in-sample']} "
        "calibrated in-sample",
        not_possible="that the published calibrated bias grows with the weight: it is of one training set, see above",
    )
    study.figure(
        "figure-2.4",
        figures.histograms(
            data.target.y,
            frame,
            "in-sample",
            f"Class weight {last:.0f}, calibrated with in-sample scores",
        ),
        "Figure 2.4. As Figure 2.1, weight 100",
    )
    most = frame.estimate("in-sample").posterior(frame.target).max()
    study.text(
        f"Recalibrated probabilities reach {most:.2f} at most (published: around {published.LARGEST_CALIBRATED}). "
        "Where they stay below one half no website is labelled, and accuracy is 1 minus the prevalence, balanced "
        "accuracy one half and MCC undefined (0 in the thesis). Means over the repeats that have one are shown.",
    )
    study.outcome(
        "Figure 2.4",
        reproduced="four histograms",
        near=f"largest recalibrated probability {most:.2f} "
        f"(published about {published.LARGEST_CALIBRATED})",
    )


def bootstrap_words(study: Study, data: Data, done: Method) -> None:
    """What Table 2.2 shows, and Figure 2.5."""
    own, printed = means(done.frames), published.TABLES["Table 2.2"]
    machine = done.repeats[0].machine
    study.text(
        f"Each of {machine.n_machines} machines has {published.TRAINED_POSITIVES} platforms drawn with replacement "
        f"and {100 * machine.negative_share:.0f}% of the others; the thesis does not say how many it took of these. "
        f"The sum of probabilities, {own.loc[('none', 'probabilities'), 'Pos. Est.']:.0f} "
        f"({printed.loc[('No', 'Yes'), 'Pos. Est.']:.0f}), depends on that. Out of fold means here: by the machines "
        "that did not draw the row. In-sample calibration gives "
        f"{own.loc[('in-sample', 'probabilities'), 'Pos. Est.']:.0f} "
        f"({printed.loc[('Yes', 'Yes'), 'Pos. Est.']:.0f}), honest scores "
        f"{own.loc[('out-of-fold', 'probabilities'), 'Pos. Est.']:.0f} (out of bag) and "
        f"{own.loc[('held-out', 'probabilities'), 'Pos. Est.']:.0f} (held out).",
    )
    scored = done.repeats[0]
    y = data.target.y
    study.figure(
        "figure-2.5",
        figures.histograms(y, scored, "in-sample", "Bootstrap, calibrated with in-sample scores"),
        "Figure 2.5. As Figure 2.1, mean of the bootstrap's machines",
    )
    above = int((scored.target[y == 0] > scored.target[y == 1].max()).sum())
    study.outcome(
        "Figure 2.5",
        reproduced="four histograms",
        near=f"{above} others score above all platforms (the thesis says that there are some)",
    )


def ensemble_words(study: Study, data: Data, done: Method) -> None:
    """What Table 2.3 shows, and what would give the published one."""
    own, printed = (
        means(done.frames).loc[("none", "probabilities")],
        published.TABLES["Table 2.3"].loc[("No", "Yes")],
    )
    scored = done.repeats[0]
    misread = misread_votes(scored.machine, data.target.counts, 0)
    wrong = evaluate(data.target.y, y_prob=misread, labels=[0, 1]).metrics
    tied = int((scored.target == scored.target.max()).sum())
    held = means(done.frames).loc[("held-out", "labels"), "Pos. Est."]
    single = scored.machine.machines_[0]
    alone = evaluate(
        data.target.y, y_prob=single.predict_proba(data.target.counts), labels=[0, 1]
    ).metrics
    study.text(
        f"Here the ensemble is not poor: AUROC {own['AUROC']:.3f} ({printed['AUROC']}), sPCC {own['sPCC']:.3f} "
        f"({printed['sPCC']}). It votes with labels, as Algorithm 2 says, so that "
        f"{100 * (scored.target == 0).mean():.1f} "
        f"% of the websites get no vote at all and share one score; a single machine's probabilities have AUROC "
        f"{alone['binary/roc_auc']:.3f}.",
        f"{tied} websites have every vote and share the highest score. A count below that cannot be labelled without "
        f"telling equals apart: calibrated with held-out scores, the mean number of labels is {held:.0f}. Equal scores "
        "may also be why the thesis has no calibrated labels here, where its rule asks for "
        f"{audit.label_counts().loc['Table 2.3', 'rounded up']}.",
        "The published AUROC is near that of chance, and chance is what machines give that read the wrong words: "
        "with the columns of each machine's matrix in another order than that of the target, our ensemble has AUROC "
        f"{wrong['binary/roc_auc']:.3f}, {int((misread > 0.5).sum())} labels and a sum of {misread.sum():.1f} "
        f"({printed['AUROC']}, 0 and {printed['Pos. Est.']:.1f} published). In Algorithm 1 every machine makes a "
        "TF-IDF matrix of its own, so a mismatch of columns is possible; the thesis' code is not available, so this "
        "is a guess.",
    )


def summary(study: Study, data: Data, done: dict[str, Method]) -> None:
    """Table 2.4."""
    study.heading("Table 2.4: estimates and their errors")
    y, actual = data.target.y, data.layout.positives
    rows = []
    for method, row in LAST.items():
        of_in_sample = counted(y, done[method].repeats, "in-sample")
        bias = stacked(done[method].frames).xs(("in-sample", "probabilities"), level=(1, 2))["Bias"]
        cells: dict[str, object] = {
            "method": method,
            "actual positives": actual,
            "Pos. Est., in-sample": beside(of_in_sample["estimate"], row.estimate, digits=1),
            "sd, labels only": beside(of_in_sample["labels-only sd"], row.sd, digits=1),
            "Bias": beside(Spread.of(bias), row.bias, digits=4),
        }
        for calibration in ("out-of-fold", "held-out"):
            found = counted(y, done[method].repeats, calibration)
            cells[f"estimate, {calibration}"] = beside(found["estimate"], digits=1)
            interval = f"{found['count_low'].mean:.0f} to {found['count_high'].mean:.0f}"
            cells[f"interval, {calibration}"] = (
                f"{interval}, has the truth in {100 * found['contains']:.0f}%"
            )
        rows.append(cells)
    repeats = " / ".join(str(data.layout.repeats[m]) for m in LAST)
    study.table(
        "table-2.4",
        pd.DataFrame(rows),
        f"Table 2.4. {CONVENTION.format(n=repeats)}. Intervals: means of the "
        "ends over the training sets",
    )
    printed = audit.published_sd()
    away = printed["truth is away by (sd)"].abs()
    study.table(
        "table-2.4-sd",
        printed.reset_index(),
        "Table 2.4 by itself: the published sd is sqrt(Σp(1-p)), and the truth is nowhere near",
        digits=3,
    )
    least = min(LAST, key=lambda m: abs(LAST[m].bias))
    said = LAST[published.LOWEST_BIAS_AND_SD]
    study.text(
        "The published sd is the square root of Σp(1 - p) over the calibrated probabilities: with the estimate it "
        "gives a Σp² that is possible in each row. That is how much the labels scatter if every probability is "
        "right. It knows neither that the prevalence was estimated nor that the densities were, so the truth lies "
        f"{away.min():.0f} to {away.max():.0f} of it away.",
        f"Section 2.3.5 says that class weights have the lowest bias and sd ({said.bias} and {said.sd}). In the same "
        f"table {least} has {LAST[least].bias} and {LAST[least].sd}.",
    )
    held = {m: means(done[m].frames).loc[("held-out", "probabilities"), "Pos. Est."] for m in LAST}
    study.outcome(
        "Table 2.4",
        reproduced="four methods, with the published sd and with intervals",
        near=f"held-out estimates {min(held.values()):.0f} to {max(held.values()):.0f} for {actual} platforms",
        not_possible=f'the sd as an error: the truth is {away.min():.0f}-{away.max():.0f} sd away; "class weights '
        'have the lowest bias and sd" is not what the table says',
    )


if __name__ == "__main__":
    study_command("gubbels_2023_rare_events", TITLE, SOURCE, main)()
