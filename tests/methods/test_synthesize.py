"""Synthetic data: trees are optimal, draws follow them, and rows of a fully synthetic file correspond to no one."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sdcmap as sm
from sdcmap.bundle.prepared_file import prepare, round_like_original
from sdcmap.bundle.round_trip import align_with_original
from sdcmap.core.streams import Stream
from sdcmap.data.microdata import Microdata
from sdcmap.data.missing_patterns import missing_state
from sdcmap.kernels.arrays import Array
from sdcmap.kernels.statistics.trees import MAX_BINS, Tree, assign_bins, bin_edges, draw_from_leaves, find_leaves, grow
from sdcmap.methods._visit_order import order_by_association
from sdcmap.testing import check_method

ONCE = Stream.of_seed(1)
RNG = np.random.default_rng(0)


# ---- trees ----------------------------------------------------------------------------------------------------
def purity(y: Array, classes: int) -> Fraction:
    """Return the sum of squared sums over n, a constant minus Gini's index or the sum of squares."""
    parts = [int((y == c).sum()) for c in range(classes)] if classes else [int(y.sum())]
    return Fraction(sum(part**2 for part in parts), len(y))


def best_purity(bins: Array, ordered: Array, y: Array, classes: int, leaf: int) -> Fraction:
    """Return the best purity over all splits of all predictors, including any two sets of categories."""
    best = purity(y, classes)
    for v in range(bins.shape[1]):
        observed = np.unique(bins[:, v]).tolist()
        if ordered[v]:
            sides = [observed[:i] for i in range(1, len(observed))]
        else:
            sides = [list(s) for size in range(1, len(observed)) for s in itertools.combinations(observed, size)]
        for side in sides:
            left = np.isin(bins[:, v], side)
            if leaf <= left.sum() <= len(y) - leaf:
                best = max(best, purity(y[left], classes) + purity(y[~left], classes))
    return best


def rows_of(tree: Tree, node: int) -> Array:
    rows: Array = tree.rows[tree.start[node] : tree.start[node] + tree.size[node]]
    return rows


@given(
    n=st.integers(2, 60), p=st.integers(1, 3), leaf=st.integers(1, 8), classes=st.sampled_from([0, 2]),
    seed=st.integers(0, 10_000),
)  # fmt: skip
def test_every_split_is_optimal(n: int, p: int, leaf: int, classes: int, seed: int) -> None:
    """With numbers or two classes the order of mean y finds the best of all sets of categories (Breiman et al. 4.2.2), as
    long as no set is too small for a leaf."""
    rng = np.random.default_rng(seed)
    bins, ordered = rng.integers(0, 5, (n, p)), (rng.random(p) < 0.5) | (leaf > 1)
    y = rng.integers(0, 2, n) if classes else rng.integers(-20, 20, n)
    tree = grow(bins, np.full(p, 5), ordered, y, classes, leaf)
    for node in range(len(tree.variable)):
        rows = rows_of(tree, node)
        best = best_purity(bins[rows], ordered, y[rows], classes, leaf)
        if tree.variable[node] < 0:
            assert best == purity(y[rows], classes) or len(rows) < 2 * leaf
            continue
        parts = [y[rows_of(tree, child)] for child in (tree.left[node], tree.right[node])]
        assert sum(purity(part, classes) for part in parts) == best
        assert min(len(part) for part in parts) >= leaf


