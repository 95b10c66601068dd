"""Duncan, Keller-McNulty, Stokes (2001) on a user's file: the maps of figures 2 to 7 for one variable, by simulation.

Figures 2 to 4 of the paper are theory for normal data. Here their attackers are measured on the file: the mean of the
released values (eq. 2), the record (eq. 4), a percentile (eq. 8) and the largest value (eq. 10). Figures 5 to 7 repeat
section 4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from sdcmap import Method, Plan, RUMap, Scores, Threshold
from sdcmap.charts.knowledge_errors import draw_knowledge
from sdcmap.core.audience import format_significant
from sdcmap.core.chart import Chart
from sdcmap.core.estimate import Estimate
from sdcmap.core.limit import ErrorLimit, Limit
from sdcmap.core.readable_units import typical_error
from sdcmap.core.release_policy import DEFAULT_POLICY, ReleasePolicy
from sdcmap.core.rule import Choice
from sdcmap.errors import PlanError
from sdcmap.methods import Identity
from sdcmap.papers.analysis import Section
from sdcmap.papers.duncan2001_incomes import NOISE_LEVELS, RISK_LIMIT, TARGETS, Target, noise
from sdcmap.papers.own_file import OnRole, OwnFile, only_methods, percent
from sdcmap.reports.knowledge_states import compare_knowledge
from sdcmap.risk import Index, KnownIndex, MeanGuess, Position
from sdcmap.risk.position import PrecisionMeasure
from sdcmap.utility import MeanPrecision

CITATION = "Duncan, Keller-McNulty, Stokes (2001)"
ON_ROLE: OnRole = "numeric"
NEEDS = "one numeric variable"
REPLICATES = 200  # draws of each masking, as in the paper
MIN_VALUES = 20  # different numbers: fewer are categories, for which a squared error means little
PAPER_SD = 13_300.0  # dollars, Table 1
TOLERABLE_SHARE = typical_error(RISK_LIMIT) / PAPER_SD  # of the standard deviation: 5,000 of 13,300 dollars
SENSITIVE_SHARE = 0.90  # the paper's 35,000 dollars are the 90th percentile
HIGH = 0.99  # the percentile of figures 3, 6 and 7


@dataclass(frozen=True)
class Design:
    """What is studied on this file: the variable, the tolerable error, and where unequal masking doubles the noise."""

    own: OwnFile
    on: str
    error: float
    sensitive: float
    lower: float | None
    replicates: int
    stated: tuple[str, ...]  # the numbers that the user stated

    @property
    def utility(self) -> MeanPrecision:
        return MeanPrecision(on=self.on, weighted=self.own.data.weight is not None)

    @property
    def limit(self) -> ErrorLimit:
        return ErrorLimit(self.error)

    def position(self, target: Target) -> Position:
        return Position(on=self.on, target=target)

    def methods(self, masking: str) -> list[Method]:
        return [noise(level, masking, self.on, self.lower, self.sensitive) for level in NOISE_LEVELS]

    def plan(self, seed: int | None) -> Plan:
        """Return two maskings at 20 levels, all attackers of the paper, and its rule: the most utility within the limit."""
        ranks = [knows(on=self.on, target=target) for knows in (Position, Index) for target in TARGETS]
        others = [MeanGuess(on=self.on, target="population"), KnownIndex(on=self.on)]
        decisive = [self.position("maximum"), self.position(HIGH)]
        return Plan(
            [*self.methods("equal"), *self.methods("unequal")], [*ranks, *others, self.utility],
            replicates=self.replicates, risk=decisive, utility=self.utility,
            limits={measure.text: self.limit for measure in decisive}, rule=Threshold(risk=1.0), data=self.own.source,
            names=self.names, seed=seed,
        )  # fmt: skip

    @property
    def names(self) -> dict[Method, str]:
        """The names of the maskings, such as "noise 15 %" and "noise 15 %, doubled above 3,900"."""
        words = {"equal": "", "unequal": f", doubled above {_number(self.sensitive)}"}
        return {
            method: f"noise {percent(level)}{more}"
            for masking, more in words.items()
            for level, method in zip(NOISE_LEVELS, self.methods(masking), strict=True)
        }

    def introduction(self) -> list[str]:
        x = self.own.values(self.on)
        how = (
            "stated"
            if "error" in self.stated
            else f"{percent(TOLERABLE_SHARE)} of the standard deviation, as in the paper"
        )
        share = float((x > self.sensitive).mean())
        floor = (
            " Masked values below 0 are set to 0, because no value of the file is negative." if self.lower == 0 else ""
        )
        weighted = f" The mean is weighted by {self.own.data.weight}." if self.utility.weighted else ""
        return [
            f"Variable: {self.own.describe_choice([self.on])}. It is known for {len(x):,} records, with mean "
            f"{_number(float(x.mean()))} and standard deviation S = {_number(float(x.std(ddof=1)))}.",
            f"Masking: normal noise of {NOISE_LEVELS[0]:g} to {NOISE_LEVELS[-1]:g} S², equal for all, or doubled above "
            f"{_number(self.sensitive)} ({percent(share)} of the records). Each is drawn {self.replicates} times.{floor}",
            f"Limit: an attacker's typical error of at least {_number(self.error)} ({how}), so R = 1/error² of at most "
            f"{float(self.limit):.3g}. A noise level is within it if R is with the margins of a release. U is the "
            "precision of "
            f"the mean, as a share of the unmasked file's.{weighted}",
        ]

    def sections(self, scores: Scores) -> tuple[list[Section], Choice | None]:
        return Maps(self, scores).sections()


def design(
    own: OwnFile, *, error: float | None = None, above: float | None = None, replicates: int = REPLICATES
) -> Design:
    """Return what is studied on this file.

    error : the attacker's smallest tolerable typical error, in the variable's unit; by default 38 % of the standard
        deviation, as in the paper. above : unequal masking doubles the noise above this value; by default about the 90th
        percentile. replicates : draws of each masking.
    """
    if len(own.on) > 1:
        raise PlanError(f"{own.paper} studies one variable, and `on` names {len(own.on)}. Name one of them.")
    if not own.amounts:
        raise own.refuse(NEEDS, "no column is numeric", "State one with `on`, if its numbers are amounts.")
    on = (own.on or own.amounts)[0]
    own.require_numeric(on, NEEDS, MIN_VALUES)
    x = own.values(on)
    if error is not None and not 0 < error < math.inf:
        raise PlanError("error must be a number above 0.")
    stated = tuple(name for name, value in (("error", error), ("above", above)) if value is not None)
    # Rounded, because a plan must not contain the value of a record.
    proposed = _round(float(np.quantile(x, SENSITIVE_SHARE)))
    return Design(
        own, on, _round(TOLERABLE_SHARE * float(x.std(ddof=1))) if error is None else error,
        proposed if above is None else above, 0.0 if x.min() >= 0 else None, replicates, stated,
    )  # fmt: skip


def _round(value: float) -> float:
    """Return a number with two significant digits."""
    return float(f"{value:.2g}")


def _number(value: float) -> str:
    return format_significant(value, 3)


@dataclass(frozen=True)
class Least:
    """The least noise that meets the limit: its level, the attacker's typical error, and the utility that is left."""

    level: float
    error: float
    efficiency: float

    def __str__(self) -> str:
        facts = f"typical error {_number(self.error)}, {percent(self.efficiency)} of U left"
        return f"is within the limit from {self.level:g} S² on ({facts})"


