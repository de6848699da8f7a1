"""From two starts to a verdict. No baseline is needed: what one process compiled, the next one loads."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from jaxgate.ext.start.model import LIMITS, Job, Program, Started
from jaxgate.judge.order import is_red
from jaxgate.model.decision import Status
from jaxgate.model.machine import HardwareKey
from jaxgate.model.measurement import MAX_NAMED
from jaxgate.model.verdict import Cause, Finding, TimeVerdict, Verdict
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
    found = [
        _counted(
            "missed_programs", "the second process compiles again what the first one kept", _missed(starts, texts), job
        ),
        _counted(
            "repeated_programs", "one process asks the compiler again for what it has", _repeated(first, texts[0]), job
        ),
        *_limited(job, first, second),
    ]
    found.sort(key=lambda pair: pair[0].status is Status.SAME)
    worst, where = found[0]
    where = where if worst.status is Status.REGRESSED else ""
    return Verdict(
        case=case,
        hardware=hardware,
        status=worst.status,
        fails=is_red(worst.status, strict=False),
        findings=tuple(finding for finding, _ in found),
        time=TimeVerdict(
            status=Status.SAME, reason=f"{plural(len(first.programs), 'program')}, {first}; with a full cache {second}"
        ),
        causes=(Cause(text=where, explains=frozenset({worst.name}), root=True),) if where else (),
    )


def _counted(name: str, what: str, found: Sequence[str], job: Job) -> tuple[Finding, str]:
    allowed = job.allow.get(name, LIMITS[name])
    if len(found) <= allowed:
        return Finding(kind="claim", name=f"{name} <= {allowed:g}", status=Status.SAME), ""
    detail = f"{what}: {plural(len(found), 'program')}{f', allowed {allowed:g}' if allowed else ''}"
    return Finding(kind="claim", name=name, status=Status.REGRESSED, detail=detail), shortlist(found, MAX_NAMED)


def _limited(job: Job, first: Started, second: Started) -> Iterator[tuple[Finding, str]]:
    if job.programs is not None:
        most = Counter(one.function for one in first.programs).most_common(MAX_NAMED)
        named = shortlist([f"{count} × {name}" for name, count in most], MAX_NAMED)
        yield _limit("programs", job.programs, len(first.programs), "programs until the first result"), named
    if job.seconds is not None:
        most_of_it = max(second.seconds, key=lambda phase: second.seconds[phase])
        told = f"most of it is {most_of_it}: {second.seconds[most_of_it]:.2g} s"
        yield _limit("seconds", job.seconds, second.total_s, "seconds with a full cache"), told


def _limit(name: str, limit: float, found: float, what: str) -> Finding:
    if found <= limit:
        return Finding(kind="claim", name=f"{name} <= {limit:g}", status=Status.SAME)
    return Finding(kind="claim", name=name, status=Status.REGRESSED, detail=f"{found:.3g} {what}, allowed {limit:g}")


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
