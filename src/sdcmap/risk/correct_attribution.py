"""Sensitive values that a snooper reads off records with the same keys."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.random import Generator

from sdcmap.core.measure import Estimate, Measure
from sdcmap.data.cells import common_codes, in_released_categories
from sdcmap.data.covering import check_one_depth, explained, fitting
from sdcmap.data.microdata import Microdata
from sdcmap.errors import Undefined
from sdcmap.kernels.arrays import Array
from sdcmap.kernels.tables.attribution import attribution_probabilities, shares
from sdcmap.kernels.tables.coding import compress
from sdcmap.risk.l_diversity import secret_misfits, secret_of


@dataclass(frozen=True)
class CorrectAttribution(Measure):
    """The chance that a sensitive value read off the released records with somebody's keys is right: DCAP, TCAP, DiSCO.

    The snooper knows the keys of people of the original file. He takes the released records that have these keys, of
    whomever they are, and attributes to the person the sensitive value of one of them at random (DCAP), or only where
    they all agree (TCAP, DiSCO). He succeeds when it is the person's own. No record needs to be anybody's, so synthetic
    files can be measured.

    Parameters
    ----------
    secret : the sensitive variable; by default the first sensitive variable of the file. Numbers count as right only
        when they are equal: recode them first.
    on : the variables he knows, of any kind; by default the keys of the file.
    form : "DCAP": over the original records; "TCAP": over the released records whose group agrees on one value and whose
        keys occur in the original; "TCAP all": over all released records whose group agrees, 0 where its keys do not occur;
        "DiSCO": over the original records, 1 where the released group of its keys agrees on its own value.
    unmatched : for "DCAP": original records without a released one of their keys count as "zero", or are "left out".

    Formula: CAP_j = #{released with the keys and the value of j} / #{released with the keys of j}; DCAP its mean, DiSCO the
        share of j with CAP_j = 1.
        TCAP: mean over released r whose group has one value of #{original with keys and value of r} / #{with its keys}.
    Where no group agrees TCAP is 0: nobody's value can be read off. `parts`: "matched", the share of records with a match,
    and "naive", the chance without the file: sum of squared shares of the values (DCAP), or the largest share (others).
    A recoded variable is compared in the categories of the release, where each value became one of them. Labels of keys of
    several depths ("37", "(35, 40]") are read: released records with somebody's keys are those whose labels cover them, and
    groups that agree are of equal labels; undefined where the sensitive variable has such labels.
    Releasing nothing leaves the naive chance. Missing is a category of its own. Weights and households are not used.
    Reference: Elliot (2014); Taub, Elliot, Pampaka, Smith (2018); Taub and Elliot (2019) for TCAP; Little, Elliot,
    Allmendinger (2022) for all that agree; Raab, Nowok, Dibben (2024) for DiSCO.

    Examples
    --------
    >>> CorrectAttribution("Income", form="TCAP").text
    "CorrectAttribution(secret='Income', form='TCAP')"
    """

    axis: ClassVar[Literal["risk", "utility"]] = "risk"
    unit: ClassVar[str] = "probability"
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 1.0)
    paired: ClassVar[bool] = False
    revision: ClassVar[int] = 3  # 2: TCAP is 0 where no group agrees; 3: labels of several depths are read

    secret: str = ""
    on: tuple[str, ...] = ()
    form: Literal["DCAP", "TCAP", "TCAP all", "DiSCO"] = "DCAP"
    unmatched: Literal["zero", "left out"] = "zero"

    def variables(self, data: Microdata) -> tuple[str, ...]:
        return self.on or tuple(name for name in data.keys if name != secret_of(data, self.secret))

    def misfits(self, data: Microdata) -> Iterator[str]:
        yield from super().misfits(data)
        yield from secret_misfits(self, data, self.variables(data), secret_of(data, self.secret))

    def nothing(self, original: Microdata) -> float:
        self.checked(original)
        return self._naive(original.codes(secret_of(original, self.secret)))

    def _naive(self, codes: Array) -> float:
        shares = np.bincount(codes) / len(codes)
        return float((shares**2).sum() if self.form == "DCAP" else shares.max())

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        names, secret = self.checked(original), secret_of(original, self.secret)
        known = in_released_categories(original, masked, (*names, secret))
        each = self._probabilities(known, masked, names, secret)
        matched = ~np.isnan(each)
        parts = {"matched": float(matched.mean()), "naive": self._naive(known.codes(secret))}
        if self.form == "DCAP" and self.unmatched == "left out":
            if not matched.any():
                raise Undefined("DCAP: no record has a match to attribute a value from.")
            return Estimate(value=float(each[matched].mean()), parts=parts)
        each = each[matched] if self.form.startswith("TCAP") else np.where(matched, each, 0.0)
        return Estimate(value=float(each.mean()) if len(each) else 0.0, parts=parts)

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """The chance of each released record, or of the original one it came from (DCAP, DiSCO); NaN without a match."""
        names, secret = self.checked(original), secret_of(original, self.secret)
        over_released = self.form.startswith("TCAP")
        if not over_released and not masked.paired:
            raise Undefined(f"{self.form} is of the original records; a synthetic file has none for each of its own.")
        known = in_released_categories(original, masked, (*names, secret))
        each = self._probabilities(known, masked, names, secret)
        if over_released:
            return each
        left_out = self.form == "DCAP" and self.unmatched == "left out"
        each = each if left_out else np.where(np.isnan(each), 0.0, each)
        return each if masked.origin is None else each[masked.origin]

    def _probabilities(self, original: Microdata, masked: Microdata, names: tuple[str, ...], secret: str) -> Array:
        check_one_depth(original, masked, (secret,))
        told = common_codes(original, masked, secret)
        key = compress([common_codes(original, masked, name) for name in names])[0]
        pair = compress([key, told])[0]
        (key_of, key_in), (pair_of, pair_in) = (np.split(code, [len(original)]) for code in (key, pair))
        fit = fitting(original, explained(original, masked, names), names)
        if self.form in ("DCAP", "DiSCO"):
            each = (
                attribution_probabilities(key_of, pair_of, key_in, pair_in)
                if fit is None
                else shares(fit.also_equal(told).records_of_people(), fit.records_of_people())
            )
            return each if self.form == "DCAP" else np.where(np.isnan(each), np.nan, each == 1)
        agreed = attribution_probabilities(key_in, pair_in, key_in, pair_in) == 1
        right = (
            attribution_probabilities(key_in, pair_in, key_of, pair_of)
            if fit is None
            else shares(fit.also_equal(told).people_of_records(), fit.people_of_records())
        )
        if self.form == "TCAP all":
            right = np.where(np.isnan(right), 0.0, right)
        return np.where(agreed, right, np.nan)
