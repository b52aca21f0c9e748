"""Rows on the pages of a review and of an evaluation: which, in which order, and when none."""

from __future__ import annotations

import io
import re
import runpy
import zipfile
from dataclasses import dataclass, replace
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cmtrack import Comparison, Evaluation, Grouping, compare, evaluate, log_evaluation
from cmtrack.report import draw_pictures, report_html
from cmtrack.report.review import Review, context, html, markdown
from cmtrack.statistics import Predictions, RowIds
from support import ROOT
from support.contradictions import in_report, in_review
from support.problems import random_labels, random_probabilities

N = 300
LABELS = ["<b>low</b>", "mid", "high"]
Y = np.array(LABELS)[random_labels(N, 3, 7)]


def scored(skill: float, seed: int) -> Evaluation:
    codes = random_labels(N, 3, 7)
    return evaluate(
        Y,
        y_prob=random_probabilities(codes, 3, skill, seed),
        labels=LABELS,
        row_ids=range(5000, 5000 + N),
    )


def flips(comparison: Comparison) -> Any:
    """What a review shows of the rows that its best run breaks and fixes."""
    return context(Review(comparison), None, {})["flips"]


@dataclass(frozen=True)
class RowTable:
    """A table of rows on a page, with its title, its anchor, the heads of its columns, and its cells as texts."""

    title: str
    anchor: str
    heads: list[str]
    rows: list[list[str]]


def row_tables(page: str) -> list[RowTable]:
    """The tables of rows of a page."""
    tables = []
    for block in re.findall(r'<details class="rows[^"]*">(.*?)</details>', page, re.DOTALL):
        (title,) = re.findall("<summary>(.*?)</summary>", block)
        (anchor,) = re.findall('id="(rows-[^"]*)"', block)
        heads = re.findall("<th(?: [^>]*)?>(.*?)</th>", block)
        rows = [
            [unescape(cell) for cell in re.findall("<td[^>]*>(.*?)</td>", row)]
            for row in re.findall("<tr>(<td.*?)</tr>", block, re.DOTALL)
        ]
        tables.append(RowTable(unescape(title), anchor, list(map(unescape, heads)), rows))
    return tables


def with_ids(evaluation: Evaluation, *, stored: bool) -> Evaluation:
    rows = evaluation.rows
    assert isinstance(rows, Predictions)
    assert isinstance(rows.ids, RowIds)
    return replace(evaluation, rows=replace(rows, ids=replace(rows.ids, stored=stored)))


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    runs = {
        name: scored(skill, k)
        for k, (name, skill) in enumerate({"A": 1, "B": 3, "C": 0.8, "D": 0.9}.items())
    }
    return compare(runs, rank_by="multiclass/accuracy")


@pytest.mark.slow
def test_the_review_says_what_the_run_to_take_breaks_and_fixes(comparison: Comparison) -> None:
    shown = flips(comparison)
    assert shown is not None
    ranking = comparison.ranking
    assert ranking is not None
    best, other = ranking.foremost.name, ranking.runs[1].name
    answers = [
        run.evaluation.rows.predicted == run.evaluation.rows.actual
        for run in (ranking.foremost, ranking.runs[1])
    ]
    broken, fixed = int((~answers[0] & answers[1]).sum()), int((answers[0] & ~answers[1]).sum())
    first, missed, by_class = shown["sentences"]
    assert first.startswith(f"In {100 * fixed / N:.1f}% [")
    assert f"] of 300 rows, only “{best}” predicts the correct class. " in first
    assert f"In {100 * broken / N:.1f}% [" in first
    assert f"], only “{other}” does (p " in first
    n_missed = comparison.missed().all
    assert n_missed == 0
    assert missed == "No row is misclassified by all 4 runs."
    assert by_class.startswith(f"“{best}” and “{other}” differ significantly in ")
    cells = {row.cells["class"].text: row.cells for row in shown["classes"].rows}
    assert sum(int(row["broken"].text) for row in cells.values()) == broken
    assert sum(int(row["fixed"].text) for row in cells.values()) == fixed
    frame = comparison.flips(other, best, "class").to_frame().set_index("part")
    for label, row in cells.items():
        assert (
            row["broken_share"].interval
            == f"[{100 * frame.loc[label, 'broken_low']:.1f}, {100 * frame.loc[label, 'broken_high']:.1f}]"
        )
    listed = comparison.rows(other, best, "broken")
    only_other, only_best = shown["tables"]
    assert [row[0][0] for row in only_other["rows"]] == [str(row) for row in listed["row"].head(5)]
    of_all = "" if broken <= 5 else " (the first 5)"
    assert (
        only_other["title"]
        == f"{broken} rows in which only “{other}” predicts the correct class{of_all}"
    )
    assert only_best["title"].startswith(f"{fixed} rows in which only “{best}” predicts")
    reverse = comparison.rows(other, best, "fixed")
    assert [row[0][0] for row in only_best["rows"]] == [str(row) for row in reverse["row"].head(5)]
    turned = flips(compare({"A": scored(1.0, 1), "B": scored(1.0, 2)}))
    assert turned["sentences"][1].startswith("Both runs predict the wrong class in ")
    for table in turned["tables"]:
        assert table["title"].endswith(" predicts the correct class (the first 5)")
        assert len(table["rows"]) == 5


