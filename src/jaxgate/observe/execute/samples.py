"""Times of the subject: a bounded sample of bursts of warm calls, and who traced in one that did; and single calls.

Python's part of a call is timed in place: the subject as it is called, in turn with its own executable on the same
arrays, so that what differs is how a call gets there: trees that are flattened, static arguments that are hashed. Eight
such pairs of programs gave the same figure to a few µs on a machine with ten times the load that it has cores for.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median, quantiles

import jax

from jaxgate.model.computation import STEPS, Computation
from jaxgate.model.measurement import MAX_NAMED, InvalidCaseError
from jaxgate.model.numbers import Contract, Samples
from jaxgate.model.words import plural
from jaxgate.observe.arguments.carry import NextArgs, advance
from jaxgate.observe.arguments.feeder import Call
from jaxgate.observe.arguments.lockstep import ALONE, Lockstep
from jaxgate.observe.arguments.signature import ArgumentKey, argument_keys, explain
from jaxgate.observe.arguments.static import dynamic_leaves
from jaxgate.observe.compat import flat_executable
from jaxgate.observe.errors import guarded
from jaxgate.observe.execute.steps import Misses, Stepped, following
from jaxgate.observe.execute.subjects import JittedSubject, Subject
from jaxgate.observe.machine.process import has_own_threads
from jaxgate.observe.tools import Tools
from jaxgate.observe.trace.clocks import Clock, OwnTime, WallTime
from jaxgate.observe.trace.compile_events import Events, record
from jaxgate.observe.trace.retraces import Blame, retrace_lines
from jaxgate.observe.trace.stages import Program

SAMPLE_BURST_NS = 2_000_000
SAMPLE_NS = 120_000_000
MAX_BURSTS = 20
MIN_BURSTS = 3
MAX_SAMPLE_CALLS = 1_000
"""Calls of a burst: the sample takes about 0.1 s, for the eye and for pytest-benchmark's row, and never gates."""
MAX_SINGLES = 200
SINGLES_NS = 1_000_000_000
"""Time of the single calls of a latency case: enough for p99, at most a second."""
AHEAD_NS = 1_000_000_000
"""Call such a subject this long before timing: an unread prefetch buffer is full and makes first calls too fast."""
TIMED_CALLS = 20
"""Calls that are timed one by one for their median."""
MAX_REPLAYED = 100
"""Calls that are made again at most: state that never settles shows in the first few."""
MAX_PAIRS = 20
MIN_PAIRS = 5
BUDGET_NS = 50_000_000
"""Time of all pairs together; a call that is too long for the fewest of them is not timed."""
SPREAD_NS = 50_000
"""Nothing is known if the middle half of the differences spreads wider than this, and than their median."""
INLINE = frozenset({"cpu"})
"""Platforms that may run a program before the call returns: the time of a launch is not its own there."""


@dataclass(slots=True, kw_only=True)
class Sampled(Misses):
    """A bounded sample, and what was traced and compiled in it; plain Python has no ``retraces``, its steps say why."""

    samples: Samples


def _use_up(subject: Subject, next_args: NextArgs | None, clock: Clock) -> None:
    """Call plain Python for a while before it is timed, to use up what its threads made ahead."""
    end, call = clock() + AHEAD_NS, subject.fresh()
    with guarded("calling the subject"):
        while clock() < end:
            output = subject.call(call)
            call = following(subject, next_args, output, call) or subject.again(call)


def sample(
    subject: Subject, stepped: Stepped, tools: Tools, *, apart: bool, contract: Contract = "throughput"
) -> Sampled:
    """Time bursts of calls within a fixed budget, the state threaded as in the steps before.

    Every burst starts from the same fresh arguments, made outside the clock, so that a training step does not drift
    into other numbers (or denormal ones) while it is timed. The first burst that traces or compiles is the last.
    Where nothing is to be timed, one burst of one call shows the counters. If ``next_args`` does more than moving arrays
    (an input pipeline), it is not timed: ``apart`` waits for each call alone.
    """
    next_args, clock, together = stepped.next_args, tools.clocks.wall, tools.together
    calls = rounds = 1
    if tools.sampling:
        tools.progress("sampling")
        if not subject.name and together is ALONE and has_own_threads():
            _use_up(subject, next_args, clock)
        calls, rounds = plan(stepped.call_ns, consumed=subject.consumes and next_args is None, contract=contract)
    calls, rounds = together.first("calls of a burst, and bursts", (calls, rounds))
    burst = calls_apart if apart else calls_in_a_row
    bursts, heard = [], Events()
    for _ in range(rounds):
        call = subject.fresh()
        with record(others=not subject.name) as events, guarded("sampling the subject"):
            bursts.append(burst(subject, call, next_args, calls=calls, clock=clock))
        heard.log += events.log
        if together is ALONE and _missed(subject, events):
            break  # it is red, and each further call may compile for seconds
    traces, missed = heard.traces_of(subject.name), _missed(subject, heard)
    retraces: list[str] = []
    if subject.name and together.anyone("calling the sample again", missed):
        again = _call_again(subject, next_args, calls=calls, word="retraced" if traces else "recompiled")
        retraces = again if missed else []
    return Sampled(
        samples=Samples(bursts_ns=tuple(bursts), calls_per_burst=calls, contract=contract),
        traces=traces,
        compiles=len(heard.compiles),
        lowerings=len(heard.lowerings),
        cache_hits=len(heard.cache_hits),
        retraces=retraces,
    )


def _missed(subject: Subject, heard: Events) -> bool:
    return bool(heard.traces_of(subject.name) or heard.lowerings or heard.compiles)


