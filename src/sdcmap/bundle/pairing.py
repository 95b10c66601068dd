"""Choose a scientific-use file and a public-use file of the same people together.

The scientific candidates that meet their rule and are not dominated each become the data of a study of public candidates.
The public candidates that meet their rule and are not dominated are paired with their scientific file. Among the pairs that
meet both rules and the joint limit, the one with the smallest loss is chosen. The folder of a choice is as confidential as
the study of the scientific file: it contains files that were not released.
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
from sdcmap.bundle.nested import LINKAGE, JointLinkage
from sdcmap.bundle.public_candidates import PairMeasurement, PublicCandidates, PublicStudies, open_pair_cache
from sdcmap.choose.by_release import ByRelease
from sdcmap.core import Choice, Infeasible, Measure, PlanError, SchemaError
from sdcmap.core.rule import Rule
from sdcmap.errors import Refused
from sdcmap.map import RUMap
from sdcmap.study.folder import Study
from sdcmap.study.plan import Plan
from sdcmap.study.progress import Progress

MAX_CANDIDATES_PER_FILE = 5  # that are paired; each scientific one needs a sweep of its own
Weights = tuple[float, float]


@dataclass(frozen=True)
class TriedPair:
    """A scientific and a public candidate that were compared as a pair."""

    names: tuple[str, str]
    ids: tuple[str, str]
    utilities: tuple[float | None, float | None]  # as each plan measures it, both compared with the original
    joint: float | None  # share re-identified from both files
    limit: float  # of `joint`
    problems: tuple[str, ...]  # why the pair cannot be chosen; empty: it can


@dataclass(frozen=True)
class PairChoice:
    """The chosen pair, every pair that was tried, and the reason in words."""

    first: Choice | None  # the scientific-use file; None: release no pair
    second: Choice | None  # the public-use file
    study: Path | None  # folder of the study that `second` is a candidate of
    pairs: tuple[TriedPair, ...]
    unused: tuple[str, ...]  # scientific candidates that could not be the source of a public file, with the reason
    capped: bool  # more candidates pass than were paired
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
    most: int = MAX_CANDIDATES_PER_FILE,
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
    public : the plan of the public candidates. Its `data` state the roles and kinds of the columns; the path is not read,
        since the data are each scientific file as it would be written. Columns that are not public have the role `drop`.
    folder : where the studies of public candidates and the pairs are stored; the same call continues where it stopped.
    most : how many scientific candidates are tried, and how many public ones for each: the best undominated ones that
        meet their rule; at least 1. The reason says if candidates were left out.
    joint : the largest share of people that an attacker with both files may re-identify, in (0, 1]. By default the limit of
        the scientific plan's profile ("scientific-use" where it has none), or what the scientific file allows alone.
    weights : (w1, w2): choose the pair with the smallest w1 * scientific loss + w2 * public loss, each in the unit of its
        measure; at least 0, one above 0. By default the smallest scientific loss, and among equals the smallest public one.
    workers, engine, progress : as in `sweep`.

    The loss of the public file is measured against the original. A utility that is better when higher counts as its
    negative. Fully synthetic candidates cannot be linked, so they are named and not paired. Survey weights, households and
    missing values are treated as each measure says.
    """
    if problems := [*_problems(public, most, joint, weights)]:
        raise PlanError(problems)
    with Study.open(scientific) as study:
        plan, data, scores = _scientific_plan(study), study.data, study.scores()
    ru = RUMap.of_plan(scores, plan)
    firsts = shortlist(ru, _rule(plan), most)
    studies = PublicStudies(Path(scientific).resolve(), plan, data, public, Path(folder), joint)
    pairs: dict[TriedPair, tuple[Choice, Choice]] = {}
    unused: list[str] = []
    capped = len(firsts) > most
    with open_pair_cache(Path(folder), data, plan) as recall:
        for first in firsts[:most]:
            try:
                public_candidates = studies.sweep_candidates_from(plan.resolve_choice(first), workers, engine, progress)
                passing = shortlist(public_candidates.map, _rule(public_candidates.plan), most)
                capped |= len(passing) > most
                for second in passing[:most]:
                    key = _pair_key(first, second, public_candidates)
                    measurement = recall(key, partial(public_candidates.measure_pair, second))
                    pairs[_judge_pair(first, second, measurement, public_candidates, joint)] = first, second
            except (PlanError, SchemaError, Infeasible, Refused) as error:
                unused.append(f"{first.name}: {error}")
        tried, utilities = (*pairs,), (_utility(plan), _utility(public))
        best = find_least_loss(tried, (ru.signs[1], 1.0 if utilities[1].direction == "lower" else -1.0), weights)
        reason = _reason(best, tried, unused, most if capped else 0, weights, utilities)
        _record_choice(studies, best, tried, reason, joint, pairs[best][1].searched if best else 0)
    if best is None:
        return PairChoice(None, None, None, tried, tuple(unused), capped, reason)
    return PairChoice(*pairs[best], studies.study_of(best.ids[0]), tried, tuple(unused), capped, reason)


