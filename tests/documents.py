"""Code that documents show, run as they show it by the tests that have what it needs."""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PYTHON_BLOCK = re.compile(r"^[ \t]*```python[^\n]*\n(.*?)^[ \t]*```", re.MULTILINE | re.DOTALL)


def python_blocks(text: str) -> list[str]:
    """The ```python blocks of a Markdown text."""
    return [textwrap.dedent(block) for block in PYTHON_BLOCK.findall(text)]


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
