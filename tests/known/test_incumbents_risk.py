"""Risk measures against values that sdcMicro and the SDC Practice Guide print; each test names its source.

T: sdcMicro's tests/testthat; G: its help examples with their output; S: the guide of ihsn/SDCPractice; #: its issues.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.data.cells import distinct_cells
from sdcmap.kernels.tables.frequency_risks import household_risks
from sdcmap.risk.population_uniqueness import main_effect_means

RNG = np.random.default_rng(0)
FIVE = ("urbrur", "roof", "walls", "water", "sex")
SEVEN = ("urbrur", "roof", "walls", "water", "electcon", "relat", "sex")


def scored(measure: sm.Measure, data: sm.Microdata) -> sm.Estimate:
    """A measure of a file released as it is."""
    return measure.score(data, data.change(None, {}), RNG)


@pytest.fixture(scope="module")
def francdat() -> sm.Microdata:
    """The four keys and the weight of sdcMicro's file francdat."""
    rows = ["1251", "1211", "1211", "3315", "4314", "4311", "6215", "1251"]
    keys = {f"Key{j + 1}": [row[j] for row in rows] for j in range(4)}
    weights = [18.0, 45.5, 39.0, 17.0, 541.0, 8.0, 5.0, 92.0]
    return sm.read(pl.DataFrame(keys | {"w": weights}), keys=list(keys), weight="w")


@pytest.fixture(scope="module")
def guide() -> sm.Microdata:
    """The guide's table 4.1, with the sensitive variable of table 4.3."""
    rows = """U F SecInc Emp 180 y;U F SecInc Emp 180 y;U F PrimInc NonLF 215 y;U M SecCom Emp 76 y
        R F SecCom Unemp 186 y;U M SecCom Emp 76 n;U F PrimCom NonLF 180 n;U M PostSec Unemp 215 y
        U F SecInc NonLF 186 n;U F SecInc NonLF 76 y"""
    cells = [row.split() for row in rows.replace("\n", ";").split(";")]
    columns = dict(zip(["residence", "gender", "educ", "labour", "w", "health"], zip(*cells, strict=True), strict=True))
    frame = pl.DataFrame({name: list(values) for name, values in columns.items()}).with_columns(pl.col("w").cast(float))
    return sm.read(frame, keys=["residence", "gender", "educ", "labour"], weight="w", sensitive=["health"])


def table_a(*missing: tuple[str, int], weight: str | None = "w") -> sm.Microdata:
    """The table of sdcMicro's test_freqCalc and test_indivRisk, with some values missing."""
    columns: dict[str, list[str | None]] = {"A": [*"23223312"], "B": [*"33333343"], "C": [*"13121111"]}
    for name, row in missing:
        columns[name][row] = None
    weights = [18.0, 45.5, 39.0, 17.0, 92.0, 8.0, 123.5, 51.0]
    return sm.read(pl.DataFrame(columns | {"w": weights}), keys=["A", "B", "C"], weight=weight)


@pytest.fixture(scope="module")
def testdata(shared: Path) -> sm.Microdata:
    path = shared / "data" / "sdcmicro_testdata.csv"
    return sm.read(path, keys=FIVE, weight="sampling_weight", household="ori_hid", sensitive=["electcon"])


# ---- frequencies and individual risk --------------------------------------------------------------------------
def test_individual_risk_of_francdat(francdat: sm.Microdata) -> None:
    """G, freqCalc and indivRisk: 4 records violate 2-anonymity, 8 violate 3-anonymity."""
    printed = [0.01714426, 0.02204233, 0.02204233, 0.17707583, 0.01165448, 0.29706308, 0.40235948, 0.01714426]
    np.testing.assert_allclose(sm.risk.IndividualRisk().records(francdat, francdat), printed, atol=5e-9)
    assert scored(sm.KAnonymity(k=2), francdat).parts["records"] == 4
    assert scored(sm.KAnonymity(k=3), francdat).parts["records"] == 8
    assert scored(sm.risk.IndividualRisk(), francdat).value == pytest.approx(0.12081576, abs=5e-9)


