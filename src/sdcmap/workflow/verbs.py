"""Open the map of a study, choose on it, prepare a release, write a report.

A study whose data were chosen together with another file (`choose_pair`) has its choice already: the plan's rule chooses
that candidate, whoever asks. Another rule, other axes or other limits ask a question of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TypeAlias, TypedDict, Unpack

from sdcmap.bundle.releasing import Release, release
from sdcmap.core.rule import Choice, Rule
from sdcmap.errors import PlanError, SdcmapError
from sdcmap.map import RUMap
from sdcmap.recordwise.neighborhood import Unsafe
from sdcmap.reports.page import Report, make_report
from sdcmap.study.folder import Study
from sdcmap.study.plan import Plan
from sdcmap.study.profiles import Profile

StudyOrFolder: TypeAlias = Study | str | Path


class ReleaseOptions(TypedDict, total=False):
    """What may be stated of a release; `sdcmap.release` explains each."""

    profile: Profile | str | None
    max_risk: float | None
    again: bool
    override: Mapping[str, str]
    ledger: str | Path | None
    confirm_roles: bool
    form: str
    title: str
    owner: str
    signed_by: str
    reason: str


def opened(study: StudyOrFolder) -> AbstractContextManager[Study]:
    """Open a study folder for as long as the block lasts; a study that is open stays open."""
    return nullcontext(study) if isinstance(study, Study) else Study.open(study)


# ---- the map and the choice -----------------------------------------------------------------------------------
def open_map(
    study: StudyOrFolder, risk: Sequence[str] = (), utility: str = "", limits: Mapping[str, float] | None = None
) -> RUMap:
    """Return the R-U map of a study on these axes and with these limits by measure, by default its plan's."""
    with opened(study) as study:
        plan = study.plan
        return RUMap.of_plan(study.scores(plan), plan, risk, utility, limits)


def choose(
    study: StudyOrFolder, rule: Rule | None = None, *, on: RUMap | None = None, candidate: str = "", reason: str = ""
) -> Choice:
    """Choose a candidate of a study.

    Parameters
    ----------
    rule : the rule to choose by; by default the plan's.
    on : the map to choose on; by default the map on the plan's axes.
    candidate : the name or id of a candidate that a person picked; where the study's own choice is the same, it is that.
    reason : why a person picked it.
    """
    with opened(study) as study:
        if candidate:
            return _picked(study, candidate, reason)
        ru = on or open_map(study)
        rule = rule or _plan_of(ru).rule
        if rule is None:
            raise PlanError("the plan has no rule: state one, or name the candidate.")
        return _chosen_in_pair(study, ru, rule) or ru.choose(rule)


def own_choice(study: StudyOrFolder, on: RUMap | None = None) -> Choice | None:
    """Choose by the study's own rule; None where the plan has no rule, or the map shows other risks than the plan's."""
    with opened(study) as study:
        ru = on or open_map(study)
        plan = _plan_of(ru)
        return choose(study, on=ru) if plan.rule is not None and ru.risk == plan.risk else None


def _plan_of(ru: RUMap) -> Plan:
    if (plan := ru.scores.plan) is None:
        raise PlanError("these scores belong to no plan: open the map of a study.")
    return plan


def _chosen_in_pair(study: Study, ru: RUMap, rule: Rule) -> Choice | None:
    """Return the candidate that was chosen together with the file which this study's data are, where the question is the
    plan's own; None: it is another question, or there is no such candidate."""
    plan, pair = _plan_of(ru), study.manifest.get("pair") or {}
    asked, own = (rule, ru.risk, ru.utility, ru.limits_by_name), (plan.rule, plan.risk, plan.utility, plan.limits)
    if asked != own or "candidate" not in pair:
        return None
    return _choice_of(ru, pair["candidate"], rule, pair["reason"], pair["searched"])


def _picked(study: Study, candidate: str, reason: str) -> Choice:
    """Return the choice of a person, with the reason that was stated; the study's own choice where it is the same."""
    plan = study.plan
    made = plan.find(candidate)
    name, searched = plan.name_of(made), plan.draws_of(made.method)
    words = f"{name} was picked by a person{f': {reason}' if reason else ', who stated no reason.'}"
    if plan.risk and plan.utility:
        ru = open_map(study)
        own = own_choice(study, ru)
        if own is not None and own.candidate == made.id:
            return own
        if picked := _choice_of(ru, made.id, Rule(), words, searched):
            return picked
    unscored = made.id, made.method.text, made.replicate, None, None
    return Choice(*unscored, Rule(), words, searched=searched, name=name)


def _choice_of(ru: RUMap, candidate: str, rule: Rule, reason: str, searched: int) -> Choice | None:
    """Return the choice of one point of a map; None where it has no such point."""
    for row in ru.points.filter(id=candidate).to_dicts():
        method, replicate = row["method"], row["replicate"]
        return Choice(
            candidate, method, replicate, row["risk"], row["utility"], rule, reason, verdicts=ru.verdicts(candidate),
            searched=searched, stream_id=ru.scores.stream_id_of(candidate), name=ru.scores.name_of(method, replicate),
        )  # fmt: skip
    return None


# ---- the release and the report -------------------------------------------------------------------------------
def prepare_release(study: Study, choice: Choice, **options: Unpack[ReleaseOptions]) -> Release:
    """Return the release of what was chosen in a study; `.write(folder)` checks and writes it, and notes it there."""
    return release(study.data, study.plan, choice, study=study, **options)


def report(
    study: StudyOrFolder,
    choice: Choice | None = None,
    *,
    audience: str = "internal",
    records: Unsafe | None = None,
    title: str = "",
    owner: str = "",
    show_risk: str = "",
) -> Report:
    """The report of a study: the decision in three sentences, risk before and after, who was assumed to attack and who was
    not considered, every column, the map, what users of the file will find, evidence in the terms of frameworks.

    Parameters
    ----------
    study : a study or its folder.
    choice : what was chosen; by default what was chosen together with the file that the data are (see `choose_pair`), else
        what the plan's rule chooses, and nothing where the plan has no rule.
    audience : "internal" for the board; "external" for anybody: information loss of methods to two significant digits, no
        value of risk, no single release, no count of 1 to 9 records, no quantile of the data, no path or digest of a file,
        no reason why a candidate was infeasible.
    records : a rule of safety; the confidentiality plot of the chosen release is added (outside, its binned counts alone,
        and only where risk is shown).
    title, owner : of the data, for the head of the page; by default the study's folder, and a line to fill in.
    show_risk : why values of risk are shown in an external report, in a sentence; it stands in the report. By default
        they are not (ESS handbook, 2nd ed., 3.2: information loss is public, risk is not).

    The seed, the data's digest and the origin of records are in neither.
    """
    with opened(study) as study:
        ru = open_map(study)
        choice = choice or own_choice(study, ru)
        if choice is not None and choice.candidate is not None and choice.risk is None:
            raise SdcmapError("that candidate has no score on the axes of the plan.")
        return make_report(
            study, ru, choice, audience=audience, records=records, title=title, owner=owner, show_risk=show_risk
        )