@given(n=st.integers(2, 200), classes=st.sampled_from([0, 2, 4]), seed=st.integers(0, 10_000))
def test_rows_fall_into_their_leaves(n: int, classes: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    bins = rng.integers(0, 6, (n, 3))
    y = rng.integers(0, max(classes, 1), n) if classes else rng.lognormal(0, 1, n)
    tree = grow(bins, np.full(3, 6), np.array([True, False, True]), y, classes, 4)
    leaf = find_leaves(tree, bins)
    assert (tree.variable[leaf] < 0).all()
    assert np.array_equal(np.sort(tree.rows), np.arange(n))
    for node in np.unique(leaf):
        assert np.array_equal(np.sort(rows_of(tree, node)), np.flatnonzero(leaf == node))
    drawn = draw_from_leaves(tree, bins, np.arange(n), rng)
    assert np.array_equal(leaf[drawn], leaf)


def test_draws_from_a_leaf_are_uniform() -> None:
    """Without predictors there is one leaf: chi-square of 6,000 draws of 6 rows, P = 0.001."""
    tree = grow(np.empty((6, 0), np.int64), np.empty(0, np.int64), np.empty(0, np.bool_), np.arange(6.0), 0, 1)
    drawn = draw_from_leaves(tree, np.empty((6000, 0), np.int64), np.arange(6), np.random.default_rng(1))
    assert ((np.bincount(drawn) - 1000) ** 2 / 1000).sum() < 20.5


def test_bins_of_numbers() -> None:
    few = np.array([3.0, np.nan, 1.0, 3.0, 2.0])
    assert assign_bins(few, bin_edges(few)).tolist() == [2, 3, 0, 2, 1]
    many = np.random.default_rng(1).lognormal(0, 1, 10_000)
    result = assign_bins(many, bin_edges(many))
    assert result.max() == MAX_BINS - 2
    assert np.bincount(result).min() >= 10_000 // (MAX_BINS - 1) - 1
    assert np.array_equal(np.argsort(many), np.lexsort((many, result)))
    assert assign_bins(np.array([np.nan, -9.0]), bin_edges(np.array([np.nan]))).tolist() == [1, 0]


# ---- the method -----------------------------------------------------------------------------------------------
def people(n: int = 1500, has_missing: bool = False) -> Microdata:
    """Return people whose wage depends on school and sex, tax only on wage; only workers have hours."""
    rng = np.random.default_rng(4)
    sex, school = rng.integers(0, 2, n), rng.integers(0, 6, n)
    works = rng.random(n) < 0.4 + 0.5 * sex
    wage = np.exp(1 + 0.4 * school + 0.5 * sex + 0.3 * rng.standard_normal(n))
    frame = pl.DataFrame(
        {
            "id": np.arange(n),
            "sex": np.where(sex == 1, "m", "f"),
            "school": school,
            "wage": wage,
            "tax": np.round(wage / 3),
            "hours": [float(h) if w else None for h, w in zip(rng.integers(10, 50, n), works, strict=True)],
            "weight": rng.integers(1, 5, n).astype(float),
        }
    )
    if has_missing:
        for name in ("sex", "school", "wage"):
            frame = frame.with_columns(pl.when(pl.Series(rng.random(n) >= 0.2)).then(pl.col(name)).alias(name))
    keys, numeric = ["sex", "school"], ["wage", "tax", "hours"]
    return sm.read(frame, identifiers=["id"], keys=keys, numeric=numeric, weight="weight")


EVERYTHING = ("sex", "school", "wage", "tax", "hours")
MODELS = ("trees", "regressions", "forest", "adversarial forest", "network", "copula")


@pytest.mark.parametrize("model", MODELS)
def test_partial_synthesis_keeps_other_variables(model: str) -> None:
    data = people()
    masked = sm.Synthesize(["wage", "tax"], model=model).apply(data, ONCE)
    assert set(masked.changes) == {"wage", "tax"}
    assert masked.paired and masked.origin is None
    for name in ("wage", "tax"):
        before, after = data.numbers(name), masked.numbers(name)
        assert after.min() >= 0 and after.max() < 3 * before.max()  # the few largest are drawn from a tail
        assert name == "tax" or not np.isin(after, before).any()  # every wage is unique
        assert name == "wage" or (after == np.rint(after)).all()
        assert (masked.numbers(name) != data.numbers(name)).mean() > 0.5


@pytest.mark.parametrize("model", MODELS)
def test_fully_synthetic_rows_correspond_to_no_record(model: str) -> None:
    data = people()
    masked = sm.Synthesize(EVERYTHING, model=model).apply(data, ONCE)
    assert not masked.paired
    assert np.array_equal(masked.weights, data.weights)
    with pytest.raises(
        sm.errors.Undefined, match="SmallCells compares records with their originals; a synthetic file has none"
    ):
        sm.score(data, masked, sm.SmallCells())
    with pytest.raises(sm.errors.Undefined, match="IL1s compares"):
        sm.score(data, masked, sm.IL1s())
    assert 0 < sm.score(data, masked, sm.Hellinger())["Hellinger"].value < 0.2
    assert sm.score(data, masked, sm.utility.MeanPrecision(on="wage"))["MeanPrecision(on='wage')"].value > 0
    for other in (
        masked.change(None, {"wage": data.numbers("wage")}), masked.take(np.arange(9)), masked.only(["sex"]),
        masked.with_roles(sex="sensitive"),
    ):  # fmt: skip
        assert not other.paired


def test_sweep_reports_why_a_measure_is_undefined() -> None:
    data = people(300)
    methods = [sm.Synthesize(EVERYTHING), sm.Chain([sm.Synthesize(EVERYTHING), sm.Noise(on="wage")])]
    plan = sm.Plan([*methods, sm.Synthesize("sex")], [sm.SmallCells(), sm.Hellinger()], seed=1)
    scores = sm.sweep(data, plan, workers=1)
    rows = {row["method"]: row for row in scores.pooled("SmallCells").to_dicts()}
    known = {row["method"] for row in scores.pooled("Hellinger").to_dicts()}
    for method in methods:
        assert rows.get(method.text, {"value": None})["value"] is None
        assert method.text in known
    assert rows["Synthesize(on='sex')"]["value"] is not None


def test_written_synthetic_file_stays_unpaired() -> None:
    """This holds for the prepared release and for the file that is read again for scoring."""
    data = people(300)
    for on, paired in ((EVERYTHING, False), (("wage",), True)):
        method = sm.Synthesize(on)
        prepared = prepare(data, method, round_like_original(data, method.apply(data, ONCE)), ONCE)
        assert prepared.data.paired is paired
        assert align_with_original(data, prepared.data, prepared).paired is paired


def test_identifiers_and_weights_are_not_predictors() -> None:
    data = people()
    assert sm.Synthesize("wage")._predictors(data) == ("sex", "school", "tax", "hours")
    assert sm.Synthesize("wage", given="sex")._predictors(data) == ("sex",)


def test_trees_reproduce_deterministic_relations() -> None:
    """`copy` determines the school, also in the synthetic file; a third category is drawn as often as it occurs."""
    data = people()
    frame = data.frame().with_columns(copy=pl.concat_str(pl.lit("s"), pl.col("school")))
    data = sm.read(frame, identifiers=["id"], keys=["sex", "school", "copy"], numeric=["wage", "tax", "hours"])
    masked = sm.Synthesize(["school", "copy"], given="sex").apply(data, ONCE)
    assert (masked.frame()["copy"].str.slice(1).cast(pl.Int64) == masked.frame()["school"]).all()
    assert (masked.codes("school") != data.codes("school")).any()


def means(method: sm.Synthesize, data: Microdata, number: object) -> tuple[float, float]:
    """Return the mean of a statistic over 20 seeds, and its standard error."""
    result = [number(method.apply(data, Stream.of_seed(seed))) for seed in range(20)]  # type: ignore[operator]
    return float(np.mean(result)), float(np.std(result, ddof=1) / np.sqrt(20))


def ranks_go_together(first: str, second: str) -> object:
    from scipy.stats import spearmanr

    return lambda f: spearmanr(f.column(first).values.astype(float), f.column(second).values.astype(float)).statistic


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("on", [EVERYTHING, ("wage", "tax")], ids=["full", "partial"])
def test_synthetic_means_and_rank_correlations(model: str, on: tuple[str, ...]) -> None:
    """Means over 20 seeds are within 4 standard errors; rank correlations within another 0.05, as models smooth them."""
    data = people()
    if model == "adversarial forest" and on != EVERYTHING:
        data = data.only(on)  # it has no predictors
    method = sm.Synthesize(on, model=model)
    result, se = means(method, data, lambda f: f.numbers("wage").mean())
    assert abs(result - data.numbers("wage").mean()) < 4 * se + 0.02 * data.numbers("wage").mean()
    for pair in (("wage", other) for other in ("school", "tax", "sex") if other in data.names):
        truth = ranks_go_together(*pair)(data)  # type: ignore[operator]
        result, se = means(method, data, ranks_go_together(*pair))
        assert abs(result - truth) < 4 * se + 0.05, pair
        assert truth > 0.2


def test_missing_values_are_drawn() -> None:
    """The share of those without hours within each sex, over 20 seeds, 4 standard errors (and .06 for the copula, in
    which present or missing is cut from a normal variable: over 200 seeds men are .028 too low, women .056 too high)."""
    data = people()
    men = data.codes("sex") == 1
    for model in MODELS:
        if model == "adversarial forest":  # it has no predictors
            continue
        method = sm.Synthesize("hours", given="sex", model=model)
        for who in (men, ~men):
            result, se = means(method, data, lambda f, who=who: f.missing("hours")[who].mean())
            assert abs(result - data.missing("hours")[who].mean()) < 4 * se + (0.06 if model == "copula" else 0), model


def people_with_reasons(n: int = 1500, refused: float = 0.3) -> Microdata:
    """Return people of whom women have no hours because it does not apply, some refuse, and the others work."""
    rng = np.random.default_rng(4)
    sex, refuses = rng.integers(0, 2, n), rng.random(n) < refused
    hours = np.where(refuses, -8.0, np.where((sex == 0) & (rng.random(n) < 0.6), -9.0, rng.integers(10, 50, n)))
    trust = np.where(rng.random(n) < np.where(refuses, 0.9, 0.2), "low", "high")
    trust[:40] = np.where(rng.random(40) < 0.5, "-8", "-7")
    frame = pl.DataFrame({"sex": np.where(sex == 1, "m", "f"), "hours": hours, "trust": trust})
    return sm.read(frame, keys=["sex", "trust"], numeric="hours", missing={"hours": [-8, -9], "trust": ["-8", "-7"]})


@pytest.mark.parametrize("model", MODELS)
def test_reasons_of_missing_values_keep_shares_and_relations(model: str) -> None:
    """Shares within 4 standard errors of a share of 1,500, 0.05; a copula draws reasons by their shares alone."""
    data = people_with_reasons()
    drawn = sm.Synthesize(("sex", "hours", "trust"), model=model, leaf=20).apply(data, ONCE)  # type: ignore[arg-type]

    def shares(file: Microdata) -> list[float]:
        state, women, low = missing_state(file, "hours"), file["sex"] == "f", file["trust"] == "low"
        own = [float((state == s).mean()) for s in (0, 2, 3)]
        related = [float((state[women] == 2).mean()), float(low[state == 3].mean()), float(low[state == 0].mean())]
        return [*own, *([] if model == "copula" else related)]

    assert data.schema["hours"].reasons == (-9.0, -8.0) and min(shares(data)) > 0.1
    assert shares(drawn) == pytest.approx(shares(data), abs=0.05)
    assert (missing_state(drawn, "hours") != 1).all(), "each missing number has a reason"
    assert not np.array_equal(missing_state(drawn, "hours"), missing_state(data, "hours"))


@pytest.mark.parametrize("model", MODELS)
def test_rare_reasons_are_replaced(model: str) -> None:
    """Two persons refuse; of a reason that one file has and no other reason beside it, nothing is left."""
    data = people_with_reasons(400, refused=0)
    reasons, trust = data.columns["hours"].reasons, data.columns["trust"]
    assert reasons is not None and trust.levels is not None
    rare, codes = reasons.copy(), trust.values.copy()
    rare[np.flatnonzero(reasons)[:2]], codes[:40] = 2, np.where(np.arange(40) < 2, len(trust.levels) - 1, 0)
    few = replace(data.columns["hours"], reasons=rare), replace(trust, values=codes)
    marked = replace(data, columns={**data.columns, "hours": few[0], "trust": few[1]})
    drawn = sm.Synthesize(("sex", "hours", "trust"), model=model, leaf=1)  # type: ignore[arg-type]
    files = [drawn.apply(marked, Stream.of_seed(seed)) for seed in range(5)]
    assert {int(s) for file in files for s in missing_state(file, "hours")} <= {0, 2}
    assert {int(s) for file in files for s in missing_state(file, "trust")} <= {0, 1}


def test_reasons_of_a_column_without_values_are_drawn() -> None:
    data = people_with_reasons()
    empty = replace(data.columns["hours"], values=np.full(len(data), np.nan), reasons=np.arange(len(data)) % 2 + 1)
    data = replace(data, columns={**data.columns, "hours": empty})
    for model in MODELS:
        state = missing_state(sm.Synthesize(("sex", "hours"), model=model).apply(data, ONCE), "hours")  # type: ignore[arg-type]
        assert 0.4 < (state == 2).mean() < 0.6 and 0.4 < (state == missing_state(data, "hours")).mean() < 0.6


def test_reasons_are_drawn_within_strata() -> None:
    """A row does not keep the reason of its own missing value where another one is drawn."""
    data = people_with_reasons()
    drawn = sm.Synthesize("hours", within="sex").apply(data, ONCE)
    before, after = (missing_state(file, "hours") for file in (data, drawn))
    both = (before > 0) & (after > 0) & (data["sex"] == "f")
    assert (before != after)[both].mean() > 0.3 and not (after == 1).any()


def test_ages_with_reasons_are_drawn_as_numbers() -> None:
    """Regressions draw ordered categories as numbers, whatever reasons a file states for missing ones."""
    rng = np.random.default_rng(3)
    age = rng.integers(20, 80, 1500)
    frame = pl.DataFrame(
        {"income": 50.0 * age + rng.normal(0, 300, 1500), "age": np.where(rng.random(1500) < 0.2, -8, age)}
    )
    data = sm.read(frame, keys="age", numeric="income", kinds={"age": "ordinal"}, missing={"age": [-8]})
    drawn = sm.Synthesize(("income", "age"), model="regressions", leaf=700).apply(data, ONCE)
    assert data.schema["age"].kind == "ordinal" and set(missing_state(drawn, "age").tolist()) == {0, 2}
    correlations = [
        np.corrcoef(file.numbers("income")[known], file.codes("age")[known])[0, 1]
        for file in (data, drawn)
        for known in [~file.missing("age")]
    ]
    assert correlations[1] == pytest.approx(correlations[0], abs=0.05)


def test_strata_are_preserved() -> None:
    data = people()
    masked = sm.Synthesize(("school", "wage", "tax", "hours"), within="sex").apply(data, ONCE)
    assert masked.paired
    assert "sex" not in masked.changes


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"on": ()}, "must name at least one variable"),
        ({"on": ("wage", "wage")}, "each variable once"),
        ({"on": "wage", "given": "wage"}, "must not name a replaced variable: wage"),
        (
            {"on": "wage", "model": "gan"},
            "must be one of 'trees', 'regressions', 'forest', 'adversarial forest', 'network', 'copula'",
        ),
        ({"on": "wage", "given": "sex", "model": "adversarial forest"}, "must be empty with model"),
        ({"on": "wage", "order": "association", "model": "copula"}, 'copula", which draws all variables at once'),
        ({"on": "wage", "order": "association", "model": "adversarial forest"}, "which draws all variables at once"),
        (
            {"on": ["sex", "wage"], "order": "association", "model": "regressions", "keep": "wage ~ sex"},
            'keep needs order = "stated"',
        ),
        ({"on": "wage", "leaf": 0}, r"must be in \[1, inf\). Got 0."),
    ],
)
def test_invalid_parameters_are_rejected(given: dict[str, object], problem: str) -> None:
    with pytest.raises(sm.errors.PlanError, match=problem):
        sm.Synthesize(**given)  # type: ignore[arg-type]


