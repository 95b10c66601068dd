"""Target: the largest released number does not tell who has the largest value, nor this value.

The default synthetic method makes 400 releases of files with this person and 400 of files without; everybody else is drawn
again each time. The attacker sees the largest released number and nothing else. On each of three made files, the area
under the curve of with against without is at most 0.60, and the number is within 10 % of the true value at most 0.1 more
often with the person than without. The attack shares no code with sdcmap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from made_files import FILES, default_synthesis
from resumable_runs import Facts, Figure, Target, bootstrap_band, main
from sdcmap.core import Stream

RELEASES = 400  # with the person, and as many without, of each file
OTHERS = 500  # units of a file beside the one with the largest value
MAX_AREA, MAX_GAIN = 0.60, 0.1
CLOSE = 0.1  # a guess within this share of the true value is close


def run(number: int, seed: int, others: int = OTHERS) -> Facts:
    """Draw a file with or without the person, release it, and return the largest released number."""
    file, has_person = FILES[number % len(FILES)], number // len(FILES) % 2 == 0
    data = file.read(file.frame(others, np.random.default_rng(seed), has_person=has_person))
    released = default_synthesis(data).apply(data, Stream.of_seed(seed, "release"))
    largest = float(np.nanmax(released.numbers(file.amount)))
    return {"file": file.name, "has_person": has_person, "released": largest, "true": file.largest}


def area_under_curve(inside: np.ndarray, outside: np.ndarray) -> float:
    """Return P(inside > outside) + P(equal) / 2, or the opposite where this is better for the attacker."""
    gap = inside[:, np.newaxis] - outside
    area = float(((gap > 0) + (gap == 0) / 2).mean())
    return max(area, 1 - area)


def find_figures(lines: Sequence[Facts]) -> Iterator[Figure]:
    """Yield the area and the gain in close guesses of each file."""
    for file in FILES:
        own = [line for line in lines if line["file"] == file.name]
        groups = (np.array([line["released"] for line in own if line["has_person"] is has]) for has in (True, False))
        inside, outside = groups
        if not len(inside) or not len(outside):
            continue
        area = area_under_curve(inside, outside)
        yield Figure(f"{file.name}: area", area, bootstrap_band(area_under_curve, inside, outside), MAX_AREA, len(own))
        close = [(np.abs(x - file.largest) <= CLOSE * file.largest).astype(float) for x in (inside, outside)]
        shares = f"{close[0].mean():.3f} with, {close[1].mean():.3f} without the person"
        band = bootstrap_band(lambda x, y: float(x.mean() - y.mean()), *close)
        gain = float(close[0].mean() - close[1].mean())
        yield Figure(f"{file.name}: close guesses", gain, band, MAX_GAIN, len(own), shares)


TARGET = Target(__doc__, run, find_figures, 2 * RELEASES * len(FILES))

if __name__ == "__main__":
    raise SystemExit(main(TARGET))
