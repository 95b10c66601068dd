"""Where labels go: greedy, deterministic, in pixels. A label that finds no free place is dropped."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter

import numpy as np

from sdcmap.kernels.arrays import Array

FONT_SIZE = 10
CHARACTER = 0.54 * FONT_SIZE  # mean width of a character
LINE = 1.25 * FONT_SIZE
SPARE = 0.2 * FONT_SIZE  # of a line above and below its letters
NEAR, FAR = (9.0,), (9.0, 16.0, 27.0, 41.0, 57.0)  # from a point to its label; beyond the first a leader line is drawn
DIRECTIONS = ((1, 0), (1, -1), (0, -1), (-1, -1), (-1, 0), (-1, 1), (0, 1), (1, 1))  # right first, y grows downwards
ALIGN = {1: "left", 0: "center", -1: "right"}
MOST_COVERED, MOST_CROSSED = 1.0, 5.0  # ink that a label, and a leader, may cover when they need not stand

Box = tuple[float, float, float, float]  # left, top, right, bottom
Dot = tuple[float, float, float]  # x, y, weight


@dataclass(frozen=True)
class Wish:
    """A text that wants to stand near one of some points, earlier ones first."""

    text: str
    near: tuple[tuple[float, float], ...]
    must: bool = False  # may cover marks, but no other label
    distances: tuple[float, ...] = FAR


@dataclass(frozen=True)
class Place:
    """Where a wish was granted: the text's anchor, the point it belongs to, and whether a leader line joins them."""

    wish: int
    x: float
    y: float
    align: str
    point: tuple[float, float]
    leader: bool

    @property
    def end(self) -> tuple[float, float]:
        """Where the leader line meets the text."""
        half = LINE / 2 if self.align == "center" else 0.0
        return self.x, self.y + math.copysign(half, self.point[1] - self.y)


class _Ink:
    """How much is drawn in any box, from a summed-area table with one cell a pixel."""

    def __init__(self, dots: Iterable[Dot], width: int, height: int) -> None:
        self.weights: Array = np.zeros((height + 1, width + 1))
        self.add(dots)

    def add(self, dots: Iterable[Dot]) -> None:
        for x, y, weight in dots:
            row, column = round(y), round(x)
            if 0 <= row < self.weights.shape[0] and 0 <= column < self.weights.shape[1]:
                self.weights[row, column] += weight
        self.sums = np.pad(self.weights.cumsum(0).cumsum(1), ((1, 0), (1, 0)))

    def within(self, box: Box) -> float:
        top, bottom = (int(min(max(y, 0), self.weights.shape[0])) for y in (box[1], box[3] + 1))
        left, right = (int(min(max(x, 0), self.weights.shape[1])) for x in (box[0], box[2] + 1))
        sums = self.sums
        return float(sums[bottom, right] - sums[top, right] - sums[bottom, left] + sums[top, left])


def place(
    wishes: Sequence[Wish], dots: Iterable[Dot], width: int, height: int, occupied: Iterable[Box] = ()
) -> list[Place]:
    """Grant wishes in their order, each at the candidate place that covers the least ink, none on an occupied box.

    No label leaves the picture or touches another, no leader line crosses a label. A label that would cover too much is
    dropped, unless it `must` stand.
    """
    ink = _Ink(dots, width, height)
    taken, granted = list(occupied), []
    for number, wish in enumerate(wishes):
        free: list[tuple[float, Place, Box]] = []
        for rank, candidate in enumerate(_candidates(number, wish)):
            box, leader = _box(candidate, wish.text), _leader(candidate)
            if not _inside(box, width, height) or any(_touch(box, other) or _crosses(leader, other) for other in taken):
                continue
            covered = ink.within((box[0] - 3, box[1] - 1, box[2] + 3, box[3] + 1))
            crossed = sum(ink.within((x - 2, y - 2, x + 2, y + 2)) for x, y, _ in leader)
            if wish.must or (covered <= MOST_COVERED and crossed <= MOST_CROSSED):
                free.append((3 * covered + 0.7 * crossed + 0.2 * rank / len(wish.near), candidate, box))
        if free:
            _, best, box = min(free, key=itemgetter(0))
            granted.append(best)
            taken.append(box)
            ink.add(_leader(best))
    return granted


def _candidates(number: int, wish: Wish) -> list[Place]:
    return [
        Place(number, x + across * reach, y + down * reach, ALIGN[across], (x, y), reach > NEAR[0])
        for reach in wish.distances
        for x, y in wish.near
        for across, down in DIRECTIONS
    ]


def _box(candidate: Place, text: str) -> Box:
    """The box of a text whose middle line is at the place."""
    width = CHARACTER * len(text)
    left = candidate.x - {"left": 0.0, "center": width / 2, "right": width}[candidate.align]
    return left, candidate.y - LINE / 2, left + width, candidate.y + LINE / 2


def _leader(candidate: Place, step: float = 5.0) -> list[Dot]:
    """Dots along the leader line, its own point left out."""
    if not candidate.leader:
        return []
    (x, y), (x2, y2) = candidate.point, candidate.end
    length = math.dist((x, y), (x2, y2))
    shares = [(8 + step * i) / length for i in range(int(max(length - 8, 0) / step) + 1)]
    return [(x + share * (x2 - x), y + share * (y2 - y), 1.0) for share in shares]


def _inside(box: Box, width: float, height: float) -> bool:
    """Whether a text stands in the picture; a line is higher than its letters, so a little of it may hang over."""
    return box[0] >= 2 and box[1] >= -SPARE and box[2] <= width - 2 and box[3] <= height + SPARE


def _touch(box: Box, other: Box) -> bool:
    return box[0] < other[2] + 4 and other[0] < box[2] + 4 and box[1] < other[3] and other[1] < box[3]


def _crosses(leader: list[Dot], box: Box) -> bool:
    return any(box[0] - 2 < x < box[2] + 2 and box[1] - 1 < y < box[3] + 1 for x, y, _ in leader)
