"""A plan built from the roles of a file alone: every method that fits it, each at the strengths it states itself."""

from __future__ import annotations

from dataclasses import dataclass

from sdcmap.core.catalogue import offered
from sdcmap.core.measure import Measure
from sdcmap.core.method import Method
from sdcmap.core.roles import Roles
from sdcmap.data.microdata import Microdata
from sdcmap.errors import PlanError
from sdcmap.files.reading import Source
from sdcmap.methods import METHODS
from sdcmap.risk import AttributeInference, ClosestRecord, CorrectAttribution, KAnonymity, WorstLinkage
from sdcmap.study.plan import Plan
from sdcmap.utility import QueryError, TableError

NO_TRIAL = "it states no trial for the roles of this file."


@dataclass(frozen=True)
class TrialPlan:
    """A plan with every method that fits a file; `left_out`: why others are not in it, by the words of the trial or by
    class; `unfit`: those that were made and do not fit, by the same words."""

    plan: Plan
    left_out: dict[str, str]
    unfit: dict[str, Method]


def trial_plan(
    data: Microdata, control_file: str = "", *, replicates: int = 3, source: Source | None = None
) -> TrialPlan:
    """Every method that fits the roles of `data`, at two or three strengths each, and measures that fit them all.

    Parameters
    ----------
    data : the file; its roles alone say what is masked: keys (categories), numbers, and for synthesis everything.
    control_file : a file of people who are not in `data`, with the same columns; without it synthetic files are made again
        without some of the people, for the measures that need others to compare with.
    replicates : random draws of each method, at least 1.
    source : where the data lie, for a plan kept in a file.
    """
    roles = Roles(data)
    if not roles.keys and not roles.numbers:
        raise PlanError("the data have no keys and no numeric variables: state roles when reading them.")
    unfit: dict[str, Method] = {}
    methods: list[Method] = []
    left_out: dict[str, str] = {}
    for cls in (*METHODS, *offered(Method)):
        trials = cls.trials(roles)
        if not trials and not cls.in_every_plan:
            left_out[cls.__name__] = NO_TRIAL
        for name, method in trials.items():
            problem = method if isinstance(method, str) else next(method.misfits(data), None)
            if problem is not None:
                left_out[name] = problem
                unfit |= {name: method} if isinstance(method, Method) else {}
            elif isinstance(method, Method):
                methods.append(method)
    return TrialPlan(Plan(methods, _measures(roles, control_file), replicates, data=source), left_out, unfit)


def _measures(roles: Roles, control_file: str) -> list[Measure]:
    """Of each axis, the first measure is the one of the map."""
    measures: list[Measure] = [QueryError(queries=2000)]
    if not roles.data.schema.census:
        measures.insert(0, ClosestRecord(control_file=control_file))
    if roles.secret and roles.known:
        measures.append(AttributeInference(roles.secret, roles.known, targets=500, control_file=control_file))
    if roles.keys:
        known = tuple(name for name in roles.keys if name != roles.secret)
        if roles.secret and known and roles.data.schema[roles.secret].kind != "numeric":
            measures.append(CorrectAttribution(roles.secret, known))
        measures += [KAnonymity(on=roles.keys), TableError(roles.keys, order=2)]
    return measures if any(measure.axis == "risk" for measure in measures) else [WorstLinkage(), *measures]
