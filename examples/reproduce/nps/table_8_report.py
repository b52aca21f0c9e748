"""The report on Table 8: beside our surveys, and recomputed from what is published."""

from __future__ import annotations

import pandas as pd

from nps import published, recomputed
from nps.reductions import ROWS_8, expanded
from nps.trials import Trial, cells, columns, means, note, spreads
from study import Spread, Study, nearness


def table_8(study: Study, trials: list[Trial]) -> None:
    """All metrics of the positive group."""
    study.heading("Table 8")
    ours = spreads(trials, ROWS_8)
    study.table("table_8", cells(ours, published.TABLE_8), f"Table 8, 2 x 2 + IM. {note(trials)}")
    wrong = list(recomputed.CAUSES)
    names = columns(trials)
    misread = [{name: recomputed.misread_of(t.evaluations[name]) for name in names} for t in trials]
    as_printed = pd.DataFrame(
        {n: {r: Spread.of([m[n][r] for m in misread]) for r in wrong} for n in names}
    )
    study.table(
        "table_8_misread",
        cells(as_printed, published.TABLE_8),
        "The same surveys, with the mistakes that Table 8 makes (next section); "
        f"five rows come near. {note(trials)}",
    )
    right = [row for row in published.TABLE_8.index if row not in wrong]
    known = published.TABLE_8[names]
    study.text(
        f"Nine rows by correct formulas: {nearness(means(ours).loc[right], known.loc[right])}. Five rows that "
        "are wrong "
        f"in the source: {nearness(means(ours).loc[wrong], known.loc[wrong])}; computed with the same mistakes: "
        f"{nearness(means(as_printed), known.loc[wrong])}."
    )
    study.outcome(
        "Table 8",
        reproduced="yes, on generated surveys",
        near=f"nine sound rows: {nearness(means(ours).loc[right], known.loc[right])}; five misread rows, "
        "misread the same "
        f"way: {nearness(means(as_printed), known.loc[wrong])}",
        not_possible=f"{', '.join(wrong)} are wrong in all columns",
    )


def table_8_recomputed(study: Study, trials: list[Trial]) -> None:
    """What Figure 7, and the published numbers among themselves, say about Table 8."""
    study.heading("Table 8 recomputed from what is published")
    table = recomputed.table_8(expanded(published.FIGURE_7))
    study.table(
        "table_8_exact",
        table,
        "Logistic regression, from the matrix of Figure 7 by the public face",
        digits=6,
    )
    sums = recomputed.identities()
    held = recomputed.holds(sums)
    study.table(
        "identities",
        sums.assign(**{"is 1 in columns": held}),
        "Sums of published rates that must be 1",
    )
    everyone = len(published.ALGORITHMS)
    broken = [name for name, n in held.items() if n == 0]
    positives = int(published.FIGURE_7[1:].sum())
    fits, ranges = recomputed.recovered(published.ALGORITHMS, positives)
    study.text(
        f"{' and '.join(broken)} fail in all {everyone} columns: the negative group is one class, so that NIMR and "
        f"NPIMR are 0. Where do the numbers come from? We tried every matrix of {published.FIGURE_7.sum()} whole "
        "customers:"
    )
    study.table(
        "matrices",
        fits,
        "How many 2 x 2 + IM matrices give all 14 published numbers of an algorithm",
    )
    found = [name for name in published.ALGORITHMS if fits.loc[fits.index[1], name] > 0]
    none = [name for name in published.ALGORITHMS if name not in found]
    study.text(
        f"By the formulas of Table 5 there is no such matrix for {int((fits.iloc[0] == 0).sum())} of {everyone} "
        f"algorithms. With the mistakes there is one for {len(found)}, and for each of these also one with the "
        f"{positives} positives of Figure 7, as if all were judged on the same customers: the same mistakes "
        "run through "
        f"their columns. For {', '.join(none)} no matrix fits; "
        f"{_leave_one_out(none)} The matrices that fit say what Table 8 should have printed:"
    )
    study.table(
        "table_8_recovered",
        ranges[found],
        f"Table 8 corrected, with {positives} positives (range over the matrices)",
    )
    row = "Mathews Correlation Coefficient"
    printed, best = (
        published.TABLE_8.loc[row],
        ranges.loc[row, found].map(lambda text: float(text.split("–")[0])),
    )
    study.text(
        f"By the printed correlation {printed.idxmax()} leads ({printed.max():.2f}) and {published.REGRESSION} is last "
        f"({printed[published.REGRESSION]:.2f}). Corrected, they are {ranges.loc[row, printed.idxmax()]} and "
        f"{ranges.loc[row, published.REGRESSION]}, and the largest is that of {best.idxmax()}."
    )
    exact = int((table["which gives"].round(2) == table["published"].astype(float)).sum())
    study.outcome(
        "Table 8, logistic regression",
        reproduced="exactly, from Figure 7",
        near=f"{int((table['correct'].round(2) == table['published'].astype(float)).sum())} of {len(table)} published "
        f"numbers are right; with the mistakes all {exact} round to the published ones",
        not_possible="TNR, NPV, FOR and MCC are computed with IMN = IMP, FPR over the actual positives",
    )
    study.outcome(
        "eqs. 33-36",
        reproduced="yes",
        near="; ".join(f"{name}: {n} of {everyone} columns" for name, n in held.items()),
        not_possible=f"Table 8 breaks {len(broken)} of the four",
    )


def _leave_one_out(algorithms_: list[str]) -> str:
    rows = [row for row in published.TABLE_8.index if row not in recomputed.SEARCHED]
    fitting = {
        name: [
            row
            for row in rows
            if len(recomputed.matrices_that_fit(name, misread=True, leave_out=(row,)))
        ]
        for name in algorithms_
    }
    return " ".join(
        f"for {name} also none where any one of {len(rows)} rows need not fit: more than one number there is wrong, "
        "or the mistakes are others."
        if not found
        else f"for {name} one fits where {' or '.join(found)} is left out."
        for name, found in fitting.items()
    )
