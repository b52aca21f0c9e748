"""Validation of values that come from a store, a file or a server.

Anyone who can edit a run's tags, a file in a spool or a server's answer controls these values.
Before cmtrack uses such a value as a path, a pattern, a URL, a size, or text on a terminal, a
function in this module checks the value.
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
from collections.abc import Container
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote, urlsplit

_DIGEST = re.compile(r"[0-9a-f]{32}")
_FILE_NAME = re.compile(r"[^/\\\x00-\x1f\x7f]{1,255}")
_IDENTIFIER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_VERSION = re.compile(r"(\d{1,4}\.\d{1,4}(?:\.[0-9A-Za-z.+-]{1,30})?)\s*", re.ASCII)
_USER_INFO = re.compile(r"(?<=://)[^/?#\s\"'<>]*@")
# "?" and "&" end a name, so the pattern reads each character only once. A server's message may be
# long.
_QUERY_VALUE = re.compile(r"([?&])([^?&=#\s]*)=([^&#\s\"'<>]+)")
_SECRET_NAME = re.compile(r"(?i)password|passwd|token|secret|signature|credential")
# This pattern matches C0 and C1 controls except tab and newline, marks that reorder text
# (bidirectional overrides and isolates), and surrogates, which streams cannot encode.
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069\u2028\u2029\ufeff"
    "\ud800-\udfff]"
)
# These are the scripts that are written from right to left: Hebrew to Arabic Extended-A, their
# presentation forms, and blocks beyond the BMP.
_RIGHT_TO_LEFT = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff"
_RIGHT_TO_LEFT_RUN = re.compile(f"[{_RIGHT_TO_LEFT}]+(?:[ '_-]+[{_RIGHT_TO_LEFT}]+)*")


def digest(value: Any) -> str | None:
    """Return a file's digest after checking it; None if the digest is invalid.

    :func:`cmtrack.tracking.cache.digest_of` computes digests. The cache uses a digest as the name
    of a file, so only 32 hexadecimal digits are accepted.
    """
    if isinstance(value, str) and _DIGEST.fullmatch(value):
        return value
    return None


def file_name(value: Any, what: str = "a file's name") -> str:
    """Return the name of a file after checking that it stays in its folder.

    Raises ValueError if the name is empty, leads to another folder, or contains control characters.
    """
    if not isinstance(value, str) or value in (".", "..") or not _FILE_NAME.fullmatch(value):
        raise ValueError(f"{what} must be a plain name without folders, got {str(value)!r:.80}")
    return value


def identifier(value: Any, what: str) -> str:
    """Return the id of a run, model or experiment after checking that it fits into URLs and paths.

    Raises ValueError if the id contains anything other than letters, digits, ``_``, ``.`` and
    ``-``.
    """
    if not isinstance(value, str) or not _IDENTIFIER.fullmatch(value) or ".." in value:
        raise ValueError(
            f"{what} must be an id of letters, digits, '_', '.' and '-', got {str(value)!r:.80}"
        )
    return value


def version(value: Any) -> str:
    """Return a server's version; raise ValueError unless it begins with two numbers."""
    match = _VERSION.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError(
            f"a version must begin with two numbers, such as '3.17.2', got {str(value)!r:.80}"
        )
    return match[1]


_WEB = re.compile(r"(?i:https?)://[\w.:\[\]-]+(?:[/?#][!#-;=?-\[\]_a-~]*)?", re.ASCII)
MAX_ADDRESS = 2000
"""Maximum number of characters in a web address; browsers refuse much longer addresses."""
_MAX_URI = 4096
"""Maximum number of characters in a URI or path; Linux has the same limit."""


def web_address(value: Any, what: str) -> str:
    """Return the address of a page or picture after checking that it is safe as a link.

    Raises ValueError if the scheme is not http or https, or if the address contains a user name or
    characters that must be encoded.
    """
    if not isinstance(value, str) or len(value) > MAX_ADDRESS or not _WEB.fullmatch(value):
        raise ValueError(
            f"{what} must be http or https addresses without a user name, of at most "
            f"{MAX_ADDRESS:,} ASCII characters without blanks, got {str(value)!r:.80}"
        )
    return value


SERVED = ("http", "https", "mlflow-artifacts")
"""URI schemes of artifact folders on a server."""


