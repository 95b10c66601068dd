"""Models trained on the release and tested on people of the original who were not in it."""

from __future__ import annotations

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
from sdcmap.utility._numeric import keys_and_numbers

SHUFFLES = 3  # of each feature, for its importance
STEP = 4e-6  # seconds: of one feature of one record, both models trained


class Exam(NamedTuple):
    """One column to be predicted: two models, the people whom both are asked about, and the true answers."""

    name: str
    learner: Learner
    models: tuple[Any, Any]  # trained on the original, on the release
    seen: tuple[Features, Features]
    truth: Array
    naive: float

    def score_predictions(self, side: int, rows: Array | None = None) -> Array:
        """What each answer of one of the models is worth, of the people as they are or of other rows."""
        features = self.seen[side]
        shown = self.learner.encode_rows(features.test if rows is None else rows, features)
        return self.learner.score_predictions(self.models[side].predict(shown), self.truth)


@dataclass(frozen=True)
class _LearnedModel(Measure):
    """What measures of learned models share: who is held out, and what is trained on what.

    Parameters
    ----------
    predicts : the columns to be predicted, at least one: numbers by regression, categories by classification.
    on : the columns they are predicted from, of any kind; by default the keys and the numeric variables.
    model : "boosting", 60 rounds of gradient-boosted trees; "linear", ridge and logistic regression of single
        columns.
    held_out : the share of the people, in (0, 1), who are asked about.
    folds : how often, each time with other people held out, at least 1.
    fewest : people needed to train on and to test with, at least 5.
    method : how the file was made; a sweep and a release fill it in.
    """

    axis: ClassVar[Literal["risk", "utility"]] = "utility"
    sampled: ClassVar[bool] = True
    paired: ClassVar[bool] = False
    missing: ClassVar[str] = "a category of its own, a number by trees too; whose answer is missing is left out"
    households: ClassVar[str] = "held out whole"

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
            yield f".folds must be at most {count_folds(self.held_out)}, for each leaves other people out."

    def for_informed_attacker(self, method: Method) -> Measure:
        return replace(self, method=method)

    def refits(self, masked: Microdata) -> Folds | None:
        moves = self.method is not None and (not masked.paired or self.method.mixes_records)
        return Folds(self.folds, self.held_out) if moves else None

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
        return sum(answers) * self.folds * len(data) * len(self.variables(data)) * STEP

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        names = self.check_variables(original)
        if not masked.paired:
            raise Undefined("a synthetic file needs the method that made it, to make it without the people held out.")
        fold = assign_folds(original, self.held_out, original.schema.of_role("stratum"), rng)
        came = np.arange(len(masked)) if masked.origin is None else masked.origin
        refits = [Refit(masked.take(np.flatnonzero(fold[came] != k)), fold == k) for k in range(self.folds)]
        return self._graded(
            original, refits, rng, [recode_to_released_categories(original, masked, names)] * self.folds
        )

    def score_refits(self, original: Microdata, refits: Sequence[Refit], rng: Generator) -> Estimate:
        names = self.check_variables(original)
        asked = [recode_to_released_categories(original, making.released, names) for making in refits]
        return self._graded(original, refits, rng, asked)

    def _features(self, data: Microdata, name: str) -> tuple[str, ...]:
        return tuple(other for other in self.on or keys_and_numbers(data) if other != name)

    def _graded(
        self, original: Microdata, refits: Sequence[Refit], rng: Generator, asked: Sequence[Microdata]
    ) -> Estimate:
        """The value from every column and fold; `asked`: the original in the categories of each release."""
        seed = int(rng.integers(2**31))
        with limit_learning_threads():
            sittings = {
                name: [self._exam(original, *pair, name, seed) for pair in zip(refits, asked, strict=True)]
                for name in self.predicts
            }
            return self._value(sittings, rng)

    def _value(self, sittings: dict[str, list[Exam]], rng: Generator) -> Estimate:
        raise TypeError(f"{type(self).__name__} has no value.")

    def _exam(self, original: Microdata, making: Refit, asked: Microdata, name: str, seed: int) -> Exam:
        """Two models of one column, trained on the people inside: as the original has them, and as they were released."""
        names, released = self._features(original, name), making.released
        numeric = original.column(name).levels is None
        if numeric != (released.column(name).levels is None):
            raise Undefined(f"{name!r} was recoded, so that nobody can learn it from the release.")
        known = ~original.missing(name)
        outside = np.flatnonzero(making.outside & known)
        test, as_released = original.take(outside), asked.take(outside)
        inside = original.take(np.flatnonzero(~making.outside & known))
        told = released.take(np.flatnonzero(~released.missing(name)))
        if min(len(test), len(inside), len(told)) < self.fewest:
            raise Undefined(f"fewer than {self.fewest} people are left to train on, or to test with.")
        check_categories_known(test, as_released, released, names)
        files = [inside, told, test]
        answers = [data.numbers(name) for data in files] if numeric else joint_codes(files, name)[0]
        seen = build_features(inside, test, names), build_features(told, as_released, names)
        learner = Learner(self.model, numeric, seed)
        models = learner.fit(seen[0], answers[0]), learner.fit(seen[1], answers[1])
        return Exam(name, learner, models, seen, answers[2], _naive(answers[0], answers[2], learner))


