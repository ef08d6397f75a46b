"""How the documentation site is built; `make docs` does it.

The site needs nothing from the network, neither to be built nor to be read: mathematics
becomes MathML, figures are drawn by the scripts in `gallery/`, and other projects are not
looked up.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
sys.path[:0] = [str(DOCS / "_ext"), str(ROOT / "src")]
# Two places where a machine could show in the output: the number of threads and a display.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["MPLBACKEND"] = "agg"

from pairlearn import __version__  # noqa: E402

project = "pairlearn"
author = "The pairlearn authors"
copyright = author
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    # In docs/_ext:
    "commands",
    "docstrings",
    "expansion",
    "mathml",
    "names",
    "notebooks",
    "repository",
    "result_tables",
    "rooms",
    "scripts",
]
# Scripts are pages in the gallery only.
exclude_patterns = ["_ext", "_static"] + [
    path.relative_to(DOCS).as_posix()
    for path in DOCS.rglob("*.py")
    if path.parent.name != "gallery"
]

# --- text -----------------------------------------------------------------------------------

myst_enable_extensions = ["amsmath", "attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
default_role = "name"
highlight_language = "python"
smartquotes = False  # an apostrophe may be a prime

# --- API reference --------------------------------------------------------------------------

autosummary_generate = False
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
# autodoc lists the members; numpydoc would list those of scikit-learn and torch as well.
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
viewcode_line_numbers = True

# Every reference must lead somewhere (`sphinx-build -n`), but for these:
nitpicky = True
nitpick_ignore = [
    # Named in docstrings, and not public.
    ("py:func", "canonical_order"),
    ("py:func", "pairlearn.experiments.export.flat_rows"),
]

# --- HTML -----------------------------------------------------------------------------------

html_theme = "furo"
html_title = f"pairlearn {release}"
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sourcelink = False
html_show_search_summary = False  # summaries are fetched, which a page on disk may not do
pygments_dark_style = "github-dark"
html_theme_options = {
    "navigation_with_keys": True,
    "light_css_variables": {"color-brand-primary": "#00629b", "color-brand-content": "#00629b"},
    "dark_css_variables": {"color-brand-primary": "#56b4e9", "color-brand-content": "#7cc4ee"},
}
