"""The report on what can be told apart, and on real answers."""

from __future__ import annotations

from nps import party, published, separable
from nps.algorithms import Size
from nps.reductions import ROWS_6, ROWS_8, ROWS_ROC, STEP_1, rows_7
from nps.trials import Trial, cells, judge, spreads, track, values
from study import Spread, Study


def told_apart(study: Study, trials: list[Trial], runs: dict[str, str]) -> None:
    """Is the ranking of the algorithms more than chance?"""
    study.heading("Which algorithms can be told apart (sections 5.4 and 6)")
    table = separable.separability(trials)
    n = trials[0].evaluations[published.REGRESSION].n_samples
    study.table(
        "told_apart",
        table,
        f"Pairs of algorithms on the same {n:g} validation rows; paired, adjusted for all pairs, mean ± standard "
        "deviation over the surveys. Published gaps are set against the mean paired standard error of ours "
        "(Bonferroni). τ: order of our means and the published order",
    )
    metric = f"reduced/{STEP_1}/accuracy"
    comparison = separable.review(
        runs, study.folder, metric, "Which algorithm predicts the customer's group?"
    )
    found, pairs = separable.told_apart(comparison)
    beyond = (
        table["published gaps beyond chance"]
        .replace("–", "0")
        .astype(int)
        .drop(list(separable.AREAS))
    )
    most = int(beyond.max())
    leader = published.TABLE_7.loc["Accuracy"].idxmax()
    leads = table.loc[metric, "published leader's gaps beyond chance"]
    claim = (
        f" Section 5.4 says that {leader} “outperforms the rest algorithms” in the accuracy of 3 x 3 + IM: "
        "that is beyond "
        f"chance for {leads} of its {len(trials[0].evaluations) - 1} gaps."
    )
    study.text(
        f"Median survey, by accuracy of 3 x 3 + IM: {comparison.summary()}",
        f"{found} of {pairs} pairs are told apart there; the whole is in [review.md](review.md), and logged as a run.",
        f"Of the published gaps of a metric, at most {most} of {pairs} are larger than chance on "
        f"{published.FIGURE_7.sum()} rows allows, and {int(beyond.sum())} of {pairs * len(beyond)} over all "
        "these metrics." + (claim if leader in trials[0].evaluations else ""),
    )
    study.outcome(
        "Sections 5.4, 6 (ranking of the algorithms)",
        reproduced="yes, with paired differences",
        near=f"{metric}: {table.loc[metric, 'told apart']} of {pairs} pairs told apart in a survey; published "
        "gaps beyond "
        f"chance {beyond[metric]} of {pairs}",
        not_possible=f"on {n:g} rows {pairs - found} of {pairs} pairs cannot be told apart (median survey)",
    )


def real_answers(study: Study, size: Size, seed: int) -> None:
    """The same on a public survey."""
    study.heading("Real ordered answers: party identification (ANES 1996)")
    seeds = range(seed, seed + study.pick(fast=1, full=10))
    trials = [
        judge(party.split(k), party.PARTY, k, size, scaled=party.SCALED_HERE)
        for k in study.track(seeds, "splits of ANES 1996")
    ]
    steps = {"7 x 7": ROWS_6, "3 x 3 + IM": rows_7(party.PARTY), "2 x 2 + IM": ROWS_8 | ROWS_ROC}
    n = trials[0].evaluations[published.REGRESSION].n_samples
    people = n + len(party.split(seed).y_train)
    track(
        "ANES 1996",
        trials,
        {f"{s}: {k}": v for s, rows in steps.items() for k, v in rows.items()},
        rows_of_data=int(people),
    )
    study.text(
        f"{people:g} people, eight features, seven answers from strong democrat to strong republican; {len(trials)} "
        f"split(s) of 80 and 20%, {n:g} validation rows each. {party.PARTY.describe()}."
    )
    for number, (step, rows) in enumerate(steps.items(), 1):
        caption = f"ANES 1996, {step}: mean ± standard deviation over {len(trials)} split(s)"
        study.table(f"anes_{number}", cells(spreads(trials, rows)), caption)
    first = trials[0].evaluations[published.REGRESSION]
    study.figure(
        "anes_reduced",
        first.figures()["reduced_side"],
        "ANES 1996, logistic regression, first split: 2 x 2 + IM.",
    )
    gaps = {
        s: spreads(trials, {"Accuracy": rows["Accuracy"]})[published.REGRESSION].iloc[0].mean
        for s, rows in steps.items()
    }
    metric = f"reduced/{party.PARTY.steps[0].name}/accuracy"
    frame = separable.pairs_told_apart(trials, metric)
    study.text(
        "The steps do the same as on the surveys: the accuracy of the logistic regression goes "
        f"from {gaps['7 x 7']:.2f} to {gaps['3 x 3 + IM']:.2f} by the relaxed step and stays by the strict one. "
        f"On {n:g} rows, {frame} pairs of algorithms are told apart by the accuracy of 3 x 3 + IM."
    )
    accuracy = values(trials, metric).mean()
    if "CNN" in accuracy:
        plain = Spread.of(
            [party.without_pools(party.split(k), k, size).metrics[metric] for k in seeds]
        )
        study.text(
            f"The CNN has {accuracy['CNN']:.2f} there, and the next {accuracy.drop('CNN').min():.2f}. A pool keeps its "
            "largest value and forgets which feature it came from. Nine satisfactions say much the same, so "
            "that little "
            "is lost on the surveys; eight features of different kinds do not. Without pools (size 1 instead of 4) the "
            f"same network has {plain.mean:.2f}."
        )
    study.outcome(
        "Section 5 on real answers",
        reproduced="in addition: ANES 1996",
        near=f"accuracy of {published.REGRESSION} {', '.join(f'{s}: {v:.2f}' for s, v in gaps.items())}",
    )
