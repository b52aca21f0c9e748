"""Self-contained HTML pages from templates; the pages load nothing and escape all names.

The names of runs, labels and groups are untrusted, because people open pages with names that others
have chosen. The templates escape every value. The functions of this module additionally protect the
finished page, so that every template and every value is covered.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
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

_SMALL_FIGURE = 594
"""Width, in pixels, of half a page at 1440 pixels: a wider figure would be scaled down there."""
_FIRST = '<meta charset="utf-8">'
_ROWS = re.compile(rb"<!-- rows -->.*?<!-- end of rows -->", re.DOTALL)
_CELLS = re.compile(r'<g data-cells="([^"]*)"></g>')
_COPIED = re.compile(r"(<pre>.*?</pre>)", re.DOTALL)


def drawn(subject: BaseEvaluation | Comparison, problems: list[str]) -> dict[str, Picture]:
    """Return the figures of a page; if Matplotlib is missing, add a note to ``problems``."""
    try:
        from cmtrack.report.figures import draw_pictures
    except ImportError as error:
        problems.append(str(error))
        return {}
    return draw_pictures(subject, problems, files=False)


def render_page(name: str, /, **values: Any) -> str:
    """Return a page as one HTML document without external references.

    Because of the page's Content-Security-Policy, a browser loads nothing and uses only the page's
    own script and style, whose hashes the policy lists. The page works in a frame with
    ``sandbox="allow-scripts"``, such as the frame of the MLflow UI. Names cannot change the order
    of the text around them (:func:`cmtrack.untrusted.for_page`).

    ``name``: name of the template.
    ``**values``: values to insert into the template, which escapes all texts.
    """
    html = _template(name).render(values)
    parts = _COPIED.split(html)
    for place, part in enumerate(parts):
        is_copied = place % 2 == 1
        # People copy these parts into a terminal or script, so they must not contain invisible
        # characters.
        parts[place] = printable(part) if is_copied else for_page(part)
    html = "".join(parts)
    return html.replace(_FIRST, f"{_FIRST}\n{_meta(html)}", 1)


def without_rows(page: bytes) -> bytes:
    """Return the HTML of a report without the lists of individual rows.

    No value can contain the comments that mark the lists of rows, because a ``<`` in a value is
    escaped.
    """
    return _ROWS.sub(b"", page)


def _meta(html: str) -> str:
    return f'<meta http-equiv="Content-Security-Policy" content="{_policy(html)}">'


def figure_block(
    picture: Picture, opens: Mapping[str, str] = MappingProxyType({})
) -> dict[str, Any]:
    """Return the template values for a picture on a page.

    ``opens``: the titles of tables by their ids; matrix cells in the picture become links to these
        tables.
    """
    svg = _CELLS.sub(lambda match: _links(match[1], opens) or match[0], picture.svg)
    is_linked = svg != picture.svg
    if is_linked:
        # If the role were "img", assistive technology would not find the links.
        svg = svg.replace('role="img"', 'role="group"', 1)
    return {
        "name": picture.name,
        "title": picture.title,
        "reading": picture.reading,
        "svg": svg,
        "linked": is_linked,
        "small": picture.width <= _SMALL_FIGURE,
        "section": picture.section,
        "folded": picture.folded,
    }


def _links(cells: str, opens: Mapping[str, str]) -> str:
    """Return the links that lie over a matrix, or an empty string if no cell opens a table.

    ``cells``: the names and positions of the cells, as :func:`cmtrack.plots._heatmap.name_cells`
        writes them.
    """
    matrix, rows, columns, *box = cells.split(" ")
    left, top, width, height = map(float, box)
    links = []
    for i, row in enumerate(rows.split(",")):
        for j, column in enumerate(columns.split(",")):
            target = f"rows-{matrix}-{row}-{column}"
            if row == "m":
                # The figure's row of mismatches opens the same tables as the column of mismatches.
                target = f"rows-{matrix}-{column}-m"
            if target in opens:
                title = escape(opens[target])
                corner = f"M{left + j * width:.0f} {top + i * height:.0f}"
                links.append(
                    f'<a class="cell" href="#{target}" aria-label="{title}"><title>{title}</title>'
                    f'<path d="{corner}h{width:.0f}v{height:.0f}h-{width:.0f}z"/></a>'
                )
    return f"<!-- rows -->{''.join(links)}<!-- end of rows -->" if links else ""


def aligned_cells(
    rows: Sequence[Sequence[str]], right: Sequence[bool]
) -> list[list[tuple[str, bool]]]:
    """Return the cells of table rows, each with whether it is aligned to the right."""
    return [list(zip(row, right, strict=True)) for row in rows]


def write_text(path: Path, text: str) -> Path:
    """Write a text to a file atomically, and create missing folders."""
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
    """Return a Content-Security-Policy that allows only the page's own style, script and pictures.

    The Content-Security-Policy needs no hashes for style *attributes*. Style attributes contain
    only widths that are computed from numbers, and the browser does not load pictures or fonts that
    an attribute might name.
    """
    return "; ".join(
        (
            "default-src 'none'",
            # The cells of large matrices and the colour bars are embedded pictures.
            "img-src data:",
            f"style-src {_hashes('style', html)}",
            "style-src-attr 'unsafe-inline'",
            f"script-src {_hashes('script', html)}",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def _hashes(element: str, html: str) -> str:
    """Return hashes of the contents of all elements with a given tag name, for the policy.

    All hashed elements come from the template, because a ``<`` in a value is escaped.
    """
    contents = re.findall(rf"<{element}\b[^>]*>(.*?)</{element}>", html, re.DOTALL)
    digests = (hashlib.sha256(content.encode("utf-8")).digest() for content in contents)
    return (
        " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests) or "'none'"
    )