@pytest.mark.parametrize(
    ("alpha", "f"),
    [(1.0, [3, 2, 4, 3, 3, 2, 2, 3]), (0.5, [2.5, 1.5, 4, 2.5, 2, 1.5, 1.5, 2.5])],
)
def test_frequencies_with_missing_values(francdat: sm.Microdata, alpha: float, f: list[float]) -> None:
    """G, freqCalc's help page: the records with f < k for every k, with row 3 Key3, row 4 Key1 and Key2, ... missing."""
    gone = {"Key1": [3, 5], "Key2": [3], "Key3": [2], "Key4": [4]}
    frame = francdat.frame()
    for name, rows in gone.items():
        frame = frame.with_columns(pl.when(~pl.int_range(pl.len()).is_in(rows)).then(pl.col(name)).alias(name))
    data = sm.read(frame, keys=list(gone), weight="w")
    for k in (2, 3, 4):
        found = sm.KAnonymity(k=k, alpha=alpha).records(data, data)
        assert found.tolist() == [float(one < k) for one in f]


def test_individual_risk_of_the_test_table() -> None:
    """T, test_indivRisk: approximate and exact, without and with A8, C3 and C7 missing; survey = FALSE."""
    approximate, exact = sm.risk.IndividualRisk(), sm.risk.IndividualRisk(form="exact")
    whole, part = table_a(), table_a(("A", 7), ("C", 2), ("C", 6))
    first, other = 0.01369863, [0.08579129, 0.17707583, 0.01877883, 0.01877883, 0.03931625]
    for measure, three in ((approximate, first), (exact, 0.01355297)):
        printed = [three, other[0], three, *other[1:], three]
        np.testing.assert_allclose(measure.records(whole, whole), printed, atol=5e-9)
    printed = [0.01369863, 0.085791288, 0.01055409, 0.032466112, 0.009836066, 0.009836066, 0.039316254, 0.005973716]
    np.testing.assert_allclose(approximate.records(part, part), printed, atol=5e-10)
    printed = [0.013552968, 0.085791288, 0.010504889, 0.032466112, 0.009756889, 0.009756889, 0.039316254, 0.005962551]
    np.testing.assert_allclose(exact.records(part, part), printed, atol=5e-10)
    census = table_a(("A", 7), ("C", 2), ("C", 6), weight=None)
    np.testing.assert_allclose(approximate.records(census, census), 1 / np.array([3, 1, 4, 2, 3, 3, 1, 5]))


def test_risk_of_the_guide(guide: sm.Microdata) -> None:
    """S, measure_risk, table 4.1: individual and global risk, expected re-identifications, violations."""
    printed = [0.00542452, 0.00542452, 0.025096439, 0.012563425, 0.028247279, 0.012563425, 0.029010932, 0.025096439]
    printed += [0.007403834, 0.007403834]
    np.testing.assert_allclose(sm.risk.IndividualRisk().records(guide, guide), printed, atol=5e-10)
    assert scored(sm.risk.IndividualRisk(), guide).value == pytest.approx(0.0158234649, abs=5e-11)
    assert scored(sm.risk.ExpectedReidentifications(), guide).value == pytest.approx(0.1582, abs=5e-5)
    assert scored(sm.risk.IndividualRisk(summary="share above", threshold=0.05), guide).value == 0
    assert [scored(sm.KAnonymity(k=k), guide).parts["records"] for k in (2, 3)] == [4, 10]


def test_household_risk_of_the_guide() -> None:
    """S, household risk: 1 - .98 x .97 x .97 = .078."""
    found = household_risks(np.array([0.02, 0.03, 0.03, 0.5]), np.array([0, 0, 0, 1]))
    np.testing.assert_allclose(found, [0.077918, 0.077918, 0.077918, 0.5])


def test_calc_risks() -> None:
    """T, test_calcRisks: frequencies 2,1,2,1,1,2,1,2,1,1 have risk .8, 8 re-identifications; with a missing record
    .4375, 1.75."""
    keys = sm.read(pl.DataFrame({"key": [*"abacdefegh"]}), keys="all")
    assert scored(sm.risk.ExpectedReidentifications(), keys) == sm.Estimate(value=8, parts={"share": 0.8})
    part = sm.read(pl.DataFrame({"key": ["a", "b", None, "c"]}), keys="all")
    assert sm.risk.IndividualRisk().records(part, part).tolist() == [0.5, 0.5, 0.25, 0.5]
    assert scored(sm.risk.ExpectedReidentifications(), part) == sm.Estimate(value=1.75, parts={"share": 0.4375})


