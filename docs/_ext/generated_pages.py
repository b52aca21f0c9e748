"""Pages that are written from the code at each build, into ``docs/reference/generated``.

The registry of metrics gives an index and a page for each section, the list of figures and the schemas of stored files
give tables that pages of the reference include, and ``benchmarks/README.md``, the one place of the measured figures,
gives a page for each of its sections.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cmtrack import schemas
from cmtrack.comparison.spec import CompareSpec
from cmtrack.evaluation.catalog import SECTIONS
from cmtrack.metrics.metric import BETTER, Metric, Section
from cmtrack.metrics.names import slug
from cmtrack.report import figures

HOUSE = Path(figures.__file__).parent / "templates" / "house.css"
BENCHMARKS = Path(__file__).parents[2] / "benchmarks" / "README.md"


def plain(text: str) -> str:
    """Text in which Markdown finds no marks."""
    return re.sub(r"([\\`*_<>\[\]|${}])", r"\\\1", text)


def cited(source: str) -> str:
    """A source of the registry; each work with its year leads to where the page of sources has it in full."""

    def link(work: re.Match[str]) -> str:
        name = unicodedata.normalize("NFKD", work["name"]).encode("ascii", "ignore").decode()
        return f"[{work[0]}](../../../sources.md#ref-{name.lower()}-{work['year']})"

    return re.sub(
        r"(?:van )?(?P<name>[A-Z][\w-]+)[^;()]*\((?P<year>\d{4})[^)]*\)", link, plain(source)
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)


def _toctree(places: Sequence[str]) -> str:
    return "\n".join(["```{toctree}", ":hidden:", "", *places, "```"]) + "\n"


# -- metrics ---------------------------------------------------------------------------------------------------

SCALES = {
    "wilson": "Wilson",
    "exact": "exact",
    "count": "Wilson, times the number of samples",
    "wald": "Wald",
    "atanh": "atanh",
    "logit": "logit",
    "log": "log",
    "profile": "profile likelihood",
    "square": "of its square",
}
"""Ways of an interval; what they are stands in ``reference/metrics.md``."""
ABOUT = {
    "multiclass": "Of every evaluation of classes. Averages over classes say which average they are, and which classes "
    "they pass over.",
    "class-label": "One set for each class; `<label>` stands for it. They are in `evaluation.class_table()`; MLflow "
    "gets those that `metrics=` names. What each is computed from: "
    "[What the numbers mean](../../../concepts/reading_numbers.md).\n\n"
    "In the formulas C_ii is the number of samples of the class that are predicted as it; the actual and the predicted "
    "total are the sums of its row and of its column in the confusion matrix.",
    "spans": "Of {py:func}`cmtrack.evaluate_spans`: labelled spans, such as entities in texts.",
    "reduced-step": "Of each step of a grouping, with its intragroup mismatches (IM) kept apart: "
    "[The reduced matrix](../../../concepts/reduced_matrix.md).",
    "binary": "Of the positive one of two classes or groups. The six counts are TP, FN, FP, TN and the intragroup "
    "mismatches IMP (of the positive group) and IMN (of the other): "
    "[Mismatches](../../../concepts/mismatches.md), [The ceiling](../../../concepts/ceiling.md).\n\n"
    "In the formulas P_actual = TP + FN + IMP, P_predicted = TP + FP + IMP, and n is the sum of all six. NPV is the "
    "negative predictive value, FNR the miss rate, FPR the fall-out, FDR and FOR the false discovery and "
    "false omission rates. PIMR and NIMR are the mismatches' shares of the actual positives and negatives, PPIMR and "
    "NPIMR those of the predicted ones.",
    "cost": "Where costs are given: [Costs and thresholds](../../../guide/decisions.md).",
    "probability": "Proper scores of the probabilities: "
    "[Are the probabilities right?](../../../guide/probabilities.md)",
    "probability-step": "The [scores of the classes' probabilities](probability.md) for the groups of each step of a "
    "grouping: the probability of a group is the sum over its classes.",
    "calibration": "Of the positive group's score: [Are the probabilities right?](../../../guide/probabilities.md). "
    "`calibration/error` is a lower bound: within a bin, scores that are too high and too low cancel. Its bins hold "
    "equal parts of the sample, so for nearly perfect models, whose scores are close to 0 and 1, what it estimates "
    "differs from sample to sample: judge those by the p-value and the curve. The p-value with `groups=` or sampling "
    "weights is the larger one of two tests, of drawn labels and of drawn signs.",
    "confidence": "Of the probability that the prediction is a hit: "
    "[Are the probabilities right?](../../../guide/probabilities.md)",
    "confidence-step": "The [metrics of the confidence](confidence.md) for each step of a grouping: a sample is a hit "
    "where the reduced matrix counts it as one, so that an intragroup mismatch is none.",
    "spcc": "The sample Pearson correlation of what is actual and the scores: [sPCC](../../../concepts/spcc.md).",
    "prevalence": "How many positives there are: "
    "[How many positives are there?](../../../guide/count_positives.md). Without `calibration=` the evaluated "
    "rows calibrate themselves: those that begin with `calibrated` are then close to the actual share by construction. "
    "Of more than two classes there is one set for each, `<label>` stands for it.",
    "family": "Of {py:func}`cmtrack.evaluate_families`: a set of codes for each document, and codes in families. "
    "Those with `<family>` are of one family.",
    "flips": "Of a run and the baseline that it is compared with, `compare(..., against=)`, by rows that both judged; "
    "they are for gates: [The rows behind a number](../../../guide/which_run.md). `comparison.flips(a, b)` has them "
    "with a test. A row is broken where only the baseline is right, fixed where only the run is.",
    "rough": "Bounds that a confusion matrix gives, and what a {py:class}`cmtrack.GranuleTable` knows exactly: "
    "[Rough sets](../../../concepts/rough_sets.md).",
}
"""What a section is, by the name of its page."""
TITLES = {"family": "Codes in families"}
"""Of pages, where the one over a report's numbers says less."""


