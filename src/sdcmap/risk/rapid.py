"""Sensitive values that a release predicts: by a model trained on it (RAPID), or by records with equal keys (CAP)."""

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

RELATIVE_ERROR_OFFSET = 0.01  # in the variable's unit; added to sizes, so that 0 has a relative error
SECONDS_PER_FEATURE = 2e-6  # training time of one feature of one record


ERRORS: dict[str, Callable[[Array, Array], Array]] = {
    "symmetric": lambda truth, guess: (
        2 * np.abs(truth - guess) / (np.abs(truth) + np.abs(guess) + 2 * RELATIVE_ERROR_OFFSET)
    ),
    "relative": lambda truth, guess: np.abs(truth - guess) / (np.abs(truth) + RELATIVE_ERROR_OFFSET),
}


def normalize_gain(chance: Array, baseline: Array) -> Array:
    """Return (g - b) / (1 - b), the gain over the baseline relative to certainty; 0 if the baseline is already certain."""
    return np.asarray((chance - baseline) / np.where(baseline < 1, 1 - baseline, 1.0))


class _PredictionTask(NamedTuple):
    """People and released records with a known sensitive value, and these values; `categories` is 0 for a number."""

    people: Microdata
    released: Microdata
    truth: Array
    released_values: Array
    categories: int  # 0: a number


@dataclass(frozen=True)
class RAPID(SecretMeasure):
    """Share of people whose sensitive value a model trained on the release predicts.

    The attacker trains a model of the sensitive variable on the released records and applies it to the known keys of
    people in the original. They succeed if a number is predicted closely, or if the model gives a person's category a
    much higher probability than its share. No link between records is needed, so synthetic files can be measured. The
    model also predicts values of people outside the file; `AttributeInference` counts only what membership adds.

    Parameters
    ----------
    secret : the sensitive variable, of any kind; by default the first sensitive variable of the file.
    on : the variables the attacker knows, of any kind; by default the keys of the file.
    epsilon : a number counts as predicted if its error is below this share, above 0.
    tau : a category counts as predicted if its normalized gain is above this, in [0, 1).
    error : for numbers, "symmetric": 2 |y - g| / (|y| + |g| + 0.02); "relative": |y - g| / (|y| + 0.01).
    model : "boosting", 60 rounds of gradient-boosted trees; "linear", ridge and logistic regression on single columns.
    fewest : the smallest number of people and of released records, at least 5.

    Formula: #{i: e(y_i, g_i) < epsilon} / n, y_i the true number and g_i the predicted one; #{i: (p_i - b_i)/(1 - b_i)
        > tau} / n, p_i the predicted probability of the true category of i, b_i the share of people who have it.
    `parts`: "naive", the same for an attacker who knows only the released distribution (for a number: the median), and
    "right", the share of people whose category is predicted as the most likely, or "explained", the explained share of
    a number's variance, at least 0.
    Releasing nothing leaves the median of a number; for a category nothing is gained.
    Missing is a category; people and records with a missing sensitive value are left out. Recoded variables are used in
    the released categories; undefined if these are not known. Weights and households are not used. Needs scikit-learn:
    pip install 'sdcmap[learn]'.
    Reference: Templ, Thees, Mueller (2026), risk of attribute prediction-induced disclosure; `rapid` of the R package
    riskutility, with its defaults for numbers and its marginal baseline.

    Examples
    --------
    >>> RAPID("Income", epsilon=0.05).text
    "RAPID(secret='Income', epsilon=0.05)"
    """

    label: ClassVar[str] = "Sensitive value predicted by a model"
    description: ClassVar[str] = (
        "Share of people whose sensitive value a model trained on the release predicts closely, or with a much "
        "higher probability than without it."
    )

    unit: ClassVar[str] = "share of people"
    paired: ClassVar[bool] = False
    missing: ClassVar[str] = "a category of its own; people with a missing sensitive value are left out"

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
        return answers * len(data) * len(self.variables(data)) * SECONDS_PER_FEATURE

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        names, secret = self.check_variables(original), self.secret_in(original)
        people = recode_to_released_categories(original, masked, (*names, secret))
        check_categories_known(original, people, masked, names)
        task = _prepare(people, masked, secret)
        if min(len(task.people), len(task.released)) < self.fewest:
            raise Undefined(f"fewer than {self.fewest} people or released records have a sensitive value.")
        with limit_learning_threads():
            return self._score_categories(task, names) if task.categories else self._score_numbers(task, names)

    def _score_numbers(self, task: _PredictionTask, names: tuple[str, ...]) -> Estimate:
        guess = self._predict(task, names)
        spell_out_true_labels = 1 - float(((guess - task.truth) ** 2).mean() / (task.truth.var() or 1.0))
        parts = {
            "naive": self._share_near(task.truth, np.median(task.released_values)),
            "explained": max(0.0, spell_out_true_labels),
        }
        return Estimate(value=self._share_near(task.truth, guess), parts=parts)

    def _score_categories(self, task: _PredictionTask, names: tuple[str, ...]) -> Estimate:
        chances = self._predict(task, names)
        shares = [
            np.bincount(codes, minlength=task.categories) / len(codes) for codes in (task.truth, task.released_values)
        ]
        own = chances[np.arange(len(chances)), task.truth]
        gains = (normalize_gain(chance, shares[0][task.truth]) for chance in (own, shares[1][task.truth]))
        value, naive = (float((gain > self.tau).mean()) for gain in gains)
        right = float((chances.argmax(axis=1) == task.truth).mean())
        return Estimate(value=value, parts={"naive": naive, "right": right})

    def _predict(self, task: _PredictionTask, names: tuple[str, ...]) -> Array:
        """Return the prediction for each person: a number, or the probability of each category.

        The training records are sorted by their values, so that the order of the file does not matter.
        """
        features = build_features(task.released, task.people, names)
        order = np.lexsort([*features.train.T, task.released_values])
        features = features._replace(train=features.train[order])
        learner = Learner(self.model, numeric=not task.categories, seed=0)
        model = learner.fit(features, task.released_values[order])
        rows = learner.encode_rows(features.test, features)
        return learner.probabilities(model, rows, task.categories) if task.categories else model.predict(rows)

    def _share_near(self, truth: Array, guess: Array | np.floating) -> float:
        """Return the share of the numbers that a guess, for each person or the same for all, predicts."""
        return float((ERRORS[self.error](truth, np.asarray(guess)) < self.epsilon).mean())


