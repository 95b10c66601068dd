"""Names of methods: words for people. What a method is stays its digest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields

from sdcmap.core.method import Method
from sdcmap.core.words import number

LONGEST_SUFFIX = 40  # characters


def names_of(methods: Iterable[Method], stated: Mapping[str, str]) -> dict[str, str]:
    """Method text -> its name: the stated one, else its own words; where two coincide, with a suffix that says in what
    they differ, or a number.

    >>> from sdcmap import Noise
    >>> noises = [Noise("wage", root="eigen"), Noise("wage", root="cholesky"), Noise("rent")]
    >>> list(names_of(noises, {noises[2].text: "rents"}).values())
    ['wage with noise 10 % (root eigen)', 'wage with noise 10 % (root cholesky)', 'rents']
    """
    alike: dict[str, list[Method]] = {}
    names: dict[str, str] = {}
    for method in methods:
        names[method.text] = stated.get(method.text) or method.words
        alike.setdefault(names[method.text], []).append(method)
    for words, several in alike.items():
        if len(several) > 1:
            names |= _told_apart(words, several, set(alike))
    return names


def _told_apart(words: str, methods: Sequence[Method], taken: set[str]) -> dict[str, str]:
    suffixes = _differences(methods)
    if len(set(suffixes)) < len(methods) or max(map(len, suffixes)) > LONGEST_SUFFIX:
        suffixes = ["", *map(str, range(2, len(methods) + 1))]
    told = [f"{words} ({suffix})" if suffix else words for suffix in suffixes]
    if set(told) & (taken - {words}):  # somebody stated such a name
        told = [f"{words} ({method.id[:6]})" for method in methods]
    return {method.text: name for method, name in zip(methods, told, strict=True)}


def _differences(methods: Sequence[Method]) -> list[str]:
    """What each of some methods of one shape has in the parameters in which they differ; nothing for other shapes."""
    shapes = {tuple(type(step) for step in method.steps) for method in methods}
    if len(shapes) > 1:
        return [""] * len(methods)
    said: list[list[str]] = [[] for _ in methods]
    for steps in zip(*(method.steps for method in methods), strict=True):
        for name in [f.name for f in fields(steps[0])]:
            values = [getattr(step, name) for step in steps]
            if len(set(values)) > 1:
                for words, value in zip(said, values, strict=True):
                    words.append(f"{name} {parameter(value)}".strip())
    return [", ".join(words) for words in said]


def parameter(value: object) -> str:
    """The value of a parameter in a few words."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return number(value)
    if isinstance(value, tuple):
        return "+".join(map(parameter, value))
    return "none" if value is None else str(value)


def drawn_name(name: str, draw: int | None) -> str:
    """The name of one draw of a method, its replicate number counted from 1 as people do; None: it has only one."""
    return name if draw is None else f"{name}, draw {draw + 1}"
