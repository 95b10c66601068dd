"""Attacks on the structure of a file: households, the survey design, the largest units, special uniques. Each equals its
definition, done by brute force on small files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations, permutations
from typing import Any

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.core.measure import Estimate
from sdcmap.core.streams import Stream
from sdcmap.data.cells import recode_to_released_categories
from sdcmap.data.microdata import Microdata
from sdcmap.errors import PlanError, SchemaError, Undefined
from sdcmap.kernels.arrays import Array
from sdcmap.risk import AreaFromDesign, Calibrated, HouseholdLink, LargestUnits, NearestRecord, SpecialUniques
from sdcmap.risk.area_from_design import RATE_PARTS
from sdcmap.testing import check_measure

KEYS, NUMBERS = ("age", "sex", "trade"), ("wage", "rent")
KNOWN = (*KEYS, *NUMBERS)
METHODS: dict[str, sm.Method] = {
    "identity": sm.Identity(),
    "noise": sm.Noise(on=NUMBERS, variance=0.3),
    "other categories": sm.methods.RandomizedResponse(on=["age", "area"], epsilon=1.5),
    "coarser": sm.Recode(on="area", merge=[["0", "1", "2"], ["3", "4"]]),
    "blanks": sm.Suppress(on=KEYS, k=3),
    "a sample": sm.methods.Sample(rate=0.6),
}
every_method = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS.keys())


def people(n: int = 40, seed: int = 1, gone: float = 0.1) -> Microdata:
    """Keys and numbers with ties and missing values, households, areas, strata and a weight."""
    rng = np.random.default_rng(seed)
    area = rng.integers(0, 6, n)
    frame = pl.DataFrame(
        {"age": rng.integers(0, 4, n).astype(str), "sex": rng.integers(0, 2, n).astype(str)}
        | {"trade": rng.integers(0, 3, n).astype(str), "area": area.astype(str), "stratum": (area % 4).astype(str)}
        | {"wage": rng.integers(0, 12, n).astype(float), "rent": np.round(rng.normal(0, 3, n))}
        | {"weight": 1.0 + area // 2 + rng.integers(0, 5, n) / 4, "home": rng.integers(0, n // 2, n).astype(str)}
    )
    for name in (*KNOWN, "home"):
        frame = frame.with_columns(pl.when(pl.Series(rng.random(n) >= gone)).then(pl.col(name)).alias(name))
    roles: dict[str, Any] = {"weight": "weight", "household": "home", "stratum": "stratum", "other": ["area"]}
    return sm.read(frame, keys=KEYS, numeric=NUMBERS, **roles)


def released(method: sm.Method, data: Microdata) -> Microdata:
    return method.apply(data, Stream.of_seed(1, "structure"))


def scored(measure: sm.Measure, data: Microdata, masked: Microdata) -> sm.Estimate:
    return measure.apply(data, masked, np.random.default_rng(1))


def origin(masked: Microdata) -> list[int]:
    return list(range(len(masked))) if masked.origin is None else masked.origin.tolist()


def homes_of(data: Microdata) -> list[list[int]]:
    """Return the members of each household; a person with a missing number lives alone."""
    homes: dict[Any, list[int]] = {}
    for row, (number, gone) in enumerate(zip(data["home"].tolist(), data.missing("home"), strict=True)):
        homes.setdefault(("alone", row) if gone else number, []).append(row)
    return list(homes.values())


# ---- households -----------------------------------------------------------------------------------------------
def apart(data: Microdata, masked: Microdata, names: Sequence[str]) -> Array:
    """Return Gower's distance between each person and each released record."""
    total, present = np.zeros((len(data), len(masked))), np.zeros((len(data), len(masked)))
    for name in names:
        a, b = data[name], masked[name]
        gone = data.missing(name)[:, np.newaxis] | masked.missing(name)
        if name in NUMBERS:
            distance = np.minimum(np.abs(a[:, np.newaxis] - b) / (np.nanmax(a) - np.nanmin(a)), 1.0)
        else:
            distance = (a[:, np.newaxis] != b).astype(float)
        total += np.where(gone, 0.0, distance)
        present += ~gone
    return np.where(present > 0, total / np.maximum(present, 1), 1.0)


