"""The global criterion of decision theory: four numbers for each candidate, and two limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import polars as pl

from sdcmap.choose.by_release import ByRelease, describe_prior_above, name_of, row_noun
from sdcmap.core import Array, Measure, PlanError, Range, Value
from sdcmap.core.limit import Limit
from sdcmap.core.rule import Choice, RiskUtilityMap, Rule
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
        limit. For several intruders, lists of equal length: a candidate must be safe from each. In a plan the name of a
        class, such as "IntruderKnowledge", stands for all its measures.
    sek, dus : the measures of global utility: society's knowledge as the agency estimates it, and minus its uncertainty.
        For several users, lists of equal length.
    users : how several users count: "all", by the distance over the coordinates of all of them; "worst", by the largest
        distance of one.
    agency_limit, intruder_limit : t_A, the limit of iek, and t_INT, the limit of rdh; at most 0, as all values are. They
        hold for every intruder; a stricter limit for one of them is a limit of the plan.

    All four are read from the scores, whatever the axes of the map. IEK and SEK are pooled over the draws of a method. IEK
    and RDH are compared with their limits with the margins of a release (see `ReleasePolicy`). If no candidate is safe, the
    choice is to release nothing, and the nearest miss is named: the candidate that exceeds its limits least, as a share of
    the limit. Where the prior is already above a limit, so that even releasing nothing breaks it, the reason says so.
    Reference: Trottini (2001), par. 26, with region D for its misprinted A; several targets of society: par. 5.

    Examples
    --------
    >>> GlobalCriterion(iek="K", rdh="H", sek="S", dus="U", agency_limit=-40, intruder_limit=-0.8).agency_limit
    -40.0
    """

    levers: ClassVar[tuple[str, ...]] = ("agency_limit", "intruder_limit")
    has_limit: ClassVar[bool] = True

    iek: tuple[str, ...] = ()
    rdh: tuple[str, ...] = ()
    sek: tuple[str, ...] = ()
    dus: tuple[str, ...] = ()
    users: Literal["all", "worst"] = "all"
    agency_limit: AtMost0 = 0.0
    intruder_limit: AtMost0 = 0.0

    def __post_init__(self) -> None:
        for name in FOUR:
            given = getattr(self, name)
            given = [given] if isinstance(given, str | Value) else given
            object.__setattr__(self, name, tuple(map(str, given)))  # a measure stands for its name
        super().__post_init__()

    def problems(self) -> Iterator[str]:
        for name in FOUR:
            named = getattr(self, name)
            if not named or not all(named):
                yield f".{name} must name a measure."
            elif len(set(named)) < len(named):
                yield f".{name} must name each measure once."
        for first, second, who in ((*FOUR[:2], "intruder"), (*FOUR[2:], "user")):
            one, other = len(getattr(self, first)), len(getattr(self, second))
            if one and other and one != other:
                yield f".{first} and .{second} must name one measure for each {who}, in the same order."

    def resolve(self, measures: Sequence[Measure]) -> GlobalCriterion:
        """Return the rule with every measure of a class in place of the name of the class."""
        by_class: dict[str, list[str]] = {}
        for measure in measures:
            by_class.setdefault(type(measure).__name__, []).append(measure.text)
        texts = {measure.text for measure in measures}
        four = {
            short: tuple(text for name in getattr(self, short) for text in _texts_of(name, texts, by_class))
            for short in FOUR
        }
        return self if four == {short: getattr(self, short) for short in FOUR} else replace(self, **four)  # type: ignore[arg-type]

    @property
    def measures(self) -> tuple[str, ...]:
        return tuple(name for short in FOUR for name in getattr(self, short))

    @property
    def limits(self) -> Mapping[str, float]:
        return dict.fromkeys(self.iek, self.agency_limit) | dict.fromkeys(self.rdh, self.intruder_limit)

    @classmethod
    def propose(cls, ru: RiskUtilityMap) -> GlobalCriterion | None:
        """Return a rule on the measures of each kind in the scores; None where a kind is lacking.

        There are as many intruders (or users) as measures, if both kinds of an intruder have equally many; otherwise the
        first of each. The limits are half of what the intruder knows least before the release.
        """
        named: dict[str, list[str]] = {kind: [] for kind in KINDS}
        for name, value in ru.scores.values.items():
            named.get(type(value).__name__, []).append(name)
        if not all(named.values()):
            return None
        iek, rdh, sek, dus = named.values()
        pairs = [(a, b) if len(a) == len(b) else (a[:1], b[:1]) for a, b in ((iek, rdh), (sek, dus))]
        (iek, rdh), (sek, dus) = pairs
        agency, intruder = (0.5 * max(ru.end(name, "baseline_value") or 0.0 for name in names) for names in (iek, rdh))
        return cls(
            iek=tuple(iek), rdh=tuple(rdh), sek=tuple(sek), dus=tuple(dus), agency_limit=min(agency, 0.0),
            intruder_limit=min(intruder, 0.0),
        )  # fmt: skip

    @classmethod
    def of_plan(cls, rule: Rule | None, ru: RiskUtilityMap) -> GlobalCriterion:
        """Return the rule of a plan if it is this criterion, otherwise a proposed one; raise PlanError if there is none."""
        found = rule if isinstance(rule, GlobalCriterion) else cls.propose(ru)
        if found is None:
            raise PlanError(
                f"global risk and utility need four measures in the plan: {', '.join(KINDS)}. Add them, and sweep again."
            )
        return found

    def prior(self, ru: RiskUtilityMap) -> dict[str, float] | None:
        """Return the four numbers before any release, as in `table`; None where a measure does not state its own."""
        ends = {f"{short} {i}": ru.end(name, "baseline_value") for short, i, name in self._numbered}
        if any(end is None for end in ends.values()):
            return None
        # A prior is not estimated, so its own values are compared with the limits.
        compared = {f"{short}_end {i}": ends[f"{short} {i}"] for short, i, _ in self._numbered if short in FOUR[:2]}
        numbers = ends | compared
        row = self._summarize(pl.DataFrame([numbers], schema=dict.fromkeys(numbers, pl.Float64)))
        return row.drop("distance", *compared, *(f"{short}_end" for short in FOUR[:2])).row(0, named=True)

    @property
    def _numbered(self) -> list[tuple[str, int, str]]:
        """Each measure with its role and the number of its intruder or user, from 1."""
        return [(short, i, name) for short in FOUR for i, name in enumerate(getattr(self, short), 1)]

    def table(self, ru: RiskUtilityMap) -> pl.DataFrame:
        """Return what the rule compares: for each candidate or method iek, rdh, sek, dus, region and distance.

        iek and rdh are the largest of all intruders, sek and dus those of the user with the largest distance. The numbers
        of each are in the columns "iek 1", "iek 2", ...
        """
        rows = self._with_four(ru, self._rows(ru)[0]).filter(*(pl.col(name).is_not_nan() for name in FOUR))
        letters = regions(*self._risks(rows), self.agency_limit, self.intruder_limit)
        return rows.with_columns(pl.Series("region", letters, pl.String))

    def describe(self, ru: RiskUtilityMap, choice: Choice) -> pl.DataFrame:
        """Return the table for readers, best first: name, chosen, region, distance, the numbers, and the gains.

        A gain is what is known more than before the release, as a share of what was not known then; it is null where the
        prior has no number. With several intruders or users, each has its own columns.
        """
        rows, prior = self.table(ru), self.prior(ru) or {}
        rows = rows[self._order(ru, rows, rows["distance"].to_numpy())]
        is_chosen = rows["id"] == (choice.candidate or "") if "id" in rows.columns else rows["method"] == choice.method
        draws = rows["replicate"].to_list() if "replicate" in rows.columns else [None] * len(rows)
        names = [ru.scores.name_of(m, draw) for m, draw in zip(rows["method"], draws, strict=True)]
        counts = {short: len(getattr(self, short)) for short in FOUR}
        shown = {short if counts[short] == 1 else f"{short} {i}": f"{short} {i}" for short, i, _ in self._numbered}
        numbers = [pl.col(column).alias(name) for name, column in shown.items()]
        gains = [_relative_gain(column, prior.get(column)).alias(f"{name} gain") for name, column in shown.items()]
        facts = (pl.Series("name", names, pl.String), pl.Series("chosen", is_chosen, pl.Boolean))
        return rows.with_columns(*facts).select("name", "chosen", "region", "distance", *numbers, *gains)

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
                f"{self._explain_several()}{self._describe_release(ru, row)}{self._prior_above_limits(ru)}"
            )

        def miss() -> str:
            if len(rows) == 0:
                return "Release nothing: no candidate could be made and scored."
            note = f"{self._explain_several()}{self._prior_above_limits(ru)}"
            over = excess(*self._risks(rows), self.agency_limit, self.intruder_limit)
            over = np.where(rows["anchor"], np.inf, over)
            near = rows.row(int(np.argmin(over)), named=True)
            return (
                f"Release nothing: none of the {len(rows):,} {noun} has a safe {risk_name} (region D: IEK at most "
                f"{self.agency_limit:g}, RDH at most {self.intruder_limit:g}). The nearest miss is {name_of(ru, near)} in "
                f"region {near['region']} with IEK {self._describe_iek(ru, near)} and RDH {near['rdh']:.4g}.{note}"
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
        """Return the IEK of a row and what is compared with the limit, where that has a margin."""
        end = row["iek_end"]
        return f"{row['iek']:.4g}" + (f" (with its margin {end:.4g})" if end != row["iek"] else "")

    def _describe_release(self, ru: RiskUtilityMap, row: dict[str, Any]) -> str:
        """Return the IEK and SEK of the released draw, where they are pooled over draws, and which value decides.

        A measure on an axis of the map is left out: it is described with the axis.
        """
        draws = ru.points.filter(pl.col("compared"), pl.col("method") == row["method"])
        if "id" in row or len(draws) < 2:
            return ""
        first = draws.filter(pl.col("replicate") == draws["replicate"].min())["id"][0]
        own = []
        for short, _, name in self._numbered:
            measure = ru.scores.values.get(name) if short in ("iek", "sek") else None
            if measure is not None and measure.has_release_value and measure.text not in (*ru.risk, ru.utility):
                values = ru.scores.column(measure.text).filter(pl.col("id") == first)["value"]
                own += [f"{short.upper()} {value:.4g}" for value in values]
        pooled = f" Both IEK and SEK are pooled over {len(draws)} draws, and the pooled values decide"
        return f"{pooled}; this release alone has {' and '.join(own)}." if own else ""

    def _with_four(self, ru: RiskUtilityMap, rows: pl.DataFrame) -> pl.DataFrame:
        """Return the rows with the four numbers of each candidate, or pooled for each method; NaN where there is none."""
        if {*FOUR, "iek_end", "distance"} <= {*rows.columns}:
            return rows
        key = "id" if "id" in rows.columns else "method"
        for short, i, name in self._numbered:
            column = f"{short} {i}"
            if key == "id":
                part = ru.scores.column(name).select("id", pl.col("value").alias(column))
            # Only risks are compared by their upper quantile; utilities are always pooled.
            elif self.by == "quantile" and short in FOUR[:2]:
                upper = pl.col("value").quantile(self.quantile, "higher").alias(column)
                part = ru.scores.column(name).group_by("method").agg(upper)
            else:
                part = ru.scores.pooled(name).select("method", pl.col("value").alias(column))
            rows = rows.join(part, on=key, how="left", maintain_order="left")
            if short in FOUR[:2]:
                ends = self._ends(ru, rows, name, column)
                rows = rows.with_columns(pl.Series(f"{short}_end {i}", ends, dtype=pl.Float64))
        return self._summarize(rows)

    def _ends(self, ru: RiskUtilityMap, rows: pl.DataFrame, name: str, column: str) -> Array:
        """Return what is compared with the limit of a risk: with the margins of a release, or a quantile of releases."""
        measure = ru.scores.values.get(name)
        if measure is None or (self.by == "quantile" and not measure.expectation):
            return rows[column].fill_null(np.nan).to_numpy()
        return np.asarray(ru.compare_limit(Limit(measure, 0.0), rows).end)

    def _summarize(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return the rows with one iek, rdh, sek, dus and distance each, from the numbers of all intruders and users.

        `iek_end` and `rdh_end` are compared with the limits. A row that lacks a number of one of them has none.
        """

        def stack(role: str, column: str) -> Array:
            own = [
                rows[f"{column} {i}"].fill_null(np.nan).to_numpy() for short, i, _ in self._numbered if short == role
            ]
            return np.stack(own)

        by_role = {short: stack(short, short) for short in FOUR}
        each = distances(by_role["sek"], by_role["dus"])  # of every user (rows) for every candidate
        worst = np.argmax(np.nan_to_num(each, nan=np.inf), axis=0), np.arange(len(rows))
        distance = each.max(axis=0) if self.users == "worst" else np.sqrt((each**2).sum(axis=0))
        four = {short: by_role[short].max(axis=0) for short in FOUR[:2]}  # NaN where one is NaN
        four |= {short: np.where(np.isnan(distance), np.nan, by_role[short][worst]) for short in FOUR[2:]}
        four |= {f"{short}_end": stack(short, f"{short}_end").max(axis=0) for short in FOUR[:2]}
        return rows.with_columns(
            pl.Series(name, values, pl.Float64) for name, values in (four | {"distance": distance}).items()
        )

    def _explain_several(self) -> str:
        """Return a sentence that says whose numbers the reason shows, where there are several intruders or users."""
        intruders, users = len(self.iek), len(self.sek)
        words = [f"IEK and RDH are the largest of {intruders} intruders"] if intruders > 1 else []
        if users > 1:
            counted = "the distance is over all of them" if self.users == "all" else "so is the distance"
            words.append(f"SEK and DUS are those of the worst served of {users} users, and {counted}")
        return f" {'; '.join(words)}." if words else ""

    def _prior_above_limits(self, ru: RiskUtilityMap) -> str:
        """Return a sentence where the intruder is above a limit before any release."""
        prior = self.prior(ru)
        if prior is None:
            return ""
        limits = {"iek": self.agency_limit, "rdh": self.intruder_limit}
        over = [
            f"{name.upper()} is {prior[name]:.4g} (limit {limits[name]:g})"
            for name in limits
            if prior[name] > limits[name]
        ]
        return f" {describe_prior_above(over)}" if over else ""

    def _risks(self, rows: pl.DataFrame) -> tuple[Array, Array]:
        return rows["iek_end"].to_numpy(), rows["rdh_end"].to_numpy()

    def _has_all_four(self, rows: pl.DataFrame) -> Array:
        return np.asarray(np.logical_and.reduce([~np.isnan(rows[name].to_numpy()) for name in FOUR]))

    def _distance(self, rows: pl.DataFrame) -> Array:
        return rows["distance"].to_numpy()


def _texts_of(name: str, texts: set[str], by_class: Mapping[str, list[str]]) -> list[str]:
    """Return the measure of this name, or all measures of the class of this name."""
    return [name] if name in texts else by_class.get(name, [name])


def _relative_gain(column: str, before: float | None) -> pl.Expr:
    """Return the gain in knowledge as a share of what was not known before.  Duncan and Lambert (1986)"""
    if before is None or not before < 0:
        return pl.lit(None, dtype=pl.Float64)
    return (pl.col(column) - before) / -before
