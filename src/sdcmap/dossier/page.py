"""The report put together and written."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from sdcmap.charts import draw_map
from sdcmap.core.audience import Audience
from sdcmap.core.rule import Choice, named_limits
from sdcmap.data.microdata import Microdata
from sdcmap.data.whole import write_whole
from sdcmap.dossier import facts, results
from sdcmap.dossier.change import Table, changes
from sdcmap.dossier.public_names import Names, public_names
from sdcmap.dossier.public_scores import public_scores
from sdcmap.errors import PlanError
from sdcmap.map import RUMap
from sdcmap.recordwise.neighbourhood import Unsafe
from sdcmap.study.folder import Study
from sdcmap.study.plan import Plan

TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class Report:
    """A self-contained page; `save` writes it."""

    html: str = field(repr=False)
    audience: str = "internal"

    def save(self, path: str | Path = "report.html") -> Path:
        """Write the page; it needs no network and prints well."""
        return write_whole(Path(path), self.html, private=self.audience == "internal")


def report(
    study: Study | str | Path,
    choice: Choice | None = None,
    *,
    audience: str = "internal",
    records: Unsafe | None = None,
) -> Report:
    """The report of a study: data, plan, map, frontier, choice and its reason, risk and utility before and after.

    Parameters
    ----------
    study : a study or its folder.
    choice : what was chosen; by default what the plan's rule chooses, and nothing where the plan has no rule.
    audience : "internal" for the board; "external" for anybody: scores of methods to two significant digits, no single
        release, no count of 1 to 9 records, no quantile of the data, no path or
        digest of a file, no reason why a candidate was infeasible.
    records : a rule of safety; the confidentiality plot of the chosen release is added (outside, its binned counts alone).

    The seed, the data's digest and the origin of records are in neither.
    """
    study = study if isinstance(study, Study) else Study.open(study)
    plan, data = study.plan, study.data
    to = Audience(audience, len(data))
    if not plan.risk or not plan.utility:
        raise PlanError("a report needs a risk measure and a utility measure in the plan.")
    scores = study.scores()
    ru = RUMap(scores, plan.risk, plan.utility, plan.limits)
    if choice is None and plan.rule is not None:
        choice = ru.choose(plan.rule)
    made_here = choice is not None and choice.candidate is not None and scores.kinds.get(choice.method) != "file"
    ours = choice if made_here else None
    shown, marked, told, outside = ru, choice, Names(), None
    if to.external:
        told = public_names(plan, scores)
        outside = told.outside
        scores, choice = told.scores(scores), None if choice is None else told.choice(choice)
        axes = told((plan.risk, plan.utility, plan.limits))
        ru, shown = RUMap(scores, *axes), RUMap(public_scores(scores, len(data)), *axes)
        marked = None if choice is None else results.public_choice(choice, shown)
    page: dict[str, object] = {
        "audience": audience,
        "external": to.external,
        "data": facts.data_facts(data, to),
        "plan": facts.plan_facts(plan, data, outside),
        "frontier": results.frontier_table(ru, shown, to),
        "releases": results.release_frontier(ru, to),
        "choice": None if marked is None or choice is None else results.choice_facts(marked, choice.rule.text, to),
        "risks": results.score_table(scores, choice, "risk", to, named_limits(ru.limits)),
        "nobodys": results.is_nobodys(scores, choice),
        "untried": results.untried(scores, choice, to),
        "utilities": results.score_table(scores, choice, "utility", to, named_limits(ru.limits)),
        "changes": _changes(data, plan, ours, to),
        "missing": facts.missing_candidates(scores, to),
        "history": facts.history(study, to, outside),
        "versions": facts.versions(),
    }
    pictures = {"maps": _maps(shown, marked, to), "records": _records(data, plan, ours, to, records)}
    return Report(_rendered(told(page) | pictures), audience)


def _maps(shown: RUMap, marked: Choice | None, to: Audience) -> list[str]:
    """The map by release and by mean; outside, and where a measure is an expectation, by mean alone."""
    layers = ["mean"] if to.external or shown.is_expectation else ["release", "mean"]
    return [draw_map(shown, mark=marked, by=layer).svg() for layer in layers]


def _changes(data: Microdata, plan: Plan, choice: Choice | None, to: Audience) -> list[Table]:
    """The chosen candidate made again, beside the original; nothing where there is no candidate of ours."""
    if choice is None:
        return []
    names = plan.chosen(choice).method.masks(data)
    return changes(data, plan.make(data, choice), names, to)


def _records(data: Microdata, plan: Plan, choice: Choice | None, to: Audience, rule: Unsafe | None) -> str:
    """The confidentiality plot of the chosen candidate; nothing where no rule or no candidate of ours is given."""
    if rule is None or choice is None:
        return ""
    from sdcmap.recordwise.table import records

    return records(data, plan.make(data, choice), rule=rule).draw(audience=to.name, title="Every record").svg()


def _rendered(page: dict[str, object]) -> str:
    import jinja2

    loader = jinja2.FileSystemLoader(TEMPLATES)
    room = jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return room.get_template("report.html").render(page)