def test_incompatible_data_are_rejected() -> None:
    data = people(50)
    with pytest.raises(sm.errors.SchemaError, match="no column 'schol'. Did you mean 'school'"):
        sm.Synthesize("wage", given="schol").apply(data, ONCE)
    with pytest.raises(sm.errors.SchemaError, match="must not name 'weight': it is the file's weight"):
        sm.Synthesize("wage", given="weight").apply(data, ONCE)
    with pytest.raises(sm.errors.SchemaError, match="cannot mask 'id': it is the file's identifier"):
        sm.Synthesize("id").apply(data, ONCE)
    with pytest.raises(sm.errors.Infeasible, match="at least 2 records"):
        sm.Synthesize("wage").apply(data.take(np.array([0])), ONCE)


@pytest.mark.parametrize("model", MODELS)
def test_laws(model: str) -> None:
    for has_missing in (False, True):
        data = people(90, has_missing)
        check_method(sm.Synthesize(EVERYTHING, model=model), data)
        check_method(sm.Synthesize(["hours", "sex"], model=model, leaf=2), data)
    check_method(sm.Synthesize(["wage", "school"], model=model, within="sex"), people(90))


# ---- the order of drawing -------------------------------------------------------------------------------------
def related_columns(n: int = 1000) -> Microdata:
    """Return a number that three other columns depend on, and one without relations."""
    rng = np.random.default_rng(8)
    x = rng.normal(size=n)
    frame = {
        "noise": rng.normal(size=n), "a": x + 2 * rng.normal(size=n), "b": x**2 + rng.normal(size=n), "x": x,
        "kind": np.where(x + 2 * rng.normal(size=n) > 0, "p", "q"),
    }  # fmt: skip
    return sm.read(pl.DataFrame(frame), keys="kind", numeric=["noise", "a", "b", "x"])


