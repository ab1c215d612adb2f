"""The site: `make docs` builds it into build/site. Pages are the Markdown files of this folder."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import _site

import steppe

project, author, release = "steppe", "The steppe founders", steppe.__version__
copyright = "2026, the steppe founders"
root_doc = "README"
extensions = ["sphinx.ext.autodoc", "sphinx.ext.viewcode", "myst_parser", "sphinx_gallery.gen_gallery"]

html_theme, html_title, html_show_sphinx = "furo", "steppe", False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
suppress_warnings = ["myst.header", "config.cache"]

autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_inherit_docstrings = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r".*\.py",
    "image_scrapers": ("_site",),
    "reset_modules": ("_site.clean",),
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_signature": False,
    "show_memory": False,
    "within_subsection_order": "FileNameSortKey",
    "default_thumb_file": str(Path(__file__).parent / "results/measures/density.png"),
    "write_computation_times": False,
}


def setup(app):
    app.connect("builder-inited", _site.write_api, priority=400)
    app.connect("autodoc-process-docstring", _site.plain_words)
    app.connect("env-updated", _site.check_api)
    app.connect("source-read", _site.adapted)
    app.connect("build-finished", _site.copy_explorables)