def artifact_uri(value: Any) -> str:
    """Return the URI or path of a folder of artifacts after checking it.

    Raises ValueError if the value is not a text, contains control characters, or refers to a run or
    a model. Addresses on a server must not contain '..' or a query. The addresses must not contain
    a user name, blanks or a backslash either, because programs interpret these in different ways.
    """
    if (
        not isinstance(value, str)
        or not value
        or len(value) > _MAX_URI
        or any(character < " " for character in value)
    ):
        raise ValueError(f"the location of artifacts must be a URI or path, got {str(value)!r:.80}")
    parts = urlsplit(value)
    if parts.scheme in ("runs", "models"):
        shown = without_credentials(value)
        raise ValueError(
            "the location of artifacts must be a URI or path, not a reference to a run or model, "
            f"got {shown!r:.80}"
        )
    if parts.scheme in SERVED:
        _check_served_uri(value)
    return value


def _check_served_uri(uri: str) -> None:
    """Raise ValueError if an address leads out of its folder or is ambiguous."""
    parts = urlsplit(uri)
    shown = without_credentials(uri)
    # The server unquotes the path, so "%2e%2e" leads out of the folder just like "..".
    if ".." in unquote(parts.path).split("/") or parts.query or parts.fragment:
        raise ValueError(
            f"the URI of artifacts must not contain '..' or a query, got {shown!r:.80}"
        )
    has_backslash = "\\" in unquote(uri)
    has_user = "@" in parts.netloc
    has_blanks = uri != uri.strip() or len(parts.netloc.split()) > 1
    if has_backslash or has_user or has_blanks:
        raise ValueError(
            f"the URI of artifacts must not contain a user name, blanks or '\\', got {shown!r:.80}"
        )


def without_credentials(text: str) -> str:
    """Remove user names, passwords and tokens from the URIs in a text.

    Examples
    --------
    >>> without_credentials("http://me:secret@tracking:5000/a is silent")
    'http://tracking:5000/a is silent'
    """
    return _QUERY_VALUE.sub(_without_secret, _USER_INFO.sub("", text))


def _without_secret(value: re.Match[str]) -> str:
    mark, name = value.group(1, 2)
    if _SECRET_NAME.search(name):
        return f"{mark}{name}=***"
    return value[0]


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
    """Return the value of a parameter, or ``***`` if the parameter's name suggests a secret.

    Credentials in URIs are removed from all other values.

    Examples
    --------
    >>> without_secret("api_key", "sk-123"), without_secret("max_tokens", "512")
    ('***', '512')
    """
    words = [word.lower() for word in _WORD.findall(name)]
    # "api_key" and "apiKey" consist of two words, but "apikey" is a single word.
    pairs = [first + second for first, second in itertools.pairwise(words)]
    if _SECRET_WORDS.isdisjoint([*words, *pairs]):
        return without_credentials(value)
    return "***"


def printable(text: str) -> str:
    r"""Escape the control and bidirectional characters of a text, such as ``\x1b``.

    Examples
    --------
    >>> printable("run \x1b[31mred")
    'run \\x1b[31mred'
    """
    return _CONTROL.sub(lambda found: found.group().encode("unicode_escape").decode(), text)


def one_line(text: object) -> str:
    r"""Return a text that is safe to print in one line; line breaks and tabs become blanks.

    Examples
    --------
    >>> one_line("run\nGate: passed")
    'run Gate: passed'
    """
    return printable(" ".join(str(text).split()))


def printable_json(text: str) -> str:
    r"""Return JSON that is safe to print and contains the same data.

    The characters that :func:`printable` escapes are replaced with JSON escapes.

    Examples
    --------
    >>> printable_json('{"name": "a\u202eb"}')
    '{"name": "a\\u202eb"}'
    """
    return _CONTROL.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def for_page(html: str) -> str:
    r"""Return HTML or Markdown in which names cannot reorder the text next to them.

    Control characters and marks that reorder text are escaped as in :func:`printable`. Words in
    scripts that are written from right to left are enclosed in U+2068 and U+2069, so that the
    numbers and names around them keep their places. The markup does not change, because callers
    have already escaped the text.

    Examples
    --------
    >>> for_page("<td>\u05d0\u05d1 0.712</td>").encode("unicode_escape").decode()
    '<td>\\u2068\\u05d0\\u05d1\\u2069 0.712</td>'
    """
    return _RIGHT_TO_LEFT_RUN.sub("\u2068\\g<0>\u2069", printable(html))


