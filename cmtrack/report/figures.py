"""List of all figures, with the name, title, reading instructions and drawing function of each.

The list of figures is used by reports, reviews, logged runs and the command line. To add a figure,
write a function that draws it and add one entry here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from cmtrack import archive
from cmtrack.base import BaseEvaluation
from cmtrack.comparison.result import Comparison, ModelComparison, RunComparison
from cmtrack.metrics.names import encode_label, near
from cmtrack.plots import evaluation as of_classes
from cmtrack.plots import families as of_families
from cmtrack.plots.style import as_png
from cmtrack.plots.svg import CSS_DPI, as_svg, as_svg_and_png
from cmtrack.report.formatting import BETWEEN, short
from cmtrack.report.review import figures as of_comparisons
from cmtrack.report.segments import segments_figure, views

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OnError: TypeAlias = Callable[[str, Exception], object]
Step: TypeAlias = Callable[[str, int, int], object]
Result = TypeVar("Result")


@dataclass(frozen=True)
class FigureEntry:
    """One figure of the list.

    ``name``: key of the figure in :meth:`Evaluation.figures`, which is also the name of its file.
        A name such as ``reduced_<step>`` stands for one figure per part of the evaluation, in this
        case one figure per grouping step.
    ``title``: heading of the figure; ``<step>`` in the heading stands for the name of the part.
    ``reading``: at most two lines on how to read the figure, true of every such figure.
    ``draw``: function that draws the figure. The arguments of this function are the evaluation (or
        the ranking of a comparison) and, if the figure has parts, one part. The function returns
        the figure, or None if the figure does not apply.
    ``parts``: function that takes the evaluation and returns the name and the part for each figure.
    ``section``: key of the question that the figure answers in a report, in
        :data:`cmtrack.report.narrative.QUESTIONS`.
    ``chart``: function that takes the evaluation, and the run and the step as words for the title.
        The function returns the run's image for MLflow's charts, or None. MLflow shows the image
        256 pixels wide, next to the images of other runs.
    ``logged``: "file" if the figure is logged as a file and in the run's report; "report" if the
        figure is logged only in the report; "" if the figure is logged only on request. Each
        additional figure makes logging slower. ``report`` also draws
        the other figures that pages show; ``figures`` and the command line draw all figures.
    ``on_pages``: whether pages show the figure; otherwise it is drawn only on request.
    ``about_classes``: whether the figure is about all classes, so that pages do not show it if the
        evaluation has a positive group.
    ``folded``: whether pages show the figure in a collapsed section, because few readers need it.
    """

    name: str
    title: str
    reading: str
    draw: Callable[..., Figure | None]
    parts: Callable[[Any], Iterable[tuple[str, Any]]] | None = None
    section: str = "good"
    chart: Callable[[Any, str, str], Figure | None] | None = None
    logged: str = "report"
    on_pages: bool = True
    about_classes: bool = False
    folded: bool = False

    def is_on_page(self, subject: Any) -> bool:
        """Return True if the page of an evaluation, or of a ranking, shows the figure."""
        if self.about_classes and subject.positive is not None:
            return False
        return self.on_pages

    def drawings(self, subject: Any) -> list[tuple[str, str, Callable[[], Figure | None]]]:
        """Return the name, the title and the drawing function of each figure of an entry."""
        if self.parts is None:
            return [(self.name, self.title, partial(self.draw, subject))]
        place = self.name[self.name.index("<") :]
        return [
            (
                self.name.replace(place, name),
                self.title.replace(place, name),
                partial(self.draw, subject, part),
            )
            for name, part in self.parts(subject)
        ]


@dataclass(frozen=True)
class Picture:
    """A drawn figure, as a PNG file and as an SVG element.

    ``name``, ``title``, ``reading``, ``section``, ``folded``: as in :class:`FigureEntry`.
    ``file``: name of the PNG file.
    ``content``: content of the PNG file; empty if only the SVG element was drawn.
    ``svg``: the SVG element for a page.
    ``width``: width of the SVG element in CSS pixels.
    ``chart``: content of the PNG file for MLflow's charts; empty if there is no such file.
    """

    name: str
    title: str
    reading: str
    file: str
    content: bytes = b""
    svg: str = ""
    width: float = 0.0
    section: str = "good"
    chart: bytes = b""
    folded: bool = False


@dataclass(frozen=True)
class About:
    """Facts about the run, which a small line below each figure shows.

    ``run``: name of the run; empty if unknown.
    ``data``: name of the evaluated data; empty if unknown.
    ``date``: the date of the evaluation; empty if unknown.
    ``step``: step of the run, such as an epoch.
    """

    run: str = ""
    data: str = ""
    date: str = ""
    step: int | None = None

    @property
    def step_words(self) -> str:
        """Text for the step, such as ``step 7``.

        The text is empty if there is no step.
        """
        return "" if self.step is None else f"step {self.step}"

    @property
    def signature(self) -> str:
        """The text line below a figure, such as ``svm · step 7 · ANES 1996, test · 2026-11-22``."""
        return BETWEEN.join(
            short(part) for part in (self.run, self.step_words, self.data, self.date) if part
        )


_COMES_TRUE = (
    "On the dotted line, a score of 30% comes true 30% of the time. Where the curve is below the "
    "line, scores are too high; above it, they are too low."
)
_CROSSING = "If two curves cross, neither run is better at every threshold."


CLASSES = (
    FigureEntry(
        "confusion_matrix",
        "Confusion matrix",
        "Rows are actual classes and columns are predicted classes, so correct predictions are on "
        "the diagonal. Colours show shares of the actual class.",
        of_classes.confusion_matrix_figure,
        section="confusions",
        chart=of_classes.confusion_chart,
        logged="file",
    ),
    FigureEntry(
        "reduced_<step>",
        "Reduced confusion matrix “<step>”",
        "Rows are actual groups and columns are predicted groups. Colours show shares of the "
        "actual group.",
        of_classes.reduced_figure,
        parts=lambda evaluation: [(str(step.name), step) for step in evaluation.reduced],
        section="confusions",
        logged="file",
    ),
    FigureEntry(
        "roc",
        "ROC curve",
        "The closer the curve is to the top left corner, the better. The dotted line shows random "
        "guessing.",
        of_classes.roc_figure,
        logged="file",
    ),
    FigureEntry(
        "precision_recall",
        "Precision and recall",
        "Precision is the share of positive predictions that are correct. Recall is the share of "
        "positive rows that are found. The closer the curve is to the top right corner, the "
        "better.",
        of_classes.precision_recall_figure,
        folded=True,
    ),
    FigureEntry(
        "class_curves",
        "Each class against all others",
        "Each curve treats one class as positive and all others as negative. The score is the "
        "probability of the class. Higher curves are better in all three panels.",
        of_classes.class_curves_figure,
        logged="",
        about_classes=True,
        folded=True,
    ),
    FigureEntry(
        "reliability",
        "Reliability",
        f"{_COMES_TRUE} The lower panel shows how often each score occurs.",
        of_classes.reliability_figure,
        section="probabilities",
    ),
    FigureEntry(
        "reliability_classes",
        "Reliability by class",
        "The first panel shows the probability of the predicted class. Each of the other panels "
        "shows the probability of one class, with p adjusted for the number of classes.",
        of_classes.reliability_classes_figure,
        section="probabilities",
        logged="",
        about_classes=True,
        folded=True,
    ),
    FigureEntry(
        "spcc_matrix",
        "One-vs-one sPCC at equal shares",
        "The correlation between a class and its score among the rows of two classes with equal "
        "weight. 1 means that the score is constant within each class, 0 that both classes have "
        "the same mean score.",
        of_classes.spcc_figure,
        section="confusions",
        # The pairs of a good model differ little, and the metrics state the smallest value.
        on_pages=False,
    ),
    FigureEntry(
        "score_histogram",
        "Score histogram",
        "Each histogram shows the scores of one actual class. The less the histograms overlap, "
        "the better a threshold separates the classes.",
        of_classes.score_figure,
        section="probabilities",
        logged="",
        # The reliability figure also shows how often each score occurs.
        on_pages=False,
    ),
    FigureEntry(
        "prevalence_likelihood",
        "Estimated share of positives",
        "The first line shows the share of positives estimated from the scores, with its "
        "confidence interval. The next lines show the actual share and simpler estimates.",
        of_classes.likelihood_figure,
        section="prevalence",
    ),
    FigureEntry(
        "at_prevalence",
        "At other shares of positives",
        "Shows the accuracy if positives were rarer or more common and nothing else changed.",
        of_classes.at_prevalence_figure,
        logged="",
        folded=True,
    ),
    FigureEntry(
        "decision_curve",
        "Decision curve",
        "Net benefit subtracts the cost of false alarms from the hits per row. At a threshold of "
        "5%, one hit is worth 19 false alarms. The score is useful wherever its curve is above "
        "both other lines.",
        of_classes.decision_curve_figure,
        logged="",
        folded=True,
    ),
    FigureEntry(
        "gains",
        "Gains",
        "Shows the share of positives that are found if the rows with the highest scores are "
        "predicted positive (higher is better). Lift divides this recall by the share of rows that "
        "are predicted positive.",
        of_classes.gains_figure,
        logged="",
        folded=True,
    ),
    FigureEntry(
        "risk_coverage",
        "Risk by coverage",
        "The error rate if you accept only the most confident predictions and hand the rest to a "
        "person (lower is better). The dotted line shows what uninformative confidence would give.",
        of_classes.risk_coverage_figure,
        section="probabilities",
        logged="",
        about_classes=True,
        folded=True,
    ),
    FigureEntry(
        "segments_<column>",
        "Segments by <column>",
        "Segments are ordered by the first panel, worst first. The dashed line marks "
        "the value for all rows.",
        segments_figure,
        parts=lambda evaluation: [(view.name, view) for view in views(evaluation)],
        section="failures",
        logged="file",
    ),
)
"""Figures of an :class:`~cmtrack.Evaluation`."""

FAMILIES = (
    FigureEntry(
        "family_matrix",
        "The family with the most confused labels",
        "Rows are actual codes and columns are predicted codes, so matches are on the diagonal. "
        "The separate row and column are for codes that are out of family (OOF).",
        of_families.worst_matrix_figure,
        section="confusions",
        chart=of_families.family_chart,
        logged="file",
    ),
    FigureEntry(
        "worst_families",
        "Families with the most confused labels",
        "Rows are actual codes and columns are predicted codes. The last column is for codes that "
        "are out of family (OOF).",
        of_families.worst_families_figure,
        section="confusions",
        logged="file",
    ),
    FigureEntry(
        "code_shares",
        "The code with the largest share of confused labels",
        "The left panel shows the actual codes when this code is predicted. The right panel shows "
        "the predicted codes when this code is the correct one.",
        of_families.worst_code_figure,
        section="confusions",
        logged="file",
    ),
)
"""Figures of a :class:`~cmtrack.FamilyEvaluation`."""

RUNS = (
    FigureEntry(
        "ranking",
        "Ranking",
        "The left panel shows each run's value with its confidence interval. The right panel "
        "shows the difference from the best other run.",
        of_comparisons.ranking_figure,
    ),
    FigureEntry(
        "metrics",
        "Headline metrics",
        "Each column shows a metric in which the runs differ. You face a trade-off if a run is "
        "good in one column and bad in another.",
        of_comparisons.metrics_figure,
    ),
    FigureEntry(
        "confusion_difference",
        "Which confusions change",
        "Compares the confusion matrices of the chosen run and its closest rival.",
        of_comparisons.confusion_difference_figure,
    ),
    FigureEntry(
        "confusion_matrices",
        "Confusion matrices",
        "Rows are actual classes and columns are predicted classes. Colours show shares of the "
        "actual class.",
        of_comparisons.confusion_matrices_figure,
        folded=True,
    ),
    FigureEntry(
        "roc",
        "ROC curves",
        f"The closer a curve is to the top left corner, the better. {_CROSSING}",
        of_comparisons.roc_figure,
        folded=True,
    ),
    FigureEntry(
        "class_curves",
        "Classes against all others",
        "Shows the classes with the smallest areas under the ROC curve in the first run. Higher "
        f"curves are better in all panels. {_CROSSING}",
        of_comparisons.class_curves_figure,
        folded=True,
    ),
    FigureEntry(
        "precision_recall",
        "Precision and recall",
        f"The closer a curve is to the top right corner, the better. {_CROSSING}",
        of_comparisons.precision_recall_figure,
        folded=True,
    ),
    FigureEntry(
        "reliability",
        "Reliability",
        _COMES_TRUE,
        of_comparisons.reliability_figure,
        # The page has a table of calibrations, and the curves of two compared runs.
        on_pages=False,
    ),
    FigureEntry(
        "rank_distribution",
        "How certain the ranks are",
        "Each row shows the probabilities of one run's possible ranks. The first column shows the "
        "probability that the run is the best.",
        of_comparisons.rank_distribution_figure,
        # The page bases its answer on tests, and readers might mistake these probabilities for the
        # answer.
        on_pages=False,
    ),
    FigureEntry(
        "parameter",
        "Effect of a parameter",
        "Shows how the metric changes with the value of one parameter. Each point is one run.",
        of_comparisons.parameter_figure,
    ),
)
"""Figures of a comparison of runs, drawn from its first ranking."""

MODELS = (
    FigureEntry(
        "metric_by_block",
        "Every model in every block",
        "Each column shows one block, such as a seed, a fold or a data set.",
        of_comparisons.metric_by_block_figure,
    ),
)
"""Figures of a comparison that ranks models over repeated runs."""


def listed(subject: BaseEvaluation | Comparison) -> tuple[tuple[FigureEntry, ...], Any]:
    """Return the figure entries for a subject, and the object to pass to their functions.

    The object is the evaluation itself, or the first ranking of a comparison. Raises TypeError if
    the subject is neither an evaluation nor a comparison.
    """
    if isinstance(subject, BaseEvaluation):
        return {archive.CLASSES: CLASSES, archive.FAMILIES: FAMILIES}[subject.kind], subject
    for kind, entries in {RunComparison: RUNS, ModelComparison: MODELS}.items():
        if isinstance(subject, kind):
            return (() if subject.ranking is None else entries), subject.ranking
    raise TypeError(f"subject must be an evaluation or a comparison, got {subject!r:.60}")


def file_name(name: str, *, review: bool = False) -> str:
    """Return the name of a figure's file, which is the same in folders and in logged runs.

    ``name``: name of the figure, as in :meth:`Evaluation.figures`.
    ``review``: whether the figure belongs to a comparison.
    """
    prefix = "cmtrack_review_" if review else "cmtrack_"
    return f"{prefix}{encode_label(name).replace(' ', '_')}.png"


class DrawnFigures(Mapping[str, "Figure"]):
    """The figures of an evaluation or comparison, by name, which are drawn on first access.

    A figure must be drawn to find out whether it applies, so listing or counting the figures draws
    all of them.
    """

    def __init__(self, subject: BaseEvaluation | Comparison) -> None:
        entries, shown = listed(subject)
        self._draws = {name: draw for entry in entries for name, _, draw in entry.drawings(shown)}
        self._drawn: dict[str, Figure | None] = {}

    def _figure(self, name: object) -> Figure | None:
        if not isinstance(name, str) or name not in self._draws:
            return None
        if name not in self._drawn:
            self._drawn[name] = self._draws[name]()
        return self._drawn[name]

    def __getitem__(self, name: str) -> Figure:
        figure = self._figure(name)
        if figure is None:
            raise KeyError(
                f"there is no figure {name!r}, use one of {', '.join(map(repr, self)) or 'none'}"
            )
        return figure

    def __contains__(self, name: object) -> bool:
        return self._figure(name) is not None

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._draws if self._figure(name) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"<figures: {', '.join(self) or 'none'}>"


def draw_figures(
    subject: BaseEvaluation | Comparison, on_error: OnError | None = None
) -> Mapping[str, Figure]:
    """Return every figure that applies, by name.

    ``on_error``: a function that is called with the name and the error of each figure that fails.
        If ``on_error`` is given, all figures are drawn at once, and the mapping omits the figures
        that fail. By default, each figure is drawn when it is first accessed, and errors are raised
        at that time.
    """
    if on_error is None:
        return DrawnFigures(subject)
    return {name: figure for _, name, _, figure in _drawn(*listed(subject), on_error)}


def draw_pictures(
    subject: BaseEvaluation | Comparison,
    problems: list[str] | None = None,
    step: Step | None = None,
    figures: str | Sequence[str] = "pages",
    files: bool = True,
    about: About | None = None,
) -> dict[str, Picture]:
    """Draw the figures that apply, and return a mapping from their names to pictures.

    ``problems``: a list to which a sentence is added for each figure that fails; the result omits
        these figures. If ``problems`` is None, the error is raised.
    ``step``: a function that is called before each figure is drawn.
    ``figures``: "all" for every figure, "pages" for the figures that pages show, "auto" for the
        figures that are logged to a run (:attr:`FigureEntry.logged`), or the names of figures.
    ``files``: whether to make PNG files in addition to SVG elements. If ``figures`` is "auto", PNG
        files are made for only some figures.
    ``about``: facts about the run, which a small line below each figure shows. If ``about`` is
        given, the images for MLflow's charts are always drawn.
    """
    signature = "" if about is None else about.signature
    entries, shown = listed(subject)
    is_review = isinstance(subject, Comparison)

    def failed(name: str, error: Exception) -> None:
        if problems is None:
            raise error
        problems.append(f"figure {name}: {type(error).__name__}: {error}")

    def is_wanted(entry: FigureEntry, name: str) -> bool:
        if not isinstance(figures, str):
            return name in figures
        if figures == "all":
            return True
        return entry.is_on_page(shown) and (figures == "pages" or entry.logged != "")

    def make_picture(entry: FigureEntry, name: str, title: str, figure: Figure) -> Picture:
        png = b""
        if files and (figures != "auto" or entry.logged == "file"):
            svg, png = as_svg_and_png(figure, name, title, signature)
        else:
            svg = as_svg(figure, name, title)
        return Picture(
            name,
            title,
            entry.reading,
            file_name(name, review=is_review),
            png,
            svg,
            float(figure.get_size_inches()[0]) * CSS_DPI,
            entry.section,
            folded=entry.folded,
        )

    pictures = {}
    for entry, name, title, figure in _drawn(entries, shown, failed, step, is_wanted):
        picture = _attempt(name, partial(make_picture, entry, name, title, figure), failed)
        if picture is not None:
            pictures[name] = picture
    if about is not None:
        for entry in entries:
            draw = partial(_chart, entry, shown, about)
            chart = _attempt(f"{entry.name} for the charts", draw, failed)
            if chart:
                # A figure may have a chart without being drawn itself.
                picture = pictures.get(entry.name) or _picture_without_drawing(entry)
                pictures[entry.name] = replace(picture, chart=chart)
    if not isinstance(figures, str):
        names = [entry.name for entry in entries]
        for name in figures:
            if name not in pictures:
                error = ValueError(f"there is no such figure{near(name, names)}")
                failed(name, error)
    return pictures


def _picture_without_drawing(entry: FigureEntry) -> Picture:
    return Picture(
        entry.name, entry.title, entry.reading, file_name(entry.name), section=entry.section
    )


def _chart(entry: FigureEntry, subject: Any, about: About) -> bytes:
    """Return a run's image for MLflow's charts, or empty bytes if the figure has no such image."""
    figure = None if entry.chart is None else entry.chart(subject, about.run, about.step_words)
    return b"" if figure is None else as_png(figure)


def _attempt(name: str, action: Callable[[], Result], on_error: OnError) -> Result | None:
    """Return the result of an action, or None if it fails and ``on_error`` handles the error."""
    try:
        return action()
    except Exception as error:
        on_error(name, error)
        return None


def _drawn(
    entries: Sequence[FigureEntry],
    subject: Any,
    on_error: OnError,
    step: Step | None = None,
    is_wanted: Callable[[FigureEntry, str], bool] = lambda *_: True,
) -> Iterator[tuple[FigureEntry, str, str, Figure]]:
    """Yield the list entry, the name, the title and the drawing of each figure that applies.

    If a figure fails, the other figures are still drawn.
    """
    # List all figures before drawing the first one, because ``step`` gets the number of figures.
    drawings = []
    for entry in entries:
        named = _attempt(entry.name, partial(entry.drawings, subject), on_error)
        for name, title, draw in named or ():
            if is_wanted(entry, name):
                drawings.append((entry, name, title, draw))
    for number, (entry, name, title, draw) in enumerate(drawings):
        if step is not None:
            step(f"drawing {name}", number, len(drawings))
        figure = _attempt(name, draw, on_error)
        if figure is not None:
            yield entry, name, title, figure
