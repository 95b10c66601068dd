"""What the service answers, as types: OpenAPI tells a client everything, and no answer leaves that does not fit.

A number that is infinite or not a number is null in JSON.
"""

from __future__ import annotations

from typing import Any, Literal

from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

Number = float | None
SweepState = Literal["not begun", "running", "running elsewhere", "paused", "cancelled", "stopped", "done"]


class Told(BaseModel):
    """One answer."""

    model_config = ConfigDict(extra="forbid", ser_json_inf_nan="null")


def told(answer: Told, status: int = 200) -> Response:
    """An answer as JSON."""
    return Response(answer.model_dump_json(), status, media_type="application/json")


class Problem(Told):
    """What went wrong: one sentence, and every problem on its own."""

    error: str
    problems: list[str]


# ---- files ------------------------------------------------------------------------------------------------------


class File(Told):
    """A data file, named as below the served folder."""

    name: str
    bytes: int


class Files(Told):
    files: list[File]
    upload_limit: int = Field(description="bytes that a file which is sent may have")


class Bar(Told):
    """What a bar stands for, and its records."""

    label: str
    count: int


class Bars(Told):
    """Every record of a column: in a bar, among the rarer categories, or missing."""

    bars: list[Bar]
    missing: int
    others: int = Field(description="records of rarer categories, that have no bar of their own")
    categories: int = Field(description="how many rarer categories")


class Seen(Told):
    """What is seen of one column; the role is the stated one, else a proposal."""

    name: str
    kind: str
    role: str
    stated: bool
    distinct: int = Field(description="values that occur, missing not counted")
    missing: int
    once: int = Field(description="records whose value no other record has")
    why: str
    formula: str
    safe_harbor: str
    spread: Bars = Field(description="how its values are spread")
    missing_codes: list[str] = Field(
        description="codes that count as missing, stated or the file's own, with their words"
    )


class TellingSet(Told):
    """A set of columns, and how many records are alone on it."""

    keys: list[str]
    alone: int


class Telling(Told):
    """Which columns tell the most: sets of up to three, and pairs."""

    sets: list[TellingSet]
    words: str
    names: list[str] = Field(description="the columns of `pairs`, in its order")
    pairs: list[list[int]] = Field(description="records alone on each pair; on the diagonal, on one column")
    pairs_words: str


class Preview(Told):
    columns: list[str]
    rows: list[list[str]]


class Look(Told):
    """A first look at a file."""

    file: str
    rows: int
    variables: list[Seen]
    cells: int = Field(description="combinations of the keys that occur")
    sizes: dict[str, int] = Field(description="records in key combinations of fewer than 2, 3, 5, 10 records")
    alone: dict[str, tuple[int, int]] = Field(description="by what is known: columns, records alone on them")
    class_sizes: list[tuple[str, int]]
    codes: list[str] = Field(description="values that look like codes for missing ones")
    mixed: dict[str, int]
    census: bool
    preview: Preview


# ---- plans and studies ------------------------------------------------------------------------------------------


class Entry(Told):
    """One field of a form."""

    name: str
    kind: Literal["flag", "whole number", "number", "text", "choice", "part"]
    several: bool
    required: bool
    default: Any
    range: str
    choices: list[str]
    open: bool = Field(description="another value than one of the choices may be given")
    help: str
    nested: bool = Field(description="a list of lists")
    columns: bool = Field(description="it names columns of the file")
    group: str = Field(description="of a part: the group of forms it is from")


class Form(Told):
    """The form of one method, measure or rule."""

    type: str
    summary: str
    axis: str
    unit: str
    kinds: list[str]
    entries: list[Entry]


class Forms(Told):
    methods: list[Form]
    measures: list[Form]
    rules: list[Form]
    parts: dict[str, list[Form]] = Field(description="of values that a field takes as a part, by the group it names")


class StudyEntry(Told):
    """A study in the list of all: its file, how far it is, and what was done with it last."""

    name: str
    begun: bool
    file: str
    changed: str = Field(description="when, in UTC (ISO 8601)")
    candidates: int | None = Field(description="of its plan; null where the plan cannot be read")
    done: int
    state: SweepState
    releases: int
    released: str = Field(description="the name of what was released last; empty: nothing")
    choice: str | None = Field(
        description="what the plan's rule chooses, where it was asked for; empty: there is no rule"
    )
    archived: bool
    note: str = Field(description="the first line of its notes")


