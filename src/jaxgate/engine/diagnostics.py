"""What a verdict that is not green costs more: the buffers of its program, and what changed in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from jaxgate.judge import memory_decides
from jaxgate.keep import ProgramStore
from jaxgate.model import Measurement, StoredBaseline, StoredProgram, Verdict
from jaxgate.observe.observation import Observation
from jaxgate.observe.program import program_changes


def judge_with_buffers(judged: Callable[[Measurement], Verdict], observed: Observation) -> Verdict:
    """Judge; where memory decides, read the largest buffers of the program and judge again, with them as suspects.

    Args:
        judged: Judges a measurement of the case.
        observed: The case.
    """
    verdict = judged(observed.measurement)
    return judged(observed.with_allocations()) if memory_decides(verdict) else verdict


def with_changes(
    verdict: Verdict, observed: Observation, record: StoredBaseline | None, programs: ProgramStore
) -> Verdict:
    """Add what changed in the program since its baseline, if it did and both are stored programs.

    Args:
        verdict: One that is red, by a clock or by a fact.
        observed: The case.
        record: Its baseline, if it has one.
        programs: Where the baselines' programs are.
    """
    if record is None or verdict.origin is None or observed.lowered is None:
        return verdict
    ours, theirs = observed.measurement.fingerprints, record.baseline.fingerprints
    stored = record.baseline.program
    content = programs.load(theirs.program, stored.digest) if stored.stored else None
    if ours.program == theirs.program or content is None:
        return verdict
    before = StoredProgram(record=stored, content=content)
    return replace(verdict, changes=program_changes(before, observed.export()))
