"""Expensive measures that a sweep spares: only where they can change neither the risk axis nor the choice."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.study.spared_measures import Sparing

KEYS, AMOUNTS = ["sex", "region"], ["age", "income"]
LINKAGE, MEMBERSHIP = sm.WorstLinkage(), sm.risk.OutlierMembership(times=4)
LIMITS = {LINKAGE.text: 0.05, MEMBERSHIP.text: 0.65}
WEAK = sm.Chain([sm.PRAM(KEYS, 0.95), sm.Noise(on=AMOUNTS, variance=0.01)])
STRONG = sm.Chain([sm.PRAM(KEYS, 0.05), sm.Noise(on=AMOUNTS, variance=20.0)])
SYNTHETIC = sm.methods.Synthesize(on=[*KEYS, *AMOUNTS], leaf=50)


@pytest.fixture(scope="module")
def data() -> sm.Microdata:
    rng = np.random.default_rng(3)
    frame = pl.DataFrame(
        {
            "sex": rng.choice(["f", "m"], 320), "region": rng.choice(list("ABCDE"), 320),
            "age": rng.integers(18, 90, 320), "income": rng.lognormal(8, 0.6, 320).round(),
        }
    )  # fmt: skip
    return sm.read(frame, keys=KEYS, numeric=AMOUNTS)


def plan_of(*, linkage: float = 0.05, replicates: int = 1) -> sm.Plan:
    limits = LIMITS | {LINKAGE.text: linkage}
    return sm.Plan(
        [WEAK, STRONG, SYNTHETIC], [MEMBERSHIP, LINKAGE, sm.Hellinger(on=KEYS)], risk=[LINKAGE, MEMBERSHIP], limits=limits,
        rule=sm.Threshold(risk=1.0), seed=7, replicates=replicates,
    )  # fmt: skip


def statuses(scores: sm.Scores) -> dict[str, str]:
    """Return the status of the expensive measure by method."""
    rows = scores.score.filter(measure=MEMBERSHIP.text).join(
        scores.candidate.select(candidate="id", m="method"), on="candidate"
    )
    return dict(rows.select("m", "status").iter_rows())


# ---- which measures are spared --------------------------------------------------------------------------------
def test_measure_is_spared_only_if_another_exceeds_its_limit_by_at_least_as_much_as_it_can() -> None:
    """The AUC is at most 1/0.65 = 1.538 times its limit. A share of 0.0769 is 1.538 times 0.05."""
    sparing = Sparing.of_plan(plan_of())
    assert sparing is not None
    for value, is_spared in ((0.05, False), (0.0769, False), (0.077, True), (1.0, True), (None, False)):
        assert bool(sparing.reason(MEMBERSHIP, {LINKAGE.text: value})) == is_spared
    assert not sparing.reason(LINKAGE, {MEMBERSHIP.text: 1.0}), "cheap measures are always computed"
    assert not sparing.reason(MEMBERSHIP, {sm.Hellinger(on=KEYS).text: 1.0}), "utility is no risk"


def test_candidate_at_its_limit_is_never_spared() -> None:
    """A limit of 1 for the AUC is reached by a share of 1; a value at its own limit is within it."""
    sparing = Sparing({LINKAGE.text: 0.05, MEMBERSHIP.text: 1.0})
    assert not sparing.reason(MEMBERSHIP, {LINKAGE.text: 0.05})
    assert sparing.reason(MEMBERSHIP, {LINKAGE.text: np.nextafter(0.05, 1)})


def test_nothing_is_spared_without_shares_of_limits_or_where_draws_are_pooled() -> None:
    plan = plan_of()
    assert Sparing.of_plan(replace(plan, risk=(MEMBERSHIP.text,))) is None
    assert Sparing.of_plan(plan_of(replicates=2)) is None
    assert Sparing.of_plan(sm.Plan(WEAK, [LINKAGE, sm.risk.ExactMatch()], limits={"ExactMatch": 0.1})) is None


# ---- the sweep and the map ------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def complete(data: sm.Microdata) -> sm.RUMap:
    """Return the map with every measure computed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sm.risk.OutlierMembership, "can_be_spared", False)
        return sm.RUMap.of_plan(sm.sweep(data, plan_of(), workers=1), plan_of())


