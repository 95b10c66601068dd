"""A scientific-use file and a public-use file of the same people, chosen together.

The scientific candidates that pass their rule and that no passing one beats are each the data of a study of public
candidates; of each such study, the public candidates that pass and are not beaten stand beside the scientific file. Of the
pairs that hold both rules and the joint limit, one is chosen by what it loses. The folder of a choice is as secret as the
study of the scientific file: it holds files that were not released.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from sdcmap.bundle.checks import Check
from sdcmap.bundle.limit_checks import limits_of
from sdcmap.bundle.nested import LINKAGE, InOneHand
from sdcmap.bundle.public_candidates import Measured, PublicCandidates, PublicStudies, measured_pairs
from sdcmap.choose.by_release import ByRelease
from sdcmap.core import Choice, Infeasible, Measure, PlanError, SchemaError
from sdcmap.core.rule import Rule
from sdcmap.errors import Refused
from sdcmap.map import RUMap
from sdcmap.study.folder import Study
from sdcmap.study.plan import Plan
from sdcmap.study.progress import Progress

MOST = 5  # candidates of each file that are paired
Weights = tuple[float, float]


@dataclass(frozen=True)
class TriedPair:
    """A scientific and a public release, by name and id: the utility of each as its plan measures it (the public one's
    against the original), the share found by who holds both, its limit, and what speaks against the pair."""

    names: tuple[str, str]
    ids: tuple[str, str]
    utilities: tuple[float | None, float | None]
    joint: float | None
    limit: float
    problems: tuple[str, ...]


@dataclass(frozen=True)
class PairChoice:
    """The chosen pair, and every pair that was tried. `first` and `second` None: release no pair.

    study : folder of the study that `second` is a candidate of. unused : scientific candidates that could not be the source
    of a public file, with the reason. capped : whether more candidates pass than were paired.
    """

    first: Choice | None
    second: Choice | None
    study: Path | None
    pairs: tuple[TriedPair, ...]
    unused: tuple[str, ...]
    capped: bool
    reason: str

    def __str__(self) -> str:
        return self.reason

    def __repr__(self) -> str:
        chosen = "release no pair" if self.first is None or self.second is None else (self.first.name, self.second.name)
        return f"PairChoice({chosen}; {len(self.pairs)} pairs tried)"


def choose_pair(
    scientific: str | Path,
    public: Plan,
    folder: str | Path,
    *,
    most: int = MOST,
    joint: float | None = None,
    weights: Weights | None = None,
    workers: int | None = None,
    engine: str | None = None,
    progress: Progress | None = None,
) -> PairChoice:
    """Choose a scientific-use and a public-use file of the same people together, the second made from the first.

    Parameters
    ----------
    scientific : folder of the study of the scientific candidates, which has released nothing yet; its plan has a rule.
    public : the plan of the public candidates. Its `data` say the roles and kinds of the columns (a path is not read: the
        data are each scientific file as it would be written); columns that the public does not get have the role `drop`.
    folder : where the studies of public candidates and the pairs are kept; the same call goes on where it was stopped.
    most : scientific candidates that are tried, and public ones of each: of those that pass their rule and that no passing
        one beats in risk and loss, the best by the rule; at least 1. What was left out is told.
    joint : the largest share of people that who holds both files may find, in (0, 1]. By default that of the scientific
        plan's profile ("scientific-use" where it has none), or what the scientific file tells alone, for it is out.
    weights : (w1, w2): the pair with the least w1 * scientific loss + w2 * public loss, each in the unit of its measure, at
        least 0 and one above. By default the least scientific loss, and of equals the least public loss.
    workers, engine, progress : as in `sweep`.

    The public file's loss is that against the original. A utility that is better when higher counts as its negative. Rows
    that are nobody's (a synthetic file) have no joint linkage: such candidates are named and not paired. Survey weights,
    households and missing values are as each measure says.
    """
    if problems := [*_problems(public, most, joint, weights)]:
        raise PlanError(problems)
    with Study.open(scientific) as study:
        plan, data, scores = _still_to_choose(study), study.data, study.scores()
    ru = RUMap.of_plan(scores, plan)
    firsts = shortlist(ru, _rule(plan), most)
    studies = PublicStudies(Path(scientific).resolve(), plan, data, public, Path(folder), joint)
    pairs: dict[TriedPair, tuple[Choice, Choice]] = {}
    unused: list[str] = []
    capped = len(firsts) > most
    with measured_pairs(Path(folder), data, plan) as recall:
        for first in firsts[:most]:
            try:
                made = studies.made_from(plan.resolve_choice(first), workers, engine, progress)
                passing = shortlist(made.map, _rule(made.plan), most)
                capped |= len(passing) > most
                for second in passing[:most]:
                    found = recall(_key(first, second, made.plan), partial(made.measured, second))
                    pairs[_tried(first, second, found, made, joint)] = first, second
            except (PlanError, SchemaError, Infeasible, Refused) as error:
                unused.append(f"{first.name}: {error}")
        tried, utilities = (*pairs,), (_utility(plan), _utility(public))
        best = least_loss(tried, (ru.signs[1], 1.0 if utilities[1].direction == "lower" else -1.0), weights)
        reason = _reason(best, tried, unused, most if capped else 0, weights, utilities)
        _note(studies, best, tried, reason, joint, pairs[best][1].searched if best else 0)
    if best is None:
        return PairChoice(None, None, None, tried, tuple(unused), capped, reason)
    return PairChoice(*pairs[best], studies.study_of(best.ids[0]), tried, tuple(unused), capped, reason)


def least_loss(pairs: Sequence[TriedPair], signs: tuple[float, float], weights: Weights | None) -> TriedPair | None:
    """The pair that holds everything and loses least: by weights, else (and of equals) the scientific file first, then the
    public one, then the joint risk. signs : +1 where a utility is a loss, -1 where it is a gain."""

    def cost(pair: TriedPair) -> tuple[float, ...]:
        losses = [sign * value for sign, value in zip(signs, pair.utilities, strict=True) if value is not None]
        return (sum(w * loss for w, loss in zip(weights or (0.0, 0.0), losses, strict=True)), *losses)

    passing = [pair for pair in pairs if not pair.problems]
    return min(passing, key=lambda pair: (cost(pair), pair.joint, pair.ids), default=None)


def shortlist(ru: RUMap, rule: Rule, most: int) -> list[Choice]:
    """What a rule would choose, and what it would choose of the rest, where whatever a choice beats in risk and loss is no
    part of the rest: the frontier of what passes, best first. One more than `most` where there are more."""
    chosen: list[Choice] = []
    while len(chosen) <= most:
        choice = ru.choose(rule)
        if choice.candidate is None:
            break
        chosen.append(choice)
        ru = _unbeaten(ru, choice, isinstance(rule, ByRelease) and not rule.compares_releases(ru))
    return chosen


def _unbeaten(ru: RUMap, choice: Choice, by_method: bool) -> RUMap:
    """The map without what a choice beats or equals."""
    table = ru.means if by_method else ru.points
    own = table["method"] == choice.method if by_method else table["id"] == choice.candidate
    place = int(own.arg_true()[0])
    risk, loss = ru.losses(table)
    left = table.filter(pl.Series((risk < risk[place]) | (loss < loss[place])))
    return ru.among(means=left) if by_method else ru.among(points=left)


# ---- what is asked --------------------------------------------------------------------------------------------
def _problems(public: Plan, most: int, joint: float | None, weights: Weights | None) -> Iterator[str]:
    if not isinstance(most, int) or most < 1:
        yield "most must be a whole number of at least 1."
    if joint is not None and not 0 < joint <= 1:
        yield "joint must be a share in (0, 1]."
    if weights is not None and (len(weights) != 2 or min(weights) < 0 or not 0 < sum(weights) < float("inf")):
        yield "weights must be two numbers of at least 0, one of them above."
    if public.rule is None:
        yield "the public plan has no rule: fix one before the first score."
    if not public.utility:
        yield "the public plan has no utility measure: a pair is chosen by what it loses."
    if public.data is None:
        yield "the public plan has no data part: it says the roles of the columns."


def _still_to_choose(study: Study) -> Plan:
    """The plan of a scientific file that is still to be chosen, and made from the original."""
    plan, reason = study.plan, ""
    if study.manifest.get("releases"):
        told = "make the public file from what was released (`look --within`, docs/nested.md)"
        reason = f"the scientific study has released a file already, so there is nothing to choose: {told}."
    elif plan.data is not None and plan.data.within:
        reason = "the scientific study's data are a released file themselves: three nested files are not served."
    if reason:
        raise Refused([Check("pair", False, reason)])
    if plan.rule is None or not plan.risk or not plan.utility:
        raise PlanError("the scientific plan needs a rule, a risk and a utility measure to choose by.")
    return plan


def _rule(plan: Plan) -> Rule:
    if plan.rule is None:
        raise PlanError("the plan has no rule: fix one before the first score.")
    return plan.rule


def _utility(plan: Plan) -> Measure:
    return next(measure for measure in plan.measures if measure.text == plan.utility)


# ---- one pair -------------------------------------------------------------------------------------------------
def _key(first: Choice, second: Choice, plan: Plan) -> str:
    """What names a measured pair: both candidates with the seals of their draws, and what was measured."""
    limits = [(limit.measure.id, limit.value) for limit in limits_of(plan, [plan.rule], None)]
    utility = [measure.id for measure in plan.measures if measure.text == plan.utility]
    parts = [first.candidate, first.stream_id, second.candidate, second.stream_id, limits, utility, LINKAGE.id]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]


def _tried(first: Choice, second: Choice, found: Measured, made: PublicCandidates, joint: float | None) -> TriedPair:
    tolerated, level = made.parent.profile.found, made.parent.plan.policy.release_level
    hand, problems = InOneHand(found["alone"], found["side_by_side"], tolerated, level, joint), list(found["failed"])
    if not problems or hand.value is not None:
        problems += [] if hand.check.passed else [hand.check.reason]
        problems += ["the loss against the original could not be computed."] if found["loss"] is None else []
    ids, utilities = (str(first.candidate), str(second.candidate)), (first.utility, found["loss"])
    return TriedPair((first.name, second.name), ids, utilities, hand.value, hand.limit.value, tuple(problems))


# ---- what is said and noted -----------------------------------------------------------------------------------
def _reason(
    best: TriedPair | None, tried: Sequence[TriedPair], unused: Sequence[str], capped: int, weights: Weights | None,
    utilities: tuple[Measure, Measure],
) -> str:  # fmt: skip
    """Why this pair, or none."""
    firsts = len({pair.ids[0] for pair in tried})
    more = f" (more candidates pass than the {capped} of each file that were paired)" if capped else ""
    count = f"{_counted(len(tried), 'pair')} of {_counted(firsts, 'scientific file')} were tried{more}"
    lost = f" {_counted(len(unused), 'scientific candidate')} could not be paired: {' '.join(unused)}" if unused else ""
    if best is None:
        near = min((p for p in tried if p.joint is not None), key=lambda p: (len(p.problems), p.joint), default=None)
        miss = "" if near is None else f" The nearest is {near.names[1]}, made from {near.names[0]}: {near.problems[0]}"
        return f"Release no pair: {count}, and none meets both rules and the joint limit.{miss}{lost}"
    passing = sum(not pair.problems for pair in tried)
    how = "it loses least of the scientific file, and then of the public one"
    if weights:
        how = f"it has the least {weights[0]:g} * scientific loss + {weights[1]:g} * public loss"
    losses = zip(utilities, best.utilities, strict=True)
    numbers = [f"{measure.title} {value:.4g}" for measure, value in losses if value is not None]
    return (
        f"Release {best.names[0]} as the scientific-use file, and made from it {best.names[1]} as the public-use file: "
        f"{count}, {passing} meet both rules and the joint limit, and of these {how} ({'; '.join(numbers)}, both against "
        f"the original). Both files in one hand find {best.joint:.4g}, at most {best.limit:.4g}.{lost}"
    )


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _note(
    studies: PublicStudies, best: TriedPair | None, tried: Sequence[TriedPair], reason: str, joint: float | None,
    searched: int,
) -> None:  # fmt: skip
    """Remember the pair in the study of its public file, and in no other."""
    for first in dict.fromkeys(pair.ids[0] for pair in tried):
        facts: dict[str, Any] = {}
        if best is not None and best.ids[0] == first:
            facts = {
                "first": first, "candidate": best.ids[1], "searched": searched, "reason": reason, "joint": joint,
                "tried": len(tried), "pairs": [asdict(pair) for pair in tried],
            }  # fmt: skip
        with Study.open(studies.study_of(first)) as study, study.writing():
            study.note(pair=facts)
