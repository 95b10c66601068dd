"""A synthetic demo population, generated from stated shares and formulas; no record is a real person."""

from __future__ import annotations

import numpy as np
import polars as pl

from sdcmap.core import Array, Generator, Microdata, PlanError
from sdcmap.files.reader import read

# The categories of each key, in their order, and the share of persons in each: the margins of the file CPS-8d.
SHARES = {
    "Age": {"<25": 0.173, "25-55": 0.699, ">55": 0.128},
    "WrkTyp": {"Govt": 0.134, "Priv": 0.694, "Self-Emp": 0.114, "Other": 0.058},
    "Educ": {"<HS": 0.131, "HS": 0.323, "Coll": 0.298, "Bach": 0.164, "Bach+": 0.084},
    "MarStat": {"Married": 0.472, "Other": 0.528},
    "Race": {"White": 0.855, "Non-White": 0.145},
    "Sex": {"Male": 0.668, "Female": 0.332},
    "Hours": {"<40": 0.239, "40": 0.467, ">40": 0.294},
    "Income": {"<50K": 0.761, "50K+": 0.239},
}
ORDERED = ("Age", "Educ", "Hours", "Income")
AMOUNTS = ("wage", "interest", "benefits", "total")

HOUSEHOLD_SIZES = (0.37, 0.42, 0.13, 0.06, 0.015, 0.005)  # share of households with 1, 2, ... persons in the file
COUPLES = 0.35  # of the households with two or more
MARRIED_ALONE_HEADS = 0.61  # of the other households
WEIGHTS = (500.0, 1000.0, 1500.0, 2000.0, 2500.0, 3000.0)

# The kind of household member is not in the file, but most variables depend on it.
COUPLE_HEAD, PARTNER, MARRIED_ALONE, SINGLE_HEAD, OTHER_MEMBER = range(5)
MALE_OF_MEMBER = (0.97, 0.03, 0.95, 0.60, 0.60)
AGE_OF_MEMBER = ((0.03, 0.79, 0.18), (0.03, 0.79, 0.18), (0.03, 0.79, 0.18), (0.15, 0.67, 0.18), (0.36, 0.60, 0.04))

EDUC_OF_AGE = (
    (0.207, 0.292, 0.411, 0.086, 0.004),
    (0.098, 0.327, 0.286, 0.190, 0.099),
    (0.208, 0.343, 0.210, 0.130, 0.109),
)
EDUC_OF_RACE = ((0.126, 0.321, 0.298, 0.168, 0.087), (0.162, 0.339, 0.294, 0.140, 0.065))
WORK_OF_AGE = ((0.069, 0.780, 0.027, 0.124), (0.150, 0.705, 0.118, 0.027), (0.136, 0.520, 0.206, 0.138))
WORK_OF_EDUC = (
    (0.056, 0.751, 0.093, 0.100),
    (0.100, 0.740, 0.108, 0.052),
    (0.136, 0.695, 0.100, 0.069),
    (0.180, 0.661, 0.127, 0.032),
    (0.294, 0.490, 0.189, 0.027),
)
HOURS_OF_AGE = ((0.509, 0.375, 0.116), (0.151, 0.500, 0.349), (0.356, 0.414, 0.230))
HOURS_OF_SEX = ((0.168, 0.473, 0.359), (0.382, 0.456, 0.162))
HOURS_OF_WORK = ((0.202, 0.558, 0.240), (0.228, 0.490, 0.282), (0.213, 0.266, 0.521), (0.514, 0.368, 0.118))

# log of usual yearly income: an effect of each category of each key, a household effect and a personal effect
USUAL_INCOME = {
    "Age": (0.0, 0.55, 0.50), "Educ": (0.0, 0.22, 0.35, 0.70, 0.95), "MarStat": (0.30, 0.0), "Race": (0.0, -0.08),
    "Sex": (0.0, -0.22), "Hours": (-0.35, 0.0, 0.22), "WrkTyp": (0.0, 0.0, 0.05, -0.75),
}  # fmt: skip
USUAL_INCOME_START, HOUSEHOLD_SD, PERSON_SD = 9.46, 0.25, 0.40


