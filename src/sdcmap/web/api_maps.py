"""The service, part four: scores, maps and choices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query
from fastapi.responses import Response
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from sdcmap.charts.page_labels import PageLabel, page_labels
from sdcmap.choose.criterion import FOUR, GlobalCriterion
from sdcmap.choose.levers import Lever, find_levers
from sdcmap.core.limit import Limit
from sdcmap.core.rule import Choice, Rule, RunnerUp
from sdcmap.core.value import decode
from sdcmap.errors import PlanError
from sdcmap.searches.parameter_importance import Parameters
from sdcmap.study.folder import Study
from sdcmap.web.answers import Table, download
from sdcmap.web.drawing import make_picture
from sdcmap.web.models import Answer, Columns, Map
from sdcmap.web.views import measures_on
from sdcmap.web.workbench import Bench
from sdcmap.workflow import choose as choose_in
from sdcmap.workflow import open_map

router = APIRouter(prefix="/api/studies/{name}", tags=["maps"])
Risk = Annotated[list[str] | None, Query(description="Risk measures; several are taken at their worst.")]
Utility = Annotated[str, Query(description="Utility measure; by default the plan's.")]
Pixels = Annotated[int, Query(ge=50, le=4000, description="Of the frame that the axes enclose.")]
MEDIA = {"png": "image/png", "svg": "image/svg+xml", "csv": "text/csv; charset=utf-8"}


def _limits(
    limits: Annotated[
        str, Query(description='Limits by measure, as JSON: {"KAnonymity": 0.01}; {} for none; by default the plan\'s.')
    ] = "",
) -> dict[str, float] | None:
    try:
        return TypeAdapter(dict[str, float]).validate_json(limits) if limits else None
    except ValidationError:
        raise PlanError('limits are JSON, such as {"KAnonymity": 0.01}.') from None


class Asked(BaseModel):
    """A rule as a table with its `type`, such as {"type": "Threshold", "risk": 0.01}, and limits by measure, such as
    {"KAnonymity": 0.01}; None for the plan's. Axes."""

    rule: Table | None = None
    limits: dict[str, float] | None = None
    risk: list[str] = Field(default_factory=list)
    utility: str = ""


class MeasureScores(Answer):
    """One measure, in columns: of every candidate, and pooled by method."""

    measure: str
    candidates: Columns
    methods: Columns


class ChosenCandidate(Answer):
    """What was chosen; a candidate of null means: release nothing."""

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


class CriterionPlanes(Answer):
    """The planes of decision theory; null where the plan lacks one of the four measures."""

    rule: dict[str, Any] | None
    rows: Columns | None
    prior: Mapping[str, float | None] | None
    numeric: list[str]


class ParameterCharts(Answer):
    """What the parameters of all methods have to do with risk and loss (Vega-Lite); null has a reason."""

    importance: dict[str, Any] | None = None
    coordinates: dict[str, Any] | None = None
    reason: str = ""


class LeverAnswer(Answer):
    """What a rule chooses, and what it would choose while one number moves and all else stays.

    rule : by the rule's field. limits : by measure, stated or not; none where the risk axis moves with them. methods : of
    each candidate in a lever, its method. The first start of a lever is null: it is below every value.
    """

    choice: ChosenCandidate
    rule: Mapping[str, Lever]
    limits: Mapping[str, Lever]
    methods: dict[str, str]


class PageLabels(Answer):
    """The labels of a map of some size."""

    labels: list[PageLabel]


@router.get("/scores")
def scores(bench: Bench, name: str, measure: str) -> MeasureScores:
    """One measure of every candidate: id, method, replicate, value, standard error; and pooled by method."""
    with bench.views.study(name) as opened:
        scored = opened.scores()
    single = scored.column(measure).select("id", "method", "replicate", "value", "se")
    return MeasureScores(measure, single.to_dict(as_series=False), scored.pooled(measure).to_dict(as_series=False))


@router.get("/map", response_model=Map)
def ru_map(
    bench: Bench, name: str, limits: Annotated[dict[str, float] | None, Depends(_limits)], risk: Risk = None,
    utility: Utility = "",
) -> Response:  # fmt: skip
    """The R-U map in columns: points, means with bands and frontier membership, anchors, axes, generations of a search."""
    return Response(bench.views.map_json(name, tuple(risk or ()), utility, limits), media_type="application/json")


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
        content = bench.drawing.run(make_picture, bench.room.study(name), form, *axes, by)
    return download(content, f"map.{form}", MEDIA[form])


