"""Methods in few words: what a label, a panel or a legend calls them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import fields
from functools import cache
from itertools import groupby
from typing import Any

from sdcmap.core.method import Method
from sdcmap.core.value import parse
from sdcmap.errors import PlanError
from sdcmap.study.scores import ELSEWHERE

LONGEST = 34  # characters of a label
FILE = "file made elsewhere"


@cache
def method_of(text: str) -> Method | None:
    """The method that a method text stands for; None for a file made elsewhere or a text that is no method's."""
    try:
        return parse(text, Method)
    except PlanError:
        return None


def class_of(text: str) -> str:
    """The class of a method; of a chain, the classes of its steps, steps of one class in a row once.

    >>> class_of("Chain(methods=[Swap(on='sex'), Noise(on='income')])")
    'Swap then Noise'
    """
    if text.startswith(ELSEWHERE):
        return FILE
    method = method_of(text)
    if method is None:
        return text.partition("(")[0].rpartition(":")[2] or text
    return " then ".join(name for name, _ in groupby(type(step).__name__ for step in _steps(method)))


def groups_of(texts: Iterable[str], by: str) -> dict[str, str]:
    """The group of each method text, smallest first: its class (by "method"), or its value of the parameter `by`.

    >>> groups_of(["Swap(on='sex', rate=0.05)", "Swap(on='sex', rate=0.005)", "file: a.csv"], "rate")
    {"Swap(on='sex', rate=0.005)": 'rate .005', "Swap(on='sex', rate=0.05)": 'rate .05', 'file: a.csv': 'no rate'}
    """
    texts = list(texts)
    if by == "method":
        return {text: class_of(text) for text in sorted(texts, key=lambda text: (class_of(text), text))}
    values = {text: _values(text, by) for text in texts}
    if texts and not any(values.values()):
        raise PlanError(f"no method of this map has a parameter {by!r}.")
    order = sorted(texts, key=lambda text: (not values[text], _sortable(values[text]), text))
    said = {text: " then ".join(filter(None, map(_word, values[text]))) for text in texts}
    return {text: f"{by} {said[text]}" if said[text] else f"no {by}" for text in order}


def short_names(texts: Iterable[str]) -> dict[str, str]:
    """A few words for each method text: its class and the parameters in which methods of its class differ.

    >>> short_names(["Swap(on=['Age', 'Sex'], rate=0.05)", "Swap(on='Age', rate=0.01)"])["Swap(on='Age', rate=0.01)"]
    'Swap Age .01'
    """
    texts = list(texts)
    leaves: dict[type, list[Method]] = {}
    for text in texts:
        for step in _steps(method_of(text)):
            leaves.setdefault(type(step), []).append(step)
    varying = {
        cls: [f.name for f in fields(cls) if len({getattr(method, f.name) for method in found}) > 1]
        for cls, found in leaves.items()
    }
    short = {text: _shortened(text, varying) for text in texts}
    counts = Counter(short.values())
    return {text: words if counts[words] == 1 else _cut(text) for text, words in short.items()}


def number(value: float) -> str:
    """A parameter's number without its leading zero: .05, 2, 1e-06."""
    text = f"{value:g}"
    return text.replace("0.", ".", 1) if text.lstrip("-").startswith("0.") else text


def _shortened(text: str, varying: dict[type, list[str]]) -> str:
    method = method_of(text)
    if method is None:
        return _cut(text)
    words = []
    for step in _steps(method):
        names = varying[type(step)]
        numbers = [name for name in names if isinstance(getattr(step, name), int | float)]
        said = [_said(step, name, bare=len(numbers) == 1) for name in names]
        words.append(" ".join([type(step).__name__, *filter(None, said)]))
    return _cut(" then ".join(words))


def _said(method: Method, name: str, *, bare: bool) -> str:
    """One parameter in words; a lone number stands without its name."""
    value = getattr(method, name)
    if isinstance(value, bool):
        return name if value else ""
    word = _word(value)
    return f"{name} {word}" if word and not bare and isinstance(value, int | float) else word


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return number(value)
    if isinstance(value, tuple):
        return "+".join(_word(item) for item in value)
    return "" if value is None else str(value)


def _values(text: str, name: str) -> tuple[Any, ...]:
    """The parameter `name` of each step that has one."""
    steps = [step for step in _steps(method_of(text)) if name in {f.name for f in fields(step)}]
    return tuple(getattr(step, name) for step in steps if getattr(step, name) not in (None, ()))


def _sortable(values: tuple[Any, ...]) -> list[tuple[bool, float, str]]:
    numbers = [isinstance(value, int | float) for value in values]
    return [
        (not is_number, float(value) if is_number else 0.0, "" if is_number else _word(value))
        for value, is_number in zip(values, numbers, strict=True)
    ]


def _steps(method: Method | None) -> tuple[Method, ...]:
    """The method itself, or the steps of a chain."""
    return () if method is None else method.steps


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
