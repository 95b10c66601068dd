"""Commands on a study: map, choose, release, report, pair."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Exit, Option

from sdcmap.cli import options
from sdcmap.cli.app import app, format_duration, note, print_json

if TYPE_CHECKING:
    import polars as pl

    from sdcmap.bundle import Check
    from sdcmap.core.rule import Rule
    from sdcmap.map import RUMap

CURVE_DRAWS = 10  # random subsamples of each size


@app.command("map")
def draw_map(
    study: options.StudyOrTable,
    out: Annotated[
        Path, Option("-o", "--out", help="File to write: .html, .svg or .png for the map, .csv for the numbers.")
    ],
    risk: Annotated[
        list[str],
        Option(help="Risk measure, or column of a table. If repeated: the worst counts, and curves show each."),
    ] = [],  # noqa: B006
    utility: Annotated[str, Option(help="Utility measure of the map, or column of a table.")] = "",
    by: Annotated[
        str,
        Option(help="release (a point for each candidate), mean (one for each method) or curve (a line per family)."),
    ] = "",
    curve: Annotated[
        list[str], Option(help="Draw a line through the methods that differ in this parameter only, such as variance.")
    ] = [],  # noqa: B006
    color: Annotated[str, Option(help="Color points by `method`, or by a parameter or column such as rate.")] = "",
    facet: Annotated[
        str, Option(help="Draw one panel for each `method`, or for each value of a parameter or column such as rate.")
    ] = "",
    every: Annotated[
        bool, Option("--all", help="Draw a small map for every risk measure and every utility measure.")
    ] = False,
    limit: options.Limits = [],  # noqa: B006
    max_risk: Annotated[float | None, Option(help="Mark the best utility with at most this risk.")] = None,
    slope: Annotated[float | None, Option(help="Mark the least risk + slope * loss, and draw its line.")] = None,
    loss: Annotated[bool, Option("--loss", help="The utility column of a table is a loss: lower is better.")] = False,
    units: Annotated[
        str, Option(help="readable (a precision as a typical error or efficiency) or own (the numbers themselves).")
    ] = "readable",
    as_subsample: Annotated[
        bool, Option(help="Add a curve of random subsamples of the original, to read losses in records.")
    ] = False,
) -> None:
    """Draw the R-U map of a study, or of a table of risks and utilities made elsewhere.

    Methods that differ in one parameter are drawn as a curve of that parameter; other studies as points with their
    frontier. The choice of the plan's rule is marked if the risk axis is the plan's.

    A table has a row for each release, with columns name, risk, and utility (or loss, or distortion). Further columns can
    be named in --color, --facet and --curve.

    Example: sdcmap map cps-study --risk SmallCells --utility Hellinger -o map.html

    Example: sdcmap map income-study --risk Position --units own -o map.svg

    Example: sdcmap map tax-study --curve variance --risk "Position(on='income')" --risk "Index(on='income')" -o map.html

    Example: sdcmap map cps-study --all --limit Hellinger=0.05 -o measures.html

    Example: sdcmap map pairs.csv --color rate --slope 0.05 -o map.html
    """
    import sdcmap as sm
    from sdcmap.data.private_folder import write_atomically
    from sdcmap.files.formats import is_data_file
    from sdcmap.workflow import open_map, own_choice

    is_table = study.is_file() or (is_data_file(study) and not study.exists())
    _check_source(is_table=is_table, loss=loss, as_subsample=as_subsample, limit=limit)
    if every and (by or curve or color or facet or as_subsample or out.suffix == ".csv"):
        raise sm.errors.PlanError(
            "--all draws its own layout: leave out --by, --curve, --color, --facet, --as-subsample."
        )
    if is_table:
        ru = sm.RUMap.of_pairs(study, risk=risk, utility=utility, loss=loss)
    else:
        ru = open_map(study, risk, utility, _stated_limits(study, limit))
    rule = _stated_rule(max_risk, slope)
    own = None if is_table else own_choice(study, ru)
    mark = own if rule is None else ru.choose(rule)
    subsampled = _subsamples(ru, study) if as_subsample else None
    if every:
        ru.draw_all(mark=mark).save(out)
    elif out.suffix == ".csv":
        table = ru.curves(curve) if curve or by == "curve" else ru.means if by == "mean" else ru.points
        write_atomically(out, (table if subsampled is None else subsampled).write_csv())
    else:
        drawn: Any = {"by": by or None, "curve": curve, "color": color or None, "facet": facet or None}
        ru.draw(mark=mark, units=units, subsamples=subsampled, **drawn).save(out)
    print(out)


def _check_source(*, is_table: bool, loss: bool, as_subsample: bool, limit: list[str]) -> None:
    """Raise PlanError for an option that only a study has, or only a table."""
    from sdcmap.errors import PlanError

    if is_table and as_subsample:
        raise PlanError("--as-subsample needs the data of a study; a table of pairs has none.")
    if is_table and limit:
        raise PlanError("--limit needs a study; for a table, state --max-risk.")
    if loss and not is_table:
        raise PlanError("--loss describes a table; a study knows which measures are losses.")


def _stated_limits(study: Path, stated: list[str]) -> dict[str, Any] | None:
    """Return the plan's limits with those of options such as Hellinger=0.05; None where no option states one."""
    import sdcmap as sm

    limits: dict[str, Any] = {}
    for text in stated:
        name, sign, value = text.rpartition("=")
        unit, _, number = value.rpartition(":")
        try:
            limits[name] = {unit: float(number)} if unit else float(number)
        except ValueError:
            sign = ""
        if not sign:
            forms = "Hellinger=0.05, Position=error:5000 or MeanPrecision=efficiency:0.9"
            raise sm.errors.PlanError(f"--limit needs a measure and a number, such as {forms}. Got {text!r}.")
    if not limits:
        return None
    with sm.Study.open(study) as opened:
        plan = opened.plan
    # As in a plan, the name of a class stands for all its measures.
    by_class = [(m.text, limits[type(m).__name__]) for m in plan.measures if type(m).__name__ in limits]
    classes = {type(m).__name__ for m in plan.measures}
    named = {name: limit for name, limit in limits.items() if name not in classes}
    return {**plan.limits, **dict(by_class), **named}


