"""Open the map of a study, choose on it, prepare a release, write a report.

If the data of a study were chosen together with another file (`choose_pair`), the plan's rule always returns the candidate
of that pair. Another rule, other axes or other limits are evaluated as usual.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypedDict, Unpack

from sdcmap.bundle.checks import Check
from sdcmap.bundle.procedure import Try
from sdcmap.bundle.releasing import Release, release
from sdcmap.choose import GlobalCriterion
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
    """The options of a release; `sdcmap.release` explains each."""

    profile: Profile | str | None
    max_risk: float | None
    again: bool
    override: Mapping[str, str]
    ledger: str | Path | None
    confirm_roles: bool
    form: str
    excel_safe: bool
    title: str
    owner: str
    signed_by: str
    reason: str


def open_study(study: StudyOrFolder) -> AbstractContextManager[Study]:
    """Open a study folder for as long as the block lasts; a study that is open stays open."""
    return nullcontext(study) if isinstance(study, Study) else Study.open(study)


# ---- the map and the choice -----------------------------------------------------------------------------------
def open_map(
    study: StudyOrFolder, risk: Sequence[str] = (), utility: str = "", limits: Mapping[str, Any] | None = None
) -> RUMap:
    """Return the R-U map of a study on these axes and with these limits by measure, by default its plan's."""
    with open_study(study) as study:
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
    candidate : the name or id of a candidate that a person picked; if the rule chooses it too, the rule's choice counts.
    reason : why a person picked it.
    """
    with open_study(study) as study:
        if candidate:
            return _choose_by_hand(study, candidate, reason)
        ru = on or open_map(study)
        rule = rule or _plan_of(ru).rule
        if rule is None:
            raise PlanError("the plan has no rule. State one, or name the candidate.")
        return _find_pair_choice(study, ru, rule) or ru.choose(rule)


def own_choice(study: StudyOrFolder, on: RUMap | None = None) -> Choice | None:
    """Choose by the study's own rule; None where the plan has no rule, or the map shows other risks than the plan's."""
    with open_study(study) as study:
        ru = on or open_map(study)
        plan = _plan_of(ru)
        return choose(study, on=ru) if plan.rule is not None and ru.risk == plan.risk else None


def choose_by_criterion(
    study: StudyOrFolder, *, agency_limit: float | None = None, intruder_limit: float | None = None
) -> tuple[RUMap, GlobalCriterion, Choice]:
    """Choose by the global criterion: the plan's rule, or one proposed for its measures; limits may be stated here."""
    with open_study(study) as study:
        ru = open_map(study)
        rule = GlobalCriterion.of_plan(_plan_of(ru).rule, ru)
        if agency_limit is not None:
            rule = replace(rule, agency_limit=agency_limit)
        if intruder_limit is not None:
            rule = replace(rule, intruder_limit=intruder_limit)
        return ru, rule, choose(study, rule, on=ru)


def _plan_of(ru: RUMap) -> Plan:
    if (plan := ru.scores.plan) is None:
        raise PlanError("these scores belong to no plan. Open the map of a study.")
    return plan


def _find_pair_choice(study: Study, ru: RUMap, rule: Rule) -> Choice | None:
    """Return the candidate that was chosen in a pair; None where there is none, or the rule or map is another one."""
    plan, pair = _plan_of(ru), study.manifest.get("pair") or {}
    requested, own = (rule, ru.risk, ru.utility, ru.limits_by_name), (plan.rule, plan.risk, plan.utility, plan.limits)
    if requested != own or "candidate" not in pair:
        return None
    return _choice_of(ru, pair["candidate"], rule, pair["reason"], pair["searched"])


def _choose_by_hand(study: Study, candidate: str, reason: str) -> Choice:
    """Return the choice of a person with the stated reason, or the choice of the rule where it is the same."""
    plan = study.plan
    picked = plan.find(candidate)
    name, searched = plan.name_of(picked), plan.draws_of(picked.method)
    stated = f" Reason: {reason}" if reason else " No reason was stated."
    text = f"{name} was picked by a person, not by the rule.{stated}"
    # A candidate that the rule chooses too is reported as the rule's choice, with its reason.
    if plan.risk and plan.utility:
        ru = open_map(study)
        own = own_choice(study, ru)
        if own is not None and own.candidate == picked.id:
            return own
        if choice := _choice_of(ru, picked.id, Rule(), text, searched):
            return choice
    unscored = picked.id, picked.method.text, picked.replicate, None, None
    return Choice(*unscored, Rule(), text, searched=searched, name=name)


