"""Likeliest links by several kinds of densities against all pairs, and dense assignments."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy.optimize import linear_sum_assignment

import sdcmap as sm
from sdcmap.core.likelihood import Below, Density, Field, Mixture, Normal, Same, Transition, Window
from sdcmap.kernels.arrays import Array
from sdcmap.risk.linkage import file_pair as pairing
from sdcmap.risk.linkage.assignment import assign_all_pairs
from sdcmap.risk.linkage.field_links import find_likeliest_links
from sdcmap.risk.linkage.informed_attack import build_field_costs
from sdcmap.risk.linkage.link_search import best_links

RNG = np.random.default_rng(0)
CAP = 20.0


def pair_of(kind: str, rng: np.random.Generator, n: int, m: int) -> tuple[Array, Array, Density]:
    if kind == "same":
        return rng.integers(0, 9, n) * 1.1, rng.integers(0, 9, m) * 1.1, Same()
    a, b = rng.normal(0, 3, n), rng.normal(0, 3, m)
    densities: dict[str, Density] = {
        "normal": Normal(0.8), "window": Window(4.0), "below": Below(3.0),
        "mixture": Mixture((0.5, 0.5), (1.0, -1.0), (0.3, 0.3)),
        "three": Mixture((0.2, 0.3, 0.5), (2.0, -1.0, 0.1), (0.2, 0.5, 0.4)),
    }  # fmt: skip
    return a, b, densities[kind]


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("kinds", [("normal", "mixture"), ("window", "below", "normal"), ("three", "same", "normal")])
def test_likeliest_links_match_all_pairs(kinds: tuple[str, ...], missing: bool) -> None:
    rng = np.random.default_rng(len(kinds))
    n, m, keep = 70, 1300, 12
    fields = []
    for kind in kinds:
        a, b, density = pair_of(kind, rng, n, m)
        if missing:
            a[rng.random(n) < 0.2] = np.nan
            b[rng.random(m) < 0.2] = np.nan
        fields.append(Field(a, b, density))
    tops = [0.0 if not isinstance(f.density, Mixture) else float(f.density(np.zeros(1), np.array(f.density.centers)).max())
            for f in fields]  # fmt: skip

    def score(rows: Array, index: Array) -> Array:
        return sum(np.maximum(f.pairs(rows, index), top - CAP) for f, top in zip(fields, tops, strict=True))

    whole = sum(np.maximum(f.block(slice(None)), top - CAP) for f, top in zip(fields, tops, strict=True))
    costs = build_field_costs(fields, CAP)
    assert costs is not None
    result, expected = find_likeliest_links(costs, score, keep), best_links(whole, keep)
    components = sum(np.log(len(f.density.weights)) for f in fields if isinstance(f.density, Mixture))
    assert (expected.score - result.score).min() > -1e-5
    assert (expected.score - result.score).max() < (
        components if "three" in kinds else 1e-5
    )  # apart, components are exact
    np.testing.assert_array_equal(result.score, np.take_along_axis(whole, result.index.astype(int), axis=1))
    assert all(len(set(row)) == keep for row in result.index.tolist())
    again = find_likeliest_links(costs, score, keep, threads=3)
    np.testing.assert_array_equal(result.index, again.index)


def test_ties_are_spread_over_released_records() -> None:
    """Every pair is possible: 400 known records must not all take the same 5 candidates."""
    fields = [Field(np.zeros(400), np.zeros(400), Window(1.0))]
    costs = build_field_costs(fields, CAP)
    assert costs is not None
    result = find_likeliest_links(costs, lambda rows, index: fields[0].pairs(rows, index), 5)
    assert len(np.unique(result.index)) > 300


def test_other_densities_have_no_field_costs() -> None:
    assert build_field_costs([Field(np.zeros(2), np.zeros(2), Transition(np.eye(2)))], CAP) is None
    assert build_field_costs([], CAP) is None


@pytest.mark.parametrize("kind", ["random", "ties", "equal", "near"])
def test_dense_assignment_matches_scipy(kind: str) -> None:
    rng = np.random.default_rng(5)
    n = 260
    x = rng.normal(size=(n, 2))
    score = {
        "random": rng.normal(size=(n, n)),
        "ties": rng.integers(0, 3, (n, n)).astype(float),
        "equal": np.ones((n, n)),
        "near": -((x[:, None] - x[None] - rng.normal(0, 0.3, (n, 2))) ** 2).sum(axis=2),
    }[kind]
    result = assign_all_pairs(score)
    assert sorted(result.tolist()) == list(range(n))
    assert score[np.arange(n), result].sum() == pytest.approx(
        score[linear_sum_assignment(score, maximize=True)].sum(), rel=1e-12
    )


def test_best_links_order_ties_by_column() -> None:
    score = np.array([[1.0, 3, 3, 3], [-np.inf, -np.inf, 2, 0], [0, 0, 0, 0]])
    result = best_links(score, 2)
    assert result.index.tolist() == [[1, 2], [2, 3], [0, 1]]
    assert best_links(score, 3).index.tolist() == [[1, 2, 3], [2, 3, -1], [0, 1, 2]]


@pytest.mark.parametrize(
    "method",
    [
        sm.RankSwap(on=["x", "y", "z"], p=(0.05, 0.1, 0.2)),
        sm.methods.MixtureNoise(on=["x", "y", "z"], variance=0.05),
        sm.Noise(on=["x", "y", "z"], variance=0.05, correlated=True),
    ],
    ids=lambda method: type(method).__name__,
)
def test_attacker_with_some_variables_beats_guessing(method: sm.Method, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of three masked variables, one with its own window: better than a guess, worse than all three."""
    rng = np.random.default_rng(6)
    x = np.exp(rng.normal(size=(300, 3)) @ np.array([[1, 0.5, 0.2], [0, 1, 0.4], [0, 0, 1]]))
    data = sm.read(pl.DataFrame(x, schema=["x", "y", "z"]), numeric="all")
    masked = sm.mask(data, method, seed=1)
    part = sm.risk.Informed(method, on=["x", "z"]).score(data, masked, RNG).value
    whole = sm.risk.Informed(method).score(data, masked, RNG).value
    assert 5 / 300 < part < whole
    monkeypatch.setattr(pairing, "MAX_DENSE_PAIRS", 0)  # and by candidates
    assert sm.risk.Informed(method).score(data, masked, RNG).value == pytest.approx(whole, abs=0.03)
