"""Texts of figures: short names in any script, with glyphs from installed fonts, and numbers."""

from __future__ import annotations

import contextlib
import math
import re
import threading
import unicodedata
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from matplotlib import font_manager
from matplotlib.font_manager import FontProperties

from cmtrack.names import distinct, elide
from cmtrack.untrusted import one_line, printable

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.text import Text

_GLYPH = 0.6  # mean width of a character, divided by its font size
_CJK = "\u2e80-\u9fff\uac00-\ud7af\uff00-\uffef"
_IDEOGRAPH = re.compile(f"[{_CJK}]")
_PART = re.compile(rf"[{_CJK}]|[^\s_/{_CJK}-]*[\s_/-]*")


def verbatim(text: str) -> str:
    """Escape control characters and dollar signs, which would start a matplotlib formula."""
    return printable(text).replace("$", r"\$")


def brief(name: object, width: int) -> str:
    """Return a name as one line; its middle is elided if it is longer than `width`."""
    return verbatim(elide(one_line(name), width))


def short_names(names: Iterable[object], width: int) -> list[str]:
    """Return names of about `width` characters that are as distinct as the full names.

    Parts that all names share are cut first (see :func:`cmtrack.names.distinct`). If names are
    equal, or would become boxes in an image, their position in the list, counted from 1, is
    appended: ``"a name [17]"``.
    """
    full = [one_line(name) for name in names]
    wide = max((columns(boxed(name)) / len(name) for name in full if name), default=1.0)
    short = distinct(full, max(8, round(width / wide)))
    drawn = [boxed(name) for name in short]
    seen = Counter(drawn)
    pairs = enumerate(zip(short, drawn, strict=True), start=1)
    return [verbatim(f"{name} [{i}]" if seen[box] > 1 else name) for i, (name, box) in pairs]


def numbered(names: Sequence[str]) -> list[str]:
    """Return the note that explains numbers after equal names; empty if no names are equal."""
    bases = Counter(boxed(name.removesuffix(f" [{i}]")) for i, name in enumerate(names, start=1))
    if max(bases.values(), default=1) > 1:
        return ["[i]: place in this figure, counted from 1, where names are equal."]
    return []


def wrap(text: str, width: int) -> str:
    """Break `text` into lines of about `width` characters.

    A line break is possible after a blank, "_", "/", "-" or a Chinese, Japanese or Korean
    character.
    """
    lines = [""]
    for part in _PART.findall(text):
        if lines[-1] and columns((lines[-1] + part).rstrip()) > width:
            lines.append("")
        lines[-1] += part
    return "\n".join(line.rstrip() for line in lines)


def text_width(text: str, size: float) -> float:
    """Estimate the width of the longest line of `text` in points."""
    return max((columns(line) for line in text.split("\n")), default=0) * size * _GLYPH


def characters(points: float, size: float) -> float:
    """Return the number of characters that fit into `points` at font `size`."""
    return points / (size * _GLYPH)


def tick_step(cell: float, size: float) -> int:
    """Return the step between labelled classes, given the sizes of cells and text in points."""
    least = max(1, math.ceil(1.15 * size / cell))
    if least <= 2:
        return least
    return next((step for step in (5, 10, 20, 25, 50, 100) if step >= least), least)