def _choice_of(ru: RUMap, candidate: str, rule: Rule, reason: str, searched: int) -> Choice | None:
    """Return the choice of one point of a map; None where it has no such point."""
    for row in ru.points.filter(id=candidate).to_dicts():
        method, replicate = row["method"], row["replicate"]
        risk, utility = ru.values_of(candidate)
        return Choice(
            candidate, method, replicate, risk.value, utility.value, rule, reason, verdicts=ru.verdicts(candidate),
            searched=searched, stream_id=ru.scores.stream_id_of(candidate), name=ru.scores.name_of(method, replicate),
            risk_interval=risk.interval, utility_interval=utility.interval,
        )  # fmt: skip
    return None


# ---- the release and the report -------------------------------------------------------------------------------
def prepare_release(study: Study, choice: Choice, **options: Unpack[ReleaseOptions]) -> Release:
    """Return the release of a choice; `.write(folder)` tries its candidates and writes the first that passes."""
    return release(study.data, study.plan, choice, study=study, **options)


class Released(NamedTuple):
    """A release that was written: its folder, and the choice of the candidate that passed."""

    folder: Path
    choice: Choice


def write_release(
    study: Study, choice: Choice, folder: str | Path, *, on_checks: Callable[[list[Check]], None] | None = None,
    on_try: Callable[[Try], None] | None = None, **options: Unpack[ReleaseOptions],
) -> Released:  # fmt: skip
    """Try the candidates of a choice in their order and write the first that passes; raise `Refused` if none does.

    on_checks, on_try : called with every check, and with each try as it ends.
    """
    written = prepare_release(study, choice, **options).write(folder, on_checks=on_checks, on_try=on_try)
    return Released(written, _released_choice(study, choice))


def _released_choice(study: Study, choice: Choice) -> Choice:
    """Return the choice, or that of the later candidate in its order that the study has released instead."""
    entries = study.manifest.get("releases", [])
    later = choice.candidates[1:]
    if not entries or not later:
        return choice
    last = entries[-1]
    ids = {(c.method.text, c.replicate): c.id for c in map(study.plan.find, later)}
    released = ids.get((last["method"], int(last.get("chosen", last["replicate"]))))
    if released is None:
        return choice
    reason = (
        f"{last['name']} is the next candidate in the order of the rule. {choice.name} was above a limit when it was "
    )
    plan = study.plan
    searched = plan.draws_of(plan.find(released).method)
    return _choice_of(open_map(study), released, choice.rule, f"{reason}measured anew.", searched) or choice


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
    """Return the report of a study.

    It contains the decision in three sentences, risk before and after masking, which attackers were considered and which
    were not, every column, the map, what users of the file can expect, and evidence in the terms of common frameworks.

    Parameters
    ----------
    study : a study or its folder.
    choice : the choice to report; by default that of a pair (see `choose_pair`), else that of the plan's rule, or of the
        candidate after it that was released; none where the plan has no rule.
    audience : "internal" for the board; "external" for the public: information loss of methods to two significant digits,
        which relations the release weakens (original coefficients only where ten persons or households are behind every
        category), no risk values, no map of single releases, no counts of 1 to 9 records, no quantiles of the data, no
        paths or digests of files, no reasons why a candidate was infeasible.
    records : a rule for unsafe records; adds the confidentiality plot of the chosen release (in an external report only
        its binned counts, and only where risk is shown).
    title, owner : of the data, for the head of the page; by default the study's folder, and a line to fill in.
    show_risk : why an external report shows risk values, in a sentence that the report contains. By default it does not
        (ESS handbook, 2nd ed., 3.2: information loss is public, risk is not).

    Neither report contains the seed, the digest of the data, or the origin of records.
    """
    with open_study(study) as study:
        ru = open_map(study)
        if choice is None and (own := own_choice(study, ru)) is not None:
            choice = _released_choice(study, own)
        if choice is not None and choice.candidate is not None and choice.risk is None:
            raise SdcmapError("that candidate has no score on the axes of the plan.")
        return make_report(
            study, ru, choice, audience=audience, records=records, title=title, owner=owner, show_risk=show_risk
        )