# ---- testdata -------------------------------------------------------------------------------------------------
def test_global_risk_of_testdata(testdata: sm.Microdata) -> None:
    """G, measure_risk: weighted, unweighted and hierarchical re-identifications; head of the risks."""
    risk = sm.risk.IndividualRisk().records(testdata, testdata)
    np.testing.assert_allclose(risk[[0, 1, 4, 5]], [2.793218e-5, 2.857061e-5, 6.249609e-5, 6.710959e-5], atol=5e-12)
    assert scored(sm.risk.ExpectedReidentifications(), testdata).value == pytest.approx(1.5272045, abs=5e-8)
    assert scored(sm.risk.IndividualRisk(), testdata).value == pytest.approx(0.000333451, abs=5e-10)
    household = scored(sm.risk.HouseholdRisk(), testdata)
    assert household.parts["expected re-identifications"] == pytest.approx(7.1770286, abs=5e-8)
    assert household.value == pytest.approx(0.001567037, abs=5e-10)


def test_unweighted_risk_of_testdata(shared: Path) -> None:
    """G, measure_risk without weights: 93 re-identifications, and 165 records of higher risk than the main part (above
    median + 2 MAD and above .1)."""
    data = sm.read(shared / "data" / "sdcmicro_testdata.csv", keys=FIVE)
    found = scored(sm.risk.ExpectedReidentifications(), data)
    assert found.value == pytest.approx(93, abs=1e-9)
    assert found.parts["share"] == pytest.approx(0.02030568, abs=5e-9)
    risk = sm.risk.IndividualRisk().records(data, data)
    np.testing.assert_allclose(risk[[0, 1, 4, 5]], [0.002785515, 0.002849003, 0.006211180, 0.006666667], atol=5e-10)
    spread = 1.4826 * np.median(np.abs(risk - np.median(risk)))
    line = max(float(np.median(risk) + 2 * spread), 0.1)
    above = scored(sm.risk.IndividualRisk(summary="share above", threshold=line), data)
    assert round(above.value * len(data)) == 165


def test_violations_of_testdata(shared: Path) -> None:
    """G, print of an sdcMicroObj with seven keys: 157, 281, 458 records; 10.778299 re-identifications."""
    data = sm.read(shared / "data" / "sdcmicro_testdata.csv", keys=SEVEN, weight="sampling_weight")
    assert [scored(sm.KAnonymity(k=k), data).parts["records"] for k in (2, 3, 5)] == [157, 281, 458]
    assert scored(sm.KAnonymity(k=5), data).value == pytest.approx(0.1)
    found = scored(sm.risk.IndividualRisk(), data).parts
    assert found["expected re-identifications"] == pytest.approx(10.778299, abs=5e-7)
    assert found["largest"] == pytest.approx(0.04651687, abs=5e-9)


def test_cells_and_records(shared: Path) -> None:
    """UserSupport #293: sdcMicro counts records in small cells, n1 + n2; mu-Argus counts cells, n1 + n2 / 2."""
    data = sm.read(shared / "data" / "sdcmicro_testdata.csv", keys=SEVEN)
    found = scored(sm.KAnonymity(k=3), data).parts
    n1, both = 157, 281
    assert (found["records"], found["cells"]) == (both, n1 + (both - n1) / 2)
    argus = scored(sm.risk.UnsafeCombinations(k=3, dimension=7), data).parts
    assert argus["cells of 7"] == found["cells"]


def test_testdata2(shared: Path) -> None:
    """All 93 records are unique on seven keys; 4.326069 re-identifications."""
    data = sm.read(shared / "data" / "sdcmicro_testdata2.csv", keys=SEVEN, weight="sampling_weight")
    assert scored(sm.KAnonymity(k=2), data).value == 1
    assert scored(sm.risk.ExpectedReidentifications(), data).value == pytest.approx(4.326069, abs=5e-7)


# ---- l-diversity ----------------------------------------------------------------------------------------------
def test_l_diversity_of_the_guide(guide: sm.Microdata) -> None:
    """S, table 4.3: distinct 1 1 1 2 1 2 1 1 2 2, mean 1.4."""
    assert sm.risk.LDiversity().diversity(guide).tolist() == [1, 1, 1, 2, 1, 2, 1, 1, 2, 2]
    assert scored(sm.risk.LDiversity(), guide) == sm.Estimate(value=0.6, parts={"smallest": 1.0, "mean": 1.4})


