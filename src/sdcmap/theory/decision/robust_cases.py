"""The worst case over a class of priors and losses, for one release and pooled over releases.  Trottini (2001), par. 14."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from sdcmap.core import Estimate

Pool = Callable[[Sequence[Estimate]], Estimate]
Worst = Callable[..., float]  # max for a risk, min for a utility
CASE = "case_"  # prefix of the part with the value of one member of the class


def worst_case(
    values: Sequence[float], baselines: Sequence[float | None], worst: Worst
) -> tuple[int, dict[str, float]]:
    """Return the index of the worst value, and its parts: the gain over the baseline, and every case if there are several.

    gain : how much more is known than before the release; relative_gain : the same as a share of what was not known.
    Duncan and Lambert (1986): U(prior) - U(posterior), and its share of U(prior).

    >>> worst_case([-0.5, -0.25], [-1.0, -1.0], max)
    (1, {'gain': 0.75, 'relative_gain': 0.75, 'case_1': -0.5, 'case_2': -0.25})
    """
    index = int(np.argmax(values) if worst is max else np.argmin(values))
    parts: dict[str, float] = {}
    before = baselines[index]
    if before is not None and math.isfinite(before):
        parts["gain"] = values[index] - before
        if before < 0:
            parts["relative_gain"] = parts["gain"] / -before
    if len(values) > 1:
        parts |= {f"{CASE}{number}": value for number, value in enumerate(values, 1)}
    return index, parts


def pool_cases(estimates: Sequence[Estimate], worst: Worst, pool: Pool) -> Estimate:
    """Return the value of a method from its replicates: each case is pooled, and the worst pooled value counts.

    The mean of the worst cases would be larger: the worst case of a draw is worst by chance too. Gains are averaged.

    pool : pools the estimates of one case
    """
    if len(estimates) == 1:
        return pool(estimates)
    names = [name for name in estimates[0].parts if name.startswith(CASE)]
    cases = [[replace(e, value=e.parts[name]) for e in estimates] for name in names] or [list(estimates)]
    pooled = [pool(case) for case in cases]
    values = [one.value for one in pooled]
    parts = {**_mean_parts(estimates), **dict(zip(names, values, strict=False))}
    return replace(pooled[values.index(worst(values))], parts=parts)


def _mean_parts(estimates: Sequence[Estimate]) -> Mapping[str, float]:
    """Return the mean of each part that all estimates have."""
    shared = [name for name in estimates[0].parts if all(name in e.parts for e in estimates)]
    return {name: math.fsum(e.parts[name] for e in estimates) / len(estimates) for name in shared}
