"""Value-specific weights and the clerical review: against plain numpy. Yancey, Winkler, Creecy (2002), section 3.4."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy.optimize import linear_sum_assignment

import sdcmap as sm
from sdcmap.risk.linkage.agreement_patterns import Patterns
from sdcmap.risk.linkage.record_linkage import fit_em, value_cost

RNG = np.random.default_rng(0)


def names(n: int = 60, seed: int = 1) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return people with a surname (Smith is common), a town and an age, and a file with swapped surnames and towns."""
    rng = np.random.default_rng(seed)
    surname = rng.choice(["Smith"] * 12 + [f"rare{k}" for k in range(12)], n)
    town = rng.choice(list("abc"), n, p=[0.8, 0.15, 0.05])
    frame = pl.DataFrame({"surname": surname, "town": town, "age": rng.integers(20, 60, n).astype(float)})
    moved = rng.permutation(n)[:20]
    swapped = surname.copy()
    swapped[moved] = surname[np.roll(moved, 1)]
    masked = frame.with_columns(
        surname=pl.Series(swapped), age=pl.Series(frame["age"].to_numpy() * rng.uniform(0.9, 1.1, n))
    )
    return frame, masked


def plain_weights(x: pl.DataFrame, y: pl.DataFrame, m: float = 0.9, t: float = 0.2) -> np.ndarray:
    """Return the weight of every pair by the formulas: log m/u_v for equal categories, and the d metric for the age."""
    weight = np.zeros((len(x), len(y)))
    for column in ("surname", "town"):
        share = {value: (x[column] == value).mean() for value in x[column].unique()}
        for i, a in enumerate(x[column]):
            u = share[a]
            for j, b in enumerate(y[column]):
                weight[i, j] += np.log(m / u) if a == b else np.log((1 - m) / (1 - u))
    a, b = x["age"].to_numpy(), y["age"].to_numpy()
    u = (np.unique(a, return_counts=True)[1] / len(a)) @ (np.unique(a, return_counts=True)[1] / len(a))
    agree, differ = np.log(m / u), np.log((1 - m) / (1 - u))
    ratio = np.abs(a[:, None] - b[None]) / np.maximum(np.abs(a), 0.1)[:, None]
    return weight + np.maximum(agree - (agree - differ) * ratio / t, differ)


def test_value_weights_link_as_the_formula_says() -> None:
    x, y = names()
    weight = plain_weights(x, y)
    rows, columns = linear_sum_assignment(weight, maximize=True)
    measure = sm.risk.Linkage(weights="value", open_columns="as any")
    data = sm.read(x, keys=["surname", "town"], numeric=["age"])
    table = measure.links(data, sm.read(y, keys=["surname", "town"], numeric=["age"]))
    partner = np.asarray(table.partner)
    assert weight[partner, np.arange(len(y))].sum() == pytest.approx(weight[rows, columns].sum())
    assert table.rate == pytest.approx((columns[np.argsort(rows)] == np.arange(len(x))).mean(), abs=0.05)


def test_a_rare_value_counts_more_than_a_common_one() -> None:
    codes = np.array([0.0] * 8 + [1.0, 2.0])
    cost = value_cost(codes, codes)
    assert cost is not None
    pair = lambda i, j: float(cost.pairs(np.array([i]), np.array([j]))[0])
    m = 0.9
    weight = {(0, 0): np.log(m / 0.8), (8, 8): np.log(m / 0.1), (0, 8): np.log(0.1 / 0.2), (8, 9): np.log(0.1 / 0.9)}
    for (i, j), expected in weight.items():
        assert pair(i, j) == pytest.approx(np.log(m / 0.1) - expected)


def test_equally_frequent_values_give_the_weights_of_the_column() -> None:
    frame = pl.DataFrame({"a": list("abcdefgh") * 5, "b": list("stuvw") * 8})
    data = sm.read(frame, keys="all")
    masked = sm.mask(data, sm.Swap(on="a", rate=0.2), seed=1)
    by_column, by_value = (
        sm.risk.Linkage(weights=weights, open_columns="as any").score(data, masked, RNG).value
        for weights in ("freq", "value")
    )
    assert by_value == pytest.approx(by_column, abs=1e-9)


# ---- possible links -------------------------------------------------------------------------------------------
def three_fields() -> Patterns:
    """Return the eight patterns of three fields, with counts of 100 links and 9,900 other pairs, fields independent."""
    field = np.array([[k >> f & 1 for f in range(3)] for k in range(8)], dtype=np.int8)
    m, u = np.array([0.9, 0.8, 0.95]), np.array([0.1, 0.05, 0.2])
    links, others = (np.prod(np.where(field == 1, p, 1 - p), axis=1) for p in (m, u))
    return Patterns(field, 100 * links + 9900 * others)


def test_regions_of_the_decision_by_plain_arithmetic() -> None:
    fitted = fit_em(three_fields(), 100)
    decision = fitted.decide(0.01, 0.05)
    m, u, field = fitted.m, fitted.u, fitted.patterns.field
    weight = np.array(
        [sum(np.log(m[f] / u[f]) if row[f] else np.log((1 - m[f]) / (1 - u[f])) for f in range(3)) for row in field]
    )
    link, other = (np.prod(np.where(field == 1, p, 1 - p), axis=1) for p in (m, u))
    share = fitted.share * link / (fitted.share * link + (1 - fitted.share) * other)
    true, false = fitted.patterns.pairs * share, fitted.patterns.pairs * (1 - share)
    above, below = weight >= decision.upper, weight <= decision.lower
    assert false[above].sum() / false.sum() <= 0.01 and true[below].sum() / true.sum() <= 0.05
    between = ~above & ~below
    assert decision.possible == pytest.approx(fitted.patterns.pairs[between].sum()) and decision.possible > 0
    assert decision.true_possible == pytest.approx(true[between].sum())
    assert decision.links + decision.possible + decision.nonlinks == pytest.approx(10_000)
    assert decision.true_links + decision.true_possible + decision.missed == pytest.approx(true.sum())


def test_laxer_errors_leave_less_to_review() -> None:
    """Fellegi and Sunter: the review shrinks as the errors grow, and vanishes where the thresholds cross."""
    fitted = fit_em(three_fields(), 100)
    possible = [fitted.decide(error, error).possible for error in (0.0, 0.01, 0.1, 1.0)]
    assert possible == sorted(possible, reverse=True) and possible[0] == pytest.approx(10_000) and possible[-1] == 0


def test_review_is_in_the_parts() -> None:
    x, y = names()
    data = sm.read(x, keys=["surname", "town"], numeric=["age"])
    measure = sm.risk.Linkage(weights="em", mu=0.01, lam=0.1, open_columns="as any")
    masked = sm.read(y, keys=["surname", "town"], numeric=["age"])
    parts = measure.score(data, masked, RNG).parts
    decision = measure.classes(data, masked).decide(0.01, 0.1)
    assert parts["review pairs"] == pytest.approx(decision.possible / 60)
    assert parts["review links"] == pytest.approx(decision.true_possible / 60)
    assert 0 <= parts["links above mu"] <= measure.score(data, masked, RNG).value
    assert "review pairs" not in sm.risk.Linkage(weights="em", open_columns="as any").score(data, masked, RNG).parts


@pytest.mark.parametrize(
    ("options", "words"), [({"mu": 0.1}, "stated together"), ({"mu": 0.1, "lam": 0.1}, 'need weights "em"')]
)
def test_errors_of_the_decision_are_checked(options: dict, words: str) -> None:
    with pytest.raises(sm.errors.PlanError, match=words):
        sm.risk.Linkage(**options)
