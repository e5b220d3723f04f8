"""The manual, from docs/*.md and the docstrings; `make docs` builds it into build/docs."""

import importlib.metadata
import os
import re
import sys
from itertools import pairwise

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from option_tables import with_tables  # noqa: E402

project = "dcsvm"
author = "the dcsvm developers"
release = importlib.metadata.version("dcsvm")

extensions = ["myst_parser", "sphinx.ext.autodoc"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "none"

smartquotes = False

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["manual.css"]
html_title = f"dcsvm {release}"
html_copy_source = False
html_show_copyright = False


def literal(text: str) -> str:
    """Text as reStructuredText: what is between backticks is code, all else is as it stands."""
    parts = re.split(r"`([^`]+)`", text)
    parts[::2] = [re.sub(r"([*|\\]|_\b)", r"\\\1", part) for part in parts[::2]]
    parts[1::2] = [f"``{part}``" for part in parts[1::2]]
    return "".join(parts)


def paragraphs_and_lists(lines: list[str]) -> list[str]:
    """Rewrite a docstring, which is plain text, as reStructuredText.

    Lines indented below a line are a list; lines indented further continue an item. In numpydoc
    sections they are the description of the line above.
    """
    rewritten, depth, in_section = [], None, False
    for line, following in pairwise([*lines, ""]):
        text, indent = literal(line.strip()), len(line) - len(line.lstrip())
        if text and set(following) == {"-"}:
            rewritten += ["", f"**{text}**", ""]
            in_section = True
        elif in_section:
            rewritten.append("" if set(line) == {"-"} else " " * indent + text)
        else:
            if text and (indent > 0) != (depth is not None):
                rewritten.append("")
                depth = indent if indent > 0 else None
            start = "" if depth is None or not text else "- " if indent == depth else "  "
            rewritten.append(start + text)
    return rewritten


def with_sections(lines: list[str]) -> list[str]:
    """Convert a docstring; sections of numpydoc become definition lists below their titles."""
    rules = [k for k, line in enumerate(lines) if re.fullmatch("---+", line)]
    if not rules:
        return paragraphs_and_lists(lines)
    first = rules[0] - 1
    rewritten = paragraphs_and_lists(lines[:first])
    for k, line in enumerate(lines[first:], first):
        if k in rules:
            continue
        indent = line[: len(line) - len(line.lstrip())]
        following = lines[k + 1] if k + 1 < len(lines) else ""
        text = literal(line.strip())
        if k + 1 in rules:
            rewritten += [f"**{text}**", ""]
        elif " : " in line and not indent and not following.startswith(" "):
            rewritten += ["", text, ""]  # a parameter without a description
        else:
            rewritten.append(indent + text)
    return rewritten


def setup(app):
    def process(_app, _what, _name, _object, _options, lines):
        lines[:] = with_sections(lines)

    def read(_app, _page, source):
        source[0] = with_tables(source[0])

    app.connect("autodoc-process-docstring", process)
    app.connect("source-read", read)
