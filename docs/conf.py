"""How the site is built: ``python docs/build.py``."""

from __future__ import annotations

import gc
import inspect
import os
import re
import sys
from enum import Enum
from functools import partialmethod
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

import zmq
from jupyter_client import AsyncKernelManager
from nbclient import NotebookClient

_ROOT = Path(__file__).parent.parent
_HOOKS = _ROOT / "integrations" / "cmtrack_integrations"
_OWN = [str(_ROOT), str(_ROOT / "integrations")]  # the site is of this tree, whatever is installed
sys.path[:0] = [*_OWN, str(_ROOT / "docs" / "_ext"), str(_ROOT / "docs" / "_pages")]
sys.path.append(str(_ROOT / "tests"))
os.environ |= {"MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true"}
# of the kernels that run pages
os.environ["PYTHONPATH"] = os.pathsep.join([*_OWN, os.environ.get("PYTHONPATH", "")])
os.environ["PYTHONSTARTUP"] = str(_ROOT / "docs" / "_pages" / "drawings.py")

# a build makes little garbage: a tenth of its time went into looking for it
gc.set_threshold(50_000, 20, 20)

import example_gallery  # noqa: E402 - docs/_ext is on the path now

from support.scripts import warm  # noqa: E402 - and tests

project = "cmtrack"
author = "the authors of cmtrack"
copyright = "the authors of cmtrack"  # noqa: A001
release = version = version_of("cmtrack")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_nb",
    "sphinx_click",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "example_gallery",  # docs/_ext
    "mathml",  # docs/_ext
    "generated_pages",  # docs/_ext
]
exclude_patterns = [
    "_build",
    "_pages",
    "_templates",
    "gallery/generated/overview.md",
    "reference/sizes.md",
    "**.ipynb_checkpoints",
]
templates_path = ["_templates"]


# Pages with code are run, and an exception fails the build.
class EncryptedKernel(AsyncKernelManager):
    """A kernel whose port others on the machine cannot read; one that they can read warns of it at each start.

    It is a fork of a process that has imported what pages do.
    """

    transport_encryption = "auto" if zmq.has("curve") else "disabled"

    def format_kernel_cmd(self, extra_arguments: list[str] | None = None) -> list[str]:
        """Give the command that forks it."""
        command = super().format_kernel_cmd(extra_arguments)
        # with another they show no figures
        inline = "MPLBACKEND=module://matplotlib_inline.backend_inline"
        return ["env", inline, *warm("python", *command[command.index("-m") :])]


NotebookClient.__init__ = partialmethod(
    NotebookClient.__init__, kernel_manager_class=EncryptedKernel
)
if not tags.has("no-execute"):  # noqa: F821 - Sphinx gives the tags
    warm("python")  # one process for all that read pages
nb_execution_mode = "off" if tags.has("no-execute") else "cache"  # noqa: F821 - Sphinx gives the tags
# the tutorial, with its stored outputs; a test runs it
nb_execution_excludepatterns = ["gallery/generated/*"]
nb_execution_raise_on_error = True
nb_execution_timeout = 600
nb_execution_show_tb = True
nb_merge_streams = True
smartquotes = False  # commands and options are copied from text: --run-id, 'params.model'
nb_ipywidgets_js: dict[str, Any] = {}  # it would be loaded from outside
myst_enable_extensions = [
    "attrs_block",
    "attrs_inline",
    "colon_fence",
    "deflist",
    "dollarmath",
    "fieldlist",
]
myst_heading_anchors = 3
suppress_warnings = (
    ["myst-nb.lexer", "myst-nb.glue", "mystnb.glue"] if tags.has("no-execute") else []  # noqa: F821
)

sphinx_gallery_conf = example_gallery.configuration(run=not tags.has("no-execute"))  # noqa: F821

# The Python reference: one page for each name, from its docstring.
autosummary_generate = True
autosummary_filename_map = {  # next to the page of the class, also if file names ignore case
    f"cmtrack.{name}": f"cmtrack.{name}-function"
    for name in ("comparison.mcnemar", "segments.differences", "segments.disparity")
}
autodoc_typehints = "none"  # the sections of numpydoc have the types in words
autodoc_class_signature = "mixed"
autodoc_member_order = "bysource"
autodoc_mock_imports = [  # frameworks: the pages are the same whether they are installed or not
    *sorted(
        path.stem
        for path in _HOOKS.glob("[!_]*.py")
        if f'needs("{path.stem}")' in path.read_text("utf-8")
    ),
    "pytorch_lightning",
]
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
toc_object_entries_show_parents = "hide"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_exclude = ".linenos, .gp, .go"


html_theme = "pydata_sphinx_theme"
html_title = "cmtrack"
html_static_path = ["_static", "_build/static"]  # docs/_ext writes the second
html_css_files = ["cmtrack.css", "colours.css"]
html_js_files = ["site.js"]
html_copy_source = False
html_show_sourcelink = False
# it is fetched, which a page that was opened from a disk cannot do
html_show_search_summary = False
html_context = {"default_mode": "auto"}  # light or dark as the reader's system is
html_math_renderer = "mathml"
html_sidebars: dict[str, list[str]] = {  # pages without pages below them need no list of these
    name: []
    for name in ("index", "start", "sources", "architecture", "contributing", "changelog", "search")
}
html_theme_options = {
    "logo": {"text": "cmtrack"},
    "show_prev_next": True,
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "search_bar_text": "Search",
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}


def without_fields(
    app: Any, what: str, name: str, member: Any, skip: bool, options: Any
) -> bool | None:
    """Leave out fields of dataclasses, which their class says under "Attributes" or "Parameters"."""
    shown = (property, classmethod, staticmethod, Enum)
    return (
        None if what == "module" or isinstance(member, shown) or inspect.isroutine(member) else True
    )


def as_written(app: Any, context: Any, lines: list[str]) -> None:
    """Keep the stars and quotes of a command's help, which reStructuredText would take for marks."""
    for number, line in enumerate(lines):
        if line.startswith(".. option::"):
            # sphinx-click takes the last bracket for its own
            lines[number] = re.sub(r"(\[=\w+)>", r"\1]>", line)
        elif line.lstrip().startswith(":default:"):
            # as it is typed
            lines[number] = re.sub(r"``(?:\w*Path\()?'(.*)'\)?``", r"``\1``", line)
        elif not line.lstrip().startswith((".. ", ":")):
            # sphinx-click's own marks: of a line whose break is kept, and of a required option
            bar = "| " if line.startswith("| ") else ""
            marked, required, said = line.removeprefix(bar).rpartition("**Required** ")
            lines[number] = (
                bar + marked + required.replace("** ", ".** ") + re.sub(r"([*`|_])", r"\\\1", said)
            )


def without_empty_heads(
    app: Any, page: str, template: str, context: dict[str, Any], tree: Any
) -> None:
    """Make the corner of a table, over the names of its rows, a cell: a heading without words is read aloud as one."""
    if "body" in context:
        context["body"] = re.sub(
            r"<th(?: [^>]*)?>(?:\s|<p>|</p>)*</th>", "<td></td>", context["body"]
        )


def setup(app: Any) -> None:
    """Connect what this file has for Sphinx's events."""
    app.connect("html-page-context", without_empty_heads)
    app.connect("autodoc-skip-member", without_fields)
    for part in ("description", "options", "arguments", "epilog"):
        app.connect(f"sphinx-click-process-{part}", as_written)
