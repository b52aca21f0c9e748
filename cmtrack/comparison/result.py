"""The result of ``compare``: rankings of runs or of models, and the unranked runs with reasons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

from cmtrack._lazy import cached_property
from cmtrack.comparison import rows
from cmtrack.comparison.blocks import RepeatedRanking
from cmtrack.comparison.criterion import Criterion
from cmtrack.comparison.planning import Looks, Resolution, looks_of, resolution_of
from cmtrack.comparison.ranking import Ranked, RankedRun, Ranking
from cmtrack.comparison.record import Record
from cmtrack.comparison.run import Candidate, LeftOut, Listing, Run, StoppedRun
from cmtrack.comparison.segments import SegmentComparison
from cmtrack.evaluation.gates import Gate
from cmtrack.removed import RemovedAttributes
from cmtrack.rows import Flips, Missed
from cmtrack.untrusted import printable

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from cmtrack.tracking.publish import LoggedReview
    from cmtrack.tracking.views import SavedView


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Comparison(RemovedAttributes):
    """Runs, or models over repeated runs, compared for a decision.

    Make one with :func:`cmtrack.compare`.

    It is a :class:`RunComparison` or a :class:`ModelComparison`; this is what both have.

    Attributes
    ----------
    rankings : tuple of Ranking
        The one to decide by first. Runs of different rankings are never put in one order.
    criterion : Criterion
    gates : tuple of Gate
    confidence_level : float
    failed : tuple of StoppedRun
        Runs (or models) that a gate stopped, with the gates' results.
    left_out : tuple of LeftOut
        Runs without a complete or readable evaluation, or with an undefined metric.
    passed_over : tuple of Run
        Complete runs whose logged value was too low for the short list.
    baseline : Candidate or None
        What ``.difference`` gates compare with.
    notes : tuple of str
        What a reader should know about how the comparison was made.
    how : dict of str to object
        The arguments that were given, to repeat it.
    reads : frozenset of str
        What the criterion, the gates and the tie-breakers depend on beside the labels: "grouping",
        "positive", both or nothing. Runs that differ in one of these are in different rankings.
    segments : SegmentComparison
        The leader against the next runs by segment of the rows, where ``compare(segments=)`` asked
        for that.
    record : Record
        When, by whom and with which versions it was made.
    judged : tuple of Candidate
        Every run whose evaluation was read, also of those that are not ranked.
    listing : Listing or None
        What it was computed from, beside the evaluations; None if ``compare`` did not make it.

    Examples
    --------
    >>> from cmtrack import compare, evaluate
    >>> y = [0, 1] * 100
    >>> forest = evaluate(y, [0, 1] * 90 + [1, 0] * 10)
    >>> linear = evaluate(y, [0, 1] * 70 + [1, 0] * 30)
    >>> runs = {"forest": forest, "linear": linear}
    >>> comparison = compare(runs, rank_by="multiclass/accuracy", require="binary/recall >= 0.8")
    >>> comparison.best.name, [run.name for run in comparison.failed]
    ('forest', ['linear'])
    """

    noun: ClassVar[str] = "run"

    rankings: tuple[Ranking, ...]
    criterion: Criterion
    gates: tuple[Gate, ...] = ()
    confidence_level: float = 0.95
    failed: tuple[StoppedRun, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    passed_over: tuple[Run, ...] = ()
    baseline: Candidate | None = None
    notes: tuple[str, ...] = ()
    how: dict[str, Any] = field(default_factory=dict)
    reads: frozenset[str] = frozenset({"grouping", "positive"})
    segments: SegmentComparison = field(default_factory=SegmentComparison)
    record: Record = field(default_factory=Record)
    judged: tuple[Candidate, ...] = ()
    listing: Listing | None = None

    @property
    def ranking(self) -> Ranking | None:
        """The first ranking; None where nothing is ranked."""
        return self.rankings[0] if self.rankings else None

    @property
    def repeated(self) -> RepeatedRanking | None:
        """The ranking of models over repeated runs; None where runs are ranked, or no model is."""
        return self.ranking if isinstance(self.ranking, RepeatedRanking) else None

    @property
    def best(self) -> Ranked | None:
        """The run, or the model of repeated runs, to take.

        It leads the first ranking, or the tie-breakers chose it among the tied ones within the
        margin. None where nothing passed, and where several rankings have the same number of rows
        and none of them holds the parents of the others: cmtrack does not choose among these. The
        best of the runs need not be good: :attr:`Ranking.constants` and :meth:`summary` say where
        no run is shown to be better than the best answer that needs no model.
        """
        return None if self.ranking is None else self.ranking.chosen

    @property
    def standings(self) -> tuple[Ranked, ...]:
        """Everything that is ranked, runs or models, one ranking after the other."""
        return tuple(entry for ranking in self.rankings for entry in ranking.standings)

    @property
    def runs(self) -> tuple[Candidate, ...]:
        """Every ranked run, and every run of a ranked model."""
        return tuple(run for entry in self.standings for run in entry.runs)

    def __len__(self) -> int:
        return len(self.standings)

    def __iter__(self) -> Iterator[Ranked]:
        return iter(self.standings)

    def __getitem__(self, name: str) -> Ranked:
        """A ranked run by its name or id, or a model by its name."""
        for entry in self.standings:
            if name in (entry.name, entry.run_id):
                return entry
        raise KeyError(
            f"nothing ranked is called {name!r}; there are "
            f"{[entry.name for entry in self.standings][:10]}"
        )

    def to_frame(self) -> pd.DataFrame:
        """Return one row per run: ranked ones, best first, then stopped ones, then others."""
        from cmtrack.report.review.data import to_frame

        return to_frame(self)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data, for machines."""
        from cmtrack.report.review.data import to_dict

        return to_dict(self)

    def summary(self) -> str:
        """The decision and its evidence in a few sentences."""
        from cmtrack.report.review import Review, verdict

        return printable(" ".join(verdict(Review(self))))

    def figures(self) -> Mapping[str, Figure]:
        """Every figure that applies, by name."""
        from cmtrack.report.figures import draw_figures

        return draw_figures(self)

    def report(
        self,
        path: str | Path,
        *,
        title: str | None = None,
        rows: bool = True,
        table: Any = None,
        row_ids: Any = None,
        images: str | None = None,
    ) -> Path:
        """Write the review.

        Parameters
        ----------
        path : path
            ``.html`` gives one self-contained page, ``.md`` Markdown for a pull request, ``.json``
            plain data.
        title : str, optional
        rows : bool, default True
            Whether the page lists single rows: ten that the run to take breaks. Ids are shown only
            where they are kept with the rows (``CMTRACK_ROW_IDS``).
        table, row_ids, images : optional
            What is shown beside the rows of a page, as in :meth:`cmtrack.Evaluation.report`.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        ValueError
            If the file's ending is another one, or the table does not fit.
        """
        from cmtrack.report.review.report import write

        return write(self, Path(path), title, rows, table, row_ids, images)

    def bundle(self, path: str | Path, *, rows: bool = True, title: str | None = None) -> Path:
        """Write the review with all that it is computed from; ``cmtrack verify`` checks it.

        The file holds the page, the Markdown, the plain data, the rule, each run's statistics and
        its rows, and a manifest with the SHA-256 digest of each. The same comparison gives the same
        bytes. Rows keep 7 digits of their probabilities; the review of evaluations in memory is
        computed from these.

        Parameters
        ----------
        path : path
            Its ending is ``.zip``.
        rows : bool, default True
            Whether the predictions by row go along. Paired differences are recomputed from them:
            without them ``cmtrack verify`` says which numbers it cannot recompute.
        title : str, optional

        Returns
        -------
        Path
            The file.

        Raises
        ------
        ValueError
            If the file's ending is another one, or the comparison was not made by
            :func:`cmtrack.compare`.

        Examples
        --------
        >>> from cmtrack import compare, evaluate
        >>> y = [0, 1] * 100
        >>> forest = evaluate(y, [0, 1] * 90 + [1, 0] * 10)
        >>> linear = evaluate(y, [0, 1] * 70 + [1, 0] * 30)
        >>> runs = {"forest": forest, "linear": linear}
        >>> compare(runs, rank_by="multiclass/accuracy").bundle("review.zip").name
        'review.zip'
        """
        from cmtrack.report.review.bundle import write

        return write(self, Path(path), rows=rows, title=title)

    def log(
        self,
        *,
        experiment_name: str | None = None,
        run_name: str | None = None,
        alias: str | None = None,
        registered_model: str | None = None,
    ) -> LoggedReview:
        """Write the review as a run, and tag the compared runs and their logged models.

        A review whose gates stopped every run is logged, too: its headline and its tag
        ``cmtrack.decision`` say so.

        The tags are ``cmtrack.rank``, ``cmtrack.review`` (the review's run) and
        ``cmtrack.rank_by``. The descriptions of these runs and models, and of the chosen run's
        versions in the model registry, get a labelled paragraph with the decision, the rank and a
        link to the review; the versions get the tags, too. What a person wrote stays.

        Parameters
        ----------
        experiment_name : str, optional
            By default ``"<name>: reviews"`` beside the experiment of the chosen run, or, if none is
            chosen, of the first compared run; it is created if it does not exist. The evaluation
            view of the runs then lists these alone.
        run_name : str, optional
        alias : str, optional
            Set for the chosen run's version of the registered model, such as ``"challenger"``. By
            default none is set, since serving may resolve an alias.
        registered_model : str, optional
            Its name, where the chosen run has versions of several.

        Raises
        ------
        ValueError
            If no run was judged, the runs are in no store, or there is no version that the alias
            can point to.
        ConnectionError
            If the tracking server does not answer.

        Examples
        --------
        >>> import mlflow
        >>> from cmtrack import compare, evaluate, log_evaluation
        >>> y = [0, 1] * 100
        >>> for name, right in (("forest", 90), ("linear", 70)):
        ...     with mlflow.start_run(run_name=name):
        ...         logged = log_evaluation(evaluate(y, [0, 1] * right + [1, 0] * (100 - right)))
        >>> review = compare(rank_by="multiclass/accuracy").log()
        >>> mlflow.get_run(logged.run_id).data.tags["cmtrack.rank"]
        '2'
        """
        from cmtrack.tracking.publish import publish

        return publish(
            self,
            experiment_name=experiment_name,
            run_name=run_name,
            alias=alias,
            registered_model=registered_model,
        )

    def view(self, name: str | None = None) -> SavedView:
        """Write a saved view of the experiment, and give its link.

        It is MLflow's own list of runs and charts: ordered by the criterion, with the columns and
        the charts that matter for this ranking, and without the others. Its link also stands first
        in the experiment's description.

        Parameters
        ----------
        name : str, optional
            At most 100 characters; by default it says the criterion. A view of the same name is
            replaced.

        Returns
        -------
        SavedView
            In the chosen run's experiment, or, if none is chosen, in that of the first compared
            run. A view shows one experiment: its notes say how many of the runs are in others.

        Raises
        ------
        ValueError
            If the runs are in no store, the server's version of MLflow is not known to read saved
            views, or it refuses the view.
        ConnectionError
            If the tracking server does not answer.

        Examples
        --------
        >>> import mlflow
        >>> from cmtrack import compare, evaluate, log_evaluation
        >>> y = [0, 1] * 100
        >>> for name, right in (("forest", 90), ("linear", 70)):
        ...     with mlflow.start_run(run_name=name):
        ...         logged = log_evaluation(evaluate(y, [0, 1] * right + [1, 0] * (100 - right)))
        >>> view = compare(rank_by="multiclass/accuracy").view("accuracy")
        >>> view.name, view.link.startswith("#/experiments/"), view.notes
        ('accuracy', True, ())
        """
        from cmtrack.tracking.views import save_view

        return save_view(self, name)

    # -- what the rows can show, and how often they were used --------------------------------------

    @cached_property
    def resolution(self) -> Resolution:
        """The smallest difference that these rows can show, and the rows that a given one needs.

        Raises ValueError for models, for several metrics side by side, and for a single run.
        """
        return resolution_of(self.ranking, int(self.how.get("seed", 0)))

    @cached_property
    def looks(self) -> Looks:
        """The runs that were judged on these rows, and the leader's value less its selection.

        Raises ValueError for models, and unless a single metric ranks.
        """
        ranking = self.ranking
        if ranking is None:
            raise ValueError("nothing is ranked, so none is the highest")
        digest = ranking.evaluation.labels_digest
        same_rows = {run.run_id for run in self.judged if run.evaluation.labels_digest == digest}
        # without a value none can be chosen
        unranked = same_rows & {one.run.run_id for one in self.left_out}
        everyone = (*(run.run for run in self.judged), *self.passed_over)
        reviews = {run.tags["cmtrack.review"] for run in everyone if "cmtrack.review" in run.tags}
        held, reviewed = (0, 0) if self.listing is None else self.listing.looks
        here = ranking.picked_from
        runs = max(here, held - len(unranked))
        baseline = "" if self.baseline is None else self.baseline.run_id
        return looks_of(
            ranking, runs, max(len(reviews), reviewed), int(self.how.get("seed", 0)), baseline
        )

    # -- rows across runs --------------------------------------------------------------------------

    def rows(self, a: str, b: str, kind: str = "broken") -> pd.DataFrame:
        """The rows that one run gets right and the other wrong.

        A row is right if the step of the criterion, such as ``reduced/<step>/accuracy``, accepts
        the pair of classes; without a step, if they are equal.

        Parameters
        ----------
        a, b : str
            Names or ids of runs that were judged on the same rows.
        kind : "broken", "fixed" or "changed"
            Only ``a`` is right, only ``b``, or their predictions differ. The largest fall (rise,
            change) of the label's probability comes first; without probabilities, and among equals,
            the first row.

        Returns
        -------
        DataFrame
            row, id, weight and group where there are some, actual; for each run predicted,
            probability and probability_actual, followed by its name; and the segments.

        Raises
        ------
        KeyError
            If a run does not exist.
        ValueError
            If they were judged on different rows, or did not keep them; the text names runs that
            can be compared.

        Warns
        -----
        UserWarning
            If they were judged on different rows, and share some by their ids: these are compared,
            the others are counted.

        Examples
        --------
        >>> from cmtrack import compare, evaluate
        >>> old = evaluate([0, 1, 1, 0], [0, 1, 0, 0])
        >>> new = evaluate([0, 1, 1, 0], [1, 1, 1, 0])
        >>> runs = {"old": old, "new": new}
        >>> compare(runs, rank_by="multiclass/accuracy").rows("old", "new")
           row  actual  predicted_old  predicted_new
        0    0       0              0              1
        """
        return rows.rows(self, a, b, kind)

    def flips(self, a: str, b: str, by: str | None = None) -> Flips:
        """The shares of rows that ``b`` breaks and fixes against ``a``, with exact intervals.

        Parameters
        ----------
        a, b : str
            As in :meth:`rows`.
        by : str, optional
            "class" (the actual one), or a column of the segments: the shares are then given by
            part, with simultaneous intervals and adjusted p-values.

        Returns
        -------
        Flips

        Raises
        ------
        KeyError, ValueError
            As :meth:`rows` does; ValueError too if there is no such column.

        Notes
        -----
        The share of broken rows is the negative flip rate of Yan et al. (2021), Positive-congruent
        training, CVPR. The test compares broken with fixed rows, given their sum. For one part its
        p-value is McNemar's mid-p.
        """
        return rows.flips(self, a, b, by)

    def missed(self, at_least: int | None = None) -> Missed:
        """The rows that most runs miss.

        Parameters
        ----------
        at_least : int, optional
            Number of runs that must miss a row for the frame to list it; by default all of them.

        Returns
        -------
        Missed
            For all judged runs on the leader's rows.

        Raises
        ------
        ValueError
            If fewer than two runs can be compared row by row, or they are fewer than ``at_least``.
        """
        return rows.missed(self, at_least)

    def __repr__(self) -> str:
        from cmtrack.report.review import Review, lead

        return printable(
            f"Comparison({len(self)} ranked, {len(self.failed)} stopped by gates: "
            f"{lead(Review(self))})"
        )

    def _repr_html_(self) -> str:
        from cmtrack.report.review.report import notebook_html

        return notebook_html(self)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class RunComparison(Comparison):
    """Rankings of runs.

    Attributes
    ----------
    rankings : tuple of Ranking
        One for each set of runs that were judged on the same data in the same way; the one with the
        most rows first, and parents before the runs that are nested in them.

    Examples
    --------
    >>> from cmtrack import compare, evaluate
    >>> y = [0, 1] * 100
    >>> forest = evaluate(y, [0, 1] * 90 + [1, 0] * 10)
    >>> linear = evaluate(y, [0, 1] * 70 + [1, 0] * 30)
    >>> runs = {"forest": forest, "linear": linear}
    >>> comparison = compare(runs, rank_by="multiclass/accuracy")
    >>> [(run.rank, run.name, run.value) for run in comparison.runs]
    [(1, 'forest', 0.9), (2, 'linear', 0.7)]
    """

    @property
    def runs(self) -> tuple[RankedRun, ...]:
        """The ranked runs of all rankings, one ranking after the other."""
        return cast("tuple[RankedRun, ...]", self.standings)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ModelComparison(Comparison):
    """A ranking of models over repeated runs.

    Attributes
    ----------
    rankings : tuple of RepeatedRanking
        One; none where gates stopped every model.

    Examples
    --------
    >>> import mlflow
    >>> from cmtrack import compare, evaluate, log_evaluation
    >>> for model, right in (("forest", 90), ("linear", 70)):
    ...     for fold in range(3):
    ...         with mlflow.start_run():
    ...             _ = mlflow.log_params({"fold": fold, "model": model})
    ...             hits = right - fold
    ...             labels = [0, 1] * hits + [1, 0] * (100 - hits)
    ...             _ = log_evaluation([0, 1] * 100, labels)
    >>> names = {"block": "params.fold", "model": "params.model"}
    >>> comparison = compare(**names, rank_by="multiclass/accuracy")
    >>> comparison.best.name, len(comparison.runs), type(comparison).__name__
    ('forest', 6, 'ModelComparison')
    """

    noun: ClassVar[str] = "model"
