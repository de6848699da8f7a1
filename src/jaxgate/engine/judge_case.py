"""One case, from what was observed to its verdict: baseline, clocks, judge, diagnostics, waivers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from jaxgate.engine.case_names import refuse_foreign
from jaxgate.engine.duels.baseline_duel import BaselineTiming, Opponent
from jaxgate.engine.duels.reference_duel import ReferenceTiming
from jaxgate.engine.record import candidate, has_moved, record_case
from jaxgate.engine.repeats import BackstopRepeat, PhaseRepeat, Provisional, Repeat
from jaxgate.engine.run.session import GateSession
from jaxgate.judge.causes.control_flow import other_constants
from jaxgate.judge.difference import Difference
from jaxgate.judge.figures import figures_of
from jaxgate.judge.order import has_red_phase, memory_decides, waits_for_confirmation
from jaxgate.judge.time import arrive_worse, judge_time
from jaxgate.judge.verdict import judge, judge_invalid
from jaxgate.judge.waivers import apply_waivers
from jaxgate.keep.programs import ProgramStore
from jaxgate.keep.strict import CorruptBaselineError
from jaxgate.model.baseline import StoredBaseline
from jaxgate.model.decision import ALWAYS_FAIL, Status
from jaxgate.model.duel import ReferenceDuel
from jaxgate.model.machine import HardwareKey
from jaxgate.model.measurement import InvalidCaseError, Measurement
from jaxgate.model.program import StoredProgram
from jaxgate.model.verdict import Verdict
from jaxgate.model.workload import Case
from jaxgate.observe.hlo.diff import program_changes
from jaxgate.observe.observation import Observation
from jaxgate.observe.tools import Announce
from jaxgate.settings import Update


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedCase:
    """What came of one case."""

    verdict: Verdict  # its verdict so far
    stored_here: StoredBaseline | None = None  # its baseline, with the facts that its program has here
    opponent: Opponent | None = None  # the baseline's program, if it was compiled here
    repeats: tuple[Repeat, ...] = ()  # what a fresh process may be asked to look for again
    on_baseline_ns: int = 0  # what its baseline's program took: to be compiled here, and to be duelled with
    # whether it waits for no fresh process: one that was recorded, or judged by launches, does not
    is_final: bool = False

    def provisional(self, *, strict: bool) -> Provisional | None:
        """The case, if only fresh processes can say whether it is red."""
        if self.is_final or not waits_for_confirmation(self.verdict):
            return None
        repeats = [repeat for repeat in self.repeats if repeat.accuses(self.verdict)]
        return Provisional(self.verdict, repeats, strict=strict)


def judge_case(session: GateSession, case: Case, observed: Observation, *, test: str, progress: Announce) -> JudgedCase:
    """Judge what was observed against its baseline, with a duel where the program changed; or record it.

    Two baselines go through here: ``stored`` is the file as it is; in ``stored_here`` the compiled facts are those of
    its program on this machine, where that is another one.
    """
    now, settings = observed.measurement, session.settings
    if session.comparison is not None:
        verdict = session.comparison.judge(case, observed.claims, now, test=test)
        return JudgedCase(verdict=_waived(session, verdict, strict=False), is_final=True)
    recording = settings.update.records(exists=os.path.lexists(session.store.path(now.hardware, case.name)))
    try:
        stored = _load(session, case, now.hardware, test=test, recording=recording)
        difference = None if stored is None else Difference(now, stored.baseline)
        session.result.note_program(case, now.fingerprints, difference)
        if recording:
            timing = _time_replaced(session, observed, stored, difference, progress)
        else:
            timing = _time(session, case, observed, stored, difference, test=test, progress=progress)
        opinion = session.opinions.ask(
            observed, difference, recording=recording, same_executable=timing.same_executable, progress=progress
        )
        reference = _time_reference(session, observed, progress)
    except InvalidCaseError as error:
        verdict = replace(judge_invalid(case.name, error), hardware=now.hardware)
        return JudgedCase(verdict=verdict, is_final=True)
    judge_it = partial(
        judge,
        case.name,
        observed.claims,
        record=timing.stored_here,
        strict=session.strict,
        tolerances=case.tolerances,
        elsewhere=session.store.elsewhere(now.hardware, case.name),
        decision=timing.decision,
        no_duel=timing.why_not,
        same_executable=timing.same_executable,
        reference_duel=reference.by,
        duel_energy=timing.energy,
    )
    figures = figures_of(now, timing.stored_here, timing.duel)
    verdict = replace(judge_with_buffers(judge_it, observed), opinion=opinion, figures=figures)
    ended = partial(JudgedCase, stored_here=timing.stored_here, opponent=timing.opponent, on_baseline_ns=timing.took_ns)
    if recording:  # a waived claim is broken all the same, and never recorded
        recorded = record_case(
            observed,
            verdict,
            stored,
            test=test,
            provenance=session.provenance,
            store=session.store,
            programs=session.programs,
            keep_broken=settings.as_measured,
            accept=settings.accept,
        )
        return ended(verdict=recorded, is_final=True)
    of_duels = [*([] if timing.repeat is None else [timing.repeat]), *reference.repeats]
    repeats = (*of_duels, *_repeats_of_calls(session, verdict, difference, timing, test=test))
    folder = session.store.folder(now.hardware)
    verdict = session.drift_budget.judge(verdict, folder, case.tolerances, strict=session.strict)
    if settings.update is Update.REVIEW and has_moved(verdict):
        held = candidate(observed, verdict, stored, test=test, provenance=session.provenance)
        session.result.candidates[case.name] = held
    if verdict.status in ALWAYS_FAIL:
        verdict = with_changes(verdict, observed, stored, session.programs)
    return ended(verdict=_waived(session, verdict, strict=session.strict), repeats=repeats)


def _load(
    session: GateSession, case: Case, hardware: HardwareKey, *, test: str, recording: bool
) -> StoredBaseline | None:
    """The baseline as it is stored; one that cannot be read is replaced by a recording, and judges nothing."""
    try:
        stored = session.store.load(hardware, case.name)
    except CorruptBaselineError as error:
        if recording:
            return None
        path = session.short(error.path)
        mend = f"restore it (git checkout -- {path}) or record it again with --perf-update"
        raise InvalidCaseError("reading the baseline", f"{path} {error.reason}; {mend}") from None
    if stored is not None:
        refuse_foreign(session.project, stored.baseline.test, test)
    if stored is not None and stored.of_other_line:
        session.result.other_lines[case.name] = stored.baseline.line
    if stored is not None and stored.baseline.program.stored:
        session.result.dates[case.name] = stored.baseline.provenance.date
    return stored


def _time(
    session: GateSession,
    case: Case,
    observed: Observation,
    stored: StoredBaseline | None,
    difference: Difference | None,
    *,
    test: str,
    progress: Announce,
) -> BaselineTiming:
    """Runs even if timing is off: the baseline's program is compiled here so that its facts can be compared."""
    timing = session.baseline_duels.time(observed, stored, difference, progress)
    if observed.measurement.samples is None or stored is None or difference is None:
        return timing
    return session.stored_times.time(case.name, test, stored, difference, timing)


