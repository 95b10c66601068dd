"""Risk measures: each equals its plain formula, attacks behave in extreme cases, and invalid input is reported."""

from __future__ import annotations

import math
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sdcmap as sm
from sdcmap.data.cells import recode_to_released_categories
from sdcmap.errors import PlanError, SchemaError, Undefined
from sdcmap.kernels.arrays import Array
from sdcmap.kernels.tables.attribution import ANY, closer_share, nearest
from sdcmap.kernels.tables.combinations import sets_up_to, unsafe_combinations
from sdcmap.kernels.tables.frequency_risks import individual_risks
from sdcmap.risk import RISKS
from sdcmap.risk._frequencies import count_frequencies, find_minimal_uniques
from sdcmap.risk.population_uniqueness import main_effect_means, two_way_means, unique_risks
from sdcmap.testing import check_measure
from sdcmap.testing.laws import with_missing

KEYS = ("a", "b", "c")
SMALL = st.integers(0, 10_000)
ON_KEYS = (
    sm.KAnonymity, sm.risk.IndividualRisk, sm.risk.ExpectedReidentifications, sm.risk.HouseholdRisk,
    sm.risk.LDiversity, sm.risk.TCloseness,
    sm.risk.SUDA, sm.risk.LogLinearRisk, sm.risk.UnsafeCombinations, sm.risk.CorrectAttribution, sm.risk.AttributeInference,
)  # fmt: skip


