"""Groups of equal records on adult against values that ARX's own tests assert (release 3.9, src/test): the 30,162 complete
records of adult.data, nine variables, hierarchies of one to four levels, "occupation" sensitive.

A node such as 0 3 1 0 0 0 1 0 names a level of each key, in the order KEYS. ARX then suppresses records in groups that
break the rule: all their keys become one value.
"""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.data.cells import distinct_cells
from sdcmap.risk.population_uniqueness import pitman, pitman_fit

RNG = np.random.default_rng(0)
KEYS = ("sex", "age", "race", "marital_status", "education", "native_country", "workclass", "income")
SECRET = "occupation"
TOP = (1, 4, 1, 2, 3, 2, 2, 1)
GROUPS = {  # level 1 of ARX's hierarchies, as far as the nodes here need them
    "marital_status": ("Married-civ-spouse Married-AF-spouse",),
    "education": (
        "Bachelors Some-college", "11th HS-grad 9th 7th-8th 12th 10th", "Prof-school Assoc-acdm Assoc-voc",
        "Masters Doctorate", "1st-4th 5th-6th Preschool",
    ),
    "workclass": ("Private Self-emp-not-inc Self-emp-inc", "Federal-gov Local-gov State-gov", "Without-pay"),
    "occupation": ("Tech-support Craft-repair Prof-specialty Machine-op-inspct", "Sales Exec-managerial Handlers-cleaners"),
}  # fmt: skip
HIGHER = {"Bachelors", "Prof-school", "Masters"}  # their groups are one at level 2 of education


def label(name: str, value: str) -> str:
    """A value's group at level 1."""
    return next((group.split()[0] for group in GROUPS.get(name, ()) if value in group.split()), "other")


def generalized(values: list[str], name: str, level: int) -> list[str]:
    if level == 0:
        return values
    if level == TOP[KEYS.index(name)]:
        return ["*"] * len(values)
    if name == "age":
        return [f"{level}: {(int(value) - 1) // (5, 10, 20)[level - 1]}" for value in values]
    first = [label(name, value) for value in values]
    return [f"{level}: {'higher' if level == 2 and group in HIGHER else group}" for group in first]


@cache
def adult(folder: Path) -> pl.DataFrame:
    frame = pl.read_parquet(folder / "data" / "adult.parquet").filter(pl.col("part") == "data")
    frame = frame.select([pl.col(name).cast(str) for name in (*KEYS, SECRET)])
    return frame.filter(~pl.any_horizontal(pl.all() == "?"))


def as_read(frame: pl.DataFrame) -> sm.Microdata:
    return sm.read(frame, keys=KEYS, sensitive=[SECRET], kinds=dict.fromkeys((*KEYS, SECRET), "nominal"))


@pytest.fixture(scope="module")
def original(shared: Path) -> sm.Microdata:
    return as_read(adult(shared))


def at(shared: Path, node: str) -> sm.Microdata:
    """The file at a node of the lattice, nothing suppressed."""
    frame = adult(shared)
    levels = zip(KEYS, map(int, node.split()), strict=True)
    return as_read(frame.with_columns(pl.Series(n, generalized(frame[n].to_list(), n, level)) for n, level in levels))


def suppressed(data: sm.Microdata, *rules: sm.Measure) -> sm.Microdata:
    """The same with all keys missing in records that one of the rules exposes."""
    gone = np.logical_or.reduce([rule.records(data, data.change(None, {})) > 0 for rule in rules])
    frame = data.frame()
    return as_read(frame.with_columns(pl.when(pl.Series(~gone)).then(pl.col(name)).alias(name) for name in KEYS))


def test_the_file_is_theirs(original: sm.Microdata) -> None:
    """TestRiskMetrics: the share of sample uniques, and the mean risk, classes over records."""
    observed = original.view(distinct_cells, (*KEYS, SECRET))
    assert len(original) == 30162
    assert (observed.count == 1).sum() / 30162 == pytest.approx(0.5142895033485844)
    assert len(observed.count) / 30162 == pytest.approx(0.6465751607983555)


