"""The documentation is correct: its code runs, the calls it names exist, its links are valid."""

from __future__ import annotations

import ast
import doctest
import inspect
import io
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

import sdcmap as sm
from documents import ROOT, WRITTEN, all_pages, anchors, broken_links, links
from sdcmap.core.value import field_types

DOORS = sorted((ROOT / "docs").glob("from-*.md"))
RUN = [*DOORS, ROOT / "docs" / "stata-spss.md"]
BLOCK = re.compile(r"^```(python|pycon)\n(.*?)^```", re.MULTILINE | re.DOTALL)
CALL = re.compile(r"^(?:sm\.)?([A-Z]\w+)\(")


@pytest.mark.parametrize("page", RUN, ids=lambda page: page.name)
def test_code_of_the_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run blocks in order in one namespace; the output of a console block must equal the shown one."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    runner = doctest.DocTestRunner(verbose=False)
    for number, (kind, code) in enumerate(BLOCK.findall(page.read_text(encoding="utf-8")), 1):
        where = f"{page.name}, block {number}"
        with redirect_stdout(io.StringIO()):
            if kind == "python":
                exec(compile(code, where, "exec"), names)
        if kind == "pycon":
            shown = doctest.DocTestParser().get_doctest(code, names, where, page.name, 0)
            runner.run(shown, clear_globs=False)
            names.update(shown.globs)
    assert runner.summarize(verbose=False).failed == 0


def offered_calls(page: Path) -> Iterator[str]:
    """Return the calls in the last column of the page's tables."""
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("| ") and line.endswith(" |"):
            for code in re.findall(r"`([^`]+)`", line.split(" | ")[-1]):
                if CALL.match(code):
                    yield code


@pytest.mark.parametrize("page", DOORS, ids=lambda page: page.name)
def test_calls_named_on_pages_exist(page: Path) -> None:
    """Every `Class(parameter=...)` is a class with that parameter."""
    calls = [*offered_calls(page)]
    assert len(calls) > 10
    wrong = []
    for code in calls:
        name = CALL.match(code)[1]  # type: ignore[index]
        found = next(
            (cls for package in (sm, sm.methods, sm.risk, sm.utility) if (cls := getattr(package, name, None))), None
        )
        given = re.findall(r"(?:\(|, )(\w+)=", code)
        wrong += [code] if found is None or not set(given) <= set(field_types(found)) else []
    assert wrong == []


def named_in_passing(page: Path) -> Iterator[ast.AST]:
    """Return the parsed code in backticks or indented lines that begins with `sm.`."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    lines = re.findall(r"^    ((?:\w[\w, ]* = )?sm\..*)$", text, re.MULTILINE)
    for code in [*re.findall(r"`(sm\.[^`]+)`", text), *lines]:
        for shown, meant in (("=,", "=0,"), ("=)", "=0)"), (", ...}", "}")):  # what a reader fills in
            code = code.replace(shown, meant)
        yield from ast.walk(ast.parse(code))


def is_ours(node: ast.AST) -> bool:
    """`sm`, or a name inside it."""
    return (isinstance(node, ast.Name) and node.id == "sm") or (isinstance(node, ast.Attribute) and is_ours(node.value))


def ours(node: ast.AST) -> Any:
    """Return the object of that name; None if there is none."""
    try:
        return attrgetter(ast.unparse(node).removeprefix("sm."))(sm)
    except AttributeError:
        return None


def takes(called: Any, given: list[ast.keyword]) -> bool:
    try:
        inspect.signature(called).bind_partial(**{str(keyword.arg): None for keyword in given})
    except TypeError:
        return False
    return True


def test_names_mentioned_on_pages_exist() -> None:
    """Each `sm.name` is there, and a call gives it no parameter that it does not have; CHANGELOG.md also names what was."""
    calls, wrong = 0, []
    for page in WRITTEN:
        for node in () if page.name == "CHANGELOG.md" else named_in_passing(page):
            if isinstance(node, ast.Attribute) and is_ours(node):
                wrong += [] if ours(node) else [(page.name, ast.unparse(node))]
            elif isinstance(node, ast.Call) and is_ours(node.func) and (called := ours(node.func)):
                calls += 1
                wrong += [] if takes(called, node.keywords) else [(page.name, ast.unparse(node))]
    assert wrong == [] and calls > 25
    assert not takes(sm.read, [ast.keyword("kees")]) and ours(ast.parse("sm.reed", mode="eval").body) is None


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_are_valid(page: Path) -> None:
    """Links inside the repository lead to an existing or built file, and to an existing heading."""
    assert broken_links(page, all_pages()) == []


def test_broken_link_is_detected(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    text = "# One two\n[a](other.md) [b](#one-two) [c](#three) `[d](e)` [f](https://example.org)\n"
    assert [*links(text)] == ["other.md", "#one-two", "#three"]
    assert anchors(text) == {"one-two"}
    assert broken_links(page, {page: text}) == ["other.md", "#three"]


def test_pages_begin_with_their_purpose() -> None:
    """The first sentence of an entry page states its audience."""
    for page in RUN:
        lead = page.read_text(encoding="utf-8").split("\n\n")[1]
        assert re.match(r"(For users of|How) ", lead), page.name


def test_plans_on_entry_pages_are_valid() -> None:
    blocks = re.compile(r"^```toml\n(.*?)^```", re.MULTILINE | re.DOTALL)
    found = [block for page in DOORS for block in blocks.findall(page.read_text(encoding="utf-8"))]
    assert found and all(sm.Plan.from_toml(block).count > 1 for block in found)
