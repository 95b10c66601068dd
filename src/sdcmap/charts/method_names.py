"""Short names of methods for labels, panels and legends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from sdcmap.core import Method, PlanError
from sdcmap.study.candidate_names import format_parameter
from sdcmap.study.parameter_families import MethodParameters, join_labels
from sdcmap.study.scores import Scores

MAX_LABEL_LENGTH = 52  # characters of a label
FILE = "file made elsewhere"
UNKNOWN = "release made elsewhere"  # a row of a table, whose method is not known


@dataclass(frozen=True)
class MethodLabel:
    """The method of a row of a score table."""

    text: str
    method: Method | None  # None: not known
    kind: str = "candidate"  # of the row
    name: str = ""  # for people
    is_stated: bool = False  # whether a person stated the name
    columns: Mapping[str, object] = field(default_factory=dict)  # further columns of a table made elsewhere

    @property
    def parameters(self) -> MethodParameters:
        """The parameters of the method, or the further columns of the table."""
        if self.method is None:
            return MethodParameters(self.text, (), (self.columns,))
        return MethodParameters.of_method(self.method)

    @property
    def display_name(self) -> str:
        """The name; where there is none, the title of the method, or its text."""
        return self.name or (self.text if self.method is None else self.method.title)

    def family(self, without_last: int = 0) -> str:
        """Return the label of the method; for a chain, the labels of its steps without so many of the last ones."""
        if self.kind == "file":
            return FILE
        labels = self.parameters.labels
        return join_labels(labels[: len(labels) - without_last]) or UNKNOWN


def label_methods(texts: Iterable[str], scores: Scores) -> list[MethodLabel]:
    """Return the methods behind some texts of a score table."""
    kinds, methods, names = scores.kinds, scores.methods, scores.names
    stated = names if scores.plan is None else scores.plan.stated_names
    return [
        MethodLabel(
            text, methods.get(text), kinds.get(text, "candidate"), names.get(text, ""), text in stated,
            scores.columns.get(text, {}),
        )
        for text in texts
    ]  # fmt: skip


def groups_of(rows: Sequence[MethodLabel], by: str) -> dict[str, str]:
    """Return the group of each method text, smallest first: its family (by "method"), or its value of the parameter `by`.

    Last steps that all methods share, such as averaged weights, are left out of the families.

    >>> from sdcmap import Swap
    >>> swaps = [Swap(on="sex", rate=0.05), Swap(on="sex", rate=0.005)]
    >>> groups_of([*(MethodLabel(m.text, m) for m in swaps), MethodLabel("a.csv", None, "file")], "rate")
    {"Swap(on='sex', rate=0.005)": 'rate 0.005', "Swap(on='sex', rate=0.05)": 'rate 0.05', 'a.csv': 'no rate'}
    """
    if by == "method":
        shared = _count_shared_last_steps(
            [row.parameters.labels for row in rows if row.method is not None and row.kind == "candidate"]
        )
        families = {row.text: row.family(shared) for row in rows}
        return dict(sorted(families.items(), key=lambda item: (item[1], item[0])))
    values = {row.text: row.parameters.values(by) for row in rows}
    if rows and not any(values.values()):
        raise PlanError(f"no method of this map has a parameter {by!r}.")
    order = sorted(values, key=lambda text: (not values[text], list(map(_sortable, values[text])), text))
    words = {text: " then ".join(map(format_parameter, values[text])) for text in order}
    return {text: f"{by} {value}" if value else f"no {by}" for text, value in words.items()}


def short_names(rows: Sequence[MethodLabel]) -> dict[str, str]:
    """Return a short name for each method text: the stated name, or a short title.

    Variables that all methods of a class mask are left out, and last steps that all candidates share. Methods that would
    have the same name get their full name.

    >>> from sdcmap import RankSwap, Swap
    >>> methods = [Swap(on=["Age", "Sex"], rate=0.05), Swap(on="Age", rate=0.01), RankSwap("wage"), RankSwap("wage", 0.2)]
    >>> list(short_names([MethodLabel(m.text, m) for m in methods]).values())
    ['Age, Sex swapped 5 %', 'Age swapped 1 %', 'rank swapped 5 %', 'rank swapped 20 %']
    """
    # A class whose methods all mask the same variables needs no variables in its names.
    subjects: dict[type, set[tuple[str, ...]]] = {}
    for row in rows:
        for step in _steps(row.method):
            subjects.setdefault(type(step), set()).add((*step.masked_names, *step.within))
    bare = frozenset(cls for cls, masked in subjects.items() if len(masked) == 1)
    texts = [tuple(step.text for step in _steps(row.method)) for row in rows if row.kind == "candidate" and row.method]
    shared = _count_shared_last_steps(texts)
    short = {row.text: _shorten(row, bare, shared if row.kind == "candidate" else 0) for row in rows}
    # Equal short names would be ambiguous on the map, so these methods get their full names.
    counts = Counter(short.values())
    return {row.text: short[row.text] if counts[short[row.text]] == 1 else _cut(row.display_name) for row in rows}


def _shorten(row: MethodLabel, bare: frozenset[type], shared: int) -> str:
    if row.method is None or row.is_stated:
        return _cut(row.display_name)
    steps = row.method.steps[: len(row.method.steps) - shared]
    whole = [step.action if type(step) in bare and step.masked_names else step.title for step in steps]
    actions = [step.action if step.masked_names else step.title for step in steps]
    names = ["; ".join(dict.fromkeys(parts)) for parts in (whole, actions)]
    # The variables of a long name go first: the strengths at its end tell candidates apart.
    return _cut(names[0] if len(names[0]) <= MAX_LABEL_LENGTH else names[1])


def _count_shared_last_steps(labels: Sequence[tuple[str, ...]]) -> int:
    """Return how many last steps all of these chains share. At least one step of each remains."""
    if len(labels) < 2:
        return 0
    same = takewhile(lambda column: len(set(column)) == 1, zip(*(reversed(own) for own in labels), strict=False))
    return min(len(list(same)), min(map(len, labels)) - 1)


def _sortable(value: object) -> tuple[bool, float, str]:
    return (False, float(value), "") if isinstance(value, int | float) else (True, 0.0, format_parameter(value))


def _steps(method: Method | None) -> tuple[Method, ...]:
    """Return the method itself, or the steps of a chain."""
    return () if method is None else method.steps


def _cut(text: str) -> str:
    """Shorten a text in the middle: strengths are at its end."""
    half = MAX_LABEL_LENGTH // 2
    return text if len(text) <= MAX_LABEL_LENGTH else f"{text[: half - 1].rstrip()}…{text[-half:].lstrip()}"
