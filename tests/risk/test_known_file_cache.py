"""What an attack needs from the known file is computed once for all releases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.random import default_rng

import sdcmap as sm
from sdcmap.core.method import Method
from sdcmap.core.streams import Stream
from sdcmap.data.microdata import Microdata
from sdcmap.kernels.arrays import Array
from sdcmap.risk.linkage import cell_pairs, file_pair, nearest_record, pair_search, record_linkage
from sdcmap.risk.linkage.attack import Attack

NUMBERS = ("age", "wage", "rent")


def people(n: int = 120) -> Microdata:
    rng = default_rng(2)
    frame = pl.DataFrame({
        "region": rng.choice(list("abcdef"), n), "school": rng.choice(["low", "mid", "high"], n),
        "age": rng.integers(16, 90, n).astype(float), "wage": rng.lognormal(7, 1, n).round(),
        "rent": np.where(rng.random(n) < 0.4, 0.0, rng.lognormal(5, 1, n).round()),
    })  # fmt: skip
    return sm.read(frame, keys=("region", "school"), numeric=NUMBERS)


METHODS: tuple[Method, ...] = (
    sm.Noise(NUMBERS, 0.3), sm.Noise(NUMBERS, 1.0), sm.RankSwap(NUMBERS, 0.3),
    sm.Chain((sm.methods.PRAM(("region", "school"), 0.7), sm.Noise(NUMBERS, 0.5))),
)  # fmt: skip


def count_calls(monkeypatch: pytest.MonkeyPatch, count: Counter[str], module: Any, name: str) -> None:
    function: Callable[..., Any] = getattr(module, name)

    def counting(*given: Any, **named: Any) -> Any:
        count[name] += 1
        return function(*given, **named)

    monkeypatch.setattr(module, name, counting)


def test_known_file_is_laid_out_once_per_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four methods with three draws each and seven attacks: order, weights, ranges and whitening are computed once."""
    count: Counter[str] = Counter()
    count_calls(monkeypatch, count, file_pair, "_sort_known_file")
    count_calls(monkeypatch, count, record_linkage, "frequency_weights")
    count_calls(monkeypatch, count, nearest_record, "whitening_matrix")
    count_calls(monkeypatch, count, nearest_record, "column_ranges")
    data = people()
    scores = sm.sweep(data, sm.Plan(METHODS, [sm.WorstLinkage()], replicates=3, seed=1))
    assert len(scores.candidate) >= 12
    assert count == {"_sort_known_file": 1, "frequency_weights": 1, "whitening_matrix": 1, "column_ranges": 1}


def test_known_columns_are_sorted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sorted_columns: list[Array] = []
    compute = pair_search._distinct_values

    def counting(values: Array) -> tuple[Array, Array]:
        sorted_columns.append(values)
        return compute(values)

    monkeypatch.setattr(pair_search, "_CACHED_DISTINCT", pair_search.cache_by_array(counting))
    monkeypatch.setattr(cell_pairs, "MAX_CELL_PAIRS", 0)  # so that the attacks search all pairs
    data, attack = people(), sm.WorstLinkage()
    sizes = []
    for seed in range(3):
        attack.for_informed_attacker(METHODS[0]).score(
            data, METHODS[0].apply(data, Stream.of_seed(seed)), default_rng(1)
        )
        sizes.append(sum(not values.flags.writeable for values in sorted_columns))
    assert sizes[0] > 10 and sizes[1] == sizes[2] == sizes[0]


@pytest.mark.parametrize(
    "attack",
    [sm.WorstLinkage(), sm.risk.Linkage("l"), sm.risk.NearestRecord("mahalanobis"), sm.risk.NearestRecord("gower")],
    ids=lambda attack: attack.text,
)
def test_cache_does_not_change_values(attack: Attack) -> None:
    data = people()
    for method in (
        *METHODS,
        sm.Recode("age", bins=4),
        METHODS[0],
    ):  # numbers that became classes have codes of their own
        masked = method.apply(data, Stream.of_seed(3))
        fresh = Microdata(data.schema, data.columns)
        moved = Microdata(masked.schema, {name: masked.column(name) for name in masked.names})
        try:
            kept = attack.for_informed_attacker(method).score(data, masked, default_rng(1))
        except sm.errors.Undefined:
            continue
        assert kept == attack.for_informed_attacker(method).score(fresh, moved, default_rng(1))


def test_cached_arrays_are_read_only() -> None:
    data, attack = people(), sm.risk.NearestRecord("mahalanobis")
    pair = attack.pair(data, METHODS[0].apply(data, Stream.of_seed(1)), NUMBERS)
    for kept in (
        pair.known,
        pair.known_columns[0],
        pair.known_rows,
        pair.known_group,
        attack._known_coordinates(pair)[0],
    ):
        with pytest.raises(ValueError, match="read-only"):
            kept[0] = 1
