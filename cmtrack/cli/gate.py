"""``cmtrack gate``: exit with 0 if a run meets a pipeline's requirements."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from cmtrack.cli.compare import (
    check_gates,
    compared,
    one_run,
    parsed,
    read_rank_by,
)
from cmtrack.cli.flags import NEW_FILE, Answer, answering, asking, of_compare
from cmtrack.cli.frame import (
    BadInput,
    NotDecided,
    append_summary,
    errors_exit_with_2,
    plain,
    print_text,
    terminal,
    working,
)
from cmtrack.cli.group import main
from cmtrack.names import as_sentence, quoted
from cmtrack.untrusted import for_page, one_line

if TYPE_CHECKING:
    from rich.console import Console

    from cmtrack.base import BaseEvaluation
    from cmtrack.comparison.ranking import Ranked
    from cmtrack.comparison.rule import Rule
    from cmtrack.comparison.run import Run
    from cmtrack.comparison.verdict import NotWorse, Verdict
    from cmtrack.evaluation.gates import GateResult


def _no_verdict(function: Callable[..., Any]) -> Callable[..., Any]:
    """Check the options first, and exit with code 2 on any error.

    Pipelines treat exit code 1 as a failed gate, so no other error may use this code.
    """

    @functools.wraps(function)
    def wrapped(**options: Any) -> Any:
        with errors_exit_with_2("interrupted: the gates were not checked"):
            return function(**options | _read_gates(**options))

    return wrapped


def _read_gates(
    against: str | None,
    require: tuple[str, ...],
    rank_by: tuple[str, ...] | None,
    rule: Path | None,
    **_: Any,
) -> dict[str, Any]:
    """Return gates, baseline and rule after checking them, before any request to a store."""
    metrics: Any = None
    rule_of_file = None
    if rule is not None:
        rule_of_file = _read_rule(rule, require, rank_by, against)
        require = rule_of_file.require
        against = against or rule_of_file.values.get("against")
        metrics = rule_of_file.values.get("rank_by")
    if not require and against is None:
        raise click.UsageError(
            "give --against or --require (or both), or a --rule file that contains them"
        )
    if require and rank_by:
        raise click.UsageError(
            "give --rank-by or --require, not both; --rank-by names the metric to check if "
            "there are no gates"
        )
    with working() as step:
        step("loading libraries", 0, 1)
        check_gates(require, against)
        if rule is None:
            metrics = read_rank_by(rank_by or ())
        if not require:
            from cmtrack.comparison.verdict import check_one_metric

            parsed(check_one_metric, metrics)
    return {"against": against, "require": require, "rule": rule_of_file}


@main.command(
    "gate",
    cls=asking(
        of_compare,
        "experiment_names",
        "filter_string",
        "against",
        "require",
        "rule",
        "rank_by",
        "grouping",
        "positive",
        "costs",
        "extra_metrics",
        "prefix",
        "confidence_level",
    ),
)
@_no_verdict
@one_run
@click.option(
    "--tracking-uri",
    metavar="URI",
    help="Read from this tracking store. By default the one that MLflow uses.",
)
@click.option(
    "--summary",
    "summary_file",
    type=NEW_FILE,
    help='Append the verdict as Markdown to this file, such as "$GITHUB_STEP_SUMMARY".',
)
@answering
def gate_command(
    run: str,
    against: str | None,
    require: tuple[str, ...],
    rank_by: tuple[str, ...] | None,
    rule: Rule | None,
    tracking_uri: str | None,
    summary_file: Path | None,
    **options: Any,
) -> Answer:
    """Exit with 0 if RUN meets your requirements, and print why.

    Without --require, the run fails if it is significantly worse than the baseline in the metric
    chosen with --rank-by (by default the Matthews correlation). You can omit --against if no gate
    refers to a .difference. If several pipelines log runs, combine --latest with a --filter on a
    tag that your pipeline sets.

    \b
    Exit codes:
      0  the run passes
      1  a gate fails
      2  the gates could not be checked: wrong usage, no such run, no server, a damaged evaluation,
         a baseline that was evaluated on other data, or a gate that the rows cannot decide
    """
    with working() as step:
        from cmtrack.comparison.criterion import ALWAYS_DEFINED
        from cmtrack.comparison.verdict import verdict_of
        from cmtrack.report.review import Review

        if rule is not None:
            # If the rule kept its gates, the comparison would not contain the numbers of a run that
            # fails them.
            options["rule"] = rule.without_gates(ALWAYS_DEFINED if require else None)
        elif require:
            # The default metric may be undefined for the run, and the gates may not need it.
            rank_by = (ALWAYS_DEFINED,)
        comparison = compared(
            step,
            runs=(run,) if against is None else (run, against),
            against=against,
            rank_by=rank_by,
            tracking_uri=None if tracking_uri is None else (tracking_uri,),
            **options,
        )
        verdict = verdict_of(comparison, require)
    if verdict.run is None or verdict.not_judged is not None:
        raise NotDecided(verdict.why)
    review = Review(comparison)
    answer = _Verdict(
        verdict, verdict.run, rule, _review_of(verdict.run), review.samples(verdict.run.evaluation)
    )
    if summary_file is not None:
        append_summary(summary_file, _markdown(answer), NotDecided)
    rule_data = {}
    if rule is not None:
        rule_data["rule"] = {"file": rule.name, "sha256": rule.sha256}
    show = functools.partial(_print, terminal(), answer)
    exit_code = click.exceptions.Exit(int(not verdict.passed))
    return Answer(lambda: verdict.to_dict() | rule_data, show, exit_code)


class _Verdict(NamedTuple):
    """A verdict, and the run, rule, latest review and number of rows to print with the verdict."""

    verdict: Verdict
    run: Ranked
    rule: Rule | None
    review: tuple[Run, str] | None
    samples: str


def _review_of(ranked: Ranked) -> tuple[Run, str] | None:
    """Return the run's latest review and its URL, which is empty if the store has no web pages."""
    from cmtrack.report.review.record import address
    from cmtrack.tracking.publish import review_of
    from cmtrack.tracking.store import quiet

    with quiet():
        review = review_of(ranked.run)
    return None if review is None else (review, address(review))


