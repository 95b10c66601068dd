"""Made files for the targets: incomes with one outlier, heavy-tailed business turnover, and people in households.

Each file is drawn from a stated model, so that it can be drawn again as often as needed. One unit is the same in every
draw: the one with the largest value of the file's main amount. Nobody else comes near it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, TypeAlias

import numpy as np
import polars as pl

import sdcmap as sm
from sdcmap.explore.starting_plan import starting_plan
from sdcmap.methods import PRAM, Chain, Synthesize
from sdcmap.study.profiles import find_profile

Columns: TypeAlias = dict[str, np.ndarray]
Generator: TypeAlias = np.random.Generator
MAX_SHARE_OF_LARGEST = 0.7  # the amounts of all others are below this share of the largest one
PRAM_STAY = 0.7  # of the masking method: the second of four strengths of the starting plan


@dataclass(frozen=True)
class MadeFile:
    """A model of a file.

    draw : returns the columns of so many units. amount : the amount with the largest value. person : the values of the unit
    that has it. roles : how the file is read. profile : for whom it is released.
    """

    name: str
    draw: Callable[[int, Generator], Columns]
    amount: str
    person: Mapping[str, Any]
    roles: Mapping[str, Any]
    profile: str = "public-use"

    @property
    def largest(self) -> float:
        return float(self.person[self.amount])

    def frame(self, rows: int, rng: Generator, *, has_person: bool = True) -> pl.DataFrame:
        """Return a newly drawn file of `rows` other units, with or without the unit that has the largest value."""
        columns = self.draw(rows + 1, rng)
        amount = columns[self.amount]
        # others near the largest value are taken into the middle of the file
        columns[self.amount] = np.where(
            amount > MAX_SHARE_OF_LARGEST * self.largest, np.nanmedian(amount), amount
        ).astype(amount.dtype)
        place = int(rng.integers(rows + 1))
        for name, value in self.person.items():
            columns[name][place] = value
        frame = pl.DataFrame(columns, nan_to_null=True)
        return frame if has_person else frame.filter(np.arange(rows + 1) != place)

    def read(self, frame: pl.DataFrame) -> sm.Microdata:
        return sm.read(frame, **self.roles)


def draw_incomes(rows: int, rng: Generator) -> Columns:
    """Draw persons with lognormal incomes, which depend on age and job, and a rent."""
    age, job = rng.integers(2, 9, rows), rng.choice(8, rows, p=np.array([8, 7, 6, 5, 4, 3, 2, 1]) / 36)
    income = np.exp(7.2 + 0.08 * age + 0.1 * job + 0.6 * rng.standard_normal(rows))
    return {
        "region": rng.choice(np.array(["north", "east", "south", "west", "center"]), rows, p=[0.3, 0.25, 0.2, 0.15, 0.1]),
        "sex": rng.choice(np.array(["f", "m"]), rows),
        "age": 10 * age,
        "job": np.array([f"job {number}" for number in range(8)])[job],
        "income": 10 * np.rint(income / 10),
        "rent": np.rint(0.3 * income * np.exp(0.4 * rng.standard_normal(rows))),
    }  # fmt: skip


def draw_businesses(rows: int, rng: Generator) -> Columns:
    """Draw businesses with Pareto turnover, so that there are wide gaps between the largest, and exports with gaps."""
    turnover = np.rint(50 * (1 - rng.random(rows)) ** (-1 / 1.1))
    exports = np.where(rng.random(rows) < 0.5, 0.0, np.rint(turnover * rng.beta(1, 3, rows)))
    exports[rng.random(rows) < 0.05] = np.nan
    return {
        "sector": rng.choice(np.array([f"sector {letter}" for letter in "ABCDEFGH"]), rows),
        "region": rng.choice(np.array(["north", "east", "south", "west"]), rows),
        "form": rng.choice(np.array(["company", "partnership", "sole owner"]), rows, p=[0.5, 0.2, 0.3]),
        "turnover": turnover,
        "employees": np.rint(1 + turnover / 80 * np.exp(0.5 * rng.standard_normal(rows))),
        "exports": exports,
    }  # fmt: skip


def draw_households(rows: int, rng: Generator) -> Columns:
    """Draw people in households, with weights by region, wages of those who work, and benefits."""
    household = np.repeat(np.arange(rows), rng.choice(np.arange(1, 6), rows, p=[0.35, 0.3, 0.15, 0.15, 0.05]))[:rows]
    region = rng.choice(4, rows, p=[0.4, 0.3, 0.2, 0.1])[household]
    age, school = rng.integers(1, 9, rows), rng.integers(0, 4, rows)
    works = (age > 1) & (age < 7) & (rng.random(rows) < 0.75)
    wage = 100 * np.rint(np.exp(9.6 + 0.2 * school + 0.07 * age + 0.55 * rng.standard_normal(rows)) / 100)
    return {
        "household": 1000 + 3 * household,
        "region": np.array(["north", "east", "south", "west"])[region],
        "sex": rng.choice(np.array(["f", "m"]), rows),
        "age": 10 * age,
        "school": np.array(["none", "basic", "middle", "high"])[school],
        "wage": np.where(works, wage, 0.0),
        "benefits": np.where(rng.random(rows) < 0.3, 12 * np.rint(np.exp(5.5 + 0.5 * rng.standard_normal(rows))), 0.0),
        "weight": np.array([150.0, 120.0, 90.0, 60.0])[region],
    }  # fmt: skip


FILES = (
    MadeFile(
        "incomes", draw_incomes, "income",
        {"region": "center", "sex": "f", "age": 50, "job": "job 7", "income": 90_000.0, "rent": 4_000.0},
        {"keys": ["region", "sex", "age", "job"], "numeric": ["income", "rent"], "sensitive": ["income"],
         "kinds": {"age": "ordinal"}},
    ),
    MadeFile(
        "businesses", draw_businesses, "turnover",
        {"sector": "sector C", "region": "west", "form": "company", "turnover": 40_000.0, "employees": 410.0,
         "exports": 9_000.0},
        {"keys": ["sector", "region", "form"], "numeric": ["turnover", "employees", "exports"],
         "sensitive": ["turnover"]},
    ),
    MadeFile(
        "households", draw_households, "wage",
        {"sex": "m", "age": 40, "school": "high", "wage": 190_000.0, "benefits": 0.0},
        {"keys": ["region", "sex", "age", "school"], "numeric": ["wage", "benefits"], "sensitive": ["wage"],
         "household": "household", "weight": "weight", "kinds": {"age": "ordinal"}},
    ),
)  # fmt: skip


def default_synthesis(data: sm.Microdata) -> sm.Method:
    """Return a fully synthetic file of the starting plan, with the default model and leaf size of `Synthesize` instead."""
    methods = starting_plan(data, find_profile("public-use")).all_methods
    method = next(method for method in methods if fully_synthetic(method, data))
    defaults = {own.name: own.default for own in fields(Synthesize) if own.name in ("model", "leaf")}
    steps = [replace(step, **defaults) if isinstance(step, Synthesize) else step for step in method.steps]
    return Chain(steps)


def fully_synthetic(method: sm.Method, data: sm.Microdata) -> Synthesize | None:
    """Return the step that makes a file fully synthetic; None if there is none."""
    steps = (step for step in method.steps if isinstance(step, Synthesize) and step.model != "copula")
    return next((step for step in steps if not step.keeps_pairs(data)), None)


def default_masking(data: sm.Microdata) -> sm.Method:
    """Return the chain of the starting plan with PRAM and rank swapping of medium strength."""
    methods = starting_plan(data, find_profile("public-use")).all_methods
    return next(
        method
        for method in methods
        if any(isinstance(step, PRAM) and step.stay == PRAM_STAY for step in method.steps)
        and any(isinstance(step, sm.RankSwap) for step in method.steps)
    )


METHODS: Mapping[str, Callable[[sm.Microdata], sm.Method]] = {
    "synthetic": default_synthesis,
    "masked": default_masking,
}