def open_file(path: Path, *, own: bool = False) -> BinaryIO:
    """Open a regular file for reading, without blocking on a pipe or a device.

    Raises ValueError if the path is not a regular file but, for example, a link, a folder, a pipe
    or a device. Raises OSError if the file cannot be read.

    ``own``: whether the user named the file. If so, a link is followed. Links to other files are
    not followed, because other people may be able to write into their folders.
    """
    # Without O_NONBLOCK, opening a pipe without a writer would wait forever.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    shown = str(path)
    if not own:
        if path.is_symlink():
            raise ValueError(f"{path.name!r:.80} must be a plain file, got a link")
        # Between the check and the opening, somebody may replace the file with a link.
        flags |= getattr(os, "O_NOFOLLOW", 0)
        shown = path.name
    handle = os.open(path, flags)
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(handle, "rb")
    os.close(handle)
    kinds = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe"}
    kind = kinds.get(stat.S_IFMT(mode), "a device")
    raise ValueError(f"{shown!r:.300} must be a plain file, got {kind}")


def read_file(path: Path, limit: int, *, own: bool = False) -> bytes:
    """Read a regular file of at most ``limit`` bytes; for ``own`` see :func:`open_file`.

    Raises ValueError if the path is not a regular file, or the file is larger. Raises OSError if
    the file cannot be read.
    """
    with open_file(path, own=own) as file:
        size = os.fstat(file.fileno()).st_size
        if size <= limit:
            content = file.read(limit + 1)
            # The file may have grown since its size was read.
            size = max(size, len(content))
    if size > limit:
        allowed = f"{limit >> 10} kB"
        if limit >= 1 << 20:
            allowed = f"{limit >> 20} MB"
        raise ValueError(f"{path.name!r:.80} must not be larger than {allowed}, got {size:,} bytes")
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
    """Parse a JSON text strictly; if ``finite`` is True, refuse NaN and infinity.

    Raises ValueError if the text is not valid JSON, or is nested too deeply for Python. A repeated
    key is also an error, because programs disagree on which of its values to use.
    """
    parsers: dict[str, Any] = {}
    if finite:
        parsers = {"parse_constant": _finite, "parse_float": _finite}
    try:
        return json.loads(text, object_pairs_hook=_each_key_once, **parsers)
    except RecursionError:
        raise ValueError("JSON must not be nested more deeply than Python can read") from None


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"a JSON object must contain each key only once, got {twice!r:.80} twice")
    return data


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"numbers in JSON must be finite, got {text:.40}")
    return number


def array_bytes(shape: Any, limit: int) -> int:
    """Return the size in bytes of an array with this shape, which needs 8 bytes per number.

    Raises ValueError if the shape is not a list of at most eight whole numbers, or if the array
    would take more than ``limit`` bytes.
    """
    # This uses type() instead of isinstance(), because True is an instance of int.
    is_shape = (
        isinstance(shape, list)
        and len(shape) <= 8
        and all(type(n) is int and n >= 0 for n in shape)
    )
    if not is_shape or 8 * math.prod(shape) > limit:
        raise ValueError(
            f"an array must not need more than {limit >> 20} MB, got the shape {shape!r:.80}"
        )
    return 8 * math.prod(shape)


def unpacked(text: Any, size: int) -> bytes:
    """Unpack zlib data in a base64 text, but never more than ``size`` bytes.

    Raises ValueError if the data are damaged, or do not unpack to exactly ``size`` bytes.
    """
    try:
        raw = zlib.decompressobj().decompress(base64.b64decode(text, validate=True), size + 1)
    except (TypeError, zlib.error) as error:
        raise ValueError(f"packed bytes are damaged: {error}") from None
    if len(raw) != size:
        found = "more" if len(raw) > size else f"{len(raw):,}"
        raise ValueError(f"packed bytes must be {size:,}, got {found}")
    return raw


def tracking_uri(value: Any) -> str:
    """Check the URI of a tracking store that was read from a file, and return it.

    Raises ValueError if the URI is not a text of one line, or if tracking stores do not use its
    scheme.
    """
    if (
        not isinstance(value, str)
        or not value
        or len(value) > _MAX_URI
        or _CONTROL.search(value)
        or "\n" in value
    ):
        raise ValueError(f"a tracking URI must be a single-line string, got {str(value)!r:.80}")
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]+):", value)
    if scheme and scheme[1].split("+")[0].lower() not in _SCHEMES:
        schemes = ", ".join(_SCHEMES)
        raise ValueError(
            f"a tracking URI must have one of the schemes {schemes}, got {scheme[1]!r:.40}"
        )
    return value


