"""Result of ``compare``: rankings of runs or models, and the reasons why runs are not ranked."""

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
    """Comparison of runs, or of models over repeated runs, that recommends one of them.

    :func:`cmtrack.compare` returns a :class:`RunComparison` or a :class:`ModelComparison`. This
    class defines the attributes and methods that both classes share.

    Attributes
    ----------
    rankings : tuple of Ranking
        All rankings; the first ranking decides. Runs in different rankings are never compared with
        each other.
    criterion : Criterion
    gates : tuple of Gate
    confidence_level : float
    failed : tuple of StoppedRun
        Runs (or models) that a gate stopped, with the gate results.
    left_out : tuple of LeftOut
        Runs that are not ranked, because their evaluation is incomplete or unreadable, or a metric
        is undefined.
    passed_over : tuple of Run
        Complete runs that were not read, because their logged value was not among the best.
    baseline : Candidate or None
        The run with which ``.difference`` gates compare each run.
    notes : tuple of str
        Notes for readers that explain how the comparison was made.
    how : dict of str to object
        The arguments of :func:`cmtrack.compare`, with which the comparison can be repeated.
    reads : frozenset of str
        Options that the criterion, the gates and the tie-breakers depend on in addition to the
        labels: "grouping", "positive", "costs". Runs that differ in one of the ``reads`` options
        are in different rankings.
    segments : SegmentComparison
        Differences between the leader and the next runs by segment of the rows, if
        ``compare(segments=)`` was used.
    record : Record
        The time and the author of the comparison, and the versions of the packages that were used.
    judged : tuple of Candidate
        Every run whose evaluation was read, including runs that are not ranked.
    listing : Listing or None
        All input of the comparison except the evaluations; None if the comparison was not made by
        ``compare``.

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
        """The first ranking; None if no run is ranked."""
        return self.rankings[0] if self.rankings else None

    @property
    def repeated(self) -> RepeatedRanking | None:
        """The ranking of models over repeated runs; None if no model is ranked."""
        return self.ranking if isinstance(self.ranking, RepeatedRanking) else None

    @property
    def best(self) -> Ranked | None:
        """The recommended run or, for repeated runs, the recommended model.

        The chosen run is the leader of the first ranking, or the run that tie-breakers chose among
        the tied runs within the margin. The value is None if no run passed the gates. The value is
        also None if several rankings have the same number of rows and none of them contains the
        parents of the runs in the others, because cmtrack does not choose between such rankings.
        The best run is not necessarily good: :attr:`Ranking.constants` and :meth:`summary` report
        if no run is significantly better than the best constant answer.
        """
        return None if self.ranking is None else self.ranking.chosen

    @property
    def standings(self) -> tuple[Ranked, ...]:
        """All ranked runs or models, one ranking after the other."""
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
        """Return a ranked run by its name or id, or a ranked model by its name."""
        for entry in self.standings:
            if name in (entry.name, entry.run_id):
                return entry
        raise KeyError(
            f"there is no ranked run named {name!r}; the ranked names are "
            f"{[entry.name for entry in self.standings][:10]}"
        )

    def to_frame(self) -> pd.DataFrame:
        """Return a frame with one row per run: ranked runs first, then stopped and other runs."""
        from cmtrack.report.review.data import to_frame

        return to_frame(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the whole comparison as plain data."""
        from cmtrack.report.review.data import to_dict

        return to_dict(self)

    def summary(self) -> str:
        """Return a few sentences that state the decision and the evidence for the decision."""
        from cmtrack.report.review import Review, verdict

        return printable(" ".join(verdict(Review(self))))

    def figures(self) -> Mapping[str, Figure]:
        """Draw all figures that apply to this comparison, and return the figures by name."""
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
        """Write the review of this comparison to a file.

        Parameters
        ----------
        path : path
            Path of the file. The ending ``.html`` selects a self-contained page, ``.md`` selects
            Markdown for a pull request, and ``.json`` selects plain data.
        title : str, optional
        rows : bool, default True
            Whether the page lists individual rows, which are ten rows that the recommended run
            predicts wrongly although another run predicts them correctly. Ids are shown only if
            they were stored with the rows (``CMTRACK_ROW_IDS``).
        table, row_ids, images : optional
            Additional columns and images to show with the listed rows, as in
            :meth:`cmtrack.Evaluation.report`.

        Returns
        -------
        Path
            Path of the file.

        Raises
        ------
        ValueError
            If the file name has a different ending, or if the rows of the table do not match the
            rows of the runs.
        """
        from cmtrack.report.review.report import write

        return write(self, Path(path), title, rows, table, row_ids, images)

    def bundle(self, path: str | Path, *, rows: bool = True, title: str | None = None) -> Path:
        """Write a ZIP file with the review and all data from which the review is computed.

        The command ``cmtrack verify`` checks such a file. The file contains the review as a page,
        as Markdown and as plain data. The file also contains the rule, the statistics and the rows
        of each run, and a manifest with the SHA-256 digest of each part. The same comparison always
        produces an identical file, byte for byte. Predicted probabilities are stored with 7 digits;
        for evaluations in memory, the review is computed from these rounded probabilities.

        Parameters
        ----------
        path : path
            Path of the file; it must end in ``.zip``.
        rows : bool, default True
            Whether to include the predictions by row. ``cmtrack verify`` needs the predictions to
            recompute paired differences. If the predictions are missing, the command reports the
            numbers that it cannot recompute.
        title : str, optional

        Returns
        -------
        Path
            Path of the file.

        Raises
        ------
        ValueError
            If the file name does not end in ``.zip``, or if the comparison was not made by
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

        A review is also logged if its gates stopped every run; in that case, the headline and the
        tag ``cmtrack.decision`` report this.

        The tags are ``cmtrack.rank``, ``cmtrack.review`` (the review's run) and
        ``cmtrack.rank_by``. A labelled paragraph with the decision, the rank and a link to the
        review is added to the descriptions of the compared runs and their models. The paragraph and
        the tags are also added to the versions of the chosen run in the model registry. All other
        text in the descriptions remains unchanged.

        Parameters
        ----------
        experiment_name : str, optional
            Experiment to which the review is logged. The default is ``"<name>: reviews"``, where
            ``<name>`` is the experiment of the chosen run or, if no run is chosen, the experiment
            of the first compared run. The experiment is created if it does not exist. A separate
            experiment keeps the review out of MLflow's evaluation view, which then lists only the
            compared runs.
        run_name : str, optional
        alias : str, optional
            Alias to set for the chosen run's version of the registered model, such as
            ``"challenger"``. By default no alias is set, because a serving system may use aliases.
        registered_model : str, optional
            Name of the registered model, if the chosen run has versions of several models.

        Raises
        ------
        ValueError
            If no run was evaluated, the runs are not in a store, or the chosen run has no version
            for the alias.
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
        """Save a view of the experiment in MLflow, and return its link.

        The view is MLflow's own list of runs and charts, sorted by the criterion, with only the
        columns and charts that matter for this ranking. A link to the view is added to the start of
        the experiment's description.

        Parameters
        ----------
        name : str, optional
            Name of the view, at most 100 characters; by default it names the criterion. A view of
            the same name is replaced.

        Returns
        -------
        SavedView
            A view of the experiment of the chosen run or, if no run is chosen, of the first
            compared run. A view shows only one experiment, and its notes state the number of
            compared runs in other experiments.

        Raises
        ------
        ValueError
            If the runs are not in a store, if the server's version of MLflow is not known to
            support saved views, or if the server rejects the view.
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

    # -- resolution of the test set, and how often it was used -------------------------------------

    @cached_property
    def resolution(self) -> Resolution:
        """Differences that these rows can detect, and rows needed to detect a given difference.

        Raises ValueError if models are ranked, if the criterion consists of several metrics, or if
        only one run is ranked.
        """
        return resolution_of(self.ranking, int(self.how.get("seed", 0)))

    @cached_property
    def looks(self) -> Looks:
        """Number of runs evaluated on these rows, and the leader's value corrected for selection.

        Raises ValueError if models are ranked, or if the criterion consists of several metrics.
        """
        ranking = self.ranking
        if ranking is None:
            raise ValueError("no run is ranked, so there is no highest value")
        digest = ranking.evaluation.labels_digest
        same_rows = {run.run_id for run in self.judged if run.evaluation.labels_digest == digest}
        # a run without a value cannot be chosen
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

    # -- assertions for tests and pipelines --------------------------------------------------------

    def assert_not_worse(
        self, baseline: str, *, margin: float, run: str | None = None, metric: str | None = None
    ) -> None:
        """Raise AssertionError unless a run is shown to be at most ``margin`` worse than another.

        The interval of the paired difference decides, as in a gate on ``.difference.low``. If the
        rows cannot decide, the message gives the number of further rows that would.

        Parameters
        ----------
        baseline : str
            Name or id of the run to compare with.
        margin : float
            Largest accepted loss, in units of the metric.
        run : str, optional
            Name or id of the run to check; by default the best of the other runs.
        metric : str, optional
            By default the metric that ranks the runs.

        Raises
        ------
        AssertionError
            If the run is worse by more than the margin, or if the rows do not exclude it.
        KeyError
            If no run is ranked under this name.
        ValueError
            If the runs were not evaluated on the same data, if the metric has no direction that is
            better, or if models over repeated runs are ranked.

        Examples
        --------
        >>> from cmtrack import compare, evaluate
        >>> y = [0, 1] * 100
        >>> new = evaluate(y, [0, 1] * 89 + [1, 0] * 11)
        >>> runs = {"new": new, "champion": evaluate(y, [0, 1] * 90 + [1, 0] * 10)}
        >>> comparison = compare(runs, rank_by="multiclass/accuracy")
        >>> comparison.assert_not_worse("champion", margin=0.05)
        """
        self._assert_difference(baseline, margin=margin, run=run, metric=metric)

    def assert_better(
        self, baseline: str, *, run: str | None = None, metric: str | None = None
    ) -> None:
        """Raise AssertionError unless a run is shown to be better than another.

        :meth:`assert_not_worse` describes the parameters, the errors and the inference.
        """
        self._assert_difference(baseline, margin=None, run=run, metric=metric)

    def _assert_difference(self, baseline: str, **options: Any) -> None:
        from cmtrack.comparison.assertions import check_difference
        from cmtrack.report.assertions import why_not_shown

        check = check_difference(self, baseline, **options)
        if not check.result.passed:
            raise AssertionError(printable(why_not_shown(check)))

    # -- rows across runs --------------------------------------------------------------------------

    def rows(self, a: str, b: str, kind: str = "broken") -> pd.DataFrame:
        """Return the rows that exactly one of two runs predicts correctly.

        If the criterion belongs to a step of the grouping, such as ``reduced/<step>/accuracy``, a
        prediction is correct if the step accepts the pair of actual and predicted class. If there
        is no step, the predicted class must equal the actual class.

        Parameters
        ----------
        a, b : str
            Names or ids of two runs that were evaluated on the same rows.
        kind : "broken", "fixed" or "changed"
            Rows to return. "broken" rows are those that only ``a`` predicts correctly, and "fixed"
            rows are those that only ``b`` predicts correctly. "changed" rows are those in which the
            predictions differ. Rows are sorted by the decrease ("broken"), the increase ("fixed")
            or the absolute change ("changed") of the probability of the actual class, the largest
            first. If the runs have no probabilities, the rows keep their order.

        Returns
        -------
        DataFrame
            The columns are row, id, weight and group (if the evaluation has them) and actual. For
            each run, the columns include predicted, probability and probability_actual, with the
            run's name as suffix. The last columns contain the segments.

        Raises
        ------
        KeyError
            If a run does not exist.
        ValueError
            If the runs were evaluated on different rows or did not keep their rows. The error
            message names runs that can be compared.

        Warns
        -----
        UserWarning
            If the runs were evaluated on different rows but share some row ids. Only the rows that
            the runs share are compared, and the warning states the number of other rows.

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
        """Return the shares of rows that ``b`` breaks and fixes relative to ``a``.

        Parameters
        ----------
        a, b : str
            As in :meth:`rows`.
        by : str, optional
            Name of a column of the segments by which to divide the rows, or "class" to divide them
            by actual class. If ``by`` is given, the result contains the shares of each part, with
            simultaneous intervals and adjusted p-values.

        Returns
        -------
        Flips
            The shares of broken, fixed and changed rows, with exact intervals.

        Raises
        ------
        KeyError, ValueError
            Under the same conditions as in :meth:`rows`. A ValueError is also raised if the column
            ``by`` does not define segments of the rows.

        Notes
        -----
        The share of broken rows is the negative flip rate that Yan et al. define (2021,
        Positive-congruent training, CVPR). The significance test compares the number of broken rows
        with the number of fixed rows, given their sum. If the rows are not divided, the p-value of
        the significance test is McNemar's mid-p value.
        """
        return rows.flips(self, a, b, by)

    def missed(self, at_least: int | None = None) -> Missed:
        """Return the rows that most runs predict wrongly.

        Parameters
        ----------
        at_least : int, optional
            The frame lists a row if at least this number of runs predict it wrongly; by default,
            all runs must predict it wrongly.

        Returns
        -------
        Missed
            The rows that are predicted wrongly by most of the runs that were evaluated on the
            leader's rows.

        Raises
        ------
        ValueError
            If fewer than two runs, or fewer than ``at_least`` runs, can be compared row by row.
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
    """A comparison of runs.

    Attributes
    ----------
    rankings : tuple of Ranking
        One ranking for each set of runs that were evaluated on the same data in the same way. The
        ranking with the most rows comes first, and parent runs come before their nested runs.

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
    """A comparison of models over repeated runs.

    Attributes
    ----------
    rankings : tuple of RepeatedRanking
        One ranking; none if gates stopped every model.

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
