"""docs/understand/papers.md agrees with the code: every test and name in its tables exists, and no item is left out."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import sdcmap as sm
from commands import sdcmap
from documents import ROOT
from sdcmap.core.map_options import MapOptions
from sdcmap.core.value import Value, field_types

PAPERS = {
    "D": "Duncan, Keller-McNulty, Stokes (2001)",
    "G": "Gomatam, Karr, Sanil (2003)",
    "T": "Trottini (2001)",
    "S": "Seri (2005)",
    "Y": "Yancey, Winkler, Creecy (2002)",
}
STATUSES = ("faithful", "differs", "missing")
CODE = re.compile(r"`([^`]+)`")
TEST = re.compile(r"`(test_\w+)::(test_\w+)`")
CALL = re.compile(r"([\w.]+)(?:\(([\w, ]*)\))?")
NUMBER = re.compile(r"\d+(?:\.\d+)?")
MIN_REASON = 40  # characters of a sentence that says why an item differs or is missing
COMMON_WORDS = {"the", "and", "for", "its", "their", "with", "from", "that", "than", "this", "one", "any", "all", "not"}


@dataclass(frozen=True)
class Item:
    """A row of the tables: an item of a paper, where it is in sdcmap, and what shows it."""

    number: str
    words: str
    place: str
    names: str
    status: str
    shown: str

    @property
    def tests(self) -> list[tuple[str, str]]:
        """File and function of each test that shows the item."""
        return TEST.findall(self.shown)

    @property
    def reason(self) -> str:
        """What stands beside the tests."""
        return re.sub(r"^[\s,.]+", "", TEST.sub("", self.shown)).strip()


@cache
def page() -> str:
    return (ROOT / "docs" / "understand" / "papers.md").read_text(encoding="utf-8")


@cache
def items() -> tuple[Item, ...]:
    rows = re.findall(r"^\| ([DGTSY]\d+) \| (.*) \|$", page(), re.MULTILINE)
    return tuple(Item(number, *rest.split(" | ")) for number, rest in rows)


# ---- the tables ---------------------------------------------------------------------------------------------------
def test_items_are_numbered_and_have_a_status() -> None:
    wanted = [f"{letter}{k}" for letter in PAPERS for k in range(1, count_items(letter) + 1)]
    assert [item.number for item in items()] == wanted
    assert {item.status for item in items()} == set(STATUSES)


def count_items(letter: str) -> int:
    return sum(item.number.startswith(letter) for item in items())


def test_counts_by_status_are_those_of_the_tables() -> None:
    for letter, paper in [*PAPERS.items(), ("", "all")]:
        status = Counter(item.status for item in items() if item.number.startswith(letter))
        row = f"| {paper} | {status.total()} | {status['faithful']} | {status['differs']} | {status['missing']} |"
        assert row in page().splitlines()
    assert f"found {len(items())} items" in " ".join(page().split())


def test_every_item_has_a_test_or_a_reason() -> None:
    for item in items():
        assert item.tests or item.status == "missing", f"{item.number} names no test"
        if item.status != "faithful":
            assert len(item.reason) >= MIN_REASON and item.reason.endswith("."), f"{item.number} gives no reason"


def test_masking_that_is_only_cited_is_named() -> None:
    (item,) = (item for item in items() if "Polettini, Franconi and Stander 2002" in item.words)
    assert item.status == "missing" and "only cites" in item.reason


def test_every_named_test_exists() -> None:
    files = [*(ROOT / "tests").rglob("test_*.py")]
    assert len({file.stem for file in files}) == len(files), "two files of tests share a name"
    source = {file.stem: file.read_text(encoding="utf-8") for file in files}
    named = [(item.number, file, name) for item in items() for file, name in item.tests]
    assert len(named) > len(items())
    assert [row for row in named if not re.search(rf"^def {row[2]}\(", source.get(row[1], ""), re.MULTILINE)] == []


# ---- the names ----------------------------------------------------------------------------------------------------
def test_every_name_exists() -> None:
    unknown = [(item.number, code) for item in items() for code in CODE.findall(item.names) if not is_there(code)]
    assert unknown == []
    in_reasons = [code for item in items() for code in CODE.findall(item.reason) if code[0].isupper()]
    assert in_reasons and [code for code in in_reasons if not is_there(code)] == []


@pytest.mark.parametrize(
    "code",
    ["NoSuchClass", "Swap(rates)", "theory.no_such", "RUMap.no_such", "RUMap.draw(no_such)", "sdcmap map --no-such",
     "sdcmap no-such", "Noise(variance"],
)  # fmt: skip
def test_unknown_names_are_found(code: str) -> None:
    assert not is_there(code)


def is_there(code: str) -> bool:
    """Return whether a name with its parameters, such as `Swap(rate)`, or a command with its options, exists."""
    if code.startswith("sdcmap "):
        return is_command(code.split()[1:])
    match = CALL.fullmatch(code)
    thing = find(match[1]) if match else None
    if match is None or thing is None:
        return False
    return match[2] is None or {*re.findall(r"\w+", match[2])} <= parameters(thing)


def find(name: str) -> Any:
    """Return what a name such as `theory.utility` or `RUMap.draw` stands for, or None."""
    first, *rest = name.split(".")
    packages = (sm, sm.methods, sm.risk, sm.utility, sm.recordwise, sm.theory)
    thing = next((getattr(package, first) for package in packages if hasattr(package, first)), None)
    for part in rest:
        thing = getattr(thing, part, None)
    return thing


def parameters(thing: Any) -> set[str]:
    """Return the fields of a class, or the parameters of a function; map options where it passes them on."""
    if isinstance(thing, type) and issubclass(thing, Value):
        return set(field_types(thing))
    given = inspect.signature(thing).parameters
    passes_on = any(parameter.kind is parameter.VAR_KEYWORD for parameter in given.values())
    return {*given, *(MapOptions.__annotations__ if passes_on else ())}


@cache
def options_of(command: tuple[str, ...]) -> str | None:
    """Return the help of a command, or None if there is no such command."""
    try:
        return sdcmap(*command, "--help").stdout
    except AssertionError:
        return None


def is_command(words: list[str]) -> bool:
    names = tuple(word for word in words if not word.startswith("--"))
    text = options_of(names)
    return text is not None and all(re.search(rf"{word}\b", text) for word in words if word.startswith("--"))


# ---- the audit ----------------------------------------------------------------------------------------------------
def audit_rows(folder: Path) -> list[list[tuple[str, str]]]:
    """Return (item, place) of every row of the audit of the papers, paper by paper."""
    file = folder / "audit.md"
    if not file.exists():
        pytest.skip(f"the audit of the papers is not here: {folder} has no audit.md")
    papers = file.read_text(encoding="utf-8").split("\n## ")[1:]
    tables = [re.findall(r"^\| (?!item \|)([^|-][^|]*) \| ([^|]*) \|", text, re.MULTILINE) for text in papers]
    return [[(item.strip(), place.strip()) for item, place in table] for table in tables]


def content_words(text: str) -> set[str]:
    """Return the words that say what a text is about, cut to six letters, and names with numbers such as `s2`."""
    words = re.findall(r"[a-z]{3,}|[a-z]*\d+", text.lower())
    return {word[:6] for word in words if word not in COMMON_WORDS}


def test_every_row_of_the_audit_is_an_item(shared: Path) -> None:
    """In the same order, at the same place of the paper, and about the same thing: they share a word that counts."""
    for letter, rows in zip(PAPERS, audit_rows(shared), strict=True):
        ours = [item for item in items() if item.number.startswith(letter)]
        assert len(ours) == len(rows), PAPERS[letter]
        for item, (words, place) in zip(ours, rows, strict=True):
            numbers = {number for number in NUMBER.findall(place) if number != "000"}
            assert numbers <= {*NUMBER.findall(item.place)}, f"{item.number}: the audit says {place}"
            assert content_words(words) & content_words(item.words), f"{item.number}: the audit says {words}"
