"""A family evaluation in plain words."""

from __future__ import annotations

import numpy as np

from cmtrack.families.metrics import FEW, family_tallies
from cmtrack.families.result import FamilyEvaluation
from cmtrack.report.words import counted, named, percent, with_interval


def verdict(evaluation: FamilyEvaluation) -> list[str]:
    """What a reader who did not run the model should know first."""
    return [sentence for part in (_overall, _errors, _hierarchy, _family, _code) for sentence in part(evaluation)]


def _overall(evaluation: FamilyEvaluation) -> list[str]:
    m, ends = evaluation.metrics, evaluation.intervals
    names = ("family/precision_micro", "family/recall_micro", "family/f1_micro")
    precision, recall, f1 = (with_interval(m[name], ends.get(name)) for name in names)
    level = f"{100 * evaluation.confidence_level:g} % intervals"
    return [
        f"On {counted(evaluation.n_samples, 'document')} with {counted(len(evaluation.codes), 'code')} in "
        f"{len(evaluation.families)} families: precision {precision}, recall {recall}, F1 {f1} over all labels "
        f"({level})."
    ]


def _errors(evaluation: FamilyEvaluation) -> list[str]:
    m = evaluation.metrics
    confused, outside = m["family/confusion_share"], m["family/oof_share"]
    if not confused + outside > 0:
        return ["There are no errors."]
    return [
        f"Of all labels, predicted and actual, {percent(confused)} are confused with a code of their family and "
        f"{percent(outside)} are out of family: {percent(confused / (confused + outside))} of the errors stay within "
        "the family."
    ]


def _hierarchy(evaluation: FamilyEvaluation) -> list[str]:
    name = "family/hierarchical_f1"
    shown = with_interval(evaluation.metrics[name], evaluation.intervals.get(name))
    return [f"With the ancestors of all codes counted, which gives credit for near misses, F1 is {shown}."]


def _family(evaluation: FamilyEvaluation) -> list[str]:
    sums, _ = family_tallies(evaluation.statistics)
    confused = sums[:, 1] + sums[:, 2]
    if not len(confused) or not confused.max() > 0:
        return []
    worst = int(confused.argmax())
    share = confused[worst] / confused.sum()
    return [f"The family {named(evaluation.families[worst])} has the most confused labels ({percent(share)} of them)."]


def _code(evaluation: FamilyEvaluation) -> list[str]:
    codes = evaluation.statistics.codes
    confused = codes[:, 1] - codes[:, 0] - codes[:, 3]
    confused = np.where(codes[:, 1] >= FEW, confused, 0)
    if not len(confused) or not confused.max() > 0:
        return []
    return [str(evaluation.given_predicted(evaluation.codes[int(confused.argmax())]))]
