"""The report put together and written."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from sdcmap.charts import draw_map
from sdcmap.charts.before_after import draw_before_after
from sdcmap.charts.change_charts import draw_change, draw_correlations
from sdcmap.core import Choice, Microdata, PlanError
from sdcmap.core.audience import Audience, format_significant
from sdcmap.data.private_folder import write_atomically
from sdcmap.explore.first_look import SMALL_CELL_SIZES, look
from sdcmap.map import RUMap
from sdcmap.recordwise.neighborhood import Unsafe
from sdcmap.recordwise.table import records as record_table
from sdcmap.reports import study_rows
from sdcmap.reports.decision import falls_of, pair_of, three_sentences, without_value
from sdcmap.reports.evidence import evidence, safe_harbor, snoopers, study_facts, vocabulary
from sdcmap.reports.masked_columns import changes, column_rows, given_back, what_holds
from sdcmap.reports.questions import answers, in_records, numbers_of, subgroup_means, worst_subgroups
from sdcmap.reports.view import View, external_view, internal_view
from sdcmap.study.folder import Study
from sdcmap.study.profiles import explain_unmeasured

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
        return write_atomically(Path(path), self.html, private=self.audience == "internal")


def make_report(
    study: Study, ru: RUMap, choice: Choice | None, *, audience: str, records: Unsafe | None, title: str, owner: str,
    show_risk: str,
) -> Report:  # fmt: skip
    """Return the report of a study from its map and what was chosen; `sdcmap.report` explains every option."""
    why = show_risk.strip()
    if show_risk and audience == "internal":
        raise PlanError("show_risk is for an external report; the internal one shows risk anyway.")
    to = Audience(audience, len(study.data))
    view = external_view(study, ru, choice, bool(why)) if to.is_external else internal_view(study, ru, choice)
    own_title = "" if to.is_external or study.path is None else study.data.schema.title or study.path.name
    page = _common(study, view) | _compared(study, choice, view, records)
    page |= {} if to.is_external else _for_the_board(study, view)
    page |= {"title": title or own_title, "owner": owner, "show_risk": why, "day": datetime.now(UTC).date().isoformat()}
    return Report(_rendered(page, to), audience)


def _for_the_board(study: Study, view: View) -> Page:
    """Return what the board alone reads."""
    plan, data, scores, choice = view.plan, study.data, view.map.scores, view.choice
    known, falls = study_facts(study, data, choice), falls_of(plan, scores, choice)
    return {
        "decision": three_sentences(plan, scores, choice, len(data)) if choice is not None else [],
        "fall": draw_before_after(list(falls.values())).svg() if falls else "",
        "unvalued": without_value(plan, scores, choice),
        "snoopers": snoopers(scores, known),
        "frameworks": evidence(scores, choice, known, view.to),
        "edition": vocabulary()["edition"],
        "safe_harbor": safe_harbor(data),
        "pair": pair_of(study),
        "tried": study_rows.tried(scores, choice, study.manifest.get("search", {})),
        "untried": study_rows.untried(scores, choice),
        "missing": study_rows.missing_candidates(scores),
        "releases": [] if view.map.is_expectation else view.map.frontier.to_dicts(),
    }


def _common(study: Study, view: View) -> Page:
    """Return what both audiences read, each at its own precision; what tells a risk only where it may be told."""
    scores, seen = view.map.scores, look(study.data)
    tables = {axis: study_rows.score_table(scores, view.choice, axis, view.to, view.map.limits_by_name)
              for axis in ("risk", "utility")}  # fmt: skip
    return {
        "external": view.to.is_external,
        "view": view,
        "plan": view.plan,
        "choice": view.choice,
        "name_of": scores.name_of,
        "rows": seen.rows,
        "keys": study.data.keys,
        "columns_seen": [(seen_one, study.data.schema[seen_one.name].label) for seen_one in seen.variables],
        "rare": dict(zip(SMALL_CELL_SIZES, seen.sizes.values(), strict=False)) if view.tells_risk else {},
        "axes": study_rows.axes_of(view.plan),
        "limits": study_rows.limits_of(view.plan),
        "methods": study_rows.methods_of(view.plan),
        "not_measured": explain_unmeasured(study.data, view.plan.measures),
        "frontier": study_rows.frontier_rows(view) if view.tells_risk else [],
        "risks": tables["risk"] if view.tells_risk else [],
        "utilities": tables["utility"],
        "is_synthetic": study_rows.is_synthetic(scores, view.choice),
        "all_made": set(scores.candidate["status"]) <= {"ok"},
        "fixed_first": study.rule_was_fixed_first,
        "history": study_rows.history(study.manifest, view.public_name),
        "maps": _maps(view) if view.tells_risk else [],
        "versions": study_rows.versions(),
    }


def _maps(view: View) -> list[str]:
    """The map by release and, where methods have several, by mean; outside, and where a measure is an expectation, by mean
    alone."""
    shown = view.shown
    several = int(shown.means["count"].max() or 0) > 1  # type: ignore[arg-type]
    layers = (
        ["mean"] if view.to.is_external or shown.is_expectation else ["release", "mean"] if several else ["release"]
    )
    return [draw_map(shown, mark=view.choice, by=layer).svg() for layer in layers]


def _compared(study: Study, choice: Choice | None, view: View, rule: Unsafe | None) -> Page:
    """Return the chosen candidate made again, beside the original; nothing where there is no candidate of ours."""
    plan, data, to = study.plan, study.data, view.to
    if choice is None or choice.candidate is None or study.scores().kinds.get(choice.method) == "file":
        return {}
    method, masked = plan.resolve_choice(choice).method, plan.make(data, choice)
    names = method.masks(data)
    page: Page = {"changes": changes(data, masked, names, to)}
    if rule is not None and view.tells_risk:
        page["records"] = record_table(data, masked, rule=rule).draw(audience=to.name, title="Every record").svg()
    if to.is_external:
        return page
    return page | {
        "columns": column_rows(data, masked, method),
        "holds": [*what_holds(plan, data, masked)],
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


def _rendered(page: Page, to: Audience) -> str:
    import jinja2

    loader = jinja2.FileSystemLoader(TEMPLATES)
    templates = jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    templates.filters |= {"significant": format_significant, "number": to.number, "score": to.score, "count": to.count}
    templates.filters |= {"percent": to.percent, "story": study_rows.story_of}
    return templates.get_template("report.html").render(page)
