"""The ranking as a table that the MLflow UI shows and compares."""

from __future__ import annotations

from cmtrack.comparison.result import Comparison
from cmtrack.report.review.rows import table as table_of


def ranking_json(comparison: Comparison) -> str:
    """Rows of all rankings, the run first: the artifact view groups by the first column."""
    import pandas as pd

    tables = [table_of(ranking) for ranking in comparison.rankings]
    rows = []
    for place, table in enumerate(tables, 1):
        for row in table["rows"]:
            rank, name, standing, *others = row["cells"]
            shown = {"run": name["title"], "standing": standing["text"], "rank": rank["sort"]}
            if len(tables) > 1:
                shown["ranking"] = place
            for head, cell in zip(table["heads"][3:], others, strict=True):
                shown[head] = " ".join(filter(None, (cell["text"], cell["beside"])))
            rows.append(shown | {"run_id": name["run_id"]})
    frame = pd.DataFrame(rows)
    return str(frame.to_json(orient="split", index=False, force_ascii=False))
