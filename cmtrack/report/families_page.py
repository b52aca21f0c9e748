"""Content of the report of a family evaluation: families, codes, and what was evaluated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cmtrack.families.metrics import FAMILY
from cmtrack.families.result import FamilyEvaluation
from cmtrack.metrics.names import encode_label
from cmtrack.report import formatting as fmt
from cmtrack.report.evaluation_page import last_facts, metric_row

if TYPE_CHECKING:
    import pandas as pd


MAX_FAMILIES = 100
MAX_CODES = 50
MAX_ROWS = 2000


def content(evaluation: FamilyEvaluation) -> dict[str, Any]:
    """Content of the page of families and codes, beside that of every kind."""
    return {
        "key_metrics": [{"name": FAMILY.title, "rows": _key_metrics(evaluation)}],
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


def _key_metrics(evaluation: FamilyEvaluation) -> list[dict[str, Any]]:
    return [metric_row(evaluation, name) for name in evaluation.headline]


def _families(evaluation: FamilyEvaluation) -> list[dict[str, Any]]:
    """The families with the most labels that are no match."""
    names = ("f1_micro", "precision_micro", "recall_micro", "confusion_share", "oof_share")
    metrics = evaluation.metrics
    rows = []
    sizes = np.diff(evaluation.statistics.families.starts)
    for family, size in zip(evaluation.families, sizes, strict=True):
        prefix = f"family/{encode_label(family)}"
        support = metrics[f"{prefix}/support"]
        wrong = 0.0 if np.isnan(metrics[f"{prefix}/match_share"]) else 1 - metrics[f"{prefix}/match_share"]
        rows.append((wrong * support, family, int(size), support, prefix))
    rows.sort(key=lambda row: -row[0])
    return [
        {
            "label": str(family),
            "shown": fmt.short(family),
            "codes": size,
            "support": support,
            "support_shown": fmt.count(support),
            **{name: metric_row(evaluation, f"{prefix}/{name}") for name in names},
        }
        for _, family, size, support, prefix in rows[:MAX_FAMILIES]
    ]


def _codes(evaluation: FamilyEvaluation) -> list[dict[str, Any]]:
    """The codes with the most labels that are no match, of both sides."""
    table = evaluation.code_table()
    wrong = (table["predicted"] + table["actual"] - 2 * evaluation.statistics.codes[:, 0]).to_numpy()
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
                **{part: _share(row[f"{part}_given_{side}"]) for part in ("match", "confused", "oof")},
                "partner": _partner(row[f"partner_given_{side}"], row[f"partner_share_given_{side}"]),
            }
        rows.append(out)
    return rows


def _share(value: float) -> dict[str, Any]:
    return {"sort": "" if np.isnan(value) else value, "shown": "–" if np.isnan(value) else fmt.percent(value)}


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


def code_table(evaluation: FamilyEvaluation) -> pd.DataFrame:
    """One row per code, the code first: the artifact view groups runs by the first column.

    Of more than 2,000 codes those with the most labels.
    """
    import pandas as pd

    table = evaluation.code_table()
    if len(table) > MAX_ROWS:
        labels = (table["predicted"] + table["actual"]).to_numpy()
        table = table.iloc[np.sort(np.argsort(-labels, kind="stable")[:MAX_ROWS])]
    rows = []
    for row in table.to_dict("records"):
        numbers = {name: fmt.rounded(row[name]) for name in ("recall", "precision", "f1")}
        shown = [f"{name} {value:.3f}" if value is not None else f"{name} undefined" for name, value in numbers.items()]
        if row["partner_given_predicted"] is not None:
            shown.append(f"instead actual {row['partner_given_predicted']} {row['partner_share_given_predicted']:.3f}")
        rows.append(
            {
                "label": str(row["code"]),
                "result": fmt.BETWEEN.join(shown),  # the view that compares runs opens with the second column
                "family": str(row["family"]),
                "support": int(row["actual"]),
                "predicted": int(row["predicted"]),
                **numbers,
                **{
                    f"{share}_given_{side}": fmt.rounded(row[f"{share}_given_{side}"])
                    for side in ("predicted", "actual")
                    for share in ("confused", "oof")
                },
                **{f"partner_given_{side}": _text(row[f"partner_given_{side}"]) for side in ("predicted", "actual")},
                "few": bool(row["too_few_predicted"] or row["too_few_actual"]),
            }
        )
    return pd.DataFrame(rows)


def _text(code: Any) -> str:
    return "" if code is None or code != code else str(code)
