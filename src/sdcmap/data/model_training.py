"""Models that are trained on one file and asked about another: features, fitting, and what each answer was worth."""

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

EXTRA = "models that learn need: pip install 'sdcmap[learn]'"
MOST_LEVELS = 100  # of a feature; rarer categories of the file that trains are one
TREES = 60  # rounds of boosting
RIDGE = 1.0
MOST_UNTOLD = 0.05  # of the people who are asked about


@contextmanager
def learning() -> Iterator[None]:
    """One thread for all that learns in this block, as for every task; MissingExtra without scikit-learn."""
    try:
        import sklearn.ensemble  # noqa: F401  before the limit, so that its threads are seen
    except ImportError:
        raise MissingExtra(EXTRA) from None
    with threadpool_limits(1):
        yield


class Features(NamedTuple):
    """Features of two files in the same terms: numbers, and codes of categories from 0 on, with their number a column."""

    train: Array
    test: Array
    levels: tuple[int, ...]  # 0: a number


def features_of(train: Microdata, test: Microdata, names: tuple[str, ...]) -> Features:
    """Both files by these columns; a category of the released file that nobody has is like any other."""
    columns, levels = [], []
    for name in names:
        pair = [data.column(name).levels is None for data in (train, test)]
        if all(pair):
            columns.append((train.numbers(name), test.numbers(name)))
            levels.append(0)
        elif any(pair):
            raise Undefined(f"{name!r} is a number in one file and a category in the other, and nobody can tell which.")
        else:
            (mine, theirs), count = joint_codes([train, test], name)
            kept = _most_frequent(mine, count)
            columns.append((kept[mine], kept[theirs]))
            levels.append(int(kept.max()) + 1)
    both = [np.column_stack([pair[side] for pair in columns]).astype(np.float64) for side in (0, 1)]
    return Features(both[0], both[1], tuple(levels))


def check_told(people: Microdata, asked: Microdata, released: Microdata, names: tuple[str, ...]) -> None:
    """Undefined where the released category of too many of these people cannot be told, or labels of the release are of
    several depths; asked: the same people in the categories of the release."""
    for name in names:
        untold = float((asked.missing(name) & ~people.missing(name)).mean())
        if max(untold, _strange(asked, released, name)) > MOST_UNTOLD:
            raise Undefined(f"{name!r} was recoded, and nobody can say into which category people would go.")


def _strange(asked: Microdata, released: Microdata, name: str) -> float:
    """The share of released records with a category that is none of the people's."""
    ours, theirs = asked.column(name).levels, released.column(name).levels
    if ours is None or theirs is None:
        return 0.0
    known = {None if level is None else str(level) for level in (*ours.to_list(), None)}
    strange = np.array([level is not None and str(level) not in known for level in theirs.to_list()], dtype=np.bool_)
    return float(strange[released.column(name).values].mean())


def _most_frequent(codes: Array, count: int) -> Array:
    """New codes: those of the most frequent categories, and one for all others."""
    order = np.argsort(-np.bincount(codes, minlength=count), kind="stable")
    kept = np.full(count, min(count, MOST_LEVELS) - 1, dtype=np.int64)
    kept[order[: MOST_LEVELS - 1]] = np.arange(min(count, MOST_LEVELS - 1))
    return kept


class Model(Protocol):
    """What was learned."""

    def predict(self, rows: Array) -> Array: ...


@dataclass(frozen=True)
class Learner:
    """How a model is trained: gradient-boosted trees or a linear model, of a number or of a category."""

    model: str
    numeric: bool
    seed: int

    def fitted(self, features: Features, truth: Array) -> Model:
        """A model with `predict`, of rows as `shown` gives them."""
        learner = self._made(features, constant=not self.numeric and len(np.unique(truth)) < 2)
        model: Model = learner.fit(self.shown(features.train, features), truth)
        return model

    def shown(self, rows: Array, features: Features) -> Array:
        """Rows as the model wants them: as they are for trees; numbers in standard deviations and categories as
        indicators for a linear model, a missing number at the mean."""
        if self.model == "boosting":
            return rows
        parts = []
        for place, count in enumerate(features.levels):
            if count:
                parts.append(rows[:, [place]] == np.arange(count))
                continue
            known = features.train[:, place][np.isfinite(features.train[:, place])]
            mean, spread = (known.mean(), known.std() or 1.0) if len(known) else (0.0, 1.0)
            parts.append(np.nan_to_num((rows[:, [place]] - mean) / spread))
        return np.hstack(parts).astype(np.float64)

    def chances(self, model: Model, rows: Array, count: int) -> Array:
        """The probability of each category from 0 to count - 1, for rows as `shown` gives them; 0 of one that the training
        file lacks."""
        found, classifier = np.zeros((len(rows), count)), cast(Any, model)
        found[:, classifier.classes_.astype(np.int64)] = classifier.predict_proba(rows)
        return found

    def _made(self, features: Features, *, constant: bool) -> Any:
        """An untrained model; constant: of a file with one answer."""
        from sklearn import dummy, ensemble, linear_model

        if constant:
            return dummy.DummyClassifier()
        if self.model == "linear":
            return linear_model.Ridge(RIDGE) if self.numeric else linear_model.LogisticRegression(max_iter=1000)
        kind = ensemble.HistGradientBoostingRegressor if self.numeric else ensemble.HistGradientBoostingClassifier
        marked = np.array(features.levels) > 0 if any(features.levels) else None
        return kind(max_iter=TREES, early_stopping=False, categorical_features=marked, random_state=self.seed)

    def worth(self, predicted: Array, truth: Array) -> Array:
        """What each answer was worth, at most 1: right or wrong; of a number 1 less its squared error over the variance."""
        if not self.numeric:
            return np.asarray(predicted == truth, dtype=np.float64)
        return np.asarray(1 - (predicted - truth) ** 2 / (truth.var() or 1.0))
