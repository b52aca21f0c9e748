"""Every bound of what comes from outside: the last value that passes, and the first that does not."""

from __future__ import annotations

import base64
import json
import os
import socket
import stat
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cmtrack import untrusted


def address(length: int) -> str:
    return "https://host/".ljust(length, "a")


def deep(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels


PASSES: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "digest": (untrusted.digest, ["0123456789abcdef" * 2]),
    "file_name": (untrusted.file_name, ["a", "a" * 255, "...", "a b", ".a"]),
    "identifier": (
        lambda value: untrusted.identifier(value, "an id"),
        ["a", "_" + "a" * 127, "0.1-b"],
    ),
    "version": (untrusted.version, ["3.17.2", "3.17", "1234.1234", "3.0.0rc1"]),
    "web_address": (
        lambda value: untrusted.web_address(value, "it"),
        [address(2000), "HTTP://host", "http://h:1/?a#b"],
    ),
    "artifact_uri": (
        untrusted.artifact_uri,
        [
            "a",
            "/a b",
            "C:\\a",
            "/a".ljust(4096, "a"),
            "s3://bucket/a?b",
            "file:///a/../b",
            "http://host:5/a/..b",
            "mlflow-artifacts:/1/2",
            "https://host/a%20b",
        ],
    ),
    "tracking_uri": (
        untrusted.tracking_uri,
        [
            "a",
            "/a b",
            "C:\\a",
            "sqlite:///a.db",
            "postgresql+psycopg2://u:p@host/b",
            "HTTPS://host",
            "databricks",
            "http://h/".ljust(4096, "a"),
        ],
    ),
    "parsed_yaml": (
        lambda value: untrusted.parsed_yaml(value, "it"),
        [deep(64), b'{"a": {"b": 1}, "c": {"b": 1}}'],
    ),
    "parsed_json": (
        lambda value: untrusted.parsed_json(value, finite=True),
        ["[1.5, 1e308]", b"{}", "123"],
    ),
}
REFUSED: dict[str, list[Any]] = {
    "file_name": ["", ".", "..", "a" * 256, "a/b", "a\\b", "a\n", "a\x7f", None, 1, Path("a")],
    "identifier": ["", "a" * 129, "a..b", "-a", ".a", "a/b", "a ", None, 1],
    "version": [
        "",
        "3",
        "3.",
        "12345.1",
        "1.12345",
        "v3.1",
        "3.1 beta",
        "3.1." + "a" * 31,
        "3.1.2\x1b",
        "\u0663.1",
        None,
    ],
    "web_address": [
        address(2001),
        "ftp://host/",
        "http://u@host/",
        "http://host/a b",
        "http://host/\u00e9",
        "http://",
        None,
    ],
    "artifact_uri": [
        "",
        "/a".ljust(4097, "a"),
        "a\nb",
        "a\x1fb",
        "runs:/1/a",
        "models:/a/1",
        "http://host/a/../b",
        "http://host/a/%2e%2e/b",
        "http://host/a?b=1",
        "http://host/a#b",
        "http://u@host/a",
        "http://host/a\\b",
        "http://host/a%5cb",
        "http://host/a ",
        "http://a b/c",
        None,
        1,
    ],
    "tracking_uri": [
        "",
        "http://h/".ljust(4097, "a"),
        "a\nb",
        "a\x1bb",
        "ftp://host/",
        "ssh+sqlite://host/",
        "javascript:a",
        None,
        1,
    ],
    "parsed_yaml": [deep(65), b"\xff", b"{a: 1, a: 2}"],
    "parsed_json": ["NaN", "[Infinity]", "-Infinity", "1e999", "[1.5", ""],
}


@pytest.mark.parametrize("kind", PASSES)
def test_what_is_within_the_bounds_comes_back_as_it_is(kind: str) -> None:
    check, values = PASSES[kind]
    for value in values:
        assert check(value) == (json.loads(value) if kind.startswith("parsed") else value)


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_beyond_a_bound_is_refused(kind: str) -> None:
    for value in REFUSED[kind]:
        with pytest.raises(ValueError, match=r".") as refused:
            PASSES[kind][0](value)
        assert untrusted.printable(str(refused.value)) == str(refused.value)


