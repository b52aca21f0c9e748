"""The list of figures: name, title, how to read it, and the function that draws it.

Reports, reviews, runs and the command line read it. A figure is added by a function that draws it
and one entry here.
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
from cmtrack.names import MAY_BE_BEST, RULED_OUT
from cmtrack.plots import evaluation as of_classes
from cmtrack.plots import families as of_families
from cmtrack.plots.style import as_png
from cmtrack.plots.svg import CSS_DPI, as_svg, as_svg_and_png
from cmtrack.report.formatting import BETWEEN, short
from cmtrack.report.narrative import MISMATCHES
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

    ``name``: key of :meth:`Evaluation.figures`, and what its file is called after.
        ``reduced_<step>`` stands for one figure of each part, here of each grouping step.
    ``title``: its heading for people; ``<step>`` in it stands for the part.
    ``reading``: how to read it, in one or two sentences.
    ``draw``: takes the evaluation, or the ranking of a comparison, and where there are parts one of
        them; gives the figure, or None where it does not apply.
    ``parts``: takes the evaluation; gives name and part of each figure.
    ``section``: key of the question of a report that it answers, in
        :data:`cmtrack.report.narrative.QUESTIONS`.
    ``chart``: takes the evaluation, and for its title a run and a step in words; gives the run's
        image in MLflow's charts, or None. It is shown 256 pixels wide, among those of other runs.
    ``logged``: "file" if a run gets it as a file and in its report, "report" in its report alone,
        "" only if it is asked for by name: each figure makes logging slower. ``figures``,
        ``report`` and the command line draw all.
    ``on_pages``: whether pages show it; else only ``figures`` has it.
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

    def drawings(self, subject: Any) -> list[tuple[str, str, Callable[[], Figure | None]]]:
        """Return name, title and drawing of each figure of an entry."""
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
    """A figure that is drawn.

    ``name``, ``title``, ``reading``, ``section``: as in :class:`FigureEntry`.
    ``file``: name of its PNG file.
    ``content``: the PNG file; empty where none was asked for.
    ``svg``: the element of a page.
    ``width``: of the element, in CSS pixels.
    ``chart``: the PNG file for MLflow's charts, where it has one.
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


@dataclass(frozen=True)
class About:
    """The run that figures are of, for a small line below each.

    ``run``, ``data``, ``date``: names of the run and of the evaluated data, and a date; empty where
        they are not known.
    ``step``: of the run.
    """

    run: str = ""
    data: str = ""
    date: str = ""
    step: int | None = None

    @property
    def step_words(self) -> str:
        """``step 7``."""
        return "" if self.step is None else f"step {self.step}"

    @property
    def signature(self) -> str:
        """``svm · step 7 · ANES 1996, test · 2026-11-22``."""
        return BETWEEN.join(
            short(part) for part in (self.run, self.step_words, self.data, self.date) if part
        )


