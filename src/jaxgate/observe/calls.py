"""Real calls of the subject: a few steps with the state threaded through, then a bounded sample."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import jax
import numpy as np

from jaxgate.model import Contract, InvalidCaseError, Samples
from jaxgate.observe.again import NextArgs, call_again, static_names
from jaxgate.observe.compiling import Clock, Lowered
from jaxgate.observe.events import record
from jaxgate.observe.failures import guarded
from jaxgate.observe.feeding import Call, Feeder, on_device
from jaxgate.observe.retraces import Blame, retrace_lines
from jaxgate.observe.shards import on_host, pieces
from jaxgate.observe.signature import Seen, leaves_with_paths, see
from jaxgate.observe.together import ALONE, Together

STEPS = 3
"""Threaded steps: the commonest retrace comes at the second, and shows whether it settles at the third."""

BURST_NS = 2_000_000
BUDGET_NS = 120_000_000
MAX_BURSTS = 20
MIN_BURSTS = 3
MAX_CALLS = 1_000
"""The sample is for the eye and for pytest-benchmark's row: about 0.1 s, never gated."""
MAX_SINGLES = 200
SINGLES_NS = 1_000_000_000
"""Single calls of a latency case: enough for p99, at most a second."""
LAUNCHES = 20
INLINE = frozenset({"cpu"})
"""Platforms that may run a program before the call returns: the time of a launch is not its own there."""


@dataclass(slots=True)
class Stepped:
    """What the threaded steps showed.

    Attributes:
        traces: Traces of the subject after the first one, which lowering did.
        lowerings: Programs that were lowered on the way: by the subject, or by anything it called.
        compiles: Programs that the backend was asked to compile for them.
        cache_hits: How many of ``compiles`` the persistent cache answered; the others were compiled.
        retraces: For each step that traced or compiled one line per function, the root cause first.
        first_fed: Arguments of the first step, as the call left them: some are consumed.
        first_output: Output of the first step, on the host.
        first_call_ns: Time of the first call, its executable being ready.
        call_ns: Time of the last step, to plan the sample with.
        next_args: Threads the state in later calls too; ``None`` if nothing is threaded.
    """

    traces: int = 0
    lowerings: int = 0
    compiles: int = 0
    cache_hits: int = 0
    retraces: list[str] = field(default_factory=list)
    first_fed: Call = ((), {})
    first_output: Any = None
    first_call_ns: int = 0
    call_ns: int = 0
    next_args: NextArgs | None = None


def take_steps(lowered: Lowered, feeder: Feeder, next_args: NextArgs | None, *, clock: Clock) -> Stepped:
    """Call the subject ``STEPS`` times, each step fed from the one before.

    Raises:
        InvalidCaseError: If a call fails, or the result is not a number.
    """
    stepped = Stepped(next_args=next_args)
    args, kwargs = feeder.fresh()
    static = static_names(lowered, kwargs)
    blame = Blame(complete=True)
    before: tuple[Seen, ...] = ()
    for step in range(1, STEPS + 1):
        seen = see(args, kwargs, lowered.names, static)
        with record(explain=True) as events, guarded(f"step {step} of the subject"):
            begin = clock()
            output = jax.block_until_ready(lowered.function(*args, **kwargs))
            stepped.call_ns = clock() - begin
        if step == 1:
            stepped.first_call_ns = stepped.call_ns
            stepped.first_fed = (args, kwargs)
            stepped.first_output = jax.tree.map(on_host, output)
        culprits = blame.culprits(events)
        if step == 1:  # the first call may compile helpers that place its arguments (pmap does), but not the subject
            culprits = [culprit for culprit in culprits if culprit.function == lowered.name]
        if step == 1 and culprits:
            stepped.retraces.append(f"step 1 {culprits[0].word}: the first call missed the traced program")
        elif culprits:
            name = f"step {step}"
            stepped.retraces += retrace_lines(
                name, culprits, subject=lowered.name, before=before, after=seen, names=lowered.names
            )
        stepped.traces += events.traces_of(lowered.name)
        stepped.lowerings += sum(culprit.lowerings for culprit in culprits)
        stepped.compiles += sum(culprit.compiles for culprit in culprits)
        stepped.cache_hits += sum(culprit.cache_hits for culprit in culprits)
        before = seen
        if step == STEPS:
            refuse_nan(output, f"the subject's result at step {step}")
        else:
            args, kwargs = _feed(feeder, stepped, output, args, kwargs)
    return stepped


def _feed(feeder: Feeder, stepped: Stepped, output: Any, args: tuple[Any, ...], kwargs: Any) -> Call:
    if stepped.next_args is not None:
        with guarded("threading the state into the next step"):
            following = stepped.next_args(output, args)
        if following is not None:
            return on_device(following, kwargs)
        stepped.next_args = None
    return feeder.fresh()


def refuse_nan(output: Any, what: str) -> None:
    """Refuse an output that holds a NaN: its time and its agreement would mean nothing.

    Raises:
        InvalidCaseError: If a leaf holds one; names the leaf.
    """
    for path, leaf in leaves_with_paths((output,), {}, ("result",)):
        for _, values in pieces(on_host(leaf)):
            if values.dtype.kind not in "fcV":  # V: bfloat16, float8 and the like
                continue
            try:
                broken = int(np.isnan(values.astype(np.complex128 if values.dtype.kind == "c" else np.float64)).sum())
            except (TypeError, ValueError):
                continue  # an opaque dtype that has no NaN
            if broken:
                raise InvalidCaseError(
                    f"checking {what}", f"expected numbers, found {broken} NaN of {values.size} in {path}"
                )