@pytest.mark.parametrize(
    "value", ["", "0" * 31, "0" * 33, "g" + "0" * 31, "A" * 32, "0" * 32 + "\n", None, 1]
)
def test_a_digest_is_32_hexadecimal_digits_or_none(value: Any) -> None:
    assert untrusted.digest(value) is None


def test_a_version_has_no_blanks_around_it() -> None:
    assert untrusted.version("3.17.2 \n") == "3.17.2"


@pytest.mark.parametrize(
    ("shape", "limit", "size"),
    [
        ([], 8, 8),
        ([0], 0, 0),
        ([0, 5], 0, 0),
        ([1], 8, 8),
        ([2, 3], 48, 48),
        ([1] * 8, 8, 8),
        ([10, 0], 8, 0),
    ],
)
def test_the_bytes_of_an_array_are_eight_a_number(shape: list[int], limit: int, size: int) -> None:
    assert untrusted.array_bytes(shape, limit) == size


@pytest.mark.parametrize(
    "shape", [[2, 3], [1] * 9, [-1], [-1, -1], [True], [1.0], (1,), "1", None, [1 << 62] * 8]
)
def test_what_is_no_shape_or_too_large_a_one_is_refused(shape: Any) -> None:
    with pytest.raises(ValueError, match="an array must not need more than 0 MB"):
        untrusted.array_bytes(shape, 47)


def test_packed_bytes_are_as_many_as_they_have_to_be() -> None:
    packed = base64.b64encode(zlib.compress(b"abc")).decode()
    assert untrusted.unpacked(packed, 3) == b"abc"
    with pytest.raises(ValueError, match="packed bytes must be 2, got more"):
        untrusted.unpacked(packed, 2)
    with pytest.raises(ValueError, match="packed bytes must be 4, got 3"):
        untrusted.unpacked(packed, 4)
    for damaged in (base64.b64encode(b"abc").decode(), None, f" {packed}", packed[:-1] + "!"):
        with pytest.raises(ValueError, match=r"."):
            untrusted.unpacked(damaged, 3)


def test_a_file_may_have_just_its_limit(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"x" * 2048)
    assert untrusted.read_file(path, 2048) == b"x" * 2048
    with pytest.raises(ValueError, match=r"'a' must not be larger than 1 kB, got 2,048 bytes"):
        untrusted.read_file(path, 2047)
    path.write_bytes(b"x" * ((1 << 20) + 1))
    with pytest.raises(ValueError, match=r"'a' must not be larger than 1 MB, got 1,048,577 bytes"):
        untrusted.read_file(path, 1 << 20)


def test_a_file_that_grows_while_it_is_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"xyz")
    kept = os.fstat
    monkeypatch.setattr(
        untrusted.os,
        "fstat",
        lambda handle: os.stat_result((kept(handle).st_mode, 0, 0, 1, 0, 0, 1, 0, 0, 0)),
    )  # three bytes are there, where one was
    with pytest.raises(ValueError, match="got 3 bytes"):
        untrusted.read_file(path, 2)
    assert untrusted.read_file(path, 3) == b"xyz"


def test_only_the_user_may_name_a_link(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    assert untrusted.read_file(tmp_path / "link", 1, own=True) == b"x"
    with pytest.raises(ValueError, match="'link' must be a plain file, got a link"):
        untrusted.read_file(tmp_path / "link", 1)
    with pytest.raises(ValueError, match="'link' must be a plain file, got a link"):
        untrusted.open_file(tmp_path / "link")


def test_a_link_that_takes_the_place_of_a_file_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_bytes(b"x")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    monkeypatch.setattr(Path, "is_symlink", lambda path: False)  # it was a file when that was asked
    with pytest.raises(OSError, match="symbolic links"):
        untrusted.open_file(tmp_path / "link")


def test_nothing_is_held_open_of_what_is_no_file(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        with pytest.raises(ValueError, match="must be a plain file, got a folder"):
            untrusted.open_file(tmp_path)
    assert len(os.listdir("/proc/self/fd")) == before
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "s"))
        with pytest.raises(OSError, match=r"."):
            untrusted.open_file(tmp_path / "s")


