"""Methods in few words: what a label, a panel or a legend calls them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import groupby

from sdcmap.core.method import Method
from sdcmap.errors import PlanError

LONGEST = 34  # characters of a label
FILE = "file made elsewhere"


@dataclass(frozen=True)
class Labelled:
    """A row's method as the scores know it: its text, the method itself (None: not known), and the kind of row."""

    text: str
    method: Method | None
    kind: str = "candidate"

    @property
    def family(self) -> str:
        """The class of the method; of a chain, the classes of its steps, steps of one class in a row once."""
        if self.kind == "file":
            return FILE
        if self.method is None:
            return self.text.partition("(")[0].rpartition(":")[2] or self.text
        return " then ".join(name for name, _ in groupby(type(step).__name__ for step in _steps(self.method)))


def labelled(texts: Iterable[str], methods: Mapping[str, Method], kinds: Mapping[str, str]) -> list[Labelled]:
    """The methods behind some texts of a score table."""
    return [Labelled(text, methods.get(text), kinds.get(text, "candidate")) for text in texts]


def groups_of(rows: Sequence[Labelled], by: str) -> dict[str, str]:
    """The group of each method text, smallest first: its class (by "method"), or its value of the parameter `by`.

    >>> from sdcmap import Swap
    >>> swaps = [Swap(on="sex", rate=0.05), Swap(on="sex", rate=0.005)]
    >>> groups_of([*(Labelled(m.text, m) for m in swaps), Labelled("a.csv", None, "file")], "rate")
    {"Swap(on='sex', rate=0.005)": 'rate .005', "Swap(on='sex', rate=0.05)": 'rate .05', 'a.csv': 'no rate'}
    """
    if by == "method":
        return {row.text: row.family for row in sorted(rows, key=lambda row: (row.family, row.text))}
    values = {row.text: _values(row.method, by) for row in rows}
    if rows and not any(values.values()):
        raise PlanError(f"no method of this map has a parameter {by!r}.")
    order = sorted(values, key=lambda text: (not values[text], _sortable(values[text]), text))
    said = {text: " then ".join(filter(None, map(_word, values[text]))) for text in values}
    return {text: f"{by} {said[text]}" if said[text] else f"no {by}" for text in order}


def short_names(rows: Sequence[Labelled]) -> dict[str, str]:
    """A few words for each method text: its class and the parameters in which methods of its class differ.

    >>> from sdcmap import Swap
    >>> swaps = [Swap(on=["Age", "Sex"], rate=0.05), Swap(on="Age", rate=0.01)]
    >>> list(short_names([Labelled(m.text, m) for m in swaps]).values())
    ['Swap Age+Sex .05', 'Swap Age .01']
    """
    steps: dict[type, list[Method]] = {}
    for row in rows:
        for step in _steps(row.method):
            steps.setdefault(type(step), []).append(step)
    varying = {
        cls: [f.name for f in fields(cls) if len({getattr(method, f.name) for method in methods}) > 1]
        for cls, methods in steps.items()
    }
    short = {row.text: _shortened(row, varying) for row in rows}
    counts = Counter(short.values())
    return {text: words if counts[words] == 1 else _cut(text) for text, words in short.items()}


def number(value: float) -> str:
    """A parameter's number without its leading zero: .05, 2, 1e-06."""
    text = f"{value:g}"
    return text.replace("0.", ".", 1) if text.lstrip("-").startswith("0.") else text


def _shortened(row: Labelled, varying: dict[type, list[str]]) -> str:
    if row.method is None:
        return _cut(row.text)
    words = []
    for step in _steps(row.method):
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


def _word(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return number(value)
    if isinstance(value, tuple):
        return "+".join(_word(item) for item in value)
    return "" if value is None else str(value)


def _values(method: Method | None, name: str) -> tuple[object, ...]:
    """The parameter `name` of each step that has one."""
    steps = [step for step in _steps(method) if name in {f.name for f in fields(step)}]
    return tuple(getattr(step, name) for step in steps if getattr(step, name) not in (None, ()))


def _sortable(values: tuple[object, ...]) -> list[tuple[bool, float, str]]:
    return [
        (False, float(value), "") if isinstance(value, int | float) else (True, 0.0, _word(value)) for value in values
    ]


def _steps(method: Method | None) -> tuple[Method, ...]:
    """The method itself, or the steps of a chain."""
    return () if method is None else method.steps


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
