"""The glossary agrees with the code: the names exist, and the workbench explains a word with the same sentence."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import get_args

import pytest

import sdcmap as sm
from commands import sdcmap
from sdcmap.data.schema import KINDS, ROLES
from sdcmap.study.jobs import Kind

ROOT = Path(__file__).resolve().parents[1]
ROWS = dict(
    re.findall(r"^\| (?!word)([^|]+?) \| (.*) \|$", (ROOT / "docs" / "glossary.md").read_text("utf-8"), re.MULTILINE)
)
ENTRIES = {word: means for words, means in ROWS.items() for word in words.split(", ")}
SCRIPT = (ROOT / "src" / "sdcmap" / "web" / "static" / "words.js").read_text("utf-8").partition("const PLURALS")[0]
MEANINGS = dict(re.findall(r'^  "?([\w ]+?)"?:\s+"(.*)",$', SCRIPT, re.MULTILINE))
LISTS = {"kind": {*KINDS, *get_args(Kind)}, "role": {*ROLES}}
MARK = re.compile(r"`([^`]+)`")


def marked(*words: str) -> set[str]:
    """Return the names in backticks in the entries."""
    return {code for word in words for code in MARK.findall(ENTRIES[word])}


def is_there(code: str, columns: set[str]) -> bool:
    if code.startswith("sdcmap "):
        return bool(sdcmap(code.removeprefix("sdcmap "), "--help").stdout)
    if code.startswith("sdcmap."):
        return bool(importlib.import_module(code))
    return code in columns or any(
        hasattr(package, code) for package in (sm, sm.methods, sm.risk, sm.utility, sm.recordwise)
    )


def test_names_in_the_glossary_exist() -> None:
    columns = {*sm.sweep(sm.demo.population(30), sm.Plan([], [sm.SmallCells()], seed=1), workers=1).candidate.columns}
    named = marked(*(word for word in ENTRIES if word not in LISTS))
    assert len(named) > 5
    assert sorted(code for code in named if not is_there(code, columns)) == []
    assert not is_there("Identities", columns)


@pytest.mark.parametrize("word", LISTS)
def test_lists_in_the_glossary_are_complete(word: str) -> None:
    assert marked(word) == LISTS[word]


@pytest.mark.parametrize("word", MEANINGS)
def test_the_workbench_explains_a_word_as_the_glossary_does(word: str) -> None:
    """The sentence of the workbench is the beginning of the entry."""
    means = MEANINGS[word].removesuffix(".")
    assert ENTRIES[word].startswith(means[0].lower() + means[1:])


def test_glossary_is_sorted() -> None:
    assert list(ROWS) == sorted(ROWS, key=str.casefold)
    assert len(MEANINGS) == len(re.findall(r'^  "?[\w ]+"?:', SCRIPT, re.MULTILINE)) > 20