def population(n: int = 10_000, seed: int = 1) -> Microdata:
    """Return `n` persons with an income, in households; the same for the same `n` and `seed`.

    Parameters
    ----------
    n : number of persons, at least 1. A million take about a second.
    seed : of the random numbers, at least 0. The data are synthetic, so it need not be secret.

    Keys: the categories of CPS-8d (Gomatam, Karr, Sanil 2003, table 1), with its margins, given in `SHARES`.

    | variable | meaning | depends on |
    |---|---|---|
    | Age | age group in years | position in the household |
    | WrkTyp | class of worker: government, private, self-employed, other (not at work) | Age, Educ |
    | Educ | highest education, from below high school to above bachelor | Age, Race |
    | MarStat | married or other | position in the household |
    | Race | white or non-white; 19 of 20 other members have that of the head | household |
    | Sex | male or female | position in the household |
    | Hours | usual hours of work a week | Age, Sex, WrkTyp |
    | Income | group of usual income, US dollars a year | all other keys and the household |

    Sensitive: amounts of the last year, in US dollars. They deviate from usual income at random, so Income is not a
    function of any of them.

    | variable | meaning | zeros |
    |---|---|---|
    | wage | wages and salaries, in hundreds | not at work; most self-employed (about 15 %) |
    | interest | interest received, strongly skewed; more with age, education, the household's means | about half |
    | benefits | pensions and social transfers, in twelves (they are paid monthly) | about three quarters |
    | total | income from all sources, more than the sum because some sources have no column; in hundreds | none |

    household : number of the household. Its members share the weight, the means behind incomes and mostly Race;
        couples are of opposite sex and mostly of one age group. A spouse without an own income is not in the file,
        so, as in CPS-8d, two thirds are men and some married persons are the only one of their household.
    weight : the number of persons that a record represents, 500 to 3,000 in steps of 500; non-white households weigh less.

    No value is missing.

    >>> population(1000).keys
    ('Age', 'WrkTyp', 'Educ', 'MarStat', 'Race', 'Sex', 'Hours', 'Income')
    """
    problems = [
        f"demo.population: {name} must be a whole number in [{least}, inf). Got {given!r}."
        for name, given, least in (("n", n, 1), ("seed", seed, 0))
        if not isinstance(given, int | np.integer) or isinstance(given, bool) or given < least
    ]
    if problems:
        raise PlanError(problems)
    rng = np.random.default_rng(seed)
    household, member = _households(int(n), rng)
    means = HOUSEHOLD_SD * rng.standard_normal(int(household[-1]) + 1, dtype=np.float32)[household]
    codes = _keys(household, member, rng)
    codes["Income"], usual = _usual_income(codes, means, rng)
    amounts = _amounts(codes, means, usual, rng)
    categories = {name: pl.Series(name, list(shares), dtype=pl.Enum(list(shares))) for name, shares in SHARES.items()}
    keys = [categories[name].gather(codes[name]) for name in SHARES]
    numbers = [pl.Series(name, amounts[name], dtype=pl.Int64) for name in AMOUNTS]
    own = {"household": pl.Series(household + 1), "weight": pl.Series(_weights(household, codes["Race"], rng))}
    frame = pl.DataFrame([*keys, *numbers]).with_columns(**own)
    kinds = dict.fromkeys(ORDERED, "ordinal")
    return read(frame, keys=list(SHARES), sensitive=AMOUNTS, household="household", weight="weight", kinds=kinds)


def _households(n: int, rng: Generator) -> tuple[Array, Array]:
    """Return the household number of each person, and the kind of household member."""
    # Draw one household per person, which is always enough, and use as many as hold n persons.
    size = _draw(rng, [HOUSEHOLD_SIZES], np.zeros(n, dtype=np.uint8)).astype(np.int64) + 1
    ends = np.cumsum(size)
    count = int(np.searchsorted(ends, n)) + 1  # the last household is truncated, so that there are n persons
    size = size[:count]
    size[-1] -= ends[count - 1] - n
    starts = np.concatenate([[0], ends[: count - 1]])
    couple = (size > 1) & (rng.random(count, dtype=np.float32) < COUPLES)
    married_alone = ~couple & (rng.random(count, dtype=np.float32) < MARRIED_ALONE_HEADS)
    member = np.full(n, OTHER_MEMBER, dtype=np.uint8)
    # The first person is the head; in a couple the second is the partner, all others are further members.
    member[starts] = np.where(couple, COUPLE_HEAD, np.where(married_alone, MARRIED_ALONE, SINGLE_HEAD))
    member[starts[couple] + 1] = PARTNER
    return np.repeat(np.arange(count, dtype=np.int32), size), member


def _keys(household: Array, member: Array, rng: Generator) -> dict[str, Array]:
    """Return the codes of every key except Income."""
    n = len(member)
    partners = np.flatnonzero(member == PARTNER)
    age = _draw(rng, AGE_OF_MEMBER, member)
    # A partner follows the head of the couple: mostly of the same age group, and of the opposite sex.
    same_age = partners[rng.random(len(partners)) < 0.8]
    age[same_age] = age[same_age - 1]
    sex = (rng.random(n, dtype=np.float32) >= np.array(MALE_OF_MEMBER, dtype=np.float32)[member]).astype(np.uint8)
    sex[partners] = 1 - sex[partners - 1]
    head_race = _draw(rng, [list(SHARES["Race"].values())], np.zeros(int(household[-1]) + 1, dtype=np.uint8))
    own_race = _draw(rng, [list(SHARES["Race"].values())], np.zeros(n, dtype=np.uint8))
    has_own_race = (member == PARTNER) | (member == OTHER_MEMBER)
    has_own_race &= rng.random(n, dtype=np.float32) < 0.05
    race = np.where(has_own_race, own_race, head_race[household])
    educ = _draw(rng, _joint_shares("Educ", EDUC_OF_AGE, EDUC_OF_RACE), age, race)
    work = _draw(rng, _joint_shares("WrkTyp", WORK_OF_AGE, WORK_OF_EDUC), age, educ)
    hours = _draw(rng, _joint_shares("Hours", HOURS_OF_AGE, HOURS_OF_SEX, HOURS_OF_WORK), age, sex, work)
    unmarried = (member >= SINGLE_HEAD).astype(np.uint8)
    return {"Age": age, "WrkTyp": work, "Educ": educ, "MarStat": unmarried, "Race": race, "Sex": sex, "Hours": hours}


