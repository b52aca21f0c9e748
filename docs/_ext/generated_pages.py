"""Pages that are written from the code at each build, into ``docs/reference/generated``.

The registry of metrics gives an index and a page for each section, the list of figures and the schemas of stored files
give tables that pages of the reference include, and ``benchmarks/README.md``, the one place of the measured figures,
gives a page for each of its sections.
"""

from __future__ import annotations

import inspect
import math
import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cmtrack import schemas
from cmtrack.cli import main
from cmtrack.comparison.spec import CompareSpec
from cmtrack.evaluation.catalog import SECTIONS
from cmtrack.metrics.metric import BETTER, Metric, Section
from cmtrack.metrics.names import slug
from cmtrack.report import figures

HOUSE = Path(figures.__file__).parent / "templates" / "house.css"
BENCHMARKS = Path(__file__).parents[2] / "benchmarks" / "README.md"


def plain(text: str) -> str:
    """Return the text with Markdown's special characters escaped."""
    return re.sub(r"([\\`*_<>\[\]|${}])", r"\\\1", text)


def cited(source: str) -> str:
    """Return a source of the registry; each work with its year is a link to its entry on the page of sources."""

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
    "count": "Wilson, times the number of rows",
    "wald": "Wald",
    "atanh": "atanh",
    "logit": "logit",
    "log": "log",
    "profile": "profile likelihood",
    "effective": "Wilson, at the effective number of rows",
    "square": "of its square",
}
"""Names of the kinds of intervals; ``reference/metrics.md`` explains them."""
ABOUT = {
    "multiclass": "Every evaluation of classes has these metrics. The name of an average says which average it is, and "
    "its text says which classes it does not count.",
    "class-label": "Each class has one set; `<label>` is the class. `evaluation.class_table()` lists them; MLflow "
    "gets the ones that `metrics=` names. [What the numbers mean](../../../concepts/reading_numbers.md) says what each "
    "is computed from.\n\n"
    "In the formulas, C_ii is the number of rows of the class that are predicted as this class. The actual total is "
    "the sum of its row in the confusion matrix, the predicted total is the sum of its column.",
    "ordinal": "You get these metrics with `evaluate(..., ordered=True)`, for classes that have an order, such as "
    "ratings. Class i is at place i in the order of `labels=`; classes that are numbers are sorted.",
    "spans": "{py:func}`cmtrack.evaluate_spans` returns these metrics, for labelled spans such as entities in texts.",
    "reduced-step": "Each step of a grouping has these metrics. Intragroup mismatches (IM) are counted separately: "
    "[The reduced matrix](../../../concepts/reduced_matrix.md).",
    "binary": "These metrics are for the positive one of two classes or groups. The six counts are TP, FN, FP, TN and "
    "the intragroup mismatches IMP (of the positive group) and IMN (of the other group): "
    "[Mismatches](../../../concepts/mismatches.md), [The ceiling](../../../concepts/ceiling.md).\n\n"
    "In the formulas, P_actual = TP + FN + IMP, P_predicted = TP + FP + IMP, and n is the sum of all six. NPV is the "
    "negative predictive value, FNR the miss rate, FPR the fall-out, FDR and FOR the false discovery and "
    "false omission rates. PIMR and NIMR divide the mismatches by the actual positives and negatives, PPIMR and "
    "NPIMR divide them by the predicted positives and negatives.",
    "cost": "You get these metrics if you give costs: [Costs and thresholds](../../../guide/decisions.md).",
    "probability": "These are proper scores of the probabilities: "
    "[Are the probabilities right?](../../../guide/probabilities.md)",
    "probability-step": "These are the [scores of the classes' probabilities](probability.md) for the groups of each "
    "step of a grouping. The probability of a group is the sum over its classes.",
    "calibration": "These metrics are about the score of the positive group: "
    "[Are the probabilities right?](../../../guide/probabilities.md). "
    "`calibration/error` is a lower bound, because scores that are too high and scores that are too low cancel within "
    "a bin. The bins hold equal parts of the rows. For nearly perfect models, with scores close to 0 and 1, the bins "
    "differ between samples, and so does the quantity that the error estimates. Use the p-value and the curve for such "
    "models. With `groups=` or sampling weights, the p-value is the larger one of two tests: one draws labels, the "
    "other draws signs.",
    "confidence": "These metrics are about the probability that the prediction is correct: "
    "[Are the probabilities right?](../../../guide/probabilities.md)",
    "confidence-step": "These are the [metrics of the confidence](confidence.md) for each step of a grouping. A row is "
    "a hit if the reduced matrix counts it as a hit. An intragroup mismatch is not a hit.",
    "spcc": "The sample Pearson correlation between the actual classes and the scores: "
    "[sPCC](../../../concepts/spcc.md).",
    "prevalence": "These metrics estimate how many positives there are: "
    "[How many positives are there?](../../../guide/count_positives.md). Without `calibration=`, the evaluated "
    "rows are also the calibration rows. Metrics whose names begin with `calibrated` are then close to the actual share "
    "by construction. With more than two classes, each class has one set; `<label>` is the class.",
    "family": "{py:func}`cmtrack.evaluate_families` returns these metrics. Each document has a set of codes, and each "
    "code belongs to a family. Metrics with `<family>` in their name are for one family.",
    "flips": "These metrics compare a run with a baseline, `compare(..., against=)`, on the rows that both evaluated. "
    "They are for gates: [The rows behind a number](../../../guide/which_run.md). `comparison.flips(a, b)` returns them "
    "with a test. A row is broken if only the baseline is correct, and fixed if only the run is correct.",
    "rough": "These are bounds that a confusion matrix gives, and exact values that {py:class}`cmtrack.GranuleTable` "
    "computes: [Rough sets](../../../concepts/rough_sets.md).",
}
"""The introduction of a section, by the name of its page."""
TITLES = {"family": "Codes in families"}
"""Titles of pages that say more than the heading in a report."""


