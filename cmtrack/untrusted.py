"""Validation of values that come from a store, a file or a server: one function for each kind of value.

Whoever may edit a run's tags, a file in a spool or a server's answer decides what these values are. Before one of them
becomes a path, a pattern, a URL, a size, or text on a terminal, it passes through a function of this module.
"""

from __future__ import annotations

import base64
import itertools
import json
import math
import os
import re
import stat
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote, urlsplit

_DIGEST = re.compile(r"[0-9a-f]{32}")
_FILE_NAME = re.compile(r"[^/\\\x00-\x1f\x7f]{1,255}")
_IDENTIFIER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_VERSION = re.compile(r"(\d{1,4}\.\d{1,4}(?:\.[0-9A-Za-z.+-]{1,30})?)\s*", re.ASCII)
_USER_INFO = re.compile(r"(?<=://)[^/?#\s\"'<>]*@")
# "?" and "&" end a name, so that each character is read once: a server's message may be long.
_QUERY_VALUE = re.compile(r"([?&])([^?&=#\s]*)=([^&#\s\"'<>]+)")
_SECRET_NAME = re.compile(r"(?i)password|passwd|token|secret|signature|credential")
# C0 and C1 controls but for tab and newline, and the marks that reorder text (bidirectional overrides and isolates);
# surrogates, which no stream can encode
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069\u2028\u2029\ufeff\ud800-\udfff]"
)
# scripts that are written from right to left: Hebrew to Arabic Extended-A, their presentation forms, and beyond the BMP
_RIGHT_TO_LEFT = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff"
_RIGHT_TO_LEFT_RUN = re.compile(f"[{_RIGHT_TO_LEFT}]+(?:[ '_-]+[{_RIGHT_TO_LEFT}]+)*")


def digest(value: Any) -> str | None:
    """The digest of a file, as :func:`cmtrack.tracking.cache.digest_of` writes it; None if invalid.

    A digest names a file of the cache, so nothing but 32 hexadecimal digits is accepted.
    """
    return value if isinstance(value, str) and _DIGEST.fullmatch(value) else None


def file_name(value: Any, what: str = "a file's name") -> str:
    """The name of a file in one known folder.

    ValueError if it is empty, leads to another folder, or holds control characters.
    """
    if not isinstance(value, str) or value in (".", "..") or not _FILE_NAME.fullmatch(value):
        raise ValueError(f"{what} must be a plain name without folders, got {str(value)!r:.80}")
    return value


def identifier(value: Any, what: str) -> str:
    """The id of a run, model or experiment: it becomes a part of URLs and paths.

    ValueError if it holds anything but letters, digits, ``_``, ``.`` and ``-``.
    """
    if not isinstance(value, str) or not _IDENTIFIER.fullmatch(value) or ".." in value:
        raise ValueError(
            f"{what} must be an id of letters, digits, '_', '.' and '-', got {str(value)!r:.80}"
        )
    return value


def version(value: Any) -> str:
    """The version of a program, as a server names it; ValueError if it is no text that begins with two numbers."""
    match = _VERSION.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError(
            f"a version must begin with two numbers, such as '3.17.2', got {str(value)!r:.80}"
        )
    return match[1]


_WEB = re.compile(r"(?i:https?)://[\w.:\[\]-]+(?:[/?#][!#-;=?-\[\]_a-~]*)?", re.ASCII)
MAX_ADDRESS = 2000


def web_address(value: Any, what: str) -> str:
    """The address of a page or picture that a reader may open; it becomes a link.

    ValueError if it is of another scheme than http and https, has a user name, or holds what an address has to encode.
    """
    if not isinstance(value, str) or len(value) > MAX_ADDRESS or not _WEB.fullmatch(value):
        raise ValueError(
            f"{what} must hold addresses of http or https, without a user name, of at most {MAX_ADDRESS:,} characters "
            f"of ASCII without blanks, got {str(value)!r:.80}"
        )
    return value


SERVED = ("http", "https", "mlflow-artifacts")
"""Schemes of folders of artifacts that lie on a server."""


