"""Main program of the process that renders live pages: reviews of runs from the server's store.

Which experiments a page may read was decided before, in the server (:mod:`cmtrack_integrations.live_page`): a question
names them, and nothing else is read. The process has the environment of the server, so it opens the same store.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from cmtrack import untrusted
from cmtrack_integrations._page_work import serve
from cmtrack_integrations.server import Inside, handling, insides

if TYPE_CHECKING:
    from cmtrack.comparison import Comparison

MOST_PAGES = 32
"""Pages that are kept, until the runs that they show change."""
MOST_BYTES = 64 << 20
"""Of these pages."""


class Unavailable(Exception):
    """MLflow's store, or its artifacts, cannot be read now."""


def main() -> None:
    """Make pages until the server ends."""
    inside, pages = insides(), Pages()
    serve(lambda question: answer(question, inside, pages))


def answer(question: Mapping[str, Any], inside: Inside, pages: Pages) -> tuple[int, str]:
    """Answer a request with an HTTP status, and the page or an error sentence."""
    from cmtrack.comparison.compare import NothingFound

    store = Store(inside, question["address"], question["readable"])
    try:
        with inside.within(question["workspace"]):
            return 200, pages.page(store, question["options"], question["runs"], question["experiment"])
    except (ConnectionError, Unavailable) as error:
        return 503, f"MLflow does not answer now: {_line(error)}"
    except (TypeError, ValueError) as error:
        if store.troubles:
            return 503, f"MLflow does not answer now: {_line(store.troubles[0])}"
        if isinstance(error, NothingFound):
            return 404, f"There is nothing to compare: {error}"
        return 400, untrusted.without_credentials(str(error))
    except Exception:
        logging.getLogger(__name__).exception("cmtrack's page failed")
        return 500, "The page could not be made. The server's log says why."


def _line(error: BaseException) -> str:
    return untrusted.without_credentials(untrusted.one_line(error))[:300]


