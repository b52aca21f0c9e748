"""Reading the files of runs: one request for each file, over connections that are kept open.

MLflow's own download asks for the run, lists a folder and asks what the server can do before it reads a file. What
the listing of runs says of their artifacts is enough to read a file from the server's address for it.

A store decides which address that is. Therefore a file is read only if it is a regular one, up to a size, and another
server than the tracking server is not told the user's password or token.
"""

from __future__ import annotations

import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit
from urllib.request import url2pathname

from cmtrack import untrusted

MAX_BYTES = 1 << 30
"""A larger file is not read: it would fill the memory, and no evaluation comes near it."""

_BY_SERVER = ("http", "https", "mlflow-artifacts")
_PORTS = {"http": 80, "https": 443}
_CHUNK = 1 << 20
# without 500, which older servers answer where there is no such file: it would be asked for during minutes
_TRANSIENT = frozenset((408, 429, 502, 503, 504))


def folder_of(uri: str, tracking_uri: str = "") -> Path | None:
    """The folder of artifacts that lie on this machine; None for those elsewhere.

    Raises
    ------
    ValueError
        If a tracking server names a folder of another machine in the manner of Windows.
    """
    parts = urlsplit(untrusted.artifact_uri(uri))
    if parts.scheme == "file":
        path = url2pathname(parts.path) if parts.netloc in ("", "localhost") else f"//{parts.netloc}{parts.path}"
    elif uri and not parts.scheme:
        path = uri
    else:
        return None
    if path.replace("\\", "/").startswith("//") and tracking_uri.startswith(("http:", "https:")):
        raise ValueError(f"its artifacts lie on another machine: {untrusted.printable(uri)!r}")
    return Path(path)


def read(uri: str, name: str, tracking_uri: str, limit: int = MAX_BYTES) -> bytes:
    """The content of one file of a folder of artifacts.

    Parameters
    ----------
    uri : str
        The folder, as the tracking store names it.
    name : str
        The file in it.
    tracking_uri : str
        Of that store: its server serves ``mlflow-artifacts:`` addresses.
    limit : int
        Bytes.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    OSError
        If it cannot be read, or the server does not answer.
    ValueError
        If the address or the file is none that is read, or larger than the limit.
    """
    untrusted.file_name(name)
    folder = folder_of(uri, tracking_uri)
    if folder is not None:
        return untrusted.read_file(folder / name, limit)
    if urlsplit(uri).scheme in _BY_SERVER:
        return _from_server(uri, name, tracking_uri, limit)
    return _from_repository(uri, name, tracking_uri, limit)


def _from_server(uri: str, name: str, tracking_uri: str, limit: int) -> bytes:
    """One request, as MLflow's own client would make it for this file."""
    from mlflow.exceptions import MlflowException
    from mlflow.store.artifact.mlflow_artifacts_repo import MlflowArtifactsRepository
    from mlflow.utils.rest_utils import http_request
    from requests import RequestException

    try:
        own = urlsplit(uri).scheme == "mlflow-artifacts"
        folder = MlflowArtifactsRepository.resolve_uri(uri, tracking_uri) if own else uri
        known = _place(folder) == _place(tracking_uri)
        access = _access(folder, known)
        answer = http_request(
            access, f"/{quote(name)}", "GET", stream=True, retry_codes=_TRANSIENT, raise_on_status=False
        )
        with closing(answer):
            if answer.status_code == 404:
                raise FileNotFoundError("there is no such file")
            if answer.status_code != 200:
                secret = "" if known else ", and gets no password or token, because it is not the tracking server"
                raise OSError(f"{urlsplit(folder).hostname} answers {answer.status_code}{secret}")
            return _streamed(answer, limit)
    except (MlflowException, RequestException) as error:
        raise OSError(untrusted.without_credentials(str(error))) from None


def _streamed(answer: Any, limit: int) -> bytes:
    """The body of an answer, read to its end so that the connection can be kept open."""
    content = bytearray()
    for chunk in answer.iter_content(_CHUNK):
        content += chunk
        if len(content) > limit:
            raise _too_large(limit)
    return bytes(content)


def _access(folder: str, known: bool) -> Any:
    """The user's credentials for the tracking server; for another server only the TLS settings."""
    from mlflow.utils.credentials import get_default_host_creds
    from mlflow.utils.rest_utils import MlflowHostCreds

    access = get_default_host_creds(folder)
    if known:
        return access
    return MlflowHostCreds(
        folder, ignore_tls_verification=access.ignore_tls_verification, server_cert_path=access.server_cert_path
    )


def _place(uri: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(uri)
    return parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme)


def _from_repository(uri: str, name: str, tracking_uri: str, limit: int) -> bytes:
    """A file of an object store, by MLflow's own client."""
    from mlflow.exceptions import MlflowException
    from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

    with tempfile.TemporaryDirectory(prefix="cmtrack-") as scratch:
        try:
            path = get_artifact_repository(uri, tracking_uri=tracking_uri).download_artifacts(name, scratch)
        except MlflowException as error:
            absent = error.error_code == "RESOURCE_DOES_NOT_EXIST"
            raise (FileNotFoundError if absent else OSError)(untrusted.without_credentials(str(error))) from None
        return untrusted.read_file(Path(path), limit)


def _too_large(limit: int) -> ValueError:
    return ValueError(f"it is larger than {limit >> 20} MiB")
