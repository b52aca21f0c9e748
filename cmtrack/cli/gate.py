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
    confidence_option,
    costs_option,
    grouping_option,
    json_option,
    positive_option,
    prefix_option,
    rank_by_option,
    require_option,
    rule_option,
)
from cmtrack.cli.frame import BadInput, Failed, echo, echo_json, plain_errors, working
from cmtrack.untrusted import for_page, one_line

if TYPE_CHECKING:
    from cmtrack.comparison import RankedRun
    from cmtrack.comparison.rule import Rule
    from cmtrack.comparison.verdict import NotWorse, Verdict
    from cmtrack.metrics.gates import GateResult


class NotJudged(Failed):
    """Error without a verdict: exit code 2, which is not that of a gate that fails."""

    exit_code = 2


def _no_verdict(function: Callable[..., Any]) -> Callable[..., Any]:
    """End with exit code 2 whatever keeps a run from being judged: 1 says that a gate fails, and nothing else."""

    @functools.wraps(function)
    def wrapped(*args: Any, **options: Any) -> Any:
        try:
            return function(*args, **options)
        except (KeyboardInterrupt, click.Abort):
            raise NotJudged("interrupted: the run was not judged") from None
        except click.ClickException as error:
            if error.exit_code == 2:
                raise
            raise NotJudged(error.message) from None

    return wrapped


