"""The device programs of plain Python, each held against its own counterpart: a sum hides what one of many needs more."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from jaxgate.judge.policy import POLICIES
from jaxgate.model.decision import Status
from jaxgate.model.launched import LaunchedProgram, changed_programs
from jaxgate.model.measurement import MeasuredProgram, Measurement
from jaxgate.model.verdict import Finding


def compare_programs(now: Measurement, baseline: MeasuredProgram, red: Collection[str]) -> Iterator[Finding]:
    """Find the changed programs that need more than before.

    A program that has no counterpart is in the sums, and in the number of launches. Where programs were joined or
    parted, one of another name is none. ``red`` are facts whose sums are worse already: they are left out.
    """
    regrouped = len(now.launched_programs) != len(baseline.launched_programs)
    for ours, theirs in changed_programs(now.launched_programs, baseline.launched_programs):
        if ours is not None and theirs is not None and (ours.name == theirs.name or not regrouped):
            yield from _compared(ours, theirs, red)


def handed_on_bytes(now: Measurement, baseline: MeasuredProgram) -> int:
    """Most bytes that programs which are gone gave to others of their call: within one program these are temporaries."""
    names = {one.name for one in now.launched_programs}
    if len(now.launched_programs) >= len(baseline.launched_programs):
        return 0
    gone = [one for one in baseline.launched_programs if one.name not in names]
    return sum(one.facts.get("output_bytes", 0) * one.count for one in gone)


def _compared(now: LaunchedProgram, before: LaunchedProgram, red: Collection[str]) -> Iterator[Finding]:
    for policy in POLICIES:
        ours, theirs = now.facts.get(policy.name), before.facts.get(policy.name)
        if policy.name in red or ours is None or theirs is None or not policy.is_worse(ours, theirs):
            continue
        yield Finding(
            kind="fact",
            name=f"{policy.name} of {now.name}",
            status=Status.REGRESSED,
            now=ours,
            against=theirs,
            allowed=policy.worst_allowed(theirs),
            detail=f"of one call of the program {now.name}",
        )


def why_unknown(now: Measurement, baseline: MeasuredProgram) -> str:
    """What plain Python would have to have the same and is not known; empty if all is known."""
    if not now.launched_programs:
        return f"the programs of the plain Python are unknown: {now.unknown.get('xla_flops', 'none was recorded')}"
    for what, name in (("launches", "launches"), ("calls", "python_calls")):  # launches confirm that all were recorded
        if getattr(now.facts, name) is None:
            return f"the {what} of the plain Python are unknown: {now.unknown.get(name, 'they were not counted')}"
    if not baseline.launched_programs:
        return "the baseline does not have the programs of the plain Python: record it again"
    return ""