CLASSES = (
    FigureEntry(
        "confusion_matrix",
        "Confusion matrix",
        "Rows are actual classes, columns predicted ones; the diagonal holds the hits. Colours "
        "are shares of the row; rows of fewer than 20 samples are pale, but for the positive "
        "class. Of more than 12 classes those that are confused stand side by side, of more than "
        "30 the most confused ones and the others as one group.",
        of_classes.confusion_matrix_figure,
        section="confusions",
        chart=of_classes.confusion_chart,
        logged="file",
    ),
    FigureEntry(
        "reduced_<step>",
        "Reduced matrix: <step>",
        f"Rows are actual groups, columns predicted ones. {MISMATCHES}",
        of_classes.reduced_figure,
        parts=lambda evaluation: [(str(step.name), step) for step in evaluation.reduced],
        section="confusions",
        logged="file",
    ),
    FigureEntry(
        "roc",
        "ROC curve",
        "Up and left is better. The dotted line is chance. A dashed level line, where there is "
        "one, is the ceiling: the largest recall that any threshold can reach. The marker shows "
        "the predicted labels.",
        of_classes.roc_figure,
        logged="file",
    ),
    FigureEntry(
        "precision_recall",
        "Precision and recall",
        "Up and right is better: the share of right calls among what is called positive, by the "
        "share of the positives that is found. The dotted line is chance. A dashed upright line, "
        "where there is one, is the ceiling: the largest recall that any threshold can reach. The "
        "marker shows the predicted labels.",
        of_classes.precision_recall_figure,
    ),
    FigureEntry(
        "class_curves",
        "Each class against all others",
        "The probability of a class as a score for it: ROC (up and left is better), precision "
        "over recall (up and right) and gains, the share of the class that is found if so many "
        "samples, highest scores first, are called. Dotted: chance.",
        of_classes.class_curves_figure,
        logged="",
    ),
    FigureEntry(
        "reliability",
        "Reliability",
        "How often each score comes true. On the dotted line a score of 30% is right in 30% of "
        "the samples; below it the score is too high, above it too low. A curve that leaves the "
        "band shows more than chance explains; one that stays in it may still show signs of "
        "miscalibration, by the test. Below: how often each score occurs; where scores are rare, "
        "on a scale of odds.",
        of_classes.reliability_figure,
        section="probabilities",
    ),
    FigureEntry(
        "reliability_classes",
        "Reliability by class",
        "How often each score comes true: the probability of the predicted class, then that of "
        "each class. Below the dotted line the score is too high, above it too low; a curve that "
        "leaves the band shows more than chance explains. Orange: signs of miscalibration, by "
        "p-values adjusted for the number of classes. n: samples that are right, or of the class. "
        "Axes are equal, but both end early where all scores are small.",
        of_classes.reliability_classes_figure,
        section="probabilities",
        logged="",
    ),
    FigureEntry(
        "spcc_matrix",
        "Correlation within pairs of classes (one-vs-one sPCC at equal shares)",
        "The correlation of a class with its score over the rows of two classes, as if both had "
        "equally many: 1 means that the score is constant within each class, 0 that both have the "
        "same mean score. Dark cells are low; grey ones have fewer than 20 rows of a class. Of "
        "more than 12 classes the lowest pairs are shown. The sPCC metrics are those at the "
        "actual shares, which are lower for rare classes.",
        of_classes.spcc_figure,
        section="confusions",
    ),
    FigureEntry(
        "score_histogram",
        "Score histogram",
        "Scores by actual class, as shares of each class. The less the classes overlap, the "
        "better a threshold can separate them.",
        of_classes.score_figure,
        section="probabilities",
        logged="",
    ),
    FigureEntry(
        "prevalence_likelihood",
        "Prevalence likelihood",
        "How plausible each share of positives is, given the scores, if within each class they "
        "are distributed as in the labelled rows. The interval ends where the solid curve crosses "
        "the dotted cut. Lines and marks show the actual share and simpler estimates.",
        of_classes.likelihood_figure,
        section="prevalence",
    ),
    FigureEntry(
        "at_prevalence",
        "At other shares of positives",
        "The accuracy, of groups that of the last step, if positives were rarer or more frequent "
        "and nothing else changed. Where it is grey, answering the same for all samples is as "
        "good. The dotted line is the test set.",
        of_classes.at_prevalence_figure,
        logged="",
    ),
    FigureEntry(
        "decision_curve",
        "Decision curve",
        "Up is better: hits per sample, less false alarms at the price that the threshold stands "
        "for: at 20% a hit is worth four false alarms. The score is of use where its curve lies "
        "above both others, that of calling all samples positive and that of calling none.",
        of_classes.decision_curve_figure,
        logged="",
    ),
    FigureEntry(
        "gains",
        "Gains",
        "Up and left is better: the share of the positives that is found if so many samples, "
        "highest scores first, are called. The lift says how many times more than by chance. A "
        "dashed level line, where there is one, is the ceiling.",
        of_classes.gains_figure,
        logged="",
    ),
    FigureEntry(
        "risk_coverage",
        "Risk by coverage",
        "Down is better: the share of wrong answers if only the most confident ones are accepted "
        "and the others are handed to a person. On the dotted line the confidence says nothing. "
        "Markers are operating points with their intervals; the curve is pale where fewer than 20 "
        "answers are accepted.",
        of_classes.risk_coverage_figure,
        section="probabilities",
        logged="",
    ),
    FigureEntry(
        "segments_<column>",
        "Segments by <column>",
        "Each row is a segment, the worst first; its intervals hold for all segments together. "
        "The dashed line is the value of all samples. Only a segment in orange is shown to be "
        "worse than all samples outside it.",
        segments_figure,
        parts=lambda evaluation: [(view.name, view) for view in views(evaluation)],
        section="failures",
        logged="file",
    ),
)
"""Of an :class:`~cmtrack.Evaluation`."""

