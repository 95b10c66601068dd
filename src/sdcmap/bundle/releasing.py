"""A release: one candidate made real, written only after every check passed on the files as read back."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import polars as pl

from sdcmap.bundle import checks, limit_checks, release_folder
from sdcmap.bundle.checks import Check
from sdcmap.bundle.codebook import codebook, codebook_text
from sdcmap.bundle.ddi_codebook import codebook_xml
from sdcmap.bundle.determines import check_determines
from sdcmap.bundle.earlier import check_earlier, check_joint, check_ledgers, history
from sdcmap.bundle.gate import Gate
from sdcmap.bundle.ledger import Ledger, others
from sdcmap.bundle.limit_checks import check_limits, score_file
from sdcmap.bundle.nested import Parent, check_lineage, check_nested, check_only_parent, parent_of
from sdcmap.bundle.note import Tried, method_note, note_text
from sdcmap.bundle.prepared_file import Prepared, as_written, in_format, prepare
from sdcmap.bundle.readback import aligned, check_read_back, read_released
from sdcmap.bundle.readme import About, citation, readme
from sdcmap.core import Choice, Estimate, Infeasible, Measure, Microdata, PlanError, SdcmapError
from sdcmap.core.limit import Limit
from sdcmap.data.private_folder import private_folder
from sdcmap.errors import Refused, StudyMismatch
from sdcmap.files.writer import write as write_file
from sdcmap.study.folder import Study
from sdcmap.study.jobs import ScoreRow
from sdcmap.study.plan import Candidate, Plan
from sdcmap.study.profiles import PROFILES, Profile, to_profile
from sdcmap.study.public_view import PublicView


class _Made(NamedTuple):
    """A bundle that was written and checked: every check, what was overridden, and the attacks that could not be tried."""

    checks: list[Check]
    overrides: list[dict[str, str]]
    not_tried: Sequence[str] = ()


@dataclass(frozen=True, eq=False, repr=False)
class Release:
    """A candidate on its way out: `check()` says how it stands, `write(folder)` releases it or raises `Refused`."""

    data: Microdata
    plan: Plan
    candidate: Candidate
    limits: tuple[Limit, ...]
    searched: int
    profile: Profile = PROFILES["public-use"]
    again: bool = False
    override: Mapping[str, str] = field(default_factory=dict)
    ledger: Path | None = None
    study: Study | None = None
    confirm_roles: bool = False
    title: str = ""
    owner: str = ""
    parent: Parent | None = None  # the release that this one is made from
    signed_by: str = ""
    reason: str = ""

    def __repr__(self) -> str:
        return f"Release({self.plan.name_of(self.candidate)}, {self.profile.name})"

    def check(self) -> list[Check]:
        """Every check, on the files as written to a private temporary folder and read back. Nothing stays there."""
        return self.preview().checks

    def preview(self) -> release_folder.Preview:
        """Every check, and what would be written: each file with its size and first lines. Nothing stays."""
        try:
            with private_folder() as folder:
                return release_folder.previewed(folder, self._make(folder, Ledger.seen(self.ledger)).checks)
        except OSError as error:
            raise SdcmapError(f"the temporary folder cannot be written ({error.strerror}).") from None

    def write(self, folder: str | Path, *, tell: Callable[[list[Check]], None] | None = None) -> Path:
        """Make the candidate again, check it, and put its folder in place whole; `Refused` with every failed check.

        The folder must be empty or absent. It is private (mode 0700) until somebody opens it. `tell` is told every check,
        before anything is refused or put in place.
        """
        folder = Path(folder).absolute()
        if problem := release_folder.problem_with(folder):
            raise SdcmapError(problem)
        with Ledger.opened(self.ledger) as ledger, release_folder.part_folder(folder) as part:
            made = self._make(part, ledger)
            if tell is not None:
                tell(made.checks)
            if failed := [check for check in made.checks if not check.passed]:
                raise Refused(failed)
            people, whole = self.data, self.candidate
            if self.parent is not None:
                people, whole = self.parent.original, self.parent.both_made_by(whole)
            with ledger.entered(people, self.plan, whole, _entered(self.profile, made.overrides), folder, part):
                release_folder.put_in_place(part, folder, release_folder.listed_names(self.data.schema.format))
        self._tell_study(folder, made, ledger.id)
        return folder

    def _make(self, part: Path, ledger: Ledger) -> _Made:
        """Write the bundle into `part`, read the data back, and check everything."""
        data, plan, method, policy = self.data, self.plan, self.candidate.method, self.plan.policy
        stream = self.candidate.stream(plan.seed)
        masked = as_written(data, method, method.apply(data, stream))
        prepared = prepare(data, method, masked, stream)
        path = part / f"data.{data.schema.format}"
        try:
            write_file(prepared.data, path)
        except pl.exceptions.PolarsError as error:  # its text may hold a value
            raise SdcmapError(f"{path.name} cannot be written ({type(error).__name__}).") from None
        back = read_released(path, prepared)
        good = check_read_back(prepared, back)
        open_keys = [name for name in prepared.data.keys if name not in prepared.masked]
        more, closed = others(ledger)
        before = [] if self.study is None else self.study.manifest.get("releases", [])
        noted = [str(entry["ledger"]) for entry in before if "ledger" in entry]
        results = [
            checks.check_seed(plan),
            checks.check_roles(data, self._proposed, self.confirm_roles),
            checks.check_identifiers(masked, policy),
            good,
            check_determines(data, masked, prepared.masked, policy),
            checks.check_weight(prepared.data, open_keys, self.profile.name, policy.unique_weights),
            limit_checks.check_limits_stated(plan, self.limits),
            check_ledgers(ledger, more, len(closed), noted),
            *check_lineage(plan),
        ]
        if self.parent is None:
            known = history([ledger, *more], data, plan, self.candidate)
            results += [check_earlier(known, self.again)]
        else:
            known = self.parent.known([ledger, *more], self.candidate)
            results += [check_only_parent(known, self.again)]
        at_gate = self._at_gate()
        results += [checks.check_redraws(at_gate, policy.draws)]
        if not (good.passed and results[-1].passed):
            return _Made(*checks.overridden(results, self.override))
        released = aligned(data, back, prepared)
        if plan.edits:
            results += [checks.check_edits(plan.edits, data, released, policy.edit_violations)]
        fresh, level = stream.child("release scores"), policy.release_level  # not the stream that it was chosen by
        utilities = [m for m in plan.measures if m.axis == "utility"]
        risks, expectations = (
            [m for m in plan.measures if m.axis == "risk" and m.expectation == pooled] for pooled in (False, True)
        )
        losses = list(zip(utilities, score_file(utilities, data, released, fresh), strict=True))
        known_scores: dict[Measure, ScoreRow] = {}

        def score(measures: Sequence[Measure]) -> list[ScoreRow]:
            """Each measure of the written file, once."""
            new = [measure for measure in measures if measure not in known_scores]
            known_scores.update(zip(new, score_file(new, data, released, fresh, method), strict=True))
            return [known_scores[measure] for measure in measures]

        limited = {limit.measure for limit in self.limits}
        results += check_limits(self.limits, [loss for loss in losses if loss[0] in limited], level, name="loss")
        results += check_limits(self.limits, list(zip(risks, score(risks), strict=True)), level)
        results += Gate(data, released, prepared, method, self.profile, policy, score).checks()
        pooled = limit_checks.score_expectations(expectations, data, self._draws())
        results += check_limits(self.limits, list(zip(expectations, pooled, strict=True)), level, what="over draws")
        if self.parent is not None:
            beside = known if self.again else None
            results += check_nested(self.parent, prepared, back, self.limits, fresh.child("nested"), method, beside)
        elif self.again:
            results += check_joint(known, data, released, plan, self.limits, fresh, method)
        results, overrides = checks.overridden(results, self.override)
        methods = sum(
            Candidate(method).kind == "candidate" for method in plan.all_methods
        )  # those that a search found too
        self._explain(part, prepared, Tried(self.searched, methods, at_gate, policy.draws), losses, overrides)
        return _Made(results, overrides, _not_tried(known_scores.values(), level))

    @property
    def _proposed(self) -> tuple[str, ...]:
        """Columns whose role is a proposal in the plan."""
        return () if self.plan.data is None else self.plan.data.proposed

    def _at_gate(self) -> int:
        """How many draws of this method came to the gate, this one too. The study remembers it before it is attacked, so
        that a killed check counts; more than may come are not attacked, and not remembered."""
        if self.study is None:
            return 1
        before, digest = self.study.manifest.get("gate", {}), self.candidate.method.digest
        draws = sorted({*before.get(digest, []), self.candidate.replicate})
        if len(draws) <= self.plan.policy.draws and draws != before.get(digest):
            with suppress(OSError):  # a study that may only be read
                self.study.note(gate={**before, digest: draws})
        return len(draws)

    def _draws(self) -> Iterator[Microdata]:
        """Every replicate of the released method that can be made, rounded as a release is."""
        method = self.candidate.method
        for replicate in range(self.plan.replicates if method.random else 1):
            with suppress(Infeasible):
                made = method.apply(self.data, Candidate(method, replicate).stream(self.plan.seed))
                yield as_written(self.data, method, made)

    def _explain(
        self, part: Path, prepared: Prepared, tried: Tried, losses: Sequence[tuple[Measure, ScoreRow]],
        overrides: Sequence[dict[str, str]],
    ) -> None:  # fmt: skip
        """Write everything beside the data: codebook, method note, what users need to begin, checksums."""
        title = self.title or prepared.data.schema.title or "Microdata"
        about = About(title, self.owner, datetime.now(UTC).date().isoformat())
        method, view = self.candidate.method, PublicView.of(self.plan, self.data)
        public = view.method(method.text)
        told = [entry for entry in overrides if entry["check"] in checks.TOLD_IN_THE_NOTE]
        note = method_note(view, method, prepared, self.profile.name, tried, losses, told)
        entries = codebook(prepared, method, public)
        texts = {
            "README.md": readme(about, entries, prepared, public, note),
            "CITATION.cff": citation(about, note),
            "codebook.xml": codebook_xml(about, entries, prepared, note),
            "codebook.json": json.dumps(entries, indent=1, ensure_ascii=False),
            "codebook.md": codebook_text(entries),
            "note.json": json.dumps(note, indent=1, ensure_ascii=False),
            "note.md": note_text(note),
        }
        for name, text in texts.items():
            (part / name).write_text(text, encoding="utf-8")
        (part / "SHA256SUMS").write_text(release_folder.checksums(part), encoding="utf-8")

    def _tell_study(self, folder: Path, release: _Made, ledger: str) -> None:
        """Note for insiders, in the private manifest, what was released and how."""
        if self.study is None:
            return
        when, overrides = datetime.now(UTC).isoformat(timespec="seconds"), [*release.overrides]
        if self._proposed and self.confirm_roles:
            overrides.append({"check": "roles", "reason": f"{len(self._proposed)} proposed roles confirmed at once"})
        name, made = self.plan.name_of(self.candidate), self.candidate
        facts: dict[str, object] = {
            "name": name, "method": made.method.text, "replicate": made.replicate, "profile": self.profile.name,
        }  # fmt: skip
        optional = {"not_tried": list(release.not_tried), "signed_by": self.signed_by, "reason": self.reason}
        facts |= {name: fact for name, fact in optional.items() if fact}
        if self.parent is not None:
            told = [check.reason for check in release.checks if check.name in ("nested", "joint risk")]
            facts["nested"] = {"within": str(self.plan.data.within) if self.plan.data else "", "told": told}
        facts |= {"folder": str(folder), "when": when, "ledger": ledger}
        before = self.study.manifest
        self.study.note(
            overrides=[*before.get("overrides", []), *({**entry, "when": when} for entry in overrides)],
            releases=[*before.get("releases", []), facts],
        )


def release(
    data: Microdata,
    plan: Plan,
    choice: Choice | Candidate | str | None,
    *,
    profile: Profile | str | None = None,
    max_risk: float | None = None,
    again: bool = False,
    override: Mapping[str, str] | None = None,
    ledger: str | Path | None = None,
    study: Study | None = None,
    confirm_roles: bool = False,
    form: str = "",
    title: str = "",
    owner: str = "",
    signed_by: str = "",
    reason: str = "",
) -> Release:
    """The release of one candidate; `.write(folder)` checks and writes it.

    Parameters
    ----------
    choice : what a rule chose, a candidate of the plan, or its id. The choice to release nothing is `Refused`.
    profile : for whom the file is, by name or value (see `Profile`); by default the plan's, or "public-use". The written
        file is attacked with every column known that others could know, and held to its limits, whatever the plan measured.
    max_risk : the largest tolerable value of the risk axis, where neither plan nor rule states it; the strictest holds.
    again : allow another release of the same records when the joint risk of all of them is under the line.
    override : {"weight": "why this is safe"} for the soft checks "identifier", "weight", "ledger", "unmasked" (the original
        as it is, or an amount that others could know) and "gate" (the limits of the profile). Note, report and ledger show
        it.
    ledger : private folder that remembers every release; default $SDCMAP_LEDGER or the user's state folder.
    study : where overrides and the release are noted.
    confirm_roles : confirm every role that the plan marks as proposed; it is noted in the study.
    form : the format to write, "csv", "parquet", "sav" (SPSS), "dta" (Stata) or "xpt" (SAS); by default that of the data.
    title, owner : what the data are called, and whose they are, for README, citation and codebook. The title is by default
        that of the codebook that the data were read with.
    signed_by : who releases it; noted in the study with the date, and in no file that leaves.
    reason : why this candidate, where a person picked it and no rule; noted in the same place.
    """
    reasons = dict(override or {})
    problems = [*checks.problems_of_override(reasons)]
    if max_risk is not None and (isinstance(max_risk, bool) or not math.isfinite(max_risk)):
        problems.append("max_risk must be a finite number.")
    if problems:
        raise PlanError(problems)
    if study is not None:
        plan = study.bind_plan(plan)
        if study.seed != plan.seed or study.manifest["data"] != data.digest:
            raise StudyMismatch("the study belongs to other data or another seed than this release.")
    if choice is None or (isinstance(choice, Choice) and choice.candidate is None):
        reason = "the choice is to release nothing." if choice is None else choice.reason
        raise Refused([Check("choice", False, reason)])
    held = _profile_of(plan, profile)
    candidate = plan.resolve_choice(choice)
    draws = plan.replicates if candidate.method.random else 1  # a person who names a candidate may have seen all draws
    searched = choice.searched if isinstance(choice, Choice) and choice.searched else draws
    limits = limit_checks.limits_of(plan, [plan.rule, choice.rule if isinstance(choice, Choice) else None], max_risk)
    parent = None
    if plan.data is not None and plan.data.within:
        pair = {} if study is None else study.manifest.get("pair", {})
        parent = replace(parent_of(Path(plan.data.within), Path(plan.data.path)), joint=pair.get("joint"))
    return Release(
        in_format(data, form), plan, candidate, limits, searched, held, again, reasons,
        None if ledger is None else Path(ledger), study, confirm_roles, title, owner, parent, signed_by, reason,
    )  # fmt: skip


def _profile_of(plan: Plan, stated: Profile | str | None) -> Profile:
    """The profile to hold a release to: the plan's, where it has one, for its limits were stated before the first score."""
    if plan.profile is None:
        return to_profile(stated or "public-use")
    if stated is not None and to_profile(stated).name != plan.profile.name:
        why = "and its limits were stated before the first score: make another plan for another profile"
        raise PlanError(f"the plan was made for the profile {plan.profile.name!r}, {why}.")
    return plan.profile


def _not_tried(rows: Iterable[ScoreRow], level: float) -> list[str]:
    """The attacks that could not be tried on the written file, and the bounds of those that could only be bounded."""
    known = [outcome for row in rows if isinstance(outcome := row.outcome, Estimate)]
    bounds = (bound for estimate in known for bound in limit_checks.decisive_bounds(estimate))
    skipped = sorted({str(one) for estimate in known for one in estimate.skipped})
    return [*skipped, *sorted({limit_checks.say_bound(bound, level) for bound in bounds})]


def _entered(profile: Profile, overrides: Sequence[Mapping[str, str]]) -> str:
    """What the ledger keeps of a profile: its name, and what was overridden with the reasons."""
    reasons = "; ".join(f"{entry['check']}: {entry['reason']}" for entry in overrides)
    return f"{profile.name} (overridden: {reasons})" if reasons else profile.name
