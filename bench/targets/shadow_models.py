"""Target: the stated membership of outlying people is within 0.05 of an independent attack with shadow models.

Stated is `OutlierMembership` as a release measures it. The attack makes releases of its own, each with a random half of the
same people, and describes each release from the view of each person: distances, gaps, counts and extremes. It
standardizes the descriptions of a person over the releases, and learns who was in by logistic regression, boosted trees, or
linear discriminants of each person. It judges releases that it has not learned from. It shares no code with the measure,
except that it attacks the same people. Three made files, the default synthetic method and a masking method.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import polars as pl

import sdcmap as sm
from made_files import FILES, METHODS, MadeFile
from resumable_runs import Facts, Figure, Target, main, mean_band
from sdcmap.bundle.limit_checks import score_file
from sdcmap.core import Stream
from sdcmap.risk import OutlierMembership
from sdcmap.risk._outlying_units import OutlyingUnits

ROWS = {"incomes": 600, "businesses": 600, "households": 1_200}  # households are left out as a whole
SHADOWS = 200  # releases that the attacker makes
FOLDS = 5  # of the releases; a fold is judged by what was learned on the others
COPIES = 8  # made files for each cell of the table
MAX_DIFFERENCE = 0.05
SHRINK = 20.0  # releases that the mean of all people counts for, in a person's own discriminant
LEARNER_SEED = 1
CASES = tuple(itertools.product(FILES, METHODS))
Learner = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def run(number: int, seed: int, shadows: int = SHADOWS) -> Facts:
    """Return the stated and the attacked membership of the outlying people of one made file."""
    file, method_name = CASES[number % len(CASES)]
    data = file.read(file.frame(ROWS[file.name], np.random.default_rng(seed)))
    method = METHODS[method_name](data)
    measure = OutlierMembership(on=data.knowable)
    stream = Stream.of_seed(seed, "stated")
    (row,) = score_file([measure], data, method.apply(data, stream), stream.child("scores"), method)
    if row.value is None:
        raise ValueError(f"OutlierMembership has no value: {row.reason}")
    attacked = attack(file, data, method, measure, seed, shadows)
    return {"file": file.name, "method": method_name, "stated": row.value, "se": row.se, **attacked}


# ---- the releases of the attacker -----------------------------------------------------------------------------
def attack(
    file: MadeFile, data: sm.Microdata, method: sm.Method, measure: OutlierMembership, seed: int, shadows: int
) -> Facts:
    """Make releases with a random half of the people, and return the area under the curve of the attack."""
    people = OutlyingUnits(measure.on, measure.share, measure.fewest, measure.most).targets(data)
    original, rng = to_table(file, data), np.random.default_rng([seed, 1])
    household = original[file.roles["household"]] if "household" in file.roles else np.arange(len(data))
    view = PersonView(original, people, file)
    # exactly half of the people are in each release, so that its number of records does not tell who is in
    inside = np.array([rng.permutation(len(people)) < len(people) // 2 for _ in range(shadows)])
    described = []
    for number in range(shadows):
        left_out = np.isin(household, household[people[~inside[number]]])
        part = data.take(np.flatnonzero(~left_out))
        released = method.apply(sm.Microdata(part.schema, part.columns), Stream.of_seed(seed, f"shadow {number}"))
        described.append(view.describe(to_table(file, released)))
    return judge(np.stack(described), inside)


def to_table(file: MadeFile, data: sm.Microdata) -> dict[str, np.ndarray]:
    """Return the columns of a file: amounts as numbers, all others as text, missing as "" or NaN."""
    frame = data.frame()
    amounts = {name: frame[name].cast(pl.Float64).fill_null(np.nan).to_numpy() for name in file.roles["numeric"]}
    texts = [name for name in frame.columns if name in (*file.roles["keys"], file.roles.get("household"))]
    return amounts | {name: frame[name].cast(pl.String).fill_null("").to_numpy().astype(str) for name in texts}


class PersonView:
    """Describes a released file from the view of each attacked person, who knows their own values."""

    def __init__(self, original: dict[str, np.ndarray], people: np.ndarray, file: MadeFile) -> None:
        self.keys, self.amounts = list(file.roles["keys"]), list(file.roles["numeric"])
        self.own = {name: values[people] for name, values in original.items()}
        self.sorted = {name: np.sort(original[name][np.isfinite(original[name])]) for name in self.amounts}
        spread = {name: np.quantile(values, [0.25, 0.5, 0.75]) for name, values in self.sorted.items()}
        self.scale = {
            name: (q[1], q[2] - q[0] or max(1.0, float(self.sorted[name].std()))) for name, q in spread.items()
        }

    def describe(self, released: dict[str, np.ndarray]) -> np.ndarray:
        """Return the descriptions (columns) of a release for each person (rows)."""
        equal = {name: self.own[name][:, np.newaxis] == released[name] for name in self.keys}
        logs = {name: (self._log(name, self.own[name])[:, np.newaxis], self._log(name, released[name]))
                for name in self.amounts}  # fmt: skip
        gaps = {name: np.abs(own - other) for name, (own, other) in logs.items()}
        ranks = sum(
            np.abs(self._rank(name, self.own[name])[:, np.newaxis] - self._rank(name, released[name]))
            for name in self.amounts
        )
        mismatches = len(self.keys) - sum(match.astype(float) for match in equal.values())
        everything, nearby = np.sort(mismatches + ranks, axis=1), np.sort(ranks, axis=1)
        features = [
            everything[:, 0], everything[:, 1], everything[:, :5].mean(axis=1), everything[:, :25].mean(axis=1),
            nearby[:, 0], nearby[:, :5].mean(axis=1), np.sqrt((mismatches == 0).sum(axis=1)),
            np.sqrt((mismatches <= 1).sum(axis=1)),
        ]  # fmt: skip
        for name in self.amounts:
            own, other = logs[name]
            high, gap = own >= 0, np.sort(gaps[name], axis=1)
            beyond = np.where(high, other >= own, other <= own)
            extreme = np.where(high[:, 0], np.nanmax(other), -np.nanmin(other))
            features += [gap[:, 0], np.sqrt((gap < 0.1).sum(axis=1)), np.sqrt(beyond.sum(axis=1)), extreme]
        features += [np.sqrt(match.sum(axis=1)) for match in equal.values()]
        features += [np.sqrt((equal[a] & equal[b]).sum(axis=1)) for a, b in itertools.combinations(self.keys, 2)]
        return np.asarray(np.nan_to_num(np.column_stack(features), nan=-1.0))

    def _log(self, name: str, values: np.ndarray) -> np.ndarray:
        """Return the numbers on a logarithmic scale from the median on, in both directions."""
        center, width = self.scale[name]
        return np.asarray(np.arcsinh((values - center) / width))

    def _rank(self, name: str, values: np.ndarray) -> np.ndarray:
        """Return the rank of numbers in the original, from 0 to 1; missing numbers are below all others."""
        rank = np.searchsorted(self.sorted[name], values) / len(self.sorted[name])
        return np.asarray(np.where(np.isnan(values), -1.0, rank))


# ---- who was in -----------------------------------------------------------------------------------------------
def judge(described: np.ndarray, inside: np.ndarray) -> Facts:
    """Return the area under the curve, over folds of the releases, of the learner that is best on other releases.

    described : by release, person and feature. inside : who (columns) was in which release (rows).
    """
    center, spread = described.mean(axis=0), described.std(axis=0)
    x = np.where(spread > 0, (described - center) / np.where(spread > 0, spread, 1.0), 0.0)
    fold = np.arange(len(x)) % FOLDS
    areas, names = [], []
    for k in range(FOLDS):
        learn, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        # which learner to use is decided on a quarter of the releases to learn from
        fit, check = learn[learn // FOLDS % 4 != 0], learn[learn // FOLDS % 4 == 0]
        success = {
            name: area_under_curve(learner(x[fit], inside[fit], x[check]), inside[check])
            for name, learner in LEARNERS.items()
        }
        best = max(success, key=lambda name: success[name])
        areas.append(area_under_curve(LEARNERS[best](x[learn], inside[learn], x[test]), inside[test]))
        names.append(best)
    common = max(set(names), key=names.count)
    return {"attacked": float(np.mean(areas)), "learner": common, "people": x.shape[1]}


def regress(x: np.ndarray, inside: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Return scores by one logistic regression for all people."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=0.1, max_iter=500).fit(x.reshape(-1, x.shape[2]), inside.ravel())
    return np.asarray(model.decision_function(new.reshape(-1, x.shape[2])).reshape(new.shape[:2]))


def boost(x: np.ndarray, inside: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Return scores by gradient-boosted trees for all people."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    model = HistGradientBoostingClassifier(max_iter=60, max_leaf_nodes=8, random_state=LEARNER_SEED)
    model.fit(x.reshape(-1, x.shape[2]), inside.ravel())
    return np.asarray(model.predict_proba(new.reshape(-1, x.shape[2]))[:, 1].reshape(new.shape[:2]))


def discriminate(x: np.ndarray, inside: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Return scores by a linear discriminant for each person, whose mean differences are shrunk towards those of all."""
    groups = [inside[..., np.newaxis], ~inside[..., np.newaxis]]
    means = [(x * group).sum(axis=0) / np.maximum(group.sum(axis=0), 1) for group in groups]
    within = x - np.where(groups[0], means[0], means[1])
    flat = within.reshape(-1, x.shape[2])
    covariance = flat.T @ flat / len(flat) + 0.1 * np.eye(x.shape[2])
    difference, count = means[0] - means[1], len(x) / 2
    difference = (count * difference + SHRINK * difference.mean(axis=0)) / (count + SHRINK)
    weights = np.linalg.solve(covariance, difference.T).T
    return np.asarray(((new - (means[0] + means[1]) / 2) * weights).sum(axis=2))


