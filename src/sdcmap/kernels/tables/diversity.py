"""Values of a sensitive variable within groups of records: how many there are, and how far they are from the whole file.

Groups lie one after the other: the values of group g, rising, and their counts are value[start[g]:start[g + 1]] and
count[start[g]:start[g + 1]].
"""

from __future__ import annotations

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.jit import jit

DENSE = 1 << 22  # groups times values that are looked at at once


@jit
def entropy_diversity(start: Array, count: Array) -> Array:
    """exp(H) of each group, H the entropy of its values; 0 of an empty one.  Machanavajjhala et al. (2007), def. 4.1"""
    effective = np.zeros(len(start) - 1)
    for g in range(len(effective)):
        inside = count[start[g] : start[g + 1]]
        if len(inside):
            total = inside.sum()
            h = 0.0
            for number in inside:
                h -= number / total * np.log(number / total)
            effective[g] = np.exp(h)
    return effective


@jit
def recursive_diversity(start: Array, count: Array, c: float) -> Array:
    """The largest l of each group with r_1 < c (r_l + ... + r_m), r the falling counts.  Ibid., def. 4.2"""
    largest = np.zeros(len(start) - 1)
    for g in range(len(largest)):
        falling = np.sort(count[start[g] : start[g + 1]])[::-1]
        tail = 0.0
        for place in range(len(falling) - 1, -1, -1):
            tail += falling[place]
            if falling[0] < c * tail:
                largest[g] = place + 1
                break
    return largest


@jit
def equal_distances(start: Array, value: Array, count: Array, whole: Array) -> Array:
    """1/2 sum |p - q| of each group, q the shares of the whole file; 0 of an empty group.  Li et al. (2007)"""
    distance = np.zeros(len(start) - 1)
    for g in range(len(distance)):
        total = count[start[g] : start[g + 1]].sum()
        for e in range(start[g], start[g + 1]):
            distance[g] += max(count[e] / total - whole[value[e]], 0.0)
    return distance


@jit
def ordered_distances(start: Array, value: Array, count: Array, whole: Array) -> Array:
    """sum_j |P_j - Q_j| / (m - 1) of each group, P and Q running sums over the m ordered values.  Li et al. (2007)

    Between two values of the group P stands still and Q rises: the sum of |P - Q| there comes from running sums of Q.
    """
    m = len(whole)
    q = np.cumsum(whole)
    below = np.zeros(m + 1)  # below[j]: sum of q over the first j values
    for j in range(m):
        below[j + 1] = below[j] + q[j]
    distances = np.zeros(len(start) - 1)
    for g in range(len(distances)):
        first, last = start[g], start[g + 1]
        if first == last or m < 2:
            continue
        total = count[first:last].sum()
        distance, p = below[value[first]], 0.0
        for e in range(first, last):
            p += count[e] / total
            low, high = value[e], value[e + 1] if e + 1 < last else m
            turn = min(max(np.searchsorted(q, p), low), high)
            distance += (turn - low) * p - (below[turn] - below[low])
            distance += (below[high] - below[turn]) - (high - turn) * p
        distances[g] = max(distance, 0.0) / (m - 1)
    return distances


def shares_within(start: Array, count: Array) -> tuple[Array, Array]:
    """The group of each value, and its share of the group."""
    group = np.repeat(np.arange(len(start) - 1), np.diff(start))
    total = np.bincount(group, count, minlength=len(start) - 1)
    return group, count / total[group]


def largest_within(group: Array, amounts: Array, groups: int) -> Array:
    """The largest amount of each group, at least 0; 0 of an empty one."""
    largest = np.zeros(groups)
    np.maximum.at(largest, group, amounts)
    return largest


def hierarchical_distances(start: Array, value: Array, count: Array, whole: Array, tree: Array) -> Array:
    """The earth mover's distance of each group where moving between two values costs the height of their lowest common
    label over that of the tree; 0 of an empty group.  Li, Li, Venkatasubramanian (2007), section 4.3

    tree : the label of each value at each level, as codes, the values themselves first, one label for all last.
    """
    group, share = shares_within(start, count)
    groups, values = len(start) - 1, len(whole)
    step = max(1, DENSE // values)
    distance = np.empty(groups)
    for low in range(0, groups, step):
        part = slice(*np.searchsorted(group, [low, low + step]))
        gap = np.zeros((min(step, groups - low), values))
        gap[group[part] - low, value[part]] = share[part]
        gap -= np.where(np.diff(start[low : low + step + 1]) > 0, 1.0, 0.0)[:, np.newaxis] * whole
        distance[low : low + step] = _moved_up(gap, tree)
    return distance


def _moved_up(gap: Array, tree: Array) -> Array:
    """What labels have too much meets what their siblings lack one level higher: sum over levels h = 1 .. H and labels
    there of h/H min(excess of its children, lack of its children)."""
    distance, height = np.zeros(len(gap)), tree.shape[1] - 1
    for level in range(1, height + 1):
        below, first = np.unique(tree[:, level - 1], return_index=True)
        child_of = np.zeros((len(below), int(tree[:, level].max()) + 1))
        child_of[below, tree[first, level]] = 1.0
        excess, lack = np.maximum(gap, 0.0) @ child_of, np.maximum(-gap, 0.0) @ child_of
        distance += level / height * np.minimum(excess, lack).sum(axis=1)
        gap = excess - lack
    return distance
