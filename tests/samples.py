"""Data, plans and helpers shared by several tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

import sdcmap as sm
from sdcmap.bundle import Release, release
from sdcmap.study.plan import Candidate


# ---- rows of sweeps -------------------------------------------------------------------------------------------
def rows(scores: sm.Scores) -> tuple[pl.DataFrame, ...]:
    """Return all columns except `seconds`, the only one that differs between two runs of a sweep."""
    return scores.candidate.drop("seconds"), scores.score, scores.measure


def same_rows(first: sm.Scores, second: sm.Scores) -> bool:
    return all(a.equals(b) for a, b in zip(rows(first), rows(second), strict=True))


def with_file(scores: sm.Scores, name: str, estimates: Mapping[str, sm.Estimate]) -> sm.Scores:
    """Return the scores with an external file added to the candidates."""
    key = f"file {name}"
    row = {"id": key, "kind": "file", "method": name, "replicate": 0, "status": "ok", "reason": "", "stream_id": ""}
    row |= {"seconds": 0.0} if "seconds" in scores.candidate.columns else {}
    values = [(key, m, e.value, e.se, e.to_details(), "ok", "") for m, e in estimates.items()]
    candidate = pl.DataFrame([row], schema=scores.candidate.schema)
    more = pl.DataFrame(values, schema=scores.score.schema, orient="row")
    return replace(scores, candidate=scores.candidate.vstack(candidate), score=scores.score.vstack(more))


# ---- persons for a release ------------------------------------------------------------------------------------
SEED = 0x9F3C5A7719E2D4B86A0F1C3E5D7B9A2C4E6F80123456789ABCDEF0123456789B  # 256 bits
KEYS, WEIGHTS = ["age", "sex", "region"], [100.5, 200.25, 300.0]
ROLES: dict[str, Any] = {
    "keys": KEYS, "sensitive": ["income", "rent"], "identifiers": "pid", "weight": "w", "household": "hh",
    "stratum": "psu", "kinds": {"age": "ordinal"},
}  # fmt: skip
SWAP_AND_NOISE = sm.Chain([sm.Swap(on=["region"], rate=0.2), sm.Noise(on=["income", "rent"], variance=0.3)])


def people(count: int = 600, seed: int = 1) -> pl.DataFrame:
    """Return persons with every role that a release has to handle."""
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "pid": [f"P{number:05d}" for number in rng.permutation(count)],
            "hh": 7000 + np.sort(rng.integers(0, count // 2, count)),
            "psu": rng.choice(["north-7", "south-3", "west-9"], count),
            "age": rng.integers(18, 60, count),
            "sex": rng.choice(["f", "m"], count),
            "region": pl.Series(rng.choice(["A", "B", "C"], count), dtype=pl.Enum(["A", "B", "C", "Emptied"])),
            "income": 10 * rng.integers(50, 9000, count),
            "rent": rng.integers(20_000, 90_000, count) / 100,
            "w": rng.choice(WEIGHTS, count),
        }
    )


def plan_of(*methods: sm.Method, **parts: Any) -> sm.Plan:
    """Return a plan whose limit (SmallCells at most 0.9) every candidate meets, unless stated otherwise."""
    given: dict[str, Any] = {"rule": sm.Threshold(risk=0.9), "seed": SEED, "replicates": 2} | parts
    measures = given.pop("measures", [sm.SmallCells(on=KEYS), sm.Hellinger(), sm.IL1s(on=["income"])])
    return sm.Plan(list(methods), measures, **given)


def chosen(plan: sm.Plan, place: int = 0) -> Candidate:
    """Return the first draw of a plan's first method other than `Identity`."""
    return Candidate(plan.all_methods[1 + place])


PROFILE_OVERRIDES = dict.fromkeys(("unmasked", "profile"), "made-up people: a test of other checks")


def release_with_overrides(data: sm.Microdata, plan: sm.Plan, choice: Any, **given: Any) -> Release:
    """Release with the release checks overridden by a written reason, for tests of other parts."""
    return release(data, plan, choice, **{**given, "override": {**PROFILE_OVERRIDES, **(given.get("override") or {})}})


def failed(found: Release) -> dict[str, str]:
    """Return the sentence of each failed release check."""
    return {check.name: check.reason for check in found.check() if not check.passed}
