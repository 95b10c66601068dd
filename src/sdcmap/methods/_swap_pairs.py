"""Random pairs of records for swapping: from one random matching, from several, or one record at a time.

A pair is admissible if its records differ in every column of `differ` (n x v codes) and agree in `same` (n codes, or
empty for no constraint).
"""

from __future__ import annotations

import threading

import numpy as np

from sdcmap.core import Array, Generator
from sdcmap.kernels.jit import inner_jit, jit
from sdcmap.kernels.scratch_memory import empty
from sdcmap.kernels.tables.coding import compress

SPARE_DRAWS = 8  # 32-bit draws in addition to two per pair, for the few that are rejected and drawn again
LOW_32_BITS, SHIFT, ONE = np.uint64(0xFFFFFFFF), np.uint64(32), np.uint64(1)
# A matching pays off if at least one pair in this number is admissible; otherwise partners are searched record by record.
MIN_ADMISSIBLE_ONE_IN = 32


# ---- one matching ---------------------------------------------------------------------------------------------
def matching_pairs(wanted: int, differ: Array, same: Array, rng: Generator) -> tuple[Array, Array]:
    """Return the first `wanted` admissible pairs of one random perfect matching of the records.

    Return fewer if the matching contains no more. GKS (2003), section 3
    """
    n = len(differ)
    order = _borrow_order(n)
    pairs = np.empty((2, wanted), dtype=np.int64)
    checked, placed, admitted = 0, 0, 0
    # Shuffle only as much of the file as is likely to be needed, judged by the share of admissible pairs so far.
    while admitted < wanted and checked < n // 2:
        share = (admitted + 1) / (checked + 1)
        block = min(int((wanted - admitted) / share) + 32, n // 2 - checked)
        draws = rng.bit_generator.random_raw(block + SPARE_DRAWS // 2).view(np.uint32)
        checked, placed, admitted = _match(order, draws, checked, admitted, differ, same, pairs)
    _restore(order, min(n, 2 * placed + 2))
    _THREAD.order = order.base
    return pairs[0, :admitted], pairs[1, :admitted]


_THREAD = threading.local()


def _borrow_order(n: int) -> Array:
    """Return 0, 1, ..., n - 1, reused by each thread from one matching to the next to save n steps."""
    # Remove it while it is in use: if a matching is interrupted, the next one starts with a new array.
    order: Array | None = _THREAD.__dict__.pop("order", None)
    if order is None or len(order) < n:
        order = empty(n, np.int64 if n > np.iinfo(np.int32).max else np.int32)
        _count_up(order)
    return order[:n]


@jit
def _count_up(order: Array) -> None:
    for index in range(len(order)):
        order[index] = index


@jit
def _restore(order: Array, front: int) -> None:
    """Restore 0, 1, ... after a shuffle of the first `front` positions and of the positions they were exchanged with."""
    for index in range(front):
        if order[index] >= front:
            order[order[index]] = order[index]
    for index in range(front):
        order[index] = index


@jit
def _match(
    order: Array, draws: Array, checked: int, admitted: int, differ: Array, same: Array, pairs: Array
) -> tuple[int, int, int]:
    """Shuffle more pairs into place, as far as the draws go, and keep the admissible ones.

    Return the numbers of pairs that are checked, in place and admitted.
    """
    placed = _shuffle(order, draws, checked)
    checked, admitted = _admit(order, checked, placed, admitted, differ, same, pairs)
    return checked, placed, admitted


@jit
def _shuffle(order: Array, draws: Array, checked: int) -> int:
    """Continue a Fisher-Yates shuffle by pairs until the draws are used up. Return the number of pairs in place."""
    index, used, again = 2 * checked, 0, False
    while True:
        left = len(draws) - used
        count = min(left, len(order) - len(order) % 2 - index)
        if 0 < count == left and (index + count) % 2 == 1 and not (left == 1 and again):
            count -= 1  # the last draw would begin a pair without a draw for its second record
        filled = _fill(order[index:], draws[used : used + count])
        index += filled
        if filled == count:
            return index // 2
        used += filled + 1
        again = True


@inner_jit
def _fill(order: Array, draws: Array) -> int:
    """Fill one position after the other with a random record of those not yet placed. Return the number filled.

    A 32-bit draw u gives the position floor(u k / 2^32) below k. Filling stops at one of the rare draws that would make
    some positions more likely than others; it must be drawn again (Lemire 2019).
    """
    for index in range(len(draws)):
        left = np.uint64(len(order) - index)
        product = np.uint64(draws[index]) * left
        if (product & LOW_32_BITS) < left and (product & LOW_32_BITS) < ((ONE << SHIFT) - left) % left:
            return index
        drawn = np.uint64(index) + (product >> SHIFT)
        order[drawn], order[index] = order[index], order[drawn]
    return len(draws)


@inner_jit
def _admit(
    order: Array, checked: int, upto: int, admitted: int, differ: Array, same: Array, pairs: Array
) -> tuple[int, int]:
    """Store the admissible pairs among `checked` to `upto` until `pairs` is full."""
    constrained = len(same) > 0
    while checked < upto and admitted < pairs.shape[1]:
        first, second = np.uint64(order[2 * checked]), np.uint64(order[2 * checked + 1])
        admissible = differ[first, 0] != differ[second, 0]
        if constrained:
            admissible &= same[first] == same[second]
        for j in range(1, differ.shape[1]):
            admissible &= differ[first, j] != differ[second, j]
        # Store the pair in any case and advance only if it is admissible: a branch would often be mispredicted.
        pairs[0, admitted], pairs[1, admitted] = first, second
        admitted += admissible
        checked += 1
    return checked, admitted


# ---- until none is left ---------------------------------------------------------------------------------------
def greedy_pairs(wanted: int, differ: Array, same: Array, rng: Generator) -> tuple[Array, Array]:
    """Return `wanted` admissible pairs: from a random matching, then from one of the records still unused, and so on.

    Once admissible pairs are rare in a matching, the rest is searched record by record. Fewer than `wanted` pairs are
    returned only if no two unused records are an admissible pair.
    """
    pool = np.arange(len(differ))
    last = matching_pairs(wanted, differ, same, rng)
    matchings, missing = [last], wanted - len(last[0])
    while missing:
        is_frequent = MIN_ADMISSIBLE_ONE_IN * len(last[0]) >= len(pool) // 2
        pool = np.delete(pool, np.concatenate(last))
        if not is_frequent:
            matchings.append(pairs_in_turn(missing, rng.permutation(pool), differ, same, rng))
            break
        last = matching_pairs(missing, differ[pool], same[pool] if len(same) else same, rng)
        matchings.append((pool[last[0]], pool[last[1]]))
        missing -= len(last[0])
    return np.concatenate([first for first, _ in matchings]), np.concatenate([second for _, second in matchings])


def pairs_in_turn(wanted: int, visit: Array, differ: Array, same: Array, rng: Generator) -> tuple[Array, Array]:
    """Visit records in the order `visit`; each unused one takes a partner drawn uniformly among the admissible ones.

    Partners are records of `visit` too. Return fewer than `wanted` pairs only if no admissible pair is left.
    """
    codes = differ[visit]
    agree = same[visit] if len(same) else np.zeros(len(visit), dtype=np.int32)
    # Records with the same codes have the same admissible partners, so candidates are counted by group.
    group, size = compress([*codes.T, agree])
    members = np.argsort(group, kind="stable")
    start = np.concatenate([[0], np.cumsum(size)])
    kind = members[start[:-1]]  # one record represents each group
    position = np.empty_like(members)
    position[members] = np.arange(len(members))
    kinds, agreements = (
        codes[kind].astype(np.int64),
        agree[kind].astype(np.int64),
    )  # one type, so that the kernel is compiled once
    pairs = np.empty((2, wanted), dtype=np.int64)
    reached, paired = 0, 0
    left, exhausted = size.copy(), np.zeros(len(size), dtype=np.bool_)
    while paired < wanted and reached < len(visit):
        draws = rng.random(min(wanted - paired, len(visit) - reached))
        turns = draws, reached, paired, group, kinds, agreements, start, left, exhausted, members, position, pairs
        reached, paired = _take_turns(*turns)
    return visit[pairs[0, :paired]], visit[pairs[1, :paired]]


@jit
def _take_turns(
    draws: Array,
    reached: int,
    paired: int,
    group: Array,
    codes: Array,
    agree: Array,
    start: Array,
    left: Array,
    exhausted: Array,
    members: Array,
    position: Array,
    pairs: Array,
) -> tuple[int, int]:
    """Continue from visit `reached` while draws last.

    The unused members of group g are the first left[g] entries of its range in `members`. exhausted[g] is set once no
    unused record is admissible for group g, which cannot change later.
    """
    used = 0
    allowed = np.empty(len(left), dtype=np.int64)
    while reached < len(group) and used < len(draws) and paired < pairs.shape[1]:
        mine = group[reached]
        if not exhausted[mine] and position[reached] < start[mine] + left[mine]:
            total = 0
            for other in range(len(left)):
                admissible = agree[mine] == agree[other]
                for j in range(codes.shape[1]):
                    admissible &= codes[mine, j] != codes[other, j]
                total += left[other] if admissible else 0
                allowed[other] = total
            if total == 0:
                exhausted[mine] = True
            else:
                # `allowed` is a cumulative count, so a uniform number below `total` selects a group and a member of it.
                ticket = min(int(draws[used] * total), total - 1)
                used += 1
                theirs = np.searchsorted(allowed, ticket, side="right")
                ticket -= allowed[theirs] - left[theirs]
                partner = members[start[theirs] + ticket]
                pairs[0, paired], pairs[1, paired] = reached, partner
                paired += 1
                # Move both records behind the unused members of their groups.
                for member, of in ((reached, mine), (partner, theirs)):
                    left[of] -= 1
                    end = start[of] + left[of]
                    moved, at = members[end], position[member]
                    members[end], members[at] = member, moved
                    position[member], position[moved] = end, at
        reached += 1
    return reached, paired