FAMILIES = (
    FigureEntry(
        "family_matrix",
        "The family with the most confused labels",
        "Rows are actual codes, columns predicted ones; the diagonal holds the matches. The "
        "separate column and row hold codes that are out of family: no unmatched code of the "
        "family is on the other side.",
        of_families.worst_matrix_figure,
        section="confusions",
        chart=of_families.family_chart,
        logged="file",
    ),
    FigureEntry(
        "worst_families",
        "Families with the most confused labels",
        "Rows are actual codes, columns predicted ones; the last column is out of family (OOF).",
        of_families.worst_families_figure,
        section="confusions",
        logged="file",
    ),
    FigureEntry(
        "code_shares",
        "The code with the largest share of confused labels",
        "Left: the documents in which the code is predicted, by what is actual. Right: the "
        "documents in which it is actual, by what is predicted.",
        of_families.worst_code_figure,
        section="confusions",
        logged="file",
    ),
)
"""Of a :class:`~cmtrack.FamilyEvaluation`."""

RUNS = (
    FigureEntry(
        "ranking",
        "Ranking",
        "Left: the value of each run with its own interval. Right: the difference from the best "
        "other run. Blue runs "
        f"{MAY_BE_BEST}, orange ones are {RULED_OUT}.",
        of_comparisons.ranking_figure,
    ),
    FigureEntry(
        "metrics",
        "Headline metrics",
        "Each column is one metric in which the runs differ. A run that is good in one column and "
        "bad in another is a trade-off.",
        of_comparisons.metrics_figure,
    ),
    FigureEntry(
        "confusion_difference",
        "Which confusions change",
        "The first run against its closest rival: blue cells are better in the first run, orange "
        "ones worse.",
        of_comparisons.confusion_difference_figure,
    ),
    FigureEntry(
        "confusion_matrices",
        "Confusion matrices",
        "Rows are actual classes, columns predicted ones; colours are shares of the row.",
        of_comparisons.confusion_matrices_figure,
    ),
    FigureEntry(
        "roc",
        "ROC curves",
        "Up and left is better. Where curves cross, one has fewer false alarms and the other "
        "fewer misses.",
        of_comparisons.roc_figure,
    ),
    FigureEntry(
        "class_curves",
        "Classes against all others",
        "ROC, precision over recall, and gains of the classes whose areas under the ROC curve are "
        "least in the first run; dotted: chance. Where curves cross, no run is better at every "
        "threshold.",
        of_comparisons.class_curves_figure,
    ),
    FigureEntry(
        "precision_recall",
        "Precision and recall",
        "Up and right is better. Where curves cross, one is more often right in what it calls "
        "positive, and the other finds more of the positives.",
        of_comparisons.precision_recall_figure,
    ),
    FigureEntry(
        "reliability",
        "Reliability",
        "How often each score comes true, of the first runs. On the dotted line a score of 30% "
        "is right in 30% of the samples; below it the score is too high, above it too low.",
        of_comparisons.reliability_figure,
    ),
    FigureEntry(
        "rank_distribution",
        "How certain the ranks are",
        "The probability of each rank of each run; that of rank 1 is the probability of being the "
        "best.",
        of_comparisons.rank_distribution_figure,
        # A reader takes the probability for the answer, and the page answers by tests.
        on_pages=False,
    ),
    FigureEntry(
        "parameter",
        "Effect of a parameter",
        f"The metric by one parameter; the star is the chosen run. Blue runs {MAY_BE_BEST}, "
        f"orange ones are {RULED_OUT}.",
        of_comparisons.parameter_figure,
    ),
)
"""Of a comparison of runs on the same data: its first ranking."""

