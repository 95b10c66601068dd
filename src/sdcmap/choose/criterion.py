"""The global criterion of decision theory: four numbers for each candidate, and two limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import polars as pl

from sdcmap.choose.by_release import ByRelease, name_of, row_noun
from sdcmap.core import Array, Range
from sdcmap.core.limit import Limit
from sdcmap.core.rule import Choice, RiskUtilityMap
from sdcmap.kernels.decision.global_criterion import distances, excess, regions

FOUR = ("iek", "rdh", "sek", "dus")
KINDS = ("IntruderKnowledge", "DiscreditHarm", "SocietyKnowledge", "SocietyUtility")  # the measures made for them
AtMost0 = Annotated[float, Range(None, 0)]


@dataclass(frozen=True)
class GlobalCriterion(ByRelease):
    """Choose the safe candidate whose global utility is nearest to (0, 0).

    Parameters
    ----------
    iek, rdh : the measures of global risk, by name or value: the intruder's knowledge as the agency estimates it, and the
        risk of discredit harm, which is minus the intruder's own uncertainty. A candidate is safe if neither exceeds its
        limit.
    sek, dus : the measures of global utility: society's knowledge as the agency estimates it, and minus its uncertainty.
    agency_limit, intruder_limit : t_A, the limit of iek, and t_INT, the limit of rdh; at most 0, as all values are.

    All four are read from the scores, whatever the axes of the map. IEK and SEK are pooled over the draws of a method, and
    IEK is within its limit if its upper confidence limit is. If no candidate is safe, the choice is to release
    nothing, and the nearest miss is named: the candidate that exceeds its limits least, as a share of the limit.
    Reference: Trottini (2001), par. 26, with region D for its misprinted A.

    Examples
    --------
    >>> GlobalCriterion(iek="K", rdh="H", sek="S", dus="U", agency_limit=-40, intruder_limit=-0.8).agency_limit
    -40.0
    """

    levers: ClassVar[tuple[str, ...]] = ("agency_limit", "intruder_limit")
    has_limit: ClassVar[bool] = True

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
    def propose(cls, ru: RiskUtilityMap) -> GlobalCriterion | None:
        """Return a rule on the first measure of each kind in the scores; None where a kind is lacking.

        The limits are half of what the intruder does not know before the release.
        """
        kinds: dict[str, str] = {}
        for name, value in ru.scores.values.items():
            kinds.setdefault(type(value).__name__, name)
        if not all(kind in kinds for kind in KINDS):
            return None
        iek, rdh, sek, dus = (kinds[kind] for kind in KINDS)
        agency, intruder = (0.5 * (ru.end(name, "baseline_value") or 0.0) for name in (iek, rdh))
        return cls(iek=iek, rdh=rdh, sek=sek, dus=dus, agency_limit=agency, intruder_limit=intruder)

    def prior(self, ru: RiskUtilityMap) -> dict[str, float] | None:
        """Return the four numbers before any release; None where a measure does not state its own."""
        ends = {short: ru.end(name, "baseline_value") for short, name in zip(FOUR, self.measures, strict=True)}
        known = {short: end for short, end in ends.items() if end is not None}
        return known if len(known) == len(FOUR) else None

    def table(self, ru: RiskUtilityMap) -> pl.DataFrame:
        """Return what the rule compares: for each candidate or method iek, rdh, sek, dus, region and distance."""
        rows = self._with_four(ru, self._rows(ru)[0]).filter(*(pl.col(name).is_not_nan() for name in FOUR))
        letters = regions(*self._risks(rows), self.agency_limit, self.intruder_limit)
        return rows.with_columns(pl.Series("region", letters, pl.String), distance=pl.Series(self._distance(rows)))

    def _rows_to_compare(self, ru: RiskUtilityMap) -> pl.DataFrame:
        return self.table(ru)

    def rank_rows(self, ru: RiskUtilityMap) -> pl.DataFrame:
        """Return the masked rows by preference: whatever the limits, the choice is the first row that is safe."""
        rows = self.table(ru).filter(~pl.col("anchor"), ~pl.col("worse"))
        return rows[self._order(ru, rows, rows["distance"].to_numpy())]

    def choose(self, ru: RiskUtilityMap) -> Choice:
        rows, risk_name = self.table(ru), self._rows(ru)[1].replace("risk", "global risk", 1)
        noun = row_noun(rows)

        def why(row: dict[str, Any], passed: int, eligible: int) -> str:
            return (
                f"Its {risk_name} is safe (region D): IEK {self._describe_iek(ru, row)} is within the limit of "
                f"{self.agency_limit:g}, and RDH {row['rdh']:.4g} within {self.intruder_limit:g}. Of {len(rows):,} {noun}, "
                f"{eligible:,} {'is' if eligible == 1 else 'are'} safe; this one has the best global utility (SEK "
                f"{row['sek']:.4g}, DUS {row['dus']:.4g}; distance {row['distance']:.4g} from (0, 0))."
                f"{self._describe_release(ru, row)}"
            )

        def miss() -> str:
            if len(rows) == 0:
                return "Release nothing: no candidate could be made and scored."
            over = excess(*self._risks(rows), self.agency_limit, self.intruder_limit)
            over = np.where(rows["anchor"], np.inf, over)
            near = rows.row(int(np.argmin(over)), named=True)
            return (
                f"Release nothing: none of the {len(rows):,} {noun} has a safe {risk_name} (region D: IEK at most "
                f"{self.agency_limit:g}, RDH at most {self.intruder_limit:g}). The nearest miss is {name_of(ru, near)} in "
                f"region {near['region']} with IEK {self._describe_iek(ru, near)} and RDH {near['rdh']:.4g}."
            )

        return self._pick(ru, rows, why, miss)

    def _cost(self, ru: RiskUtilityMap, rows: pl.DataFrame) -> Array:
        return self._distance(self._with_four(ru, rows))

    def _passes(self, ru: RiskUtilityMap, rows: pl.DataFrame) -> Array:
        rows = self._with_four(ru, rows)
        safe: Array = self._has_all_four(rows) & (
            regions(*self._risks(rows), self.agency_limit, self.intruder_limit) == "D"
        )
        return safe

    def admission(self, ru: RiskUtilityMap, rows: pl.DataFrame, lever: str) -> tuple[Array, float]:
        rows = self._with_four(ru, rows)
        iek, rdh = self._risks(rows)
        level, is_other_met = (
            (iek, rdh <= self.intruder_limit) if lever == "agency_limit" else (rdh, iek <= self.agency_limit)
        )
        return np.where(is_other_met & self._has_all_four(rows), level, np.nan), 1.0

    def _is_expectation(self, ru: RiskUtilityMap) -> bool:
        values = [ru.scores.values.get(name) for name in self.measures]
        return ru.is_expectation or any(value is not None and value.expectation for value in values)

    def _describe(self, ru: RiskUtilityMap, row: dict[str, Any]) -> str:
        return f"IEK {row['iek']:.4g}, RDH {row['rdh']:.4g}, SEK {row['sek']:.4g}, DUS {row['dus']:.4g}"

    def _describe_iek(self, ru: RiskUtilityMap, row: dict[str, Any]) -> str:
        """Return the IEK of a row with the confidence limit that decides, where it is an expectation."""
        end = row["iek_end"]
        return f"{row['iek']:.4g}" + (f" (upper confidence limit {end:.4g})" if end != row["iek"] else "")

    def _describe_release(self, ru: RiskUtilityMap, row: dict[str, Any]) -> str:
        """Return the IEK and SEK of the released draw, where they are pooled over draws, and which value decides.

        A measure on an axis of the map is left out: it is described with the axis.
        """
        draws = ru.points.filter(pl.col("compared"), pl.col("method") == row["method"])
        if "id" in row or len(draws) < 2:
            return ""
        first = draws.filter(pl.col("replicate") == draws["replicate"].min())["id"][0]
        own = []
        for short in ("iek", "sek"):
            measure = ru.scores.values.get(getattr(self, short))
            if measure is not None and measure.has_release_value and measure.text not in (*ru.risk, ru.utility):
                values = ru.scores.column(measure.text).filter(pl.col("id") == first)["value"]
                own += [f"{short.upper()} {value:.4g}" for value in values]
        pooled = f" Both IEK and SEK are pooled over {len(draws)} draws, and the pooled values decide"
        return f"{pooled}; this release alone has {' and '.join(own)}." if own else ""

    def _with_four(self, ru: RiskUtilityMap, rows: pl.DataFrame) -> pl.DataFrame:
        """Return the rows with the four numbers of each candidate, or pooled for each method; NaN where there is none."""
        if {*FOUR, "iek_end"} <= {*rows.columns}:
            return rows
        key = "id" if "id" in rows.columns else "method"
        for short, name in zip(FOUR, self.measures, strict=True):
            if key == "id":
                part = ru.scores.column(name).select("id", pl.col("value").alias(short))
            # Only risks are compared by their upper quantile; utilities are always pooled.
            elif self.by == "quantile" and short in FOUR[:2]:
                upper = pl.col("value").quantile(self.quantile, "higher").alias(short)
                part = ru.scores.column(name).group_by("method").agg(upper)
            else:
                part = ru.scores.pooled(name).select("method", pl.col("value").alias(short))
            rows = rows.join(part, on=key, how="left", maintain_order="left")
        rows = rows.with_columns(pl.col(FOUR).fill_null(np.nan))
        ends = {f"{short}_end": self._ends(ru, rows, short) for short in FOUR[:2]}
        return rows.with_columns(pl.Series(name, end, dtype=pl.Float64) for name, end in ends.items())

    def _ends(self, ru: RiskUtilityMap, rows: pl.DataFrame, short: str) -> Array:
        """Return what is compared with the limit of a risk: the confidence limit of an expectation, else the value."""
        measure = ru.scores.values.get(getattr(self, short))
        if measure is None or not measure.expectation:
            return rows[short].to_numpy()
        return np.asarray(ru.compare_limit(Limit(measure, 0.0), rows).end)

    def _risks(self, rows: pl.DataFrame) -> tuple[Array, Array]:
        return rows["iek_end"].to_numpy(), rows["rdh_end"].to_numpy()

    def _has_all_four(self, rows: pl.DataFrame) -> Array:
        return np.asarray(np.logical_and.reduce([~np.isnan(rows[name].to_numpy()) for name in FOUR]))

    def _distance(self, rows: pl.DataFrame) -> Array:
        return distances(rows["sek"].to_numpy(), rows["dus"].to_numpy())
