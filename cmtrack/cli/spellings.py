"""Renamed options, whose old spelling still works for one more version.

Old spellings do not appear in help texts or in shell completion. A command replaces an old spelling
by the new spelling and prints a warning. Delete the entries, and then this file, in the version
after the next.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import click

from cmtrack.cli.frame import warn

_EXTRA_METRICS = {"--metrics": "--extra-metrics"}

RENAMED: Mapping[str, Mapping[str, str]] = {
    "at": {"--prevalence": "--at"},
    "compare": _EXTRA_METRICS,
    "demo": {"--directory": "--output"},
    "gate": _EXTRA_METRICS,
    "review": _EXTRA_METRICS,
    "rows": {"--ids": "--row-ids", "--limit": "--max-rows", "--missed-by": "--missed"},
    "segments": {"--by": "--segment", **_EXTRA_METRICS},
    "threshold": {"--calibration": "--choose-on"},
    "view": _EXTRA_METRICS,
}
"""For each command, the new spelling of each old spelling."""


class Command(click.Command):
    """Command that also accepts the old spellings of its options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Replace each old spelling by the new spelling, and parse the arguments."""
        return super().parse_args(ctx, self._with_new_spellings(ctx, args))

    def _with_new_spellings(self, ctx: click.Context, args: list[str]) -> list[str]:
        renamed = RENAMED.get(self.name or "", {})
        n_values = {
            spelling: param.nargs
            for param in self.get_params(ctx)
            if isinstance(param, click.Option) and not param.is_flag
            for spelling in param.opts
        }
        spelled: list[str] = []
        rest = iter(args)
        for arg in rest:
            if arg == "--":
                return [*spelled, arg, *rest]
            option, equals, value = arg.partition("=")
            if option in renamed:
                if not ctx.resilient_parsing:
                    _warn_renamed(option, renamed[option])
                option = renamed[option]
            spelled.append(f"{option}{equals}{value}")
            if not equals:
                # The next arguments are values, even if they look like an option.
                spelled += itertools.islice(rest, n_values.get(option, 0))
        return spelled


def _warn_renamed(old: str, new: str) -> None:
    warn(f"{old} is now {new}; the next version of cmtrack will not accept {old}")
