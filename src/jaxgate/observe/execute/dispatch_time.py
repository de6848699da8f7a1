"""Python's part of a call, timed in place: the subject as it is called, in turn with its own executable.

Both sides run the same program on the same arrays, so that what differs is how a call gets there: trees that are
flattened, static arguments that are hashed. Eight such pairs of programs gave the same figure to a few µs on a machine
with ten times the load that it has cores for.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import quantiles

import jax

from jaxgate.observe.arguments import Call, dynamic_leaves
from jaxgate.observe.compat import flat_executable
from jaxgate.observe.errors import guarded
from jaxgate.observe.execute.subjects import JittedSubject
from jaxgate.observe.trace import Clock, Program

MAX_PAIRS = 20
MIN_PAIRS = 5
BUDGET_NS = 50_000_000
"""What all pairs may take; a call that is too long for the fewest of them is not timed."""
SPREAD_NS = 50_000
"""The middle half of the differences lies closer together than this, or than their median, or nothing is known."""


def dispatch_time(subject: JittedSubject, program: Program, *, call_ns: int, clock: Clock) -> int | None:
    """Median time that a warm call takes longer than its executable, called with its arrays; never below 0.

    Args:
        subject: Warm.
        program: Its own.
        call_ns: Time of one call.
        clock: Monotonic nanoseconds.

    Returns:
        Nanoseconds; ``None`` if the call is too long, the times are too far apart, or this release of JAX has no
        such call.
    """
    executable = flat_executable(program.executable)
    if executable is None or 2 * MIN_PAIRS * call_ns > BUDGET_NS:
        return None

    def as_called(call: Call) -> int:
        begin = clock()
        jax.block_until_ready(subject.function(*call[0], **call[1]))
        return clock() - begin

    def flat(call: Call) -> int:
        leaves = dynamic_leaves(program.lowered.stage, *call)
        begin = clock()
        jax.block_until_ready(executable(*leaves))
        return clock() - begin

    with guarded("timing Python's part of a call"):
        try:
            flat(subject.fresh())
        except (TypeError, ValueError):  # it does not take what the function takes
            return None
        return _difference(lambda: as_called(subject.fresh()), lambda: flat(subject.fresh()))


def _difference(ours: Callable[[], int], theirs: Callable[[], int]) -> int | None:
    """Time both in turn, each first as often as the other."""
    pairs: list[tuple[int, int]] = []
    while len(pairs) < MAX_PAIRS:
        if len(pairs) % 2:
            other, one = theirs(), ours()
        else:
            one, other = ours(), theirs()
        pairs.append((one, other))
        if len(pairs) >= MIN_PAIRS and sum(map(sum, pairs)) > BUDGET_NS:
            break
    differences = [one - other for one, other in pairs]
    low, middle, high = quantiles(differences, n=4)
    if high - low > max(SPREAD_NS, middle):
        return None
    return max(0, round(middle))