def households_by_brute_force(data: Microdata, masked: Microdata, names: Sequence[str]) -> Array:
    known, people_of = homes_of(data), origin(masked)
    home_of = {row: number for number, home in enumerate(known) for row in home}
    whole = all(len(home) == len(known[home_of[people_of[row]]]) for home in homes_of(masked) for row in home)
    result, cost = np.zeros(len(masked)), apart(data, masked, names).tolist()
    for home in homes_of(masked):
        costs = np.full(len(known), np.inf)
        for number, family in enumerate(known):
            if len(family) == len(home) or (not whole and len(family) > len(home)):
                costs[number] = min(
                    sum(cost[row][other] for row, other in zip(some, home, strict=True))
                    for some in permutations(family, len(home))
                )
        tied = costs <= costs.min() + 1e-9
        for row in home:
            result[row] = tied[home_of[people_of[row]]] / tied.sum()
    return result


@every_method
@pytest.mark.parametrize("names", [("age", "sex"), ("sex", "wage")])
def test_household_links_match_brute_force(method: sm.Method, names: tuple[str, ...]) -> None:
    data = people(30)
    masked = released(method, data)
    measure = HouseholdLink(NearestRecord("gower", on=names))
    twin = households_by_brute_force(data, masked, names)
    np.testing.assert_allclose(measure.records(data, masked), twin)
    assert scored(measure, data, masked).value == pytest.approx(twin.mean())


def test_household_is_linked_though_no_member_is_unique() -> None:
    """Everyone has a double, and two families share them: m0 f1, m0 m1, f1 f1, m0 m1."""
    frame = pl.DataFrame({"sex": list("mfmmffmm"), "age": list("01011101"), "home": list("aabbccdd")})
    data = sm.read(frame, keys=["sex", "age"], household="home")
    estimate = scored(HouseholdLink(), data, data.change(None, {}))
    assert estimate.value == estimate.parts["equal composition"] == (2 + 2 + 4 / 2) / 8
    assert estimate.parts["persons one by one"] == pytest.approx(3 / 8)
    assert HouseholdLink().baseline(data) == 1 / 4


def test_member_of_large_household_is_linked_in_tiny_sample() -> None:
    frame = pl.DataFrame({"age": list("012345678"), "home": list("aaaaaabbc")})
    data = sm.read(frame, keys=["age"], household="home")
    for person in range(9):
        assert HouseholdLink().records(data, data.take(np.array([person]))).tolist() == [1.0]


def test_household_linkage_beats_person_linkage_under_noise() -> None:
    data = sm.demo.population(300, seed=3)
    masked = released(sm.Noise(on=data.numeric, variance=0.2), data)
    parts = scored(HouseholdLink(), data, masked).parts
    assert parts["prosecutor"] > parts["persons one by one"] + 0.1
    assert parts["equal composition"] == 0


def test_informed_household_attack_requires_equal_unmasked_columns() -> None:
    data = people(40, gone=0.0)
    method = sm.methods.Shuffle(on=["wage", "rent"], given=["sex"])
    masked = released(method, data)
    blind, reader = HouseholdLink(), HouseholdLink().for_informed_attacker(method)
    assert scored(reader, data, masked).value >= scored(blind, data, masked).value
    open_columns = HouseholdLink(NearestRecord("gower", on=(*KEYS, "area")))
    assert scored(reader, data, masked).value >= scored(open_columns, data, masked).value


def test_household_blocks_do_not_change_result(monkeypatch: pytest.MonkeyPatch) -> None:
    data = people(40)
    masked = released(METHODS["noise"], data)
    at_once = HouseholdLink().records(data, masked)
    monkeypatch.setattr("sdcmap.risk.linkage.household_link.MAX_PERSON_PAIRS", 50)
    np.testing.assert_array_equal(HouseholdLink().records(data, masked), at_once)


def test_household_link_accepts_additive_attacks() -> None:
    data = people(40)
    masked = released(METHODS["noise"], data)
    for attack in (Calibrated(), NearestRecord(inclusion=0.5), sm.risk.Linkage()):
        estimate = scored(HouseholdLink(attack), data, masked)
        assert estimate.value == pytest.approx(attack.inclusion * estimate.parts["prosecutor"])
    with pytest.raises(Undefined, match="does not state costs of pairs"):
        scored(HouseholdLink(sm.WorstLinkage()), data, masked)


def test_household_link_needs_households(tmp_path: Any) -> None:
    data = people()
    lonely = data.only([name for name in data.names if name != "home"])
    with pytest.raises(SchemaError, match="HouseholdLink needs a household variable"):
        HouseholdLink().check_variables(lonely)
    with pytest.raises(Undefined, match="has no household number"):
        scored(HouseholdLink(), data, lonely)
    path = tmp_path / "archive.csv"
    data.frame().write_csv(path)
    with pytest.raises(PlanError, match="must not have an archive"):
        HouseholdLink(NearestRecord("gower", archive=str(path)))