def interval(metric: Metric) -> str:
    """Return the kind of the interval in a word or two."""
    return metric.function.scale or SCALES.get(metric.interval, "none")


def scope(metric: Metric) -> str:
    """Return the range of the metric."""
    if metric.low == 0 and metric.high == math.inf:
        return "≥ 0"
    return f"{metric.low:g} … {metric.high:g}".replace("inf", "∞").replace("-", "−")


def index() -> str:
    """Return the table of all metrics: one line each, with a link to its description."""
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
    """Return the better direction: higher, lower, nearest zero, or none."""
    return BETTER.get(metric.better, "").removesuffix(" is better").removesuffix(" is best")


def _title(metric: Metric) -> str:
    """Return the title with its variable parts as in the name, and a capital first letter."""
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
    """Return the index of metrics, and the page of each section."""
    written = {f"metrics/{section.page}": section_page(section) for section in SECTIONS}
    listed = f"{index()}\n{_toctree([f'generated/{place}' for place in written])}"
    return {f"{place}.md": text for place, text in written.items()} | {"metrics_index.txt": listed}


# -- figures ---------------------------------------------------------------------------------------------------

KINDS = {
    "Figures of an evaluation": (
        figures.CLASSES,
        "`evaluation.figures()[name]`, the report and the files of a run. A run does not get the figures marked “on request”. "
        '`figures()`, `figures="all"` and `cmtrack evaluate --output` draw all of them. If there is a positive group, pages do '
        "not show the figures of all classes.",
        False,
        "evaluation",
    ),
    "Figures of codes in families": (
        figures.FAMILIES,
        "`evaluation.figures()[name]` of {py:func}`cmtrack.evaluate_families`, its report and its run.",
        False,
        "families",
    ),
    "Figures of a comparison of runs": (
        figures.RUNS,
        "`comparison.figures()[name]`, and the review.",
        True,
        "runs",
    ),
    "Figures of a comparison over repeated runs": (
        figures.MODELS,
        "`comparison.figures()[name]` of `compare(..., block=...)`, and the review.",
        True,
        "models",
    ),
}
"""Heading: figures, how to get them, whether they belong to a review, and the key of the pictured example."""


def figure_list() -> dict[str, str]:
    """Return the list of all figures: name, title, how to read it, the file in a run."""
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
    "PROMOTION": "`cmtrack_promotion.json` of a promotion",
    "COUNTS": "`counts.json` of counts by cell",
}
"""Files by the name of their schema in :mod:`cmtrack.schemas`."""


def file_tables() -> dict[str, str]:
    """Return the table of schemas and the table of a rule's keys."""
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


# -- commands --------------------------------------------------------------------------------------------------


def commands() -> dict[str, str]:
    """Return a page for each command, and the list of pages that ``cli.md`` includes."""
    written = {}
    for name, command in main.commands.items():
        module = inspect.getmodule(inspect.unwrap(command.callback))
        (attribute,) = (key for key, value in vars(module).items() if value is command)
        written[f"cli/{name}"] = (
            f".. click:: {module.__name__}:{attribute}\n   :prog: cmtrack {name}\n   :nested: none\n"
        )
    listed = _toctree([f"generated/{place}" for place in written])
    return {f"{place}.rst": text for place, text in written.items()} | {"commands.txt": listed}


# -- benchmarks ------------------------------------------------------------------------------------------------


def sections() -> dict[str, str]:
    """Return the text of each section of the benchmarks by its heading; headings inside it move up one level."""
    parts = re.split(r"^## (.+)\n", BENCHMARKS.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    bodies = [re.sub(r"^##(#+ )", r"#\1", body, flags=re.MULTILINE) for body in parts[1::2]]
    return dict(zip(parts[::2], bodies, strict=True))


def benchmarks() -> dict[str, str]:
    """Return a page for each section, and the list of pages that ``benchmarks.md`` includes."""
    written = {
        f"benchmarks/{slug(title)}": f"# {title}\n{body}" for title, body in sections().items()
    }
    listed = _toctree([f"reference/generated/{place}" for place in written])
    return {f"{place}.md": text for place, text in written.items()} | {"benchmarks.txt": listed}


# -- writing ---------------------------------------------------------------------------------------------------


def pages() -> dict[str, str]:
    """Return every page and table by its path under ``reference/generated``."""
    return metrics() | figure_list() | file_tables() | commands() | benchmarks()


def colours() -> str:
    """Return the colours of reports, which the figures use, for the light and the dark site."""
    light, dark = re.findall(
        r":root \{\s*color-scheme: \w+;(.*?)\}", HOUSE.read_text(encoding="utf-8"), re.DOTALL
    )
    return f"html {{{light}}}\nhtml[data-theme=dark] {{{dark}}}\n"


def write(app: Any, config: Any) -> None:
    """Write each page that changed. The others keep their time, so that Sphinx does not read them again."""
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
