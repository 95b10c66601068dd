"""Compare every method that fits a file on one risk-utility map, before a plan is written."""

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
from sdcmap.core.catalog import plug_in_classes
from sdcmap.core.chart import Chart
from sdcmap.core.formatting import join_names
from sdcmap.core.method import Method, strength_parameter
from sdcmap.core.rule import Choice, Rule
from sdcmap.data.private_folder import private_folder
from sdcmap.explore.first_look import ARGUMENT_OF_ROLE, look, open_source
from sdcmap.files.reader import Source, read
from sdcmap.files.writer import write
from sdcmap.map import RUMap
from sdcmap.methods import METHODS, Chain
from sdcmap.risk import AttributeInference, ClosestRecord, CorrectAttribution, KAnonymity, WorstLinkage
from sdcmap.study.plan import Plan
from sdcmap.study.progress import Progress
from sdcmap.study.scores import Scores
from sdcmap.study.sweep import sweep
from sdcmap.utility import QueryError, TableError

# ---- what to try next -------------------------------------------------------------------------------------------
METHODS_TO_REFINE = 3  # methods that a refined plan contains
STRENGTH_FACTORS = (0.5, 0.75, 1.0, 1.5, 2.0)  # a refined plan tries these multiples of a strength


def choose_to_refine(ru: RUMap, rule: Rule | None = None, count: int = METHODS_TO_REFINE) -> list[str]:
    """Return the texts of the methods to refine.

    Methods within every limit of the map, and within the rule's limit on risk, come first; then those that exceed them
    least. Among these, the methods that are most often on the frontier come first, then those with the least loss.
    Without any limit the method with the least loss would be the riskiest, so the distance from the ideal point (least
    risk, least loss, each axis scaled to its range) takes the place of the loss.
    """
    rows = ru.means.filter(~pl.col("anchor"), pl.col("method").is_in(list(ru.scores.methods)))
    risk, loss = ru.losses(rows)
    # Excess over the limits: 1 for all methods within them, so that the next criterion decides.
    excess = np.maximum(np.nan_to_num(ru.worst_shares(rows), nan=np.inf), 1.0)
    limit = getattr(rule, "risk", None)
    if limit is not None:
        excess = np.where(risk <= ru.signs[0] * limit, excess, excess + np.abs(risk - ru.signs[0] * limit))
    off_frontier = -rows["membership"].fill_null(0.0).to_numpy()
    cost = loss if limit is not None or ru.limits else np.hypot(_scale_to_range(risk), _scale_to_range(loss))
    order = np.lexsort((rows["method"].to_numpy(), cost, off_frontier, excess))
    return [str(rows["method"][int(index)]) for index in order[:count]]


def _scale_to_range(x: Array) -> Array:
    """Return numbers scaled so that the finite ones lie between 0 and 1."""
    known = x[np.isfinite(x)]
    low, high = (known.min(), known.max()) if len(known) else (0.0, 1.0)
    return (x - low) / (high - low if high > low else 1.0)


def vary_strength(method: Method) -> list[Method]:
    """Return a method at strengths around its own; only itself if it has no strength.

    >>> from sdcmap import Swap
    >>> [m.rate for m in vary_strength(Swap("age", rate=0.2))]
    [0.1, 0.15, 0.2, 0.3, 0.4]
    """
    scaled = [variant for factor in STRENGTH_FACTORS if (variant := _scale_strength(method, factor)) is not None]
    return list(dict.fromkeys(scaled)) or [method]


def _scale_strength(method: Method, factor: float) -> Method | None:
    """Return a method with its strength multiplied (in a chain, of each step); None if that strength is not valid."""
    if isinstance(method, Chain):
        steps = [_scale_strength(step, factor) for step in method.methods]
        return Chain(tuple(step or own for step, own in zip(steps, method.methods, strict=True)))
    name = strength_parameter(method)
    if not name:
        return method
    # Integer strengths, such as group sizes, stay integers.
    before = getattr(method, name)
    after: Any = round(before * factor) if isinstance(before, int) else float(f"{before * factor:.3g}")
    try:
        return replace(method, **{name: after})
    except PlanError:
        return None


def refine_plan(plan: Plan, methods: list[str]) -> Plan:
    """Return the plan with only some of its methods, each at strengths around its own."""
    by_text = {method.text: method for method in plan.all_methods}
    return replace(plan, methods=tuple(variant for text in methods for variant in vary_strength(by_text[text])))


# ---- the plan of a comparison ------------------------------------------------------------------------------------
NO_TRIAL = "this method is not tried on columns with these roles."