def _naive(seen: Array, truth: Array, learner: Learner) -> float:
    """The worth of one answer for everybody: the mean, or the most frequent category, of the original."""
    guess = seen.mean() if learner.numeric else np.bincount(seen).argmax()
    return float(learner.score_predictions(np.full(len(truth), guess), truth).mean())


@dataclass(frozen=True)
class TrainOnRelease(_LearnedModel):
    """How much worse a model predicts when it was trained on the release instead of the original.

    Both models are asked about people of the original whom neither has seen: what a user who trains on the released file
    gets wrong in the world.

    Formula: mean over columns of score(trained on the original) - score(trained on the release), the score being the share
        of right categories, or the share of the variance of a number that is explained, at least 0. `parts`: of each
        column the scores "original" and "release", and "naive", that of the best single answer, and "classification",
        "regression", the mean loss of either kind. Below 0 is chance.
    People held out are not in the release that trains: their rows are left out, and where values are dealt out among
    records or drawn from a model (`mixes_records`, synthetic files) the method is refit without them. A recoded column is
    asked about in the categories of the release; one that is predicted must be as it was. The standard error is that of
    the people asked about. Categories beyond the 100 most frequent are one.
    Missing is a category of its own; people whose answer is missing are left out. Weights are not used. Households are
    held out whole. Needs scikit-learn: pip install 'sdcmap[learn]'.
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

    unit: ClassVar[str] = "share explained or right"
    bounds: ClassVar[tuple[float | None, float | None]] = (-1.0, 1.0)

    def _value(self, sittings: dict[str, list[Exam]], rng: Generator) -> Estimate:
        parts: dict[str, float] = {}
        errors: list[float] = []
        losses: dict[str, list[float]] = {}  # by kind
        for name, exams in sittings.items():
            before, after = (np.concatenate([exam.score_predictions(side) for exam in exams]) for side in (0, 1))
            naive = float(np.mean([exam.naive for exam in exams]))
            scores = {"original": float(before.mean()), "release": float(after.mean()), "naive": naive}
            told = {what: max(0.0, score) for what, score in scores.items()}
            parts |= {f"{name}: {what}": score for what, score in told.items()}
            lost = np.clip(before, 0, 1) - np.clip(after, 0, 1)
            errors.append(float(np.sqrt(((lost - lost.mean()) ** 2).sum() + 1)) / len(lost))
            kind = "regression" if exams[0].learner.numeric else "classification"
            losses.setdefault(kind, []).append(told["original"] - told["release"])
        parts |= {kind: float(np.mean(own)) for kind, own in losses.items()}
        value = float(np.mean([parts[f"{name}: original"] - parts[f"{name}: release"] for name in sittings]))
        return Estimate(value=value, se=float(np.hypot.reduce(errors)) / len(errors), parts=parts)


@dataclass(frozen=True)
class ImportanceAgreement(_LearnedModel):
    """How far a model that was trained on the release leans on the same columns as one trained on the original.

    Formula: mean over predicted columns of sum over features of min(a, b); a and b are the importances in the two models,
        each over its sum. The importance of a feature is what the score loses, at least 0, when its values are shuffled
        among the people asked about: 3 times, the same way for both models. 1: the same columns to the same degree; 0:
        none in common. `parts`: each column's own. Undefined where no feature helps the model of the original; a release
        of which none helps agrees by 0.
    People held out, recoded columns and missing values as for `TrainOnRelease`. The standard error is that of the
    shuffles. Weights are not used. Households are held out whole. Needs scikit-learn: pip install 'sdcmap[learn]'.
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

    def _value(self, sittings: dict[str, list[Exam]], rng: Generator) -> Estimate:
        agreed = {name: np.concatenate([_agreements(exam, rng) for exam in exams]) for name, exams in sittings.items()}
        known = {name: each[~np.isnan(each)] for name, each in agreed.items()}
        if not all(map(len, known.values())):
            raise Undefined("no column helps to predict one that was asked for, so that none is important.")
        means = {name: float(each.mean()) for name, each in known.items()}
        spread = [float(np.sqrt(((each - each.mean()) ** 2).sum() + 0.01)) / len(each) for each in known.values()]
        error = float(np.hypot.reduce(spread)) / len(spread)
        return Estimate(value=float(np.mean(list(means.values()))), se=error, parts=means if len(means) > 1 else {})


def _agreements(exam: Exam, rng: Generator) -> Array:
    """The overlap of both models' importances in each shuffle; NaN where the original's model needs no feature."""
    lost = np.zeros((SHUFFLES, 2, len(exam.seen[0].levels)))
    whole = [exam.score_predictions(side).mean() for side in (0, 1)]
    for shuffle in range(SHUFFLES):
        order = rng.permutation(len(exam.truth))
        for side, place in np.ndindex(2, lost.shape[2]):
            rows = exam.seen[side].test.copy()
            rows[:, place] = rows[order, place]
            lost[shuffle, side, place] = max(0.0, whole[side] - exam.score_predictions(side, rows).mean())
    total = lost.sum(axis=2, keepdims=True)
    shares = lost / np.where(total > 0, total, 1.0)
    return np.where(total[:, 0, 0] > 0, shares.min(axis=1).sum(axis=1), np.nan)