def cells_of(seed: int, *, levels: int = 3, width: int = 4, gone: float = 0.0) -> tuple[Array, Array]:
    """Return distinct cells, some with missing values, and their counts."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, levels, (rng.integers(1, 40), width)).astype(np.int32)
    codes[rng.random(codes.shape) < gone] = -1
    distinct, count = np.unique(codes, axis=0, return_counts=True)
    return distinct, count


def matches(codes: Array, row: Array, chosen: tuple[int, ...]) -> Array:
    """Return which cells agree with a row on these variables, by the definition."""
    some = list(chosen)
    result: Array = ((codes[:, some] == row[some]) | (codes[:, some] < 0) | (row[some] < 0)).all(axis=1)
    return result


def people(n: int = 300, seed: int = 1) -> sm.Microdata:
    """Three keys, a secret that depends on them, two numbers, a weight and a household."""
    rng = np.random.default_rng(seed)
    a, b, c = (rng.integers(0, size, n) for size in (4, 3, 5))
    frame = pl.DataFrame(
        {"a": a.astype(str), "b": b.astype(str), "c": c.astype(str)}
        | {"secret": ((a + b + (rng.random(n) < 0.3)) % 3).astype(str)}
        | {"wage": rng.lognormal(3, 1, n), "rent": rng.normal(0, 1, n)}
        | {"w": rng.uniform(1, 30, n), "home": rng.integers(0, n // 2, n).astype(str)}
    )
    roles: dict[str, Any] = {"keys": KEYS, "sensitive": ["secret"], "numeric": ["wage", "rent"]}
    return sm.read(frame, **roles, weight="w", household="home")


def scored(
    measure: sm.Measure, original: sm.Microdata, masked: sm.Microdata | None = None, seed: int = 1
) -> sm.Estimate:
    released = original.change(None, {}) if masked is None else masked
    return measure.apply(original, released, np.random.default_rng(seed))


# ---- parity with the plain formula ----------------------------------------------------------------------------
@pytest.mark.parametrize("levels", [3, 100_000])
@pytest.mark.parametrize("gone", [0.0, 0.2])
@given(seed=SMALL)
def test_minimal_uniques_match_definition(levels: int, gone: float, seed: int) -> None:
    codes, count = cells_of(seed, levels=levels, gone=gone)
    codes = codes // 30_000 if levels > 3 and seed % 2 else codes
    codes, place = np.unique(codes, axis=0, return_inverse=True)
    count = np.bincount(place.ravel(), count).astype(np.int64)
    plain = set()
    for i, row in enumerate(codes):
        alone: list[tuple[int, ...]] = []
        for size in range(1, 5):
            for chosen in combinations(range(4), size):
                smaller = any(set(one) < set(chosen) for one in alone)
                if not smaller and count[matches(codes, row, chosen)].sum() == 1:
                    alone.append(chosen)
        plain |= {(i, sum(1 << j for j in chosen)) for chosen in alone}
    cell, result = find_minimal_uniques(codes, count, sets_up_to(4, 4))
    assert len(cell) == len(plain)
    assert set(zip(cell.tolist(), result.tolist(), strict=True)) == plain


@pytest.mark.parametrize("levels", [3, 100_000])
@pytest.mark.parametrize("gone", [0.0, 0.2])
@given(seed=SMALL, k=st.integers(2, 4))
def test_unsafe_combinations_match_definition(levels: int, gone: float, seed: int, k: int) -> None:
    codes, count = cells_of(seed, levels=levels, gone=gone)
    sets = sets_up_to(4, 3)
    cells, exposed = unsafe_combinations(codes, count, sets, k)
    for place, chosen in enumerate(c for size in (1, 2, 3) for c in combinations(range(4), size)):
        whole = (codes[:, list(chosen)] >= 0).all(axis=1)
        few = np.array([count[matches(codes, row, chosen)].sum() < k for row in codes]) & whole
        assert cells[place] == len({tuple(row) for row in codes[few][:, list(chosen)].tolist()})
        exposed = exposed - few
    assert (exposed == 0).all()


@pytest.mark.parametrize("f", [1, 2, 3, 7, 40])
@pytest.mark.parametrize("p", [0.01, 0.3, 0.9])
def test_exact_individual_risk_matches_negative_binomial_sum(f: int, p: float) -> None:
    from scipy.stats import nbinom

    unseen = np.arange(200_000)
    plain = (nbinom.pmf(unseen, f, p) / (f + unseen)).sum()
    assert individual_risks(np.array([f]), np.array([f / p]), exact=True)[0] == pytest.approx(plain, rel=1e-9)
    near = individual_risks(np.array([f]), np.array([f / p]))[0]
    assert near == pytest.approx(plain, rel=1e-9 if f < 3 else 0.1)


@pytest.mark.parametrize("p", [0.9, 0.1, 0.011, 0.009, 1e-3, 1e-6])
@pytest.mark.parametrize("f", [0.5, 1.0001, 1.01, 1.1, 1.5, 1.9, 2.3, 2.9, 3.7])
def test_individual_risk_of_fractional_frequency_matches_integral(f: float, p: float) -> None:
    """p^f int_0^1 t^(f-1) (1 - (1-p) t)^-f dt, by quadrature in u = -log t, cut into octaves of where it bends."""
    from scipy.integrate import quad

    def density(u: float) -> float:
        return float(np.exp(f * (np.log(p) - u - np.log1p(-(1 - p) * np.exp(-u)))))

    cuts = [0.0, *np.geomspace(p / 100, 50, 60), 800.0]
    plain = sum(quad(density, a, b, epsabs=0)[0] for a, b in pairwise(cuts))
    assert individual_risks(np.array([f]), np.array([f / p]), exact=True)[0] == pytest.approx(plain, rel=1e-6)
    if 1 < f < 2:
        assert individual_risks(np.array([f]), np.array([f / p]))[0] == pytest.approx(plain, rel=1e-6)


def test_individual_risk_of_large_cells_is_finite() -> None:
    risk = individual_risks(np.array([3000.0, 1e6]), np.array([3e5, 1e9]), exact=True)
    assert risk == pytest.approx([0.01 / (3000 - 0.99), 0.001 / (1e6 - 0.999)], rel=1e-3)


@given(seed=SMALL)
def test_frequencies_match_definition(seed: int) -> None:
    codes, count = cells_of(seed, width=3, gone=0.2)
    rows = np.repeat(codes, count, axis=0)
    weights = np.random.default_rng(seed).uniform(1, 5, len(rows))
    columns = {
        name: [None if v < 0 else str(v) for v in column.tolist()] for name, column in zip(KEYS, rows.T, strict=True)
    }
    data = sm.read(pl.DataFrame({n: pl.Series(v, dtype=pl.String) for n, v in columns.items()} | {"w": weights}),
                   keys=KEYS, weight="w")  # fmt: skip
    result = count_frequencies(data, KEYS, "any value", 1.0)
    plain = [matches(rows, row, (0, 1, 2)) for row in rows]
    np.testing.assert_allclose(result.records[result.cells.code], [one.sum() for one in plain])
    np.testing.assert_allclose(result.weights[result.cells.code], [weights[one].sum() for one in plain])
    category = count_frequencies(data, KEYS, "a category", 1.0)
    np.testing.assert_allclose(category.records[category.cells.code], [(rows == row).all(axis=1).sum() for row in rows])


@pytest.mark.parametrize("numeric", [False, True])
@given(seed=SMALL)
def test_diversity_and_closeness_match_definition(numeric: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 40))
    key, secret = rng.integers(0, 4, n), np.round(rng.exponential(2, n))
    columns = {"key": key.astype(str), "secret": secret if numeric else secret.astype(int).astype(str)}
    data = sm.read(pl.DataFrame(columns), keys=["key"], sensitive=["secret"])
    values = np.unique(secret)
    q = np.array([(secret == v).mean() for v in values])
    for g in np.unique(key):
        own, rows = secret[key == g], key == g
        p = np.array([(own == v).mean() for v in values])
        ordered = np.abs(np.cumsum(p - q)).sum() / max(len(values) - 1, 1)
        distance = ordered if numeric else np.abs(p - q).sum() / 2
        np.testing.assert_allclose(sm.risk.TCloseness().records(data, data)[rows], distance, atol=1e-12)
        entropy = math.exp(-sum(x * math.log(x) for x in p if x))
        falling = sorted((p[p > 0] * len(own)).round().astype(int).tolist(), reverse=True)
        recursive = max(
            (place + 1 for place in range(len(falling)) if falling[0] < 1.5 * sum(falling[place:])), default=0
        )
        for form, plain in (("distinct", len(falling)), ("entropy", entropy), ("recursive", recursive)):
            result = sm.risk.LDiversity(form=form, c=1.5).diversity(data)[rows]  # type: ignore[arg-type]
            np.testing.assert_allclose(result, plain)


def test_sensitive_values_are_counted_alike_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """With and without missing keys, the result is the same in one table, by pairs, or in blocks of values."""
    whole = people()
    part = people().change(None, {"a": with_missing(whole.column("a"), np.arange(300) % 7 == 0).values},
                           {"a": with_missing(whole.column("a"), np.arange(300) % 7 == 0).levels})  # fmt: skip
    measures = [
        sm.risk.LDiversity("wage", form="entropy"),
        sm.risk.TCloseness("wage"),
        sm.risk.TCloseness("secret", distance="equal"),
    ]
    tables = [scored(measure, data) for measure in measures for data in (whole, part)]
    monkeypatch.setattr("sdcmap.risk.l_diversity.MAX_DENSE_CELLS", 200)
    again = [scored(measure, data) for measure in measures for data in (whole, part)]
    np.testing.assert_allclose([one.value for one in again], [one.value for one in tables])
    assert [one.parts for one in again] == [pytest.approx(one.parts) for one in tables]


@given(seed=SMALL)
def test_log_linear_means_fit_their_margins(seed: int) -> None:
    """Main effects: products of shares. Two-way: margins of pairs fit, and no three-way interaction is left (of positive
    cells of a 2 x 2 x 2 table)."""
    rng = np.random.default_rng(seed)
    codes = np.array([(i, j, k) for i in range(2) for j in range(2) for k in range(2)])
    count = rng.integers(1, 30, 8)
    shares = [np.bincount(column, count) / count.sum() for column in codes.T]
    plain = [count.sum() * math.prod(s[v] for s, v in zip(shares, row, strict=True)) for row in codes.tolist()]
    np.testing.assert_allclose(main_effect_means(codes, count), plain)
    means = two_way_means(codes, count, (2, 2, 2)).reshape(2, 2, 2)
    table = count.reshape(2, 2, 2)
    for axis in range(3):
        np.testing.assert_allclose(means.sum(axis=axis), table.sum(axis=axis), rtol=1e-6)
    first = means[0, 0, 0] * means[1, 1, 0] / (means[0, 1, 0] * means[1, 0, 0])
    second = means[0, 0, 1] * means[1, 1, 1] / (means[0, 1, 1] * means[1, 0, 1])
    assert first == pytest.approx(second, rel=1e-5)


def test_mean_of_cell_with_missing_value_sums_all_matches() -> None:
    codes = np.array([(i, j, k) for i in range(2) for j in range(2) for k in range(2)] + [(0, -1, 1)])
    count = np.array([5, 2, 9, 1, 4, 4, 2, 7, 3])
    main, pairs = main_effect_means(codes, count), two_way_means(codes, count, (2, 2, 2))
    shares = [np.bincount(c[c >= 0], count[c >= 0]) / count[c >= 0].sum() for c in codes.T]
    assert main[8] == pytest.approx(count.sum() * shares[0][0] * shares[2][1])
    assert pairs[8] == pytest.approx(pairs[1] + pairs[3])
    np.testing.assert_allclose(pairs[:8] * 34 / 37, two_way_means(codes[:8], count[:8], (2, 2, 2)))


def test_unique_risks_match_poisson_sums() -> None:
    from scipy.stats import poisson

    mean, share = np.array([0.02, 0.5, 3.0]), np.array([0.1, 0.5, 0.9])
    one, inverse = unique_risks(mean, share)
    unseen = np.arange(200)
    pmf = poisson.pmf(unseen[:, np.newaxis], mean * (1 - share) / share)
    np.testing.assert_allclose(one, pmf[0])
    np.testing.assert_allclose(inverse, (pmf / (1 + unseen)[:, np.newaxis]).sum(axis=0))
    whole = unique_risks(mean, np.ones(3))
    np.testing.assert_allclose(whole, 1.0)


def test_log_linear_risk_estimates_population_uniques() -> None:
    """Independent keys, a 10 % sample: tau1 and tau2 within 3 standard errors of the truth over 40 populations."""
    rng = np.random.default_rng(5)
    shares = [0.8 ** np.arange(12) for _ in range(3)]
    gaps = []
    for _ in range(40):
        population = np.column_stack([rng.choice(12, 20_000, p=s / s.sum()) for s in shares])
        cell = population @ np.array([144, 12, 1])
        size = np.bincount(cell, minlength=1728)
        rows = rng.permutation(len(population))[:2000]
        alone = np.bincount(cell[rows], minlength=1728)[cell[rows]] == 1
        truth = np.array([(size[cell[rows]][alone] == 1).sum(), (1 / size[cell[rows]][alone]).sum()])
        frame = pl.DataFrame({name: column.astype(str) for name, column in zip(KEYS, population[rows].T, strict=True)})
        parts = scored(sm.risk.LogLinearRisk(fraction=0.1), sm.read(frame, keys="all")).parts
        gaps.append([parts["tau1"] - truth[0], parts["tau2"] - truth[1]])
    mean, se = np.mean(gaps, axis=0), np.std(gaps, axis=0, ddof=1) / np.sqrt(40)
    assert (np.abs(mean) < 3 * se).all()


@given(seed=SMALL)
def test_nearest_and_closer_share_match_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, 3, (6, 2)) / 2, rng.integers(0, 3, (9, 2)) / 2
    x[rng.random(x.shape) < 0.2] = np.nan
    c, d = rng.integers(0, 2, (6, 1)), rng.integers(0, 2, (9, 1))
    secret, guess = rng.integers(-3, 3, 6).astype(float), rng.integers(-3, 3, 9).astype(float)
    d[0] = ANY
    weight = rng.integers(1, 4, 3) / 2
    result, right = nearest(x, c, y, d, weight, secret, guess, 0.5)
    for t in range(6):
        gaps = np.abs(x[t] - y)
        gaps = np.where(np.isnan(gaps), np.where(np.isnan(x[t]) & np.isnan(y), 0.0, 1.0), gaps) @ weight[:2]
        distance = gaps + ((c[t] != d) & (d != ANY)) @ weight[2:]
        near = distance == distance.min()
        assert result[t] == pytest.approx(distance.min())
        assert right[t] == pytest.approx((np.abs(guess - secret[t]) <= 0.5 * abs(secret[t]))[near].mean())
    few = nearest(x[:, :0], c, y[:, :0], d, weight[2:], secret, guess, 0.5)
    many = nearest(x * 0, c, y * 0, d, weight, secret, guess, 0.5)
    np.testing.assert_allclose(few[1][~np.isnan(x).any(axis=1)], many[1][~np.isnan(x).any(axis=1)])
    np.testing.assert_array_equal(nearest(x, c, y, d, weight, -secret, -guess, 0.5)[1], right)  # signs do not matter
    inside, outside = rng.integers(0, 4, 7), rng.integers(0, 4, 5)
    pairs = [(a < b) + (a == b) / 2 for a in inside for b in outside]
    assert closer_share(inside, outside) == pytest.approx(np.mean(pairs))


@given(seed=SMALL)
def test_correct_attribution_matches_definition(seed: int) -> None:
    original, masked = people(30, seed), people(25, seed + 1)
    before, after = (one.frame().select(*KEYS[:2], "secret").rows() for one in (original, masked))
    synthetic = sm.Microdata(masked.schema, masked.columns, paired=False)
    caps = []
    for row in before:
        group = [other[2] for other in after if other[:2] == row[:2]]
        caps.append(group.count(row[2]) / len(group) if group else None)
    dcap = sm.risk.CorrectAttribution(on=KEYS[:2])
    assert scored(dcap, original, synthetic).value == pytest.approx(sum(c or 0 for c in caps) / 30)
    known = [c for c in caps if c is not None]
    left_out = sm.risk.CorrectAttribution(on=KEYS[:2], unmatched="left out")
    assert scored(left_out, original, synthetic).value == pytest.approx(np.mean(known))
    disclosed = [c == 1 for c in caps]
    disco = sm.risk.CorrectAttribution(on=KEYS[:2], form="DiSCO")
    assert scored(disco, original, synthetic).value == pytest.approx(np.mean(disclosed))
    targeted = []
    for row in after:
        if {other[2] for other in after if other[:2] == row[:2]} == {row[2]}:
            group = [other[2] for other in before if other[:2] == row[:2]]
            targeted.append(group.count(row[2]) / len(group) if group else None)
    matched = [share for share in targeted if share is not None]
    tcap, every = (sm.risk.CorrectAttribution(on=KEYS[:2], form=form) for form in ("TCAP", "TCAP all"))  # type: ignore[arg-type]
    assert scored(tcap, original, synthetic).value == pytest.approx(np.mean(matched) if matched else 0)
    assert scored(every, original, synthetic).value == pytest.approx(sum(matched) / max(len(targeted), 1))


def test_tcap_is_zero_if_no_group_agrees() -> None:
    """The safest file has a score: 0."""
    frame = pl.DataFrame({"region": ["a", "a", "b", "b"], "secret": ["x", "y", "x", "y"]})
    data = sm.read(frame, keys="region", sensitive="secret")
    for form, value in (("TCAP", 0), ("TCAP all", 0), ("DiSCO", 0), ("DCAP", 0.5)):
        measure = sm.risk.CorrectAttribution(form=form)  # type: ignore[arg-type]
        assert scored(measure, data).value == value


# ---- what measures say of releases ----------------------------------------------------------------------------
def test_suppression_lowers_every_key_risk() -> None:
    data = people(120)
    masked = sm.mask(data, sm.Suppress(k=5), seed=1)
    assert scored(sm.KAnonymity(k=5), data, masked).value == 0 < scored(sm.KAnonymity(k=5), data).value
    for measure in (
        sm.risk.IndividualRisk(),
        sm.risk.HouseholdRisk(),
        sm.risk.SUDA(),
        sm.risk.UnsafeCombinations(),
        sm.risk.LDiversity(),
    ):
        assert scored(measure, data, masked).value < scored(measure, data).value


def test_suppression_leaves_complete_uniques() -> None:
    """Blanks that match any value make other records k-anonymous that remain complete and unique."""
    rng = np.random.default_rng(4)
    keys = ("region", "age", "school", "sex")
    frame = pl.DataFrame({name: rng.integers(0, levels, 200) for name, levels in zip(keys, (6, 8, 4, 2), strict=True)})
    data = sm.read(frame, keys=keys, kinds=dict.fromkeys(keys, "nominal"))
    masked = sm.mask(data, sm.Suppress(k=3), seed=1)
    result = scored(sm.KAnonymity(k=3), data, masked)
    rows, before = (file.frame().select(keys).rows() for file in (masked, data))
    alone = [i for i, row in enumerate(rows) if None not in row and rows.count(row) == 1]
    right = [i for i in alone if before.count(rows[i]) == 1 and before[i] == rows[i]]
    assert result.value == 0 < len(right)
    assert result.parts["complete and unique"] == len(alone) / 200 and result.parts["truly unique"] == len(right) / 200


def test_membership_helps_attack_unless_file_is_shuffled() -> None:
    """With the file as it is, nearest records on wages are people themselves; with wages and secrets shuffled, being in
    the file adds nothing: mean over 30 seeds within 4 standard errors of 0 and of one half."""
    data = people(400)
    infer, member = (
        sm.risk.AttributeInference("secret", on=["wage", "rent"]),
        sm.risk.ClosestRecord(on=["wage", "rent"]),
    )
    open_file = scored(infer, data)
    assert open_file.parts["members"] == 1 and open_file.value > 0.4
    assert scored(member, data).value > 0.99 and scored(member, data).parts["exact copies"] == 1
    values: dict[str, list[float]] = {"infer": [], "member": []}
    for seed in range(30):
        rng = np.random.default_rng(seed)
        change = {name: data.column(name).values[rng.permutation(400)] for name in ("wage", "rent", "secret")}
        masked = data.change(None, change)
        values["infer"].append(scored(infer, data, masked, seed).value)
        values["member"].append(scored(member, data, masked, seed).value - 0.5)
    for result in values.values():
        assert abs(np.mean(result)) < 4 * np.std(result, ddof=1) / np.sqrt(30)


def test_recoded_file_is_attacked_in_released_categories() -> None:
    """Merging two key values that do not help to infer the secret does not weaken the attacks on it."""
    rng = np.random.default_rng(3)
    key, age = rng.integers(0, 4, 400), rng.integers(20, 60, 400)
    frame = pl.DataFrame({"key": key.astype(str), "age": age.astype(float), "secret": (key // 2).astype(str)})
    data = sm.read(frame, keys=["key", "age"], sensitive=["secret"], numeric=["age"])
    recode = sm.Chain([sm.Recode(on="key", merge=[["0", "1"], ["2", "3"]]), sm.Recode(on="age", breaks=[0, 40, 99])])
    masked = sm.mask(data, recode, seed=1)
    assert scored(sm.risk.CorrectAttribution(on="key"), data, masked).value == 1
    infer = scored(sm.risk.AttributeInference(on=["key", "age"]), data, masked)
    assert infer.parts["members"] == infer.parts["non-members"] == 1
    assert scored(sm.risk.ClosestRecord(on=["key", "age"]), data, masked).parts["exact copies"] == 1
    merged = sm.mask(data, sm.Recode(on="secret", merge=[["0", "1"]]), seed=1)
    result = scored(sm.risk.CorrectAttribution(on="key"), data, merged)
    assert result.value == result.parts["naive"] == 1  # one category is left, and it tells nothing
    assert recode_to_released_categories(data, data.change(None, {}), ("key", "age")) is data


def test_synthetic_files_need_control_people(tmp_path: Path) -> None:
    data, others = people(300), people(200, seed=9)
    masked = sm.mask(data, sm.Synthesize(on=[*KEYS, "secret", "wage", "rent"]), seed=1)
    assert not masked.paired
    control = str(tmp_path / "control.csv")
    others.frame().write_csv(control)
    for measure in (sm.risk.AttributeInference(), sm.risk.ClosestRecord(on=("a", "b", "c"))):
        with pytest.raises(Undefined, match="needs a control file"):
            scored(measure, data, masked)
    infer = scored(sm.risk.AttributeInference(control_file=control), data, masked)
    assert {"members", "non-members", "naive", "certain, members"} <= set(infer.parts) and abs(infer.value) < 6 * (
        infer.se or 0
    )
    member = sm.risk.ClosestRecord(on=("a", "b", "c", "wage"), control_file=control)
    copied = sm.Microdata(data.schema, data.columns, paired=False)  # a synthesizer that copies its input
    assert scored(member, data, copied).value > 0.99
    for measure in (sm.KAnonymity(), sm.risk.IndividualRisk(), sm.risk.SUDA(), sm.risk.LogLinearRisk()):
        with pytest.raises(Undefined, match="a synthetic file has none"):
            scored(measure, data, masked)


def test_attacks_on_sample_use_released_records() -> None:
    data = people(400)
    masked = sm.mask(data, sm.methods.Sample(rate=0.5), seed=1)
    for measure in (sm.risk.AttributeInference("secret", on=["wage"]), sm.risk.ClosestRecord(on=["wage"])):
        assert scored(measure, data, masked).value > 0.3
    assert len(sm.risk.CorrectAttribution().records(data, masked)) == len(masked)


def test_unit_weights_equal_no_weights() -> None:
    frame = people().frame().with_columns(w=pl.lit(1.0))
    weighted = sm.read(frame, keys=KEYS, sensitive=["secret"], weight="w", household="home")
    plain = sm.read(frame.drop("w"), keys=KEYS, sensitive=["secret"], household="home")
    for measure in (
        sm.risk.IndividualRisk(),
        sm.risk.IndividualRisk(form="exact"),
        sm.risk.HouseholdRisk(),
        sm.risk.LogLinearRisk(),
    ):
        assert scored(measure, weighted).value == pytest.approx(scored(measure, plain).value)


def test_releasing_nothing_leaves_naive_probability() -> None:
    data = people()
    shares = np.bincount(data.codes("secret")) / len(data)
    assert sm.risk.CorrectAttribution().baseline(data) == pytest.approx((shares**2).sum())
    assert sm.risk.CorrectAttribution(form="TCAP").baseline(data) == pytest.approx(shares.max())


@pytest.mark.parametrize(
    "measure", [sm.risk.HouseholdRisk(), sm.risk.HouseholdRisk(form="exact"), sm.risk.AttributeInference(targets=40)]
)
def test_risk_measures_pass_contract_checks_with_households(measure: sm.Measure) -> None:
    """The files of tests/test_laws.py have no household and no sensitive variable."""
    check_measure(measure, people(60), [sm.Swap(on="a", rate=0.2), sm.Noise(on=["wage"])])


# ---- bad input ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("cls", "given", "words"),
    [
        (sm.KAnonymity, {"k": 1}, "KAnonymity.k must be in [2, inf). Got 1."),
        (sm.KAnonymity, {"alpha": 2}, "KAnonymity.alpha must be in [0, 1]. Got 2."),
        (sm.KAnonymity, {"on": ["a", "a"]}, "KAnonymity.on must name each variable once."),
        (sm.KAnonymity, {"missing_is": "a"}, "KAnonymity.missing_is must be one of 'any value', 'a category'."),
        (sm.risk.LDiversity, {"l": 0.5}, "LDiversity.l must be in [1, inf). Got 0.5."),
        (sm.risk.LDiversity, {"l": 1.5}, 'LDiversity.l must be a whole number for "distinct". Got 1.5.'),
        (sm.risk.LDiversity, {"c": 0}, "LDiversity.c must be in (0, inf). Got 0."),
        (sm.risk.TCloseness, {"t": 1.5}, "TCloseness.t must be in [0, 1]. Got 1.5."),
        (sm.risk.IndividualRisk, {"threshold": -1}, "IndividualRisk.threshold must be in [0, 1]. Got -1."),
        (sm.risk.SUDA, {"fraction": 0}, "SUDA.fraction must be in (0, 1). Got 0."),
        (sm.risk.SUDA, {"largest": 0}, "SUDA.largest must be in [1, inf). Got 0."),
        (sm.risk.LogLinearRisk, {"fraction": 0}, "LogLinearRisk.fraction must be in (0, 1]. Got 0."),
        (sm.risk.UnsafeCombinations, {"dimension": 0}, "UnsafeCombinations.dimension must be in [1, inf). Got 0."),
        (sm.risk.AttributeInference, {"held_out": 1}, "AttributeInference.held_out must be in (0, 1). Got 1."),
        (sm.risk.AttributeInference, {"tolerance": -1}, "AttributeInference.tolerance must be in [0, inf). Got -1."),
        (sm.risk.ClosestRecord, {"targets": 0}, "ClosestRecord.targets must be in [1, inf). Got 0."),
        (sm.risk.ClosestRecord, {"control_file": "gone.csv"}, "ClosestRecord.control_file: there is no file gone.csv"),
        (sm.risk.ClosestRecord, {"sha256": "xyz"}, "ClosestRecord.sha256 is stated, but no file is named"),
    ],
)  # fmt: skip
def test_parameter_out_of_range_is_reported(cls: Any, given: dict[str, Any], words: str) -> None:
    with pytest.raises(PlanError) as problem:
        cls(**given)
    assert str(problem.value).startswith(words)


@pytest.mark.parametrize("cls", ON_KEYS, ids=lambda cls: cls.__name__)
def test_file_without_keys_is_reported(cls: Any) -> None:
    data = sm.read(people().frame(), sensitive=["secret"], weight="w", household="home")
    with pytest.raises(SchemaError, match="has no variables to measure: state keys"):
        scored(cls(), data)
    with pytest.raises(SchemaError, match="no column 'aa'"):
        scored(cls(on=["aa", "b"]), people())


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
@pytest.mark.parametrize(
    "measure",
    [sm.risk.IndividualRisk(), sm.risk.ExpectedReidentifications(), sm.risk.HouseholdRisk(), sm.risk.LogLinearRisk()],
)
def test_invalid_weights_are_reported(measure: sm.Measure, bad: float) -> None:
    weights = people(20)["w"].copy()
    weights[3] = bad
    data = people(20).change(None, {"w": weights})
    with pytest.raises(SchemaError, match="needs positive weights; 1 records have none in 'w'"):
        scored(measure, data)


@pytest.mark.parametrize(
    ("measure", "words"),
    [
        (sm.risk.HouseholdRisk(), "HouseholdRisk needs a household variable"),
        (sm.risk.LDiversity(), "LDiversity needs a sensitive variable"),
        (sm.risk.TCloseness("nothing"), "TCloseness: no column 'nothing'"),
        (sm.risk.CorrectAttribution("a", on=["a", "b"]), "must not be one of the variables the attacker knows; 'a' is"),
        (sm.risk.TCloseness("c", on=["a", "b"], distance="ordered"), "needs a variable with an order; 'c' is nominal"),
        (sm.risk.SUDA(on="a"), "SUDA needs at least 2 variables"),
    ],
)  # fmt: skip
def test_missing_roles_are_reported(measure: sm.Measure, words: str) -> None:
    data = sm.read(people().frame().select(*KEYS), keys=KEYS)
    with pytest.raises(SchemaError, match=words):
        scored(measure, data)


def test_too_many_key_sets_are_reported() -> None:
    wide = sm.read(pl.DataFrame({f"v{j}": ["0", "1"] for j in range(30)}), keys="all")
    with pytest.raises(Undefined, match="30 variables have more than 1,048,576 sets: choose a smaller `largest`"):
        scored(sm.risk.SUDA(), wide)
    with pytest.raises(Undefined, match="choose a smaller `dimension`"):
        scored(sm.risk.UnsafeCombinations(dimension=15), wide)
    assert scored(sm.risk.SUDA(largest=2), wide).parts["uniques"] == 2


def test_story_names_attacker_and_success() -> None:
    own = [cls for cls in RISKS if cls in (*ON_KEYS, sm.risk.ClosestRecord)]
    assert len(own) == 12
    for cls in own:
        story = (cls.__doc__ or "").split("Parameters")[0]
        assert "attacker" in story, cls.__name__


def test_attribute_inference_reports_certain_share_and_worst_category() -> None:
    """One sensitive category has its own keys: its members are inferred with certainty; the others are not."""
    rng = np.random.default_rng(3)
    n = 600
    rare = rng.random(n) < 0.2
    frame = pl.DataFrame({
        "key": np.where(rare, rng.integers(100, 400, n), rng.integers(0, 3, n)),
        "secret": np.where(rare, "ill", rng.choice(["a", "b", "c"], n)),
    })  # fmt: skip
    data = sm.read(frame, keys="key", sensitive="secret", kinds={"key": "nominal"})
    parts = scored(sm.risk.AttributeInference(held_out=0.5), data).parts
    assert parts["worst category"] > parts["members"] - parts["non-members"] + 0.2
    assert parts["certain, members"] > parts["certain, non-members"] and parts["certain, members"] <= parts["members"]
