"""The tutorial of each paper: its command is valid and says the same as its Python call, and its file is read."""

from __future__ import annotations

import ast
import inspect
import re
import shlex
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from documents import ROOT
from sdcmap.papers import own_file
from sdcmap.papers.run_paper import FILE_ARGUMENTS, PAPERS

PAGES = {page.stem: page for page in sorted((ROOT / "docs" / "learn").glob("paper-*.md"))}
ARGUMENTS = {"seeds": "replicates", "rate": "rates"}  # options that the call names otherwise
NOT_IN_COMMAND = ("seed", "workers")  # the pages state them so that their numbers do not change
MENTIONED_IN = ("docs/learn/index.md", "docs/own-file.md", "docs/understand/papers.md")


def cells(page: Path) -> list[str]:
    return re.findall(r"```\{code-cell\}\n(?::tags:.*\n)?(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


def call(page: Path) -> tuple[str, str, dict[str, Any]]:
    """Return the paper, the file and the arguments of the call of `sdcmap.papers.run`."""
    (found,) = [
        node
        for cell in cells(page)
        for node in ast.walk(ast.parse(cell))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "sdcmap.papers.run"
    ]
    paper, file = (ast.literal_eval(argument) for argument in found.args)
    stated = {str(word.arg): ast.literal_eval(word.value) for word in found.keywords}
    return paper, file, {name: _as_list(value) for name, value in stated.items() if name not in NOT_IN_COMMAND}


def command(page: Path) -> tuple[str, str, dict[str, Any]]:
    """Return the same of the command line."""
    (line,) = re.findall(r"^    sdcmap paper (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    paper, *words = shlex.split(line)
    options: dict[str, Any] = {}
    for option, value in zip(words[::2], words[1::2], strict=True):
        name = option.lstrip("-").replace("-", "_")
        options.setdefault(ARGUMENTS.get(name, name), []).extend(_number(part) for part in value.split(","))
    assert options.pop("o")
    (file,) = options.pop("file")
    return paper, file, options


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _number(text: str) -> str | float:
    return float(text) if re.fullmatch(r"-?[\d.]+", text) else text


def test_every_paper_has_a_tutorial() -> None:
    assert {call(page)[0] for page in PAGES.values()} == set(PAPERS)


@pytest.mark.parametrize("name", PAGES)
def test_tutorial_is_listed(name: str) -> None:
    for page in MENTIONED_IN:
        assert f"{name}.md)" in (ROOT / page).read_text(encoding="utf-8"), page


@pytest.mark.parametrize("name", PAGES)
def test_command_says_the_same_as_the_call(name: str) -> None:
    assert command(PAGES[name]) == call(PAGES[name])


@pytest.mark.parametrize("name", PAGES)
def test_file_of_tutorial_suits_the_paper(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first cell makes the file; the plan of the stated options has no problem on it."""
    monkeypatch.chdir(tmp_path)
    exec(cells(PAGES[name])[0], {})
    paper, file, options = call(PAGES[name])
    module = PAPERS[paper]
    known = inspect.signature(module.design).parameters
    one = {key: value[0] for key, value in options.items() if key in known and key not in ("within", "rates")}
    several = {key: tuple(options[key]) for key in ("within", "rates") if key in options}
    given = {key: tuple(value) for key, value in options.items() if key in FILE_ARGUMENTS}
    own = own_file.open_own_file(paper, file, options.get("on", ()), module.ON_ROLE, given)
    whole = {key: int(one.pop(key)) for key in ("replicates", "k") if key in one}
    plan = module.design(own, **one, **whole, **several).plan(seed=1)
    assert plan.problems_with(own.data) == []
    assert pl.read_csv(file).height == len(own.data)
