"""Plans: what to make, what to measure, and how to choose. A plan is fixed before the first score."""

from __future__ import annotations

import copy
import hashlib
import itertools
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from sdcmap.core import Choice, Generator, Measure, Method, Microdata, PlanError, SdcmapError, Stream, did_you_mean
from sdcmap.core.edit_rule import edit_problems, parse_edit
from sdcmap.core.formatting import name_axis
from sdcmap.core.grid import Grid, decode_grid
from sdcmap.core.limit import (
    EfficiencyLimit,
    Limit,
    axis_scales,
    format_limit,
    limit_problem,
    read_limit,
    state_limits,
    strictest,
)
from sdcmap.core.plan_text import read_table
from sdcmap.core.release_policy import DEFAULT_POLICY, ReleasePolicy
from sdcmap.core.renamed_names import suggest_name
from sdcmap.core.rule import Rule
from sdcmap.core.value import Value, decode
from sdcmap.data import notebook_html
from sdcmap.data.private_folder import write_atomically
from sdcmap.errors import MAX_PROBLEMS_SHOWN, quote_text
from sdcmap.files.reader import Source
from sdcmap.methods import Chain, Derive, Identity, Repair
from sdcmap.study.candidate_names import name_draw, name_methods, name_problems, read_stated_names, split_names
from sdcmap.study.plan_layout import ALL_RISKS, PlanLayout, expand, format_plan
from sdcmap.study.profiles import DEFAULT_RISK_CLASSES, Profile, default_risk, to_profile
from sdcmap.study.search_settings import Search
from sdcmap.study.stated_analyses import (
    kept_battery_problems,
    kept_model_problems,
    name_without_models,
    read_analyses,
    split_analyses,
)
from sdcmap.study.stated_edits import fill_edits, leave_out_edits, name_without_edits

MAX_REPLICATES = 1_000_000
OTHER_SEED = """the choice was made among candidates of another seed than this plan's: use the plan with the seed of \
the sweep, `scores.plan` or `Study.open(folder).plan`."""


@dataclass(frozen=True)
class Candidate:
    """One possible release: a method and a replicate number."""

    method: Method
    replicate: int = 0

    @cached_property
    def id(self) -> str:
        """Twelve hexadecimal digits that identify the candidate in every study: method with revisions, and replicate."""
        return hashlib.sha256(f"{self.method.digest}/{self.replicate}".encode()).hexdigest()[:12]

    @property
    def kind(self) -> Literal["candidate", "identity"]:
        """ "candidate" for a release; "identity" for the unmasked file, the end of the map where everything is released."""
        return "identity" if isinstance(self.method, Identity) else "candidate"

    def stream(self, seed: int) -> Stream:
        """Return the candidate's own random stream: HMAC-SHA256(seed, method digest and replicate)."""
        return Stream.of_seed(seed, self.method.digest, str(self.replicate))

    def rng(self, seed: int) -> Generator:
        """Return the numpy generator of that stream."""
        return self.stream(seed).rng()


