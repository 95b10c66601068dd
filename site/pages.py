"""Check and complete pages: an opening sentence, a text for each picture, tables without quotation marks."""

from __future__ import annotations

from fnmatch import fnmatchcase

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)


# pages that need a table of contents for Sphinx; as Markdown they list their pages in a table
TABLES_OF_CONTENTS = {"reference/README": "\n```{toctree}\n:hidden:\n:glob:\n\n*\n```\n"}


def complete_contents(app: Sphinx, page: str, source: list[str]) -> None:
    """Add the table of contents of a folder, and remove patterns that no page matches, because Sphinx warns of them."""
    source[0] += TABLES_OF_CONTENTS.get(page, "")
    patterns = [line for line in source[0].splitlines() if line.startswith(("from-", "[")) and "](" not in line]
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in app.env.found_docs):
            source[0] = source[0].replace(f"\n{pattern}\n", "\n", 1)


def check_page(app: Sphinx, tree: nodes.document) -> None:
    """Warn if a page does not open with a sentence; name pictures of cells after their section."""
    page = app.env.docname
    section = next(iter(tree.findall(nodes.section)), None)
    opening = section.children[1] if section is not None and len(section.children) > 1 else None
    if not isinstance(opening, nodes.paragraph):
        logger.warning("the page does not begin with a sentence that states its purpose", location=page)
    for picture in tree.findall(nodes.image):
        if not picture.get("alt"):
            picture["alt"] = f"Chart: {_heading(picture)}"


def remove_quotes(app: Sphinx, tree: nodes.document) -> None:
    """Remove the quotation marks around texts in the tables of cells."""
    for table in tree.findall(nodes.raw):
        if 'class="dataframe"' in table.astext():
            plain = table.astext().replace("<td>&quot;", "<td>").replace("&quot;</td>", "</td>")
            table.children = [nodes.Text(plain)]
            table.rawsource = plain


def _heading(node: nodes.Node) -> str:
    while node is not None and not isinstance(node, nodes.section):
        node = node.parent
    return node.next_node(nodes.title).astext() if node is not None else "of this page"


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", complete_contents)
    app.connect("doctree-read", check_page)
    app.connect("doctree-read", remove_quotes)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