def find_least_loss(
    pairs: Sequence[TriedPair], signs: tuple[float, float], weights: Weights | None
) -> TriedPair | None:
    """Return the pair without problems that has the smallest loss; None where every pair has problems.

    Losses are compared by their weighted sum, if there are weights; ties, or all pairs, by the scientific loss, then the
    public loss, then the joint risk. signs : +1 where a utility is a loss, -1 where it is a gain.
    """

    def cost(pair: TriedPair) -> tuple[float, ...]:
        losses = [sign * value for sign, value in zip(signs, pair.utilities, strict=True) if value is not None]
        return (sum(w * loss for w, loss in zip(weights or (0.0, 0.0), losses, strict=True)), *losses)

    passing = [pair for pair in pairs if not pair.problems]
    return min(passing, key=lambda pair: (cost(pair), pair.joint, pair.ids), default=None)


def shortlist(ru: RUMap, rule: Rule, most: int) -> list[Choice]:
    """Return the undominated candidates that meet a rule, best first; one more than `most` where there are more."""
    chosen: list[Choice] = []
    while len(chosen) <= most:
        # Choose, remove what the choice dominates, and choose again among the rest.
        choice = ru.choose(rule)
        if choice.candidate is None:
            break
        chosen.append(choice)
        ru = _drop_dominated(ru, choice, isinstance(rule, ByRelease) and not rule.compares_releases(ru))
    return chosen


def _drop_dominated(ru: RUMap, choice: Choice, by_method: bool) -> RUMap:
    """Return the map without what a choice dominates or equals."""
    table = ru.means if by_method else ru.points
    own = table["method"] == choice.method if by_method else table["id"] == choice.candidate
    row = int(own.arg_true()[0])
    risk, loss = ru.losses(table)
    left = table.filter(pl.Series((risk < risk[row]) | (loss < loss[row])))
    return ru.among(means=left) if by_method else ru.among(points=left)


# ---- input --------------------------------------------------------------------------------------------
def _problems(public: Plan, most: int, joint: float | None, weights: Weights | None) -> Iterator[str]:
    if not isinstance(most, int) or most < 1:
        yield "most must be a whole number of at least 1."
    if joint is not None and not 0 < joint <= 1:
        yield "joint must be a share in (0, 1]."
    if weights is not None and (len(weights) != 2 or min(weights) < 0 or not 0 < sum(weights) < float("inf")):
        yield "weights must be two numbers of at least 0, one of them above 0."
    if public.rule is None:
        yield "the public plan has no rule. State one before the first score."
    if not public.utility:
        yield "the public plan has no utility measure. A pair is chosen by its utility loss."
    if public.data is None:
        yield "the public plan has no data part. It must state the roles of the columns."


def _scientific_plan(study: Study) -> Plan:
    """Return the plan of the scientific study; raise `Refused` where no file can be chosen in it any more."""
    plan, reason = study.plan, ""
    if study.manifest.get("releases"):
        advice = "Make the public file from the released one (`look --within`, docs/nested.md)."
        reason = f"The scientific study has released a file already, so no pair can be chosen. {advice}"
    elif plan.data is not None and plan.data.within:
        reason = (
            "The data of the scientific study are a released file themselves. Three nested files are not supported."
        )
    if reason:
        raise Refused([Check("pair", False, reason)])
    if plan.rule is None or not plan.risk or not plan.utility:
        raise PlanError("the scientific plan needs a rule, a risk and a utility measure to choose by.")
    return plan


def _rule(plan: Plan) -> Rule:
    if plan.rule is None:
        raise PlanError("the plan has no rule. State one before the first score.")
    return plan.rule