def interval(metric: Metric) -> str:
    """How its interval is made, in a word or two."""
    return metric.function.scale or SCALES.get(metric.interval, "none")


def scope(metric: Metric) -> str:
    """Its range."""
    if metric.low == 0 and metric.high == math.inf:
        return "≥ 0"
    return f"{metric.low:g} … {metric.high:g}".replace("inf", "∞").replace("-", "−")


def index() -> str:
    """The table of all metrics: a line for each, with a link to its words."""
    rows = []
    for section in SECTIONS:
        for metric in section.metrics:
            name = f"[`{metric.name}`](generated/metrics/{section.page}.md#{slug(metric.name)})"
            title = plain(_title(metric)) + (" **•**" if metric.headline else "")
            rows.append((name, title, _better(metric) or "–"))
    return _table(("metric", "title", "better"), rows)


def section_page(section: Section) -> str:
    """The page of a section: a heading, an anchor and what the registry knows of each metric."""
    title = TITLES.get(section.name) or re.sub(r": \{step\}", ", by step", section.title)
    parts = [f"# {plain(title)}\n", ABOUT[section.page], ""]
    for metric in section.metrics:
        parts += [f"({slug(metric.name)})=", f"## {plain(_title(metric))}\n", f"`{metric.name}`\n"]
        known = {
            "Formula": plain(metric.formula),
            "Range": scope(metric),
            "Better": _better(metric) or "neither, it is not ranked",
            "Interval": f"[{interval(metric)}](../../metrics.md#the-intervals)",
            "Computed from": metric.needs,
            "Undefined (NaN)": metric.reason and f"where {plain(metric.reason)}",
            "In MLflow": "logged by default"
            if metric.headline
            else "where [`metrics=`](../../metrics.md) names it",
            "Source": cited(metric.source),
        }
        parts += [f":{field}: {text}" for field, text in known.items() if text] + [""]
    return "\n".join(parts)


def _better(metric: Metric) -> str:
    """The direction that is better: higher, lower, nearest zero, or none."""
    return BETTER.get(metric.better, "").removesuffix(" is better").removesuffix(" is best")


def _title(metric: Metric) -> str:
    """Its title with the parts that vary as they stand in its name, first letter large."""
    if (
        not metric.title
        and metric.name.startswith("binary/")
        and len(metric.name) <= len("binary/ppimr")
    ):
        return metric.name.removeprefix("binary/").upper()
    title = metric.heading().format_map(
        {part: f"<{part}>" for part in re.findall(r"<(\w+)>", metric.name)}
    )
    return (
        title if title[:2].isupper() or title.startswith("sPCC") else title[0].upper() + title[1:]
    )


def metrics() -> dict[str, str]:
    """The index of metrics, and the page of each section."""
    written = {f"metrics/{section.page}": section_page(section) for section in SECTIONS}
    listed = f"{index()}\n{_toctree([f'generated/{place}' for place in written])}"
    return {f"{place}.md": text for place, text in written.items()} | {"metrics_index.txt": listed}


# -- figures ---------------------------------------------------------------------------------------------------