def artifact_uri(value: Any) -> str:
    """The URI or path of a folder of artifacts.

    ValueError if it is no text, holds control characters, is a reference to a run or a model, or is an address of a
    server with '..', a query, or what programs read differently: a user name, blanks or a backslash.
    """
    if (
        not isinstance(value, str)
        or not value
        or len(value) > 4096
        or any(character < " " for character in value)
    ):
        raise ValueError(f"artifacts must lie under a URI or path, got {str(value)!r:.80}")
    parts, shown = urlsplit(value), without_credentials(value)
    if parts.scheme in ("runs", "models"):
        raise ValueError(f"artifacts must lie under a URI or path of their own, got {shown!r:.80}")
    if parts.scheme in SERVED:
        if ".." in unquote(parts.path).split("/") or parts.query or parts.fragment:
            raise ValueError(
                f"the URI of artifacts must not hold '..' or a query, got {shown!r:.80}"
            )
        if (
            "\\" in unquote(value)
            or "@" in parts.netloc
            or value != value.strip()
            or len(parts.netloc.split()) > 1
        ):
            raise ValueError(
                f"the URI of artifacts must not hold a user name, blanks or '\\', got {shown!r:.80}"
            )
    return value


def without_credentials(text: str) -> str:
    """A URI, or a text with URIs in it, without user names, passwords and tokens in front of hosts.

    Examples
    --------
    >>> without_credentials("http://me:secret@tracking:5000/a is silent")
    'http://tracking:5000/a is silent'
    """
    return _QUERY_VALUE.sub(_without_secret, _USER_INFO.sub("", text))


def _without_secret(value: re.Match[str]) -> str:
    return f"{value[1]}{value[2]}=***" if _SECRET_NAME.search(value[2]) else value[0]


_SECRET_WORDS = frozenset(
    (
        "apikey",
        "auth",
        "credential",
        "credentials",
        "passwd",
        "password",
        "pwd",
        "secret",
        "signature",
        "token",
    )
)
_WORD = re.compile(r"[A-Za-z][a-z]*|[A-Z]+(?![a-z])")


def without_secret(name: str, value: str) -> str:
    """The value of a parameter, hidden where its name is that of a secret, and without credentials in its addresses.

    Examples
    --------
    >>> without_secret("api_key", "sk-123"), without_secret("max_tokens", "512")
    ('***', '512')
    """
    words = [word.lower() for word in _WORD.findall(name)]
    pairs = {first + second for first, second in itertools.pairwise(words)}
    return "***" if _SECRET_WORDS & ({*words} | pairs) else without_credentials(value)


def printable(text: str) -> str:
    r"""A text that is safe to print: control and bidirectional characters become ``\x1b`` and the like.

    Examples
    --------
    >>> printable("run \x1b[31mred")
    'run \\x1b[31mred'
    """
    return _CONTROL.sub(lambda found: found.group().encode("unicode_escape").decode(), text)


def one_line(text: object) -> str:
    r"""A name that may be printed inside a line: as :func:`printable`, with blanks for line breaks and tabs.

    Examples
    --------
    >>> one_line("run\nGate: passed")
    'run Gate: passed'
    """
    return printable(" ".join(str(text).split()))


def printable_json(text: str) -> str:
    r"""JSON that may be printed: the characters of :func:`printable` as JSON's own escapes, so that it reads the same.

    Examples
    --------
    >>> printable_json('{"name": "a\u202eb"}')
    '{"name": "a\\u202eb"}'
    """
    return _CONTROL.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def for_page(html: str) -> str:
    r"""HTML or Markdown whose names cannot reorder what stands beside them.

    Control characters and marks that reorder text are spelled out, as by :func:`printable`. Words of scripts that are
    written from right to left are put between U+2068 and U+2069, so that the numbers and names around them keep their
    places. No character of the markup is touched: the text is escaped by who wrote it.

    Examples
    --------
    >>> for_page("<td>\u05d0\u05d1 0.712</td>").encode("unicode_escape").decode()
    '<td>\\u2068\\u05d0\\u05d1\\u2069 0.712</td>'
    """
    return _RIGHT_TO_LEFT_RUN.sub("\u2068\\g<0>\u2069", printable(html))


