"""A release: one candidate is made, written and read back, and its folder is moved into place after all checks passed."""

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
from sdcmap.bundle.earlier_releases import check_earlier, check_joint, check_ledgers, history
from sdcmap.bundle.ledger import Ledger, find_other_ledgers
from sdcmap.bundle.limit_checks import check_limits, score_file
from sdcmap.bundle.nested import Parent, check_lineage, check_nested, check_other_releases, find_parent
from sdcmap.bundle.note import SearchEffort, method_note, note_text
from sdcmap.bundle.pattern_check import check_missing_patterns
from sdcmap.bundle.prepared_file import Prepared, as_written, in_format, prepare
from sdcmap.bundle.profile_checks import ProfileChecks
from sdcmap.bundle.readme import About, citation, readme
from sdcmap.bundle.recoverable_columns import check_recoverable
from sdcmap.bundle.round_trip import align_with_original, check_round_trip, read_released
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


class _CheckedBundle(NamedTuple):
    """The checks of a bundle that was written, the overrides that were needed, and the attacks that were not tested."""

    checks: list[Check]
    overrides: list[dict[str, str]]
    not_tested: Sequence[str] = ()


@dataclass(frozen=True, eq=False, repr=False)
class Release:
    """A candidate to release: `check()` returns every check, `write(folder)` releases it or raises `Refused`."""

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
        """Return every check, made on files in a private temporary folder, which is removed."""
        return self.preview().checks

    def preview(self) -> release_folder.Preview:
        """Return every check, and each file that would be written with its size and first lines; nothing is kept."""
        try:
            with private_folder() as folder:
                return release_folder.preview_folder(
                    folder, self._make(folder, Ledger.open_readonly(self.ledger)).checks
                )
        except OSError as error:
            raise SdcmapError(f"the temporary folder cannot be written ({error.strerror}).") from None

    def write(self, folder: str | Path, *, on_checks: Callable[[list[Check]], None] | None = None) -> Path:
        """Make the candidate again, check it, and move its finished folder into place; raise `Refused` if a check fails.

        folder : must be empty or absent. It is private (mode 0700) until somebody changes its mode.
        on_checks : called with every check before the release is refused or moved into place.
        """
        folder = Path(folder).absolute()
        if problem := release_folder.find_folder_problem(folder):
            raise SdcmapError(problem)
        with Ledger.open_locked(self.ledger) as ledger, release_folder.part_folder(folder) as part:
            bundle = self._make(part, ledger)
            if on_checks is not None:
                on_checks(bundle.checks)
            if failed := [check for check in bundle.checks if not check.passed]:
                raise Refused(failed)
            people, candidate = self.data, self.candidate
            if self.parent is not None:
                people, candidate = self.parent.original, self.parent.combined_candidate(candidate)
            profile = _profile_with_overrides(self.profile, bundle.overrides)
            # The ledger knows the release before the folder gets its name: a killed process leaves no unrecorded file.
            with ledger.record_release(people, self.plan, candidate, profile, folder, part):
                release_folder.put_in_place(part, folder, release_folder.allowed_names(self.data.schema.format))
        self._record_in_study(folder, bundle, ledger.id)
        return folder

    def _make(self, part: Path, ledger: Ledger) -> _CheckedBundle:
        """Write the bundle into `part`, read the data back, and check everything."""
        data, plan, method, policy = self.data, self.plan, self.candidate.method, self.plan.policy
        stream = self.candidate.stream(plan.seed)
        # Make the candidate again, write it, and read it back as a user would.
        masked = as_written(data, method, method.apply(data, stream))
        prepared = prepare(data, method, masked, stream)
        path = part / f"data.{data.schema.format}"
        try:
            write_file(prepared.data, path)
        except pl.exceptions.PolarsError as error:  # the text of the error may contain a value
            raise SdcmapError(f"{path.name} cannot be written ({type(error).__name__}).") from None
        back = read_released(path, prepared)
        round_trip = check_round_trip(prepared, back)
        unmasked_keys = [name for name in prepared.data.keys if name not in prepared.masked]
        other_ledgers, unreadable = find_other_ledgers(ledger)
        before = [] if self.study is None else self.study.manifest.get("releases", [])
        recorded = [str(entry["ledger"]) for entry in before if "ledger" in entry]
        # First the checks that need no score.
        results = [
            checks.check_seed(plan),
            checks.check_roles(data, self._proposed_roles, self.confirm_roles),
            checks.check_identifiers(masked, policy),
            round_trip,
            check_recoverable(data, masked, prepared.masked, policy),
            checks.check_weight(prepared.data, unmasked_keys, self.profile.name, policy.unique_weights),
            *self._check_kept_survey_columns(prepared),
            check_missing_patterns(data, method, masked, self.profile),
            limit_checks.check_limits_stated(plan, self.limits),
            check_ledgers(ledger, other_ledgers, len(unreadable), recorded),
            *check_lineage(plan),
        ]
        if self.parent is None:
            earlier = history([ledger, *other_ledgers], data, plan, self.candidate)
            results += [check_earlier(earlier, self.again)]
        else:
            earlier = self.parent.find_history([ledger, *other_ledgers], self.candidate)
            results += [check_other_releases(earlier, self.again)]
        checked_draws = self._count_checked_draws()
        results += [checks.check_draws(checked_draws, policy.draws)]
        # A file that does not read back cannot be scored, and one draw too many must not be: its scores would be a choice.
        if not (round_trip.passed and results[-1].passed):
            return _CheckedBundle(*checks.apply_overrides(results, self.override))
        released = align_with_original(data, back, prepared)
        if plan.edits:
            results += [checks.check_edits(plan.edits, data, released, policy.edit_violations)]
        # Scores use a stream of their own: the stream by which the candidate was chosen would repeat its luck.
        fresh, level = stream.child("release scores"), policy.release_level
        utilities = [m for m in plan.measures if m.axis == "utility"]
        risks, expectations = (
            [m for m in plan.measures if m.axis == "risk" and m.expectation == pooled] for pooled in (False, True)
        )
        limited = {limit.measure for limit in self.limits}
        expected_losses = [m for m in utilities if m.expectation and m in limited]
        losses = list(zip(utilities, score_file(utilities, data, released, fresh), strict=True))
        scores: dict[Measure, ScoreRow] = {}

        def score(measures: Sequence[Measure]) -> list[ScoreRow]:
            """Score each measure of the written file once."""
            new = [measure for measure in measures if measure not in scores]
            scores.update(zip(new, score_file(new, data, released, fresh, method), strict=True))
            return [scores[measure] for measure in measures]

        # Then the limits of the plan, and the limits of the profile, on the file as read back.
        single = [loss for loss in losses if loss[0] in limited and not loss[0].expectation]
        results += check_limits(self.limits, single, level, name="loss")
        results += check_limits(self.limits, list(zip(risks, score(risks), strict=True)), level)
        results += ProfileChecks(data, released, prepared, method, self.profile, policy, score).checks()
        # An expectation cannot be judged by one file, so it is pooled over draws of the method.
        measures = [*expectations, *expected_losses]
        pooled = limit_checks.score_expectations(measures, data, self._draws(), is_random=method.random)
        for name, axis in (("risk", "risk"), ("loss", "utility")):
            scored = [(m, row) for m, row in zip(measures, pooled, strict=True) if m.axis == axis]
            results += check_limits(self.limits, scored, level, what="over draws", name=name)
        if self.parent is not None:
            others = earlier if self.again else None
            results += check_nested(self.parent, prepared, back, self.limits, fresh.child("nested"), method, others)
        elif self.again:
            results += check_joint(earlier, data, released, plan, self.limits, fresh, method)
        results, overrides = checks.apply_overrides(results, self.override)
        methods = sum(Candidate(method).kind == "candidate" for method in plan.all_methods)  # with those of a search
        effort = SearchEffort(self.searched, methods, checked_draws, policy.draws)
        self._explain(part, prepared, effort, losses, overrides)
        return _CheckedBundle(results, overrides, _skipped_attacks(scores.values(), level))

    def _check_kept_survey_columns(self, prepared: Prepared) -> Iterator[Check]:
        """Check what links the rows of a fully synthetic file to people, though all that describes them is drawn."""
        if not prepared.data.paired:
            linkable = self.candidate.method.linkable_columns(self.data)
            limits = self.profile.name, self.plan.policy.unique_weights
            yield checks.check_kept_survey_columns(prepared.data, linkable, *limits)

    @property
    def _proposed_roles(self) -> tuple[str, ...]:
        """The columns whose role is only proposed in the plan."""
        return () if self.plan.data is None else self.plan.data.proposed

    def _count_checked_draws(self) -> int:
        """Return how many draws of this method were checked, including this one.

        The study records the draw before it is attacked, so a killed check counts too. A draw beyond the allowed number is
        neither attacked nor recorded.
        """
        if self.study is None:
            return 1
        before, digest = self.study.manifest.get("checked_draws", {}), self.candidate.method.digest
        draws = sorted({*before.get(digest, []), self.candidate.replicate})
        if len(draws) <= self.plan.policy.draws and draws != before.get(digest):
            with suppress(OSError):  # a read-only study
                self.study.note(checked_draws={**before, digest: draws})
        return len(draws)

    def _draws(self) -> Iterator[Microdata]:
        """Yield every feasible replicate of the released method, rounded as in a release."""
        method = self.candidate.method
        for replicate in range(self.plan.replicates if method.random else 1):
            with suppress(Infeasible):
                made = method.apply(self.data, Candidate(method, replicate).stream(self.plan.seed))
                yield as_written(self.data, method, made)

    def _explain(
        self, part: Path, prepared: Prepared, effort: SearchEffort, losses: Sequence[tuple[Measure, ScoreRow]],
        overrides: Sequence[dict[str, str]],
    ) -> None:  # fmt: skip
        """Write the documents beside the data: README, codebook, method note, citation and checksums."""
        title = self.title or prepared.data.schema.title or "Microdata"
        about = About(title, self.owner, datetime.now(UTC).date().isoformat())
        method, view = self.candidate.method, PublicView.of(self.plan, self.data)
        public = view.method(method.text)
        published = [entry for entry in overrides if checks.CHECK_KINDS[entry["check"]].is_published]
        note = method_note(view, method, prepared, self.profile.name, effort, losses, published)
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

    def _record_in_study(self, folder: Path, bundle: _CheckedBundle, ledger: str) -> None:
        """Record in the private manifest of the study what was released and how."""
        if self.study is None:
            return
        when, overrides = datetime.now(UTC).isoformat(timespec="seconds"), [*bundle.overrides]
        if self._proposed_roles and self.confirm_roles:
            overrides.append(
                {"check": "roles", "reason": f"{len(self._proposed_roles)} proposed roles confirmed at once"}
            )
        name, made = self.plan.name_of(self.candidate), self.candidate
        facts: dict[str, object] = {
            "name": name, "method": made.method.text, "replicate": made.replicate, "profile": self.profile.name,
        }  # fmt: skip
        optional = {"not_tried": list(bundle.not_tested), "signed_by": self.signed_by, "reason": self.reason}
        facts |= {name: fact for name, fact in optional.items() if fact}
        if self.parent is not None:
            reasons = [check.reason for check in bundle.checks if check.name in ("nested", "joint risk")]
            facts["nested"] = {"within": str(self.plan.data.within) if self.plan.data else "", "reasons": reasons}
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
    """Return the release of one candidate; `.write(folder)` checks and writes it.

    Parameters
    ----------
    choice : what a rule chose, a candidate of the plan, or its id. The choice to release nothing is `Refused`.
    profile : for whom the file is, by name or value (see `Profile`); by default the plan's, or "public-use". The written
        file is attacked by somebody who knows every column that others could know, and compared with the limits of the
        profile, whatever the plan measured.
    max_risk : the largest acceptable value on the risk axis, where neither plan nor rule states one; the strictest counts.
    again : allow another release of the same records if the joint risk of all of them is within the limits.
    override : {"weight": "why this is safe"} for the checks "identifier", "weight", "missing patterns", "edits", "ledger",
        "unmasked" and "profile". Report and ledger show it; the method note shows it for "unmasked" and "profile".
    ledger : private folder that records every release; default $SDCMAP_LEDGER or the user's state folder.
    study : where overrides and the release are recorded.
    confirm_roles : confirm every role that the plan marks as proposed; the study records it.
    form : the format to write, "csv", "parquet", "sav" (SPSS), "dta" (Stata) or "xpt" (SAS); by default that of the data.
    title, owner : of the data, for README, citation and codebook. The title is by default that of the codebook with which
        the data were read.
    signed_by : who releases the file; recorded in the study with the date, and in no released file.
    reason : why a person picked this candidate, where no rule chose it; recorded in the same place.
    """
    reasons = dict(override or {})
    problems = [*checks.override_problems(reasons)]
    if max_risk is not None and (isinstance(max_risk, bool) or not math.isfinite(max_risk)):
        problems.append("max_risk must be a finite number.")
    if problems:
        raise PlanError(problems)
    if study is not None:
        plan = study.bind_plan(plan)
        if study.seed != plan.seed or study.manifest["data"] != data.digest:
            raise StudyMismatch("the study belongs to other data or another seed than this release.")
    if choice is None or (isinstance(choice, Choice) and choice.candidate is None):
        reason = "The choice is to release nothing." if choice is None else choice.reason
        raise Refused([Check("choice", False, reason)])
    release_profile = _profile_of(plan, profile)
    candidate = plan.resolve_choice(choice)
    # A person who names a candidate may have seen all draws of its method.
    draws = plan.replicates if candidate.method.random else 1
    searched = choice.searched if isinstance(choice, Choice) and choice.searched else draws
    rules = [plan.rule, choice.rule if isinstance(choice, Choice) else None]
    limits = limit_checks.limits_of(plan, data, rules, max_risk)
    parent = None
    if plan.data is not None and plan.data.within:
        pair = {} if study is None else study.manifest.get("pair", {})
        parent = replace(find_parent(Path(plan.data.within), Path(plan.data.path)), joint=pair.get("joint"))
    return Release(
        in_format(data, form), plan, candidate, limits, searched, release_profile, again, reasons,
        None if ledger is None else Path(ledger), study, confirm_roles, title, owner, parent, signed_by, reason,
    )  # fmt: skip


