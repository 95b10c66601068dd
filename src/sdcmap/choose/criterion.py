"""The optimality criterion of decision theory: four numbers of each candidate, two limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import polars as pl

from sdcmap.choose.by_release import ByRelease, name_of
from sdcmap.core import Array, Range
from sdcmap.core.rule import Choice, RiskUtilityMap
from sdcmap.kernels.decision.global_criterion import distances, excess, regions

FOUR = ("iek", "rdh", "sek", "dus")
KINDS = ("IntruderKnowledge", "DiscreditHarm", "SocietyKnowledge", "SocietyUtility")  # the measures made for them
AtMost0 = Annotated[float, Range(None, 0)]


@dataclass(frozen=True)
class GlobalCriterion(ByRelease):
    """The safe candidate whose global utility is nearest to (0, 0); none where none is safe.

    Parameters
    ----------
    iek, rdh : the measures of global risk, by name or value: the intruder's knowledge as the agency estimates it, and the
        risk of discredit harm, minus his own uncertainty. Safe is to be above neither limit; on it counts as below.
    sek, dus : the measures of global utility: society's knowledge as the agency estimates it, and minus its uncertainty.
    agency_limit, intruder_limit : t_A, the limit of iek, and t_INT, that of rdh; at most 0, for nothing can be above 0.

    All four are read from the scores, whatever the axes of the map. If nothing is safe, the choice is to release nothing,
    and the nearest miss is named: the candidate whose worse number is least above its limit, as a share of the limit.
    Reference: Trottini (2001), par. 26, with region D for its misprinted A.

    Examples
    --------
    >>> GlobalCriterion(iek="K", rdh="H", sek="S", dus="U", agency_limit=-40, intruder_limit=-0.8).agency_limit
    -40.0
    """

    levers: ClassVar[tuple[str, ...]] = ("agency_limit", "intruder_limit")

    iek: str = ""
    rdh: str = ""
    sek: str = ""
    dus: str = ""
    agency_limit: AtMost0 = 0.0
    intruder_limit: AtMost0 = 0.0

    def __post_init__(self) -> None:
        for name in FOUR:
            object.__setattr__(self, name, str(getattr(self, name)))  # a measure stands for its name
        super().__post_init__()

    def problems(self) -> Iterator[str]:
        for name in FOUR:
            if not getattr(self, name):
                yield f".{name} must name a measure."

    @property
    def measures(self) -> tuple[str, ...]:
        return tuple(getattr(self, name) for name in FOUR)

    @property
    def limits(self) -> Mapping[str, float]:
        return {self.iek: self.agency_limit, self.rdh: self.intruder_limit}

    @classmethod
    def proposed(cls, ru: RiskUtilityMap) -> GlobalCriterion | None:
        """On the first measure of each kind in the scores, with limits at half of what the intruder lacked before; None
        where a kind is lacking."""
        kinds: dict[str, str] = {}
        for name, value in ru.scores.values.items():
            kinds.setdefault(type(value).__name__, name)
        if not all(kind in kinds for kind in KINDS):
            return None
        iek, rdh, sek, dus = (kinds[kind] for kind in KINDS)
        agency, intruder = (0.5 * (ru.end(name, "baseline_value") or 0.0) for name in (iek, rdh))
        return cls(iek=iek, rdh=rdh, sek=sek, dus=dus, agency_limit=agency, intruder_limit=intruder)

    def prior(self, ru: RiskUtilityMap) -> dict[str, float] | None:
        """The four numbers before any release; None where a measure cannot tell its own."""
        ends = {short: ru.end(name, "baseline_value") for short, name in zip(FOUR, self.measures, strict=True)}
        known = {short: end for short, end in ends.items() if end is not None}
        return known if len(known) == len(FOUR) else None

    def table(self, ru: RiskUtilityMap) -> pl.DataFrame:
        """What the rule compares: a row a candidate or method, with iek, rdh, sek, dus, region and distance."""
        rows = self._with_four(ru, self._rows(ru)[0]).filter(*(pl.col(name).is_not_nan() for name in FOUR))
        letters = regions(*self._risks(rows), self.agency_limit, self.intruder_limit)
        return rows.with_columns(pl.Series("region", letters, pl.String), distance=pl.Series(self._distance(rows)))

    def _compared(self, ru: RiskUtilityMap) -> pl.DataFrame:
        return self.table(ru)

    def ranked(self, ru: RiskUtilityMap) -> pl.DataFrame:
        """The masked rows by preference: whatever the limits, the choice is the first row that is safe."""
        rows = self.table(ru).filter(~pl.col("anchor"))
        return rows[self._order(ru, rows, rows["distance"].to_numpy())]

    def choose(self, ru: RiskUtilityMap) -> Choice:
        rows, speech = self.table(ru), self._rows(ru)[1].replace("risk", "global risk", 1)

        def why(row: dict[str, Any], passed: int, eligible: int) -> str:
            return (
                f"its {speech} (IEK {row['iek']:.4g}, RDH {row['rdh']:.4g}) is in region D, above neither "
                f"{self.agency_limit:g} nor {self.intruder_limit:g}, and its global utility (SEK {row['sek']:.4g}, "
                f"DUS {row['dus']:.4g}) is {row['distance']:.4g} from (0, 0), the nearest of the "
                f"{eligible:,} safe among {len(rows):,} {'candidates' if 'id' in row else 'methods'}."
            )

        def miss() -> str:
            if len(rows) == 0:
                return "Release nothing: no candidate could be made and scored."
            over = excess(*self._risks(rows), self.agency_limit, self.intruder_limit)
            over = np.where(rows["anchor"], np.inf, over)
            near = rows.row(int(np.argmin(over)), named=True)
            return (
                f"Release nothing: no candidate has a {speech} in region D, above neither {self.agency_limit:g} "
                f"(IEK) nor {self.intruder_limit:g} (RDH). The nearest miss is {name_of(ru, near)} in region "
                f"{near['region']} with {near['iek']:.4g} and {near['rdh']:.4g}."
            )

        return self._pick(ru, rows, why, miss)

    def _cost(self, ru: RiskUtilityMap, rows: pl.DataFrame) -> Array:
        return self._distance(self._with_four(ru, rows))

    def _passes(self, ru: RiskUtilityMap, rows: pl.DataFrame) -> Array:
        rows = self._with_four(ru, rows)
        safe: Array = self._known(rows) & (regions(*self._risks(rows), self.agency_limit, self.intruder_limit) == "D")
        return safe

    def admission(self, ru: RiskUtilityMap, rows: pl.DataFrame, lever: str) -> tuple[Array, float]:
        rows = self._with_four(ru, rows)
        iek, rdh = self._risks(rows)
        level, held = (iek, rdh <= self.intruder_limit) if lever == "agency_limit" else (rdh, iek <= self.agency_limit)
        return np.where(held & self._known(rows), level, np.nan), 1.0

    def _is_expectation(self, ru: RiskUtilityMap) -> bool:
        values = [ru.scores.values.get(name) for name in self.measures]
        return ru.is_expectation or any(value is not None and value.expectation for value in values)

    def _describe(self, ru: RiskUtilityMap, row: dict[str, Any]) -> str:
        return f"IEK {row['iek']:.4g}, RDH {row['rdh']:.4g}, SEK {row['sek']:.4g}, DUS {row['dus']:.4g}"

    def _with_four(self, ru: RiskUtilityMap, rows: pl.DataFrame) -> pl.DataFrame:
        """The rows with the four numbers of each, NaN where it has none: of the candidate, or pooled for the method."""
        if {*FOUR} <= {*rows.columns}:
            return rows
        key = "id" if "id" in rows.columns else "method"
        for short, name in zip(FOUR, self.measures, strict=True):
            if key == "id":
                part = ru.scores.column(name).select("id", pl.col("value").alias(short))
            elif self.by == "quantile" and short in FOUR[:2]:
                upper = pl.col("value").quantile(self.quantile, "higher").alias(short)
                part = ru.scores.column(name).group_by("method").agg(upper)
            else:
                part = ru.scores.pooled(name).select("method", pl.col("value").alias(short))
            rows = rows.join(part, on=key, how="left", maintain_order="left")
        return rows.with_columns(pl.col(FOUR).fill_null(np.nan))

    def _risks(self, rows: pl.DataFrame) -> tuple[Array, Array]:
        return rows["iek"].to_numpy(), rows["rdh"].to_numpy()

    def _known(self, rows: pl.DataFrame) -> Array:
        return np.asarray(np.logical_and.reduce([~np.isnan(rows[name].to_numpy()) for name in FOUR]))

    def _distance(self, rows: pl.DataFrame) -> Array:
        return distances(rows["sek"].to_numpy(), rows["dus"].to_numpy())
