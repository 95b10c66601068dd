"""Sort the steps of a chain into those an attacker can repeat on their own records, and groups to be modeled together.

A deterministic step can be repeated as long as no random step has touched what it masks. So can a random step that the
attacker can simulate (`Method.is_simulated`). Of the remaining steps, those that mask a common variable form one group,
because their joint effect on it must be stated together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sdcmap.core.method import Method
from sdcmap.core.streams import Stream
from sdcmap.data.amounts import snap_to_column_grid
from sdcmap.data.microdata import Microdata
from sdcmap.errors import Infeasible, SchemaError, Undefined

REPEAT_STREAM = Stream.of_seed(0, "redone")  # of an attacker; most repeated steps draw nothing


def split_steps(steps: Sequence[Method]) -> tuple[tuple[Method, ...], tuple[tuple[Method, ...], ...]]:
    """Return the steps that can be repeated, and the groups of the others, all in their order.

    Steps are first split into steps of one variable each where `Method.by_column` can.
    """
    repeatable, others, touched = list[Method](), list[Method](), set[str]()
    for step in (part for whole in steps for part in whole.by_column()):
        # after a random step on a variable, an attacker no longer has the values that the next step started from
        if (step.random and not step.is_simulated) or not touched.isdisjoint(step.masked_names):
            others.append(step)
            touched.update(step.masked_names)
        else:
            repeatable.append(step)
    return tuple(repeatable), tuple(_groups(others))


def _groups(steps: Sequence[Method]) -> Iterator[tuple[Method, ...]]:
    """Yield groups of steps that mask a variable in common, directly or through other steps."""
    sets: list[tuple[set[str], list[int]]] = []
    for number, step in enumerate(steps):
        names, members = set(step.masked_names), [number]
        # the step may connect groups that had no variable in common so far
        for group in [group for group in sets if not names.isdisjoint(group[0])]:
            sets.remove(group)
            names, members = names | group[0], members + group[1]
        sets.append((names, members))
    for members in sorted(sorted(members) for _, members in sets):
        yield tuple(steps[k] for k in members)


def redo_steps(known: Microdata, steps: Sequence[Method], *, in_chain: bool) -> tuple[Microdata, dict[str, str]]:
    """Return the records after these steps, and why some of their variables could not be computed.

    In a chain, numbers stay on the grid of their column. Steps that need unknown columns, or columns of another step, are
    left out.
    """
    file, failed = known, dict[str, str]()
    for step in steps:
        try:
            after = step.apply(file, REPEAT_STREAM)
            file = snap_to_column_grid(file, after) if in_chain else after
        except (SchemaError, Infeasible) as reason:
            failed |= dict.fromkeys(step.masked_names, str(reason))
    return file, failed


def remove_steps(steps: Sequence[Method], dropped: Sequence[Method]) -> list[Method]:
    """Return the steps, split by variable where possible, without `dropped`; of equal steps the last are removed."""
    parts = [part for step in steps for part in step.by_column()]
    for step in dropped:
        del parts[len(parts) - 1 - parts[::-1].index(step)]
    return parts


def names_not_randomized(group: Sequence[Method]) -> set[str]:
    """Return the variables of a group that only its deterministic steps mask."""
    moved = {name for step in group if step.random for name in step.masked_names}
    return {name for step in group for name in step.masked_names} - moved


def check_dependencies(group: Sequence[Method], steps: Sequence[Method]) -> None:
    """Raise Undefined where a step of the group reads a variable, such as its strata, that another step masks.

    It does not matter when the other step is deterministic and comes before.
    """
    for step in group:
        read = set(step._columns()) - set(step.masked_names)
        later = False
        for other in steps:
            later = later or other is step or step in other.by_column()
            shared = sorted(read & set(other.masked_names))
            if shared and (other.random or later):
                what = f"{type(other).__name__} masks what {type(step).__name__} reads ({', '.join(shared)})"
                raise Undefined(f"{what}: a chain has a likelihood only where no step reads what another masks.")
