"""``estimate_prevalence(by=)``: what it reads, what it returns, and what it refuses."""

from __future__ import annotations

import json
import math
from html import escape
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cmtrack
from cmtrack import estimate_prevalence
from cmtrack.digits import p_equals, significant
from cmtrack.prevalence.domains import CellCounts, DomainPrevalence, Quantity, tabulate

REGIONS = ("east", "north", "west")
COLUMNS = [
    *("region", "year", "n", "labelled", "value", "low", "high"),
    *("count", "count_low", "count_high", "source", "assumption"),
    *("shift", "shift_low", "shift_high", "calibration", "calibration_low", "calibration_high"),
    *("fit_pvalue", "rows_needed", "why"),
]


def world(n: int = 9_000, seed: int = 0) -> pd.DataFrame:
    """Rows of three regions in three years, whose scores are calibrated."""
    rng = np.random.default_rng(seed)
    region = rng.integers(0, 3, n)
    score = 1 / (1 + np.exp(-rng.normal(np.array([-1.0, 0.0, 1.0])[region])))
    return pd.DataFrame(
        {
            "region": np.array(REGIONS)[region],
            "year": rng.integers(2017, 2020, n),
            "score": score,
            "y": rng.random(n) < score,
        }
    )


ROWS = world()
IS_LABELLED = (ROWS.index % 5 == 0) & (ROWS["year"] < 2019)
LABELLED = ROWS[IS_LABELLED]
TARGET = ROWS[~IS_LABELLED]


def table_of(
    target: pd.DataFrame = TARGET, labelled: pd.DataFrame = LABELLED, **options: Any
) -> DomainPrevalence:
    columns = options.pop("columns", ["region", "year"])
    given: dict[str, Any] = {
        "by": target[columns],
        "calibration": (labelled["y"].to_numpy(), labelled["score"].to_numpy()),
        "calibration_by": labelled[columns],
        "positive": True,
    }
    return estimate_prevalence(target["score"].to_numpy(), **(given | options))


TABLE = table_of()


# -- the table -------------------------------------------------------------------------------------


def test_the_frame_has_a_row_for_each_cell_and_all_columns() -> None:
    frame = TABLE.to_frame()
    assert list(frame.columns) == COLUMNS
    expected = TARGET.groupby(["region", "year"]).size()
    assert frame.set_index(["region", "year"])["n"].to_dict() == expected.to_dict()
    own = frame["source"] == "own rows"
    assert (frame.loc[own, "labelled"] >= 20).all()
    assert frame.loc[~own, "year"].eq(2019).all()
    assert set(frame.loc[~own, "source"]) <= {
        "undecided",
        *(f"other years of {region}" for region in REGIONS),
    }
    stated = frame["value"].notna()
    assert (frame["low"] < frame["value"])[stated].all()
    assert np.allclose(frame["count"], frame["n"] * frame["value"], equal_nan=True)
    assert frame[["shift", "calibration", "rows_needed"]].notna().all(axis=None)


def test_the_printed_table_says_what_the_frame_says() -> None:
    text = repr(TABLE)
    frame = TABLE.to_frame()
    lines = text.splitlines()
    assert lines[0].split()[:4] == ["region", "year", "rows", "labelled"]
    for line, row in zip(lines[1:], frame.to_dict("records"), strict=False):
        assert line.startswith(f"{row['region']:<6}  {row['year']}")
        assert f"{row['n']:,}" in line
        assert row["source"] in line
        if math.isfinite(row["value"]):
            assert f"{100 * row['value']:.1f}% [{100 * row['low']:.1f}," in line
            assert f"{row['count']:,.0f} [{row['count_low']:,.0f}," in line
    mean_error = {
        name: math.sqrt((part["error"] ** 2).mean())
        for name, part in TABLE.check[TABLE.check["left_out"] == "domains"].groupby("assumption")
    }
    for name, error in mean_error.items():
        assert f"by {100 * error:.1f} points (p " in text
        assert f"under {name}" in text
    assert "assume only that the labelled rows are a random part of their cell." in text


