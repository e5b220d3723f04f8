"""The manual, from docs/*.md and the docstrings; `make docs` builds it into build/docs."""

import importlib.metadata

project = "dcsvm"
author = "the dcsvm developers"
release = importlib.metadata.version("dcsvm")

extensions = ["myst_parser", "sphinx.ext.autodoc"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "none"

html_theme = "furo"
html_title = f"dcsvm {release}"
html_copy_source = False
html_show_copyright = False
