"""Society with stated priors and losses: known answers, robust values, gains, bad input."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.core.measure import Measure
from sdcmap.core.value import decode, parse
from sdcmap.data.microdata import Microdata
from sdcmap.theory.decision import KullbackLeibler, Normal, Prior, global_utility, normal_posterior

RNG = np.random.default_rng(0)  # none of these measures draws


@pytest.fixture(scope="module")
def pair() -> tuple[Microdata, Microdata]:
    rng = np.random.default_rng(6)
    x = rng.normal(0.1, 1.0, 200)
    data = sm.read(pl.DataFrame({"x": x, "k": rng.choice(["u", "v"], 200)}), numeric=["x"], keys=["k"])
    return data, data.change(None, {"x": x + rng.normal(0.0, 1.0, 200)})


def moments(data: Microdata) -> Normal:
    """Return the bootstrap belief about the mean of x."""
    return Normal(float(data["x"].mean()), float(data["x"].var()) / (len(data) + 1))


@pytest.mark.parametrize("how", [{}, {"divergence": "kl"}], ids=["loss", "kl"])
def test_stated_prior_is_updated_as_in_theory(pair: tuple[Microdata, Microdata], how: dict[str, Any]) -> None:
    """Prior N(0, 10) of the notes, and a narrow one that matters: theory's normal_posterior and global_utility."""
    data, released = pair
    for mean, variance in ((0.0, 10.0), (1.0, 0.01)):
        seen = moments(released)
        society = normal_posterior(Normal(mean, variance), float(seen.mean), float(seen.variance))
        expected = global_utility(moments(data), society, **({"divergence": KullbackLeibler()} if how else {}))
        prior = Prior(mean=mean, variance=variance)
        for kind, value in ((sm.utility.SocietyKnowledge, expected.sek), (sm.utility.SocietyUtility, expected.dus)):
            measure = kind(on="x", scale="raw", prior=prior, **how)
            assert measure.score(data, released, RNG).value == pytest.approx(value)
    nothing = sm.utility.SocietyKnowledge(on="x", prior=Prior(mean=1, variance=0.01)).baseline(data)
    agency = moments(data)
    assert nothing == pytest.approx(-((1 - agency.mean) ** 2 + agency.variance) / 0.01)


def test_losses_of_society_match_closed_forms(pair: tuple[Microdata, Microdata]) -> None:
    from scipy.special import ndtr

    data, released = pair
    seen = moments(released)
    exact = {"absolute": math.sqrt(2 * seen.variance / math.pi), "zero-one": 2 * ndtr(-0.05 / math.sqrt(seen.variance))}
    for loss, value in exact.items():
        dus = sm.utility.SocietyUtility(on="x", loss=loss, width=0.05, scale="raw").score(data, released, RNG)
        assert -dus.value == pytest.approx(value)
        assert sm.utility.SocietyUtility(on="x", loss=loss, width=0.05).baseline(data) == pytest.approx(-1)


def test_class_takes_the_smallest_utility_and_gains_are_parts(pair: tuple[Microdata, Microdata]) -> None:
    data, released = pair
    priors = [Prior(mean=0, variance=1), Prior(mean=2, variance=0.02)]
    for kind in (sm.utility.SocietyKnowledge, sm.utility.SocietyUtility):
        single = [kind(on="x", prior=prior).score(data, released, RNG) for prior in priors]
        both = kind(on="x", prior=priors).score(data, released, RNG)
        assert both.value == min(one.value for one in single)
        assert [both.parts["case_1"], both.parts["case_2"]] == pytest.approx([one.value for one in single])
        one = kind(on="x", prior=priors[0])
        assert single[0].parts["gain"] == pytest.approx(single[0].value - (one.baseline(data) or 0))
    dus = sm.utility.SocietyUtility(on="x", prior=priors[0]).score(data, released, RNG)
    assert dus.parts["relative_gain"] == pytest.approx(1 + dus.value)


def test_prior_from_earlier_file_and_counts(pair: tuple[Microdata, Microdata], tmp_path: Path) -> None:
    data, released = pair
    path = tmp_path / "earlier.csv"
    pl.DataFrame({"x": [0.0, 1.0, 4.0], "k": ["u", "v", "v"], "w": [1.0, 1.0, 2.0]}).write_csv(path)
    plain, weighted = (Prior(population=str(path), weight=weight) for weight in ("", "w"))
    x = np.array([0.0, 1.0, 4.0])
    wide = (x - 9 / 4) ** 2 @ [0.25, 0.25, 0.5] / (16 / 6 + 1)  # Kish: 16/6 records
    for prior, stated in ((plain, (5 / 3, x.var() / 4)), (weighted, (9 / 4, wide))):
        values = [
            sm.utility.SocietyKnowledge(on="x", prior=one, scale="raw").score(data, released, RNG).value
            for one in (prior, Prior(mean=stated[0], variance=stated[1]))
        ]
        assert values[0] == pytest.approx(values[1])
    counts = Prior(categories=["u", "v"], counts=[30, 70])
    measure = sm.utility.SocietyKnowledge(on="k", of="proportion", category="u", prior=counts)
    stated_one = Prior(mean=0.3, variance=0.21 / 101)
    other = sm.utility.SocietyKnowledge(on="k", of="proportion", category="u", prior=stated_one)
    assert measure.score(data, released, RNG).value == pytest.approx(other.score(data, released, RNG).value)
    assert decode(measure.spec(), Measure) == measure == parse(measure.text, Measure)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"loss": "zero-one"}, "need a .width"),
        ({"loss": ["absolute", "absolute"]}, "each loss once"),
        ({"loss": ["absolute", "quadratic"], "scale": "raw"}, "different units"),
        ({"prior": Prior(categories=["u"], counts=[1])}, "belong to a proportion"),
        ({"loss": "absolute", "divergence": "kl", "scale": "raw"}, "quadratic"),
    ],
)
def test_invalid_fields_are_rejected(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(sm.errors.PlanError, match=words):
        sm.utility.SocietyKnowledge(on="x", **fields)


def test_unfit_prior_file_is_rejected(pair: tuple[Microdata, Microdata], tmp_path: Path) -> None:
    path = tmp_path / "earlier.csv"
    pl.DataFrame({"y": [0.0, 1.0]}).write_csv(path)
    with pytest.raises(sm.errors.SchemaError, match="no column 'x'"):
        sm.utility.SocietyKnowledge(on="x", prior=Prior(population=str(path))).score(*pair, RNG)
