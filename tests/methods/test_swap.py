"""Options of swapping beyond the paper: greedy pairing, targets, households, and rates that cannot be reached."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sdcmap as sm
from sdcmap.core.streams import Stream
from sdcmap.data.cells import cells
from sdcmap.data.microdata import Microdata
from sdcmap.kernels.arrays import Array
from sdcmap.methods import _swap_pairs as pairs
from sdcmap.methods._swap_pairs import _shuffle, greedy_pairs, matching_pairs, pairs_in_turn

NO_ONE = np.empty(0, dtype=np.int32)


def admissible(differ: Array, same: Array, first: int, second: int) -> bool:
    return bool((differ[first] != differ[second]).all() and (len(same) == 0 or same[first] == same[second]))


@given(
    codes=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 1)), min_size=2, max_size=60),
    constrained=st.booleans(),
    combine_steps=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_greedy_pairs_are_admissible_disjoint_and_maximal(
    codes: list[tuple[int, int, int]], constrained: bool, combine_steps: bool, seed: int
) -> None:
    table = np.array(codes, dtype=np.uint8)
    differ, same = table[:, :2], table[:, 2].astype(np.int32) if constrained else NO_ONE
    rng = np.random.default_rng(seed)
    wanted = len(codes) // 2
    if combine_steps:
        first, second = pairs_in_turn(wanted, rng.permutation(len(codes)), differ, same, rng)
    else:
        first, second = greedy_pairs(wanted, differ, same, rng)
    assert all(admissible(differ, same, a, b) for a, b in zip(first, second, strict=True))
    used = np.concatenate([first, second])
    assert len(np.unique(used)) == len(used)
    rest = np.setdiff1d(np.arange(len(codes)), used)
    if len(first) < wanted:
        assert not any(admissible(differ, same, a, b) for a in rest for b in rest)


def plain_shuffle(order: list[int], draws: list[int], checked: int) -> int:
    """Shuffle two positions at a time by plain Fisher-Yates; draws that would favor some positions are rejected."""
    n, used = len(order), 0
    while checked < n // 2 and used + 2 <= len(draws):
        done = 0
        while done < 2 and used < len(draws):
            here = 2 * checked + done
            left = n - here
            place, rest = divmod(draws[used] * left, 1 << 32)
            used += 1
            if rest >= 2**32 % left:
                order[here], order[here + place] = order[here + place], order[here]
                done += 1
        if done < 2:
            break
        checked += 1
    return checked


@given(
    n=st.integers(2, 40),
    draws=st.lists(st.integers(0, 2**32 - 1) | st.just(0), min_size=1, max_size=60),  # 0 is drawn again mostly
    checked=st.integers(0, 3),
)
def test_shuffle_equals_plain_fisher_yates(n: int, draws: list[int], checked: int) -> None:
    order = list(range(n))
    checked = min(checked, n // 2)
    fast = np.arange(n, dtype=np.int32)
    assert _shuffle(fast, np.array(draws, dtype=np.uint32), checked) == plain_shuffle(order, draws, checked)
    assert fast.tolist() == order


def test_partners_in_turn_are_drawn_uniformly() -> None:
    """Record 0 comes first and has four admissible partners: each is equally likely (chi-square, p = 1e-6)."""
    differ = np.array([[0], [1], [2], [2], [2], [0]], dtype=np.uint8)
    counts = np.zeros(6)
    for seed in range(4000):
        _, partner = pairs_in_turn(1, np.arange(6), differ, NO_ONE, np.random.default_rng(seed))
        counts[partner[0]] += 1
    assert counts[0] == counts[5] == 0
    assert ((counts[1:5] - 1000) ** 2 / 1000).sum() < 31


def test_small_cells_are_swapped_first(cps8d: Microdata) -> None:
    exposed = 354 + 2 * 188
    method = sm.Swap(on="Educ", rate=exposed / len(cps8d), pairing="greedy", target="small cells")
    masked = method.apply(cps8d, Stream.of_seed(3))
    table = cps8d.view(cells, cps8d.keys)
    small = table.count[table.code] < 3
    rows = masked.changed_rows(["Educ"])
    assert rows is not None
    assert small[rows].sum() == exposed  # all of them are swapped, as first of a pair or as a partner
    few = sm.Swap(on="Educ", rate=0.001, pairing="greedy", target="small cells").apply(cps8d, Stream.of_seed(3))
    firsts = np.split(few.changed_rows(["Educ"]), 2)[0]  # type: ignore[arg-type]
    assert small[firsts].all()


def test_risk_target_orders_records_by_inverse_cell_size() -> None:
    """One record is unique in its cell and nine are in another: the unique one comes first in 1 of 2 draws."""
    frame = pl.DataFrame({"v": ["a"] + ["b"] * 9, "w": [str(i) for i in range(10)]})
    data = sm.read(frame, keys=["v"], other=["w"])
    method = sm.Swap(on="w", rate=0.1, pairing="greedy", target="risk")
    firsts = [method.apply(data, Stream.of_seed(seed)).changed_rows(["w"]) for seed in range(1000)]
    alone = sum(rows is not None and rows[0] == 0 for rows in firsts)
    assert abs(alone - 500) < 5 * np.sqrt(250)


# ---- households -----------------------------------------------------------------------------------------------
def families(n: int = 60) -> Microdata:
    rng = np.random.default_rng(2)
    sizes = rng.integers(1, 4, n)
    home = np.repeat(np.arange(n), sizes)
    order = rng.permutation(len(home))  # members are not adjacent in the file
    frame = pl.DataFrame(
        {
            "home": home[order],
            "region": np.repeat(rng.integers(0, 4, n).astype(str), sizes)[order],
            "owner": np.repeat(rng.integers(0, 2, n).astype(str), sizes)[order],
            "sex": rng.integers(0, 2, len(home)).astype(str),
        }
    )
    return sm.read(frame, keys=["region", "owner", "sex"], household="home")


@pytest.mark.parametrize("target", ["none", "small cells", "risk"])
def test_households_are_swapped_whole(target: str) -> None:
    data = families()
    masked = sm.Swap(on="region", rate=0.2, same="owner", pairing="greedy", target=target, whole_households=True).apply(
        data, Stream.of_seed(4)
    )
    before, after = data.frame(), masked.frame()
    assert (after.group_by("home").agg(pl.col("region").n_unique())["region"] == 1).all()
    moved = before.with_columns(new=after["region"]).filter(pl.col("region") != pl.col("new"))
    assert moved["home"].n_unique() == 2 * round(0.2 * 60)
    for names in (["region"], ["region", "owner"]):
        assert before.group_by(names).len().sort(names).equals(after.group_by(names).len().sort(names))
    sizes = before.group_by("home").agg(pl.len(), pl.col("region").first(), pl.col("owner").first())
    swapped = after.group_by("home").agg(pl.len(), pl.col("region").first(), pl.col("owner").first())
    by = ["len", "region", "owner"]  # the number of households by size, region and owner does not change
    assert sizes.group_by(by).len("n").sort(by).equals(swapped.group_by(by).len("n").sort(by))


def test_whole_households_need_household_and_constant_variables() -> None:
    with pytest.raises(sm.errors.SchemaError, match="'sex' is not constant within households"):
        sm.Swap(on="sex", rate=0.2, whole_households=True).apply(families(), Stream.of_seed(1))
    alone = sm.read(pl.DataFrame({"v": list("abab")}), keys="all")
    with pytest.raises(sm.errors.SchemaError, match="needs a file with a household"):
        sm.Swap(on="v", rate=0.5, whole_households=True).apply(alone, Stream.of_seed(1))
    lost = families().frame().with_columns(pl.when(pl.col("home") != 7).then(pl.col("home")).alias("home"))
    data = sm.read(lost, keys=["region", "owner", "sex"], household="home")
    with pytest.raises(sm.errors.SchemaError, match="'home' is missing in 1 records"):
        sm.Swap(on="region", rate=0.2, whole_households=True).apply(data, Stream.of_seed(1))


# ---- impossible requests ---------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"rate": 0.6}, r"Swap.rate must be in (0, 0.5]. Got 0.6."),
        ({"rate": 0}, r"Swap.rate must be in (0, 0.5]. Got 0."),
        ({"same": "v"}, "Swap.same must not name a swapped variable: v."),
        ({"differ": "v"}, "Swap.differ must not name a swapped variable: v."),
        ({"same": "w", "differ": "w"}, "Swap.same and .differ must not name the same variable: w."),
        ({"target": "risk"}, "Swap.target = 'risk' needs pairing = 'greedy'."),
    ],
)
def test_invalid_parameters_are_rejected(given: dict[str, object], reason: str) -> None:
    with pytest.raises(sm.errors.PlanError) as refused:
        sm.Swap(on="v", **given)  # type: ignore[arg-type]
    assert reason in refused.value.problems


def test_unfillable_rates_are_infeasible() -> None:
    data = sm.read(pl.DataFrame({"v": ["a", "b", None, "a", "b"], "one": ["x"] * 5}), keys="all")
    for method, reason in (
        (sm.Swap(on="v", rate=0.01), "a rate of 0.01 is less than one pair of the 5 records."),
        (sm.Swap(on="one", rate=0.4), "'one' has only one category, so no two records differ in it."),
    ):
        with pytest.raises(sm.errors.Infeasible, match=reason):
            method.apply(data, Stream.of_seed(1))
    masked = sm.Swap(on="v", rate=0.4, pairing="greedy").apply(data, Stream.of_seed(1))  # odd n: one record is left out
    assert masked["v"].tolist().count(None) == 1  # missing is swapped like any category
    rows = masked.changed_rows(["v"])
    assert rows is not None and len(rows) == 4
    even = data.take(np.arange(4))
    even = Microdata(even.schema, even.columns)
    with pytest.raises(sm.errors.Undefined, match="every record has changed"):
        every = sm.Swap(on="v", rate=0.5, pairing="greedy").apply(even, Stream.of_seed(1))
        sm.SmallCells().score(even, every, np.random.default_rng(0))


@given(st.integers(2, 200), st.integers(1, 60), st.integers(0, 10_000))
def test_matching_restores_the_order_it_borrowed(n: int, wanted: int, seed: int) -> None:
    """The array reused by a thread is 0, 1, ... again after each matching, so that the next one is not affected."""
    codes = np.random.default_rng(seed).integers(0, 3, (n, 1)).astype(np.uint8)
    draw = lambda: matching_pairs(wanted, codes, np.empty(0, np.int32), np.random.default_rng(seed))
    first = draw()
    assert np.array_equal(pairs._THREAD.order, np.arange(len(pairs._THREAD.order)))
    assert all(np.array_equal(a, b) for a, b in zip(first, draw(), strict=True))