def open_file(path: Path, *, own: bool = False) -> BinaryIO:
    """Open a plain file for reading; never block on anything else.

    ValueError if it is a link, a folder, a pipe, a device or anything else but a plain file; OSError if it cannot be
    read.

    ``own``: whether the user named it: a link is then followed. Others may write into the folders of all other files.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    if not own and path.is_symlink():
        raise ValueError(f"{path.name!r:.80} must be a plain file, got a link")
    handle = os.open(path, flags if own else flags | getattr(os, "O_NOFOLLOW", 0))
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(handle, "rb")
    os.close(handle)
    kinds = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe"}
    shown = str(path) if own else path.name
    raise ValueError(
        f"{shown!r:.300} must be a plain file, got {kinds.get(stat.S_IFMT(mode), 'a device')}"
    )


def read_file(path: Path, limit: int, *, own: bool = False) -> bytes:
    """The content of a plain file of at most ``limit`` bytes; ``own`` as in :func:`open_file`.

    ValueError if it is no plain file, or larger; OSError if it cannot be read.
    """
    with open_file(path, own=own) as file:
        size = os.fstat(file.fileno()).st_size
        content = b"" if size > limit else file.read(limit + 1)
    if max(size, len(content)) > limit:
        allowed = f"{limit >> 20} MB" if limit >> 20 else f"{limit >> 10} kB"
        raise ValueError(
            f"{path.name!r:.80} must not be larger than {allowed}, got {max(size, len(content)):,} bytes"
        )
    return content


_SCHEMES = (
    "http",
    "https",
    "databricks",
    "file",
    "sqlite",
    "postgresql",
    "mysql",
    "mssql",
    "uc",
    "databricks-uc",
)


def parsed_json(text: str | bytes, *, finite: bool = False) -> Any:
    """The data of a JSON text, all numbers of which have to be ``finite`` where that is asked.

    ValueError if it is no JSON, nested so deeply that Python does not read it, holds another number, or a key twice:
    another reader may take the first of two.
    """
    numbers: dict[str, Any] = {"parse_constant": _finite, "parse_float": _finite} if finite else {}
    try:
        return json.loads(text, object_pairs_hook=_each_key_once, **numbers)
    except RecursionError:
        raise ValueError(
            "a JSON text must not be nested so deeply that Python cannot read it"
        ) from None


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"a JSON text must hold each key once, got {twice!r:.80} twice")
    return data


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"a JSON text must hold finite numbers, got {text:.40}")
    return number


def array_bytes(shape: Any, limit: int) -> int:
    """The bytes that an array of a shape takes, at 8 a number.

    ValueError if it is no list of at most eight whole numbers, or the array would take more than ``limit`` bytes.
    """
    whole = (
        isinstance(shape, list)
        and len(shape) <= 8
        and all(type(n) is int and n >= 0 for n in shape)
    )
    size = 8 * math.prod(shape) if whole else -1
    if not 0 <= size <= limit:
        raise ValueError(
            f"an array must have a shape of at most {limit >> 20} MB, got {shape!r:.80}"
        )
    return size


def unpacked(text: Any, size: int) -> bytes:
    """The bytes of a base64 text of zlib; more than ``size`` bytes are never unpacked.

    ValueError if it is damaged, or holds another number of bytes.
    """
    try:
        raw = zlib.decompressobj().decompress(base64.b64decode(text, validate=True), size + 1)
    except (TypeError, zlib.error) as error:
        raise ValueError(f"packed bytes are damaged: {error}") from None
    if len(raw) != size:
        raise ValueError(
            f"packed bytes must be {size:,}, got {'more' if len(raw) > size else f'{len(raw):,}'}"
        )
    return raw


def tracking_uri(value: Any) -> str:
    """The URI of a tracking store from a file.

    ValueError if it is no text of one line, or of a scheme that no store has.
    """
    if (
        not isinstance(value, str)
        or not value
        or len(value) > 4096
        or _CONTROL.search(value)
        or "\n" in value
    ):
        raise ValueError(f"a tracking URI must be a text of one line, got {str(value)!r:.80}")
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]+):", value)
    if scheme and scheme[1].split("+")[0].lower() not in _SCHEMES:
        raise ValueError(
            f"a tracking URI must be of one of the schemes {', '.join(_SCHEMES)}, got {scheme[1]!r:.40}"
        )
    return value


MAX_TEXT = 64 << 10
"""Bytes of a file that a person writes: a rule, a grouping, costs."""
_DEEPEST = 64


def parsed_yaml(content: bytes, what: str) -> Any:
    """The data of a YAML text, read by the safe loader: by that in C where there is one.

    ValueError if it is no YAML, nested more deeply than 64 times, or holds an alias or a key twice.

    ``what``: it, in messages.
    """
    import yaml

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    too_deep = f"{what} must not be nested more deeply than {_DEEPEST} times"

    class Loader(base):  # type: ignore[misc]
        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            keys: set[Any] = set()
            for one, _ in node.value:
                key = self.construct_object(one, deep=True)
                if key in keys:
                    raise yaml.YAMLError(f"a key must be given once, got {key!r:.40} twice")
                keys.add(key)
            return super().construct_mapping(node, deep=deep)

    try:
        text, depth = content.decode("utf-8"), 0
        for event in yaml.parse(text, base):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(
                event, yaml.CollectionEndEvent
            )
            if isinstance(event, yaml.AliasEvent):
                raise yaml.YAMLError(f"{what} must have no anchors and no aliases")
            if depth > _DEEPEST:
                raise yaml.YAMLError(too_deep)
        return yaml.load(text, Loader)
    except (yaml.YAMLError, ValueError, RecursionError, TypeError, OverflowError) as error:
        # libyaml looks ahead, to its own limit
        if getattr(error, "context", None) == "while increasing flow level":
            error = yaml.YAMLError(too_deep)
        raise ValueError(next(iter(str(error).splitlines()), type(error).__name__)) from None


_ENTRY = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}/){0,3}[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")


def unzipped(path: Path, limit: int, most: int) -> dict[str, bytes]:
    """The files of a user's zip archive by their names, read into memory; nothing is written to a disk.

    ValueError if it is no zip archive or a damaged one, has too many or too large files, a name twice, or an entry that
    is no plain file in folders of plain names: a link, a name with '..', an encrypted one; OSError if it cannot be
    read.

    ``limit``: most bytes that they may have together, once unpacked; more are never unpacked.
    ``most``: most files.
    """
    out: dict[str, bytes] = {}
    left = limit
    try:
        with open_file(path, own=True) as packed, zipfile.ZipFile(packed) as archive:
            entries = archive.infolist()
            if len(entries) > most:
                raise ValueError(
                    f"an archive must hold at most {most:,} files, got {len(entries):,}"
                )
            for entry in entries:
                kind = stat.S_IFMT(entry.external_attr >> 16)
                if (
                    not _ENTRY.fullmatch(entry.filename)
                    or ".." in entry.filename
                    or kind not in (0, stat.S_IFREG)
                ):
                    raise ValueError(
                        f"an archive must hold plain files in plain folders, got {entry.filename!r:.80}"
                    )
                if entry.filename in out:
                    raise ValueError(
                        f"an archive must hold each file once, got {entry.filename!r:.80} twice"
                    )
                if entry.flag_bits & 1 or entry.compress_type not in (
                    zipfile.ZIP_STORED,
                    zipfile.ZIP_DEFLATED,
                ):
                    raise ValueError(
                        f"a file of an archive must be stored or deflated, not encrypted, got {entry.filename!r:.80}"
                    )
                if entry.file_size > left:
                    raise ValueError(
                        f"the files of an archive must have at most {limit >> 20:,} MB together, got more"
                    )
                left -= entry.file_size
                with archive.open(entry) as file:
                    out[entry.filename] = file.read(entry.file_size)
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        NotImplementedError,
        RuntimeError,
        struct.error,
    ) as error:
        raise ValueError(f"the archive is damaged: {error}") from None
    return out
