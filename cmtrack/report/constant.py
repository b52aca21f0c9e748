"""The constant answer in words: what a model gains over an answer that needs none."""

from __future__ import annotations

import math

from cmtrack.comparison import ConstantAnswer
from cmtrack.report import formatting as fmt


def p_of(constant: ConstantAnswer) -> str:
    """The p-value of the difference from a constant answer, and whether it is paired."""
    if math.isnan(constant.pvalue):
        return "no error is known"
    return fmt.p_equals(constant.pvalue) + (", not paired by row" if constant.unpaired else "")
