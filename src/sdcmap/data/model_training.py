"""Train models on one file and test them on another: features, fitting, and the score of each prediction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, cast

import numpy as np
from threadpoolctl import threadpool_limits

from sdcmap.data.cells import joint_codes
from sdcmap.data.microdata import Microdata
from sdcmap.errors import MissingExtra, Undefined
from sdcmap.kernels.arrays import Array

EXTRA = "this measure trains models: install the extra with pip install 'sdcmap[learn]'"
MAX_FEATURE_LEVELS = 100  # categories of a feature; the rarer ones of the training file are merged
BOOSTING_ROUNDS = 60  # trees of a boosted model: enough on files of a few thousand records, and fast
RIDGE_PENALTY = 1.0
MAX_UNKNOWN_SHARE = 0.05  # of the people in the test, whose released category may be unknown


@contextmanager
def limit_learning_threads() -> Iterator[None]:
    """Limit training in this block to one thread, as every task is; MissingExtra without scikit-learn."""
    try:
        import sklearn.ensemble  # noqa: F401  imported before the limit, so that the limit covers its threads
    except ImportError:
        raise MissingExtra(EXTRA) from None
    with threadpool_limits(1):
        yield


class Features(NamedTuple):
    """Features of two files in the same coding: numbers, and category codes from 0 on.

    levels : the number of categories of each column, 0 for a number.
    """

    train: Array
    test: Array
    levels: tuple[int, ...]


def build_features(train: Microdata, test: Microdata, names: tuple[str, ...]) -> Features:
    """Return the features of both files, coded together so that equal categories have equal codes."""
    columns, levels = [], []
    for name in names:
        pair = [data.column(name).levels is None for data in (train, test)]
        if all(pair):
            columns.append((train.numbers(name), test.numbers(name)))
            levels.append(0)
        elif any(pair):
            raise Undefined(
                f"{name!r} is a number in one file and a category in the other, so the two cannot be compared."
            )
        else:
            (mine, theirs), count = joint_codes([train, test], name)
            recode = _merge_rare(mine, count)
            columns.append((recode[mine], recode[theirs]))
            levels.append(int(recode.max()) + 1)
    both = [np.column_stack([pair[side] for pair in columns]).astype(np.float64) for side in (0, 1)]
    return Features(both[0], both[1], tuple(levels))


def check_categories_known(people: Microdata, asked: Microdata, released: Microdata, names: tuple[str, ...]) -> None:
    """Raise Undefined if the released category of too many people is unknown.

    people : the people of the test. asked : the same people in the categories of the release.
    """
    for name in names:
        unknown = float((asked.missing(name) & ~people.missing(name)).mean())
        if max(unknown, _unknown_category_share(asked, released, name)) > MAX_UNKNOWN_SHARE:
            raise Undefined(
                f"{name!r} was recoded, and the release does not show which category each value belongs to."
            )


def _unknown_category_share(asked: Microdata, released: Microdata, name: str) -> float:
    """Return the share of released records with a category that no person in the test has."""
    ours, theirs = asked.column(name).levels, released.column(name).levels
    if ours is None or theirs is None:
        return 0.0
    known = {None if level is None else str(level) for level in (*ours.to_list(), None)}
    unknown = np.array([level is not None and str(level) not in known for level in theirs.to_list()], dtype=np.bool_)
    return float(unknown[released.column(name).values].mean())


def _merge_rare(codes: Array, count: int) -> Array:
    """Return new codes: one for each of the most frequent categories, and one for all others together."""
    # Rank categories by frequency in the training file; ties keep the order of codes.
    order = np.argsort(-np.bincount(codes, minlength=count), kind="stable")
    recode = np.full(count, min(count, MAX_FEATURE_LEVELS) - 1, dtype=np.int64)
    recode[order[: MAX_FEATURE_LEVELS - 1]] = np.arange(min(count, MAX_FEATURE_LEVELS - 1))
    return recode


class Model(Protocol):
    """A trained model."""

    def predict(self, rows: Array) -> Array: ...


@dataclass(frozen=True)
class Learner:
    """How to train a model: gradient-boosted trees or a linear model, for a number or a category."""

    model: str
    numeric: bool
    seed: int

    def fit(self, features: Features, truth: Array) -> Model:
        """Return a model trained on `truth`; it predicts rows encoded by `encode_rows`."""
        learner = self._build_model(features, constant=not self.numeric and len(np.unique(truth)) < 2)
        model: Model = learner.fit(self.encode_rows(features.train, features), truth)
        return model

    def encode_rows(self, rows: Array, features: Features) -> Array:
        """Return rows as the model needs them.

        Trees take them unchanged. A linear model takes standardized numbers, with missing ones at the mean, and an
        indicator for each category.
        """
        if self.model == "boosting":
            return rows
        parts = []
        for column, count in enumerate(features.levels):
            if count:
                parts.append(rows[:, [column]] == np.arange(count))
                continue
            known = features.train[:, column][np.isfinite(features.train[:, column])]
            mean, spread = (known.mean(), known.std() or 1.0) if len(known) else (0.0, 1.0)
            parts.append(np.nan_to_num((rows[:, [column]] - mean) / spread))
        return np.hstack(parts).astype(np.float64)

    def probabilities(self, model: Model, rows: Array, count: int) -> Array:
        """Return the probability of each category from 0 to count - 1, for rows encoded by `encode_rows`.

        A category that does not occur in the training file has probability 0.
        """
        result, classifier = np.zeros((len(rows), count)), cast(Any, model)
        result[:, classifier.classes_.astype(np.int64)] = classifier.predict_proba(rows)
        return result

    def _build_model(self, features: Features, *, constant: bool) -> Any:
        """Return an untrained model; `constant`: the training file has only one category."""
        from sklearn import dummy, ensemble, linear_model

        if constant:
            return dummy.DummyClassifier()
        if self.model == "linear":
            return linear_model.Ridge(RIDGE_PENALTY) if self.numeric else linear_model.LogisticRegression(max_iter=1000)
        kind = ensemble.HistGradientBoostingRegressor if self.numeric else ensemble.HistGradientBoostingClassifier
        categorical = np.array(features.levels) > 0 if any(features.levels) else None
        return kind(
            max_iter=BOOSTING_ROUNDS, early_stopping=False, categorical_features=categorical, random_state=self.seed
        )

    def score_predictions(self, predicted: Array, truth: Array) -> Array:
        """Return the score of each prediction: 1 or 0 for a category, 1 - squared error / variance for a number."""
        if not self.numeric:
            return np.asarray(predicted == truth, dtype=np.float64)
        return np.asarray(1 - (predicted - truth) ** 2 / (truth.var() or 1.0))