def test_map_and_choice_are_those_with_every_measure_computed(data: sm.Microdata, complete: sm.RUMap) -> None:
    scores = sm.sweep(data, plan_of(), workers=1)
    assert statuses(scores) == {WEAK.text: "spared", STRONG.text: "ok", SYNTHETIC.text: "ok", "Identity": "ok"}
    assert set(statuses(complete.scores).values()) == {"ok"}
    ru = sm.RUMap.of_plan(scores, plan_of())
    names = ["id", "risk", "utility", "frontier", "worse"]
    assert ru.points.select(names).equals(complete.points.select(names))
    assert ru.means.select("method", "risk", "frontier").equals(complete.means.select("method", "risk", "frontier"))
    assert (ru.eligible(ru.points) == complete.eligible(complete.points)).all()
    assert ru.choose(sm.Threshold(risk=1.0)).candidate == complete.choose(sm.Threshold(risk=1.0)).candidate
    (weak,) = ru.points.filter(method=WEAK.text)["id"]
    (verdict,) = (v for v in ru.verdicts(weak) if v.limit.measure == MEMBERSHIP)
    assert verdict.status == "no value"
    assert re.match(
        r"it was spared: WorstLinkage is \d+(\.\d+)? times its limit, .* more than 1\.54 times", verdict.reason
    )


def test_spared_candidate_is_not_eligible_on_a_map_with_a_wider_limit(data: sm.Microdata) -> None:
    """There the spared measure might decide. It counts with its largest possible value."""
    ru = sm.RUMap.of_plan(sm.sweep(data, plan_of(), workers=1), plan_of(), limits=LIMITS | {LINKAGE.text: 1.0})
    row = ru.points.filter(method=WEAK.text)
    assert row["risk"].to_list() == pytest.approx([1 / 0.65]) and not ru.eligible(row).any()


def test_engines_spare_the_same_measures(data: sm.Microdata, tmp_path: Path) -> None:
    one = sm.sweep(data, plan_of(), tmp_path / "one", workers=1)
    two = sm.sweep(data, plan_of(), tmp_path / "two", workers=2, engine="processes")
    assert one.score.sort("candidate", "measure").equals(two.score.sort("candidate", "measure"))


def test_spared_measures_are_computed_later_only_if_the_limits_need_them(data: sm.Microdata, tmp_path: Path) -> None:
    first = sm.sweep(data, plan_of(), tmp_path / "study", workers=1)
    with sm.Study.open(tmp_path / "study") as study:
        version = study.database.version[0]
    again = sm.sweep(data, plan_of(), tmp_path / "study", workers=1)
    assert again.score.equals(first.score) and statuses(again)[WEAK.text] == "spared"
    with sm.Study.open(tmp_path / "study") as study:
        assert study.database.version[0] == version, "nothing was written"
    wider = sm.sweep(data, plan_of(linkage=0.9), tmp_path / "study", workers=1)
    assert set(statuses(wider).values()) == {"ok"}
    fresh = sm.sweep(data, plan_of(linkage=0.9), tmp_path / "fresh", workers=1)
    pairs = (
        s.score.filter(measure=MEMBERSHIP.text).select("candidate", "status").sort("candidate") for s in (wider, fresh)
    )
    assert next(pairs).equals(next(pairs))
    sm.Study.open(tmp_path / "study").scores(), "the rows are counted anew"
    back = sm.sweep(data, plan_of(), tmp_path / "study", workers=1)
    assert statuses(back)[WEAK.text] == "ok", "what is computed stays"


def test_more_draws_need_every_measure(data: sm.Microdata, tmp_path: Path) -> None:
    sm.sweep(data, plan_of(), tmp_path / "study", workers=1)
    scores = sm.sweep(data, plan_of(replicates=2), tmp_path / "study", workers=1)
    assert set(scores.score.filter(measure=MEMBERSHIP.text)["status"]) == {"ok"}


def test_score_computes_every_measure(data: sm.Microdata) -> None:
    masked = sm.mask(data, WEAK, seed=7)
    scores = sm.score(data, masked, [LINKAGE, MEMBERSHIP], method=WEAK)
    assert scores[LINKAGE.text].value > 0.5 and scores[MEMBERSHIP.text].se


def test_report_lists_spared_measures(data: sm.Microdata, tmp_path: Path) -> None:
    sm.sweep(data, plan_of(), tmp_path / "study", workers=1)
    with sm.Study.open(tmp_path / "study") as study:
        sm.report(study).save(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "Measures that were not computed (spared)" in page and "it was spared: WorstLinkage is" in page
