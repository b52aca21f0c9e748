"""Self-contained HTML pages from templates: they load nothing, and names in them are escaped.

Whoever names a run, a label or a group decides what stands on a page that other people open. The templates escape every
value; what is here holds for the finished page, so that no template and no value can be forgotten.
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

_SMALL_FIGURE = 720  # up to this width two stand side by side on a wide screen
_FIRST = '<meta charset="utf-8">'
_ROWS = re.compile(rb"<!-- rows -->.*?<!-- end of rows -->", re.DOTALL)
_CELLS = re.compile(r'<g data-cells="([^"]*)"></g>')
_COPIED = re.compile(r"(<pre>.*?</pre>)", re.DOTALL)


def drawn(subject: BaseEvaluation | Comparison, problems: list[str]) -> dict[str, Picture]:
    """The figures of a page; none without Matplotlib, and a sentence in ``problems``."""
    try:
        from cmtrack.report.figures import draw_pictures
    except ImportError as error:
        problems.append(str(error))
        return {}
    return draw_pictures(subject, problems, files=False)


def render_page(name: str, /, **values: Any) -> str:
    """One HTML document without any reference to the outside.

    It carries a Content-Security-Policy by which a browser loads nothing and runs nothing but the page's own script
    and style, which are named by their hashes; it works in a frame with ``sandbox="allow-scripts"``, as that of the
    MLflow UI. Names cannot reorder the text around them (:func:`cmtrack.untrusted.for_page`).

    ``name``: the template.
    ``**values``: what it shows; text is escaped.
    """
    html = _template(name).render(values)
    # what people copy into a terminal or a script holds no marks that they do not see
    parts = [
        printable(part) if place % 2 else for_page(part)
        for place, part in enumerate(_COPIED.split(html))
    ]
    html = "".join(parts)
    return html.replace(_FIRST, f"{_FIRST}\n{_meta(html)}", 1)


def without_rows(page: bytes) -> bytes:
    """A report without the rows that it lists; the marks around them are no value, as a ``<`` of a value is escaped."""
    return _ROWS.sub(b"", page)


def _meta(html: str) -> str:
    return f'<meta http-equiv="Content-Security-Policy" content="{_policy(html)}">'


def figure_block(
    picture: Picture, opens: Mapping[str, str] = MappingProxyType({})
) -> dict[str, Any]:
    """A picture as the pages show it; cells of its matrices are links to what they open, titles by their ids."""
    svg = _CELLS.sub(lambda match: _links(match[1], opens) or match[0], picture.svg)
    linked = svg != picture.svg
    return {
        "name": picture.name,
        "title": picture.title,
        "reading": picture.reading,
        "svg": svg.replace('role="img"', 'role="group"', 1)
        if linked
        else svg,  # inside an image nothing is reached
        "linked": linked,
        "small": picture.width <= _SMALL_FIGURE,
        "section": picture.section,
    }


def _links(cells: str, opens: Mapping[str, str]) -> str:
    """Links on a matrix whose cells are named and placed by :func:`cmtrack.plots._heatmap.name_cells`."""
    matrix, rows, columns, *box = cells.split(" ")
    x, y, across, high = map(float, box)
    links = "".join(
        f'<a class="cell" href="#{target}" aria-label="{escape(opens[target])}"><title>{escape(opens[target])}</title>'
        f'<path d="M{x + j * across:.0f} {y + i * high:.0f}h{across:.0f}v{high:.0f}h-{across:.0f}z"/></a>'
        for i, row in enumerate(rows.split(","))
        for j, column in enumerate(columns.split(","))
        if (
            target := f"rows-{matrix}-{row}-{column}" if row != "m" else f"rows-{matrix}-{column}-m"
        )
        in opens
    )
    return f"<!-- rows -->{links}<!-- end of rows -->" if links else ""


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
    """The rules for a browser: show the page, with its own style, script and pictures.

    Style *attributes* are allowed without a hash: the widths in them come from the numbers, and nothing that they could
    name (a picture, a font) can be loaded.
    """
    return "; ".join(
        (
            "default-src 'none'",
            "img-src data:",  # cells of large matrices, and colour bars
            f"style-src {_hashes('style', html)}",
            "style-src-attr 'unsafe-inline'",
            f"script-src {_hashes('script', html)}",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def _hashes(element: str, html: str) -> str:
    """The hashes of an element's contents; all are the template's, as a ``<`` of a value is escaped."""
    contents = re.findall(rf"<{element}\b[^>]*>(.*?)</{element}>", html, re.DOTALL)
    digests = (hashlib.sha256(content.encode("utf-8")).digest() for content in contents)
    return (
        " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests) or "'none'"
    )