# ---- geography ------------------------------------------------------------------------------------------------
def chance_of_most_common(areas: Sequence[int], own: int) -> float:
    """Return the probability that the most common of these areas is this one."""
    count = Counter(areas)
    most = max(count.values())
    return (count[own] == most) / sum(times == most for times in count.values())


def areas_by_brute_force(data: Microdata, masked: Microdata, knows: str) -> tuple[float, float]:
    """Return rate and baseline, record by record."""
    area = data.codes("area")[origin(masked)].tolist()
    weight, stratum = masked["weight"].tolist(), masked["stratum"].tolist()
    shown = masked.codes("area").tolist()
    rows = range(len(masked))
    rate = baseline = 0.0
    for i in rows:
        alike = [j for j in rows if shown[j] == shown[i]]
        baseline += chance_of_most_common([area[j] for j in alike], area[i])
        others = [j for j in alike if stratum[j] == stratum[i] and (j != i or knows == "design")]
        nearest = min((abs(weight[j] - weight[i]) for j in others), default=0.0)
        cells: dict[float, list[int]] = {}
        for j in others:
            if abs(weight[j] - weight[i]) <= nearest + 1e-9:
                cells.setdefault(weight[j], []).append(area[j])
        guesses = [chance_of_most_common(cell, area[i]) for cell in cells.values()]
        rate += sum(guesses) / len(guesses) if guesses else chance_of_most_common([area[j] for j in alike], area[i])
    return rate / len(rows), baseline / len(rows)


@every_method
@pytest.mark.parametrize("knows", ["others", "design"])
def test_area_from_design_matches_brute_force(method: sm.Method, knows: Any) -> None:
    for seed in (1, 2, 3):
        data = people(seed=seed)
        masked = released(method, data)
        rate, baseline = areas_by_brute_force(data, masked, knows)
        estimate = scored(AreaFromDesign("area", knows=knows), data, masked)
        assert estimate.parts[RATE_PARTS[knows]] == pytest.approx(rate)
        assert estimate.parts["baseline"] == pytest.approx(baseline)
        assert estimate.value == pytest.approx(max(0.0, rate - baseline))
        assert AreaFromDesign("area", knows=knows).records(data, masked).mean() == pytest.approx(rate)


def survey(weight: Array, area: Array, **more: Array) -> Microdata:
    frame = pl.DataFrame({"area": area.astype(str), "weight": weight} | more)
    return sm.read(frame, keys=["area"], weight="weight", other=list(more))


def test_weights_reveal_area_unless_random() -> None:
    rng = np.random.default_rng(1)
    area = rng.integers(0, 8, 800)
    merge = sm.Recode(on="area", merge=[["0", "1", "2", "3"], ["4", "5", "6", "7"]])
    revealing = survey(area + 10.0, area)
    estimate = scored(AreaFromDesign("area"), revealing, released(merge, revealing))
    assert estimate.parts["rate from other records"] == estimate.parts["certain"] == 1
    assert estimate.value == pytest.approx(1 - estimate.parts["baseline"])
    assert scored(AreaFromDesign("area"), revealing, revealing.change(None, {})).value == 0  # nothing was masked
    chance = survey(rng.random(800), area)
    estimate = scored(AreaFromDesign("area"), chance, released(merge, chance))
    assert estimate.value < 0.06  # 3 standard errors of a share of a quarter
    assert estimate.parts["rate from the design"] == 1  # with the list, a unique weight identifies its record
    near = survey(area + rng.random(800) / 4, area)
    assert scored(AreaFromDesign("area"), near, released(merge, near)).parts["rate from other records"] > 0.99


def test_replicate_weights_reveal_sampling_unit() -> None:
    """Weights and replicates are calibrated by record; the unit that a replicate leaves out stays visible."""
    rng = np.random.default_rng(1)
    area, unit = np.repeat(np.arange(8), 20), np.repeat(np.arange(16), 10)
    weight = rng.uniform(1, 9, 160)
    replicates = {f"r{k}": np.where(unit == k, 0.0, weight * 16 / 15) for k in range(16)}
    data = survey(weight, area, **replicates)
    masked = data.only([name for name in data.names if name != "area"])
    weights = scored(AreaFromDesign("area"), data, masked).parts
    units = scored(AreaFromDesign("area", replicates=tuple(replicates)), data, masked)
    assert weights["baseline"] == pytest.approx(1 / 8)
    assert weights["rate from other records"] < 0.25
    assert units.parts["rate from other records"] == 1  # the nearest weight is in the same sampling unit


