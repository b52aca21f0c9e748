"""Content of the report on a family evaluation: tables, facts and sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cmtrack.families.counts import PREDICTED
from cmtrack.families.metrics import FAMILY, FEW, family_tallies
from cmtrack.families.result import FamilyEvaluation
from cmtrack.families.tables import worst_code
from cmtrack.metrics.names import encode_label
from cmtrack.report import formatting as fmt
from cmtrack.report.evaluation_page import last_facts, metric_row

SIDES = ("predicted", "actual")
MAX_FAMILIES = 100
MAX_CODES = 50
MAX_ROWS = 2000


def content(evaluation: FamilyEvaluation) -> dict[str, Any]:
    """Return the values from which the page of a family evaluation is made."""
    metric_rows = [metric_row(evaluation, name) for name in evaluation.headline]
    return {
        "key_metrics": [{"name": FAMILY.title, "rows": metric_rows}],
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
    """Return table rows for the families with the most unmatched labels."""
    prefixes = [f"family/{encode_label(family)}" for family in evaluation.families]
    support = [evaluation.metrics[f"{prefix}/support"] for prefix in prefixes]
    match_shares = np.array([evaluation.metrics[f"{prefix}/match_share"] for prefix in prefixes])
    # A family without labels has an undefined share of matches, but no unmatched labels.
    unmatched = np.where(np.isnan(match_shares), 0, 1 - match_shares) * support
    code_counts = np.diff(evaluation.statistics.families.starts)
    rows = []
    for k in np.argsort(-unmatched, kind="stable")[:MAX_FAMILIES].tolist():
        row: dict[str, Any] = {
            "label": str(evaluation.families[k]),
            "shown": fmt.short(evaluation.families[k]),
            "codes": int(code_counts[k]),
            "support": support[k],
            "support_shown": fmt.count(support[k]),
        }
        for name in ("f1_micro", "precision_micro", "recall_micro", "confusion_share", "oof_share"):
            row[name] = metric_row(evaluation, f"{prefixes[k]}/{name}")
        rows.append(row)
    return rows


def _codes(evaluation: FamilyEvaluation) -> list[dict[str, Any]]:
    """Return table rows for the codes with the most unmatched predicted and actual labels."""
    table = evaluation.code_table()
    matched = evaluation.statistics.codes[:, 0]
    unmatched = (table["predicted"] + table["actual"] - 2 * matched).to_numpy()
    worst = np.argsort(-unmatched, kind="stable")[:MAX_CODES]
    return [
        {
            "label": str(row["code"]),
            "shown": fmt.short(row["code"]),
            "family": fmt.short(row["family"], 30),
            **{side: _code_side(row, side) for side in SIDES},
        }
        for row in table.iloc[worst].to_dict("records")
    ]


def _code_side(row: Mapping[Any, Any], side: str) -> dict[str, Any]:
    """Return the cells for a code's predicted labels or for its actual labels."""
    partner = ""
    code = row[f"partner_given_{side}"]
    if _is_code(code):
        share = fmt.percent(row[f"partner_share_given_{side}"])
        partner = f"{fmt.short(code, 40)} ({share})"
    return {
        "n": int(row[side]),
        "shown": fmt.count(row[side]),
        "few": bool(row[f"too_few_{side}"]),
        "match": _share(row[f"match_given_{side}"]),
        "confused": _share(row[f"confused_given_{side}"]),
        "oof": _share(row[f"oof_given_{side}"]),
        "partner": partner,
    }


def _share(value: float) -> dict[str, Any]:
    """Return the table cell for a share, with its text and the number by which it is sorted."""
    if np.isnan(value):
        return {"sort": "", "shown": "–"}
    return {"sort": value, "shown": fmt.percent(value)}


def _code_text(code: Any) -> str:
    """Return the code in a table cell as text, or an empty string if there is none."""
    return str(code) if _is_code(code) else ""


def _is_code(code: Any) -> bool:
    """Return whether a table cell contains a code, that is, neither None nor NaN."""
    return code is not None and code == code


def _facts(evaluation: FamilyEvaluation) -> list[tuple[str, str]]:
    """Return facts about an evaluation of families, each with a name."""
    _, predicted, actual, *_ = evaluation.statistics.codes.sum(axis=0).tolist()
    labels = f"{fmt.count(float(actual))} actual, {fmt.count(float(predicted))} predicted"
    families = fmt.in_row(evaluation.families, 40)
    return [
        ("Documents", fmt.count(evaluation.n_samples)),
        ("Labels", labels),
        ("Families", f"{len(evaluation.families)}: {families}"),
        ("Codes", fmt.count(float(len(evaluation.codes)))),
        ("Matching rule of the matrices", evaluation.matching),
        *last_facts(evaluation, "sets"),
    ]


# -- the table of MLflow's views -------------------------------------------------------------------


