"""Self-contained HTML pages from templates: they load nothing, and names in them are escaped.

Whoever names a run, a label or a group decides what stands on a page that other people open. The
templates escape every value; what is here holds for the finished page, so that no template and no
value can be forgotten.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from functools import cache
from html import escape
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from cmtrack.files import write_whole
from cmtrack.untrusted import for_page, printable

if TYPE_CHECKING:
    from jinja2 import Template

    from cmtrack.base import BaseEvaluation
    from cmtrack.comparison.result import Comparison
    from cmtrack.report.figures import Picture

_SMALL_FIGURE = 720
"""Largest width in pixels of figures that stand two in a row on a wide screen."""
_FIRST = '<meta charset="utf-8">'
_ROWS = re.compile(rb"<!-- rows -->.*?<!-- end of rows -->", re.DOTALL)
_CELLS = re.compile(r'<g data-cells="([^"]*)"></g>')
_COPIED = re.compile(r"(<pre>.*?</pre>)", re.DOTALL)


def drawn(subject: BaseEvaluation | Comparison, problems: list[str]) -> dict[str, Picture]:
    """Return the figures of a page; none without Matplotlib, and a sentence in ``problems``."""
    try:
        from cmtrack.report.figures import draw_pictures
    except ImportError as error:
        problems.append(str(error))
        return {}
    return draw_pictures(subject, problems, files=False)


def render_page(name: str, /, **values: Any) -> str:
    """Return one HTML document without any reference to the outside.

    It carries a Content-Security-Policy by which a browser loads nothing and runs nothing but the
    page's own script and style, which are named by their hashes; it works in a frame with
    ``sandbox="allow-scripts"``, as that of the MLflow UI. Names cannot reorder the text around them
    (:func:`cmtrack.untrusted.for_page`).

    ``name``: the template.
    ``**values``: what it shows; text is escaped.
    """
    html = _template(name).render(values)
    parts = _COPIED.split(html)
    for place, part in enumerate(parts):
        is_copied = place % 2 == 1
        # People copy these parts into a terminal or a script: they have no mark that nobody sees.
        parts[place] = printable(part) if is_copied else for_page(part)
    html = "".join(parts)
    return html.replace(_FIRST, f"{_FIRST}\n{_meta(html)}", 1)


def without_rows(page: bytes) -> bytes:
    """Return a report without the rows that it lists.

    The marks around them are no value, as a ``<`` of a value is escaped.
    """
    return _ROWS.sub(b"", page)


def _meta(html: str) -> str:
    return f'<meta http-equiv="Content-Security-Policy" content="{_policy(html)}">'


def figure_block(
    picture: Picture, opens: Mapping[str, str] = MappingProxyType({})
) -> dict[str, Any]:
    """Return a picture as the pages show it.

    Cells of its matrices are links to what they open, titles by their ids.
    """
    svg = _CELLS.sub(lambda match: _links(match[1], opens) or match[0], picture.svg)
    is_linked = svg != picture.svg
    if is_linked:
        # A browser reaches nothing inside an image.
        svg = svg.replace('role="img"', 'role="group"', 1)
    return {
        "name": picture.name,
        "title": picture.title,
        "reading": picture.reading,
        "svg": svg,
        "linked": is_linked,
        "small": picture.width <= _SMALL_FIGURE,
        "section": picture.section,
    }


def _links(cells: str, opens: Mapping[str, str]) -> str:
    """Return the links on a matrix; empty if none of its cells opens a table.

    Its cells are named and placed by :func:`cmtrack.plots._heatmap.name_cells`.
    """
    matrix, rows, columns, *box = cells.split(" ")
    left, top, width, height = map(float, box)
    links = []
    for i, row in enumerate(rows.split(",")):
        for j, column in enumerate(columns.split(",")):
            target = f"rows-{matrix}-{row}-{column}"
            if row == "m":
                # Mismatches have a row of the figure, and are the last column of a matrix.
                target = f"rows-{matrix}-{column}-m"
            if target in opens:
                title = escape(opens[target])
                corner = f"M{left + j * width:.0f} {top + i * height:.0f}"
                links.append(
                    f'<a class="cell" href="#{target}" aria-label="{title}"><title>{title}</title>'
                    f'<path d="{corner}h{width:.0f}v{height:.0f}h-{width:.0f}z"/></a>'
                )
    return f"<!-- rows -->{''.join(links)}<!-- end of rows -->" if links else ""


def write_text(path: Path, text: str) -> Path:
    """Write a text to a file in one step, and make missing folders."""
    write_whole({path: text.encode("utf-8")})
    return path


@cache
def _template(name: str) -> Template:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("cmtrack.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    ).get_template(name)


def _policy(html: str) -> str:
    """Return the rules for a browser: show the page, with its own style, script and pictures.

    Style *attributes* are allowed without a hash: the widths in them come from the numbers, and
    nothing that they could name (a picture, a font) can be loaded.
    """
    return "; ".join(
        (
            "default-src 'none'",
            # Cells of large matrices and colour bars are pictures.
            "img-src data:",
            f"style-src {_hashes('style', html)}",
            "style-src-attr 'unsafe-inline'",
            f"script-src {_hashes('script', html)}",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def _hashes(element: str, html: str) -> str:
    """Return the hashes of an element's contents.

    All are the template's, as a ``<`` of a value is escaped.
    """
    contents = re.findall(rf"<{element}\b[^>]*>(.*?)</{element}>", html, re.DOTALL)
    digests = (hashlib.sha256(content.encode("utf-8")).digest() for content in contents)
    return (
        " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests) or "'none'"
    )
