"""What every page must have: a purpose in its first line, words for each picture, and tables for readers."""

from __future__ import annotations

from fnmatch import fnmatchcase

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)


CHILDREN = {
    "reference/README": "\n```{toctree}\n:hidden:\n:glob:\n\n*\n```\n"
}  # pages that plain Markdown lists by itself


def with_children(app: Sphinx, page: str, source: list[str]) -> None:
    """Hang the pages of a folder below its front page, and leave out patterns that no page has: they warn."""
    source[0] += CHILDREN.get(page, "")
    patterns = [line for line in source[0].splitlines() if line.startswith(("from-", "[")) and "](" not in line]
    for pattern in patterns:
        if not any(fnmatchcase(found, pattern) for found in app.env.found_docs):
            source[0] = source[0].replace(f"\n{pattern}\n", "\n", 1)


def checked(app: Sphinx, tree: nodes.document) -> None:
    """Warn of a page that does not open with a sentence; a picture made by a cell is called by its section."""
    page = app.env.docname
    section = next(iter(tree.findall(nodes.section)), None)
    opening = section.children[1] if section is not None and len(section.children) > 1 else None
    if not isinstance(opening, nodes.paragraph):
        logger.warning("the page does not say its purpose in its first line", location=page)
    for picture in tree.findall(nodes.image):
        if not picture.get("alt"):
            picture["alt"] = f"Chart: {_heading(picture)}"


def unquoted(app: Sphinx, tree: nodes.document) -> None:
    """Texts in tables that cells give stand without their quotation marks."""
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
    app.connect("source-read", with_children)
    app.connect("doctree-read", checked)
    app.connect("doctree-read", unquoted)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
