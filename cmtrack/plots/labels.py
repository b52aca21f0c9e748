"""Names, numbers and text colours that stay readable in small places."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable

import numpy as np

from cmtrack.untrusted import one_line as one_line
from cmtrack.untrusted import printable

from .style import INK, FloatArray

_GLYPH = 0.6  # mean width of a character as a part of its font size


def verbatim(text: str) -> str:
    """Keep matplotlib from reading dollar signs as formulas, and fonts from being asked for control characters."""
    return printable(text).replace("$", r"\$")


def elide(text: str, width: int) -> str:
    """Shorten `text` to `width` characters in the middle: where names differ is mostly at their ends."""
    if len(text) <= width:
        return text
    head = width // 2
    tail = width - 1 - head
    return text[:head].rstrip() + "…" + (text[-tail:].lstrip() if tail else "")


def short_names(labels: Iterable[object], width: int) -> list[str]:
    """Names of at most about `width` characters that are still distinct.

    Names that become equal by shortening get their position in the label order: ``"long…name [17]"``.
    """
    full = [one_line(label) for label in labels]
    short = [elide(name, width) for name in full]
    seen = Counter(short)
    distinct = [
        elide(name, width - len(f" [{i}]")) + f" [{i}]" if seen[brief] > 1 else brief
        for i, (name, brief) in enumerate(zip(full, short, strict=True))
    ]
    return [verbatim(name) for name in distinct]


def wrap(text: str, width: int) -> str:
    """Break `text` into lines of about `width` characters, after blanks, underscores, slashes and dashes."""
    lines = [""]
    for part in re.findall(r"[^\s_/-]*[\s_/-]*", text):
        if lines[-1] and len((lines[-1] + part).rstrip()) > width:
            lines.append("")
        lines[-1] += part
    return "\n".join(line.rstrip() for line in lines)


def text_width(text: str, size: float) -> float:
    """Estimated width in points of the longest line of `text`."""
    return max((len(line) for line in text.split("\n")), default=0) * size * _GLYPH


def characters(points: float, size: float) -> float:
    """How many characters of font `size` fit into `points`."""
    return points / (size * _GLYPH)


def tick_step(cell: float, size: float) -> int:
    """Name every how many-th class when a cell has `cell` points and a line of text `size` points."""
    least = max(1, math.ceil(1.15 * size / cell))
    return least if least <= 2 else next((s for s in (5, 10, 20, 25, 50, 100) if s >= least), least)


def count_text(value: float) -> str:
    """A count or a sum of weights in at most seven characters: 273, 12,345, 1.24M, 3.5."""
    if value >= 999_500:
        for unit, name in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
            if value >= 0.9995 * unit:
                return f"{value / unit:.3g}{name}"
    if value == round(value):
        return f"{round(value):,}"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def share_text(share: float) -> str:
    """A share in whole per cent; what is neither 0 nor 1 never reads as if it were."""
    if not math.isfinite(share):
        return ""
    if 0 < share < 0.005:
        return "<1%"
    if 0.995 <= share < 1:
        return ">99%"
    return f"{100 * share:.0f}%"


def percent_text(share: float) -> str:
    """A share in per cent with three significant digits, for values that may be very small."""
    if not math.isfinite(share):
        return "undefined"
    return f"{float(f'{100 * share:.3g}'):.6g}%"


def number_text(value: float) -> str:
    """A metric with three decimals, or the word for NaN."""
    return f"{value:.3f}" if math.isfinite(value) else "undefined"


def ordinal(n: int) -> str:
    """1 -> 1st, 2 -> 2nd, ..."""
    suffix = "th" if n % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{suffix}"


def contrast(rgba: FloatArray) -> list[str]:
    """The text colour, white or ink, that reads best on each of the (N, 4) background colours."""
    linear = np.where(rgba[:, :3] <= 0.04045, rgba[:, :3] / 12.92, ((rgba[:, :3] + 0.055) / 1.055) ** 2.4)
    luminance = linear @ np.array([0.2126, 0.7152, 0.0722])
    return ["white" if light < 0.24 else INK for light in luminance]