@dataclass(frozen=True, init=False)
class Plan:
    """What to make and measure, and how to choose.

    Parameters
    ----------
    methods : masking methods and grids of them, one or a list. `Identity()`, which releases the unmasked file, is always
        added.
    measures : risk and utility measures, one or a list, each once. A plan to choose by (it has a rule, limits, an
        axis of risk, or its data) that names no risk measure gets those of `default_risk` when it is swept: linkage,
        attribute inference and membership. In TOML, `[[analyses]] model = "log(wage) ~ educ + union"` states a
        regression for `AnalysisError` and `ChangedConclusions`, which are added where the plan has neither.
    replicates : random draws of each method, at least 1; a method without randomness has one candidate.
    risk, utility : the measures on the two axes of the map, by name or value; default: the first of each kind.
        Of several risk measures the worst counts, measures of different units as shares of their limits.
    limits : {measure: the largest tolerable value} for any measures, risk or utility (the smallest, where a higher number
        is better), by name or value, or by class for all of a class; or a list with one for each measure in `risk`. A
        limit of a precision 1/MSE can be stated as a typical error of the attacker or user, {Position: {"error": 5000}},
        and that of a user also as a share of the unmasked file's, {MeanPrecision: {"efficiency": 0.9}}. A rule chooses only
        what meets all limits that could be tested, and the written file must meet them too.
    rule : how to choose; fix it, with its limits, before the first score.
    data : where the data are and what their columns are, for plans kept in a file.
    edits : rules within a record, such as 'age < 15 -> marital = "never"': every candidate but `Identity()` ends
        with the repair of masked values that violate one (see `Repair`), and a release reports the remaining violations.
        `EditViolations` and `MarkedRecords` count such records; in TOML, one without rules counts by these. To measure
        without repairing, leave `edits` out and give the measure its own.
    derive : columns that are computed from others, {"bmi": "weight / height**2"}: every candidate but `Identity()` ends
        with these steps, in this order (see `Derive`), after the repair.
    names : {method: name}, by value or text, to replace its title (`Method.title`); in TOML, `name` in the method's table.
        A name is shown in maps, reports and the public note; it is not part of the method's identity.
    profile : the intended use of the file, by name or value (see `Profile`): its limits apply to the plan's measures
        where the plan states none, and a release must meet them.
    policy : the other numbers that can refuse a release (see `ReleasePolicy`); a changed one needs a reason.
    search : how a search is run (see `Search`).
    columns, steps : sets of columns and of methods with a name, for short plan files: {"keys": ["age", "sex"]} makes
        `on = "keys"` stand for both, and `on = ["keys", "-sex"]` for the first; {"coarsen": [Recode(...)]} makes "coarsen"
        a step of a chain. In TOML a list of strengths, `leaf = [20, 100]`, is one method for each. Numbers do not depend
        on how a plan is written.
    search_methods : methods that a search proposed, one draw each; they are stored in the study, not in the plan's file.
    seed : the secret behind every random number, 256 random bits unless stated. It is in no repr, TOML, digest or
        comparison, and `release` refuses one below 128 bits. An existing study keeps its own seed: the plan with that
        seed is `scores.plan`, or `Study.open(folder).plan`.

    Examples
    --------
    >>> from sdcmap import Hellinger, SmallCells, Swap, grid
    >>> plan = Plan(grid(Swap, on=["sex", "age"], rate=[0.01, 0.05]), [SmallCells(), Hellinger()], replicates=10)
    >>> plan.count
    41
    """

    methods: tuple[Method | Grid[Method], ...]
    measures: tuple[Measure, ...]
    replicates: int
    risk: tuple[str, ...]
    utility: str
    limits: Mapping[str, float] = field(hash=False)
    rule: Rule | None
    data: Source | None
    edits: tuple[str, ...]
    derive: tuple[Derive, ...]
    names: Mapping[str, str] = field(hash=False)
    profile: Profile | None
    policy: ReleasePolicy
    search: Search | None
    columns: Mapping[str, tuple[str, ...]] = field(repr=False, compare=False)
    steps: Mapping[str, tuple[Method, ...]] = field(repr=False, compare=False)
    search_methods: tuple[Method, ...] = field(repr=False)
    seed: int = field(repr=False, compare=False)
    seed_stated: bool = field(init=False, repr=False, compare=False)

    def __init__(
        self, methods: Method | Grid[Any] | Iterable[Method | Grid[Any]], measures: Measure | Iterable[Measure],
        replicates: int = 1, risk: str | Measure | Iterable[str | Measure] = (), utility: str | Measure = "",
        limits: float | Iterable[float] | Mapping[Any, float] = (), rule: Rule | None = None, data: Source | None = None,
        names: Mapping[Any, str] | None = None, seed: int | None = None, derive: Mapping[str, str] | Sequence[Derive] = (),
        profile: Profile | str | Mapping[str, Any] | None = None, policy: ReleasePolicy | None = None,
        edits: str | Sequence[str] = (), search: Search | Mapping[str, Any] | None = None,
        columns: Mapping[str, Sequence[str]] | None = None, steps: Mapping[str, Sequence[Method]] | None = None,
        search_methods: Iterable[Method] = (),
    ) -> None:  # fmt: skip
        every: tuple[Measure, ...] = _as_tuple(measures)
        known = [measure for measure in every if isinstance(measure, Measure)]
        risks, losses = ([m.text for m in known if m.axis == name] for name in ("risk", "utility"))
        named = tuple(_resolve_measure(str(name), known) for name in _as_tuple(risk)) or tuple(risks[:1])
        limits_by = None if profile is None else to_profile(profile)
        vars(self).update(  # frozen: no attribute can be assigned
            methods=_as_tuple(methods), measures=every, replicates=replicates, risk=named, data=data,
            rule=rule.resolve(known) if isinstance(rule, Rule) else rule,
            utility=_resolve_measure(str(utility), known) or next(iter(losses), ""), search_methods=tuple(search_methods),
            limits=_read_limits(limits or _profile_limits(limits_by, known), named, known), profile=limits_by,
            policy=policy or DEFAULT_POLICY,
            search=Search(**search) if isinstance(search, Mapping) else search, edits=_read_edits(edits),
            columns={name: tuple(own) for name, own in (columns or {}).items()},
            steps={name: tuple(own) for name, own in (steps or {}).items()},
            derive=_read_derive(derive), names={str(method): name for method, name in (names or {}).items()},
            seed=secrets.randbits(256) if seed is None else seed, seed_stated=seed is not None,
        )  # fmt: skip
        # methods are expanded only where there is no other problem
        if problems := [*self._problems()] or [*kept_model_problems(self.kept_models, self.measures)]:
            raise PlanError(problems)

    def __repr__(self) -> str:
        brief = {m.text: m.brief for m in self.measures}
        risks = name_axis([brief.get(name, name) for name in self.risk])
        axes = f": {risks} against {brief[self.utility]}" if self.risk and self.utility else ""
        return (
            f"Plan({self.count:,} candidates of {len(self.all_methods):,} methods, {len(self.measures)} measures{axes})"
        )

    def _repr_html_(self) -> str:
        """Return methods by name, measures and rule for a notebook; never the seed."""
        draws = [(self.method_names[method.text], self.draws_of(method)) for method in self.all_methods]
        limits = {name: format_limit(limit) for name, limit in self.limits.items()}
        measures = [(m.brief, m.axis, m.value_unit, limits.get(m.text)) for m in self.measures]
        rule = notebook_html.paragraph(f"Rule: {self.rule.text}") if self.rule else ""
        shown = notebook_html.table(["measure", "axis", "unit", "limit"], measures, "measures")
        return (
            notebook_html.paragraph(repr(self))
            + notebook_html.table(["method", "draws"], draws, "methods")
            + shown
            + rule
        )

    def _problems(self) -> Iterator[str]:
        # annotations are not enforced, so a script may pass anything
        for what, parts, kind in (("method", self.methods, Method | Grid), ("measure", self.measures, Measure)):
            for part in parts:
                if not isinstance(part, kind):
                    yield f"Plan.{what}s contains a {type(part).__name__}, which is not a {what}."
        if not isinstance(self.replicates, int) or not 1 <= self.replicates <= MAX_REPLICATES:
            yield f"Plan.replicates must be in [1, {MAX_REPLICATES}]. Got {self.replicates!r:.20}."
        if not isinstance(self.seed, int) or self.seed < 0:
            yield "Plan.seed must be a whole number of at least 0."
        measures = [m for m in self.measures if isinstance(m, Measure)]
        names = [m.text for m in measures]
        # without a risk measure the default ones are added later, so axes and limits may already name them
        known = names if any(m.axis == "risk" for m in measures) else [*names, *DEFAULT_RISK_CLASSES]
        if not names:
            yield "Plan.measures must contain at least one measure."
        for name in sorted({name for name in names if names.count(name) > 1}):
            yield f"Plan.measures contains {name} twice."
        for name in (*self.risk, *([self.utility] if self.utility else [])):
            if name not in known:
                yield f"the axis {name!r} is none of the plan's measures.{did_you_mean(name, names)}"
        for name in self.rule.measures if self.rule else ():
            if name not in names:
                yield f"the rule reads {name!r}, which is none of the plan's measures.{did_you_mean(name, names)}"
        for name, limit in self.limits.items():
            if name not in known:
                yield f"the limit of {name!r} is for none of the plan's measures.{did_you_mean(name, known)}"
            bounds = next((m.bounds for m in measures if m.text == name), (0.0, None))
            if not isinstance(limit, EfficiencyLimit) and (problem := limit_problem(bounds, limit)):
                yield f"the limit of {name!r} {problem}"
        yield from name_problems(self.names)

    # ---- candidates -------------------------------------------------------------------------------------------
    @cached_property
    def all_methods(self) -> tuple[Method, ...]:
        """Every method once, with grids expanded and `Identity()` first."""
        methods: dict[str, Method] = {Identity().digest: Identity()}
        for method in (*map(self.append_last_steps, self.stated_methods), *self.search_methods):
            methods.setdefault(method.digest, method)
        return tuple(methods.values())

    @cached_property
    def kept_models(self) -> tuple[str, ...]:
        """The regressions that a method was told to keep: the report shows them, and no measure counts them."""
        steps = [step for method in (*self.stated_methods, *self.search_methods) for step in method.steps]
        return tuple(dict.fromkeys(model for step in steps for model in step.kept_models))

    @cached_property
    def _single_draw_digests(self) -> frozenset[str]:
        """The digests of the methods that only a search proposed."""
        stated = (
            {self.append_last_steps(method).digest for method in self.stated_methods} if self.search_methods else set()
        )
        return frozenset(method.digest for method in self.search_methods) - stated

    def draws_of(self, method: Method) -> int:
        """Return how many candidates a method of this plan has."""
        return self.replicates if method.random and method.digest not in self._single_draw_digests else 1

    @property
    def stated_methods(self) -> Iterator[Method]:
        """The methods as they are stated, with grids expanded."""
        return (m for entry in self.methods for m in (entry if isinstance(entry, Grid) else (entry,)))

    def append_last_steps(self, method: Method) -> Method:
        """Return the method followed by the repair of edit rules and the derived columns."""
        if not self.last_steps or isinstance(method, Identity):
            return method
        return Chain((*(method.methods if isinstance(method, Chain) else (method,)), *self.last_steps))

    @property
    def last_steps(self) -> tuple[Method, ...]:
        """The steps that every candidate ends with: the repair of edit rules, then derived columns."""
        return (*([Repair(self.edits)] if self.edits else []), *self.derive)

    @cached_property
    def method_names(self) -> Mapping[str, str]:
        """Method text -> its name for people, each different: the stated one, or the method's title."""
        return name_methods(self.all_methods, self.stated_names, self.last_steps)

    @cached_property
    def stated_names(self) -> Mapping[str, str]:
        """Method text, as stated and with the plan's last steps -> the name that the plan states for it."""
        finished = {
            self.append_last_steps(m).text: self.names[m.text] for m in self.stated_methods if m.text in self.names
        }
        return {**self.names, **finished}

    def name_of_method(self, method: Method) -> str:
        """Return the name of a method as the plan states it."""
        return self.method_names[self.append_last_steps(method).text]

    def name_of(self, candidate: Candidate) -> str:
        """Return a candidate's name for people: that of its method, with the draw where there are several."""
        draw = candidate.replicate if self.draws_of(candidate.method) > 1 else None
        return name_draw(self.method_names[candidate.method.text], draw)

    @property
    def candidates(self) -> Iterator[Candidate]:
        """Every candidate, replicate by replicate, so that an interrupted sweep has whole replicates."""
        pairs = itertools.product(range(self.replicates), self.all_methods)
        return (Candidate(method, draw) for draw, method in pairs if draw < self.draws_of(method))

    @property
    def count(self) -> int:
        """Number of candidates."""
        return sum(map(self.draws_of, self.all_methods))

    def find(self, name: str) -> Candidate:
        """Return the candidate with this name, as `sdcmap choose` prints it, or whose id begins with `name`."""
        candidates = [candidate for candidate in self.candidates if self.name_of(candidate) == name]
        candidates = candidates or [candidate for candidate in self.candidates if candidate.id.startswith(name)]
        if len(candidates) != 1 or not name:
            what = (
                f"{len(candidates)} candidates of this plan begin" if candidates else "no candidate of this plan begins"
            )
            raise PlanError(f"{what} with {quote_text(name)}: use the name or id that `sdcmap choose` prints.")
        return candidates[0]

    def make(self, data: Microdata, choice: Choice | Candidate | str) -> Microdata:
        """Make a candidate again, with its secret `origin`. `choice` is a Choice, a Candidate or an id."""
        candidate = self.resolve_choice(choice)
        return candidate.method.apply(data, candidate.stream(self.seed))

    def resolve_choice(self, choice: Choice | Candidate | str) -> Candidate:
        """Return the candidate of a choice or an id; raise PlanError where the choice belongs to another seed."""
        name = choice if isinstance(choice, str) else choice.id if isinstance(choice, Candidate) else choice.candidate
        if name is None:
            raise PlanError("the choice is to release nothing, so there is no candidate to make.")
        candidate = self.find(name)
        if isinstance(choice, Choice) and choice.stream_id not in ("", candidate.stream(self.seed).stream_id):
            raise PlanError(OTHER_SEED)
        return candidate

    def bind_seed(self, seed: int) -> Plan:
        """Return the same plan with this seed, as if it had been stated."""
        plan = copy.copy(self)
        vars(plan).update(seed=seed, seed_stated=True)
        return plan

    def with_searched_methods(self, methods: Iterable[Method]) -> Plan:
        """Return the same plan with these methods from a search, one draw each."""
        return self._replace(search_methods=tuple(methods))

    def _replace(self, **facts: Any) -> Plan:
        """Return the same plan with other fields. Whether its seed was stated stays."""
        plan = replace(self, **facts)
        vars(plan).update(seed_stated=self.seed_stated)
        return plan

    def with_risk(self, data: Microdata) -> Plan:
        """Return the plan with the measures of `default_risk`, where it is a plan to choose by and names no risk measure.

        Only measures that fit these data are added. Axes and limits that name other default measures are removed.
        """
        to_choose_by = self.rule or self.limits or self.risk or self.data or self.profile
        if not to_choose_by or any(measure.axis == "risk" for measure in self.measures):
            return self
        given = default_risk(data)[0] if self.profile is None else tuple(self.profile.measures(data).limits)
        kinds = [(type(measure).__name__, measure.text) for measure in given]
        risk = tuple(text for name in self.risk for kind, text in kinds if name in (kind, text))
        stated = [m.text for m in self.measures]
        limits = {name: v for name, v in self.limits.items() if name in stated or any(name in kind for kind in kinds)}
        return self._replace(measures=(*self.measures, *given), risk=risk, limits=limits)

    @property
    def compares_records(self) -> bool:
        """Whether every risk on the axis compares records; fully synthetic files then have no risk value."""
        return all(measure.paired for measure in self.measures if measure.text in self.risk)

    def problems_with(self, data: Microdata) -> list[str]:
        """Return every reason why the plan does not fit these data, each once."""
        parts: tuple[Any, ...] = (*self.all_methods, *self.measures, *map(parse_edit, self.edits))
        incompatibilities = [problem for part in parts for problem in part.incompatibilities(data)]
        incompatibilities += [
            problem for step in self.derive for problem in [*step.incompatibilities(data)] or step.doubts(data)
        ]
        incompatibilities += [*kept_battery_problems(self.kept_models, self.measures, data), *self._too_few_draws()]
        if self.data is None and not data.keys and not data.numeric:
            incompatibilities.append("the data have no keys and no numeric variables: state roles when reading them.")
        return list(dict.fromkeys(incompatibilities))

    def _too_few_draws(self) -> Iterator[str]:
        """Yield a sentence for each expectation that decides and has too few draws to be known well enough."""
        if not any(method.random for method in self.stated_methods):
            return
        level = self.policy.comparison_level
        for measure in self._deciding_measures:
            needed = measure.draws_needed(level)
            if self.replicates < needed:
                yield (
                    f"{measure.text} is an expectation over random draws, and the plan decides by it. At the confidence "
                    f"level {level:g} it needs at least {needed} draws of each method. The plan has {self.replicates}: "
                    f"state replicates = {needed} or more."
                )

    @property
    def _deciding_measures(self) -> list[Measure]:
        """The measures by which the plan decides: those with a limit and, with a rule, those that it reads."""
        names = {*self.limits, *((*self.risk, self.utility, *self.rule.measures) if self.rule else ())}
        return [measure for measure in self.measures if measure.text in names]

    # ---- TOML -------------------------------------------------------------------------------------------------
    def toml(self) -> str:
        """Return the plan as a person would write it, without the seed: short, with the names of `columns` and `steps`."""
        table = self._table()
        layout = PlanLayout(self.columns, self.steps).without_names_of_columns(table)
        risks = [measure.text for measure in self.measures if measure.axis == "risk"]
        everything = len(risks) > 1 and list(self.risk) == risks

        def name_of_measure(text: str) -> str:
            return layout.name_text(name_without_edits(text, self.measures, self.edits), self.measures)

        table["risk"] = ALL_RISKS if everything else [name_of_measure(text) for text in self.risk]
        table["utility"] = name_of_measure(table["utility"])
        if "limits" in table:
            table["limits"] = {name_of_measure(text): limit for text, limit in table["limits"].items()}
        table["methods"] = layout.tables_of(self.methods, self.names)
        table["measures"] = [layout.measure_table(own) for own in leave_out_edits(table["measures"], list(self.edits))]
        if "data" in table:
            table["data"] = layout.data_table(table["data"])
        named = {"columns": layout.column_tables(), "steps": layout.step_tables()}
        start = {name: table[name] for name in ("replicates", "risk", "utility")}
        return format_plan(start | {name: part for name, part in named.items() if part} | table)

    def _table(self) -> dict[str, Any]:
        """Return the plan in full as TOML values."""
        utility = name_without_models(self.utility, self.measures)
        table: dict[str, Any] = {"replicates": self.replicates, "risk": list(self.risk), "utility": utility}
        if self.profile is not None:
            table["profile"] = self.profile.table()
        if self.limits != _profile_limits(self.profile, self.measures):
            table["limits"] = state_limits(self.limits)
        if self.policy != DEFAULT_POLICY:
            table["policy"] = {"reason": self.policy.reason, **self.policy.changes}
        table |= {"edits": list(self.edits), "derive": {step.on: step.formula for step in self.derive}}
        for name in ("rule", "data", "search"):
            if (part := getattr(self, name)) is not None:
                table[name] = {key: value for key, value in part.spec().items() if name == "rule" or key != "type"}
        names = [self.names.get(entry.text) if isinstance(entry, Method) else None for entry in self.methods]
        pairs = zip(self.methods, names, strict=True)
        table["methods"] = [entry.spec() | ({"name": name} if name else {}) for entry, name in pairs]
        table["analyses"], table["measures"] = split_analyses([measure.spec() for measure in self.measures])
        optional = ("limits", "edits", "derive", "analyses")
        return {name: part for name, part in table.items() if part or name not in optional}

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the plan in full as TOML, without its seed; it does not depend on `columns` and `steps`."""
        import tomli_w

        return hashlib.sha256(tomli_w.dumps(self._table()).encode()).hexdigest()

    def write(self, path: str | Path) -> Path:
        """Write the plan as TOML, whole or not at all, without the seed."""
        return write_atomically(Path(path), self.toml())

    @staticmethod
    def read(path: str | Path, *, seed: int | None = None) -> Plan:
        """Return the plan in a TOML file, or raise PlanError with every problem."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            raise PlanError(f"{path} cannot be read as a plan.") from None
        return Plan.from_toml(text, seed=seed)

    @staticmethod
    def from_toml(text: str, *, seed: int | None = None) -> Plan:
        """Return the plan in a TOML text, or raise PlanError with every problem."""
        problems: list[str] = []
        table = expand(read_table(text), problems)
        parts = [f.name for f in fields(Plan) if f.name not in ("names", "search_methods", "seed", "seed_stated")]
        unknown = [name for name in table if name not in (*parts, "analyses")][:MAX_PROBLEMS_SHOWN]
        problems += [f"a plan has no part {quote_text(name)}.{suggest_name(name, parts)}" for name in unknown]
        given: dict[str, Any] = {name: table[name] for name in table if name in parts}
        if "analyses" in table:
            given["measures"] = read_analyses(table["analyses"], given.get("measures", []), problems)
        if isinstance(given.get("measures"), list):
            given["measures"] = fill_edits(given["measures"], given.get("edits"))
        given["methods"], names = split_names(given.get("methods", []))
        for name, base in (("methods", Method), ("measures", Measure)):
            given[name] = _decode_list(name, given.get(name, []), base, problems)
        given["names"] = read_stated_names(given["methods"], names, problems)
        given["steps"] = {
            name: _decode_list(f"steps.{name}", steps, Method, problems)
            for name, steps in given.get("steps", {}).items()
        }
        if given.get("risk") == ALL_RISKS:
            given["risk"] = [own.text for own in given["measures"] if isinstance(own, Measure) and own.axis == "risk"]
        for name, part_base in (("rule", Rule), ("data", Source), ("policy", ReleasePolicy), ("search", Search)):
            if name in given:
                if name != "rule" and isinstance(given[name], Mapping):
                    given[name] = {**given[name], "type": part_base.__name__}
                given[name] = _decode_part(f"[{name}]", given[name], part_base, problems)
        try:
            plan = Plan(**given, seed=seed)
        except PlanError as error:
            problems += error.problems
        except (TypeError, ValueError):
            problems.append("risk must be a list, limits a list or a table of numbers, utility a text.")
        if problems:
            raise PlanError(problems)
        return plan


