"""How the site is built: ``python docs/build.py``."""

from __future__ import annotations

from importlib.metadata import version as version_of

project = "cmtrack"
author = "the authors of cmtrack"
copyright = "the authors of cmtrack"
release = version = version_of("cmtrack")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "myst_nb",
    "sphinx_design",
    "sphinx_copybutton",
]
exclude_patterns = ["_build", "**.ipynb_checkpoints"]

# Every page that has code is run, and an exception fails the build.
nb_execution_mode = "cache"
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_merge_streams = True
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "fieldlist"]
myst_heading_anchors = 3

autosummary_generate = True
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = "cmtrack"
html_static_path = ["_static"]
html_theme_options = {"show_prev_next": True, "navigation_with_keys": False, "footer_start": ["copyright"], "footer_end": []}
