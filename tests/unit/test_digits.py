"""Numbers as people read them: one rounding for every unit."""

import math
import random
import re

import numpy as np
import pytest

from cmtrack import compare, evaluate
from cmtrack.digits import (
    interval,
    number,
    p_equals,
    percent,
    percent_with_interval,
    plain_numbers,
    points,
    significant,
    significant_with_interval,
    two_places,
    two_places_interval,
    with_interval,
)
from cmtrack.names import join_names
from cmtrack.plots import as_svg


def test_a_share_has_the_same_digits_as_a_number_and_in_percent() -> None:
    """6492 of 8000 are 0.8115, which lies half-way: the tie goes to the even digit, in both units."""
    assert (number(6492 / 8000), percent(6492 / 8000)) == ("0.812", "81.2%")
    assert with_interval(0.8115, (0.8035, 0.8205)) == "0.812 [0.804, 0.820]"
    assert percent_with_interval(0.8115, (0.8035, 0.8205)) == "81.2% [80.4, 82.0]"
    draw = random.Random(0)
    for _ in range(3_000):
        rows = draw.choice([80, 200, 1_000, 8_000, 20_000])
        share = draw.randrange(rows // 100, rows - rows // 100) / rows
        in_percent = percent(share).removesuffix("%")
        assert number(share).replace(".", "").lstrip("0") == in_percent.replace(".", "").lstrip(
            "0"
        ), share


def test_a_repr_has_the_digits_of_the_page() -> None:
    right = np.arange(8000) < 6492
    actual = np.arange(8000) % 2
    evaluation = evaluate(actual, np.where(right, actual, 1 - actual))
    assert "accuracy 0.812" in repr(evaluation)
    assert significant_with_interval(0.8115, 0.8035, 0.8205) == "0.812 [0.804, 0.820]"
    assert significant_with_interval(0.8115, math.nan, math.nan) == "0.812"
    assert significant_with_interval(math.nan, 0.0, 1.0) == "undefined"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0005, "0.0005"),
        (0.00051, "0.001"),
        (-0.0625, "−0.062"),
        (-0.00001, "−1e−05"),
        (1.0, "1.000"),
    ],
)
def test_numbers_near_the_edges(value: float, text: str) -> None:
    assert number(value) == text


def test_a_negative_number_that_rounds_to_zero_has_no_sign() -> None:
    assert two_places(-0.005) == "0.00"
    assert points(-0.0004, None) == "0.0 percentage points"


@pytest.mark.parametrize(
    ("value", "ends", "shown"),
    [
        (0.71234567, None, "0.712"),
        (0.998768, (0.99871, 0.99882), "0.99877"),
        (0.5, (0.1, 0.9), "0.500"),
        (1.0, (0.98, 1.0), "1.000"),
        (1234.5, None, "1,234"),
        (12.0, None, "12"),
        (-0.25, None, "−0.250"),
        (3.4e-23, None, "3.4e−23"),
        (math.nan, None, "undefined"),
        (math.inf, None, "∞"),
    ],
)
def test_numbers_for_people(value: float, ends: tuple[float, float] | None, shown: str) -> None:
    assert number(value, ends) == shown


def test_intervals_for_people() -> None:
    assert with_interval(0.5, (0.4, 0.6)) == "0.500 [0.400, 0.600]"
    assert with_interval(0.5, None) == "0.500"
    assert interval(math.nan, (math.nan, math.nan)) == ""
    assert percent(1.0) == "100%"
    assert percent_with_interval(0.799, (0.736, 0.85)) == "79.9% [73.6, 85.0]"
    assert percent_with_interval(0.99877, (0.99871, 0.99882)) == "99.877% [99.871, 99.882]"
    assert percent_with_interval(0.5, None) == "50.0%"
    assert percent_with_interval(math.nan, (0.1, 0.2)) == "undefined"
    assert [percent(share) for share in (1.91612, 12.4, -0.05, -7.6)] == [
        "191.6%",
        "1240.0%",
        "−5.0%",
        "−760.0%",
    ]
    assert percent_with_interval(-7.6, (-9.04, -0.0001)) == "−760.0% [−904.0, 0.0]"
    assert interval(-0.1, (-0.2, -0.0001)) == "[−0.200, −0.0001]"
    assert interval(-0.01, (-0.02, 0.0)) == "[−0.020, 0.000]"
    assert interval(-0.01, (-0.02, 0.0003)) == "[−0.020, 0.0003]"
    assert number(-0.0004, (-0.3, 0.3)) == "−0.0004"
    assert points(-0.061, (-0.122, -0.0002)) == "−6.10 percentage points [−12.20, −0.02]"
    assert points(0.11, (-0.0003, 0.225)) == "11.0 percentage points [0.0, 22.5]"
    assert two_places_interval((-0.001, 0.3)) == "[0.00, 0.30]"
    assert percent(0.9999) == "99.990%"
    assert percent(math.nan) == "undefined"


@pytest.mark.parametrize(
    ("p", "shown"),
    [(0.001, "p ≤ 0.001"), (0.0004, "p < 0.001"), (0.002, "p = 0.002"), (0.00101, "p = 0.001")],
)
def test_the_least_p_of_the_draws_is_not_an_equality(p: float, shown: str) -> None:
    assert p_equals(p) == shown


def test_a_page_shows_a_share_in_one_way(tmp_path) -> None:
    """Accuracy and area are 0.8115; the float next to it is smaller, which would be rounded to 0.811 and 81.2%."""
    y = np.repeat([0, 1], 4_000)
    predicted = np.concatenate([np.arange(4_000) < 754, np.arange(4_000) >= 754]).astype(int)
    evaluation = evaluate(y, y_prob=np.where(predicted, 0.9, 0.1))
    assert evaluation.metrics["multiclass/accuracy"] == 0.8115
    assert evaluation.metrics["binary/roc_auc"] == pytest.approx(0.8115, abs=1e-12)
    page = evaluation.report(tmp_path / "page.html").read_text()
    figure = as_svg(evaluation.figures()["roc"])
    runs = {"a": evaluation, "b": evaluate(y, predicted)}
    review = compare(runs, rank_by="multiclass/accuracy").report(tmp_path / "review.md")
    texts = [page, figure, review.read_text()]
    assert all("0.812" in text for text in texts)
    assert not any(re.search(r"0\.811(?!\d)|81\.1 ?%", text) for text in texts)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.8115, "0.812"), (20.0, "20"), (1234.5, "1,230"), (-0.5, "−0.5"), (1.2e-5, "1.2e−05")],
)
def test_significant_digits(value: float, text: str) -> None:
    assert significant(value) == text


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ([], ""),
        (["a"], "a"),
        (["a", "b", "c", "d"], "a, b, c and d"),
        (["a", "b", "c", "d", "e"], "a, b, c and 2 more"),
    ],
)
def test_names_in_a_sentence(names: list[str], text: str) -> None:
    assert join_names(names, 3) == text


def test_values_of_a_tie_breaker_are_told_apart() -> None:
    assert plain_numbers([0.7723, 0.7719, 2.0]) == ["0.7723", "0.7719", "2"]
    assert plain_numbers([0.77234, 0.5]) == ["0.772", "0.5"]
    assert plain_numbers([0.1, 0.1]) == ["0.1", "0.1"]
    assert plain_numbers([None, math.nan, "a"]) == ["none", "undefined", "a"]
