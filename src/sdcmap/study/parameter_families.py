"""Families: methods that differ in one number only, so that a map can trace that parameter as a curve."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from sdcmap.core import Method, PlanError
from sdcmap.study.candidate_names import MAX_SUFFIX_CHARACTERS, describe_differences, field_values

MIN_MEMBERS = 2  # methods in a family
RATIO_DIGITS = 9  # significant digits to which two ratios of parameters are equal


def join_labels(labels: Sequence[str]) -> str:
    """Return the labels of the steps of a chain as one name; abbreviations keep their capitals.

    >>> join_labels(["Global recoding", "Microaggregation"])
    'Global recoding + microaggregation'
    """
    return " + ".join(
        label if number == 0 or label[:2].isupper() else label[0].lower() + label[1:]
        for number, label in enumerate(labels)
    )


@dataclass(frozen=True)
class MethodParameters:
    """The parameters of one method, or the further columns of one row of a table made elsewhere.

    text : of the method. labels : of its steps, repeated ones once; none in a table. steps : the fields of each step.
    """

    text: str
    labels: tuple[str, ...]
    steps: tuple[Mapping[str, object], ...]

    @staticmethod
    def of_method(method: Method) -> MethodParameters:
        """Return the parameters of a method, step by step."""
        labels = tuple(label for label, _ in groupby(step.label for step in method.steps))
        return MethodParameters(method.text, labels, tuple(map(field_values, method.steps)))

    @property
    def kind(self) -> str:
        """The labels of the steps as one name; empty in a table."""
        return join_labels(self.labels)

    def values(self, name: str) -> tuple[object, ...]:
        """Return the parameter `name` of each step that states one."""
        return tuple(step[name] for step in self.steps if step.get(name) not in (None, ()))

    def number(self, name: str) -> float | None:
        """Return the parameter `name` if it is one number, the same in every step that has it; otherwise None."""
        values = set(self.values(name))
        (value,) = values if len(values) == 1 else (None,)
        return value if isinstance(value, int | float) and not isinstance(value, bool) else None

    @property
    def numeric_names(self) -> Iterator[str]:
        """The parameters that are one number each, in the order of the fields."""
        names = dict.fromkeys(name for step in self.steps for name in step)
        return (name for name in names if self.number(name) is not None)

    def rest(self, without: Collection[str]) -> str:
        """Return all other parameters as a text, to compare methods by."""
        steps = [{name: value for name, value in step.items() if name not in without} for step in self.steps]
        return json.dumps(steps, sort_keys=True, default=str)


@dataclass(frozen=True)
class Family:
    """Methods that differ in one number only.

    name : what they have in common, such as "Additive noise", or "Additive noise (on wage)" beside others.
    parameter : the field that differs.
    members : its value and the text of each method, smallest value first.
    """

    name: str
    parameter: str
    members: tuple[tuple[float, str], ...]


def find_families(
    methods: Iterable[MethodParameters], parameters: Sequence[str] = (), least: int = MIN_MEMBERS
) -> tuple[Family, ...]:
    """Return the families of some methods; each method is in one family at most.

    The methods of each class are split by the parameter that gives the longest families. A second number that stays in
    proportion to the parameter belongs to it: noise of v, and of 2v above a bound, is one family.

    Parameters
    ----------
    parameters : the fields that may differ; by default any number.
    least : values that a family must have.

    >>> from sdcmap import Noise
    >>> noises = [Noise("wage", variance=v) for v in (0.5, 0.1)]
    >>> (family,) = find_families(map(MethodParameters.of_method, noises))
    >>> family.name, family.parameter, [value for value, _ in family.members]
    ('Additive noise', 'variance', [0.1, 0.5])
    """
    by_class: defaultdict[tuple[str, int], list[MethodParameters]] = defaultdict(list)
    for method in methods:
        by_class[method.kind, len(method.steps)].append(method)
    return tuple(family for own in by_class.values() for family in _split_class(own, parameters, least))


def varying_parameters(methods: Iterable[MethodParameters]) -> list[str]:
    """Return the parameters that trace at least one family."""
    every = list(methods)
    names = dict.fromkeys(name for method in every for name in method.numeric_names)
    return [name for name in names if find_families(every, (name,))]


def check_families(families: Sequence[Family], methods: Sequence[MethodParameters], parameters: Sequence[str]) -> None:
    """Raise PlanError where a stated parameter traces no family."""
    traced = {family.parameter for family in families}
    for name in parameters:
        if name not in traced and not find_families(methods, (name,)):
            known = varying_parameters(methods)
            instead = f"These do: {', '.join(known)}." if known else "No other parameter does."
            raise PlanError(f"no two methods of this map differ in {name!r} only, so it traces no curve. {instead}")


def _split_class(methods: Sequence[MethodParameters], stated: Sequence[str], least: int) -> list[Family]:
    """Return the families of one class, by the parameter that traces most methods in the fewest families."""
    names = stated or list(dict.fromkeys(name for method in methods for name in method.numeric_names))
    splits = [[group for group in _split(methods, name) if len(group) >= least] for name in names]
    best = max(splits, key=lambda groups: (sum(map(len, groups)), -len(groups)), default=[])
    if not best:
        return []
    parameter = names[splits.index(best)]
    by_text = {method.text: method for method in methods}
    labels = _name_families([[by_text[text] for text in group.values()] for group in best], parameter)
    return [Family(label, parameter, tuple(sorted(group.items()))) for label, group in zip(labels, best, strict=True)]


def _split(methods: Sequence[MethodParameters], name: str) -> list[dict[float, str]]:
    """Return the groups of methods that differ in one parameter only: its value -> the text of the method."""
    numbered = [(method, value) for method in methods if (value := method.number(name)) is not None]
    alike = _collect((method.rest({name}), method, value) for method, value in numbered)
    groups = [group for group in alike if len(group) >= MIN_MEMBERS]
    taken = {text for group in groups for text in group.values()}
    # What is left may have a second number that grows with the parameter.
    left = [(method, value) for method, value in numbered if method.text not in taken]
    for group in sorted(_collect(_keys_in_proportion(left, name)), key=len, reverse=True):
        if len(group) >= MIN_MEMBERS and not taken & set(group.values()):
            groups.append(group)
            taken |= set(group.values())
    return groups


def _keys_in_proportion(
    numbered: Iterable[tuple[MethodParameters, float]], name: str
) -> Iterator[tuple[object, MethodParameters, float]]:
    """Yield each method with every second number that could be in proportion to the parameter."""
    for method, value in numbered:
        for other in method.numeric_names:
            second = method.number(other)
            if other != name and value and second:
                yield (method.rest({name, other}), other, f"{second / value:.{RATIO_DIGITS}g}"), method, value


def _collect(keyed: Iterable[tuple[object, MethodParameters, float]]) -> list[dict[float, str]]:
    """Return the methods of each key by value; keys under which a value occurs twice are left out, as ambiguous."""
    groups: defaultdict[object, list[tuple[float, str]]] = defaultdict(list)
    for key, method, value in keyed:
        groups[key].append((value, method.text))
    return [dict(group) for group in groups.values() if len({value for value, _ in group}) == len(group)]


def _name_families(families: Sequence[Sequence[MethodParameters]], parameter: str) -> list[str]:
    """Return a name for each family of a class: the class, and where it has several families, in what they differ."""
    kind = families[0][0].kind
    if len(families) == 1:
        return [kind or parameter]
    words = describe_differences([*map(_shared_parameters, families)], skip_unset=True)
    if len(set(words)) < len(families) or max(map(len, words)) > MAX_SUFFIX_CHARACTERS:
        words = [str(number) for number in range(1, len(families) + 1)]
    return [f"{kind} ({word})" if kind and word else kind or word for word in words]


def _shared_parameters(members: Sequence[MethodParameters]) -> list[dict[str, object]]:
    """Return the parameters, step by step, that are equal in all members of a family."""
    return [
        {name: value for name, value in steps[0].items() if all(step.get(name) == value for step in steps)}
        for steps in zip(*(member.steps for member in members), strict=True)
    ]
