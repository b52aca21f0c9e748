"""The page "From 0.2 to 0.3": its scripts for 0.2 end with an error that says what to use instead."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from cmtrack.removed import BOUND_OF_LIMIT, INSTEAD, MATRIX
from support import ROOT

PAGE = (ROOT / "docs" / "guide" / "from_0_2.md").read_text(encoding="utf-8")
BEFORE = {
    "Models over several data sets": 'compare(block_kind="datasets")',
    "Rows to check first": "Comparison.deciding",
    "Metrics where the shares are estimated": "Evaluation.at(scores)",
    "A threshold whose precision is kept": BOUND_OF_LIMIT,
    "The other band": "CalibrationCurve.confidence_band",
    "Which attributes are needed": "cmtrack.attribute_subsets",
    "Several metrics in one ranking": "compare(rank_by={metric: weight})",
    "Options of a prevalence estimate": 'estimate_prevalence(density="beta")',
    "A search for segments": "cmtrack.segments.differing_segments",
    "Indicator matrices of codes": MATRIX,
}
"""Sections with a script that uses a removed name, and the first of these names."""


@pytest.fixture(scope="module")
def data() -> dict[str, Any]:
    """The evaluations and tables of the page."""
    cells = re.findall(r"^```\{code-cell\} ipython3\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    (messages,) = [cell for cell in cells if "def messages" in cell]
    space: dict[str, Any] = {"table": {"sky": ["sun", "rain"]}, "decision": ["out", "in"]}
    exec(re.sub(r"^:.*\n", "", messages, flags=re.MULTILINE), space)
    space |= {"codes": ["364.0"], "actual": np.eye(1), "predicted": np.eye(1)}
    return space


@pytest.mark.parametrize("title", BEFORE)
def test_a_script_for_0_2_says_what_to_use(title: str, data: dict[str, Any]) -> None:
    section = PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]
    (script,) = re.findall(r"^```python\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    with pytest.raises(Exception, match=re.escape(INSTEAD[BEFORE[title]])):
        exec(script, dict(data))
