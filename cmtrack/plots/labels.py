"""Names, numbers and text colours that stay readable in small places."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from cmtrack.names import distinct, elide
from cmtrack.untrusted import one_line, printable

from .fonts import columns, drawable
from .style import INK, FloatArray

_GLYPH = 0.6  # mean width of a character as a part of its font size
_CJK = "\u2e80-\u9fff\uac00-\ud7af\uff00-\uffef"
_PART = re.compile(rf"[{_CJK}]|[^\s_/{_CJK}-]*[\s_/-]*")


def verbatim(text: str) -> str:
    """Keep matplotlib from reading dollar signs as formulas, and fonts from being asked for control characters."""
    return printable(text).replace("$", r"\$")


def brief(name: object, width: int) -> str:
    """A name alone, on one line, cut in the middle where it is longer than `width`."""
    return verbatim(drawable(elide(one_line(name), width)))


def short_names(names: Iterable[object], width: int) -> list[str]:
    """Names of about `width` characters that are as distinct as the full ones.

    What the names have in common is cut first, see :func:`cmtrack.names.distinct`. Names that are equal get their
    place in the list, counted from 1 as in the tables: ``"a name [17]"``.
    """
    full = [drawable(one_line(name)) for name in names]
    wide = max((columns(name) / len(name) for name in full if name), default=1.0)
    short = distinct(full, max(8, round(width / wide)))
    seen = Counter(short)
    return [verbatim(f"{name} [{i}]" if seen[name] > 1 else name) for i, name in enumerate(short, start=1)]


def numbered(names: Sequence[str]) -> list[str]:
    """The sentence for the numbers that tell equal names apart, if there are any."""
    bases = Counter(name.removesuffix(f" [{i}]") for i, name in enumerate(names, start=1))
    if max(bases.values(), default=1) > 1:
        return ["[i]: place in the list, counted from 1, where names are equal."]
    return []


def wrap(text: str, width: int) -> str:
    """Break `text` into lines of about `width` characters, after blanks, "_", "/", "-" and CJK characters."""
    lines = [""]
    for part in _PART.findall(text):
        if lines[-1] and columns((lines[-1] + part).rstrip()) > width:
            lines.append("")
        lines[-1] += part
    return "\n".join(line.rstrip() for line in lines)


def text_width(text: str, size: float) -> float:
    """Estimated width in points of the longest line of `text`."""
    return max((columns(line) for line in text.split("\n")), default=0) * size * _GLYPH


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
