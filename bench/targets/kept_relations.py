"""Target: in the file that a starting plan chooses, no clear coefficient changes its sign, and R2 stays within 20 %.

Each run goes the way of a new user: it writes a file, looks at it, makes the starting plan for public use, sweeps it and
chooses by its rule. Then it repeats regressions that such users run, by plain formulas that share nothing with the
package, and counts coefficients with |t| above 3 in the original that have another sign. It also compares the share of
changed conclusions with that of the former default, trees with 100 records per leaf. Three made files have relations that
are known; four public ones are read from SDCMAP_DATA.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

import sdcmap as sm
from made_files import fully_synthetic
from resumable_runs import Facts, Figure, Target, main, mean_band, plan_seed
from sdcmap.core import Stream
from sdcmap.study.plan import Plan
from sdcmap.utility import ChangedConclusions
from sdcmap.workflow import choose

ROWS, RUNS_PER_FILE = 2_000, 20
MAX_PUBLIC_ROWS = 8_000  # records of a public file: as many as its users have, where a study does not take too long
CLEAR_T = 3.0  # of a coefficient whose sign must stay
MAX_CHANGE_OF_R2 = 0.2
FORMER_LEAF = 100  # records per leaf of the former default
Rng = np.random.Generator


@dataclass(frozen=True)
class Relations:
    """A file, and the regressions that its users run: response and regressors; "sex=m" is the indicator of a category."""

    name: str
    draw: Callable[[int, Rng], pl.DataFrame]
    models: Mapping[str, tuple[str, ...]]


def draw_wages(rows: int, rng: Rng) -> pl.DataFrame:
    """Draw workers: wages rise with education and experience, and are lower for a minority of 12 %."""
    educ, exper = rng.integers(8, 19, rows), rng.integers(0, 41, rows)
    minority, union = rng.random(rows) < 0.12, rng.random(rows) < 0.25
    wage = np.exp(
        0.6
        + 0.08 * educ
        + 0.03 * exper
        - 0.0005 * exper**2
        - 0.14 * minority
        + 0.15 * union
        + 0.35 * rng.normal(size=rows)
    )
    region = rng.choice(["north", "east", "south", "west"], rows)
    words = {"minority": np.where(minority, "yes", "no"), "union": np.where(union, "yes", "no")}
    return pl.DataFrame({"region": region, "educ": educ, "exper": exper, **words, "wage": wage.round(2)})


def draw_patients(rows: int, rng: Rng) -> pl.DataFrame:
    """Draw patients: death depends on age, a score and the group that matters, which has 15 % of them."""
    age, treated = rng.integers(20, 95, rows), rng.random(rows) < 0.15
    score = np.clip(rng.poisson(3 + age / 30), 0, 15)
    chance = 1 / (1 + np.exp(-(-4.5 + 0.03 * age + 0.35 * score - 1.9 * treated)))
    died = rng.random(rows) < chance
    days = np.maximum(1, rng.gamma(2, 2 + 0.5 * score)).round()
    return pl.DataFrame({
        "ward": rng.choice(["A", "B", "C", "D", "E"], rows), "sex": rng.choice(["f", "m"], rows), "age": age,
        "group": np.where(treated, "treated", "control"), "score": score, "days": days,
        "died": np.where(died, "yes", "no"),
    })  # fmt: skip


def draw_firms(rows: int, rng: Rng) -> pl.DataFrame:
    """Draw firms: turnover by employees and capital, with an effect of exporting."""
    employees, exports = np.exp(rng.normal(3.5, 1.2, rows)), rng.random(rows) < 0.3
    capital = np.exp(1 + 0.8 * np.log(employees) + 0.7 * rng.normal(size=rows))
    turnover = np.exp(
        1.5 + 0.7 * np.log(employees) + 0.25 * np.log(capital) + 0.2 * exports + 0.6 * rng.normal(size=rows)
    )
    return pl.DataFrame({
        "industry": rng.choice([f"industry {i}" for i in range(8)], rows), "exports": np.where(exports, "yes", "no"),
        "employees": np.maximum(1, employees).round(), "capital": capital.round(1), "turnover": turnover.round(1),
    })  # fmt: skip


def read_public(name: str, prepare: Callable[[pl.DataFrame], pl.DataFrame]) -> Callable[[int, Rng], pl.DataFrame]:
    """Return a function that draws records of a public file."""

    def draw(rows: int, rng: Rng) -> pl.DataFrame:
        frame = prepare(pl.read_csv(Path(os.environ["SDCMAP_DATA"]) / "data" / name, infer_schema_length=None))
        return frame[np.sort(rng.permutation(len(frame))[: max(rows, MAX_PUBLIC_ROWS)])]

    return draw


MADE = (
    Relations("wages", draw_wages, {"log(wage)": ("educ", "exper", "minority=yes", "union=yes")}),
    Relations(
        "patients",
        draw_patients,
        {"died=yes": ("age", "score", "group=treated"), "log(days)": ("age", "score", "group=treated")},
    ),
    Relations("firms", draw_firms, {"log(turnover)": ("log(employees)", "log(capital)", "exports=yes")}),
)
PUBLIC = (
    Relations(
        "adult",
        read_public("adult.csv", lambda frame: frame.drop("part", "fnlwgt")),
        {
            "income=>50K": ("age", "education_num", "hours_per_week", "sex=Male"),
            "hours_per_week": ("age", "education_num", "sex=Male"),
        },
    ),
    Relations(
        "household",
        read_public("psid1976_household.csv", lambda frame: frame.drop("id")),
        {
            "participation=yes": ("youngkids", "age", "education", "experience"),
            "log(fincome)": ("education", "heducation", "log(hhours)"),
        },
    ),
    Relations(
        "innovation",
        read_public(
            "firm_innovation.csv", lambda f: f.sort("year").group_by("firm_id").first().drop("firm_id", "year")
        ),
        {"log(turnover_musd)": ("log(employees_k)", "log(capital_musd)", "sp500=yes")},
    ),
    Relations(
        "survey",
        read_public(
            "sdcmicro_testdata.csv", lambda f: f.drop("ori_hid", "sampling_weight", "household_weights", "hhcivil")
        ),
        {"electcon=1": ("urbrur", "walls", "water"), "roof": ("urbrur", "walls", "water")},
    ),
)
CASES = (*MADE, *(PUBLIC if "SDCMAP_DATA" in os.environ else ()))


def run(number: int, seed: int, rows: int = ROWS) -> Facts:
    """Return what the chosen file, and one of the former default, do to the relations of a file."""
    case = CASES[number % len(CASES)]
    original = case.draw(rows, np.random.default_rng(seed))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "people.csv"
        original.write_csv(path)
        plan = sm.look(path).plan(path).bind_seed(plan_seed(seed))
        assert plan.data is not None
        data = plan.data.read(path.parent)
        sm.sweep(data, plan, Path(folder) / "study", workers=1, progress=lambda done, total: None)
        with sm.Study.open(Path(folder) / "study") as study:
            choice = choose(study)
            chosen = None if choice.candidate is None else plan.make(data, choice)
    facts: Facts = {"file": case.name, "chosen": choice.name, "models": {}}
    if chosen is None:
        return facts
    facts["changed"] = change(data, chosen)
    if (former := former_default(plan, data)) is not None:
        facts["changed before"] = change(data, former.apply(data, Stream.of_seed(seed, "former")))
    released = chosen.frame()
    facts["models"] = {response: compare(original, released, response, x) for response, x in case.models.items()}
    return facts


def former_default(plan: Plan, data: sm.Microdata) -> sm.Method | None:
    """Return the fully synthetic method of the plan with trees of 100 records per leaf."""
    for method in plan.all_methods:
        step = fully_synthetic(method, data)
        if step is not None and step.model == "trees" and step.leaf == FORMER_LEAF:
            return method
    return None


def change(original: sm.Microdata, released: sm.Microdata) -> float:
    """Return the share of changed conclusions, of all analyses."""
    return sm.score(original, released.frame(), [ChangedConclusions()], paired=False)["ChangedConclusions"].value


# ---- regressions by plain formulas --------------------------------------------------------------------------------
def compare(original: pl.DataFrame, released: pl.DataFrame, response: str, regressors: Sequence[str]) -> Facts:
    """Return t and R2 of a regression in both files, and which clear coefficients have another sign."""
    (before, r2), (after, new_r2) = (regress(frame, response, regressors) for frame in (original, released))
    turned = [x for x, b, a in zip(regressors, before, after, strict=True) if abs(b) > CLEAR_T and not a * b > 0]
    return {"t": before.tolist(), "released t": after.tolist(), "r2": r2, "released r2": new_r2, "turned": turned}


def regress(frame: pl.DataFrame, response: str, regressors: Sequence[str]) -> tuple[np.ndarray, float]:
    """Return t of each regressor, and R2, or McFadden's for an indicator; records with gaps are left out."""
    columns = np.column_stack([read_column(frame, name) for name in (response, *regressors)])
    columns = columns[np.isfinite(columns).all(axis=1)]
    y, x = columns[:, 0], np.column_stack([np.ones(len(columns)), columns[:, 1:]])
    slopes, errors, r2 = fit_logit(x, y) if "=" in response else fit_line(x, y)
    return (slopes / errors)[1:], r2


