"""How the documentation site is built; `make docs` does it.

The site needs nothing from the network, neither to be built nor to be read: mathematics
becomes MathML, figures are drawn by the scripts in `gallery/`, and the names of other projects
are looked up in `inventories/`.
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
    "sphinx.ext.intersphinx",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "sphinxcontrib.bibtex",
    # In docs/_ext:
    "docstrings",
    "expansion",
    "mathml",
    "packages",
]
if "quick" not in tags:  # noqa: F821  (given by Sphinx)
    extensions.insert(0, "sphinx.ext.viewcode")  # a page for every file of the source
exclude_patterns = ["_ext", "_static", "gallery"]  # the gallery's pages are in auto_gallery

# --- text -----------------------------------------------------------------------------------

myst_enable_extensions = ["amsmath", "attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
default_role = "py:obj"
highlight_language = "python"
smartquotes = False  # an apostrophe may be a prime

copybutton_exclude = ".linenos, .gp, .go"

bibtex_bibfiles = ["references.bib"]
bibtex_reference_style = "author_year"

# --- gallery --------------------------------------------------------------------------------

sphinx_gallery_conf = {
    "examples_dirs": ["gallery"],
    "gallery_dirs": ["auto_gallery"],
    "filename_pattern": r"/\d\d_",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "image_srcset": ["2x"],
    "capture_repr": (),
    "download_all_examples": False,
    "write_computation_times": False,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 3600,
}

# --- API reference --------------------------------------------------------------------------

autosummary_generate = False
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 110
# Copied for every page: a fifth of the work. The tests do not look at the members in a sidebar.
toc_object_entries = "quick" not in tags  # noqa: F821  (given by Sphinx)
# autodoc lists the members; numpydoc would list those of scikit-learn and torch as well.
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
viewcode_line_numbers = True
# The names that the reference uses, in text files of format 1: a build needs no network.
intersphinx_mapping = {
    name: (address, f"inventories/{name}.inv")
    for name, address in {
        "python": "https://docs.python.org/3/",
        "numpy": "https://numpy.org/doc/stable/",
        "torch": "https://docs.pytorch.org/docs/stable/",
        "sklearn": "https://scikit-learn.org/stable/",
        "matplotlib": "https://matplotlib.org/stable/",
    }.items()
}

# Every reference must lead somewhere (`sphinx-build -n`), but for these:
nitpicky = True
# Names in single backquotes may be parameters; bases may be of other projects.
nitpick_ignore_regex = [("py:obj", r"(?s:.*)"), ("py:class", r"(?!pairlearn).*")]

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
html_js_files = ["search.js"]
pygments_dark_style = "github-dark"
html_theme_options = {
    "navigation_with_keys": True,
    "light_css_variables": {"color-brand-primary": "#00629b", "color-brand-content": "#00629b"},
    "dark_css_variables": {"color-brand-primary": "#56b4e9", "color-brand-content": "#7cc4ee"},
}