def _usual_income(codes: dict[str, Array], means: Array, rng: Generator) -> tuple[Array, Array]:
    """Return the group of usual income, and the logarithm of usual income."""
    usual = USUAL_INCOME_START + means
    for name, steps in USUAL_INCOME.items():
        usual += np.array(steps, dtype=np.float32)[codes[name]]
    usual += PERSON_SD * rng.standard_normal(len(means), dtype=np.float32)
    return (usual >= np.log(50_000)).astype(np.uint8), usual


def _amounts(codes: dict[str, Array], means: Array, usual: Array, rng: Generator) -> dict[str, Array]:
    """Return the amounts of the last year, in whole US dollars."""
    n = len(usual)
    age, work = codes["Age"], codes["WrkTyp"]
    earned = np.exp(usual + 0.25 * rng.standard_normal(n, dtype=np.float32))
    at_work = np.array([1.0, 1.0, 0.25, 0.0], dtype=np.float32)[work] > rng.random(n, dtype=np.float32)
    wage = np.where(at_work, 100 * np.rint(earned / 100), 0)

    # Interest is nonzero for savers only, who are more frequent and richer with wealth.
    wealth = means / HOUSEHOLD_SD + 0.5 * codes["Educ"] + 0.7 * age
    saver = wealth + 1.5 * rng.standard_normal(n, dtype=np.float32) > 1.6
    interest = np.rint(np.exp(4.6 + 0.6 * wealth + 1.2 * rng.standard_normal(n, dtype=np.float32))) * saver

    # Old people and people without work receive benefits, paid monthly.
    need = np.array([0.12, 0.14, 0.62], dtype=np.float32)[age] + np.array([0, 0, 0, 0.30], dtype=np.float32)[work]
    receives = rng.random(n, dtype=np.float32) < need
    monthly = np.rint(np.exp(5.8 + 0.3 * age + 0.6 * rng.standard_normal(n, dtype=np.float32)))
    benefits = 12 * monthly * receives

    # Income of the self-employed without a wage appears in the total only.
    business = np.where(at_work, 0, np.where(work == 2, earned, 0.3 * earned))
    other_sources = 1 + 0.05 * rng.standard_exponential(n, dtype=np.float32)  # factor; they have no column
    total = 100 * np.ceil((wage + interest + benefits + business) * other_sources / 100)
    return {"wage": wage, "interest": interest, "benefits": benefits, "total": total}


def _weights(household: Array, race: Array, rng: Generator) -> Array:
    """Return one weight per household; households whose first person is non-white are sampled at a higher rate."""
    first = np.flatnonzero(np.diff(household, prepend=-1))
    by_race = [(0.05, 0.10, 0.20, 0.30, 0.20, 0.15), (0.20, 0.30, 0.25, 0.15, 0.07, 0.03)]
    return np.array(WEIGHTS)[_draw(rng, by_race, race[first])][household]


def _joint_shares(name: str, *tables: object) -> Array:
    """Return P(y | a, b, ...), proportional to P(y) * P(y | a)/P(y) * P(y | b)/P(y) * ..., from one table per condition."""
    base = np.array(list(SHARES[name].values()))
    joint = base
    for axis, table in enumerate(tables):
        ratio = np.asarray(table) / base
        shape = [1] * len(tables) + [len(base)]
        shape[axis] = len(ratio)
        joint = joint * ratio.reshape(shape)
    shares: Array = joint / joint.sum(axis=-1, keepdims=True)
    return shares


def _draw(rng: Generator, shares: object, *given: Array) -> Array:
    """Draw a category for each record, with the shares of the table row that `given` indexes."""
    # Inverse transform sampling: the category is the number of cumulated shares below u.
    bounds = np.cumsum(np.asarray(shares), axis=-1).astype(np.float32)
    u = rng.random(len(given[0]), dtype=np.float32)
    category = np.zeros(len(u), dtype=np.uint8)
    for k in range(bounds.shape[-1] - 1):
        category += u >= bounds[..., k][given]
    return category