MODELS = (
    FigureEntry(
        "metric_by_block",
        "Every model in every block",
        "Each column is one block.",
        of_comparisons.metric_by_block_figure,
    ),
)
"""Of a comparison of models over repeated runs."""


def listed(subject: BaseEvaluation | Comparison) -> tuple[tuple[FigureEntry, ...], Any]:
    """Return the entries for a kind of evaluation or comparison, and what their functions take.

    TypeError if it is of no known kind.
    """
    if isinstance(subject, BaseEvaluation):
        return {archive.CLASSES: CLASSES, archive.FAMILIES: FAMILIES}[subject.kind], subject
    for kind, entries in {RunComparison: RUNS, ModelComparison: MODELS}.items():
        if isinstance(subject, kind):
            return (() if subject.ranking is None else entries), subject.ranking
    raise TypeError(f"subject must be an evaluation or a comparison, got {subject!r:.60}")


def file_name(name: str, *, review: bool = False) -> str:
    """Return the file of a figure, in a folder and in a run.

    ``name``: of the figure, as in :meth:`Evaluation.figures`.
    ``review``: whether it is a comparison's.
    """
    prefix = "cmtrack_review_" if review else "cmtrack_"
    return f"{prefix}{encode_label(name).replace(' ', '_')}.png"


class DrawnFigures(Mapping[str, "Figure"]):
    """The figures of an evaluation or comparison by name; each is drawn when it is asked for, once.

    Only drawing tells whether a figure applies: to list or to count them draws all.
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
                f"no figure {name!r} here, use one of {', '.join(map(repr, self)) or 'none'}"
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

    ``on_error``: called for a figure that fails, which is then left out; all are drawn at once. By
        default each is drawn when it is asked for, and its error is raised there.
    """
    if on_error is None:
        return DrawnFigures(subject)
    return {name: figure for _, name, _, figure in _drawn(*listed(subject), on_error)}


def draw_pictures(
    subject: BaseEvaluation | Comparison,
    problems: list[str] | None = None,
    step: Step | None = None,
    figures: str | Sequence[str] = "all",
    files: bool = True,
    about: About | None = None,
) -> dict[str, Picture]:
    """Draw the figures that apply, by name.

    ``problems``: gets a sentence for each figure that fails, which is then left out; by default the
        error is raised.
    ``step``: called before each figure. ``figures``, "all", "auto" or sequence of str, default
        "all": which: every one; those that a run gets (:attr:`FigureEntry.logged`); those of these
        names.
    ``files``: whether PNG files are drawn beside the elements of pages, with "auto" of some; both
        are one drawing.
    ``about``: what they are of, in a small line below each; with it there is an image for MLflow's
        charts, too, whatever is drawn else.
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
        return entry.on_pages and (figures == "all" or entry.logged != "")

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
                # The chart may be all that is drawn of a figure.
                picture = pictures.get(entry.name) or _picture_without_drawing(entry)
                pictures[entry.name] = replace(picture, chart=chart)
    if not isinstance(figures, str):
        names = [entry.name for entry in entries]
        for name in figures:
            if name not in pictures:
                error = ValueError(f"there is none of this name here{near(name, names)}")
                failed(name, error)
    return pictures


def _picture_without_drawing(entry: FigureEntry) -> Picture:
    return Picture(
        entry.name, entry.title, entry.reading, file_name(entry.name), section=entry.section
    )


def _chart(entry: FigureEntry, subject: Any, about: About) -> bytes:
    """Return a run's image for MLflow's charts; empty if the figure has none."""
    figure = None if entry.chart is None else entry.chart(subject, about.run, about.step_words)
    return b"" if figure is None else as_png(figure)


def _attempt(name: str, action: Callable[[], Result], on_error: OnError) -> Result | None:
    """Return what an action makes; None if it fails, once ``on_error`` has the error."""
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
    """Yield entry, name and title of each applicable figure, and the figure.

    A failure does not stop the others.
    """
    # All are listed before the first is drawn: a step says how many there are.
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
