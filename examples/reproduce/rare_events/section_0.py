"""Sections 0.2 and 0.4: equations 2-7 and Platt scaling."""

from __future__ import annotations

import numpy as np

from cmtrack import estimate_prevalence
from rare_events import audit, preliminaries
from rare_events.methods import BUILD, Data, Method
from rare_events.variants import score
from study import Study


def calibration_formulas(study: Study, data: Data, done: Method) -> None:
    """Equations 2-7 of section 0.2."""
    study.heading("Section 0.2: Bayesian calibration")
    scored = done.repeats[0]
    estimate = scored.estimate("held-out")
    wrong, right = audit.mixed_priors(**audit.PRIOR_EXAMPLE)
    trained = 0.5
    printed = preliminaries.printed_equation_3(estimate, scored.target, trained)
    posterior = estimate.posterior(scored.target, "bins")
    example = audit.PRIOR_EXAMPLE
    study.text(
        "Equations 2-3 and 5 have the training prevalence above the line and the target's below. With densities "
        f"{example['f1']} and {example['f0']}, a training prevalence of {example['trained']} and {example['target']} "
        f'in the target, equation 3 gives a "probability" of {wrong:.2f}; with one prior it is {right:.4f}.',
        f"For the first machine of the state of the art, with held-out scores, equation 3 as printed gives values up "
        f"to {printed.max():.1f}, {100 * (printed > 1).mean():.1f}% of them above 1, with a sum of "
        f"{printed.sum():.0f} over the target. With one prior the largest is {posterior.max():.3f} and the sum "
        f"{posterior.sum():.1f}, which is the estimated count {estimate.count:.1f}.",
    )
    study.outcome(
        "eq. 2-3, 5",
        reproduced="with one prior throughout",
        near=f"sum {posterior.sum():.1f} = count",
        not_possible=f"as printed: values up to {printed.max():.1f}",
    )
    votes = score(
        BUILD["ensemble"](data.layout, 0),
        data.layout.training("ensemble", 0),
        data.target,
        data.held_out,
        folds=data.layout.folds,
    )
    distinct = np.unique(votes.target)
    of_set = estimate_prevalence(distinct, calibration=votes.labelled["held-out"], density="bins")
    of_set = of_set.refused or of_set  # the source's method does not test the fit
    study.text(
        f"Equation 6 multiplies over a *set* of scores. Of an ensemble's {len(votes.target)} scores {len(distinct)} "
        f"are distinct, since most websites get no vote. Over the set {of_set.count:.0f} of {len(distinct)} would be "
        f"platforms; over all scores the estimate is {votes.estimate('held-out').count:.0f}, and "
        f"{data.layout.positives} are. A score counts as often as it occurs.",
    )
    study.outcome(
        "eq. 6-7",
        reproduced="maximum likelihood over all scores",
        near="the estimates of all tables below",
        not_possible="over the set of distinct scores, as printed, it counts something else",
    )


def platt_scaling(study: Study) -> None:
    """Section 0.4."""
    study.heading("Section 0.4: Platt scaling")
    found = preliminaries.platt()
    errors = found["error of Platt's probabilities"]
    study.text(
        "The thesis says that Platt scaling assumes normal scores. It needs log odds that are linear in the score. "
        f"Exponential scores have them, and the error is {errors['exponential, not normal']:.4f}; normal scores of "
        f"unequal variances do not, and it is {errors['normal, unequal variances']:.4f}. That it spoils probabilities "
        f"that are right already is true: {errors['probabilities that are right already']:.4f}.",
    )
    study.table(
        "platt",
        found.reset_index(),
        "Platt scaling of 5,000 + 5,000 labelled scores of known densities: mean "
        "absolute error, and counts of 5,000 positives among 100,000",
        digits=4,
    )
    study.outcome(
        "section 0.4 (Platt scaling)",
        reproduced="four families of scores with known densities",
        near=f"error {errors['normal, equal variances']:.4f} and {errors['exponential, not normal']:.4f} where the log "
        "odds are linear",
        not_possible='"assumes normal scores": neither needed nor enough',
    )
