"""One word for one fact, wherever it is read: terminal, card, page and summary."""

from __future__ import annotations

import re

import numpy as np
import pytest
from click.testing import CliRunner

from cmtrack import compare, evaluate
from cmtrack.cli import main
from cmtrack.report import report_html, verdict


def terminal_of(evaluation, folder) -> str:
    """What the command line prints of a saved evaluation."""
    evaluation.save(folder)
    done = CliRunner().invoke(main, ["show", str(folder)], env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    return done.stdout


def with_an_impossible_row():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 100)
    p = np.clip(y * 0.6 + rng.random(100) * 0.4, 0, 1)
    p[0] = 1 - y[0]
    return y, p


def test_an_infinite_loss_is_infinite_with_its_reason_everywhere(tmp_path) -> None:
    y, p = with_an_impossible_row()
    evaluation = evaluate(y, y_prob=p, positive=1)
    reason = evaluation.undefined["probability/log_loss"]
    assert reason == "infinite: 1 row gives the actual class the probability 0"
    assert f"| log loss | {reason} |" in evaluation.card()
    assert re.search(r"probability/log_loss +infinite", terminal_of(evaluation, tmp_path))
    assert ">infinite</td>" in report_html(evaluation, {})
    softer = np.clip(p, 0.01, 0.99)
    runs = {"a": evaluation, "b": evaluate(y, y_prob=softer, positive=1)}
    said = compare(runs, rank_by="probability/log_loss").summary()
    assert f"(probability/log_loss is {reason})" in said
    assert "undefined: infinite" not in said


def test_a_card_has_every_title_once() -> None:
    y, p = with_an_impossible_row()
    titles = re.findall(r"^[|] ([^|]+) [|]", evaluate(y, y_prob=p, positive=1).card(), flags=re.M)
    assert titles.count("Matthews correlation") == 1
    assert len(titles) == len(set(titles))


def test_differences_have_a_real_minus_in_the_terminal(tmp_path) -> None:
    y = np.arange(200) % 2
    answers = np.where(np.arange(200) % 7 == 0, 1 - y, y)
    judged = evaluate(y, answers, positive=1, segments={"half": np.arange(200) < 90})
    shown = terminal_of(judged, tmp_path)
    assert re.search(r"−0[.]\d\d", shown)
    assert not re.search(r"[ \[]-\d", shown)


def test_decision_values_have_no_warning_about_a_metric_that_another_warning_denies() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    s = (2 * y - 1) * 3 + rng.normal(0, 1.7, 200)
    evaluation = evaluate(y, y_pred=(s > 0) * 1, y_score=s, positive=1)
    denied, few = (
        next(text for text in evaluation.warnings if part in text)
        for part in ("no log loss", "errors:")
    )
    assert "sPCC" in denied
    assert "sPCC" not in few
    assert not any(name.startswith("spcc/") and name != "spcc/d_b" for name in evaluation.metrics)


@pytest.mark.slow
def test_a_report_asks_for_a_count_only_where_it_is_not_known() -> None:
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 600)
    s = 1 / (1 + np.exp(-rng.normal(2 * y - 1)))
    held = (y[300:], s[300:])
    known = evaluate(y[:300], y_prob=s[:300], positive=1, calibration=held)
    unknown = evaluate(y[:300], y_prob=s[:300], positive=1, calibration=held, target=s[:200])
    of_known, of_unknown = (report_html(one, {}) for one in (known, unknown))
    assert "<h2>Can positives be counted without labels?</h2>" in of_known
    assert "How many positives are there?" not in of_known
    assert "<h2>How many positives are there?</h2>" in of_unknown
    for one, page in ((known, of_known), (unknown, of_unknown)):
        most = f"{100 * one.prevalence.missed_move:.2g}"
        assert (
            f"A change too small for a test to notice can move the estimate by up to {most} percentage points."
            in page
        )
        assert f"would miss can change it by up to {most} points" in one.prevalence._repr_html_()


def test_sums_of_sampling_weights_are_weights_of_two_digits_and_no_samples() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(150) % 3
    predicted = np.where(rng.random(150) < 0.3, (y + 1) % 3, y)
    evaluation = evaluate(y, predicted, sample_weight=rng.lognormal(size=150))
    said = " ".join(verdict(evaluation))
    assert re.search(r"The most frequent confusion is “\d” predicted as “\d”: weight \d+, ", said)
    assert re.search(r"The best class by F1 is “\d” \(F1 0\.\d+, weight \d+\)", said)
    assert not re.search(r"\d\.\d+ samples of class", said)
    rare = next(text for text in evaluation.warnings if "effective rows" in text)
    assert re.findall(r"n = ([\d.]+)", rare)
    assert all(len(number.replace(".", "")) <= 2 for number in re.findall(r"n = ([\d.]+)\)", rare))
    plain = " ".join(verdict(evaluate(y, predicted)))
    assert re.search(r"confusion is “\d” predicted as “\d”: \d+ rows", plain)
