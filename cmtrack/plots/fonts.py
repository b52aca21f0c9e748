"""Fonts for names in any script: installed ones take over where the figure's own font has no glyph."""

from __future__ import annotations

import threading
import unicodedata
import warnings
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

from matplotlib import font_manager
from matplotlib.font_manager import FontProperties

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FALLBACKS = (
    "DejaVu Sans", "Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans CJK TC", "Noto Sans CJK KR", "Noto Sans CJK HK",
    "Noto Sans SC", "Noto Sans JP", "Noto Sans TC", "Noto Sans KR", "Source Han Sans SC", "Source Han Sans",
    "Source Han Sans JP", "WenQuanYi Micro Hei", "WenQuanYi Zen Hei", "Droid Sans Fallback", "PingFang SC",
    "Hiragino Sans", "Hiragino Sans GB", "Apple SD Gothic Neo", "AppleGothic", "Heiti SC", "Heiti TC", "Songti SC",
    "Microsoft YaHei", "Microsoft JhengHei", "SimHei", "SimSun", "Yu Gothic", "Meiryo", "MS Gothic", "Malgun Gothic",
    "Gulim", "IPAexGothic", "IPAGothic", "TakaoGothic", "VL Gothic", "NanumGothic", "NanumBarunGothic", "UnDotum",
    "Arial Unicode MS", "Noto Emoji", "Symbola", "Noto Sans Symbols", "Noto Sans Symbols2", "Segoe UI Symbol",
    "Noto Sans", "Noto Sans Arabic", "Noto Sans Hebrew", "Noto Sans Devanagari", "Noto Sans Thai", "GNU Unifont",
    "Unifont",
)  # fmt: skip
"""Families by preference, of which those that are installed are used."""
BOX = "□"
_WIDE = 5 / 3  # width of a Chinese, Japanese or Korean character over that of the others
_ADVICE = "install a font that has them, such as Noto Sans CJK (Debian and Ubuntu: fonts-noto-cjk)"
_lock = threading.Lock()
_warned = False


def drawable(name: str) -> str:
    """`name` with a box for each character that no font here can draw; the first such name is warned of."""
    if name.isascii():
        return name
    shown = "".join(c if c.isascii() or _is_known(c, _families()) else BOX for c in name)
    if shown != name:
        _warn_once(name)
    return shown


def columns(text: str) -> float:
    """Width of `text` in ordinary characters; Chinese, Japanese and Korean ones are wider."""
    if text.isascii():
        return len(text)
    return sum(_WIDE if unicodedata.east_asian_width(c) in "WF" else 1.0 for c in text)


def use_fallbacks(where: Figure | Axes) -> None:
    """Let other installed fonts draw what the own font of a text has no glyph for."""
    from matplotlib.axis import Axis
    from matplotlib.text import Text

    for axis in where.findobj(Axis):
        axis.get_majorticklabels()  # writes the names into the ticks
    for text in where.findobj(Text):
        words = text.get_text()
        own = tuple(text.get_fontfamily())
        if words.isascii() or all(c.isspace() or _has(c, own) for c in words):
            continue
        text.set_fontfamily([*own, *(family for family in installed() if family not in own)])
        shown = drawable(words)
        if shown != words:
            text.set_text(shown)


@lru_cache(maxsize=1)
def installed() -> tuple[str, ...]:
    """The fallback families that this machine has."""
    known = {font.name for font in font_manager.fontManager.ttflist}
    return tuple(family for family in FALLBACKS if family in known)


def _families() -> tuple[str, ...]:
    return tuple(FontProperties().get_family())


@lru_cache(maxsize=8192)
def _is_known(character: str, own: tuple[str, ...]) -> bool:
    return character.isspace() or any(_has(character, (family,)) for family in (*own, *installed()))


def _has(character: str, families: Iterable[str]) -> bool:
    return any(ord(character) in _glyphs(family) for family in families)


@lru_cache(maxsize=64)
def _glyphs(family: str) -> frozenset[int]:
    """Code points that a family, or one of a generic family's fonts, has."""
    try:
        path = font_manager.findfont(FontProperties(family=[family]), fallback_to_default=False)
        return frozenset(font_manager.get_font(path).get_charmap())
    except (ValueError, OSError, RuntimeError):  # not there, or no font that can be drawn
        return frozenset()


def _warn_once(name: str) -> None:
    global _warned
    with _lock:
        if _warned:
            return
        _warned = True
    warnings.warn(
        f"no installed font has all characters of “{name}” and maybe other names: figures show boxes for them; "
        + _ADVICE,
        stacklevel=2,
    )
