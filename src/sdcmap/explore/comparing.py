"""Every method on one map: a first look at what each can do for a file, before a plan of one's own."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl
from numpy.random import Generator

from sdcmap.core.chart import Chart
from sdcmap.core.method import Method
from sdcmap.core.rule import Choice
from sdcmap.core.streams import Stream
from sdcmap.core.words import listed
from sdcmap.data.cells import cells
from sdcmap.data.microdata import Microdata
from sdcmap.data.private_folder import private_folder
from sdcmap.errors import PlanError, did_you_mean
from sdcmap.explore.looking import look, opened
from sdcmap.explore.refining import refined, worth_refining
from sdcmap.explore.trial_plan import trial_plan
from sdcmap.files.reading import Source, read
from sdcmap.files.writing import write
from sdcmap.kernels.arrays import Array
from sdcmap.map import RUMap
from sdcmap.study.plan import Plan
from sdcmap.study.progress import Progress
from sdcmap.study.scores import Scores
from sdcmap.study.sweeping import sweep

OUTSIDE = 0.2  # share of the records set aside as people who are not in the file
INSIDE_FILE, OUTSIDE_FILE = "inside.study.parquet", "outside.study.parquet"
REFINE_FILE = "refine.toml"
SHOWN = ("method", "count", "risk", "utility", "anchor", "frontier", "membership")


@dataclass(frozen=True)
class Comparison:
    """Every method that fits a file, made and scored.

    `left_out`: why methods are not in the plan, by the words of the trial or by class; `unfit`: the methods among them;
    `proposed`: the roles that a look proposed, where none were stated; `inside`: the records that were compared;
    `outside`: the records that were set aside as people who are not in the file (None: a control file was given).
    """

    plan: Plan
    left_out: Mapping[str, str]
    unfit: Mapping[str, Method]
    proposed: Mapping[str, tuple[str, ...]]
    inside: Microdata
    outside: Microdata | None
    scores: Scores
    map: RUMap

    @property
    def table(self) -> pl.DataFrame:
        """A row for each method on the map, least risk first, with the mean of its draws and its name."""
        means = self.map.means.sort("risk").select(SHOWN)
        within = pl.Series("within", self.map.limit_shares(self.map.means.sort("risk")) <= 1)
        return means.with_columns(within, name=pl.col("method").replace(dict(self.plan.method_names)))

    @property
    def choice(self) -> Choice | None:
        """What the plan's rule chooses; None where it has none."""
        return None if self.plan.rule is None else self.map.choose(self.plan.rule)

    @property
    def refine(self) -> tuple[str, ...]:
        """The names of the methods to go on with, those within the limits first."""
        return tuple(self.plan.method_names[text] for text in worth_refining(self.map, self.plan.rule))

    @property
    def refined(self) -> Plan:
        """The plan to go on with: these methods at strengths around those that were tried."""
        return refined(self.plan, worth_refining(self.map, self.plan.rule))

    @property
    def not_on_the_map(self) -> dict[str, str]:
        """Why a method is not on the map, by its name or class."""
        drawn = set(self.map.means["method"])
        unmade = [method for method in self.plan.expanded if method.text not in drawn]
        told = {name: reason + self._lead(self.unfit.get(name)) for name, reason in self.left_out.items()}
        names = self.plan.method_names
        return told | {names[m.text]: self._reason(m.text) + self._lead(m) for m in unmade}

    def _lead(self, method: Method | None) -> str:
        """Where a method does not go with missing values: which on the map, of those that mask the same variables, do."""
        masked = [] if method is None else [name for name in method.masks(self.inside) if name in self.inside.names]
        gone = [name for name in masked if self.inside.missing(name).any()]
        drawn = set(self.map.means["method"])
        able = [
            m for m in self.plan.expanded if m.text in drawn and m.random and set(gone) <= set(m.masks(self.inside))
        ]
        classes = dict.fromkeys(type(step).__name__ for m in able if m.missing != "refused" for step in m.steps)
        return f" With missing values in {listed(gone)}, these do: {', '.join(classes)}." if gone and classes else ""

    def _reason(self, method: str) -> str:
        tried = self.scores.candidate.filter(pl.col("method") == method)
        rows = self.scores.score.filter(pl.col("candidate").is_in(tried["id"].implode()))
        axes = rows.filter(pl.col("measure").is_in([*self.map.risk, self.map.utility]))
        return next(filter(None, [*tried["reason"], *axes["reason"]]), "not made.")

    def draw(self) -> Chart:
        """The map with a name at every method where there is room."""
        return self.map.draw(by="release", mark=self.choice, label="all", width=760, height=560)


