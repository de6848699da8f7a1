"""A measurement that may become a baseline: what is written, and in which order."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial

from jaxgate.judge.order import severest
from jaxgate.keep.baselines import BaselineStore, save_baseline
from jaxgate.keep.programs import ProgramStore
from jaxgate.model.baseline import Baseline, Provenance, StoredBaseline
from jaxgate.model.decision import Status
from jaxgate.model.measurement import InvalidCaseError
from jaxgate.model.program import ProgramRecord, UnreachableError
from jaxgate.model.verdict import Verdict
from jaxgate.model.waiver import TIME
from jaxgate.observe.errors import describe
from jaxgate.observe.observation import Observation
from jaxgate.observe.program.export import serves_as

_MOVED = frozenset({
    Status.IMPROVED, Status.FASTER, Status.REGRESSED, Status.SLOWER, Status.WAIVED,
    Status.NO_BASELINE, Status.STALE_BASELINE,
})  # fmt: skip
_WORSE = frozenset({Status.REGRESSED, Status.SLOWER})
_FAILING = frozenset({Status.INVALID, Status.REGRESSED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """What there is to record of a case: plain data and its program, no array."""

    baseline: Baseline  # the baseline that it would be
    contents: Mapping[str, bytes]  # its programs, serialised, by their digests
    replaces: tuple[str, ...]  # structures of the programs that its baseline of today names

    @classmethod
    def of(
        cls, observed: Observation, record: StoredBaseline | None, *, case: str, test: str, provenance: Provenance
    ) -> Candidate:
        """Take what was measured; the time of a compile that came out of a cache stays that of the cold one."""
        program = observed.export()
        baseline = Baseline.of(
            observed.measurement, case=case, test=test, provenance=provenance, program=program.record
        )
        launched = observed.export_launched()
        pairs = zip(baseline.launched_programs, launched, strict=True)
        baseline = replace(baseline, launched_programs=tuple(replace(one, program=its.record) for one, its in pairs))
        own = record is not None and record.own
        if record is not None and own:
            baseline = _with_known_time(_with_cold_compile(baseline, record.baseline), record.baseline)
        return cls(
            baseline=baseline,
            contents={one.record.digest: one.content for one in (program, *launched) if one.record.digest is not None},
            replaces=tuple(structure for structure, _ in record.baseline.programs)
            if record is not None and own
            else (),
        )

    def accept(self, store: BaselineStore, programs: ProgramStore, verdict: Verdict) -> Verdict:
        """Write program and baseline; the verdict says so and no longer fails."""
        baseline = self.baseline
        existed = os.path.lexists(store.path(baseline.hardware, baseline.case))

        def save(structure: str, about: ProgramRecord) -> str:
            content = self.contents[about.digest or ""]
            try:
                return programs.save(structure, content, partial(serves_as, content=content))
            except UnreachableError as error:
                raise InvalidCaseError("keeping the program", f"{error}; nothing of the case was recorded") from None

        # The programs first: a baseline never names a file that is not there.
        save_baseline(store.root, baseline.stored_as(save))
        note = replace(verdict.baseline, recorded="refreshed" if existed else "created", replaced=self.replaces)
        return replace(verdict, fails=False, baseline=note)


def _with_cold_compile(now: Baseline, before: Baseline) -> Baseline:
    """Keep the time of the cold compile where this process had none, and nothing differs that it depends on."""
    ours, theirs = now.fingerprints, before.fingerprints
    same = (ours.program, ours.options, now.environment) == (theirs.program, theirs.options, before.environment)
    if now.phases.compile_ns is not None or not same:
        return now
    return replace(now, phases=replace(now.phases, compile_ns=before.phases.compile_ns))


def _with_known_time(now: Baseline, before: Baseline) -> Baseline:
    """Keep the time of a call where the clock is switched off, and nothing differs that it depends on."""
    same = (now.fingerprints, now.environment) == (before.fingerprints, before.environment)
    return replace(now, samples=before.samples) if now.samples is None and same else now


def record_case(
    observed: Observation,
    verdict: Verdict,
    stored: StoredBaseline | None,
    *,
    test: str,
    provenance: Provenance,
    store: BaselineStore,
    programs: ProgramStore,
    keep_broken: bool,
    accept: Collection[str] = (),
) -> Verdict:
    """Accept a measurement, unless something is wrong that no baseline can make right.

    ``keep_broken`` records what breaks a claim, too: for a comparison, which judges no claims. ``accept`` is what a
    case may be worse in; empty for anything.
    """
    broken = any(f.kind in ("claim", "case") and f.status in _FAILING for f in verdict.findings)
    if broken and not keep_broken:
        return replace(verdict, fails=True)
    worse = {TIME if f.kind == "time" else f.name.split(" ")[0] for f in verdict.findings if f.status in _WORSE}
    if accept and not worse <= {*accept}:
        return replace(verdict, fails=True)
    found = Candidate.of(observed, stored, case=verdict.case, test=test, provenance=provenance)
    recorded = found.accept(store, programs, verdict)
    known = stored is not None and stored.own
    left_open = any(f.kind == "claim" and f.status is Status.UNDECIDED for f in verdict.findings)
    # A time that was not decided leaves nothing open: it is accepted as it is.
    worst = severest(f.status for f in verdict.findings if (f.kind, f.status) != ("time", Status.UNDECIDED))
    return replace(recorded, status=worst if known else Status.UNDECIDED if left_open else Status.SAME)


def has_moved(verdict: Verdict) -> bool:
    """Whether a case is not what its baseline says, or has none."""
    return bool(_MOVED & {verdict.time.status, *(finding.status for finding in verdict.findings)})


def candidate(
    observed: Observation, verdict: Verdict, record: StoredBaseline | None, *, test: str, provenance: Provenance
) -> Candidate | str:
    """What it takes to record a case later, or why it cannot be. No array is held."""
    try:
        return Candidate.of(observed, record, case=verdict.case, test=test, provenance=provenance)
    except Exception as error:  # noqa: BLE001 - the case was judged all the same
        return f"it cannot be recorded: {describe(error)}"
