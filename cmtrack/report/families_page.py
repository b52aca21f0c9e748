"""The report of a family evaluation: families, codes, what was evaluated, and all of it in sentences."""

from __future__ import annotations

from typing import Any

import numpy as np

from cmtrack.families.metrics import FAMILY, FEW, family_tallies
from cmtrack.families.result import FamilyEvaluation
from cmtrack.metrics.names import encode_label
from cmtrack.report import formatting as fmt
from cmtrack.report.evaluation_page import last_facts, metric_row

MAX_FAMILIES = 100
MAX_CODES = 50
MAX_ROWS = 2000


def content(evaluation: FamilyEvaluation) -> dict[str, Any]:
    """The page for families and codes, apart from what all kinds share."""
    return {
        "key_metrics": [
            {
                "name": FAMILY.title,
                "rows": [metric_row(evaluation, name) for name in evaluation.headline],
            }
        ],
        "families": _families(evaluation),
        "n_families": len(evaluation.families),
        "codes": _codes(evaluation),
        "n_codes": len(evaluation.codes),
        "facts": _facts(evaluation),
        "head": [
            fmt.counted(evaluation.n_samples, "document"),
            fmt.counted(len(evaluation.codes), "code"),
            f"{len(evaluation.families)} families",
            f"{fmt.level(evaluation.confidence_level)} intervals",
        ],
    }


def _families(evaluation: FamilyEvaluation) -> list[dict[str, Any]]:
    """The families with the most unmatched labels."""
    names = ("f1_micro", "precision_micro", "recall_micro", "confusion_share", "oof_share")
    prefixes = [f"family/{encode_label(family)}" for family in evaluation.families]
    support = [evaluation.metrics[f"{prefix}/support"] for prefix in prefixes]
    matched = np.array([evaluation.metrics[f"{prefix}/match_share"] for prefix in prefixes])
    unmatched = np.where(np.isnan(matched), 0, 1 - matched) * support
    sizes = np.diff(evaluation.statistics.families.starts)
    return [
        {
            "label": str(evaluation.families[k]),
            "shown": fmt.short(evaluation.families[k]),
            "codes": int(sizes[k]),
            "support": support[k],
            "support_shown": fmt.count(support[k]),
            **{name: metric_row(evaluation, f"{prefixes[k]}/{name}") for name in names},
        }
        for k in np.argsort(-unmatched, kind="stable")[:MAX_FAMILIES].tolist()
    ]


def _codes(evaluation: FamilyEvaluation) -> list[dict[str, Any]]:
    """The codes with the most labels that are no match, of both sides."""
    table = evaluation.code_table()
    wrong = (
        table["predicted"] + table["actual"] - 2 * evaluation.statistics.codes[:, 0]
    ).to_numpy()
    rows = []
    for place in np.argsort(-wrong, kind="stable")[:MAX_CODES].tolist():
        row = table.iloc[place]
        out: dict[str, Any] = {
            "label": str(row["code"]),
            "shown": fmt.short(row["code"]),
            "family": fmt.short(row["family"], 30),
        }
        for side in ("predicted", "actual"):
            n = int(row[side])
            out[side] = {
                "n": n,
                "shown": fmt.count(n),
                "few": bool(row[f"too_few_{side}"]),
                **{
                    part: _share(row[f"{part}_given_{side}"])
                    for part in ("match", "confused", "oof")
                },
                "partner": _partner(
                    row[f"partner_given_{side}"], row[f"partner_share_given_{side}"]
                ),
            }
        rows.append(out)
    return rows


def _share(value: float) -> dict[str, Any]:
    return {
        "sort": "" if np.isnan(value) else value,
        "shown": "–" if np.isnan(value) else fmt.percent(value),
    }


def _partner(code: object, share: float) -> str:
    return "" if code is None or code != code else f"{fmt.short(code, 40)} ({fmt.percent(share)})"


def _facts(evaluation: FamilyEvaluation) -> list[tuple[str, str]]:
    codes = evaluation.statistics.codes
    return [
        ("Documents", fmt.count(evaluation.n_samples)),
        (
            "Labels",
            f"{fmt.count(float(codes[:, 2].sum()))} actual, {fmt.count(float(codes[:, 1].sum()))} predicted",
        ),
        ("Families", f"{len(evaluation.families)}: {fmt.in_row(evaluation.families, 40)}"),
        ("Codes", fmt.count(float(len(evaluation.codes)))),
        ("Matching of matrices", evaluation.matching),
        *last_facts(evaluation, "sets"),
    ]


# -- the table of MLflow's views -------------------------------------------------------------------------------


