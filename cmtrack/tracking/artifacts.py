"""Functions that read artifact files with a single request, and only from allowed servers.

The address of a run's files comes from the tracking store. Every request for files includes the
user's password or token. Therefore cmtrack sends requests only to the tracking server and to
servers that the environment variable ``CMTRACK_ARTIFACT_HOSTS`` lists. :func:`repository_for`
ensures this for reading, listing, uploading and removing. Only regular files up to a maximum size
are read.

MLflow's own download requests the run, lists a folder and asks for the server's capabilities before
it reads a file. cmtrack reads a file directly from the artifact address that the list of runs
contains.
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
"""Environment variable that lists additional servers to which requests are allowed.

Separate the servers with commas. If a server is listed without a scheme, ``https`` is used.
"""

_PORTS = {"http": 80, "https": 443}
_CHUNK = 1 << 20
"""Number of bytes to read at a time."""
_MAX_SIGNED = 1 << 16
"""Maximum size, in bytes, of a response that contains a signed address."""
_SIGNED_SECONDS = (5.0, 60.0)
"""Timeouts, in seconds, for connecting to a signed address and for each part of its response."""
_TRANSIENT = frozenset((408, 429, 502, 503, 504))
"""HTTP codes after which MLflow sends the request again.

Code 500 is not included, because older servers return it for a missing file, and MLflow would
repeat the request for minutes.
"""


def repository_for(uri: str, tracking_uri: str) -> ArtifactRepository:
    """Return MLflow's client for a folder of artifacts.

    Raises ValueError if the address is invalid, or its server is not allowed.

    ``uri``: the address of the folder in the tracking store.
    ``tracking_uri``: the URI of the tracking store, whose server serves ``mlflow-artifacts:``
    addresses.
    """
    _allowed(uri, tracking_uri)
    return mlflow_inside.artifact_repository(uri, tracking_uri)


class NoFolder(ValueError):
    """Error raised if files cannot be sent to the run's artifact location."""


def filing(client: MlflowClient, uri: str) -> MlflowClient:
    """Copy a client so that it accesses the files of a run through :func:`repository_for`.

    The methods of the copy raise :class:`NoFolder` if files cannot be sent to the run's location.
    """

    @functools.cache
    def repository() -> ArtifactRepository:
        try:
            return repository_for(uri, client.tracking_uri)
        except ValueError as error:
            raise NoFolder(str(error)) from None

    def upload(path: str, subfolder: str | None) -> None:
        files = repository()  # raises an error if no file may be sent
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
    """Error raised if the store redirects an upload to a different address."""


def _to_server(folder: str, file: str, subfolder: str | None) -> None:
    """Upload a file to the server of its folder, without following redirects.

    Raises Redirected if the server redirects the upload, HTTPError if the server refuses it, or
    OSError if the server answers with a web page.
    """
    name = os.path.basename(file)
    path = f"{subfolder}/{name}" if subfolder else name
    media_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
    with open(file, "rb") as content:
        answer = mlflow_inside.put(folder, f"/{quote(path)}", content, media_type)
    if 300 <= answer.status_code < 400:
        raise Redirected(
            f"the store answers {answer.status_code} and redirects the request to another address"
        )
    answer.raise_for_status()
    # A proxy may answer with its own web page. Files other than images are read back to detect
    # this.
    if _is_web_page(answer):
        raise OSError(f"the store answers the upload of {name} with a web page")


def _is_web_page(answer: Any) -> bool:
    """Return True if a response is a web page, but not if it is plain text sent as HTML."""
    is_html = answer.headers.get("Content-Type", "").startswith("text/html")
    begins_as_page = answer.content[:100].lstrip().lower().startswith((b"<!doctype html", b"<html"))
    return answer.status_code == 200 and is_html and begins_as_page


