"""Names from a store or a server on terminals, pages and figures: they are shown, and nothing obeys them."""

from __future__ import annotations

import json
import re
import threading
import warnings
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import mlflow
import numpy as np
import pytest
from click.testing import CliRunner

from cmtrack import Grouping, Prefix, compare, evaluate, evaluate_families, log_evaluation
from cmtrack.cli import main
from cmtrack.report import report_html
from cmtrack.tracking import EvaluationWarning, tracking_store
from cmtrack.untrusted import for_page, one_line, printable, printable_json
from support.problems import random_labels, random_probabilities

pytestmark = pytest.mark.usefixtures("undrawn")

ESCAPE = "a\x1b]0;owned\x07\x1b[31mred"
OVERRIDE = "b\u202egnp.exe\u2066"
C1 = "c\x9b2Jd"
LABELS = [ESCAPE, OVERRIDE, C1]
ARABIC = "غابة عشوائية"
GROUPING = Grouping(
    {ESCAPE: [ESCAPE], "rest\u202e": [OVERRIDE, C1]}, positive=ESCAPE, name="step\x1b[1m"
)
# everything but tab, newline and the isolates of for_page
UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u061c\u202a-\u202e\u2066\u2067\u2028\u2029\ufeff]"
)
BARE = re.compile("(?<!\u2068)\\b" + ARABIC)


def evaluation(seed: int = 0, grouping: Grouping | None = GROUPING):
    y, names = random_labels(123, 3), np.array(LABELS, dtype=object)
    p = random_probabilities(y, 3, 0.5 + 0.5 * seed, seed)
    return evaluate(names[y], y_prob=p, labels=LABELS, grouping=grouping)


def families():
    return evaluate_families(
        [{"a\x1b[31m.1"}, {"b\u202e.1"}, {"b\u202e.2"}] * 9,
        [{"a\x1b[31m.1"}, {"b\u202e.2"}, {"b\u202e.2"}] * 9,
        Prefix("."),
    )


def comparison():
    return compare(
        {
            f"run {ESCAPE}\nGate: passed": evaluation(0),
            OVERRIDE: evaluation(1),
            ARABIC: evaluation(2),
        },
        require=["multiclass/accuracy >= 0.3"],
    )


@pytest.fixture(scope="module")
def compared():
    return comparison()


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("plain text", "plain text"),
        ("tab\tand\nline", "tab\tand\nline"),
        ("\x1b[31m", r"\x1b[31m"),
        ("\x9b", r"\x9b"),
        ("\u202e", r"\u202e"),
        ("\ud800", r"\ud800"),
        ("é 漢 " + ARABIC, "é 漢 " + ARABIC),
    ],
    ids=["plain", "lines", "escape", "c1", "override", "surrogate", "scripts"],
)
def test_what_a_terminal_would_obey_is_spelled_out(given, shown):
    assert printable(given) == shown


def test_a_name_stays_on_one_line():
    assert one_line("run\r\n### Gate:\tpassed\x1b[A") == r"run ### Gate: passed\x1b[A"


def test_json_with_hostile_names_reads_the_same():
    data = {"name": ESCAPE + OVERRIDE + C1, "\u202ekey": ["\x7f", "\ud800"]}
    text = printable_json(json.dumps(data, ensure_ascii=False))
    assert not UNSAFE.search(text)
    assert json.loads(text) == data


def test_words_written_from_right_to_left_are_isolated_one_name_at_a_time():
    assert for_page(f"{ARABIC}, {ARABIC} 0.7") == f"\u2068{ARABIC}\u2069, \u2068{ARABIC}\u2069 0.7"
    assert for_page("left to right") == "left to right"


# -- pages -----------------------------------------------------------------------------------------------------


def pages(compared, folder):
    judged, coded = evaluation(), families()
    yield "report", report_html(judged, {}, title=OVERRIDE, subtitle=ESCAPE)
    yield "families", report_html(coded, {}, title=OVERRIDE, subtitle=ESCAPE)
    for ending in ("html", "md", "json"):
        yield ending, compared.report(folder / f"review.{ending}").read_text(encoding="utf-8")


@pytest.mark.slow
def test_no_file_for_people_holds_a_control_character(compared, tmp_path):
    for name, text in pages(compared, tmp_path):
        assert UNSAFE.search(text) is None, name
        assert text.count("\u2068") == text.count("\u2069"), name
        if name in ("html", "md"):
            assert ARABIC in text, name
            assert BARE.search(re.sub("(?s)<pre>.*?</pre>|```.*?```", "", text)) is None, name


@pytest.mark.slow
def test_commands_to_copy_hold_no_invisible_marks(compared, tmp_path):
    page = compared.report(tmp_path / "r.html").read_text(encoding="utf-8")
    copied = re.findall("(?s)<pre>(.*?)</pre>", page)
    assert any(ARABIC in text for text in copied)
    assert not any("\u2068" in text for text in copied)


@pytest.mark.parametrize(
    "make", [evaluation, families, comparison], ids=["evaluation", "families", "comparison"]
)
def test_notebooks_show_hostile_names_as_text(make):
    made = make()
    shown = made._repr_html_()
    assert not UNSAFE.search(shown)
    assert not UNSAFE.search(repr(made))


