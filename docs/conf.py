"""The documentation as a site: `make docs` builds it into out/site, with nothing from another host."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "extensions"))

from dpassay import __version__

project = "dpassay"
author = "The dpassay authors"
release = version = __version__
copyright = "the dpassay authors, Apache-2.0"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton", "mathml", "pages"]
source_suffix = {".md": "markdown", ".ipynb": "markdown"}  # pages.py makes Markdown of notebooks
exclude_patterns = ["examples", "extensions"]
html_extra_path = ["gallery.html", "verdict.schema.json", "claims.schema.json"]

myst_enable_extensions = ["dollarmath"]
myst_dmath_allow_space = False
myst_dmath_allow_digits = False
myst_dmath_double_inline = True
myst_heading_anchors = 3
html_math_renderer = "mathml"

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_mock_imports = ["torch", "opacus", "safetensors"]  # of the extras: not needed to read docstrings
python_maximum_signature_line_length = 88
highlight_language = "text"
smartquotes = False  # options begin with two hyphens
default_role = "code"  # docstrings put code between single backticks

html_theme = "furo"
html_title = "dpassay"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = [("site.js", {"defer": "defer"})]
html_copy_source = False
html_show_sphinx = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
