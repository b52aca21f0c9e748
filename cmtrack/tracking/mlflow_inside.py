"""All uses of undocumented MLflow functions, to be checked after each new MLflow release."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    from mlflow.store.artifact.artifact_repo import ArtifactRepository as ArtifactRepository

DATABASE_STORE = "mlflow.store.tracking.sqlalchemy_store"
"""Name of MLflow's module for tracking stores in databases, which takes seconds to import."""


def get(server: str, path: str, **how: Any) -> Any:
    """Send a request for a path on a server in the same way as MLflow.

    The request uses the same proxies, certificates, headers and password as MLflow's requests.
    """
    from mlflow.utils.credentials import get_default_host_creds
    from mlflow.utils.rest_utils import http_request

    return http_request(get_default_host_creds(server), path, "GET", raise_on_status=False, **how)


def put(folder: str, path: str, file: BinaryIO, media_type: str) -> Any:
    """Upload a file in the same way as MLflow, but without following redirects.

    If redirects were followed, an unknown server could receive the rows.
    """
    from mlflow.utils.credentials import get_default_host_creds
    from mlflow.utils.rest_utils import http_request

    how = {"data": file, "extra_headers": {"Content-Type": media_type}, "allow_redirects": False}
    return http_request(get_default_host_creds(folder), path, "PUT", raise_on_status=False, **how)


def uploads_in_parts(repository: ArtifactRepository, file: str) -> bool:
    """Return True if MLflow uploads a file in parts, to addresses that the server signs."""
    is_large = getattr(repository, "_should_multipart_upload", None)
    return bool(is_large is not None and is_large(file))


def signed_download(folder: str, name: str) -> Any:
    """Ask a tracking server for a signed address of a file; return None if it does not sign any.

    A server with ``MLFLOW_ARTIFACTS_PRESIGNED_ONLY`` serves files only through signed addresses.
    """
    server, service, path = folder.partition("/mlflow-artifacts/artifacts")
    return get(server, f"/mlflow-artifacts/presigned{path}/{name}") if service else None


def has_secret(server: str) -> bool:
    """Return True if requests to a server carry a password, a token or a certificate."""
    from mlflow.utils.credentials import get_default_host_creds

    access = get_default_host_creds(server)
    return bool(
        access.token
        or access.password
        or access.auth
        or access.aws_sigv4
        or access.client_cert_path
    )


def artifact_repository(uri: str, tracking_uri: str) -> ArtifactRepository:
    """Return MLflow's client for a folder of artifacts, without checking its address."""
    from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository
    from mlflow.utils.uri import add_databricks_profile_info_to_artifact_uri

    return get_artifact_repository(
        add_databricks_profile_info_to_artifact_uri(uri, tracking_uri), tracking_uri=tracking_uri
    )


def address_of_artifacts(uri: str, tracking_uri: str) -> str:
    """Resolve an ``mlflow-artifacts:`` address to an address on the tracking server."""
    from mlflow.store.artifact.mlflow_artifacts_repo import MlflowArtifactsRepository

    return str(MlflowArtifactsRepository.resolve_uri(uri, tracking_uri))


def user_name() -> str:
    """Return the user name that MLflow would write to a new run."""
    from mlflow.tracking.context.default_context import DefaultRunContext

    return str(DefaultRunContext().tags().get("mlflow.user", ""))


def default_experiment_id() -> str:
    """Return the id of the experiment that MLflow uses by default for a new run."""
    from mlflow.tracking.default_experiment.registry import get_experiment_id

    return str(get_experiment_id())


def latest_metrics(run: Any) -> Sequence[Any]:
    """Return the latest point of each of a run's metrics, with the time of each point."""
    return getattr(run.data, "_metric_objs", ())


@contextmanager
def without_autologging() -> Iterator[None]:
    """Switch off MLflow's autologging, which would log the models that cmtrack itself fits."""
    off: Callable[[], AbstractContextManager[object]] = nullcontext
    if "mlflow" in sys.modules:
        with suppress(ImportError):
            from mlflow.utils.autologging_utils import disable_autologging

            off = disable_autologging
    with off():
        yield