def _read_edits(given: str | Sequence[str]) -> tuple[str, ...]:
    """Return the edit rules, or raise PlanError with every problem."""
    edits = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, Sequence) else (None,)
    if not all(isinstance(text, str) for text in edits):
        raise PlanError("""edits must be a list of rules, such as ['age < 15 -> marital = "never"'].""")
    if edits and (problems := [f"edits: {problem}" for problem in edit_problems(edits)]):
        raise PlanError(problems)
    return tuple(dict.fromkeys(edits))


def _read_derive(given: Mapping[str, str] | Sequence[Derive]) -> tuple[Derive, ...]:
    """Return the steps that compute columns, or raise PlanError with every problem."""
    if not isinstance(given, Mapping):
        if isinstance(given, Sequence) and all(isinstance(step, Derive) for step in given):
            return tuple(given)
        raise PlanError('derive must be a table of formulas, such as {bmi = "weight / height**2"}.')
    steps: list[Derive] = []
    problems: list[str] = []
    for name, formula in given.items():
        try:
            steps.append(Derive(name, formula))
        except PlanError as error:
            problems += [f"derive: {problem}" for problem in error.problems]
    if problems:
        raise PlanError(problems)
    return tuple(steps)


def _resolve_measure(name: str, measures: Sequence[Measure]) -> str:
    """Return the text of the measure with this class name, if there is only one; otherwise the name itself."""
    of_class = [m.text for m in measures if type(m).__name__ == name]
    return of_class[0] if len(of_class) == 1 else name


