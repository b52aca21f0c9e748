"""``cmtrack gate``: an exit code for pipelines that says whether a run may replace the baseline."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cmtrack.cli.compare import (
    check_gates,
    compared,
    one_run,
    parsed,
    read_rank_by,
)
from cmtrack.cli.flags import NEW_FILE, Answer, answering, asking, of_compare
from cmtrack.cli.frame import BadInput, Failed, plain, plain_errors, terminal, working, writing
from cmtrack.cli.group import main
from cmtrack.names import quoted
from cmtrack.untrusted import for_page, one_line

if TYPE_CHECKING:
    from rich.console import Console

    from cmtrack.base import BaseEvaluation
    from cmtrack.comparison.ranking import Ranked
    from cmtrack.comparison.rule import Rule
    from cmtrack.comparison.run import Run
    from cmtrack.comparison.verdict import NotWorse, Verdict
    from cmtrack.evaluation.gates import GateResult


class NotJudged(Failed):
    """Error without a verdict: exit code 2; that of a failed gate is 1."""

    exit_code = 2


def _no_verdict(function: Callable[..., Any]) -> Callable[..., Any]:
    """Check the options first, and exit with code 2 on any error: 1 means that a gate failed, and nothing else."""

    @functools.wraps(function)
    def wrapped(**options: Any) -> Any:
        try:
            with plain_errors():
                return function(**options | _by_gates(**options))
        except (KeyboardInterrupt, click.Abort):
            raise NotJudged("interrupted: the run was not judged") from None
        except click.ClickException as error:
            if error.exit_code == 2:
                raise
            raise NotJudged(error.message) from None

    return wrapped


def _by_gates(
    against: str | None,
    require: tuple[str, ...],
    rank_by: tuple[str, ...] | None,
    rule: Path | None,
    **_: Any,
) -> dict[str, Any]:
    """Gates and baseline of a run, those of a rule included; checked before a store is asked."""
    fixed = None if rule is None else _read_rule(rule, require, rank_by, against)
    if fixed is not None:
        require, against = fixed.require, against or fixed.values.get("against")
    if not require and against is None:
        raise click.UsageError("give --against, --require, or both, or a --rule that holds them")
    if require and rank_by:
        raise click.UsageError(
            "--rank-by is what the run is judged by without --require: give one of them"
        )
    with working() as step:
        step("loading libraries", 0, 1)
        check_gates(require, against)
        asked = read_rank_by(rank_by or ())
        if not require:
            from cmtrack.comparison.verdict import check_one_metric

            parsed(check_one_metric, asked if fixed is None else fixed.values.get("rank_by"))
    return {"against": against, "require": require, "rule": fixed}


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
    "--tracking-uri", metavar="URI", help="Ask this tracking store, by default MLflow's own choice."
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
    """Check by the exit code that a run meets its requirements.

    Without --require, a run fails where it is significantly worse than the baseline, in the metric of --rank-by or
    by default the Matthews correlation. --against may be left out where no gate is about a .difference. Other pipelines
    log runs, too: with --latest, a --filter by a tag of this one finds its own.

    \b
    Exit codes:
      0  the run passes
      1  a gate fails
      2  it could not be judged: wrong usage, no such run, no server, a damaged evaluation,
         a baseline that was judged on other data, or a gate that the rows cannot decide
    """
    with working() as step:
        from cmtrack.comparison.criterion import ALWAYS_DEFINED
        from cmtrack.comparison.verdict import verdict_of
        from cmtrack.report.review import Review

        comparison = (
            compared(  # without the gates, which would hide the numbers of a run that they stop
                step,
                runs=(run,)
                if against is None
                else (run, against),  # the default metric is one that either of them has
                against=against,
                rank_by=(ALWAYS_DEFINED,) if require and rule is None else rank_by,
                rule=None
                if rule is None
                else rule.without_gates(ALWAYS_DEFINED if require else None),
                tracking_uri=None if tracking_uri is None else (tracking_uri,),
                **options,
            )
        )
        verdict = verdict_of(comparison, require)
    if verdict.run is None or verdict.not_judged is not None:
        raise NotJudged(verdict.why)
    review = _review_of(verdict.run)
    samples = Review(comparison).samples(verdict.run.evaluation)
    if summary_file is not None:
        text = for_page(_markdown(verdict, verdict.run, rule, review, samples))
        with writing(summary_file, NotJudged), summary_file.open("a", encoding="utf-8") as file:
            file.write(f"{text}\n\n")
    named = {} if rule is None else {"rule": {"file": rule.name, "sha256": rule.sha256}}
    shown = functools.partial(_print, terminal(), verdict, verdict.run, rule, review, samples)
    return Answer(
        lambda: verdict.to_dict() | named, shown, click.exceptions.Exit(int(not verdict.passed))
    )


def _review_of(ranked: Ranked) -> tuple[Run, str] | None:
    """The latest review of the run, and its URL, empty if the store has no pages."""
    from cmtrack.report.review.record import address
    from cmtrack.tracking.publish import review_of
    from cmtrack.tracking.store import quiet

    with quiet():
        review = review_of(ranked.run)
    return None if review is None else (review, address(review))


def _read_rule(
    path: Path, require: tuple[str, ...], rank_by: tuple[str, ...] | None, against: str | None
) -> Rule:
    """The rule of a file, for one run and its baseline; it is the whole rule."""
    from cmtrack.cli.reading import read_file
    from cmtrack.comparison.rule import Rule

    rule = read_file(Rule.from_file, path)
    base = rule.values.get("against")
    if require or rank_by or (base is not None and against not in (None, base)):
        raise click.UsageError(
            "a rule file is the whole rule: leave out --require, --rank-by and another --against"
        )
    if "block" in rule.values:
        raise BadInput(
            f"{rule.name}: a rule with 'block' is for repeated runs: a gate judges one run"
        )
    return rule


_MARK = {True: "passes", False: "fails"}


def _markdown(
    verdict: Verdict, run: Ranked, rule: Rule | None, review: tuple[Run, str] | None, samples: str
) -> str:
    """The verdict for the summary page of a job."""
    from cmtrack.evaluation.gates import GateResult
    from cmtrack.report import formatting as fmt

    lines = [
        _heading(verdict, "### "),
        "",
        _judged(verdict, run, samples, lambda name: "`" + name.replace("`", "'") + "`"),
        "",
        "| required | value | |",
        "|---|---|---|",
    ]
    for check in verdict.checks:
        required = f"`{_required(check)}`" if isinstance(check, GateResult) else _required(check)
        value, mark = _found(check), _MARK[check.passed]
        lines.append(
            f"| {_cell(required)} | {_cell(value)} | {mark if check.passed else f'**{mark}**'} |"
        )
    below = [
        *_remarks(verdict, run, samples),
        *(f"Warning: {warning}" for warning in run.evaluation.warnings),
    ]
    if rule is not None:
        below.append(rule.sentence)
    if review is not None:
        by, href = review
        below.append(
            f"Review: [{fmt.markdown_text(by.name)}](<{href}>)"
            if href
            else f"Review: run `{by.run_id}`"
        )
    return "\n".join([*lines, *(line for text in below for line in ("", text))])


def _print(
    console: Console,
    verdict: Verdict,
    run: Ranked,
    rule: Rule | None,
    review: tuple[Run, str] | None,
    samples: str,
) -> None:
    """Print the verdict."""
    from rich.text import Text

    from cmtrack.cli.summary import new_table, print_warnings

    console.print(Text(_heading(verdict), style="bold"))
    console.print(plain(_judged(verdict, run, samples, quoted)))
    table = new_table("", "required", "value", "", right=0, overflow="fold")
    for check in verdict.checks:
        value = _found(check)
        table.add_row(
            plain(one_line(_required(check))), plain(one_line(value)), _MARK[check.passed]
        )
    console.print(table)
    for text in _remarks(verdict, run, samples):
        console.print(plain(text))
    print_warnings(console, run.evaluation.warnings)
    if rule is not None:
        console.print(plain(rule.sentence))
    if review is not None:
        by, href = review
        where = f"{quoted(by.name)}, {href}" if href else f"run {by.run_id}"
        console.print(plain(f"Review: {where}"), soft_wrap=True)


def _heading(verdict: Verdict, mark: str = "") -> str:
    return f"{mark}Gate: {'passed' if verdict.passed else 'failed'}"


def _judged(verdict: Verdict, run: Ranked, samples: str, named: Callable[[str], str]) -> str:
    """The run, its baseline and its samples, as a sentence."""
    runs = [
        one_line(f"{one.name} ({one.run_id[:8]})")
        for one in (run, verdict.baseline)
        if one is not None
    ]
    return f"{' against '.join(map(named, runs))}, {samples}."


def _remarks(verdict: Verdict, run: Ranked, samples: str) -> list[str]:
    """The sentences below the checks."""
    from cmtrack.report import formatting as fmt
    from cmtrack.report.constant import constant_sentence

    one_run, m = run.evaluation, run.evaluation.metrics
    constant = []
    for one in verdict.constants:
        ends = one_run.intervals.get(one.metric)
        shown = fmt.number(m[one.metric], ends)
        constant.append(
            constant_sentence(
                one, shown, interval=ends, positive=one_run.positive, catalog=one_run.catalog
            )
        )
    lines = [_hint(check, run.evaluation, samples) for check in verdict.checks]
    if verdict.pairing is not None and verdict.baseline is not None:
        why = verdict.pairing.between(run.evaluation, verdict.baseline.evaluation)
        lines.insert(0, f"Not compared row by row: {why}.")
    return [
        *filter(None, lines),
        *(f"Note: {note}" for note in (*filter(None, constant), *verdict.notes)),
    ]


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
    if check.outcome is not Outcome.TESTED:
        return (
            "it is the baseline itself"
            if check.outcome is Outcome.SAME_RUN
            else check.outcome.value
        )
    difference = fmt.with_interval(check.difference, (check.low, check.high))
    return f"difference {difference}, {fmt.p_equals(check.pvalue)}"


def _hint(check: GateResult | NotWorse, evaluation: BaseEvaluation, samples: str) -> str:
    """The loss that a passed default check still allows, and the gate that bounds it; else empty."""
    from cmtrack.comparison.verdict import NotWorse, Outcome
    from cmtrack.report import formatting as fmt

    if not isinstance(check, NotWorse) or check.outcome is not Outcome.TESTED or not check.passed:
        return ""
    better = evaluation.catalog.lookup(check.criterion).better
    ends = (check.low, check.high)
    loss = check.high if better in ("lower", "nearest zero") else -check.low
    if loss <= 0:
        return ""
    way = {"lower": "more", "nearest zero": "more distance from zero"}.get(better, "less")
    room = f"{fmt.number(loss, ends)} {way}"
    text = f"Not shown to be worse does not mean as good: {samples} leave room for {room}."
    if better not in ("higher", "lower"):
        return text
    bound = "low >= -0.01" if better == "higher" else "high <= 0.01"
    return (
        f"{text} --require '{check.criterion}.difference.{bound}' asks for a loss of at most 0.01."
    )


def _cell(text: str) -> str:
    return one_line(text).replace("|", "\\|")
