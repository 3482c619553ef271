"""The site that `make site` builds by Sphinx from the same Markdown; docs/README.md is its start and navigation."""

from __future__ import annotations

import re
from pathlib import Path

from sphinx.application import Sphinx

project = html_title = "trainchart"
extensions = ["myst_parser"]
root_doc = "docs/README"
include_patterns = ["*.md", "docs/*.md", "docs/decisions/*.md", "examples/*/README.md"]
myst_heading_anchors = 4
html_theme = "furo"
html_copy_source = False


def setup(app: Sphinx) -> None:
    """Have the navigation made of the links of docs/README.md, which is the first page."""
    app.connect("source-read", _add_navigation)
    app.connect("build-finished", _write_index)


def _add_navigation(_: Sphinx, document: str, source: list[str]) -> None:
    if document != root_doc:
        return
    for group in re.split(r"(?m)^## ", source[0])[1:]:
        title, _, body = group.partition("\n")
        pages = "\n".join(re.findall(r"\]\(([\w/.-]+)\.md\)", body))
        source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {title}\n\n{pages}\n```\n"


def _write_index(app: Sphinx, error: Exception | None) -> None:
    if error is None:
        Path(app.outdir, "index.html").write_text(f'<meta http-equiv="refresh" content="0; url={root_doc}.html">\n')