def test_the_column_that_says_most_about_the_others_is_drawn_first() -> None:
    data = related_columns()
    assert order_by_association(data, data.names)[0] == "x"
    assert order_by_association(data, data.names)[-1] == "noise"
    assert order_by_association(data, ("noise",)) == ("noise",)


def test_columns_with_equal_association_are_drawn_as_stated() -> None:
    frame = pl.DataFrame({name: ["p", "q"] * 50 for name in "abc"})
    data = sm.read(frame, keys=["a", "b", "c"])
    assert order_by_association(data, ("b", "c", "a")) == ("b", "c", "a")


def test_no_single_record_decides_the_order() -> None:
    data = related_columns()
    values = data.numbers("noise").copy()
    values[7] = 1e9
    moved = data.change(None, {"noise": values})
    assert order_by_association(moved, data.names) == order_by_association(data, data.names)


@pytest.mark.parametrize("model", ["trees", "regressions", "forest", "network"])
def test_association_is_the_order_of_the_stated_columns(model: str) -> None:
    """It gives the file that the same order gives where it is stated, with the same random numbers."""
    data = related_columns()
    learned = sm.Synthesize(data.names, model=model, order="association")  # type: ignore[arg-type]
    stated = replace(learned, on=order_by_association(data, data.names), order="stated")
    files = [method.apply(data, ONCE) for method in (learned, stated)]
    for name in data.names:
        assert np.array_equal(files[0].column(name).values, files[1].column(name).values)
    assert learned.title.endswith("ordered by association)") and learned.digest != stated.digest


