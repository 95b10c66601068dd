"""Files on which a method or measure once broke a law, kept as they were drawn."""

from __future__ import annotations

import contextlib
import warnings

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.core.measure import Measure
from sdcmap.core.method import Method
from sdcmap.data.microdata import Microdata
from sdcmap.testing import check_measure
from sdcmap.testing.laws import OWN_ERRORS, make_draw, rng_of

KEYS, NUMBERS = ("region", "sex", "age"), ("wage", "rent")
METHODS: tuple[Method, ...] = (
    sm.Swap(on="sex", rate=0.3),
    sm.Noise(on=NUMBERS),
    sm.Chain([sm.RankSwap(on="wage", p=0.5), sm.Swap(on=["age"], rate=0.2)]),
)


def drawn(**columns: str) -> Microdata:
    """A file written as texts, "-" for missing; keys that are not given are constant."""
    texts = {
        name: columns.get(name, "0 " * len(columns["wage"].split())).split() for name in (*KEYS, *NUMBERS, "weight")
    }
    frame = pl.DataFrame(texts).with_columns(pl.all().replace({"-": None}))
    frame = frame.with_columns(pl.col(*NUMBERS, "weight").cast(pl.Float64))
    return sm.read(frame, keys=KEYS, numeric=NUMBERS, weight="weight")


BROKEN: dict[str, tuple[Measure, Microdata]] = {
    # two attacks find half of the records; rates summed in another order of rows made another of them the better
    "equal attacks": (
        sm.risk.IntruderKnowledge(on="wage"),
        drawn(
            region="0 0 0 0 - 0 0 - 0 0 0 0",
            sex="- 0 0 - 0 0 0 0 0 0 0 0",
            age="- 0 0 0 - 0 - - 0 0 0 0",
            wage="28 - 28 5 50 31 12 36 29 27 - 35",
            rent="2 -1 0 - -3 -1 -3 0 3 -3 -1 -1",
            weight="3 1 2 1 1 3 1 1 2 2 1 3",
        ),
    ),
    # the intercept is the one record of age 0: an interval of no width, which rounding gave one
    "an exact fit": (
        sm.utility.IntervalWidth(on="wage", weighted=True, models="rent ~ age"),
        drawn(age="1 1 0", wage="8 6 28", rent="3 -2 3", weight="1 2 3"),
    ),
    # the smallest number above 0 as a variance: its ratio to another is 0, and has no logarithm
    "a tiny variance": (
        sm.risk.IntruderKnowledge(
            on="wage",
            attack=sm.risk.NearestRecord("gower", inclusion=0.7),
            divergence="kl",
            scale="raw",
            measured=5e-324,
        ),
        drawn(
            region="- 0 2 1 1 1 1 3 3 - 1 0",
            age="- 0 1 0 0 1 0 0 1 1 0 0",
            wage="33 - 149 11 - 17 8 21 43 7 5 -",
            rent="-3 -3 0 -2 2 0 0 -3 - - -3 1",
            weight="1 2 1 3 1 1 2 2 2 2 1 3",
        ),
    ),
    # the one record of sex 0 fixes a coefficient: a point, which met itself or not by rounding
    "a point": (
        sm.utility.IntervalOverlap(weighted=True, models="wage ~ rent + sex"),
        drawn(
            region="0 0 - 0 0 0 0",
            sex="3 3 - - 2 3 0",
            age="- 0 0 0 0 - 0",
            wage="10 75 16 - 60 13 22",
            rent="3 3 3 2 -1 -2 -1",
            weight="1 2 2 1 3 3 1",
        ),
    ),
    # no records in pairs and a fraction that leaves no weight: 0/0
    "a tiny fraction": (
        sm.risk.SUDA(on=["region", "sex"], missing_is="a category", fraction=5e-324, scores="IHSN"),
        drawn(region="0 1", sex="1 -", wage="121 63", rent="3 -2", weight="3 1"),
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_former_counterexamples_of_measures_obey_the_laws(name: str) -> None:
    measure, data = BROKEN[name]
    check_measure(measure, data, METHODS)


def huge() -> Microdata:
    """Numbers whose squares are beyond the largest number."""
    rng = np.random.default_rng(1)
    wage = rng.lognormal(3, 1, 20) * 1e160
    frame = pl.DataFrame({"wage": wage, "rent": rng.permutation(wage), "sex": rng.integers(0, 2, 20).astype(str)})
    return sm.read(frame, keys="sex", numeric=NUMBERS)


@pytest.mark.parametrize(
    "method",
    [
        sm.Noise(on=NUMBERS),
        sm.Noise(on=NUMBERS, correlated=True),
        sm.methods.MixtureNoise(on=NUMBERS),
    ],
    ids=lambda method: method.text,
)
def test_noise_on_numbers_without_a_variance_is_refused(method: Method) -> None:
    with pytest.raises(sm.errors.Infeasible, match="variance overflows: divide them by a constant"):
        make_draw(method, huge(), 0)


@pytest.mark.parametrize(
    "measure",
    [
        sm.utility.IntervalOverlap(models="wage ~ rent + sex"),
        sm.utility.IntervalOverlap(models="sex ~ wage"),
        sm.utility.IntervalWidth(models="wage ~ rent + sex"),
        sm.utility.MomentChange(of="eigenvalues"),
        sm.utility.Propensity(),
        sm.risk.NearestRecord("mahalanobis"),
        sm.WorstLinkage(),
    ],
    ids=lambda measure: measure.text,
)
def test_constant_numbers_raise_only_our_own_errors(measure: Measure) -> None:
    data = huge()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        with contextlib.suppress(OWN_ERRORS):
            measure.score(data, make_draw(sm.RankSwap(on="wage", p=0.5), data, 0), rng_of(0))


@pytest.mark.parametrize("measure", [sm.utility.SocietyKnowledge, sm.utility.SocietyUtility])
def test_prior_of_almost_no_records_is_refused(measure: type[Measure]) -> None:
    """With 5e-324 of a record the rounding of a proportion of 1 had a spread, in one order of rows and not in another."""
    with pytest.raises(sm.errors.PlanError, match="prior_records"):
        measure(on="wage", of="proportion", above=0.0, weighted=True, prior_records=5e-324)  # type: ignore[call-arg]