def test_notebook_html_shows_the_total_the_figure_and_the_table() -> None:
    html = TABLE._repr_html_()
    frame = TABLE.to_frame()
    assert "<img" in html
    assert html.count("<tr>") == len(frame) + 1
    for sentence in TABLE.sentences:
        assert html.count(escape(sentence)) == 1


def test_simultaneous_intervals_contain_the_others() -> None:
    alone = TABLE.to_frame()
    together = TABLE.to_frame(simultaneous=True)
    stated = alone["value"].notna()
    assert (together["low"] < alone["low"])[stated].all()
    assert (together["high"] > alone["high"])[stated].all()
    assert np.array_equal(together["value"], alone["value"], equal_nan=True)


def test_numbers_cover_the_counts_of_most_cells() -> None:
    frame = TABLE.to_frame().set_index(["region", "year"])
    truth = TARGET.groupby(["region", "year"])["y"].sum()
    stated = frame["count"].notna()
    inside = (frame["count_low"] <= truth) & (truth <= frame["count_high"])
    assert inside[stated].mean() > 0.8


def test_every_form_of_columns_gives_the_same_table() -> None:
    expected = repr(TABLE)
    arrays = {name: TARGET[name].to_numpy() for name in ("region", "year")}
    of_labelled = {name: LABELLED[name].tolist() for name in ("year", "region")}
    assert repr(table_of(by=arrays, calibration_by=of_labelled)) == expected
    series = [TARGET["region"], TARGET["year"]]
    of_labelled_series = [LABELLED["region"], LABELLED["year"]]
    assert repr(table_of(by=series, calibration_by=of_labelled_series)) == expected
    categories = TARGET[["region", "year"]].astype({"region": "category"})
    assert repr(table_of(by=categories)) == expected
    unnamed = table_of(by=TARGET["region"].to_numpy(), calibration_by=LABELLED["region"].to_numpy())
    assert unnamed.shares.tables.columns == ("domain",)


def test_rows_and_cells_in_another_order_change_nothing() -> None:
    shuffled = table_of(TARGET.sample(frac=1, random_state=1), LABELLED.sample(frac=1))
    numbers = ["value", "low", "high", "count_low", "shift", "calibration", "fit_pvalue"]
    assert np.allclose(
        shuffled.to_frame()[numbers], TABLE.to_frame()[numbers], rtol=1e-12, equal_nan=True
    )


@pytest.mark.parametrize("n", [40, 4_000])
def test_counts_by_cell_are_those_of_the_rows(n: int) -> None:
    """Few rows in many bins are counted by sorting, many rows with a table."""
    target = TARGET[:n]
    found = table_of(target).shares.tables
    wanted = tabulate(
        found.columns,
        found.keys,
        cell_counts(LABELLED, found.keys),
        cell_counts(target.assign(y=False), found.keys),
    )
    np.testing.assert_array_equal(found.target, wanted.target)
    np.testing.assert_array_equal(found.labelled, wanted.labelled)
    np.testing.assert_array_equal(found.own_bins, wanted.own_bins)


def cell_counts(rows: pd.DataFrame, keys: tuple[Any, ...]) -> CellCounts:
    places = zip(rows["region"], rows["year"], strict=True)
    cells = np.array([keys.index(key) for key in places])
    return CellCounts.from_rows(cells, rows["y"].to_numpy().astype(int), rows["score"].to_numpy())


def test_categories_keep_their_order_and_dates_become_texts() -> None:
    order = ["west", "north", "east"]
    kind = pd.CategoricalDtype(order)
    dates = {2017: "2017-03-01", 2018: "2018-03-01", 2019: "2019-03-01"}

    def moved(frame: pd.DataFrame) -> pd.DataFrame:
        days = pd.to_datetime(frame["year"].map(dates))
        return frame.assign(region=frame["region"].astype(kind), year=days)

    table = table_of(moved(TARGET), moved(LABELLED))
    assert table.to_frame()["region"].tolist() == sorted(REGIONS * 3, key=order.index)
    assert table.to_frame()["year"].unique().tolist() == list(dates.values())
    day = pd.Timestamp("2018-03-01")
    change = table.change(("east", "2017-03-01"), ("east", day))
    assert change.value == pytest.approx(TABLE.change(("east", 2017), ("east", 2018)).value)