@click.command("gate")
@click.argument("run")
@click.option("--against", metavar="RUN", help="Compare with this run, or model URI such as models:/name@champion.")
@require_option
@rule_option
@rank_by_option
@grouping_option
@positive_option
@costs_option
@prefix_option
@confidence_option
@click.option("--tracking-uri", metavar="URI", help="Ask this tracking store, by default MLflow's own choice.")
@click.option(
    "--summary",
    "summary_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help='Append the Markdown summary to this file, such as "$GITHUB_STEP_SUMMARY".',
)
@json_option
@_no_verdict
@plain_errors
def gate_command(
    run: str,
    against: str | None,
    require: tuple[str, ...],
    rank_by: tuple[str, ...],
    rule_file: Path | None,
    tracking_uri: str | None,
    summary_file: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Say by the exit code whether a run does what is required of it.

    Without --require, a run fails where it is significantly worse than the baseline, in the metric of --rank-by or
    by default the Matthews correlation. --against may be left out where no gate is about a .difference.

    \b
    Exit codes:
      0  the run passes
      1  a gate fails
      2  it could not be judged: wrong usage, no such run, no server, a damaged evaluation,
         or a baseline that was judged on other data
    """
    rule = None if rule_file is None else _read_rule(rule_file, require, rank_by, against)
    if rule is not None:
        require, against = rule.require, against or rule.values.get("against")
    if not require and against is None:
        raise click.UsageError("give --against, --require, or both, or a --rule that says them")
    if require and rank_by:
        raise click.UsageError("--rank-by is what the run is judged by without --require: give one of them")
    with working() as step:
        step("loading libraries", 0, 1)
        from cmtrack.comparison.verdict import ALWAYS_DEFINED, verdict_of

        check_gates(require, against)
        comparison = compared(  # without the gates, which would hide the numbers of a run that they stop
            step,
            runs=(run,) if against is None else (run, against),  # the default metric is one that either of them has
            against=against,
            rank_by=(ALWAYS_DEFINED,) if require and rule is None else rank_by,
            rule=None if rule is None else rule.without_gates(ALWAYS_DEFINED if require else None),
            tracking_uris=() if tracking_uri is None else (tracking_uri,),
            **options,
        )
        verdict = verdict_of(comparison, require)
    if verdict.run is None or verdict.not_judged is not None:
        raise NotJudged(verdict.why)
    text = _markdown(verdict, verdict.run)
    if rule is not None:
        text += f"\n\n{rule.sentence}"
    review = _reviewed(verdict.run)
    text += f"\n\nReview: {review}" if review else ""
    if summary_file is not None:
        _append(summary_file, for_page(text))
    if as_json:
        named = {} if rule is None else {"rule": {"file": rule.name, "sha256": rule.sha256}}
        echo_json(verdict.to_dict() | named)
    else:
        echo(text)
    if not verdict.passed:
        raise click.exceptions.Exit(1)


def _reviewed(ranked: RankedRun) -> str:
    """The review that last judged the run, as Markdown: its address, or its id where the store has no pages."""
    from cmtrack.report.formatting import markdown_text
    from cmtrack.report.review.record import address
    from cmtrack.tracking.publish import review_of
    from cmtrack.tracking.store import quiet

    with quiet():
        review = review_of(ranked.run)
    if review is None:
        return ""
    href = address(review)
    return f"[{markdown_text(review.name)}](<{href}>)" if href else f"run `{review.run_id}`"


def _read_rule(path: Path, require: tuple[str, ...], rank_by: tuple[str, ...], against: str | None) -> Rule:
    """The rule of a file, for one run and its baseline; it is the whole rule."""
    from cmtrack.cli.reading import read_rule_file

    rule = read_rule_file(path)
    own = rule.values.get("against")
    if require or rank_by or (own is not None and against not in (None, own)):
        raise click.UsageError("a rule file is the whole rule: leave out --require, --rank-by and another --against")
    if "block" in rule.values:
        raise BadInput(f"{rule.name}: a rule with 'block' is for repeated runs: a gate judges one run")
    return rule


def _markdown(verdict: Verdict, run: RankedRun) -> str:
    from cmtrack.report import formatting as fmt

    against = f" against `{_named(verdict.baseline)}`" if verdict.baseline is not None else ""
    lines = [
        f"### Gate: {'passed' if verdict.passed else 'failed'}",
        "",
        f"`{_named(run)}`{against}, {fmt.samples(run.evaluation)}.",
        "",
        "| required | value | |",
        "|---|---|---|",
    ]
    mark = {True: "passes", False: "**fails**"}
    for check in verdict.checks:
        text, value = _required(check), _found(check, fmt.samples(run.evaluation))
        lines.append(f"| {_cell(text)} | {_cell(value)} | {mark[check.passed]} |")
    if verdict.pairing is not None and verdict.baseline is not None:
        why = verdict.pairing.between(run.evaluation, verdict.baseline.evaluation)
        lines += ["", f"Not compared row by row: {why}."]
    lines += [line for check in verdict.checks for line in _hint(check)]
    lines += [line for note in verdict.notes for line in ("", f"Note: {note}")]
    for warning in run.evaluation.warnings:
        lines += ["", f"Warning: {warning}"]
    return "\n".join(lines)


def _required(check: GateResult | NotWorse) -> str:
    """The requirement."""
    from cmtrack.metrics.gates import GateResult

    if isinstance(check, GateResult):
        return f"`{check.gate.text}`"
    return f"not significantly worse than the baseline in {check.criterion}"


def _found(check: GateResult | NotWorse, samples: str) -> str:
    """The finding on it."""
    from cmtrack.comparison.verdict import Outcome
    from cmtrack.metrics.gates import GateResult
    from cmtrack.report import formatting as fmt

    if isinstance(check, GateResult):
        return check.found
    if check.outcome is not Outcome.TESTED:
        return "it is the baseline itself" if check.outcome is Outcome.SAME_RUN else check.outcome.value
    ends = (check.low, check.high)
    shown = f"difference {fmt.with_interval(check.difference, ends)}, p = {check.pvalue:.3f}"
    return shown + _not_shown(not check.passed, ends, samples)


def _hint(check: GateResult | NotWorse) -> list[str]:
    from cmtrack.comparison.verdict import NotWorse, Outcome

    if not isinstance(check, NotWorse) or check.outcome is not Outcome.TESTED or not check.passed:
        return []
    said = (
        f"Not significantly worse does not mean as good: --require '{check.criterion}.difference.low >= -0.01' asks "
        "for a loss of at most 0.01."
    )
    return ["", said]


def _not_shown(worse: bool, ends: tuple[float, float], samples: str) -> str:
    """Words for an interval that reaches below zero: not shown to be worse is not shown to be as good."""
    from cmtrack.report import formatting as fmt

    if worse or ends[0] >= 0:
        return ""
    lowest = fmt.number(-ends[0], ends)
    return (
        f": not shown to be worse, but {samples} leave room for {lowest} less; a margin says how much is too much "
        "(--require 'METRIC.difference.low >= -MARGIN')"
    )


def _named(run: RankedRun | None) -> str:
    assert run is not None
    return one_line(f"{run.name} ({run.run_id[:8]})").replace("`", "'")


def _cell(text: str) -> str:
    return one_line(text).replace("|", "\\|")


def _append(path: Path, text: str) -> None:
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(f"{text}\n\n")
    except OSError as error:
        raise NotJudged(f"{path} cannot be written: {error.strerror}") from None
