"""The service, part four: scores, maps, choices and single candidates."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Query
from fastapi.responses import Response
from pydantic import BaseModel, Field

from sdcmap.core.words import listed
from sdcmap.web import models
from sdcmap.web.answers import Table, plain
from sdcmap.web.drawing import make_picture
from sdcmap.web.models import told
from sdcmap.web.workbench import Bench

if TYPE_CHECKING:
    from sdcmap.core.rule import Choice
    from sdcmap.data.microdata import Microdata
    from sdcmap.recordwise import Unsafe
    from sdcmap.study.folder import Study
    from sdcmap.study.plan import Plan

router = APIRouter(prefix="/api/studies/{name}", tags=["maps"])
Risk = Annotated[list[str] | None, Query(description="Risk measures; several are taken at their worst.")]
Limit = Annotated[
    list[str] | None,
    Query(
        description="Limits by measure, in place of the plan's: each a number, a blank and the measure's name; none: ''."
    ),
]
Utility = Annotated[str, Query(description="Utility measure; by default the plan's.")]
MOST_COUNTED = 50_000  # records whose neighbours are all counted; of more, COUNT_TO each
COUNT_TO = 100
MOST_CHARTS = 8
MOST_LISTED = 500  # unsafe records
MEDIA = {"png": "image/png", "svg": "image/svg+xml", "csv": "text/csv; charset=utf-8"}


class Asked(BaseModel):
    """A rule as a table with its `type`, such as {"type": "Threshold", "risk": 0.01}, and limits by measure, such as
    {"KAnonymity": 0.01}; None for the plan's. Axes."""

    rule: Table | None = None
    limits: dict[str, float] | None = None
    risk: list[str] = Field(default_factory=list)
    utility: str = ""


@router.get("/scores", response_model=models.Scores)
def scores(bench: Bench, name: str, measure: str) -> Response:
    """One measure of every candidate: id, method, replicate, value, standard error; and pooled by method."""
    from contextlib import closing

    opened = bench.views.study(name)
    with closing(opened.connection):
        scored = opened.scores()
    columns = ("id", "method", "replicate", "value", "se")
    single, pooled = scored.column(measure), scored.pooled(measure)
    return told(models.Scores.model_validate({
        "measure": measure,
        "candidates": {column: single[column].to_list() for column in columns},
        "methods": {column: pooled[column].to_list() for column in pooled.columns},
    }))  # fmt: skip


@router.get("/map", response_model=models.Map)
def ru_map(bench: Bench, name: str, risk: Risk = None, utility: Utility = "", limit: Limit = None) -> Response:
    """The R-U map in columns: points, means with bands and frontier membership, anchors, axes, generations of a search."""
    body = bench.views.map_json(name, tuple(risk or ()), utility, _limits(limit))
    return Response(body, media_type="application/json")


def _limits(stated: list[str] | None) -> dict[str, float] | None:
    from sdcmap.errors import PlanError

    if stated is None:
        return None
    pairs = [text.partition(" ") for text in stated if text]
    try:
        return {measure: float(number) for number, _, measure in pairs}
    except ValueError:
        raise PlanError("a limit is a number, a blank and the name of its measure.") from None


@router.get(
    "/map.{form}", response_class=Response, responses={200: {"content": {media: {} for media in MEDIA.values()}}}
)
def picture(
    bench: Bench, name: str, form: Literal["png", "svg", "csv"], risk: Risk = None, utility: Utility = "",
    by: Literal["", "release", "mean"] = "",
) -> Response:  # fmt: skip
    """The map as a picture with the choice of the plan's rule, or its numbers as CSV."""
    axes = tuple(risk or ()), utility
    if form == "csv":
        ru = bench.views.map(name, *axes)[0]
        content = (ru.means if by == "mean" else ru.points).write_csv()
    else:
        study = bench.room.study(name)
        content = bench.drawing.run(make_picture, study, form, *axes, by)
    head = {"content-disposition": f'attachment; filename="map.{form}"'}
    return Response(content, media_type=MEDIA[form], headers=head)


