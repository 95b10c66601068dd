"""A release that does not depend on the file gains nothing, in households as well: no measure gives a false alarm."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.bundle.limit_checks import score_file
from sdcmap.core import Estimate, Generator, Method, Microdata, Stream
from sdcmap.core.method import Origin
from sdcmap.data.schema import KINDS

REGIONS = ["north", "south", "east", "west"]
FILES, HOUSEHOLDS = 12, 300


@dataclass(frozen=True)
class Unrelated(Method):
    """Release records of other households, with as many records as the file has."""

    kinds: ClassVar[tuple[str, ...]] = KINDS
    mixes_records: ClassVar[bool] = True
    value_origin: ClassVar[Origin] = "model"

    on: tuple[str, ...]

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        drawn = households(data.level_count("household"), rng)
        rows = rng.integers(0, len(drawn), len(data))
        new = {
            name: np.array([REGIONS.index(value) for value in drawn[name]])[rows].astype(data.column(name).values.dtype)
            if name == "region"
            else drawn[name].to_numpy()[rows]
            for name in self.on
        }
        return replace(data.change(None, new), paired=False)

    def keeps_pairs(self, data: Microdata) -> bool:
        return False


def households(count: int, rng: Generator) -> pl.DataFrame:
    """Return persons in households of up to five, whose members share the rent."""
    of_household = np.repeat(np.arange(count), rng.integers(1, 6, count))
    rent = np.round(rng.lognormal(6, 0.5, count))
    return pl.DataFrame(
        {
            "household": of_household,
            "region": rng.choice(REGIONS, len(of_household)),
            "rent": rent[of_household],
            "wage": np.round(rng.lognormal(7, 0.7, len(of_household)), 2),
        }
    )


@pytest.mark.parametrize(
    "measure",
    [
        sm.risk.ClosestRecord(held_out=0.5, folds=4),
        sm.risk.WorstMembership(held_out=0.5, folds=4),
        sm.risk.AttributeInference("rent", held_out=0.5, folds=4, worst=True),
        sm.risk.AttributeInference("wage", ["rent", "region"], held_out=0.5, folds=4, worst=True),
        sm.risk.Reconstruction(held_out=0.5, folds=4),
        sm.risk.SinglingOut(held_out=0.5, folds=4, queries=80, control="refits"),
        sm.risk.SinglingOut("univariate", held_out=0.5, folds=4, queries=80, control="refits"),
        sm.risk.Linkability(held_out=0.5, folds=4, targets=100, control="refits"),
        sm.risk.OutlierMembership(times=8, fewest=10),
        # one amount each: the largest gain of several is above 0 by chance, and its upper limit allows for that
        sm.risk.ExtremeValues("rent"),
        sm.risk.ExtremeValues("wage"),
    ],
    ids=lambda measure: measure.text,
)
def test_unrelated_release_gains_nothing(measure: sm.Measure) -> None:
    """The mean over files is within 4 standard errors of what an attacker achieves without a release."""
    values = []
    for seed in range(FILES):
        data = sm.read(
            households(HOUSEHOLDS, np.random.default_rng(seed)),
            keys=["region"],
            numeric=["rent", "wage"],
            household="household",
        )
        method, stream = Unrelated(["region", "rent", "wage"]), Stream.of_seed(seed, "release")
        (score,) = score_file([measure], data, method.apply(data, stream), stream.child("scores"), method)
        assert isinstance(score.outcome, Estimate), score.outcome
        values.append(score.outcome.value)
    error = np.std(values, ddof=1) / math.sqrt(FILES)
    assert np.mean(values) <= (measure.baseline_value or 0.0) + 4 * error