def archive(
    path: Path, *entries: tuple[str, bytes], kind: int = 0, method: int = zipfile.ZIP_STORED
) -> Path:
    with zipfile.ZipFile(path, "w") as file:
        for name, content in entries:
            entry = zipfile.ZipInfo(name)
            entry.external_attr, entry.compress_type = kind << 16, method
            file.writestr(entry, content)
    return path


def test_an_archive_may_hold_just_its_limits(tmp_path: Path) -> None:
    path = archive(
        tmp_path / "a.zip", ("a/b/c/d", b"12"), ("e", b"345"), method=zipfile.ZIP_DEFLATED
    )
    assert untrusted.unzipped(path, 5, 2) == {"a/b/c/d": b"12", "e": b"345"}
    with pytest.raises(ValueError, match="at most 0 MB together, got more"):
        untrusted.unzipped(path, 4, 2)
    with pytest.raises(ValueError, match="an archive must have at most 1 files, got 2"):
        untrusted.unzipped(path, 5, 1)
    path = archive(tmp_path / "b.zip", ("a", b"1"), kind=stat.S_IFREG | 0o644)
    assert untrusted.unzipped(path, 1, 1) == {"a": b"1"}


def test_an_archive_that_lies_about_a_size_is_refused(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.zip", ("a", bytes(12_345)), method=zipfile.ZIP_DEFLATED)
    size, lie = (n.to_bytes(4, "little") for n in (12_345, 100))
    path.write_bytes(path.read_bytes().replace(size, lie))
    with pytest.raises(ValueError, match="the archive is damaged"):
        untrusted.unzipped(path, 1000, 1)


@pytest.mark.parametrize(
    ("name", "kind", "says"),
    [
        ("a/../b", 0, "plain files"),
        ("/a", 0, "plain files"),
        ("a/b/c/d/e", 0, "plain files"),
        ("a..b", 0, "plain files"),
        ("a/", 0, "plain files"),
        ("a" * 129, 0, "plain files"),
        ("a", stat.S_IFLNK, "plain files"),
        ("a", stat.S_IFDIR, "plain files"),
    ],
)
def test_an_entry_that_is_no_plain_file_is_refused(
    tmp_path: Path, name: str, kind: int, says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        untrusted.unzipped(archive(tmp_path / "a.zip", (name, b"1"), kind=kind), 10, 10)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_an_entry_that_is_there_twice_or_packed_otherwise_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="each file only once, got 'a' twice"):
        untrusted.unzipped(archive(tmp_path / "a.zip", ("a", b"1"), ("a", b"2")), 10, 10)
    with pytest.raises(ValueError, match="stored or deflated"):
        untrusted.unzipped(
            archive(tmp_path / "b.zip", ("a", b"1"), method=zipfile.ZIP_BZIP2), 10, 10
        )
    path = archive(tmp_path / "c.zip", ("a", b"1"))
    content = bytearray(path.read_bytes())
    content[content.index(b"PK\x01\x02") + 8] |= 1  # it says that it is encrypted
    path.write_bytes(content)
    with pytest.raises(ValueError, match="not encrypted, got 'a'"):
        untrusted.unzipped(path, 10, 10)


def test_what_is_printed_has_no_controls_and_no_credentials() -> None:
    assert untrusted.printable("a\tb\n\x1b[0m\x85\u202e") == "a\tb\n\\x1b[0m\\x85\\u202e"
    assert untrusted.one_line(" a\n\tb\x1b ") == "a b\\x1b"
    assert json.loads(untrusted.printable_json('"\u2066\x7f"')) == "\u2066\x7f"
    assert untrusted.printable_json('"\x7f"') == '"\\u007f"'
    assert (
        untrusted.without_credentials("s3://k:s@host/a?b=1&AWS_SECRET=x&c=2")
        == "s3://host/a?b=1&AWS_SECRET=***&c=2"
    )
