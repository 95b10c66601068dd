"""Profiles: named limits that a plan states before the first score."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.errors import PlanError
from sdcmap.risk import (
    AttributeInference,
    ClosestRecord,
    ExactMatch,
    ExtremeValues,
    LargestUnits,
    OutlierMembership,
    PPercent,
    RecordRisk,
    SpecialUniques,
    SurestLinks,
    WorstLinkage,
)
from sdcmap.study.plan_remarks import remarks
from sdcmap.study.profiles import PROFILES, Profile, find_profile, sample_columns, to_profile

DATA = sm.read(
    pl.DataFrame({"a": list("xyz") * 20, "b": list("uv") * 30, "n": range(60)}), keys=["a", "b"], sensitive="n"
)


@pytest.mark.parametrize("name", PROFILES)
def test_each_profile_limits_every_kind_of_risk(name: str) -> None:
    held = find_profile(name).measures(DATA)
    kinds = {type(measure) for measure in held.limits}
    assert {WorstLinkage, ExactMatch, SpecialUniques, AttributeInference} <= kinds
    assert (ClosestRecord in kinds) == (RecordRisk in kinds) == (name != "scientific-use")
    assert (LargestUnits in kinds) == (PPercent in kinds) == (name == "business")
    assert all(limit > 0 for limit in held.limits.values())


@pytest.mark.parametrize("rows", [60, 300, 25_000])
def test_limits_for_outlying_people_need_enough_people(rows: int) -> None:
    """Ten per cent of the file must be 30 people; 1 % in half of the refits must give 1,000 scores. Else it says why."""
    data = sm.read(pl.DataFrame({"a": ["x", "y"] * (rows // 2), "n": range(rows)}), keys="a", numeric="n")
    held = find_profile("public-use").measures(data)
    limits = {m.statistic: limit for m, limit in held.limits.items() if isinstance(m, OutlierMembership)}
    assert limits == ({"auc": 0.7} if rows >= 300 else {}) | ({"detection": 0.1} if rows >= 25_000 else {})
    off = {name: reason for name, reason in held.off.items() if name.startswith("OutlierMembership")}
    assert [*off] == {60: ["OutlierMembership"], 300: ["OutlierMembership (detection)"]}.get(rows, [])
    assert all("records would be needed" in reason for reason in off.values())


def test_sensitive_columns_that_are_not_inferred_are_named() -> None:
    names = [f"s{number}" for number in range(1, 11)]
    frame = pl.DataFrame({"a": list("xyz") * 20} | {name: range(60) for name in names})
    said = "Of 10 sensitive columns, the profile infers the first 8, not s9, s10."
    for columns, expected in ((names, True), (names[:8], False)):
        data = sm.read(frame, keys="a", sensitive=columns)
        plan = sm.Plan([sm.Noise("s1")], [*find_profile("public-use").measures(data).limits], profile="public-use")
        assert any(line.startswith(said) for line in remarks(data, plan, plan)) == expected
        assert any(why.startswith(said) for why in sm.look(data).limits_off().values()) == expected


@pytest.mark.parametrize("name", PROFILES)
def test_each_profile_limits_the_risk_of_the_few(name: str) -> None:
    rng = np.random.default_rng(1)
    frame = {"a": rng.choice(list("xyz"), 900), "n": rng.lognormal(8, 1, 900), "m": rng.lognormal(8, 1, 900)}
    held = find_profile(name).measures(sm.read(pl.DataFrame(frame), keys="a", numeric=["n", "m"]))
    few = {type(m).__name__: limit for m, limit in held.limits.items() if m.can_be_spared}
    membership = {} if name == "scientific-use" else {"OutlierMembership": 0.7}
    assert few.keys() == {"SurestLinks", "Reconstruction", "ExtremeValues"} | membership.keys()
    public = find_profile("public-use")
    if name in ("teaching", "business"):
        assert all(
            few[type(m).__name__] <= limit for m in held.limits if m.can_be_spared and (limit := public.limit_of(m))
        )


def test_small_file_has_more_refits_until_its_limits_can_be_shown() -> None:
    def find(rows: int, amounts: int) -> tuple[dict[str, int], Mapping[str, str]]:
        columns = {f"n{i}": np.random.default_rng(i).lognormal(8, 1, rows) for i in range(amounts)}
        data = sm.read(pl.DataFrame({"a": ["x", "y"] * (rows // 2)} | columns), keys="a", numeric=[*columns])
        held = find_profile("public-use").measures(data)
        return {
            type(m).__name__: m.times for m in held.limits if isinstance(m, ExtremeValues | OutlierMembership)
        }, held.off

    # both use the same refits, so they have as many
    assert find(600, 4)[0] == {"ExtremeValues": 60, "OutlierMembership": 60}
    assert find(5_000, 4)[0] == {"ExtremeValues": 36, "OutlierMembership": 36}
    assert find(16_000, 4)[0] == {"ExtremeValues": 20, "OutlierMembership": 20}
    few, off = find(10, 1)
    assert not few and off["ExtremeValues"].startswith("ExtremeValues is off: with 10 records its error alone exceeds")
    needed = int(off["ExtremeValues"].split("About ")[1].split(" records")[0])
    assert "ExtremeValues" in find(needed + needed % 2, 1)[0]


def test_plan_switches_a_limit_of_its_profile_off() -> None:
    profile = to_profile({"name": "public-use", "surest": "none", "people": "none"})
    plan = sm.Plan(sm.Swap(on="a"), [WorstLinkage(), sm.Hellinger()], profile=profile)
    assert profile.surest is None and profile.people is None and sm.Plan.from_toml(plan.toml()) == plan
    assert not any(isinstance(m, SurestLinks) for m in profile.measures(DATA).limits)
    with pytest.raises(PlanError, match="reidentification"):
        to_profile({"reidentification": "none"})


@pytest.mark.parametrize("name", PROFILES)
def test_plan_keeps_its_profile_with_changed_limits(name: str) -> None:
    profile = to_profile({"name": name, "reidentification": 0.07})
    plan = sm.Plan(sm.Swap(on="a"), [WorstLinkage(), sm.Hellinger()], profile=profile)
    assert plan.limits == {"WorstLinkage": 0.07} and sm.Plan.from_toml(plan.toml()) == plan
    assert profile.words == f"{name} (changed: reidentification 0.07)"


def test_file_without_sensitive_columns_has_a_sample_of_them_inferred() -> None:
    columns = {f"c{i}": list("xyz") * 20 for i in range(10)} | {f"x{i}": range(60) for i in range(3)}
    data = sm.read(pl.DataFrame(columns), keys=[f"c{i}" for i in range(10)], numeric=[f"x{i}" for i in range(3)])
    assert sample_columns(data, 8) == ("x0", "x1", "x2", "c0", "c2", "c4", "c6", "c8")
    assert sample_columns(data, 4) == ("x0", "x1", "c0", "c5")
    measured = [m.secret for m in find_profile("public-use").measures(data).limits if isinstance(m, AttributeInference)]
    assert tuple(measured) == sample_columns(data, 8)


def test_stated_limits_override_those_of_the_profile() -> None:
    plan = sm.Plan(sm.Swap(on="a"), [WorstLinkage(), sm.Hellinger()], limits={"WorstLinkage": 0.3}, profile="teaching")
    assert plan.limits == {"WorstLinkage": 0.3} and sm.Plan.from_toml(plan.toml()) == plan


def test_plan_without_a_risk_measure_gets_those_of_its_profile() -> None:
    plan = sm.Plan(sm.Swap(on="a"), sm.Hellinger(), profile="public-use").with_risk(DATA)
    assert plan.limits == {m.text: limit for m, limit in PROFILES["public-use"].measures(DATA).limits.items()}


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("publik-use", "Did you mean 'public-use'"),
        ({"name": "public-use", "found": 0.1}, "has no limit 'found'.* Did you mean 'reidentification'"),
        ({"reidentification": 2}, r"Profile.reidentification must be in \(0, 1\]"),
        ({"area": "region"}, "stated together"),
    ],
)
def test_invalid_profile_gets_one_sentence(given: str | dict[str, object], sentence: str) -> None:
    with pytest.raises(PlanError, match=sentence):
        to_profile(given)


def test_share_limit_respects_the_number_of_people() -> None:
    assert PROFILES["public-use"].for_rows(200_000).reidentification == 0.005
    assert PROFILES["public-use"].for_rows(2_000).reidentification == 0.05


def test_journalist_needs_population_fraction_and_secret_participation() -> None:
    assert Profile(fraction=0.1).inclusion == 1 and Profile(population=1000).inclusion == 1
    assert Profile(population=1000, fraction=0.1).inclusion == 1
    assert Profile(population=1000, fraction=0.1, taking_part="secret").inclusion == 0.1
    with pytest.raises(PlanError, match="needs .population and .fraction"):
        Profile(taking_part="secret")