MAX_TEXT = 64 << 10
"""Maximum size in bytes of a file that a person writes: a rule, a grouping or costs."""
_DEEPEST = 64
"""Maximum depth of nesting in a YAML text; a rule, a grouping or costs need far less."""


def parsed_yaml(content: bytes, what: str) -> Any:
    """Parse a YAML text with the safe loader; the C version is used if it is installed.

    Raises ValueError if the text is not valid YAML, is nested more than 64 levels deep, contains an
    alias, or repeats a key.

    ``what``: name of the text in error messages.
    """
    import yaml

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    too_deep = f"{what} must not be nested more than {_DEEPEST} levels deep"

    class Loader(base):  # type: ignore[misc]
        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            keys: set[Any] = set()
            for key_node, _ in node.value:
                key = self.construct_object(key_node, deep=True)
                if key in keys:
                    raise yaml.YAMLError(f"each key must be given only once, got {key!r:.40} twice")
                keys.add(key)
            return super().construct_mapping(node, deep=deep)

    try:
        text = content.decode("utf-8")
        depth = 0
        # The events are read first, because aliases of aliases could fill the memory.
        for event in yaml.parse(text, base):
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            if isinstance(event, yaml.AliasEvent):
                raise yaml.YAMLError(f"{what} must not have anchors or aliases")
            if depth > _DEEPEST:
                raise yaml.YAMLError(too_deep)
        return yaml.load(text, Loader)
    except (yaml.YAMLError, ValueError, RecursionError, TypeError, OverflowError) as error:
        # libyaml reads ahead and may reach its own limit before the loop above reaches
        # ``_DEEPEST``.
        if getattr(error, "context", None) == "while increasing flow level":
            error = yaml.YAMLError(too_deep)
        raise ValueError(next(iter(str(error).splitlines()), type(error).__name__)) from None


_ENTRY = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}/){0,3}[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")


def unzipped(path: Path, limit: int, most: int) -> dict[str, bytes]:
    """Read all files in a user's zip archive into memory, and return their contents by name.

    Raises ValueError if the archive is damaged or is not a zip archive, if it contains too many or
    too large files, or if a name occurs twice. Every entry must be a regular file with a simple
    path, so links, names with '..' and encrypted files also raise ValueError. Raises OSError if the
    archive cannot be read.

    ``limit``: maximum total size of the unpacked files in bytes. More bytes are never unpacked.
    ``most``: maximum number of files.
    """
    contents: dict[str, bytes] = {}
    left = limit
    try:
        with open_file(path, own=True) as packed, zipfile.ZipFile(packed) as archive:
            entries = archive.infolist()
            if len(entries) > most:
                raise ValueError(
                    f"an archive must have at most {most:,} files, got {len(entries):,}"
                )
            for entry in entries:
                _check_entry(entry, contents)
                left -= entry.file_size
                if left < 0:
                    raise ValueError(
                        f"the files of an archive must have at most {limit >> 20:,} MB together, "
                        "got more"
                    )
                with archive.open(entry) as file:
                    contents[entry.filename] = file.read(entry.file_size)
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        NotImplementedError,
        RuntimeError,
        struct.error,
    ) as error:
        raise ValueError(f"the archive is damaged: {error}") from None
    return contents


def _check_entry(entry: zipfile.ZipInfo, earlier: Container[str]) -> None:
    """Raise ValueError if an entry is not a regular file with a simple and unique name."""
    name = entry.filename
    # The upper half of external_attr is the Unix mode of the file, or 0 if another system wrote it.
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if not _ENTRY.fullmatch(name) or ".." in name or kind not in (0, stat.S_IFREG):
        raise ValueError(f"an archive must contain plain files in plain folders, got {name!r:.80}")
    if name in earlier:
        raise ValueError(f"an archive must contain each file only once, got {name!r:.80} twice")
    is_encrypted = entry.flag_bits & 1
    if is_encrypted or entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(
            f"a file in an archive must be stored or deflated, and not encrypted, got {name!r:.80}"
        )
