"""Wrong input gives an error that states the rule and the value, before anything else happens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import cmtrack
from cmtrack import ConfusionMatrix, Evaluation, Grouping, estimate_prevalence, evaluate
from cmtrack.metrics import lookup, on_scale, roc_curve, standardised_spcc
from cmtrack.statistics import ScoreCounts, ScoreMoments

pl = pytest.importorskip("polars")

Y = [0, 1, 1, 0]
P = [0.2, 0.7, 0.6, 0.4]
P3 = [[0.2, 0.3, 0.5], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4], [0.6, 0.2, 0.2]]
Y3 = [0, 1, 2, 0]
NAN = float("nan")

LABELS: list[tuple[str, tuple[Any, ...], dict[str, Any], str]] = [
    ("lengths", (Y, [0, 1]), {}, r"must have the same length, got \{'y_true': 4, 'y_pred': 2\}"),
    ("unknown label", (Y, [0, 1, 2, 5]), {"labels": [0, 1]},
     r"y_pred has labels that are not in \[0, 1\]: \[2, 5\] \(2 rows\)"),
    ("unknown actual label", ([0, 1, 7, 0], Y), {"labels": [0, 1]}, r"y_true has labels that are not in .*\[7\]"),
    ("NaN", ([0, NAN, 1, 0], Y), {}, r"y_true must not have missing labels, got 1, the first at row 1"),
    ("infinite", ([0, np.inf, 1, 0], Y), {}, r"y_true must not have missing labels, got 1, the first at row 1"),
    ("None", (Y, [0, 1, None, None]), {}, r"y_pred must not have missing labels, got 2, the first at row 2"),
    ("NaN among texts", (["a", NAN, "b", "a"], ["a"] * 4), {}, "y_true must not have missing labels, got 1, .* row 1"),
    ("NaN in a tuple", (("a", NAN, "b", "a"), ["a"] * 4), {}, "y_true must not have missing labels, got 1, .* row 1"),
    ("pandas NA", (pd.Series([0, pd.NA, 1, 0], dtype="Int64"), Y), {}, "y_true must not have missing labels, got 1"),
    ("pandas NaN category", (pd.Series(["a", None, "b", "a"], dtype="category"), ["a"] * 4), {},
     "y_true must not have missing labels, got 1, the first at row 1"),
    ("pandas missing text", (pd.Series(["a", None, "b", "a"]), ["a"] * 4), {}, "must not have missing labels, got 1"),
    ("polars null", (pl.Series([0, None, 1, 0]), Y), {}, "y_true must not have missing labels, got 1, .* row 1"),
    ("polars null text", (pl.Series(["a", None, "b", "a"]), ["a"] * 4), {}, "must not have missing labels, got 1"),
    ("polars null Enum", (pl.Series(["a", None, "b", "a"], dtype=pl.Enum(["a", "b"])), ["a"] * 4), {},
     "must not have missing labels, got 1, the first at row 1"),
    ("arrow null", (pa.array([0, None, 1, 0]), Y), {}, "y_true must not have missing labels, got 1, .* row 1"),
    ("arrow null in dictionary", (pa.array(["a", None, "b", "a"]).dictionary_encode(), ["a"] * 4), {},
     "must not have missing labels, got 1, the first at row 1"),
    ("empty", ([], []), {}, r"at least one row is needed, got \{'y_true': 0, 'y_pred': 0\}"),
    ("one class", ([1, 1], [1, 1]), {}, r"at least two classes are needed, got only \[1\]; name absent classes with"),
    ("one label", ([1, 1], [1, 1]), {"labels": [1]}, r"at least two classes are needed, got only \[1\]"),
    ("repeated labels", (Y, Y), {"labels": [0, 1, 1]}, r"labels must not repeat, got \[0, 1, 1\]"),
    ("labels alike", (Y, Y), {"labels": [0, 1, "1"]}, r"labels must differ as strings, .* got \[0, 1, '1'\]"),
    ("mixed kinds", ([0, "a", 1, 0], Y), {}, "labels must be of one type that can be sorted, got .*'int', 'str'"),
    ("kinds differ", (["a", "b", "a", "b"], Y), {}, "labels must be of one type"),
    ("two columns", (np.zeros((4, 2)), Y), {}, r"y_true must have shape \(n_samples,\), got \(4, 2\)"),
    ("probabilities as labels", (Y3, np.array(P3)), {}, r"got \(4, 3\); probabilities are given as y_prob="),
    ("one-hot labels", (np.eye(3)[Y3], Y3), {}, r"got \(4, 3\); one-hot rows become labels as classes\[y_true.argmax"),
    ("rows of lists", ([[0], [0, 1]], [0, 1]), {}, r"y_true must contain one label per row, got rows like \[0\]"),
    ("single value", (1, Y), {}, r"y_true must have shape \(n_samples,\), got \(\)"),
    ("dates", (np.array(["2020-01-01"] * 4, dtype="datetime64[D]"), Y), {}, "must contain integers, .* datetime64"),
    ("too many classes", (np.arange(10_001), np.arange(10_001)), {}, "at most 10000 classes are supported, got 10001"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("args", "options", "text"), [c[1:] for c in LABELS], ids=[c[0] for c in LABELS]
)
@pytest.mark.parametrize(
    "call", [evaluate, ConfusionMatrix.from_predictions], ids=["evaluate", "matrix"]
)
def test_labels(call: Any, args: tuple[Any, ...], options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        call(*args, **options)


WEIGHTS: list[tuple[str, Any, str]] = [
    (
        "negative",
        [1, 1, -2, 1],
        r"sample_weight must be finite and not negative, got -2.0 at row 2",
    ),
    ("NaN", [1, NAN, 1, 1], r"sample_weight must be finite, got nan at row 1"),
    ("infinite", [1, 1, 1, np.inf], r"sample_weight must be finite, got inf at row 3"),
    ("short", [1, 1], r"sample_weight must have shape \(4,\), got \(2,\)"),
    ("matrix", np.ones((4, 2)), r"sample_weight must have shape \(4,\), got \(4, 2\)"),
    ("zero", [0, 0, 0, 0], "sample_weight must be above 0 in at least one row"),
    ("text", ["a", "b", "c", "d"], "sample_weight must contain numbers"),
    ("scalar", 2.0, r"sample_weight must be an array, got the single value 2.0"),
]


@pytest.mark.parametrize(("weights", "text"), [c[1:] for c in WEIGHTS], ids=[c[0] for c in WEIGHTS])
@pytest.mark.parametrize(
    "call", [evaluate, ConfusionMatrix.from_predictions], ids=["evaluate", "matrix"]
)
def test_weights(call: Any, weights: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        call(Y, Y, sample_weight=weights)


PROBABILITIES: list[tuple[str, list[Any], Any, dict[str, Any], str]] = [
    ("above one", Y, [0.2, 0.7, 1.5, 0.4], {}, r"y_prob must be in \[0, 1\], got 1.5 at row 2"),
    ("negative", Y, [0.2, -0.1, 0.5, 0.4], {}, r"y_prob must be in \[0, 1\], got -0.1 at row 1"),
    ("NaN", Y, [0.2, 0.1, NAN, 0.4], {}, "y_prob must be finite, got nan at row 2"),
    (
        "NaN in a matrix",
        Y3,
        [*P3[:3], [0.6, NAN, 0.2]],
        {},
        "y_prob must be finite, got nan at row 3",
    ),
    ("infinite", Y, [0.2, 0.1, np.inf, 0.4], {}, "y_prob must be finite, got inf at row 2"),
    (
        "row sum",
        Y3,
        [*P3[:3], [0.6, 0.2, 0.3]],
        {},
        "each row of y_prob must sum to 1, row 3 sums to 1.1",
    ),
    ("rows", Y, P[:3], {}, "y_prob must have one row per label, got 3 rows and 4 labels"),
    (
        "one column for three classes",
        Y3,
        P,
        {},
        r"got \(4,\); one column is enough for two classes, not for 3",
    ),
    (
        "labels as probabilities",
        Y3,
        ["a", "b", "c", "a"],
        {},
        "got list; labels are given as y_pred=",
    ),
    (
        "columns",
        Y,
        P3,
        {},
        r"y_prob must have shape \(n_samples, 2\) or \(n_samples,\) for the labels \[0, 1\], "
        r"got \(4, 3\); name all classes of the model with labels=",
    ),
    ("three axes", Y, np.zeros((4, 2, 2)), {}, r"y_prob must have shape .* got \(4, 2, 2\)"),
    (
        "ragged",
        Y3,
        [[0.1, 0.9], [0.2], [1.0], [1.0]],
        {},
        "y_prob must contain numbers in a regular array, got list",
    ),
    ("text", Y, ["a"] * 4, {}, "y_prob must contain numbers"),
    (
        "mapping without a label",
        Y3,
        {0: [0.2] * 4, 1: [0.8] * 4},
        {},
        r"labels must be among the declared classes \[0, 1\], got \[2\]; the columns of y_prob",
    ),
    (
        "mapping without a given label",
        Y3,
        {0: [0.2] * 4, 1: [0.8] * 4},
        {"labels": [0, 1, 2]},
        r"y_prob must have a column for each label, \[2\] not in \[0, 1\]",
    ),
    (
        "mapping of one label",
        Y,
        {1: [0.8] * 4},
        {},
        r"labels must be among the declared classes \[1\], got \[0\]",
    ),
    (
        "frame with a strange column",
        Y,
        pd.DataFrame({"0": P, "1": P, "id": P}),
        {},
        r"declared classes must be of the labels' type \['int'\], got 'id'",
    ),
    (
        "frame with a strange column, labels given",
        Y,
        pd.DataFrame({"0": P, "1": P, "id": P}),
        {"labels": [0, 1]},
        r"columns of y_prob must be labels, got \['id'\]; labels are \[0, 1\]",
    ),
    (
        "columns of unequal length",
        Y,
        {0: [0.5] * 4, 1: [0.5] * 3},
        {},
        r"the columns of y_prob must each have one value per row, got the shapes "
        r"\{'0': \(4,\), '1': \(3,\)\}",
    ),
    (
        "positive of three classes",
        Y3,
        P3,
        {"positive": 1},
        "positive=1 needs two classes or a grouping step of two groups, got 3 classes",
    ),
    ("positive that is none", Y, P, {"positive": 7}, r"positive must be one of \[0, 1\], got 7"),
    (
        "positive group that does not exist",
        Y3,
        P3,
        {"grouping": Grouping({"a": [0], "b": [1, 2]}), "positive": "c"},
        r"positive must be one of \['a', 'b'\], got 'c'",
    ),
    ("level", Y, P, {"confidence_level": 95}, "confidence_level must be between 0 and 1, got 95"),
    (
        "calibration",
        Y,
        P,
        {"calibration": 3},
        r"calibration must be \(y, scores\) or \(y, scores, fold_ids\) or 'cross-fit', got 3",
    ),
    (
        "calibration labels",
        Y,
        P,
        {"calibration": ([0, 2], [0.1, 0.2])},
        r"calibration y has labels .*\[2\]",
    ),
    (
        "calibration lengths",
        Y,
        P,
        {"calibration": ([0, 1], [0.1])},
        "calibration scores must have one row per label, got 1 rows and 2 labels",
    ),
    (
        "calibration range",
        Y,
        P,
        {"calibration": ([0, 1], [0.1, 3])},
        r"calibration scores must be in \[0, 1\], got 3.0 at row 1",
    ),
    (
        "calibration of one class",
        Y,
        P,
        {"calibration": ([0, 0], [0.1, 0.2])},
        r"calibration must have labels of both \[0, 1\], got 2 labels like 0 only",
    ),
    ("target", Y, P, {"target": [0.1, NAN]}, "target must be finite, got nan at row 1"),
    ("empty target", Y, P, {"target": []}, r"target must not be empty, got shape \(0,\)"),
    (
        "target width",
        Y3,
        P3,
        {"target": [[0.5, 0.5]]},
        r"target must have shape \(n_samples, 3\) .* got \(1, 2\)",
    ),
]


@pytest.mark.parametrize(
    ("y", "p", "options", "text"), [c[1:] for c in PROBABILITIES], ids=[c[0] for c in PROBABILITIES]
)
def test_probabilities(y: Any, p: Any, options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        evaluate(y, y_prob=p, **options)


def test_what_evaluate_needs() -> None:
    with pytest.raises(ValueError, match="evaluation needs y_pred or y_prob, got neither"):
        evaluate(Y)
    with pytest.raises(ValueError, match="calibration and target need y_prob, got none"):
        evaluate(Y, Y, target=P)
    with pytest.raises(TypeError, match="grouping must be a Grouping, got dict"):
        evaluate(Y, Y, grouping={"a": [0], "b": [1]})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="grouping must be a Grouping, got str"):
        evaluate(Y, Y).regroup("nps")  # type: ignore[arg-type]


GROUPS: list[tuple[str, tuple[Any, ...], dict[str, Any], str]] = [
    ("repeats a class", ({"a": [0, 1], "b": [1, 2]},), {},
     "a class must be in exactly one group, got 1 in 'a' and in 'b'"),
    ("repeats a class inside", ({"a": [0, 0], "b": [1]},), {}, "got 0 in 'a' and in 'a'"),
    ("empty group", ({"a": [0], "b": []},), {}, "group 'b' must have at least one class, got none"),
    ("one group", ({"a": [0, 1]},), {}, "a grouping needs at least two groups, got 1"),
    ("text for a list", ({"a": "xy", "b": ["z"]},), {}, "group 'a' must list its classes, got 'xy'"),
    ("number for a list", ({"a": 0, "b": [1]},), {}, "group 'a' must list its classes, got 0"),
    ("pair outside its group", ({"a": [0, 1], "b": [2]}, {"a": [(0, 2)]}), {},
     r"a hybrid pair must be inside its group, got \(0, 2\) in 'a'"),
    ("pair of another group", ({"a": [0, 1], "b": [2]}, {"b": [(0, 1)]}), {}, r"\(0, 1\) in 'b'"),
    ("no pair", ({"a": [0, 1], "b": [2]}, {"a": [(0, 1, 1)]}), {},
     r"a hybrid pair must be \(actual, predicted\), got \(0, 1, 1\) in group 'a'"),
    ("single in pairs", ({"a": [0, 1], "b": [2]}, {"a": [0]}), {}, r"a hybrid pair must be .* got 0 in group 'a'"),
    ("mode", ({"a": [0], "b": [1]}, "loose"), {}, "mode must be 'relaxed', 'strict', pairs or a callable, got 'loose'"),
    ("mode of a group", ({"a": [0], "b": [1]}, {"a": "loose"}), {}, "mode must be .* got 'loose'"),
    ("mode of no group", ({"a": [0], "b": [1]}, {"c": "strict"}), {},
     r"mode must name groups of the grouping, got \['c'\]; the groups are \['a', 'b'\]"),
    ("positive", ({"a": [0], "b": [1]},), {"positive": "c"},
     r"positive must be one of the groups \['a', 'b'\], got 'c'"),
    ("positive of three", ({"a": [0], "b": [1], "c": [2]},), {"positive": "c"},
     "positive needs exactly two groups, got 3 groups and positive='c'"),
    ("name", ({"a": [0], "b": [1]},), {"name": " "}, "name must be a non-empty string, got ' '"),
    ("names alike", ({1: [0], "1": [1]},), {}, r"group names must differ as strings, .* got \[1, '1'\]"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("args", "options", "text"), [c[1:] for c in GROUPS], ids=[c[0] for c in GROUPS]
)
def test_groupings(args: tuple[Any, ...], options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        Grouping(*args, **options)


def test_groupings_of_wrong_type() -> None:
    with pytest.raises(TypeError, match="groups must map group names to classes, got list"):
        Grouping([[0], [1]])  # type: ignore[arg-type]
    with pytest.raises(
        TypeError, match="mode must be 'relaxed', 'strict' or a mapping by group, got int"
    ):
        Grouping({"a": [0], "b": [1]}, 3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"then\(\) takes a Grouping, got dict"):
        Grouping({"a": [0], "b": [1]}).then({})  # type: ignore[arg-type]


def test_a_grouping_that_misses_a_class() -> None:
    grouping = Grouping({"a": [0], "b": [1]})
    matrix = ConfusionMatrix.from_predictions([0, 1, 2], [0, 1, 2])
    text = r"every class must be in one group, got none for \[2\]"
    with pytest.raises(ValueError, match=text):
        matrix.reduce(grouping)
    with pytest.raises(ValueError, match=text):
        evaluate([0, 1, 2], [0, 1, 2], labels=[0, 1, 2], grouping=grouping)
    with pytest.raises(
        ValueError, match=r"declared classes \[0, 1\], got \[2\].*classes of the grouping"
    ):
        evaluate([0, 1, 2], [0, 1, 2], grouping=grouping)
    with pytest.raises(ValueError, match=text):
        evaluate([0, 1, 2], [0, 1, 2]).regroup(grouping)


def test_chains_that_do_not_fit() -> None:
    first = Grouping({"a": [0], "b": [1], "c": [2]})
    with pytest.raises(
        ValueError, match=r"must group the earlier step's groups \['a', 'b', 'c'\]: missing \['c'\]"
    ):
        first.then(Grouping({"x": ["a"], "y": ["b"]}))
    with pytest.raises(ValueError, match=r"missing \[\], unknown \['d'\]"):
        first.then(Grouping({"x": ["a", "b"], "y": ["c", "d"]}))


FILES: list[tuple[str, str, str]] = [
    ("g.txt", "", "a grouping file must end in .yaml, .yml or .json, got 'g.txt'"),
    ("g.json", "{", "g.json does not parse"),
    ("g.yaml", "groups: [", "g.yaml does not parse"),
    ("g.json", "[]", "a grouping must be a mapping with 'groups' or 'steps', got \\[\\]"),
    (
        "g.json",
        '{"group": {}}',
        "a grouping must have 'groups', and may have .*, got \\['group'\\]",
    ),
    ("g.json", '{"steps": []}', "'steps' must be the only key and a list of groupings"),
    ("g.json", '{"steps": [], "mode": "strict"}', "'steps' must be the only key"),
    ("g.json", '{"groups": 3}', "'groups' must map group names to lists of classes, got 3"),
    ("g.json", '{"groups": [1]}', "'groups' must map names to classes or list \\[name, classes\\]"),
    ("g.json", '{"groups": {"a": 3, "b": [1]}}', "group 'a' must list its classes, got 3"),
    (
        "g.json",
        '{"groups": {"a": {"from": 0}, "b": [1]}}',
        "a range of classes must be .* in group 'a'",
    ),
    (
        "g.json",
        '{"groups": {"a": [0], "b": [1]}, "mode": ["strict"]}',
        "must contain one mode for each group, got 1 for 2 groups",
    ),
]


@pytest.mark.parametrize(("name", "content", "text"), FILES)
def test_grouping_files(name: str, content: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(ValueError, match=text):
        Grouping.from_file(path)


def test_grouping_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Grouping.from_file(tmp_path / "none.yaml")


PREVALENCE: list[tuple[str, Any, Any, dict[str, Any], str]] = [
    ("no pair", P, 3, {}, r"calibration must be \(y, scores\) or \(y, scores, fold_ids\), got 3"),
    (
        "three classes",
        P,
        (Y3, P),
        {},
        r"calibration scores must have shape \(n_samples, 3\), got \(4,\)",
    ),
    (
        "swapped",
        P,
        ([0.1, 0.2], [1, 0]),
        {},
        r"^calibration y must contain class labels, got continuous values: \[0.1, 0.2\]; "
        r"calibration is \(y, scores\), in this order$",
    ),
    (
        "one class",
        P,
        ([1, 1], [0.1, 0.2]),
        {},
        r"^calibration y must contain two or more classes, got only \[1\]$",
    ),
    (
        "not probabilities",
        [[0.2, 0.2, 0.6]],
        ([0, 1, 2], [[2.0, -1, 0]] * 3),
        {},
        r"^calibration scores must be in \[0, 1\], got 2.0 at row 0$",
    ),
    ("positive", P, (Y, P), {"positive": 4}, r"positive must be one of \[0, 1\], got 4"),
    (
        "lengths",
        P,
        (Y, P[:2]),
        {},
        "calibration needs one score per label, got 2 scores and 4 labels",
    ),
    ("empty", [], (Y, P), {}, "scores must have at least one row, got none"),
    ("NaN", [0.1, NAN], (Y, P), {}, "scores must be finite, got nan at row 1"),
    (
        "NaN in calibration",
        P,
        (Y, [0.1, 0.2, NAN, 0.3]),
        {},
        "calibration scores must be finite, got nan at row 2",
    ),
    ("width", P3, (Y, P), {}, r"scores must have shape \(n,\) or \(n, 2\), got \(4, 3\)"),
    ("column", {"a": P, "b": P}, (Y, P), {}, r"scores must have a column for 1, got \['a', 'b'\]"),
    (
        "density",
        P,
        (Y, P),
        {"density": "magic"},
        r"density must be one of \('auto', 'bins'\), got 'magic'",
    ),
    ("interval", P, (Y, P), {"interval": "magic"}, "interval must be one of .* got 'magic'"),
    ("raw", P, (Y, P), {"density": "raw"}, r'no longer has estimate_prevalence\(density="raw"\)'),
    (
        "level",
        P,
        (Y, P),
        {"confidence_level": 0},
        "confidence_level must be between 0 and 1, got 0",
    ),
]


@pytest.mark.parametrize(
    ("scores", "calibration", "options", "text"),
    [c[1:] for c in PREVALENCE],
    ids=[c[0] for c in PREVALENCE],
)
def test_estimate_prevalence(
    scores: Any, calibration: Any, options: dict[str, Any], text: str
) -> None:
    with pytest.raises(ValueError, match=text):
        estimate_prevalence(scores, calibration=calibration, **options)


def test_posterior_method() -> None:
    e = estimate_prevalence(P, calibration=(Y, P))
    with pytest.raises(ValueError, match="method must be 'interpolated' or 'bins', got 'platt'"):
        e.posterior(P, method="platt")


# --- statistics --------------------------------------------------------------------------------------------


def test_matrices() -> None:
    with pytest.raises(
        ValueError, match=r"counts must have shape \(2, 2\) for 2 labels, got \(3, 3\)"
    ):
        ConfusionMatrix(np.eye(3), (0, 1))
    with pytest.raises(ValueError, match="counts must be finite and not negative"):
        ConfusionMatrix(np.array([[1, -1], [0, 1]]), (0, 1))
    with pytest.raises(ValueError, match="counts must be numbers, got <U1"):
        ConfusionMatrix(np.array([["a", "b"], ["c", "d"]]), (0, 1))
    reduced = ConfusionMatrix(np.eye(3, dtype=int), (0, 1, 2)).reduce(
        Grouping({"a": [0], "b": [1], "c": [2]})
    )
    with pytest.raises(ValueError, match=r"2x2\+IM needs two groups, got 3: \['a', 'b', 'c'\]"):
        reduced.as_binary()
    two = ConfusionMatrix(np.eye(2, dtype=int), (0, 1)).reduce(Grouping({"a": [0], "b": [1]}))
    with pytest.raises(
        ValueError, match=r"positive must be one of the groups \['a', 'b'\], got 'c'"
    ):
        two.as_binary("c")
    assert two.as_binary("a").tp == 1


def test_score_statistics() -> None:
    two, four = (ScoreCounts.from_scores(np.array([0.5]), np.array([0]), c) for c in (2, 4))
    with pytest.raises(ValueError, match="score counts must have the same channels, got 2 and 4"):
        two + four
    with pytest.raises(ValueError, match="the sweep needs four channels, got 2"):
        roc_curve(two)
    moments = [ScoreMoments.from_scores(np.array([0, 1]), np.zeros((2, w)), 2) for w in (1, 2)]
    with pytest.raises(
        ValueError, match=r"moments must have the same shape, got \(2, 1\) and \(2, 2\)"
    ):
        moments[0] + moments[1]
    with pytest.raises(ValueError, match="prevalence must be between 0 and 1, got 1"):
        standardised_spcc(moments[0], 1)
    with pytest.raises(
        ValueError, match="scale must be 'atanh', 'logit', 'log' or 'wald', got 'probit'"
    ):
        on_scale("probit", 0.5, 0.1)
    with pytest.raises(KeyError, match="there is no metric named 'multiclass/magic'"):
        lookup("multiclass/magic")
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        getattr(cmtrack, "nothing")  # noqa: B009


# --- files -------------------------------------------------------------------------------------------------


def test_files_that_are_no_evaluation(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no evaluation at"):
        Evaluation.load(tmp_path)
    evaluation = evaluate(Y, y_prob=P)
    path = evaluation.save(tmp_path)
    good = json.loads(path.read_text())

    def refused(text: str, **changes: Any) -> None:
        path.write_text(json.dumps(good | changes))
        with pytest.raises(ValueError, match=text):
            Evaluation.load(tmp_path)

    refused(
        "the evaluation has schema 99, this version of cmtrack reads up to 2: upgrade cmtrack",
        schema=99,
    )
    refused("schema 'x'", schema="x")
    refused("the evaluation is damaged: .*array must have shape", labels=[0, 1, 2])
    refused(
        "damaged: .*a statistic must be one .*, got 'magic'",
        statistics=good["statistics"] | {"magic": 1},
    )
    refused("damaged", statistics={})
    refused("damaged", statistics=good["statistics"] | {"digest": "zz"})
    refused(
        "damaged: .*an array must contain numbers",
        statistics=good["statistics"] | {"matrix": [["a"]]},
    )
    bomb = {"dtype": "<f8", "shape": [1 << 40], "zlib": ""}
    refused(
        "damaged: an array must not need more than 1024 MB",
        statistics=good["statistics"] | {"matrix": bomb},
    )
    short = {"dtype": "<i8", "shape": [2, 2], "zlib": "eJwDAAAAAAE="}
    refused("damaged: .*must be 32, got 0", statistics=good["statistics"] | {"matrix": short})
    moments = good["statistics"]["moments"]
    refused(
        "damaged: .*must have shape",
        statistics=good["statistics"] | {"moments": moments | {"n": [1]}},
    )
    scores = good["statistics"]["scores"]
    refused(
        "damaged: .*must have shape",
        statistics=good["statistics"] | {"scores": scores | {"counts": [[1]]}},
    )
    path.write_text("nothing")
    with pytest.raises(ValueError, match="this is not a cmtrack evaluation"):
        Evaluation.load(path)
    path.write_text(json.dumps(good))
    assert Evaluation.load(path) == evaluation


def test_a_grouping_that_does_not_fit_says_what_would():
    party = Grouping({"a": ["x"], "b": ["y", "zz"]})
    with pytest.raises(
        ValueError, match=r"got none for \['z'\]; the groups name 'zz', which the data do not have"
    ):
        evaluate(["x", "y", "z"], ["x", "y", "z"], labels=["x", "y", "z"], grouping=party)
    with pytest.raises(
        ValueError, match=r"pass grouping=Grouping\(\{'x': \['x'\], 'other': \['y', 'z'\]\}\)"
    ):
        evaluate(["x", "y", "z"], ["x", "y", "z"], positive="x")
    with pytest.raises(ValueError, match=r"got 3 classes; did you mean 'left'\?"):
        evaluate(["left", "y", "z"], ["left", "y", "z"], positive="lefft")
    with pytest.raises(TypeError, match=r"got dict: make one with cmtrack.Grouping"):
        evaluate(["x", "y"], ["x", "y"], grouping={"a": ["x"], "b": ["y"]})  # type: ignore[arg-type]


def test_labels_in_another_order_than_the_columns_are_noticed():
    y = np.repeat(["b", "c", "a"], [10, 12, 14])
    y_prob = 0.1 + 0.7 * (y[:, None] == np.array(["a", "b", "c"]))
    y_prob[0] = [0.8, 0.1, 0.1]
    wrong = evaluate(y, y_prob=y_prob, labels=["b", "c", "a"])
    expected = (
        "the accuracy is 2.78%, and would be 97.2% if the prediction “b” meant “a”, “c” meant “b” and “a” meant “c”: "
        "labels= must have the order of the columns of y_prob (model.classes_), and y_pred the same codes as y_true"
    )
    assert expected in wrong.warnings
    right = evaluate(y, y_prob=y_prob, labels=["a", "b", "c"])
    guessed = evaluate(y, np.random.default_rng(1).permutation(y))
    p = np.where(y == "a", 0.9, 0.1)  # of "a", and one column is of the positive class
    (mistaken,) = (
        text
        for text in evaluate(
            np.where(y == "a", "a", "b"), y_prob=p, labels=["a", "b"], positive="b"
        ).warnings
        if "would be" in text
    )
    assert mistaken.endswith("; a single column of y_prob is for the positive class")
    assert not [said for one in (right, guessed) for said in one.warnings if "would be" in said]
