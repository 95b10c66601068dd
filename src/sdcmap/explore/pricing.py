"""What a method or a measure would add to a plan, before anybody has filled in its fields: an example of it is priced."""

from __future__ import annotations

from sdcmap.core.measure import Measure
from sdcmap.core.method import Method
from sdcmap.core.roles import Roles
from sdcmap.core.value import Value, decode
from sdcmap.data.microdata import Microdata
from sdcmap.errors import SdcmapError
from sdcmap.explore.forms import Entry, form_of
from sdcmap.study.cost import Cost, price_of_measure, price_of_method
from sdcmap.study.plan import Plan


def example_of(cls: type[Value], data: Microdata) -> Value | None:
    """A value of this class for this file: a method's own first trial, else needed fields that name columns filled with
    those that fit, and all others at their defaults; None where that makes none."""
    if issubclass(cls, Method):
        trials = [trial for trial in cls.trials(Roles(data)).values() if isinstance(trial, cls)]
        if trials:
            return trials[0]
    form = form_of(cls)
    given = {entry.name: _columns(entry, form.kinds, data) for entry in form.entries if entry.required}
    try:
        made = decode({"type": form.type} | {name: value for name, value in given.items() if value}, cls)
    except SdcmapError:
        return None
    return made


def _columns(entry: Entry, kinds: tuple[str, ...], data: Microdata) -> tuple[str, ...] | str:
    """Columns that a field could name."""
    apart = {*data.unreleased, data.weight, data.household}
    fit = tuple(
        v.name for v in data.schema.variables if v.name not in apart and (not kinds or v.kind in kinds)
    )  # fmt: skip
    if not entry.columns or not fit:
        return ()
    return fit if entry.several else fit[0]


def price_of(value: Value, data: Microdata, plan: Plan, now: Cost) -> float | None:
    """Seconds of one core that a method or measure would add to a plan that costs `now`; None where it cannot be told."""
    if isinstance(value, Method):
        return price_of_method(data, plan, value, now)
    return price_of_measure(data, plan, value) if isinstance(value, Measure) else None


def stated_price(cls: type[Measure], data: Microdata, plan: Plan) -> float | None:
    """The same of a measure that states its seconds by a formula; None of those that must be timed, or do not fit."""
    example = example_of(cls, data)
    fits = isinstance(example, Measure) and next(example.misfits(data), None) is None
    seconds = example.seconds(data) if isinstance(example, Measure) and fits else None
    return None if seconds is None else plan.count * seconds
