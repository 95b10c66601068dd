"""Commands on a study: map, choose, release, report, pair."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Exit, Option

from sdcmap.cli import options
from sdcmap.cli.app import app, duration, note, print_json

if TYPE_CHECKING:
    import polars as pl

    from sdcmap.bundle import Check
    from sdcmap.core.rule import Rule
    from sdcmap.map import RUMap

CURVE_DRAWS = 10  # of each share


@app.command("map")
def draw_map(
    study: options.StudyFolder,
    out: Annotated[Path, Option("-o", "--out", help="map.html, .svg, .png, or .csv for the numbers.")],
    risk: options.Risks = [], utility: options.Utility = "",  # noqa: B006
    by: Annotated[str, Option(help="release (every candidate) or mean (one point a method).")] = "",
    facet: Annotated[str, Option(help="Small multiples by `method` or by a parameter, such as rate.")] = "",
    as_subsample: Annotated[
        bool, Option(help="Random subsamples of the original as a curve: what a loss costs in records.")] = False,
) -> None:  # fmt: skip
    """Draw the R-U map of a study, with its frontier and, on the plan's own axis of risk, the choice of its rule.

    Example: sdcmap map cps-study --risk SmallCells --utility Hellinger -o map.html
    """
    from sdcmap.data.private_folder import write_atomically
    from sdcmap.workflow import open_map, own_choice

    ru = open_map(study, risk, utility)
    curve = _subsamples(ru, study) if as_subsample else None
    if out.suffix == ".csv":
        table = ru.means if by == "mean" else ru.points
        write_atomically(out, (table if curve is None else curve).write_csv())
    else:
        ru.draw(mark=own_choice(study, ru), by=by or None, facet=facet or None, subsamples=curve).save(out)
    print(out)


def _subsamples(ru: RUMap, study: Path) -> pl.DataFrame:
    """Score random subsamples; the price is printed first."""
    import sdcmap as sm
    from sdcmap.study.subsamples import estimate_subsample_cost

    with sm.Study.open(study) as opened:
        data = opened.data
    measures = [ru.scores.values[name] for name in (*ru.risk, ru.utility)]
    count, seconds = estimate_subsample_cost(data, measures, CURVE_DRAWS)
    note(f"Scoring {count} random subsamples of the original: about {duration(seconds)} of one core.")
    return ru.subsamples(data, draws=CURVE_DRAWS)


@app.command()
def choose(
    study: options.StudyFolder,
    max_risk: Annotated[float | None, Option(help="Best utility with at most this risk.")] = None,
    slope: Annotated[float | None, Option(help="Least risk + slope * loss.")] = None,
    ideal: Annotated[bool, Option("--ideal", help="Nearest to the ideal point.")] = False,
    by: Annotated[str, Option(help="release, mean or quantile.")] = "",
    risk: options.Risks = [], utility: options.Utility = "",  # noqa: B006
    keep: Annotated[bool, Option("--keep", help="Keep the chosen file as kept/<id>.study.parquet.")] = False,
    as_json: options.Json = False,
) -> None:  # fmt: skip
    """Choose by the plan's rule, or by the rule given here; says why, and names the runners-up.

    Example: sdcmap choose cps-study --max-risk 0.012
    """
    import sdcmap as sm
    from sdcmap.workflow import choose as choose_in
    from sdcmap.workflow import open_map

    how: dict[str, Any] = {"by": by} if by else {}
    rules: list[Rule] = [sm.Threshold(risk=max_risk, **how)] if max_risk is not None else []
    rules += [sm.Linear(slope=slope, **how)] if slope is not None else []
    rules += [sm.IdealPoint(**how)] if ideal else []
    if len(rules) > 1:
        raise sm.errors.PlanError("give one rule: --max-risk, --slope or --ideal.")
    with sm.Study.open(study) as opened:
        choice = choose_in(opened, *rules, on=open_map(opened, risk, utility))
        if keep and choice.candidate:
            note(str(opened.keep(opened.plan.make(opened.data, choice), choice.candidate)))
    if as_json:
        facts = ("candidate", "name", "method", "replicate", "risk", "utility", "reason", "searched", "runners_up")
        limits = [verdict.facts for verdict in choice.verdicts]
        print_json({fact: getattr(choice, fact) for fact in facts} | {"rule": choice.rule.text, "limits": limits})
    else:
        print(choice.reason, *(f"  runner-up: {runner}" for runner in choice.runners_up), sep="\n")
        if choice.candidate:
            print(f'Next: sdcmap release {study} "{choice.name}" -o public/')
    if choice.candidate is None:
        raise Exit(3)


@app.command()
def release(
    study: options.StudyFolder,
    candidate: Annotated[str, Argument(help="Its name as `choose` prints it, or its id (default: the rule's).")] = "",
    out: Annotated[Path, Option("-o", "--out", help="Folder to make.")] = Path("public"),
    profile: Annotated[str, Option(help="For whom the file is, where the plan does not say it.")] = "",
    max_risk: Annotated[float | None, Option(help="The line, where the plan states none.")] = None,
    again: Annotated[bool, Option("--again", help="Another release of the same records.")] = False,
    override: Annotated[list[str], Option(help="CHECK=REASON for a check that may be overridden.")] = [],  # noqa: B006
    confirm_roles: Annotated[
        bool, Option("--confirm-roles", help="Confirm every role that the plan marks as proposed; it is recorded.")
    ] = False,
    ledger: options.Ledger = None,
    form: Annotated[str, Option("--format", help="csv, parquet, sav, dta or xpt; by default that of the data.")] = "",
    title: options.Title = "", owner: options.Owner = "", as_json: options.Json = False,
) -> None:  # fmt: skip
    """Make a candidate again, check it, and write it with README, codebook, method note, citation and checksums.

    Example: sdcmap release cps-study "Age swapped 5 %, draw 7" -o public/

    Example: sdcmap release cps-study -o public/ --format sav --title "Labour force survey" --owner "Office of Statistics"
    """
    import sdcmap as sm
    from sdcmap.workflow import choose as choose_in
    from sdcmap.workflow import prepare_release

    reasons = dict(part.partition("=")[::2] for part in override)
    with sm.Study.open(study) as opened:
        choice = choose_in(opened, candidate=candidate)
        bundle = prepare_release(
            opened, choice, profile=profile or None, max_risk=max_risk, again=again, override=reasons, ledger=ledger,
            confirm_roles=confirm_roles, form=form, title=title, owner=owner,
        )  # fmt: skip
        try:
            folder = bundle.write(out, tell=None if as_json else _tell)
        except sm.errors.Refused as refused:
            if all(check.is_measured for check in refused.checks) and choice.runners_up:
                other = choice.runners_up[0].name
                note(f'Next: measured anew it is over a line; a runner-up: sdcmap release {study} "{other}" -o {out}')
            raise
    files = sorted(path.name for path in folder.iterdir())
    if as_json:
        print_json({"folder": str(folder), "files": files})
    else:
        print(f"{folder}: {', '.join(files)}")


def _tell(checks: list[Check]) -> None:
    """What the gate found, line by line; what was refused is said by the refusal."""
    told = [check for check in checks if check.passed and check.name in ("unmasked", "gate", "told")]
    print(*told, sep="\n", end="\n" if told else "")


@app.command()
def report(
    study: options.StudyFolder,
    out: Annotated[Path, Option("-o", "--out", help="One HTML file.")] = Path("report.html"),
    external: Annotated[bool, Option("--external", help="Only what may leave the room.")] = False,
    records: Annotated[str, Option(help="A rule of safety, such as \"Unsafe(on='wage', k=5)\".")] = "",
    title: options.Title = "", owner: options.Owner = "",
    show_risk: Annotated[str, Option(help="Why an external report shows values of risk, in a sentence.")] = "",
) -> None:  # fmt: skip
    """Write the report for the board, or for anybody. A browser prints it on A4 or into a PDF.

    Example: sdcmap report cps-study -o report.html --title "Labour force survey 2026" --owner "Office of Statistics"

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
    public: Annotated[Path, Argument(help="The plan of the public file; its [data] say the roles of the columns.")],
    out: Annotated[Path, Option("-o", "--out", help="Folder; an existing one is gone on with.")] = Path("pair"),
    most: Annotated[int, Option(min=1, help="Candidates of each file that are paired, the best by its rule.")] = 5,
    joint: Annotated[float | None, Option(help="Most that who holds both files may find, a share.")] = None,
    weights: Annotated[
        str, Option(help="W1,W2: least W1 * scientific + W2 * public loss; else the scientific file first.")] = "",
    workers: options.Workers = 0, engine: options.Engine = "", quiet: options.Quiet = False, as_json: options.Json = False,
) -> None:  # fmt: skip
    """Choose a scientific-use file and a public-use file made from it together: both rules, and both files in one hand.

    STUDY is that of the scientific candidates, which has released nothing yet.

    Example: sdcmap pair suf-study public.toml -o pair/

    Example: sdcmap pair suf-study public.toml -o pair/ --joint 0.1 --weights 1,2
    """
    import sdcmap as sm

    try:
        shares = tuple(map(float, weights.split(","))) if weights else None
        if shares is not None and len(shares) != 2:
            raise ValueError
    except ValueError:
        raise sm.errors.PlanError("--weights are two numbers, such as 1,2.") from None
    pair = sm.choose_pair(
        study, sm.Plan.read(public), out, most=most, joint=joint, weights=shares, workers=workers or None,
        engine=engine or None, progress=(lambda *_: None) if quiet or as_json else None,
    )  # fmt: skip
    if as_json:
        chosen = {"first": pair.first and pair.first.candidate, "second": pair.second and pair.second.candidate}
        place = None if pair.study is None else str(pair.study)
        print_json({**chosen, "study": place, "reason": pair.reason, "pairs": pair.pairs, "unused": pair.unused})
    else:
        print(pair.reason)
        if pair.first and pair.second:
            print(f'Next: sdcmap release {study} "{pair.first.name}" -o scientific/')
            print(f"Then: sdcmap release {pair.study} -o public/ && sdcmap report {pair.study} -o pair.html")
    if pair.first is None:
        raise Exit(3)
