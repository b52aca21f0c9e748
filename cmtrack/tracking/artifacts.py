"""Artifact files of runs: the servers that may be asked, and reading with one request per file.

A store decides at which address the files of a run lie. A server gets the user's password or token
with every request: therefore no other is asked than the tracking server, and those that the
environment variable ``CMTRACK_ARTIFACT_HOSTS`` lists. :func:`repository_for` holds that for
reading, listing, uploading and removing. A file is read only if it is a regular one, up to a size.

MLflow's own download asks for the run, lists a folder and asks what the server can do before it
reads a file. What the listing of runs says of their artifacts is enough to read a file from the
server's address for it.
"""

from __future__ import annotations

import copy
import functools
import mimetypes
import os
import tempfile
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit
from urllib.request import url2pathname

from cmtrack import untrusted
from cmtrack.archive import MAX_BYTES
from cmtrack.tracking import mlflow_inside

if TYPE_CHECKING:
    from mlflow import MlflowClient

    from cmtrack.tracking.mlflow_inside import ArtifactRepository

HOSTS = "CMTRACK_ARTIFACT_HOSTS"
"""Other servers that may be asked, separated by commas: ``https`` unless one says ``http://``."""

_PORTS = {"http": 80, "https": 443}
_CHUNK = 1 << 20
"""Bytes that are read at once."""
_MAX_SIGNED = 1 << 16
"""Bytes of the answer that holds a signed address."""
_SIGNED_SECONDS = (5.0, 60.0)
"""To connect to a signed address, and to each part of its answer."""
_TRANSIENT = frozenset((408, 429, 502, 503, 504))
"""HTTP codes after which MLflow asks again.

Older servers answer 500 if there is no such file: it would be asked for during minutes.
"""


def repository_for(uri: str, tracking_uri: str) -> ArtifactRepository:
    """MLflow's client for a folder of artifacts.

    ValueError if the address is invalid, or its server may not be asked.

    ``uri``: the folder, as the tracking store names it.
    ``tracking_uri``: of that store: its server serves ``mlflow-artifacts:`` addresses.
    """
    _allowed(uri, tracking_uri)
    return mlflow_inside.artifact_repository(uri, tracking_uri)


class NoFolder(ValueError):
    """The run's artifact location is not one that files are sent to."""


def filing(client: MlflowClient, uri: str) -> MlflowClient:
    """A copy of the client that reads and writes one run's files through :func:`repository_for`.

    Its methods raise :class:`NoFolder` where there is none.
    """

    @functools.cache
    def repository() -> ArtifactRepository:
        try:
            return repository_for(uri, client.tracking_uri)
        except ValueError as error:
            raise NoFolder(str(error)) from None

    def upload(path: str, subfolder: str | None) -> None:
        files = repository()  # raises where none may be sent
        if urlsplit(uri).scheme not in untrusted.SERVED or mlflow_inside.uploads_in_parts(
            files, path
        ):
            files.log_artifact(path, subfolder)
        else:
            _to_server(_allowed(uri, client.tracking_uri), path, subfolder)

    bound: Any = copy.copy(client)
    bound.log_artifact = lambda _, path, folder=None: upload(path, folder)
    bound.log_artifacts = lambda _, path, folder=None: repository().log_artifacts(path, folder)
    bound.list_artifacts = lambda _, path=None: repository().list_artifacts(path)
    return bound


class Redirected(ValueError):
    """The store wants a file to be sent to another address."""


def _to_server(folder: str, file: str, subfolder: str | None) -> None:
    """Upload a file to the server of its folder, and to no other.

    Redirected if the server sends it on; HTTPError if it refuses; OSError if a web page is the
    answer.
    """
    name = os.path.basename(file)
    path = f"{subfolder}/{name}" if subfolder else name
    media_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
    with open(file, "rb") as content:
        answer = mlflow_inside.put(folder, f"/{quote(path)}", content, media_type)
    if 300 <= answer.status_code < 400:
        raise Redirected(
            f"the store answers {answer.status_code} and sends the file on to another address"
        )
    answer.raise_for_status()
    # A proxy may answer with a page of its own. Other files are read back, but images are not.
    if _is_web_page(answer):
        raise OSError(f"the store answers the upload of {name} with a web page")


def _is_web_page(answer: Any) -> bool:
    """True for a page, but not for a word that a server sends as HTML by default."""
    is_html = answer.headers.get("Content-Type", "").startswith("text/html")
    begins_as_page = answer.content[:100].lstrip().lower().startswith((b"<!doctype html", b"<html"))
    return answer.status_code == 200 and is_html and begins_as_page


def origin(address: str) -> tuple[str, str | None, int | None]:
    """Scheme, host and port of the server that a request to an address reaches.

    The address is parsed as the HTTP library does it. ValueError if nothing can be sent to it.
    """
    from requests import Request

    try:
        parts = urlsplit(Request("GET", address).prepare().url or "")
        return parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme)
    except ValueError as error:  # requests' own are among them
        raise ValueError(
            f"no request can be sent to {untrusted.without_credentials(address)!r:.80}: {error}"
        ) from None


