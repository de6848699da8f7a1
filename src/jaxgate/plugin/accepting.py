"""A measurement that may become a baseline: what is written, and in which order."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from jaxgate.judge.order import severest
from jaxgate.keep.baselines import BaselineStore
from jaxgate.keep.programs import ProgramStore
from jaxgate.model import Baseline, Provenance, Record, Status, Verdict
from jaxgate.observe.exporting import serves_as
from jaxgate.observe.observed import Observed

if TYPE_CHECKING:
    from jaxgate.plugin.run import Run

_FAILING = frozenset({Status.INVALID, Status.REGRESSED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """What there is to record of a case: plain data and its program, no array.

    Attributes:
        baseline: The baseline that it would be.
        content: The program, serialised.
        replaces: Structure of the program that its baseline of today names; empty if there is none to read.
    """

    baseline: Baseline
    content: bytes
    replaces: str

    @classmethod
    def of(
        cls, observed: Observed, record: Record | None, *, case: str, test: str, provenance: Provenance
    ) -> Candidate:
        """Take what was measured as it is."""
        program = observed.export()
        baseline = Baseline.of(
            observed.measurement, case=case, test=test, provenance=provenance, program=program.record
        )
        own = record is not None and not record.borrowed and record.baseline.program.stored
        return cls(
            baseline=baseline,
            content=program.content,
            replaces=record.baseline.fingerprints.program if own and record is not None else "",
        )

    def accept(self, store: BaselineStore, programs: ProgramStore, verdict: Verdict) -> Verdict:
        """Write program and baseline; gives the verdict, which says so and no longer fails."""
        baseline = self.baseline
        existed = os.path.lexists(store.path(baseline.hardware, baseline.case))
        about = baseline.program
        if about.stored:  # the program first: a baseline never names a file that is not there
            serves = partial(serves_as, content=self.content)
            digest = programs.save(baseline.fingerprints.program, self.content, serves)
            baseline = replace(baseline, program=replace(about, digest=digest))
        store.save(baseline)
        return replace(verdict, fails=False, recorded="refreshed" if existed else "created", replaced=self.replaces)


def record_case(run: Run, observed: Observed, verdict: Verdict, record: Record | None, *, test: str) -> Verdict:
    """Accept a measurement, unless something is wrong that no baseline can make right.

    Args:
        run: The run.
        observed: What was measured.
        verdict: The verdict on it; time was not judged.
        record: The baseline so far.
        test: pytest node id.
    """
    broken = any(f.kind in ("claim", "case") and f.status in _FAILING for f in verdict.findings)
    if broken and not run.settings.as_measured:
        return replace(verdict, fails=True)
    found = Candidate.of(observed, record, case=verdict.case, test=test, provenance=run.made_from)
    recorded = found.accept(run.store, run.programs, verdict)
    known = record is not None and not record.borrowed
    left_open = any(f.kind == "claim" and f.status is Status.UNDECIDED for f in verdict.findings)
    worst = severest(finding.status for finding in verdict.findings)
    return replace(recorded, status=worst if known else Status.UNDECIDED if left_open else Status.SAME)