def ordinal(n: int) -> str:
    """Write a number as an ordinal: 1st, 2nd, ..."""
    if n % 100 in (11, 12, 13):
        return f"{n}th"
    suffix = {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{suffix}"


FALLBACKS = (
    "DejaVu Sans",
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Noto Sans CJK TC",
    "Noto Sans CJK KR",
    "Noto Sans CJK HK",
    "Noto Sans SC",
    "Noto Sans JP",
    "Noto Sans TC",
    "Noto Sans KR",
    "Source Han Sans SC",
    "Source Han Sans",
    "Source Han Sans JP",
    "WenQuanYi Micro Hei",
    "WenQuanYi Zen Hei",
    "Droid Sans Fallback",
    "PingFang SC",
    "Hiragino Sans",
    "Hiragino Sans GB",
    "Apple SD Gothic Neo",
    "AppleGothic",
    "Heiti SC",
    "Heiti TC",
    "Songti SC",
    "Microsoft YaHei",
    "Microsoft JhengHei",
    "SimHei",
    "SimSun",
    "Yu Gothic",
    "Meiryo",
    "MS Gothic",
    "Malgun Gothic",
    "Gulim",
    "IPAexGothic",
    "IPAGothic",
    "TakaoGothic",
    "VL Gothic",
    "NanumGothic",
    "NanumBarunGothic",
    "UnDotum",
    "Arial Unicode MS",
    "Noto Emoji",
    "Symbola",
    "Noto Sans Symbols",
    "Noto Sans Symbols2",
    "Segoe UI Symbol",
    "Noto Sans",
    "Noto Sans Arabic",
    "Noto Sans Hebrew",
    "Noto Sans Devanagari",
    "Noto Sans Thai",
    "GNU Unifont",
    "Unifont",
)
"""Fallback families in order of preference. Only installed families are used."""
BOX = "□"
_WIDE = 5 / 3  # width of a Chinese, Japanese or Korean character, relative to Latin
_ADVICE = "install a font that has them, such as Noto Sans CJK (Debian and Ubuntu: fonts-noto-cjk)"
_lock = threading.Lock()
_warned = False


def boxed(name: str) -> str:
    """Replace each character of `name` that no font can draw with a box."""
    if name.isascii():
        return name
    fonts = tuple(FontProperties().get_family())
    if not all(_is_known(c, fonts) for c in name):
        _look_again()
    return "".join(c if _is_known(c, fonts) else BOX for c in name)


def count_emoji(name: str) -> int:
    """Return the number of characters that become boxes in an image and are wider on a page."""
    shown = zip(boxed(name), name, strict=True)
    return sum(1 for box, c in shown if box == BOX and not _IDEOGRAPH.match(c))


def drawable(name: str) -> str:
    """Return a name in the form that an image can show; the first box causes a warning.

    Names on a page are not checked, because a browser uses its own fonts.
    """
    shown = boxed(name)
    if shown != name:
        _warn_once(name)
    return shown


@lru_cache(maxsize=1)
def _look_again() -> None:
    """Find fonts that were installed after matplotlib listed them; later calls do nothing."""
    with _lock:
        listed = {font.fname for font in font_manager.fontManager.ttflist}
        for path in set(font_manager.findSystemFonts()) - listed:
            with contextlib.suppress(Exception):  # any error means that the font cannot be drawn
                font_manager.fontManager.addfont(path)
    for cached in (installed, _is_known, _glyphs):
        cached.cache_clear()


def columns(text: str) -> float:
    """Return the width of `text`, measured in Latin characters; CJK characters are wider."""
    if text.isascii():
        return len(text)
    return sum(_WIDE if unicodedata.east_asian_width(c) in "WF" else 1.0 for c in text)


def use_fallbacks(where: Artist) -> None:
    """Add installed fallback fonts to texts whose fonts lack glyphs.

    Also note the side of texts with several lines, which the renderer for pages cannot see.
    """
    for text in _texts(where):
        words = text.get_text()
        if not words.isascii():
            text.set_fontfamily(families_for(words, text.get_fontfamily()))
        if "\n" in words and text.get_gid() is None:
            text.set_gid(f"{SIDE}{text_side(text)}")


SIDE = "side-"
"""Prefix of the id (``gid``) of a text with several lines; its side follows it."""
_UPWARD_SIDES = {"top": "right", "bottom": "left"}  # text rotated by 90 degrees ends at its top
_DOWNWARD_SIDES = {"top": "left", "bottom": "right"}


def text_side(text: Any) -> str:
    """Return the side at which a text is anchored: "left", "center" or "right"."""
    angle = text.get_rotation()
    if not angle or text.get_rotation_mode() == "anchor":
        return str(getattr(text, "_multialignment", None) or text.get_ha())
    if angle % 360 == 90:
        return _UPWARD_SIDES.get(text.get_va(), "center")
    if angle % 360 == 270:
        return _DOWNWARD_SIDES.get(text.get_va(), "center")
    return "left"


def families_for(words: str, families: Sequence[str]) -> list[str]:
    """Add installed fallbacks to the families if these lack a glyph for a character."""
    if words.isascii() or all(c.isspace() or _has(c, families) for c in words):
        return list(families)
    boxed(words)  # looks for new fonts
    return [*families, *(family for family in installed() if family not in families)]


def _texts(where: Artist) -> Iterator[Text]:
    """Yield all texts except numeric tick labels, which matplotlib creates while drawing."""
    from matplotlib.axis import Axis
    from matplotlib.text import Text
    from matplotlib.ticker import FixedLocator

    if isinstance(where, Text):
        yield where
    elif isinstance(where, Axis):
        yield where.label
        if isinstance(where.get_major_locator(), FixedLocator):  # only these ticks can be names
            yield from where.get_majorticklabels()
    else:
        for child in where.get_children():
            yield from _texts(child)


@lru_cache(maxsize=1)
def installed() -> tuple[str, ...]:
    """Return the names of the fallback families that are installed on this machine."""
    there = {font.name for font in font_manager.fontManager.ttflist}
    return tuple(family for family in FALLBACKS if family in there)


@lru_cache(maxsize=8192)
def _is_known(character: str, fonts: tuple[str, ...]) -> bool:
    return character.isspace() or any(
        _has(character, (family,)) for family in (*fonts, *installed())
    )


def _has(character: str, families: Iterable[str]) -> bool:
    return any(ord(character) in _glyphs(family) for family in families)


@lru_cache(maxsize=64)
def _glyphs(family: str) -> frozenset[int]:
    """Return the code points that a family, or any font of a generic family, can draw."""
    try:
        path = font_manager.findfont(FontProperties(family=[family]), fallback_to_default=False)
        return frozenset(font_manager.get_font(path).get_charmap())
    except (ValueError, OSError, RuntimeError):  # the font is missing or cannot be drawn
        return frozenset()


def _warn_once(name: str) -> None:
    global _warned
    with _lock:
        if _warned:
            return
        _warned = True
    warnings.warn(
        f"no installed font has all characters of “{name}” (and perhaps of other names), so "
        f"figures show boxes instead; {_ADVICE}",
        stacklevel=2,
    )