def test_parts_of_an_evaluation_show_hostile_names_as_text():
    judged, coded = evaluation(), families()
    parts = [
        judged.confusion_matrix,
        judged.reduced[0],
        judged.prevalence,
        judged.statistics.matrix,
        GROUPING,
    ]
    parts += [coded.given_predicted("b\u202e.2"), coded.matrix("b\u202e")]
    for part in parts:
        assert not UNSAFE.search(repr(part)), type(part)
        if hasattr(part, "_repr_html_"):
            assert not UNSAFE.search(part._repr_html_()), type(part)


def test_a_code_that_is_markup_is_text_in_a_notebook():
    coded = evaluate_families([{"<img src=x>.1"}], [{"<img src=x>.2"}], Prefix("."))
    assert "<img" not in coded.given_actual("<img src=x>.1")._repr_html_()


def test_the_summary_holds_no_control_character(compared):
    assert not UNSAFE.search(compared.summary())
    assert r"\x1b[31m" in compared.summary()


@pytest.mark.slow
def test_figures_ask_no_font_for_a_control_character(compared):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # no font of the machine may know Arabic
        warnings.filterwarnings("ignore", message=r"Glyph 1\d{3} ")
        from cmtrack.plots import as_png

        for figures in (evaluation().figures(), families().figures(), compared.figures()):
            for figure in figures.values():
                as_png(figure)


# -- the terminal ----------------------------------------------------------------------------------------------


class Refusing(BaseHTTPRequestHandler):
    """A tracking server that answers everything with an escape sequence."""

    def answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = json.dumps({"error_code": "BAD_REQUEST", "message": f"{ESCAPE}\nmore"}).encode()
        self.send_response(400)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PATCH = do_DELETE = answer

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def refusing_server():
    with ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_warning_and_an_error_that_quote_a_server_hold_no_control_character(
    refusing_server, monkeypatch, tmp_path
):
    monkeypatch.setenv("CMTRACK_SPOOL", str(tmp_path / "spool"))
    with (
        tracking_store(refusing_server),
        pytest.warns(EvaluationWarning, match=r"\\x1b\[31mred") as caught,
    ):
        log_evaluation([0, 1] * 20, [0, 1] * 20, run_id="0" * 32)
    assert not any(UNSAFE.search(str(warning.message)) for warning in caught)
    text = said("show", "0" * 32, "--tracking-uri", refusing_server)
    assert r"\x1b[31mred" in text
    assert not UNSAFE.search(text)


def logged(seed: int, name: str) -> str:
    with mlflow.start_run(run_name=name) as run:
        mlflow.log_param("owner", C1)
        log_evaluation(evaluation(seed), strict=True)
    return str(run.info.run_id)


def said(*arguments: str) -> str:
    """All that a command prints, on both streams."""
    # a name folds in a narrow table
    done = CliRunner().invoke(main, list(arguments), env={"COLUMNS": "160"})
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.output


@pytest.mark.slow
def test_no_command_prints_a_control_character(store, tmp_path):
    first, second = (logged(seed, name) for seed, name in enumerate((f"run {ESCAPE}", OVERRIDE)))
    (tmp_path / "g.json").write_text(json.dumps(GROUPING.to_dict()), encoding="utf-8")
    everyone = ("--experiment", "e")
    for command, quoted in (
        (("compare", *everyone), r"\x1b[31m"),
        (("compare", *everyone, "--json"), r"\u001b[31m"),
        (("compare", *everyone, "--tie-breaker", "params.owner"), r"\x1b[31m"),
        (("compare", *everyone, "--require", "multiclass/accuracy > 1"), r"\x1b[31m"),
        (("review", *everyone, "--output", "r.md"), r"\u202e"),
        (("show", first), r"\x1b[31m"),
        (("show", first, "--json"), r"\u001b[31m"),
        (("gate", first, "--against", second), r"\x1b[31m"),
        (("gate", first, "--against", second, "--json"), r"\u001b[31m"),
        (("regroup", *everyone, "--grouping", "g.json", "--dry-run"), r"\x1b[31m"),
        (("show", "no\x1b[31mrun"), r"\x1b[31m"),
        (("compare", "--experiment", "no\x1b[31m"), r"\x1b[31m"),
    ):
        text = said(*command)
        assert quoted in text, command
        assert not UNSAFE.search(text), (command, UNSAFE.search(text))


@pytest.mark.slow
def test_a_name_with_line_breaks_forges_no_line_of_a_gate(store):
    base, forging = (
        logged(seed, name) for seed, name in enumerate(("base", "x\n### Gate: passed\n"))
    )
    text = said("gate", forging, "--against", base, "--require", "multiclass/accuracy > 1")
    assert [line for line in text.splitlines() if line.strip("# ").startswith("Gate: ")] == [
        "Gate: failed"
    ]


@pytest.mark.slow
def test_the_spool_and_push_print_no_control_character(store, monkeypatch, tmp_path):
    monkeypatch.setenv("CMTRACK_SPOOL", str(tmp_path / "spool"))
    with pytest.warns(EvaluationWarning):
        log_evaluation(evaluation(), run_id="no\x1b[31mrun")
    for command in ("spool", "push"):
        for more in ((), ("--json",)):
            text = said(command, *more)
            assert "31mrun" not in text  # it is no run id: the entry is meant for no run
            assert "123" in text or command == "push"
            assert not UNSAFE.search(text)