def _utility(plan: Plan) -> Measure:
    return next(measure for measure in plan.measures if measure.text == plan.utility)


# ---- one pair -------------------------------------------------------------------------------------------------
def _pair_key(first: Choice, second: Choice, made: PublicCandidates) -> str:
    """Return the key of a measured pair: both candidates with the ids of their streams, and what was measured."""
    plan = made.plan
    limits = [(limit.measure.id, limit.value) for limit in limits_of(plan, made.data, [plan.rule])]
    utility = [measure.id for measure in plan.measures if measure.text == plan.utility]
    parts = [first.candidate, first.stream_id, second.candidate, second.stream_id, limits, utility, LINKAGE.id]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]


def _judge_pair(
    first: Choice, second: Choice, measurement: PairMeasurement, made: PublicCandidates, joint: float | None
) -> TriedPair:
    """Return the pair with every reason against it."""
    limit, level = made.parent.profile.reidentification, made.parent.plan.policy.first_level
    linkage = JointLinkage(measurement["alone"], measurement["side_by_side"], limit, level, joint)
    problems = list(measurement["failed"])
    if not problems or linkage.value is not None:
        problems += [] if linkage.check.passed else [linkage.check.reason]
        problems += [] if measurement["loss"] is not None else ["The loss against the original could not be computed."]
    ids, utilities = (str(first.candidate), str(second.candidate)), (first.utility, measurement["loss"])
    return TriedPair((first.name, second.name), ids, utilities, linkage.value, linkage.limit.value, tuple(problems))


# ---- the reason, and the record in the study ------------------------------------------------------------------
def _reason(
    best: TriedPair | None, tried: Sequence[TriedPair], unused: Sequence[str], capped: int, weights: Weights | None,
    utilities: tuple[Measure, Measure],
) -> str:  # fmt: skip
    """Return why this pair was chosen, or why none."""
    firsts = len({pair.ids[0] for pair in tried})
    count = f"{_count_noun(len(tried), 'pair')} of {_count_noun(firsts, 'scientific file')} were tried."
    if capped:
        count += f" Only the best {capped} candidates of each file were paired; more meet their rule."
    left_out = ""
    if unused:
        left_out = f" {_count_noun(len(unused), 'scientific candidate')} could not be paired: {' '.join(unused)}"
    if best is None:
        near = min((p for p in tried if p.joint is not None), key=lambda p: (len(p.problems), p.joint), default=None)
        miss = ""
        if near is not None:
            miss = f" The nearest miss is {near.names[1]}, made from {near.names[0]}: {near.problems[0]}"
        return f"Release no pair: none meets both rules and the joint limit. {count}{miss}{left_out}"
    passing = sum(not pair.problems for pair in tried)
    criterion = "the smallest utility loss of the scientific file, then of the public file"
    if weights:
        criterion = f"the smallest {weights[0]:g} * scientific loss + {weights[1]:g} * public loss"
    losses = zip(utilities, best.utilities, strict=True)
    numbers = [f"{measure.title} {value:.4g}" for measure, value in losses if value is not None]
    return (
        f"Recommended: {best.names[0]} as the scientific-use file, and {best.names[1]}, made from it, as the public-use "
        f"file. {count} {passing} of them meet both rules and the joint limit; this one has {criterion} "
        f"({'; '.join(numbers)}, both compared with the original). An attacker who holds both files re-identifies "
        f"{best.joint:.4g}, within the limit of {best.limit:.4g}.{left_out}"
    )


def _count_noun(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _record_choice(
    studies: PublicStudies, best: TriedPair | None, tried: Sequence[TriedPair], reason: str, joint: float | None,
    searched: int,
) -> None:  # fmt: skip
    """Record the pair in the study of its public file, and clear the record in all others."""
    for first in dict.fromkeys(pair.ids[0] for pair in tried):
        facts: dict[str, Any] = {}
        if best is not None and best.ids[0] == first:
            facts = {
                "first": first, "candidate": best.ids[1], "searched": searched, "reason": reason, "joint": joint,
                "tried": len(tried), "pairs": [asdict(pair) for pair in tried],
            }  # fmt: skip
        with Study.open(studies.study_of(first)) as study, study.writing():
            study.note(pair=facts)
