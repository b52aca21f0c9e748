"""Validation of values that come from a store, a file or a server: one function for each kind of value.

Whoever may edit a run's tags, a file in a spool or a server's answer decides what these values are. Before one of them
becomes a path, a pattern, a URL, a size, or text on a terminal, it passes through a function of this module.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit, urlunsplit

_DIGEST = re.compile(r"[0-9a-f]{32}")
_FILE_NAME = re.compile(r"[^/\\\x00-\x1f\x7f]{1,255}")
_IDENTIFIER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_USER_INFO = re.compile(r"(?<=://)[^/?#\s]*@")
_SECRET_IN_QUERY = re.compile(r"(?i)([?&][^=&#\s]*(?:password|passwd|token|secret|signature|credential)[^=&#\s]*=)[^&#\s]+")
# C0 and C1 controls but for tab and newline, and the marks that reorder text (bidirectional overrides and isolates)
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069\u2028\u2029\ufeff]")


def digest(value: Any) -> str | None:
    """The digest of a file, as :func:`cmtrack.tracking.cache.digest_of` writes it; None where it is none.

    A digest names a file of the cache, so nothing but 32 hexadecimal digits is accepted.
    """
    return value if isinstance(value, str) and _DIGEST.fullmatch(value) else None


def file_name(value: Any) -> str:
    """The name of a file in one known folder.

    Raises
    ------
    ValueError
        If it is empty, leads to another folder, or holds control characters.
    """
    if not isinstance(value, str) or value in (".", "..") or not _FILE_NAME.fullmatch(value):
        raise ValueError(f"a file must be named by a plain name without folders, got {str(value)!r:.80}")
    return value


def identifier(value: Any, what: str) -> str:
    """The id of a run, model or experiment: it becomes a part of URLs and paths.

    Raises
    ------
    ValueError
        If it holds anything but letters, digits, ``_``, ``.`` and ``-``.
    """
    if not isinstance(value, str) or not _IDENTIFIER.fullmatch(value) or ".." in value:
        raise ValueError(f"{what} must be an id of letters, digits, '_', '.' and '-', got {str(value)!r:.80}")
    return value


def without_credentials(text: str) -> str:
    """A URI, or a text with URIs in it, without user names, passwords and tokens in front of hosts.

    Examples
    --------
    >>> without_credentials("http://me:secret@tracking:5000/a is silent")
    'http://tracking:5000/a is silent'
    """
    return _SECRET_IN_QUERY.sub(r"\1***", _USER_INFO.sub("", text))


def credentials(uri: str) -> str:
    """What stands before the host of a URI, such as ``user:password``; empty where nothing does."""
    return urlsplit(uri).netloc.rpartition("@")[0]


def with_credentials(uri: str, user_info: str) -> str:
    """A URI with a user name and password before its host."""
    parts = urlsplit(uri)
    return urlunsplit(parts._replace(netloc=f"{user_info}@{parts.netloc}")) if user_info else uri


def printable(text: str) -> str:
    r"""A text that may be printed: control characters and marks that reorder text become ``\x1b`` and their like.

    Examples
    --------
    >>> printable("run \x1b[31mred")
    'run \\x1b[31mred'
    """
    return _CONTROL.sub(lambda found: found.group().encode("unicode_escape").decode(), text)