def _profile_of(plan: Plan, stated: Profile | str | None) -> Profile:
    """Return the profile of a release: the plan's, if it has one, since its limits were stated before the first score."""
    if plan.profile is None:
        return to_profile(stated or "public-use")
    if stated is not None and to_profile(stated).name != plan.profile.name:
        made_for = f"the plan was made for the profile {plan.profile.name!r}"
        raise PlanError(
            f"{made_for}, with limits stated before the first score. Make another plan for another profile."
        )
    return plan.profile


def _skipped_attacks(rows: Iterable[ScoreRow], level: float) -> list[str]:
    """Return the attacks that were not tested on the written file, and the bounds of those that could only be bounded."""
    estimates = [outcome for row in rows if isinstance(outcome := row.outcome, Estimate)]
    bounds = (bound for estimate in estimates for bound in limit_checks.decisive_bounds(estimate))
    skipped = sorted({str(attack) for estimate in estimates for attack in estimate.skipped})
    return [*skipped, *sorted({limit_checks.describe_bound(bound, level) for bound in bounds})]


def _profile_with_overrides(profile: Profile, overrides: Sequence[Mapping[str, str]]) -> str:
    """Return the name of the profile and every override with its reason, as the ledger stores them."""
    reasons = "; ".join(f"{entry['check']}: {entry['reason']}" for entry in overrides)
    return f"{profile.name} (overridden: {reasons})" if reasons else profile.name
