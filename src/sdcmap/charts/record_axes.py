"""The axes of the confidentiality plot, and the density of many records on them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import polars as pl

from sdcmap.core.chart import Spec
from sdcmap.kernels.arrays import Array

LOG_ABOVE_THRESHOLDS = 6.0  # an axis whose values exceed so many thresholds is logarithmic above the threshold
BINS = (64, 48)  # of the density, across and up


@dataclass(frozen=True)
class RecordAxis:
    """An axis from 0; it is a symmetric logarithm with the threshold as constant where values reach far beyond it."""

    low: float
    high: float
    threshold: float
    is_logarithmic: bool
    title: str
    counts: bool

    @staticmethod
    def of(values: Array, threshold: float, title: str, *, counts: bool, room: float = 1.15) -> RecordAxis:
        known = values[np.isfinite(values)]
        top = max(float(known.max()) if len(known) else 0.0, room * threshold)
        is_logarithmic = top > LOG_ABOVE_THRESHOLDS * threshold
        low = -0.02 * top if not is_logarithmic else -0.12 * threshold
        return RecordAxis(low, top * (1.15 if is_logarithmic else 1.04), threshold, is_logarithmic, title, counts)

    def transform(self, values: Array) -> Array:
        """Return where values are drawn, in units proportional to the length of the axis."""
        return np.sign(values) * np.log1p(np.abs(values) / self.threshold) if self.is_logarithmic else values

    def edges(self, bins: int) -> Array:
        """Return the edges of bins that are about equally wide in the picture, with whole numbers and 0 in the middle."""
        end = float(self.transform(np.array([self.high]))[0])
        if self.counts and not self.is_logarithmic:
            # Bins of counts contain whole numbers only, so that no bin has more numbers than another.
            step = math.ceil(self.high / bins)
            return np.arange(-0.5 * (step % 2 or 2), self.high + step, step)
        edges = (np.arange(bins + 2) - 0.5) * end / bins
        if self.is_logarithmic:
            edges = np.sign(edges) * np.expm1(np.abs(edges)) * self.threshold
        return np.unique(np.rint(edges)) - 0.5 if self.counts else edges

    def spec(self, length: int) -> Spec:
        scale: Spec = {"domain": [self.low, self.high], "nice": False, "zero": False}
        look: Spec = {"title": self.title, "format": ".6~g" if self.high < 1e4 else "~s"}
        if self.is_logarithmic:
            scale |= {"type": "symlog", "constant": self.threshold}
            look["values"] = self._ticks()
        else:
            look["tickCount"] = max(4, length // 70)
        return {"type": "quantitative", "scale": scale, "axis": look}

    def _ticks(self) -> list[float]:
        """Return 0, the threshold, and 1, 2, 5 times powers of ten where there is room."""
        steps = [m * 10.0**e for e in range(math.floor(math.log10(self.threshold)), 13) for m in (1, 2, 5)]
        whole = self.transform(np.array([self.high]))[0]
        ticks = [0.0, self.threshold]
        for step in steps:
            # Ticks closer than this share of the axis would have overlapping labels.
            apart = np.abs(self.transform(np.array(ticks)) - self.transform(np.array([step]))[0]).min()
            if step < self.high and apart > 0.055 * whole:
                ticks.append(step)
        return sorted(ticks)


def heat(x_values: Array, y_values: Array, x: RecordAxis, y: RecordAxis) -> pl.DataFrame:
    """Return rectangles with the number of records in each, without empty ones: x, x2, y, y2, records."""
    across, up = x.edges(BINS[0]), y.edges(BINS[1])
    counts = np.histogram2d(x_values, y_values, [across, up])[0]
    i, j = np.nonzero(counts)
    return pl.DataFrame(
        {"x": across[i], "x2": across[i + 1], "y": up[j], "y2": up[j + 1], "records": counts[i, j].astype(np.int64)}
    )
