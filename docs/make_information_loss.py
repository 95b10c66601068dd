"""Compute the table of information-loss.md: how each measure reacts to zeros and skewness. Run it after a change."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

import sdcmap as sm
from sdcmap.core.streams import Stream

PAGE = Path(__file__).with_name("information-loss.md")
BEGIN, END = "<!-- computed -->", "<!-- end -->"
RECORDS, SEEDS = 2_000, 20
MEASURES = [
    sm.utility.RelativeLoss(),
    sm.utility.IL1(),
    sm.IL1s(),
    sm.utility.IL2(),
    sm.utility.IL3(),
    sm.utility.IL4(),
    sm.utility.IL5(),
    sm.utility.S0(),
    sm.utility.S1(),
    sm.utility.S2(),
]


def files() -> dict[str, sm.Microdata]:
    """Return six files: two variables with a correlation of about 0.6 and a third that is almost unrelated."""
    rng = np.random.default_rng(2002)
    z = rng.standard_normal((RECORDS, 3))
    z[:, 1] = 0.6 * z[:, 0] + 0.8 * z[:, 1]
    earns = rng.random((RECORDS, 1))
    shapes = {
        "symmetric, far from 0": 100 + 20 * z,
        "skewed (lognormal, sigma 1)": np.exp(4 + z),
        "very skewed (lognormal, sigma 2)": np.exp(4 + 2 * z),
        "skewed, half of the records 0": np.exp(4 + z) * (earns < 0.5),
        "skewed, nine in ten records 0": np.exp(4 + z) * (earns < 0.1),
        "symmetric around 0": 20 * z,
    }
    return {
        name: sm.read(pl.DataFrame(x.round(2), schema=["a", "b", "c"]), numeric="all") for name, x in shapes.items()
    }


def table() -> list[str]:
    """Return the table as lines of Markdown: means over 20 seeds."""
    lines = ["| file | method | " + " | ".join(m.text for m in MEASURES) + " |", "|---|---|" + "---:|" * len(MEASURES)]
    methods = {  # title -> name of the random stream, method
        "noise, d = 0.1": ("noise, d = .1", sm.Noise(on=["a", "b", "c"], variance=0.1, correlated=True)),
        "rank swap, p = 0.1": ("rank swap, p = .1", sm.RankSwap(on=["a", "b", "c"], p=0.1)),
    }
    rng = np.random.default_rng()  # none of these measures uses it
    for name, data in files().items():
        for title, (stream, method) in methods.items():
            masked = [method.apply(data, Stream.of_seed(seed, stream)) for seed in range(SEEDS)]
            means = [np.mean([m.score(data, one, rng).value for one in masked]) for m in MEASURES]
            lines.append(f"| {name} | {title} | " + " | ".join(_shown(value) for value in means) + " |")
    return lines


def _shown(value: float) -> str:
    return "inf" if np.isinf(value) else f"{value:.3g}" if value >= 0.0005 else "0"


if __name__ == "__main__":
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    PAGE.write_text("\n".join([before + BEGIN, "", *table(), "", END]) + rest.partition(END)[2], encoding="utf-8")
