"""Methods in few words: what a label, a panel or a legend calls them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from itertools import groupby

from sdcmap.core import Method, PlanError
from sdcmap.study.candidate_names import format_parameter
from sdcmap.study.scores import Scores

LONGEST = 40  # characters of a label
FILE = "file made elsewhere"
UNKNOWN = "method of unknown class"  # a row of a table made elsewhere


@dataclass(frozen=True)
class Labeled:
    """A row's method as the scores know it: text, the method itself (None: not known), kind of row, name for people, and
    whether somebody stated that name."""

    text: str
    method: Method | None
    kind: str = "candidate"
    name: str = ""
    is_stated: bool = False

    @property
    def called(self) -> str:
        """Its name; where the scores know none, the method's own words, or its text."""
        return self.name or (self.text if self.method is None else self.method.title)

    @property
    def family(self) -> str:
        """The class of the method; of a chain, the classes of its steps, steps of one class in a row once."""
        if self.kind == "file":
            return FILE
        if self.method is None:
            return UNKNOWN
        return " then ".join(name for name, _ in groupby(type(step).__name__ for step in _steps(self.method)))


def labeled(texts: Iterable[str], scores: Scores) -> list[Labeled]:
    """The methods behind some texts of a score table."""
    kinds, methods, names = scores.kinds, scores.methods, scores.names
    stated = names if scores.plan is None else scores.plan.stated_names
    return [
        Labeled(text, methods.get(text), kinds.get(text, "candidate"), names.get(text, ""), text in stated)
        for text in texts
    ]


def groups_of(rows: Sequence[Labeled], by: str) -> dict[str, str]:
    """The group of each method text, smallest first: its class (by "method"), or its value of the parameter `by`.

    >>> from sdcmap import Swap
    >>> swaps = [Swap(on="sex", rate=0.05), Swap(on="sex", rate=0.005)]
    >>> groups_of([*(Labeled(m.text, m) for m in swaps), Labeled("a.csv", None, "file")], "rate")
    {"Swap(on='sex', rate=0.005)": 'rate 0.005', "Swap(on='sex', rate=0.05)": 'rate 0.05', 'a.csv': 'no rate'}
    """
    if by == "method":
        return {row.text: row.family for row in sorted(rows, key=lambda row: (row.family, row.text))}
    values = {row.text: _values(row.method, by) for row in rows}
    if rows and not any(values.values()):
        raise PlanError(f"no method of this map has a parameter {by!r}.")
    order = sorted(values, key=lambda text: (not values[text], list(map(_sortable, values[text])), text))
    said = {text: " then ".join(map(format_parameter, values[text])) for text in order}
    return {text: f"{by} {words}" if words else f"no {by}" for text, words in said.items()}


def short_names(rows: Sequence[Labeled]) -> dict[str, str]:
    """A few words for each method text: a stated name, or its own words; variables that all methods of a class mask are
    left out, and parameters that tell apart what would be called alike are added.

    >>> from sdcmap import RankSwap, Swap
    >>> methods = [Swap(on=["Age", "Sex"], rate=0.05), Swap(on="Age", rate=0.01), RankSwap("wage"), RankSwap("wage", 0.2)]
    >>> list(short_names([Labeled(m.text, m) for m in methods]).values())
    ['Age, Sex swapped 5 %', 'Age swapped 1 %', 'rank swapped 5 %', 'rank swapped 20 %']
    """
    subjects: dict[type, set[tuple[str, ...]]] = {}
    for row in rows:
        for step in _steps(row.method):
            subjects.setdefault(type(step), set()).add((*step.masked_names, *step.within))
    bare = frozenset(cls for cls, masked in subjects.items() if len(masked) == 1)
    short = {row.text: _shortened(row, bare) for row in rows}
    counts = Counter(short.values())
    return {row.text: short[row.text] if counts[short[row.text]] == 1 else _cut(row.called) for row in rows}


def _shortened(row: Labeled, bare: frozenset[type]) -> str:
    if row.method is None or row.is_stated:
        return _cut(row.called)
    said = [step.action if type(step) in bare and step.masked_names else step.title for step in row.method.steps]
    return _cut("; ".join(dict.fromkeys(said)))


def _values(method: Method | None, name: str) -> tuple[object, ...]:
    """The parameter `name` of each step that has one."""
    stated = (getattr(step, name) for step in _steps(method) if name in {f.name for f in fields(step)})
    return tuple(value for value in stated if value not in (None, ()))


def _sortable(value: object) -> tuple[bool, float, str]:
    return (False, float(value), "") if isinstance(value, int | float) else (True, 0.0, format_parameter(value))


def _steps(method: Method | None) -> tuple[Method, ...]:
    """The method itself, or the steps of a chain."""
    return () if method is None else method.steps


def _cut(text: str) -> str:
    """A text of at most LONGEST characters; both ends are kept, since strengths stand at the end."""
    half = LONGEST // 2
    return text if len(text) <= LONGEST else f"{text[: half - 1].rstrip()}…{text[-half:].lstrip()}"
