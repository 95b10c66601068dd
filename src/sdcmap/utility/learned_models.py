"""Models trained on the release and tested on people of the original who were left out of it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np

from sdcmap.core import Array, Estimate, Generator, Measure, Method, Microdata, Range, Undefined, did_you_mean
from sdcmap.core.refits import Folds, Refit, assign_folds, count_folds
from sdcmap.data.cells import joint_codes, recode_to_released_categories
from sdcmap.data.model_training import (
    EXTRA,
    Features,
    Learner,
    build_features,
    check_categories_known,
    limit_learning_threads,
)
from sdcmap.kernels.statistics.unit_errors import unit_error
from sdcmap.utility._numeric import keys_and_numbers

SHUFFLES_PER_FEATURE = 3  # to measure its importance; their spread is the standard error
SECONDS_PER_FEATURE = 4e-6  # training time of one feature of one record, for both models and their halves


class ModelComparison(NamedTuple):
    """Two models of one column, trained on the original and on the release, and the people they are tested on."""

    name: str
    learner: Learner
    models: tuple[Any, Any]  # trained on the original, on the release
    features: tuple[Features, Features]
    truth: Array
    naive: float
    units: Array  # the unit (household) of each person of the test
    halves: tuple[float, ...] = ()  # the loss of score with models that were trained on one half of the people each

    @property
    def loss(self) -> float:
        """Return the score of the model of the original minus that of the release, both at least 0."""
        before, after = (max(0.0, float(self.scores(side).mean())) for side in (0, 1))
        return before - after

    def deviations(self, side: int) -> Array:
        """Return how much each person of the test adds to the mean score of one of the models, times their number.

        The score of a number is 1 - squared error / variance, and the variance is that of the people of the test.
        """
        loss = 1 - self.scores(side)
        if not self.learner.numeric:
            return np.asarray(loss.mean() - loss)
        square = (self.truth - self.truth.mean()) ** 2
        return np.asarray(loss.mean() * square / (square.mean() or 1.0) - loss)

    def scores(self, side: int, rows: Array | None = None) -> Array:
        """Return the score of each answer of one of the models, for the test rows or for other rows."""
        features = self.features[side]
        shown = self.learner.encode_rows(features.test if rows is None else rows, features)
        return self.learner.score_predictions(self.models[side].predict(shown), self.truth)


@dataclass(frozen=True)
class _LearnedModel(Measure):
    """Base of the measures that train models.

    Parameters
    ----------
    predicts : the columns to predict, at least one: numbers by regression, categories by classification.
    on : the columns to predict from, of any kind; by default the keys and the numeric variables.
    model : "boosting", 60 rounds of gradient-boosted trees; "linear", ridge and logistic regression on single columns.
    held_out : the share of the people, in (0, 1), to test on.
    folds : the number of repetitions, each with other people held out, at least 1.
    fewest : the smallest number of people to train on and to test on, at least 5.
    method : how the file was made; a sweep or release fills it in.
    """

    axis: ClassVar[Literal["risk", "utility"]] = "utility"
    sampled: ClassVar[bool] = True
    paired: ClassVar[bool] = False
    missing: ClassVar[str] = "a category of its own (trees: of numbers too); people with a missing answer are left out"
    households: ClassVar[str] = "held out as a whole"

    trains_on_halves: ClassVar[bool] = False  # for the part of the error that is due to the people trained on

    predicts: tuple[str, ...]
    on: tuple[str, ...] = ()
    model: Literal["boosting", "linear"] = "boosting"
    held_out: Annotated[float, Range(0, 1, "()")] = 0.25
    folds: Annotated[int, Range(1)] = 1
    fewest: Annotated[int, Range(5)] = 20
    method: Method | None = field(default=None, kw_only=True)

    def problems(self) -> Iterator[str]:
        if not self.predicts:
            yield ".predicts must name at least one column."
        if self.folds > count_folds(self.held_out):
            yield f".folds must be at most {count_folds(self.held_out)}, because each fold leaves out other people."

    def for_informed_attacker(self, method: Method) -> Measure:
        return replace(self, method=method)

    def refits(self, masked: Microdata) -> Folds | None:
        needs_refits = self.method is not None and (not masked.paired or self.method.mixes_records)
        return Folds(self.folds, self.held_out) if needs_refits else None

    def variables(self, data: Microdata) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.predicts, *(self.on or keys_and_numbers(data)))))

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        yield from super().incompatibilities(data)
        for name in self.predicts:
            if name not in data.names:
                yield f"{type(self).__name__}.predicts: no column {name!r}.{did_you_mean(name, data.names)}"
            elif not self._features(data, name):
                yield f"{type(self).__name__} needs a column to predict {name!r} from."
        if find_spec("sklearn") is None:
            yield f"{type(self).__name__}: {EXTRA}."

    def seconds(self, data: Microdata) -> float | None:
        answers = [min(20, data.level_count(n)) if data.column(n).levels is not None else 1 for n in self.predicts]
        return sum(answers) * self.folds * len(data) * len(self.variables(data)) * SECONDS_PER_FEATURE

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        names = self.check_variables(original)
        if not masked.paired:
            raise Undefined("a synthetic file needs its method, to refit it without the people held out.")
        fold = assign_folds(original, self.held_out, original.schema.of_role("stratum"), rng)
        origin = np.arange(len(masked)) if masked.origin is None else masked.origin
        refits = [Refit(masked.take(np.flatnonzero(fold[origin] != k)), fold == k) for k in range(self.folds)]
        return self._compare_all(
            original, refits, rng, [recode_to_released_categories(original, masked, names)] * self.folds
        )

    def score_refits(self, original: Microdata, refits: Sequence[Refit], rng: Generator) -> Estimate:
        names = self.check_variables(original)
        recoded = [recode_to_released_categories(original, refit.released, names) for refit in refits]
        return self._compare_all(original, refits, rng, recoded)

    def _features(self, data: Microdata, name: str) -> tuple[str, ...]:
        """Return the columns to predict `name` from."""
        return tuple(other for other in self.on or keys_and_numbers(data) if other != name)

    def _compare_all(
        self, original: Microdata, refits: Sequence[Refit], rng: Generator, recoded: Sequence[Microdata]
    ) -> Estimate:
        """Return the value from every column and fold.

        recoded : the original in the categories of each release
        """
        seed = int(rng.integers(2**31))
        with limit_learning_threads():
            by_column = {
                name: [self._compare_models(original, *pair, name, seed) for pair in zip(refits, recoded, strict=True)]
                for name in self.predicts
            }
            return self._value(by_column, rng)

    def _value(self, by_column: dict[str, list[ModelComparison]], rng: Generator) -> Estimate:
        """Return the value from the model comparisons of each column. Subclasses implement it."""
        raise TypeError(f"{type(self).__name__} has no value.")

    def _compare_models(
        self, original: Microdata, refit: Refit, recoded: Microdata, name: str, seed: int
    ) -> ModelComparison:
        """Train two models of one column on the people who are not held out: from the original and from the release."""
        names, released = self._features(original, name), refit.released
        numeric = original.column(name).levels is None
        if numeric != (released.column(name).levels is None):
            raise Undefined(f"{name!r} was recoded, so a model cannot learn it from the release.")
        known = ~original.missing(name)
        outside = np.flatnonzero(refit.outside & known)
        test, as_released = original.take(outside), recoded.take(outside)
        inside = original.take(np.flatnonzero(~refit.outside & known))
        training = released.take(np.flatnonzero(~released.missing(name)))
        if min(len(test), len(inside), len(training)) < self.fewest:
            raise Undefined(f"fewer than {self.fewest} people are left to train on, or to test on.")
        check_categories_known(test, as_released, released, names)
        files = [inside, training, test]
        answers = [data.numbers(name) for data in files] if numeric else joint_codes(files, name)[0]
        features = build_features(inside, test, names), build_features(training, as_released, names)
        learner = Learner(self.model, numeric, seed)
        models = learner.fit(features[0], answers[0]), learner.fit(features[1], answers[1])
        naive = _naive(answers[0], answers[2], learner)
        comparison = ModelComparison(name, learner, models, features, answers[2], naive, original.units[outside])
        if not self.trains_on_halves:
            return comparison
        # Train again on two halves of the people, and of the released records; rows of one person are in one half.
        origin = np.arange(len(training)) if training.origin is None else training.origin
        people = (inside.origin, origin if released.paired else np.arange(len(training)))
        half_of = np.random.default_rng(seed).permutation(max(len(original), len(training))) % 2
        halves = []
        for half in (0, 1):
            rows = [np.flatnonzero(half_of[own] == half) for own in people]
            fits = zip(features, answers, rows, strict=False)
            first, second = (learner.fit(f._replace(train=f.train[own]), answer[own]) for f, answer, own in fits)
            halves.append(comparison._replace(models=(first, second)).loss)
        return comparison._replace(halves=tuple(halves))


def _naive(values: Array, truth: Array, learner: Learner) -> float:
    """Return the score of the best constant answer of the original: the mean, or the most frequent category."""
    guess = values.mean() if learner.numeric else np.bincount(values).argmax()
    return float(learner.score_predictions(np.full(len(truth), guess), truth).mean())


@dataclass(frozen=True)
class TrainOnRelease(_LearnedModel):
    """How much worse a model predicts if it is trained on the release instead of the original.

    Both models are tested on people of the original that neither has seen. The loss is what a user who trains on the
    released file gets wrong about real people.

    Formula: mean over columns of score(trained on the original) - score(trained on the release); the score is the share
        of correct categories, or the explained share of a number's variance, at least 0. `parts`: for each column the
        scores "original", "release" and "naive" (the best constant answer), and the mean loss of "classification" and
        "regression". A value below 0 is due to chance. People who are held out must not be in the training release:
        their rows are removed, or the method is refit without them if it mixes records (`mixes_records`, synthetic
        files). Recoded predictors are used in the released categories; the predicted column must not be recoded. The
        standard error is that of the people tested on and, by models of two halves, of the people trained on.
        Categories beyond the 100 most frequent are merged.
    Missing is a category of its own; people with a missing answer are left out. Weights are not used. Households are
    held out as a whole. Needs scikit-learn: pip install 'sdcmap[learn]'.
    Reference: Esteban, Hyland, Raetsch (2017), "train on synthetic, test on real".

    Examples
    --------
    >>> TrainOnRelease(predicts=["income", "works"], model="linear").text
    "TrainOnRelease(predicts=['income', 'works'], model='linear')"
    """

    label: ClassVar[str] = "Loss in prediction"
    description: ClassVar[str] = (
        "How much worse a model predicts when it is trained on the release instead of the original."
    )

    trains_on_halves: ClassVar[bool] = True
    revision: ClassVar[int] = 2  # 2: the standard error holds the people trained on, and large residuals
    unit: ClassVar[str] = "share explained or right"
    bounds: ClassVar[tuple[float | None, float | None]] = (-1.0, 1.0)

    def _value(self, by_column: dict[str, list[ModelComparison]], rng: Generator) -> Estimate:
        parts: dict[str, float] = {}
        units: list[Array] = []
        influences: list[Array] = []
        losses: dict[str, list[float]] = {}  # by kind
        for name, comparisons in by_column.items():
            before, after = (np.concatenate([comparison.scores(side) for comparison in comparisons]) for side in (0, 1))
            naive = float(np.mean([comparison.naive for comparison in comparisons]))
            scores = {"original": float(before.mean()), "release": float(after.mean()), "naive": naive}
            scores = {what: max(0.0, score) for what, score in scores.items()}
            parts |= {f"{name}: {what}": score for what, score in scores.items()}
            # a score below 0 counts as 0, so it adds nothing to the error
            signs = (before.mean() > 0) * 1.0, (after.mean() > 0) * -1.0
            for comparison in comparisons:
                deviation = sum(sign * comparison.deviations(side) for side, sign in enumerate(signs))
                influences.append(deviation / len(before) / len(by_column))
                units.append(comparison.units)
            kind = "regression" if comparisons[0].learner.numeric else "classification"
            losses.setdefault(kind, []).append(scores["original"] - scores["release"])
        parts |= {kind: float(np.mean(own)) for kind, own in losses.items()}
        value = float(np.mean([parts[f"{name}: original"] - parts[f"{name}: release"] for name in by_column]))
        of_test = unit_error(np.concatenate(units), np.concatenate(influences))
        # A half has twice the variance of the whole, so a quarter of the squared difference of two halves estimates it.
        differences = np.array([[one.halves[0] - one.halves[1] for one in own] for own in by_column.values()])
        of_training = math.sqrt(float((differences.mean(axis=0) ** 2).mean())) / 2
        # where all models answer alike, the observed error is 0
        least = 1 / len(np.unique(np.concatenate(units)))
        return Estimate(value=value, se=math.hypot(of_test, of_training) or least, parts=parts)


@dataclass(frozen=True)
class ImportanceAgreement(_LearnedModel):
    """How far a model trained on the release relies on the same columns as one trained on the original.

    Formula: mean over predicted columns of sum over features of min(a, b); a and b are the importances in the two
        models, each divided by its sum. The importance of a feature is the loss of score, at least 0, when its values
        are shuffled among the people tested on: 3 times, in the same way for both models. 1: the same columns to the
        same degree; 0: none in common. `parts`: each predicted column. Undefined if no feature helps the model of the
        original; a release in which none helps has agreement 0. People held out, recoded columns and missing values as
        in `TrainOnRelease`. The standard error is that of the shuffles. Weights are not used. Households are held out
        as a whole. Needs scikit-learn: pip install 'sdcmap[learn]'.
    Reference: Breiman (2001), section 10; Fisher, Rudin, Dominici (2019), for models of any kind.

    Examples
    --------
    >>> ImportanceAgreement(predicts="income", on=["age", "sex"]).text
    "ImportanceAgreement(predicts='income', on=['age', 'sex'])"
    """

    label: ClassVar[str] = "Same important predictors"
    description: ClassVar[str] = (
        "How far a model trained on the release relies on the same columns as one trained on the original."
    )

    unit: ClassVar[str] = "share of importance"
    direction: ClassVar[Literal["lower", "higher"]] = "higher"
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 1.0)

    def _value(self, by_column: dict[str, list[ModelComparison]], rng: Generator) -> Estimate:
        agreements = {
            name: np.concatenate([_agreements(comparison, rng) for comparison in comparisons])
            for name, comparisons in by_column.items()
        }
        known = {name: each[~np.isnan(each)] for name, each in agreements.items()}
        if not all(map(len, known.values())):
            raise Undefined("no feature helps to predict one of the columns, so it has no important features.")
        means = {name: float(each.mean()) for name, each in known.items()}
        spread = [float(np.sqrt(((each - each.mean()) ** 2).sum() + 0.01)) / len(each) for each in known.values()]
        error = float(np.hypot.reduce(spread)) / len(spread)
        return Estimate(value=float(np.mean(list(means.values()))), se=error, parts=means if len(means) > 1 else {})


def _agreements(comparison: ModelComparison, rng: Generator) -> Array:
    """Return the overlap of both models' importances in each shuffle; NaN if no feature helps the original's model."""
    lost = np.zeros((SHUFFLES_PER_FEATURE, 2, len(comparison.features[0].levels)))
    whole = [comparison.scores(side).mean() for side in (0, 1)]
    for shuffle in range(SHUFFLES_PER_FEATURE):
        order = rng.permutation(len(comparison.truth))
        for side, column in np.ndindex(2, lost.shape[2]):
            rows = comparison.features[side].test.copy()
            rows[:, column] = rows[order, column]
            lost[shuffle, side, column] = max(0.0, whole[side] - comparison.scores(side, rows).mean())
    total = lost.sum(axis=2, keepdims=True)
    shares = lost / np.where(total > 0, total, 1.0)
    return np.where(total[:, 0, 0] > 0, shares.min(axis=1).sum(axis=1), np.nan)
