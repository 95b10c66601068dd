"""Sensitive values that a release predicts: by a model learned from it (RAPID), or by its equal records."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np

from sdcmap.core import Array, Estimate, Generator, Microdata, Positive, Range, Undefined
from sdcmap.data.cells import common_codes, joint_codes, recode_to_released_categories
from sdcmap.data.label_matching import check_one_depth, possible_matches, spell_out_true_labels
from sdcmap.data.model_training import EXTRA, Learner, build_features, check_categories_known, limit_learning_threads
from sdcmap.kernels.tables.attribution import attribution_probabilities, shares
from sdcmap.kernels.tables.coding import compress
from sdcmap.risk._secrets import SecretMeasure, check_comparable

DELTA = 0.01  # added to sizes, in the variable's unit, so that 0 has a relative error
STEP = 2e-6  # seconds: of one feature of one record


ERRORS: dict[str, Callable[[Array, Array], Array]] = {
    "symmetric": lambda truth, guess: 2 * np.abs(truth - guess) / (np.abs(truth) + np.abs(guess) + 2 * DELTA),
    "relative": lambda truth, guess: np.abs(truth - guess) / (np.abs(truth) + DELTA),
}


def normalized_gain(chance: Array, baseline: Array) -> Array:
    """(g - b) / (1 - b): how far a probability lies from the baseline on the way to certainty; 0 where that is certain."""
    return np.asarray((chance - baseline) / np.where(baseline < 1, 1 - baseline, 1.0))


class _Known(NamedTuple):
    """The true answers of the people, and those of the released file."""

    people: Microdata
    released: Microdata
    truth: Array
    told: Array
    categories: int  # 0: a number


@dataclass(frozen=True)
class RAPID(SecretMeasure):
    """The share of people whose sensitive value a model learned from the release predicts: the risk of attribute
    prediction-induced disclosure.

    The snooper trains a model of the sensitive variable on the released records, knows the keys of people of the original,
    and asks it about them. He succeeds where a number is predicted nearly, or where the model gives a person's own category
    much more than its share. No record needs to be anybody's, so synthetic files can be measured. What a model also tells
    of people outside the file is science: `AttributeInference` counts what being in it adds.

    Parameters
    ----------
    secret : the sensitive variable, of any kind; by default the first sensitive variable of the file.
    on : the variables he knows, of any kind; by default the keys of the file.
    epsilon : a number is predicted when its error is below this share, above 0.
    tau : a category is predicted when its normalized gain is above this, in [0, 1).
    error : of numbers, "symmetric": 2 |y - g| / (|y| + |g| + .02); "relative": |y - g| / (|y| + .01).
    model : "boosting", 60 rounds of gradient-boosted trees; "linear", ridge and logistic regression of single columns.
    fewest : people and released records needed, at least 5.

    Formula: #{i: e(y_i, g_i) < epsilon} / n, y_i the true number and g_i the predicted one; #{i: (p_i - b_i)/(1 - b_i) >
        tau} / n, p_i the probability that the model gives to the true category of i, b_i the share of people who have it.
    `parts`: "naive", the same of somebody who knows only the released distribution (of a number: the median), and "right",
    the share of categories that are the likeliest, or "explained", the share of a number's variance, at least 0.
    Releasing nothing leaves a number's median; of a category nothing is gained.
    A recoded variable is asked about in the categories of the release, where each value became one of them; undefined where
    that cannot be told. Missing is a category of its own; people and records whose sensitive value is missing are left out.
    Weights and households are not used. Needs scikit-learn: pip install 'sdcmap[learn]'.
    Reference: Templ, Thees, Mueller (2026); `rapid` of the R package riskutility, with its defaults for numbers, and its
    marginal baseline.

    Examples
    --------
    >>> RAPID("Income", epsilon=0.05).text
    "RAPID(secret='Income', epsilon=0.05)"
    """

    label: ClassVar[str] = "Sensitive value predicted by a model"
    description: ClassVar[str] = (
        "Share of records whose sensitive value a model trained on the release predicts confidently and correctly."
    )

    unit: ClassVar[str] = "share of people"
    paired: ClassVar[bool] = False
    missing: ClassVar[str] = "a category of its own; people whose sensitive value is missing are left out"

    secret: str = ""
    on: tuple[str, ...] = ()
    epsilon: Positive = 0.1
    tau: Annotated[float, Range(0, 1, "[)")] = 0.3
    error: Literal["symmetric", "relative"] = "symmetric"
    model: Literal["boosting", "linear"] = "boosting"
    fewest: Annotated[int, Range(5)] = 20

    def other_incompatibilities(self, data: Microdata) -> Iterator[str]:
        yield from super().other_incompatibilities(data)
        if find_spec("sklearn") is None:
            yield f"RAPID: {EXTRA}."

    def baseline(self, original: Microdata) -> float | None:
        secret = self.secret_in(original)
        if original.column(secret).levels is not None:
            return 0.0
        truth = original.numbers(secret)
        truth = truth[np.isfinite(truth)]
        return self._share_near(truth, np.median(truth)) if len(truth) else None

    def seconds(self, data: Microdata) -> float | None:
        secret = self.secret_in(data)
        answers = 1 if data.column(secret).levels is None else min(20, data.level_count(secret))
        return answers * len(data) * len(self.variables(data)) * STEP

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        names, secret = self.check_variables(original), self.secret_in(original)
        asked = recode_to_released_categories(original, masked, (*names, secret))
        check_categories_known(original, asked, masked, names)
        known = _known(asked, masked, secret)
        if min(len(known.people), len(known.released)) < self.fewest:
            raise Undefined(f"fewer than {self.fewest} people or released records have a sensitive value.")
        with limit_learning_threads():
            return self._of_categories(known, names) if known.categories else self._of_numbers(known, names)

    def _of_numbers(self, known: _Known, names: tuple[str, ...]) -> Estimate:
        guess = self._asked(known, names)
        spell_out_true_labels = 1 - float(((guess - known.truth) ** 2).mean() / (known.truth.var() or 1.0))
        parts = {
            "naive": self._share_near(known.truth, np.median(known.told)),
            "explained": max(0.0, spell_out_true_labels),
        }
        return Estimate(value=self._share_near(known.truth, guess), parts=parts)

    def _of_categories(self, known: _Known, names: tuple[str, ...]) -> Estimate:
        chances = self._asked(known, names)
        shares = [np.bincount(codes, minlength=known.categories) / len(codes) for codes in (known.truth, known.told)]
        own = chances[np.arange(len(chances)), known.truth]
        gains = (normalized_gain(chance, shares[0][known.truth]) for chance in (own, shares[1][known.truth]))
        value, naive = (float((gain > self.tau).mean()) for gain in gains)
        right = float((chances.argmax(axis=1) == known.truth).mean())
        return Estimate(value=value, parts={"naive": naive, "right": right})

    def _asked(self, known: _Known, names: tuple[str, ...]) -> Array:
        """What the model says of each person: a number, or the chance of each category. Records come in the order of their
        values, so that their place in the file has no say."""
        features = build_features(known.released, known.people, names)
        order = np.lexsort([*features.train.T, known.told])
        features = features._replace(train=features.train[order])
        learner = Learner(self.model, numeric=not known.categories, seed=0)
        model = learner.fit(features, known.told[order])
        rows = learner.encode_rows(features.test, features)
        return learner.probabilities(model, rows, known.categories) if known.categories else model.predict(rows)

    def _share_near(self, truth: Array, guess: Array | np.floating) -> float:
        """The share of the numbers that a guess, of each or of all, predicts."""
        return float((ERRORS[self.error](truth, np.asarray(guess)) < self.epsilon).mean())


def _known(asked: Microdata, masked: Microdata, secret: str) -> _Known:
    """Whose sensitive value is known, in both files."""
    check_comparable(asked, masked, secret)
    people, released = (file.take(np.flatnonzero(~file.missing(secret))) for file in (asked, masked))
    if people.column(secret).levels is None:
        return _Known(people, released, people.numbers(secret), released.numbers(secret), 0)
    (truth, told), count = joint_codes([people, released], secret)
    return _Known(people, released, truth, told, count)


# Sensitive values that a snooper reads off records with the same keys.


@dataclass(frozen=True)
class CorrectAttribution(SecretMeasure):
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

    label: ClassVar[str] = "Correct attribution (CAP)"
    description: ClassVar[str] = (
        "Probability that the sensitive value attributed to a person from records with the same keys is correct."
    )

    unit: ClassVar[str] = "probability"
    paired: ClassVar[bool] = False
    revision: ClassVar[int] = 3  # 2: TCAP is 0 where no group agrees; 3: labels of several depths are read

    secret: str = ""
    on: tuple[str, ...] = ()
    form: Literal["DCAP", "TCAP", "TCAP all", "DiSCO"] = "DCAP"
    unmatched: Literal["zero", "left out"] = "zero"

    def baseline(self, original: Microdata) -> float:
        self.check_variables(original)
        return self._naive(original.codes(self.secret_in(original)))

    def _naive(self, codes: Array) -> float:
        shares = np.bincount(codes) / len(codes)
        return float((shares**2).sum() if self.form == "DCAP" else shares.max())

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        known, each = self._probabilities(original, masked)
        matched = ~np.isnan(each)
        parts = {"matched": float(matched.mean()), "naive": self._naive(known.codes(self.secret_in(original)))}
        if self._leaves_out and not matched.any():
            raise Undefined("DCAP: no record has a match to attribute a value from.")
        counted = each[matched] if self._over_released or self._leaves_out else np.nan_to_num(each)
        return Estimate(value=float(counted.mean()) if len(counted) else 0.0, parts=parts)

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """The chance of each released record, or of the original one it came from (DCAP, DiSCO); NaN without a match."""
        if not self._over_released and not masked.paired:
            raise Undefined(f"{self.form} is of the original records; a synthetic file has none for each of its own.")
        _, each = self._probabilities(original, masked)
        if self._over_released:
            return each
        each = each if self._leaves_out else np.nan_to_num(each)
        return each if masked.origin is None else each[masked.origin]

    @property
    def _over_released(self) -> bool:
        return self.form.startswith("TCAP")

    @property
    def _leaves_out(self) -> bool:
        return self.form == "DCAP" and self.unmatched == "left out"

    def _probabilities(self, original: Microdata, masked: Microdata) -> tuple[Microdata, Array]:
        """The original in the categories of the release, and the chance of each record that counts; NaN without a match."""
        names, secret = self.check_variables(original), self.secret_in(original)
        original = recode_to_released_categories(original, masked, (*names, secret))
        check_one_depth(original, masked, (secret,))
        told = common_codes(original, masked, secret)
        key = compress([common_codes(original, masked, name) for name in names])[0]
        ours, theirs = zip(*(np.split(code, [len(original)]) for code in (key, compress([key, told])[0])), strict=True)
        fit = possible_matches(original, spell_out_true_labels(original, masked, names), names)
        if not self._over_released:
            if fit is None:
                each = attribution_probabilities(*ours, *theirs)
            else:
                each = shares(fit.also_equal(told).records_of_people(), fit.records_of_people())
            return original, each if self.form == "DCAP" else np.where(np.isnan(each), np.nan, each == 1)
        if fit is None:
            right = attribution_probabilities(*theirs, *ours)
        else:
            right = shares(fit.also_equal(told).people_of_records(), fit.people_of_records())
        agreed = attribution_probabilities(*theirs, *theirs) == 1
        return original, np.where(agreed, np.nan_to_num(right) if self.form == "TCAP all" else right, np.nan)
