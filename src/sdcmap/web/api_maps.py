"""Routes for scores, R-U maps and choices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import polars as pl
from fastapi import APIRouter, Depends, Query
from fastapi.responses import Response
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from sdcmap.charts.page_labels import PageLabel, page_labels
from sdcmap.charts.plane_axis import plane_axis
from sdcmap.choose.criterion import FOUR, GlobalCriterion
from sdcmap.choose.levers import Lever, find_levers
from sdcmap.core.limit import Limit
from sdcmap.core.rule import Choice, Rule, RunnerUp
from sdcmap.core.value import decode
from sdcmap.errors import PlanError
from sdcmap.searches.parameter_importance import Parameters
from sdcmap.study.folder import Study
from sdcmap.web.renderer import render_map
from sdcmap.web.response_models import Columns, Map, ResponseModel
from sdcmap.web.responses import Table, download
from sdcmap.web.workbench import Bench
from sdcmap.workflow import choose as choose_in
from sdcmap.workflow import open_map

router = APIRouter(prefix="/api/studies/{name}", tags=["maps"])
Risk = Annotated[list[str] | None, Query(description="Risk measures; of several, the worst counts.")]
Utility = Annotated[str, Query(description="Utility measure; by default the plan's.")]
Pixels = Annotated[int, Query(ge=50, le=4000, description="Size of the plot area inside the axes, in pixels.")]
MEDIA_TYPES = {"png": "image/png", "svg": "image/svg+xml", "csv": "text/csv; charset=utf-8"}


def parse_limits(
    limits: Annotated[
        str, Query(description='Limits by measure, as JSON: {"KAnonymity": 0.01}; {} for none. Default: the plan\'s.')
    ] = "",
) -> dict[str, float] | None:
    try:
        return TypeAdapter(dict[str, float]).validate_json(limits) if limits else None
    except ValidationError:
        raise PlanError('limits must be JSON, such as {"KAnonymity": 0.01}.') from None


class RuleRequest(BaseModel):
    """A rule, limits and axes.

    rule : a table with its `type`, such as {"type": "Threshold", "risk": 0.01}; null: the plan's rule. limits : by measure,
    such as {"KAnonymity": 0.01}; null: the plan's limits. risk, utility : the axes; empty: the plan's.
    """

    rule: Table | None = None
    limits: dict[str, float] | None = None
    risk: list[str] = Field(default_factory=list)
    utility: str = ""


class MeasureScores(ResponseModel):
    """One measure, in columns: for every candidate, and pooled by method."""

    measure: str
    candidates: Columns
    methods: Columns


class ChosenCandidate(ResponseModel):
    """What was chosen; if `candidate` is null, nothing can be released.

    risk_interval, utility_interval : the 95 % confidence interval of a value that is pooled over draws, else null.
    no_masking_needed : the unmasked file meets every limit.
    """

    candidate: str | None
    name: str
    method: str
    replicate: int | None
    risk: float | None
    utility: float | None
    reason: str
    searched: int
    rule: str
    runners_up: tuple[RunnerUp, ...]
    risk_interval: tuple[float | None, float | None] | None
    utility_interval: tuple[float | None, float | None] | None
    no_masking_needed: bool


class PlaneEnds(ResponseModel):
    """The ends of an axis of a plane. If `floor` is above 0 they are -log10(-value), and values above -floor count as 0."""

    low: float
    high: float
    floor: float


class CriterionPlanes(ResponseModel):
    """The two planes of the decision-theoretic criterion; null if the plan lacks one of the four measures.

    With several intruders or users, a row has the numbers of the worst of them, and those of each in the columns "iek 1",
    "iek 2", ...; intruder_titles and user_titles name them in this order. numeric, categories : variables that an intruder
    may want to know.
    """

    rule: dict[str, Any] | None
    rows: Columns | None
    prior: Mapping[str, float | None] | None
    numeric: list[str]
    categories: list[str]
    axes: dict[str, PlaneEnds]
    intruders: int
    users: int
    intruder_titles: list[str]
    user_titles: list[str]


class ParameterCharts(ResponseModel):
    """How the parameters of all methods relate to risk and loss (Vega-Lite); `reason` says why a chart is null."""

    importance: dict[str, Any] | None = None
    coordinates: dict[str, Any] | None = None
    reason: str = ""


class LeverAnswer(ResponseModel):
    """What a rule chooses, and what it would choose if one of its numbers changed.

    rule : a lever for each number of the rule. limits : a lever for each measure; none if the risk axis depends on limits.
    methods : candidate -> its method. The first start of a lever is null: it is below every value.
    """

    choice: ChosenCandidate
    rule: Mapping[str, Lever]
    limits: Mapping[str, Lever]
    methods: dict[str, str]


class PageLabels(ResponseModel):
    """The labels of a map of a given size."""

    labels: list[PageLabel]


@router.get("/scores")
def scores(bench: Bench, name: str, measure: str) -> MeasureScores:
    """Return one measure of every candidate (id, method, replicate, value, standard error), and pooled by method."""
    with bench.views.study(name) as opened:
        scored = opened.scores()
    single = scored.column(measure).select("id", "method", "replicate", "value", "se")
    return MeasureScores(measure, single.to_dict(as_series=False), scored.pooled(measure).to_dict(as_series=False))


@router.get("/map", response_model=Map)
def ru_map(
    bench: Bench,
    name: str,
    limits: Annotated[dict[str, float] | None, Depends(parse_limits)],
    risk: Risk = None,
    utility: Utility = "",
) -> Response:
    """Return the R-U map in columns: points, means with intervals and frontier membership, anchors, axes, generations."""
    return Response(bench.views.map_json(name, tuple(risk or ()), utility, limits), media_type="application/json")


@router.get(
    "/map.{form}", response_class=Response, responses={200: {"content": {media: {} for media in MEDIA_TYPES.values()}}}
)
def picture(
    bench: Bench,
    name: str,
    form: Literal["png", "svg", "csv"],
    risk: Risk = None,
    utility: Utility = "",
    by: Annotated[
        Literal["", "release", "mean", "curve", "all"],
        Query(description="What is drawn; `all`: a small map for every risk measure and every utility measure."),
    ] = "",
) -> Response:
    """Return the map as a picture with the choice of the plan's rule, or its numbers as CSV."""
    axes = tuple(risk or ()), utility
    if form == "csv":
        ru = bench.views.map(name, *axes)[0]
        content = (ru.curves() if by == "curve" else ru.means if by == "mean" else ru.points).write_csv()
    else:
        content = bench.renderer.run(render_map, bench.workspace.study(name), form, *axes, by)
    return download(content, f"map.{form}", MEDIA_TYPES[form])