def _read_limits(given: Any, risk: Sequence[str], measures: Sequence[Measure]) -> Mapping[str, float]:
    """Return limits by measure text. The name of a class applies to all its measures that are not named themselves."""
    if not isinstance(given, Mapping):
        values = tuple(map(float, _as_tuple(given)))
        if values and len(values) != len(risk):
            wanted = f"one limit for each of {len(risk)} risk measures"
            raise PlanError(f"Plan.limits must contain {wanted}. Got {len(values)}.")
        given = dict(zip(risk, values, strict=False))
    texts = [measure.text for measure in measures]
    by_text = {measure.text: measure for measure in measures}
    limits: dict[str, float] = {}
    # limits of classes first, so that limits of single measures override them
    for name, limit in sorted(given.items(), key=lambda stated: str(stated[0]) in texts):
        of_class = [m.text for m in measures if type(m).__name__ == str(name)]
        for text in [str(name)] if str(name) in texts else of_class or [str(name)]:
            limits[text] = read_limit(str(name), limit, by_text.get(text))
    return limits


def _profile_limits(profile: Profile | None, measures: Sequence[Measure]) -> dict[str, float]:
    """Return the limits of a profile for these measures."""
    limits = {} if profile is None else {measure.text: profile.limit_of(measure) for measure in measures}
    return {name: limit for name, limit in limits.items() if limit is not None}