@pytest.mark.parametrize(
    ("measure", "words"),
    [
        (AreaFromDesign("aera"), "no column 'aera'. Did you mean 'area'?"),
        (AreaFromDesign("area", by=["psu"]), "no column 'psu'"),
        (AreaFromDesign("area", replicates=["stratum"]), "replicate weights are numeric; 'stratum' is nominal"),
        (LargestUnits("sex"), "measures numeric variables; 'sex' is nominal"),
        (LargestUnits("wage", within=["region"]), "no column 'region'"),
    ],
)
def test_incompatible_file_is_rejected_with_reason(measure: sm.Measure, words: str) -> None:
    with pytest.raises(SchemaError, match=words.replace("?", r"\?")):
        measure.check_variables(people())


def test_area_from_design_needs_design_columns() -> None:
    bare = people().only([*KEYS, "area"])
    with pytest.raises(SchemaError, match="needs design columns"):
        AreaFromDesign("area").check_variables(bare)
    with pytest.raises(SchemaError, match="give a column the role weight"):
        AreaFromDesign("area", by=["sex"], replicates=["rent"]).check_variables(people().only([*KNOWN, "area"]))
    with pytest.raises(PlanError, match="may not be a design column"):
        AreaFromDesign("area", by=["area"])


# ---- the largest units ----------------------------------------------------------------------------------------
def largest_by_brute_force(data: Microdata, masked: Microdata, measure: LargestUnits) -> tuple[float, float]:
    """Return the shares re-identified by rank and by value."""
    known = recode_to_released_categories(data, masked, measure.within)
    group = [tuple(known[name][row] for name in measure.within) for row in range(len(data))]
    theirs = [tuple(masked[name][row] for name in measure.within) for row in range(len(masked))]
    size, shown, people_of = data["wage"], masked["wage"], origin(masked)
    by_rank = by_value = units = 0.0
    for i in range(len(data)):
        inside = [j for j in range(len(data)) if group[j] == group[i] and not np.isnan(size[j])]
        above, ties = sum(size[j] > size[i] for j in inside), sum(size[j] == size[i] for j in inside)
        most = measure.largest if measure.share is None else np.ceil(measure.share * len(inside))
        if np.isnan(size[i]) or above >= most:
            continue
        units += 1
        there = [r for r in range(len(masked)) if theirs[r] == group[i] and not np.isnan(shown[r])]
        nearest = min((abs(shown[r] - size[i]) for r in there), default=np.inf)
        near = [r for r in there if abs(shown[r] - size[i]) <= nearest * (1 + 1e-12)]
        for r in there:
            if people_of[r] == i:
                over, even = sum(shown[q] > shown[r] for q in there), sum(shown[q] == shown[r] for q in there)
                by_rank += len({*range(above, above + ties)} & {*range(over, over + even)}) / (ties * even)
                by_value += (r in near) / len(near)
    return by_rank / units, by_value / units


@every_method
@pytest.mark.parametrize(
    "measure",
    [
        LargestUnits("wage", largest=3),
        LargestUnits("wage", share=0.4, within=["trade"]),
        LargestUnits("wage", within=KEYS),
    ],
)
def test_largest_units_match_brute_force(method: sm.Method, measure: LargestUnits) -> None:
    data = people()
    masked = released(method, data)
    estimate = scored(measure, data, masked)
    by_rank, by_value = largest_by_brute_force(data, masked, measure)
    assert estimate.parts["by rank"] == pytest.approx(by_rank)
    assert estimate.parts["by value"] == pytest.approx(by_value)
    assert estimate.value == pytest.approx(max(by_rank, by_value))
    assert np.nansum(measure.records(data, masked)) == pytest.approx(estimate.value * estimate.parts["units"])


def test_noise_does_not_hide_largest_units() -> None:
    size = np.concatenate([np.linspace(1, 20, 200), [100.0, 300.0, 900.0]])
    data = sm.read(pl.DataFrame({"turnover": size}), numeric=["turnover"])
    masked = released(sm.Noise(on="turnover", variance=0.02), data)
    few, all_of_them = (scored(LargestUnits("turnover", largest=k), data, masked) for k in (3, 203))
    assert few.value == few.parts["largest unit"] == 1
    assert few.parts["share of the total"] == pytest.approx(1300 / size.sum())
    assert all_of_them.value < 0.1
    top_coded = scored(LargestUnits("turnover", largest=3), data, released(sm.TopCode(on="turnover", top=10), data))
    assert top_coded.value == pytest.approx(1 / (size >= 10).sum())
    with pytest.raises(Undefined, match="no column 'trade'"):
        both = people()
        scored(LargestUnits("wage", within=["trade"]), both, both.only(["wage"]))


