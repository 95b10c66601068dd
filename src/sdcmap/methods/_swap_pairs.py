"""Random pairs of records for swapping: from one random matching, from several, or one record at a time.

A pair is admissible when its records differ in every column of `differ` (n x v codes) and agree in `same` (n codes, or
empty).
"""

from __future__ import annotations

import threading

import numpy as np

from sdcmap.core import Array, Generator
from sdcmap.kernels.jit import inner_jit, jit
from sdcmap.kernels.scratch_memory import empty
from sdcmap.kernels.tables.coding import compress

SPARE_DRAWS = 8  # draws beyond two a pair, for the few that are drawn again
LOW_32_BITS, SHIFT, ONE = np.uint64(0xFFFFFFFF), np.uint64(32), np.uint64(1)
MIN_ADMISSIBLE_SHARE_INVERSE = (
    32  # matchings of which less than one pair in so many is admissible give way to a search record by record
)


# ---- one matching ---------------------------------------------------------------------------------------------
def matching_pairs(wanted: int, differ: Array, same: Array, rng: Generator) -> tuple[Array, Array]:
    """The first `wanted` admissible pairs of one random perfect matching of the records.

    Fewer than `wanted` pairs come back when the matching has no more.   GKS (2003), section 3
    """
    n = len(differ)
    order = _borrow_order(n)
    pairs = np.empty((2, wanted), dtype=np.int64)
    looked, placed, admitted = 0, 0, 0
    while admitted < wanted and looked < n // 2:
        share = (admitted + 1) / (looked + 1)  # of admissible pairs so far: how many more to look at
        block = min(int((wanted - admitted) / share) + 32, n // 2 - looked)
        draws = rng.bit_generator.random_raw(block + SPARE_DRAWS // 2).view(np.uint32)
        looked, placed, admitted = _match(order, draws, looked, admitted, differ, same, pairs)
    _restore(order, min(n, 2 * placed + 2))
    _THREAD.order = order.base
    return pairs[0, :admitted], pairs[1, :admitted]


_THREAD = threading.local()


def _borrow_order(n: int) -> Array:
    """0, 1, ..., n - 1, kept by each thread from one matching to the next, so that none of them costs n steps."""
    order: Array | None = _THREAD.__dict__.pop(
        "order", None
    )  # while it is out, an interrupted matching cannot spoil it
    if order is None or len(order) < n:
        order = empty(n, np.int64 if n > np.iinfo(np.int32).max else np.int32)
        _count_up(order)
    return order[:n]


@jit
def _count_up(order: Array) -> None:
    for here in range(len(order)):
        order[here] = here


@jit
def _restore(order: Array, front: int) -> None:
    """Put 0, 1, ... back after a shuffle of the first `front` places: a record that came from behind left its place."""
    for here in range(front):
        if order[here] >= front:
            order[order[here]] = order[here]
    for here in range(front):
        order[here] = here


@jit
def _match(
    order: Array, draws: Array, looked: int, admitted: int, differ: Array, same: Array, pairs: Array
) -> tuple[int, int, int]:
    """Bring more pairs into their places, as far as the draws go, and keep the admissible ones: pairs looked at, pairs in
    place, pairs found."""
    placed = _shuffle(order, draws, looked)
    looked, admitted = _admit(order, looked, placed, admitted, differ, same, pairs)
    return looked, placed, admitted


@jit
def _shuffle(order: Array, draws: Array, looked: int) -> int:
    """Fisher-Yates, two records at a time, until the draws are used up: returns the number of pairs now in place."""
    here, used, again = 2 * looked, 0, False
    while True:
        left = len(draws) - used
        count = min(left, len(order) - len(order) % 2 - here)
        if 0 < count == left and (here + count) % 2 == 1 and not (left == 1 and again):
            count -= 1  # the last draw would begin a pair that no draw completes
        filled = _fill(order[here:], draws[used : used + count])
        here += filled
        if filled == count:
            return here // 2
        used += filled + 1
        again = True


@inner_jit
def _fill(order: Array, draws: Array) -> int:
    """Fill one place after the other, each with a record drawn from those not yet placed; returns how many.

    A draw u of 32 bits becomes a place below k as floor(u k / 2^32); it ends at one of the rare draws that would make
    some places likelier than others, and must be drawn again (Lemire 2019).
    """
    for here in range(len(draws)):
        left = np.uint64(len(order) - here)
        product = np.uint64(draws[here]) * left
        if (product & LOW_32_BITS) < left and (product & LOW_32_BITS) < ((ONE << SHIFT) - left) % left:
            return here
        there = np.uint64(here) + (product >> SHIFT)
        order[there], order[here] = order[here], order[there]
    return len(draws)


@inner_jit
def _admit(
    order: Array, looked: int, upto: int, admitted: int, differ: Array, same: Array, pairs: Array
) -> tuple[int, int]:
    """Keep the admissible pairs among `looked` to `upto` until all wanted are found."""
    constrained = len(same) > 0
    while looked < upto and admitted < pairs.shape[1]:
        first, second = np.uint64(order[2 * looked]), np.uint64(order[2 * looked + 1])
        admissible = differ[first, 0] != differ[second, 0]
        if constrained:
            admissible &= same[first] == same[second]
        for j in range(1, differ.shape[1]):
            admissible &= differ[first, j] != differ[second, j]
        pairs[0, admitted], pairs[1, admitted] = first, second  # without a branch: one in three would be guessed wrong
        admitted += admissible
        looked += 1
    return looked, admitted


# ---- until none is left ---------------------------------------------------------------------------------------
def greedy_pairs(wanted: int, differ: Array, same: Array, rng: Generator) -> tuple[Array, Array]:
    """`wanted` admissible pairs: a random matching, then another one of the records still unused, and so on.

    Once less than one pair in RARE is admissible the rest is searched record by record, so that fewer than `wanted`
    pairs come back only when no two unused records make an admissible pair.
    """
    pool = np.arange(len(differ))
    last = matching_pairs(wanted, differ, same, rng)
    matchings, missing = [last], wanted - len(last[0])
    while missing:
        often = MIN_ADMISSIBLE_SHARE_INVERSE * len(last[0]) >= len(pool) // 2
        pool = np.delete(pool, np.concatenate(last))
        if not often:
            matchings.append(pairs_in_turn(missing, rng.permutation(pool), differ, same, rng))
            break
        last = matching_pairs(missing, differ[pool], same[pool] if len(same) else same, rng)
        matchings.append((pool[last[0]], pool[last[1]]))
        missing -= len(last[0])
    return np.concatenate([first for first, _ in matchings]), np.concatenate([second for _, second in matchings])


def pairs_in_turn(wanted: int, visit: Array, differ: Array, same: Array, rng: Generator) -> tuple[Array, Array]:
    """Visit records in the order `visit`; each still unused takes a partner, drawn uniformly among the admissible ones.

    Both records are of `visit`. Fewer than `wanted` pairs come back only when no admissible pair is left.
    """
    codes = differ[visit]
    agree = same[visit] if len(same) else np.zeros(len(visit), dtype=np.int32)
    group, size = compress([*codes.T, agree])
    members = np.argsort(group, kind="stable")
    start = np.concatenate([[0], np.cumsum(size)])
    kind = members[start[:-1]]  # one record of each group stands for all
    position = np.empty_like(members)
    position[members] = np.arange(len(members))
    kinds, agreements = codes[kind].astype(np.int64), agree[kind].astype(np.int64)  # compiled once for all types
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
    draws: Array, reached: int, paired: int, group: Array, codes: Array, agree: Array, start: Array, left: Array,
    exhausted: Array, members: Array, position: Array, pairs: Array,
) -> tuple[int, int]:  # fmt: skip
    """Go on from visit `reached` while draws last. The unused members of group g are the first left[g] of its part of
    `members`; gone[g] when no unused record is admissible for it, which stays so."""
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
                ticket = min(int(draws[used] * total), total - 1)
                used += 1
                theirs = np.searchsorted(allowed, ticket, side="right")
                ticket -= allowed[theirs] - left[theirs]
                partner = members[start[theirs] + ticket]
                pairs[0, paired], pairs[1, paired] = reached, partner
                paired += 1
                for member, of in ((reached, mine), (partner, theirs)):
                    left[of] -= 1
                    end = start[of] + left[of]
                    moved, at = members[end], position[member]
                    members[end], members[at] = member, moved
                    position[member], position[moved] = end, at
        reached += 1
    return reached, paired