def compare(
    data: Microdata | Source | str | Path, folder: str | Path | None = None, *, plan: Plan | None = None,
    control: str | Path | None = None, replicates: int = 3, risk: str = "", utility: str = "", seed: int | None = None,
    workers: int | None = None, progress: Progress | None = None,
) -> Comparison:  # fmt: skip
    """Every method that fits a file, at two or three strengths each, swept and put on one R-U map.

    Parameters
    ----------
    data : microdata, or where they lie; without stated keys and numbers, the roles that `look` proposes are taken.
    folder : a new or empty folder for plan.toml, refine.toml (what to try next), the study, the map and the files that
        were compared, none of which may be released; None keeps nothing.
    plan : a plan whose measures, axes, limits and rule are taken in place of ours: the methods are those that fit, not its
        own. Nothing is set aside then, since its measures say themselves whom they compare with.
    control : a file of people who are not in the data, with the same columns; else a fifth of the records is set aside,
        households whole.
    replicates : random draws of each method, at least 1.
    risk, utility : the measures of the map, by class name or text; by default ClosestRecord (of a census, in
        which membership is no secret, the next risk that fits) and QueryError.
    seed : start of all random numbers, those of setting aside included; 256 random bits unless stated. The same seed in
        the same folder gives the same numbers (a sampled measure draws by its control file's path too).
    workers, progress : as in `sweep`.

    The risk is how well a snooper who knows all keys and numbers tells who is in the release (ClosestRecord); the utility
    is the relative error of random counts (QueryError). Both see every variable, and have a value for masked, recoded,
    suppressed, sampled and synthetic files. The risk is that of the people who are released, so that sampling does not
    lower it. Other measures are scored beside these, for other maps: `RUMap(comparison.scores, ...)`.

    Examples
    --------
    >>> import sdcmap as sm
    >>> people = sm.demo.population(60).only(["Age", "Sex"])
    >>> compared = sm.compare(people, replicates=1, seed=1, workers=1)
    >>> len(compared.inside), len(compared.outside)
    (48, 12)
    >>> "Age, Sex swapped 5 %" in compared.table["name"]
    True
    >>> compared.left_out["Noise"]
    'it states no trial for the roles of this file.'
    """
    if folder is not None and Path(folder).exists() and any(Path(folder).iterdir()):
        raise PlanError(f"{folder} is not empty: name another folder.")
    whole, proposed = with_roles(opened(data)) if plan is None else (_stated_columns(opened(data)), {})
    seed = secrets.randbits(256) if seed is None else seed
    with _place(folder) as place:
        outside = None
        if control is None and plan is None:
            whole, outside = set_aside(whole, OUTSIDE, Stream.of_seed(seed, "set aside").rng())
            control = write(outside, Path(place) / OUTSIDE_FILE)
        source = stated_source(write(whole, Path(place) / INSIDE_FILE).name, whole)
        inside = source.read(Path(place))
        others = "" if control is None else str(Path(control).resolve())
        tried = trial_plan(inside, others, replicates=replicates, source=source)
        swept = replace(_judged(tried.plan, plan, inside, risk, utility), seed=seed)
        swept.write(Path(place) / "plan.toml")
        scores = sweep(inside, swept, Path(place) / "study", workers=workers, progress=progress)
        ru = RUMap.of_plan(scores, swept)
        compared = Comparison(swept, tried.left_out, tried.unfit, proposed, inside, outside, scores, ru)
        if folder is not None:
            compared.refined.write(Path(place) / REFINE_FILE)
            chart = compared.draw()
            for name in ("map.html", "map.png"):
                chart.save(Path(place) / name)
    return compared