def _allowed(uri: str, tracking_uri: str) -> str:
    """The resolved address of an artifact folder, if its server may be asked."""
    scheme = urlsplit(untrusted.artifact_uri(uri)).scheme
    if scheme not in untrusted.SERVED:
        return uri
    folder = uri
    if scheme == "mlflow-artifacts":
        folder = mlflow_inside.address_of_artifacts(uri, tracking_uri)
    servers = [tracking_uri]
    for host in os.environ.get(HOSTS, "").split(","):
        host = host.strip()
        if host:
            servers.append(host if "://" in host else f"https://{host}")
    wanted = origin(folder)
    of_http = [server for server in servers if server.partition(":")[0].lower() in _PORTS]
    if not any(origin(server) == wanted for server in of_http):
        place = untrusted.printable("{}://{}:{}".format(*wanted))
        raise ValueError(
            "its artifacts must lie on the tracking server, which gets your password or token, or "
            f"on one that {HOSTS} lists, got {place:.80}"
        )
    return folder


def folder_of(uri: str, tracking_uri: str = "") -> Path | None:
    """The local path of an artifact folder; None if it is on another machine.

    ValueError if a tracking server names a folder of another machine in the manner of Windows.
    """
    parts = urlsplit(untrusted.artifact_uri(uri))
    if parts.scheme == "file" and parts.netloc in ("", "localhost"):
        path = url2pathname(parts.path)
    elif parts.scheme == "file":
        path = f"//{parts.netloc}{parts.path}"
    elif uri and not parts.scheme:
        path = uri
    else:
        return None
    if path.replace("\\", "/").startswith("//") and tracking_uri.startswith(("http:", "https:")):
        raise ValueError(f"its artifacts lie on another machine: {untrusted.printable(uri)!r}")
    return Path(path)


def read(uri: str, name: str, tracking_uri: str, limit: int = MAX_BYTES) -> bytes:
    """The content of one file of a folder of artifacts.

    FileNotFoundError if there is no such file; OSError if it cannot be read, or the server does not
    answer; ValueError if the address or its server may not be read, the file is not a regular one,
    or it exceeds the limit.

    ``uri``: the folder, as the tracking store names it.
    ``name``: the file in it.
    ``tracking_uri``: of that store: its server serves ``mlflow-artifacts:`` addresses.
    ``limit``: bytes.
    """
    untrusted.file_name(name)
    folder = folder_of(uri, tracking_uri)
    if folder is not None:
        return untrusted.read_file(folder / name, limit)
    if urlsplit(uri).scheme in untrusted.SERVED:
        return _from_server(uri, name, tracking_uri, limit)
    return _from_repository(uri, name, tracking_uri, limit)


def _from_server(uri: str, name: str, tracking_uri: str, limit: int) -> bytes:
    """One request, as MLflow's own client would make it for this file."""
    from mlflow.exceptions import MlflowException
    from requests import RequestException

    try:
        folder = _allowed(uri, tracking_uri)
        with closing(
            mlflow_inside.get(folder, f"/{quote(name)}", stream=True, retry_codes=_TRANSIENT)
        ) as answer:
            if answer.status_code == 404:
                raise FileNotFoundError("there is no such file")
            if answer.status_code == 403:
                signed = _from_signed_address(folder, name, limit)
                if signed is not None:
                    return signed
            if answer.status_code != 200:
                raise OSError(f"{urlsplit(folder).hostname} answers {answer.status_code}")
            return _streamed(answer, limit)
    except (MlflowException, RequestException) as error:
        raise OSError(untrusted.without_credentials(str(error))) from None


def _from_signed_address(folder: str, name: str, limit: int) -> bytes | None:
    """A file from the address that the tracking server signs for it; None if it signs none.

    The tracking server has named the address, and the address itself is the permission: it is asked
    once, for this file, without the user's password or token and without following a redirect.
    """
    import requests

    answer = mlflow_inside.signed_download(folder, quote(name))
    if answer is None or answer.status_code != 200:
        return None
    signed = untrusted.parsed_json(_streamed(answer, _MAX_SIGNED))
    address = signed.get("url") if isinstance(signed, dict) else None
    if not isinstance(address, str) or urlsplit(address).scheme not in _PORTS:
        raise ValueError(f"a signed address must be one of http or https, got {str(address)!r:.40}")
    headers = {str(key): str(value) for key, value in dict(signed.get("headers") or {}).items()}
    how: dict[str, Any] = {"stream": True, "allow_redirects": False, "timeout": _SIGNED_SECONDS}
    with closing(requests.get(address, headers=headers, auth=_without_password, **how)) as answer:
        if answer.status_code == 404:
            raise FileNotFoundError("there is no such file")
        if answer.status_code != 200:
            raise OSError(f"{urlsplit(address).hostname} answers {answer.status_code}")
        return _streamed(answer, limit)


def _without_password(request: Any) -> Any:
    """Leave a request as it is: otherwise requests takes a password from the user's netrc file."""
    return request


def _streamed(answer: Any, limit: int) -> bytes:
    """The body of an answer, read to its end so that the connection can be kept open."""
    content = bytearray()
    for chunk in answer.iter_content(_CHUNK):
        content += chunk
        if len(content) > limit:
            raise ValueError(f"it is larger than {limit >> 20} MiB")
    return bytes(content)


def _from_repository(uri: str, name: str, tracking_uri: str, limit: int) -> bytes:
    """A file of an object store, by MLflow's own client."""
    from mlflow.exceptions import MlflowException

    with tempfile.TemporaryDirectory(prefix="cmtrack-") as scratch:
        try:
            path = repository_for(uri, tracking_uri).download_artifacts(name, scratch)
        except MlflowException as error:
            reason = untrusted.without_credentials(str(error))
            if error.error_code == "RESOURCE_DOES_NOT_EXIST":
                raise FileNotFoundError(reason) from None
            raise OSError(reason) from None
        return untrusted.read_file(Path(path), limit)
