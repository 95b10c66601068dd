"""Measures of tables equal plain formulas: as margins, weighted, and in sparse tables."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import polars as pl
import pytest
from scipy.stats.contingency import association

import sdcmap as sm
from sdcmap.core.streams import Stream
from sdcmap.data import cells as cells_module
from sdcmap.data import tables as tables_module
from sdcmap.data.cells import _moves_between, cells, moves
from sdcmap.data.microdata import Microdata
from sdcmap.kernels.arrays import Array

RNG = np.random.default_rng(0)
NAMES = ("a", "b", "c")


def persons(n: int = 400) -> Microdata:
    rng = np.random.default_rng(6)
    a = rng.integers(0, 3, n)
    frame = pl.DataFrame(
        {
            "a": a.astype(str),
            "b": ((a + rng.integers(0, 2, n)) % 4).astype(str),
            "c": rng.integers(0, 3, n).astype(str),
            "w": rng.integers(1, 5, n).astype(float),
        }
    )
    return sm.read(frame, keys=NAMES, weight="w")


def counts(frame: pl.DataFrame, names: tuple[str, ...], weighted: bool) -> Array:
    """Return the full table as an array, counted by numpy."""
    digits = [frame[name].cast(pl.Int64).to_numpy() for name in names]
    found = np.zeros((4,) * len(names))
    np.add.at(found, tuple(digits), frame["w"].to_numpy() if weighted else 1.0)
    return found / found.sum()


def disorder(share: Array) -> float:
    observed = share[share > 0]
    return float(-(observed * np.log(observed)).sum())


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("margins", [0, 1 << 14])
def test_table_measures_equal_their_formulas(weighted: bool, margins: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables_module, "MAX_CELLS_FOR_MARGINS", margins)
    data = persons()
    masked = sm.Swap(on=["a", "c"], rate=0.2).apply(data, Stream.of_seed(1))
    before, after = data.frame(), masked.frame()

    def both(names: tuple[str, ...]) -> tuple[Array, Array]:
        return counts(before, names, weighted), counts(after, names, weighted)

    def score(measure: sm.Measure) -> float:
        return measure.score(data, masked, RNG).value

    subsets = [chosen for size in (1, 2) for chosen in combinations(NAMES, size)]
    hellinger = {
        s: np.sqrt(0.5 * ((np.sqrt(f) - np.sqrt(g)) ** 2).sum()) for s in [*subsets, NAMES] for f, g in [both(s)]
    }
    variation = {s: 0.5 * np.abs(f - g).sum() for s in [*subsets, NAMES] for f, g in [both(s)]}
    entropy = {s: disorder(g) - disorder(f) for s in [*subsets, NAMES] for f, g in [both(s)]}
    assert score(sm.Hellinger(weighted=weighted)) == pytest.approx(hellinger[NAMES])
    assert score(sm.Hellinger(weighted=weighted, order=2)) == pytest.approx(np.mean([hellinger[s] for s in subsets]))
    assert score(sm.Hellinger(weighted=weighted, order=2, summary="worst")) == pytest.approx(
        max(hellinger[s] for s in subsets)
    )
    assert score(sm.utility.TotalVariation(weighted=weighted)) == pytest.approx(variation[NAMES])
    assert score(sm.utility.TotalVariation(weighted=weighted, order=1)) == pytest.approx(
        np.mean([variation[s] for s in subsets[:3]]), abs=1e-15
    )
    assert score(sm.utility.EntropyChange(weighted=weighted, order=9)) == pytest.approx(
        np.mean([abs(entropy[s]) for s in [*subsets, NAMES]])
    )
    given_one = [abs(entropy[tuple(sorted(pair))] - entropy[pair[1:]]) for pair in permutations(NAMES, 2)]
    assert score(sm.utility.ConditionalEntropyChange(weighted=weighted, order=2)) == pytest.approx(np.mean(given_one))
    given_all = [abs(entropy[NAMES] - entropy[rest]) for rest in combinations(NAMES, 2)]
    assert score(sm.utility.ConditionalEntropyChange(weighted=weighted)) == pytest.approx(np.mean(given_all))


@pytest.mark.parametrize(
    ("measure", "method"), [(sm.utility.ContingencyChange, "pearson"), (sm.utility.CramersVChange, "cramer")]
)
def test_association_equals_scipy(measure: type[sm.Measure], method: str) -> None:
    data = persons()
    masked = sm.Swap(on="b", rate=0.2).apply(data, Stream.of_seed(1))

    def of(frame: pl.DataFrame, pair: tuple[str, ...]) -> float:
        table = np.rint(counts(frame, pair, False) * len(frame)).astype(int)
        return float(association(table[table.any(axis=1)][:, table.any(axis=0)], method=method))

    changes = [abs(of(masked.frame(), pair) - of(data.frame(), pair)) for pair in combinations(NAMES, 2)]
    found = measure().score(data, masked, RNG)
    assert found.value == found.parts["mean"] == pytest.approx(np.mean(changes))
    assert found.parts["worst"] == pytest.approx(max(changes))
    merged = data.change(None, {"b": np.zeros(len(data), dtype=np.uint8)}, {"b": pl.Series("b", ["any"])})
    alone = [of(data.frame(), ("a", "b")), of(data.frame(), ("b", "c")), 0.0]  # a constant has no association
    assert measure().score(data, merged, RNG).value == pytest.approx(np.mean(alone))


def test_measure_reports_required_number_of_variables() -> None:
    with pytest.raises(sm.errors.SchemaError, match="CramersVChange needs at least 2 variables"):
        sm.utility.CramersVChange(on="a").score(persons(), persons(), RNG)


def test_sparse_table_equals_dense_table(monkeypatch: pytest.MonkeyPatch) -> None:
    data = persons(60)
    masked = sm.Swap(on=["a", "c"], rate=0.2, pairing="greedy").apply(data, Stream.of_seed(2))
    measures = [sm.SmallCells(), sm.Hellinger(), sm.utility.EntropyChange(), sm.Hellinger(weighted=True)]
    dense = [measure.score(data, masked, RNG).value for measure in measures]
    monkeypatch.setattr(cells_module, "DENSE_CELLS", 0)
    fresh = Microdata(data.schema, data.columns)
    few = fresh.take(np.arange(12))  # 36 possible cells are more than twice the records
    few = Microdata(few.schema, few.columns)
    assert few.view(cells, NAMES).observed is not None
    changed = sm.Swap(on=["a", "c"], rate=0.25, pairing="greedy").apply(few, Stream.of_seed(2))
    fast, plain = moves(few, changed, NAMES), _moves_between(few, changed, NAMES)
    assert fast.rows.tolist() == plain.rows.tolist() or sorted(fast.rows) == sorted(plain.rows)
    for side in ("before", "after"):
        assert sorted(getattr(fast, side)[getattr(fast, side) > 0]) == sorted(
            getattr(plain, side)[getattr(plain, side) > 0]
        )
    assert (fast.before[fast.old] > 0).all() and (fast.after[fast.new] > 0).all()
    monkeypatch.setattr(cells_module, "LARGEST_KEY", 1)
    endless = Microdata(data.schema, data.columns)
    assert endless.view(cells, NAMES).strides is None
    again = endless.change(masked.changed_rows(NAMES), {name: masked.changes[name].values for name in ("a", "c")})
    assert [measure.score(endless, again, RNG).value for measure in measures] == pytest.approx(dense)


def test_whole_column_changes_are_counted_by_difference() -> None:
    data = persons()
    masked = sm.Swap(on=["a"], rate=0.2, within="c").apply(data, Stream.of_seed(2))
    assert masked.changed_rows(NAMES) is None
    fast, plain = moves(data, masked, NAMES), _moves_between(data, masked, NAMES)
    assert fast.shape == (3, 4, 3)
    assert fast.rows.tolist() == plain.rows.tolist()
    assert sorted(fast.after[fast.after > 0]) == sorted(plain.after[plain.after > 0])
