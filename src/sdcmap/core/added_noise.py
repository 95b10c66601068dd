"""Added noise as a reader of the method note knows it: enough to take it off means and covariances.

A release Z = X + e with Cov e = d Cov X has Cov Z = (1 + d) Cov X, so the released file itself tells the covariance of the
noise: nothing of the original is needed but the method and d.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sdcmap.data.cells import rows_by_cell
from sdcmap.data.microdata import Microdata
from sdcmap.errors import Undefined
from sdcmap.kernels.arrays import Array
from sdcmap.kernels.statistics.moments import moments


@dataclass(frozen=True)
class AddedNoise:
    """The noise e of Z = X + e.

    Parameters
    ----------
    on : the variables it was added to.
    share : d. Cov e = d Cov X when `correlated`, else Var e_j = d Var x_j with independent errors.
    rescaled : Z was drawn in to its mean, z = c (x + e) + (1 - c) mean, c = 1/sqrt(1 + d).
    within : drawn in each stratum of these variables apart.
    normal : the noise is normal; else only its mean and covariance are used.
    """

    on: tuple[str, ...]
    share: float
    correlated: bool
    rescaled: bool = False
    within: tuple[str, ...] = ()
    normal: bool = True


@dataclass(frozen=True)
class Stratum:
    """The records that were masked together: their rows, how many of them told the covariance, and the noise covariance
    of the variables asked for (0 where there is no noise)."""

    rows: Array
    count: int
    covariance: Array


def undo_rescaling(released: Microdata, names: tuple[str, ...], noise: AddedNoise) -> Array:
    """The variables `names` as X + e: rescaling is undone.  y = (z - (1 - c) mean) / c, c = 1/sqrt(1 + d)

    Rescaling keeps the mean of each stratum, so the released file tells it.
    """
    x = released.matrix(names)
    if not noise.rescaled:
        return x
    x = x.copy()
    columns = np.array([k for k, name in enumerate(names) if name in noise.on], dtype=np.intp)
    for rows in rows_by_cell(released, noise.within):
        here = np.ix_(rows, columns)
        part = x[here]
        known = ~np.isnan(part)
        mean = np.where(known, part, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
        x[here] = mean + (part - mean) * np.sqrt(1 + noise.share)
    return x


def noise_strata(released: Microdata, names: tuple[str, ...], noise: AddedNoise) -> list[Stratum]:
    """The noise covariance of the variables `names` in each stratum, as the released file tells it: d/(1 + d) Cov(X + e),
    or its diagonal.

    The method drew correlated noise with the covariance of the records complete in all of its variables, and independent
    noise with each variable's own variance; the same records are used here.
    """
    held = tuple(name for name in noise.on if name in released.names)
    y = undo_rescaling(released, held, noise) if held else np.empty((len(released), 0))
    place = {name: k for k, name in enumerate(held)}
    columns = [k for k, name in enumerate(names) if name in place]
    source = [place[names[k]] for k in columns]
    strata = []
    for rows in rows_by_cell(released, noise.within):
        part = y[rows]
        if noise.correlated:
            part = part[~np.isnan(part).any(axis=1)]
        if len(part) < 2:
            raise Undefined("a stratum has fewer than 2 complete records, so the noise that was added cannot be told.")
        covariance = moments(part).covariance[np.ix_(source, source)] * (noise.share / (1 + noise.share))
        if not noise.correlated:
            covariance = np.diag(np.diagonal(covariance))
        whole = np.zeros((len(names), len(names)))
        whole[np.ix_(columns, columns)] = covariance
        strata.append(Stratum(rows, len(part), whole))
    return strata


def noise_covariance(strata: list[Stratum], rows: Array | slice, weights: Array) -> Array:
    """The mean noise covariance of some records: each has that of its stratum."""
    total = weights[rows].sum()
    here = np.zeros(len(weights), dtype=bool)
    here[rows] = True
    parts = [part.covariance * (weights[part.rows][here[part.rows]].sum() / total) for part in strata]
    return np.asarray(np.sum(parts, axis=0))
