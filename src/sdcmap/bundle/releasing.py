"""A release: candidates are drawn, written and read back, and the folder of the first that passes is moved into place.

`procedure` says which candidates are tried, and why a new draw of each is measured.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

from sdcmap.bundle import checks, limit_checks, release_folder
from sdcmap.bundle.checks import Check
from sdcmap.bundle.codebook import codebook, codebook_text
from sdcmap.bundle.ddi_codebook import codebook_xml
from sdcmap.bundle.earlier_releases import History, check_earlier, check_joint, history
from sdcmap.bundle.known_ledgers import KnownLedgers, check_ledgers, find_ledgers, record_head, recorded_heads
from sdcmap.bundle.ledger import Ledger
from sdcmap.bundle.ledger_chain import Head
from sdcmap.bundle.limit_checks import check_limits, check_parts, score_file
from sdcmap.bundle.nested import Parent, check_lineage, check_nested, check_other_releases, find_parent
from sdcmap.bundle.note import Relations, SearchEffort, describe_relations, method_note, note_text
from sdcmap.bundle.pattern_check import check_missing_patterns
from sdcmap.bundle.prepared_file import Prepared, as_written, in_format
from sdcmap.bundle.procedure import (
    MAX_INFEASIBLE_DRAWS,
    Procedure,
    Try,
    check_tries,
    checks_of_all,
    describe_try,
    digest_without_roles,
    plan_procedure,
    run_tries,
    studied_replicate,
)
from sdcmap.bundle.profile_checks import ProfileChecks
from sdcmap.bundle.readme import About, citation, readme
from sdcmap.bundle.recoverable_columns import check_recoverable
from sdcmap.bundle.written_draw import WrittenDraw
from sdcmap.core import Choice, Estimate, Infeasible, Measure, Microdata, PlanError, SdcmapError, Stream
from sdcmap.core.limit import Limit
from sdcmap.errors import Refused, StudyMismatch
from sdcmap.study.folder import Study
from sdcmap.study.jobs import ScoreRow
from sdcmap.study.plan import Candidate, Plan
from sdcmap.study.profiles import PROFILES, Profile, to_profile
from sdcmap.study.public_view import PublicView
from sdcmap.utility.analysis_change import stated_models
from sdcmap.utility.changed_findings import repeat_analyses


class _CheckedBundle(NamedTuple):
    """The checks of a bundle that was written, the overrides that were needed, and what was measured.

    is_measured : False where a check failed that needs no score, so that nothing was measured.
    """

    checks: list[Check]
    overrides: list[dict[str, str]]
    is_measured: bool = False
    scores: Sequence[ScoreRow] = ()
    not_tested: Sequence[str] = ()
    tries: Sequence[Try] = ()

    @property
    def failed(self) -> list[Check]:
        return [check for check in self.checks if not check.passed]


class _Attempt(NamedTuple):
    """One try of a release: the ledgers, its number and error, the tries before it, and what to do before measuring."""

    ledgers: Sequence[Ledger]
    number: int
    error: float
    name: str
    before: Sequence[Try]
    # Records the try before it is measured, and returns the head of the ledger's chain at its beginning; None: make only
    # the checks that need no measurement.
    begin: Callable[[], Head] | None
    overrides: Sequence[dict[str, str]] = ()  # of checks before the draw


Finish = Callable[["Release", _CheckedBundle, Path], None]  # gets every draw that was made, with its folder


@dataclass(frozen=True, eq=False, repr=False)
class Release:
    """A candidate to release: `check()` returns every check, `write(folder)` releases it or raises `Refused`.

    Not the draw of the study is released, but a new one, which is measured anew. If it is above a limit, the `alternatives`
    are tried in their order (see `procedure`).
    """

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
    alternatives: tuple[Candidate, ...] = ()

    def __repr__(self) -> str:
        return f"Release({self.plan.name_of(self.candidate)}, {self.profile.name})"

    def check(self) -> list[Check]:
        """Return every check, made on files in a private temporary folder, which is removed.

        The ledger records the tries: writing the release afterwards makes the same draws again and spends no further try.
        """
        return self.preview().checks

    def preview(self, *, on_try: Callable[[Try], None] | None = None) -> release_folder.Preview:
        """Return every check, and each file that would be written with its size and first lines; no file is kept."""
        seen = []

        def finish(drawn: Release, bundle: _CheckedBundle, part: Path) -> None:
            seen.append(release_folder.preview_folder(part, bundle.checks))

        with Ledger.open_locked(self.ledger) as ledger:
            results = self._try_candidates(ledger, release_folder.temporary_folder, finish, on_try)
        last = seen[-1] if seen else release_folder.Preview([], (), ())
        return replace(last, checks=results)

    def write(
        self, folder: str | Path, *, on_checks: Callable[[list[Check]], None] | None = None,
        on_try: Callable[[Try], None] | None = None,
    ) -> Path:  # fmt: skip
        """Try the candidates, and move the folder of the first that passes into place; raise `Refused` if none does.

        folder : must be empty or absent. It is private (mode 0700) until somebody changes its mode.
        on_checks : called with every check before the release is refused or moved into place.
        on_try : called with each try.
        """
        folder = Path(folder).absolute()
        if problem := release_folder.find_folder_problem(folder):
            raise SdcmapError(problem)
        with Ledger.open_locked(self.ledger) as ledger:

            def finish(drawn: Release, bundle: _CheckedBundle, part: Path) -> None:
                if bundle.failed or not bundle.is_measured:
                    return
                if on_checks is not None:
                    on_checks(bundle.checks)
                profile = _profile_with_overrides(self.profile, bundle.overrides)
                # The ledger knows the release before the folder has its name: a killed process leaves no unrecorded file.
                with ledger.record_release(drawn._people, self.plan, drawn._combined, profile, folder, part):
                    release_folder.put_in_place(part, folder, release_folder.allowed_names(self.data.schema.format))
                record_head(ledger, self.study)
                drawn._record_in_study(folder, bundle, ledger.id)

            results = self._try_candidates(ledger, lambda: release_folder.part_folder(folder), finish, on_try)
        if failed := [check for check in results if not check.passed]:
            if on_checks is not None:
                on_checks(results)
            raise Refused(failed)
        return folder

    # ---- the procedure ----------------------------------------------------------------------------------------
    def _try_candidates(
        self, ledger: Ledger, open_part: Callable[[], AbstractContextManager[Path]], finish: Finish,
        on_try: Callable[[Try], None] | None,
    ) -> list[Check]:  # fmt: skip
        """Draw and measure the candidates in their order until one passes; return its checks, or those of all.

        finish : called with each draw in its folder.
        """
        known = find_ledgers(ledger)
        ledgers = known.searched
        procedure = self._plan_procedure(ledgers)
        # A draw that was written before is made again, whatever was tried before it.
        written = [i for i, draw in enumerate(procedure.draws) if self._at(draw)._was_written(ledgers)]
        places = written[:1] or range(len(procedure.draws))
        first = self._at(procedure.draws[places[0]])
        results, overrides = checks.apply_overrides(first._check_before_drawing(known, procedure), self.override)
        if any(not check.passed for check in results):
            # Nothing is measured. Other problems of the file are listed too, so that all can be solved at once.
            with open_part() as part:
                drawn, made = first._make_feasible(part, _Attempt(ledgers, 0, 1.0, "", (), None), procedure)
                finish(drawn, made, part)
            return [*results, *made.checks]
        # The candidates are fixed before the first of them is drawn.
        entry = procedure.entry or ledger.record_procedure(
            digest_without_roles(self._people), self.profile.name, self._identity,
            [(draw.method.digest, draw.replicate) for draw in procedure.draws], self._people,
        )  # fmt: skip
        tries = self._earlier_tries(procedure, places[0])
        bundles: list[_CheckedBundle] = []

        def attempt(place: int, error: float) -> bool | None:
            name, number = procedure.names[place], procedure.spent + len([t for t in tries if t.passed is not None]) + 1
            begin = partial(self._begin_try, ledger, entry.row, place, error)
            one = _Attempt(ledgers, number, error, name, tuple(tries), begin, overrides)
            with open_part() as part:
                drawn, made = self._at(procedure.draws[place])._make_feasible(part, one, procedure)
                if drawn.candidate != procedure.draws[place]:
                    ledger.replace_draw(entry.row, place, drawn.candidate.method.digest, drawn.candidate.replicate)
                bundle = made._replace(checks=[*results, *made.checks], overrides=[*overrides, *made.overrides])
                bundles.append(bundle)
                passed = not bundle.failed if bundle.is_measured else None
                tries.append(Try(number, name, error, passed, tuple(made.checks), drawn.candidate.method.text))
                if passed is not None:
                    ledger.record_outcome(entry.row, place, "passed" if passed else "failed")
                if on_try is not None:
                    on_try(tries[-1])
                finish(drawn, bundle._replace(tries=tries), part)
            return passed

        errors = [procedure.made.get(places[0], self.plan.policy.try_errors[0])] if written else procedure.errors
        if run_tries(places, errors, attempt) is not None:
            return bundles[-1].checks
        return checks_of_all(results, tries)

    def _at(self, draw: Candidate) -> Release:
        """Return the release of one draw."""
        return replace(self, candidate=draw, alternatives=())

    @property
    def _people(self) -> Microdata:
        """The original records."""
        return self.data if self.parent is None else self.parent.original

    @property
    def _combined(self) -> Candidate:
        """The candidate with all steps from the original on, as the ledger records it."""
        return self.candidate if self.parent is None else self.parent.combined_candidate(self.candidate)

    @property
    def _identity(self) -> str:
        """A text that is the same for two releases whose tries have the same figures and limits."""
        limits = sorted((limit.measure.id, repr(float(limit.value))) for limit in self.limits)
        candidates = [(c.method.digest, c.replicate) for c in (self.candidate, *self.alternatives)]
        parts = [self.data.digest, hex(self.plan.seed), self.profile.table(), limits, candidates, self.plan.replicates]
        return json.dumps(parts, default=str)

    def _plan_procedure(self, ledgers: Sequence[Ledger]) -> Procedure:
        candidates = (self.candidate, *self.alternatives)
        names = [self.plan.name_of(candidate) for candidate in candidates]
        return plan_procedure(
            candidates, names, ledgers, digest_without_roles(self._people), self.profile.name, self._identity,
            self.plan.policy, records=self._people, is_overridden="tries" in self.override,
        )  # fmt: skip

    def _earlier_tries(self, procedure: Procedure, first: int) -> list[Try]:
        """Return the tries of this procedure that failed before the one that is made again."""
        made = list(procedure.made.items())
        before = made[: next((i for i, (place, _) in enumerate(made) if place == first), 0)]
        methods = [draw.method.text for draw in procedure.draws]
        return [
            Try(procedure.spent + number, procedure.names[at], error, False, method=methods[at])
            for number, (at, error) in enumerate(before, 1)
        ]

    def _was_written(self, ledgers: Sequence[Ledger]) -> bool:
        """Return whether a ledger has a release of this very draw."""
        return any(ledger.has_release(self._people, self.plan, self._combined) for ledger in ledgers)

    def _find_earlier(self, ledgers: Sequence[Ledger]) -> History:
        """Return the earlier releases of the same people."""
        if self.parent is None:
            return history(ledgers, self.data, self.plan, self.candidate)
        return self.parent.find_history(ledgers, self.candidate)

    def _check_before_drawing(self, known: KnownLedgers, procedure: Procedure) -> list[Check]:
        """Return the checks that need no draw; if one fails, nothing is drawn and no try is spent."""
        check_others = check_earlier if self.parent is None else check_other_releases
        return [
            checks.check_seed(self.plan),
            checks.check_roles(self.data, self._proposed_roles, self.confirm_roles),
            limit_checks.check_limits_stated(self.plan, self.limits),
            check_ledgers(known, recorded_heads(self.plan, self.study)),
            *check_lineage(self.plan),
            check_others(self._find_earlier(known.searched), self.again),
            check_tries(self.plan.policy, procedure.spent, self.profile.name, is_repeated=bool(procedure.made)),
        ]

    def _make_feasible(
        self, part: Path, attempt: _Attempt, procedure: Procedure
    ) -> tuple[Release, _CheckedBundle]:  # fmt: skip
        """Return the release of the first draw that can be made, from this one on, with its `_make`.

        Which draws can be made says nothing about their risk, so that no try is spent on the others.
        """
        drawn, reason = self, ""
        for _ in range(MAX_INFEASIBLE_DRAWS):
            try:
                return drawn, drawn._make(part, attempt)
            except Infeasible as error:
                reason = str(error)
            if not self.candidate.method.random:
                break
            drawn = self._at(procedure.draw_after(drawn.candidate))
        return self, _CheckedBundle(
            [Check("choice", False, f"No new draw of this candidate could be made: {reason}")], []
        )

    def _make(self, part: Path, attempt: _Attempt) -> _CheckedBundle:
        """Write the bundle of this draw into `part`, read the data back, and check everything."""
        plan, policy = self.plan, self.plan.policy
        draw = WrittenDraw.write(self.data, self.candidate.method, self.candidate.stream(plan.seed), part)
        profile_checks = ProfileChecks(self.profile, policy, 1 - attempt.error, draw)
        # First the checks that need no score. If one fails, nothing is measured, so that no try is spent.
        results, checked_draws = [*self._check_unmeasured(draw, profile_checks)], 0
        if attempt.begin is not None:
            checked_draws = self._count_checked_draws()
            results += [checks.check_draws(checked_draws, policy.draws)]
        results, overrides = checks.apply_overrides(results, self.override)
        methods = sum(Candidate(one).kind == "candidate" for one in plan.all_methods)  # with those of a search
        effort = SearchEffort(self.searched, methods, checked_draws, policy.draws, sum(policy.try_errors))
        if attempt.begin is None or any(not check.passed for check in results):
            if draw.round_trip.passed:  # for a preview of the files
                self._explain(part, draw.prepared, effort, (), overrides, attempt.before)
            return _CheckedBundle(results, overrides)
        head = attempt.begin()
        losses = self._score_losses(draw)
        measured, pooled = self._measure(draw, profile_checks, losses, attempt)
        measured, more = checks.apply_overrides(measured, self.override)
        results, overrides = [*results, *measured], [*overrides, *more]
        passed = all(check.passed for check in results)
        tries = [*attempt.before, Try(attempt.number, attempt.name, attempt.error, passed, method=draw.method.text)]
        models = stated_models(plan.measures)
        repeated = repeat_analyses(self.data, draw.released, models, plan.kept_models)
        relations = None if repeated is None else describe_relations(repeated)
        self._explain(part, draw.prepared, effort, losses, [*attempt.overrides, *overrides], tries, relations, head)
        rows = {**dict(losses), **draw.scores, **pooled}
        skipped = _skipped_attacks(draw.scores.values(), 1 - attempt.error)
        return _CheckedBundle(results, overrides, True, [*rows.values()], skipped)

    def _check_unmeasured(self, draw: WrittenDraw, profile_checks: ProfileChecks) -> Iterator[Check]:
        """Yield the checks of a written draw that need no score."""
        data, masked, prepared, policy = self.data, draw.masked, draw.prepared, self.plan.policy
        unmasked_keys = [name for name in prepared.data.keys if name not in prepared.masked]
        yield checks.check_identifiers(masked, policy)
        yield draw.round_trip
        yield check_recoverable(data, masked, prepared.masked, policy)
        yield checks.check_weight(prepared.data, unmasked_keys, self.profile.name, policy.unique_weights)
        yield from self._check_kept_survey_columns(prepared)
        yield check_missing_patterns(data, draw.method, masked, self.profile)
        if draw.round_trip.passed:
            yield from profile_checks.checks_without_scores()
            if self.plan.edits:
                yield checks.check_edits(self.plan.edits, data, draw.released, policy.edit_violations)

    def _score_losses(self, draw: WrittenDraw) -> list[tuple[Measure, ScoreRow]]:
        """Score every utility measure of the plan on the written file."""
        utilities = [measure for measure in self.plan.measures if measure.axis == "utility"]
        return list(zip(utilities, score_file(utilities, self.data, draw.released, draw.stream), strict=True))

    def _measure(
        self, draw: WrittenDraw, profile_checks: ProfileChecks, losses: Sequence[tuple[Measure, ScoreRow]],
        attempt: _Attempt,
    ) -> tuple[list[Check], dict[Measure, ScoreRow]]:  # fmt: skip
        """Return the checks of the written file that need scores, and the scores that are pooled over further draws."""
        plan, method, level = self.plan, draw.method, 1 - attempt.error
        risks, expectations = (
            [m for m in plan.measures if m.axis == "risk" and m.expectation == pooled] for pooled in (False, True)
        )
        limited = {limit.measure for limit in self.limits}
        # The limits of the plan, and the limits of the profile, on the file as read back.
        single = [(m, row) for m, row in losses if m in limited and not m.expectation]
        results = [*check_limits(self.limits, single, level, name="loss")]
        results += check_limits(self.limits, list(zip(risks, draw.score(risks), strict=True)), level)
        results += profile_checks.checks()
        results += check_parts(draw.scores)
        # An expectation cannot be judged by one file, so it is pooled over further new draws of the method.
        measures = [*expectations, *(m for m, _ in losses if m.expectation and m in limited)]
        draws = self._draws(self.candidate.stream(plan.seed))
        pooled = limit_checks.score_expectations(measures, self.data, draws, is_random=method.random)
        for name, axis in (("risk", "risk"), ("loss", "utility")):
            scored = [(m, row) for m, row in zip(measures, pooled, strict=True) if m.axis == axis]
            results += check_limits(self.limits, scored, level, what="over draws", name=name)
        earlier = self._find_earlier(attempt.ledgers)
        if self.parent is not None:
            others, stream = earlier if self.again else None, draw.stream.child("nested")
            results += check_nested(self.parent, draw.prepared, draw.back, self.limits, stream, method, level, others)
        elif self.again:
            results += check_joint(earlier, self.data, draw.released, plan, self.limits, draw.stream, method, level)
        return results, dict(zip(measures, pooled, strict=True))

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
        """Return how many releases have tried this method, including this one; a release makes one draw of each method.

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

    def _draws(self, stream: Stream) -> Iterator[Microdata]:
        """Yield feasible new draws of the released method, as many as the plan has, rounded as in a release."""
        method = self.candidate.method
        for number in range(self.plan.replicates if method.random else 1):
            with suppress(Infeasible):
                yield as_written(self.data, method, method.apply(self.data, stream.child(f"further draw {number}")))

    def _explain(
        self, part: Path, prepared: Prepared, effort: SearchEffort, losses: Sequence[tuple[Measure, ScoreRow]],
        overrides: Sequence[dict[str, str]], tries: Sequence[Try], relations: Relations | None = None,
        head: Head | None = None,
    ) -> None:  # fmt: skip
        """Write the documents beside the data: README, codebook, method note, citation and checksums."""
        title = self.title or prepared.data.schema.title or "Microdata"
        about = About(title, self.owner, datetime.now(UTC).date().isoformat())
        method, view = self.candidate.method, PublicView.of(self.plan, self.data)
        public = view.method(method.text)
        published = [entry for entry in overrides if checks.CHECK_KINDS[entry["check"]].is_published]
        note = method_note(view, method, prepared, self.profile.name, effort, losses, published, tries, relations, head)
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
        release_folder.write_documents(part, texts)

    def _begin_try(self, ledger: Ledger, procedure: int, place: int, error: float) -> Head:
        """Record that a try has begun, and return the head of the ledger's chain at its beginning."""
        head = ledger.record_try(procedure, place, error)
        record_head(ledger, self.study)
        return head

    def _record_in_study(self, folder: Path, bundle: _CheckedBundle, ledger: str) -> None:
        """Record in the private manifest of the study what was released and how."""
        if self.study is None:
            return
        when, overrides = datetime.now(UTC).isoformat(timespec="seconds"), [*bundle.overrides]
        if self._proposed_roles and self.confirm_roles:
            overrides.append(
                {"check": "roles", "reason": f"{len(self._proposed_roles)} proposed roles confirmed at once"}
            )
        made, last = self.candidate, bundle.tries[-1]
        facts: dict[str, object] = {
            "name": last.name, "method": made.method.text, "replicate": made.replicate, "profile": self.profile.name,
            "chosen": studied_replicate(made.replicate), "level": 1 - last.error,
            "tries": [describe_try(one) for one in bundle.tries],
            "measured": [row._asdict() for row in bundle.scores],
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
    excel_safe: bool = False,
    title: str = "",
    owner: str = "",
    signed_by: str = "",
    reason: str = "",
) -> Release:
    """Return a release; `.write(folder)` tries its candidates and writes the first that passes.

    Parameters
    ----------
    choice : what a rule chose, a candidate of the plan, or its id. What a rule chose is followed by the next candidates in
        the order of the rule; a candidate that a person names is the only one. The choice to release nothing is `Refused`.
    profile : for whom the file is, by name or value (see `Profile`); by default the plan's, or "public-use". The written
        file is attacked by somebody who knows every column that others could know, and compared with the limits of the
        profile, whatever the plan measured.
    max_risk : the largest acceptable value on the risk axis, where neither plan nor rule states one; the strictest counts.
    again : allow another release of the same records if the joint risk of all of them is within the limits.
    override : {"weight": "why this is safe"} for the checks "identifier", "weight", "missing patterns", "edits", "ledger",
        "tries", "unmasked" and "profile". Report and ledger show it; the method note shows it for the last three.
    ledger : private folder that records every release; default $SDCMAP_LEDGER or the user's state folder. Every ledger that
        this user has released with is searched.
    study : where overrides and the release are recorded.
    confirm_roles : confirm every role that the plan marks as proposed; the study records it.
    form : the format to write, "csv", "parquet", "sav" (SPSS), "dta" (Stata) or "xpt" (SAS); by default that of the data.
    excel_safe : write texts that a spreadsheet program would run as formulas with an apostrophe before them; CSV only.
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
    listed = choice.candidates if isinstance(choice, Choice) else ()
    return Release(
        in_format(data, form, excel_safe=excel_safe), plan, candidate, limits, searched, release_profile, again, reasons,
        None if ledger is None else Path(ledger), study, confirm_roles, title, owner, parent, signed_by, reason,
        tuple(plan.find(name) for name in listed[1 : len(plan.policy.try_errors)]),
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
