"""Top coding of several numbers together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.random import Generator

from sdcmap.core.method import Method, Trials
from sdcmap.core.roles import Roles, strength
from sdcmap.core.value import Range
from sdcmap.core.words import percent
from sdcmap.data.microdata import Microdata
from sdcmap.errors import Infeasible
from sdcmap.kernels.arrays import Array
from sdcmap.kernels.statistics.robust_scatter import Scatter, robust_scatter


def onto_ellipse(x: Array, scatter: Scatter, squared: float) -> Array:
    """Records beyond the ellipse of this squared distance drawn straight towards its centre, until they lie on it."""
    distance = scatter.distances(x)
    share = np.sqrt(squared / np.maximum(distance, squared))[:, np.newaxis]
    drawn: Array = np.where(share < 1, scatter.center + share * (x - scatter.center), x)
    return drawn


@dataclass(frozen=True)
class TopCodeJointly(Method):
    """Draw records that are outliers of several numbers together towards the middle, until they are outliers no more.

    A wage of 90 and a rent of 5 may each be usual and nobody have both. Coding one number at a time leaves such records as
    they are.

    Parameters
    ----------
    on : numeric variables to mask, at least 2.
    alpha : the share of a normal file beyond the ellipse, in (0, 1).

    Formula: x becomes c + (x - c) sqrt(q/d) where d > q; c and the scatter S are robust (minimum covariance determinant),
        d = (x - c)' S^-1 (x - c), and q the 1 - alpha quantile of chi-square with as many degrees as variables.
    Outliers do not move the ellipse, up to half of the file. Infeasible where half of the records lie in a plane, such as
    of a variable that is mostly 0. Every file far from normal has more than alpha of its records beyond.
    Records with a missing value among these variables stay as they are. Weights and households are not used.
    Reference: sdcMicro's mvTopCoding; Rousseeuw and van Driessen (1999).

    Examples
    --------
    >>> TopCodeJointly(on=["wage", "rent"], alpha=0.01).text
    "TopCodeJointly(on=['wage', 'rent'], alpha=0.01)"
    """

    revision: ClassVar[int] = 2  # 2: equal distances alike on every machine
    random: ClassVar[bool] = False
    kept: ClassVar[str] = "every record within the ellipse"
    distorted: ClassVar[str] = "outliers of the numbers together, and so variances and the largest values"

    on: tuple[str, ...]
    alpha: Annotated[float, Range(0, 1, "()")] = 0.025

    @property
    def deed(self) -> str:
        return f"drawn onto an ellipse, {percent(self.alpha)} beyond"

    @classmethod
    def trials(cls, roles: Roles) -> Trials:
        alphas = (0.01, 0.1) if len(roles.numbers) > 1 else ()
        return {f"{cls.__name__} {strength(alpha)}": cls(roles.numbers, alpha) for alpha in alphas}

    @classmethod
    def at_strength(cls, strength: float, names: tuple[str, ...], roles: Roles) -> Method | None:
        """A search does not try it: it masks outliers alone."""
        return None

    def problems(self) -> Iterator[str]:
        if len(set(self.on)) < 2:
            yield ".on must name at least two variables: for one, see TopCode."

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        from scipy.special import gammainccinv

        x = data.matrix(self.on)
        complete = np.isfinite(x).all(axis=1)
        scatter = robust_scatter(x[complete])
        if scatter is None:
            raise Infeasible("half of the records lie in a plane, or there are too few, so that there is no ellipse.")
        released = x.copy()
        released[complete] = onto_ellipse(x[complete], scatter, 2 * float(gammainccinv(len(self.on) / 2, self.alpha)))
        return data.change(None, dict(zip(self.on, released.T, strict=True)))