@dataclass(frozen=True)
class Store:
    """The server's store with the client methods that :func:`cmtrack.compare` needs, limited to readable experiments.

    What it does not hold of :class:`mlflow.MlflowClient` a comparison of runs by their ids does not ask for.

    Attributes
    ----------
    inside : Inside
    tracking_uri : str
        The server's address, as the user sees it.
    readable : dict of str to str
        Names of the experiments that may be read, by id.
    troubles : list of Exception
        Why artifacts could not be read, where that is no matter of the run.
    """

    inside: Inside
    tracking_uri: str
    readable: Mapping[str, str]
    troubles: list[Exception] = field(default_factory=list)

    def get_experiment_by_name(self, name: str) -> Any:
        return next((self.get_experiment(key) for key, text in self.readable.items() if text == name), None)

    def get_experiment(self, experiment_id: str) -> Any:
        if experiment_id not in self.readable:
            raise LookupError(experiment_id)
        return _of_store(lambda: self.inside.store().get_experiment(experiment_id))

    def search_experiments(self, **_: Any) -> list[Any]:
        return []

    def search_runs(
        self,
        experiment_ids: Sequence[str],
        filter_string: str,
        max_results: int,
        order_by: Sequence[str],
        page_token: str | None,
    ) -> Any:
        from mlflow.exceptions import MlflowException

        ids = [key for key in experiment_ids if key in self.readable]
        try:
            return self._search(ids, filter_string, max_results, list(order_by), page_token)
        except Unavailable as error:
            if not filter_string:
                raise
            self._search(ids, "", 1, [], None)  # it answers: the filter is what it cannot do
            raise MlflowException(_line(error)) from None

    def get_run(self, run_id: str) -> Any:
        """An active run of an experiment that may be read."""
        from mlflow.exceptions import RestException

        run = _of_store(lambda: self.inside.store().get_run(run_id))
        if run.info.lifecycle_stage != "active" or str(run.info.experiment_id) not in self.readable:
            raise RestException({"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "there is no such run"})
        return run

    def _search(self, ids: list[str], text: str, most: int, order: list[str], token: str | None) -> Any:
        from mlflow.entities import ViewType

        return _of_store(lambda: self.inside.store().search_runs(ids, text, ViewType.ACTIVE_ONLY, most, order, token))

    def read_artifact(self, run_id: str, name: str, _: str = "") -> bytes:
        """A file of a run that this store gave, as MLflow's page would get it."""
        from cmtrack.archive import MAX_BYTES

        with handling("/get-artifact", {"path": untrusted.file_name(name), "run_uuid": run_id}):
            try:
                content = self.inside.get_artifact()
                if content.status_code in (429, *range(500, 600)):
                    raise OSError(f"the artifact store answers {content.status_code}")
            except Exception as error:
                self.troubles.append(error)
                raise
            if content.status_code != 200:
                raise FileNotFoundError(f"the artifact store answers {content.status_code}")
            if (content.content_length or 0) > MAX_BYTES:
                raise ValueError(f"it is larger than {MAX_BYTES >> 20} MiB")
            content.direct_passthrough = False
            return bytes(content.get_data())


def _of_store(call: Callable[[], Any]) -> Any:
    """Call the store; errors become :class:`Unavailable` unless the request caused them."""
    from mlflow.exceptions import MlflowException

    from cmtrack.tracking.runs import ABSENT

    try:
        return call()
    except Exception as error:
        if isinstance(error, MlflowException) and error.error_code in ABSENT:
            raise
        raise Unavailable(str(error)) from error


class Pages:
    """Cache of pages, keyed by the request and the runs' tags and metrics, which include digests of evaluations."""

    def __init__(self) -> None:
        self._pages: OrderedDict[str, str] = OrderedDict()

    def page(self, store: Store, options: dict[str, Any], runs: list[str], experiment: str) -> str:
        """The page, rendered if it is not cached."""
        from cmtrack.comparison import CompareOptions
        from cmtrack.report.review.report import html
        from cmtrack.tracking.comparing import compare_by, list_runs
        from cmtrack.tracking.settings import lists_rows

        choice: Any = runs or None
        record = CompareOptions(**options, experiment_names=None if runs else [experiment])
        listed = list_runs(choice, record, lambda *_: None, order=None, clients=[store]).runs
        seen = [[run.run_id, run.name, run.tags, run.params, sorted(run.metrics.items())] for run in listed]
        if "against" in options:
            baseline = store.get_run(options["against"])
            seen.append([baseline.info.run_id, baseline.info.run_name, dict(baseline.data.tags), {}, []])
        asked = [store.tracking_uri, experiment, sorted(options.items()), runs, seen]
        key = hashlib.blake2b(json.dumps(asked, sort_keys=True, default=str).encode()).hexdigest()
        if (page := self.kept(key)) is not None:
            return page
        comparison = compare_by(record, choice, clients=[store])
        if store.troubles and not comparison.judged:
            raise Unavailable(str(store.troubles[0]))
        page = html(_live(comparison), f"“{untrusted.one_line(experiment)}” as it is now", rows=lists_rows())
        if not store.troubles:  # the next one may show more
            self.keep(key, page)
        return page

    def kept(self, key: str) -> str | None:
        """A cached page."""
        if key in self._pages:
            self._pages.move_to_end(key)
        return self._pages.get(key)

    def keep(self, key: str, page: str) -> None:
        """Cache a page, and evict the least recently used ones if there are too many."""
        self._pages[key] = page
        while len(self._pages) > MOST_PAGES or sum(map(len, self._pages.values())) > MOST_BYTES:
            self._pages.popitem(last=False)


def _live(comparison: Comparison) -> Comparison:
    record = replace(comparison.record, author="")  # it would be who runs the server
    note = "This page shows the runs as they are when it is opened, and is stored nowhere: cmtrack review stores one."
    return replace(comparison, notes=(*comparison.notes, note), record=record)


if __name__ == "__main__":
    main()
