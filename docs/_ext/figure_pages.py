"""The table of figures, from the list that reports, reviews and runs read."""

from __future__ import annotations

from metric_pages import plain

from cmtrack.report import figures

KINDS = {
    "Of an evaluation": (
        figures.CLASSES,
        "`evaluation.figures()[name]`, the report and the files of a run. A run gets those without “on request”; "
        "`figures()`, `Evaluation.report` and `cmtrack evaluate --output` draw all of them.",
        False,
    ),
    "Of sets of codes in families": (
        figures.FAMILIES,
        "`evaluation.figures()[name]` of {py:func}`cmtrack.evaluate_families`, its report and its run.",
        False,
    ),
    "Of a comparison of runs": (figures.RUNS, "`comparison.figures()[name]`, and the review.", True),
    "Of a comparison over repeated runs": (
        figures.MODELS,
        "`comparison.figures()[name]` of `compare(..., block=...)`, and the review.",
        True,
    ),
}
"""Heading, entries, how one gets them, and whether their files are those of a review."""


def pages() -> dict[str, str]:
    """The list of all figures: name, title, how to read it, the file in a run."""
    parts = []
    for heading, (entries, where, review) in KINDS.items():
        parts += [f"## {heading}\n", where, ""]
        for entry in entries:
            stem = entry.name.split("<")[0]
            file = figures.file_name(stem, review=review).removesuffix(".png") + entry.name[len(stem) :] + ".png"
            request = "" if entry.logged else " · on request"
            parts += [
                f"### {plain(entry.title)}\n",
                f"`{entry.name}` · file `{file}`{request}\n",
                plain(entry.reading),
                "",
            ]
    return {"figures_list.txt": "\n".join(parts)}
