"""The models behind synthetic data: what each keeps, compared with plain formulas and with made relations."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sdcmap as sm
from sdcmap.core.streams import Stream
from sdcmap.kernels.arrays import Array
from sdcmap.kernels.statistics import regression
from sdcmap.kernels.statistics.network import MAX_PARENT_GROUPS, MAX_PARENTS, find_parents, group_bins
from sdcmap.kernels.statistics.regression import Design, logit, logit_slopes, ridge_regression
from sdcmap.kernels.statistics.trees import grow
from sdcmap.methods._adversarial_forest import _Columns, _draw_rows, _tell_apart
from sdcmap.methods._column_models import RegressionModel, Sample
from sdcmap.methods._latent_variables import choose_largest

SEEDS = range(12)


def wage_file(n: int = 2000) -> sm.Microdata:
    """Return workers whose log wage falls by 0.14 for a minority and by 0.25 for women, and grows with school."""
    rng = np.random.default_rng(3)
    minority, woman = rng.random(n) < 0.12, rng.random(n) < 0.45
    school = np.clip(np.rint(rng.normal(12.5, 2.6, n) - 0.6 * minority), 4, 18)
    log_wage = 4.9 + 0.08 * school - 0.14 * minority - 0.25 * woman + rng.normal(0, 0.38, n)
    hours = np.where(rng.random(n) < 0.4, 40, np.rint(rng.normal(36, 8, n) - 4 * woman))
    frame = {
        "minority": minority * 1,
        "woman": woman * 1,
        "school": school,
        "hours": hours,
        "wage": np.exp(log_wage).round(),
    }
    return sm.read(pl.DataFrame(frame), keys=["minority", "woman"], numeric=["school", "hours", "wage"])


def minority_slope(data: sm.Microdata) -> float:
    """Return the slope of the minority indicator in a regression of log wage, by plain least squares."""
    own = data.frame()
    x = np.column_stack(
        [np.ones(len(data)), *(own[name].to_numpy().astype(float) for name in ("minority", "woman", "school"))]
    )
    return float(np.linalg.lstsq(x, np.log(own["wage"].to_numpy()))[0][1])


def mean_slope(method: sm.Synthesize, data: sm.Microdata) -> tuple[float, float]:
    slopes = [minority_slope(method.apply(data, Stream.of_seed(seed))) for seed in SEEDS]
    return float(np.mean(slopes)), float(np.std(slopes, ddof=1) / np.sqrt(len(slopes)))


def test_regressions_keep_a_slope_that_large_leaves_lose() -> None:
    data = wage_file()
    columns, truth = ("minority", "woman", "school", "hours", "wage"), minority_slope(data)
    assert truth < -0.1
    kept, error = mean_slope(sm.Synthesize(columns, model="regressions", leaf=200), data)
    assert abs(kept - truth) < 4 * error + 0.03  # 0.03: one standard error of the original
    lost, _ = mean_slope(sm.Synthesize(columns, leaf=200), data)
    assert lost > 0.5 * truth


def test_frequent_numbers_keep_their_share() -> None:
    data = wage_file()
    method = sm.Synthesize(("minority", "woman", "school", "hours", "wage"), model="regressions", leaf=100)
    shares = [float((method.apply(data, Stream.of_seed(seed)).numbers("hours") == 40).mean()) for seed in SEEDS]
    error = float(np.std(shares, ddof=1) / np.sqrt(len(shares)))
    assert abs(np.mean(shares) - (data.numbers("hours") == 40).mean()) < 4 * error + 0.01


# ---- parts of the models ---------------------------------------------------------------------------------------
def sample(x: Array, codes: Array) -> Sample:
    sizes, ordered = np.array([codes.max() + 1]), np.array([True])
    bins = codes[:, np.newaxis].astype(np.int64)
    return Sample(bins, bins, sizes, ordered, (x,), (x,))


def test_categories_are_drawn_with_logistic_probabilities_and_the_shares_of_the_leaf() -> None:
    """With one leaf, shares follow the logistic curve; in pure leaves, the category of the leaf is drawn."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=4000)
    p = 1 / (1 + np.exp(-(0.3 + 1.2 * x)))
    y = (rng.random(4000) < p).astype(np.int64)
    drawn = RegressionModel(4000).draw_codes(y, 2, sample(x, np.zeros(4000, dtype=np.int64)), rng)
    for low, high in ((-9, -1), (-1, 0), (0, 1), (1, 9)):
        rows = (x > low) & (x <= high)
        assert abs(drawn[rows].mean() - p[rows].mean()) < 4 * np.sqrt(0.25 / rows.sum())
    group = (np.arange(4000) % 2).astype(np.int64)
    pure = RegressionModel(5).draw_codes(group, 2, sample(x, group), rng)
    assert (pure == group).all()


