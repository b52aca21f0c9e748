"""Texts about shares by cell, which the table, the figure and the page have in common."""

from __future__ import annotations

import math
from collections.abc import Sequence

from cmtrack.digits import (
    fixed,
    p_equals,
    percent_with_interval,
    short_percent,
    significant,
)
from cmtrack.grouping import Label
from cmtrack.metrics.intervals import normal_quantile
from cmtrack.names import elide, join_names, plural, quoted
from cmtrack.prevalence.domains.check import Assumption, LeftOut, Step
from cmtrack.prevalence.domains.rule import CellShare, DomainShares, Source
from cmtrack.prevalence.domains.tables import Key
from cmtrack.prevalence.results import ClassShare
from cmtrack.untrusted import one_line

_MOST_NAMES = 3
"""Maximum number of cells that a sentence names."""
_WIDTH = 60
"""Number of characters to which names are shortened."""
NONE = "–"
"""Text of a table cell without a number."""


def short_name(name: object) -> str:
    """Return the name of a value or of a column in one line, without control characters."""
    return elide(one_line(name), _WIDTH)


def cell_name(key: Key) -> str:
    """Return the name of a cell in a sentence: "65+ 2018"."""
    return " ".join(map(short_name, key))


def _cell_names(keys: Sequence[Key]) -> str:
    """Return the names of the first cells, and how many there are in addition."""
    names = ", ".join(map(cell_name, keys[:_MOST_NAMES]))
    if len(keys) > _MOST_NAMES:
        names += f" and {len(keys) - _MOST_NAMES:,} more cells"
    return names


def source_text(shares: DomainShares, cell: CellShare) -> str:
    """Return the labelled rows from which the number of a cell comes, as the table shows it."""
    columns = shares.tables.columns
    source = cell.basis.source
    if source is Source.OTHER_PERIODS:
        return f"other {plural(short_name(columns[-1]))} of {cell_name(cell.key[:-1])}"
    if source is Source.OTHER_DOMAINS:
        return f"other {plural(_domain_word(shares))}"
    return str(source)


def share_text(share: ClassShare) -> str:
    """Return "21.3% [18.5, 24.3]"; without a value the range, or a dash."""
    if not math.isfinite(share.low):
        return NONE
    if math.isnan(share.value):
        return f"[{fixed(share.low, 1, 2)}, {fixed(share.high, 1, 2)}]"
    return percent_with_interval(share.value, (share.low, share.high))


def count_text(cell: CellShare) -> str:
    """Return the number of rows of the class among the target rows, with its interval."""
    share = cell.own_share
    if math.isnan(share.value):
        return NONE
    low, value, high = (cell.n * number for number in (share.low, share.value, share.high))
    return f"{value:,.0f} [{low:,.0f}, {high:,.0f}]"


def needed_text(cell: CellShare) -> str:
    """Return the number of further labelled rows for the requested half-width."""
    if not cell.rows_needed > 0:
        return NONE
    return significant(cell.rows_needed, 2)


def closing_sentences(shares: DomainShares, labels: Sequence[Label]) -> list[str]:
    """Return the sentences below the table: the checks, and what each source assumes."""
    sources = {cell.basis.source for cell in shares.cells}
    steps = {step for basis in shares.bases.values() for step in basis.steps}
    sentences = [
        _check_sentence(shares, step)
        for step in Step
        if shares.is_checked(step) and (step in steps or step is Step.DOMAINS)
    ]
    if sentences:
        sentences.append(
            "Calibration means that a score stands for the same chance in all cells. Shift means "
            "that the scores of each class look alike in all cells."
        )
    if sources & {Source.OTHER_DOMAINS, Source.OTHER_PERIODS}:
        sentences.append(_used_sentence(shares))
    if sentences and len(labels) > 2:
        sentences.append(
            f"These errors are about the share of {quoted(labels[1])}. Each class has an allowance "
            "of its own."
        )
    if Source.UNDECIDED in sources:
        sentences.append(
            "Cells are undecided if the check refuses neither assumption. Their range contains the "
            "intervals under both."
        )
    if Source.OWN_ROWS in sources:
        sentences.append(
            "The numbers from own rows assume only that the labelled rows are a random part of "
            "their cell."
        )
    return sentences