class Studies(Told):
    studies: list[StudyEntry]


class Notes(Told):
    """What a person wrote about a study; never in a release."""

    text: str
    version: str = Field(description="sent back with a change, it guards against overwriting another's")


class Deleted(Told):
    """A study that is gone; `releases` of it stay in the folder."""

    name: str
    releases: int


class ReleaseEntry(Told):
    """A release in the list of all."""

    release: str
    files: list[str]
    name: str
    when: str
    signed_by: str
    profile: str
    reason: str = Field(description="why this candidate, where a person picked it")


class ComparedStudy(Told):
    """One of the studies that are compared."""

    name: str
    candidates: int
    frontier: int
    choice: str = Field(description="what its rule chooses; empty: it has none")
    risk: Number = Field(description="of the choice, on the common axes")
    utility: Number
    reason: str
    releases: list[ReleaseEntry]


class PlanDifference(Told):
    """One thing that two plans state differently."""

    what: str
    first: str
    second: str


class Comparison(Told):
    """Two studies: their frontiers on one map (Vega-Lite), their choices and releases, and what differs in their plans.

    A chart of null has a reason, such as that they have no measure in common.
    """

    studies: tuple[ComparedStudy, ComparedStudy]
    same_data: bool = Field(description="whether both were made from the same file with the same roles")
    risks: list[str] = Field(description="risk measures that both have")
    utilities: list[str]
    risk: str
    utility: str
    chart: dict[str, Any] | None
    reason: str
    differences: list[PlanDifference]


class NewPlan(Told):
    name: str
    toml: str


class Sweep(Told):
    """How far a sweep or a search is."""

    state: SweepState
    task: Literal["", "sweep", "search"]
    phase: str = Field(description="what its process is at, while it runs")
    total: int
    done: int
    counts: dict[str, int] = Field(description="candidates by status")
    refused: list[tuple[str, int, str]] = Field(
        description="method, candidates and reason of those that cannot be made"
    )
    rate: Number = Field(description="candidates a second over the last minute")
    seconds_left: Number
    seconds: Number = Field(description="since it was started")
    evaluations: int | None = Field(description="new methods that a search has tried")
    budget: int | None
    area: Number = Field(description="share of the area below the reference that a search has won")
    areas: list[float] = Field(description="the same after each generation so far, the starts first")
    error: str


class Study(Told):
    """What a study is about: its plan, and how far it is."""

    name: str
    toml: str
    version: str = Field(description="of the text: sent back with a change, it guards against overwriting another's")
    table: dict[str, Any] | None
    begun: bool
    releases: int = Field(description="how many releases were written of it")
    sweep: Sweep


class EarlierPlan(Told):
    """A plan that another one took the place of."""

    saved: str = Field(description="when it had been saved")
    toml: str
    changed: list[str] = Field(description="what the plan that came after it states differently")


class EarlierPlans(Told):
    plans: list[EarlierPlan]


class KeptPlan(Told):
    name: str
    toml: str
    version: str
    candidates: int


class KeptRoles(Told):
    name: str
    toml: str
    version: str
    problems: list[str]


class Axes(Told):
    risk: list[str]
    utility: str


class PlanColumn(Told):
    name: str
    kind: str
    role: str | None


class CheckedPlan(Told):
    """A plan as text and table, and every problem of it at once."""

    toml: str
    table: dict[str, Any] | None
    problems: list[str]
    remarks: list[str]
    candidates: int | None
    seconds: Number = Field(description="that one core would need; a guess, where it was asked for")
    draw: Number = Field(description="seconds that one more draw of each method adds, where a guess was asked for")
    measures: list[str]
    axes: Axes | None
    columns: list[PlanColumn]


class RecodedColumn(Told):
    """One column before and after a recode; of very many categories none is listed."""

    name: str
    kind: str
    categories: list[Bar]
    spread: Bars
    before_count: int
    after: list[Bar]
    after_count: int
    missing: int
    smallest: int = Field(description="records of the rarest category after it")
    problem: str = Field(description="why there is no after")


