"""The manual, from docs/*.md and the docstrings; `make docs` builds it into build/docs."""

from importlib.metadata import version

project = "dcsvm"
author = "the dcsvm developers"
release = version("dcsvm")

extensions = ["myst_parser", "sphinx.ext.autodoc"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "none"

html_theme = "furo"
html_title = f"dcsvm {release}"
html_copy_source = False
