"""What the tests of a project compile beyond what is known of them.

Caches are shared: the test that is first compiles for those that come after. So nothing is held against a test: one process may
compile a function for some arguments as often as one process did when all tests ran in it, whichever tests it runs and in which
order, and JAX's own functions may as often be compiled to a program that there was.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jaxgate.ext.watch.model import Key, Lock, Made, Seen, most_facts, repeated
from jaxgate.model.words import plural

UPDATE = "pytest --perf-watch=update"
SLACK = 0.01
"""Share by which a fact may grow."""
TWICE, SPARE = 2, 10
"""How many times as often JAX's own functions may be compiled again, and how many more: calls that differ for JAX alone, by their
context or by how a number was typed, share an entry of its caches or not by which of them is the first. In three orders of Chex's
586 tests `add` came to 4 and to 8."""


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that is otherwise than known."""

    text: str
    cause: str = ""


def changes(known: Lock, seen: Sequence[Seen], *, strict: bool = False) -> Iterator[Change]:
    """What is worse, the surest first; at least one process has seen something.

    With ``strict`` a run of new tests alone is red, as nothing is held against anything then.
    """
    jax, hardware = seen[0].jax, seen[0].hardware
    if known.jax != jax:
        yield Change(f"expected jax {known.jax}, as recorded, found {jax}", f"record it again: {UPDATE}")
        return
    if strict and not any(known.knows(test) for one in seen for test in one.tests):
        yield Change("expected tests that the lock file knows, found none", f"record them: {UPDATE}")
    yield from _more(known, seen)
    yield from _again(known, seen)
    yield from _unknown(known, seen)
    if known.hardware == hardware:
        yield from _larger(known, seen)


def new_tests(known: Lock, seen: Sequence[Seen]) -> list[str]:
    """Tests that are not known yet."""
    return sorted({test for one in seen for test in one.tests if not known.knows(test)})


def _more(known: Lock, seen: Sequence[Seen]) -> Iterator[Change]:
    """Functions that are compiled more often, for whichever arguments."""
    by_function: dict[str, list[tuple[Key, int, Made]]] = defaultdict(list)
    for one in seen:
        ours = _of_known_tests(known, one.of_project())
        for key, count in sorted(Counter(made.key for made in ours).items()):
            before = known.programs.get(key)
            if before is not None and count > before.compiles + one.cleared:
                last = next(made for made in reversed(ours) if made.key == key)
                by_function[key.function].append((key, count, last))
    for function, found in by_function.items():
        key, count, made = max(found, key=lambda one: one[1])
        text = f"{function} is compiled {count} times for {key.told}, {known.programs[key].compiles} before"
        yield Change(f"{text}{_others(len(found))}", f"{made.named} in {made.test}{_because(made)}")


def _again(known: Lock, seen: Sequence[Seen]) -> Iterator[Change]:
    """JAX's own functions that are compiled to programs that there were."""
    functions = {key.function for key in known.programs}
    for one in seen:
        ours = _of_known_tests(known, one.of_jax())
        again = repeated(ours)
        for function, count in sorted(Counter(made.function for made in again).items()):
            before = known.again.get(function, 0)
            different = len({made.program for made in ours if made.function == function})
            allowed = before * TWICE + SPARE + one.cleared * different
            if function not in functions and count > allowed:
                test, most = Counter(made.test for made in again if made.function == function).most_common(1)[0]
                last = next(made for made in reversed(again) if made.function == function and made.test == test)
                text = f"{function}, called outside of jit, is compiled {count} times to a program that there was"
                yield Change(f"{text}, {before} before", f"{last.named}, {most} × in {test}")


def _unknown(known: Lock, seen: Sequence[Seen]) -> Iterator[Change]:
    """Functions compiled for unknown arguments; of several kinds the first is told."""
    by_function: dict[str, dict[Key, Made]] = defaultdict(dict)
    for made in (made for one in seen for made in _of_known_tests(known, one.of_project())):
        if made.key not in known.programs:
            by_function[made.function].setdefault(made.key, made)
    functions = {key.function for key in known.programs}
    for function, found in sorted(by_function.items()):
        made = next(iter(found.values()))
        what = "for other arguments than known" if function in functions else "which no test compiled before"
        text = f"{function} is compiled {what}: {made.key.told}{_others(len(found))}"
        yield Change(text, f"{made.named} in {made.test}{_because(made)}")


def _larger(known: Lock, seen: Sequence[Seen]) -> Iterator[Change]:
    """Functions whose programs need more; of several programs the first is told."""
    ours = [made for one in seen for made in _of_known_tests(known, one.of_project())]
    by_function: dict[str, list[tuple[Key, str]]] = defaultdict(list)
    for key, now in sorted(most_facts(ours).items()):
        before = known.programs[key].facts if key in known.programs else {}
        worse = [
            f"{name} {before[name]:,} → {value:,}"
            for name, value in sorted(now.items())
            if name in before and value > before[name] * (1 + SLACK)
        ]
        if worse:
            by_function[key.function].append((key, ", ".join(worse)))
    for function, found in by_function.items():
        key, more = found[0]
        made = next(made for made in ours if made.key == key)
        text = f"{function} needs more for {key.told}: {more}{_others(len(found))}"
        yield Change(text, f"{made.named} in {made.test}")


def _of_known_tests(known: Lock, made: Sequence[Made]) -> list[Made]:
    return [one for one in made if known.knows(one.test)]


def _others(number: int) -> str:
    return f"; likewise for {plural(number - 1, 'other kind')} of arguments" if number > 1 else ""


def _because(made: Made) -> str:
    return f": {made.cause}" if made.cause else ""
