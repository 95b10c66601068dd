"""What one audience may see of a study. Every part of the report is rendered from these values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import polars as pl

from sdcmap.core.audience import Audience
from sdcmap.core.rule import Choice, RunnerUp
from sdcmap.map import RUMap
from sdcmap.study.folder import Study
from sdcmap.study.plan import Plan
from sdcmap.study.public_view import PublicView, round_scores


@dataclass(frozen=True)
class View:
    """A plan, its map and the choice, as an audience may see them.

    map : of every draw. shown : the map that is drawn; for external readers, of methods and with rounded numbers.
    shows_risk : whether risk values and limits, and anything sorted by them, may be shown.
    public_name : returns the public name of a method, by its text; None: the board sees everything.
    """

    to: Audience
    plan: Plan
    map: RUMap
    shown: RUMap
    choice: Choice | None
    shows_risk: bool = True
    public_name: Callable[[str], str] | None = field(default=None, repr=False)

    @property
    def units(self) -> tuple[str, str]:
        """The units of risk and utility on the map; no unit if risk is a share of limits."""
        units = dict(self.map.scores.measure.select("name", "unit").iter_rows())
        return "" if self.map.scales else units[self.map.risk[0]], units[self.map.utility]


def internal_view(study: Study, ru: RUMap, choice: Choice | None) -> View:
    """Return the full view, for the board."""
    return View(Audience("internal", len(study.data)), study.plan, ru, ru, choice)


def external_view(study: Study, ru: RUMap, choice: Choice | None, shows_risk: bool) -> View:
    """Return the public view: public values, pooled and rounded scores, the chosen method without its draw."""
    data = study.data
    public = PublicView.of(study.plan, data)
    # Numbers are rounded before the map is built, so that the drawn frontier reveals no exact value.
    plan, scores = public.plan, public.scores(ru.scores)
    axes = plan.risk, plan.utility, plan.limits
    exact, shown = RUMap(scores, *axes), RUMap(round_scores(scores, len(data)), *axes)
    chosen = None if choice is None else _public_choice(choice, public, shown)
    if not shows_risk:
        plan = replace(plan, limits={}, profile=None, rule=None)
        chosen = None if chosen is None else replace(chosen, runners_up=())
    return View(Audience("external", len(data)), plan, exact, shown, chosen, shows_risk, public.name_of)


def _public_choice(choice: Choice, public: PublicView, shown: RUMap) -> Choice:
    """Return the choice without its single draw: the method with its pooled, rounded scores."""
    rule = public.rule(choice.rule)
    if choice.candidate is None:
        return replace(choice, rule=rule, reason="", runners_up=())
    method = public.texts.get(choice.method, choice.method)
    row = shown.means.filter(pl.col("method") == method).to_dicts()
    risk, utility = (row[0]["risk"], row[0]["utility"]) if row else (None, None)
    name = shown.scores.name_of(method)
    others = dict.fromkeys(public.name_of(runner.method) for runner in choice.runners_up)
    runners = tuple(RunnerUp(None, "", None, other, "") for other in others if other != name)
    return Choice("chosen", method, None, risk, utility, rule, "", runners, searched=choice.searched, name=name)
