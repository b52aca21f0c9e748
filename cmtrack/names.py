"""Names of runs, classes and files as a person reads them: on one line, quoted, and short but never alike."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher

from cmtrack.untrusted import one_line

GAP = "…"
MAY_BE_BEST, RULED_OUT = "may be the best", "ruled out as the best"
"""The two standings of a run among others."""
SELECTED = (
    "That of the leader allows for its selection",
    "Those of the leader and of the chosen run allow for their selection",
)
"""Of one run, or of two, whose interval is adjusted."""
_TOKEN = re.compile(r"[^\W_]+|[\W_]")


def quoted(name: object) -> str:
    """A name in a sentence: “forest 100, labels only”."""
    return f"“{one_line(name)}”"


def some_of(names: Sequence[str], most: int) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def join_names(names: Sequence[str], most: int = 3) -> str:
    """Return "a, b and c"; of more than ``most`` + 1 names the first ``most``, and how many more there are."""
    if len(names) > most + 1:
        return some_of(names, most)
    *first, last = names or [""]
    return f"{', '.join(first)} and {last}" if first else last


def elide(text: str, width: int) -> str:
    """`text` in at most `width` characters, cut in the middle."""
    if len(text) <= width:
        return text
    head = width // 2
    tail = max(width - 1 - head, 0)
    return text[:head].rstrip() + GAP + (text[-tail:].lstrip() if tail else "")


def distinct(names: Sequence[object], width: int) -> list[str]:
    """Short names that are as different as the full ones.

    What the long names have in common is left out first, word by word; then the middle of what is left. Names that
    would become equal keep the place where they first differ. No number is appended, which a reader could take for
    part of the name.

    Parameters
    ----------
    names : sequence
        Put on one line each.
    width : int
        Characters of a short name. A name is longer only where it could not be told from another one otherwise.

    Returns
    -------
    list of str
        In the order of ``names``; names that fit are unchanged; different names are different.

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
    while alike:  # cuts at different places gave the same letters
        whole = [name for group in alike for name in group if short[name] != name]
        short |= {name: name for name in whole}
        alike = _alike(short) if whole else []
    return [short[name] for name in full]


def _shortened(names: Sequence[str], width: int) -> dict[str, str]:
    """Short names of different names that are all too long."""
    short = _without_common(names, width)
    for group in _alike(short):
        if len(group) < len(names):
            short |= _shortened(group, width)
            continue
        short |= _at_first_difference(group, width)
        # fewer: they differ in the first difference
        for rest in _alike({name: short[name] for name in group}):
            short |= _shortened(rest, width) if len(rest) < len(group) else {}
    return short


def _alike(short: dict[str, str]) -> list[list[str]]:
    """Groups of different names with the same short name."""
    groups = defaultdict(list)
    for name, brief in short.items():
        groups[brief].append(name)
    return [group for group in groups.values() if len(group) > 1]


def _without_common(names: Sequence[str], width: int) -> dict[str, str]:
    tokens = [_TOKEN.findall(name) for name in names]
    common = tokens[0] if len(tokens) > 1 else []
    for other in tokens[1:]:
        matcher = SequenceMatcher(None, common, other, autojunk=False)
        common = [
            token
            for start, _, size in matcher.get_matching_blocks()
            for token in common[start : start + size]
        ]
    return {
        name: _cut(_parts(parts, common), width) for name, parts in zip(names, tokens, strict=True)
    }


def _parts(tokens: Iterable[str], common: Sequence[str]) -> list[tuple[str, bool]]:
    """Parts of a name, alternately shared with all names (True) and distinctive."""
    parts: list[tuple[str, bool]] = []
    place = 0
    for token in tokens:
        shared = place < len(common) and token == common[place]
        place += shared
        if parts and parts[-1][1] == shared:
            parts[-1] = parts[-1][0] + token, shared
        else:
            parts.append((token, shared))
    return parts


def _cut(parts: Sequence[tuple[str, bool]], width: int) -> str:
    """Parts in `width` characters: of the common ones a long tail is left out, then the longest are cut."""
    if len(parts) > 1 and parts[-1][1] and len(parts[-1][0]) > width // 3:
        parts = [*parts[:-1], (GAP, False)]
    unshared = sum(len(text) for text, shared in parts if not shared)
    common = sorted(
        (i for i, (_, shared) in enumerate(parts) if shared), key=lambda i: len(parts[i][0])
    )
    room = width - unshared - len(common)  # a cut part takes one character at least
    if room < 0:
        return elide("".join(GAP if shared else text for text, shared in parts), width)
    texts = [text for text, _ in parts]
    for i in common:
        spare = min(len(texts[i]) - 1, room)
        room -= spare
        if spare < len(texts[i]) - 1:
            head = spare if i == 0 else 0 if i == len(parts) - 1 else spare // 2
            tail = spare - head
            texts[i] = (
                _whole_words(texts[i], head).rstrip()
                + GAP
                + (texts[i][-tail:].lstrip() if tail else "")
            )
    return "".join(texts)


def _whole_words(text: str, width: int) -> str:
    """The first `width` characters of a text, without a word that is cut, unless that is all."""
    head = text[:width]
    if text[width : width + 1].isalnum():
        head = re.sub(r"[^\W_]+$", "", head) or head
    return head


def _at_first_difference(names: Sequence[str], width: int) -> dict[str, str]:
    columns = zip(*names, strict=False)
    start = next(
        (i for i, letters in enumerate(columns) if len(set(letters)) > 1), min(map(len, names))
    )
    head = min(start, (width - 2) // 3)
    room = width - head - 1
    short = {}
    for name in names:
        rest = name[start:]
        lead = name[:head] + (GAP if start > head else name[head:start])
        short[name] = lead + (rest if len(rest) <= room else rest[: room - 1] + GAP)
    return short
