"""Rules for groups with equal keys, and population measures: each equals its plain formula on small files."""

from __future__ import annotations

import math
from collections import Counter
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

import sdcmap as sm
from sdcmap.errors import PlanError, SchemaError, Undefined
from sdcmap.kernels.tables.diversity import hierarchical_distances
from sdcmap.risk.k_map import records_needed
from sdcmap.risk.population_uniqueness import pitman, pitman_fit, snb, zayatz

RNG = np.random.default_rng(0)
SMALL = st.integers(0, 10_000)


def scored(measure: sm.Measure, original: sm.Microdata, masked: sm.Microdata | None = None) -> sm.Estimate:
    return measure.apply(original, original.change(None, {}) if masked is None else masked, RNG)


def people(seed: int, n: int = 25) -> sm.Microdata:
    """Two keys, some missing, and a secret, some missing."""
    rng = np.random.default_rng(seed)
    columns = {"a": rng.integers(0, 3, n), "b": rng.integers(0, 2, n), "secret": rng.integers(0, 4, n)}
    texts = {name: [None if rng.random() < 0.1 else str(v) for v in values] for name, values in columns.items()}
    return sm.read(pl.DataFrame(texts), keys=["a", "b"], sensitive=["secret"])


def groups(data: sm.Microdata, missing_is: str) -> list[tuple[int, Counter[str]]]:
    """Return, for each record, the records that match it, and their secrets, by the definition."""
    rows = list(zip(*(data[name] for name in ("a", "b")), strict=True))

    def match(first: tuple[object, ...], second: tuple[object, ...]) -> bool:
        wild = missing_is == "any value"
        return all(x == y or (wild and (x is None or y is None)) for x, y in zip(first, second, strict=True))

    result = []
    for mine in rows:
        same = [i for i, other in enumerate(rows) if match(mine, other)]
        result.append((len(same), Counter(s for s in data["secret"][same] if s is not None)))
    return result


@pytest.mark.parametrize("missing_is", ["any value", "a category"])
@given(seed=SMALL)
def test_group_rules_match_definitions(missing_is: str, seed: int) -> None:
    data = people(seed)
    whole = Counter(s for s in data["secret"] if s is not None)
    q = {value: count / whole.total() for value, count in whole.items()}
    result = groups(data, missing_is)
    shares = [{value: count / held.total() for value, count in held.items()} for _, held in result]
    broken = {
        sm.risk.AlphaKAnonymity(k=6, share=0.6, missing_is=missing_is): [
            size < 6 or max(p.values(), default=0) > 0.6 for (size, _), p in zip(result, shares, strict=True)
        ],
        sm.risk.BetaLikeness(beta=0.5, missing_is=missing_is): [
            any(p[v] / q[v] - 1 > 0.5 + 1e-9 for v in p) for p in shares
        ],
        sm.risk.BetaLikeness(beta=5, enhanced=True, missing_is=missing_is): [
            any(p[v] / q[v] - 1 > min(5, -math.log(q[v])) + 1e-9 for v in p) for p in shares
        ],
        sm.risk.DeltaDisclosure(delta=0.4, missing_is=missing_is): [
            any(abs(math.log(p[v] / q[v])) > 0.4 + 1e-9 for v in p) for p in shares
        ],
        sm.risk.DeltaDisclosure(delta=0.4, absent=True, missing_is=missing_is): [
            bool(p) and (len(p) < len(q) or any(abs(math.log(p[v] / q[v])) > 0.4 + 1e-9 for v in p)) for p in shares
        ],
    }
    for measure, exposed in broken.items():
        assert scored(measure, data).value == pytest.approx(np.mean(exposed)), measure
        assert measure.records(data, data.change(None, {})).tolist() == [float(e) for e in exposed]


