"""Values of a sensitive variable within groups of records: their diversity, and their distance from the whole file.

Groups are stored one after the other: value[start[g]:start[g + 1]] are the values of group g, ascending, and
count[start[g]:start[g + 1]] are their counts.
"""

from __future__ import annotations

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.jit import jit

MAX_DENSE_ENTRIES = 1 << 22  # entries of the (group, value) matrix at a time


@jit
def entropy_diversity(start: Array, count: Array) -> Array:
    """Return exp(H) of each group, where H is the entropy of its values; 0 for an empty group.

    Machanavajjhala et al. (2007), def. 4.1
    """
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
    """Return the largest l of each group with r_1 < c (r_l + ... + r_m), where r are the descending counts.

    Machanavajjhala et al. (2007), def. 4.2
    """
    largest = np.zeros(len(start) - 1)
    for g in range(len(largest)):
        falling = np.sort(count[start[g] : start[g + 1]])[::-1]
        tail = 0.0
        for i in range(len(falling) - 1, -1, -1):
            tail += falling[i]
            if falling[0] < c * tail:
                largest[g] = i + 1
                break
    return largest


@jit
def equal_distances(start: Array, value: Array, count: Array, whole: Array) -> Array:
    """Return 1/2 sum |p - q| of each group, where q are the shares of the whole file; 0 for an empty group.

    Li et al. (2007)
    """
    distance = np.zeros(len(start) - 1)
    for g in range(len(distance)):
        total = count[start[g] : start[g + 1]].sum()
        for e in range(start[g], start[g + 1]):
            distance[g] += max(count[e] / total - whole[value[e]], 0.0)
    return distance


@jit
def ordered_distances(start: Array, value: Array, count: Array, whole: Array) -> Array:
    """Return sum_j |P_j - Q_j| / (m - 1) of each group, where P and Q are cumulative shares over the m ordered values.

    Between two values of the group P is constant and Q rises, so the sum of |P - Q| there follows from cumulative sums of
    Q.  Li et al. (2007)
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
        distance, p = below[value[first]], 0.0  # below the first value of the group P is 0
        for e in range(first, last):
            p += count[e] / total
            # From this value to the next, |P - Q| is P - Q up to `cross` and Q - P after it.
            low, high = value[e], value[e + 1] if e + 1 < last else m
            cross = min(max(np.searchsorted(q, p), low), high)  # where Q exceeds P
            distance += (cross - low) * p - (below[cross] - below[low])
            distance += (below[high] - below[cross]) - (high - cross) * p
        distances[g] = max(distance, 0.0) / (m - 1)
    return distances


def shares_within(start: Array, count: Array) -> tuple[Array, Array]:
    """Return the group of each value, and its share of the group."""
    group = np.repeat(np.arange(len(start) - 1), np.diff(start))
    total = np.bincount(group, count, minlength=len(start) - 1)
    return group, count / total[group]


def largest_within(group: Array, amounts: Array, groups: int) -> Array:
    """Return the largest amount of each group, at least 0; 0 for an empty group."""
    largest = np.zeros(groups)
    np.maximum.at(largest, group, amounts)
    return largest


def hierarchical_distances(start: Array, value: Array, count: Array, whole: Array, tree: Array) -> Array:
    """Return the earth mover's distance of each group on a hierarchy; 0 for an empty group.

    Moving between two values costs the height of their lowest common label divided by the height of the tree.
    Li, Li, Venkatasubramanian (2007), section 4.3

    tree : the label of each value at each level, as codes; first the values themselves, last one label for all.
    """
    group, share = shares_within(start, count)
    groups, values = len(start) - 1, len(whole)
    step = max(1, MAX_DENSE_ENTRIES // values)
    distance = np.empty(groups)
    for low in range(0, groups, step):
        part = slice(*np.searchsorted(group, [low, low + step]))
        # The difference between the shares of each group and those of the file; empty groups stay at 0.
        gap = np.zeros((min(step, groups - low), values))
        gap[group[part] - low, value[part]] = share[part]
        gap -= np.where(np.diff(start[low : low + step + 1]) > 0, 1.0, 0.0)[:, np.newaxis] * whole
        distance[low : low + step] = _tree_distances(gap, tree)
    return distance


def _tree_distances(gap: Array, tree: Array) -> Array:
    """Return the cost of moving the excess of some labels to their siblings, level by level.

    It is the sum over the levels h = 1 .. H and their labels of h/H min(excess of its children, lack of its children).
    """
    distance, height = np.zeros(len(gap)), tree.shape[1] - 1
    for level in range(1, height + 1):
        below, first = np.unique(tree[:, level - 1], return_index=True)
        child_of = np.zeros((len(below), int(tree[:, level].max()) + 1))
        child_of[below, tree[first, level]] = 1.0
        excess, lack = np.maximum(gap, 0.0) @ child_of, np.maximum(-gap, 0.0) @ child_of
        distance += level / height * np.minimum(excess, lack).sum(axis=1)
        gap = excess - lack
    return distance
