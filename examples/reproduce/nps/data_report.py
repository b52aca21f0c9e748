"""The report on the data and the algorithms: sections 5.1 and 5.2, Tables A1 to A7."""

from __future__ import annotations

from dataclasses import fields

import pandas as pd

from nps import algorithms, published
from nps.network import INSTALL, has_torch
from nps.survey import Market, Split
from nps.trials import Trial, note
from study import Spread, Study, beside


def data_and_algorithms(
    study: Study, market: Market, trials: list[Trial], splits: list[Split]
) -> None:
    """Sections 5.1 and 5.2, Tables A1 to A7."""
    study.heading("The data and the algorithms (sections 5.1, 5.2, appendix B)")
    valid = len(splits[0].y_valid)
    study.text(
        f"The source's survey is confidential. Ours are {len(trials)} generated surveys of "
        f"{len(splits[0].y_train) + valid} customers, {valid} of them for validation, with the source's nine "
        "attributes, scores 0 to 10, and answers that are missing where an attribute was not used. The parameters of "
        "the generator were chosen once, by hand and a short random search, so that the shares of the groups and the "
        "logistic regression are near those of Figure 7; no other algorithm was looked at for it. Tables hold means "
        "over all surveys; figures, runs and the review show the survey with the median accuracy of the logistic "
        "regression. The parameters are:",
        "\n".join(f"* `{field.name}` {getattr(market, field.name)}" for field in fields(market)),
        "What each means and why it has its value stands in `nps/survey.py`. How the source treats missing answers is "
        "not said; ours are replaced by the attribute's median, inside the pipeline, so that validation rows take the "
        "median of training rows.",
    )
    groups = pd.DataFrame(
        [pd.cut(s.y_valid, [-1, 6, 8, 10], labels=published.GROUPS).value_counts() for s in splits]
    )
    known = published.FIGURE_7.sum(axis=1)
    scale = known.sum() / valid
    shares = {
        g: beside(Spread.of(groups[g] * scale), k, digits=0)
        for g, k in zip(published.GROUPS, known, strict=True)
    }
    study.table(
        "shares",
        pd.DataFrame([shares], index=pd.Index(["customers"], name="actual")),
        f"Actual groups in {known.sum()} validation rows. {note(trials)}",
    )
    study.outcome(
        "Sections 5.1, 5.2 (data, split)",
        reproduced=f"{len(trials)} generated surveys",
        near=f"actual groups {', '.join(f'{k}: {v}' for k, v in shares.items())}",
        not_possible="the survey is confidential; how missing answers were treated is not said",
    )
    table = algorithms.parameter_table(trials[0].classifiers)
    study.table(
        "parameters",
        table.set_index("table"),
        "Tables A1 to A7 and the parameters of our classifiers",
    )
    study.text("The source leaves open, and we chose:")
    study.bullets(*algorithms.LEFT_OPEN)
    if not has_torch():
        study.text(
            f"**PyTorch is not installed, so that the CNN is left out.** It comes with `{INSTALL}`."
        )
    study.outcome(
        "Tables A1-A7 (parameters)",
        reproduced="yes" if has_torch() else "all but the CNN, which needs PyTorch",
        near=f"{int((table['as printed'] == 'yes').sum())} of {len(table)} parameters set as printed",
        not_possible=f"{len(algorithms.LEFT_OPEN)} choices are not printed, and listed",
    )
