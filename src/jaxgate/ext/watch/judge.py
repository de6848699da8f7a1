"""What the tests of a project compile beyond what is known of them.

Caches are shared: the test that is first compiles for those that come after, in every process. So a key may be compiled as often in
one process as when all tests were, whichever tests run there; and a test may make no more programs twice than it did.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jaxgate.ext.watch.model import Key, Lock, Made, Seen, most_facts, repeated
from jaxgate.model.words import plural

SLACK = 0.01
"""Share by which a fact may grow."""


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that is otherwise than known."""

    text: str
    cause: str = ""
    function: str = ""  # the name of the function that leads


def changes(known: Lock, seen: Sequence[Seen], *, jax: str, hardware: str) -> Iterator[Change]:
    """What is worse, the surest first.

    Args:
        known: What the lock file says.
        seen: What each process saw.
        jax: The version of today.
        hardware: Where facts were taken today.
    """
    if known.jax != jax:
        yield Change(
            f"expected jax {known.jax}, as recorded, found {jax}", "record it again: pytest --perf-watch=update"
        )
        return
    again = list(_again(known, seen))
    yield from again
    told = {change.function for change in again}
    yield from (change for change in _more(known, seen) if change.function not in told)
    yield from _unknown(known, seen)
    if known.hardware == hardware:
        yield from _larger(known, seen)


def new_tests(known: Lock, seen: Sequence[Seen]) -> list[str]:
    """Tests that are not known yet."""
    return sorted({test for one in seen for test in one.tests if known.again(test) is None})


def _again(known: Lock, seen: Sequence[Seen]) -> Iterator[Change]:
    by_test: dict[str, list[Made]] = defaultdict(list)
    for one in (one for process in seen for one in repeated(process.made)):
        by_test[one.test].append(one)
    for test, made in sorted(by_test.items()):
        before = known.again(test)
        if before is not None and len(made) > before:
            (function, _), count = Counter(one.same for one in made).most_common(1)[0]
            last = next(one for one in reversed(made) if one.function == function)
            text = f"{test} makes {plural(len(made), 'program')} again that it had made, {before} before"
            yield Change(text, f"{last.named}, {count} × the same{_because(last)}", function)


def _more(known: Lock, seen: Sequence[Seen]) -> Iterator[Change]:
    for one in seen:
        ours = [made for made in one.made if made.is_known and known.again(made.test) is not None]
        for key, count in sorted(Counter(made.key for made in ours).items()):
            before = known.programs.get(key)
            if before is not None and count > before.compiles + one.cleared:
                last = next(made for made in reversed(ours) if made.key == key)
                text = f"{key.function} is compiled {count} times for {key.arguments}, {before.compiles} before"
                yield Change(text, f"{last.named}{_because(last)}", last.function)


def _unknown(known: Lock, seen: Sequence[Seen]) -> Iterator[Change]:
    """Functions that are compiled for what nobody knew; of several kinds of arguments the first one is told."""
    by_function: dict[str, dict[Key, Made]] = defaultdict(dict)
    for made in (made for one in seen for made in one.made):
        if made.is_known and made.key not in known.programs and known.again(made.test) is not None:
            by_function[made.key.function].setdefault(made.key, made)
    functions = {key.function for key in known.programs}
    for function, found in sorted(by_function.items()):
        made = next(iter(found.values()))
        what = "for other arguments than known" if function in functions else "which no test compiled before"
        others = f", and {len(found) - 1} more" if len(found) > 1 else ""
        text = f"{function} is compiled {what}: {made.arguments}{others}"
        yield Change(text, f"{made.named} in {made.test}{_because(made)}", made.function)


def _larger(known: Lock, seen: Sequence[Seen]) -> Iterator[Change]:
    """Functions whose programs need more; of several for other arguments the first one is told."""
    ours = [made for one in seen for made in one.made if made.is_known and known.again(made.test) is not None]
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
        others = f"; so for {plural(len(found) - 1, 'other kind')} of arguments" if len(found) > 1 else ""
        yield Change(f"{function} needs more: {more}{others}", f"{made.named} in {made.test}", made.function)


def _because(made: Made) -> str:
    return f": {made.cause}" if made.cause else ""
