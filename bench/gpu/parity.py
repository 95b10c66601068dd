"""Compare the GPU kernels with the results of the CPU kernels (`export.py`); needs only numpy and CuPy.

    python parity.py parity.npz        (inside this repository, or with the folder kernels/gpu beside this file)

The exit code is 1 if a link, a count or a group differs, or a score by more than 1e-6 of its size.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2] / "src" / "sdcmap" / "kernels")]

from gpu import cuda, groups, layout, nearest_records, neighbors, pair_scan, patterns, rival_search  # type: ignore[import-not-found]  # noqa: E402

SCORE_TOLERANCE = 1e-6  # relative, of a score
COST_TOLERANCE = 1e-12  # relative, of a cost in double precision
Stored = Mapping[str, Any]


def costs_of(stored: Stored, name: str) -> list[Any]:
    """Return the fields that were stored under a name."""
    costs = []
    for f in range(int(stored[f"{name}/fields"])):
        kind, scale, cap, both, one = stored[f"{name}/{f}/numbers"]
        known, released, table = (stored[key] for key in stored[f"{name}/{f}/arrays"])
        costs.append(
            SimpleNamespace(
                kind=int(kind), known=known, released=released, scale=scale, cap=cap, both=both, one=one, table=table
            )
        )
    return costs


def near(result: Any, expected: Any, tolerance: float) -> bool:
    slack = tolerance * max(1.0, float(np.abs(expected).max(initial=0)))
    return bool(np.allclose(result, expected, rtol=tolerance, atol=slack))


def check_costs(stored: Stored, name: str) -> Iterator[tuple[str, bool]]:
    costs, mean, truth = costs_of(stored, name), bool(stored[f"{name}/mean"]), stored[f"{name}/truth"]
    n, m = len(costs[0].known), len(costs[0].released)
    arranged, block = layout.lay_out_fields(costs, mean=mean), stored[f"{name}/block"]
    known, released = np.indices(block.shape)
    computed = pair_scan.pair_costs(layout.GpuFiles(arranged), released.ravel(), known.ravel())
    yield "costs of pairs", near(computed.reshape(block.shape), block, COST_TOLERANCE)
    beaten, ties = rival_search.RivalSearch(costs, truth, mean=mean)(np.arange(m))
    cheaper = stored[f"{name}/beaten"]
    same_ties = np.array_equal(ties[~cheaper], stored[f"{name}/ties"][~cheaper])
    yield "true pairs", np.array_equal(beaten, cheaper) and same_ties
    index, score = pair_scan.CheapestSearch(costs, mean=mean)(np.arange(m), stored[f"{name}/cheapest"].shape[1])
    distinct = all(len(set(row)) == len(row) for row in index.tolist())
    yield "search", near(score, stored[f"{name}/cheapest"], COST_TOLERANCE) and distinct
    if not any(cost.kind in (layout.MIXTURE, layout.CELL) for cost in costs):
        rows = np.arange(min(m, 200))
        plain = layout.plain_fields(arranged, rows, np.arange(n))
        cheaper, equal = rival_search.plain_rival_search(plain, truth[rows])
        agrees = np.array_equal(cheaper, beaten[rows]) and np.array_equal(equal[~cheaper], ties[rows][~cheaper])
        yield "true pairs as in numpy", agrees


def check_links(stored: Stored, name: str) -> Iterator[tuple[str, bool]]:
    a, slope, cap, b, square = (stored[f"{name}/{part}"] for part in ("a", "slope", "cap", "b", "square"))
    wanted, scores = stored[f"{name}/index"], stored[f"{name}/score"]
    enough = min(len(b), wanted.shape[1] + 8 + wanted.shape[1] // 8)
    keys = pair_scan.cheapest_keys(a, slope, cap, b, bool(square), enough)
    arranged, rows = layout.lay_out_capped(a, slope, cap, b, bool(square)), np.arange(min(300, len(a)))
    plain = pair_scan.plain_keys(layout.plain_capped(arranged, rows, np.arange(len(b))), enough)
    yield f"keys as in numpy: {(keys[rows] == plain).mean():.4f}", bool((keys[rows] == plain).mean() > 0.999)
    index, score = rank_candidates(stored, name, (keys & pair_scan.TURN_MASK).astype(np.int64))
    index, score = index[:, : wanted.shape[1]], score[:, : wanted.shape[1]]
    yield "scores", near(score, scores, SCORE_TOLERANCE)
    yield f"links are the same: {(index == wanted).mean():.4f}", bool((index == wanted).mean() > 0.999)


def rank_candidates(stored: Stored, name: str, index: Any) -> tuple[Any, Any]:
    """Return the candidates by descending score, in double precision; the lower row wins ties."""
    known, released, reach = (stored[f"{name}/{part}"] for part in ("known", "released", "reach"))
    low, gain = stored[f"{name}/low"], stored[f"{name}/gain"]
    score = np.zeros(index.shape)
    for f in range(known.shape[1]):
        apart = np.abs(known[:, f, np.newaxis] - released[index, f])
        if stored[f"{name}/square"]:
            apart = np.abs(np.nan_to_num(known[:, f, np.newaxis]) - np.nan_to_num(released[index, f]))
            score -= apart**2
        else:
            part = low[f] + gain[f] * np.maximum(0.0, 1.0 - apart / reach[:, f, np.newaxis])
            score += np.where(np.isnan(apart), 0.0, part)
    order = np.lexsort([index, -score])
    return np.take_along_axis(index, order, axis=1), np.take_along_axis(score, order, axis=1)


def check_groups(stored: Stored, name: str) -> Iterator[tuple[str, bool]]:
    x, codes, size = (stored[f"{name}/{part}"] for part in ("x", "codes", "size"))
    mixed = codes.shape[1] > 0
    group = groups.gower_groups(x, codes, int(size)) if mixed else groups.mdav_groups(x, int(size))
    yield f"groups of {size} among {len(x)}", np.array_equal(group, stored[f"{name}/group"])


def check_densities(stored: Stored, name: str) -> Iterator[tuple[str, bool]]:
    costs = SimpleNamespace(**{part: stored[f"{name}/{part}"] for part in ("kind", "a", "b", "cap", "width", "parts")})
    scatter, wanted = stored[f"{name}/scatter"], stored[f"{name}/keys"]
    keys = pair_scan.scan_of_fields(costs, scatter, wanted.shape[1])(np.arange(len(scatter)))
    costs_here, costs_stored = (
        (side >> pair_scan.COST_SHIFT).astype(np.uint32).view(np.float32) for side in (keys, wanted)
    )
    yield "costs of the cheapest", near(costs_here, costs_stored, 1e-5)
    arranged = layout.lay_out_fields(pair_scan.likely_fields(costs), mean=False, known_rows=True)
    plain = layout.plain_fields(arranged, np.arange(len(costs.a)), np.arange(len(costs.b)))
    same = float((keys == pair_scan.plain_keys(plain, wanted.shape[1], scatter.astype(np.int64))).mean())
    yield f"keys as in numpy: {same:.4f}", same > 0.999


def check_guesses(stored: Stored, name: str) -> Iterator[tuple[str, bool]]:
    arguments = [stored[f"{name}/{part}"] for part in ("x", "c", "y", "d", "weight", "secret", "guess")]
    distance, right = nearest_records.nearest(*arguments, 0.1)
    yield "distances", near(distance, stored[f"{name}/distance"], COST_TOLERANCE)
    yield "guesses", near(right, stored[f"{name}/right"], COST_TOLERANCE)


def check_neighbors(stored: Stored, name: str) -> Iterator[tuple[str, bool]]:
    points = SimpleNamespace(**{part: stored[f"{name}/{part}"] for part in ("y", "x", "unit")})
    bound = stored[f"{name}/near"]
    below, between = neighbors.count_between(points, bound, np.nextafter(bound, np.inf))
    yield "nearer", np.array_equal(below, stored[f"{name}/below"])
    yield "as near", np.array_equal(between, stored[f"{name}/between"])


def check_patterns(stored: Stored, name: str) -> Iterator[tuple[str, bool]]:
    parts = ("ranks", "missing", "low", "span", "digit")
    files = SimpleNamespace(base=int(stored[f"{name}/base"]), **{part: stored[f"{name}/{part}"] for part in parts})
    number, pairs = patterns.count_pattern_numbers(files)
    yield "patterns", np.array_equal(number, stored[f"{name}/number"])
    yield "pairs", np.array_equal(pairs, stored[f"{name}/pairs"])


CHECKS: Mapping[str, Callable[[Stored, str], Iterator[tuple[str, bool]]]] = {
    "costs": check_costs,
    "links": check_links,
    "groups": check_groups,
    "densities": check_densities,
    "guesses": check_guesses,
    "neighbors": check_neighbors,
    "patterns": check_patterns,
}


def main(path: str) -> int:
    stored = dict(np.load(path))
    print(cuda.name())
    wrong = 0
    for part, check in CHECKS.items():
        for name in stored.get(part, ()):
            for what, agrees in check(stored, str(name)):
                wrong += not agrees
                print(f"{'ok' if agrees else 'DIFFERS':8}{name}: {what}", flush=True)
    print(f"{wrong} differ")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