def _check_sentence(shares: DomainShares, step: Step) -> str:
    """Return how far the estimates of labelled cells were off without their own labelled rows."""
    unit = _domain_word(shares)
    others = plural(unit)
    if step is Step.PERIODS:
        unit = "cell"
        others = plural(short_name(shares.tables.columns[-1]))
    errors = []
    for assumption in Assumption:
        check = shares.check(step, assumption, shares.decisive_values)
        if len(check.cells):
            error = f"{_points(check.mean_error)} ({p_equals(check.pvalue)})"
            errors.append(f"by {error} under {assumption}")
    return (
        f"To check numbers from other {others}, each labelled {unit} was also estimated without "
        f"its own labelled rows. These estimates were off {' and '.join(errors)}."
    )


def _used_sentence(shares: DomainShares) -> str:
    """Return which assumption the numbers from other rows use, and what they allow for."""
    by_source: dict[str, set[str]] = {}
    allowances: dict[str, float] = {}
    for cell in shares.cells:
        basis = cell.basis
        if basis.source not in (Source.OTHER_DOMAINS, Source.OTHER_PERIODS):
            continue
        name = plural(short_name(shares.tables.columns[-1]))
        if basis.source is Source.OTHER_DOMAINS:
            name = plural(_domain_word(shares))
        by_source.setdefault(name, set()).add(str(basis.assumption))
        number = shares.tables.keys.index(cell.key)
        if basis.assumption is not None and basis.steps:
            allowance = shares.allowance(number, basis.assumption, shares.decisive_values)
            allowances[name] = max(allowances.get(name, 0.0), allowance)
    z = normal_quantile(shares.confidence_level)
    parts = []
    for name, assumptions in by_source.items():
        part = f"numbers from other {name} assume {join_names(sorted(assumptions))}"
        if allowances.get(name, 0) > 0:
            reach = z * math.sqrt(allowances[name])
            part += f" and allow ±{_points(reach)} for its error"
        elif name in allowances:
            part += ", and the check found no error beyond chance"
        parts.append(part)
    return " ".join(f"{part[:1].upper()}{part[1:]}." for part in parts)


def check_rows(shares: DomainShares) -> list[dict[str, object]]:
    """Return one entry for each step, assumption and labelled cell that was left out."""
    rows: list[dict[str, object]] = []
    for step in Step:
        if not shares.is_checked(step):
            continue
        for assumption in Assumption:
            check: LeftOut = shares.check(step, assumption, shares.decisive_values)
            for number, error, variance in zip(
                check.cells.tolist(), check.errors, check.variances, strict=True
            ):
                key = shares.tables.keys[number]
                rows.append(
                    {
                        **dict(zip(shares.tables.columns, key, strict=True)),
                        "left_out": str(step),
                        "assumption": str(assumption),
                        "error": float(error),
                        "standard_error": math.sqrt(float(variance)),
                    }
                )
    return rows


def unlike_warning(shares: DomainShares) -> str:
    """Return a warning about cells whose labelled rows have other scores than their rows."""
    if not shares.unlike:
        return ""
    return (
        "labelled rows have other scores than all rows of the cell in "
        f"{_cell_names(shares.unlike)}; check that they are a random part of it"
    )


def reasons(shares: DomainShares) -> list[str]:
    """Return the remarks about cells, each with the names of the cells that share it."""
    keys: dict[str, dict[Key, None]] = {}
    for cell in shares.cells:
        if cell.why:
            keys.setdefault(cell.why, {})[cell.key] = None
    return [f"{_cell_names(list(cells))}: {reason}" for reason, cells in keys.items()]


def _domain_word(shares: DomainShares) -> str:
    """Return the name of the domain column, or of several joined."""
    columns = shares.tables.columns
    if shares.tables.has_periods:
        columns = columns[:-1]
    return " and ".join(map(short_name, columns))


def _points(share: float) -> str:
    return f"{fixed(share, 1, 2)} points"


def half_width_heading(shares: DomainShares) -> str:
    """Return the heading of the column of further labelled rows: "rows for ±5%"."""
    return f"rows for ±{short_percent(shares.half_width)}"
