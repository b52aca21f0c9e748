"""``cmtrack promote``: decide if a version of a registered model may replace the champion."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from click.core import ParameterSource

from cmtrack.cli.compare import check_gates, read_rank_by
from cmtrack.cli.flags import (
    NEW_FILE,
    Answer,
    answering,
    asking,
    of_compare,
    of_evaluate,
    tracking_uri_option,
)
from cmtrack.cli.frame import (
    NotDecided,
    append_summary,
    bad_input,
    errors_exit_with_2,
    passing_on,
    plain,
    print_text,
    terminal,
    working,
    writing,
)
from cmtrack.cli.group import main
from cmtrack.cli.row_options import (
    SCORE_FLAGS,
    RowQuestion,
    check_files,
    check_scores,
    row_options,
    with_flags,
)
from cmtrack.names import as_sentence
from cmtrack.untrusted import one_line

if TYPE_CHECKING:
    from rich.console import Console

    from cmtrack.comparison.promotion import Promotion

_EXIT = {"promote": 0, "keep": 1, "cannot tell": 3}
_PLACEHOLDERS = "{version} stands for the number of a version, and {role} for its role."


def _not_decided(function: Callable[..., Any]) -> Callable[..., Any]:
    """Exit with code 2 on any error, because the other codes are answers."""

    @functools.wraps(function)
    def wrapped(**options: Any) -> Any:
        with errors_exit_with_2("interrupted: see the newest run of the model's history"):
            return function(**options)

    return wrapped


@main.command("promote", cls=asking(of_evaluate, base=asking(of_compare, "rule", "require")))
@_not_decided
@click.argument("challengers", metavar="MODEL...", nargs=-1, required=True)
@click.option(
    "--data",
    metavar="FILE",
    multiple=True,
    help="File with labelled rows: .parquet, .csv or .tsv; repeatable.",
)
@click.option("--y-true", metavar="COLUMN", help="Column of actual labels.")
@click.option(
    "--y-pred",
    metavar="COLUMN",
    help="Column of stored predicted labels, so that no model is loaded. In its name, "
    + _PLACEHOLDERS,
)
@click.option(
    "--y-prob",
    metavar="'p_*'|COLUMN",
    help="Columns of stored probabilities, such as 'v{version}_p_*', in which * stands for the "
    "label. No model is loaded.",
)
@click.option(
    "--y-score",
    metavar="'d_*'|COLUMN",
    help="Columns of stored decision values instead of probabilities, such as 'v{version}_d_*'.",
)
@row_options
@click.option(
    "--rank-by",
    metavar="METRIC",
    help="Metric in which a challenger must be better, by default the Matthews correlation.",
)
@click.option(
    "--alias", metavar="NAME", default="champion", show_default=True, help="Alias of the champion."
)
@click.option(
    "--also",
    type=click.Choice(["all", "none"]),
    default="all",
    show_default=True,
    help="Earlier champions to evaluate as well: all (the previous and the first champion) or "
    "none. They do not take part in the decision.",
)
@click.option("--name", help="Name of the rows. By default, it is the name of the file.")
@click.option("--move", is_flag=True, help="Move the alias if the answer is “promote”.")
@click.option(
    "--dry-run",
    is_flag=True,
    help="Write nothing. The history then cannot count this look at the challenger.",
)
@click.option(
    "--force",
    metavar="REASON",
    help="Move the alias whatever the answer is, and record this reason, such as 'first champion'.",
)
@click.option(
    "--summary",
    "summary_file",
    type=NEW_FILE,
    help='Append the answer as Markdown to this file, such as "$GITHUB_STEP_SUMMARY".',
)
@click.option(
    "--comment",
    "comment_file",
    type=NEW_FILE,
    help="Write the answer as Markdown to this file, with a marker for a comment that is updated.",
)
@tracking_uri_option
@answering
def promote_command(
    challengers: tuple[str, ...],
    tracking_uri: str | None,
    summary_file: Path | None,
    comment_file: Path | None,
    **options: Any,
) -> Answer:
    """Compare MODEL with the champion on new rows.

    MODEL is a version of a registered model, such as models:/party/5. With several versions, each
    is compared with the champion, and the best of those that pass is promoted. By default, the
    models score the rows. With --y-pred, --y-prob or --y-score, their stored predictions are read.

    The answer is “promote” if the rows show that all requirements hold, “keep” if they refute one,
    and “cannot tell” otherwise. If earlier rows could not tell, they are joined with these rows, up
    to three times. The alias moves only with --move or --force. Each call leaves a record, which
    `cmtrack history` reads.

    \b
    Exit codes:
      0  promote, or the alias was moved by force
      1  keep the champion
      2  not decided: wrong usage, no such model, no server, or the alias could not be moved
      3  cannot tell
    """
    _check(options)
    for path in filter(None, (summary_file, comment_file)):
        # The decision must not be recorded if its files cannot be written afterwards.
        is_new = not path.exists()
        with writing(path, NotDecided):
            path.open("a", encoding="utf-8").close()
            if is_new:
                path.unlink()
    source = click.get_current_context().get_parameter_source("confidence_level")
    if source is ParameterSource.DEFAULT:
        # A rule file may contain another level.
        del options["confidence_level"]
    answered = _promoted(challengers, tracking_uri, options)
    promotion = answered.promotion
    from cmtrack.report.promotion import comment_markdown, promotion_markdown

    if summary_file is not None:
        text = promotion_markdown(promotion, answered.review)
        append_summary(summary_file, text.rstrip(), NotDecided)
    if comment_file is not None:
        with writing(comment_file, NotDecided):
            comment = comment_markdown(promotion, answered.review)
            comment_file.write_text(comment, encoding="utf-8")
    code = 0
    if promotion.answer is not None and promotion.record.forced is None:
        code = _EXIT[promotion.answer.value]
    show = functools.partial(_print, terminal(), answered)
    return Answer(promotion.to_dict, show, click.exceptions.Exit(code))


class _Answered(NamedTuple):
    """A promotion, the name of its experiment, and the address of its review; empty if unknown."""

    promotion: Promotion
    experiment: str
    review: str


def _check(options: Mapping[str, Any]) -> None:
    """Refuse options that conflict, before anything is read."""
    force = options["force"]
    if force is not None and not force.strip():
        raise click.UsageError("--force needs a reason, such as 'first champion'")
    if options["dry_run"] and (options["move"] or force is not None):
        raise click.UsageError("--dry-run writes nothing; leave out --move and --force")
    has_data = bool(options["data"])
    if has_data != (options["y_true"] is not None):
        raise click.UsageError("give --data and --y-true together")
    if not has_data and force is None:
        raise click.UsageError("give --data and --y-true; only --force works without rows")
    if options["rule"] is not None and (options["require"] or options["rank_by"]):
        raise click.UsageError(
            "a rule file contains the whole rule; leave out --require and --rank-by"
        )
    check_scores(options["y_prob"], options["y_score"])
    check_files(options["data"], "--data")


def _promoted(
    challengers: tuple[str, ...], tracking_uri: str | None, options: dict[str, Any]
) -> _Answered:
    """Call the library, with labels of the type that the files contain."""
    with working() as step:
        step("loading libraries", 0, 1)
        from cmtrack.cli import reading
        from cmtrack.comparison.rule import Rule
        from cmtrack.tracking import NotMoved
        from cmtrack.tracking.promotion.promote import promote
        from cmtrack.tracking.store import quiet, tracking_store

        check_gates(options["require"], options["alias"])
        if options["rank_by"] is not None:
            read_rank_by([options["rank_by"]])
        if options["rule"] is not None:
            options["rule"] = reading.read_file(Rule.from_file, options["rule"])
        labels = options.pop("labels")
        positive = options.pop("positive")
        grouping_file = options.pop("grouping_file")
        segments = options.pop("segments")
        files = options.pop("data")
        question = RowQuestion.read(labels, positive, grouping_file, options)
        with (
            passing_on(**SCORE_FLAGS),
            bad_input(OSError, NotMoved, say=with_flags),
            quiet(),
            tracking_store(tracking_uri) as uri,
        ):
            as_label: Callable[[str], Any] = str
            if files and (labels is not None or positive is not None):
                as_label = reading.label_reader_of_table(files, options["y_true"])
            step("evaluating and comparing", 0, 1)
            promotion = promote(
                list(challengers),
                data=_data(files),
                segments=reading.divisions(segments, ()) or None,
                **question.arguments(as_label),
            )
            return _answered(promotion, uri)


def _data(files: tuple[str, ...]) -> Any:
    """Return one file, several files, or None."""
    if len(files) > 1:
        return list(files)
    return files[0] if files else None


def _answered(promotion: Promotion, tracking_uri: str) -> _Answered:
    """Return a promotion with the name of its experiment and the address of its review."""
    from cmtrack.comparison.run import Run
    from cmtrack.report.review.record import address
    from cmtrack.tracking.store import client_for

    if not promotion.run_id:
        return _Answered(promotion, "", "")
    experiment = client_for().get_experiment(promotion.experiment_id)
    review = ""
    if promotion.record.bundle is not None:
        run = Run(promotion.run_id, "", promotion.experiment_id, tracking_uri)
        review = address(run)
    return _Answered(promotion, str(experiment.name), review)


def _print(console: Console, answered: _Answered) -> None:
    """Print the answer."""
    from rich.text import Text

    from cmtrack.cli.summary import new_table
    from cmtrack.report import promotion as words

    promotion = answered.promotion
    first, *paragraphs = words.sentences(promotion)
    console.print(Text(one_line(first), style="bold"))
    for text in paragraphs:
        print_text(console, text)
    rows = words.gate_rows(promotion)
    if rows:
        heads = ["required", "found", "answer"]
        has_versions = len(promotion.challenges) > 1
        if has_versions:
            heads.insert(0, "version")
        table = new_table("", *heads, right=0, overflow="fold")
        for row in rows:
            cells = [plain(one_line(text)) for text in row]
            table.add_row(*cells[0 if has_versions else 1 :])
        console.print(table)
    remarks = [
        words.moved_sentence(promotion),
        words.record_sentence(promotion, answered.experiment),
        *(f"Note: {as_sentence(note)}" for note in promotion.notes),
        words.look_sentence(promotion),
    ]
    for text in filter(None, remarks):
        print_text(console, text)
    if answered.review:
        console.print(plain(f"See the review: {answered.review}"), soft_wrap=True)