KINDS = {
    "Of an evaluation": (
        figures.CLASSES,
        "`evaluation.figures()[name]`, the report and the files of a run. A run gets those without “on request”; "
        "`figures()`, `Evaluation.report` and `cmtrack evaluate --output` draw all of them.",
        False,
        "evaluation",
    ),
    "Of sets of codes in families": (
        figures.FAMILIES,
        "`evaluation.figures()[name]` of {py:func}`cmtrack.evaluate_families`, its report and its run.",
        False,
        "families",
    ),
    "Of a comparison of runs": (
        figures.RUNS,
        "`comparison.figures()[name]`, and the review.",
        True,
        "runs",
    ),
    "Of a comparison over repeated runs": (
        figures.MODELS,
        "`comparison.figures()[name]` of `compare(..., block=...)`, and the review.",
        True,
        "models",
    ),
}
"""Heading, entries, how one gets them, whether their files are those of a review, and of what the picture is."""


def figure_list() -> dict[str, str]:
    """The list of all figures: name, title, how to read it, the file in a run."""
    parts = []
    for heading, (entries, where, review, key) in KINDS.items():
        parts += [f"## {heading}\n", where, ""]
        for entry in entries:
            stem = entry.name.split("<")[0]
            file = (
                figures.file_name(stem, review=review).removesuffix(".png")
                + entry.name[len(stem) :]
                + ".png"
            )
            request = "" if entry.logged else " · on request"
            parts += [
                f"### {plain(entry.title)}\n",
                f"`{entry.name}` · file `{file}`{request}\n",
                plain(entry.reading),
                "",
                f"```{{glue:any}} {key}: {entry.name}\n```\n",
            ]
    return {"figures_list.txt": "\n".join(parts)}


# -- stored files ----------------------------------------------------------------------------------------------

FILES = {
    "EVALUATION": "`cmtrack_evaluation.json`, of classes and of families",
    "ENTRY": "`entry.json` of the spool",
    "MANIFEST": "`manifest.json` of the spool, in versions before 0.3",
    "INTENT": "`intent.json` of the spool, in versions before 0.3",
    "REVIEW": "a review as JSON",
    "BUNDLE": "`manifest.json` of a bundle",
}
"""Files by the name of their schema in :mod:`cmtrack.schemas`."""


def file_tables() -> dict[str, str]:
    """The table of schemas, and that of a rule's keys."""
    rows = []
    for name, stored in vars(schemas).items():
        if isinstance(stored, schemas.Stored):
            older = ", ".join(
                f"{number} is read, and written as {number + 1}" for number in stored.migrations
            )
            rows.append((FILES[name], stored.newest, older or "none"))
    keys = [(f"`{key}`", plain(one.form)) for key, one in CompareSpec.deciding().items()]
    return {
        "schemas.txt": _table(("file", "schema", "files of older schemas"), rows),
        "rule.txt": _table(("key", "value"), keys),
    }


# -- benchmarks ------------------------------------------------------------------------------------------------


def sections() -> dict[str, str]:
    """The text of each section of the benchmarks by its heading, with the headings inside it one level higher."""
    parts = re.split(r"^## (.+)\n", BENCHMARKS.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    bodies = [re.sub(r"^##(#+ )", r"#\1", body, flags=re.MULTILINE) for body in parts[1::2]]
    return dict(zip(parts[::2], bodies, strict=True))


def benchmarks() -> dict[str, str]:
    """A page for each section, and the list of them that ``benchmarks.md`` includes."""
    written = {
        f"benchmarks/{slug(title)}": f"# {title}\n{body}" for title, body in sections().items()
    }
    listed = _toctree([f"reference/generated/{place}" for place in written])
    return {f"{place}.md": text for place, text in written.items()} | {"benchmarks.txt": listed}


# -- writing ---------------------------------------------------------------------------------------------------


def pages() -> dict[str, str]:
    """Every page and table by its place under ``reference/generated``."""
    return metrics() | figure_list() | file_tables() | benchmarks()


def colours() -> str:
    """The colours of reports, by which figures are drawn, for the two schemes of the site."""
    light, dark = re.findall(
        r":root \{\s*color-scheme: \w+;(.*?)\}", HOUSE.read_text(encoding="utf-8"), re.DOTALL
    )
    return f"html {{{light}}}\nhtml[data-theme=dark] {{{dark}}}\n"


def write(app: Any, config: Any) -> None:
    """Write each page that is not as it should be; others keep their time, by which Sphinx knows what to read anew."""
    docs = Path(app.srcdir)
    files = {docs / "reference" / "generated" / place: text for place, text in pages().items()}
    for file, text in {**files, docs / "_build" / "static" / "colours.css": colours()}.items():
        if not file.is_file() or file.read_text(encoding="utf-8") != text:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Write the pages before Sphinx looks for its files."""
    app.connect("config-inited", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
