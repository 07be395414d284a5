"""Settings of Sphinx. build.sh describes how the site is built."""

import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE))

import site_math  # noqa: E402
import site_search  # noqa: E402
import site_sources  # noqa: E402

project = "qkv"
copyright = "2026, qkv contributors"
version = release = re.search(r"project\(qkv VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
extensions = ["myst_parser"]
exclude_patterns = []
highlight_language = "none"
smartquotes = False  # "--" is the beginning of an option

myst_enable_extensions = ["dollarmath"]
myst_fence_as_directive = ["math"]
myst_heading_anchors = 6
myst_url_schemes = ["http", "https", "mailto", "source"]

html_theme = "furo"
html_title = f"qkv {version}"
html_static_path = ["static", site_math.font()]
html_css_files = ["site.css"]
html_copy_source = False
html_use_index = False
html_permalinks_icon = "#"
templates_path = ["templates"]
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"


def help_screen_readers(app, pagename, templatename, context, doctree):
    """Gives captions of the navigation a level, and makes code that scrolls reachable by keyboard."""
    tree, body = context.get("furo_navigation_tree", ""), context.get("body", "")
    context["furo_navigation_tree"] = tree.replace('role="heading"', 'role="heading" aria-level="2"')
    context["body"] = body.replace("<pre>", '<pre tabindex="0">')


def setup(app):
    app.connect("html-page-context", help_screen_readers, priority=900)
    site_math.setup(app)
    site_search.setup(app)
    site_sources.setup(app)
