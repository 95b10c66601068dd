"""Wick polynomials: polynomials of noisy variables whose expectation is the polynomial of the true ones.

For Z = X + e, e ~ N(0, D), the Wick (Hermite) polynomial :P: of a product P satisfies E[:P:(Z) | X] = P(X). It is defined
by :1: = 1 and :z_a M: = z_a :M: - sum over b in M of D_ab :M without b:. Its derivatives are the Wick polynomials of the
derivatives of P. For two factors, :z_a z_b: = z_a z_b - D_ab, which does not require normal noise. Fuller (1993)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from sdcmap.kernels.arrays import Array

Term = tuple[int, ...]  # a product of variables as sorted column numbers; () is the constant 1


class Wick:
    """The Wick polynomials of records z (n x m) with noise covariance D (m x m). Each is computed once."""

    def __init__(self, z: Array, noise: Array) -> None:
        self.z, self.noise = z, noise
        self._cache: dict[Term, Array] = {(): np.ones(len(z))}

    def __getitem__(self, term: Term) -> Array:
        if term not in self._cache:
            first, rest = term[0], term[1:]
            value = self.z[:, first] * self[rest]
            for position, other in enumerate(rest):
                if self.noise[first, other]:
                    value -= self.noise[first, other] * self[rest[:position] + rest[position + 1 :]]
            self._cache[term] = value
        return self._cache[term]

    def table(self, terms: Sequence[Term]) -> Array:
        """Return a matrix with one column for each term."""
        return np.column_stack([self[term] for term in terms])


def derivatives(term: Term) -> Iterator[tuple[int, int, Term]]:
    """Yield (variable, factor, rest) of each first derivative: d/dz_j of z_j^k M is k z_j^(k-1) M.

    >>> list(derivatives((0, 0, 3)))
    [(0, 2, (0, 3)), (3, 1, (0, 0))]
    """
    for variable in dict.fromkeys(term):
        first = term.index(variable)
        yield variable, term.count(variable), term[:first] + term[first + 1 :]


def noise_terms(
    wick: Wick, share: Array, center: Array, terms: Sequence[Term], fourth: float = 1.0
) -> tuple[Array, Array]:
    """Return the derivative of the mean of each :P: by D, and its covariance with the error of D; both K x m x m.

    The derivative is J = -1/2 mean :d2 P:. The covariance is C_jk = Cov(:P:, r_jk), where u = z - c and
    r = u u' - (x - c)(x - c)' is the contribution of one record to the error of D. By Stein's identity for normal e,
    C_jk = sum_l D_kl E[u_j :d_l P:] + sum_l D_jl E[u_k :d_l P:] - sum_lm D_jl D_km E[:d_lm P:].
    fourth : the variance of e e' as a share of that of normal noise; if it is not 1, P must have degree 2 at most.
    """
    m = wick.z.shape[1]
    once = list(dict.fromkeys(rest for term in terms for _, _, rest in derivatives(term)))
    twice = list(dict.fromkeys(left for rest in once for _, _, left in derivatives(rest)))
    products = (
        dict(zip(once, (((wick.z - center) * share[:, None]).T @ wick.table(once)).T, strict=True)) if once else {}
    )
    mean = dict(zip(twice, share @ wick.table(twice), strict=True)) if twice else {}
    slope, error = np.zeros((len(terms), m, m)), np.zeros((len(terms), m, m))
    for number, term in enumerate(terms):
        first, second = np.zeros((m, m)), np.zeros((m, m))
        for j, count, rest in derivatives(term):
            first[:, j] += count * products[rest]  # E[u_i :d_j P:]
            for k, again, left in derivatives(rest):
                second[j, k] += count * again * mean[left]
        along = first @ wick.noise
        slope[number] = -second / 2
        error[number] = along + along.T - (2 - fourth) * wick.noise @ second @ wick.noise
    return slope, error