LEARNERS: dict[str, Learner] = {"regression": regress, "trees": boost, "discriminants": discriminate}


def area_under_curve(scores: np.ndarray, inside: np.ndarray) -> float:
    """Return P(score in > score out) + P(equal) / 2 over all people and releases."""
    from scipy.stats import rankdata

    ranks, members = rankdata(scores.ravel()), inside.ravel()
    count, others = members.sum(), (~members).sum()
    return float((ranks[members].sum() - count * (count + 1) / 2) / (count * others))


# ---- the figures ----------------------------------------------------------------------------------------------
def find_figures(lines: Sequence[Facts]) -> Iterator[Figure]:
    """Yield how far the attack is from what is stated, in the mean over the made files of each cell."""
    for file, method in CASES:
        own = [line for line in lines if (line["file"], line["method"]) == (file.name, method)]
        if not own:
            continue
        gaps = [line["attacked"] - line["stated"] for line in own]
        low, high = mean_band(gaps)
        value = abs(float(np.mean(gaps)))
        stated, attacked = (np.mean([line[name] for line in own]) for name in ("stated", "attacked"))
        band = (max(0.0, low, -high), max(high, -low))
        note = f"stated {stated:.3f}, attacked {attacked:.3f}"
        yield Figure(f"{file.name}, {method}: difference", value, band, MAX_DIFFERENCE, len(own), note)


TARGET = Target(__doc__, run, find_figures, COPIES * len(CASES))

if __name__ == "__main__":
    raise SystemExit(main(TARGET))