@router.post("/choices")
def choose(bench: Bench, name: str, asked: Asked) -> ChosenCandidate:
    """What a rule chooses, why, and the runners-up; a candidate of null means: release nothing."""
    with bench.views.study(name) as opened:
        return of_choice(chosen(opened, asked))


def of_choice(choice: Choice) -> ChosenCandidate:
    """A choice as it is answered."""
    return ChosenCandidate(
        choice.candidate, choice.name, choice.method, choice.replicate, choice.risk, choice.utility, choice.reason,
        choice.searched, choice.rule.text, choice.runners_up,
    )  # fmt: skip


def chosen(study: Study, asked: Asked, candidate: str = "", reason: str = "") -> Choice:
    """What was picked, or what the rule that is asked for chooses on the map that is asked for."""
    if candidate:
        return choose_in(study, candidate=candidate, reason=reason)
    rule = None if asked.rule is None else decode(asked.rule, Rule)
    return choose_in(study, rule, on=open_map(study, asked.risk, asked.utility, asked.limits))


@router.post("/levers")
def levers(bench: Bench, name: str, asked: Asked) -> LeverAnswer:
    """What a rule chooses, and at every value of its numbers and of the limits by measure."""
    with bench.views.study(name) as study:
        ru = open_map(study, asked.risk, asked.utility, asked.limits)
        choice = chosen(study, asked)
    risks = [Limit(ru.scores.measure_named(name), 1.0) for name in measures_on(ru, "risk")]
    found = find_levers(ru, choice.rule, risks)
    ids = {one for lever in (*found.rule.values(), *found.limits.values()) for one in lever.candidates if one}
    rows = ru.points.filter(ru.points["id"].is_in(list(ids))).select("id", "method")
    return LeverAnswer(of_choice(choice), found.rule, found.limits, dict(rows.iter_rows()))


@router.get("/map/labels")
def map_labels(
    bench: Bench, name: str, width: Pixels, height: Pixels, risk: Risk = None, utility: Utility = "",
    by: Literal["release", "mean"] = "release",
    part: Annotated[str, Query(description="The part that is shown: x low, x high, y low, y high, by commas.")] = "",
) -> PageLabels:  # fmt: skip
    """Where the labels of a map of this size stand; none touches another, and what finds no room has none."""
    ru = bench.views.map(name, tuple(risk or ()), utility)[0]
    return PageLabels(page_labels(ru, by, width, height, _part(part)))


def _part(text: str) -> tuple[tuple[float, float], tuple[float, float]] | None:
    if not text:
        return None
    try:
        left, right, low, high = map(float, text.split(","))
    except ValueError:
        raise PlanError("a part of a map is four numbers: x low, x high, y low, y high.") from None
    if not (left < right and low < high):
        raise PlanError("a part of a map goes from a lower number to a higher one on both axes.")
    return (left, right), (low, high)


@router.get("/criterion")
def criterion(bench: Bench, name: str) -> CriterionPlanes:
    """The two planes of decision theory: a rule to start from, and the four numbers of all that it compares, by preference:
    whatever the limits, the choice is the first row that is safe.

    The rule is null where the plan has no measure of one of the four; `numeric` are the variables that they can be about.
    """
    ru, plan = bench.views.map(name)
    rule = plan.rule if isinstance(plan.rule, GlobalCriterion) else GlobalCriterion.proposed(ru)
    numeric = list(bench.views.study_data(name)[1].numeric)
    if rule is None:
        return CriterionPlanes(None, None, None, numeric)
    rows = rule.ranked(ru)
    columns = [column for column in ("id", "replicate", "method", *FOUR, "distance") if column in rows.columns]
    named = {"name": [ru.scores.name_of(method) for method in rows["method"]]}
    limits = dict(zip(("agency_limit", "intruder_limit"), rule.limits.values(), strict=True))
    facts = rows.select(columns).to_dict(as_series=False)
    return CriterionPlanes(rule.spec() | limits, facts | named, rule.prior(ru), numeric)


@router.get("/parameters")
def parameters(bench: Bench, name: str) -> ParameterCharts:
    """What the parameters of all methods have to do with risk and loss: which matter, and parallel coordinates."""
    ru, plan = bench.views.map(name)
    try:
        found = Parameters.of(ru, plan.all_methods)
        return ParameterCharts(found.draw_importance().to_dict(), found.draw_choices().to_dict())
    except PlanError as error:
        return ParameterCharts(reason=str(error))