def test_numbers_are_predictions_with_residuals_of_the_leaf() -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=3000)
    y = 2 + 3 * x + rng.normal(size=3000)
    drawn = RegressionModel(3000).draw_numbers(y, sample(x, np.zeros(3000, dtype=np.int64)), rng)
    slope, start = np.polyfit(x, drawn, 1)
    assert abs(slope - 3) < 5 / np.sqrt(3000) and abs(start - 2) < 5 / np.sqrt(3000)
    assert abs((drawn - 2 - 3 * x).std() - 1) < 5 / np.sqrt(2 * 3000)


@given(rows=st.integers(5, 60), columns=st.integers(1, 6), ridge=st.floats(0.1, 100), seed=st.integers(0, 1000))
def test_ridge_regression_equals_its_formula(rows: int, columns: int, ridge: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(rows, columns)), rng.normal(size=rows)
    design = Design(tuple(x.T), ((), *((j,) for j in range(columns))), rows)
    full = np.column_stack([np.ones(rows), x])
    penalty = ridge * np.diag([0.0] + [1.0] * columns)
    slopes = ridge_regression(design, y, ridge)
    assert np.allclose(slopes, np.linalg.solve(full.T @ full + penalty, full.T @ y), rtol=1e-8, atol=1e-10)
    assert np.allclose(design.predict(slopes), full @ slopes)


