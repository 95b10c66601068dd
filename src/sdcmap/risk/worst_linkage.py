"""The best single attack on a file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from sdcmap.core.measure import Estimate, Measure
from sdcmap.core.method import Method
from sdcmap.data.microdata import Microdata
from sdcmap.errors import Undefined
from sdcmap.kernels.arrays import Array
from sdcmap.risk._attack import Attack
from sdcmap.risk._linking import DENSE_PAIRS, ROUNDING, LinkTable, Pair
from sdcmap.risk.calibrated import Calibrated
from sdcmap.risk.informed import Informed
from sdcmap.risk.linkage import Linkage
from sdcmap.risk.nearest_record import NearestRecord

ATTACKS: dict[str, Attack] = {
    "d": Linkage("d"),
    "l": Linkage("l"),
    "nearest": NearestRecord("standardised"),
    "mahalanobis": NearestRecord("mahalanobis"),
    "gower": NearestRecord("gower"),
}
ANY = "any (upper bound)"


@dataclass(frozen=True)
class WorstLinkage(Attack):
    """The share of records re-identified by the linkage attack that works best on this file.

    Nobody knows which attack a snooper will choose, and each sees what others do not: relative differences find what
    noise of a fixed size leaves near, whitened distances find what correlated noise leaves, a reader of the method note
    finds what windows and mixtures leave, and who has learnt how reliable each column is finds what a chain of methods
    leaves, and every column left open. So the file is attacked in every way, and the best single attack counts.

    Parameters
    ----------
    method : how the file was made, for the snooper who has read the note; a sweep and a release fill it in.
    on : the variables he knows; by default the numeric variables and the keys.
    archive : path of his own file, with its own rows and errors; by default he holds the original records.
    row : the archive's column that says which row of the data, from 0, each record is; by default row i is row i.
    sha256 : the first 16 digits of the archive's SHA-256, filled in when left out; another content is refused.
    inclusion : the probability that his target is in the file, in (0, 1]; the share found is multiplied by it, and
        stands without it in `parts` as "prosecutor".

    Formula: the largest rate of Linkage "d" and "l", NearestRecord "standardised" and "mahalanobis" on the numeric
    variables, "gower" where there are keys too, Informed where the method is known and states a likelihood, and Calibrated
    (by a shadow of the method, or by true pairs where no method is known). Of the distances and Calibrated the one that
    leads is made one-to-one too, unless something finds everybody: that is dear, and seldom changes which attack leads.
    `parts` holds the rate of each, the reason of each that could not run ("not run: informed: ..."), and as "any (upper
    bound)" the share of records that some attack finds: an upper bound, because no snooper knows which of his attacks found
    the truth. The record form is the largest calibrated link probability over the attacks. "linked" is the least share of
    records that a one-to-one attack could link (below .99, on large files, rates are low by what is not linked).
    Missing values: as each attack says. Weights and households are not used. Releasing nothing leaves a guess: 1/n.
    Reference: Yancey, Winkler, Creecy (2002); the best of several attacks in place of their one.

    Examples
    --------
    >>> WorstLinkage(inclusion=0.1).text
    'WorstLinkage(inclusion=0.1)'
    """

    revision: ClassVar[int] = 2

    method: Method | None = None

    def knowing(self, method: Method) -> Measure:
        return replace(self, method=method)

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        linked_by, not_run = self._linked(original, masked, quick=True)
        tables = {name: table for name, (_, table) in linked_by.items()}
        rates = {name: table.rate for name, table in tables.items()}
        worst = max(rates.values())
        some = float(reduce(np.maximum, (table.found for table in tables.values())).mean())
        linked = min(table.facts.get("linked", 1.0) for table in tables.values())
        reasons = {f"not run: {name}: {reason}": 1.0 for name, reason in not_run.items()}
        parts = {"prosecutor": worst, "linked": linked, **rates, ANY: some, **reasons}
        return Estimate(self.inclusion * worst, None, parts)

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """The largest calibrated link probability over the attacks."""
        tables = self.attacks(original, masked)
        highest: Array = reduce(np.maximum, (table.probability for table in tables.values()))
        return self.inclusion * highest

    def linked(self, original: Microdata, masked: Microdata) -> tuple[Pair, LinkTable]:
        """The links of the attack that works best; of equals (to rounding), the first."""
        linked = self._linked(original, masked)[0]
        rates = {name: table.rate for name, (_, table) in linked.items()}
        worst = max(rates.values())
        return next(linked[name] for name, rate in rates.items() if rate >= worst - ROUNDING)

    def attacks(self, original: Microdata, masked: Microdata) -> dict[str, LinkTable]:
        """The links of every attack that fits the file, by its name."""
        return {name: table for name, (_, table) in self._linked(original, masked)[0].items()}

    def _linked(
        self, original: Microdata, masked: Microdata, *, quick: bool = False
    ) -> tuple[dict[str, tuple[Pair, LinkTable]], dict[str, str]]:
        """The links of every attack that could run, and why the others could not; quick: rates alone will be asked for."""
        names = self.checked(original)
        numeric = tuple(name for name in names if original.schema[name].kind == "numeric")
        pair = self.pair(original, masked, names)
        numbers = self.pair(original, masked, numeric) if numeric and numeric != names else pair
        tables: dict[str, tuple[Pair, LinkTable]] = {}
        not_run: dict[str, str] = {}

        def attack_with(name: str, attack: Attack) -> None:
            laid_out = numbers if isinstance(attack, NearestRecord) and attack.metric != "gower" else pair
            brief = attack.found if quick and isinstance(attack, Calibrated) and not attack.one_to_one else attack.link
            try:
                tables[name] = laid_out, brief(laid_out)
            except Undefined as reason:
                not_run[name] = str(reason)

        attacks = self._attacks(bool(numeric), numeric != names)
        for name, attack in attacks.items():
            attack_with(name, attack)
        if not tables:
            raise Undefined(next(iter(not_run.values())))
        rates = {name: table.rate for name, (_, table) in tables.items()}
        free = {name: attack for name, attack in attacks.items() if name in rates and hasattr(attack, "one_to_one")}
        if free and max(rates.values()) < 1:
            leader = max(free, key=lambda name: rates[name])
            if leader == "calibrated" and len(pair.known) * len(pair.released) > DENSE_PAIRS:
                not_run[f"{leader} one-to-one"] = f"there are more than {DENSE_PAIRS:,} pairs."
            else:
                attack_with(f"{leader} one-to-one", replace(free[leader], one_to_one=True))  # type: ignore[call-arg]
        return tables, not_run

    def _attacks(self, numbers: bool, mixed: bool) -> dict[str, Attack]:
        """The attacks that fit a file with numbers, or of numbers and categories, by name."""
        whitened = ("nearest", "mahalanobis") if numbers else ()
        fitting = ("d", "l", *whitened, *(("gower",) if mixed else ()))
        told: dict[str, Attack] = {"informed": Informed(self.method), "calibrated": Calibrated(self.method)}
        return {name: ATTACKS[name] for name in fitting} | told