@pytest.mark.slow
def test_rows_are_listed_where_they_may_be_and_ids_where_they_are_kept(
    comparison: Comparison, tmp_path: Path
) -> None:
    page = html(comparison, pictures={})
    assert "in which only “" in page
    assert "<th>Id</th>" not in page
    assert "<b>low</b>" not in page
    assert in_review(comparison) == []
    text = comparison.report(tmp_path / "without.html", rows=False).read_text()
    assert 'id="flips"' in text
    assert "in which only “" not in text
    assert "### Rows: " in markdown(comparison)
    kept = compare(
        {run.name: with_ids(run.evaluation, stored=True) for run in comparison.runs},
        rank_by="multiclass/accuracy",
    )
    table = flips(kept)["tables"][0]
    assert table["heads"][1] == ("Id", False)
    assert [int(row[1][0]) - 5000 for row in table["rows"]] == [
        int(row[0][0]) for row in table["rows"]
    ]


@pytest.mark.slow
def test_no_id_stands_in_what_is_written_where_ids_are_off(tmp_path: Path) -> None:
    def run(skill: float, seed: int) -> Evaluation:
        codes = random_labels(N, 3, 7)
        ids = [f"patient-{k:06d}" for k in range(N)]
        return evaluate(
            Y, y_prob=random_probabilities(codes, 3, skill, seed), labels=LABELS, row_ids=ids
        )

    compared = compare({"A": run(1, 0), "B": run(3, 1)}, rank_by="multiclass/accuracy")
    for name in ("review.html", "review.md", "review.json"):
        compared.report(tmp_path / name)
    compared.bundle(tmp_path / "review.zip")
    evaluation = run(1, 0)
    (tmp_path / "report.html").write_text(report_html(evaluation, {}, rows=evaluation))
    evaluation.save(tmp_path / "saved", rows=True)
    contents = {path.name: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with zipfile.ZipFile(tmp_path / "review.zip") as bundle:
        contents |= {f"bundle/{name}": bundle.read(name) for name in bundle.namelist()}
    assert sum(name.endswith(".parquet") for name in contents) >= 3
    for name, content in contents.items():
        assert b"patient-" not in content, name
        if name.endswith(".parquet"):  # may be compressed
            assert "patient-" not in str(pd.read_parquet(io.BytesIO(content)).to_dict()), name


@pytest.mark.slow
def test_where_nothing_is_significant_a_sentence_stands_for_the_table() -> None:
    shown = flips(compare({"A": scored(1.0, 1), "B": scored(1.0, 2)}))
    assert shown["classes"] is None
    assert shown["sentences"][-1].endswith(" do not differ significantly in any of the 3 classes.")
    same = flips(compare({"A": scored(1.0, 1), "B": scored(1.0, 1)}))
    assert same["sentences"][0] == "“A” and “B” predict the correct class in the same rows."
    assert (same["classes"], same["tables"]) == (None, [])


@pytest.mark.slow
def test_runs_that_are_not_paired_have_no_section(tmp_path: Path) -> None:
    runs = {}
    for k, name in enumerate("AB"):
        scored(1.0, k).save(tmp_path / name, rows=False)
        runs[name] = Evaluation.load(tmp_path / name)
    assert flips(compare(runs)) is None
    assert 'id="flips"' not in html(compare(runs), pictures={})


def test_the_report_lists_the_surest_rows_of_each_confusion() -> None:
    evaluation = scored(0.5, 3)
    page = report_html(evaluation, {}, rows=evaluation)
    tables = row_tables(page)
    confused = [table for table in tables if len(table.heads) == 3]  # also p of the actual class
    counts = evaluation.confusion_matrix.counts.copy()
    np.fill_diagonal(counts, 0)
    totals = [int(table.title.split()[0]) for table in confused]
    assert totals == sorted(counts[counts > 0].tolist(), reverse=True)
    assert page.count('<details class="rows">') == 5  # a click on the matrix opens the sixth
    i, j = np.unravel_index(counts.argmax(), counts.shape)
    first = confused[0]
    assert (
        first.title == f"{totals[0]} rows: “{LABELS[i]}” predicted as “{LABELS[j]}” (the first 5)"
    )
    expected = evaluation.rows_where(LABELS[i], LABELS[j], limit=5)
    assert [row[0] for row in first.rows] == list(map(str, expected["row"]))
    assert [row[1] for row in first.rows] == [f"{p:.3f}" for p in expected["probability"]]
    assert first.heads == ["Row", f"Probability of “{LABELS[j]}”", f"Probability of “{LABELS[i]}”"]
    assert in_report(evaluation) == []


def listed_in(page: str) -> list[RowTable]:
    """Read the tables that the page lists, without those that only a click opens."""
    blocks = re.findall('<details class="rows">.*?</details>', page, re.DOTALL)
    return row_tables("".join(blocks))


def test_the_list_has_the_largest_errors_of_the_class_matrix() -> None:
    y, guess = np.random.default_rng(1).integers(0, 5, (2, 400))
    groups = {"low": [0], "mid": [1, 2], "high": [3, 4]}
    evaluation = evaluate(y, guess, grouping=Grouping(groups, mode="strict", name="three"))
    page = report_html(evaluation, {}, rows=evaluation)
    errors = evaluation.confusion_matrix.counts.copy()
    np.fill_diagonal(errors, 0)
    listed = listed_in(page)
    assert [int(table.title.split()[0]) for table in listed] == sorted(errors.ravel())[:-6:-1]
    for table in listed:
        i, j = map(int, table.anchor.removeprefix("rows-c-").split("-"))
        assert table.title.startswith(f"{errors[i, j]} rows: “{i}” predicted as “{j}”")
    assert "The list shows rows of the 5 most frequent errors in the confusion matrix" in page


def test_the_list_has_the_errors_of_the_positive_group() -> None:
    y, guess = np.random.default_rng(1).integers(0, 5, (2, 400))
    parties = Grouping({"low": [0], "mid": [1, 2], "high": [3, 4]}, mode="strict", name="three")
    sides = Grouping({"rest": ["low", "mid"], "top": ["high"]}, mode="strict", name="side")
    evaluation = evaluate(y, guess, grouping=parties.then(sides))
    page = report_html(evaluation, {}, rows=evaluation)
    step = evaluation.reduced["side"]
    sizes = {
        "rows-s1-0-1": step.counts[0, 1],
        "rows-s1-1-0": step.counts[1, 0],
        "rows-s1-0-m": step.mismatches[0],
        "rows-s1-1-m": step.mismatches[1],
    }
    listed = {table.anchor: int(table.title.split()[0]) for table in listed_in(page)}
    assert listed == sizes
    assert list(listed.values()) == sorted(sizes.values(), reverse=True)
    assert (
        "The list shows rows of each kind of error in the reduced confusion matrix “side”" in page
    )
    relaxed = evaluate(
        [0, 1, 2, 2],
        [1, 0, 2, 2],
        grouping=Grouping({"low": [0, 1], "high": [2]}, name="two"),
    )
    page = report_html(relaxed, {}, rows=relaxed)
    assert len(listed_in(page)) == 2
    assert "The list shows rows of each kind of error in the confusion matrix" in page


def test_a_report_has_rows_only_where_they_are_given() -> None:
    evaluation = scored(0.5, 3)
    page = report_html(evaluation, {}, rows=evaluation)
    assert "Rows behind the confusions" in page
    assert "<b>low</b>" not in page
    bare = report_html(evaluation, {})
    assert "Rows behind the confusions" not in bare
    assert row_tables(bare) == []
    assert "<th>Id</th>" not in page
    assert "<th>Id</th>" in report_html(evaluation, {}, rows=with_ids(evaluation, stored=True))
    right = evaluate([0, 1], [0, 1])
    assert row_tables(report_html(right, {}, rows=right)) == []


@pytest.mark.slow
def test_cells_of_matrices_open_their_rows() -> None:
    grouping = Grouping(
        {"low": [LABELS[0], "mid"], "mismatch>": ["high"]}, mode="strict", name="two"
    )
    evaluation = scored(0.5, 3).regroup(grouping)
    pictures = draw_pictures(evaluation, figures=["confusion_matrix", "reduced_two"], files=False)
    page = report_html(evaluation, pictures, rows=evaluation)
    tables = {table.anchor: table for table in row_tables(page)}
    assert page.count('id="rows-') == len(tables) == 9 + 6 - 1  # "mismatch>" is of one class
    assert set(re.findall(r'href="#(rows-[^"]*)"', page)) == set(tables)
    counts = evaluation.confusion_matrix.counts
    for i, j in np.ndindex(3, 3):
        assert tables[f"rows-c-{i}-{j}"].title.startswith(f"{counts[i, j]} ")
    aside = tables["rows-s0-0-m"]
    assert aside.title.startswith(
        f"{evaluation.reduced['two'].mismatches[0]} rows: “low” predicted as another class within this group"
    )
    assert all(row[1] != row[2] for row in aside.rows)
    assert page.count('href="#rows-s0-0-m"') == 4  # twice in the figure, twice in the table
    assert 'href="#rows' not in report_html(evaluation, pictures)


@pytest.mark.slow
def test_a_review_lists_rows_of_other_pairs_within_its_limit(comparison: Comparison) -> None:
    page = html(
        comparison, pictures=draw_pictures(comparison, figures=["confusion_matrices"], files=False)
    )
    part = page[page.index('<section id="pair-rows">') :]
    numbers = re.findall(r'<div data-pair="(\d+)">', part[: part.index("</section>")])
    assert len(set(numbers)) == len(numbers) == 3
    shown = flips(comparison)
    assert shown is not None
    ranking = comparison.ranking
    assert ranking is not None
    for other, run in zip(shown["others"], ranking.runs[2:], strict=True):
        listed = comparison.rows(run.name, ranking.foremost.name, "broken")
        assert other["tables"][0]["title"].startswith(f"{len(listed)} row")
        assert "only “B” predicts the correct class." in other["sentence"]
    assert page.count('<details class="rows') <= 20
    links = re.findall(r'href="#(rows-c-[^"]*)"', page)
    assert sorted(links) == sorted(set(re.findall(r'id="(rows-[^"]*)"', page)))


def test_long_texts_are_cut_and_many_cells_capped() -> None:
    rng = np.random.default_rng(0)
    y, guess = rng.integers(0, 40, (2, 20_000))
    texts = np.array(["x" * 5000, None, "<i>"], dtype=object)[rng.integers(0, 3, 20_000)]
    evaluation = evaluate(y, guess, segments={"probability": texts, "row": texts})
    page, bare = report_html(evaluation, {}, rows=evaluation), report_html(evaluation, {})
    tables = row_tables(page)
    assert len(tables) == 20
    assert all(len(table.rows) <= 10 for table in tables)
    texts = {len(text) for table in tables for row in table.rows for text in row[1:]}
    assert texts <= {0, 3, 200}
    assert len(page) - len(bare) < 400_000
    assert "<i>" not in page


def texts_of_rows() -> pd.DataFrame:
    rows = np.random.default_rng(0).permutation(N)
    return pd.DataFrame(
        {
            "id": rows + 5000,
            "text": [f"t{k} <script>" + "a" * 150 + "the middle" + "b" * 150 for k in rows],
            "url": [f"https://pictures.example/{k}.png?a=1&b='" if k % 3 else None for k in rows],
        }
    )


@pytest.mark.slow
def test_a_page_shows_columns_of_a_table_where_its_author_asks(
    comparison: Comparison, tmp_path: Path
) -> None:
    texts_of_rows().to_csv(tmp_path / "texts.csv", index=False)
    for subject, tables in ((scored(0.5, 3), 9), (comparison, 13)):
        given = {"table": tmp_path / "texts.csv", "row_ids": "id", "images": "url"}
        bare = subject.report(tmp_path / "bare.html").read_text()
        page = subject.report(tmp_path / "page.html", **given).read_text()
        cells = re.findall(
            r'<td class="n">(\d+)</td>.*?<td class="text">(t\d+ .*?)</td><td class="text">(.*?)</td>',
            page,
        )
        assert 10 < len(cells) <= 20 * 10
        for row, text, link in cells:
            assert text == f"t{row} &lt;script&gt;{'a' * (91 - len(row) - 1)}…{'b' * 99}"
            address = f"https://pictures.example/{row}.png?a=1&amp;b=&#39;" if int(row) % 3 else ""
            rel = 'target="_blank" rel="noopener noreferrer" referrerpolicy="no-referrer"'
            assert link == (f'<a href="{address}" {rel}>{address}</a>' if address else "")
        assert (
            page.count("<th>text</th><th>url</th>") == page.count('<details class="rows') <= tables
        )
        assert "<th>id</th>" not in page
        assert "the middle" not in page
        assert not re.search(r"(src|srcset|poster)=.https?:|url\(.?https?:", page)
        policies = [
            re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', one)
            for one in (bare, page)
        ]
        assert policies[0] == policies[1]
        assert len(policies[0]) == 1
        assert not any(word in bare for word in ("pictures.example", "aaaaaaaa", "<th>url</th>"))
    with pytest.raises(
        ValueError, match=r"table= needs an \.html page of ranked runs, got 'review\.md'"
    ):
        comparison.report(tmp_path / "review.md", **given)
    frame = scored(0.5, 3).rows_where(table=texts_of_rows(), row_ids="id")
    assert "<script>" not in frame._repr_html_()
    assert "https://pictures.example/" in frame._repr_html_()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"images": "url"}, "images= needs table=, got only images='url'"),
        ({"row_ids": "id"}, "row_ids= needs table=, got only row_ids='id'"),
        (
            {"table": {"x": range(N)}, "rows": False},
            "table= needs a page that lists rows, got rows=False",
        ),
        ({"table": {"x": range(3)}}, "the table must have a row for each of the 300 rows, got 3"),
        (
            {"table": {"x": range(N)}, "images": "url"},
            "images must be a column of the table, one of .*, got 'url'",
        ),
        (
            {"table": {"x": range(N)}, "images": ["x"]},
            "images must be a column of the table, one of .*, got .'x'.",
        ),
        (
            {"table": {f"x{k}": range(N) for k in range(13)}},
            "at most 12 columns of table= \\(ids do not count\\), got 13",
        ),
        (
            {"table": "texts.xlsx"},
            "a file must end in .parquet, .pq, .csv, .csv.gz, .tsv, .tsv.gz, got 'texts.xlsx'",
        ),
        (
            {"table": "https://elsewhere.example/texts.csv"},
            "texts.csv could not be read as CSV: .*No such file",
        ),
        *(
            (
                {"table": {"x": [address] * N}, "images": "x"},
                "images='x' must be http or https addresses .* got ",
            )
            for address in (
                "javascript:alert(1)",
                "data:image/png;base64,AA==",
                "//host/a.png",
                "a.png",
                "",
                7,
                "https://me@host/a",
                'http://host/a"onclick=',
                "http://host/a b",
                "http://host/\u05d0",
                "https://host/" + "a" * 2000,
            )
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:the rows of the table are matched only by their order")
def test_what_is_refused_of_a_table(given: dict, words: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=words):
        scored(0.5, 3).report(tmp_path / "page.html", **given)
    assert not (tmp_path / "page.html").exists()


@pytest.mark.slow
@pytest.mark.parametrize(("setting", "listed"), [("auto", True), ("off", False)])
def test_the_report_of_a_run_lists_what_is_logged(
    setting: str, listed: bool, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import mlflow

    monkeypatch.setenv("CMTRACK_PREDICTIONS", setting)
    with mlflow.start_run() as run:
        log_evaluation(scored(0.5, 3), figures=False)
    page = Path(
        mlflow.artifacts.download_artifacts(
            run_id=run.info.run_id, artifact_path="cmtrack_report.html"
        )
    )
    assert ("Rows behind the confusions" in page.read_text()) is listed
    assert "<th>Id</th>" not in page.read_text()


@pytest.mark.slow
def test_the_example_finds_planted_labels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("sklearn")
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(ROOT / "examples" / "wrong_labels.py"))
    printed = capsys.readouterr().out
    hits = re.search(r"Of the 20 labels that are wrong anywhere, (\d+) are among them", printed)
    assert hits is not None
    assert int(hits[1]) >= 15
    assert re.search(
        r"At least 5 models get \d+ rows wrong: \d+ of them have a planted label", printed
    )
    assert 'id="flips"' in (tmp_path / "wrong_labels.html").read_text()
