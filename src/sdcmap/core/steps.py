"""The steps of a chain as a reader of its note sorts them: those that he does again on his own records, and those that
worked on the same variables, the first of them at random.

A deterministic step can be done again while no random step has touched what it masks. Of the steps that are left, those
that mask a variable in common are one group: what they do to it must be stated together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sdcmap.core.method import Method
from sdcmap.core.streams import Stream
from sdcmap.data.amounts import on_one_grid
from sdcmap.data.microdata import Microdata
from sdcmap.errors import Infeasible, SchemaError, Undefined

UNUSED_STREAM = Stream.of_seed(0, "redone")  # of steps that draw nothing


def split_steps(steps: Sequence[Method]) -> tuple[tuple[Method, ...], tuple[tuple[Method, ...], ...]]:
    """The steps to do again, and the groups of the others: steps of one variable each where that can be, as
    `Method.by_column` says; all in their order."""
    again, left, touched = list[Method](), list[Method](), set[str]()
    for step in (part for whole in steps for part in whole.by_column()):
        if step.random or not touched.isdisjoint(step.masked_names):
            left.append(step)
            touched.update(step.masked_names)
        else:
            again.append(step)
    return tuple(again), tuple(_groups(left))


def _groups(steps: Sequence[Method]) -> Iterator[tuple[Method, ...]]:
    """Steps that mask a variable in common, directly or through others."""
    sets: list[tuple[set[str], list[int]]] = []
    for number, step in enumerate(steps):
        names, members = set(step.masked_names), [number]
        for group in [group for group in sets if not names.isdisjoint(group[0])]:
            sets.remove(group)
            names, members = names | group[0], members + group[1]
        sets.append((names, members))
    for members in sorted(sorted(members) for _, members in sets):
        yield tuple(steps[k] for k in members)


def redo_steps(known: Microdata, steps: Sequence[Method], *, in_chain: bool) -> tuple[Microdata, dict[str, str]]:
    """The records after these steps, and why some of their variables could not be made; in a chain numbers stay on the grid
    of their column. Steps that cannot be done, for want of what is not known or another step makes, are left out."""
    file, failed = known, dict[str, str]()
    for step in steps:
        try:
            after = step.apply(file, UNUSED_STREAM)
            file = on_one_grid(file, after) if in_chain else after
        except (SchemaError, Infeasible) as reason:
            failed |= dict.fromkeys(step.masked_names, str(reason))
    return file, failed


def remove_steps(steps: Sequence[Method], dropped: Sequence[Method]) -> list[Method]:
    """The steps, of one variable each where that can be, less some of them; of equal ones, the last go."""
    parts = [part for step in steps for part in step.by_column()]
    for step in dropped:
        del parts[len(parts) - 1 - parts[::-1].index(step)]
    return parts


def names_not_randomized(group: Sequence[Method]) -> set[str]:
    """The variables of a group that its deterministic steps alone mask."""
    moved = {name for step in group if step.random for name in step.masked_names}
    return {name for step in group for name in step.masked_names} - moved


def check_dependencies(group: Sequence[Method], steps: Sequence[Method]) -> None:
    """Undefined where a step of the chain masks what one of the group looks at without masking it, such as its strata: at
    random, or after it."""
    for step in group:
        looked_at = set(step._columns()) - set(step.masked_names)
        later = False
        for other in steps:
            later = later or other is step or step in other.by_column()
            shared = sorted(looked_at & set(other.masked_names))
            if shared and (other.random or later):
                what = f"{type(other).__name__} masks what {type(step).__name__} looks at ({', '.join(shared)})"
                raise Undefined(f"{what}: a chain states a likelihood where its steps look at no other's variables.")
