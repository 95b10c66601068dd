"""The utility measures: each against its plain formula, on every kind of file, and on invalid input."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import polars as pl
import pytest
from scipy import optimize, stats

import sdcmap as sm
from sdcmap.core.measure import Measure
from sdcmap.core.streams import Stream
from sdcmap.data.cells import common_codes
from sdcmap.data.microdata import Microdata
from sdcmap.errors import PlanError, SchemaError, Undefined
from sdcmap.kernels.arrays import Array
from sdcmap.kernels.statistics.moments import moments
from sdcmap.kernels.statistics.precision import NORMAL_95
from sdcmap.kernels.statistics.regression import Design, least_squares, logit
from sdcmap.utility._numeric import WeightedMeasure
from sdcmap.utility._propensity_models import compute_pmse
from sdcmap.utility.query_error import range_sums, ranges_around

ONCE = Stream.of_seed(11)


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def people(n: int = 400, gone: float = 0.0) -> Microdata:
    """Return two keys, a numeric age that is also a key, an income that depends on all, and a weight."""
    draw = rng(5)
    sex, region = draw.integers(0, 2, n), draw.integers(0, 4, n)
    age = draw.integers(18, 80, n)
    income = np.round(np.exp(2.5 + 0.02 * age + 0.3 * sex + 0.1 * region + draw.normal(0, 0.4, n)), 1)
    frame = pl.DataFrame(
        {
            "sex": np.array(["f", "m"])[sex],
            "region": np.array(list("nesw"))[region],
            "age": age,
            "income": np.where(draw.random(n) < gone, np.nan, income),
            "wealth": np.round(income * draw.gamma(2, 2, n)),
            "weight": draw.integers(1, 5, n).astype(float),
        }
    )
    return sm.read(frame.fill_nan(None), keys=["sex", "region", "age"], numeric=["income", "wealth"], weight="weight")


@pytest.fixture(scope="module")
def data() -> Microdata:
    return people()


def value(measure: Measure, original: Microdata, masked: Microdata, seed: int = 1) -> float:
    return measure.apply(original, masked, rng(seed)).value


def synthetic(data: Microdata, seed: int, n: int | None = None) -> Microdata:
    """Return records drawn from the file itself: as good as synthetic data can be."""
    drawn = data.take(rng(seed).integers(0, len(data), n or len(data)))
    return replace(drawn, origin=None, paired=False)


def shuffled(data: Microdata, name: str, seed: int = 3) -> Microdata:
    """Return one variable in another order, which preserves every margin and destroys every relation to it."""
    return data.change(None, {name: data.column(name).values[rng(seed).permutation(len(data))]})


def repeated(data: Microdata) -> Microdata:
    """Return the file with each record repeated as often as its weight, each with weight 1."""
    rows = np.repeat(np.arange(len(data)), data.weights.astype(int))
    return Microdata(data.schema, {name: data.column(name).take(rows) for name in data.names})


# ---- moments ----------------------------------------------------------------------------------------------------
NOISE = sm.Noise(on=["income", "wealth"], variance=0.3)


def test_moment_changes_match_plain_formulas(data: Microdata) -> None:
    masked = NOISE.apply(data, ONCE)
    x, z = (d.matrix(("income", "wealth")) for d in (data, masked))
    c, d = np.cov(x.T), np.cov(z.T)
    sd = np.sqrt(np.diag(c))
    r, q = np.corrcoef(x.T), np.corrcoef(z.T)
    e, f = (np.linalg.eigvalsh(m)[::-1] for m in (r, q))
    expected = {
        "mean": np.mean(np.abs(z.mean(axis=0) - x.mean(axis=0)) / sd),
        "variance": np.mean(np.abs(np.diag(d) / np.diag(c) - 1)),
        "covariance": abs(d[0, 1] - c[0, 1]) / sd.prod(),
        "correlation": abs(q[0, 1] - r[0, 1]),
        "eigenvalues": np.mean(np.abs(f - e) / e),
    }
    for of, number in expected.items():
        assert value(sm.utility.MomentChange(on=["income", "wealth"], of=of), data, masked) == pytest.approx(
            number, rel=1e-9
        ), of


def test_moments_use_known_pairs() -> None:
    """With missing values, each pair uses the records that have both."""
    x = rng(2).normal(size=(60, 3))
    x[rng(3).random(x.shape) < 0.2] = np.nan
    result = moments(x, np.ones(60))
    for j, k in combinations(range(3), 2):
        both = ~np.isnan(x[:, [j, k]]).any(axis=1)
        assert result.covariance[j, k] == pytest.approx(np.cov(x[both, j], x[both, k])[0, 1])
        assert result.correlation[j, k] == pytest.approx(np.corrcoef(x[both, j], x[both, k])[0, 1])
    assert result.mean == pytest.approx(np.nanmean(x, axis=0))


@pytest.mark.parametrize(
    "measure",
    [
        sm.utility.MomentChange(of="mean"),
        sm.utility.MomentChange(of="correlation"),
        sm.utility.MomentChange(of="eigenvalues"),
        sm.utility.KolmogorovSmirnov(),
        sm.utility.SseSst(),
        sm.utility.SuppressionLoss(),
        sm.utility.CategoryLoss(),
        sm.utility.TableError(on=["sex", "region"], order=2),
    ],
    ids=lambda measure: measure.text,
)
def test_weighted_measure_equals_repeated_records(measure: WeightedMeasure) -> None:
    """A weighted measure is the plain one of the file with each record repeated; of moments up to n/(n - 1)."""
    original = people(300)
    masked = sm.Chain([NOISE, sm.Swap(on="region", rate=0.2), sm.Suppress(on=["sex", "region"], k=60)])
    released = masked.apply(original, ONCE)
    long, out = repeated(original), repeated(released)
    as_change = long.change(
        None,
        {name: out.column(name).values for name in ("income", "wealth", "sex", "region")},
        {name: out.column(name).levels for name in ("sex", "region") if out.column(name).levels is not None},
    )
    loose = 5e-3 if isinstance(measure, sm.utility.MomentChange) else 1e-9
    result = value(replace(measure, weighted=True), original, released)
    assert result == pytest.approx(value(measure, long, as_change), rel=loose)
    assert result != pytest.approx(value(measure, original, released), rel=1e-6)


# ---- margins ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("weighted", [False, True])
def test_distances_match_scipy(weighted: bool) -> None:
    original = people(200, gone=0.1)
    masked = sm.methods.Sample(rate=0.4).apply(NOISE.apply(original, ONCE), ONCE)
    x, y = (d["income"] for d in (original, masked))
    w, v = (d.weights if weighted else np.ones(len(d)) for d in (original, masked))
    x, w, y, v = x[~np.isnan(x)], w[~np.isnan(x)], y[~np.isnan(y)], v[~np.isnan(y)]
    spread = np.sqrt(np.cov(x, aweights=w)) if weighted else x.std(ddof=1)
    expected = stats.wasserstein_distance(x, y, w, v) / spread
    assert value(sm.utility.Wasserstein("income", weighted), original, masked) == pytest.approx(expected)
    at = np.concatenate([x, y])[:, np.newaxis]
    gap = np.abs(((x <= at) * w).sum(axis=1) / w.sum() - ((y <= at) * v).sum(axis=1) / v.sum()).max()
    assert value(sm.utility.KolmogorovSmirnov("income", weighted), original, masked) == pytest.approx(gap)
    if not weighted:
        assert gap == pytest.approx(stats.ks_2samp(x, y).statistic)


def test_shuffle_preserves_margins(data: Microdata) -> None:
    masked = shuffled(data, "income")
    for measure in (sm.utility.KolmogorovSmirnov(), sm.utility.Wasserstein(), sm.utility.MomentChange(of="variance")):
        assert value(measure, data, masked) == pytest.approx(0, abs=1e-12)
    assert value(sm.utility.MomentChange(of="correlation"), data, masked) > 0.3
    assert value(sm.utility.SseSst(on="income"), data, masked) == pytest.approx(2, abs=0.4)  # two independent values


def test_parts_contain_each_variable(data: Microdata) -> None:
    result = sm.utility.KolmogorovSmirnov(summary="worst").apply(data, sm.Noise(on="income").apply(data, ONCE), rng())
    assert result.parts["on wealth"] == 0 < result.parts["on income"] == result.value == result.parts["worst"]


def test_ordinal_numbers_have_a_distribution() -> None:
    """An age that is an ordinal key: top coding changes the distribution above the limit only."""
    ages = sm.read({"age": np.arange(100)}, kinds={"age": "ordinal"}, keys=["age"])
    masked = sm.TopCode(on="age", top=79).apply(ages, ONCE)
    assert value(sm.utility.KolmogorovSmirnov(on="age"), ages, masked) == pytest.approx(0.20)


# ---- tables, categories, suppression ---------------------------------------------------------------------------------
def test_table_error_matches_plain_formula(data: Microdata) -> None:
    masked = sm.Chain([sm.Swap(on="region", rate=0.1), sm.Swap(on="sex", rate=0.1)]).apply(data, ONCE)
    names = ("sex", "region", "age")
    errors = []
    for size in (1, 2, 3):
        for chosen in combinations(names, size):
            before, after = (d.frame().group_by(chosen).len() for d in (data, masked))
            both = before.join(after, on=chosen, how="left", suffix="_after").fill_null(0)
            errors.append(((both["len_after"] - both["len"].cast(pl.Int64)).abs() / both["len"]).mean())
    result = sm.utility.TableError().apply(data, masked, rng())
    assert result.value == pytest.approx(np.mean(errors))
    assert result.parts["worst"] == pytest.approx(max(errors))
    assert value(sm.utility.TableError(order=1), data, masked) == 0  # swapping keeps the margins


def test_table_error_of_sample_scales_counts(data: Microdata) -> None:
    half = data.take(np.arange(200))
    share = (data["sex"][:200] == "f").sum() * 2, (data["sex"] == "f").sum()
    f, m = abs(share[0] - share[1]) / share[1], abs(share[0] - share[1]) / (400 - share[1])
    assert value(sm.utility.TableError(on="sex"), data, half) == pytest.approx((f + m) / 2)


def test_merged_categories_lose_their_detail(data: Microdata) -> None:
    merged = sm.Recode(on="region", merge=[["n", "e"]]).apply(data, ONCE)
    moved = np.isin(data["region"], ["n", "e"]).mean()
    result = sm.utility.CategoryLoss().apply(data, merged, rng())
    assert result.parts["on region"] == pytest.approx(moved / 3)  # 2 of 4 categories in one: (2 - 1)/(4 - 1)
    assert result.value == pytest.approx(moved / 3 / 5)
    table = sm.utility.TableError(on="region", order=1).apply(data, merged, rng())
    assert (table.parts["emptied"], table.parts["new"]) == (0.5, pytest.approx(moved))


def test_merged_category_may_keep_old_name(data: Microdata) -> None:
    merged = sm.Recode(on="region", merge=[["n", "e"]], labels=["e"]).apply(data, ONCE)
    moved = np.isin(data["region"], ["n", "e"]).mean()
    assert value(sm.utility.CategoryLoss(on="region"), data, merged) == pytest.approx(moved / 3)


def test_interval_loses_range_of_its_numbers(data: Microdata) -> None:
    coded = sm.Recode(on="income", breaks=[0, 30, 1e6]).apply(data, ONCE)
    x = data["income"]
    low = x <= 30
    expected = (low * np.ptp(x[low]) + ~low * np.ptp(x[~low])) / np.ptp(x)
    assert value(sm.utility.CategoryLoss(on="income"), data, coded) == pytest.approx(expected.mean())
    assert sm.utility.CategoryLoss(on="income").records(data, coded) == pytest.approx(expected)


def test_swapping_and_noise_lose_no_detail(data: Microdata) -> None:
    masked = sm.Chain([NOISE, sm.Swap(on="region", rate=0.3)]).apply(data, ONCE)
    assert value(sm.utility.CategoryLoss(), data, masked) == 0


def test_suppressed_values_are_counted(data: Microdata) -> None:
    masked = sm.Suppress(on=["sex", "region"], k=60).apply(data, ONCE)
    lost = masked.missing("sex").sum() + masked.missing("region").sum()
    assert lost > 0
    result = sm.utility.SuppressionLoss(on=["sex", "region"]).apply(data, masked, rng())
    assert result.value == pytest.approx(lost / 800)
    assert result.parts["records not released"] == 0
    assert value(sm.utility.CategoryLoss(on=["sex", "region"]), data, masked) == pytest.approx(lost / 800)
    sample = sm.utility.SuppressionLoss().apply(data, sm.methods.Sample(rate=0.25).apply(data, ONCE), rng())
    assert (sample.value, sample.parts["records not released"]) == (0, 0.75)


# ---- queries --------------------------------------------------------------------------------------------------------
def test_range_sums_match_plain_formula() -> None:
    draw = rng(8)
    columns = draw.integers(0, 9, (3, 9000)).astype(float)
    columns[draw.random(columns.shape) < 0.1] = np.nan
    weights = draw.random(9000)
    low = draw.integers(0, 9, (20, 3)).astype(float)
    high = low + draw.integers(0, 4, (20, 3))
    low[draw.random(low.shape) < 0.4] = np.nan
    for q, result in enumerate(range_sums(columns, weights, low, high)):
        inside = np.ones(9000, dtype=bool)
        for v in range(3):
            if not np.isnan(low[q, v]):
                inside &= (columns[v] >= low[q, v]) & (columns[v] <= high[q, v])
        assert result == pytest.approx(weights[inside].sum())
        assert range_sums(columns, np.empty(0), low[[q]], high[[q]])[0] == inside.sum()


def test_query_error_of_suppressed_values_is_their_share(data: Microdata) -> None:
    """Every query on one variable loses the suppressed values in its range, on average their share."""
    gone = rng(2).random(len(data)) < 0.3
    masked = data.change(None, {"income": np.where(gone, np.nan, data["income"])})
    result = sm.utility.QueryError(on="income", ways=1, width=0.5).apply(data, masked, rng())
    assert result.value == pytest.approx(gone.mean(), abs=0.03)  # ranges of 200 records: sd 0.03 each, averaged
    assert 0 < (result.se or 0) < 0.005


@pytest.mark.parametrize("width", [0.01, 0.3, 0.8, 1.0])
def test_ranges_contain_stated_share(width: float) -> None:
    known = np.sort(rng(3).normal(size=1000))
    low, high = ranges_around(known, known[rng(4).integers(0, 1000, 500)], width, rng(5))
    held = [((known >= a) & (known <= b)).mean() for a, b in zip(low, high, strict=True)]
    assert held == pytest.approx([width] * 500, abs=1e-12)


def test_query_error_falls_with_the_width_of_its_ranges(data: Microdata) -> None:
    """As means over 10 draws of the noise and of the queries."""
    draws = [sm.Noise(on="income", variance=0.5).apply(data, Stream.of_seed(seed)) for seed in range(10)]
    narrow, wide = (
        np.mean([value(sm.utility.QueryError(on="income", ways=1, width=w), data, f, s) for s, f in enumerate(draws)])
        for w in (0.05, 0.5)
    )
    assert narrow > 1.5 * wide > 0


def test_queries_are_shared_until_resampled(data: Microdata) -> None:
    masked = sm.Noise(on="income", variance=0.5).apply(data, Stream.of_seed(1))
    measure = sm.utility.QueryError(on="income", ways=1)
    assert value(measure, data, masked, 1) == value(measure, data, masked, 2)
    fresh = measure.resample()
    assert fresh.text == "QueryError(on='income', ways=1, draw=1)"
    assert value(fresh, data, masked, 1) != value(measure, data, masked, 1)


# ---- intervals ------------------------------------------------------------------------------------------------------
def test_regressions_match_plain_formulas() -> None:
    draw = rng(4)
    x = np.column_stack([np.ones(300), draw.normal(size=(300, 2))])
    y = x @ [1.0, 2.0, -1.0] + draw.normal(size=300)
    w = draw.random(300) + 0.1
    design = Design((x[:, 1], x[:, 2]), ((), (0,), (1,)), 300)
    plain = least_squares(design, y, None)
    inverse = np.linalg.inv(x.T @ x)
    assert plain is not None
    assert plain.slopes == pytest.approx(np.linalg.lstsq(x, y)[0])
    assert plain.covariance == pytest.approx(inverse * ((y - x @ plain.slopes) ** 2).sum() / 297)
    weighted = least_squares(design, y, w)
    assert weighted is not None
    root = np.sqrt(w)[:, np.newaxis]
    assert weighted.slopes == pytest.approx(np.linalg.lstsq(x * root, y * root[:, 0])[0])
    bread = np.linalg.inv((x * root).T @ (x * root))
    e = (w * (y - x @ weighted.slopes))[:, np.newaxis] * x
    assert weighted.covariance == pytest.approx(bread @ e.T @ e @ bread * 300 / 297)
    event = (draw.random(300) < 1 / (1 + np.exp(-x @ [0.2, 1.0, -0.5]))).astype(float)
    fitted = logit(design, event, 1 - event, ridge=0.0)
    assert fitted is not None
    fit, _ = fitted
    best = optimize.minimize(lambda b: np.logaddexp(0, x @ b).sum() - event @ x @ b, np.zeros(3), tol=1e-10)
    assert fit.slopes == pytest.approx(best.x, abs=1e-5)
    p = 1 / (1 + np.exp(-x @ fit.slopes))
    assert fit.covariance == pytest.approx(np.linalg.inv((x * (p * (1 - p))[:, np.newaxis]).T @ x))


def test_overlap_of_means_and_proportions_by_hand(data: Microdata) -> None:
    masked = data.take(np.arange(0, 400, 2))
    shares = []
    for y, z in [(d, d[::2]) for d in (data["income"], data["sex"] == "f", data["sex"] == "m")]:
        (a, b), (c, d) = (
            (
                t.mean() - NORMAL_95 * t.std(ddof=1) / np.sqrt(len(t)),
                t.mean() + NORMAL_95 * t.std(ddof=1) / np.sqrt(len(t)),
            )
            for t in (y.astype(float), z.astype(float))
        )
        meet = max(0.0, min(b, d) - max(a, c))
        shares.append((meet / (b - a) + meet / (d - c)) / 2)
    assert value(sm.utility.IntervalOverlap(on=["income", "sex"]), data, masked) == pytest.approx(np.mean(shares))


def test_overlap_of_stated_regression(data: Microdata) -> None:
    model = sm.utility.IntervalOverlap(models="income ~ age + sex + region")
    assert value(model, data, data.change(None, {})) == 1
    weak, strong = (value(model, data, shuffled(data, name)) for name in ("region", "age"))
    assert 0 <= strong < weak < 1
    assert value(sm.utility.IntervalOverlap(on="income"), data, shuffled(data, "age")) == 1
    logistic = sm.utility.IntervalOverlap(models="sex ~ income + age")
    assert value(logistic, data, shuffled(data, "income")) < value(logistic, data, data.change(None, {})) == 1
    masked = NOISE.apply(data, ONCE)
    overlap = sm.utility.IntervalOverlap(on="wealth", models=["income ~ age", "income ~ age:sex"])
    both = overlap.apply(data, masked, rng())
    assert set(both.parts) == {"on wealth", "on income ~ age", "on income ~ age:sex", "lost"}
    assert both.value < 1 and len(masked) == 400
    short, long = (
        sm.utility.IntervalOverlap(models=f"income ~ {right}") for right in ("age*sex", "age + sex + age:sex")
    )
    assert value(short, data, masked) == value(long, data, masked)


def test_recoded_estimates_count_as_lost(data: Microdata) -> None:
    merged = sm.Recode(on="region", merge=[["n", "e"]]).apply(data, ONCE)
    result = sm.utility.IntervalOverlap(on=["region", "income"]).apply(data, merged, rng())
    assert result.parts["lost"] == pytest.approx(2 / 5)  # two of four proportions and no mean
    assert result.value == pytest.approx(3 / 5)


@pytest.mark.parametrize("rate", [0.5, 0.1])
def test_sample_widens_intervals_by_root_of_rate(rate: float) -> None:
    original = people(20_000)
    masked = sm.methods.Sample(rate=rate).apply(original, ONCE)
    for weighted in (False, True):
        result = sm.utility.IntervalWidth(on=["income", "sex"], weighted=weighted).apply(original, masked, rng())
        assert result.value == pytest.approx(1 - np.sqrt(rate), abs=0.02)
        assert result.parts["ratio"] == pytest.approx(1 / np.sqrt(rate), rel=0.05)


def test_microaggregation_narrows_intervals(data: Microdata) -> None:
    masked = sm.Microaggregate(on=["income", "wealth"], size=40).apply(data, ONCE)
    result = sm.utility.IntervalWidth(on=["income", "wealth"]).apply(data, masked, rng())
    assert result.value > 0.03 and result.parts["ratio"] < 1


# ---- propensity -----------------------------------------------------------------------------------------------------
def plain_pmse(original: Microdata, masked: Microdata, order: int) -> float:
    """A logit of all rows of two categorical variables, by a general optimizer."""
    a, b = (common_codes(original, masked, name) for name in ("sex", "region"))
    x = [np.ones(len(a)), a == 1, *(b == level for level in np.unique(b)[1:])]
    if order == 2:
        x += [x[1] * other for other in x[2:]]
    matrix = np.column_stack(x).astype(float)
    y = np.repeat([0.0, 1.0], [len(original), len(masked)])

    def loss(slopes: Array) -> tuple[float, Array]:
        eta = matrix @ slopes
        return float(np.logaddexp(0, eta).sum() - y @ eta), matrix.T @ (1 / (1 + np.exp(-eta)) - y)

    best = optimize.minimize(loss, np.zeros(matrix.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-8}).x
    return float(((1 / (1 + np.exp(-matrix @ best)) - y.mean()) ** 2).mean())


@pytest.mark.parametrize("order", [1, 2])
def test_pmse_of_cells_matches_rows(data: Microdata, order: int) -> None:
    masked = sm.Chain([sm.PRAM(on="region"), sm.Swap(on="sex", rate=0.1)]).apply(data, ONCE)
    result = value(sm.utility.Propensity(on=["sex", "region"], order=order), data, masked)
    assert result == pytest.approx(plain_pmse(data, masked, order), rel=1e-5)


@pytest.mark.parametrize("name", ["income", "region"])
def test_two_way_terms_detect_shuffle(name: str) -> None:
    original = people(2000)
    on = ("sex", "region", "age", "income")
    masked = shuffled(original, name)
    assert value(sm.utility.Propensity(on=on, order=1), original, masked) == pytest.approx(0, abs=1e-12)
    result = sm.utility.Propensity(on=on, order=2).apply(original, masked, rng())
    assert result.value > 3 * result.parts["null"]
    trees = sm.utility.Propensity(on=on, model="trees").apply(original, masked, rng())
    assert trees.value > 1.2 * trees.parts["null"]


def test_null_ratio_of_synthetic_data_is_one_on_average() -> None:
    """Records drawn from the file itself: the mean ratio over 60 draws is 1 within 4 standard errors and 3 % for the
    first-order formula."""
    original = people(1500)
    measure = sm.utility.Propensity(on=["sex", "region", "income"])
    ratios = [measure.apply(original, synthetic(original, s), rng()).parts["ratio"] for s in range(60)]
    error = np.std(ratios, ddof=1) / np.sqrt(60)
    assert abs(np.mean(ratios) - 1) < 4 * error + 0.03
    assert error < 0.08


def test_null_of_a_sample() -> None:
    """A simple random sample without further masking: pMSE over 60 samples has the mean of its null, as above."""
    original = people(1500)
    measure = sm.utility.Propensity(on=["sex", "region", "income"])
    result = [measure.apply(original, original.take(rng(s).permutation(1500)[:500]), rng()) for s in range(60)]
    ratios = [one.value / one.parts["null"] for one in result]
    assert abs(np.mean(ratios) - 1) < 4 * np.std(ratios, ddof=1) / np.sqrt(60) + 0.03
    assert "ratio" not in result[0].parts


def test_null_of_pairs_matches_swapped_labels() -> None:
    """The closed form against 200 random swaps of labels within pairs, each with its own logit: within 4 standard errors
    and 5 % for the first order. The usual null is far off."""
    original = people(800)
    masked = sm.Noise(on="income", variance=0.05).apply(original, ONCE)
    result = sm.utility.Propensity(on=["sex", "income"]).apply(original, masked, rng())
    x, z = ((d["income"] - original["income"].mean()) / original["income"].std() for d in (original, masked))
    sex = np.tile(original["sex"] == "m", 2)
    design = Design((sex, np.concatenate([x, z])), ((), (0,), (1,), (1, 1), (0, 1)), 1600)
    draw, resampled = rng(9), []
    for _ in range(200):
        swap = draw.random(800) < 0.5
        label = np.concatenate([swap, ~swap]).astype(float)
        fitted = logit(design, label, 1 - label)
        pmse = None if fitted is None else compute_pmse(fitted[1], label, 1 - label)
        assert pmse is not None
        resampled.append(pmse)
    error = np.std(resampled, ddof=1) / np.sqrt(200)
    assert abs(result.parts["null"] - np.mean(resampled)) < 4 * error + 0.05 * np.mean(resampled)
    usual = 4 / 8 / 1600
    assert result.parts["null"] < usual / 4


def many_terms(n: int) -> Microdata:
    """Return three variables with 20 categories, two of them related, and a number: 1,200 terms."""
    draw = rng(1)
    a, b, c = draw.integers(0, 20, (3, n))
    frame = pl.DataFrame({"a": a, "b": np.where(draw.random(n) < 0.4, a, b), "c": c}).cast(pl.String)
    return sm.read(frame.with_columns(x=draw.normal(a / 20)), keys=["a", "b", "c"], numeric=["x"])


def test_null_ratio_with_many_terms_is_one_on_average() -> None:
    """Records drawn from the file itself, of which the logit has a term for each five: the mean ratio over 10 draws is 1
    within 4 standard errors and 5 % for the first order."""
    original = many_terms(3000)
    measure = sm.utility.Propensity()
    result = [measure.apply(original, synthetic(original, s), rng(s)) for s in range(10)]
    ratios = [one.parts["ratio"] for one in result]
    error = np.std(ratios, ddof=1) / np.sqrt(10)
    assert abs(np.mean(ratios) - 1) < 4 * error + 0.05
    assert error < 0.03
    assert result[0].parts["ridge"] == 1


def test_null_of_a_sample_with_many_terms() -> None:
    original = many_terms(3000)
    measure = sm.utility.Propensity()
    result = [measure.apply(original, original.take(rng(s).permutation(3000)[:1000]), rng()) for s in range(8)]
    ratios = [one.value / one.parts["null"] for one in result]
    assert abs(np.mean(ratios) - 1) < 4 * np.std(ratios, ddof=1) / np.sqrt(8) + 0.05


def test_null_of_pairs_with_many_terms_matches_swapped_labels() -> None:
    """First-order draws against 8 swaps of labels within pairs, each with its own logit; masking is clearly detected."""
    original = many_terms(2000)
    masked = sm.Chain([sm.PRAM(on="a"), sm.Noise(on="x", variance=0.1)]).apply(original, ONCE)
    both = pl.concat([original.frame(), masked.frame()])
    measure = sm.utility.Propensity()
    resampled = []
    for s in range(8):
        swap = rng(s).random(2000) < 0.5
        rows = np.arange(2000) + 2000 * swap, np.arange(2000) + 2000 * ~swap
        files = (sm.read(both[own], keys=["a", "b", "c"], numeric=["x"]) for own in rows)
        resampled.append(measure.apply(*files, rng()).value)
    result = measure.apply(original, masked, rng())
    error = np.std(resampled, ddof=1) / np.sqrt(8)
    assert abs(result.parts["null"] - np.mean(resampled)) < 4 * error + 0.05 * np.mean(resampled)
    assert result.value > 1.2 * result.parts["null"]
    assert "null" not in replace(measure, resamples=0).apply(original, masked, rng()).parts


def test_trees_have_a_null_by_resampling(data: Microdata) -> None:
    trees = sm.utility.Propensity(on=["sex", "region", "income"], model="trees")
    drawn = trees.apply(data, synthetic(data, 3), rng())
    assert 0.5 < drawn.parts["ratio"] < 2
    assert "null" not in replace(trees, resamples=0).apply(data, synthetic(data, 3), rng()).parts
    assert trees.apply(data, synthetic(data, 3), rng()) == drawn


def test_new_categories_are_recognized_with_certainty(data: Microdata) -> None:
    merged = sm.Recode(on="region", merge=[list("nesw")]).apply(data, ONCE)
    assert value(sm.utility.Propensity(on="region"), data, merged) == pytest.approx(0.25, abs=1e-4)


# ---- every measure on files of every make ----------------------------------------------------------------------------
MEASURES: tuple[Measure, ...] = (
    sm.utility.CategoryLoss(),
    sm.utility.IntervalOverlap(models=["income ~ age + sex"], on=["income", "sex"]),
    sm.utility.IntervalWidth(),
    sm.utility.KolmogorovSmirnov(),
    *(sm.utility.MomentChange(of=of) for of in ("mean", "variance", "covariance", "correlation", "eigenvalues")),
    sm.utility.Propensity(),
    sm.utility.Propensity(model="trees", resamples=2),
    sm.utility.QueryError(queries=200),
    sm.utility.SseSst(),
    sm.utility.SuppressionLoss(),
    sm.utility.TableError(),
    sm.utility.Wasserstein(),
)
NEEDS_NUMBERS = ("KolmogorovSmirnov", "MomentChange", "Propensity", "QueryError", "SseSst", "Wasserstein")
NEEDS_PAIRS = ("CategoryLoss", "SseSst", "SuppressionLoss")


def make_file(data: Microdata) -> dict[str, Microdata]:
    suppressed = {"income": np.where(np.arange(len(data)) % 5 == 0, np.nan, data["income"])}
    return {
        "masked": sm.Chain([NOISE, sm.Swap(on="region", rate=0.2)]).apply(data, ONCE),
        "recoded": sm.Recode(on="region", merge=[["n", "e"]]).apply(data, ONCE),
        "intervals": sm.Recode(on="income", bins=4).apply(data, ONCE),
        "suppressed": sm.Suppress(on=["sex", "region"], k=60).apply(data.change(None, suppressed), ONCE),
        "sampled": sm.methods.Sample(rate=0.3).apply(data, ONCE),
        "synthetic": synthetic(data, 1, 350),
    }


@pytest.mark.parametrize("measure", MEASURES, ids=lambda measure: measure.text)
def test_every_kind_of_file_has_value_or_reason(measure: Measure, data: Microdata) -> None:
    name = type(measure).__name__
    for make, masked in make_file(data).items():
        no_numbers = make == "intervals" and name in NEEDS_NUMBERS
        no_pairs = make == "synthetic" and name in NEEDS_PAIRS
        for each in (measure, *([replace(measure, weighted=True)] if "trees" not in measure.text else [])):
            if no_numbers or no_pairs:
                with pytest.raises(Undefined, match="recoded into categories" if no_numbers else "synthetic"):
                    each.apply(data, masked, rng())
                continue
            result = each.apply(data, masked, rng())
            low, high = each.bounds
            assert np.isfinite(result.value) and (low or 0) <= result.value <= (high or np.inf), make
            assert all(np.isfinite(part) for part in result.parts.values())


@pytest.mark.parametrize("measure", MEASURES, ids=lambda measure: measure.text)
def test_masked_file_is_worse_than_original(measure: Measure, data: Microdata) -> None:
    whole = value(measure, data, data.change(None, {}))
    make = {"CategoryLoss": "recoded", "SuppressionLoss": "suppressed"}.get(type(measure).__name__, "masked")
    loss = value(measure, data, make_file(data)[make])
    assert loss < whole == 1 if measure.direction == "higher" else loss > whole == 0


# ---- bad input ------------------------------------------------------------------------------------------------------
USES_RELEASED_WEIGHTS = [m for m in MEASURES if "trees" not in m.text and type(m).__name__ not in NEEDS_PAIRS]


@pytest.mark.parametrize("measure", USES_RELEASED_WEIGHTS, ids=lambda measure: measure.text)
def test_invalid_released_weights_are_undefined(measure: Measure) -> None:
    """A file that was made elsewhere; `read` rejects such weights in an original."""
    original = people(40)
    for weights, words in ((np.zeros(40), "is 0 in every record"), (-np.ones(40), "missing or negative in 40 records")):
        with pytest.raises(Undefined, match=words):
            replace(measure, weighted=True).apply(original, original.change(None, {"weight": weights}), rng())


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: sm.utility.MomentChange(of="median"), "must be one of 'mean', 'variance'"),
        (lambda: sm.utility.QueryError(queries=5), "QueryError.queries must be in [100, inf). Got 5."),
        (lambda: sm.utility.QueryError(width=0), "QueryError.width must be in (0, 1]. Got 0."),
        (lambda: sm.utility.TableError(order=0), "TableError.order must be in [1, inf). Got 0."),
        (lambda: sm.utility.Propensity(order=3), "Propensity.order must be one of 1, 2."),
        (lambda: sm.utility.Propensity(model="trees", weighted=True), "Propensity.weighted needs model = 'logit'."),
        (lambda: sm.utility.IntervalOverlap(models="income"), 'must be texts such as "wage ~ age + sex". Got'),
        (lambda: sm.utility.IntervalOverlap(models="income ~ income"), "must be texts such as"),
        (lambda: sm.utility.IntervalOverlap(models="income ~ age + "), "must be texts such as"),
    ],
)
def test_parameter_out_of_range_is_reported(make: type, words: str) -> None:
    with pytest.raises(PlanError) as error:
        make()
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("measure", "words"),
    [
        (sm.utility.KolmogorovSmirnov(on="incom"), "no column 'incom'. Did you mean 'income'?"),
        (
            sm.utility.KolmogorovSmirnov(on="sex"),
            "KolmogorovSmirnov measures numeric and ordinal variables; 'sex' is nominal.",
        ),
        (
            sm.utility.MomentChange(on="income", of="correlation"),
            "MomentChange of correlation needs at least 2 variables.",
        ),
        (sm.utility.IntervalOverlap(models="income ~ agee"), "no column 'agee'. Did you mean 'age'?"),
        (sm.utility.IntervalOverlap(models="region ~ age"), "must be numeric or have 2 categories."),
    ],
)
def test_incompatible_measure_gives_reason(data: Microdata, measure: Measure, words: str) -> None:
    with pytest.raises(SchemaError) as error:
        measure.apply(data, data.change(None, {}), rng())
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("measure", "words"),
    [
        (sm.utility.MomentChange(on="x"), "constant in the original was changed"),
        (sm.utility.Wasserstein(on="x"), "constant in the original and was changed"),
        (sm.utility.SseSst(on="x"), "constant in the original and was changed"),
        (sm.utility.SseSst(on="z"), "no measured variable varies"),
        (sm.utility.KolmogorovSmirnov(on="z"), "no value of 'z' is known"),
        (sm.utility.SuppressionLoss(on="z"), "no measured value is known"),
        (sm.utility.QueryError(on="z"), "no measured value is known"),
        (sm.utility.IntervalWidth(on="x"), "every estimate from the original has an interval of width 0"),
        (sm.utility.IntervalOverlap(on="z"), "can be estimated from the original"),
        (sm.utility.MomentChange(on=["y", "twice"], of="eigenvalues"), "eigenvalue of the correlation matrix is 0"),
    ],
    ids=lambda part: part.text if isinstance(part, Measure) else "",
)
def test_undefined_value_gives_reason(measure: Measure, words: str) -> None:
    y = rng(1).normal(size=30)
    frame = {"x": np.full(30, 2.0), "y": y, "twice": 2 * y, "z": np.full(30, np.nan)}
    flat = sm.read(pl.DataFrame(frame).fill_nan(None), numeric="all")
    with pytest.raises(Undefined, match=words):
        measure.apply(flat, flat.change(None, {"x": np.arange(30.0)}), rng())


@pytest.mark.parametrize(("levels", "words"), [(100, r"terms, more than 6,000"), (9_000, r"\d\d,\d{3},\d{3} terms")])
def test_too_many_terms_are_rejected_early(levels: int, words: str) -> None:
    draw = rng(1)
    frame = pl.DataFrame({name: draw.integers(0, levels, 20_000) for name in "ab"}).cast(pl.String)
    many = sm.read(frame, keys=["a", "b"])
    with pytest.raises(Undefined, match=words):
        sm.utility.Propensity().apply(many, shuffled(many, "a"), rng())


@pytest.mark.parametrize("cells", [3, 600, 1783, 5001])
def test_tables_without_common_cell_have_distance_one(cells: int) -> None:
    """Rounding does not exceed the largest possible distance, however many cells there are."""
    data = sm.read(pl.DataFrame({"k": [f"a{i}" for i in range(cells)]}), keys=["k"])
    other = sm.read(pl.DataFrame({"k": [f"b{i}" for i in range(cells)]}), keys=["k"])
    assert 1 - 1e-12 < sm.Hellinger().score(data, other, np.random.default_rng(1)).value <= 1
