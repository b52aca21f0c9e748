"""The intervals drawn in the rows of a ranking: they say what the numbers beside them say."""

from __future__ import annotations

import math
import re

import pytest

from cmtrack import compare, evaluate
from cmtrack.report.review import html

# how far the axis of a column reaches if one value or one interval is extreme: no small data set has such runs
from cmtrack.report.review.bars import bars
from support.problems import random_labels, random_scores


def runs_of(skills, n=400):
    y = random_labels(n)
    return {
        f"run {k}": evaluate(y, y_prob=random_scores(y, skill, k)) for k, skill in enumerate(skills)
    }


WIDTH = 90  # of a drawing, by its viewBox


ROW = re.compile(r'<tr class="(\w+)(?: chosen)?" data-run="(\d+)"[^>]*>(.*?)</tr>', re.DOTALL)
CELL = re.compile(
    r'<td class="n"[^>]*>([^<]*)</td><td class="i">(?:\[([^,]+), ([^\]]+)\])?<svg class="bar"[^>]*'
    r'data-from="([^"]+)" data-to="([^"]+)">(?:<path class="zero"[^>]* d="M([\d.]+) 0V12"/>)?'
    r'<path class="reach" d="M([\d.]+) 6H([\d.]+)"/>(.*?)</svg></td>'
)


def numbers(text):
    return float(text.replace("−", "-"))


def drawn(page, kind="ranking"):
    """Of each row its status, and of each drawn interval the numbers beside it and what its marks stand for."""
    tables = re.findall(f'<table class="sortable {kind}">(.*?)</table>', page, re.DOTALL)
    for status, _, row in ROW.findall("".join(tables)):
        for text, low, high, first, last, zero, start, end, mark in CELL.findall(row):
            first, last = float(first), float(last)

            def value(place, first=first, last=last):
                return first + (float(place) - 5) / (WIDTH - 10) * (last - first)

            centre = re.search(r'cx="([\d.]+)"', mark)
            yield (
                status,
                (text, low, high),
                (value(start), value(end)),
                centre and value(centre[1]),
                zero,
                (first, last),
            )


@pytest.mark.slow
@pytest.mark.parametrize(
    "shifts", [(2.0, 1.9, 1.2), (1.0,), (2.0, 1.8, 0.1, 0.0)], ids=["three", "alone", "outliers"]
)
def test_the_marks_of_an_interval_are_its_numbers(shifts):
    comparison = compare(runs_of(shifts), rank_by="binary/matthews_corrcoef")
    page = html(comparison, pictures={})
    assert set(re.findall(r'<svg class="bar" viewBox="(.*?)"', page)) == {f"0 0 {WIDTH} 12"}
    found = list(drawn(page))
    assert len(found) == len(shifts) + (len(shifts) if len(shifts) > 1 else 0)
    by_other_metrics = list(drawn(page, "answer"))
    assert (len(by_other_metrics) > 10 * len(shifts)) == (len(shifts) > 1)
    for status, (text, low, high), ends, centre, zero, (first, last) in found + by_other_metrics:
        near = 1.1e-3 + (last - first) / WIDTH * 0.01
        if low:
            for written, shown in zip(map(numbers, (low, high)), ends, strict=True):
                assert min(max(written, first), last) == pytest.approx(shown, abs=near)
        if text == "leader":
            assert zero
            assert centre == pytest.approx(0, abs=near)
        elif centre is not None:
            assert numbers(text) == pytest.approx(centre, abs=near)
        else:
            assert not first <= numbers(text) <= last  # an arrow at the edge
            assert status == "behind"
        if zero:
            assert first + (float(zero) - 5) / (WIDTH - 10) * (last - first) == pytest.approx(
                0, abs=near
            )


def test_a_bad_run_does_not_flatten_the_others():
    values, lows, highs = [0.9, 0.89, 0.1], [0.88, 0.87, 0.05], [0.92, 0.91, 0.15]
    good, _, bad = bars(list(zip(values, lows, highs, strict=True)), [True, True, False])
    assert good is not None
    assert bad is not None
    assert good.high - good.low > 0.25 * WIDTH
    assert (bad.beyond, bad.at) == ("left", bad.low)
    assert good.first + (good.at - 5) / (WIDTH - 10) * (good.last - good.first) == pytest.approx(
        0.9, abs=1e-3
    )


def test_what_is_not_known_is_not_drawn():
    assert bars([(0.5, math.nan, 0.6), (math.nan, 0.1, 0.2)], [True, True]) == [None, None]
    (alone,) = bars([(0.0, 0.0, 0.0)], [True], zero=True)
    assert alone is not None
    assert alone.at == alone.zero == pytest.approx(WIDTH / 2)


def test_one_wide_interval_does_not_set_the_scale_and_has_an_arrow():
    # one of four tied runs had ±74.6: the bars of all others were dots
    values, reach = [0.0, -0.001, -0.002, -0.003], [0.01, 0.012, 74.636, 0.01]
    lows, highs = ([v + s * r for v, r in zip(values, reach, strict=True)] for s in (-1, 1))
    drawn = bars(list(zip(values, lows, highs, strict=True)), [True] * 4, zero=True)
    assert all(bar is not None for bar in drawn)
    assert drawn[0].last - drawn[0].first < 0.1
    assert [bar.arrows for bar in drawn] == [(), (), ("left", "right"), ()]
    assert drawn[0].high - drawn[0].low > WIDTH / 6
