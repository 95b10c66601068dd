"""Assemble the report and write it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from sdcmap.bundle.note import RELATION_HEAD, describe_relations, relation_cells
from sdcmap.charts import draw_criterion, draw_map, draw_measure_pairs
from sdcmap.charts.before_after import draw_before_after
from sdcmap.charts.change_charts import draw_change, draw_correlations
from sdcmap.charts.estimate_pairs import draw_estimate_pairs
from sdcmap.charts.knowledge_errors import draw_knowledge
from sdcmap.charts.measure_pairs import measured_names
from sdcmap.charts.parameter_curves import default_layer
from sdcmap.choose import GlobalCriterion
from sdcmap.core import Choice, Microdata, PlanError
from sdcmap.core.audience import Audience, format_significant
from sdcmap.data.private_folder import write_atomically
from sdcmap.explore.first_look import SMALL_CELL_SIZES, look
from sdcmap.map import RUMap
from sdcmap.recordwise.neighborhood import Unsafe
from sdcmap.recordwise.table import records as record_table
from sdcmap.reports import report_tables
from sdcmap.reports.audience_view import View, external_view, internal_view
from sdcmap.reports.changed_analyses import (
    ANALYSES_SHOWN,
    CONCLUSION_RULES,
    TABLE_HEAD,
    describe_analyses,
    draw_public,
    repeat_for_plan,
)
from sdcmap.reports.decision import (
    TESTED,
    decision_sentences,
    limit_rows,
    measures_without_value,
    parent_file,
    release_measurement,
    risk_changes,
)
from sdcmap.reports.evidence import framework_evidence, list_attackers, safe_harbor, study_facts, vocabulary
from sdcmap.reports.knowledge_states import KnowledgeTable, compare_knowledge
from sdcmap.reports.masked_columns import change_tables, check_constraints, column_rows, describe_recoverable
from sdcmap.reports.user_questions import (
    answer_questions,
    numbers_of,
    subgroup_means,
    subsample_equivalents,
    worst_subgroups,
)
from sdcmap.study.folder import Study
from sdcmap.study.plan import Plan
from sdcmap.study.profiles import explain_unmeasured

TEMPLATES = Path(__file__).parent / "templates"
MAX_PICTURES = 6  # distributions drawn before and after
MAX_SMALL_MAPS = 24  # of pairs of measures; more would make a long page

Page = dict[str, object]


@dataclass(frozen=True)
class Report:
    """A self-contained page; `save` writes it."""

    html: str = field(repr=False)
    audience: str = "internal"

    def save(self, path: str | Path = "report.html") -> Path:
        """Write the page. It loads nothing from the network, and prints on A4."""
        return write_atomically(Path(path), self.html, private=self.audience == "internal")


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
    """Return the report of a study from its map and choice; `sdcmap.report` documents every option."""
    reason = show_risk.strip()
    if show_risk and audience == "internal":
        raise PlanError("show_risk applies to external reports only; the internal report always shows risk.")
    to = Audience(audience, len(study.data))
    view = external_view(study, ru, choice, bool(reason)) if to.is_external else internal_view(study, ru, choice)
    own_title = "" if to.is_external or study.path is None else study.data.schema.title or study.path.name
    page = _shared_sections(study, view) | _release_sections(study, choice, view, records)
    page |= {} if to.is_external else _board_sections(study, view)
    today = datetime.now(UTC).date().isoformat()
    page |= {"title": title or own_title, "owner": owner, "show_risk": reason, "day": today}
    return Report(_render(page, to), audience)


def _board_sections(study: Study, view: View) -> Page:
    """Return the sections that only the board sees."""
    plan, data, scores, choice = view.plan, study.data, view.map.scores, view.choice
    facts, changes = study_facts(study, data, choice), risk_changes(plan, scores, choice)
    limits = limit_rows(scores, choice)
    return {
        "decision": decision_sentences(plan, scores, choice, len(data)) if choice is not None else [],
        "released": release_measurement(study, scores, choice),
        "tested_limits": [row for row in limits if row.result in TESTED],
        "untested_limits": [row for row in limits if row.result not in TESTED],
        "risk_chart": draw_before_after(list(changes.values())).svg() if changes else "",
        "without_value": measures_without_value(plan, scores, choice),
        "knowledge": [(table, _draw_knowledge(table)) for table in compare_knowledge(scores, choice)],
        "planes": _draw_planes(view),
        "attackers": list_attackers(scores, choice, facts),
        "frameworks": framework_evidence(scores, choice, facts, view.to),
        "edition": vocabulary()["edition"],
        "safe_harbor": safe_harbor(data),
        "parent": parent_file(study),
        "search_summary": report_tables.summarize_search(scores, choice, study.manifest.get("search", {})),
        "skipped_attacks": report_tables.skipped_attacks(scores, choice),
        "parts_without_limit": report_tables.parts_without_limit(scores, choice),
        "missing": report_tables.missing_candidates(scores),
        "releases": [] if view.map.is_expectation else view.map.frontier.to_dicts(),
        **_draw_measure_pairs(view),
    }


def _draw_knowledge(table: KnowledgeTable) -> str:
    return draw_knowledge([row.errors for row in table.rows], table.variable).svg()


def _shared_sections(study: Study, view: View) -> Page:
    """Return the sections for both audiences, each with its own precision; risk only if it may be shown."""
    scores, overview = view.map.scores, look(study.data)
    tables = {
        axis: report_tables.score_table(scores, view.choice, axis, view.to, view.map.limits_by_name)
        for axis in ("risk", "utility")
    }
    return {
        "external": view.to.is_external,
        "view": view,
        "plan": view.plan,
        "choice": view.choice,
        "name_of": scores.name_of,
        "rows": overview.rows,
        "keys": study.data.keys,
        "original_columns": [(column, study.data.schema[column.name].label) for column in overview.variables],
        "rare": dict(zip(SMALL_CELL_SIZES, overview.sizes.values(), strict=False)) if view.shows_risk else {},
        "axes": report_tables.axes_of(view.plan),
        "limits": report_tables.limits_of(view.plan),
        "methods": report_tables.methods_of(view.plan),
        "not_measured": explain_unmeasured(study.data, view.plan.measures, view.plan.profile),
        "frontier": report_tables.frontier_rows(view) if view.shows_risk else [],
        "worse": report_tables.worse_methods(view) if view.shows_risk else [],
        "risks": tables["risk"] if view.shows_risk else [],
        "utilities": tables["utility"],
        "is_synthetic": view.choice is not None and scores.is_synthetic(view.choice.method),
        "all_created": set(scores.candidate["status"]) <= {"ok"},
        "fixed_first": study.rule_was_fixed_first,
        "history": report_tables.history(study.manifest, view.public_name),
        "maps": _draw_maps(view) if view.shows_risk else [],
        "versions": report_tables.versions(),
    }


def _draw_measure_pairs(view: View) -> Page:
    """Return small maps of all measures, or how many there would be; empty where the map itself shows the only pair."""
    risks, utilities = measured_names(view.map)
    count = len(risks) * len(utilities)
    if count < 2:
        return {}
    if count > MAX_SMALL_MAPS:
        return {"too_many_pairs": count}
    return {"measure_pairs": draw_measure_pairs(view.map, mark=view.choice).svg()}


def _draw_planes(view: View) -> dict[str, object] | None:
    """Return global risk and utility, if the rule is the global criterion: the planes, the table and the prior."""
    rule, choice = view.plan.rule, view.choice
    if not isinstance(rule, GlobalCriterion) or choice is None:
        return None
    ru = view.map
    chosen_by = choice if choice.rule == rule else replace(choice, rule=rule)  # a person may have picked it
    return {
        "chart": draw_criterion(ru, chosen_by).svg(), "rows": rule.describe(ru, choice).to_dicts(), "prior": rule.prior(ru),
        "rule": rule, "intruders": len(rule.iek), "users": len(rule.sek),
    }  # fmt: skip


def _draw_maps(view: View) -> list[tuple[str, str]]:
    """Return the maps as (layer, picture): curves of a parameter where methods form families, else points.

    Beside points of single releases, methods with several draws have a map of means. External readers, and studies with a
    measure that is an expectation, get no single releases.
    """
    shown = view.shown
    has_draws = int(shown.means["count"].max() or 0) > 1  # type: ignore[arg-type]
    means_only = view.to.is_external or shown.is_expectation
    if default_layer(shown) == "curve":
        layers = ["curve"] if means_only else ["curve", "release"]
    else:
        layers = ["mean"] if means_only else ["release", "mean"] if has_draws else ["release"]
    return [(layer, draw_map(shown, mark=view.choice, by=layer).svg()) for layer in layers]


def _release_sections(study: Study, choice: Choice | None, view: View, rule: Unsafe | None) -> Page:
    """Return the comparison of the chosen release with the original; empty without a candidate made by a method."""
    plan, data, to = study.plan, study.data, view.to
    if choice is None or choice.candidate is None or study.scores().kinds.get(choice.method) == "file":
        return {}
    # The release is not stored: it is created again from the plan's seed.
    method, masked = plan.resolve_choice(choice).method, plan.make(data, choice)
    names = method.masks(data)
    page: Page = {"changes": change_tables(data, masked, names, to), "steps": report_tables.method_steps(method)}
    if rule is not None and view.shows_risk:
        page["records"] = record_table(data, masked, rule=rule).draw(audience=to.name, title="Every record").svg()
    if to.is_external:
        return page | _public_analyses(plan, data, masked)
    analyses = describe_analyses(plan, data, masked)
    return page | {
        "analyses": analyses,
        "analysis_head": TABLE_HEAD,
        "conclusion_rules": CONCLUSION_RULES,
        "analysis_chart": draw_estimate_pairs(analyses.pairs).svg() if analyses else "",
        # What a step preserves, a later step may change, so this is shown for single methods only.
        "preserved": method.kept if len(method.steps) == 1 else "",
        "distorted": [step.distorted for step in method.steps if step.distorted],
        "columns": column_rows(data, masked, method),
        "constraints": [*check_constraints(plan, data, masked)],
        "recoverable": describe_recoverable(plan, data, masked, names),
        "answers": answer_questions(data, masked),
        "subgroups": worst_subgroups(data, masked),
        "subgroup_means": subgroup_means(data, masked, plan.measures),
        "readings": subsample_equivalents(data, study.scores(), choice, plan.seed),
        "pictures": _draw_pictures(data, masked, names),
    }


def _public_analyses(plan: Plan, data: Microdata, masked: Microdata) -> Page:
    """Return what the release does to the analyses of users, as the note states it; empty where nothing was analyzed."""
    found = repeat_for_plan(plan, data, masked)
    if found is None:
        return {}
    relations = describe_relations(found)
    shown = relations["changed"][:ANALYSES_SHOWN]
    pairs = draw_public(shown)
    return {
        "relations": relations,
        "relation_head": RELATION_HEAD,
        "relation_rows": [*map(relation_cells, shown)],
        "relation_chart": draw_estimate_pairs(pairs).svg() if pairs else "",
    }


def _draw_pictures(data: Microdata, masked: Microdata, names: tuple[str, ...]) -> list[str]:
    """Return histograms of the masked numbers before and after, and the correlations of all numbers.

    Categories are shown in tables instead, where small ones are merged.
    """
    numbers = numbers_of(data, masked)
    charts = [draw_change(data, masked, name).svg() for name in numbers if name in names]
    correlations = [draw_correlations(data, masked, numbers).svg()] if len(numbers) > 1 else []
    return [*charts[:MAX_PICTURES], *correlations]


def _render(page: Page, to: Audience) -> str:
    import jinja2

    loader = jinja2.FileSystemLoader(TEMPLATES)
    templates = jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    templates.filters |= {"significant": format_significant, "number": to.number, "score": to.score, "count": to.count}
    templates.filters |= {"percent": to.percent, "explanation": report_tables.explanation_of}
    return templates.get_template("report.html").render(page)