class Recodes(Told):
    columns: list[RecodedColumn]
    levels: int | None = Field(description="the coarsest level of its hierarchy file, where it names one")


class HierarchyLevel(Told):
    """What one level of a hierarchy makes of the categories."""

    groups: list[Bar]
    rarest: Bar | None = Field(description="of the groups that occur")
    unnamed: int = Field(description="categories without a name at this level")


class DraftHierarchy(Told):
    """A hierarchy that is drawn up: it can be saved where it has no problem."""

    rows: list[list[str]] = Field(description="each category, and its name at level 1, 2, ...; empty: none yet")
    records: list[int] = Field(description="of each row")
    levels: list[HierarchyLevel]
    split: list[tuple[int, int]] = Field(description="row and level of names that split what is one at the level below")
    problems: list[str]
    version: str = Field(description="of the file that was opened, to replace it")


class KeptHierarchy(Told):
    name: str
    version: str
    levels: int = Field(description="its coarsest level")


class Prices(Told):
    """Seconds of one core, guessed: of the plan as it is, and what a choice would add to it."""

    candidates: int
    seconds: float
    draw: float = Field(description="what one more draw of each method adds")
    stated: dict[str, float] = Field(description="what each dear measure would add, by its formula")
    type: str
    example: str = Field(description="the method or measure that was priced; empty: its fields must be filled in first")
    price: Number


# ---- maps and candidates ----------------------------------------------------------------------------------------


class CandidateScores(Told):
    id: list[str]
    method: list[str]
    replicate: list[int]
    value: list[Number]
    se: list[Number]


class MethodScores(Told):
    method: list[str]
    value: list[Number]
    se: list[Number]
    low: list[Number]
    high: list[Number]
    count: list[int]


class Scores(Told):
    """One measure, in columns: of every candidate, and pooled by method."""

    measure: str
    candidates: CandidateScores
    methods: MethodScores


class Points(Told):
    """Candidates in columns; `method` is the place in the map's `methods`."""

    id: list[str]
    kind: list[str]
    method: list[int]
    replicate: list[int] = Field(description="from 0; people count draws from 1")
    risk: list[Number]
    utility: list[Number]
    anchor: list[bool]
    frontier: list[bool]
    compared: list[bool]
    within: list[bool] = Field(description="within every limit by measure")
    levels: dict[str, list[Number]] = Field(
        description="of each risk measure, what a limit is held against; null: no value, within no limit"
    )


class Means(Told):
    """Methods in columns, in the order of the map's `methods`."""

    count: list[int]
    risk: list[Number]
    utility: list[Number]
    risk_se: list[Number]
    risk_low: list[Number]
    risk_high: list[Number]
    utility_se: list[Number]
    utility_low: list[Number]
    utility_high: list[Number]
    anchor: list[bool]
    frontier: list[bool]
    membership: list[Number]
    membership_low: list[Number]
    membership_high: list[Number]
    within: list[bool]
    levels: dict[str, list[Number]]


class MapMeasure(Told):
    name: str
    axis: Literal["risk", "utility"]
    unit: str
    direction: Literal["lower", "higher"]


class Floor(Told):
    """The level of risk that is there without any release."""

    risk: float
    words: str


class Map(Told):
    """The R-U map."""

    risk: list[str]
    utility: str
    limits: list[float] = Field(description="what each risk measure on the axis is divided by; none: its own unit")
    held: dict[str, float] = Field(description="limits by measure, each in its own unit")
    labels: tuple[str, str]
    signs: tuple[float, float] = Field(description="1 where lower is better, -1 where higher is: risk, utility")
    expectation: bool = Field(description="methods are compared, not single releases")
    nothing: tuple[Number, Number] | None
    floor: Floor | None
    methods: list[str]
    names: list[str]
    short: list[str] = Field(description="of each method, the few words of a label")
    families: list[str] = Field(description="of each method, its class, or those of its steps")
    eras: list[str] = Field(description="of a search: the plan's own, and spans of generations, in words and in order")
    era: list[int | None] = Field(description="of each method, its place in `eras`; null: no search made it")
    points: Points
    means: Means
    measures: list[MapMeasure]
    rule: dict[str, Any] | None
    total: int
    silent: list[str] = Field(description="why an axis has no values, where it has none")