# -- several cells ---------------------------------------------------------------------------------


def test_changes_ratios_and_totals() -> None:
    frame = TABLE.to_frame().set_index(["region", "year"])
    first, second = ("east", 2017), ("east", 2018)
    change = TABLE.change(first, second)
    assert change.value == pytest.approx(frame["value"][second] - frame["value"][first])
    assert change.low < change.value < change.high
    ratio = TABLE.ratio(first, second)
    assert ratio.value == pytest.approx(frame["value"][second] / frame["value"][first])
    growth = TABLE.ratio(first, second, counts=True)
    assert growth.value == pytest.approx(frame["count"][second] / frame["count"][first])
    total = TABLE.total([first, second])
    assert total.value == pytest.approx(frame["count"][first] + frame["count"][second])
    changes = TABLE.changes().set_index(["region", "first", "second"])
    row = changes.loc[("east", 2017, 2018)]
    assert row["value"] == pytest.approx(change.value)
    assert row["low"] < change.low
    assert row["high"] > change.high
    score = TABLE.score({True: 1, False: -1}, [first])
    assert score.value == pytest.approx(2 * frame["value"][first] - 1)
    moved = TABLE.score_change(first, second, {True: 1, False: -1})
    assert moved.value == pytest.approx(2 * change.value)
    own = TABLE.change(first, second, own=True)
    assert own.value == change.value
    assert own.standard_error != change.standard_error


def test_no_change_is_tested_on_cells_with_numbers() -> None:
    table = table_of(TARGET[TARGET["year"] < 2019])
    test = table.no_change()
    assert test.degrees == 3
    assert 0 < test.pvalue < 1


def test_a_change_with_a_cell_without_number_is_nan_with_its_reason() -> None:
    few = LABELLED[LABELLED["year"] == 2017]
    table = table_of(labelled=few)
    missing = table.to_frame().set_index(["region", "year"])["value"].isna()
    assert missing["east", 2019]
    change = table.change(("east", 2017), ("east", 2019))
    assert math.isnan(change.value)
    assert "east 2019" in change.why
    total = table.total()
    assert math.isnan(total.value)
    assert total.why
    assert "There is no total" in table.lead


def test_one_labelled_year_states_nothing_for_later_years() -> None:
    table = table_of(labelled=LABELLED[LABELLED["year"] == 2017])
    frame = table.to_frame()
    later = frame[frame["year"] > 2017]
    assert later["value"].isna().all()
    assert later["why"].str.contains("have only one value of year").all()
    assert later["why"].str.contains("label 20 rows of this cell for a number").all()
    assert later[["shift", "calibration"]].notna().all(axis=None)
    forced = table_of(labelled=LABELLED[LABELLED["year"] == 2017], assumption="calibration")
    later = forced.to_frame().query("year > 2017")
    assert later["value"].notna().all()
    assert later["why"].str.contains("not checked").all()


def test_shift_equals_the_single_estimate() -> None:
    labelled = LABELLED[LABELLED["region"] == "east"]
    target = TARGET[(TARGET["region"] == "east") & (TARGET["year"] == 2019)]
    options: dict[str, Any] = {"assumption": "shift", "columns": ["year"]}
    table = table_of(target, labelled, calibration_by=None, **options)
    single = estimate_prevalence(
        target["score"].to_numpy(),
        calibration=(labelled["y"].to_numpy(), labelled["score"].to_numpy()),
        positive=True,
        density="bins",
    )
    row = table.to_frame().iloc[0]
    assert row[["value", "low", "high", "count_low", "count_high"]].tolist() == [
        *(single.value, single.low, single.high, single.count_low, single.count_high)
    ]


