"""Pages that are made from the source are as they would be made today, and no error lacks its way out."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_pages", ROOT / "docs" / "make_pages.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pages_on_disk_are_what_the_maker_makes(maker: ModuleType) -> None:
    stale = [name for name, text in maker.pages().items() if (ROOT / "docs" / name).read_text(encoding="utf-8") != text]
    assert stale == [], "run make docs"


def test_every_error_has_a_way_out(maker: ModuleType) -> None:
    page = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## )", page, re.MULTILINE | re.DOTALL))
    assert set(sections) == {cls.__name__ for cls in maker.error_classes()}
    assert [name for name, text in sections.items() if "**What to do.** " not in text] == []
    assert set(maker.raised()) == {cls.__name__ for cls in maker.error_classes() if not issubclass(cls, Warning)}


def test_every_command_has_words_and_an_example(maker: ModuleType) -> None:
    page = maker.cli_page()
    sections = re.findall(r"^## (sdcmap .*)\n\n(\S.*)\n\n    (sdcmap .*)$", page, re.MULTILINE)
    assert len(sections) == page.count("\n## ") > 15
    assert [name for name, _, example in sections if not example.startswith(name)] == []
    assert "| `FILE` | must be given |" in page and "| `--profile` | `public-use` |" in page
