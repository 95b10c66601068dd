"""The report put together and written."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from sdcmap.charts import draw_map
from sdcmap.charts.before_after import draw_before_after
from sdcmap.charts.change_charts import draw_change, draw_correlations
from sdcmap.core.audience import Audience, significant
from sdcmap.core.rule import Choice
from sdcmap.data.microdata import Microdata
from sdcmap.data.whole import write_whole
from sdcmap.dossier import facts, results
from sdcmap.dossier.change import changes
from sdcmap.dossier.columns import column_rows
from sdcmap.dossier.decision import falls_of, three_sentences, without_value
from sdcmap.dossier.evidence import evidence, safe_harbor, snoopers, study_facts, vocabulary
from sdcmap.dossier.in_records import in_records
from sdcmap.dossier.pair import pair_of
from sdcmap.dossier.questions import answers, numbers_of, worst_subgroups
from sdcmap.dossier.subgroup_means import subgroup_means
from sdcmap.dossier.view import View, external_view, internal_view
from sdcmap.dossier.what_holds import given_back, what_holds
from sdcmap.errors import PlanError
from sdcmap.map import RUMap
from sdcmap.recordwise.neighbourhood import Unsafe
from sdcmap.study.folder import Study

TEMPLATES = Path(__file__).parent / "templates"
MOST_PICTURES = 6  # distributions drawn before and after

Page = dict[str, object]


@dataclass(frozen=True)
class Report:
    """A self-contained page; `save` writes it."""

    html: str = field(repr=False)
    audience: str = "internal"

    def save(self, path: str | Path = "report.html") -> Path:
        """Write the page; it needs no network, and a browser prints it on A4 or into a PDF."""
        return write_whole(Path(path), self.html, private=self.audience == "internal")


def make_report(
    study: Study,
    ru: RUMap,
    choice: Choice | None,
    *,
    audience: str,
    records: Unsafe | None,
    title: str,
    owner: str,
    show_risk: str,
) -> Report:
    """Return the report of a study from its map and what was chosen; `sdcmap.report` explains every option."""
    to = Audience(audience, len(study.data))
    if show_risk and not to.external:
        raise PlanError("show_risk is for an external report; the internal one shows risk anyway.")
    head: Page = {
        "audience": audience,
        "external": to.external,
        "risk_told": not to.external or bool(show_risk.strip()),
        "show_risk": show_risk.strip(),
        "title": title or ("" if to.external or study.path is None else study.data.schema.title or study.path.name),
        "owner": owner,
        "day": datetime.now(UTC).date().isoformat(),
        "versions": facts.versions(),
    }
    page = _outside(study, ru, choice, head, records) if to.external else _inside(study, ru, choice, records)
    return Report(_rendered(head | page), audience)


def _inside(study: Study, ru: RUMap, choice: Choice | None, rule: Unsafe | None) -> Page:
    """What the board reads."""
    plan, data, scores, view = study.plan, study.data, ru.scores, internal_view(study, ru, choice)
    known = study_facts(study, data, choice)
    falls = falls_of(plan, scores, choice)
    return {
        **_common(study, view),
        "decision": three_sentences(plan, scores, choice, len(data)) if choice is not None else [],
        "profile": plan.profile.name if plan.profile else "",
        "fall": draw_before_after(list(falls.values())).svg() if falls else "",
        "unvalued": without_value(plan, scores, choice),
        "snoopers": snoopers(scores, known),
        "frameworks": evidence(scores, choice, known, view.to),
        "edition": vocabulary()["edition"],
        "safe_harbor": safe_harbor(data),
        "pair": pair_of(study),
        "tried": facts.tried(scores, choice, study.manifest.get("search", {})),
        **_compared(study, choice, view.to, rule),
    }


def _outside(study: Study, ru: RUMap, choice: Choice | None, head: Page, rule: Unsafe | None) -> Page:
    """What anybody may read; risk only where it was asked for."""
    view = external_view(study, ru, choice)
    page = _common(study, view) | _compared(study, choice, view.to, rule)
    return page if head["risk_told"] else page | _without_risk(page, view)


def _common(study: Study, view: View) -> Page:
    """What both audiences read, each at its own precision."""
    ru, choice, to = view.map, view.choice, view.to
    return {
        "data": facts.data_facts(study.data, to),
        "plan": facts.plan_facts(view.plan, study.data),
        "frontier": results.frontier_table(ru, view.shown, to),
        "releases": results.release_frontier(ru, to),
        "choice": None if choice is None else results.choice_facts(choice, choice.rule.text, to),
        "risks": results.score_table(ru.scores, choice, "risk", to, ru.limits_by_name),
        "nobodys": results.is_nobodys(ru.scores, choice),
        "untried": results.untried(ru.scores, choice, to),
        "utilities": results.score_table(ru.scores, choice, "utility", to, ru.limits_by_name),
        "missing": facts.missing_candidates(ru.scores, to),
        "history": facts.history(study, view),
        "maps": _maps(view.shown, choice, to),
    }


def _without_risk(page: Page, view: View) -> Page:
    """What takes the place of everything that tells a risk: its values, its limits, and what is ordered by them."""
    plan = dict(page["plan"])  # type: ignore[call-overload]
    data = dict(page["data"])  # type: ignore[call-overload]
    facts_of_choice = None if view.choice is None else results.choice_facts(view.choice, "", view.to)
    return {
        "plan": plan | {"limits": [], "rule": ""},
        "data": data | {"rare": []},
        "choice": facts_of_choice and facts_of_choice | {"runners_up": (), "single": ""},
        "frontier": [],
        "releases": [],
        "risks": [],
        "maps": [],
        "records": "",
    }


def _maps(shown: RUMap, marked: Choice | None, to: Audience) -> list[str]:
    """The map by release and, where methods have several, by mean; outside, and where a measure is an expectation, by mean
    alone."""
    several = int(shown.means["count"].max() or 0) > 1  # type: ignore[arg-type]
    layers = ["mean"] if to.external or shown.is_expectation else ["release", "mean"] if several else ["release"]
    return [draw_map(shown, mark=marked, by=layer).svg() for layer in layers]


def _compared(study: Study, choice: Choice | None, to: Audience, rule: Unsafe | None) -> Page:
    """The chosen candidate made again, beside the original; nothing where there is no candidate of ours."""
    plan, data = study.plan, study.data
    parts = ("changes", "columns", "holds", "answers", "subgroups", "subgroup_means", "readings", "pictures")
    nothing: Page = {**{part: [] for part in parts}, "given": "", "records": ""}
    if choice is None or choice.candidate is None or study.scores().kinds.get(choice.method) == "file":
        return nothing
    method, masked = plan.chosen(choice).method, plan.make(data, choice)
    names = method.masks(data)
    page = nothing | {"changes": changes(data, masked, names, to), "records": _records(data, masked, to, rule)}
    if to.external:
        return page
    return page | {
        "columns": column_rows(data, masked, method),
        "holds": what_holds(plan, data, masked),
        "given": given_back(plan, data, masked, names),
        "answers": answers(data, masked),
        "subgroups": worst_subgroups(data, masked),
        "subgroup_means": subgroup_means(data, masked, plan.measures),
        "readings": in_records(data, study.scores(), choice, plan.seed),
        "pictures": _pictures(data, masked, names),
    }


def _pictures(data: Microdata, masked: Microdata, names: tuple[str, ...]) -> list[str]:
    """The masked numbers before and after, in bins, and the correlations of all numbers. Categories are in tables, where
    small ones are merged."""
    amounts = numbers_of(data, masked)
    drawn = [draw_change(data, masked, name).svg() for name in amounts if name in names]
    return [*drawn[:MOST_PICTURES], *([draw_correlations(data, masked, amounts).svg()] if len(amounts) > 1 else [])]


def _records(data: Microdata, masked: Microdata, to: Audience, rule: Unsafe | None) -> str:
    """The confidentiality plot of the chosen candidate; nothing where no rule is given."""
    if rule is None:
        return ""
    from sdcmap.recordwise.table import records

    return records(data, masked, rule=rule).draw(audience=to.name, title="Every record").svg()


def _rendered(page: Page) -> str:
    import jinja2

    loader = jinja2.FileSystemLoader(TEMPLATES)
    room = jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    room.filters["significant"] = significant
    return room.get_template("report.html").render(page)
