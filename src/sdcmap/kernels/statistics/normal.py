"""The normal distribution, from scipy when it is first asked for: every process of a sweep imports the methods that may
need it, `scipy.special` is a fifth of such a process's start, and few ask."""

from __future__ import annotations

from sdcmap.kernels.arrays import Array


def log_ndtr(x: Array) -> Array:
    """log of the chance that a standard normal variable is at most x."""
    from scipy.special import log_ndtr

    log_chance: Array = log_ndtr(x)
    return log_chance


def ndtri(chance: float) -> float:
    """The point below which a standard normal variable lies with this chance."""
    from scipy.special import ndtri

    return float(ndtri(chance))
