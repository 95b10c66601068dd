"""Reference pages are built from the source, one per class, and code in documents and docstrings is correct."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

import sdcmap
import sdcmap as sm
from documents import ROOT, WRITTEN, all_pages, broken_links, python_blocks, run_page, script
from sdcmap.core.docstring import docstring, parameter_sentences
from sdcmap.core.value import Value, field_types
from sdcmap.methods import METHODS
from sdcmap.risk import RISKS
from sdcmap.utility import UTILITIES
from stored_numbers import changed_lines

SOURCE = Path(sdcmap.__file__).parent
REFERENCE = ROOT / "docs" / "reference"
MEMBERS = (*METHODS, *RISKS, *UTILITIES)
DOCUMENTS = [page for page in WRITTEN if page.name == "README.md" or page.parent.name == "docs"]
MODULES = sorted(
    ".".join(("sdcmap", *file.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")
    for file in SOURCE.rglob("*.py")
    if file.name != "__main__.py"
)
PAGES = ("concepts", "correct", "decision", "global-risk", "information-loss", "records", "theory")


@pytest.mark.parametrize("cls", MEMBERS, ids=lambda cls: cls.__name__)
def test_every_class_has_a_complete_page(cls: type) -> None:
    pages, doc = all_pages(), docstring(cls)
    page = pages[REFERENCE / f"{cls.__name__}.md"]
    formula, reference, _ = script("make_reference").notes_of(cls)
    assert doc.summary and doc.example.startswith(">>> ")
    assert [name for name in field_types(cls) if not doc.parameters.get(name)] == [], "parameters without a sentence"
    assert set(doc.parameters) <= set(field_types(cls)), "the docstring names a parameter that is no field"
    assert [name for name in field_types(cls) if f"| `{name}` |" not in page and name != "within"] == []
    if cls in RISKS or cls in UTILITIES:
        assert formula and reference and getattr(cls, "unit", "")
    assert f"]({cls.__name__}.md)" in pages[REFERENCE / "README.md"]


@pytest.mark.parametrize("cls", MEMBERS, ids=lambda cls: cls.__name__)
def test_a_sentence_of_an_inherited_field_is_not_repeated(cls: type) -> None:
    """A subclass documents an inherited field only if the sentence differs."""
    (written,) = [
        ast.get_docstring(node) or ""
        for node in ast.parse(inspect.getsource(sys.modules[cls.__module__])).body
        if isinstance(node, ast.ClassDef) and node.name == cls.__name__
    ]
    inherited = {name: words for base in cls.__bases__ for name, words in parameter_sentences(base).items()}
    own = parameter_sentences(type("Written", (), {"__doc__": written}))
    assert [name for name, words in own.items() if inherited.get(name) == words] == []


def test_reference_is_built_completely(tmp_path: Path) -> None:
    """There is one page per class, the nouns and the pages of make_pages.py; every link is valid."""
    script("make_reference").write(tmp_path / "reference")
    built = {page.name for page in (tmp_path / "reference").iterdir()}
    nouns = {"README", "read", "Study", "Scores", "RUMap", "cli", "toml", "raised"}
    assert built == {f"{name}.md" for name in nouns | {cls.__name__ for cls in MEMBERS}}
    pages = all_pages()
    assert [link for page in pages if page.parent == REFERENCE for link in broken_links(page, pages)] == []


def test_no_reference_page_is_committed() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listed = subprocess.run(["git", "ls-files", "docs/reference"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert listed.stdout == ""


def test_docstring_is_parsed() -> None:
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

    doc = docstring(Sample)
    assert (doc.summary, doc.story) == ("One sentence.", "A story of\ntwo lines.")
    assert doc.parameters == {"low": "bounds, in dollars.", "high": "bounds, in dollars.", "n": "a count."}
    rules = "Missing is refused. Weights are not used."
    assert script("make_reference").notes_of(Sample) == ("a = b\n+ c.", "Nobody (2001).", rules)
    assert doc.example == ">>> 1 + 1\n2"


def test_docstring_of_a_subclass_has_the_parameters_of_its_bases() -> None:
    class Base(Value):
        """A base.

        Parameters
        ----------
        on : the variables,
            all of them.
        k : a number.

        Weights are used.
        Reference: Nobody (2001).
        """

    class Own(Base):
        """One sentence.

        A story.

        Parameters
        ----------
        k : another number.
        m : a third.

        Formula: k = m.
        Weights are not used.
        """

    class Bare(Own):
        """Another sentence.

        Formula: k = 0.
        """

    assert parameter_sentences(Own) == {"k": "another number.", "m": "a third.", "on": "the variables, all of them."}
    assert parameter_sentences(Bare) == parameter_sentences(Own)
    assert (
        "m : a third.\non : the variables,\n    all of them.\n\nFormula: k = m.\nWeights are not used.\nReference"
        in (Own.__doc__ or "")
    )
    assert docstring(Bare).summary == "Another sentence." and docstring(Bare).notes == [
        "Formula: k = 0.",
        "Weights are not used.",
        "Reference: Nobody (2001).",
    ]


def test_python_blocks_are_found() -> None:
    text = "a\n```python\nx = 1\n```\n```sh\nls\n```\n  ```python title\n  if x:\n      y = (\n  ```\n"
    assert python_blocks(text) == ["x = 1\n", "if x:\n    y = (\n"]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda file: file.name)
def test_python_in_documents_compiles(document: Path) -> None:
    for number, block in enumerate(python_blocks(document.read_text(encoding="utf-8")), 1):
        compile(block, f"{document.name}, block {number}", "exec")


@pytest.mark.parametrize("name", PAGES)
def test_python_in_documents_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a folder with the files that pages name; `make site` runs the notebooks."""
    monkeypatch.chdir(tmp_path)
    k = range(1, 61)
    firms = pl.DataFrame({"turnover": [1000.0 + 7 * i for i in k], "employees": [300 + i for i in k]})
    firms = firms.with_columns(nace=pl.Series([10 + i % 3 for i in k]))
    firms.write_csv("firms.csv")
    firms.with_row_index("row").write_csv("register.csv")
    pl.DataFrame({"sex": ["fm"[i % 2] for i in k], "age": [20 + i % 7 for i in k], "region": [i % 3 for i in k],
                  "w": [10.0] * 60}).write_csv("people.csv")  # fmt: skip
    run_page(f"docs/{name}.md")
    if name == "theory":  # what it prints stands below it
        page = (ROOT / "docs" / "theory.md").read_text(encoding="utf-8")
        shown = re.findall(r"^    (.*)$", page.rpartition("```")[2], re.MULTILINE)
        printed = capsys.readouterr().out.splitlines()
        assert printed and changed_lines(shown, printed) == []