def _stated_rule(
    max_risk: float | None, slope: float | None, ideal: bool = False, by: str = "", min_error: float | None = None
) -> Rule | None:
    """Return the rule that options state, or None; at most one may be stated."""
    import sdcmap as sm
    from sdcmap.core.readable_units import precision_of_error

    how: dict[str, Any] = {"by": by} if by else {}
    rules: list[Rule] = [sm.Threshold(risk=max_risk, **how)] if max_risk is not None else []
    rules += [sm.Linear(slope=slope, **how)] if slope is not None else []
    rules += [sm.IdealPoint(**how)] if ideal else []
    rules += [sm.Threshold(risk=precision_of_error(min_error), **how)] if min_error else []
    if len(rules) > 1:
        raise sm.errors.PlanError("Give only one rule: --max-risk, --min-error, --slope or --ideal.")
    return rules[0] if rules else None


@app.command("planes")
def draw_planes(
    study: options.StudyFolder,
    out: Annotated[
        Path, Option("-o", "--out", help="File to write: .html, .svg or .png for the planes, .csv for the numbers.")
    ],
    agency_limit: Annotated[
        float | None, Option(help="Limit of IEK, at most 0. Default: that of the rule, or half of the prior.")
    ] = None,
    intruder_limit: Annotated[
        float | None, Option(help="Limit of RDH, at most 0. Default: that of the rule, or half of the prior.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Draw global risk and global utility of a study: what intruders and users know after each release.

    The plan needs the measures IntruderKnowledge, DiscreditHarm, SocietyKnowledge and SocietyUtility. Its rule may be
    GlobalCriterion. Each intruder and each user has a plane. The choice is printed; the exit code is 3 if no candidate is
    safe.

    Example: sdcmap planes income-study -o planes.html --agency-limit -0.5 --intruder-limit -0.5
    """
    from sdcmap.charts import draw_criterion
    from sdcmap.data.private_folder import write_atomically
    from sdcmap.workflow import choose_by_criterion

    ru, rule, choice = choose_by_criterion(study, agency_limit=agency_limit, intruder_limit=intruder_limit)
    table = rule.describe(ru, choice)
    if out.suffix == ".csv":
        write_atomically(out, table.write_csv())
    else:
        draw_criterion(ru, choice).save(out)
    if as_json:
        facts = {"candidate": choice.candidate, "reason": choice.reason, "rule": rule.text, "prior": rule.prior(ru)}
        print_json({**facts, "rows": table.to_dicts()})
    else:
        print(choice.reason, out, sep="\n")
    if choice.candidate is None:
        raise Exit(3)


def _subsamples(ru: RUMap, study: Path) -> pl.DataFrame:
    """Return the scores of random subsamples; print the expected run time first."""
    import sdcmap as sm
    from sdcmap.study.subsamples import estimate_subsample_cost

    with sm.Study.open(study) as opened:
        data = opened.data
    measures = [ru.scores.values[name] for name in (*ru.risk, ru.utility)]
    count, seconds = estimate_subsample_cost(data, measures, CURVE_DRAWS)
    note(f"Scoring {count} random subsamples of the original: about {format_duration(seconds)} of one core.")
    return ru.subsamples(data, draws=CURVE_DRAWS)


@app.command()
def choose(
    study: options.StudyFolder,
    max_risk: Annotated[float | None, Option(help="Choose the best utility with at most this risk.")] = None,
    min_error: Annotated[
        float | None, Option(help="Choose the best utility with at least this typical error of the attacker.")
    ] = None,
    slope: Annotated[float | None, Option(help="Minimize risk + slope * loss.")] = None,
    ideal: Annotated[bool, Option("--ideal", help="Choose the candidate nearest to the ideal point.")] = False,
    by: Annotated[
        str, Option(help="Compare single releases, or methods by mean or quantile: release, mean, quantile.")
    ] = "",
    risk: options.Risks = [],  # noqa: B006
    utility: options.Utility = "",
    limit: options.Limits = [],  # noqa: B006
    keep: Annotated[bool, Option("--keep", help="Save the chosen file as kept/<id>.study.parquet.")] = False,
    as_json: options.Json = False,
) -> None:
    """Choose a candidate by a rule, and print the reason.

    The rule is the plan's, or one given here. Runners-up are listed as well, and how many of the users' analyses lead to
    another conclusion, where the plan measures that. The exit code is 3 if no candidate can be released.

    Example: sdcmap choose cps-study --max-risk 0.012

    Example: sdcmap choose income-study --risk Position --min-error 5000 --limit MeanPrecision=efficiency:0.9

    Example: sdcmap choose cps-study --max-risk 0.012 --limit Hellinger=0.05
    """
    import sdcmap as sm
    from sdcmap.reports.changed_analyses import summarize_choice
    from sdcmap.workflow import choose as choose_in
    from sdcmap.workflow import open_map

    rule = _stated_rule(max_risk, slope, ideal, by, min_error)
    with sm.Study.open(study) as opened:
        ru = open_map(opened, risk, utility, _stated_limits(study, limit))
        if min_error is not None and not (min_error > 0 and all(ru.scores.values[n].error_variable for n in ru.risk)):
            raise sm.errors.PlanError("--min-error needs an error above 0, and a risk that is 1 over a squared error.")
        choice = choose_in(opened, rule, on=ru)
        analyses = summarize_choice(opened, choice)
        if keep and choice.candidate:
            note(str(opened.keep(opened.plan.make(opened.data, choice), choice.candidate)))
    if as_json:
        facts = (
            "candidate", "name", "method", "replicate", "risk", "risk_interval", "utility", "utility_interval", "reason",
            "searched", "runners_up", "no_masking_needed",
        )  # fmt: skip
        limits = [verdict.facts for verdict in choice.verdicts]
        more = {"rule": choice.rule.text, "limits": limits, "analyses": analyses}
        print_json({fact: getattr(choice, fact) for fact in facts} | more)
    else:
        runners_up = [f"  runner-up: {runner}" for runner in choice.runners_up]
        print(*filter(None, [choice.reason, analyses, *runners_up]), sep="\n")
        if choice.candidate:
            print(f'Next: sdcmap release {study} "{choice.name}" -o public/')
    if choice.candidate is None:
        raise Exit(3)


@app.command()
def release(
    study: options.StudyFolder,
    candidate: Annotated[str, Argument(help="Name as printed by `choose`, or id. Default: the rule's choice.")] = "",
    out: Annotated[Path, Option("-o", "--out", help="Folder to create.")] = Path("public"),
    profile: Annotated[
        str, Option(help="Release profile, if the plan states none: public-use, scientific-use, teaching or business.")
    ] = "",
    max_risk: Annotated[float | None, Option(help="Risk limit, if the plan states none.")] = None,
    again: Annotated[bool, Option("--again", help="Allow another release of the same records.")] = False,
    override: Annotated[
        list[str], Option(help="CHECK=REASON: override a check that may be overridden; repeatable.")
    ] = [],  # noqa: B006
    confirm_roles: Annotated[
        bool,
        Option("--confirm-roles", help="Confirm every role that the plan marks as proposed; the study records it."),
    ] = False,
    ledger: options.Ledger = None,
    form: Annotated[
        str, Option("--format", help="csv, parquet, sav, dta or xpt. Default: the format of the data.")
    ] = "",
    excel_safe: options.ExcelSafe = False,
    title: options.Title = "",
    owner: options.Owner = "",
    as_json: options.Json = False,
) -> None:
    """Draw candidates anew, check them, and write the release folder of the first that passes.

    The folder contains data, README, codebook, method note, citation and checksums. The first three eligible candidates in
    the order of the rule are tried; a candidate that is named is the only one. All releases of the same data and profile
    share three tries, whatever the seed and the plan. The exit code is 3 if no candidate passes.

    Example: sdcmap release cps-study "Age swapped 5 %, draw 7" -o public/

    Example: sdcmap release cps-study -o public/ --format sav --title "Labor force survey" --owner "Office of Statistics"
    """
    import sdcmap as sm
    from sdcmap.workflow import choose as choose_in
    from sdcmap.workflow import write_release

    reasons = dict(part.partition("=")[::2] for part in override)
    with sm.Study.open(study) as opened:
        choice = choose_in(opened, candidate=candidate)
        if not as_json and choice.candidate:
            note(f"Drawing and measuring {choice.name} anew. This takes longer than in the sweep.")
        folder = write_release(
            opened,
            choice,
            out,
            on_checks=None if as_json else _print_checks,
            on_try=None if as_json else (lambda one: note(str(one))),
            profile=profile or None,
            max_risk=max_risk,
            again=again,
            override=reasons,
            ledger=ledger,
            confirm_roles=confirm_roles,
            form=form,
            excel_safe=excel_safe,
            title=title,
            owner=owner,
        ).folder
    files = sorted(path.name for path in folder.iterdir())
    if as_json:
        print_json({"folder": str(folder), "files": files})
    else:
        print(f"{folder}: {', '.join(files)}")


def _print_checks(checks: list[Check]) -> None:
    """Print the results of the release checks; failed checks are part of the error message instead."""
    from sdcmap.bundle.checks import check_label

    for name in ("ledger", "unmasked", "profile", "information"):
        reasons = [check.reason for check in checks if check.passed and check.name == name]
        if reasons:
            print(f"{check_label(name)}:", *reasons, sep="\n- ")


@app.command()
def report(
    study: options.StudyFolder,
    out: Annotated[Path, Option("-o", "--out", help="HTML file to write.")] = Path("report.html"),
    external: Annotated[
        bool, Option("--external", help="Write the external report, which contains only what may be published.")
    ] = False,
    records: Annotated[
        str, Option(help="Add the confidentiality plot with this rule, such as \"Unsafe(on='wage', k=5)\".")
    ] = "",
    title: options.Title = "",
    owner: options.Owner = "",
    show_risk: Annotated[str, Option(help="Show risk in an external report, for this reason (a sentence).")] = "",
) -> None:
    """Write the report for the review board or the public.

    The report is one HTML file; print it from a browser on A4 or as a PDF.

    Example: sdcmap report cps-study -o report.html --title "Labor force survey 2026" --owner "Office of Statistics"

    Example: sdcmap report cps-study --external -o public-report.html
    """
    import sdcmap as sm
    from sdcmap.core.value import parse

    rule = parse(records, sm.recordwise.Unsafe) if records else None
    audience = "external" if external else "internal"
    sm.report(study, audience=audience, records=rule, title=title, owner=owner, show_risk=show_risk).save(out)
    print(out)


@app.command()
def pair(
    study: options.StudyFolder,
    public: Annotated[Path, Argument(help="The plan of the public file; its [data] part states the roles.")],
    out: Annotated[Path, Option("-o", "--out", help="Folder for the pair; existing results are continued.")] = Path(
        "pair"
    ),
    most: Annotated[int, Option(min=1, help="Number of candidates of each file that are paired, best first.")] = 5,
    joint: Annotated[
        float | None, Option(help="Largest share of people that an attacker with both files may re-identify.")
    ] = None,
    weights: Annotated[
        str, Option(help="W1,W2: minimize W1 * scientific loss + W2 * public loss. Default: scientific loss first.")
    ] = "",
    workers: options.Workers = 0,
    engine: options.Engine = "",
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Choose a scientific-use and a public-use file together.

    The public-use file is made from the scientific-use file. Both rules must hold, and an attacker with both files is
    considered. STUDY contains the scientific candidates and must not have released anything yet.

    Example: sdcmap pair suf-study public.toml -o pair/

    Example: sdcmap pair suf-study public.toml -o pair/ --joint 0.1 --weights 1,2
    """
    import sdcmap as sm

    try:
        shares = tuple(map(float, weights.split(","))) if weights else None
        if shares is not None and len(shares) != 2:
            raise ValueError
    except ValueError:
        raise sm.errors.PlanError("--weights needs two numbers, such as 1,2.") from None
    pair = sm.choose_pair(
        study,
        sm.Plan.read(public),
        out,
        most=most,
        joint=joint,
        weights=shares,
        workers=workers or None,
        engine=engine or None,
        progress=(lambda *_: None) if quiet or as_json else None,
    )
    if as_json:
        chosen = {"first": pair.first and pair.first.candidate, "second": pair.second and pair.second.candidate}
        folder = None if pair.study is None else str(pair.study)
        print_json({**chosen, "study": folder, "reason": pair.reason, "pairs": pair.pairs, "unused": pair.unused})
    else:
        print(pair.reason)
        if pair.first and pair.second:
            print(f'Next: sdcmap release {study} "{pair.first.name}" -o scientific/')
            print(f"Then: sdcmap release {pair.study} -o public/ && sdcmap report {pair.study} -o pair.html")
    if pair.first is None:
        raise Exit(3)