@dataclass(frozen=True)
class TrialPlan:
    """A plan with every method that fits a file.

    left_out : why other methods are not in the plan, by the name of the trial or the class.
    unfit : the methods among them that do not fit the data, by the same names.
    """

    plan: Plan
    left_out: dict[str, str]
    unfit: dict[str, Method]


def trial_plan(
    data: Microdata, control_file: str = "", *, replicates: int = 3, source: Source | None = None
) -> TrialPlan:
    """Return a plan with every method that fits the roles of `data`, at two or three strengths, and measures for all.

    Parameters
    ----------
    data : the file. Its roles determine what is masked: keys (categories), numbers, and for synthesis all columns.
    control_file : a file of people who are not in `data`, with the same columns. Without it, measures that compare with
        non-members refit synthesizers without some of the people.
    replicates : random draws of each method, at least 1.
    source : where the data are stored, for a plan that is saved to a file.
    """
    roles = Roles(data)
    if not roles.keys and not roles.numbers:
        raise PlanError("the data have no keys and no numeric variables: state their roles when reading the file.")
    unfit: dict[str, Method] = {}
    methods: list[Method] = []
    left_out: dict[str, str] = {}
    for cls in (*METHODS, *plug_in_classes(Method)):
        trials = cls.trials(roles)
        if not trials and not cls.in_every_plan:
            left_out[cls.__name__] = NO_TRIAL
        for name, method in trials.items():
            problem = method if isinstance(method, str) else next(method.incompatibilities(data), None)
            if problem is not None:
                left_out[name] = problem
                unfit |= {name: method} if isinstance(method, Method) else {}
            elif isinstance(method, Method):
                methods.append(method)
    return TrialPlan(Plan(methods, _measures(roles, control_file), replicates, data=source), left_out, unfit)


def _measures(roles: Roles, control_file: str) -> list[Measure]:
    """Return the measures; the first risk and the first utility measure are the axes of the map."""
    measures: list[Measure] = [QueryError(queries=2000)]
    if not roles.data.schema.census:
        measures.insert(0, ClosestRecord(control_file=control_file))
    if roles.secret and roles.known_to_attacker:
        measures.append(
            AttributeInference(roles.secret, roles.known_to_attacker, targets=500, control_file=control_file)
        )
    if roles.keys:
        known = tuple(name for name in roles.keys if name != roles.secret)
        if roles.secret and known and roles.data.schema[roles.secret].kind != "numeric":
            measures.append(CorrectAttribution(roles.secret, known))
        measures += [KAnonymity(on=roles.keys), TableError(roles.keys, order=2)]
    return measures if any(measure.axis == "risk" for measure in measures) else [WorstLinkage(), *measures]


CONTROL_SHARE = 0.2  # share of the records set aside as non-members
INSIDE_FILE, OUTSIDE_FILE = "inside.study.parquet", "outside.study.parquet"
REFINE_FILE = "refine.toml"
TABLE_COLUMNS = ("method", "count", "risk", "utility", "anchor", "frontier", "membership")


