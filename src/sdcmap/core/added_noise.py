"""Added noise as the method note describes it: enough to remove it from means and covariances.

A release Z = X + e with Cov e = d Cov X has Cov Z = (1 + d) Cov X. The released file and d are therefore enough to
estimate the covariance of the noise; the original is not needed.
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
    rescaled : Z was shrunk toward its mean, z = c (x + e) + (1 - c) mean, c = 1/sqrt(1 + d).
    within : noise was drawn in each stratum of these variables separately.
    normal : the noise is normal; otherwise only its mean and covariance are used.
    """

    on: tuple[str, ...]
    share: float
    correlated: bool
    rescaled: bool = False
    within: tuple[str, ...] = ()
    normal: bool = True


@dataclass(frozen=True)
class Stratum:
    """Records that were masked together.

    Parameters
    ----------
    rows : their rows.
    count : the number of records that the covariance was estimated from.
    covariance : the noise covariance of the requested variables (0 where a variable has no noise).
    """

    rows: Array
    count: int
    covariance: Array


def undo_rescaling(released: Microdata, names: tuple[str, ...], noise: AddedNoise) -> Array:
    """Return the variables `names` as X + e, before rescaling: y = (z - (1 - c) mean) / c, c = 1/sqrt(1 + d).

    Rescaling keeps the mean of each stratum, so the mean can be taken from the released file.
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
    """Return the noise covariance of the variables `names` in each stratum: d/(1 + d) Cov(X + e), or its diagonal.

    The method drew correlated noise with the covariance of the records complete in all of its variables, and independent
    noise with each variable's own variance. The same records are used here.
    """
    noisy = tuple(name for name in noise.on if name in released.names)
    y = undo_rescaling(released, noisy, noise) if noisy else np.empty((len(released), 0))
    position = {name: k for k, name in enumerate(noisy)}
    columns = [k for k, name in enumerate(names) if name in position]
    source = [position[names[k]] for k in columns]
    strata = []
    for rows in rows_by_cell(released, noise.within):
        part = y[rows]
        if noise.correlated:
            part = part[~np.isnan(part).any(axis=1)]
        if len(part) < 2:
            raise Undefined("a stratum has fewer than 2 complete records, so its noise cannot be estimated.")
        covariance = moments(part).covariance[np.ix_(source, source)] * (noise.share / (1 + noise.share))
        if not noise.correlated:
            covariance = np.diag(np.diagonal(covariance))
        # variables without noise have rows and columns of zeros
        whole = np.zeros((len(names), len(names)))
        whole[np.ix_(columns, columns)] = covariance
        strata.append(Stratum(rows, len(part), whole))
    return strata


def noise_covariance(strata: list[Stratum], rows: Array | slice, weights: Array) -> Array:
    """Return the mean noise covariance of some records, each with that of its stratum."""
    total = weights[rows].sum()
    here = np.zeros(len(weights), dtype=bool)
    here[rows] = True
    parts = [part.covariance * (weights[part.rows][here[part.rows]].sum() / total) for part in strata]
    return np.asarray(np.sum(parts, axis=0))
