"""Label placement: greedy, deterministic, in pixels. A label without a free position is dropped."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter

import numpy as np

from sdcmap.kernels.arrays import Array

FONT_SIZE = 10
CHARACTER_WIDTH = 0.54 * FONT_SIZE  # mean width of a character
LINE_HEIGHT = 1.25 * FONT_SIZE
LINE_OVERHANG = 0.2 * FONT_SIZE  # empty part of a line above and below its letters
LABEL_DISTANCES = (9.0, 16.0, 27.0, 41.0, 57.0)  # from a point to its label; beyond the first a leader line is drawn
NEAREST_DISTANCE = LABEL_DISTANCES[:1]
DIRECTIONS = ((1, 0), (1, -1), (0, -1), (-1, -1), (-1, 0), (-1, 1), (0, 1), (1, 1))  # right first, y grows downwards
ALIGN = {1: "left", 0: "center", -1: "right"}
MAX_INK_COVERED, MAX_INK_CROSSED = 1.0, 5.0  # by an optional label, and by its leader line

Box = tuple[float, float, float, float]  # left, top, right, bottom
Dot = tuple[float, float, float]  # x, y, weight


@dataclass(frozen=True)
class LabelRequest:
    """A text to place near one of some points; earlier points are preferred."""

    text: str
    near: tuple[tuple[float, float], ...]
    required: bool = False  # it may cover marks, but no other label
    distances: tuple[float, ...] = LABEL_DISTANCES


@dataclass(frozen=True)
class LabelPosition:
    """The position of a requested label: its anchor, the point it belongs to, and whether a leader line joins them."""

    request: int  # index of the request
    x: float
    y: float
    align: str
    point: tuple[float, float]
    leader: bool

    @property
    def end(self) -> tuple[float, float]:
        """The end of the leader line at the text."""
        half = LINE_HEIGHT / 2 if self.align == "center" else 0.0
        return self.x, self.y + math.copysign(half, self.point[1] - self.y)


class _Ink:
    """How much is drawn in any box, from a summed-area table with one cell per pixel."""

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
        # Inclusion and exclusion of the four corners gives the sum over the box in constant time.
        sums = self.sums
        return float(sums[bottom, right] - sums[top, right] - sums[bottom, left] + sums[top, left])


def position_labels(
    requests: Sequence[LabelRequest], dots: Iterable[Dot], width: int, height: int, occupied: Iterable[Box] = ()
) -> list[LabelPosition]:
    """Place labels in their order, each at the position that covers the least ink.

    No label leaves the picture, touches another or an occupied box, and no leader line crosses a label. A label that would
    cover too much is dropped, unless it is `required`.
    """
    ink = _Ink(dots, width, height)
    taken, positions = list(occupied), []
    for number, request in enumerate(requests):
        free: list[tuple[float, LabelPosition, Box]] = []
        for rank, candidate in enumerate(_candidates(number, request)):
            box, leader = _box(candidate, request.text), _leader(candidate)
            if not _inside(box, width, height) or any(_touch(box, other) or _crosses(leader, other) for other in taken):
                continue
            # A margin keeps the text readable even where marks are close to it.
            covered = ink.within((box[0] - 3, box[1] - 1, box[2] + 3, box[3] + 1))
            crossed = sum(ink.within((x - 2, y - 2, x + 2, y + 2)) for x, y, _ in leader)
            if request.required or (covered <= MAX_INK_COVERED and crossed <= MAX_INK_CROSSED):
                free.append((3 * covered + 0.7 * crossed + 0.2 * rank / len(request.near), candidate, box))
        if free:
            # Covered ink weighs most, then crossed ink; the rank prefers the first directions and distances.
            _, best, box = min(free, key=itemgetter(0))
            positions.append(best)
            taken.append(box)
            ink.add(_leader(best))
    return positions


def _candidates(number: int, request: LabelRequest) -> list[LabelPosition]:
    return [
        LabelPosition(number, x + across * reach, y + down * reach, ALIGN[across], (x, y), reach > NEAREST_DISTANCE[0])
        for reach in request.distances
        for x, y in request.near
        for across, down in DIRECTIONS
    ]


def _box(candidate: LabelPosition, text: str) -> Box:
    """Return the box of a text whose middle line is at the position."""
    width = CHARACTER_WIDTH * len(text)
    left = candidate.x - {"left": 0.0, "center": width / 2, "right": width}[candidate.align]
    return left, candidate.y - LINE_HEIGHT / 2, left + width, candidate.y + LINE_HEIGHT / 2


def _leader(candidate: LabelPosition, step: float = 5.0) -> list[Dot]:
    """Return dots along the leader line, without its own point."""
    if not candidate.leader:
        return []
    (x, y), (x2, y2) = candidate.point, candidate.end
    length = math.dist((x, y), (x2, y2))
    shares = [(8 + step * i) / length for i in range(int(max(length - 8, 0) / step) + 1)]
    return [(x + share * (x2 - x), y + share * (y2 - y), 1.0) for share in shares]


def _inside(box: Box, width: float, height: float) -> bool:
    """Return whether a text is in the picture; the empty part of a line may hang over the edge."""
    return box[0] >= 2 and box[1] >= -LINE_OVERHANG and box[2] <= width - 2 and box[3] <= height + LINE_OVERHANG


def _touch(box: Box, other: Box) -> bool:
    return box[0] < other[2] + 4 and other[0] < box[2] + 4 and box[1] < other[3] and other[1] < box[3]


def _crosses(leader: list[Dot], box: Box) -> bool:
    return any(box[0] - 2 < x < box[2] + 2 and box[1] - 1 < y < box[3] + 1 for x, y, _ in leader)
