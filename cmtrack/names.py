"""Formatting of the names of runs, classes and files: quoted, shortened and distinct."""

from __future__ import annotations

import difflib
import re
from collections import defaultdict
from collections.abc import Sequence
from itertools import takewhile

from cmtrack.untrusted import one_line

GAP = "…"
MAY_BE_BEST = "may be the best"
RULED_OUT = "ruled out as the best"
"""The two possible results for a run in a ranking."""
SELECTED = (
    "The leader's interval takes its selection into account",
    "The intervals of the leader and the chosen run take their selection into account",
)
"""Remarks on adjusted intervals: the first is for one run, and the second is for two runs."""
_TOKEN = re.compile(r"[^\W_]+(?:\.\d+)?|[\W_]")
"""A word, a number with its decimals, or a punctuation mark."""


def quoted(name: object) -> str:
    """Quote a name for a sentence: “forest 100, labels only”."""
    return f"“{one_line(name)}”"


def some_of(names: Sequence[str], most: int) -> str:
    """Return the first names as a text, followed by the number of remaining names."""
    text = ", ".join(names[:most])
    if len(names) > most:
        text += f" and {len(names) - most} more"
    return text


def join_names(names: Sequence[str], most: int = 3) -> str:
    """Return "a, b and c"; more than ``most`` + 1 names become "a, b, c and 5 more"."""
    if len(names) > most + 1:
        return some_of(names, most)
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def plural(noun: str) -> str:
    """Return the plural of a noun, such as the name of a column.

    Examples
    --------
    >>> plural("year"), plural("country"), plural("class")
    ('years', 'countries', 'classes')
    """
    if noun.endswith(("s", "x", "ch", "sh")):
        return f"{noun}es"
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}s"


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """Return ``; did you mean 'a' or 'b'?`` with similar names; empty if no name is similar."""
    alike = difflib.get_close_matches(name, known, n=3, cutoff=0.4)
    if not alike:
        return ""
    return f"; did you mean {' or '.join(map(repr, alike))}?"


def as_sentence(text: str) -> str:
    """Return a message with a capital first letter and a full stop.

    A message that starts with the name of a metric, a run or an argument keeps its first letter.
    """
    first_word = text.partition(" ")[0].rstrip(",")
    if first_word.isalpha():
        text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?")) else f"{text}."


def elide(text: str, width: int) -> str:
    """Cut a text in the middle, so that it has at most ``width`` characters."""
    if len(text) <= width:
        return text
    n_first = width // 2
    n_last = max(width - 1 - n_first, 0)
    last = text[len(text) - n_last :]
    return text[:n_first].rstrip() + GAP + last.lstrip()


def distinct(names: Sequence[object], width: int) -> list[str]:
    """Shorten names in such a way that different names stay different.

    The function first removes words with which all long names start or end. It then cuts the middle
    of the remaining text. It does not append a number, because readers could mistake the number for
    a part of the name.

    Parameters
    ----------
    names : sequence
        The full names. Line breaks in a name are replaced.
    width : int
        Maximum number of characters of a short name. A name is longer only if it would otherwise be
        equal to another short name.

    Returns
    -------
    list of str
        The short names in the order of ``names``. Names with at most ``width`` characters are
        unchanged. Different names have different short names.

    Raises
    ------
    ValueError
        If ``width`` is less than 3.

    Examples
    --------
    >>> distinct(["bert-large-uncased-v3-lr3e-bs64", "bert-large-uncased-v3-lr5e-bs64"], 20)
    ['bert-large…lr3e-bs64', 'bert-large…lr5e-bs64']
    >>> distinct(["a forest", "a tree"], 20)
    ['a forest', 'a tree']
    """
    if width < 3:
        raise ValueError(f"width must be at least 3, got {width!r}")
    full = [one_line(name) for name in names]
    long = [name for name in dict.fromkeys(full) if len(name) > width]
    short = {name: name for name in full} | _shortened(long, width)
    alike = _alike(short)
    while alike:
        # Names that are cut at different positions can become equal. Each round writes at least one
        # more of these names in full, and two full names are always different.
        for group in alike:
            short |= {name: name for name in group}
        alike = _alike(short)
    return [short[name] for name in full]


def without_common_words(names: Sequence[object]) -> tuple[list[str], str]:
    """Return names without the words with which all of them start or end.

    The second result is the pattern of the full names. It is empty if the names have no word in
    common.

    Examples
    --------
    >>> without_common_words(["topic 1 (news)", "topic 2 (news)"])
    (['1', '2'], 'topic … (news)')
    """
    full = [one_line(name) for name in names]
    pieces = [_TOKEN.findall(name) for name in full]
    n_first = _count_common(pieces)
    rests = [parts[n_first:] for parts in pieces]
    n_last = _count_common([parts[::-1] for parts in rests])
    middles = ["".join(parts[: len(parts) - n_last]) for parts in rests]
    if not (n_first or n_last) or not all(middles):
        return full, ""
    first = "".join(pieces[0][:n_first])
    last = "".join(rests[0][len(rests[0]) - n_last :])
    return middles, f"{first}{GAP}{last}"


def _shortened(names: Sequence[str], width: int) -> dict[str, str]:
    """Return short forms of different names, all of which are too long."""
    short = _without_common(names, [_TOKEN.findall(name) for name in names], width)
    if len(names) > 1 and len(set(short.values())) == 1:
        # The names differ only inside a word that was cut. If the common letters are removed, the
        # names start with different letters.
        short = _without_common(names, names, width)
    for group in _alike(short):
        if len(group) < len(names):
            short |= _shortened(group, width)
    return short


def _alike(short: dict[str, str]) -> list[list[str]]:
    """Return lists of different names that have the same short name."""
    groups = defaultdict(list)
    for name, brief in short.items():
        groups[brief].append(name)
    return [group for group in groups.values() if len(group) > 1]


def _without_common(
    names: Sequence[str], pieces: Sequence[Sequence[str]], width: int
) -> dict[str, str]:
    """Shorten names by removing the words or letters with which all of them begin or end."""
    n_first = _count_common(pieces)
    rests = [parts[n_first:] for parts in pieces]
    n_last = _count_common([parts[::-1] for parts in rests])
    short = {}
    for name, parts, rest in zip(names, pieces, rests, strict=True):
        end = len(rest) - n_last
        first = "".join(parts[:n_first])
        short[name] = _fit(first, "".join(rest[:end]), "".join(rest[end:]), width)
    return short


def _count_common(pieces: Sequence[Sequence[str]]) -> int:
    """Return how many leading pieces all sequences have in common; 0 for a single sequence."""
    if len(pieces) < 2:
        return 0
    columns = zip(*pieces, strict=False)
    return sum(1 for _ in takewhile(lambda column: len(set(column)) == 1, columns))


def _fit(first: str, middle: str, last: str, width: int) -> str:
    """Join three parts into a name that has at most `width` characters.

    ``first`` and ``last`` occur in all names, so they are shortened before ``middle``.
    """
    room = width - len(middle)
    if last and len(last) > min(room - 1, width // 3):
        last = GAP
    room -= len(last)
    if first and len(first) > room:
        first = _whole_words(first, room - 1).rstrip() + GAP
    text = f"{first}{middle}{last}".replace(GAP + GAP, GAP)
    return elide(text, width)


def _whole_words(text: str, width: int) -> str:
    """Return as many words of a text as fit into `width` characters; cut a single long word."""
    head = text[: max(width, 0)]
    if text[width : width + 1].isalnum():
        whole = re.sub(r"[^\W_]+$", "", head)
        head = whole or head
    return head