@router.post("/choices", response_model=models.Choice)
def choose(bench: Bench, name: str, asked: Asked) -> Response:
    """What a rule chooses, why, and the runners-up; a candidate of null means: release nothing."""
    with bench.views.study(name) as opened:
        return told(choice_told(chosen(opened, asked)))


def chosen(study: Study, asked: Asked, candidate: str = "", reason: str = "") -> Choice:
    """What was picked, or what the rule that is asked for chooses on the map that is asked for."""
    from sdcmap.core.rule import Rule
    from sdcmap.core.value import decode
    from sdcmap.workflow import choose, open_map

    if candidate:
        return choose(study, candidate=candidate, reason=reason)
    rule = None if asked.rule is None else decode(asked.rule, Rule)
    return choose(study, rule, on=open_map(study, asked.risk, asked.utility, asked.limits))


def choice_told(choice: Choice) -> models.Choice:
    facts = ("candidate", "name", "method", "replicate", "risk", "utility", "reason", "searched")
    document = {fact: getattr(choice, fact) for fact in facts}
    return models.Choice(**document, rule=choice.rule.text, runners_up=list(choice.runners_up))


@router.get("/criterion", response_model=models.Criterion)
def criterion(bench: Bench, name: str) -> Response:
    """The two planes of decision theory: a rule to start from, and the four numbers of all that it compares, by preference:
    whatever the limits, the choice is the first row that is safe.

    The rule is null where the plan has no measure of one of the four; `numeric` are the variables that they can be about.
    """
    from sdcmap.choose.criterion import FOUR, GlobalCriterion

    ru, plan = bench.views.map(name)
    rule = plan.rule if isinstance(plan.rule, GlobalCriterion) else GlobalCriterion.proposed(ru)
    numeric = list(bench.views.study_data(name)[1].numeric)
    if rule is None:
        return told(models.Criterion(rule=None, rows=None, prior=None, numeric=numeric))
    rows = rule.ranked(ru)
    columns = [column for column in ("id", "replicate", "method", *FOUR, "distance") if column in rows.columns]
    names = [ru.scores.name_of(method) for method in rows["method"]]
    return told(models.Criterion.model_validate(plain({
        "rule": rule.spec() | dict(zip(("agency_limit", "intruder_limit"), rule.limits.values(), strict=True)),
        "rows": {column: rows[column].to_list() for column in columns} | {"name": names},
        "prior": rule.prior(ru), "numeric": numeric,
    })))  # fmt: skip


@router.get("/candidates/{candidate}", response_model=models.Candidate)
def candidate_facts(bench: Bench, name: str, candidate: str) -> Response:
    """A candidate: its method and parameters, and every measure with its band."""
    return told(models.Candidate.model_validate(candidate_table(bench, name, candidate)))


def candidate_table(bench: Bench, name: str, candidate: str) -> dict[str, Any]:
    from contextlib import closing

    from sdcmap.core.audience import Audience
    from sdcmap.core.rule import Choice, Rule, named_limits
    from sdcmap.dossier.results import score_table

    opened = bench.views.study(name)
    with closing(opened.connection):
        plan = opened.plan
        made = plan.find(candidate)
        scores = opened.scores(plan)
    row = Choice(made.id, made.method.text, made.replicate, None, None, Rule(), "")
    to = Audience("internal")
    state = scores.candidate.filter(scores.candidate["id"] == made.id)
    return {
        "id": made.id,
        "name": plan.name_of(made),
        "method": made.method.text,
        "spec": made.method.spec(),
        "replicate": made.replicate,
        "masked": list(made.method.masked_names),
        "status": state["status"][0] if len(state) else "not made yet",
        "reason": state["reason"][0] if len(state) else "",
        "measures": {
            axis: score_table(scores, row, axis, to, named_limits(plan.limits)) for axis in ("risk", "utility")
        },
    }


