"""``cmtrack verify``: a bundle is checked against its digests, and its numbers are recomputed."""

from __future__ import annotations

from pathlib import Path

import click

from cmtrack.cli.frame import BadInput, echo, echo_json, first_line, plain_errors, working

MAX_LISTED = 20


class NotVerified(BadInput):
    """Error without an answer: exit code 2, which is not that of a bundle that was changed."""


@click.command("verify")
@click.argument("bundle", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
@plain_errors
def verify_command(bundle: Path, as_json: bool) -> None:
    """Check the bundle of a review, and recompute its numbers.

    BUNDLE is the file that `cmtrack review --bundle` or Comparison.bundle wrote. Every file in it is checked
    against the digests of its manifest, and the comparison is computed from the statistics by the rule: every number of
    the review must agree to 1e-9. The manifest's own digest is printed, to be signed or compared.

    \b
    Exit codes:
      0  all files are as in the manifest, and all numbers that can be computed are the same
      1  a file was changed, added or is missing, or a number differs
      2  it could not be verified: wrong usage, no such file, no bundle, a newer version
    """
    with working() as step:
        step("loading libraries", 0, 1)
        from cmtrack.report.review.bundle import verify
        from cmtrack.tracking.store import quiet

        step("verifying", 0, 0)
        try:
            with quiet():
                found = verify(bundle)
        except (OSError, ValueError) as error:
            said = error.strerror if isinstance(error, OSError) and error.strerror else first_line(error)
            raise NotVerified(f"{bundle.name}: {said}") from None
    if as_json:
        echo_json(vars(found) | {"passed": found.passed})
    else:
        _print(bundle, vars(found) | {"passed": found.passed})
    if not found.passed:
        raise click.exceptions.Exit(1)


def _print(bundle: Path, found: dict[str, object]) -> None:
    echo(f"{bundle.name}: {'verified' if found['passed'] else 'NOT as it was written'}.")
    problems, lacking = found["problems"], found["not_recomputed"]
    assert isinstance(problems, tuple)
    assert isinstance(lacking, tuple)
    for problem in problems[:MAX_LISTED]:
        echo(f"  {problem}")
    if len(problems) > MAX_LISTED:
        echo(f"  and {len(problems) - MAX_LISTED} more")
    if found["passed"]:
        echo(f"{found['files']} files are as in the manifest; {found['numbers']} numbers were recomputed and agree.")
    for text in lacking:
        echo(f"Not recomputed: {text}.")
    echo(f"Rule: {found['rule']}")
    echo(f"Manifest: SHA-256 {found['sha256']}")
    echo(f"Made with cmtrack {found['made_with']}, verified with cmtrack {found['read_with']}.")
