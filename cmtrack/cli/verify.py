"""``cmtrack verify``: check a bundle, recompute its review, and write a new page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cmtrack.cli.flags import Answer, answering
from cmtrack.cli.frame import BadInput, echo, first_line, working, writing
from cmtrack.cli.group import main

if TYPE_CHECKING:
    from cmtrack.report.review.bundle import Verification

MAX_LISTED = 20
_EXIT = {"VERIFIED": 0, "CHANGED": 1, "STATISTICS_ONLY": 3, "REMOVED": 3}


class NotVerified(BadInput):
    """Error that prevents verification; the exit code is 2, because 1 means a changed bundle."""


@main.command("verify")
@click.argument("bundle", type=click.Path(path_type=Path))
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    help="Write the fresh page to this file.  [default: NAME.verified.html, next to the bundle]",
)
@answering
def verify_command(bundle: Path, output: Path | None) -> Answer:
    """Verify a review's bundle and write a new page.

    BUNDLE is the file that `cmtrack review --bundle` or Comparison.bundle wrote. The command
    compares every file in the bundle with its digest in the manifest. It recomputes the comparison
    from the statistics and the rule. Every number in the review must agree to within 1e-9. It does
    not check the page in the bundle, so read the new page instead. It also prints the digest of the
    manifest, which you can sign or compare.

    \b
    Exit codes:
      0  verified: all data of the review were recomputed and are the same
      1  changed: a file was changed or added or is missing, or the numbers differ
      2  not verified: wrong usage, no such file, not a bundle, made with a newer version
      3  statistics only: a part of the review could not be recomputed (rows left out, another version of cmtrack,
         a feature that cmtrack no longer has)
    """  # noqa: E501 - the lines below \b are printed as they are
    with working() as step:
        step("loading libraries", 0, 1)
        from cmtrack.report.html import write_text
        from cmtrack.report.review.bundle import verify
        from cmtrack.tracking.store import quiet

        step("verifying", 0, 0)
        try:
            with quiet():
                check = verify(bundle)
        except (OSError, ValueError) as error:
            why = (
                f"{bundle}: {error.strerror}"
                if isinstance(error, OSError) and error.strerror
                else first_line(error)
            )
            raise NotVerified(why) from None
    if output is not None and not check.page and not check.removed:
        why = next(
            iter((*check.problems, *check.removed, *check.not_recomputed)), "it has no comparison"
        )
        raise NotVerified(f"{bundle.name}: cannot make a page: {why}")
    if check.page:
        output = output or bundle.with_suffix(".verified.html")
        with writing(output):
            write_text(output, check.page)
    data = {name: value for name, value in vars(check).items() if name != "page"}
    data |= {"outcome": check.outcome.name.lower(), "passed": check.passed}
    return Answer(
        lambda: data,
        lambda: _print(bundle, check, output),
        click.exceptions.Exit(_EXIT[check.outcome.name]),
    )


def _print(bundle: Path, check: Verification, output: Path | None) -> None:
    echo(f"{bundle.name}: {check.outcome.value}.")
    for problem in check.problems[:MAX_LISTED]:
        echo(f"  {problem}")
    if len(check.problems) > MAX_LISTED:
        echo(f"  and {len(check.problems) - MAX_LISTED} more")
    for text in check.removed:
        echo(f"  {text}")
    if not check.problems:
        recomputed = "no number was recomputed"
        if check.numbers:
            recomputed = f"{check.numbers} numbers were recomputed and agree"
        echo(f"{check.files} files match the manifest; {recomputed}.")
    for text in check.not_recomputed:
        echo(f"Not recomputed: {text}.")
    for text in check.stated:
        echo(f"Only stated: {text}.")
    echo(f"Rule: {check.rule}")
    echo(f"Manifest: SHA-256 {check.sha256}")
    echo(f"Made with cmtrack {check.made_with}, verified with cmtrack {check.read_with}.")
    if check.page:
        echo(f"The page in the bundle was not checked; read {output}")
    else:
        echo("The page in the bundle was not checked, and a fresh page cannot be made.")