@router.get("/candidates/{candidate}/changes", response_model=models.Changes)
def changes(bench: Bench, name: str, candidate: str) -> Response:
    """Each masked variable before and after, as tables and charts, and the relations that changed most.

    A number is drawn as two densities on one axis, categories as bars."""
    from sdcmap.charts.change import draw_change
    from sdcmap.charts.density_change import draw_density_change, has_density
    from sdcmap.core.audience import Audience
    from sdcmap.dossier.change import changes as changed

    _, data, masked, names = made_again(bench, name, candidate)
    tables = changed(data, masked, names, Audience("internal", len(data)))
    charts = {}
    for variable in names[:MOST_CHARTS]:
        draw = draw_density_change if has_density(data, masked, variable) else draw_change
        charts[variable] = draw(data, masked, variable).to_dict()
    return told(models.Changes.model_validate({"tables": [asdict(table) for table in tables], "charts": plain(charts)}))


def made_again(bench: Bench, name: str, candidate: str) -> tuple[Plan, Microdata, Microdata, tuple[str, ...]]:
    """The plan, the data, the candidate made again, and what it masks: the keys, where its method names nothing."""
    from sdcmap.bundle.prepare import masked_names

    views = bench.views
    plan: Plan = views.study_data(name)[0]
    data, masked = views.masked(name, candidate)
    return plan, data, masked, masked_names(data, plan.find(candidate).method, masked)


@router.get("/candidates/{candidate}/records", response_model=models.Records)
def records(bench: Bench, name: str, candidate: str) -> Response:
    """The confidentiality plot, its counts and the unsafe records; a reason where a candidate has none.

    Neighbours are counted in the masked numeric variables, else in the keys, with the k of the plan's KAnonymity.
    """
    import polars as pl

    import sdcmap as sm

    plan, data, masked, names = made_again(bench, name, candidate)
    numbers = [variable for variable in names if variable in data.numeric]
    on = numbers or list(data.keys) or list(names)
    held = next((m for m in plan.measures if isinstance(m, sm.risk.KAnonymity)), None) if not numbers else None
    rule = sm.recordwise.Unsafe(on=tuple(on), leave_out=True)
    rule = rule if held is None else replace(rule, k=held.k)
    try:
        table = sm.records(data, masked, rule=rule, count_to=COUNT_TO if len(data) > MOST_COUNTED else None)
    except sm.errors.SdcmapError as error:
        return told(models.Records(chart=None, reason=str(error)))
    unsafe = table.frame().filter(~pl.col("safe")).select("row", "neighbours", "perturbation").sort("neighbours", "row")
    return told(models.Records.model_validate({
        "chart": plain(table.draw().to_dict()), "counts": table.summary(), "rule": table.rule.text, "reason": "",
        "words": _line_words(table.rule, None if held is None else held.text),
        "unsafe": len(unsafe), "rows": {column: unsafe[column][:MOST_LISTED].to_list() for column in unsafe.columns},
    }))  # fmt: skip


def _line_words(rule: Unsafe, measure: str | None) -> str:
    """What "unsafe" means in this plot, and whose line it is."""
    on = listed(rule.on)
    if rule.neighbourhood == "frequency":
        whose = (
            f"the line of {measure} in the plan" if measure else f"this plot's own line, k = {rule.k}, not a measure's"
        )
        return (
            f"A record is called unsafe here where fewer than {rule.k} records share its combination of {on}; a missing "
            f"value agrees with every value. That is {whose}."
        )
    return (
        f"A record is called unsafe here where few others are like it in {on} and masking moved it little: fewer than "
        f"{rule.k} neighbours, moved by less than {rule.r:g} of its size, and not enough of both together. That is this "
        f"plot's own line (Seri 2005), not a measure's."
    )
