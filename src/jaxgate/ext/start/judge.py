"""From two starts to a verdict. No baseline is needed: what one process compiled, the next one loads."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from jaxgate.ext.start.model import LIMITS, Job, Program, Started
from jaxgate.judge.counts import Counted, count, judge_counts
from jaxgate.model.machine import HardwareKey
from jaxgate.model.measurement import MAX_NAMED
from jaxgate.model.verdict import Verdict
from jaxgate.model.words import plural, shortlist

Texts = Callable[[int], str]
"""The text of a program by its place in the order in which they were asked for; empty if it is not there."""
_LINE = 100
"""Characters that are shown of a line of a program."""


def judge_start(
    case: str, hardware: HardwareKey, job: Job, starts: tuple[Started, Started], texts: tuple[Texts, Texts]
) -> Verdict:
    """Hold what two processes asked the compiler for against each other and against the job."""
    first, second = starts
    missed, again = _missed(starts, texts), _repeated(first, texts[0])
    found = [
        _counted("missed_programs", "the second process compiles again what the first one kept", missed, job),
        _counted("repeated_programs", "one process asks the compiler again for what it has", again, job),
        *_limited(job, first, second),
    ]
    time = f"{plural(len(first.programs), 'program')}, {first}; with a full cache {second}"
    return judge_counts(case, hardware, found, time=time)


def _counted(name: str, what: str, found: Sequence[str], job: Job) -> Counted:
    allowed = job.allow.get(name, LIMITS[name])
    told = f"{what}: {plural(len(found), 'program')}{f', allowed {allowed:g}' if allowed else ''}"
    return count(name, len(found), allowed, told, shortlist(found, MAX_NAMED))


def _limited(job: Job, first: Started, second: Started) -> Iterator[Counted]:
    if job.programs is not None:
        most = Counter(one.function for one in first.programs).most_common(MAX_NAMED)
        named = shortlist([f"{times} × {name}" for name, times in most], MAX_NAMED)
        found = len(first.programs)
        told = f"{found:.3g} programs until the first result, allowed {job.programs:g}"
        yield count("programs", found, job.programs, told, named)
    if job.seconds is not None:
        most_of_it = max(second.seconds, key=lambda phase: second.seconds[phase])
        told = f"{second.total_s:.3g} seconds with a full cache, allowed {job.seconds:g}"
        where = f"most of it is {most_of_it}: {second.seconds[most_of_it]:.2g} s"
        yield count("seconds", second.total_s, job.seconds, told, where)


def _missed(starts: tuple[Started, Started], texts: tuple[Texts, Texts]) -> list[str]:
    """What the second process compiles, each with the first line that differs from the first process's program."""
    first, second = starts
    before = _places(first.programs)
    found = []
    for key, place in _places(second.programs).items():
        if second.programs[place].loaded:
            continue
        line = ""
        if key in before:
            line = _first_difference(texts[0](before[key]), texts[1](place)) or "the same program; JAX does not keep it"
        found.append(
            _named(second.programs[place], f": {line}" if line else ": the first process made no such program")
        )
    return found


def _repeated(one: Started, text: Texts) -> list[str]:
    """Programs that came out of an empty cache, or have the text of an earlier one: JAX does not keep all."""
    seen: set[str] = set()
    found = []
    for place, program in enumerate(one.programs):
        text_here = text(place)
        if program.loaded or (text_here and text_here in seen):
            found.append(_named(program))
        seen.add(text_here)
    return found


def _places(programs: Sequence[Program]) -> dict[tuple[str, int], int]:
    """The place of each program, by its function and its number among that one's programs."""
    seen: Counter[str] = Counter()
    found = {}
    for place, one in enumerate(programs):
        found[one.function, seen[one.function]] = place
        seen[one.function] += 1
    return found


def _named(program: Program, more: str = "") -> str:
    return f"{program.function}{f' at {program.where}' if program.where else ''}{more}"


def _first_difference(before: str, now: str) -> str:
    lines = difflib.unified_diff(before.splitlines(), now.splitlines(), lineterm="", n=0)
    pair = [line[1:].strip()[:_LINE] for line in lines if line[:1] in "-+" and not line.startswith(("---", "+++"))]
    return " → ".join(pair[:2])