def test_python_of_the_readme_ends_in_a_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three columns and two methods of the starting plan, in one process; else as it stands there."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SDCMAP_LEDGER", str(tmp_path / "ledger"))
    monkeypatch.setattr("secrets.randbits", lambda bits: 2**255 + 1)
    sm.write(sm.demo.population(1500, seed=8).only(["Age", "Sex", "wage"]), "cps.csv")
    smaller = {
        'sm.look("cps.csv").plan("cps.csv")': 'few(sm.look("cps.csv").plan("cps.csv"))',
        "workers=2": "workers=1",
    }
    made = run_page(
        "README.md", smaller, __name__="__main__", few=lambda plan: replace(plan, methods=plan.methods[-3:-1])
    )
    assert made["best"].reason.startswith("Recommended: ") and (tmp_path / "map.html").exists()
    assert (tmp_path / "public" / "SHA256SUMS").exists()


def test_python_of_the_utility_page_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    smaller = {
        "population(5000)": "population(100).only(['Age', 'Educ', 'Sex', 'Hours', 'Income', 'wage'])",
        "sweep(people, plan)": "sweep(people, plan, workers=1)",
        "scores, masked)": "scores, masked, draws=2)",
    }
    run_page("docs/utility.md", smaller)
    said = capsys.readouterr().out.splitlines()
    assert [line.split("(")[0].split(":")[0] for line in said] == ["TableError", "IntervalOverlap", "Propensity"]


def test_no_page_with_python_is_left_out() -> None:
    """What a page needs more than a folder, such as a server, a search or a study, another test has: it runs the page."""
    doors = [*(ROOT / "docs").glob("from-*.md"), ROOT / "docs" / "stata-spss.md"]  # tests/test_doc_code.py
    run = {*(f"docs/{name}.md" for name in PAGES), *(f"docs/{door.name}" for door in doors)}
    for file in (ROOT / "tests").rglob("test_*.py"):
        run |= {*re.findall(r'run_page\(\s*"([^"]+)"', file.read_text(encoding="utf-8"))}
    shown = {str(page.relative_to(ROOT)) for page in DOCUMENTS if python_blocks(page.read_text(encoding="utf-8"))}
    assert sorted(shown - run) == []


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