def _time_replaced(
    session: GateSession,
    observed: Observation,
    stored: StoredBaseline | None,
    difference: Difference | None,
    progress: Announce,
) -> BaselineTiming:
    """Time a case beside the baseline that it replaces, so that log and history know what is accepted.

    Facts are held against what was recorded, not against those of its program here. An error does not stop the
    recording: a lost program is a reason to record it again.
    """
    settings = session.settings
    untimed = BaselineTiming(stored, why_not="recorded, not timed")
    unasked = settings.other_side or settings.as_measured or observed.measurement.samples is None
    if stored is None or not stored.own or unasked:
        return untimed
    try:
        timing = session.baseline_duels.time(observed, stored, difference, progress)
    except InvalidCaseError as error:
        return replace(untimed, why_not=str(error))
    return replace(timing, stored_here=stored)


def _time_reference(session: GateSession, observed: Observation, progress: Announce) -> ReferenceTiming:
    if session.settings.as_measured:
        return ReferenceTiming(ReferenceDuel(why_not="recorded only to be compared with, its claims are not judged"))
    return session.reference_duels.time(observed.claims, observed, progress)


def _repeats_of_calls(
    session: GateSession, verdict: Verdict, difference: Difference | None, timing: BaselineTiming, *, test: str
) -> Iterator[Repeat]:
    """How to repeat what red phases and the backstop say, which no duel stands behind."""
    if difference is None:
        return
    now, baseline = difference.now, difference.baseline
    if has_red_phase(verdict):
        yield PhaseRepeat(again=session.again, test=test, now=now, before=baseline.phases)
    if timing.decision is None and verdict.time.decision is not None:  # the recorded time alone says SLOWER
        plain = judge_time(
            difference,
            no_duel=timing.why_not,
            same_executable=timing.same_executable,
            arrives_worse=arrive_worse(verdict.findings),
            stored=replace(verdict.time.decision, status=Status.SAME),
        )
        yield BackstopRepeat(again=session.again, test=test, now=now, difference=difference, plain=plain)


def _waived(session: GateSession, verdict: Verdict, *, strict: bool) -> Verdict:
    return apply_waivers(verdict, session.waivers_in_force, today=session.today, strict=strict)


def judge_with_buffers(judge_it: Callable[[Measurement], Verdict], observed: Observation) -> Verdict:
    """Judge; where memory decides, read the largest buffers of the program and judge again, with them as suspects."""
    verdict = judge_it(observed.measurement)
    return judge_it(observed.with_allocations()) if memory_decides(verdict) else verdict


def with_changes(
    verdict: Verdict, observed: Observation, stored: StoredBaseline | None, programs: ProgramStore
) -> Verdict:
    """Add what changed in the program since its baseline, if it did and both are stored programs; it may be the cause."""
    origin = verdict.origin
    if stored is None or origin is None or observed.lowered is None:
        return verdict
    ours, theirs = observed.measurement.fingerprints, stored.baseline.fingerprints
    kept = stored.baseline.program
    content = programs.load(theirs.program, kept.digest) if kept.stored else None
    if ours.program == theirs.program or content is None:
        return verdict
    before = StoredProgram(record=kept, content=content)
    changes = program_changes(before, observed.export())
    verdict = replace(verdict, evidence=replace(verdict.evidence, changes=changes))
    alone = {"program changed", "source changed"}.issuperset(origin.differences)
    constants = other_constants(observed.measurement, changes, alone=alone)
    if constants is None or verdict.time.status is not Status.SLOWER:
        return verdict
    causes = list(verdict.causes)  # what was seen stays before it, guesses come after it
    causes.insert(next((place for place, one in enumerate(causes) if not one.sure), len(causes)), constants)
    return replace(verdict, causes=tuple(causes))
