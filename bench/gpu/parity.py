"""The GPU's kernels against what the CPU's found (`export.py`), on a machine with numpy and CuPy alone.

    python parity.py parity.npz        (the folder kernels/gpu beside it, or this repository around it)

It ends with exit code 1 where a link, a count or a group differs, or a score by more than 1e-6 of its size.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2] / "src" / "sdcmap" / "kernels")]

from gpu import cuda, groups, layout, nearest_records, neighbors, pair_scan, rival_search  # type: ignore[import-not-found]  # noqa: E402

SCORE = 1e-6  # of a score, relative
EXACT = 1e-12  # of a cost in double precision
Stored = Mapping[str, Any]


def costs_of(stored: Stored, name: str) -> list[Any]:
    """The fields that were written under a name."""
    costs = []
    for f in range(int(stored[f"{name}/fields"])):
        kind, scale, cap, both, one = stored[f"{name}/{f}/numbers"]
        known, released, table = (stored[key] for key in stored[f"{name}/{f}/arrays"])
        costs.append(SimpleNamespace(kind=int(kind), known=known, released=released, scale=scale, cap=cap, both=both,
                                     one=one, table=table))  # fmt: skip
    return costs


def near(found: Any, wanted: Any, tolerance: float) -> bool:
    return bool(
        np.allclose(found, wanted, rtol=tolerance, atol=tolerance * max(1.0, float(np.abs(wanted).max(initial=0))))
    )


def check_costs(stored: Stored, name: str) -> Iterator[tuple[str, bool]]:
    costs, mean, truth = costs_of(stored, name), bool(stored[f"{name}/mean"]), stored[f"{name}/truth"]
    n, m = len(costs[0].known), len(costs[0].released)
    laid, block = layout.laid_fields(costs, mean=mean), stored[f"{name}/block"]
    known, released = np.indices(block.shape)
    listed = pair_scan.listed_costs(layout.OnCard(laid), released.ravel(), known.ravel())
    yield "costs of pairs", near(listed.reshape(block.shape), block, EXACT)
    beaten, ties = rival_search.RivalSearch(costs, truth, mean=mean)(np.arange(m))
    lost = stored[f"{name}/beaten"]
    yield "races", np.array_equal(beaten, lost) and np.array_equal(ties[~lost], stored[f"{name}/ties"][~lost])
    index, score = pair_scan.CheapestSearch(costs, mean=mean)(np.arange(m), stored[f"{name}/searched"].shape[1])
    apart = all(len(set(row)) == len(row) for row in index.tolist())
    yield "search", near(score, stored[f"{name}/searched"], EXACT) and apart
    if not any(cost.kind in (layout.MIXTURE, layout.CELL) for cost in costs):
        rows = np.arange(min(m, 200))
        plain = layout.plain_fields(laid, rows, np.arange(n))
        outrun, equal = rival_search.plain_rival_search(plain, truth[rows])
        agrees = np.array_equal(outrun, beaten[rows]) and np.array_equal(equal[~outrun], ties[rows][~outrun])
        yield "races as in numpy", agrees


def check_links(stored: Stored, name: str) -> Iterator[tuple[str, bool]]:
    a, slope, cap, b, square = (stored[f"{name}/{part}"] for part in ("a", "slope", "cap", "b", "square"))
    wanted, scores = stored[f"{name}/index"], stored[f"{name}/score"]
    enough = min(len(b), wanted.shape[1] + 8 + wanted.shape[1] // 8)
    keys = pair_scan.cheapest_keys(a, slope, cap, b, bool(square), enough)
    laid, rows = layout.laid_capped(a, slope, cap, b, bool(square)), np.arange(min(300, len(a)))
    plain = pair_scan.plain_keys(layout.plain_capped(laid, rows, np.arange(len(b))), enough)
    yield f"keys as in numpy: {(keys[rows] == plain).mean():.4f}", bool((keys[rows] == plain).mean() > 0.999)
    index, score = ranked(stored, name, (keys & pair_scan.LOW).astype(np.int64))
    index, score = index[:, : wanted.shape[1]], score[:, : wanted.shape[1]]
    yield "scores", near(score, scores, SCORE)
    yield f"links are the same: {(index == wanted).mean():.4f}", bool((index == wanted).mean() > 0.999)


def ranked(stored: Stored, name: str, index: Any) -> tuple[Any, Any]:
    """Candidates by falling score, in double precision, ties by the lower row."""
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
    found, theirs = ((side >> pair_scan.HALF).astype(np.uint32).view(np.float32) for side in (keys, wanted))
    yield "costs of the cheapest", near(found, theirs, 1e-5)
    laid = layout.laid_fields(pair_scan.likely_fields(costs), mean=False, known_rows=True)
    plain = layout.plain_fields(laid, np.arange(len(costs.a)), np.arange(len(costs.b)))
    same = float((keys == pair_scan.plain_keys(plain, wanted.shape[1], scatter.astype(np.int64))).mean())
    yield f"keys as in numpy: {same:.4f}", same > 0.999


def check_guesses(stored: Stored, name: str) -> Iterator[tuple[str, bool]]:
    given = [stored[f"{name}/{part}"] for part in ("x", "c", "y", "d", "weight", "secret", "guess")]
    distance, right = nearest_records.nearest(*given, 0.1)
    yield "distances", near(distance, stored[f"{name}/distance"], EXACT)
    yield "guesses", near(right, stored[f"{name}/right"], EXACT)


def check_neighbors(stored: Stored, name: str) -> Iterator[tuple[str, bool]]:
    points = SimpleNamespace(**{part: stored[f"{name}/{part}"] for part in ("y", "x", "unit")})
    bound = stored[f"{name}/near"]
    below, between = neighbors.count_between(points, bound, np.nextafter(bound, np.inf))
    yield "nearer", np.array_equal(below, stored[f"{name}/below"])
    yield "as near", np.array_equal(between, stored[f"{name}/between"])


CHECKS: Mapping[str, Callable[[Stored, str], Iterator[tuple[str, bool]]]] = {
    "costs": check_costs,
    "links": check_links,
    "groups": check_groups,
    "densities": check_densities,
    "guesses": check_guesses,
    "neighbors": check_neighbors,
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
