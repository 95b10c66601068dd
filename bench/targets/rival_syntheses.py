"""Target: at the same risk, the synthetic files of a starting plan lose no more than those of other tools.

Each run takes one file and one seed, divides its people into members and outsiders at random, and gives the members to
every family of syntheses at five strengths: regressions in trees (the package), CART by scikit-learn, a Gaussian copula and
arfpy, where it is installed. All families get the same file, whose extremes `ProtectTails` has replaced.

Risk is the success of an attacker that shares no code with the package: it tells members from outsiders among the most
outlying people by the distance to the nearest synthetic record (area under the ROC curve). Loss is the error of users'
analyses. The curves of risk and loss by strength are means over the seeds of a file; the loss of a family is read where its
risk reaches the limit, or at its weakest strength if it stays below. A family above the limit at every strength cannot
reach it. Bands are of a bootstrap over seeds, which all families share.
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

import sdcmap as sm
from kept_relations import CASES, ROWS
from resumable_runs import BAND_DRAWS, Facts, Figure, Target, main
from sdcmap.core import Stream
from sdcmap.utility import AnalysisError

SEEDS_PER_FILE = 10
OUTLYING_SHARE = 0.2  # of the members, and of the outsiders, that are attacked
NEIGHBORS = 5  # a person is outlying who is far from the fifth nearest other person
RISK_LIMIT = 0.55  # area under the ROC curve; 0.5 is guessing
MAX_CLASSES = 12  # a number with fewer distinct values is drawn as a category by CART
ARF_TREES = 20
FEWEST_BETTER = 3  # files on which the mean loss must be smaller than that of each rival
Rng = np.random.Generator


# ---- a file as columns of numbers ---------------------------------------------------------------------------------
class Coded:
    """A table as numbers: amounts as they are, categories as codes, and which columns are which."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self.frame, self.names = frame, frame.columns
        self.levels = {
            name: None if frame[name].dtype.is_numeric() else frame[name].unique().sort() for name in self.names
        }
        self.values = np.column_stack([self._codes(name) for name in self.names])

    def _codes(self, name: str) -> np.ndarray:
        levels = self.levels[name]
        if levels is None:
            return self.frame[name].cast(pl.Float64).to_numpy()
        return (
            self.frame[name].replace_strict(levels, pl.int_range(len(levels), eager=True)).cast(pl.Float64).to_numpy()
        )

    @property
    def is_category(self) -> np.ndarray:
        return np.array([self.levels[name] is not None for name in self.names])

    def decode(self, values: np.ndarray) -> pl.DataFrame:
        """Return a table of such numbers, with the types of this one."""
        columns = {}
        for name, column in zip(self.names, values.T, strict=True):
            levels, dtype = self.levels[name], self.frame.schema[name]
            if levels is None:
                columns[name] = pl.Series(column.round() if dtype.is_integer() else column).cast(dtype)
            else:
                columns[name] = levels.gather(column.astype(np.int64))
        return pl.DataFrame(columns)


