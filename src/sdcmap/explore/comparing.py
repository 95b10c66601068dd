"""Every method on one map: a first look at what each can do for a file, before a plan of one's own."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from sdcmap.core import Array, Generator, Measure, Microdata, PlanError, Roles, Stream, did_you_mean
from sdcmap.core.catalogue import offered
from sdcmap.core.chart import Chart
from sdcmap.core.method import Method, strength_of
from sdcmap.core.rule import Choice, Rule
from sdcmap.core.words import listed
from sdcmap.data.cells import cells
from sdcmap.data.private_folder import private_folder
from sdcmap.explore.looking import ARGUMENT, look, opened
from sdcmap.files.reading import Source, read
from sdcmap.files.writing import write
from sdcmap.map import RUMap
from sdcmap.methods import METHODS, Chain
from sdcmap.risk import AttributeInference, ClosestRecord, CorrectAttribution, KAnonymity, WorstLinkage
from sdcmap.study.plan import Plan
from sdcmap.study.progress import Progress
from sdcmap.study.scores import Scores
from sdcmap.study.sweeping import sweep
from sdcmap.utility import QueryError, TableError

# What to try next after a comparison: the methods worth a closer look, at strengths around those that were tried.


SEVERAL = 3  # methods to go on with
FACTORS = (0.5, 0.75, 1.0, 1.5, 2.0)  # of a strength


def worth_refining(ru: RUMap, rule: Rule | None = None, count: int = SEVERAL) -> list[str]:
    """The texts of the methods to go on with: those within every limit of the map and of a rule on risk first, or else
    those nearest to them; of these the most often undominated, then the most useful. Without limits, the most useful
    would be the most risky: then those nearest to the least risk and the least loss on the map, each axis by its range."""
    rows = ru.means.filter(~pl.col("anchor"), pl.col("method").is_in(list(ru.scores.methods)))
    risk, loss = ru.losses(rows)
    over = np.maximum(np.nan_to_num(ru.worst_shares(rows), nan=np.inf), 1.0)
    line = getattr(rule, "risk", None)
    if line is not None:
        over = np.where(risk <= ru.signs[0] * line, over, over + np.abs(risk - ru.signs[0] * line))
    seldom = -rows["membership"].fill_null(0.0).to_numpy()
    cost = loss if line is not None or ru.limits else np.hypot(_ranged(risk), _ranged(loss))
    order = np.lexsort((rows["method"].to_numpy(), cost, seldom, over))
    return [str(rows["method"][int(place)]) for place in order[:count]]


def _ranged(x: Array) -> Array:
    """Numbers between the least (0) and the largest (1) of those that are finite; others stay what they are."""
    known = x[np.isfinite(x)]
    low, high = (known.min(), known.max()) if len(known) else (0.0, 1.0)
    return (x - low) / (high - low if high > low else 1.0)


def nearby(method: Method) -> list[Method]:
    """A method at strengths around its own; itself alone where it has none.

    >>> from sdcmap import Swap
    >>> [m.rate for m in nearby(Swap("age", rate=0.2))]
    [0.1, 0.15, 0.2, 0.3, 0.4]
    """
    scaled = [made for factor in FACTORS if (made := _scaled(method, factor)) is not None]
    return list(dict.fromkeys(scaled)) or [method]


def _scaled(method: Method, factor: float) -> Method | None:
    """A method with its strength so many times; of a chain, each step; None where that is no strength it can have."""
    if isinstance(method, Chain):
        steps = [_scaled(step, factor) for step in method.methods]
        return Chain(tuple(step or own for step, own in zip(steps, method.methods, strict=True)))
    name = strength_of(method)
    if not name:
        return method
    before = getattr(method, name)
    after: Any = round(before * factor) if isinstance(before, int) else float(f"{before * factor:.3g}")
    try:
        return replace(method, **{name: after})
    except PlanError:
        return None


def refined(plan: Plan, methods: list[str]) -> Plan:
    """The same plan with some of its methods alone, each at strengths around its own."""
    by_text = {method.text: method for method in plan.expanded}
    return replace(plan, methods=tuple(near for text in methods for near in nearby(by_text[text])))


# A plan built from the roles of a file alone: every method that fits it, each at the strengths it states itself.


NO_TRIAL = "it states no trial for the roles of this file."


@dataclass(frozen=True)
class TrialPlan:
    """A plan with every method that fits a file; `left_out`: why others are not in it, by the words of the trial or by
    class; `unfit`: those that were made and do not fit, by the same words."""

    plan: Plan
    left_out: dict[str, str]
    unfit: dict[str, Method]


def trial_plan(
    data: Microdata, control_file: str = "", *, replicates: int = 3, source: Source | None = None
) -> TrialPlan:
    """Every method that fits the roles of `data`, at two or three strengths each, and measures that fit them all.

    Parameters
    ----------
    data : the file; its roles alone say what is masked: keys (categories), numbers, and for synthesis everything.
    control_file : a file of people who are not in `data`, with the same columns; without it synthetic files are made again
        without some of the people, for the measures that need others to compare with.
    replicates : random draws of each method, at least 1.
    source : where the data lie, for a plan kept in a file.
    """
    roles = Roles(data)
    if not roles.keys and not roles.numbers:
        raise PlanError("the data have no keys and no numeric variables: state roles when reading them.")
    unfit: dict[str, Method] = {}
    methods: list[Method] = []
    left_out: dict[str, str] = {}
    for cls in (*METHODS, *offered(Method)):
        trials = cls.trials(roles)
        if not trials and not cls.in_every_plan:
            left_out[cls.__name__] = NO_TRIAL
        for name, method in trials.items():
            problem = method if isinstance(method, str) else next(method.misfits(data), None)
            if problem is not None:
                left_out[name] = problem
                unfit |= {name: method} if isinstance(method, Method) else {}
            elif isinstance(method, Method):
                methods.append(method)
    return TrialPlan(Plan(methods, _measures(roles, control_file), replicates, data=source), left_out, unfit)


def _measures(roles: Roles, control_file: str) -> list[Measure]:
    """Of each axis, the first measure is the one of the map."""
    measures: list[Measure] = [QueryError(queries=2000)]
    if not roles.data.schema.census:
        measures.insert(0, ClosestRecord(control_file=control_file))
    if roles.secret and roles.known:
        measures.append(AttributeInference(roles.secret, roles.known, targets=500, control_file=control_file))
    if roles.keys:
        known = tuple(name for name in roles.keys if name != roles.secret)
        if roles.secret and known and roles.data.schema[roles.secret].kind != "numeric":
            measures.append(CorrectAttribution(roles.secret, known))
        measures += [KAnonymity(on=roles.keys), TableError(roles.keys, order=2)]
    return measures if any(measure.axis == "risk" for measure in measures) else [WorstLinkage(), *measures]


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
        within = pl.Series("within", self.map.eligible(self.map.means.sort("risk")))
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
        drawn, names = set(self.map.means["method"]), self.plan.method_names
        told = {name: reason + self._lead(self.unfit.get(name)) for name, reason in self.left_out.items()}
        unmade = [method for method in self.plan.expanded if method.text not in drawn]
        return told | {names[m.text]: self._reason(m.text) + self._lead(m) for m in unmade}

    def _lead(self, method: Method | None) -> str:
        """Where a method does not go with missing values: which on the map, of those that mask the same variables, do."""
        masked = [] if method is None else [name for name in method.masks(self.inside) if name in self.inside.names]
        gone, drawn = [name for name in masked if self.inside.missing(name).any()], set(self.map.means["method"])
        able = [m for m in self.plan.expanded if m.text in drawn and m.random and m.missing != "refused"]
        classes = dict.fromkeys(type(s).__name__ for m in able if set(gone) <= {*m.masks(self.inside)} for s in m.steps)
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
    seed : start of all random numbers, those of setting aside included, in any folder; 256 random bits unless stated.
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
        limits=judge.limits, rule=judge.rule,
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
    stated = (seen := look(data)).stated("")
    arguments = ("keys", "numeric", "sensitive", "identifiers", "weight", "household", "stratum")
    roles: dict[str, Any] = {argument: getattr(stated, argument) for argument in arguments}
    roles["numeric"] = seen.named("numeric")
    return _stated_columns(read(data, **roles, kinds=stated.kinds)), {name: of for name, of in roles.items() if of}


def _stated_columns(data: Microdata) -> Microdata:
    return data.only([v.name for v in data.schema.variables if v.role not in (None, "drop")])


def stated_source(path: str, data: Microdata) -> Source:
    """The source that gives these data, roles and kinds stated, when they lie at `path`."""
    variables, of = data.schema.variables, data.schema.of_role
    kinds, roles = ("nominal", "ordinal"), ("key", "sensitive", "identifier", "weight", "household", "stratum")
    names: dict[str, Any] = {kind: tuple(v.name for v in variables if v.kind == kind) for kind in kinds}
    names |= {ARGUMENT.get(role, role): of(role) for role in roles}
    other = tuple(name for name in of("other") if name not in data.numeric)
    return Source(path, **names, numeric=data.numeric, other=other, census=data.schema.census)


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
