"""A run as it is compared: what a tracking store lists of it, or a name for an evaluation in memory."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, eq=False)
class Run:
    """One run, without its artifacts.

    Attributes
    ----------
    run_id, name : str
    experiment_id : str
    tracking_uri : str
        The store that it is in; it may hold a password, and is not shown.
    metrics : dict of str to float
        The logged ones, last values.
    params, tags : dict of str to str
    artifact_uri : str
    start_time : int
        Milliseconds since 1970; 0 where the run has none.
    model_ids : tuple of str
        Logged models that the run made, or that it stands for.
    """

    run_id: str
    name: str
    experiment_id: str = ""
    tracking_uri: str = field(default="", repr=False)
    metrics: dict[str, float] = field(default_factory=dict, repr=False)
    params: dict[str, str] = field(default_factory=dict, repr=False)
    tags: dict[str, str] = field(default_factory=dict, repr=False)
    artifact_uri: str = field(default="", repr=False)
    start_time: int = 0
    model_ids: tuple[str, ...] = ()

    @property
    def parent_run_id(self) -> str | None:
        """The run that this one is nested in."""
        return self.tags.get("mlflow.parentRunId")
