"""Record tables: against brute force, edge cases, frequencies, Protect, charts, and what may be published."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import sdcmap as sm
from sdcmap.charts.confidentiality import draw_linked, plot_info
from sdcmap.charts.record_bins import bins, merge_bins
from sdcmap.cli import app
from sdcmap.data.microdata import Microdata
from sdcmap.kernels.neighbors import counting as kernel
from sdcmap.kernels.neighbors.counting import Pairs, is_safe, likeliest_region
from sdcmap.kernels.quantiles import quantile_rank
from sdcmap.recordwise.categories import record_loss, units_agreeing

KEYS = ("turnover", "employees")


def cloud(n: int, noise: float = 0.3, seed: int = 1) -> tuple[pl.DataFrame, pl.DataFrame]:
    rng = np.random.default_rng(seed)
    x = rng.multivariate_normal([3.6, 9.8], [[0.64, 0.528], [0.528, 1.21]], n)
    y = x + noise * rng.standard_normal(x.shape)
    return pl.DataFrame(x, schema=list(KEYS)), pl.DataFrame(y, schema=list(KEYS))


def all_distances(x: pl.DataFrame, y: pl.DataFrame) -> np.ndarray:
    """The plain formula: every z_ij = ||y_i - x_j|| / ||y_i||."""
    a, b = x.to_numpy(), y.to_numpy()
    return np.sqrt(((b[:, None] - a[None]) ** 2).sum(axis=2)) / np.sqrt((b**2).sum(axis=1))[:, None]


# ---- parity ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("rounded", [False, True], ids=["continuous", "many ties"])
@pytest.mark.parametrize("alpha", [1e-7, 0.001, 0.05, 1.0])
def test_table_of_2000_records_matches_brute_force(
    monkeypatch: pytest.MonkeyPatch, alpha: float, rounded: bool
) -> None:
    """Distances in memory are limited to 20,000, so that the bracket has to be narrowed many times."""
    monkeypatch.setattr(kernel, "MAX_LISTED_DISTANCES", 20_000)
    x, y = (part.with_columns(pl.all().round(1)) if rounded else part for part in cloud(2000))
    z = all_distances(x, y)
    own = np.diag(z)
    nonlinks = np.sort(z[~np.eye(len(z), dtype=bool)])
    table = sm.records(x, y, KEYS, alpha=alpha)
    assert table.delta == nonlinks[max(1, int(np.ceil(alpha * len(nonlinks)))) - 1]
    assert np.array_equal(table.neighbors, (z < table.delta).sum(axis=1))
    assert np.array_equal(table.link_in, own < table.delta)
    assert np.array_equal(table.nearest, own <= z.min(axis=1))
    tied = np.where(table.nearest, (z == own[:, None]).sum(axis=1) - 1, 0)
    assert np.array_equal(table.rivals, tied) and (not rounded or table.ties > 0)
    p = np.sqrt(((y.to_numpy() - x.to_numpy()) ** 2).sum(axis=1)) / np.sqrt((x.to_numpy() ** 2).sum(axis=1))
    assert np.allclose(table.perturbation, p, rtol=1e-14)


@pytest.mark.filterwarnings("ignore::sdcmap.errors.OtherOrder")  # the two clouds have nothing in common
@given(
    n=st.integers(2, 60), m=st.integers(1, 4), seed=st.integers(0, 999), alpha=st.floats(0.001, 1), grid=st.booleans()
)
def test_small_clouds_match_brute_force(n: int, m: int, seed: int, alpha: float, grid: bool) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.integers(1, 4, (2, n, m)).astype(float) if grid else rng.normal(5, 1, (2, n, m))
    names = [f"v{number}" for number in range(m)]
    table = sm.records(pl.DataFrame(x, schema=names), pl.DataFrame(y, schema=names), names, alpha=alpha, threads=1)
    squares = np.zeros((n, n))
    for a in range(m):
        squares += (y[:, None, a] - x[None, :, a]) ** 2
    unit = np.zeros(n)
    for a in range(m):
        unit += y[:, a] ** 2
    z = np.sqrt(squares) / np.sqrt(unit)[:, None]
    assert table.delta == np.sort(z[~np.eye(n, dtype=bool)])[quantile_rank(alpha, n * (n - 1)) - 1]
    assert np.array_equal(table.neighbors, (z < table.delta).sum(axis=1))
    assert np.array_equal(table.nearest, np.diag(z) <= z.min(axis=1))


def test_threads_and_count_limit_do_not_change_safety() -> None:
    x, y = cloud(9000)
    one, two, to_k = (
        sm.records(x, y, KEYS, alpha=0.01, **how) for how in ({"threads": 1}, {"threads": 2}, {"count_to": 15})
    )
    assert one.delta == two.delta and np.array_equal(one.neighbors, two.neighbors)
    assert np.array_equal(to_k.neighbors, np.minimum(one.neighbors, 15))
    assert np.array_equal(to_k.unsafe, one.unsafe)


def test_reordered_and_sampled_rows() -> None:
    x, y = cloud(300)
    data = sm.read(x)
    masked = data.change(None, {name: y[name].to_numpy() for name in KEYS})
    whole = sm.records(data, masked, KEYS)
    order = np.random.default_rng(3).permutation(300)
    moved = sm.records(data, masked.take(order), KEYS)
    assert moved.delta == whole.delta and np.array_equal(moved.neighbors, whole.neighbors[order])
    part = sm.records(data, masked.take(order[:100]), KEYS, delta=whole.delta)
    assert np.array_equal(part.neighbors, whole.neighbors[order[:100]])
    with_id = [frame.with_columns(id=pl.Series(range(300))) for frame in (x, y)]
    by_id = sm.records(with_id[0], with_id[1][order.tolist()], KEYS, by="id")
    assert by_id.delta == whole.delta


# ---- the rule -------------------------------------------------------------------------------------------------
def test_both_safety_lines() -> None:
    n, p = np.array([0, 15, 0, 5, 5, 3.75]), np.array([0, 0, 0.15, 0.1, 0.0999, 0.0375])
    assert is_safe(n, p, 15, 0.15, 1.0).tolist() == [False, True, True, True, False, False]
    assert is_safe(n, p, 15, 0.15, 0.5).tolist() == [False, True, True, True, True, True]


@pytest.mark.parametrize(("alpha", "pairs", "rank"), [(0.05, 24492, 1225), (0.07, 100, 7), (1e-9, 100, 1), (1.0, 6, 6)])
def test_the_rank_of_a_quantile(alpha: float, pairs: int, rank: int) -> None:
    assert quantile_rank(alpha, pairs) == rank


def test_only_relative_distance_depends_on_units() -> None:
    x, y = cloud(200)
    raw = [frame.select(pl.all().exp()) for frame in (x, y)]
    large = [frame.select(pl.all() * 1000) for frame in raw]
    same = {"scale": "log", "distance": "absolute"}
    first, second = (sm.records(*pair, KEYS, **same) for pair in (raw, large))
    assert first.delta == pytest.approx(second.delta) and np.array_equal(first.unsafe, second.unsafe)
    first, second = (sm.records(*pair, KEYS, scale="standardized") for pair in (raw, large))
    assert first.delta == pytest.approx(second.delta) and np.array_equal(first.neighbors, second.neighbors)
    first, second = (sm.records(*pair, KEYS, scale="log") for pair in (raw, large))
    assert first.delta > 1.2 * second.delta


def test_fellegi_sunter_matches_distance_rule_for_falling_ratio() -> None:
    """Links within 0.1 and nonlinks farther out: m(z)/u(z) falls from bin to bin, so the best region is [0, delta)."""
    x = np.arange(1.0, 201).reshape(-1, 1) ** 1.5
    y = x + np.tile([0.01, 0.02, 0.04, 0.08], 50).reshape(-1, 1)
    pairs = Pairs.of(y, x, np.ones(200), np.arange(200))
    rank = quantile_rank(0.02, pairs.nonlinks)
    region = likeliest_region(pairs, rank)
    assert region[0][0] == 0 and len(region) == 1
    assert pairs.nonlinks_below(np.array([region[0][1]]))[0] <= rank - 1


def test_fellegi_sunter_finds_more_links_with_same_error() -> None:
    x, y = cloud(500, noise=0.6)
    near = sm.records(x, y, KEYS)
    best = sm.records(x, y, KEYS, neighborhood="fellegi-sunter")
    pairs = best.pairs
    assert pairs is not None and best.links_in_reach >= near.links_in_reach
    held = sum(int(np.diff(pairs.nonlinks_below(np.array(ends)))[0]) for ends in best.region)
    assert held == quantile_rank(0.05, 500 * 499) - 1
    inside = sum(pairs.count(stop) - pairs.count(start) for start, stop in best.region)
    assert np.array_equal(best.neighbors, inside)


# ---- social data ----------------------------------------------------------------------------------------------
def people(sex: list[str | None], age: list[str | None], **more: list[float]) -> Microdata:
    return sm.read(pl.DataFrame({"sex": sex, "age": age, **more}), keys=["sex", "age"], weight="w" if more else None)


def test_frequencies_with_weights_and_suppression() -> None:
    sex, age = ["f", "f", "m", "m", "m"], ["1", "1", "1", "2", "2"]
    data = people(sex, age, w=[1.0, 2, 3, 4, 5])
    assert units_agreeing(data, ("sex", "age")).tolist() == [2, 2, 1, 2, 2]
    assert units_agreeing(data, ("sex", "age"), data.weights).tolist() == [3, 3, 3, 9, 9]
    hidden = people(["f", "f", "m", "m", None], [*age[:3], None, None])
    # row 3 shows only sex and agrees with both men who show theirs; row 4 shows nothing and agrees with all
    assert units_agreeing(hidden, ("sex", "age")).tolist() == [2, 2, 1, 2, 5]
    everyone = people(["f", "m", "m", "f", "f", "m"], ["1", "1", "1", "2", "1", "2"])
    assert units_agreeing(hidden, ("sex", "age"), population=everyone).tolist() == [2, 2, 2, 3, 6]
    table = sm.records(data, data.change(None, {}), k=4, frequency="population")
    assert table.unsafe.tolist() == [0, 1, 2] and table.links_in_reach == 5


def test_population_frequency_needs_weights() -> None:
    data = people(["f", "m"], ["1", "2"])
    with pytest.raises(sm.errors.SchemaError, match="needs a weight"):
        sm.records(data, data, frequency="population")


def test_information_loss_of_each_record() -> None:
    data = sm.read(pl.DataFrame({"sex": ["f", "f", "m", "m"], "age": [1, 2, 3, 4]}), keys="all")
    ages = {"kinds": {"age": "nominal"}}
    coarse = pl.DataFrame({"sex": ["f", None, "f", "m"], "age": ["1-2", "1-2", "3-4", "3-4"]})
    nominal = sm.read(pl.DataFrame({"sex": ["f", "f", "m", "m"], "age": ["1", "2", "3", "4"]}), keys="all", **ages)
    masked = sm.read(coarse, keys="all")
    loss = record_loss(nominal, masked, ("sex", "age"), np.arange(4))
    # age: one of 4 (2 bits) became one of 2 (1 bit): half is lost. sex: unchanged, hidden, changed, unchanged
    assert loss == pytest.approx([0.25, 0.75, 0.75, 0.25])
    step = data.change(np.array([0]), {"age": data.codes("age")[[2]]})
    assert record_loss(data, step, ("age",), np.arange(4)) == pytest.approx([2 / 3, 0, 0, 0])
    assert sm.records(nominal, masked, k=2).link_in.tolist() == [True, True, False, True]


def test_measure_as_vertical_axis() -> None:
    data = people(["f", "f", "m"], ["1", "1", "2"])
    table = sm.records(data, data, k=2, loss=sm.SmallCells(n=2, counting="all"))
    assert table.perturbation.tolist() == [0, 0, 1]
    with pytest.raises(sm.errors.PlanError, match="needs neighborhood=.frequency"):
        sm.records(*cloud(10), KEYS, loss=sm.SmallCells())


# ---- intervals, key sets, ranks -------------------------------------------------------------------------------
def test_intervals_are_replaced_by_midpoints() -> None:
    x, y = cloud(60)
    ends = y.select(
        turnover_low=pl.col("turnover") - 0.5, turnover_high=pl.col("turnover") + 0.5, employees="employees"
    )
    between = {"turnover": ("turnover_low", "turnover_high")}
    released = sm.records(x, ends, KEYS, intervals=between)
    plain = sm.records(x, y, KEYS)
    assert released.delta == pytest.approx(plain.delta) and np.array_equal(released.neighbors, plain.neighbors)
    suppressed = ends.with_columns(
        turnover=pl.when(pl.int_range(60) % 3 == 0).then(None).otherwise(y["turnover"]),
        turnover_low=pl.col("turnover_low") + 0.2,
    )
    filled = sm.records(x, suppressed, KEYS, intervals=between)
    moved = y.with_columns(
        turnover=pl.when(pl.int_range(60) % 3 == 0).then(y["turnover"] + 0.1).otherwise(y["turnover"])
    )
    assert filled.perturbation == pytest.approx(sm.records(x, moved, KEYS).perturbation)
    assert len(sm.records(x, suppressed, KEYS).left_out) == 20
    crossed = ends.with_columns(turnover_low=pl.col("turnover_high") + 1)
    with pytest.raises(sm.errors.SchemaError, match="60 intervals of 'turnover' have a lower end above"):
        sm.records(x, crossed, KEYS, intervals=between)


def test_compare_records_with_several_attacks() -> None:
    x, y = cloud(150)
    attacks = {"size": {"on": ["turnover"]}, "both": {"on": KEYS}, "unit-free": {"on": KEYS, "scale": "standardized"}}
    several = sm.recordwise.compare_records(x, y, attacks, r=0.1)
    single = [sm.records(x, y, r=0.1, **given).unsafe for given in attacks.values()]
    assert several.unsafe.tolist() == sorted(set(np.concatenate(single).tolist()))
    assert several.frame()["unsafe"].to_list() == [len(rows) for rows in single]
    assert len(several.draw().spec["hconcat"][0]["concat"]) == 3


def test_rank_linkage_of_the_biggest_units() -> None:
    x = pl.DataFrame({"turnover": [9.0, 7, 5, 5, 1], "employees": [1.0] * 5})
    y = pl.DataFrame({"turnover": [8.0, 9, 4, 3, 1], "employees": [1.0] * 5})
    result = sm.records(x, y, KEYS).biggest(4)
    assert result["rank"].to_list() == [1, 2, 3, 3] and result["released_rank"].to_list() == [2, 1, 3, 4]
    assert result["chance"].to_list() == [0, 0, 0.5, 0.5]  # two firms share ranks 3 and 4


# ---- bad input ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("x", "y", "options", "error", "words"),
    [
        ([[1.0, 2], [3, 4]], [[1.0, 2], [3, 4], [5, 6]], {}, sm.errors.SchemaError, "3 rows and the original 2"),
        ([[1.0, 2]], [[1.0, 2]], {}, sm.errors.Undefined, "at least 2 original records"),
        ([[0.0, 0], [3, 4]], [[1.0, 2], [3, 4]], {}, sm.errors.SchemaError, "1 records have size 0"),
        ([[1.0, 2], [3, 4]], [[0.0, 0], [3, 4]], {}, sm.errors.SchemaError, "1 records have size 0"),
        ([[1.0, 2], [3, 4]], [[1.0, -2], [3, 4]], {"scale": "log"}, sm.errors.SchemaError, "no logarithm"),
        ([[1.0, 2], [1, 4]], [[1.0, 2], [3, 4]], {"scale": "standardized"}, sm.errors.Undefined, "'a' does not vary"),
        ([[1.0, np.inf], [3, 4]], [[1.0, 2], [3, 4]], {}, sm.errors.SchemaError, "infinite values"),
        ([[np.nan, 2], [3, np.nan]], [[1.0, 2], [3, 4]], {}, sm.errors.Undefined, "at least 2 original records"),
        ([[1.0, 2], [3, 4]], [[1.0, 2], [3, 4]], {"k": 0}, sm.errors.PlanError, r"Unsafe.k must be in \[1, inf\)"),
        ([[1.0, 2], [3, 4]], [[1.0, 2], [3, 4]], {"alpha": 0}, sm.errors.PlanError, r"Unsafe.alpha must be in \(0, 1\]"),
        ([[1.0, 2], [3, 4]], [[1.0, 2], [3, 4]], {"r": -1}, sm.errors.PlanError, "Unsafe.r must be in"),
        ([[1.0, 2], [3, 4]], [[1.0, 2], [3, 4]], {"kk": 3}, sm.errors.PlanError, "no parameter 'kk'. Did you mean 'k'?"),
        ([[1.0, 2], [3, 4]], [[1.0, 2], [3, 4]], {"on": ["a", "c"]}, sm.errors.SchemaError, "no column 'c'"),
        ([[1.0, 2], [3, 4]], [[1.0, 2], [3, 4]], {"on": []}, sm.errors.SchemaError, "no variables to compare"),
        ([[1.0], [3]], [[1.0], [3]], {"scale": "standardized", "distance": "relative"}, sm.errors.PlanError, "'absolute'"),
        ([[1.0], [3]], [[1.0], [3]], {"delta": 1, "neighborhood": "fellegi-sunter"}, sm.errors.PlanError, "from alpha"),
    ],
)  # fmt: skip
def test_bad_input_is_rejected_with_reason(x: list, y: list, options: dict, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        names = ["a", "b"][: len(x[0])]
        files = [pl.DataFrame(rows, schema=names, orient="row") for rows in (x, y)]
        sm.records(*files, **{"on": names, **options})


def test_mixed_kinds_need_a_stated_neighborhood() -> None:
    data = sm.read(pl.DataFrame({"sex": ["f", "m", "m"], "wage": [1.5, 2.5, 2.5]}), keys=["sex", "wage"])
    with pytest.raises(sm.errors.SchemaError, match="'sex' has categories. Name it in `within`"):
        sm.records(data, data)
    assert sm.records(data, data, neighborhood="frequency").neighbors.tolist() == [1, 2, 2]


def test_records_with_missing_values_are_left_out() -> None:
    x, y = cloud(50)
    y = y.with_columns(turnover=pl.when(pl.int_range(50) < 3).then(None).otherwise("turnover"))
    x = x.with_columns(employees=pl.when(pl.int_range(50) == 10).then(None).otherwise("employees"))
    table = sm.records(x, y, KEYS)
    assert table.left_out.tolist() == [0, 1, 2, 10] and len(table) == 46
    z = all_distances(x.filter(pl.int_range(50) != 10), y)
    kept = [row for row in range(50) if row not in (0, 1, 2, 10)]
    assert np.array_equal(table.neighbors, (z[kept] < table.delta).sum(axis=1))


# ---- Protect --------------------------------------------------------------------------------------------------
def firms(n: int = 300) -> Microdata:
    return sm.read(cloud(n)[0], keys=KEYS)


@pytest.mark.parametrize("among", ["file", "unsafe"])
def test_protect_masks_only_unsafe_records(among: str) -> None:
    data, weak = firms(), sm.Noise(on=KEYS, variance=0.01)
    rule = sm.recordwise.Unsafe(on=KEYS, k=10, r=0.1)
    step = sm.methods.Protect(rule, sm.Noise(on=KEYS, variance=0.5), among=among)
    plan = sm.Plan([weak, sm.Chain([weak, step])], [sm.IL1s()], seed=5)
    chained = next(c for c in plan.candidates if isinstance(c.method, sm.Chain))
    stream = chained.stream(5)
    before = weak.apply(data, stream.child("step 0"))
    after = plan.make(data, chained)
    unsafe = sm.records(data, before, rule=rule).unsafe
    changed = np.flatnonzero((before.matrix(KEYS) != after.matrix(KEYS)).any(axis=1))
    assert 0 < len(unsafe) < len(data) and changed.tolist() == unsafe.tolist()
    assert len(sm.records(data, after, rule=rule).unsafe) < len(unsafe)
    assert after.base is data


def test_protect_with_more_rounds_leaves_fewer_unsafe() -> None:
    data, rule = firms(), sm.recordwise.Unsafe(on=KEYS, k=10, r=0.1)
    left = []
    for rounds in (1, 8):
        made = sm.mask(data, sm.methods.Protect(rule, sm.Noise(on=KEYS, variance=0.1), rounds=rounds), seed=1)
        left.append(len(sm.records(data, made, rule=rule).unsafe))
    assert left[1] < left[0] < len(sm.records(data, data, rule=rule).unsafe)


def test_protect_with_swap_on_categories() -> None:
    data = sm.demo.population(400, seed=2)
    rule = sm.recordwise.Unsafe(on=["Sex", "Race", "Educ"], k=12)
    step = sm.methods.Protect(rule, sm.Swap(on="Educ", rate=0.1, pairing="greedy"), among="unsafe")
    made = sm.mask(data, step, seed=1)
    unsafe = sm.records(data, data, rule=rule).unsafe
    moved = np.flatnonzero(made.codes("Educ") != data.codes("Educ"))
    assert len(moved) and set(moved) <= set(unsafe)
    assert np.array_equal(np.bincount(made.codes("Educ")), np.bincount(data.codes("Educ")))


def test_protect_round_trips_through_toml_without_records() -> None:
    rule = sm.recordwise.Unsafe(on=KEYS, k=5, scale="log")
    plan = sm.Plan(
        [sm.Chain([sm.Noise(on=KEYS), sm.methods.Protect(rule, sm.Noise(on=KEYS, variance=1.0))])], [sm.IL1s()]
    )
    again = sm.Plan.from_toml(plan.toml())
    assert again == plan and again.methods[0].methods[1].rule == rule
    assert set(rule.spec()) == {"type", "on", "k", "scale"}


def test_protect_rejects_unusable_methods_and_data() -> None:
    data = firms(20)
    with pytest.raises(sm.errors.Infeasible, match="sample or reorder records only after it"):
        sm.methods.Protect(sm.recordwise.Unsafe(on=KEYS), sm.Noise(on=KEYS)).mask(
            data.take(np.arange(5)), np.random.default_rng(1)
        )
    bad = sm.read(cloud(20)[0].with_columns(turnover=pl.lit(-1.0)), keys=KEYS)
    with pytest.raises(sm.errors.Infeasible, match="no logarithm"):
        sm.mask(bad, sm.methods.Protect(sm.recordwise.Unsafe(on=KEYS, scale="log"), sm.Noise(on=KEYS)), seed=1)
    with pytest.raises(sm.errors.SchemaError, match="no column 'income'"):
        sm.mask(data, sm.methods.Protect(sm.recordwise.Unsafe(on="income"), sm.Noise(on=KEYS)), seed=1)


# ---- charts ---------------------------------------------------------------------------------------------------
def test_plot_shows_records_links_and_largest_unit() -> None:
    table = sm.records(*cloud(120), KEYS)
    info = plot_info(table)
    kinds = dict(info.marks.group_by("kind").len().iter_rows())
    largest = table.rows == table.largest
    assert kinds["nearest"] == table.nearest_links - int(table.nearest[largest].sum())
    assert kinds["record"] + kinds["link"] + kinds["largest"] == 120 and kinds["largest"] == 1
    assert set(info.lines) == {1.0, 0.5} and len(info.density) == 0
    straight = info.lines[1.0]
    assert np.allclose(straight["x"] / 15 + straight["y"] / 0.15, 1)
    text = json.dumps(table.draw().spec)
    assert "row of the masked file" in text


def test_plot_above_5000_records_shows_density_and_unsafe_records() -> None:
    table = sm.records(*cloud(5001), KEYS, alpha=0.002)
    info = plot_info(table)
    assert info.density["records"].sum() == 5001
    drawn = info.marks.filter(pl.col("kind") != "largest")
    assert not drawn["safe"].any() and set(drawn["row"]) | {table.largest} >= set(table.unsafe.tolist())


@given(st.integers(0, 10_000))
def test_merged_bins_are_empty_or_have_ten_records(seed: int) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.poisson(rng.choice([0.3, 4, 20]), (rng.integers(1, 7), rng.integers(1, 7)))
    blocks = merge_bins(counts)
    if counts.sum() in range(1, 10):
        assert blocks == []
        return
    assert sum(block.records for block in blocks) == counts.sum()
    assert all(block.records == 0 or block.records >= 10 for block in blocks)
    covered = np.zeros(counts.shape, dtype=int)
    for block in blocks:
        covered[block.left : block.right, block.bottom : block.top] += 1
    assert (covered == 1).all()


def test_external_plot_has_no_records() -> None:
    """The data of the chart has only borders that the rule fixes, and rounded counts."""
    table = sm.records(*cloud(157), KEYS)
    spec = table.draw(audience="external").to_dict()
    text = json.dumps(spec)
    assert "row" not in text.replace("rows", "").split('"') and f"{table.delta:.4g}" not in text
    for row in spec["hconcat"][0]["data"]["values"]:
        assert set(row) == {"x", "x2", "y", "y2", "middle_x", "middle_y", "share", "text"}
        assert row["text"] == "0" or int(row["text"].replace(",", "")) >= 10
    across, up, counts = bins(table)
    assert counts.sum() == 157 and across[:4] == [0, 5, 10, 15] and up[3] == pytest.approx(0.15)
    nine = sm.records(*cloud(9), KEYS).draw(audience="external").to_dict()
    assert nine["hconcat"][0]["data"]["values"] == []
    with pytest.raises(sm.errors.PlanError, match="audience must be"):
        table.draw(audience="public")


def test_zoom_and_densities() -> None:
    table = sm.records(*cloud(120), KEYS)
    zoom = table.draw_zoom(4).spec["concat"]
    assert len(zoom) == 3  # all originals, one zoomed record, the key
    with pytest.raises(sm.errors.PlanError, match="One of the given rows is not among them"):
        table.draw_zoom(4000)
    layers = table.draw_densities().spec["hconcat"][0]["layer"]
    steps = [layer["data"]["values"] for layer in layers if layer["mark"]["type"] == "line"]
    pairs = table.pairs
    assert pairs is not None
    for values, distances in zip(steps, (pairs.distances(), pairs.link_distances()), strict=True):
        edges = np.array([row["z"] for row in values])
        area = (np.diff(edges) * [row["density"] for row in values[:-1]]).sum()
        assert area == pytest.approx((distances <= edges[-1]).mean())


def test_charts_save_offline(tmp_path: Path) -> None:
    table = sm.records(*cloud(60), KEYS)
    for name, chart in {"plot": table.draw(), "zoom": table.draw_zoom(), "densities": table.draw_densities()}.items():
        assert chart.save(tmp_path / f"{name}.svg").read_text().startswith("<svg")
        page = chart.html()
        assert "vegaEmbed" in page and "<script src" not in page and "<link" not in page


# ---- linked views, report, command line -----------------------------------------------------------------------
@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("records") / "study"
    path = folder.parent / "firms.csv"
    cloud(200)[0].write_csv(path)
    source = sm.Source(path=str(path), keys=KEYS)
    plan = sm.Plan(
        sm.grid(sm.Noise, on=[KEYS], variance=[0.05, 0.2]), [sm.risk.IntervalDisclosure(), sm.IL1s()],
        rule=sm.Threshold(risk=1.0), seed=2**130, data=source,
    )  # fmt: skip
    sm.sweep(source.read(), plan, folder, engine="serial")
    return folder


def test_plot_of_a_map_candidate(study: Path) -> None:
    opened = sm.Study.open(study)
    plan, data = opened.plan, opened.data
    ru = sm.RUMap(opened.scores(plan), plan.risk, plan.utility)
    ids = [row["id"] for row in ru.points.to_dicts() if not row["anchor"]]
    tables = {name: sm.records(data, plan.make(data, name), KEYS) for name in ids}
    charts = draw_linked(ru, tables)
    assert set(charts) == {"map.html", *(f"records-{name}.html" for name in ids)}
    text = json.dumps(charts["map.html"].spec)
    assert all(f'"href": "records-{name}.html"' in text for name in ids)
    assert "href" not in json.dumps(ru.draw().spec)


def run_cli(*arguments: object) -> tuple[int, str]:
    done = CliRunner().invoke(app, [str(part) for part in arguments])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.output


def test_records_command_on_study_and_on_two_files(study: Path, tmp_path: Path) -> None:
    plan = sm.Study.open(study).plan
    name = next(c.id for c in plan.candidates if c.method.text != "Identity")
    out = tmp_path / "records.html"
    assert run_cli("records", study, name, "-o", out, "--k", 10)[0] == 0 and out.stat().st_size > 1000
    x, y = cloud(50)
    x.write_csv(tmp_path / "x.csv")
    y.write_csv(tmp_path / "y.csv")
    files = (tmp_path / "x.csv", tmp_path / "y.csv", "--on", "turnover,employees")
    code, text = run_cli("records", *files, "-o", tmp_path / "t.csv", "--unsafe", tmp_path / "unsafe.csv", "--json")
    table = sm.records(x, y, KEYS)
    result = json.loads(text[text.index("{") : text.rindex("}") + 1])
    assert code == 0 and result["delta"] == pytest.approx(table.delta) and result["unsafe"] == len(table.unsafe)
    assert pl.read_csv(tmp_path / "t.csv").height == 50
    assert pl.read_csv(tmp_path / "unsafe.csv")["row"].to_list() == table.unsafe.tolist()
    assert run_cli("records", study, "--frontier", "-o", tmp_path / "linked")[0] == 0
    assert (tmp_path / "linked" / "map.html").exists()
    with pytest.raises(sm.errors.PlanError, match="allows only the binned plot"):
        run_cli("records", *files, "--external", "-o", tmp_path / "t.csv")


def test_report_shows_records_internally_and_bins_externally(study: Path) -> None:
    rule = sm.recordwise.Unsafe(on=KEYS, k=10)
    inside = sm.report(study, records=rule).html
    outside = sm.report(study, audience="external", records=rule, show_risk="asked for").html
    assert "no bin contains" not in sm.report(study, audience="external", records=rule).html
    assert "Each point is one record" in inside and "Each point is one record" not in outside
    assert "no bin contains 1 to 9 records" in outside and "largest unit" not in outside and "δ" not in outside
    assert "Every record" not in sm.report(study).html


def test_records_command_with_categories_archive_intervals_and_key_sets(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    x, y = cloud(60)
    x = x.with_columns(nace=pl.Series(rng.integers(10, 14, 60)))
    ends = y.with_columns(low=pl.col("turnover") - 0.5, high=pl.col("turnover") + 0.5, nace=x["nace"])
    paths = {name: tmp_path / f"{name}.csv" for name in ("x", "y", "ends", "register")}
    files = {"x": x, "y": ends.drop("low", "high"), "ends": ends.drop("turnover"), "register": x.with_row_index("row")}
    for name, frame in files.items():
        frame.write_csv(paths[name])
    out, two = tmp_path / "t.csv", (paths["x"], paths["y"])

    def facts(*arguments: object) -> dict:
        code, text = run_cli("records", *arguments, "-o", out, "--json")
        assert code == 0
        return json.loads(text[text.index("{") : text.rindex("}") + 1])

    on = ("--on", "turnover,employees")
    plain = sm.records(x, files["y"], KEYS, within="nace", alpha=0.2)
    within = facts(*two, *on, "--within", "nace", "--alpha", 0.2)
    assert within["delta"] == pytest.approx(plain.delta) and within["unsafe"] == len(plain.unsafe)
    archive = facts(*two, *on, "--within", "nace", "--alpha", 0.2, "--archive", paths["register"], "--row", "row")
    assert archive["delta"] == pytest.approx(plain.delta) and archive["linked"] == 60
    middle = facts(paths["x"], paths["ends"], *on, "--intervals", "turnover=low:high")
    assert middle["delta"] == pytest.approx(sm.records(x, y, KEYS).delta)
    sets = facts(*two, "--on", "turnover", *on)
    several = sm.recordwise.compare_records(x, files["y"], {"a": {"on": "turnover"}, "b": {"on": KEYS}})
    assert sets["unsafe_in_any"] == len(several.unsafe) and len(sets["attacks"]) == pl.read_csv(out).height == 2
    assert run_cli("records", *two, "--on", "turnover", *on, "-o", tmp_path / "sets.svg")[0] == 0
    with pytest.raises(sm.errors.SchemaError, match="'nace' looks like a code"):
        run_cli("records", *two, "--on", "turnover,nace", "-o", out)
    assert facts(*two, "--on", "turnover,nace", "--numeric", "nace")["records"] == 60
    with pytest.raises(sm.errors.PlanError, match="NAME=LOW:HIGH"):
        run_cli("records", *two, *on, "--intervals", "turnover", "-o", out)
    with pytest.raises(sm.errors.PlanError, match="--figure has no effect"):
        run_cli("records", *two, *on, "--figure", "zoom", "-o", out)


def test_records_command_rejects_options_that_a_study_does_not_use(study: Path, tmp_path: Path) -> None:
    with pytest.raises(sm.errors.PlanError, match="a study has no use for --by"):
        run_cli("records", study, "--by", "id", "-o", tmp_path / "r.html")
    with pytest.raises(sm.errors.PlanError, match="--frontier draws the plots of all"):
        run_cli("records", study, "--frontier", "--size", "turnover", "-o", tmp_path / "linked")
    with pytest.raises(sm.errors.PlanError, match="is not a study folder. --frontier needs one"):
        run_cli("records", tmp_path / "x.csv", "--frontier")