@router.post("/choices")
def choose(bench: Bench, name: str, request: RuleRequest) -> ChosenCandidate:
    """Return what a rule chooses, why, and the runners-up; a null candidate means that nothing can be released."""
    with bench.views.study(name) as opened:
        return choice_response(resolve_choice(opened, request))


def choice_response(choice: Choice) -> ChosenCandidate:
    """Return a choice as a response."""
    return ChosenCandidate(
        choice.candidate,
        choice.name,
        choice.method,
        choice.replicate,
        choice.risk,
        choice.utility,
        choice.reason,
        choice.searched,
        choice.rule.text,
        choice.runners_up,
        choice.risk_interval,
        choice.utility_interval,
        choice.no_masking_needed,
    )


def resolve_choice(study: Study, request: RuleRequest, candidate: str = "", reason: str = "") -> Choice:
    """Return the candidate that a person picked, or what the requested rule chooses on the requested map."""
    if candidate:
        return choose_in(study, candidate=candidate, reason=reason)
    rule = None if request.rule is None else decode(request.rule, Rule)
    return choose_in(study, rule, on=open_map(study, request.risk, request.utility, request.limits))


@router.post("/levers")
def levers(bench: Bench, name: str, request: RuleRequest) -> LeverAnswer:
    """Return what a rule chooses, and what it would choose at every value of its numbers and limits."""
    with bench.views.study(name) as study:
        ru = open_map(study, request.risk, request.utility, request.limits)
        choice = resolve_choice(study, request)
    movable = [Limit(ru.scores.measure_named(name), 1.0) for name in ru.scores.measure["name"]]
    levers_by_name = find_levers(ru, choice.rule, movable)
    ids = {
        one
        for lever in (*levers_by_name.rule.values(), *levers_by_name.limits.values())
        for one in lever.candidates
        if one
    }
    rows = ru.points.filter(ru.points["id"].is_in(list(ids))).select("id", "method")
    return LeverAnswer(choice_response(choice), levers_by_name.rule, levers_by_name.limits, dict(rows.iter_rows()))