@dataclass(frozen=True, slots=True)
class Sampled:
    """A bounded sample and what JAX traced and compiled during it (all must be 0).

    Attributes:
        samples: The times.
        traces: Traces of the subject.
        compiles: Programs that the backend was asked to compile, whoever's.
        lowerings: Programs that were lowered.
        cache_hits: How many of ``compiles`` the persistent cache answered.
        retraces: Who is to blame, the root cause first.
    """

    samples: Samples
    traces: int
    compiles: int
    lowerings: int = 0
    cache_hits: int = 0
    retraces: tuple[str, ...] = ()


def take_samples(
    lowered: Lowered,
    feeder: Feeder,
    next_args: NextArgs | None,
    *,
    call_ns: int,
    single: bool,
    apart: bool,
    clock: Clock,
    contract: Contract = "pipelined",
    together: Together = ALONE,
) -> Sampled:
    """Time bursts of calls within a fixed budget.

    Every burst starts from the same fresh arguments, made outside the clock, so that a training step does
    not drift into other numbers (or denormal ones) while it is timed.

    Args:
        lowered: The subject, compiled and warm.
        feeder: Makes the arguments of a burst.
        next_args: Threads the state within a burst.
        call_ns: Time of one warm call, to plan with.
        single: Take one burst of one call: only the counters matter.
        apart: ``next_args`` does more than moving arrays (an input pipeline), so that it must not run under
            the clock: each call is waited for alone.
        clock: Monotonic nanoseconds.
        contract: What the time of a call means; ``blocked`` makes each burst a single call.
        together: The ranks that take the sample: all of them make the same calls.
    """
    calls, rounds = plan(call_ns, consumed=feeder.copies and next_args is None, contract=contract)
    if single:
        calls = rounds = 1
    calls, rounds = together.first("calls of a burst, and bursts", (calls, rounds))
    bursts = []
    traces = lowerings = compiles = hits = 0
    for _ in range(rounds):
        args, kwargs = feeder.fresh()
        with record() as events, guarded("sampling the subject"):
            burst = _calls_apart if apart else _burst
            bursts.append(burst(lowered.function, (args, kwargs), next_args, calls=calls, clock=clock))
        traces += events.traces_of(lowered.name)
        lowerings += len(events.lowerings)
        compiles += len(events.compiles)
        hits += len(events.cache_hits)
    retraces: tuple[str, ...] = ()
    missed = bool(traces or lowerings or compiles)
    if together.anyone("calling the sample again", missed):
        word = "retraced" if traces else "recompiled"
        again = call_again(lowered, feeder, next_args, calls=calls, settled=STEPS, word=word)
        retraces = again if missed else ()
    return Sampled(
        samples=Samples(bursts_ns=tuple(bursts), calls_per_burst=calls, contract=contract),
        traces=traces,
        compiles=compiles,
        lowerings=lowerings,
        cache_hits=hits,
        retraces=retraces,
    )


def plan(call_ns: int, *, consumed: bool, contract: Contract) -> tuple[int, int]:
    """Calls in a burst, and bursts.

    Args:
        call_ns: Time of one warm call.
        consumed: Whether a call consumes its arguments and gives none for the next.
        contract: What the time of a call means.
    """
    if contract == "blocked":
        return 1, min(MAX_SINGLES, max(MIN_BURSTS, SINGLES_NS // max(call_ns, 1)))
    calls = 1 if consumed else min(MAX_CALLS, max(1, math.ceil(BURST_NS / max(call_ns, 1))))
    return calls, min(MAX_BURSTS, max(MIN_BURSTS, BUDGET_NS // max(call_ns * calls, 1)))


def host_time(lowered: Lowered, feeder: Feeder, *, platform: str, clock: Clock) -> int | None:
    """Median time until a call returns that nobody waits for; ``None`` where it may run inline.

    Args:
        lowered: The subject, compiled and warm.
        feeder: Makes the arguments of each call.
        platform: Where it runs.
        clock: Monotonic nanoseconds.
    """
    if platform in INLINE:
        return None
    taken = []
    for _ in range(LAUNCHES):
        args, kwargs = feeder.fresh()
        with guarded("timing launches of the subject"):
            begin = clock()
            output = lowered.function(*args, **kwargs)
            taken.append(clock() - begin)
            jax.block_until_ready(output)
    return round(median(taken))


def _burst(function: Any, call: Call, next_args: NextArgs | None, *, calls: int, clock: Clock) -> int:
    args, kwargs = call
    begin = clock()
    output = function(*args, **kwargs)
    for _ in range(calls - 1):
        if next_args is not None:
            args = next_args(output, args) or args
        output = function(*args, **kwargs)
    jax.block_until_ready(output)
    return clock() - begin


def _calls_apart(function: Any, call: Call, next_args: NextArgs | None, *, calls: int, clock: Clock) -> int:
    """Like ``_burst``, the clock standing while the next arguments are made and brought to the device."""
    args, kwargs = call
    spent_ns = 0
    for remaining in reversed(range(calls)):
        begin = clock()
        output = jax.block_until_ready(function(*args, **kwargs))
        spent_ns += clock() - begin
        if remaining and next_args is not None:
            args, _ = jax.block_until_ready(on_device(next_args(output, args) or args, {}))
    return spent_ns