@dataclass(frozen=True)
class Comparison:
    """The scores of every method that fits a file.

    plan, scores, map : the plan of the comparison, its scores, and its risk-utility map.
    left_out : why methods are not in the plan, by the name of the trial or the class.
    unfit : the methods among them that do not fit the data.
    proposed : the roles that `look` proposed, if none were stated.
    inside : the records that were masked.
    outside : the records that were set aside as non-members; None if a control file was given.
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
        """One row per method on the map, least risk first, with its name and the means over its draws."""
        means = self.map.means.sort("risk").select(TABLE_COLUMNS)
        within = pl.Series("within", self.map.eligible(self.map.means.sort("risk")))
        return means.with_columns(within, name=pl.col("method").replace(dict(self.plan.method_names)))

    @property
    def choice(self) -> Choice | None:
        """The choice of the plan's rule; None if the plan has no rule."""
        return None if self.plan.rule is None else self.map.choose(self.plan.rule)

    @property
    def refine(self) -> tuple[str, ...]:
        """The names of the methods to refine, those within the limits first."""
        return tuple(self.plan.method_names[text] for text in choose_to_refine(self.map, self.plan.rule))

    @property
    def refined_plan(self) -> Plan:
        """The plan to sweep next: these methods at strengths around those that were tried."""
        return refine_plan(self.plan, choose_to_refine(self.map, self.plan.rule))

    @property
    def not_on_the_map(self) -> dict[str, str]:
        """The reasons why methods are not on the map, by their names or classes."""
        on_map, names = set(self.map.means["method"]), self.plan.method_names
        suggest = self._suggest_alternatives
        reasons = {name: reason + suggest(self.unfit.get(name)) for name, reason in self.left_out.items()}
        failed = [method for method in self.plan.all_methods if method.text not in on_map]
        return reasons | {names[m.text]: self._reason(m.text) + suggest(m) for m in failed}

    def _suggest_alternatives(self, method: Method | None) -> str:
        """Return a sentence that names methods on the map that accept the missing values; empty if none are missing."""
        masked = [] if method is None else [name for name in method.masks(self.inside) if name in self.inside.names]
        incomplete, on_map = [n for n in masked if self.inside.missing(n).any()], set(self.map.means["method"])
        able = [m for m in self.plan.all_methods if m.text in on_map and m.random and m.missing != "refused"]
        able = [m for m in able if set(incomplete) <= set(m.masks(self.inside))]
        classes = ", ".join(dict.fromkeys(type(step).__name__ for m in able for step in m.steps))
        if not incomplete or not classes:
            return ""
        return f" Methods that accept missing values in {join_names(incomplete)}: {classes}."

    def _reason(self, method: str) -> str:
        tried = self.scores.candidate.filter(pl.col("method") == method)
        rows = self.scores.score.filter(pl.col("candidate").is_in(tried["id"].implode()))
        axes = rows.filter(pl.col("measure").is_in([*self.map.risk, self.map.utility]))
        return next(filter(None, [*tried["reason"], *axes["reason"]]), "no release could be made.")

    def draw(self) -> Chart:
        """Draw the map with a name at every method where there is space."""
        return self.map.draw(by="release", mark=self.choice, label="all", width=760, height=560)


def compare(
    data: Microdata | Source | str | Path, folder: str | Path | None = None, *, plan: Plan | None = None,
    control: str | Path | None = None, replicates: int = 3, risk: str = "", utility: str = "", seed: int | None = None,
    workers: int | None = None, progress: Progress | None = None,
) -> Comparison:  # fmt: skip
    """Sweep every method that fits a file, at two or three strengths each, and put them on one risk-utility map.

    Parameters
    ----------
    data : microdata, or the file to read. Without stated keys and numbers, the roles proposed by `look` are used.
    folder : a new or empty folder for plan.toml, refine.toml (what to try next), the study, the map, and the compared
        files, which must not be released; None stores nothing.
    plan : a plan whose measures, axes, limits and rule replace the default ones. The methods are still all that fit. No
        records are set aside then, because the measures of a plan state their own control file.
    control : a file of people who are not in the data, with the same columns. Without it a fifth of the records, whole
        households, is set aside.
    replicates : random draws of each method, at least 1.
    risk, utility : the measures of the map, by class name or text. The defaults are ClosestRecord (for a census, where
        membership is not a secret, the next risk measure that fits) and QueryError.
    seed : the seed of all random numbers, including the choice of records set aside; by default 256 random bits. The same
        seed gives the same numbers in any folder.
    workers, progress : as in `sweep`.

    The default risk is how well an attacker who knows all keys and numbers can tell who is in the release (ClosestRecord).
    The default utility is the relative error of random counts (QueryError). Both use every variable and are defined for
    masked, recoded, suppressed, sampled and synthetic files. The risk is that of the released people, so sampling does not
    lower it. Further measures are scored for other maps: `RUMap(comparison.scores, ...)`.

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
    'this method is not tried on columns with these roles.'
    """
    if folder is not None and Path(folder).exists() and any(Path(folder).iterdir()):
        raise PlanError(f"the folder {folder} is not empty: name another folder.")
    whole, proposed = (
        propose_roles_if_unstated(open_source(data)) if plan is None else (_drop_unstated(open_source(data)), {})
    )
    seed = secrets.randbits(256) if seed is None else seed
    with _working_folder(folder) as working:
        outside = None
        if control is None and plan is None:
            whole, outside = set_aside(whole, CONTROL_SHARE, Stream.of_seed(seed, "set aside").rng())
            control = write(outside, Path(working) / OUTSIDE_FILE)
        # Write and read the file, so that the study can be repeated from the stored copy.
        source = source_with_roles(write(whole, Path(working) / INSIDE_FILE).name, whole)
        inside = source.read(Path(working))
        others = "" if control is None else str(Path(control).resolve())
        tried = trial_plan(inside, others, replicates=replicates, source=source)
        swept = replace(_add_axes(tried.plan, plan, inside, risk, utility), seed=seed)
        swept.write(Path(working) / "plan.toml")
        # The plan is written before the sweep, so that an interrupted comparison can be continued.
        scores = sweep(inside, swept, Path(working) / "study", workers=workers, progress=progress)
        ru = RUMap.of_plan(scores, swept)
        compared = Comparison(swept, tried.left_out, tried.unfit, proposed, inside, outside, scores, ru)
        if folder is not None:
            compared.refined_plan.write(Path(working) / REFINE_FILE)
            chart = compared.draw()
            for name in ("map.html", "map.png"):
                chart.save(Path(working) / name)
    return compared


