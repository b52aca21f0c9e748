"""The section of a model card."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner

from cmtrack import evaluate, evaluate_families
from cmtrack.cli import main
from support.problems import random_problem


@pytest.mark.slow
def test_a_card_has_the_words_of_the_report_the_intervals_the_data_and_the_segments(
    tmp_path, capsys
) -> None:
    y, _, p = random_problem(0, k=3)
    evaluation = evaluate(
        y, y_prob=p, segments={"region": np.where(np.arange(len(y)) % 3 == 0, "north|a", "south")}
    )
    text = evaluation.card("A <model>")
    assert text.startswith(f"## A &lt;model&gt;\n\nOn {len(y)} rows of 3 classes, the accuracy is")
    low, high = evaluation.intervals["multiclass/accuracy"]
    accuracy = evaluation.metrics["multiclass/accuracy"]
    assert f"| accuracy | {accuracy:.3f} | \\[{low:.3f}, {high:.3f}\\] | higher |" in text
    assert (
        len([line for line in text.splitlines() if line.endswith((" higher |", " lower |"))]) >= 8
    )
    assert "### What was evaluated?" in text
    assert evaluation.labels_digest.replace("_", "\\_") in text
    assert "| “region” | rows |" in text
    assert "| north\\|a | 100 |" in text
    assert ("### What not to trust" in text) == bool(evaluation.warnings)
    few = evaluate(y[:12], y_prob=p[:12], labels=[0, 1, 2])
    assert few.warnings
    assert few.card().count("\n- ") >= len(few.warnings) + 4
    main(["show", str(evaluation.save(tmp_path).parent), "--card"], standalone_mode=False)
    assert capsys.readouterr().out == evaluation.card()  # not beside what stderr gets
    both = CliRunner().invoke(main, ["show", str(tmp_path), "--card", "--json"])
    assert both.exit_code == 2


def test_sets_of_codes_have_a_card_too() -> None:
    sets = [["1:a", "2:b"], ["1:c"], ["2:b", "2:d"]]
    evaluation = evaluate_families(sets, [["1:a"], ["1:a"], ["2:b", "2:d"]], lambda code: code[0])
    text = evaluation.card()
    assert text.startswith("## Evaluation\n\n")
    assert "- Documents: 3" in text
