"""``cmtrack gate``: an exit code for pipelines that says whether a run may replace the baseline."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from cmtrack.cli.comparison_options import (
    check_gates,
    compared,
    confidence_option,
    grouping_option,
    json_option,
    positive_option,
    prefix_option,
    rank_by_option,
    require_option,
)
from cmtrack.cli.frame import Failed, echo, echo_json, plain_errors, working
from cmtrack.untrusted import for_page, one_line

if TYPE_CHECKING:
    from cmtrack.comparison import RankedRun, RunComparison
    from cmtrack.comparison.gates import GateResult

_ALWAYS_DEFINED = "multiclass/accuracy"


class NotJudged(Failed):
    """Error without a verdict: exit code 2, which is not that of a gate that fails."""

    exit_code = 2


@dataclass(frozen=True)
class Check:
    """One requirement of the run, with its outcome.

    Attributes
    ----------
    text, value : str
        What was asked, and what the run has.
    passed : bool
    data : dict
        The same for machines.
    note : str
        What a reader should know of it.
    """

    text: str
    value: str
    passed: bool
    data: dict[str, Any]
    note: str = ""


@dataclass(frozen=True)
class Verdict:
    """Outcome of the gates for a run."""

    run: RankedRun
    baseline: RankedRun | None
    checks: tuple[Check, ...]
    pairing: str
    notes: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """True where all requirements are met."""
        return all(check.passed for check in self.checks)


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
@click.option("--against", metavar="RUN", help="The baseline: a run, or a model URI such as models:/name@champion.")
@require_option
@rank_by_option
@grouping_option
@positive_option
@prefix_option
@confidence_option
@click.option("--tracking-uri", metavar="URI", help="Tracking store; by default MLflow's own choice.")
@click.option(
    "--summary",
    "summary_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help='File that the Markdown summary is appended to, such as "$GITHUB_STEP_SUMMARY".',
)
@json_option
@_no_verdict
@plain_errors
def gate_command(
    run: str,
    against: str | None,
    require: tuple[str, ...],
    rank_by: tuple[str, ...],
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
    if not require and against is None:
        raise click.UsageError("give --against, --require, or both")
    if require and rank_by:
        raise click.UsageError("--rank-by is what the run is judged by without --require: give one of them")
    with working() as step:
        step("loading libraries", 0, 1)
        check_gates(require, against)
        comparison = compared(
            step,
            runs=(run,) if against is None else (run, against),  # the default metric is one that either of them has
            against=against,
            experiments=(),
            filter_string="",
            rank_by=(_ALWAYS_DEFINED,) if require else rank_by,
            require=(),  # judged below: here a gate would hide the numbers of the run that it stops
            tie_breakers=(),
            margin=None,
            block=None,
            model=None,
            block_kind="auto",
            limit=2,
            tracking_uris=() if tracking_uri is None else (tracking_uri,),
            **options,
        )
        verdict = _verdict(cast("RunComparison", comparison), require)  # no blocks are given
    text = _markdown(verdict)
    if summary_file is not None:
        _append(summary_file, for_page(text))
    if as_json:
        echo_json(_data(verdict))
    else:
        echo(text)
    if not verdict.passed:
        raise click.exceptions.Exit(1)


def _verdict(comparison: RunComparison, require: Sequence[str]) -> Verdict:
    from cmtrack.comparison.cohorts import why_apart
    from cmtrack.comparison.differences import why_unpaired

    base = comparison.baseline
    runs = list(comparison.runs)
    for left in comparison.left_out:
        raise NotJudged(f"{_who(left.run, base)} cannot be judged: {left.reason}")
    tested = next((run for run in runs if base is None or run.run_id != base.run_id), None)
    if tested is None:  # the run is its own baseline
        tested = runs[0]
    baseline = None if base is None else next((run for run in runs if run.run_id == base.run_id), None)
    pairing = ""
    if baseline is not None:
        if len(comparison.rankings) > 1:
            why = why_apart(comparison.rankings, comparison.reads)
            raise NotJudged(f"the run and the baseline cannot be compared: they were judged {why}")
        pairing = why_unpaired(tested.evaluation, baseline.evaluation)
    checks = [_gate(text, tested, baseline) for text in require] or [_not_worse(comparison, tested, baseline)]
    return Verdict(tested, baseline, tuple(checks), pairing, comparison.notes)


def _who(run: Any, base: Any) -> str:
    return f"the baseline {run.name!r}" if base is not None and run.run_id == base.run_id else f"the run {run.name!r}"


def _gate(text: str, run: RankedRun, baseline: RankedRun | None) -> Check:
    from cmtrack.comparison.differences import paired_differences
    from cmtrack.comparison.gates import Gate, check_known

    gate = Gate.parse(text)
    try:
        check_known([gate], set(run.evaluation.metrics))
    except ValueError as error:
        raise NotJudged(str(error).replace("no run has", "the run has no")) from None
    difference = None
    if gate.difference and baseline is not None:
        if gate.metric not in baseline.evaluation.metrics:
            raise NotJudged(f"gate {gate.text!r}: the baseline has no {gate.metric!r}")
        difference = paired_differences(run.evaluation, baseline.evaluation, metrics=[gate.metric])[gate.metric]
    result = gate.check(run.evaluation.metrics, run.evaluation.intervals, difference)
    data = {"gate": gate.text, "value": result.value, "bound": gate.bound, "passed": result.passed}
    return Check(f"`{gate.text}`", _value(result), result.passed, data | {"reason": result.reason})


def _value(result: GateResult) -> str:
    return result.reason or f"{result.value:.4g}".replace("-", "−")


def _not_worse(comparison: RunComparison, run: RankedRun, baseline: RankedRun | None) -> Check:
    """The default: the run is not significantly worse than the baseline."""
    from cmtrack.report import formatting as fmt

    text = f"not significantly worse than the baseline in {comparison.criterion}"
    note = (
        f"Not significantly worse does not mean as good: --require '{comparison.criterion}.difference.low >= -0.01' "
        "asks for a loss of at most 0.01."
    )
    data: dict[str, Any] = {"gate": "not significantly worse", "criterion": str(comparison.criterion)}
    if baseline is None or baseline is run:
        return Check(text, "it is the baseline itself", True, data | {"passed": True, "reason": "the same run"})
    if comparison.criterion.pareto:
        said = "on the front" if run.rank == 1 else "not dominated" if run.tied else "dominated in every metric"
        return Check(text, said, run.tied, data | {"passed": run.tied, "reason": said})
    # of two runs: the one that leads has no difference, and its lead is the other one's
    second = next(one for one in (run, baseline) if one is not comparison.rankings[0].leader)
    gap, ends = second.difference, (second.difference_low, second.difference_high)
    if not all(map(math.isfinite, ends)):
        raise NotJudged(f"no error is known of the difference from the baseline in {comparison.criterion}")
    worse = second is run and not run.tied
    if second is not run:
        gap, ends = -gap, (-ends[1], -ends[0])
    shown = f"difference {fmt.with_interval(gap, ends)}, p = {second.p_set:.3f}"
    shown += _not_shown(worse, ends, fmt.samples(run.evaluation))
    data |= {"passed": not worse, "difference": gap, "low": ends[0], "high": ends[1], "reason": ""}
    return Check(text, shown, not worse, data, "" if worse else note)


def _not_shown(worse: bool, ends: tuple[float, float], samples: str) -> str:
    """Caution about an interval that reaches below zero: not shown to be worse is not shown to be as good."""
    from cmtrack.report import formatting as fmt

    if worse or ends[0] >= 0:
        return ""
    lowest = fmt.number(-ends[0], ends)
    return (
        f": not shown to be worse, but {samples} leave room for {lowest} less; a margin says how much is too much "
        "(--require 'METRIC.difference.low >= -MARGIN')"
    )


def _markdown(verdict: Verdict) -> str:
    from cmtrack.report import formatting as fmt

    against = f" against `{_named(verdict.baseline)}`" if verdict.baseline is not None else ""
    lines = [
        f"### Gate: {'passed' if verdict.passed else 'failed'}",
        "",
        f"`{_named(verdict.run)}`{against}, {fmt.samples(verdict.run.evaluation)}.",
        "",
        "| required | value | |",
        "|---|---|---|",
    ]
    mark = {True: "passes", False: "**fails**"}
    lines += [f"| {_cell(check.text)} | {_cell(check.value)} | {mark[check.passed]} |" for check in verdict.checks]
    if verdict.pairing:
        lines += ["", f"Not compared row by row: {verdict.pairing}."]
    lines += [line for check in verdict.checks if check.note for line in ("", check.note)]
    lines += [line for note in verdict.notes for line in ("", f"Note: {note}")]
    for warning in verdict.run.evaluation.warnings:
        lines += ["", f"Warning: {warning}"]
    return "\n".join(lines)


def _named(run: RankedRun | None) -> str:
    assert run is not None
    return one_line(f"{run.name} ({run.run_id[:8]})").replace("`", "'")


def _cell(text: str) -> str:
    return one_line(text).replace("|", "\\|")


def _data(verdict: Verdict) -> dict[str, Any]:
    def told(run: RankedRun | None) -> dict[str, str] | None:
        return None if run is None else {"run_id": run.run_id, "name": run.name}

    return {
        "passed": verdict.passed,
        "run": told(verdict.run),
        "baseline": told(verdict.baseline),
        "gates": [check.data for check in verdict.checks],
        "paired": verdict.baseline is not None and not verdict.pairing,
        "n_samples": verdict.run.evaluation.n_samples,
        "notes": list(verdict.notes),
        "warnings": list(verdict.run.evaluation.warnings),
    }


def _append(path: Path, text: str) -> None:
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(f"{text}\n\n")
    except OSError as error:
        raise NotJudged(f"{path} cannot be written: {error.strerror}") from None
