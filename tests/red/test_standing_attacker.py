"""The standing attacker: random releases of random files, each attacked in every way that the red team had, by who reads
the released folder alone and has an archive of the original people. Nothing beats what the gate stated.

Every attack on every release is a test of "its chance of success is at most what was stated", by the binomial distribution
(of a difference of shares, by the normal). With m tests in all, the family-wise level is .05, shared out evenly
(Bonferroni): no test may have a chance below .05 / m. So a sound package fails in at most one run of twenty, and the runs
are seeded. Small holes that are wide would pass this, so beaten releases are counted too: one is beaten where its smallest
chance is below .01 shared out over its own tests, and at most so many may be as a binomial variable of that many releases
with .01 has with probability .99.

What is counted exactly (who is alone on open columns, who is looked up) may not beat the statement at all.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from agency import KEYS, Outcome, released
from attacker import (
    Bundle,
    Column,
    Try,
    alone,
    columns,
    digits,
    given_back,
    inference,
    largest,
    linkage,
    looked_up,
    membership,
    partly,
    special,
)
from scipy.special import bdtrik

from sizes import size

RELEASES = size(3, 200)
LEVEL, EACH = 0.05, 0.01
STATED = r"(.*) \({}\): (-?[\d.e-]+)(?: \(upper confidence limit (-?[\d.e-]+))?"


def named(outcome: Outcome, measure: str) -> Iterator[tuple[str, float]]:
    """Return the checks of the measures of a class, with the upper confidence limit of each."""
    for check in outcome.stated:
        found = re.match(STATED.format(measure), check.reason) if check.name == "profile" else None
        if found:
            yield found[1], float(found[3] or found[2])


def tried(outcome: Outcome) -> Iterator[Try]:
    """Yield every attack whose success is a share, with the stated bound."""
    bundle, inside = Bundle(outcome.folder), outcome.everybody[: outcome.inside]
    linked = next((bound for _, bound in named(outcome, "WorstLinkage")), None)
    if outcome.origin is not None and linked is not None:
        yield from linkage(bundle, inside, outcome.origin, linked)
        parts = columns(bundle, inside)
        yield from traces(bundle, parts, outcome.origin)
        size = next(part for part in parts if part.name == outcome.data.numeric[0])
        for _, bound in named(outcome, "LargestUnits") if size.numeric else ():
            yield Try("largest units", largest(size, outcome.origin), 10, bound)
        for _, bound in named(outcome, "SpecialUniques"):
            yield Try("special uniques", *special([part for part in parts if part.name in KEYS], outcome.origin), bound)
    for _, bound in named(outcome, "ClosestRecord"):
        yield from membership(bundle, outcome.everybody, outcome.inside, bound)
    for words, bound in named(outcome, "AttributeInference"):
        yield from inference(bundle, outcome.everybody, outcome.inside, words.split(": ")[1].split(",")[0], bound)


def traces(bundle: Bundle, parts: list[Column], origin: np.ndarray) -> Iterator[Try]:
    """Yield attacks on traces of masking: revealing digits, and amounts recovered from others."""
    for part in (part for part in parts if part.numeric and partly(bundle, part.name)):
        for name, hits, flagged, share in digits(part, origin):
            yield Try(f"digits: {name}", hits, flagged, max(share, 0.5))
    for name, hits, changed in given_back(parts, bundle.note["masked"], origin):
        yield Try(f"given back: {name}", hits, changed, 0.95)


def counted(outcome: Outcome) -> Iterator[tuple[str, float, float]]:
    """Yield exact counts: the attack, its count, and the stated count."""
    bundle, inside = Bundle(outcome.folder), outcome.everybody[: outcome.inside]
    rows, known = len(bundle.data), columns(bundle, inside)
    shown = [part.name for part in known if part.name in bundle.note["not_masked"]]
    for sentence in (
        check.reason
        for check in outcome.stated
        if check.name == "profile" and " records are unique on " in check.reason
    ):
        yield "alone", alone(bundle, shown), int(sentence.split(" of ")[0].replace(",", ""))
    if outcome.origin is None:
        return
    keys = [part for part in known if part.name in outcome.data.keys]
    for words, bound in named(outcome, "ExactMatch"):
        parts, most = (known, 2) if " on " not in words else (keys, 3)
        yield words, int(looked_up(parts, outcome.origin, most).sum()), bound * rows


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use no ledger except that of the release."""
    for name in ("SDCMAP_LEDGER", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


def outcomes(folder: Path) -> Iterator[Outcome]:
    """Yield random releases; those that cannot be made are drawn again."""
    made = draw = 0
    while made < RELEASES:
        outcome = released(np.random.default_rng([17, draw]), folder / str(draw))
        draw += 1
        if outcome is not None:
            made += 1
            yield outcome
        shutil.rmtree(folder / str(draw - 1))


def test_attacks_do_not_exceed_stated_risks(tmp_path: Path) -> None:
    attacks: list[list[Try]] = []
    for outcome in outcomes(tmp_path):
        attacks.append(list(tried(outcome)))
        beaten = [(what, count, most) for what, count, most in counted(outcome) if count > most * 1.001 + 0.5]
        assert beaten == [], outcome.method.text
    tests = sum(map(len, attacks))
    assert tests > 5 * RELEASES
    assert [attack for each in attacks for attack in each if attack.chance < LEVEL / tests] == []
    lost = [each for each in attacks if min((attack.chance for attack in each), default=1.0) < EACH / len(each)]
    assert len(lost) <= most_by_chance(RELEASES), lost


def most_by_chance(releases: int) -> int:
    """Return the number of releases that exceed their bounds at most with probability 0.99, if every bound is true."""
    return int(np.ceil(bdtrik(0.99, releases, EACH)))


def test_attacker_detects_understated_risk(tmp_path: Path) -> None:
    """With half of the stated bounds the attacker exceeds them, so the other test has power."""
    outcome = next(outcomes(tmp_path))
    halved = [attack._replace(bound=attack.bound / 2) for attack in tried(outcome)]
    assert halved
    assert min(attack.chance for attack in halved) < 1e-6