def test_parts_report_parameters_of_whole_file() -> None:
    """A table of 13 patients: at least two with each combination of keys; all three men of Tamil Nadu have one disease."""
    rows = ["fk v", "fk h", "ft c", "ft t", "mk n", "mk t", "mk h", "ml c", "ml h", "ml v", "mt c", "mt c", "mt c"]
    data = sm.read(
        pl.DataFrame({"keys": [r[:2] for r in rows], "disease": [r[3] for r in rows]}),
        keys=["keys"],
        sensitive=["disease"],
    )
    assert scored(sm.risk.AlphaKAnonymity(), data).parts == {"smallest group": 2, "largest share": 1}
    assert scored(sm.risk.BetaLikeness(), data).parts["largest"] == pytest.approx(13 / 3 - 1)
    assert scored(sm.risk.DeltaDisclosure(), data).parts["largest"] == pytest.approx(math.log(13 / 3))


@given(seed=SMALL)
def test_hierarchical_distance_is_optimal_transport(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = int(rng.integers(2, 7))
    middle = rng.integers(0, 3, values)
    tree = np.column_stack([np.arange(values), np.unique(middle, return_inverse=True)[1], np.zeros(values, dtype=int)])
    p, q = rng.multinomial(9, np.ones(values) / values) + 0.0, rng.dirichlet(np.ones(values))
    start = np.array([0, np.count_nonzero(p)])
    result = hierarchical_distances(start, np.flatnonzero(p), p[p > 0], q, tree)
    pairs = list(product(range(values), repeat=2))
    cost = [0.0 if i == j else 0.5 if middle[i] == middle[j] else 1.0 for i, j in pairs]
    sides = [[[pair[side] == k for pair in pairs] for k in range(values)] for side in (0, 1)]
    flow = np.array(sides, dtype=float).reshape(2 * values, -1)
    cheapest = linprog(cost, A_eq=flow, b_eq=np.concatenate([p / p.sum(), q])).fun
    assert result == pytest.approx([cheapest], abs=1e-9)


def test_incomplete_hierarchy_is_reported(tmp_path: Path) -> None:
    tree = tmp_path / "tree.csv"
    tree.write_text("0;low\n1;low\n2;high\n", encoding="utf-8")
    measure = sm.risk.TCloseness("secret", distance="hierarchical", hierarchy=str(tree))
    with pytest.raises(SchemaError, match="lacks 1 of the 5 values of 'secret'"):
        scored(measure, people(1))
    with pytest.raises(PlanError, match="hierarchy is required with distance"):
        sm.risk.TCloseness(distance="hierarchical")


# ---- a population ---------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def register(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, sm.Microdata]:
    """Return a register of 300 people with three keys, and a sample of 60 of them with a recoded age."""
    rng = np.random.default_rng(5)
    frame = pl.DataFrame({"age": rng.integers(20, 60, 300), "sex": rng.choice(["f", "m"], 300)})
    path = tmp_path_factory.mktemp("register") / "register.csv"
    frame.write_csv(path)
    return str(path), sm.read(frame.head(60), keys=["age", "sex"], kinds={"age": "numeric"})


def test_population_is_counted_in_released_categories(register: tuple[str, sm.Microdata]) -> None:
    path, sample = register
    released = sm.Recode(on="age", width=10, closed="left").mask(sample, RNG)
    ages = set(sample["age"].tolist())
    people = [(int(a) // 10, s) for a, s in pl.read_csv(path).rows() if a in ages]
    persons, records = Counter(people), Counter((int(a) // 10, s) for a, s in sample.frame().rows())
    result = scored(sm.risk.KMap(k=25, population=path), sample, released)
    assert result.value == pytest.approx(np.mean([persons[c] < 25 for c in records.elements()]))
    assert result.parts == {"smallest": min(persons[c] for c in records), "unmatched": 0.0}
    delta = {c: min(1.0, records[c] / persons[c]) for c in persons}
    present = scored(sm.risk.DeltaPresence(low=0.15, high=0.25, population=path), sample, released)
    assert 200 < len(people) < 300  # ages that nobody in the sample has are left out
    assert present.value == pytest.approx(np.mean([not 0.15 <= delta[c] <= 0.25 for c in people]))
    assert present.parts["largest"] == pytest.approx(max(delta.values()))


def test_delta_presence_of_whole_population_is_one(register: tuple[str, sm.Microdata]) -> None:
    path, _ = register
    everybody = sm.read(pl.read_csv(path), keys=["age", "sex"], kinds={"age": "numeric"})
    result = scored(sm.risk.DeltaPresence(population=path), everybody)
    assert (result.value, result.parts["smallest"]) == pytest.approx((1.0, 1.0))
    assert scored(sm.risk.KMap(k=3, population=path), everybody).value == scored(sm.KAnonymity(k=3), everybody).value


def test_k_map_uses_weights_without_population_file() -> None:
    frame = pl.DataFrame({"key": ["x", "x", "y"], "w": [1.0, 1.5, 4.0]})
    data = sm.read(frame, keys=["key"], weight="w")
    assert scored(sm.risk.KMap(k=3), data).value == pytest.approx(2 / 3)
    assert scored(sm.risk.KMap(k=3), data).parts == {"smallest": 2.5}


@pytest.mark.parametrize(
    ("k", "fraction", "level"), [(3, 0.1, 0.01), (20, 0.3, 0.05), (5, 1.0, 0.01), (1000, 1e-4, 0.01)]
)
def test_records_needed_matches_poisson_sums(k: int, fraction: float, level: float) -> None:
    """The sums of El Emam and Dankar, plus one for D3 as in ARX; never more than k, because k records are k persons."""
    chance = [math.exp(-k * fraction) * (k * fraction) ** i / math.factorial(i) for i in range(25)]
    seen = [math.fsum(chance[1:c]) / (1 - chance[0]) for c in range(25)]
    d4 = next((c for c in range(2, 25) if seen[c] >= 1 - level), k)
    d3 = 1 + next((c for c in range(1, 25) if math.fsum(chance[:c]) >= 1 - level), k)
    assert records_needed(k, fraction, level, truncated=True) == min(k, d4)
    assert records_needed(k, fraction, level, truncated=False) == min(k, d3)


def test_k_map_with_poisson_test_counts_records() -> None:
    """Weights of 10: 20 persons show 2 records on average and 7 hardly ever, so 7 are required; "y" is exposed."""
    data = sm.read(pl.DataFrame({"key": ["x"] * 8 + ["y"] * 6, "w": [10.0] * 14}), keys=["key"], weight="w")
    result = scored(sm.risk.KMap(20, "zero-truncated"), data)
    assert (result.value, result.parts) == (pytest.approx(6 / 14), {"smallest": 6.0, "records required": 7.0})
    assert scored(sm.risk.KMap(20, "poisson", fraction=1.0), data).value == 1
    with pytest.raises(PlanError, match="cannot be combined with .population"):
        sm.risk.KMap(3, "poisson", population=__file__)
    with pytest.raises(PlanError, match="fraction is used only with"):
        sm.risk.KMap(3, fraction=0.1)


def test_population_file_without_keys_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "register.csv"
    path.write_text("age\n20\n", encoding="utf-8")
    with pytest.raises(SchemaError, match="KMap: .* has no column 'a', 'b'"):
        scored(sm.risk.KMap(population=str(path)), people(1))
    with pytest.raises(PlanError, match="DeltaPresence.low must be at most .high"):
        sm.risk.DeltaPresence(low=0.9, high=0.1, population=str(path))


def test_ratio_form_is_one_over_matching_weights() -> None:
    """mu-Argus: pi/f, here 1 over the summed weights; the expectation is larger if f is small."""
    data = sm.read(pl.DataFrame({"key": ["x", "y", "y"], "w": [100.0, 50.0, 150.0]}), keys=["key"], weight="w")
    ratio = sm.risk.IndividualRisk(form="ratio").records(data, data.change(None, {}))
    assert ratio.tolist() == [0.01, 0.005, 0.005]
    mean = sm.risk.IndividualRisk(form="exact").records(data, data.change(None, {}))
    assert mean[0] == pytest.approx(0.0465, abs=5e-5) and (mean > ratio).all()


# ---- population uniques ---------------------------------------------------------------------------------------
def test_models_count_uniques_of_whole_population() -> None:
    sizes, counts = np.array([1, 2, 5]), np.array([30, 10, 4])
    assert zayatz(sizes, counts, 70.0) == pytest.approx(30)
    assert snb(sizes, counts, 70.0) == 30


def test_zayatz_matches_plain_formula() -> None:
    sizes, counts, population = np.array([1, 2, 5]), np.array([30, 10, 4]), 210
    chance = [j * math.comb(population - j, 69) / math.comb(population, 70) for j in (1, 2, 5)]
    alone = 30 * chance[0] / (30 * chance[0] + 10 * chance[1] + 4 * chance[2])
    assert zayatz(sizes, counts, population) == pytest.approx(30 * alone * 3)


def test_pitman_fit_recovers_simulated_parameters() -> None:
    """Pitman's own urn: a new group with chance (theta + u alpha)/(theta + i). Means over draws, within their spread."""
    rng = np.random.default_rng(3)
    fits, alone = [], []
    for _ in range(8):
        members: list[int] = []
        size: list[int] = []
        for i in range(4000):
            if rng.random() < (30 + 0.5 * len(size)) / (30 + i):
                size.append(0)
                members.append(len(size) - 1)
            else:
                while rng.random() < 0.5 / size[(group := members[rng.integers(i)])]:
                    pass  # of a group of s members one is drawn with chance proportional to s - alpha
                members.append(group)
            size[members[-1]] += 1
        sample = np.bincount(members[:1000])
        sizes, counts = np.unique(sample[sample > 0], return_counts=True)
        fits.append(pitman_fit(sizes, counts))
        alone.append(pitman(sizes, counts, 4000.0) / size.count(1))
    for number, truth in ((0, 0.5), (1, 30.0)):
        values = np.array([fit[number] for fit in fits])
        assert abs(values.mean() - truth) < 4 * values.std() / math.sqrt(len(values)) + 0.02 * truth
    assert np.mean(alone) == pytest.approx(1, abs=4 * np.std(alone) / math.sqrt(8))


def test_snb_solves_its_equations() -> None:
    """The expected sample of 1,000 groups with alpha = 1.5 and beta = 0.4 gives the model back, except for K."""
    rng = np.random.default_rng(1)
    groups = 1 + rng.negative_binomial(1.5, 0.4, 200_000)
    sample = rng.binomial(groups, 0.5)
    sizes, counts = np.unique(sample[sample > 0], return_counts=True)
    result = snb(sizes, counts, float(groups.sum()))
    assert result == pytest.approx((groups == 1).sum(), rel=0.15)
    assert math.isnan(snb(np.array([1, 3]), np.array([5, 2]), 100.0))


def test_dankar_rule_chooses_model_by_sampling_fraction() -> None:
    keys = np.random.default_rng(2).zipf(1.6, 800).clip(max=400).astype(str)
    data = sm.read(pl.DataFrame({"key": keys}), keys=["key"])
    small, large = (scored(sm.risk.PopulationUniqueness(fraction=f), data) for f in (0.05, 0.5))
    assert small.value == small.parts["pitman"]
    assert large.value == min(large.parts["zayatz"], large.parts["snb"])
    whole = scored(sm.risk.PopulationUniqueness(), data)
    assert whole.value == pytest.approx(whole.parts["sample uniques"])


def test_model_that_cannot_be_fitted_is_undefined() -> None:
    data = sm.read(pl.DataFrame({"key": list("abccc")}), keys=["key"])
    with pytest.raises(Undefined, match="the model 'snb' cannot be fitted"):
        scored(sm.risk.PopulationUniqueness("snb", fraction=0.5), data)
