"""Mixtures of normal distributions with mean 0 and variance 1: centers, density and draws."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.jit import jit

NEGLIGIBLE_LOG = -40.0  # a component this far below the largest, on the log scale, is lost in rounding


def centers(relative: Array, weights: Array, variances: Array) -> Array:
    """Return the centers theta_1 ... theta_K of a mixture with mean 0 and variance 1.

    relative : psi_1 ... psi_(K-1). YWC (2002), appendix: psi_K = -(1/w_K) sum_(k<K) w_k psi_k; S = sum w_k psi_k^2;
    theta_k = sqrt((1 - sigma^2)/S) psi_k, where sigma^2 = sum w_k sigma_k^2.
    """
    psi = np.append(relative, -(weights[:-1] @ relative) / weights[-1])
    return np.asarray(np.sqrt((1 - weights @ variances) / (weights @ psi**2)) * psi)


def vector_centers(weights: Array, variances: Array, dimensions: int) -> Array:
    """Return the centers theta_k, one per row, of a mixture of N(theta_k, sigma_k I) with mean 0 and covariance I.

    Roque (2000) solves sum w_k theta_k = 0 and sum w_k theta_k theta_k' = (1 - sum w_k sigma_k) I for K > m by non-linear
    optimization. With rows b_k = sqrt(w_k) theta_k, the m columns of B must be orthogonal to sqrt(w) and to each other,
    and of equal length. So if any starting matrix is made orthogonal to sqrt(w), its singular vectors are the solution
    nearest to it. The starting matrix is the cosine basis cos(pi j (k + 1/2)/K), j = 1 ... m. It is fixed, so that a
    method has a single set of centers.
    """
    count = len(weights)
    start = np.cos(np.pi * np.outer(np.arange(count) + 0.5, np.arange(1, dimensions + 1)) / count)
    # Project the start onto the complement of sqrt(w); its polar factor is the nearest matrix with orthonormal columns.
    unit = np.sqrt(weights)
    start = start * unit[:, np.newaxis]
    left, _, right = np.linalg.svd(start - np.outer(unit, unit @ start), full_matrices=False)
    return np.asarray(np.sqrt(1 - weights @ variances) * (left @ right) / unit[:, np.newaxis])


def log_mixture(error: Array, weights: Array, theta: Array, sds: Array) -> Array:
    """Return log sum_k w_k N(error; theta_k, sd_k^2), up to a constant."""
    log_density = np.empty(np.size(error))
    _log_mixture(np.ravel(error), np.log(weights / sds), theta, 1 / sds, NEGLIGIBLE_LOG, log_density)
    return log_density.reshape(np.shape(error))


@jit
def _log_mixture(error: Array, tops: Array, theta: Array, scales: Array, negligible: float, log_density: Array) -> None:
    for i in range(len(error)):
        # Factor the largest component out, so that exp cannot underflow.
        best, first = -np.inf, 0
        for k in range(len(tops)):
            away = (error[i] - theta[k]) * scales[k]
            height = tops[k] - 0.5 * away * away
            if height > best:
                best, first = height, k
        others = 0.0
        for k in range(len(tops)):
            away = (error[i] - theta[k]) * scales[k]
            below = tops[k] - 0.5 * away * away - best
            if below > negligible and k != first:
                others += np.exp(below)
        log_density[i] = best + np.log1p(others) if others > 0.0 else best


def draw_components(shape: int | tuple[int, ...], weights: Array, rng: Generator) -> Array:
    """Draw the number of the component that each draw comes from."""
    uniform = rng.random(shape)
    component = np.zeros(uniform.shape, dtype=np.int16)
    for end in np.cumsum(weights)[:-1]:
        component += uniform >= end
    return component


def draw_mixture(shape: tuple[int, int], weights: Array, theta: Array, variances: Array, rng: Generator) -> Array:
    """Draw independently from sum_k w_k N(theta_k, sigma_k^2)."""
    component = draw_components(shape, weights, rng)
    noise = rng.standard_normal(shape)
    noise *= np.sqrt(variances).take(component)
    noise += theta.take(component)
    return noise


def draw_vectors(n: int, weights: Array, theta: Array, variances: Array, rng: Generator) -> Array:
    """Draw n independent vectors from sum_k w_k N(theta_k, sigma_k I), one per row."""
    component = draw_components(n, weights, rng)
    noise = rng.standard_normal((n, theta.shape[1]))
    return theta[component] + np.sqrt(variances)[component][:, np.newaxis] * noise
