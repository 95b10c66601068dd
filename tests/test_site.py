"""The site: worked numbers, computed tables, a gallery of every chart, and a link checker."""

from __future__ import annotations

import ast
import importlib.util
import math
import stat
import sys
from pathlib import Path
from types import ModuleType

import pytest

from commands import sdcmap
from sdcmap.cli import serve
from sdcmap.risk import RISKS
from sdcmap.utility import UTILITIES
from stored_numbers import changed_lines

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"


def loaded(path: Path) -> ModuleType:
    """Import a script as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def worked() -> ModuleType:
    return loaded(DOCS / "make_worked.py")


def test_every_worked_number_is_what_sdcmap_computes(worked: ModuleType) -> None:
    wrong = [
        (case.measure.text, case.number, case.arithmetic)
        for case in worked.cases()
        if not math.isclose(case.number, case.arithmetic, rel_tol=worked.TOLERANCE, abs_tol=1e-9)
    ]
    assert wrong == []


def test_every_measure_has_a_worked_number_on_the_page(worked: ModuleType) -> None:
    cases = worked.cases()
    missing = {*RISKS, *UTILITIES} ^ {type(case.measure) for case in cases}
    assert missing == set(), "add a Worked(...) for each to docs/make_worked.py"
    assert all(case.words for case in cases)
    text = worked.PAGE.read_text(encoding="utf-8").partition(worked.BEGIN)[2].partition(worked.END)[0]
    made = "\n".join(worked.page()).strip().splitlines()
    assert changed_lines(text.strip().splitlines(), made) == [], "run docs/make_worked.py"


def test_tables_to_decide_by_are_on_their_pages() -> None:
    decide = loaded(DOCS / "make_decide.py")
    for place in decide.TABLES:
        page, name = place.split()
        text = (DOCS / "decide" / page).read_text(encoding="utf-8")
        table = text.partition(f"<!-- {name} -->")[2].partition(f"<!-- end {name} -->")[0]
        assert table.count("\n|") > 3, f"run docs/make_decide.py {name}"
        if name in ("limits", "abilities"):  # those without a sweep
            shown = table.strip().splitlines()
            assert changed_lines(shown, decide.TABLES[place]()) == [], f"run docs/make_decide.py {name}"


def test_the_gallery_has_every_chart() -> None:
    gallery = (DOCS / "look" / "gallery.md").read_text(encoding="utf-8")
    drawn = {
        node.name
        for file in (ROOT / "src" / "sdcmap" / "charts").glob("*.py")
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("draw_")
    }
    # of the confidentiality plot for outside; of draw_criterion; of draw_map
    parts_of_others = {"draw_bins", "draw_planes", "draw_panel"}
    assert sorted(name for name in drawn - parts_of_others if name not in gallery) == []


def test_there_are_fourteen_tutorials_and_four_cases_that_run() -> None:
    for folder, count in (("learn", 14), ("cases", 4)):
        notebooks = [file for file in (DOCS / folder).glob("*.md") if file.name != "index.md"]
        assert len(notebooks) == count
        index = (DOCS / folder / "index.md").read_text(encoding="utf-8")
        for file in notebooks:
            text = file.read_text(encoding="utf-8")
            assert "file_format: mystnb" in text and "```{code-cell}" in text
            assert f"]({file.name})" in index


def test_the_link_checker_finds_what_is_wrong(tmp_path: Path) -> None:
    check = loaded(ROOT / "site" / "check.py")
    (tmp_path / "right.html").write_text('<p id="here"></p><a href="wrong.html">x</a><a href="https://a.org/b">y</a>')
    (tmp_path / "wrong.html").write_text(
        '<a href="gone.html">a</a><a href="right.html#there">b</a><a href="right.html#here">c</a>'
        '<a href="https://nowhere">d</a><a href="../secret.html">e</a><script src="https://cdn.org/x.js"></script>'
    )
    faults = check.check(tmp_path)
    assert len(faults) == 5 and all(fault.startswith("wrong.html") for fault in faults)
    assert [word in " ".join(faults) for word in ("gone.html", "#there", "nowhere", "secret", "cdn.org")] == [True] * 5
    assert check.check(tmp_path / "empty") == [f"{tmp_path / 'empty'} has no pages"]


def test_docs_opens_the_pages_or_says_how_to_make_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "DOCS_PAGE", tmp_path / "index.html")
    assert "`make site`" in sdcmap("docs", code=2).stderr
    (tmp_path / "index.html").touch()
    assert sdcmap("docs", "--where").stdout.strip() == str(tmp_path / "index.html")
    browser, opened = tmp_path / "browser", tmp_path / "opened"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}\n')
    browser.chmod(browser.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("BROWSER", str(browser))
    sdcmap("docs")
    assert opened.read_text().strip() == (tmp_path / "index.html").as_uri()
