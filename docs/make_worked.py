"""Writes look/worked.md: for every measure one number of a tiny file, by plain arithmetic and by sdcmap."""

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
    """Six made-up persons in three households."""
    return pl.DataFrame(
        {"sex": list("ffmmmf"), "age": ["20", "20", "20", "60", "60", "60"], "job": list("abaabb"), "wage": WAGE,
         "tax": [1.0, 3.0, 2.0, 6.0, 4.0, 5.0], "w": [10.0, 10.0, 20.0, 20.0, 5.0, 5.0], "home": [1, 1, 2, 2, 3, 3]}
    )  # fmt: skip


@cache
def files() -> dict[str, pl.DataFrame]:
    """What could be released of them."""
    own = people()
    return {
        "as it is": own,
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
    """The same without weights and households."""
    return sm.read(people().drop("w", "home"), keys=KEYS, sensitive=["job"], numeric=["wage", "tax"])


@cache
def crowd() -> sm.Microdata:
    """Eighty persons: for measures that compare groups of people."""
    k = np.arange(80)
    frame = pl.DataFrame({"sex": np.where(k < 40, "f", "m"), "x": 100.0 + 7 * k, "y": 50.0 + 3 * ((11 * k) % 80),
                          "town": [f"t{i}" for i in k]})  # fmt: skip
    return sm.read(frame, keys=["sex", "town"], numeric=["x", "y"], sensitive=["y"])


@cache
def beside(name: str) -> str:
    """The path of a file that a snooper or an agency has beside: it is written when it is asked for."""
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
    """A measure of a release, and its number by plain arithmetic: an expression with the functions of `math`."""

    measure: Measure
    release: str
    by_hand: str
    words: str
    data: str = "plain"  # which file: plain, weighted, crowd
    method: Method | None = None

    @property
    def number(self) -> float:
        """By sdcmap."""
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
        """By hand."""
        return float(eval(self.by_hand, vars(math) | {"abs": abs, "max": max, "min": min, "sum": sum, "zip": zip}))


def _roles(weighted: bool) -> dict[str, object]:
    roles: dict[str, object] = {"keys": KEYS, "sensitive": ["job"], "numeric": ["wage", "tax"]}
    return roles | ({"weight": "w", "household": "home"} if weighted else {})


def released_crowd(release: str) -> pl.DataFrame:
    """The crowd as it is, or with the numbers of the women a tenth larger."""
    frame = crowd().frame()
    if release == "as it is":
        return frame
    return frame.with_columns(x=pl.when(pl.col("sex") == "f").then(1.1 * pl.col("x")).otherwise(pl.col("x")))


V = "(8840 - 208**2/6)/5"  # the variance of the moved wages
R, R2 = "27/sqrt(350*3.5)", f"24/sqrt({V}*3.5)"  # correlations of wage and tax before and after
IL = {
    "1": "(2/11 + 4/38)/12", "1s": "(2 + 4)/(12*sqrt(2*350))", "2": "(2/6)/35/2", "3": f"(abs(350 - {V})/350 + 3/27)/3",
    "4": f"abs(350 - {V})/350/2", "5": f"abs({R} - {R2})",
}  # fmt: skip
NUMBERS = ["wage", "tax"]
TOLERANCE = 1e-4  # the logit of Propensity has a small ridge
PAIR_DISTANCES = "sum(abs(a - b) for a in {0} for b in {1})/30"
TIGHT = sm.Noise(on="wage", variance=0.01)


def risks() -> Iterator[Worked]:
    r, U = sm.risk, "weighted"
    yield Worked(sm.SmallCells(n=2), "swapped", "2/4", "four persons are as they were; two of them are now alone")
    yield Worked(sm.KAnonymity(k=2), "as it is", "2/6", "the third and the sixth are alone on sex and age")
    yield Worked(
        r.AlphaKAnonymity(secret="job", k=2), "as it is", "2/6", "alone, or more than half of the group has one job"
    )
    yield Worked(r.LDiversity(secret="job"), "as it is", "2/6", "groups with one job only: the third and the sixth")
    yield Worked(
        r.TCloseness(secret="job", distance="equal", summary="mean"),
        "as it is",
        "2*0.5/6",
        "jobs are half and half; one alone is half of them away",
    )
    yield Worked(
        r.BetaLikeness(secret="job", beta=0.5), "as it is", "2/6", "(1 - .5)/.5 = 1 is above .5 for those who are alone"
    )
    yield Worked(
        r.DeltaDisclosure(secret="job", delta=0.5), "as it is", "2/6", "ln(1/.5) = .69 is above .5 for the same two"
    )
    yield Worked(
        r.DeltaPresence(population=beside("population")),
        "as it is",
        "4/12",
        "of 12 people in the population 8 share their keys with 2 of the file, 4 are certain to be in it",
    )
    yield Worked(
        r.RAPID(secret="sex", on=["x"]),
        "as it is",
        "80/80",
        "x tells the sex, and the model has learned it: every gain is above .3",
        data="crowd",
    )
    yield Worked(r.KMap(k=6), "as it is", "1/6", "only the sixth stands for fewer than 6 people: 5", data=U)
    yield Worked(
        r.IndividualRisk(form="ratio"),
        "as it is",
        "(1/20 + 1/20 + 1/20 + 1/25 + 1/25 + 1/5)/6",
        "one over the people with these keys, by weights",
        data=U,
    )
    yield Worked(
        r.ExpectedReidentifications(form="ratio"),
        "as it is",
        "1/20 + 1/20 + 1/20 + 1/25 + 1/25 + 1/5",
        "the sum of the same",
        data=U,
    )
    yield Worked(
        r.HouseholdRisk(form="ratio"),
        "as it is",
        "((1 - 0.95*0.95) + (1 - 0.95*0.96) + (1 - 0.96*0.8))/3",
        "somebody of the household is found",
        data=U,
    )
    yield Worked(r.ExactMatch(on=KEYS), "as it is", "2/6", "one record left, and it is the person's")
    yield Worked(r.ReplicatedUniques(), "as it is", "2/6", "alone in the original and alone in the release")
    yield Worked(
        r.UnsafeCombinations(k=2, dimension=2),
        "as it is",
        "2/6",
        "sex and age have three records a category; the pair has two cells of one",
    )
    yield Worked(
        r.SpecialUniques(on=KEYS), "as it is", "2/2", "both persons who are alone on two values are found by them"
    )
    yield Worked(
        r.SUDA(), "as it is", "2*(0.01*2/(0.01*2 + 4*0.99))/6", "two score 1 on both keys (w = 2), four are in pairs"
    )
    yield Worked(r.RecordRisk(), "as it is", "1/1", "whoever is alone is found for certain")
    yield Worked(
        r.PopulationUniqueness(model="zayatz", fraction=1.0),
        "as it is",
        "2/6",
        "everybody is in the file: the share alone in it",
    )
    yield Worked(
        r.LogLinearRisk(fraction=0.5),
        "as it is",
        "2*exp(-1.5)/6",
        "main effects expect 6/4 = 1.5 a cell, and as many again outside; two are alone",
    )
    yield Worked(
        r.CorrectAttribution(secret="job"),
        "as it is",
        "(0.5 + 0.5 + 1 + 0.5 + 0.5 + 1)/6",
        "of those with his keys, the share with his job",
    )
    yield Worked(r.ExternalLink(archive=beside("register")), "as it is", "2/6", "one match in the register")
    yield Worked(
        r.PublishedTables(tables=[beside("counts")]),
        "as it is",
        "(0.5 + 0.5 + 1 + 0.5 + 0.5 + 1)/6",
        "nothing changed: one of those with his keys",
    )
    yield Worked(
        r.MarkedRecords(edits=['wage < 25 -> sex = "f"']),
        "swapped",
        "1/2",
        "two records changed their sex; the first now breaks the rule",
    )
    yield Worked(r.NearestRecord(on="wage"), "crossed", "5/6", "19 is nearer to 20 than to 10")
    yield Worked(r.Linkage(on="wage"), "crossed", "6/6", "one-to-one: the others agree exactly, so 19 is left for 10")
    yield Worked(r.Informed(on="wage"), "crossed", "6/6", "one-to-one, by normal densities", method=TIGHT)
    yield Worked(r.Calibrated(on="wage"), "as it is", "6/6", "a column left open must agree", method=sm.Identity())
    yield Worked(sm.WorstLinkage(on="wage"), "crossed", "6/6", "the best of them", method=TIGHT)
    yield Worked(r.IntervalDisclosure(on="wage"), "as it is", "1", "every value is in every interval around itself")
    yield Worked(r.DRisk(on="wage"), "moved", "4/6", "two wages moved by more than .05 standard deviations")
    yield Worked(r.DRiskRMD(on=NUMBERS), "as it is", "6/6", "nothing moved, and no other record hides one")
    yield Worked(r.KnownIndex(on="wage"), "moved", "1/((2**2 + 4**2)/6)", "one over the mean squared move")
    yield Worked(
        r.Position(on="wage", target="minimum"), "moved", "1/(12 - 10)**2", "the least released wage for the least wage"
    )
    yield Worked(r.Index(on="wage", target="minimum"), "moved", "1/(12 - 10)**2", "the record of the least wage")
    yield Worked(r.LargestUnits(on="wage", largest=2), "moved", "2/2", "the two largest kept their places")
    yield Worked(
        r.PPercent(on="wage", by="sex", p=20.0),
        "as it is",
        "1/2",
        "women: 90 - 20 - 60 = 10 is within 20 % of 60; men: 120 - 40 - 50 = 30 is not within 20 % of 50",
    )
    yield Worked(
        r.AreaFromDesign(area="age", by="w"), "as it is", "0", "the area was not masked: nothing is given back", data=U
    )
    yield Worked(r.HouseholdLink(), "as it is", "6/6", "every household is nearest to itself", data=U)
    yield Worked(
        r.Identifiability(on="wage"), "moved", "6/6", "moves of 2 and 4 are less than 10, the way to the next person"
    )
    yield Worked(
        r.IntruderKnowledge(on="wage", scenario="noise"),
        "moved",
        f"-sum((x - (35 + 0.625*(y - 35)))**2 for x, y in zip({WAGE}, {MOVED}))/1750",
        "he shrinks each released wage towards 35 by 1750/6 over 1750/6 + 175",
        method=sm.Noise(on="wage", variance=0.5),
    )
    yield Worked(
        r.DiscreditHarm(on="wage", scenario="noise"),
        "moved",
        "-175/(1750/6 + 175)",
        "the share of the variance that noise of half of 350 leaves",
        method=sm.Noise(on="wage", variance=0.5),
    )
    yield Worked(
        r.ClosestRecord(on=["x"]),
        "as it is",
        "1",
        "who is in the file has distance 0, who is not has more",
        data="crowd",
    )
    yield Worked(
        r.WorstMembership(on=["x"]), "as it is", "1", "the same bet, all true positives and no false one", data="crowd"
    )
    yield Worked(
        r.AttributeInference(secret="y", on=["x"]),
        "as it is",
        "1 - 0",
        "inside, the nearest record is his own; outside, nobody near has such a y",
        data="crowd",
    )
    yield Worked(
        r.SinglingOut(on=["town"]),
        "as it is",
        "1 - 0",
        "each lives in a town of his own: one person inside, nobody outside",
        data="crowd",
    )
    yield Worked(
        r.Linkability(left=["x"], right=["y"]),
        "as it is",
        "1 - 0",
        "inside, x and y point to one record; outside, to two",
        data="crowd",
    )


def utilities() -> Iterator[Worked]:
    u = sm.utility
    cells = "2*(1/3*log(3)) + 2*(1/6*log(6))"
    yield Worked(
        sm.Hellinger(on=KEYS),
        "swapped",
        "sqrt(0.5*4*(sqrt(2/6) - sqrt(1/6))**2)",
        "each of four cells goes from 2 to 1 or back",
    )
    yield Worked(u.TotalVariation(on=KEYS), "swapped", "0.5*4*abs(2/6 - 1/6)", "the same cells")
    yield Worked(
        u.TableError(on=KEYS, order=2),
        "swapped",
        "(0 + 0 + (1/2 + 1/1 + 1/2 + 1/1)/4)/3",
        "the tables of sex and of age stay; in the pair each cell by its own count",
    )
    yield Worked(u.EntropyChange(on=KEYS), "blurred", f"abs(log(2) - ({cells}))", "four cells before, two halves after")
    yield Worked(
        u.ConditionalEntropyChange(on=KEYS),
        "blurred",
        f"(abs(0 - ({cells} - log(2))) + abs(log(2) - ({cells} - log(2))))/2",
        "of sex given age nothing is left; of age given sex one half and half",
    )
    yield Worked(u.ContingencyChange(on=KEYS), "blurred", "sqrt((2/3)/(2/3 + 6)) - 0", "chi² was 2/3, and is 0")
    yield Worked(u.CramersVChange(on=KEYS), "blurred", "sqrt((2/3)/6) - 0", "the same chi²")
    yield Worked(u.IL1(on=NUMBERS), "moved", IL["1"], "12 and 10 differ by 2 of 11, 36 and 40 by 4 of 38; 12 values")
    yield Worked(sm.IL1s(on=NUMBERS), "moved", IL["1s"], "moves over root 2 standard deviations; the variance is 350")
    yield Worked(u.IL2(on=NUMBERS), "moved", IL["2"], "the mean wage fell by 2/6 of 35; tax stayed")
    yield Worked(u.IL3(on=NUMBERS), "moved", IL["3"], "covariances 350, 27, 3.5 before")
    yield Worked(u.IL4(on=NUMBERS), "moved", IL["4"], "variances alone")
    yield Worked(u.IL5(on=NUMBERS), "moved", IL["5"], "correlations: 27 and 24 over the roots of the variances")
    yield Worked(u.S0(on=NUMBERS), "moved", f"({IL['2']} + {IL['3']} + {IL['4']} + {IL['5']})/4", "IL2 to IL5")
    yield Worked(
        u.S1(on=NUMBERS), "moved", f"({IL['1']} + {IL['2']} + {IL['3']} + {IL['4']} + {IL['5']})/5", "IL1 to IL5"
    )
    yield Worked(
        u.S2(on=NUMBERS), "moved", f"({IL['1s']} + {IL['2']} + {IL['4']} + {IL['5']})/4", "IL1s, IL2, IL4, IL5"
    )
    yield Worked(u.RelativeLoss(on="wage"), "moved", "(2/10 + 4/40)/6", "each move over the value")
    yield Worked(u.KolmogorovSmirnov(on="wage"), "moved", "1/6", "between 10 and 12 one person of six is missing")
    yield Worked(
        u.Wasserstein(on="wage"), "moved", "(2 + 4)/6/sqrt(350)", "the way that the wages went, in standard deviations"
    )
    yield Worked(
        u.EnergyDistance(on="wage"),
        "moved",
        "2*(2 + 4)/36/sqrt(1750/6)",
        "2 times the integral of (1/6)² over the ways; the variance over n is 1750/6",
    )
    h = PAIR_DISTANCES.format(WAGE, WAGE)
    kernel = "sum(exp(-abs(a - b)/({2})) for a in {0} for b in {1})/36"
    yield Worked(
        u.MMD(on="wage"),
        "moved",
        f"{kernel.format(WAGE, WAGE, h)} + {kernel.format(MOVED, MOVED, h)} - 2*{kernel.format(WAGE, MOVED, h)}",
        "mean kernels within and between, written out",
    )
    yield Worked(u.MomentChange(on="wage"), "moved", "(2/6)/sqrt(350)", "the mean moved by 2/6, in standard deviations")
    yield Worked(
        u.CorrelationLoss(on=NUMBERS), "moved", "0", "of two variables each explains the other alike, before and after"
    )
    yield Worked(u.SseSst(on="wage"), "moved", "(2**2 + 4**2)/(5*350)", "squared moves over squared deviations")
    yield Worked(
        u.MeanPrecision(on="wage"),
        "moved",
        f"1/(({V})/6 + (2/6)**2)",
        "one over variance of the mean plus squared bias",
    )
    yield Worked(u.SuppressionLoss(on=KEYS), "blank", "1/12", "one of twelve values")
    yield Worked(u.AverageClassSize(on=KEYS), "blurred", "6/2 - 6/4", "two groups where there were four")
    yield Worked(
        u.Discernibility(on=KEYS),
        "blurred",
        "(3**2 + 3**2)/36 - (2**2 + 1 + 2**2 + 1)/36",
        "pairs that cannot be told apart",
    )
    yield Worked(u.CategoryLoss(on=KEYS), "blurred", "(1 + 0)/2", "sex stands for both, age for itself")
    yield Worked(
        u.NonUniformEntropy(on=KEYS),
        "blurred",
        "6*log2(6/3)/(6*log2(6/3) + 6*log2(6/3))",
        "one bit of sex lost for each, and none of age",
    )
    yield Worked(
        u.Precision(on="sex", hierarchy=beside("levels")),
        "starred",
        "1 - 3/6",
        "three of six at the top of a hierarchy of one level",
    )
    yield Worked(
        u.QueryError(on="sex"), "blurred", "1", "of every count of women there are now 6 for 3, of men 0 for 3"
    )
    yield Worked(u.EditViolations(edits=['wage < 25 -> sex = "f"']), "swapped", "1/6", "the first now breaks the rule")
    yield Worked(u.IntervalWidth(on="wage"), "moved", f"1 - sqrt(({V})/350)", "widths go with the standard deviation")
    yield Worked(u.IntervalOverlap(on="wage"), "as it is", "1", "the same interval")
    yield Worked(
        u.SignificanceAgreement(models="wage ~ tax"), "moved", "2/2", "intercept and slope: the same conclusion"
    )
    yield Worked(
        u.Propensity(on="sex"),
        "blurred",
        "(9*(6/9 - 1/2)**2 + 3*(0 - 1/2)**2)/12",
        "of 9 women 6 are released, of 3 men none",
    )
    yield Worked(u.SPECKS(on="sex"), "blurred", "3/6", "half of the originals are certain not to be released ones")
    yield Worked(u.PO50(on="sex"), "blurred", "(6 + 3)/12 - 1/2", "6 women and 3 men are named right")
    yield Worked(
        u.SocietyKnowledge(on="wage"),
        "moved",
        "-((2/6)**2 + 1750/6/7)/(1750/6)",
        "squared bias and the variance of the mean, over what one record tells",
    )
    yield Worked(
        u.SocietyUtility(on="wage"),
        "moved",
        f"-(({V})*5/6/7)/(1750/6)",
        "the variance of the released mean, over the same",
    )
    yield Worked(
        u.WorstSubgroup(u.RelativeLoss(on="x"), by="sex"),
        "raised",
        "0.1",
        "the women's numbers rose by a tenth, the men's not",
        data="crowd",
    )
    yield Worked(
        u.TrainOnRelease(predicts="sex", on=["x"]),
        "as it is",
        "0",
        "the same model",
        data="crowd",
        method=sm.Identity(),
    )
    yield Worked(
        u.ImportanceAgreement(predicts="sex", on=["x", "y"]),
        "as it is",
        "1",
        "the same columns to the same degree",
        data="crowd",
        method=sm.Identity(),
    )


def cases() -> list[Worked]:
    return [*risks(), *utilities()]


# ---- the page --------------------------------------------------------------------------------------------------
def shown(frame: pl.DataFrame) -> list[str]:
    """A table of Markdown, numbers to the right."""
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
    """In words: what a release changed."""
    told = []
    for column in people().columns:
        before, after = people()[column].to_list(), files()[name][column].to_list()
        if before != after:
            told.append(
                f"{column} is "
                + ", ".join("missing" if v is None else f"{v:g}" if isinstance(v, float) else v for v in after)
            )
    return "; ".join(told) or "nothing changed"


def page() -> list[str]:
    """The tables as lines of Markdown."""
    lines = [
        "## Six persons",
        "",
        *shown(people()),
        "",
        "Keys are sex and age, the job is sensitive, `w` is a weight.",
        "",
    ]
    lines += ["| release | what it is |", "|---|---|", *(f"| {name} | {changes(name)} |" for name in files()), ""]
    lines += [
        "The *crowd* is eighty persons with numbers and towns of their own; *raised*: the women's x rose by a tenth.",
        "",
    ]
    for title, found in {"Risk": risks(), "Utility and loss": utilities()}.items():
        lines += [f"## {title}", "", "| measure | release | by hand | = | why |", "|---|---|---|---:|---|"]
        for case in found:
            name = type(case.measure).__name__
            release = case.release + (
                ", crowd" if case.data == "crowd" else ", weighted" if case.data == "weighted" else ""
            )
            sums = case.by_hand if len(case.by_hand) < 120 else "written out in `docs/make_worked.py`"
            sums = sums if sums.startswith("written") else f"`{sums}`"
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
        sys.exit("by hand and by sdcmap differ: " + ", ".join(wrong))
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    PAGE.write_text("\n".join([before + BEGIN, "", *page(), END]) + rest.partition(END)[2], encoding="utf-8")