@router.get("/map/labels")
def map_labels(
    bench: Bench,
    name: str,
    width: Pixels,
    height: Pixels,
    risk: Risk = None,
    utility: Utility = "",
    by: Literal["release", "mean", "curve"] = "release",
    part: Annotated[str, Query(description="The region shown: x low, x high, y low, y high, comma-separated.")] = "",
) -> PageLabels:
    """Return the positions of the labels on a map of this size; labels never overlap, and some points have none."""
    ru = bench.views.map(name, tuple(risk or ()), utility)[0]
    return PageLabels(page_labels(ru, by, width, height, _parse_region(part)))


def _parse_region(text: str) -> tuple[tuple[float, float], tuple[float, float]] | None:
    if not text:
        return None
    try:
        left, right, low, high = map(float, text.split(","))
    except ValueError:
        raise PlanError("a region of the map is four numbers: x low, x high, y low, y high.") from None
    if not (left < right and low < high):
        raise PlanError("in a region of the map, low must be less than high on both axes.")
    return (left, right), (low, high)


@router.get("/criterion")
def criterion(bench: Bench, name: str) -> CriterionPlanes:
    """Return the two planes of the decision-theoretic criterion: a rule to start from, and the four measures of each row.

    Rows are sorted by preference: whatever the limits, the choice is the first row that is safe. The rule is null if the
    plan lacks one of the four measures; `numeric` lists the variables that they can use. The columns `iek_end` and
    `rdh_end`, with the margins of a release, are compared with the limits.
    """
    ru, plan = bench.views.map(name)
    rule = plan.rule if isinstance(plan.rule, GlobalCriterion) else GlobalCriterion.propose(ru)
    data = bench.views.study_data(name)[1]
    numeric = list(data.numeric)
    categories = [name for name in data.knowable if name not in numeric]
    if rule is None:
        return CriterionPlanes(None, None, None, numeric, categories, {}, 0, 0, [], [])
    rows = rule.rank_rows(ru)
    roles = {name: name.partition(" ")[0] for name in rows.columns if name.partition(" ")[0] in FOUR}  # "iek 2": "iek"
    wanted = "id", "replicate", "method", *roles, "iek_end", "rdh_end", "distance"
    columns = [column for column in wanted if column in rows.columns]
    named = {"name": [ru.scores.name_of(method) for method in rows["method"]]}
    stated = dict(zip(FOUR, (rule.agency_limit, rule.intruder_limit, None, None), strict=True))
    limits = {"agency_limit": rule.agency_limit, "intruder_limit": rule.intruder_limit}
    facts = rows.select(columns).to_dict(as_series=False)
    prior = rule.prior(ru)
    axes = {name: _plane_ends(rows, name, prior, stated[role]) for name, role in roles.items()}
    titles = [[ru.scores.title_of(name) for name in names] for names in (rule.iek, rule.sek)]
    counts = len(rule.iek), len(rule.sek)
    return CriterionPlanes(rule.spec() | limits, facts | named, prior, numeric, categories, axes, *counts, *titles)


def _plane_ends(rows: pl.DataFrame, name: str, prior: Mapping[str, float] | None, limit: float | None) -> PlaneEnds:
    guides = () if prior is None else (prior[name],)
    axis = plane_axis(name, "", rows[name], guides, limit)
    return PlaneEnds(*axis.ends, axis.floor)


@router.get("/parameters")
def parameters(bench: Bench, name: str) -> ParameterCharts:
    """Return charts of how the parameters of all methods relate to risk and loss: importance, parallel coordinates."""
    ru, plan = bench.views.map(name)
    try:
        charts = Parameters.of(ru, plan.all_methods)
        return ParameterCharts(charts.draw_importance().to_dict(), charts.draw_choices().to_dict())
    except PlanError as error:
        return ParameterCharts(reason=str(error))
