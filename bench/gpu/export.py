"""Write the results of the CPU kernels on random files with ties, missing values and categories, for `parity.py`.

python bench/gpu/export.py parity.npz [worst.npz]
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import sdcmap as sm
from sdcmap.kernels.arrays import Array
from sdcmap.kernels.neighbors.counting import Pairs, count_between
from sdcmap.kernels.tables.attribution import nearest
from sdcmap.methods._gower_groups import gower_groups
from sdcmap.methods._mdav import mdav_groups
from sdcmap.risk.linkage import field_costs as kinds
from sdcmap.risk.linkage.agreement_patterns import count_pattern_numbers, rank_fields
from sdcmap.risk.linkage.cost_models import attack_targets, find_certain_fields, require_equality
from sdcmap.risk.linkage.field_costs import Cost, block_costs, mean_costs
from sdcmap.risk.linkage.field_links import FieldCosts, scan_of_fields
from sdcmap.risk.linkage.link_search import _agreement_costs, _distance_costs, agreement_links, nearest_links
from sdcmap.risk.linkage.pair_search import CheapestSearch, RivalSearch
from sdcmap.risk.linkage.worst_linkage import AttackRun

sys.path.insert(0, str(Path(__file__).parents[1]))
RNG = np.random.default_rng(7)
FILES = ((3000, 2500, 0.0, 1), (2000, 3000, 0.1, 1), (4000, 4000, 0.05, 6), (900, 40, 0.2, 0), (20000, 3000, 0.05, 1))
LINK_FILES = ((3000, 4000, 0.0, 6, 8), (2000, 5000, 0.05, 1, 5), (3000, 70000, 0.0, 6, 8), (1000, 300, 0.1, 0, 3))
GROUP_FILES = (
    (20000, 3, 8, 0, 6), (5000, 5, 3, 2, 6), (3000, 3, 2, 0, 0), (3000, 10, 2, 3, 0), (700, 1, 2, 1, 1), (5, 3, 2, 1, 1),
    (1500, 2, 4, 1, 2),
)  # fmt: skip

CELLS = np.array(
    [0.6, -np.inf, -1, 0.0, -1, 0, -0.3, 0, 0.5, -0.6, 0.5, np.inf, 0.0]
)  # 1 / (sd sqrt 2); low, high, top


def numbers(count: int, gaps: float, digits: int) -> Array:
    """Return normal values, a share `gaps` of them missing; few digits give ties."""
    values = np.round(RNG.normal(size=count), digits)
    values[RNG.random(count) < gaps] = np.nan
    return values


def cells(count: int, gaps: float) -> Array:
    """Return numbers of cells of CELLS, a share `gaps` of them missing."""
    values = RNG.integers(0, len(CELLS) // 3, count).astype(float)
    values[RNG.random(count) < gaps] = np.nan
    return values


def fields(n: int, m: int, gaps: float, digits: int) -> dict[str, tuple[list[Cost], bool]]:
    """Return sets of fields by name, and whether their cost is a mean."""

    def both() -> tuple[Array, Array]:
        return numbers(n, gaps, digits), numbers(m, gaps, digits)

    codes = tuple(RNG.integers(0, 5, count).astype(float) for count in (n, m))
    table = np.concatenate([[0.5, 0.7, 0.9, 0.0], np.cumsum(RNG.random(40))])
    mixture = np.array([np.log(1.2), 0.0, 2.0, np.log(4 / 3), 0.5, 5.55, np.log(1.2) + 0.3])
    missing = {"both": 0.1, "one": 0.3}
    all_kinds = [
        Cost(kinds.NUMBER, *both(), scale=20.0, table=table), Cost(kinds.CATEGORY, *codes, scale=5, table=RNG.random(25)),
        Cost(kinds.SQUARE, *both(), 0.7, 2.0, **missing), Cost(kinds.GAP, *both(), 2.0, 1.0, **missing),
        Cost(kinds.RELATIVE, *both(), 0.2, 1.0, **missing), Cost(kinds.SAME, *codes, 1.0, 1.5, **missing),
        Cost(kinds.WINDOW, *both(), 0.5, 1.5, **missing), Cost(kinds.BELOW, *both(), 0.5, 1.5, **missing),
        Cost(kinds.MIXTURE, *both(), cap=9.0, one=9.0, table=mixture),
        Cost(kinds.CELL, numbers(n, gaps, digits), cells(m, gaps), cap=9.0, one=9.0, table=CELLS),
    ]  # fmt: skip
    parts = {"every kind": all_kinds, "plain": all_kinds[2:6], "mean": all_kinds[3:6], "ties": all_kinds[5:8]}
    return {name: (costs, name == "mean") for name, costs in parts.items()}


class Store(dict[str, Any]):
    """Arrays by name; equal arrays are stored once."""

    def put(self, values: Array) -> str:
        values = np.ascontiguousarray(values)
        key = f"array/{hashlib.sha256(values.tobytes()).hexdigest()[:12]}"
        self[key] = values
        return key

    def put_costs(self, name: str, costs: Sequence[Cost]) -> None:
        self[f"{name}/fields"] = len(costs)
        for f, cost in enumerate(costs):
            self[f"{name}/{f}/numbers"] = np.array([cost.kind, cost.scale, cost.cap, cost.both, cost.one])
            self[f"{name}/{f}/arrays"] = np.array([self.put(part) for part in (cost.known, cost.released, cost.table)])

    def put_all(self, name: str, **values: Any) -> None:
        self.update({f"{name}/{key}": value for key, value in values.items()})


def export_costs(store: Store) -> None:
    names = []
    for number, (n, m, gaps, digits) in enumerate(FILES):
        for kind, (costs, mean) in fields(n, m, gaps, digits).items():
            name = f"{kind} {number}"
            names.append(name)
            store.put_costs(name, costs)
            truth, keep = RNG.integers(-1, n, m), min(30, n)
            beaten, ties = RivalSearch(costs, truth, mean=mean)(np.arange(m))
            block = (mean_costs if mean else block_costs)(costs, slice(60), slice(40))
            store.put_all(
                name, mean=mean, truth=truth, beaten=beaten, ties=ties, block=block,
                cheapest=CheapestSearch(costs, mean=mean)(np.arange(m), keep)[1],
            )  # fmt: skip
    store["costs"] = np.array(names)


def export_links(store: Store) -> None:
    names = []
    for number, (n, m, gaps, digits, width) in enumerate(LINK_FILES):
        known, released = (
            10 * np.column_stack([numbers(count, gaps, digits) for _ in range(width)]) for count in (n, m)
        )
        reach = np.where(np.isnan(known), 1.0, np.maximum(0.2 * np.maximum(np.abs(known), 0.1), 1e-100))
        low, gain, keep = -RNG.random(width), RNG.random(width) + 0.5, min(50, m)
        agreement = known, released, reach, low, gain
        full = np.nan_to_num(known), np.nan_to_num(released)
        for name, costs, links in (
            (f"agreement {number}", _agreement_costs(*agreement), agreement_links(*agreement, keep)),
            (f"distance {number}", _distance_costs(*full), nearest_links(*full, keep)),
        ):
            names.append(name)
            store.put_all(name, index=links.index, score=links.score, known=known, released=released, reach=reach)
            store.put_all(name, low=low, gain=gain, **costs._asdict())
    store["links"] = np.array(names)


def export_groups(store: Store) -> None:
    for number, (n, size, width, nominal, digits) in enumerate(GROUP_FILES):
        x, codes = np.round(RNG.normal(size=(n, width)), digits), RNG.integers(0, 6, (n, nominal))
        group = gower_groups(x, codes, size) if nominal else mdav_groups(x, size)
        store.put_all(f"groups {number}", x=x, codes=codes, size=size, group=group)
    store["groups"] = np.array([f"groups {number}" for number in range(len(GROUP_FILES))])


def export_densities(store: Store) -> None:
    """Export windows, equalities and mixtures with the cheapest keys; no value lies on the edge of a window."""
    kind = np.array([kinds.WINDOW, kinds.BELOW, kinds.SAME, kinds.MIXTURE, kinds.MIXTURE])
    parts = np.tile([[0.0, 0.0, 2.0], [0.3, 1.0, 5.0]], (5, 1, 1))
    names = []
    for gaps in (0.0, 0.1):
        a, b = (np.column_stack([numbers(count, gaps, 1) for _ in kind]) for count in (1500, 4000))
        costs = FieldCosts(kind, a, b, np.full(5, 8.0), np.array([0.75, 0.35, 1.0, 0.0, 0.0]), parts)
        scatter = (np.arange(1500) * 1_327_217_885 % (1 << 31)).astype(np.int32)
        keys = np.concatenate(
            [np.sort(scan_of_fields(costs, scatter, 60)(rows)) for rows in np.arange(1500).reshape(-1, 250)]
        )
        names.append(f"densities {gaps}")
        store.put_all(names[-1], **costs._asdict(), scatter=scatter, keys=keys)
    store["densities"] = np.array(names)


def export_guesses(store: Store) -> None:
    """Export the nearest records and what they guess."""
    names = []
    for numeric, nominal in ((3, 2), (0, 3), (2, 0)):
        x, y = (np.round(RNG.random((count, numeric)), 2) for count in (500, 9000))
        for side in (x, y):
            side[RNG.random(side.shape) < 0.1] = np.nan
        c, d = (RNG.integers(0, 4, (count, nominal)) for count in (500, 9000))
        secret, guess = (RNG.integers(0, 3, count).astype(float) for count in (500, 9000))
        weight = RNG.integers(1, 4, numeric + nominal).astype(float)
        distance, right = nearest(x, c, y, d, weight, secret, guess, 0.1)
        names.append(f"guesses {numeric}")
        answers = {"distance": distance, "right": right}
        store.put_all(names[-1], x=x, c=c, y=y, d=d, weight=weight, secret=secret, guess=guess, **answers)
    store["guesses"] = np.array(names)


def export_neighbors(store: Store) -> None:
    names = []
    for digits in (1, 6):
        x = np.round(RNG.normal(size=(8000, 3)), digits)
        y = x[:3000] + np.round(RNG.normal(size=(3000, 3)), digits)
        pairs = Pairs.of(y, x, RNG.uniform(0.5, 2, 3000), np.arange(3000))
        near = pairs.link_distances()
        below, between = count_between(pairs, near, np.nextafter(near, np.inf))
        names.append(f"neighbors {digits}")
        store.put_all(names[-1], y=pairs.y, x=x, unit=pairs.unit, near=near, below=below, between=between)
    store["neighbors"] = np.array(names)


def export_patterns(store: Store) -> None:
    """Export the agreement patterns of all pairs, with and without missing values."""
    names = []
    for n, m, count, gaps in ((3000, 4000, 6, 0.0), (2000, 3000, 6, 0.1), (900, 700, 14, 0.0), (900, 5000, 10, 0.1)):
        known, released = (numbers(side * count, gaps, 1).reshape(side, count) for side in (n, m))
        files = rank_fields(known, released, np.full(known.shape, 0.3))
        number, pairs = count_pattern_numbers(files)
        names.append(f"patterns {n} x {m} x {count}")
        store.put_all(names[-1], number=number, pairs=pairs, **files._asdict())
    store["patterns"] = np.array(names)


def export_worst(store: Store, n: int = 50_000) -> None:
    """Export what `WorstLinkage` computes on a file of 14 mixed columns, with the rate of each attack."""
    from jobs_attacks import masked_mixture

    data, chain, masked = masked_mixture(n)
    measure = sm.WorstLinkage().for_informed_attacker(chain)
    pair = measure.pair(data, masked, measure.check_variables(data))
    attack_run = AttackRun(pair, measure._draw_targets(pair))
    certain = find_certain_fields(pair, measure.method)
    for name, attack in measure._attacks(pair).items():
        models = require_equality(attack.cost_models(pair), certain, has_column_costs=attack.has_column_costs)
        attack_run.cost_models[name] = models
        attack_run.hits[name] = attack_targets(pair, models, attack_run.targets, attack_run.best_so_far)
        (model,) = models
        store.put_costs(name, model.costs)
        store.put_all(name, mean=model.mean, rate=attack_run.hits[name].rate, complete=attack_run.hits[name].complete)
    store.update(names=np.array(list(attack_run.hits)), targets=attack_run.targets, truth=pair.truth)


if __name__ == "__main__":
    small = Store()
    exports = (export_costs, export_links, export_groups, export_densities, export_guesses, export_neighbors)
    for export in (*exports, export_patterns):
        export(small)
    np.savez_compressed(sys.argv[1], **small)
    if len(sys.argv) > 2:
        large = Store()
        export_worst(large)
        np.savez_compressed(sys.argv[2], **large)
