"""A study as it may be published: plans and scores of the same types, without private contents in any field.

Reports and notes for external readers are rendered from these values. What a value does not contain cannot be printed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from sdcmap.core import Method, Microdata
from sdcmap.core.audience import MIN_SHOWN_RECORDS, round_score
from sdcmap.core.estimate import NO_DETAILS, Estimate
from sdcmap.core.grid import Grid
from sdcmap.core.named_files import NO_DIGEST, PATH_FIELDS
from sdcmap.core.release_policy import DEFAULT_POLICY
from sdcmap.core.rule import Rule
from sdcmap.core.value import Spec, V, decode
from sdcmap.study.plan import Plan
from sdcmap.study.scores import Scores

CATEGORIES_FIELDS = ("merge", "categories")  # the fields that list categories
PUBLIC_COLUMNS = (
    "id",
    "kind",
    "method",
    "replicate",
    "status",
    "reason",
)  # columns of candidates; reasons are left empty


@dataclass(frozen=True)
class PublicValues:
    """Methods and measures without private words: files are named by role and rare categories by number.

    data : the original. A merged category keeps its name if at least 10 records have it; None: no category does.
    numbers : private word -> its number, the same wherever it occurs.

    >>> from sdcmap.risk import ExternalLink
    >>> PublicValues().of(ExternalLink("/x/register.csv", sha256="9f86d081884c7d65")).text
    "ExternalLink(archive='archive 1')"
    """

    data: Microdata | None = None
    numbers: dict[str, int] = field(default_factory=dict)

    def of(self, value: V) -> V:
        """Return the public form of a value, or the value itself where it contains nothing private."""
        spec = value.spec()
        public = self.spec(spec)
        return value if public == spec else decode(public, type(value))

    def spec(self, spec: Spec) -> Spec:
        """Return the public form of a spec, or of the spec of a grid."""
        return {name: self._public(name, part) for name, part in spec.items()}

    def _public(self, name: str, part: Any) -> Any:
        if isinstance(part, dict):
            return self.spec(part)
        if isinstance(part, list):
            return [self._public(name, item) for item in part]
        if name == "sha256":
            return NO_DIGEST
        if name in CATEGORIES_FIELDS:
            return part if part in self._common_categories else f"category {self._number(part)}"
        if name in PATH_FIELDS and isinstance(part, str) and part:
            return f"{name} {self._number(part)}"
        return part

    def _number(self, word: str) -> int:
        return self.numbers.setdefault(word, len(self.numbers) + 1)

    @cached_property
    def _common_categories(self) -> frozenset[str]:
        """Categories that at least 10 records have, in one column or another."""
        data = self.data
        return (
            frozenset()
            if data is None
            else frozenset(word for name in data.names for word in _common_categories(data, name))
        )

    def mentions_private(self, text: str) -> bool:
        """Return whether a text that a person wrote mentions a private file or category."""
        words = {word.casefold() for number in self.numbers for word in (number, Path(number).name)}
        return any(word in text.casefold() for word in words)


def _common_categories(data: Microdata, name: str) -> list[str]:
    levels = data.column(name).levels
    if levels is None:
        return []
    count = np.bincount(data.codes(name), minlength=len(levels))
    return [
        str(level)
        for level, records in zip(levels.to_list(), count.tolist(), strict=False)
        if records >= MIN_SHOWN_RECORDS
    ]


@dataclass(frozen=True)
class PublicView:
    """The public form of a plan and of its scores.

    texts : text of each private method and measure -> text of its public form.
    """

    plan: Plan
    texts: dict[str, str]

    @staticmethod
    def of(plan: Plan, data: Microdata) -> PublicView:
        """Return the public view of a plan: no seed, source, search or policy, and no names that mention private words."""
        public = PublicValues(data)
        methods = tuple(part for entry in plan.methods for part in _public_methods(entry, public))
        measures = tuple(map(public.of, plan.measures))
        texts = {m.text: public.of(m).text for m in (*plan.all_methods, *plan.measures, *plan.stated_methods)}
        names = {texts.get(text, text): name for text, name in plan.names.items() if not public.mentions_private(name)}
        limits = {texts.get(name, name): limit for name, limit in plan.limits.items()}
        shown = replace(
            plan, methods=methods, measures=measures, risk=tuple(texts.get(name, name) for name in plan.risk),
            utility=texts.get(plan.utility, plan.utility), limits=limits, profile=None, policy=DEFAULT_POLICY, data=None,
            rule=plan.rule and _public_rule(plan.rule, texts), names=names, search=None,
            search_methods=tuple(map(public.of, plan.search_methods)), seed=0,
        )  # fmt: skip
        return PublicView(shown, texts)

    def scores(self, scores: Scores) -> Scores:
        """Return the same numbers under public names, without ids, reasons, stream ids, times, bounds or attacks."""
        files = [name for name, kind in scores.kinds.items() if kind == "file"]
        texts = self.texts | {name: f"file made elsewhere {number}" for number, name in enumerate(files, 1)}
        # an id is a digest of the private method: an outsider could confirm a guess with it
        ids = {own: f"row {number}" for number, own in enumerate(scores.candidate["id"], 1)}
        no_reason = pl.lit("").alias("reason")
        own = (Estimate.from_details(0.0, None, details) for details in scores.score["details"])
        without_attacks = [replace(estimate, bounds=(), skipped=()).to_details() for estimate in own]
        bare = pl.Series("details", without_attacks, dtype=pl.String)
        rows, methods = pl.col("candidate").replace(ids), pl.col("method").replace(texts)
        return Scores.of_plan(
            self.plan,
            scores.candidate.with_columns(pl.col("id").replace(ids), methods, no_reason).select(PUBLIC_COLUMNS),
            scores.score.with_columns(rows, pl.col("measure").replace(texts), no_reason, bare),
            scores.measure.with_columns(pl.col("name").replace(texts)),
        )

    def rule(self, rule: Rule) -> Rule:
        """Return a rule with the measures that it names in their public form."""
        return _public_rule(rule, self.texts)

    def method(self, text: str) -> Method:
        """Return the public form of a method of the plan, by its private text."""
        return next(method for method in self.plan.all_methods if method.text == self.texts[text])

    def name_of(self, text: str) -> str:
        """Return the public name of a method, by its private text."""
        return self.plan.method_names.get(self.texts.get(text, ""), "a method that the plan no longer has")


def _public_methods(entry: Method | Grid[Method], public: PublicValues) -> Iterator[Method | Grid[Method]]:
    """Yield a method or a grid in public form.

    A grid that names files is expanded, because a role cannot be opened to compute a digest.
    """
    if isinstance(entry, Method):
        yield public.of(entry)
    elif public.spec(entry.spec()) == entry.spec():
        yield entry
    else:
        yield from map(public.of, entry)


def _public_rule(rule: Rule, texts: Mapping[str, str]) -> Rule:
    given = {f.name: getattr(rule, f.name) for f in fields(rule)}
    public: dict[str, Any] = {}
    for name, part in given.items():
        if isinstance(part, str) and part in texts:
            public[name] = texts[part]
        elif isinstance(part, tuple):
            public[name] = tuple(texts.get(item, item) if isinstance(item, str) else item for item in part)
    return replace(rule, **public)


def round_scores(scores: Scores, rows: int) -> Scores:
    """Return one row per method: pooled over its draws, to two significant digits, without parts and standard errors.

    Shares of records are rounded so that no two of them differ by 1 to 9 records (`round_score`). Nothing derived from
    these scores can be more precise.
    """
    units = dict(scores.measure.select("name", "unit").iter_rows())
    pooled = {name: scores.pooled(name) for name in units}
    methods = list(dict.fromkeys(method for table in pooled.values() for method in table["method"]))
    ids = {method: f"method {number}" for number, method in enumerate(methods, 1)}
    candidates = [(ids[method], scores.kinds[method], method, 0, "ok", "") for method in methods]
    rounded: list[tuple[object, ...]] = []
    for name, table in pooled.items():
        for method, exact in table.select("method", "value").iter_rows():
            value = _round_value(exact, units[name], rows)
            status = "infinite" if math.isinf(value) else "ok"
            rounded.append((ids[method], name, None if math.isinf(value) else value, None, NO_DETAILS, status, ""))
        absent = {"unpaired": scores.synthetic_candidates(name), "spared": scores.spared_candidates(name)}
        for status, own in absent.items():
            lacking = [method for method in own["method"].unique(maintain_order=True) if method in ids]
            rounded += [(ids[method], name, None, None, NO_DETAILS, status, "") for method in lacking]
    ends = scores.measure["name", "baseline_value"].iter_rows()
    baselines = [None if end is None else _round_value(end, units[name], rows) for name, end in ends]
    schema = {name: scores.candidate.schema[name] for name in PUBLIC_COLUMNS}
    candidate = pl.DataFrame(candidates, schema=schema, orient="row")
    score = pl.DataFrame(rounded, schema=scores.score.schema, orient="row")
    measure = scores.measure.with_columns(pl.Series("baseline_value", baselines, dtype=pl.Float64))
    return replace(scores, candidate=candidate, score=score, measure=measure, values={})


def _round_value(value: float, unit: str, rows: int) -> float:
    return float(f"{round_score(value, unit, rows):.2g}")
