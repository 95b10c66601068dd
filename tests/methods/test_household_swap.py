"""Household swapping: whole households, equal counts per area, households at risk first and across the right level."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.core.streams import Stream
from sdcmap.data.cells import cells
from sdcmap.data.microdata import Microdata
from sdcmap.kernels.arrays import Array
from sdcmap.kernels.tables.coding import compress
from sdcmap.methods.household_swap import compress_by_counting, draw_moving_pairs, household_counts
from sdcmap.testing import check_method

PLACE = ("region", "district", "ward")


def census(count: int = 1500, seed: int = 3, mixed: bool = True) -> Microdata:
    rng = np.random.default_rng(seed)
    sizes = rng.choice([1, 2, 3, 4], count)
    own = np.repeat(np.arange(count), sizes)
    region = rng.integers(0, 3, count)
    district = region * 3 + rng.integers(0, 3, count)
    ward = district * 3 + rng.integers(0, 3, count)
    frame = pl.DataFrame(
        {
            "hid": own,
            "region": region[own],
            "district": district[own],
            "ward": ward[own],
            "x": ward[own] + 0.5,
            "hsize": sizes[own],
            "tenure": rng.integers(0, 3, count)[own],
            "age": rng.integers(0, 8, len(own)),
            "origin": np.minimum(rng.geometric(0.5, len(own)), 9),
            "income": rng.lognormal(7, 1, len(own)),
        }
    )
    frame = frame.sample(fraction=1, shuffle=True, seed=seed) if mixed else frame  # members need not be adjacent
    keys = ["age", "origin", *PLACE, "hsize", "tenure"]
    return sm.read(frame, keys=keys, numeric=["income", "x"], household="hid")


def moved_households(data: Microdata, masked: Microdata, name: str) -> Array:
    return np.unique(data.codes("hid")[data.codes(name) != masked.codes(name)])


def heads(data: Microdata) -> Array:
    return np.unique(data.codes("hid"), return_index=True)[1]


@pytest.mark.parametrize("k", [0, 3])
def test_swap_preserves_households_and_persons_per_area(k: int) -> None:
    """Households per area, persons per area, whole households and all other columns are preserved."""
    data = census()
    method = sm.methods.HouseholdSwap(
        PLACE, rate=0.1, similar=[["tenure"], []], k=k, risk_on=["age", "origin"], carry="x"
    )
    masked = method.apply(data, Stream.of_seed(1))
    one = heads(data)
    for upto in range(1, 4):
        before, after = (cells(file, PLACE[:upto]) for file in (data, masked))
        assert np.array_equal(np.bincount(before.code), np.bincount(after.code))  # persons
        assert np.array_equal(np.bincount(before.code[one]), np.bincount(after.code[one]))  # households
    assert set(masked.changes) == {*PLACE, "x"}
    assert np.array_equal(masked.numbers("x"), masked["ward"] + 0.5)
    differs = data.codes("ward") != masked.codes("ward")
    assert np.array_equal(np.isin(data.codes("hid"), np.unique(data.codes("hid")[differs])), differs)
    assert len(moved_households(data, masked, "ward")) >= 150


def test_paired_households_agree_on_the_profile() -> None:
    """With a mandatory profile, the table of area, size and tenure does not change."""
    data = census()
    method = sm.methods.HouseholdSwap(PLACE, rate=0.2, similar=[["tenure"]], k=0)
    masked = method.apply(data, Stream.of_seed(2))
    names = (*PLACE, "hsize", "tenure")
    assert np.array_equal(*(np.bincount(cells(f, names).code[heads(data)], minlength=2000) for f in (data, masked)))
    other = sm.methods.HouseholdSwap(PLACE, rate=0.2, k=0, same_size=False).apply(data, Stream.of_seed(2))
    persons = [np.bincount(cells(f, PLACE).code) for f in (data, other)]
    assert not np.array_equal(*persons)


def test_households_at_risk_move_across_their_level() -> None:
    """A household at risk in its region moves to another region; one at risk only in its district to another district."""
    data = census(4000)
    method = sm.methods.HouseholdSwap(PLACE, rate=0.0, k=3, risk_on=["age", "origin"])
    masked = method.apply(data, Stream.of_seed(1))
    seen = np.zeros(4000, dtype=bool)
    for level, name in enumerate(PLACE):
        fewest = household_counts(data, ("hid", *PLACE[: level + 1], "age", "origin"))
        own = np.flatnonzero((fewest < 3) & ~seen)
        assert len(own) > 10
        assert np.isin(own, moved_households(data, masked, name)).all(), name
        seen[own] = True
    moved = moved_households(data, masked, "ward")
    assert len(moved) <= 2 * seen.sum()
    assert seen.sum() < 4000 - 100


def test_partners_are_preferred_in_the_same_larger_area() -> None:
    """Without households at risk, pairs are formed at the finest level, within one district."""
    data = census()
    masked = sm.methods.HouseholdSwap(PLACE, rate=0.3, k=0).apply(data, Stream.of_seed(1))
    assert len(moved_households(data, masked, "ward")) == 450
    assert set(moved_households(data, masked, "district")) == set()


def test_households_with_rare_members_move_more_often() -> None:
    """Over 20 seeds, the mean of 1/count of households that move is far above that of all households."""
    data = census(3000)
    inverse = 1 / household_counts(data, ("hid", *PLACE, "age", "origin"))
    method = sm.methods.HouseholdSwap(PLACE, rate=0.05, k=0, risk_on=["age", "origin"])
    means = []
    for seed in range(20):
        moved = moved_households(data, method.apply(data, Stream.of_seed(seed)), "ward")
        means.append(inverse[moved].mean())
    assert np.mean(means) - 4 * np.std(means, ddof=1) / np.sqrt(20) > inverse.mean() + 0.05


def test_result_does_not_depend_on_order_of_members() -> None:
    apart, together = census(mixed=True), census(mixed=False)
    method = sm.methods.HouseholdSwap(PLACE, rate=0.1, k=2, risk_on="age")
    one, two = (method.apply(file, Stream.of_seed(1)) for file in (apart, together))
    assert set(moved_households(apart, one, "ward")) == set(moved_households(together, two, "ward"))


# ---- the kernel -----------------------------------------------------------------------------------------------
def test_compress_by_counting_equals_compress() -> None:
    rng = np.random.default_rng(1)
    codes = [rng.integers(0, size, 400) for size in (3, 7, 2)]
    for result, wanted in zip(compress_by_counting(codes), compress(codes), strict=True):
        assert np.array_equal(result, wanted)
    wide = [rng.integers(0, 10**6, 50), rng.integers(0, 10**6, 50)]
    for result, wanted in zip(compress_by_counting(wide), compress(wide), strict=True):
        assert np.array_equal(result, wanted)


def test_partners_are_drawn_uniformly() -> None:
    """Household 0 of area 0 may take any of 1, 2, 3 and not 4 (its area) or 5 (another kind): chi-square over 3,000."""
    area, kind = np.array([0, 1, 1, 2, 0, 1]), np.array([0, 0, 0, 0, 0, 1])
    rng = np.random.default_rng(1)
    count = np.zeros(6)
    for _ in range(3000):
        used = np.zeros(6, dtype=bool)
        first, second = draw_moving_pairs(np.array([0]), [kind], area, used, 1, rng)
        assert first.tolist() == [0]
        assert np.flatnonzero(used).tolist() == sorted([0, int(second[0])])
        count[second] += 1
    assert count[[0, 4, 5]].sum() == 0
    assert ((count[1:4] - 1000) ** 2 / 1000).sum() < 13.8  # P = 0.001, 2 degrees of freedom


def test_households_are_used_at_most_once() -> None:
    rng = np.random.default_rng(2)
    area, kind = rng.integers(0, 4, 500), rng.integers(0, 3, 500)
    used = rng.random(500) < 0.2
    before = used.copy()
    first, second = draw_moving_pairs(rng.permutation(500), [kind], area, used, 500, rng)
    both = np.concatenate([first, second])
    assert len(np.unique(both)) == len(both)
    assert not before[both].any() and (area[first] != area[second]).all() and (kind[first] == kind[second]).all()
    left = np.flatnonzero(~used)
    for group in range(3):  # unpaired households of one kind are all in one area
        assert len(np.unique(area[left[kind[left] == group]])) <= 1


# ---- invalid input ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"on": ()}, "must name at least one variable"),
        ({"carry": "ward"}, ".on and .carry must name each variable once"),
        ({"risk_on": "ward"}, r"\.risk_on must not name an exchanged variable: ward"),
        ({"similar": [["hsize", "region"]]}, r"\.similar must not name an exchanged variable: region"),
        ({"rate": 5}, r"HouseholdSwap.rate must be in \[0, 1\]. Got 5."),
        ({"k": -1}, r"HouseholdSwap.k must be in \[0, inf\)"),
    ],
)
def test_invalid_parameters_are_rejected(given: dict[str, object], problem: str) -> None:
    with pytest.raises(sm.errors.PlanError, match=problem):
        sm.methods.HouseholdSwap(**{"on": PLACE, **given})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("method", "problem"),
    [
        (sm.methods.HouseholdSwap(["region", "wardd"]), "no column 'wardd'. Did you mean 'ward'"),
        (sm.methods.HouseholdSwap(PLACE, similar=[["tenur"]]), "no column 'tenur'. Did you mean 'tenure'"),
        (sm.methods.HouseholdSwap(PLACE, similar=[["age"]]), "'age' is not constant within households"),
        (sm.methods.HouseholdSwap(PLACE, carry="income"), "'income' is not constant within households"),
        (sm.methods.HouseholdSwap(PLACE, within="age"), "'age' is not constant within households"),
    ],
)
def test_incompatible_data_are_rejected(method: sm.methods.HouseholdSwap, problem: str) -> None:
    with pytest.raises(sm.errors.SchemaError, match=problem):
        method.apply(census(50), Stream.of_seed(1))


def test_file_without_households_or_keys_is_rejected() -> None:
    data = sm.read(census(50).frame().drop("hid"), keys=[*PLACE])
    with pytest.raises(
        sm.errors.SchemaError, match="needs a table of keys: give the file keys.*needs a file with a household"
    ):
        sm.methods.HouseholdSwap(PLACE).apply(data, Stream.of_seed(1))


def test_impossible_requests_are_infeasible() -> None:
    data = census(40)
    with pytest.raises(sm.errors.Infeasible, match="a rate of 0.01 is less than one pair of the 40 households"):
        sm.methods.HouseholdSwap(PLACE, rate=0.01, k=0).apply(data, Stream.of_seed(1))
    with pytest.raises(sm.errors.Infeasible, match="of the 20 pairs that the rate requires exist"):
        sm.methods.HouseholdSwap(PLACE, rate=1, k=0, similar=[["tenure", "hsize"]]).apply(data, Stream.of_seed(1))
    some = sm.methods.HouseholdSwap(PLACE, rate=1, k=0, similar=[["tenure", "hsize"]], partial=True)
    assert 0 < len(moved_households(data, some.apply(data, Stream.of_seed(1)), "ward")) < 40


def test_laws() -> None:
    data = census(60)
    check_method(
        sm.methods.HouseholdSwap(PLACE, rate=0.2, similar=[["tenure"], []], k=2, risk_on="age", partial=True), data
    )
    check_method(sm.methods.HouseholdSwap(PLACE, rate=0.2, k=0, carry="x", same_size=False), data)
    check_method(sm.methods.HouseholdSwap(["district", "ward"], rate=0.2, k=0, within="region"), data)
