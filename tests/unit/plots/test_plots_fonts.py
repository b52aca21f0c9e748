"""Names in any script: drawn by an installed font, or as boxes with one warning that says what to install."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from io import BytesIO

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from cmtrack import evaluate

# Inside: which fonts are installed and what was looked up before is the machine's; a test must set both.
from cmtrack.plots import _text as text
from cmtrack.plots import as_png, as_svg_and_png, plot_confusion_matrix
from cmtrack.plots.review import plot_ranking
from support.problems import random_problem

CJK = ["支持民主党", "반대합니다", "わからない"]
NOWHERE = "\U000f0001"  # private: in no font
RARE = "\u20dd\u1d81"  # in STIX, which comes with matplotlib, but not in DejaVu Sans


def forget() -> None:
    for cached in (text.installed, text._is_known, text._glyphs, text._look_again):
        cached.cache_clear()


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each test as in a fresh process."""
    monkeypatch.setattr(text, "_warned", False)
    forget()
    yield
    forget()


def written(figure: Figure) -> list[Text]:
    return [t for t in figure.findobj(Text) if t.get_text()]


@pytest.mark.slow
def test_39_lines_of_warnings_are_one_that_names_the_label_and_the_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(text, "FALLBACKS", ("DejaVu Sans",))  # a machine without a CJK font
    y, _, p = random_problem(0, k=3)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        figures = evaluate(np.array(CJK)[y], y_prob=dict(zip(CJK, p.T, strict=True))).figures()
        for figure in figures.values():
            as_png(figure)
    (warning,) = caught
    assert any(name in str(warning.message) for name in CJK)
    assert "Noto Sans CJK" in str(warning.message)
    names = [t.get_text() for t in figures["confusion_matrix"].axes[0].get_xticklabels()]
    assert names == [
        f"{name} [{i}]" for i, name in enumerate(sorted(CJK), start=1)
    ]  # boxes in an image, but no two alike
    assert [text.boxed(name) for name in names] == ["□□□□□ [1]", "□□□□□ [2]", "□□□□□ [3]"]
    svg, _ = as_svg_and_png(figures["confusion_matrix"])
    assert all(name in svg for name in names)  # a browser has fonts of its own
    assert "□" not in svg


def test_fonts_that_were_installed_since_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    import matplotlib.font_manager as manager

    (stix,) = (
        font.fname for font in manager.fontManager.ttflist if font.fname.endswith("STIXGeneral.ttf")
    )
    old = [font for font in manager.fontManager.ttflist if "STIX" not in font.name]
    monkeypatch.setattr(manager.fontManager, "ttflist", old)  # as listed before
    monkeypatch.setattr(manager, "findSystemFonts", lambda: [stix, __file__])
    monkeypatch.setattr(text, "FALLBACKS", ("STIXGeneral",))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert text.drawable(RARE) == RARE


def test_an_installed_font_draws_what_the_own_one_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "FALLBACKS", ("DejaVu Sans", "STIXGeneral"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = plot_confusion_matrix(30 * np.eye(2), [f"a{RARE}", "plain"], title="Plain")
        as_png(figure)
        figure.savefig(BytesIO(), format="svg")
    by_text = {t.get_text(): t.get_fontfamily() for t in written(figure) if t.get_visible()}
    assert by_text[f"a{RARE} (n=30)"][-1] == "STIXGeneral"
    assert "STIXGeneral" not in by_text["Plain"]  # others keep their font
    assert "STIXGeneral" not in by_text["plain (n=30)"]


def test_figures_of_several_panels_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "FALLBACKS", ("STIXGeneral",))
    values = np.array([0.8, 0.7])
    none = np.full((2, 2), np.nan)
    figure = plot_ranking(
        [f"run {RARE}", "run"],
        values,
        none,
        values - 0.8,
        none,
        tied=np.array([True, False]),
        picked=np.zeros(2, dtype=bool),
        metric_title="accuracy",
        better="higher",
    )
    families = [
        t.get_fontfamily() for t in written(figure) if RARE in t.get_text() and t.get_visible()
    ]
    assert families
    assert all("STIXGeneral" in family for family in families)


def test_the_families_of_the_process_come_first_and_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    import matplotlib as mpl

    with mpl.rc_context({"font.family": ["STIXGeneral", "sans-serif"]}), warnings.catch_warnings():
        warnings.simplefilter("error")
        before = dict(mpl.rcParams)
        figure = plot_confusion_matrix(30 * np.eye(2), [RARE, "b"])
        as_png(figure)
        assert dict(mpl.rcParams) == before
    families = [t.get_fontfamily() for t in written(figure) if RARE in t.get_text()]
    assert families == [["STIXGeneral", "sans-serif"]] * len(families) != []


@pytest.mark.parametrize("name", ["", "plain", "Ответ", "naïve – “x”", "★ ▲ ▼ … − →0 ≥"])
def test_common_names_are_left_alone(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert text.drawable(name) == name


def test_no_font_at_all_is_a_box_and_one_warning() -> None:
    with pytest.warns(UserWarning, match="no installed font has all characters of") as caught:
        shown = [text.drawable(f"{letter}{NOWHERE}") for letter in "ab"]
    assert shown == ["a□", "b□"]
    assert len(caught) == 1


def test_wide_characters_count_as_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    assert text.columns("abc") == 3
    assert text.columns("支持") == pytest.approx(10 / 3)
    assert text.text_width("支持民主党", 10) == pytest.approx(5 * 10)  # an em each
    assert text.wrap("支持民主党支持", 6) == "支持民\n主党支\n持"
    monkeypatch.setattr(text, "boxed", str)
    short = text.short_names(
        [f"支持民主党の候補者に投票した人の割合その{i}番" for i in range(3)], 20
    )
    assert len(set(short)) == 3
    assert all(text.columns(name) <= 21 for name in short)