def test_several_classes_have_a_row_for_each_class() -> None:
    rng = np.random.default_rng(2)
    p = rng.dirichlet([1, 1, 1], 3_000)
    y = np.array(["detractor", "passive", "promoter"])[
        (rng.random(3_000)[:, None] > p.cumsum(axis=1)).sum(axis=1)
    ]
    month = rng.integers(1, 4, 3_000)
    labelled = np.arange(3_000) % 4 == 0
    table = estimate_prevalence(
        p[~labelled],
        by={"month": month[~labelled]},
        calibration=(y[labelled], p[labelled]),
        calibration_by={"month": month[labelled]},
    )
    frame = table.to_frame()
    assert frame["label"].tolist() == ["detractor", "passive", "promoter"] * 3
    assert frame.groupby("month")["value"].sum().to_numpy() == pytest.approx(np.ones(3))
    nps = table.score("nps", [1])
    shares = frame[frame["month"] == 1].set_index("label")["value"]
    assert nps.value == pytest.approx(shares["promoter"] - shares["detractor"])
    change = table.change(1, 2, label="passive")
    shares = frame.set_index(["label", "month"])["value"]
    assert change.value == pytest.approx(shares["passive", 2] - shares["passive", 1])
    with pytest.raises(ValueError, match="total needs two classes, got 3"):
        table.total()
    with pytest.raises(ValueError, match="score has no value for 'passive'"):
        table.score({"promoter": 1, "detractor": -1})
    with pytest.raises(ValueError, match="label must be one of"):
        table.change(1, 2, label="other")


# -- plain data ------------------------------------------------------------------------------------


def test_counts_read_from_json_give_the_same_answers() -> None:
    data = json.loads(json.dumps(TABLE.to_dict()))
    table = DomainPrevalence.from_dict(data)
    pd.testing.assert_frame_equal(table.to_frame(), TABLE.to_frame())
    assert table.total() == TABLE.total()
    assert repr(table) == repr(TABLE)


@pytest.mark.parametrize(
    "change",
    [
        {"schema": 2},
        {"n_bins": 1},
        {"keys": [["east", 2017]]},
        {"positive": "other"},
        {"tables": {}},
        {"columns": ["region"]},
        {"assumption": "other"},
        {"labels": [False]},
        {"labels": [[False], [True]], "positive": [True]},
        {"labels": [True, True]},
        {"positive": False},
        {"columns": ["region", "region"]},
        {"period_values": [2017, 2018]},
        {"period_values": [[2017]]},
        {"period_values": "2017"},
        {"n_bins": 10**9},
    ],
)
def test_counts_that_do_not_fit_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"counts|schema|assumption|array"):
        DomainPrevalence.from_dict(json.loads(json.dumps(TABLE.to_dict())) | change)


@pytest.mark.parametrize("name", ["labelled", "target"])
def test_counts_without_rows_are_refused(name: str) -> None:
    data = json.loads(json.dumps(TABLE.to_dict()))
    data["tables"][name] = np.zeros_like(data["tables"][name]).tolist()
    with pytest.raises(ValueError, match="they contain no rows"):
        DomainPrevalence.from_dict(data)


@pytest.mark.parametrize("name", ["bins", "own_bins"])
def test_bins_that_need_a_huge_table_are_refused(name: str) -> None:
    data = json.loads(json.dumps(TABLE.to_dict()))
    data["tables"][name][0][0] = 1 << 40
    with pytest.raises(ValueError, match="their bins are not valid"):
        DomainPrevalence.from_dict(data)