def _read_rule(
    path: Path, require: tuple[str, ...], rank_by: tuple[str, ...] | None, against: str | None
) -> Rule:
    """Read a rule from a file; refuse options that conflict with a rule."""
    from cmtrack.cli.reading import read_file
    from cmtrack.comparison.rule import Rule

    rule = read_file(Rule.from_file, path)
    baseline = rule.values.get("against")
    has_other_baseline = baseline is not None and against not in (None, baseline)
    if require or rank_by or has_other_baseline:
        raise click.UsageError(
            "a rule file contains the whole rule; leave out --require, --rank-by and any other "
            "--against"
        )
    if "block" in rule.values:
        raise BadInput(
            f"{rule.name}: a rule with 'block' is for repeated runs, but a gate checks one run"
        )
    return rule


_MARK = {True: "passes", False: "fails"}


def _markdown(answer: _Verdict) -> str:
    """Return the verdict as Markdown for a job's summary page."""
    from cmtrack.evaluation.gates import GateResult
    from cmtrack.report import formatting as fmt

    sentence = _judged(answer, lambda name: "`" + name.replace("`", "'") + "`")
    lines = [f"### {_heading(answer.verdict)}", "", for_page(sentence), ""]
    lines += ["| required | value | |", "|---|---|---|"]
    for check in answer.verdict.checks:
        required = _cell(_required(check))
        if isinstance(check, GateResult):
            required = fmt.markdown_code(check.gate.text)
        mark = _MARK[check.passed]
        if not check.passed:
            mark = f"**{mark}**"
        lines.append(f"| {required} | {_cell(_found(check))} | {mark} |")
    paragraphs = [for_page(text) for text in _remarks(answer)]
    if answer.rule is not None:
        paragraphs.append(for_page(answer.rule.sentence))
    if answer.review is not None:
        run, href = answer.review
        if href:
            paragraphs.append(f"See the review [{fmt.markdown_text(run.name)}](<{href}>)")
        else:
            paragraphs.append(f"See the review, run `{run.run_id}`")
    for paragraph in paragraphs:
        lines += ["", paragraph]
    return "\n".join(lines)


def _print(console: Console, answer: _Verdict) -> None:
    """Print the verdict."""
    from rich.text import Text

    from cmtrack.cli.summary import new_table

    console.print(Text(_heading(answer.verdict), style="bold"))
    print_text(console, _judged(answer, quoted))
    table = new_table("", "required", "value", "", right=0, overflow="fold")
    for check in answer.verdict.checks:
        required = plain(one_line(_required(check)))
        table.add_row(required, plain(one_line(_found(check))), _MARK[check.passed])
    console.print(table)
    for text in _remarks(answer):
        print_text(console, text)
    if answer.rule is not None:
        print_text(console, answer.rule.sentence)
    if answer.review is not None:
        run, href = answer.review
        where = f"{quoted(run.name)}, {href}" if href else f"run {run.run_id}"
        console.print(plain(f"See the review: {where}"), soft_wrap=True)


