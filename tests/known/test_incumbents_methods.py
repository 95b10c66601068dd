"""Methods against values that sdcMicro and the SDC Practice Guide print; each test names its source.

T: sdcMicro's tests/testthat; G: its help examples with their output; S: the guide of ihsn/SDCPractice.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.data.cells import distinct_cells
from sdcmap.kernels.tables.frequency_risks import individual_risk
from sdcmap.kernels.tables.wildcards import wildcard_sums

NA = -1
FRANCDAT = np.array(
    [(1, 2, 5, 1), (1, 2, 1, 1), (1, 2, 1, 1), (3, 3, 1, 5), (4, 3, 1, 4), (4, 3, 1, 1), (6, 2, 1, 5), (1, 2, 5, 1)]
)
FRANCDAT_W = np.array([18, 45.5, 39, 17, 541, 8, 5, 92])
TABLE_A = np.array([(2, 3, 1), (3, 3, 3), (2, 3, 1), (2, 3, 2), (3, 3, 1), (3, 3, 1), (1, 4, 1), (2, 3, 1)])
TABLE_A_W = np.array([18, 45.5, 39, 17, 92, 8, 123.5, 51])
HOUSING = ("urbrur", "roof", "walls", "water", "electcon", "relat", "sex")


def frequencies(codes: np.ndarray, weights: np.ndarray, alpha: float = 1.0) -> tuple[list[float], list[float]]:
    """fk and Fk of each record."""
    found = wildcard_sums(codes, np.column_stack([np.ones(len(codes)), weights]), alpha)
    return found[:, 0].tolist(), found[:, 1].tolist()


def blanked(data: sm.Microdata, method: sm.Method) -> dict[str, int]:
    """How many values a method makes missing, by variable."""
    masked = sm.mask(data, method, seed=1)
    lost = {name: int(masked.missing(name).sum() - data.missing(name).sum()) for name in data.names}
    return {name: count for name, count in lost.items() if count}


# ---- frequencies, missing values as wildcards -----------------------------------------------------------------
def test_freq_calc_of_francdat() -> None:
    """G, freqCalc(francdat, keyVars = c(2, 4, 5, 6), w = 8)."""
    f, total = frequencies(FRANCDAT, FRANCDAT_W)
    assert f == [2, 2, 2, 1, 1, 1, 1, 2]
    assert total == [110, 84.5, 84.5, 17, 541, 8, 5, 110]
    risks = [individual_risk(one, weight) for one, weight in zip(f, total, strict=True)]
    printed = [0.01714426, 0.02204233, 0.02204233, 0.17707583, 0.01165448, 0.29706308, 0.40235948, 0.01714426]
    np.testing.assert_allclose(risks, printed, atol=5e-9)


@pytest.mark.parametrize(
    ("alpha", "f", "total"),
    [
        (1.0, [3, 2, 4, 3, 3, 2, 2, 3], [149, 84.5, 194.5, 563, 566, 549, 22, 149]),
        (0.5, [2.5, 1.5, 4, 2.5, 2, 1.5, 1.5, 2.5], [129.5, 65, 194.5, 292.5, 553.5, 278.5, 13.5, 129.5]),
        (0.1, [2.1, 1.1, 4, 2.1, 1.2, 1.1, 1.1, 2.1], [113.9, 49.4, 194.5, 76.1, 543.5, 62.1, 6.7, 113.9]),
    ],
)
def test_freq_calc_of_francdat_with_missing_values(alpha: float, f: list[float], total: list[float]) -> None:
    """G, the same help page: row 3 Key3, row 4 Key1 and Key2, row 5 Key4 and row 6 Key1 missing."""
    codes = FRANCDAT.copy()
    codes[2, 2] = codes[3, 0] = codes[3, 1] = codes[4, 3] = codes[5, 0] = NA
    found = frequencies(codes, FRANCDAT_W, alpha)
    np.testing.assert_allclose(found[0], f)
    np.testing.assert_allclose(found[1], total)


def test_freq_calc_of_the_test_tables() -> None:
    """T, test_freqCalc: the table without missing values, with two, with a whole column and row, and one key."""
    assert frequencies(TABLE_A, TABLE_A_W) == (
        [3, 1, 3, 1, 2, 2, 1, 3],
        [108, 45.5, 108, 17, 100, 100, 123.5, 108],
    )
    two = TABLE_A.copy()
    two[2, 2] = two[6, 2] = NA
    assert frequencies(two, TABLE_A_W) == ([3, 1, 4, 2, 2, 2, 1, 3], [108, 45.5, 125, 56, 100, 100, 123.5, 108])
    many = TABLE_A.copy()
    many[:, 2] = NA
    many[2] = NA
    assert frequencies(many, TABLE_A_W) == (
        [4, 4, 8, 4, 4, 4, 2, 4],
        [125, 184.5, 394, 125, 184.5, 184.5, 162.5, 125],
    )
    one = np.array([[2], [3], [NA], [2], [1], [NA], [1], [2]])
    assert frequencies(one, TABLE_A_W) == ([5, 3, 8, 5, 4, 8, 4, 5], [133, 92.5, 394, 133, 262.5, 394, 262.5, 133])
    wide = np.array([(2, 3, NA), (2, 3, 3), (1, NA, 3), (3, NA, 3), (3, 2, 2), (3, NA, NA), (1, 2, NA), (NA, 4, 4)]).T
    assert frequencies(wide, np.array([18, 45.5, 122])) == ([1, 2, 2], [18, 167.5, 167.5])


def test_missing_values_of_the_guide() -> None:
    """S, measure_risk: (M, SecCom, Emp), (M, SecInc, Emp), (M, missing, Emp)."""
    data = sm.read(
        pl.DataFrame({"sex": ["M"] * 3, "educ": ["SecCom", "SecInc", None], "work": ["Emp"] * 3}), keys="all"
    )
    observed = data.view(distinct_cells, data.keys)
    assert wildcard_sums(observed.codes, observed.count)[observed.code].tolist() == [2, 2, 3]


def test_individual_risk_of_the_test_table() -> None:
    """T, test_indivRisk, approximate: with A8, C3 and C7 missing."""
    codes = TABLE_A.copy()
    codes[7, 0] = codes[2, 2] = codes[6, 2] = NA
    found = [individual_risk(f, total) for f, total in zip(*frequencies(codes, TABLE_A_W), strict=True)]
    printed = [0.01369863, 0.085791288, 0.01055409, 0.032466112, 0.009836066, 0.009836066, 0.039316254, 0.005973716]
    np.testing.assert_allclose(found, printed, atol=5e-9)


# ---- suppression: as few values as published, or fewer ---------------------------------------------------------
@pytest.fixture(scope="module")
def francdat(shared: Path) -> sm.Microdata:
    keys = ["Key1", "Key2", "Key3", "Key4"]
    return sm.read(shared / "data" / "sdcmicro_francdat.csv", keys=keys, weight="w")


@pytest.fixture(scope="module")
def testdata(shared: Path) -> sm.Microdata:
    return sm.read(shared / "data" / "sdcmicro_testdata.csv", keys=HOUSING, weight="sampling_weight")


@pytest.fixture(scope="module")
def testdata2(shared: Path) -> sm.Microdata:
    frame = pl.read_csv(shared / "data" / "sdcmicro_testdata2.csv")
    age = frame["age"].to_numpy()
    group = np.maximum(np.ceil((age - age.min()) / (age.max() - age.min()) * 5), 1)  # R's cut(age, 5)
    return sm.read(frame.with_columns(pl.Series("age_group", group.astype(int))), keys=HOUSING)


def test_local_suppression_of_francdat(francdat: sm.Microdata) -> None:
    """G, localSuppression(francdat, keyVar = c(4, 5, 6)): 4 values; importance = c(1, 3, 2, 4): 5 values."""
    assert sum(blanked(francdat, sm.Suppress(on=["Key2", "Key3", "Key4"], k=2)).values()) <= 4
    ranked = sm.Suppress(k=2, importance=["Key1", "Key3", "Key2", "Key4"])
    assert sum(blanked(francdat, ranked).values()) <= 5


def test_local_suppression_of_testdata2(testdata2: sm.Microdata) -> None:
    """T, localSuppression of the 7 keys, k = 2: 97 values; G, in each of five age groups: 109."""
    assert sum(blanked(testdata2, sm.Suppress(k=2)).values()) <= 97
    assert sum(blanked(testdata2, sm.Suppress(k=2, within="age_group")).values()) <= 109


def test_k_anonymity_of_testdata(testdata: sm.Microdata) -> None:
    """G, kAnon(testdata, k = 3): 293 values; urbrur and sex, the most important there, keep theirs."""
    assert sum(blanked(testdata, sm.Suppress(k=3)).values()) <= 293
    kept = blanked(testdata, sm.Suppress(k=3, importance=["urbrur", "sex"], blank=HOUSING[1:6]))
    assert sum(kept.values()) <= 293
    assert not {"urbrur", "sex"} & set(kept)


def test_suppression_above_a_risk(francdat: sm.Microdata, testdata: sm.Microdata) -> None:
    """G, localSupp(threshold = .15, keyVar = Key4): 3 values and the new risks; testdata, urbrur, .045: 157 values.

    Ours leaves out a value that another one, blanked before, already protects.
    """
    method = sm.Suppress(risk=0.15, blank="Key4", unmet="leave")
    assert blanked(francdat, method) == {"Key4": 3}
    released = sm.mask(francdat, method, seed=1)
    codes = np.column_stack([np.where(released.missing(n), NA, released.codes(n).astype(int)) for n in francdat.keys])
    risks = [individual_risk(f, total) for f, total in zip(*frequencies(codes, FRANCDAT_W), strict=True)]
    printed = [0.017144262, 0.022042326, 0.022042326, 0.177075834, 0.003581243, 0.003581243, 0.402359478, 0.017144262]
    np.testing.assert_allclose(risks, printed, atol=5e-9)
    assert blanked(testdata, sm.Suppress(risk=0.045, blank="urbrur", unmet="leave"))["urbrur"] <= 157


# ---- coding and PRAM ------------------------------------------------------------------------------------------
def test_top_and_bottom_coding() -> None:
    """T, topBotCoding(x, value = 35, replacement = 0), top and bottom."""
    x = [17.63611, 80.94412, 39.10929, 33.44570, 60.60797, 60.83501, 13.33871, 30.16549, 58.18338, 63.46695]
    data = sm.read(pl.DataFrame({"x": x}), numeric="all")
    top = [17.63611, 0, 0, 33.44570, 0, 0, 13.33871, 30.16549, 0, 0]
    assert sm.mask(data, sm.TopCode(on="x", top=35, replaced_by=0), seed=1)["x"].tolist() == top
    bottom = [0 if kept else value for kept, value in zip(top, x, strict=True)]
    assert sm.mask(data, sm.TopCode(on="x", bottom=35, replaced_by=0), seed=1)["x"].tolist() == bottom


def test_top_coding_of_ages(shared: Path) -> None:
    """G, topBotCoding(age, value = 80, replacement = 81): the ages are then 0 to 81."""
    data = sm.read(shared / "data" / "sdcmicro_testdata.csv", numeric="age")
    coded = sm.mask(data, sm.TopCode(on="age", top=80, replaced_by=81), seed=1)["age"]
    assert (coded.min(), coded.max()) == (0, 81)


def test_pram_expectation() -> None:
    """S, anon_methods: counts 5000, 500, 400 become 5045, 460, 395 in expectation; 200 seeds, within 4 standard errors."""
    data = sm.read(pl.DataFrame({"x": np.repeat(["a", "b", "c"], [5000, 500, 400])}), keys="all")
    method = sm.PRAM(on="x", matrix=[[1, 0, 0], [0.05, 0.8, 0.15], [0.05, 0.15, 0.8]])
    counts = np.array([np.bincount(sm.mask(data, method, seed=seed).codes("x")) for seed in range(200)])
    error = counts.std(axis=0, ddof=1) / np.sqrt(len(counts))
    assert (np.abs(counts.mean(axis=0) - [5045, 460, 395]) < 4 * error).all()
    assert (counts[:, 0] >= 5000).all()  # "a" never leaves: issue 303, impossible transitions happened


def test_pram_by_the_identity_changes_nothing() -> None:
    """T, test_pram: an identity matrix leaves the data as they are."""
    data = sm.demo.population(500, seed=1)
    size = data.level_count("Educ")
    masked = sm.mask(data, sm.PRAM(on="Educ", matrix=np.eye(size).tolist()), seed=1)
    assert (masked.codes("Educ") == data.codes("Educ")).all()
