"""The catalog as a Markdown table: ``python -m cmtrack.metrics.table README.md`` writes the README's."""

from __future__ import annotations

import math
import re
import sys
from pathlib import Path

from cmtrack.metrics.catalog import CATALOG
from cmtrack.metrics.metric import Metric

_PLACE = re.compile(r"(<!-- metrics:.*?-->\n).*?(\n<!-- end of metrics -->)", re.DOTALL)
_SCALES = {
    "wilson": "Wilson",
    "count": "Wilson",
    "wald": "Wald",
    "atanh": "atanh",
    "logit": "logit",
    "log": "log",
    "profile": "profile likelihood",
    "square": "of its square",
}


def markdown_table() -> str:
    """One row per metric: name, formula, range, better, interval, source; headline metrics in bold."""
    lines = ["| metric | formula | range | better | interval | source |", "|---|---|---|---|---|---|"]
    lines += ["| " + " | ".join(_cells(metric)) + " |" for metric in CATALOG]
    return "\n".join(lines)


def _cells(metric: Metric) -> list[str]:
    name = f"`{metric.name}`"
    bounds = f"{metric.low:g} … {metric.high:g}".replace("inf", "∞") if metric.low or metric.high < math.inf else "≥ 0"
    return [
        f"**{name}**" if metric.headline else name,
        metric.formula.replace("|", "\\|"),
        bounds,
        metric.better or "–",
        getattr(metric.value, "scale", "bracket")
        if hasattr(metric.value, "interval")
        else _SCALES.get(metric.interval, "–"),
        metric.source or "–",
    ]


if __name__ == "__main__":
    if len(sys.argv) == 1:
        print(markdown_table())
    for _file in map(Path, sys.argv[1:]):
        _file.write_text(re.sub(_PLACE, lambda match: match[1] + markdown_table() + match[2], _file.read_text()))