def _heading(verdict: Verdict) -> str:
    """Return the first line; if the gates are open, it says so with the number of further rows."""
    from cmtrack.comparison.verdict import Answer
    from cmtrack.report.assertions import rows_would_decide

    if verdict.passed:
        return "Gate: passed"
    if verdict.run is None or verdict.answer is not Answer.CANNOT_TELL:
        return "Gate: failed"
    words = rows_would_decide(verdict.rows_more, verdict.run.evaluation)
    return f"Gate: failed ({': '.join(filter(None, [verdict.answer.value, words]))})"


def _judged(answer: _Verdict, named: Callable[[str], str]) -> str:
    """Return a sentence that names the run, its baseline and the number of rows."""
    runs = [answer.run]
    if answer.verdict.baseline is not None:
        runs.append(answer.verdict.baseline)
    names = [named(one_line(f"{run.name} ({run.run_id[:8]})")) for run in runs]
    return f"{' against '.join(names)}, {answer.samples}."


def _remarks(answer: _Verdict) -> list[str]:
    """Return the sentences to print below the checks."""
    from cmtrack.report import formatting as fmt
    from cmtrack.report.constant import constant_sentence

    verdict = answer.verdict
    evaluation = answer.run.evaluation
    lines = []
    if verdict.pairing is not None and verdict.baseline is not None:
        reason = verdict.pairing.between(evaluation, verdict.baseline.evaluation)
        lines.append(f"The runs were not compared row by row: {reason}.")
    lines += [_hint(check, evaluation, answer.samples) for check in verdict.checks]
    notes = []
    for constant in verdict.constants:
        interval = evaluation.intervals.get(constant.metric)
        sentence = constant_sentence(
            constant,
            fmt.number(evaluation.metrics[constant.metric], interval),
            interval=interval,
            positive=evaluation.positive,
            catalog=evaluation.catalog,
        )
        notes.append(sentence)
    lines += [f"Note: {as_sentence(note)}" for note in (*notes, *verdict.notes) if note]
    warnings = len(evaluation.warnings)
    if warnings:
        command = f"cmtrack show {fmt.short_id(answer.run.run_id)}"
        lines.append(f"For {fmt.counted(warnings, 'warning')} about this run, see {command}.")
    return [line for line in lines if line]


def _required(check: GateResult | NotWorse) -> str:
    from cmtrack.evaluation.gates import GateResult

    if isinstance(check, GateResult):
        return check.gate.text
    return f"not significantly worse than the baseline in {check.criterion}"


def _found(check: GateResult | NotWorse) -> str:
    from cmtrack.comparison.verdict import Outcome
    from cmtrack.evaluation.gates import GateResult
    from cmtrack.report import formatting as fmt

    if isinstance(check, GateResult):
        return check.found
    if check.outcome is Outcome.SAME_RUN:
        return "it is the baseline itself"
    if check.outcome is not Outcome.TESTED:
        return check.outcome.value
    difference = fmt.with_interval(check.difference, (check.low, check.high))
    return f"difference {difference}, {fmt.p_equals(check.pvalue)}"


def _hint(check: GateResult | NotWorse, evaluation: BaseEvaluation, samples: str) -> str:
    """Return a text on the loss that a passed check allows, and on a gate that would limit it."""
    from cmtrack.comparison.verdict import NotWorse, Outcome
    from cmtrack.report import formatting as fmt

    if not isinstance(check, NotWorse) or check.outcome is not Outcome.TESTED or not check.passed:
        return ""
    better = evaluation.catalog.lookup(check.criterion).better
    interval = (check.low, check.high)
    loss = check.high if better in ("lower", "nearest zero") else -check.low
    if loss <= 0:
        return ""
    direction = {"lower": "more", "nearest zero": "more distance from zero"}.get(better, "less")
    room = f"{fmt.number(loss, interval)} {direction}"
    text = (
        f"“Not significantly worse” does not mean “equally good”. With {samples}, the metric "
        f"may be {room}."
    )
    if better not in ("higher", "lower"):
        return text
    bound = "low >= -0.01" if better == "higher" else "high <= 0.01"
    return (
        f"{text} --require '{check.criterion}.difference.{bound}' requires a loss of at most 0.01."
    )


def _cell(text: str) -> str:
    return for_page(one_line(text).replace("|", "\\|"))