@pytest.mark.parametrize(
    ("node", "classes"),
    [("0 0 1 0 1 0 0 1", 30162 / 701.4418604651163), ("1 4 0 2 0 2 2 1", 30162 / 1774.235294117647)],
)
def test_hierarchical_t_closeness(shared: Path, tmp_path: Path, node: str, classes: float) -> None:
    """TestUtilityMetrics, AECS of k = 5 with hierarchical t = .2 on occupation: so many groups are left."""
    jobs = sorted(set(adult(shared)[SECRET]))
    tree = tmp_path / "occupation.csv"
    tree.write_text("".join(f"{job};{label(SECRET, job)};*\n" for job in jobs), encoding="utf-8")
    rule = sm.risk.TCloseness(SECRET, t=0.2, distance="hierarchical", hierarchy=str(tree), summary="largest")
    data = at(shared, node)
    far = rule.records(data, data.change(None, {})) > 0.2
    few = sm.KAnonymity(k=5).records(data, data.change(None, {})) > 0
    kept = np.unique(data.view(distinct_cells, KEYS).code[~(far | few)])
    assert len(kept) + 1 == pytest.approx(classes)


@pytest.mark.parametrize(
    ("node", "aecs"),
    [
        ("0 0 0 0 0 0 0 0", 29.113899613899616),
        ("1 2 1 2 0 2 0 1", 93.96261682242991),
        ("0 1 1 2 1 0 0 1", 63.76744186046512),
    ],
)
def test_average_class_size(shared: Path, original: sm.Microdata, node: str, aecs: float) -> None:
    """TestUtilityMetrics, AECS of k = 5."""
    released = suppressed(at(shared, node), sm.KAnonymity(k=5))
    found = sm.utility.AverageClassSize(on=KEYS).score(original, released, RNG)
    assert found.parts["released"] == pytest.approx(aecs)


@pytest.mark.parametrize(
    ("node", "entropy"),
    [
        ("1 4 1 1 2 2 2 0", 368439.26393309573),
        ("1 4 1 1 2 2 2 1", 392857.38858687796),
        ("1 4 1 2 3 2 2 1", 455884.9365769584),
    ],
)
def test_non_uniform_entropy(shared: Path, original: sm.Microdata, node: str, entropy: float) -> None:
    """TestUtilityMetrics, non-uniform entropy of k = 5, in bits, at nodes where nobody is suppressed."""
    found = sm.utility.NonUniformEntropy(on=KEYS).score(original, at(shared, node), RNG)
    assert found.parts["bits"] == pytest.approx(entropy)


@pytest.mark.parametrize(
    ("node", "k", "squares"),
    [("1 1 0 1 0 2 0 0", 0, 4426432.0), ("1 4 1 1 3 2 0 1", 0, 2.60892746e8),
     ("0 0 0 0 0 0 0 0", 5, 4.63536157e8), ("0 0 1 0 3 2 0 0", 5, 1.10335369e8), ("0 3 1 1 1 2 0 0", 5, 3.4129719e7)],
)  # fmt: skip
def test_discernibility(shared: Path, original: sm.Microdata, node: str, k: int, squares: float) -> None:
    """TestUtilityMetrics, discernibility without suppression (their monotonic variant) and of k = 5."""
    released = suppressed(at(shared, node), sm.KAnonymity(k=k)) if k else at(shared, node)
    found = sm.utility.Discernibility(on=KEYS).score(original, released, RNG)
    assert found.parts["released"] * 30162**2 == pytest.approx(squares)


