"""Microaggregation: groups equal those of a full scan, every group is large enough, and averages are correct."""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sdcmap as sm
from sdcmap.core.streams import Stream
from sdcmap.data.microdata import Microdata
from sdcmap.kernels.arrays import Array
from sdcmap.methods import _mdav
from sdcmap.methods._gower_groups import (
    gower_groups,
    group_means,
    group_medians,
    group_modes,
    optimal_groups,
    ranked_groups,
)
from sdcmap.methods._mdav import mdav_groups, squared_distances, vmdav_groups
from sdcmap.testing import check_method

ONCE = Stream.of_seed(1)
METHODS = ("mdav", "individual", "optimal", "projection", "gower")


# ---- reference implementations ---------------------------------------------------------------------------------------
def plain_mdav(x: Array, size: int) -> Array:
    """MDAV-generic by full scans."""
    group, free, next_group = np.full(len(x), -1), np.arange(len(x)), 0

    def take(r: int, free: Array) -> Array:
        distance = squared_distances(x[free], x[r])
        distance[free == r] = -1
        near = np.argsort(distance, kind="stable")[:size]
        group[free[near]] = next_group
        return np.delete(free, near)

    while len(free) >= 2 * size:
        mean = x[free].sum(axis=0) / len(free)
        r = int(free[np.argmax(squared_distances(x[free], mean))])
        free = take(r, free)
        next_group += 1
        if len(free) >= 2 * size:
            free = take(int(free[np.argmax(squared_distances(x[free], x[r]))]), free)
            next_group += 1
    group[free] = next_group
    return group


def plain_vmdav(x: Array, size: int, gain: float) -> Array:
    """V-MDAV by full scans."""
    group, next_group = np.full(len(x), -1), 0
    far = np.argsort(-squared_distances(x, x.sum(axis=0) / len(x)), kind="stable")
    for r in far:
        free = np.flatnonzero(group < 0)
        if group[r] >= 0 or len(free) < size:
            continue
        distance = squared_distances(x[free], x[r])
        distance[free == r] = -1
        group[free[np.argsort(distance, kind="stable")[:size]]] = next_group
        while (group == next_group).sum() < 2 * size - 1 and (group < 0).sum() > 1:
            free, inside = np.flatnonzero(group < 0), np.flatnonzero(group == next_group)
            to_group = np.min([squared_distances(x[free], x[m]) for m in inside], axis=0)
            e = free[np.argmin(to_group)]
            others = free[free != e]
            if not np.sqrt(to_group.min()) < gain * np.sqrt(squared_distances(x[others], x[e]).min()):
                break
            group[e] = next_group
        next_group += 1
    taken = np.flatnonzero(group >= 0)
    means = np.array([x[taken][group[taken] == g].sum(axis=0) / (group[taken] == g).sum() for g in range(next_group)])
    for row in np.flatnonzero(group < 0):
        group[row] = np.argmin(squared_distances(means, x[row]))
    return group


def plain_gower(numbers: Array, codes: Array, size: int, cost_of_codes: Array | float = 1.0) -> Array:
    group, free, next_group = np.full(len(codes), -1), np.arange(len(codes)), 0

    def distances(free: Array, number: Array, code: Array) -> Array:
        return np.abs(numbers[free] - number).sum(axis=1) + (cost_of_codes * (codes[free] != code)).sum(axis=1)

    def take(r: int, free: Array) -> Array:
        distance = distances(free, numbers[r], codes[r])
        distance[free == r] = -1
        near = np.argsort(distance, kind="stable")[:size]
        group[free[near]] = next_group
        return np.delete(free, near)

    while len(free) >= 2 * size:
        modes = np.array([np.bincount(column).argmax() for column in codes[free].T])
        r = int(free[np.argmax(distances(free, numbers[free].sum(axis=0) / len(free), modes))])
        free = take(r, free)
        next_group += 1
        if len(free) >= 2 * size:
            free = take(int(free[np.argmax(distances(free, numbers[r], codes[r]))]), free)
            next_group += 1
    group[free] = next_group
    return group


matrices = st.tuples(st.integers(2, 150), st.integers(1, 4), st.integers(2, 6), st.integers(0, 10_000), st.booleans())