def code_table(evaluation: FamilyEvaluation) -> list[dict[str, Any]]:
    """One row per code, the code first: the artifact view groups runs by the first column.

    Of more than 2,000 codes those with the most labels.
    """
    table = evaluation.code_table()
    if len(table) > MAX_ROWS:
        labels = (table["predicted"] + table["actual"]).to_numpy()
        table = table.iloc[np.sort(np.argsort(-labels, kind="stable")[:MAX_ROWS])]
    rows = []
    for row in table.to_dict("records"):
        numbers = {name: fmt.rounded(row[name]) for name in ("recall", "precision", "f1")}
        shown = [
            f"{name} {fmt.fixed(value, 3)}" if value is not None else f"{name} undefined"
            for name, value in numbers.items()
        ]
        if row["partner_given_predicted"] is not None:
            share = fmt.fixed(row["partner_share_given_predicted"], 3)
            shown.append(f"instead actual {row['partner_given_predicted']} {share}")
        rows.append(
            {
                "label": str(row["code"]),
                "result": fmt.BETWEEN.join(
                    shown
                ),  # the view that compares runs opens with the second column
                "family": str(row["family"]),
                "support": int(row["actual"]),
                "predicted": int(row["predicted"]),
                **numbers,
                **{
                    f"{share}_given_{side}": fmt.rounded(row[f"{share}_given_{side}"])
                    for side in ("predicted", "actual")
                    for share in ("confused", "oof")
                },
                **{
                    f"partner_given_{side}": _text(row[f"partner_given_{side}"])
                    for side in ("predicted", "actual")
                },
                "few": bool(row["too_few_predicted"] or row["too_few_actual"]),
            }
        )
    return rows


def _text(code: Any) -> str:
    return "" if code is None or code != code else str(code)


# -- sentences -------------------------------------------------------------------------------------------------


def told(evaluation: FamilyEvaluation) -> list[tuple[str, str]]:
    """The sentences on a family evaluation, the most important first, each with its section."""
    parts = {
        _overall: "",
        _errors: "",
        _hierarchy: "good",
        _worst_family: "confusions",
        _worst_code: "confusions",
    }
    return [(section, sentence) for part, section in parts.items() for sentence in part(evaluation)]


def lead(evaluation: FamilyEvaluation) -> list[str]:
    """The first of these sentences."""
    return _overall(evaluation)


def _overall(evaluation: FamilyEvaluation) -> list[str]:
    names = ("family/precision_micro", "family/recall_micro", "family/f1_micro")
    precision, recall, f1 = (fmt.shown(evaluation, name) for name in names)
    return [
        f"On {fmt.counted(evaluation.n_samples, 'document')} with {fmt.counted(len(evaluation.codes), 'code')} in "
        f"{len(evaluation.families)} families: precision {precision}, recall {recall}, F1 {f1} over all labels "
        f"({fmt.level(evaluation.confidence_level)} intervals)."
    ]


def _errors(evaluation: FamilyEvaluation) -> list[str]:
    m = evaluation.metrics
    confused, outside = m["family/confusion_share"], m["family/oof_share"]
    if not confused + outside > 0:
        return ["There are no errors."]
    return [
        f"Of all labels, predicted and actual, {fmt.percent(confused)} are confused with a code of their family and "
        f"{fmt.percent(outside)} are out of family: {fmt.percent(confused / (confused + outside))} of the errors stay "
        "within the family."
    ]


def _hierarchy(evaluation: FamilyEvaluation) -> list[str]:
    shown = fmt.shown(evaluation, "family/hierarchical_f1")
    return [
        f"With the ancestors of all codes counted, which gives credit for near misses, F1 is {shown}."
    ]


def _worst_family(evaluation: FamilyEvaluation) -> list[str]:
    sums, _ = family_tallies(evaluation.statistics)
    confused = sums[:, 1] + sums[:, 2]
    if not len(confused) or not confused.max() > 0:
        return []
    worst = int(confused.argmax())
    share = confused[worst] / confused.sum()
    family = fmt.named(evaluation.families[worst])
    return [f"The family {family} has the most confused labels ({fmt.percent(share)} of them)."]


def _worst_code(evaluation: FamilyEvaluation) -> list[str]:
    codes = evaluation.statistics.codes
    confused = codes[:, 1] - codes[:, 0] - codes[:, 3]
    confused = np.where(codes[:, 1] >= FEW, confused, 0)
    if not len(confused) or not confused.max() > 0:
        return []
    return [str(evaluation.given_predicted(evaluation.codes[int(confused.argmax())]))]