# ---- special uniques ------------------------------------------------------------------------------------------
def special_by_brute_force(data: Microdata, masked: Microdata, largest: int, any_value: bool) -> Array:
    """Return 1 for re-identified special uniques, 0 for the others, NaN for records that are not special."""

    ours = [tuple(None if v is None else str(v) for v in row) for row in data.frame().select(KEYS).rows()]
    theirs = [tuple(None if v is None else str(v) for v in row) for row in masked.frame().select(KEYS).rows()]

    def same(first: Sequence[str | None], second: Sequence[str | None], chosen: Sequence[int]) -> bool:
        pairs = [(first[k], second[k]) for k in chosen]
        return all(a == b or (any_value and None in (a, b)) for a, b in pairs)

    result = np.full(len(masked), np.nan)
    for row, person in enumerate(origin(masked)):
        minimal: list[set[int]] = []
        for chosen in (c for size in range(1, largest + 1) for c in combinations(range(len(KEYS)), size)):
            values = [ours[person][k] for k in chosen]
            have = sum([other[k] for k in chosen] == values for other in ours)  # a missing value equals no value
            alone = have == 1 and not (any_value and None in values)
            if alone and not any(smaller <= set(chosen) for smaller in minimal):
                minimal.append(set(chosen))
                hits = [j for j, other in enumerate(theirs) if same(ours[person], other, chosen)]
                full = [j for j in hits if not any_value or None not in [theirs[j][k] for k in chosen]]
                hits = full or hits  # who has the values comes before who has a blank
                result[row] = max(float(hits == [row]), np.nan_to_num(result[row]))
    return result


@every_method
@pytest.mark.parametrize("missing_is", ["any value", "a category"])
def test_special_uniques_match_brute_force(method: sm.Method, missing_is: Any) -> None:
    for seed, largest in ((1, 3), (2, 2)):
        data = people(25, seed, gone=0.02)
        masked = released(method, data)
        measure = SpecialUniques(largest=largest, missing_is=missing_is)
        twin = special_by_brute_force(data, masked, largest, missing_is == "any value")
        np.testing.assert_array_equal(measure.records(data, masked), twin)
        special = ~np.isnan(twin)
        estimate = scored(measure, data, masked)
        assert estimate.parts["special uniques"] == special.sum() > 0
        assert estimate.value == pytest.approx(twin[special].mean())
        assert estimate.parts["share of all records"] == pytest.approx(np.nansum(twin) / len(masked))


def test_special_uniques_after_recoding_and_without_any() -> None:
    frame = pl.DataFrame({"age": list("0011223344555"), "sex": list("mfmfmfmfmfmfw")})
    data = sm.read(frame, keys=["age", "sex"])
    coarser = released(sm.Recode(on="age", merge=[["0", "1"], ["2", "3", "4", "5"]]), data)
    estimate = scored(SpecialUniques(), data, coarser)
    assert estimate.parts["special uniques"] == 13
    assert estimate.value == pytest.approx(1 / 13)  # w: by the sex alone
    doubled = sm.read(pl.concat([frame, frame]), keys=["age", "sex"])
    assert scored(SpecialUniques(), doubled, doubled.change(None, {})).value == 0


def test_missing_value_of_another_person_keeps_special_unique() -> None:
    """The only baker is re-identified by their trade although another person's trade is missing."""
    data = sm.read(pl.DataFrame({"trade": ["baker", "smith", "smith", None]}), keys=["trade"])
    estimate = scored(SpecialUniques(), data, data.change(None, {}))
    assert (estimate.parts["special uniques"], estimate.value) == (1, 1.0)


# ---- laws -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "measure",
    [
        HouseholdLink(),
        HouseholdLink(NearestRecord("standardized", on=NUMBERS, inclusion=0.3)),
        AreaFromDesign("area"),
        AreaFromDesign("area", by=["wage", "rent", "stratum"], knows="design"),
        LargestUnits("wage", within=["sex", "trade"]),
        SpecialUniques(on=(*KEYS, "area"), largest=2),
    ],
    ids=lambda measure: measure.text,
)
def test_structural_measures_pass_contract_checks(measure: sm.Measure) -> None:
    for seed in (1, 2):
        check_measure(measure, people(20, seed), [method for name, method in METHODS.items() if name != "a sample"])


