"""Helpers to run the code in the documentation."""

from __future__ import annotations

import importlib
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
WRITTEN = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
WRITTEN += [page for page in sorted((ROOT / "docs").rglob("*.md")) if page.parent.name != "reference"]
LINK = re.compile(r"(?<!\!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
PYTHON_BLOCK = re.compile(r"^[ \t]*```python[^\n]*\n(.*?)^[ \t]*```", re.MULTILINE | re.DOTALL)


def python_blocks(text: str) -> list[str]:
    """Return the ```python blocks of a Markdown text."""
    return [textwrap.dedent(block) for block in PYTHON_BLOCK.findall(text)]


def script(name: str) -> ModuleType:
    """Import a script of docs/ as a module."""
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(ROOT / "docs"))


@cache
def all_pages() -> dict[Path, str]:
    """Return path -> text of every page: handwritten ones, and those of docs/reference as built by `make docs`."""
    built = script("make_reference").pages()
    return {page: page.read_text(encoding="utf-8") for page in WRITTEN} | {
        ROOT / "docs" / "reference" / name: text for name, text in built.items()
    }


def links(text: str) -> Iterator[str]:
    """Return the links of a Markdown text to files in the repository."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    for match in LINK.finditer(re.sub(r"`[^`\n]*`", "", text)):
        link = match[1] or match[2]
        if not re.match(r"[a-z]+:", link):
            yield link


def anchors(text: str) -> set[str]:
    """Return the anchors of a page's headings."""
    heads = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def broken_links(page: Path, pages: Mapping[Path, str]) -> list[str]:
    """Return the links of a page to a missing file or heading."""
    broken = []
    for link in links(pages[page]):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if target in pages:
            broken += [link] if anchor and anchor not in anchors(pages[target]) else []
        elif not target.exists() or target.parent.name == "reference":
            broken.append(link)
    return broken


def run_page(page: str, smaller: Mapping[str, str] | None = None, **names: Any) -> dict[str, Any]:
    """Run the blocks of a page one after the other as one program, and give what it defined.

    Words of `smaller`, each of which must be on the page, are replaced: an address, or a size that a test cannot afford.
    """
    code = python_blocks((ROOT / page).read_text(encoding="utf-8"))
    for shown, here in (smaller or {}).items():
        assert any(shown in block for block in code), f"{page} does not say {shown!r}"
        code = [block.replace(shown, here) for block in code]
    name = "page_" + re.sub(r"\W", "_", page)
    module = sys.modules[name] = ModuleType(name)  # classes of a page are looked up in their module
    vars(module).update(names)
    try:
        for number, block in enumerate(code, 1):
            exec(compile(block, f"{page}, block {number}", "exec"), vars(module))
    finally:
        del sys.modules[name]
    return vars(module)
