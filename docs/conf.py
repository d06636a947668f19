"""Settings of Sphinx for the site that `docs/build.py` makes."""

import datetime
from importlib import metadata

from docutils.nodes import SkipNode

from dmls2r_lite.command.pages import to_mathml

project = "dmls2r-lite"
release = metadata.version(project)
project_copyright = f"{datetime.date.today().year}, the dmls2r-lite authors"
extensions = ["myst_nb", "numpydoc", "sphinx.ext.autodoc"]
html_theme = "sphinx_book_theme"
html_title = project
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {
    "home_page_in_toc": True,
    "max_navbar_depth": 1,
    "navbar_persistent": [],  # the sidebar has a search
    "navigation_with_keys": False,
    "show_toc_level": 2,
}
html_sidebars = {"**": ["search-button-field.html", "sbt-sidebar-nav.html"]}
html_context = {"default_mode": "auto"}
html_domain_indices = False
html_copy_source = False
html_math_renderer = "mathml"

nb_execution_mode = "off"  # the outputs are those that are committed
nb_render_markdown_format = "myst"
nb_ipywidgets_js = {}  # explorers move in JupyterLab only; nothing comes from the net
myst_enable_extensions = ["amsmath", "dollarmath"]
myst_heading_anchors = 4
suppress_warnings = ["mystnb.unknown_mime_type", "myst.header"]

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say them
numpydoc_show_class_members = False


def skip_member(app, what, name, member, skip, options):
    """Leave out what scikit-learn adds to every estimator."""
    return True if name.startswith("set_") and name.endswith("_request") else None


def escape_bars(app, what, name, thing, options, lines):
    """Let |x| be an absolute value, as it is meant, and no name to be replaced."""
    lines[:] = [line.replace("|", r"\|") for line in lines]


def visit_inline(translator, node):
    """Write a formula within a line."""
    translator.body.append(to_mathml(node.astext()))
    raise SkipNode  # its text is in the formula


def visit_block(translator, node):
    """Write a formula on lines of its own."""
    formula = to_mathml(node.astext(), block=True)
    opening = '<div class="formula" tabindex="0" role="group" aria-label="Formula">'
    translator.body.append(f"{opening}{formula}</div>")
    raise SkipNode


def setup(app):
    """Formulas need no script."""
    app.connect("autodoc-skip-member", skip_member)
    app.connect("autodoc-process-docstring", escape_bars, priority=400)
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