def fill_gaps(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the table without missing values, which other tools do not take: by a category, or the median."""
    numbers = pl.selectors.numeric()
    return frame.with_columns(numbers.fill_null(numbers.median()), (~numbers).cast(pl.String).fill_null("missing"))


# ---- the families -------------------------------------------------------------------------------------------------
def by_regressions(data: sm.Microdata, leaf: int, seed: int) -> pl.DataFrame:
    """Return a file as the starting plan makes it: columns with few categories first, amounts last."""
    numbers = [name for name in data.names if name in data.numeric]
    few_first = sorted((name for name in data.names if name not in numbers), key=data.level_count)
    method = sm.Synthesize((*few_first, *numbers), model="regressions", leaf=leaf)
    return method.apply(data, Stream.of_seed(seed, f"ours {leaf}")).frame()


def by_cart(data: sm.Microdata, leaf: int, seed: int) -> pl.DataFrame:
    """Return a file drawn column by column from the leaves of trees of scikit-learn."""
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    coded, rng = Coded(data.frame()), np.random.default_rng([seed, leaf, 1])
    rows, count = coded.values.shape
    distinct = [len(np.unique(column)) for column in coded.values.T]
    is_code = coded.is_category | (np.array(distinct) < MAX_CLASSES)
    order = sorted(range(count), key=lambda j: (not is_code[j], distinct[j]))
    drawn = np.empty((rows, count))
    for place, j in enumerate(order):
        y = coded.values[:, j]
        if place == 0:
            drawn[:, j] = rng.choice(y, rows)
            continue
        before = order[:place]
        kind = DecisionTreeClassifier if is_code[j] else DecisionTreeRegressor
        tree = kind(min_samples_leaf=leaf, random_state=seed)
        fitted, asked = (_one_hot(values[:, before], coded, before) for values in (coded.values, drawn))
        labels = np.unique(y, return_inverse=True)[1] if is_code[j] else y
        own = tree.fit(fitted, labels).apply(fitted)
        by_leaf = {node: y[own == node] for node in np.unique(own).tolist()}
        drawn[:, j] = [rng.choice(by_leaf[node]) for node in tree.apply(asked).tolist()]
    return coded.decode(drawn)


def _one_hot(values: np.ndarray, coded: Coded, columns: Sequence[int]) -> np.ndarray:
    """Return categories as indicators, because trees of scikit-learn split by numbers."""
    parts = []
    for column, j in zip(values.T, columns, strict=True):
        levels = coded.levels[coded.names[j]]
        parts += [column] if levels is None else [column == code for code in range(len(levels))]
    return np.column_stack(parts).astype(np.float64)


def by_copula(data: sm.Microdata, share: float, seed: int) -> pl.DataFrame:
    """Return a file of a Gaussian copula whose correlations are this share of those of the file."""
    from scipy.special import ndtr, ndtri

    coded, rng = Coded(data.frame()), np.random.default_rng([seed, round(100 * share), 2])
    rows, count = coded.values.shape
    ranked = np.empty((rows, count), dtype=np.int64)
    scores, ordered = np.empty((rows, count)), np.empty((rows, count))
    for j, column in enumerate(coded.values.T):
        order = np.lexsort((rng.random(rows), column))  # ties, such as the records of a category, at random
        ranked[order, j] = np.arange(rows)
        scores[:, j], ordered[:, j] = ndtri((ranked[:, j] + 0.5) / rows), column[order]
    correlations = share * np.corrcoef(scores, rowvar=False) + (1 - share) * np.eye(count)
    values, vectors = np.linalg.eigh(correlations)
    z = rng.normal(size=(rows, count)) @ (vectors * np.sqrt(np.maximum(values, 0))).T
    rank = np.minimum((ndtr(z) * rows).astype(np.int64), rows - 1)
    return coded.decode(np.take_along_axis(ordered, rank, axis=0))


def by_arfpy(data: sm.Microdata, leaf: int, seed: int) -> pl.DataFrame:
    """Return a file of the adversarial random forest of arfpy."""
    from arfpy.arf import arf  # type: ignore[import-not-found,unused-ignore]

    if not hasattr(np, "in1d"):
        vars(np)["in1d"] = np.isin  # arfpy 0.1 uses the name, which numpy no longer has
    np.random.seed(seed % 2**32)  # noqa: NPY002 - arfpy draws from the global generator
    frame = data.frame()
    texts = [not dtype.is_numeric() for dtype in frame.dtypes]
    columns = [column.cast(pl.String) if text else column for column, text in zip(frame, texts, strict=True)]
    # arfpy 0.1 looks columns up by position, which pandas 3 allows only where positions are their names
    table = pl.DataFrame(columns).to_pandas().set_axis(range(len(texts)), axis=1)
    table = table.astype({j: "object" for j, text in enumerate(texts) if text})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # arfpy 0.1 uses parts of pandas and scikit-learn that are deprecated
        forest = arf(table, num_trees=ARF_TREES, min_node_size=leaf, verbose=False, random_state=seed % 2**32)
        forest.forde()
        drawn = forest.forge(n=len(frame))
    values = [pl.Series(name, drawn[j].to_list()) for j, name in enumerate(frame.columns)]
    whole = [name for name, dtype in frame.schema.items() if dtype.is_integer()]
    return pl.DataFrame(values).with_columns(pl.col(whole).round().cast(pl.Int64))


Family = Callable[[sm.Microdata, Any, int], pl.DataFrame]
LEAVES = (5, 10, 20, 50, 100)  # of rivals, weakest protection first
FAMILIES: Mapping[str, tuple[Family, tuple[Any, ...]]] = {
    "regressions in trees": (by_regressions, (10, 20, 50, 100, 300)),
    "CART": (by_cart, LEAVES),
    "Gaussian copula": (by_copula, (1.0, 0.9, 0.75, 0.5, 0.25)),
    **({"arfpy": (by_arfpy, LEAVES)} if importlib.util.find_spec("arfpy") else {}),
}
OURS = next(iter(FAMILIES))


# ---- the attacker -------------------------------------------------------------------------------------------------
def distances(people: np.ndarray, records: np.ndarray, ranges: np.ndarray, categories: np.ndarray) -> np.ndarray:
    """Return the mean difference of each person and each record: 0 or 1 for categories, and as a share of the range."""
    total = np.zeros((len(people), len(records)))
    for j in range(people.shape[1]):
        gap = np.abs(people[:, j, np.newaxis] - records[np.newaxis, :, j])
        total += gap > 0 if categories[j] else gap / ranges[j]
    return total / people.shape[1]


def find_outlying(values: np.ndarray, ranges: np.ndarray, categories: np.ndarray) -> np.ndarray:
    """Return the rows that are farthest from their fifth nearest other row."""
    to_others = np.partition(distances(values, values, ranges, categories), NEIGHBORS, axis=1)[:, NEIGHBORS]
    return np.argsort(-to_others, kind="stable")[: round(OUTLYING_SHARE * len(values))]


def attack(
    members: np.ndarray, outsiders: np.ndarray, records: np.ndarray, ranges: np.ndarray, categories: np.ndarray
) -> float:
    """Return the chance that a member is nearer to the released records than an outsider; ties count one half."""
    near = [distances(people, records, ranges, categories).min(axis=1) for people in (members, outsiders)]
    gap = near[0][:, np.newaxis] - near[1][np.newaxis, :]
    return float((gap < 0).mean() + 0.5 * (gap == 0).mean())


def run(number: int, seed: int, rows: int = ROWS) -> Facts:
    """Return the risk and the loss of every family at every strength, for one division of one file."""
    case = CASES[number % len(CASES)]
    rng = np.random.default_rng(seed)
    frame = fill_gaps(case.draw(rows, rng))
    everyone = Coded(frame)
    order = rng.permutation(len(frame))
    inside, outside = np.sort(order[: len(order) // 2]), np.sort(order[len(order) // 2 :])
    numbers = [
        name for name in frame.columns if frame[name].dtype.is_numeric() and frame[name].n_unique() >= MAX_CLASSES
    ]
    others = [name for name in frame.columns if name not in numbers]
    data = sm.read(frame[inside], keys=others, numeric=numbers)
    protected = sm.methods.ProtectTails(tuple(numbers)).apply(data, Stream.of_seed(seed, "tails"))
    ranges, categories = np.maximum(np.ptp(everyone.values, axis=0), 1e-12), everyone.is_category
    people = [everyone.values[half] for half in (inside, outside)]
    attacked = [values[find_outlying(values, ranges, categories)] for values in people]
    facts: Facts = {"file": case.name}
    for name, (family, strengths) in FAMILIES.items():
        points = []
        for strength in strengths:
            drawn = family(protected, strength, seed).select(frame.columns)
            same = pl.concat([frame, drawn.cast(dict(frame.schema))])  # so that codes agree
            records = Coded(same).values[len(frame) :]
            loss = sm.score(data, drawn, [AnalysisError()], paired=False)["AnalysisError"].value
            points.append([attack(*attacked, records, ranges, categories), loss])
        facts[name] = points
    return facts


# ---- figures ------------------------------------------------------------------------------------------------------
def loss_at_limit(points: np.ndarray, limit: float = RISK_LIMIT) -> float:
    """Return the loss at which the mean curve of a family crosses the risk limit; NaN where it never does.

    points : runs x strengths x (risk, loss), weakest protection first.
    """
    risk, loss = points.mean(axis=0).T
    if risk[0] <= limit:
        return float(loss[0])
    for first in range(len(risk) - 1):
        if risk[first + 1] <= limit:
            share = (risk[first] - limit) / (risk[first] - risk[first + 1])
            return float(loss[first] + share * (loss[first + 1] - loss[first]))
    return float("nan")


def find_figures(lines: Sequence[Facts]) -> Iterator[Figure]:
    """Yield, for each file and rival, by how much our loss exceeds the rival's, and on how many files it is smaller.

    A file is missed only where our loss is significantly larger, which is where the whole band is above 0.
    """
    better: dict[str, list[bool]] = {}  # for each rival: whether each file it loses more on does so clearly
    for name in dict.fromkeys(line["file"] for line in lines):
        own = [line for line in lines if line["file"] == name]
        rivals = [family for family, points in own[0].items() if isinstance(points, list) and family != OURS]
        ours = np.array([line[OURS] for line in own])
        for rival in rivals:
            theirs = np.array([line[rival] for line in own])
            losses = loss_at_limit(ours), loss_at_limit(theirs)
            if not np.isfinite(losses).all():
                is_ours = not np.isfinite(losses[0])
                print(f"{name}: {OURS if is_ours else rival} cannot reach the risk {RISK_LIMIT:g}.")
                better.setdefault(rival, []).extend([] if is_ours else [True])
                if is_ours and np.isfinite(losses[1]):
                    yield Figure(f"{name}: risk that {rival} reaches and ours does not", 1, (1, 1), 0.0, len(own))
                continue
            rng, draws = np.random.default_rng(0), list[float]()
            for _ in range(BAND_DRAWS):
                rows = rng.integers(len(own), size=len(own))
                draws.append(loss_at_limit(ours[rows]) - loss_at_limit(theirs[rows]))
            low, high = (float(end) for end in np.nanquantile(draws, (0.025, 0.975)))
            note = f"ours {losses[0]:.3f}, theirs {losses[1]:.3f}"
            yield Figure(f"{name}: loss beyond {rival}, lower end", low, (low, high), 0.0, len(own), note)
            better.setdefault(rival, []).extend([high < 0] if losses[0] < losses[1] else [])
    for rival, files in better.items():
        missing = max(0, FEWEST_BETTER - len(files))
        name = f"{rival}: files missing of {FEWEST_BETTER} on which it loses more, or cannot reach the risk"
        yield Figure(name, missing, (missing, missing), 0.0, len(lines), f"{len(files)} files, clearly on {sum(files)}")


TARGET = Target(__doc__, run, find_figures, SEEDS_PER_FILE * len(CASES))

if __name__ == "__main__":
    raise SystemExit(main(TARGET))
