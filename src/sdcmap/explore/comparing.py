"""Every method on one map: a plan built from the roles of a file alone, for a first look at what each method can do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from sdcmap.core.measure import Measure
from sdcmap.core.method import Method
from sdcmap.data.cells import cells
from sdcmap.data.microdata import Microdata
from sdcmap.errors import PlanError
from sdcmap.explore.strengths import WAYS, Roles
from sdcmap.files.reading import Source
from sdcmap.kernels.arrays import Array
from sdcmap.methods import METHODS
from sdcmap.risk import AttributeInference, ClosestRecord, CorrectAttribution, KAnonymity
from sdcmap.study.plan import Plan
from sdcmap.utility import QueryError, TableError


@dataclass(frozen=True)
class Comparison:
    """A plan with every method that fits a file; `names`: a few words for each method text; `left_out`: why others are
    not in it, by the same words or by class."""

    plan: Plan
    names: dict[str, str]
    left_out: dict[str, str]


def compare(
    data: Microdata, control_file: str = "", *, replicates: int = 3, source: Source | None = None
) -> Comparison:
    """Every method that fits the roles of `data`, at two or three strengths each, and measures that fit them all.

    Parameters
    ----------
    data : the file; its roles alone say what is masked: keys (categories), numbers, and for synthesis everything.
    control_file : a file of people who are not in `data`, with the same columns; without it the first risk has no value
        for fully synthetic files.
    replicates : random draws of each method, at least 1.
    source : where the data lie, for a plan kept in a file.

    The risk is how well a snooper who knows all keys and numbers tells who is in the release (ClosestRecord); the utility
    is the relative error of random counts (QueryError). Both see every variable, and have a value for masked, recoded,
    suppressed, sampled and synthetic files. The risk is that of the people who are released, so that sampling does not
    lower it. Other measures are scored beside these, for other maps.
    """
    roles = Roles(data)
    if not roles.keys and not roles.numbers:
        raise PlanError("the data have no keys and no numeric variables: state roles when reading them.")
    names: dict[str, str] = {}
    methods: list[Method] = []
    left_out: dict[str, str] = {}
    for cls in METHODS:
        way = WAYS.get(cls.__name__)
        found = () if way is None else tuple(way(roles))
        if not found and cls.__name__ != "Identity":
            left_out[cls.__name__] = (
                "it has no default strength." if way is None else "the roles of this file give it nothing to do."
            )
        for name, method in found:
            problem = method if isinstance(method, str) else next(method.misfits(data), None)
            if problem is not None:
                left_out[name] = problem
            elif isinstance(method, Method):
                names[method.text] = name
                methods.append(method)
    return Comparison(Plan(methods, _measures(roles, control_file), replicates, data=source), names, left_out)


def _measures(roles: Roles, control_file: str) -> list[Measure]:
    """Of each axis, the first measure is the one of the map."""
    measures: list[Measure] = [ClosestRecord(control_file=control_file), QueryError(queries=2000)]
    if roles.secret and roles.known:
        measures.append(AttributeInference(roles.secret, roles.known, targets=500, control_file=control_file))
    if roles.keys:
        known = tuple(name for name in roles.keys if name != roles.secret)
        if roles.secret and known and roles.data.schema[roles.secret].kind != "numeric":
            measures.append(CorrectAttribution(roles.secret, known))
        measures += [KAnonymity(on=roles.keys), TableError(roles.keys, order=2)]
    return measures


def set_aside(data: Microdata, share: float, rng: Generator) -> tuple[Microdata, Microdata]:
    """The file without a random share of its records, and these: people who are not in it. Households stay whole."""
    unit = np.arange(len(data)) if data.household is None else data.view(cells, (data.household,)).code
    units = rng.permutation(np.unique(unit))
    out = np.isin(unit, units[: max(1, round(share * len(units)))])
    if out.all():
        raise PlanError("a comparison needs at least two records, in two households where there are any.")
    return _own(data, ~out), _own(data, out)


def _own(data: Microdata, rows: Array) -> Microdata:
    part = data.take(np.flatnonzero(rows))
    return Microdata(part.schema, part.columns)