def test_both_orders_are_on_the_map() -> None:
    data = people(300)
    methods = [sm.Synthesize(("wage", "tax"), order=order) for order in ("stated", "association")]  # type: ignore[arg-type]
    plan = sm.Plan(methods, [sm.risk.ExactMatch(), sm.utility.QueryError(queries=100)], seed=1)
    ru = sm.RUMap.of_plan(sm.sweep(data, plan, workers=1), plan)
    assert {method.text for method in methods} <= set(ru.means["method"])


# ---- rare numbers, and weights --------------------------------------------------------------------------------
@pytest.mark.parametrize("model", MODELS)
def test_rare_numbers_are_replaced_with_similar_distribution(model: str) -> None:
    rng = np.random.default_rng(5)
    wage = np.where(rng.random(2000) < 0.2, 0.0, rng.lognormal(7, 1, 2000).round(4))
    data = sm.read(pl.DataFrame({"sex": rng.choice(["f", "m"], 2000), "wage": wage}), keys="sex", numeric="wage")
    drawn = sm.Synthesize(["sex", "wage"], model=model).apply(data, ONCE).numbers("wage")  # type: ignore[arg-type]
    assert np.isin(drawn, wage[wage > 0]).sum() <= 5  # by chance, among numbers of four decimals
    assert abs((drawn == 0).mean() - (wage == 0).mean()) < 5 * np.sqrt(
        0.2 * 0.8 / 2000
    )  # frequent values keep their share
    assert drawn.min() >= 0 and np.sort(drawn)[-20] <= wage.max()  # the few largest are drawn from a tail
    at = np.quantile(wage, np.arange(0.05, 1, 0.05))
    ecdf = [np.searchsorted(np.sort(x), at, side="right") / len(x) for x in (wage, drawn)]
    assert np.abs(ecdf[0] - ecdf[1]).max() < 0.05  # 95 % point of the greatest difference of two samples of 2,000: .043


