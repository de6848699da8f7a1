"""The programs that plain Python launches, today's and the baseline's, paired for a duel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from jaxgate.model.baseline import Baseline, StoredBaseline
from jaxgate.model.launched import LaunchedProgram, call_facts, pair_programs
from jaxgate.model.program import Match, ProgramRecord, StoredProgram
from jaxgate.observe.duel.duel import Contender
from jaxgate.observe.observation import Observation
from jaxgate.observe.program.executable_fingerprint import same_executable
from jaxgate.observe.program.export import split_call

Load = Callable[[str, ProgramRecord], StoredProgram]
"""Reads a stored program by its structure and what a baseline says of it."""


@dataclass(frozen=True, slots=True)
class MatchedPrograms:
    """The programs of a call that a duel needs."""

    matches: tuple[Match, ...]  # programs that both sides have and that can be run here
    before: tuple[LaunchedProgram, ...]  # the baseline's programs among them, in the same order
    why_not: str  # why they are not all; empty if they are


def match_programs(observed: Observation, baseline: Baseline, load: Load, *, equal_ones: bool) -> MatchedPrograms:
    """Pair today's programs with the baseline's: those that are not equal, or are launched more or less often.

    ``equal_ones`` are paired as well if something else than the programs changed.

    Raises:
        InvalidCaseError: If the baseline lost one of them.
    """
    described = observed.measurement.launched_programs
    today = {id(one): place for place, one in enumerate(described)}
    matches, before, problems = [], [], []
    for ours, theirs in pair_programs(described, baseline.launched_programs):
        if ours is None or theirs is None:
            problems.append(f"{ours.name} is new" if ours else f"{theirs.name} is gone" if theirs else "")
        elif ours.arguments != theirs.arguments:
            problems.append(f"{ours.name} takes other arguments")
        elif equal_ones or (ours.identity, ours.count) != (theirs.identity, theirs.count):
            now = observed.export_launched()[today[id(ours)]]
            then = load(theirs.fingerprint, theirs.program or _NOT_STORED)
            problem = now.record.why_not or then.record.why_not
            if problem:
                problems.append(f"{ours.name} cannot be stored: {problem}")
                continue
            its = observed.launched[today[id(ours)]]
            leaves = split_call(its.program.lowered, its.call)[0]
            matches.append(Match(now=now, baseline=then, leaves=leaves, calls=(ours.count, theirs.count)))
            before.append(theirs)
    return MatchedPrograms(tuple(matches), tuple(before), "; ".join(problems))


def match_all(observed: Observation, baseline: Baseline, load: Load) -> tuple[Sequence[Match], str]:
    """Pair all programs of a case, jitted or plain Python, with the baseline's; or say why that cannot be.

    Raises:
        InvalidCaseError: If the baseline lost one of them.
    """
    if observed.measurement.eager:
        matched = match_programs(observed, baseline, load, equal_ones=True)
        return matched.matches, matched.why_not
    before, today = load(baseline.fingerprints.program, baseline.program), observed.export()
    if not (before.record.stored and today.record.stored):
        return (), before.record.why_not or today.record.why_not
    return [Match(now=today, baseline=before, leaves=observed.leaves())], ""


_NOT_STORED = ProgramRecord(digest=None, donated=(), feeds=None, why_not="its baseline has its facts only")


def differs_here(match: Match, now: Contender, baseline: Contender) -> bool:
    """Whether a call spends something else on two programs: other executables, or more launches."""
    ours, theirs = match.calls
    return ours != theirs or not same_executable(now.function, baseline.function)


def recompiled(record: StoredBaseline, matched: MatchedPrograms, contenders: Sequence[Contender]) -> StoredBaseline:
    """The baseline with the facts that its programs have here, as far as they could be compiled."""
    here = {
        id(one): replace(one, facts={**one.facts, **_known(contender)})
        for one, contender in zip(matched.before, contenders, strict=True)
    }
    baseline = record.baseline
    programs = tuple(here.get(id(one), one) for one in baseline.launched_programs)
    known = {name: value for name, value in call_facts(programs).items() if value is not None}
    facts = replace(baseline.facts, **known)
    return replace(record, baseline=replace(baseline, facts=facts, launched_programs=programs), recorded=baseline.facts)


def _known(contender: Contender) -> dict[str, int]:
    return {name: value for name, value in contender.facts.items() if value is not None}