def _add_axes(tried: Plan, plan: Plan | None, data: Microdata, risk: str, utility: str) -> Plan:
    """Return the trial plan with the requested axes, or with the measures, axes, limits and rule of another plan."""
    if plan is None:
        return replace(
            tried, risk=(_axis_measure(tried, "risk", risk),), utility=_axis_measure(tried, "utility", utility)
        )
    judging = plan.with_risk(data)
    if not judging.risk or not judging.utility:
        raise PlanError("the plan has no axes to compare on: it needs a risk measure and a utility measure.")
    return replace(
        tried,
        measures=judging.measures,
        risk=(_axis_measure(judging, "risk", risk),) if risk else judging.risk,
        utility=_axis_measure(judging, "utility", utility),
        limits=judging.limits,
        rule=judging.rule,
    )


def _working_folder(folder: str | Path | None) -> AbstractContextManager[str | Path]:
    """Return the folder to work in: the given one, or a temporary one."""
    if folder is None:
        return private_folder()
    Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)
    return nullcontext(folder)


def propose_roles_if_unstated(data: Microdata) -> tuple[Microdata, dict[str, tuple[str, ...]]]:
    """Return the columns with a stated role, or, if neither keys nor amounts are stated, with a role proposed by `look`.

    The second value holds the proposed roles.
    """
    amounts = [name for name in data.schema.of_role("other") if data.schema[name].kind == "numeric"]
    if data.keys or amounts:
        return _drop_unstated(data), {}
    seen = look(data)
    source = seen.to_source("")
    arguments = ("keys", "numeric", "sensitive", "identifiers", "weight", "household", "stratum")
    roles: dict[str, Any] = {argument: getattr(source, argument) for argument in arguments}
    roles["numeric"] = seen.names_with_role("numeric")
    data = read(data, **roles, kinds=source.kinds)
    return _drop_unstated(data), {argument: names for argument, names in roles.items() if names}


def _drop_unstated(data: Microdata) -> Microdata:
    return data.only([v.name for v in data.schema.variables if v.role not in (None, "drop")])


def source_with_roles(path: str, data: Microdata) -> Source:
    """Return the source that reads these data from `path`, with roles and kinds stated."""
    variables, of = data.schema.variables, data.schema.of_role
    kinds, roles = ("nominal", "ordinal"), ("key", "sensitive", "identifier", "weight", "household", "stratum")
    names: dict[str, Any] = {kind: tuple(v.name for v in variables if v.kind == kind) for kind in kinds}
    names |= {ARGUMENT_OF_ROLE.get(role, role): of(role) for role in roles}
    other = tuple(name for name in of("other") if name not in data.numeric)
    return Source(path, **names, numeric=data.numeric, other=other, census=data.schema.census)


def _axis_measure(plan: Plan, axis: str, name: str) -> str:
    """Return the text of the plan's measure with this class name or text; without a name, the plan's own axis."""
    if not name:
        return str(plan.risk[0] if axis == "risk" else plan.utility)
    texts: dict[str, str] = {m.text: type(m).__name__ for m in plan.measures if m.axis == axis}
    matching = [text for text, class_name in texts.items() if name in (text, class_name)]
    if not matching:
        names = sorted(texts.values())
        known = ", ".join(names)
        raise PlanError(f"there is no {axis} measure {name!r}; it must be one of {known}.{did_you_mean(name, names)}")
    return matching[0]


def set_aside(data: Microdata, share: float, rng: Generator) -> tuple[Microdata, Microdata]:
    """Split a random share of the records off, as non-members; return the rest and this part. Units stay whole."""
    unit = data.units
    units = rng.permutation(np.unique(unit))
    is_control = np.isin(unit, units[: max(1, round(share * len(units)))])
    if is_control.all():
        raise PlanError("a comparison needs at least two records, and if there are households, two of them.")
    return _independent_part(data, ~is_control), _independent_part(data, is_control)


def _independent_part(data: Microdata, rows: Array) -> Microdata:
    part = data.take(np.flatnonzero(rows))
    return Microdata(part.schema, part.columns)