def drawn(n: int, p: int, seed: int, whole: bool) -> Array:
    """Return random data; whole numbers give many ties, and sums without rounding error."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, 5, (n, p)) / 2.0 if whole else rng.lognormal(0, 1, (n, p))


@given(case=matrices)
def test_mdav_equals_full_scan(case: tuple[int, int, int, int, bool]) -> None:
    n, p, size, seed, whole = case
    x = drawn(n, p, seed, whole)
    assert np.array_equal(mdav_groups(x, size), plain_mdav(x, size))


@given(case=matrices, gain=st.sampled_from([0.0, 0.2, 1.1]))
def test_vmdav_equals_full_scan(case: tuple[int, int, int, int, bool], gain: float) -> None:
    n, p, size, seed, whole = case
    x = drawn(max(n, size), p, seed, whole)
    assert np.array_equal(vmdav_groups(x, size, gain), plain_vmdav(x, size, gain))


def test_mdav_with_many_buckets_equals_full_scan() -> None:
    rng = np.random.default_rng(4)
    x = rng.standard_normal((2500, 3)) + rng.standard_normal((2500, 1))
    assert len(x) > 30 * _mdav.MAX_BUCKET_RECORDS
    assert np.array_equal(mdav_groups(x, 4), plain_mdav(x, 4))
    assert np.array_equal(vmdav_groups(x[:1200], 3, 0.5), plain_vmdav(x[:1200], 3, 0.5))


@given(case=matrices, q=st.integers(0, 3))
def test_gower_groups_equal_full_scan(case: tuple[int, int, int, int, bool], q: int) -> None:
    n, p, size, seed, _ = case
    x = drawn(n, p, seed, True) / 2.0
    codes = np.random.default_rng(seed + 1).integers(0, 3, (n, q))
    assert np.array_equal(gower_groups(x, codes, size), plain_gower(x, codes, size))
    cost_of_codes = np.arange(1, q + 1) / 2.0
    assert np.array_equal(gower_groups(x, codes, size, cost_of_codes), plain_gower(x, codes, size, cost_of_codes))


def test_gower_distance_matches_sdcmicro() -> None:
    """sdcMicro recordLinkage: x = (20,f,A),(40,m,B), y = (20,f,B),(30,m,B) have D = [[1/3,5/6],[2/3,1/6]]."""
    from sdcmap.methods._gower_groups import _distances

    y_numbers, y_codes = np.array([[1.0], [1.5]]), np.array([[0, 1], [1, 1]])
    result = np.empty((2, 2))
    for i, (number, codes) in enumerate([([1.0], [0, 0]), ([2.0], [1, 1])]):
        _distances(y_numbers, y_codes, np.ones(2), 2, np.array(number), np.array(codes), result[i])
    assert result / 3 == pytest.approx(np.array([[1 / 3, 5 / 6], [2 / 3, 1 / 6]]))


def test_importance_weights_gower_distance() -> None:
    """With (2 d_wage + 1 d_sex) / 3 neighbors change; equal importance changes nothing."""
    wage, sex = [0.0, 1, 2, 8, 9, 10], ["f", "m", "f", "m", "f", "m"]
    data = sm.read(pl.DataFrame({"wage": wage, "sex": sex}), keys=["sex"], numeric=["wage"])

    def means(importance: tuple[float, ...]) -> list[float]:
        method = sm.Microaggregate(("wage", "sex"), method="gower", importance=importance)
        return list(method.apply(data, ONCE)["wage"])

    assert means((10, 1)) == [1, 1, 1, 9, 9, 9]
    assert means((1, 10)) == pytest.approx([11 / 3, 19 / 3, 11 / 3, 19 / 3, 11 / 3, 19 / 3])
    assert means((3, 3)) == means(())


def loss(x: Array, group: Array) -> float:
    return float(((x - group_means(x, group)) ** 2).sum())


@given(n=st.integers(2, 11), size=st.integers(2, 4), seed=st.integers(0, 10_000))
def test_optimal_groups_minimize_the_loss(n: int, size: int, seed: int) -> None:
    """Compare with all ways to divide the sorted values into groups of `size` or more."""
    if n < size:
        return
    x = np.random.default_rng(seed).integers(0, 30, n).astype(float)
    order = np.argsort(x, kind="stable")
    best = np.inf
    for cuts in itertools.chain.from_iterable(itertools.combinations(range(1, n), r) for r in range(n)):
        parts = np.split(order, cuts)
        if min(len(part) for part in parts) >= size:
            best = min(best, sum(float(((x[part] - x[part].mean()) ** 2).sum()) for part in parts))
    group = optimal_groups(x, size)
    assert loss(x, group) == pytest.approx(best, abs=1e-9)
    assert size <= np.bincount(group).min() and np.bincount(group).max() <= 2 * size - 1


def test_optimal_groups_are_stable_far_from_zero() -> None:
    """Adding a large constant does not change the groups."""
    x = np.random.default_rng(1).standard_normal(500)
    assert np.array_equal(optimal_groups(x, 3), optimal_groups(x + 2.0**26, 3))


@given(data=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4)), min_size=1, max_size=40))
def test_group_averages(data: list[tuple[int, int]]) -> None:
    x, raw = np.array(data).T
    group = np.unique(raw, return_inverse=True)[1]
    x = x.astype(float)
    for g in np.unique(group):
        inside = x[group == g]
        values, count = np.unique(inside, return_counts=True)
        assert group_means(x, group)[group == g] == pytest.approx(inside.mean())
        assert (group_medians(x, group)[group == g] == np.median(inside)).all()
        assert (group_medians(x, group, between=False)[group == g] == np.sort(inside)[(len(inside) - 1) // 2]).all()
        assert (group_modes(x, group)[group == g] == values[count.argmax()]).all()


def test_mean_of_equal_values_is_exact() -> None:
    x = np.repeat([0.1, 1e9 + 0.3], 7)
    assert (group_means(x, ranked_groups(np.arange(14), 7)) == x).all()


# ---- the method -----------------------------------------------------------------------------------------------
def people(n: int = 200, missing_share: float = 0.0) -> Microdata:
    rng = np.random.default_rng(2)
    frame = pl.DataFrame(
        {
            "wage": np.round(rng.lognormal(3, 1, n), 1),
            "rent": rng.integers(0, 9, n).astype(float),
            "sex": rng.integers(0, 2, n).astype(str),
            "class": rng.integers(0, 5, n),
            "weight": rng.integers(1, 9, n).astype(float),
        }
    )
    for name in ("wage", "rent", "sex") if missing_share else ():
        frame = frame.with_columns(pl.when(pl.Series(rng.random(n) >= missing_share)).then(pl.col(name)).alias(name))
    return sm.read(frame, numeric=["wage", "rent"], keys=["sex", "class"], weight="weight")


def groups_of(masked: Microdata, names: tuple[str, ...]) -> Array:
    stacked = np.column_stack([np.nan_to_num(masked.column(name).values.astype(float), nan=-1) for name in names])
    return np.unique(stacked, axis=0, return_counts=True)[1]


@pytest.mark.parametrize("size", [3, 4, 7])
@pytest.mark.parametrize("method", ["mdav", "projection", "gower"])
def test_every_group_has_at_least_size_records(method: str, size: int) -> None:
    data = people()
    names = ("wage", "rent", "sex", "class") if method == "gower" else ("wage", "rent")
    masked = sm.Microaggregate(names, size=size, method=method).apply(data, ONCE)
    assert groups_of(masked, names).min() >= size
    for name in ("wage", "rent"):
        assert masked.numbers(name).mean() == pytest.approx(data.numbers(name).mean())


@pytest.mark.parametrize("method", ["individual", "optimal"])
def test_univariate_methods_group_each_variable(method: str) -> None:
    data = people(missing_share=0.2)
    masked = sm.Microaggregate(("wage", "rent"), size=4, method=method).apply(data, ONCE)
    for name in ("wage", "rent"):
        known = ~data.missing(name)
        assert np.array_equal(masked.missing(name), ~known)
        assert np.unique(masked.numbers(name)[known], return_counts=True)[1].min() >= 4
        assert np.nanmean(masked.numbers(name)) == pytest.approx(np.nanmean(data.numbers(name)))
    one = sm.Microaggregate("wage", size=4, method=method).apply(data, ONCE)
    assert np.array_equal(one.numbers("wage"), masked.numbers("wage"), equal_nan=True)


@pytest.mark.parametrize("names", [("wage", "rent"), ("wage", "rent", "sex")])
def test_records_missing_in_the_same_variables_are_grouped(names: tuple[str, ...]) -> None:
    """Every average uses at least `size` values, even if neighbors are missing."""
    data = people(400, missing_share=0.3)
    masked = sm.Microaggregate(names, size=3, method="gower").apply(data, ONCE)
    for name in names:
        assert np.array_equal(masked.missing(name), data.missing(name))
    assert groups_of(masked, names).min() >= 3


def test_records_with_rare_missing_pattern_join_nearest_group() -> None:
    """Two distant groups: the records without y are nearer in x to the second group."""
    low, high = [1.0, 2.0, 3.0], [11.0, 12.0, 13.0]
    frame = {"x": [*low, *high, 14.0], "y": [*low, *high, None], "z": [*low, *high, 20.0]}
    for method in ("mdav", "gower"):
        data = sm.read(pl.DataFrame(frame), numeric="all")
        masked = sm.Microaggregate(("x", "y", "z"), method=method).apply(data, ONCE)
        assert masked.numbers("x").tolist() == [2.0] * 3 + [12.5] * 4  # (11 + 12 + 13 + 14)/4
        assert masked.numbers("y")[:6].tolist() == [2.0] * 3 + [12.0] * 3 and np.isnan(masked.numbers("y")[6])
        assert masked.numbers("z").tolist() == [2.0] * 3 + [14.0] * 4


@pytest.mark.parametrize("method", ["mdav", "projection", "gower"])
def test_averages_use_at_least_size_values_despite_missing_ones(method: str) -> None:
    data = people(300, missing_share=0.01)
    names = ("wage", "rent", "sex", "class") if method == "gower" else ("wage", "rent")
    masked = sm.Microaggregate(names, size=10, method=method).apply(data, ONCE)
    for name in names:
        known = ~data.missing(name)
        assert np.array_equal(masked.missing(name), ~known)
        assert np.unique(masked.column(name).values[known], return_counts=True)[1].min() >= 10
        if name in ("wage", "rent"):
            assert 0 < (~known).sum() < 10
            assert np.nanmean(masked.numbers(name)) == pytest.approx(np.nanmean(data.numbers(name)))


def test_missing_pattern_without_host_is_infeasible() -> None:
    frame = pl.DataFrame({"x": [1.0, 2, 3, None], "y": [None, None, None, 4.0]})
    with pytest.raises(
        sm.errors.Infeasible, match="needs 3 records, but there are only 1 records with values in the same"
    ):
        sm.Microaggregate(("x", "y")).apply(sm.read(frame, numeric="all"), ONCE)


@pytest.mark.parametrize("method", METHODS)
def test_size_larger_than_file_is_infeasible(method: str) -> None:
    with pytest.raises(sm.errors.Infeasible, match="a group needs 201 records, but there are only 200"):
        sm.Microaggregate(("wage", "rent"), size=201, method=method).apply(people(), ONCE)


def test_weighted_means_preserve_weighted_totals() -> None:
    data = people()
    masked = sm.Microaggregate(("wage", "rent"), weighted=True).apply(data, ONCE)
    plain = sm.Microaggregate(("wage", "rent")).apply(data, ONCE)
    total = (data.weights * data.numbers("wage")).sum()
    assert (data.weights * masked.numbers("wage")).sum() == pytest.approx(total)
    assert abs((data.weights * plain.numbers("wage")).sum() - total) > 1


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan])
def test_weights_must_be_positive(bad: float) -> None:
    """`read` refuses such weights; a file that another method reweighted may still have them."""
    data = people()
    data = data.change(np.array([0]), {"weight": np.array([bad])})
    with pytest.raises(sm.errors.SchemaError, match="weights above 0; 1 are not"):
        sm.Microaggregate(("wage", "rent"), weighted=True).apply(data, ONCE)


def test_averages_by_kind_of_variable() -> None:
    """An ordinal variable takes a category that occurs in its group, a nominal one the most frequent category."""
    data = people(60)
    masked = sm.Microaggregate(("sex", "class"), size=20, method="gower").apply(data, ONCE)
    groups = np.unique(np.column_stack([masked.codes("sex"), masked.codes("class")]), axis=0)
    assert len(groups) <= 3
    by_mode = sm.Microaggregate(("sex", "class"), size=20, method="gower", average="mode").apply(data, ONCE)
    assert np.array_equal(by_mode.codes("sex"), masked.codes("sex"))
    assert not np.array_equal(by_mode.codes("class"), masked.codes("class"))


def test_projection_on_one_variable() -> None:
    data = people()
    masked = sm.Microaggregate("wage", size=10, method="projection", axis="wage").apply(data, ONCE)
    ranked = sm.Microaggregate("wage", size=10, method="individual").apply(data, ONCE)
    assert np.array_equal(masked.numbers("wage"), ranked.numbers("wage"))


def test_strata_are_grouped_separately() -> None:
    data = people()
    masked = sm.Microaggregate(("wage", "rent"), within="sex").apply(data, ONCE)
    for sex in (0, 1):
        rows = np.flatnonzero(data.codes("sex") == sex)
        alone = sm.Microaggregate(("wage", "rent")).apply(
            sm.read(data.take(rows).frame(), numeric=["wage", "rent"]), ONCE
        )
        assert np.array_equal(masked.numbers("wage")[rows], alone.numbers("wage"))


def test_stratum_of_one_record_is_infeasible() -> None:
    data = people()
    lonely = data.change(None, {"sex": (np.arange(200) == 7).astype(np.uint8)})
    with pytest.raises(
        sm.errors.Infeasible, match="in one of 2 strata: a group needs 3 records, but there are only 1 records"
    ):
        sm.Microaggregate(("wage", "rent"), within="sex").apply(lonely, ONCE)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"size": 2}, r"Microaggregate.size must be in \[3, inf\). Got 2."),
        ({"on": ()}, "must name at least one variable"),
        ({"on": ("wage", "wage")}, "each variable once"),
        ({"method": "kmeans"}, "must be one of 'mdav'"),
        ({"method": "optimal", "groups": "variable"}, "needs method = 'mdav'; it is 'optimal'"),
        ({"axis": "wage"}, "needs method = 'projection'; it is 'mdav'"),
        ({"average": "median", "weighted": True}, "needs average = 'mean'; it is 'median'"),
        ({"importance": (1.0, 2.0)}, "importance needs method = .gower.; it is .mdav."),
        ({"importance": (1.0,), "method": "gower"}, "a number above 0 for each of the 2 variables"),
        ({"gain": -0.1}, r"must be in \[0, inf\)"),
    ],
)
def test_invalid_parameters_are_rejected(given: dict[str, object], problem: str) -> None:
    with pytest.raises(sm.errors.PlanError, match=problem):
        sm.Microaggregate(**{"on": ("wage", "rent"), **given})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("method", "problem"),
    [
        (sm.Microaggregate(("wage", "sex")), "'sex' is not. Use 'gower'"),
        (sm.Microaggregate("wag"), "no column 'wag'. Did you mean 'wage'"),
        (sm.Microaggregate("wage", method="projection", axis="ren"), "no column 'ren'. Did you mean 'rent'"),
        (sm.Microaggregate("wage", method="projection", axis="sex"), "must be numeric; 'sex' is nominal"),
        (sm.Microaggregate("weight"), "it is the file's weight"),
    ],
)
def test_incompatible_data_are_rejected(method: sm.Microaggregate, problem: str) -> None:
    with pytest.raises(sm.errors.SchemaError, match=problem):
        method.apply(people(), ONCE)


@pytest.mark.parametrize("average", ["mean", "median", "mode"])
@pytest.mark.parametrize("method", METHODS)
def test_laws(method: str, average: str) -> None:
    for missing_share in (0.0, 0.1):
        check_method(sm.Microaggregate(("wage", "rent"), 3, method, average), people(80, missing_share))
    check_method(sm.Microaggregate(("wage", "rent"), 3, method, average, within="sex"), people(60))


def test_laws_of_mixed_kinds_and_variable_groups() -> None:
    check_method(sm.Microaggregate(("wage", "sex", "class"), method="gower"), people(60))
    check_method(sm.Microaggregate(("wage", "rent"), groups="variable"), people(60))
    check_method(sm.Microaggregate(("wage", "rent"), weighted=True), people(60))