@pytest.mark.parametrize(
    ("node", "loss"),
    [
        ("0 0 0 0 0 0 0 0", 0.5090179696306611),
        ("0 0 0 2 1 2 0 0", 0.45063186570298164),
        ("0 4 0 2 1 0 0 0", 0.3254370841898194),
    ],
)
def test_precision(shared: Path, original: sm.Microdata, tmp_path: Path, node: str, loss: float) -> None:
    """TestUtilityMetrics, precision of k = 5: the mean over the keys."""
    released = suppressed(at(shared, node), sm.KAnonymity(k=5))
    kept = []
    for name, top in zip(KEYS, TOP, strict=True):
        values = sorted(set(adult(shared)[name]))
        labels = [values, *(generalized(values, name, level) for level in range(1, top + 1))]
        tree = tmp_path / f"{name}.csv"
        tree.write_text("".join(";".join(row) + "\n" for row in zip(*labels, strict=True)), encoding="utf-8")
        kept.append(sm.utility.Precision(name, hierarchy=str(tree)).score(original, released, RNG).value)
    assert 1 - np.mean(kept) == pytest.approx(loss)


def finer(node: str) -> list[str]:
    """The nodes with one level less."""
    levels = list(map(int, node.split()))
    return [" ".join(map(str, [*levels[:j], level - 1, *levels[j + 1 :]])) for j, level in enumerate(levels) if level]


def test_enhanced_beta_likeness(shared: Path) -> None:
    """TestAnonymizationBLikeness: with nothing suppressed, the node of least loss that has enhanced 2-likeness. Loss rises
    with every level, so that each node below it breaks the rule."""
    best = "1 4 1 1 3 2 2 0"
    rule = sm.risk.BetaLikeness(SECRET, beta=2, enhanced=True, on=KEYS)
    broken = {}
    for node in (best, *finer(best)[:3]):  # the others need more of their hierarchies than is written out here
        data = at(shared, node)
        broken[node] = rule.score(data, data.change(None, {}), RNG).value
    assert broken.pop(best) == 0
    assert len(broken) == 3 and min(broken.values()) > 0


@pytest.mark.parametrize(("node", "k"), [("0 0 1 1 0 2 2 0", 3), ("0 0 1 1 1 2 1 0", 1000)])
def test_k_map_by_the_zero_truncated_poisson(shared: Path, node: str, k: int) -> None:
    """TestAnonymizationKMap, level .01, the United States as population, 5 % of the records may be suppressed: these nodes
    are the best that pass. The first would pass for k = 1,000 too, were 2 records enough for it and not 3."""
    data = at(shared, node)
    exposed = {
        wanted: sm.risk.KMap(wanted, "zero-truncated", 0.01, 30162 / 318_857_056, on=KEYS).score(data, data, RNG)
        for wanted in (3, 1000)
    }
    assert [exposed[wanted].parts["records required"] for wanted in (3, 1000)] == [2, 3]
    assert exposed[k].value <= 0.05 and (k == 1000 or exposed[1000].value > 0.05)


@pytest.mark.parametrize(
    ("model", "fraction", "share"),
    [("zayatz", 0.1, 0.3207402394), ("zayatz", 0.2, 0.3577099235), ("dankar", 1.0, 0.5142895033485844)],
)
def test_population_uniqueness(original: sm.Microdata, model: str, fraction: float, share: float) -> None:
    """TestRiskMetrics, the decision rule on all nine variables; at .2 their SNB does not converge, and Zayatz decides."""
    measure = sm.risk.PopulationUniqueness(model, fraction, on=(*KEYS, SECRET))
    assert measure.score(original, original.change(None, {}), RNG).value == pytest.approx(share, rel=1e-8)


@pytest.mark.parametrize(("fraction", "share"), [(0.1, 0.27684993883831804), (0.01, 0.14460835311745512)])
def test_pitman_model(original: sm.Microdata, fraction: float, share: float) -> None:
    """The same, Pitman: with their limit formula in the place of the exact expectation, which is .2760 and .1446."""
    sizes, counts = np.unique(original.view(distinct_cells, (*KEYS, SECRET)).count, return_counts=True)
    alpha, theta = pitman_fit(sizes, counts)
    population = 30162 / fraction
    assert math.exp(math.lgamma(theta + 1) - math.lgamma(theta + alpha)) * population ** (alpha - 1) == pytest.approx(
        share
    )
    assert pitman(sizes, counts, population) / population == pytest.approx(share, rel=0.004)
