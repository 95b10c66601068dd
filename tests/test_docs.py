"""Reference pages are what the source says, and code in documents and docstrings is right."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import re
import sys
import textwrap
from pathlib import Path
from types import ModuleType

import pytest

import sdcmap
from sdcmap.methods import METHODS
from sdcmap.risk import RISKS
from sdcmap.utility import UTILITIES

ROOT = Path(__file__).resolve().parents[1]
SOURCE = Path(sdcmap.__file__).parent
MEMBERS = (*METHODS, *RISKS, *UTILITIES)
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
MODULES = sorted(
    ".".join(("sdcmap", *file.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")
    for file in SOURCE.rglob("*.py")
    if file.name != "__main__.py"
)
PYTHON_BLOCK = re.compile(r"^[ \t]*```python[^\n]*\n(.*?)^[ \t]*```", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_reference", ROOT / "docs" / "make_reference.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def python_blocks(text: str) -> list[str]:
    """The ```python blocks of a Markdown text."""
    return [textwrap.dedent(block) for block in PYTHON_BLOCK.findall(text)]


def test_pages_on_disk_are_what_the_generator_makes(generator: ModuleType) -> None:
    on_disk = {file.name: file.read_text(encoding="utf-8") for file in (ROOT / "docs" / "reference").glob("*.md")}
    made = generator.pages()
    assert set(on_disk) == set(made), "a page is missing or left over: run make docs"
    assert [name for name in made if made[name] != on_disk[name]] == [], "stale pages: run make docs"


@pytest.mark.parametrize("cls", MEMBERS, ids=lambda cls: cls.__name__)
def test_every_member_has_a_page_that_tells_all(generator: ModuleType, cls: type) -> None:
    page = generator.pages()[f"{cls.__name__}.md"]
    doc = generator.docstring(cls)
    names = [name for name in generator.hints(cls) if name != "within"]
    assert doc.summary and doc.example.startswith(">>> ")
    assert [name for name in names if not doc.parameters.get(name)] == [], "parameters without words in the docstring"
    assert set(doc.parameters) <= set(generator.hints(cls)), "the docstring names a parameter that is no field"
    assert [name for name in names if f"| `{name}` |" not in page] == []
    if cls in RISKS or cls in UTILITIES:
        assert doc.formula and doc.reference and getattr(cls, "unit", "")
    assert f"]({cls.__name__}.md)" in generator.index()


def test_docstring_is_taken_apart(generator: ModuleType) -> None:
    class Sample:
        """One sentence.

        A story of
        two lines.

        Parameters
        ----------
        low, high : bounds,
            in dollars.
        n : a count.

        Formula: a = b
        + c.
        Missing is refused. Weights are not used.
        Reference: Nobody (2001).

        Examples
        --------
        >>> 1 + 1
        2
        """

    doc = generator.docstring(Sample)
    assert (doc.summary, doc.story) == ("One sentence.", "A story of\ntwo lines.")
    assert doc.parameters == {"low": "bounds, in dollars.", "high": "bounds, in dollars.", "n": "a count."}
    assert (doc.formula, doc.reference) == ("a = b\n+ c.", "Nobody (2001).")
    assert doc.rules == "Missing is refused. Weights are not used."
    assert doc.example == ">>> 1 + 1\n2"


def test_python_blocks_are_found() -> None:
    text = "a\n```python\nx = 1\n```\n```sh\nls\n```\n  ```python title\n  if x:\n      y = (\n  ```\n"
    assert python_blocks(text) == ["x = 1\n", "if x:\n    y = (\n"]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda file: file.name)
def test_python_in_documents_compiles(document: Path) -> None:
    for number, block in enumerate(python_blocks(document.read_text(encoding="utf-8")), 1):
        compile(block, f"{document.name}, block {number}", "exec")


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name: str) -> None:
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0


def test_every_test_on_the_conformance_page_exists() -> None:
    tests = Path(__file__).resolve().parent
    page = (tests.parent / "docs" / "conformance.md").read_text(encoding="utf-8")
    source = {file.stem: file.read_text(encoding="utf-8") for file in tests.rglob("test_*.py")}
    named = [word for word in page.replace("`", " ").split() if "::" in word]
    assert len(named) > 30
    assert [name for name in named if f"def {name.split('::')[1]}(" not in source.get(name.split("::")[0], "")] == []