class Choice(Told):
    """What a rule chooses; a candidate of null means: release nothing."""

    candidate: str | None
    name: str
    method: str
    replicate: int | None
    risk: Number
    utility: Number
    reason: str
    searched: int
    rule: str
    runners_up: list[str]


class Criterion(Told):
    """The planes of decision theory; null where the plan lacks one of the four measures."""

    rule: dict[str, Any] | None
    rows: dict[str, list[Any]] | None
    prior: dict[str, Number] | None
    numeric: list[str]


class MeasureWords(Told):
    """One measure of a candidate, in words."""

    name: str
    limit: str
    unit: str
    better: str
    own: str
    mean: str
    error: str
    spread: str
    original: str
    nothing: str


class CandidateMeasures(Told):
    risk: list[MeasureWords]
    utility: list[MeasureWords]


class Candidate(Told):
    """A candidate: its method and parameters, and every measure with its band."""

    id: str
    name: str
    method: str
    spec: dict[str, Any]
    replicate: int
    masked: list[str]
    status: str
    reason: str
    measures: CandidateMeasures


class ChangeTable(Told):
    name: str
    head: list[str]
    rows: list[list[str]]


class Changes(Told):
    """Each masked variable before and after; charts are Vega-Lite."""

    tables: list[ChangeTable]
    charts: dict[str, dict[str, Any]]


class UnsafeRows(Told):
    row: list[int]
    neighbours: list[Number]
    perturbation: list[Number]


class Records(Told):
    """The confidentiality plot (Vega-Lite), its counts and the unsafe records; a chart of null has a reason."""

    chart: dict[str, Any] | None
    reason: str
    counts: dict[str, Number] = Field(default_factory=dict)
    rule: str = ""
    words: str = ""
    unsafe: int = 0
    rows: UnsafeRows | None = None


class RecordValue(Told):
    """One column of one record; an original of null is not known: the record is nobody's."""

    name: str
    role: str
    original: str | None
    masked: str
    changed: bool


class RecordValues(Told):
    """A record of the masked file beside the one it was made from. It never leaves the room."""

    row: int = Field(description="of the masked file, from 0")
    original_row: int | None
    reason: str = Field(description="why there is no original, where there is none")
    values: list[RecordValue]


class Relations(Told):
    """Correlations and the table of two columns, before and after (Vega-Lite); null where there is none."""

    correlations: dict[str, Any] | None
    table: dict[str, Any] | None
    columns: list[str] = Field(description="categorical columns that a table can be of")
    pair: list[str]
    words: str


class ParameterCharts(Told):
    """What the parameters of all methods have to do with risk and loss (Vega-Lite); null has a reason."""

    importance: dict[str, Any] | None
    coordinates: dict[str, Any] | None
    reason: str


# ---- releases ---------------------------------------------------------------------------------------------------


class Check(Told):
    """One check; `todo` says what to do about one that failed."""

    name: str
    passed: bool
    sentence: str
    hard: bool
    todo: str


class BundleFile(Told):
    """A file that a release would hold; `head`: its first lines, where it is text."""

    name: str
    bytes: int
    head: str
    whole: bool = Field(description="whether the head is all of it")


class BundleColumn(Told):
    """A column that a release would hold, as its codebook tells it."""

    name: str
    label: str
    kind: str
    masked: bool
    done: str


class Checks(Told):
    """Every check, and what would be written: nothing is kept."""

    candidate: str
    name: str
    replicate: int
    passed: bool
    checks: list[Check]
    files: list[BundleFile]
    columns: list[BundleColumn]


class Release(Told):
    """A release; `already`: it was written by an earlier order like this one."""

    release: str
    files: list[str]
    already: bool


class Releases(Told):
    releases: list[ReleaseEntry]


class SwapRisk(Told):
    measure: str
    before: Number
    after: Number
    reason: str


class SwapDistortion(Told):
    measure: str
    value: Number
    reason: str


class SwapFile(Told):
    name: str
    base64: str


class Swap(Told):
    """A swapped file with its risk and distortion."""

    method: str
    risk: SwapRisk
    distortion: SwapDistortion
    file: SwapFile