def read_column(frame: pl.DataFrame, name: str) -> np.ndarray:
    """Return a number, its logarithm ("log(x)") or the indicator of a category ("x=a") of each record."""
    if "=" in name:
        column, category = name.split("=", 1)
        return frame[column].cast(pl.String).eq(category).cast(pl.Float64).to_numpy()
    is_log = name.startswith("log(")
    values = frame[name[4:-1] if is_log else name].cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()
    return np.log(np.where(values > 0, values, np.nan)) if is_log else values


def fit_line(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Return least squares slopes, their robust errors (HC1) and R2."""
    inverse = np.linalg.pinv(x.T @ x)
    slopes = inverse @ x.T @ y
    residuals = y - x @ slopes
    covariance = inverse @ (x.T * residuals**2) @ x @ inverse * len(y) / (len(y) - x.shape[1])
    return slopes, np.sqrt(np.diag(covariance)), 1 - float(residuals @ residuals) / float(((y - y.mean()) ** 2).sum())


def fit_logit(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the slopes of maximum likelihood by iterated weighted least squares, their errors, and McFadden's R2."""
    scale = np.maximum(np.abs(x).max(axis=0), 1e-12)
    z, slopes = x / scale, np.zeros(x.shape[1])
    for _ in range(50):
        p = 1 / (1 + np.exp(-np.clip(z @ slopes, -30, 30)))
        information = (z.T * (p * (1 - p))) @ z + 1e-9 * np.eye(z.shape[1])
        slopes += np.linalg.solve(information, z.T @ (y - p))
    p, share = 1 / (1 + np.exp(-np.clip(z @ slopes, -30, 30))), y.mean()
    likelihood = float(np.log(np.where(y > 0, p, 1 - p)).sum())
    baseline = len(y) * float(share * np.log(share) + (1 - share) * np.log(1 - share))
    return slopes / scale, np.sqrt(np.diag(np.linalg.inv(information))) / scale, 1 - likelihood / baseline


# ---- figures ------------------------------------------------------------------------------------------------------
def find_figures(lines: Sequence[Facts]) -> Iterator[Figure]:
    """Yield, for each file, clear coefficients with another sign, the change of R2 and the share of changed conclusions."""
    for name in dict.fromkeys(line["file"] for line in lines):
        own = [line for line in lines if line["file"] == name]
        chosen = [line for line in own if "changed" in line]
        note = f"{len(own) - len(chosen)} of {len(own)} studies release nothing"
        if not chosen:
            print(f"{name}: {note}.")
            continue
        models = [model for line in chosen for model in line["models"].values()]
        turned = sum(len(model["turned"]) for model in models)
        clear = sum(abs(t) > CLEAR_T for model in models for t in model["t"])
        yield Figure(f"{name}: coefficients with another sign", turned, (turned, turned), 0.0, clear, note)
        for response in chosen[0]["models"]:
            fits = [line["models"][response] for line in chosen]
            gaps = [abs(fit["released r2"] / fit["r2"] - 1) for fit in fits]
            yield Figure(
                f"{name}: change of R2 of {response}",
                float(np.mean(gaps)),
                mean_band(gaps),
                MAX_CHANGE_OF_R2,
                len(gaps),
            )
        pairs = [(line["changed"], line["changed before"]) for line in chosen if "changed before" in line]
        if pairs:
            now, before = (float(np.mean(side)) for side in zip(*pairs, strict=True))
            band = mean_band([pair[0] for pair in pairs])
            yield Figure(f"{name}: share of changed conclusions", now, band, before / 2, len(pairs))


TARGET = Target(__doc__, run, find_figures, RUNS_PER_FILE * len(CASES))

if __name__ == "__main__":
    raise SystemExit(main(TARGET))
