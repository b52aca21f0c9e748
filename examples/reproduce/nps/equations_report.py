"""The report on groupings and equations: sections 3 and 4, appendix A."""

from __future__ import annotations

import pandas as pd

from cmtrack import Grouping
from nps import formulas, published
from nps.reductions import STEP_2, expanded
from nps.trials import Trial
from study import Study


def groupings(study: Study) -> None:
    """Figures 3 to 5, equations 21 to 23."""
    study.heading("Groupings (section 3, Figures 2 to 5)")
    study.table(
        "groupings",
        formulas.groupings(),
        "Figure 3: hits and mismatches among the pairs of a group of four",
    )
    layout = expanded(published.FIGURE_7).reduced[STEP_2].to_frame()
    study.table(
        "layout",
        layout,
        "Figures 4 and 5: the M x M + IM layout, here of Figure 7's second matrix",
        digits=0,
    )
    nps, csat = Grouping.nps(), Grouping.csat()
    study.text(
        f"Table 1 is `Grouping.nps()` ({nps.describe()}) and `Grouping.csat()` ({csat.describe()})."
    )
    study.outcome(
        "Table 1, Figures 1-5 (groupings, layout)",
        reproduced="yes, on the public face",
        near="; ".join(
            f"{name}: {r['TP']} hits, {r['IM']} mismatches"
            for name, r in formulas.groupings().iterrows()
        ),
        not_possible="Table 1b has five labels for CSAT; the preset has three groups of them",
    )


def equations(study: Study, trials: list[Trial], seed: int) -> None:
    """Sections 4.1 to 4.3, appendix A."""
    study.heading("Equations (section 4, appendix A)")
    found = formulas.checked()
    table = pd.DataFrame(found).set_index("equation")
    table[["printed", "right"]] = table[["printed", "right"]].map(lambda value: f"{value:.6g}")
    study.table("equations", table, "Equations that give other numbers as printed")
    statements, gap = formulas.held(seed, study.pick(fast=300, full=formulas.RANDOM_CASES))
    study.table(
        "statements",
        pd.DataFrame(statements).set_index("statement"),
        "Statements on random matrices of five classes",
    )
    study.text(
        f"The largest difference between equation 28 as printed and the correlation was {gap:.3f}."
    )
    study.table(
        "readings",
        formulas.readings(),
        "Table 2's formulas that have two readings with mismatches",
        digits=6,
    )
    first = trials[0].evaluations[published.REGRESSION]
    study.table(
        "limits",
        formulas.limits(first),
        "Both ends of the sweep (equations 37 to 42), logistic regression",
    )
    study.text(
        "Equations 37 to 42 let everything be negative as θ approaches 0. With “positive if the score is at least θ”, "
        "which section 2.1 describes, it is the other way round: θ → 0 makes everything positive, so that the two "
        "limits must be exchanged. The limits themselves hold.",
        "Slips that change no number: A1 has R² for R; A3 and A4 exchange predicted and actual positives; section 4.3 "
        "calls TPR precision; eq. 43 calls the false positive rate θ; eq. 12 leaves out S; eq. 16 counts to M instead "
        "of N; section 2.2 has N + 1 names for N classes; eq. 5 has G where the pair is meant; eqs. 17 and 18 have two "
        "names for one index; Table 3 prints RP for TP; the text after Table 8 prints PIMP and PPIMP. “The ROC range "
        "is the same for all algorithms” (section 4.3) holds for the false positive rate only, see Figure 10.",
    )
    by_name = {c.equation: c for c in found[::-1]}
    for name in ("eq. 19", "eq. 20", "eq. 27", "eq. 28", "eq. A10"):
        c = by_name[name]
        study.outcome(
            name,
            reproduced="corrected",
            near=f"on {c.on}: printed {c.printed:.6g}, right {c.right:.6g}",
            not_possible=c.problem,
        )
    study.outcome(
        "eqs. 21-23",
        reproduced="yes",
        near="; ".join(f"{s.holds} of {s.cases}" for s in statements[:3]) + " random cases",
    )
    study.outcome(
        "eqs. 37-42",
        reproduced="corrected",
        near="the two limits are exchanged",
        not_possible="with the rule of section 2.1, θ → 0 makes everything positive",
    )
    study.outcome(
        "Tables 2-5 (formulas)",
        reproduced="yes, cmtrack's metrics",
        near=f"{len(formulas.readings())} formulas have two readings, micro recall a wrong denominator",
        not_possible="Table 2's informedness, markedness, threat score and prevalence threshold are ambiguous with "
        "mismatches",
    )
