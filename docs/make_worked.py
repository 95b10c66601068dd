"""Write look/worked.md: one value of every measure on a tiny file, by plain arithmetic and by sdcmap."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import polars as pl

import sdcmap as sm
from sdcmap.core.measure import Measure
from sdcmap.core.method import Method

PAGE = Path(__file__).parent / "look" / "worked.md"
BEGIN, END = "<!-- computed -->", "<!-- end -->"
KEYS = ["sex", "age"]
WAGE = [10.0, 20.0, 30.0, 40.0, 50.0, 60.0]
MOVED = [12.0, 20.0, 30.0, 36.0, 50.0, 60.0]


# ---- the files -------------------------------------------------------------------------------------------------
def people() -> pl.DataFrame:
    """Return six artificial persons in three households."""
    return pl.DataFrame(
        {"sex": list("ffmmmf"), "age": ["20", "20", "20", "60", "60", "60"], "job": list("abaabb"), "wage": WAGE,
         "tax": [1.0, 3.0, 2.0, 6.0, 4.0, 5.0], "w": [10.0, 10.0, 20.0, 20.0, 5.0, 5.0], "home": [1, 1, 2, 2, 3, 3]}
    )  # fmt: skip


@cache
def files() -> dict[str, pl.DataFrame]:
    """Return the masked files, by name."""
    own = people()
    return {
        "unchanged": own,
        "swapped": own.with_columns(sex=pl.Series(list("mfmfmf"))),
        "moved": own.with_columns(wage=pl.Series(MOVED)),
        "crossed": own.with_columns(wage=pl.Series([19.0, *WAGE[1:]])),
        "blurred": own.with_columns(sex=pl.lit("f")),
        "blank": own.with_columns(sex=pl.Series(["f", "f", None, "m", "m", "f"])),
        "starred": own.with_columns(sex=pl.Series(["*", "*", "*", "m", "m", "f"])),
    }


@cache
def original() -> sm.Microdata:
    return sm.read(people(), keys=KEYS, sensitive=["job"], numeric=["wage", "tax"], weight="w", household="home")


@cache
def plain() -> sm.Microdata:
    """Return the same file without weights and households."""
    return sm.read(people().drop("w", "home"), keys=KEYS, sensitive=["job"], numeric=["wage", "tax"])


@cache
def crowd() -> sm.Microdata:
    """Return eighty persons, for measures that compare groups of people."""
    k = np.arange(80)
    frame = pl.DataFrame({"sex": np.where(k < 40, "f", "m"), "x": 100.0 + 7 * k, "y": 50.0 + 3 * ((11 * k) % 80),
                          "town": [f"t{i}" for i in k]})  # fmt: skip
    return sm.read(frame, keys=["sex", "town"], numeric=["x", "y"], sensitive=["y"])


@cache
def beside(name: str) -> str:
    """Write a file that an attacker or the agency has, and return its path."""
    folder = Path(mkdtemp(prefix="worked-"))
    tables = {
        "population": pl.concat([people().select(KEYS), pl.DataFrame({"sex": ["f"] * 6, "age": ["20"] * 6})]),
        "register": people().select(KEYS),
        "counts": people().group_by(KEYS, maintain_order=True).len("count"),
    }
    path = folder / f"{name}.csv"
    if name == "levels":
        path.write_text("f;*\nm;*\n", encoding="utf-8")
    else:
        tables[name].write_csv(path)
    return str(path)


# ---- the cases -------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Worked:
    """A measure of a release and its value by hand: a Python expression with the functions of `math`.

    words : why the expression is the value. data : the file, "plain", "weighted" or "crowd".
    """

    measure: Measure
    release: str
    by_hand: str
    words: str
    data: str = "plain"
    method: Method | None = None

    @property
    def number(self) -> float:
        """The value that sdcmap computes."""
        if self.data == "crowd":
            before, after = crowd(), released_crowd(self.release)
        else:
            weighted = self.data == "weighted"
            before = original() if weighted else plain()
            frame = files()[self.release]
            after = sm.read(frame if weighted else frame.drop("w", "home"), **_roles(weighted))  # type: ignore[assignment]
        return sm.score(before, after, [self.measure], method=self.method)[self.measure.text].value

    @property
    def arithmetic(self) -> float:
        """The value of the expression."""
        return float(eval(self.by_hand, vars(math) | {"abs": abs, "max": max, "min": min, "sum": sum, "zip": zip}))


def _roles(weighted: bool) -> dict[str, object]:
    roles: dict[str, object] = {"keys": KEYS, "sensitive": ["job"], "numeric": ["wage", "tax"]}
    return roles | ({"weight": "w", "household": "home"} if weighted else {})


def released_crowd(release: str) -> pl.DataFrame:
    """Return the crowd unchanged, or with x of the women larger by a tenth."""
    frame = crowd().frame()
    if release == "unchanged":
        return frame
    return frame.with_columns(x=pl.when(pl.col("sex") == "f").then(1.1 * pl.col("x")).otherwise(pl.col("x")))


V = "(8840 - 208**2/6)/5"  # variance of the moved wages
R, R2 = "27/sqrt(350*3.5)", f"24/sqrt({V}*3.5)"  # correlations of wage and tax before and after
IL = {
    "1": "(2/11 + 4/38)/12", "1s": "(2 + 4)/(12*sqrt(2*350))", "2": "(2/6)/35/2", "3": f"(abs(350 - {V})/350 + 3/27)/3",
    "4": f"abs(350 - {V})/350/2", "5": f"abs({R} - {R2})",
}  # fmt: skip
NUMBERS = ["wage", "tax"]
TOLERANCE = 1e-4  # the logistic regression of Propensity has a small ridge penalty
PAIR_DISTANCES = "sum(abs(a - b) for a in {0} for b in {1})/30"
TIGHT = sm.Noise(on="wage", variance=0.01)


def risks() -> Iterator[Worked]:
    r, U = sm.risk, "weighted"
    yield Worked(sm.SmallCells(n=2), "swapped", "2/4", "four persons are unchanged; two of them are now unique")
    yield Worked(
        r.UnsafeRecords(on="wage", k=2, delta=0.3),
        "moved",
        "2/6",
        "only 20 and 30 were not moved and have no other wage closer than 30 %",
    )
    yield Worked(sm.KAnonymity(k=2), "unchanged", "2/6", "the third and sixth persons are unique on sex and age")
    yield Worked(
        r.AlphaKAnonymity(secret="job", k=2),
        "unchanged",
        "2/6",
        "unique persons; in the other groups no job has more than half",
    )
    yield Worked(
        r.LDiversity(secret="job"), "unchanged", "2/6", "groups with a single job: the third and sixth persons"
    )
    yield Worked(
        r.TCloseness(secret="job", distance="equal", summary="mean"),
        "unchanged",
        "2*0.5/6",
        "each job has a share of 0.5; the two groups of one person differ from that by 0.5",
    )
    yield Worked(
        r.BetaLikeness(secret="job", beta=0.5),
        "unchanged",
        "2/6",
        "for the two unique persons, (1 - 0.5)/0.5 = 1 exceeds 0.5",
    )
    yield Worked(
        r.DeltaDisclosure(secret="job", delta=0.5),
        "unchanged",
        "2/6",
        "for the same two persons, ln(1/0.5) = 0.69 exceeds 0.5",
    )
    yield Worked(
        r.DeltaPresence(population=beside("population")),
        "unchanged",
        "4/12",
        "of 12 people in the population, 8 share their keys with 2 of the file; the other 4 are certainly in it",
    )
    yield Worked(
        r.RAPID(secret="sex", on=["x"]),
        "unchanged",
        "80/80",
        "x determines the sex, and the model has learned it: every gain exceeds 0.3",
        data="crowd",
    )
    yield Worked(r.KMap(k=6), "unchanged", "1/6", "only the sixth person represents fewer than 6 people: 5", data=U)
    yield Worked(
        r.IndividualRisk(form="ratio"),
        "unchanged",
        "(1/20 + 1/20 + 1/20 + 1/25 + 1/25 + 1/5)/6",
        "one over the number of people with these keys, by weights",
        data=U,
    )
    yield Worked(
        r.ExpectedReidentifications(form="ratio"),
        "unchanged",
        "1/20 + 1/20 + 1/20 + 1/25 + 1/25 + 1/5",
        "the sum of the same risks",
        data=U,
    )
    yield Worked(
        r.HouseholdRisk(form="ratio"),
        "unchanged",
        "((1 - 0.95*0.95) + (1 - 0.95*0.96) + (1 - 0.96*0.8))/3",
        "probability that at least one member is re-identified, mean of three households",
        data=U,
    )
    yield Worked(
        r.ExactMatch(on=KEYS), "unchanged", "2/6", "two persons have exactly one matching record, and it is their own"
    )
    yield Worked(r.ReplicatedUniques(), "unchanged", "2/6", "unique in the original and in the release")
    yield Worked(
        r.UnsafeCombinations(k=2, dimension=2),
        "unchanged",
        "2/6",
        "each category of sex and age has three records; the table of both has two cells of one record",
    )
    yield Worked(
        r.SpecialUniques(on=KEYS),
        "unchanged",
        "2/2",
        "both persons who are unique on two values are re-identified by them",
    )
    yield Worked(
        r.SUDA(),
        "unchanged",
        "2*(0.01*2/(0.01*2 + 4*0.99))/6",
        "two persons are unique on both keys together, with score 1 (so w = 2); four are in pairs",
    )
    yield Worked(r.RecordRisk(), "unchanged", "1/1", "a unique record is re-identified with certainty")
    yield Worked(
        r.PopulationUniqueness(model="zayatz", fraction=1.0),
        "unchanged",
        "2/6",
        "the whole population is in the file: the share of unique records",
    )
    yield Worked(
        r.LogLinearRisk(fraction=0.5),
        "unchanged",
        "2*exp(-1.5)/6",
        "main effects expect 6/4 = 1.5 records per cell, and as many outside the file; two persons are unique",
    )
    yield Worked(
        r.CorrectAttribution(secret="job"),
        "unchanged",
        "(0.5 + 0.5 + 1 + 0.5 + 0.5 + 1)/6",
        "of the records with the same keys, the share with the same job",
    )
    yield Worked(
        r.ExternalLink(archive=beside("register")),
        "unchanged",
        "2/6",
        "two persons have exactly one match in the register",
    )
    yield Worked(
        r.PublishedTables(tables=[beside("counts")]),
        "unchanged",
        "(0.5 + 0.5 + 1 + 0.5 + 0.5 + 1)/6",
        "nothing changed: one over the number of records with the same keys",
    )
    yield Worked(
        r.MarkedRecords(edits=['wage < 25 -> sex = "f"']),
        "swapped",
        "1/2",
        "sex changed in two records; the first of them now breaks the rule",
    )
    yield Worked(r.NearestRecord(on="wage"), "crossed", "5/6", "19 is closer to 20 than to 10")
    yield Worked(r.Linkage(on="wage"), "crossed", "6/6", "one-to-one: all others agree exactly, so 19 is linked to 10")
    yield Worked(r.Informed(on="wage"), "crossed", "6/6", "one-to-one, by normal densities", method=TIGHT)
    yield Worked(
        r.Calibrated(on="wage"), "unchanged", "6/6", "an unmasked column must agree exactly", method=sm.Identity()
    )
    yield Worked(sm.WorstLinkage(on="wage"), "crossed", "6/6", "the best of these attacks", method=TIGHT)
    yield Worked(
        r.SurestLinks(on="wage", links=2),
        "unchanged",
        "2/2",
        "every record is linked to its own, and so are the two whose next neighbor is farthest",
    )
    yield Worked(r.IntervalDisclosure(on="wage"), "unchanged", "1", "every value is in each interval around itself")
    yield Worked(r.DRisk(on="wage"), "moved", "4/6", "two wages moved by more than 0.05 standard deviations")
    yield Worked(
        r.DRiskRMD(on=NUMBERS), "unchanged", "6/6", "nothing moved, and no other record is close enough to protect one"
    )
    yield Worked(r.KnownIndex(on="wage"), "moved", "1/((2**2 + 4**2)/6)", "one over the mean squared change")
    yield Worked(
        r.Position(on="wage", target="minimum"),
        "moved",
        "1/(12 - 10)**2",
        "the smallest released wage estimates the smallest wage",
    )
    yield Worked(
        r.MeanGuess(on="wage"),
        "moved",
        "1/((208/6 - 35)**2 + 1750/6)",
        "the mean of the released wages estimates the wage of any person of the file",
    )
    yield Worked(
        r.PositionNoiseKnown(on="wage", target="minimum"),
        "moved",
        f"1/(208/6 + (12 - 208/6)*sqrt(({V} - 0.01*350)/({V})) - 10)**2",
        "the smallest released wage, moved to the mean because 1 % of the variance was added",
        method=TIGHT,
    )
    yield Worked(
        r.PositionNoiseGuessed(on="wage", target="minimum", believed_sd=10.0),
        "moved",
        f"1/(208/6 + (12 - 208/6)*10/sqrt({V}) - 10)**2",
        "the same, for an attacker who believes in a standard deviation of 10",
    )
    yield Worked(
        r.Index(on="wage", target="minimum"),
        "moved",
        "1/(12 - 10)**2",
        "the released value of the record with the smallest wage",
    )
    yield Worked(r.LargestUnits(on="wage", largest=2), "moved", "2/2", "the two largest kept their ranks")
    yield Worked(
        r.ExtremeValues(on="wage"),
        "moved",
        "1 - 0",
        "the largest wage is at its rank; without it, 50 is not within 10 % of 60 (a tenth of six records is one unit)",
    )
    yield Worked(
        r.PPercent(on="wage", by="sex", p=20.0),
        "unchanged",
        "1/2",
        "women: 90 - 20 - 60 = 10 is within 20 % of 60; men: 120 - 40 - 50 = 30 is not within 20 % of 50",
    )
    yield Worked(
        r.AreaFromDesign(area="age", by="w"),
        "unchanged",
        "0",
        "the area was not masked, so the design reveals nothing new",
        data=U,
    )
    yield Worked(r.HouseholdLink(), "unchanged", "6/6", "every household is closest to itself", data=U)
    yield Worked(
        r.Identifiability(on="wage"),
        "moved",
        "6/6",
        "changes of 2 and 4 are smaller than 10, the distance to the next person",
    )
    yield Worked(
        r.IntruderKnowledge(on="wage", scenario="noise"),
        "moved",
        f"-sum((x - (35 + 0.625*(y - 35)))**2 for x, y in zip({WAGE}, {MOVED}))/1750",
        "the intruder shrinks each released wage towards 35 by the factor (1750/6)/(1750/6 + 175)",
        method=sm.Noise(on="wage", variance=0.5),
    )
    yield Worked(
        r.DiscreditHarm(on="wage", scenario="noise"),
        "moved",
        "-175/(1750/6 + 175)",
        "the share of uncertainty that remains with a noise variance of 350/2",
        method=sm.Noise(on="wage", variance=0.5),
    )
    yield Worked(
        r.ClosestRecord(on=["x"]),
        "unchanged",
        "1",
        "members have distance 0, non-members more",
        data="crowd",
    )
    yield Worked(
        r.WorstMembership(on=["x"]),
        "unchanged",
        "1",
        "the same attack: all members are recognized, and no non-member",
        data="crowd",
    )
    yield Worked(
        r.OutlierMembership(on=["x"], fewest=8, times=16),
        "unchanged",
        "1",
        "a released x at distance 0 tells that an outlying person is in the file",
        data="crowd",
        method=sm.Identity(),
    )
    yield Worked(
        r.AttributeInference(secret="y", on=["x"]),
        "unchanged",
        "1 - 0",
        "the nearest record of a member is their own; for a non-member no near record has such a y",
        data="crowd",
    )
    yield Worked(
        r.Reconstruction(on=["x", "y"], columns=1),
        "unchanged",
        "1 - 0",
        "x is guessed from y: only a member's own record has such a y, and its x is right",
        data="crowd",
    )
    yield Worked(
        r.SinglingOut(on=["town"]),
        "unchanged",
        "1 - 0",
        "each person has a different town: it singles out every member and no non-member",
        data="crowd",
    )
    yield Worked(
        r.Linkability(left=["x"], right=["y"]),
        "unchanged",
        "1 - 0",
        "x and y of a member lead to the same record, those of a non-member to two",
        data="crowd",
    )


def utilities() -> Iterator[Worked]:
    u = sm.utility
    cells = "2*(1/3*log(3)) + 2*(1/6*log(6))"
    yield Worked(
        sm.Hellinger(on=KEYS),
        "swapped",
        "sqrt(0.5*4*(sqrt(2/6) - sqrt(1/6))**2)",
        "each of four cells changes from 2 to 1 or from 1 to 2",
    )
    yield Worked(u.TotalVariation(on=KEYS), "swapped", "0.5*4*abs(2/6 - 1/6)", "the same cells")
    yield Worked(
        u.TableError(on=KEYS, order=2),
        "swapped",
        "(0 + 0 + (1/2 + 1/1 + 1/2 + 1/1)/4)/3",
        "the tables of sex and of age do not change; in the joint table each cell changes by 1, relative to its count",
    )
    yield Worked(
        u.EntropyChange(on=KEYS), "blurred", f"abs(log(2) - ({cells}))", "four cells before, two equal cells after"
    )
    yield Worked(
        u.ConditionalEntropyChange(on=KEYS),
        "blurred",
        f"(abs(0 - ({cells} - log(2))) + abs(log(2) - ({cells} - log(2))))/2",
        "sex given age has entropy 0 now; age given sex has two equal shares",
    )
    yield Worked(u.ContingencyChange(on=KEYS), "blurred", "sqrt((2/3)/(2/3 + 6)) - 0", "chi² changes from 2/3 to 0")
    yield Worked(u.CramersVChange(on=KEYS), "blurred", "sqrt((2/3)/6) - 0", "the same chi²")
    yield Worked(
        u.IL1(on=NUMBERS),
        "moved",
        IL["1"],
        "10 and 12 differ by 2/11 of their mean, 40 and 36 by 4/38; there are 12 values",
    )
    yield Worked(
        sm.IL1s(on=NUMBERS), "moved", IL["1s"], "changes divided by sqrt(2) standard deviations; the variance is 350"
    )
    yield Worked(u.IL2(on=NUMBERS), "moved", IL["2"], "the mean wage of 35 fell by 2/6; the mean tax did not change")
    yield Worked(u.IL3(on=NUMBERS), "moved", IL["3"], "the covariances were 350, 27 and 3.5")
    yield Worked(u.IL4(on=NUMBERS), "moved", IL["4"], "only variances")
    yield Worked(
        u.IL5(on=NUMBERS),
        "moved",
        IL["5"],
        "correlations: the covariances 27 and 24 divided by the standard deviations",
    )
    yield Worked(u.S0(on=NUMBERS), "moved", f"({IL['2']} + {IL['3']} + {IL['4']} + {IL['5']})/4", "mean of IL2 to IL5")
    yield Worked(
        u.S1(on=NUMBERS),
        "moved",
        f"({IL['1']} + {IL['2']} + {IL['3']} + {IL['4']} + {IL['5']})/5",
        "mean of IL1 to IL5",
    )
    yield Worked(
        u.S2(on=NUMBERS),
        "moved",
        f"({IL['1s']} + {IL['2']} + {IL['4']} + {IL['5']})/4",
        "mean of IL1s, IL2, IL4 and IL5",
    )
    yield Worked(u.RelativeLoss(on="wage"), "moved", "(2/10 + 4/40)/6", "each change relative to the value")
    yield Worked(
        u.KolmogorovSmirnov(on="wage"),
        "moved",
        "1/6",
        "between 10 and 12 the distribution functions differ by one person of six",
    )
    yield Worked(
        u.Wasserstein(on="wage"),
        "moved",
        "(2 + 4)/6/sqrt(350)",
        "the mean distance that the wages moved, in standard deviations",
    )
    yield Worked(
        u.EnergyDistance(on="wage"),
        "moved",
        "2*(2 + 4)/36/sqrt(1750/6)",
        "2 times the integral of (1/6)² over the distances moved; the variance with divisor n is 1750/6",
    )
    h = PAIR_DISTANCES.format(WAGE, WAGE)
    kernel = "sum(exp(-abs(a - b)/({2})) for a in {0} for b in {1})/36"
    yield Worked(
        u.MMD(on="wage"),
        "moved",
        f"{kernel.format(WAGE, WAGE, h)} + {kernel.format(MOVED, MOVED, h)} - 2*{kernel.format(WAGE, MOVED, h)}",
        "mean kernels within and between the files",
    )
    yield Worked(
        u.MomentChange(on="wage"), "moved", "(2/6)/sqrt(350)", "the mean changed by 2/6, in standard deviations"
    )
    yield Worked(
        u.CorrelationLoss(on=NUMBERS),
        "moved",
        "0",
        "with two variables, each explains the other equally well, before and after",
    )
    yield Worked(u.SseSst(on="wage"), "moved", "(2**2 + 4**2)/(5*350)", "squared changes over squared deviations")
    yield Worked(
        u.MeanPrecision(on="wage"),
        "moved",
        f"1/(({V})/6 + (2/6)**2)",
        "one over the variance of the mean plus the squared bias",
    )
    yield Worked(u.SuppressionLoss(on=KEYS), "blank", "1/12", "one of twelve values is suppressed")
    yield Worked(u.AverageClassSize(on=KEYS), "blurred", "6/2 - 6/4", "two groups instead of four")
    yield Worked(
        u.Discernibility(on=KEYS),
        "blurred",
        "(3**2 + 3**2)/36 - (2**2 + 1 + 2**2 + 1)/36",
        "share of pairs of records that cannot be distinguished",
    )
    yield Worked(u.CategoryLoss(on=KEYS), "blurred", "(1 + 0)/2", "sex lost all detail, age none")
    yield Worked(
        u.NonUniformEntropy(on=KEYS),
        "blurred",
        "6*log2(6/3)/(6*log2(6/3) + 6*log2(6/3))",
        "each record lost one bit of sex and none of age",
    )
    yield Worked(
        u.Precision(on="sex", hierarchy=beside("levels")),
        "starred",
        "1 - 3/6",
        "three of six values are at the top of a hierarchy with one level",
    )
    yield Worked(
        u.QueryError(on="sex"), "blurred", "1", "a count of women is now 6 instead of 3, one of men 0 instead of 3"
    )
    yield Worked(
        u.EditViolations(edits=['wage < 25 -> sex = "f"']), "swapped", "1/6", "the first person now breaks the rule"
    )
    yield Worked(
        u.IntervalWidth(on="wage"),
        "moved",
        f"1 - sqrt(({V})/350)",
        "the width is proportional to the standard deviation",
    )
    yield Worked(u.IntervalOverlap(on="wage"), "unchanged", "1", "the intervals are equal")
    yield Worked(
        u.SignificanceAgreement(models="wage ~ tax"), "moved", "2/2", "the same conclusion for intercept and slope"
    )
    yield Worked(
        u.Propensity(on="sex"),
        "blurred",
        "(9*(6/9 - 1/2)**2 + 3*(0 - 1/2)**2)/12",
        "in the stacked files, 6 of 9 women are released records, and none of 3 men",
    )
    yield Worked(u.SPECKS(on="sex"), "blurred", "3/6", "half of the original records can be recognized as original")
    yield Worked(u.PO50(on="sex"), "blurred", "(6 + 3)/12 - 1/2", "6 women and 3 men are classified correctly")
    yield Worked(
        u.SocietyKnowledge(on="wage"),
        "moved",
        "-((2/6)**2 + 1750/6/7)/(1750/6)",
        "squared bias plus the variance of the mean, relative to the prior variance",
    )
    yield Worked(
        u.SocietyUtility(on="wage"),
        "moved",
        f"-(({V})*5/6/7)/(1750/6)",
        "the variance of the released mean, relative to the prior variance",
    )
    yield Worked(
        u.WorstSubgroup(u.RelativeLoss(on="x"), by="sex"),
        "raised",
        "0.1",
        "x rose by a tenth for women and did not change for men",
        data="crowd",
    )
    yield Worked(
        u.AnalysisError(),
        "unchanged",
        "0",
        "every estimate is the same",
        data="crowd",
    )
    yield Worked(
        u.ChangedConclusions(),
        "unchanged",
        "0",
        "every conclusion is the same",
        data="crowd",
    )
    yield Worked(
        u.TrainOnRelease(predicts="sex", on=["x"]),
        "unchanged",
        "0",
        "the model is the same",
        data="crowd",
        method=sm.Identity(),
    )
    yield Worked(
        u.ImportanceAgreement(predicts="sex", on=["x", "y"]),
        "unchanged",
        "1",
        "the same columns are equally important",
        data="crowd",
        method=sm.Identity(),
    )


def cases() -> list[Worked]:
    return [*risks(), *utilities()]


# ---- the page --------------------------------------------------------------------------------------------------
def markdown_table(frame: pl.DataFrame) -> list[str]:
    """Return a Markdown table with numbers aligned to the right."""
    rules = ["---:" if kind.is_numeric() else "---" for kind in frame.dtypes]
    rows = [
        [str(i + 1), *("" if v is None else f"{v:g}" if isinstance(v, float) else str(v) for v in row)]
        for i, row in enumerate(frame.rows())
    ]
    return [
        "| | " + " | ".join(frame.columns) + " |",
        "|---|" + "|".join(rules) + "|",
        *("| " + " | ".join(row) + " |" for row in rows),
    ]


def changes(name: str) -> str:
    """Describe what a release changed."""
    changed = []
    for column in people().columns:
        before, after = people()[column].to_list(), files()[name][column].to_list()
        if before != after:
            changed.append(
                f"{column} is "
                + ", ".join("missing" if v is None else f"{v:g}" if isinstance(v, float) else v for v in after)
            )
    return "; ".join(changed) or "nothing changed"


def page() -> list[str]:
    """Return the tables as lines of Markdown."""
    lines = [
        "## Six persons",
        "",
        *markdown_table(people()),
        "",
        "Sex and age are keys, job is sensitive, `w` is a weight and home is the household.",
        "",
    ]
    lines += ["| release | what changed |", "|---|---|", *(f"| {name} | {changes(name)} |" for name in files()), ""]
    lines += [
        "The *crowd* is a file of eighty persons who all differ in x, y and town.",
        "In *raised*, x is larger by a tenth for women.",
        "",
    ]
    for title, group in {"Risk": risks(), "Utility and loss": utilities()}.items():
        lines += [f"## {title}", "", "| measure | release | by hand | = | why |", "|---|---|---|---:|---|"]
        for case in group:
            name = type(case.measure).__name__
            release = case.release + (
                ", crowd" if case.data == "crowd" else ", weighted" if case.data == "weighted" else ""
            )
            sums = case.by_hand if len(case.by_hand) < 120 else "see `docs/make_worked.py`"
            sums = sums if sums.startswith("see") else f"`{sums}`"
            lines.append(
                f"| [{name}](../reference/{name}.md) | {release} | {sums} | {case.arithmetic:.5g} | {case.words} |"
            )
        lines.append("")
    return lines


if __name__ == "__main__":
    wrong = [
        c.measure.text for c in cases() if not math.isclose(c.number, c.arithmetic, rel_tol=TOLERANCE, abs_tol=1e-9)
    ]
    if wrong:
        sys.exit("These values by hand and by sdcmap differ: " + ", ".join(wrong))
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    PAGE.write_text("\n".join([before + BEGIN, "", *page(), END]) + rest.partition(END)[2], encoding="utf-8")