# -- bad input -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"by": {"region": TARGET["region"].tolist()[:-10], "year": TARGET["year"]}},
            rf'by\["region"\] has {len(TARGET) - 10:,} values for {len(TARGET):,} scores',
        ),
        (
            {"calibration_by": {"region": LABELLED["region"], "month": LABELLED["year"]}},
            "calibration_by needs the columns region, year; got region, month",
        ),
        (
            {"calibration": (LABELLED["y"], LABELLED["score"], LABELLED["year"])},
            "fold ids are not taken together with by=",
        ),
        (
            {"by": TARGET[["region", "year"]].mask(TARGET["year"] == 2018).fillna({"region": "x"})},
            r"rows have no year; drop them or name them",
        ),
        ({"by": {"row": np.arange(len(TARGET)), "year": TARGET["year"]}}, "calibration_by needs"),
        ({"assumption": "both"}, "assumption must be one of"),
        ({"half_width": 5}, "half_width must be between 0 and 1, got 5"),
        ({"interval": "naive"}, "by= does not take density= and interval=, got 'auto' and 'naive'"),
        ({"by": None, "calibration_by": None, "assumption": "shift"}, "need by="),
    ],
)
def test_bad_input_is_refused_with_the_rule_and_the_value(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        table_of(**options)


def test_names_of_columns_instead_of_columns_get_a_hint() -> None:
    with pytest.raises(ValueError, match=r"by takes columns such as frame\[names\], not their"):
        table_of(by=["region", "year"])


def test_quantities_and_tests_are_printed_in_short() -> None:
    change = TABLE.change(("east", 2017), ("east", 2018))
    assert repr(change).startswith(f"Quantity({significant(change.value)}")
    assert repr(table_of(calibration_by=None).total()).startswith("Quantity(undefined: ")
    test = table_of(TARGET[TARGET["year"] < 2019]).no_change()
    assert repr(test).startswith(f"NoChange({p_equals(test.pvalue)}, X² ")
    assert repr(test).endswith(", 3 degrees)")
    assert repr(table_of(calibration_by=None).no_change()).startswith("NoChange(undefined: ")


def test_more_than_5000_cells_are_refused() -> None:
    n = 5_001
    rows = pd.DataFrame({"id": np.arange(n), "score": np.linspace(0, 1, n)})
    with pytest.raises(ValueError, match=r"by gives 5,00\d cells; more than 5,000 are not a table"):
        estimate_prevalence(
            rows["score"].to_numpy(),
            by={"id": rows["id"]},
            calibration=(LABELLED["y"].to_numpy(), LABELLED["score"].to_numpy()),
        )


@pytest.mark.parametrize("name", ["sample_weight", "weights", "clusters"])
def test_rows_with_weights_or_clusters_are_a_type_error(name: str) -> None:
    with pytest.raises(TypeError, match=name):
        table_of(**{name: np.ones(len(TARGET))})


def test_without_calibration_by_no_cell_has_own_rows() -> None:
    frame = table_of(calibration_by=None).to_frame()
    assert frame["labelled"].eq(0).all()
    assert frame["value"].isna().all()
    assert (
        frame["why"]
        .eq("no labelled rows have values of region and year; pass calibration_by=")
        .all()
    )


def test_a_cell_without_target_rows_is_named_in_the_error() -> None:
    with pytest.raises(
        KeyError, match=r"no rows of \('north', 2031\); cells are \('north', 2017\)"
    ):
        TABLE.change(("north", 2031), ("north", 2017))
    with pytest.raises(KeyError, match="no rows of"):
        TABLE.total([("north", 2031)])


def test_texts_that_may_be_the_same_month_give_a_warning_and_keep_their_order() -> None:
    names = {2017: "2024-2", 2018: "2024-10", 2019: "2024-02"}

    def moved(frame: pd.DataFrame) -> pd.DataFrame:
        return frame.sort_values("year").assign(year=lambda rows: rows["year"].map(names))

    table = table_of(moved(TARGET), moved(LABELLED))
    assert table.warnings == (
        "2024-02 and 2024-2 are different values of year, but may be the same month",
    )
    assert table.to_frame()["year"].unique().tolist() == list(names.values())


def test_few_rows_and_own_rows_of_one_class_are_remarked() -> None:
    target = TARGET.groupby(["region", "year"]).head(22)
    assert table_of(target).to_frame()["why"].str.contains("only 22 rows: read the total").all()
    is_east = (LABELLED["region"] == "east") & (LABELLED["year"] == 2017)
    labelled = LABELLED[~is_east | ~LABELLED["y"]]
    row = table_of(labelled=labelled).to_frame().set_index(["region", "year"]).loc["east", 2017]
    assert row["why"] == f"all {row['labelled']} labelled rows belong to one class"
    assert row["value"] > 0


def test_labelled_rows_unlike_their_cell_give_a_warning() -> None:
    is_east = (LABELLED["region"] == "east") & (LABELLED["year"] == 2017)
    labelled = LABELLED[~is_east | (LABELLED["score"] > 0.3)]
    table = table_of(labelled=labelled)
    assert table.warnings == (
        "labelled rows have other scores than all rows of the cell in east 2017; check that they "
        "are a random part of it",
    )
    assert table.warnings[0] in repr(table)


def test_fewer_than_three_labelled_cells_check_nothing() -> None:
    labelled = LABELLED[(LABELLED["region"] == "east") & (LABELLED["year"] == 2017)]
    frame = table_of(labelled=labelled).to_frame()
    others = frame[frame["source"] != "own rows"]
    assert len(others) == len(frame) - 1
    assert others["why"].str.contains("only 1 cell has 20 labelled rows").all()


def test_the_public_name_is_the_package_s() -> None:
    assert cmtrack.estimate_prevalence is estimate_prevalence


def test_a_cell_has_no_change_to_itself() -> None:
    cell = ("north", 2017)
    assert TABLE.change(cell, cell) == Quantity(0.0, 0.0, 0.0, 0.0)
    assert TABLE.ratio(cell, cell).value == 1


@pytest.mark.parametrize("cells", [[], "north", ()])
def test_a_total_needs_a_list_of_cells(cells: Any) -> None:
    with pytest.raises(ValueError, match="cells must be a list of one or more cells"):
        TABLE.total(cells)
    with pytest.raises(ValueError, match="cells must be a list of one or more cells"):
        TABLE.score("mean", cells)


def test_a_cell_with_too_few_values_is_named_with_the_columns() -> None:
    with pytest.raises(KeyError, match=r"each of the columns region, year; got \('north',\)"):
        TABLE.total(("north", 2017))


def test_shares_and_totals_stay_in_their_range() -> None:
    """Residuals of own rows can exceed the mean chance of other scores in the target."""
    scores = np.repeat([0.1, 0.9], [20, 400])
    y = np.r_[np.arange(20) < 2, np.arange(400) < 360]
    cell = np.repeat([1, 2], [20, 400])
    y[:20] = False
    scores[:20] = 0.9
    table = estimate_prevalence(
        np.r_[np.full(100, 0.1), np.full(100, 0.9)],
        by={"cell": np.repeat([1, 2], 100)},
        calibration=(np.r_[y, np.repeat([False, True], [95, 5])], np.r_[scores, np.full(100, 0.1)]),
        calibration_by={"cell": np.r_[cell, np.full(100, 3)]},
    )
    row = table.to_frame().iloc[0]
    assert table.shares.calibrated(table.shares.tables.keys.index((1,)), np.eye(2)[1]).value < -0.5
    assert (row["value"], row["low"], row["count"]) == (0, 0, 0)
    assert table.total([1]).value == 0


def test_a_tiny_share_is_inside_its_interval() -> None:
    rng = np.random.default_rng(0)
    score = rng.choice([1e-5, 1e-4, 5e-4], 200_000)
    y = rng.random(len(score)) < score
    table = estimate_prevalence(
        score, by={"cell": np.ones(len(score))}, calibration=(y, score),
        calibration_by={"cell": np.ones(len(score))},
    )  # fmt: skip
    row = table.to_frame().iloc[0]
    assert row["low"] < row["value"] == pytest.approx(y.mean(), rel=0.01)
    assert row["count_low"] <= row["count"] <= row["count_high"] < 3 * row["count"]


def test_constant_scores_are_alike_in_all_cells() -> None:
    table = table_of(TARGET.assign(score=0.5), LABELLED.assign(score=0.5))
    assert table.warnings == ()


def test_a_remark_names_three_of_its_cells() -> None:
    table = table_of(calibration_by=None)
    assert table.remarks() == [
        "east 2017, east 2018, east 2019 and 6 more cells: "
        "no labelled rows have values of region and year; pass calibration_by="
    ]


@pytest.mark.parametrize(
    ("target", "labelled"),
    [
        (lambda year: year, lambda year: year.astype(str)),
        (lambda year: year.astype(str), lambda year: year),
        (lambda year: year.astype(float), lambda year: year.astype(str)),
        (lambda year: year.astype(str) + "-01-01", lambda year: year.astype(str) + "-01-01 00:00:00"),
    ],
)  # fmt: skip
def test_values_of_other_types_are_the_same_cells(target: Any, labelled: Any) -> None:
    table = table_of(
        TARGET.assign(year=target(TARGET["year"])), LABELLED.assign(year=labelled(LABELLED["year"]))
    )
    assert table.warnings == ()
    assert table.to_frame()["labelled"].tolist() == TABLE.to_frame()["labelled"].tolist()
    assert table.to_frame()["value"].tolist() == TABLE.to_frame()["value"].tolist()


def test_flags_are_the_same_cells_as_numbers() -> None:
    table = table_of(
        TARGET.assign(region=TARGET["region"] == "east"),
        LABELLED.assign(region=(LABELLED["region"] == "east").astype(int)),
    )
    assert table.to_frame()["labelled"].sum() == len(LABELLED)


def test_labelled_rows_of_other_domains_only_give_a_warning() -> None:
    table = table_of(labelled=LABELLED.assign(region=LABELLED["region"].str.upper()))
    assert table.warnings == (
        "no labelled row has a region of the rows to count: the labelled rows have 'EAST', and "
        "the rows to count have 'east'",
    )


def test_categories_of_the_other_table_follow_the_declared_ones() -> None:
    years = pd.Categorical(LABELLED["year"], categories=[2018, 2017], ordered=True)
    frame = table_of(labelled=LABELLED.assign(year=years)).to_frame()
    assert frame["year"].unique().tolist() == [2018, 2017, 2019]


@pytest.mark.parametrize("name", ["value", "n", "why", "source"])
def test_a_column_of_the_result_cannot_be_a_by_column(name: str) -> None:
    columns = {"region": name}
    with pytest.raises(ValueError, match=f"by cannot have the column '{name}'"):
        table_of(
            TARGET.rename(columns=columns),
            LABELLED.rename(columns=columns),
            columns=[name, "year"],
        )


def test_odd_names_take_one_short_line() -> None:
    name = "re\x1b[31mgion\n" + "x" * 300
    rows = TARGET.assign(region=TARGET["region"] + "\x00\n" + "y" * 300)
    labelled = LABELLED.assign(region=LABELLED["region"] + "\x00\n" + "y" * 300)
    columns = {"region": name}
    table = table_of(
        rows.rename(columns=columns), labelled.rename(columns=columns), columns=[name, "year"]
    )
    lines = repr(table).splitlines()
    assert lines[0].startswith("re\\x1b[31mgion xxx")
    assert lines[1].startswith("east\\x00 yyy")
    assert max(map(len, lines[:5])) < 250


def test_a_cell_is_found_by_a_text_or_a_number() -> None:
    expected = TABLE.change(("north", 2017), ("north", 2018))
    assert TABLE.change(("north", "2017"), ("north", 2018.0)) == expected


def test_a_cell_of_one_row_is_named_in_the_singular() -> None:
    row = table_of(TARGET.head(1)).to_frame().iloc[0]
    assert row["why"].endswith("only 1 row: read the total")


def test_the_class_of_the_check_is_named_if_there_are_several() -> None:
    rng = np.random.default_rng(0)
    chances = rng.dirichlet(np.ones(3), 1_500)
    y = (rng.random(1_500)[:, None] > chances.cumsum(axis=1)).sum(axis=1)
    cell = rng.integers(0, 4, 1_500)
    table = estimate_prevalence(
        chances,
        by={"cell": cell},
        calibration=(y, chances),
        calibration_by={"cell": cell},
    )
    assert "These errors are about the share of “1”." in " ".join(table.sentences)
    assert "These errors" not in " ".join(TABLE.sentences)


def test_the_class_of_a_figure_s_row_is_quoted() -> None:
    shares = TABLE.shares
    table = DomainPrevalence(shares, (0, 1, 2), 1)
    assert table.names_of(shares.cells[0]) == ("east, “1”", "2017")


def test_cells_may_come_in_an_array() -> None:
    cells = [("east", 2017), ("north", 2018)]
    assert TABLE.total(np.array(cells)) == TABLE.total(cells)