@given(
    rows=st.integers(60, 300),
    columns=st.integers(0, 6),
    classes=st.integers(2, 5),
    spread=st.sampled_from([0.1, 1.0, 5.0]),
    ridge=st.sampled_from([0.5, 2.0]),
    seed=st.integers(0, 1000),
)
def test_fast_logits_agree_with_newtons_method(
    rows: int, columns: int, classes: int, spread: float, ridge: float, seed: int
) -> None:
    """Slopes differ by less than 0.02 standard errors, also for rare classes and columns that separate them."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, columns))
    noise = rng.gumbel(size=(rows, classes)) + np.linspace(0, 2, classes)
    codes = np.argmax(noise + spread * (x @ rng.normal(size=(columns, classes))), axis=1)
    design = Design(tuple(x.T), ((), *((j,) for j in range(columns))), rows)
    known = [own for own in range(classes) if 0 < (codes == own).sum() < rows]
    fast = logit_slopes(design, codes, known, ridge) if known else []
    for own, slopes in zip(known, fast, strict=True):
        one = (codes == own).astype(np.float64)
        exact = logit(design, one, 1 - one, ridge)
        assert exact is not None
        assert (np.abs(slopes - exact[0].slopes) <= 0.02 * np.sqrt(np.diag(exact[0].covariance))).all()


def test_fast_logits_need_no_design_matrix_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(7)
    x = rng.normal(size=(500, 3))
    codes = (x[:, 0] + rng.normal(size=500) > 0.5).astype(np.int64)
    design = Design(tuple(x.T), ((), (0,), (1,), (2,)), 500)
    whole = logit_slopes(design, codes, [1], 1.0)
    monkeypatch.setattr(regression, "BLOCK_ROWS", 64)
    monkeypatch.setattr(regression, "CACHED_CELLS", 0)
    assert np.allclose(logit_slopes(design, codes, [1], 1.0), whole, rtol=0, atol=1e-10)


def test_parents_are_the_columns_that_explain_most() -> None:
    rng = np.random.default_rng(4)
    columns = [rng.integers(0, 3, 5000) for _ in range(6)]
    y = (columns[1] + 2 * columns[4] + (rng.random(5000) < 0.1)) % 4
    assert set(find_parents(y, 4, columns)) == {1, 4}
    assert find_parents(rng.integers(0, 4, 5000), 4, columns) == []
    assert MAX_PARENTS >= 2


@given(size=st.integers(1, 80), rows=st.integers(1, 200), ordered=st.booleans(), seed=st.integers(0, 1000))
def test_groups_of_bins_are_few_and_keep_their_order(size: int, rows: int, ordered: bool, seed: int) -> None:
    bins = np.random.default_rng(seed).integers(0, size, rows)
    group = group_bins(bins, size, ordered)
    assert len(group) == size and group.min() >= 0 and group.max() < MAX_PARENT_GROUPS
    if ordered:
        assert (np.diff(group) >= 0).all()


@given(predictors=st.integers(2, 8), tried=st.integers(1, 8), seed=st.integers(0, 500))
def test_a_tree_of_a_forest_tries_some_predictors(predictors: int, tried: int, seed: int) -> None:
    """The same seed gives the same tree; trying all predictors gives the tree without a seed."""
    rng = np.random.default_rng(seed)
    bins, y = rng.integers(0, 6, (120, predictors)), rng.normal(size=120)
    sizes, ordered = np.full(predictors, 6), np.ones(predictors, dtype=bool)
    tried = min(tried, predictors)
    trees = [grow(bins, sizes, ordered, y, 0, 5, tried, own) for own in (seed, seed, seed + 1)]
    assert np.array_equal(trees[0].variable, trees[1].variable)
    if tried == predictors:
        plain = grow(bins, sizes, ordered, y, 0, 5)
        assert all(np.array_equal(tree.variable, plain.variable) for tree in trees)


def test_trees_with_one_tried_predictor_use_all_of_them() -> None:
    rng = np.random.default_rng(5)
    bins = rng.integers(0, 6, (400, 5))
    y = bins.sum(axis=1) + rng.normal(size=400)
    tree = grow(bins, np.full(5, 6), np.ones(5, dtype=bool), y, 0, 5, 1, 7)
    used = np.bincount(tree.variable[tree.variable >= 0], minlength=5)
    assert used.min() > 0


def test_adversarial_forest_cannot_tell_its_own_draws_from_the_original() -> None:
    """Independent columns are told apart from correlated ones; draws from the leaves much less."""
    rng = np.random.default_rng(6)
    x = rng.normal(size=1500)
    frame = {"a": x, "b": x + 0.3 * rng.normal(size=1500), "c": np.where(x > 0, "p", "q")}
    data = sm.read(pl.DataFrame(frame), keys="c", numeric=["a", "b"])
    columns = _Columns.of(data, ("a", "b", "c"))
    independent = columns.bins[np.column_stack([rng.permutation(1500) for _ in range(3)]), np.arange(3)]
    forest, first = _tell_apart(columns, independent, 10, rng)
    drawn = columns.bins[_draw_rows(forest, columns.bins, 10, rng), np.arange(3)]
    _, second = _tell_apart(columns, drawn, 10, rng)
    assert first > 0.75
    assert second < 0.65


def test_leaves_of_an_adversarial_forest_have_enough_original_records() -> None:
    rng = np.random.default_rng(7)
    bins = rng.integers(0, 8, (300, 3))
    columns = _Columns(bins, np.full(3, 8), np.ones(3, dtype=bool))
    forest, _ = _tell_apart(columns, rng.integers(0, 8, (300, 3)), 5, rng)
    for own in forest:
        nodes = own.nodes(bins, 20)
        assert own.size[nodes].min() >= 20
        for node in np.unique(nodes):
            assert own.rows[own.start[node] : own.start[node] + own.size[node]].max() < 300


@pytest.mark.parametrize("shares", [[0.5, 0.3, 0.2], [0.9, 0.06, 0.04]])
def test_calibrated_categories_have_their_shares(shares: list[float]) -> None:
    z = np.random.default_rng(8).standard_normal((4000, 3)) @ np.array([[1, 0, 0], [0.5, 1, 0], [-0.5, 0.2, 1]]).T
    own = np.bincount(choose_largest(z, np.array(shares)), minlength=3) / 4000
    assert np.abs(own - shares).max() < 0.005


def test_a_copula_keeps_the_relation_of_a_nominal_column() -> None:
    """Six trades without an order, of which the fourth earns most: rank correlations of codes would lose this."""
    rng = np.random.default_rng(9)
    trade = rng.integers(0, 6, 3000)
    wage = np.exp(7 + 0.8 * (trade == 3) + 0.3 * rng.normal(size=3000)).round(2)
    data = sm.read(pl.DataFrame({"trade": np.array(list("abcdef"))[trade], "wage": wage}), keys="trade", numeric="wage")
    method = sm.Synthesize(["trade", "wage"], model="copula")
    ratios = []
    for seed in SEEDS:
        drawn = method.apply(data, Stream.of_seed(seed))
        is_d = drawn["trade"] == "d"
        ratios.append(np.log(drawn.numbers("wage"))[is_d].mean() - np.log(drawn.numbers("wage"))[~is_d].mean())
    assert np.mean(ratios) > 0.55
