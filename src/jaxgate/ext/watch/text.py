"""The report of a watched run: where the time of a suite goes, and what it makes more than once."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from jaxgate.ext.watch.model import Made, Seen, repeated
from jaxgate.model.words import plural

MOST = 10
"""Functions that are told; half as many tests."""
_LEAST_S = 0.1
"""Seconds that a line must be worth."""
_FASTER = 1.2
"""How many times faster a test must become to be told."""


def report(seen: Sequence[Seen]) -> Iterator[str]:
    """The lines of the report; none where no test ran."""
    tests: dict[str, float] = {}
    for one in seen:
        tests |= one.tests
    if not tests:
        return
    made = [made for one in seen for made in one.made]
    total = sum(tests.values())
    traced, compiled = sum(one.traced_s for one in made), sum(one.compiled_s for one in made)
    programs = sum(bool(one.program) for one in made)
    yield (
        f"{plural(len(tests), 'test')} in {total:.1f} s, {(traced + compiled) / max(total, 1e-9):.0%} of it making programs: "
        f"tracing {traced:.1f} s, compiling {compiled:.1f} s; {plural(programs, 'program')}"
    )
    yield from _functions([found for one in seen for found in repeated(one.made)])
    yield from _tests(tests, repeated(made, by_anybody=False))


def _functions(again: Sequence[Made]) -> Iterator[str]:
    by_function: dict[tuple[str, str], list[Made]] = defaultdict(list)
    for one in again:
        by_function[one.function, one.where].append(one)
    ranked = sorted(by_function.values(), key=lambda found: -sum(one.seconds for one in found))
    told = [found for found in ranked if sum(one.seconds for one in found) >= _LEAST_S][:MOST]
    if told:
        yield "made again, though the same program had been made:"
    for found in told:
        tests = Counter(one.test for one in found)
        (test, most), *_ = tests.most_common(1)
        others = f", {most} × in {test}" if most > 1 else f" in {plural(len(tests), 'test')}"
        cause = next((f": {one.cause}" for one in reversed(found) if one.cause), "")
        lost = sum(one.seconds for one in found)
        yield f"  {len(found):>5} ×  {lost:>6.1f} s  {found[0].named}{others}{cause}"


def _tests(tests: dict[str, float], again: Sequence[Made]) -> Iterator[str]:
    lost: dict[str, float] = defaultdict(float)
    for one in again:
        if one.test in tests:
            lost[one.test] += one.seconds
    most = sorted(lost.items(), key=lambda item: -item[1])[: MOST // 2]
    times = [(test, tests[test], tests[test] - seconds) for test, seconds in most if seconds >= _LEAST_S]
    told = [(test, now, then) for test, now, then in times if now > _FASTER * then > 0]
    if told:
        yield "tests that would be faster if they made each program once:"
    for test, now, then in told:
        yield f"  {now:>6.1f} → {then:.1f} s ({now / then:.1f} ×)  {test}"
