"""Numbers as people read them: one rounding for every unit."""

import random

import pytest

from cmtrack.digits import number, percent, percent_with_interval, points, two_places, with_interval


def test_a_share_has_the_same_digits_as_a_number_and_in_percent() -> None:
    """6492 of 8000 are 0.8115, which lies half-way: the tie goes to the even digit, in both units."""
    assert (number(6492 / 8000), percent(6492 / 8000)) == ("0.812", "81.2 %")
    assert with_interval(0.8115, (0.8035, 0.8205)) == "0.812 [0.804, 0.820]"
    assert percent_with_interval(0.8115, (0.8035, 0.8205)) == "81.2 % [80.4, 82.0]"
    draw = random.Random(0)
    for _ in range(3_000):
        rows = draw.choice([80, 200, 1_000, 8_000, 20_000])
        share = draw.randrange(rows // 100, rows - rows // 100) / rows
        in_percent = percent(share).removesuffix(" %")
        assert number(share).replace(".", "").lstrip("0") == in_percent.replace(".", "").lstrip(
            "0"
        ), share


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