# ---- the record that is easiest to look up --------------------------------------------------------------------
def look_up(keys: list[str], released: list[str]) -> Estimate:
    data = sm.read(pl.DataFrame({"key": keys}), keys="key")
    return sm.risk.RecordRisk().score(
        data, sm.read(pl.DataFrame({"key": released}), keys="key"), np.random.default_rng(0)
    )


def test_record_risk_of_unmasked_file_is_one_over_smallest_group() -> None:
    for smallest in (1, 3, 5):
        keys = ["a"] * smallest + ["b"] * 40 + ["c"] * 100
        estimate = look_up(keys, keys)
        assert estimate.value == pytest.approx(1 / smallest)
        assert estimate.parts["smallest group"] == estimate.parts["people in it"] == smallest
        assert estimate.parts["expected re-identifications"] == pytest.approx(3)  # one of each group


def test_expected_number_pools_no_group_sizes() -> None:
    """A single person of a group of two keeps their value, and all 40 people of another group."""
    keys = ["a"] * 2 + ["b"] * 40
    released = ["a", "c"] + ["b"] * 40
    estimate = look_up(keys, released)  # the person who keeps "a" is the only match of both
    assert estimate.parts["expected re-identifications"] == pytest.approx(1 + 40 / 40)


def test_record_risk_of_perturbed_file_is_success_rate() -> None:
    """60 people with unique values; the release rotates the values of 45 of them."""
    keys = [f"k{i:02d}" for i in range(60)]
    released = keys[1:45] + keys[:1] + keys[45:]
    estimate = look_up(keys, released)
    assert estimate.value == pytest.approx(15 / 60) and estimate.parts["expected re-identifications"] == pytest.approx(
        15
    )
    data = sm.read(pl.DataFrame({"key": keys}), keys="key")
    masked = sm.read(pl.DataFrame({"key": released}), keys="key")
    assert sm.risk.RecordRisk().records(data, masked).tolist() == pytest.approx([0.25] * 60)
    tenth = sm.risk.RecordRisk(inclusion=0.1).score(data, masked, np.random.default_rng(0))
    assert tenth.value == pytest.approx(0.025) and tenth.parts["prosecutor"] == pytest.approx(0.25)
    assert look_up(["a", "b"], ["b", "a"]).value == 0


# ---- totals ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("rest", "fails"), [(4.0, True), (10.0, True), (10.1, False), (60.0, False)])
def test_p_percent_of_unmasked_file_matches_rule(rest: float, fails: bool) -> None:
    """Cell a: 100, 50 and the rest; the others protect the largest if they exceed 10 % of it. Cell b: many equal units."""
    frame = pl.DataFrame({"trade": ["a"] * 3 + ["b"] * 10, "turnover": [100.0, 50.0, rest] + [20.0] * 10})
    data = sm.read(frame, keys="trade", numeric="turnover")
    estimate = sm.risk.PPercent(on="turnover").score(data, data, np.random.default_rng(0))
    assert estimate.value == (0.5 if fails else 0.0) and estimate.parts["cells"] == 2
    assert estimate.parts["failing"] == estimate.parts["failing in the original"] == int(fails)


def test_p_percent_of_masked_file_and_invalid_numbers() -> None:
    frame = pl.DataFrame({"trade": ["a"] * 2 + ["b"], "turnover": [100.0, 50.0, 80.0]})
    data = sm.read(frame, keys="trade", numeric="turnover")
    moved = sm.read(frame.with_columns(turnover=pl.Series([130.0, 50.0, 86.0])), keys="trade", numeric="turnover")
    estimate = sm.risk.PPercent(on="turnover").score(data, moved, np.random.default_rng(0))
    assert (
        estimate.parts["failing"] == 1 and estimate.parts["failing in the original"] == 2
    )  # 86 is within 10 % of 80, 130 not
    assert sm.risk.PPercent(on="turnover", p=40).score(data, moved, np.random.default_rng(0)).value == 1
    bad = sm.read(frame.with_columns(turnover=pl.Series([-1.0, 5.0, 2.0])), keys="trade", numeric="turnover")
    with pytest.raises(SchemaError, match="negative numbers"):
        sm.risk.PPercent(on="turnover").score(bad, bad, np.random.default_rng(0))
