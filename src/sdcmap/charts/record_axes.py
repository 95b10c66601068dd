"""The axes of the confidentiality plot, and the density of many records on them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import polars as pl

from sdcmap.core.chart import Spec
from sdcmap.kernels.arrays import Array

FAR = 6.0  # values beyond so many thresholds make the axis logarithmic above the threshold
BINS = (64, 48)


@dataclass(frozen=True)
class RecordAxis:
    """An axis from 0 on; `bent` (symmetric logarithm with the threshold as constant) where values reach far beyond it."""

    low: float
    high: float
    threshold: float
    bent: bool
    title: str
    counts: bool

    @staticmethod
    def of(values: Array, threshold: float, title: str, *, counts: bool, room: float = 1.15) -> RecordAxis:
        known = values[np.isfinite(values)]
        top = max(float(known.max()) if len(known) else 0.0, room * threshold)
        bent = top > FAR * threshold
        low = -0.02 * top if not bent else -0.12 * threshold
        return RecordAxis(low, top * (1.15 if bent else 1.04), threshold, bent, title, counts)

    def place(self, values: Array) -> Array:
        """Values as shares of the drawn length, apart from where it begins."""
        return np.sign(values) * np.log1p(np.abs(values) / self.threshold) if self.bent else values

    def edges(self, bins: int) -> Array:
        """Borders of bins of about equal width in the picture; whole numbers, and 0, lie in the middle of theirs."""
        end = float(self.place(np.array([self.high]))[0])
        if self.counts and not self.bent:
            step = math.ceil(self.high / bins)
            return np.arange(-0.5 * (step % 2 or 2), self.high + step, step)
        edges = (np.arange(bins + 2) - 0.5) * end / bins
        if self.bent:
            edges = np.sign(edges) * np.expm1(np.abs(edges)) * self.threshold
        return np.unique(np.rint(edges)) - 0.5 if self.counts else edges

    def spec(self, length: int) -> Spec:
        scale: Spec = {"domain": [self.low, self.high], "nice": False, "zero": False}
        look: Spec = {"title": self.title, "format": ".6~g" if self.high < 1e4 else "~s"}
        if self.bent:
            scale |= {"type": "symlog", "constant": self.threshold}
            look["values"] = self._ticks()
        else:
            look["tickCount"] = max(4, length // 70)
        return {"type": "quantitative", "scale": scale, "axis": look}

    def _ticks(self) -> list[float]:
        """0, the threshold, and 1, 2, 5 times powers of ten where they have room."""
        steps = [m * 10.0**e for e in range(math.floor(math.log10(self.threshold)), 13) for m in (1, 2, 5)]
        whole = self.place(np.array([self.high]))[0]
        ticks = [0.0, self.threshold]
        for step in steps:
            apart = np.abs(self.place(np.array(ticks)) - self.place(np.array([step]))[0]).min()
            if step < self.high and apart > 0.055 * whole:
                ticks.append(step)
        return sorted(ticks)


def heat(x_values: Array, y_values: Array, x: RecordAxis, y: RecordAxis) -> pl.DataFrame:
    """Rectangles with the number of records in each, empty ones left out: x, x2, y, y2, records."""
    across, up = x.edges(BINS[0]), y.edges(BINS[1])
    counts = np.histogram2d(x_values, y_values, [across, up])[0]
    i, j = np.nonzero(counts)
    return pl.DataFrame(
        {"x": across[i], "x2": across[i + 1], "y": up[j], "y2": up[j + 1], "records": counts[i, j].astype(np.int64)}
    )