def _prepare(original: Microdata, masked: Microdata, secret: str) -> _PredictionTask:
    """Select the people and records with a known sensitive value."""
    check_comparable(original, masked, secret)
    people, released = (file.take(np.flatnonzero(~file.missing(secret))) for file in (original, masked))
    if people.column(secret).levels is None:
        return _PredictionTask(people, released, people.numbers(secret), released.numbers(secret), 0)
    (truth, secret_codes), count = joint_codes([people, released], secret)
    return _PredictionTask(people, released, truth, secret_codes, count)


# Sensitive values attributed from records with the same keys.


@dataclass(frozen=True)
class CorrectAttribution(SecretMeasure):
    """Probability that a sensitive value attributed from released records with the same keys is correct: DCAP, TCAP, DiSCO.

    The attacker knows the keys of people in the original. They take the released records with these keys and attribute
    to the person the sensitive value of one of them at random (DCAP), or only if all agree (TCAP, DiSCO). No link
    between records is needed, so synthetic files can be measured.

    Parameters
    ----------
    secret : the sensitive variable; by default the first sensitive variable of the file. Numbers are correct only if
        they are equal: recode them first.
    on : the variables the attacker knows, of any kind; by default the keys of the file.
    form : "DCAP": over the original records; "TCAP": over the released records whose group agrees on one value and
        whose keys occur in the original; "TCAP all": over all released records whose group agrees, 0 if its keys do not
        occur; "DiSCO": over the original records, 1 if the released group with its keys agrees on its value.
    unmatched : for "DCAP": original records without a released record with their keys count as "zero", or are "left
        out".

    Formula: CAP_j = #{released with the keys and the value of j} / #{released with the keys of j}; DCAP its mean, DiSCO
        the share of j with CAP_j = 1. TCAP: mean over released r whose group has one value of #{original with keys and
        value of r} / #{original with its keys}; 0 if no group agrees.
    `parts`: "matched", the share of records with a match, and "naive", the probability without the file: the sum of
    squared shares of the values (DCAP), or the largest share (others).
    Releasing nothing leaves the naive probability. Recoded variables are compared in the released categories. For keys
    with labels of several depths ("37", "(35, 40]"), the released records whose labels cover the keys match, and groups
    have equal labels; undefined if the sensitive variable has such labels.
    Missing is a category. Weights and households are not used.
    Reference: Elliot (2014); Taub, Elliot, Pampaka, Smith (2018); Taub and Elliot (2019) for TCAP; Little, Elliot,
    Allmendinger (2022) for "TCAP all"; Raab, Nowok, Dibben (2024) for DiSCO.

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
    revision: ClassVar[int] = 3  # 2: TCAP is 0 if no group agrees; 3: labels of several depths

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
        """Return the probability for each released record, or for its original (DCAP, DiSCO); NaN without a match."""
        if not self._over_released and not masked.paired:
            raise Undefined(f"{self.form} is about original records; rows of a synthetic file do not belong to any.")
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
        """Return the original in the released categories, and the probability for each record that counts."""
        names, secret = self.check_variables(original), self.secret_in(original)
        original = recode_to_released_categories(original, masked, (*names, secret))
        check_one_depth(original, masked, (secret,))
        secret_codes = common_codes(original, masked, secret)
        key = compress([common_codes(original, masked, name) for name in names])[0]
        ours, theirs = zip(
            *(np.split(code, [len(original)]) for code in (key, compress([key, secret_codes])[0])), strict=True
        )
        fit = possible_matches(original, spell_out_true_labels(original, masked, names), names)
        if not self._over_released:
            if fit is None:
                each = attribution_probabilities(*ours, *theirs)
            else:
                each = shares(fit.also_equal(secret_codes).records_of_people(), fit.records_of_people())
            return original, each if self.form == "DCAP" else np.where(np.isnan(each), np.nan, each == 1)
        if fit is None:
            right = attribution_probabilities(*theirs, *ours)
        else:
            right = shares(fit.also_equal(secret_codes).people_of_records(), fit.people_of_records())
        agreed = attribution_probabilities(*theirs, *theirs) == 1
        return original, np.where(agreed, np.nan_to_num(right) if self.form == "TCAP all" else right, np.nan)