def origin(address: str) -> tuple[str, str | None, int | None]:
    """Return the scheme, host and port of the server that a request to an address reaches.

    The address is parsed in the same way as the HTTP library parses it. Raises ValueError if no
    request can be sent to the address.
    """
    from requests import Request

    try:
        parts = urlsplit(Request("GET", address).prepare().url or "")
        return parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme)
    except ValueError as error:  # errors that requests raises are ValueErrors
        raise ValueError(
            f"no request can be sent to {untrusted.without_credentials(address)!r:.80}: {error}"
        ) from None


def _allowed(uri: str, tracking_uri: str) -> str:
    """Resolve the address of an artifact folder; raise ValueError if its server is not allowed."""
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
            "its artifacts must be on the tracking server, which gets your password or token, or "
            f"on a server that {HOSTS} lists, got {place:.80}"
        )
    return folder


def folder_of(uri: str, tracking_uri: str = "") -> Path | None:
    """Return the local path of an artifact folder, or None if the folder is on a server.

    Raises ValueError if a tracking server returns a Windows network path (``//host/share``).
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
        raise ValueError(f"its artifacts are on another machine: {untrusted.printable(uri)!r}")
    return Path(path)


def read(uri: str, name: str, tracking_uri: str, limit: int = MAX_BYTES) -> bytes:
    """Return the content of a file in a folder of artifacts.

    Raises FileNotFoundError if the file does not exist. Raises OSError if the file cannot be read
    or the server does not answer. Raises ValueError if the address is invalid, if its server is not
    allowed, or if the file is not a regular file or exceeds the limit.

    ``uri``: the address of the folder in the tracking store.
    ``name``: the name of the file in the folder.
    ``tracking_uri``: the URI of the tracking store, whose server serves ``mlflow-artifacts:``
    addresses.
    ``limit``: maximum size in bytes.
    """
    untrusted.file_name(name)
    folder = folder_of(uri, tracking_uri)
    if folder is not None:
        return untrusted.read_file(folder / name, limit)
    if urlsplit(uri).scheme in untrusted.SERVED:
        return _from_server(uri, name, tracking_uri, limit)
    return _from_repository(uri, name, tracking_uri, limit)


def _from_server(uri: str, name: str, tracking_uri: str, limit: int) -> bytes:
    """Read a file from a server with the request that MLflow's own client would send."""
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
    """Read a file from an address that the server signs; return None if it does not sign addresses.

    The tracking server provides the address, and the signature in the address grants access. A
    single request for this file is sent to the address, without the user's password or token, and
    redirects are not followed.
    """
    import requests

    answer = mlflow_inside.signed_download(folder, quote(name))
    if answer is None or answer.status_code != 200:
        return None
    signed = untrusted.parsed_json(_streamed(answer, _MAX_SIGNED))
    address = signed.get("url") if isinstance(signed, dict) else None
    if not isinstance(address, str) or urlsplit(address).scheme not in _PORTS:
        raise ValueError(f"a signed address must use http or https, got {str(address)!r:.40}")
    headers = {str(key): str(value) for key, value in dict(signed.get("headers") or {}).items()}
    how: dict[str, Any] = {"stream": True, "allow_redirects": False, "timeout": _SIGNED_SECONDS}
    with closing(requests.get(address, headers=headers, auth=_without_password, **how)) as answer:
        if answer.status_code == 404:
            raise FileNotFoundError("there is no such file")
        if answer.status_code != 200:
            raise OSError(f"{urlsplit(address).hostname} answers {answer.status_code}")
        return _streamed(answer, limit)


def _without_password(request: Any) -> Any:
    """Return the request unchanged, so that no password from the user's netrc file is added."""
    return request


def _streamed(answer: Any, limit: int) -> bytes:
    """Read the whole body of a response, so that the connection can be reused."""
    content = bytearray()
    for chunk in answer.iter_content(_CHUNK):
        content += chunk
        if len(content) > limit:
            raise ValueError(f"it is larger than {limit >> 20} MiB")
    return bytes(content)


def _from_repository(uri: str, name: str, tracking_uri: str, limit: int) -> bytes:
    """Read a file from an object store with MLflow's own client."""
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
