"""The evaluation that a run already contains under an entry's prefix, compared with the entry."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from cmtrack import untrusted
from cmtrack._lazy import cached_property
from cmtrack.evaluation.catalog import lookup
from cmtrack.tracking import dataset as datasets
from cmtrack.tracking import mlflow_inside, names
from cmtrack.tracking.entry import Entry

AGAIN = "logged_again"
"""Tag with the time (ms) at which an evaluation was logged again while other entries waited."""
STALE = "stale_metrics"
"""Tag that lists metrics of a replaced evaluation, which MLflow cannot remove."""
LEFT_OUT = "left_out"
"""Tag that lists the files which the store refused."""
STEP = "step"
"""Tag with the step of the evaluation that is in the run."""
_STEP = re.compile(r"-?\d{1,19}")
_LONGEST_TIME = 15
"""Maximum number of digits of a time in milliseconds; longer numbers are not times."""
_TAGS = (
    *names.TAGS_BEFORE.values(),
    names.DIGESTS,
    "costs",
    "families",
    "grouping",
    "kind",
    "positive",
    "regrouped_from",
    "samples",
    "undefined",
    "warnings",
    AGAIN,
    LEFT_OUT,
    STALE,
    STEP,
)
"""Tags that the next evaluation under the same prefix replaces or removes."""


@dataclass(frozen=True, eq=False)
class Held:
    """The content of a run under an entry's prefix, read just before the entry is sent.

    MLflow shows the metrics of a run's highest step. Therefore a run's files also come from its
    highest step.
    """

    run: Any
    entry: Entry

    def tag(self, name: str) -> str | None:
        """Return the text of an evaluation tag under the prefix, or None if the tag is missing."""
        text: str | None = self.run.data.tags.get(names.tag(name, self.entry.prefix))
        return text

    @property
    def is_complete(self) -> bool:
        """True if the run contains an evaluation that was sent completely."""
        return self.tag("status") == "completed"

    # -- steps and times ---------------------------------------------------------------------------

    @cached_property
    def metrics_step(self) -> int | None:
        """Highest step of the run's metrics under the prefix, or None without such metrics."""
        points = mlflow_inside.latest_metrics(self.run)
        return max((point.step for point in points if self._is_metric(point.key)), default=None)

    @cached_property
    def files_step(self) -> int | None:
        """Step of the evaluation whose files are in the run, or None if no metrics were logged."""
        logged_step = self.tag(STEP) or ""
        if _STEP.fullmatch(logged_step):
            return int(logged_step)
        return self.metrics_step  # earlier versions did not write this tag

    @cached_property
    def step(self) -> int:
        """Step at which the entry is logged: the entry's step, or else the run's highest step."""
        if self.entry.step is not None:
            return self.entry.step
        steps = (self.metrics_step, self.files_step)
        return max((step for step in steps if step is not None), default=0)

    @cached_property
    def newest(self) -> int:
        """Time (in ms) of the run's latest evaluation at this step; 0 if no such evaluation exists.

        This is the latest time of a metric of the entry at this step, or the time in the tag
        ``AGAIN``.
        """
        points = mlflow_inside.latest_metrics(self.run)
        times = [
            point.timestamp
            for point in points
            if point.step == self.step and point.key in self.entry.metrics
        ]
        again = self.tag(AGAIN) or ""
        if again.isdecimal() and len(again) <= _LONGEST_TIME:
            times.append(int(again))
        return max(times, default=0)

    @property
    def is_newer(self) -> bool:
        """True if the run contains an evaluation that is newer than the entry.

        The result is False if the evaluation in the run is for an earlier step than the entry.
        """
        is_earlier_step = self.files_step is not None and self.step > self.files_step
        return self.newest > self.entry.timestamp and not is_earlier_step

    # -- evaluations -------------------------------------------------------------------------------

    @property
    def has_same_evaluation(self) -> bool:
        """True if the evaluation in the run and the entry's evaluation have the same digest."""
        key = names.digest_key(names.EVALUATION_FILE)
        sent_digest = self.entry.digest(names.EVALUATION_FILE)
        return sent_digest is not None and self._digests().get(key) == sent_digest

    @property
    def has_same_files(self) -> bool:
        """True if the run contains the entry's evaluation, dataset and all files with a digest."""
        sent_digests = names.digests(self.entry.tags, self.entry.prefix)
        return (
            self.has_same_evaluation
            and sent_digests.items() <= self._digests().items()
            and datasets.is_there(self.run, self.entry.dataset)
        )

    @property
    def has_whole_entry(self) -> bool:
        """True if sending the entry would change nothing in the run."""
        if not self.is_complete or self.tag(LEFT_OUT) is not None:
            return False
        entry = self.entry
        if entry.step is not None or entry.model_id is not None:
            return False
        return (
            self.has_same_files
            and entry.tags.items() <= self.run.data.tags.items()
            and entry.metrics.items() <= self.run.data.metrics.items()
        )

    @cached_property
    def other_evaluation(self) -> str:
        """Description of a different evaluation under the entry's prefix.

        The description is empty if the run contains no such evaluation. It is also empty if the
        entry has a step, because such an entry always replaces the evaluation of an earlier step.
        """
        entry = self.entry
        if not self.is_complete or self.has_same_evaluation or entry.step is not None:
            return ""
        n_rows = untrusted.printable(self.tag("samples") or "?")
        rows = f"{n_rows} other rows"
        if self._digests().get("labels") == names.digests(entry.tags, entry.prefix).get("labels"):
            rows = f"the same {n_rows} rows"
        return f"an evaluation of {rows}{names.under_prefix(entry.prefix)}"

    def evaluation_that_stays(self, is_late: bool) -> str:
        """Describe the evaluation that the entry must not replace.

        The description is empty if the entry may replace the evaluation. While a late entry was
        waiting, a newer evaluation may have been sent.
        """
        if not self.is_complete:
            return ""
        if self.files_step is not None and self.step < self.files_step:
            return f"the evaluation of step {self.files_step}"
        if self.is_newer and is_late:
            return f"a later evaluation of step {self.step}"
        return ""

    # -- metrics and tags that the entry does not overwrite ----------------------------------------

    def stale_metrics(self) -> list[str]:
        """Return the metrics of an earlier evaluation that the entry does not contain."""
        others = self.run.data.metrics.keys() - self.entry.metrics.keys()
        return sorted(name for name in others if self._is_metric(name))

    def old_tags(self, new_tags: Iterable[str]) -> list[str]:
        """Return the tags of an earlier evaluation that the entry does not write."""
        prefix = self.entry.prefix
        evaluation_tags = {names.tag(name, prefix) for name in _TAGS}
        evaluation_tags |= {names.former_tag(name, prefix) for name in names.SHORT}
        return sorted((evaluation_tags & self.run.data.tags.keys()) - set(new_tags))

    def _digests(self) -> dict[str, str]:
        return names.digests(self.run.data.tags, self.entry.prefix)

    def _is_metric(self, name: str) -> bool:
        """Return True for a metric of the entry, or of an earlier evaluation under its prefix."""
        if name in self.entry.metrics:
            return True
        if not name.startswith(self.entry.prefix):
            return False
        try:
            lookup(name.removeprefix(self.entry.prefix))
        except KeyError:  # a metric that the script logged itself
            return False
        return True