def code_table(evaluation: FamilyEvaluation) -> list[dict[str, Any]]:
    """Return a row for each code, or for the 2,000 codes with the most labels.

    The code comes first, because MLflow's artifact view groups runs by the first column.
    """
    table = evaluation.code_table()
    if len(table) > MAX_ROWS:
        labels = (table["predicted"] + table["actual"]).to_numpy()
        table = table.iloc[np.sort(np.argsort(-labels, kind="stable")[:MAX_ROWS])]
    return [_code_row(row) for row in table.to_dict("records")]


def _code_row(row: Mapping[Any, Any]) -> dict[str, Any]:
    """Return a code's row in the table that MLflow's views show."""
    scores = {name: fmt.rounded(row[name]) for name in ("recall", "precision", "f1")}
    shares = {
        f"{share}_given_{side}": fmt.rounded(row[f"{share}_given_{side}"])
        for side in SIDES
        for share in ("confused", "oof")
    }
    partners = {f"partner_given_{side}": _code_text(row[f"partner_given_{side}"]) for side in SIDES}
    return {
        "label": str(row["code"]),
        # MLflow's view that compares runs shows the second column first.
        "result": _code_result(row, scores),
        "family": str(row["family"]),
        "support": int(row["actual"]),
        "predicted": int(row["predicted"]),
        **scores,
        **shares,
        **partners,
        "few": bool(row["too_few_predicted"] or row["too_few_actual"]),
    }


def _code_result(row: Mapping[Any, Any], scores: dict[str, float | None]) -> str:
    """Return a code's scores on one line, with the code that was most often correct instead."""
    texts = []
    for name, value in scores.items():
        score = "undefined" if value is None else fmt.fixed(value, 3)
        texts.append(f"{name} {score}")
    if row["partner_given_predicted"] is not None:
        share = fmt.fixed(row["partner_share_given_predicted"], 3)
        texts.append(f"confused with {row['partner_given_predicted']} {share}")
    return fmt.BETWEEN.join(texts)


# -- sentences -------------------------------------------------------------------------------------


def told(evaluation: FamilyEvaluation, *, top: bool = False) -> list[tuple[str, str]]:
    """Return the sentences on a family evaluation, most important first, with their sections.

    ``top``: whether to return only the sentences at the top of the page.
    """
    sections = {
        _overall: "",
        _errors: "",
        _hierarchy: "good",
        _worst_family: "confusions",
        _worst_code: "confusions",
    }
    return [
        (section, sentence)
        for sentences, section in sections.items()
        if not (top and section)
        for sentence in sentences(evaluation)
    ]


def _overall(evaluation: FamilyEvaluation) -> list[str]:
    precision = fmt.shown(evaluation, "family/precision_micro")
    recall = fmt.shown(evaluation, "family/recall_micro")
    f1 = fmt.shown(evaluation, "family/f1_micro")
    documents = fmt.counted(evaluation.n_samples, "document")
    codes = fmt.counted(len(evaluation.codes), "code")
    return [
        f"On {documents} with {codes} in {len(evaluation.families)} families, "
        f"precision is {precision}, recall {recall} and F1 {f1} over all labels "
        f"({fmt.level(evaluation.confidence_level)} intervals)."
    ]


def _errors(evaluation: FamilyEvaluation) -> list[str]:
    confused = evaluation.metrics["family/confusion_share"]
    outside = evaluation.metrics["family/oof_share"]
    # If there are no labels, both shares are undefined and there are no errors.
    if not confused + outside > 0:
        return ["There are no errors."]
    within = confused / (confused + outside)
    return [
        f"{fmt.percent(confused)} of all predicted and actual labels are confused with a code of "
        f"their family, and {fmt.percent(outside)} are out of family. So {fmt.percent(within)} of "
        "the errors stay within the family."
    ]


def _hierarchy(evaluation: FamilyEvaluation) -> list[str]:
    f1 = fmt.shown(evaluation, "family/hierarchical_f1")
    return [
        f"F1 is {f1} if the ancestors of all codes also count, which gives credit for near misses."
    ]


def _worst_family(evaluation: FamilyEvaluation) -> list[str]:
    sums, _ = family_tallies(evaluation.statistics)
    confused = sums[:, 1] + sums[:, 2]
    if not confused.any():
        return []
    worst = int(confused.argmax())
    share = confused[worst] / confused.sum()
    family = fmt.named(evaluation.families[worst])
    return [f"Family {family} has the most confused labels ({fmt.percent(share)} of all)."]


def _worst_code(evaluation: FamilyEvaluation) -> list[str]:
    worst = worst_code(evaluation.statistics)
    # A share of fewer predictions would be too uncertain.
    if worst is None or evaluation.statistics.codes[worst, PREDICTED] < FEW:
        return []
    return [str(evaluation.given_predicted(evaluation.codes[worst]))]