def plan(call_ns: int, *, consumed: bool, contract: Contract) -> tuple[int, int]:
    """Calls in a burst, and bursts; one call each if it consumes its arguments and gives none for the next."""
    if contract == "latency":
        return 1, min(MAX_SINGLES, max(MIN_BURSTS, SINGLES_NS // max(call_ns, 1)))
    calls = 1 if consumed else min(MAX_SAMPLE_CALLS, max(1, math.ceil(SAMPLE_BURST_NS / max(call_ns, 1))))
    return calls, min(MAX_BURSTS, max(MIN_BURSTS, SAMPLE_NS // max(call_ns * calls, 1)))


def calls_in_a_row(subject: Subject, call: Call, next_args: NextArgs | None, *, calls: int, clock: Clock) -> int:
    """Nanoseconds of some calls in a row, until the result of the last one is there."""
    function, (args, kwargs) = subject.function, call
    begin = clock()
    output = function(*args, **kwargs)
    for _ in range(calls - 1):
        if next_args is not None:
            args = next_args(output, args) or args  # as ``advance`` does; one Python call less under the clock
        output = function(*args, **kwargs)
    subject.wait(output, (args, kwargs))
    return clock() - begin


def calls_apart(subject: Subject, call: Call, next_args: NextArgs | None, *, calls: int, clock: Clock) -> int:
    """Nanoseconds of some calls, each waited for; the next arguments are made and brought to the device off the clock."""
    spent_ns = 0
    for remaining in reversed(range(calls)):
        begin = clock()
        output = subject.call(call)
        spent_ns += clock() - begin
        if remaining:
            call = subject.placed(advance(next_args, output, call) or call)
    return spent_ns


def _call_again(subject: Subject, next_args: NextArgs | None, *, calls: int, word: str) -> list[str]:
    """Make the calls of a burst and one more, explained: who traces again, or whose arguments changed.

    Bursts under the clock are not explained, and what they traced is in JAX's caches by now: the argument that changed
    is named from the signatures. First calls, which the threaded steps had made before, are blamed last.

    Returns:
        Lines, the root cause first; never empty.
    """
    arguments = subject.fresh()
    blame = Blame(complete=True)
    again: list[str] = []
    moved: dict[int, str] = {}
    known: list[tuple[ArgumentKey, ...]] = []
    for number in range(1, min(calls, MAX_REPLAYED) + 2):
        seen = argument_keys(*arguments, subject.names, subject.static)
        with record(explain=True, others=not subject.name) as events, guarded("calling the subject again"):
            output = subject.call(arguments)
        name = f"call {number} of the sample"
        culprits = blame.culprits(events)
        before = known[-1] if known else seen
        if culprits:
            again += retrace_lines(name, culprits, subject=subject.name, before=before, after=seen, names=subject.names)
        elif known and seen not in known:
            moved[number] = f"{name} {word}: {explain(before, seen)}"
        known.append(seen)
        if next_args is None:
            arguments = subject.again(arguments)
        else:
            arguments = advance(next_args, output, arguments) or arguments
    late = [line for number, line in moved.items() if number > STEPS]
    lines = late or list(moved.values()) or again
    return lines[:MAX_NAMED] or [f"the sample {word}, the same calls made again did not: cause unknown"]


def launch_time(subject: Subject, *, platform: str, clock: Clock) -> int | None:
    """Median time until a warm call returns that nobody waits for; ``None`` where it may run inline."""
    if platform in INLINE:
        return None
    return _median_ns(subject, TIMED_CALLS, WallTime(clock), what="launches", waited=False)


def call_time(subject: Subject, call_ns: int, *, own: OwnTime, together: Lockstep = ALONE) -> int:
    """Median time of a warm call, waited for; ``call_ns``, the time of one, says how many there may be."""
    (count,) = together.first("timed calls", (min(TIMED_CALLS, max(MIN_BURSTS, SAMPLE_NS // max(call_ns, 1))),))
    return _median_ns(subject, count, own, what="calls", waited=True)


def _median_ns(subject: Subject, count: int, watch: OwnTime | WallTime, *, what: str, waited: bool) -> int:
    """The median of ``count`` calls, each on fresh arguments; every one is waited for, under the watch or after it."""
    taken = []
    for _ in range(count):
        call = subject.fresh()
        with guarded(f"timing {what} of the {subject.role}"):
            watch.start()
            output = subject.function(*call[0], **call[1])
            if waited:
                subject.wait(output, call)
            taken.append(watch.read())
            if not waited:
                subject.wait(output, call)
    return round(median(taken))


def dispatch_time(subject: JittedSubject, program: Program, *, call_ns: int, clock: Clock) -> int | None:
    """Median time that a warm call takes longer than its executable, called with its arrays; never below 0.

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


def describe_retraces(*calls: Misses) -> tuple[str, ...]:
    """Who traced or compiled again, the root cause first, and what the persistent cache hid of it."""
    lines = [line for one in calls for line in one.retraces]
    hits = sum(one.cache_hits for one in calls)
    if lines and hits:
        lines[0] += f" ({hits} of {sum(one.compiles for one in calls)} compiles out of the persistent cache)"
    return tuple(lines)


def refuse_retraces(stepped: Stepped, computation: Computation, tools: Tools) -> None:
    """Refuse to record a case whose first calls trace more often than expected: timing it would be in vain.

    Raises:
        InvalidCaseError: If they do.
    """
    traces, expected = 1 + stepped.traces, computation.expected_traces
    if tools.recording and traces > expected:
        who = "; ".join(describe_retraces(stepped)[:1])
        raise InvalidCaseError(
            f"the first {STEPS} calls",
            f"expected {plural(expected, 'trace')}, found {traces} ({who}); a case that retraces is not recorded: jit once, outside of "
            f"what is called, or say expected_traces={traces} where it is by design",
        )