def limits_of_plan(plan: Plan) -> tuple[Limit, ...]:
    """Return the strictest limit of each measure that the plan and its rule state."""
    by_name = {measure.text: measure for measure in plan.measures}
    stated = [*plan.limits.items(), *(plan.rule.limits.items() if plan.rule else ())]
    # a threshold on an axis of shares is a share of each limit
    threshold = getattr(plan.rule, "risk", None) if getattr(plan.rule, "has_limit", False) else None
    if isinstance(threshold, int | float):
        scales = axis_scales(plan.risk, plan.limits) or (1.0,) * len(plan.risk)
        stated += [(name, scale * threshold) for name, scale in zip(plan.risk, scales, strict=True)]
    return strictest(Limit(by_name[name], value) for name, value in stated if name in by_name and value == value)


def _as_tuple(given: Any) -> tuple[Any, ...]:
    """Return one thing or several as a tuple."""
    return (given,) if isinstance(given, str | Value | Grid | int | float) else tuple(given)


def _decode_part(where: str, spec: Any, base: type[Value], problems: list[str]) -> Any:
    if not isinstance(spec, Mapping):
        problems.append(f"{where} must be a table.")
        return None
    try:
        return decode_grid(spec, base) if isinstance(spec.get("grid"), Mapping) else decode(spec, base)
    except SdcmapError as error:
        problems += [f"{where}: {problem}" for problem in getattr(error, "problems", (str(error),))]
    except (TypeError, KeyError, AttributeError):
        problems.append(f"{where}: `grid` must contain lists, or tables with `subsets` and `sizes`.")
    return None


def _decode_list(name: str, specs: Any, base: type[Value], problems: list[str]) -> list[Any]:
    if not isinstance(specs, Sequence) or isinstance(specs, str):
        problems.append(f"{name} must be written as [[{name}]] tables.")
        return []
    decoded: Iterable[Any] = (_decode_part(f"{name}[{i}]", s, base, problems) for i, s in enumerate(specs, 1))
    return [value for value in decoded if value is not None]