def _judged(tried: Plan, plan: Plan | None, data: Microdata, risk: str, utility: str) -> Plan:
    """The plan of the trials with the axes that were asked for; or with measures, axes, limits and rule of another."""
    if plan is None:
        return replace(tried, risk=(_axis(tried, "risk", risk),), utility=_axis(tried, "utility", utility))
    judge = plan.with_risk(data)
    if not judge.risk or not judge.utility:
        raise PlanError("a comparison on a plan's axes needs a risk measure and a utility measure in it.")
    axes = (_axis(judge, "risk", risk),) if risk else judge.risk
    return replace(
        tried, measures=judge.measures, risk=axes, utility=_axis(judge, "utility", utility),
        limits=judge.limits_on(axes if risk else ()), rule=judge.rule,
    )  # fmt: skip


def _place(folder: str | Path | None) -> AbstractContextManager[str | Path]:
    """The folder to work in: the one that was named, or one that is gone afterwards."""
    if folder is None:
        return private_folder()
    Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)
    return nullcontext(folder)


def with_roles(data: Microdata) -> tuple[Microdata, dict[str, tuple[str, ...]]]:
    """The columns with a stated role; where no keys and no amounts are stated, those that a look proposes, and which."""
    amounts = [name for name in data.schema.of_role("other") if data.schema[name].kind == "numeric"]
    if data.keys or amounts:
        return _stated_columns(data), {}
    seen = look(data)
    stated = seen.stated("")
    arguments = ("keys", "numeric", "sensitive", "identifiers", "weight", "household", "stratum")
    roles: dict[str, tuple[str, ...]] = {argument: getattr(stated, argument) for argument in arguments}
    roles["numeric"] = seen.named("numeric")
    keys, numeric, sensitive, identifiers, weight, household, stratum = roles.values()
    data = read(data, keys=keys, numeric=numeric, sensitive=sensitive, identifiers=identifiers, weight=weight,
                household=household, stratum=stratum, kinds=stated.kinds)  # fmt: skip
    return _stated_columns(data), {argument: names for argument, names in roles.items() if names}


def _stated_columns(data: Microdata) -> Microdata:
    return data.only([v.name for v in data.schema.variables if v.role not in (None, "drop")])


def stated_source(path: str, data: Microdata) -> Source:
    """The source that gives these data, roles and kinds stated, when they lie at `path`."""
    variables = data.schema.variables
    nominal, ordinal = (tuple(v.name for v in variables if v.kind == kind) for kind in ("nominal", "ordinal"))
    of = data.schema.of_role
    return Source(path, keys=of("key"), numeric=data.numeric, sensitive=of("sensitive"), identifiers=of("identifier"),
                  weight=of("weight"), household=of("household"), stratum=of("stratum"),
                  other=tuple(name for name in of("other") if name not in data.numeric),
                  nominal=nominal, ordinal=ordinal, census=data.schema.census)  # fmt: skip


def _axis(plan: Plan, axis: str, wanted: str) -> str:
    """The measure of the plan that is meant by a class name or a text; by default the plan's own."""
    if not wanted:
        return str(plan.risk[0] if axis == "risk" else plan.utility)
    texts: dict[str, str] = {m.text: type(m).__name__ for m in plan.measures if m.axis == axis}
    matching = [text for text, name in texts.items() if wanted in (text, name)]
    if not matching:
        names = sorted(texts.values())
        raise PlanError(f"no {axis} measure {wanted!r} here: {', '.join(names)}.{did_you_mean(wanted, names)}")
    return matching[0]


def set_aside(data: Microdata, share: float, rng: Generator) -> tuple[Microdata, Microdata]:
    """The file without a random share of its records, and these: people who are not in it. Households stay whole."""
    unit = np.arange(len(data)) if data.household is None else data.view(cells, (data.household,)).code
    units = rng.permutation(np.unique(unit))
    out = np.isin(unit, units[: max(1, round(share * len(units)))])
    if out.all():
        raise PlanError("a comparison needs at least two records, in two households where there are any.")
    return _own(data, ~out), _own(data, out)


def _own(data: Microdata, rows: Array) -> Microdata:
    part = data.take(np.flatnonzero(rows))
    return Microdata(part.schema, part.columns)