@pytest.mark.parametrize("model", MODELS)
def test_values_that_few_households_share_are_rare(model: str) -> None:
    """Two households of six share a rent, and one a trade: each has more records than a rare value, but few units."""
    rng, home = np.random.default_rng(5), np.repeat(np.arange(200), 6)
    rent = rng.lognormal(6, 0.4, 200).round(4)
    rent[[20, 21]] = np.quantile(rent, 0.5, method="nearest") + 0.0001
    trade = np.where(np.arange(200) == 30, "ferryman", rng.choice(["farmer", "clerk"], 200))
    frame = pl.DataFrame({"home": home, "rent": rent[home], "trade": trade[home]})
    data = sm.read(frame, keys="trade", numeric="rent", household="home")
    drawn = sm.Synthesize(["trade", "rent"], model=model).apply(data, ONCE)  # type: ignore[arg-type]
    assert "ferryman" not in drawn["trade"]
    assert (drawn.numbers("rent") == rent[20]).sum() <= 1  # by chance, among numbers of four decimals


def test_drawn_weights_match_values_and_total() -> None:
    rng = np.random.default_rng(6)
    region = rng.integers(2, size=2000)
    weight = np.round(100 + 400 * region + rng.normal(0, 10, 2000), 3)
    data = sm.read(pl.DataFrame({"region": region.astype(str), "w": weight}), keys="region", weight="w")
    own, drawn = (sm.Synthesize(on).apply(data, ONCE) for on in (["region"], ["region", "w"]))
    assert drawn.weights.sum() == pytest.approx(weight.sum())
    share = [float(d.weights[d.codes("region") == 1].sum() / d.weights.sum()) for d in (data, drawn, own)]
    assert abs(share[1] - share[0]) < 0.03 < abs(share[2] - share[0])


def test_trees_without_an_original_record_are_not_drawn_from() -> None:
    """Of two records, one bag in sixteen has neither."""
    data = sm.read(pl.DataFrame({"sex": ["f", "f"], "wage": [3.0, 3.0]}), keys="sex", numeric="wage")
    method = sm.methods.Synthesize(on=("sex", "wage"), model="adversarial forest")
    for seed in range(20):
        assert len(method.apply(data, Stream.of_seed(seed))) == 2
