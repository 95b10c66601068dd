"""The links of which an attacker is surest, and patterns of missing values."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap import testing
from sdcmap.core.method import Method
from sdcmap.data.microdata import Microdata
from sdcmap.errors import Undefined
from sdcmap.risk import SurestLinks
from sdcmap.risk.linkage.surest_links import precision_of_surest

CATEGORIES = tuple("abcdef")
FEW = 15  # people with a pattern of missing values that nobody else has


def people(n: int = 400, seed: int = 0, *, missing: bool = True) -> Microdata:
    """Return people of six categories and two amounts; the first 15 have unique patterns of missing values."""
    rng = np.random.default_rng(seed)
    columns = {name: rng.integers(0, 4, n).astype(str).astype(object) for name in CATEGORIES}
    for row, pair in enumerate(list(combinations(CATEGORIES, 2))[:FEW] if missing else []):
        for name in pair:
            columns[name][row] = None
    amounts = {"wage": rng.lognormal(7, 0.6, n), "rent": rng.lognormal(5, 0.6, n)}
    frame = pl.DataFrame({name: list(x) for name, x in columns.items()} | amounts)
    return sm.read(frame, keys=list(CATEGORIES), numeric=["wage", "rent"])


def surest(data: Microdata, method: Method, measure: SurestLinks | None = None, seed: int = 1) -> float:
    measure = SurestLinks() if measure is None else measure
    return sm.score(data, sm.mask(data, method, seed=seed), [measure], method=method, seed=seed)[measure.text].value


# categories are nearly drawn anew, and the amounts have far more noise than spread
MASKING = sm.Chain([sm.PRAM(on=CATEGORIES, stay=0.25), sm.Noise(on=("wage", "rent"), variance=20.0)])


# ---- known answers --------------------------------------------------------------------------------------------
def test_precision_counts_ties_at_the_cut_with_their_mean() -> None:
    margin, correct = np.array([5.0, 3.0, 1.0, 1.0, 1.0, 0.0]), np.array([1.0, 0.0, 1.0, 0.0, 0.5, 1.0])
    assert precision_of_surest(margin, correct, 1) == 1
    assert precision_of_surest(margin, correct, 2) == 0.5
    assert precision_of_surest(margin, correct, 3) == pytest.approx((1 + 0 + 0.5) / 3)
    assert precision_of_surest(margin, correct, 4) == pytest.approx((1 + 0 + 2 * 0.5) / 4)
    assert precision_of_surest(margin, correct, 99) == pytest.approx(3.5 / 6)


def test_unmasked_file_has_only_true_links_and_equal_records_one_over_their_number() -> None:
    data = sm.read(pl.DataFrame({"a": list("xxxxyyyyzzzz")}), keys=["a"])
    assert surest(data, sm.Identity()) == pytest.approx(1 / 4)
    assert surest(people(60), sm.Identity()) == 1


def test_fully_synthetic_file_has_no_links() -> None:
    data = people(60)
    with pytest.raises(Undefined):
        SurestLinks().apply(data, Microdata(data.schema, data.columns, paired=False), np.random.default_rng(1))


def test_surest_links_equal_those_of_a_plain_attack() -> None:
    """Mahalanobis distances and their margins, in plain numpy."""
    data = people(300, missing=False)
    only = sm.read(data.frame().select("wage", "rent"), numeric=["wage", "rent"])
    method = sm.Noise(on=("wage", "rent"), variance=0.3)
    masked = sm.mask(only, method, seed=3)
    x, y = (np.column_stack([file.numbers(n) for n in ("wage", "rent")]) for file in (only, masked))
    inverse = np.linalg.inv(np.cov(x.T))
    cost = np.array([[(b - a) @ inverse @ (b - a) for a in x] for b in y])
    nearest = cost.argmin(axis=1)
    two = np.sort(cost, axis=1)[:, :2]
    best = np.argsort(two[:, 0] - two[:, 1])[:20]
    plain = float((nearest[best] == best).mean())
    estimate = sm.score(only, masked, [SurestLinks()], method=method)["SurestLinks"]
    assert estimate.parts["mahalanobis"] == pytest.approx(plain) and estimate.parts["links"] == 20
    assert estimate.value == max(value for name, value in estimate.parts.items() if name != "links") >= plain


# ---- patterns of missing values -------------------------------------------------------------------------------
def test_unique_patterns_of_missing_values_are_the_surest_links() -> None:
    """A plain attacker who compares only which values are missing is right about all 15; so are the 15 surest links.

    The share of all records is small, and without missing values few of the surest links are true.
    """
    data = people()
    masked = sm.mask(data, MASKING, seed=1)
    patterns = [[tuple(row) for row in np.array([f.missing(n) for n in CATEGORIES]).T] for f in (data, masked)]
    unique = [i for i, pattern in enumerate(patterns[0]) if patterns[0].count(pattern) == 1]
    owners = np.arange(len(masked)) if masked.origin is None else masked.origin
    assert [owners[patterns[1].index(patterns[0][i])] for i in unique] == unique == list(range(FEW))
    assert surest(data, MASKING, SurestLinks(links=FEW)) == 1
    assert surest(data, MASKING) >= 15 / 20
    share = sm.score(data, masked, [sm.WorstLinkage()], method=MASKING)["WorstLinkage"].value
    assert share < 0.25
    assert np.mean([surest(people(missing=False, seed=s), MASKING, seed=s) for s in range(4)]) < 0.6


def test_imputed_values_leave_no_pattern() -> None:
    data = people()
    drawn = sm.mask(people(missing=False), MASKING, seed=1).frame()
    measure = SurestLinks(links=FEW)
    assert sm.score(data, drawn, [measure])[measure.text].value < 1


# ---- draws and errors -----------------------------------------------------------------------------------------
def test_release_checks_take_the_mean_over_ten_draws() -> None:
    data = people(150, missing=False)
    noise = sm.Noise(on=("wage", "rent"), variance=0.05)
    variant = SurestLinks().release_variant()
    assert isinstance(variant, SurestLinks) and variant.draws == 10
    only = sm.read(data.frame().select("wage", "rent"), numeric=["wage", "rent"])
    masked = sm.mask(only, noise, seed=1)
    estimate = sm.score(only, masked, [variant], method=noise, seed=2)[variant.text]
    singles = [surest(only, noise, SurestLinks(), seed=s) for s in range(10)]
    assert estimate.df == 9 and estimate.se is not None and 0 < estimate.se < 0.06
    assert abs(estimate.value - np.mean(singles)) < 0.1
    assert SurestLinks().release_error(sm.score(only, masked, [SurestLinks()])["SurestLinks"]) < 0.05


def test_surest_links_obey_the_laws() -> None:
    testing.check_measure(SurestLinks(), sm.demo.population(50, seed=1), [sm.Noise(on="wage")])