@dataclass(frozen=True)
class Maps:
    """The results on the file."""

    design: Design
    scores: Scores

    def sections(self) -> tuple[list[Section], Choice | None]:
        """Return figures 2 to 7, the chosen release and the table, and the choice."""
        choice = self.map_of("both", self.design.position("maximum"), self.design.position(HIGH)).choose(
            Threshold(risk=1.0)
        )
        parts = [*self._attackers(), self._ends(), self._knowledge(), self._unequal()]
        return [*parts, *self._chosen(choice), Section("risks", TABLE_TITLE, TABLE_TEXT, table=self.table())], choice

    # ---- numbers ----------------------------------------------------------------------------------------------
    def map_of(self, masking: str, *risks: PrecisionMeasure) -> RUMap:
        """Return the map of one masking, or of both; with limits only where both decide."""
        design = self.design
        if masking == "both":
            limits = {risk.text: design.limit for risk in risks}
            return RUMap(self.scores, risks, design.utility, limits, self._policy)
        methods = [m for kind in masking.split(" and ") for m in design.methods(kind)]
        return RUMap(only_methods(self.scores, methods), risks, design.utility, (), self._policy)

    @property
    def _policy(self) -> ReleasePolicy:
        return self.scores.plan.policy if self.scores.plan is not None else DEFAULT_POLICY

    @cached_property
    def _unmasked_precision(self) -> float:
        return self.scores.pooled_estimates(self.design.utility.text)[Identity().text].value

    def risk(self, measure: PrecisionMeasure, level: float, masking: str = "equal") -> Estimate:
        design = self.design
        method = noise(level, masking, design.on, design.lower, design.sensitive)
        return self.scores.pooled_estimates(measure.text)[method.text]

    def error(self, measure: PrecisionMeasure, level: float, masking: str = "equal") -> float:
        return typical_error(self.risk(measure, level, masking).value)

    def efficiency(self, level: float, masking: str = "equal") -> float:
        design = self.design
        method = noise(level, masking, design.on, design.lower, design.sensitive)
        return self.scores.pooled_estimates(design.utility.text)[method.text].value / self._unmasked_precision

    def least(self, measure: PrecisionMeasure, masking: str = "equal") -> Least | None:
        """Return the first level that meets the limit with confidence; None if none does."""
        limit = Limit(measure, self.design.limit)
        for level in NOISE_LEVELS:
            if limit.judge_candidate(self.risk(measure, level, masking), self._policy).status == "met":
                return Least(level, self.error(measure, level, masking), self.efficiency(level, masking))
        return None

    def describe_least(self, measure: PrecisionMeasure, masking: str = "equal") -> str:
        """Return the least noise within the limit in words."""
        least = self.least(measure, masking)
        if least is not None:
            return str(least)
        largest = max(self.error(measure, level, masking) for level in NOISE_LEVELS)
        return f"is above the limit at every level (largest typical error {_number(largest)})"

    def table(self) -> pl.DataFrame:
        """Return a row for each masking and level: the utility, and the typical error of each attacker."""
        risks = [m for m in self.scores.values.values() if isinstance(m, PrecisionMeasure)]
        rows = [
            {"masking": masking, "noise (share of S²)": level, "efficiency": self.efficiency(level, masking)}
            | {f"error: {_name(measure)}": self.error(measure, level, masking) for measure in risks}
            for masking in ("equal", "unequal")
            for level in NOISE_LEVELS
        ]
        return pl.DataFrame(rows)

    # ---- figures ----------------------------------------------------------------------------------------------
    def draw(self, masking: str, *risks: PrecisionMeasure) -> Chart:
        """Draw the curve of each attacker as the noise grows, with the limit."""
        # A choice without a candidate of this map: only the line of its rule is drawn.
        limit = Choice("", "", None, None, None, Threshold(risk=float(self.design.limit)), "")
        return self.map_of(masking, *risks).draw(curve="variance", mark=limit)

    def _attackers(self) -> list[Section]:
        """Return figures 2, 3 and 4: one more attacker each."""
        on = self.design.on
        mean, index = MeanGuess(on=on, target="population"), KnownIndex(on=on)
        high, top = self.design.position(HIGH), self.design.position("maximum")
        first, last = NOISE_LEVELS[0], NOISE_LEVELS[-1]
        crossing = next((v for v in NOISE_LEVELS if self.risk(index, v).value < self.risk(mean, v).value), None)
        better = (
            f"From {crossing:g} S² on, the mean of the released values is the better guess."
            if crossing is not None
            else "At every level the linked record is the better guess."
        )
        two = (
            "An attacker who only has the mean of the released values is typically "
            f"{_number(self.error(mean, first))} away from a person's {on} at {first:g} S² and "
            f"{_number(self.error(mean, last))} at {last:g} S². An attacker who has linked the record is "
            f"{_number(self.error(index, first))} away at {first:g} S² and {_number(self.error(index, last))} at "
            f"{last:g} S²; "
            f"this risk {self.describe_least(index)}. {better}"
        )
        three = (
            f"An attacker who knows that a person is at the 99th percentile of {on}, and takes the released value of that "
            f"rank, is typically {_number(self.error(high, first))} away at {first:g} S² and "
            f"{_number(self.error(high, last))} at {last:g} S²; this risk "
            f"{self.describe_least(high)}. {self._closer(high, index)}"
        )
        four = (
            f"An attacker who knows that a person has the largest {on} is typically "
            f"{_number(self.error(top, first))} away at "
            f"{first:g} S² and {_number(self.error(top, last))} at {last:g} S²; this risk {self.describe_least(top)}. "
            f"{self._closer(top, index)}"
        )
        return [
            Section("figure2", "Figure 2: the mean, and the linked record", two, self.draw("equal", mean, index)),
            Section("figure3", "Figure 3: a known percentile", three, self.draw("equal", mean, index, high)),
            Section("figure4", "Figure 4: a known maximum", four, self.draw("equal", mean, index, high, top)),
        ]

    def _closer(self, measure: PrecisionMeasure, than: PrecisionMeasure) -> str:
        """Return at which levels knowing a rank tells more than the linked record of an average person."""
        closer = [v for v in NOISE_LEVELS if self.risk(measure, v).value > self.risk(than, v).value]
        if not closer:
            return "At every level the linked record of an average person tells more."
        if len(closer) == len(NOISE_LEVELS):
            return "At every level this tells more than the linked record of an average person."
        return (
            f"It tells more than the linked record of an average person at {len(closer)} of {len(NOISE_LEVELS)} levels."
        )

    def _ends(self) -> Section:
        on, top, low = self.design.on, self.design.position("maximum"), self.design.position("minimum")
        text = (
            f"The risk from an attacker who knows who has the largest {on} {self.describe_least(top)}. The risk "
            "from one who "
            f"knows who has the smallest {self.describe_least(low)}."
        )
        if self.least(low) is None and self.least(top) is not None:
            text += (
                " As in the paper, no noise protects the smallest value to this extent; decide whether it needs "
                "protection."
            )
        return Section("figure5", "Figure 5: the largest and the smallest value", text, self.draw("equal", top, low))

    def _knowledge(self) -> Section:
        on, high, index = self.design.on, self.design.position(HIGH), Index(on=self.design.on, target=HIGH)
        ratios = [self.risk(high, v).value / self.risk(index, v).value for v in NOISE_LEVELS]
        more = sum(ratio > 1 for ratio in ratios)
        text = (
            f"Two attackers on the person at the 99th percentile of {on}. The risk from one who knows the rank "
            f"{self.describe_least(high)}. The risk from one who knows the record {self.describe_least(index)}. "
            "The rank tells more "
            f"than the record at {more} of {len(ratios)} levels (R of the rank is {min(ratios):.2g} to "
            f"{max(ratios):.2g} times "
            f"that of the record; the paper finds it larger for every target)."
        )
        return Section("figure6", "Figure 6: rank against record", text, self.draw("equal", high, index))

    def _unequal(self) -> Section:
        high = self.design.position(HIGH)
        equal, unequal = self.least(high), self.least(high, "unequal")
        text = (
            f"The person at the 99th percentile. With equal noise, the risk from an attacker who knows the rank "
            f"{self.describe_least(high)}. With the noise doubled above {_number(self.design.sensitive)}, it "
            f"{self.describe_least(high, 'unequal')}. "
        )
        if equal is None or unequal is None:
            text += "So the two cannot be compared at the limit."
        elif equal.efficiency == unequal.efficiency:
            text += "Both keep the same utility."
        else:
            better = "unequal" if unequal.efficiency > equal.efficiency else "equal"
            paper = "as in the paper" if better == "unequal" else "unlike in the paper"
            text += (
                f"Here {better} masking keeps more utility within the limit, {paper}; levels are steps of "
                f"{NOISE_LEVELS[0]:g} S²."
            )
        return Section("figure7", "Figure 7: equal against unequal masking", text, self.draw("equal and unequal", high))

    def _chosen(self, choice: Choice) -> list[Section]:
        """Return what the rule chooses, and the typical error of every attacker there."""
        title = "The choice: the most utility within the limit"
        tables = compare_knowledge(self.scores, choice)
        if not tables:
            return [Section("choice", title, choice.reason)]
        table, limit = tables[0], self.design.error
        chart = draw_knowledge([row.errors for row in table.rows], table.variable, limit)
        closer = sum(row.errors.release < limit for row in table.rows)
        text = (
            f"{choice.reason} {table.summary} The limits protect the largest value and the 99th percentile; "
            f"{closer} of {len(table.rows)} attackers come closer than {_number(limit)}."
        )
        return [Section("choice", title, text, chart)]


TABLE_TITLE = "Table: typical errors of all attackers"
TABLE_TEXT = (
    "Efficiency is U as a share of the unmasked file's. An error is 1/sqrt(R), pooled over the draws, in the unit of the "
    "variable."
)


def _name(measure: PrecisionMeasure) -> str:
    """Return a short name of an attacker for the head of a column."""
    target = getattr(measure, "target", "")
    where = f"percentile {100 * target:g}" if isinstance(target, float) else str(target)
    what = {"Position": "rank", "Index": "record", "KnownIndex": "any record", "MeanGuess": "mean"}[
        type(measure).__name__
    ]
    return f"{what}, {where}" if where else what