def test_l_diversity_of_testdata(testdata: sm.Microdata) -> None:
    """G, ldiversity: distinct quartiles and mean; entropy exp(H) and recursive (c = 2) of the first records."""
    distinct = sm.risk.LDiversity().diversity(testdata)
    assert np.quantile(distinct, [0, 0.25, 0.5, 1]).tolist() == [1, 2, 3, 3]
    assert distinct.mean() == pytest.approx(2.3744541, abs=5e-8)
    entropy = sm.risk.LDiversity(form="entropy").diversity(testdata)[:6]
    np.testing.assert_allclose(entropy, [1.765424, 1.855345, 1.765424, 1.765424, 1.172525, 1.130836], atol=5e-7)
    assert sm.risk.LDiversity(form="recursive", c=2).diversity(testdata)[:6].tolist() == [1] * 6


def test_l_diversity_with_missing_keys() -> None:
    """T, a missing key matches every value: 3 3 3 2 2 2 2."""
    keys = {"sex": [*"FFFMMFF"], "job": [None] * 3 + ["teacher"] * 2 + ["nurse"] * 2, "area": [*"ooooomm"]}
    data = sm.read(pl.DataFrame(keys | {"secret": [*"1021001"]}), keys=list(keys), sensitive=["secret"])
    assert sm.risk.LDiversity().diversity(data).tolist() == [3, 3, 3, 2, 2, 2, 2]


# ---- SUDA2 ----------------------------------------------------------------------------------------------------
def test_suda_of_the_guide(guide: sm.Microdata) -> None:
    """S and #226, #227: scores, the first program's scores, and its DIS-SUDA scores at .01."""
    assert sm.risk.SUDA().suda(guide).tolist() == [0, 0, 6, 0, 12, 0, 6, 10, 0, 0]
    first = sm.risk.SUDA(scores="IHSN")
    np.testing.assert_allclose(first.suda(guide), [0, 0, 1.75, 0, 3.25, 0, 1.75, 2.75, 0, 0])
    printed = [0, 0, 0.005120313, 0, 0.010702061, 0, 0.005120313, 0.008775093, 0, 0]
    np.testing.assert_allclose(first.records(guide, guide), printed, atol=5e-10)


def test_suda_contributions() -> None:
    """#275: scores 2 4 2; a contributes 50 %, b and c 37.5 %."""
    data = sm.read(pl.DataFrame({"a": [*"211"], "b": [*"030"], "c": [*"060"]}), keys="all")
    assert sm.risk.SUDA().suda(data).tolist() == [2, 4, 2]
    parts = scored(sm.risk.SUDA(), data).parts
    assert [parts[f"contribution of {name}"] for name in "abc"] == [0.5, 0.375, 0.375]


def test_suda_of_testdata2(shared: Path) -> None:
    """T, test_suda2 (in a comment there): the first record scores 2 on five keys, 180 on seven; 2.73 by IHSN's program."""
    path = shared / "data" / "sdcmicro_testdata2.csv"
    assert sm.risk.SUDA().suda(sm.read(path, keys=FIVE))[0] == 2
    data = sm.read(path, keys=SEVEN)
    assert sm.risk.SUDA().suda(data)[0] == 180
    assert sm.risk.SUDA(scores="IHSN").suda(data)[0] == pytest.approx(2.73, abs=5e-3)


# ---- log-linear models ----------------------------------------------------------------------------------------
def test_log_linear_means_give_what_mod_risk_prints(shared: Path) -> None:
    """G, modRisk(testdata2, ~ sex + water + roof), "IPF": .27354 and .41038.

    Its mean of F - 1 is m (1 - p), not m (1 - p) / p as in Skinner and Holmes, and it divides by the cells that occur;
    the means m are ours.
    """
    names = ("sex", "water", "roof")
    data = sm.read(shared / "data" / "sdcmicro_testdata2.csv", keys=names, weight="sampling_weight")
    observed = data.view(distinct_cells, names)
    h = main_effect_means(np.maximum(observed.codes, 0), observed.count) * (1 - observed.count / 100)
    alone = observed.count == 1
    assert np.exp(-h)[alone].sum() / len(observed.count) == pytest.approx(0.27354, abs=5e-6)
    assert ((1 - np.exp(-h)) / h)[alone].sum() / len(observed.count) == pytest.approx(0.41038, abs=5e-6)
