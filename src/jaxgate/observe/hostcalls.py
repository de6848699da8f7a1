"""Calls of plain Python around device programs: threaded steps, the first one cold, and a bounded sample."""

from __future__ import annotations

import copy
import gc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import jax
import numpy as np

from jaxgate.model import Contract, InvalidCaseError, Samples
from jaxgate.observe.again import NextArgs
from jaxgate.observe.calls import BUDGET_NS, LAUNCHES, MIN_BURSTS, STEPS, plan, refuse_nan
from jaxgate.observe.compiling import Clock
from jaxgate.observe.events import Events, record
from jaxgate.observe.failures import guarded
from jaxgate.observe.feeding import Call
from jaxgate.observe.retraces import Blame, retrace_lines
from jaxgate.observe.shards import on_host
from jaxgate.observe.signature import Seen, argument_names, see
from jaxgate.observe.threading import Carry
from jaxgate.observe.together import ALONE, Together

VALUES = (np.ndarray, np.generic, bool, int, float, complex, str, bytes)
"""Leaves, besides device arrays, whose values are known; of other objects only the type is."""

_COPIED_WHOLE = (type, FunctionType, BuiltinFunctionType, ModuleType, jax.Array, *VALUES)
"""What a deep copy does not look into."""


@dataclass(slots=True)
class HostSteps:
    """What the threaded steps showed; the first one compiles, the others must not.

    Attributes:
        traces: Traces after the first step, of whatever the subject calls.
        lowerings: Likewise programs lowered.
        compiles: Likewise programs compiled.
        retraces: For each step that traced or compiled one line per function, the root cause first.
        first_output: Result of the first step, on the host.
        first_call_ns: Time of the first step: with all tracing, lowering and compiling.
        call_ns: Time of the last step, to plan the sample with.
        consumed: Places, among the leaves of the arguments, of the arrays that the first step donated.
        devices: Where it ran, by their numbers.
        next_args: Threads the state in later calls too; ``None`` if nothing is threaded.
    """

    traces: int = 0
    lowerings: int = 0
    compiles: int = 0
    retraces: list[str] = field(default_factory=list)
    first_output: Any = None
    first_call_ns: int = 0
    call_ns: int = 0
    consumed: frozenset[int] = frozenset()
    devices: tuple[jax.Device, ...] = ()
    next_args: NextArgs | None = None


class HostSubject:
    """A function on the host and its arguments, which it may donate and change: each series has copies of its own."""

    def __init__(self, function: Callable[..., Any], call: Call, role: str) -> None:
        self.function, self.role = function, role
        self.names = argument_names(function, len(call[0]))
        self._call = call
        self._kept = {id(item): item for item in _compiled(call)}

    def fresh(self) -> Call:
        """Deep copies of the arguments; arrays keep dtype, weak type and placement.

        Raises:
            InvalidCaseError: If one of them cannot be copied.
        """
        try:
            call = copy.deepcopy(self._call, dict(self._kept))
        except Exception as error:
            raise InvalidCaseError(
                "copying the arguments",
                f"expected arguments that copy.deepcopy can copy, as a call may change them; found {error}",
            ) from error
        self.wait(None, call)
        return call

    def arrays(self, output: Any, call: Call) -> list[jax.Array]:
        """The arrays of a result, of the arguments, and of the object that a method belongs to."""
        owner = getattr(getattr(self.function, "__self__", None), "__dict__", {})
        leaves = jax.tree.leaves((output, call, list(owner.values())))
        return [leaf for leaf in leaves if isinstance(leaf, jax.Array) and not leaf.is_deleted()]

    def wait(self, output: Any, call: Call) -> None:
        """Wait for the result, and for what the call changed in its arguments and its object."""
        jax.block_until_ready(self.arrays(output, call))

    def call(self, call: Call) -> Any:
        """Call it once and wait."""
        output = self.function(*call[0], **call[1])
        self.wait(output, call)
        return output

    def on_copies(self, *args: Any, **kwargs: Any) -> Any:
        """Call it with copies of other arguments."""
        args, kwargs = copy.deepcopy((args, kwargs), dict(self._kept))
        return self.function(*args, **kwargs)


def _compiled(value: Any) -> Iterator[Any]:
    """The jitted functions within what a deep copy goes through: a copy of one would compile again."""
    seen: set[int] = set()
    pending = [value]
    while pending:
        item = pending.pop()
        if id(item) in seen or isinstance(item, _COPIED_WHOLE):
            continue
        seen.add(id(item))
        if isinstance(item, (jax.stages.Wrapped, jax.stages.Compiled)):
            yield item
        else:
            pending += gc.get_referents(item)


def take_host_steps(subject: HostSubject, next_args: NextArgs | None, *, clock: Clock) -> HostSteps:
    """Call it ``STEPS`` times, the first time cold: what an earlier call compiled would hide a later miss.

    Raises:
        InvalidCaseError: If a call fails, gives nothing to wait for, or a result that is not a number.
    """
    jax.clear_caches()
    stepped = HostSteps(next_args=next_args)
    call = subject.fresh()
    blame = Blame(complete=True)
    before: tuple[Seen, ...] | None = None
    for step in range(1, STEPS + 1):
        seen, held = see(*call, subject.names), subject.arrays(None, call)
        with record(explain=True) as events, guarded(f"step {step} of the {subject.role}"):
            begin = clock()
            output = subject.call(call)
            stepped.call_ns = clock() - begin
        culprits = blame.culprits(events)
        if before is None:
            stepped.first_call_ns = stepped.call_ns
            stepped.first_output = jax.tree.map(on_host, output)
            learn(stepped, subject, output, call, held)
        elif culprits:
            stepped.retraces += retrace_lines(f"step {step}", culprits, subject="", before=before, after=seen)
            stepped.traces += len(events.traces)
            stepped.lowerings += len(events.lowerings)
            stepped.compiles += len(events.compiles)
        before = seen
        refuse_nan(output, f"the {subject.role}'s result at step {step}")
        if step < STEPS:
            call = _next(subject, stepped, output, call)
    return stepped


def learn(stepped: HostSteps, subject: HostSubject, output: Any, call: Call, held: Sequence[jax.Array]) -> HostSteps:
    """Note what the first call consumed, and where it ran.

    Args:
        stepped: Takes the notes.
        subject: What was called.
        output: Its result.
        call: Its arguments, after the call.
        held: The arrays that were there before.

    Raises:
        InvalidCaseError: If it gives nothing to wait for.
    """
    numbers = [leaf for leaf in jax.tree.leaves(output) if isinstance(leaf, VALUES)]
    old = {id(array) for array in held}
    if not numbers and all(id(array) in old for array in subject.arrays(output, call)):
        raise InvalidCaseError(
            f"step 1 of the {subject.role}",
            "expected something to wait for, found no new array in the result, the arguments and the method's object; "
            "return the loss or the new state",
        )
    leaves = jax.tree.leaves(call)
    stepped.consumed = frozenset(
        index for index, leaf in enumerate(leaves) if isinstance(leaf, jax.Array) and leaf.is_deleted()
    )
    arrays = [*subject.arrays(output, call), *(leaf for leaf in leaves if isinstance(leaf, jax.Array))]
    widest = max((array.sharding.device_set for array in arrays), key=len, default=set(jax.local_devices()[:1]))
    stepped.devices = tuple(sorted(widest, key=lambda device: device.id))
    return stepped


def _next(subject: HostSubject, stepped: HostSteps, output: Any, call: Call) -> Call:
    """The arguments of the next call: threaded, or the same objects as a loop would have them."""
    if stepped.next_args is not None:
        with guarded("threading the state into the next step"):
            following = stepped.next_args(output, call[0])
        if following is not None:
            return tuple(following), call[1]
        stepped.next_args = None
    return subject.fresh() if stepped.consumed else call


def sample_host(
    subject: HostSubject,
    stepped: HostSteps,
    contract: Contract,
    *,
    single: bool,
    clock: Clock,
    together: Together = ALONE,
) -> tuple[Samples, Events]:
    """Time bursts of calls, and record what they trace and compile; each burst starts from copies."""
    next_args = stepped.next_args
    calls, rounds = plan(stepped.call_ns, consumed=bool(stepped.consumed) and next_args is None, contract=contract)
    if single:
        calls = rounds = 1
    calls, rounds = together.first("calls of a burst, and bursts", (calls, rounds))
    bursts, all_events = [], Events()
    for _ in range(rounds):
        call = subject.fresh()
        with record() as events, guarded("sampling the subject"):
            bursts.append(_burst(subject, call, next_args, calls=calls, clock=clock))
        all_events.log += events.log
    return Samples(bursts_ns=tuple(bursts), calls_per_burst=calls, contract=contract), all_events


def _burst(subject: HostSubject, call: Call, next_args: NextArgs | None, *, calls: int, clock: Clock) -> int:
    """Time calls in a row; each waited for alone where making the next arguments is work of its own."""
    apart = next_args is not None and not isinstance(next_args, Carry)
    (args, kwargs), spent_ns, begin = call, 0, clock()
    for remaining in reversed(range(calls)):
        output = subject.function(*args, **kwargs)
        if apart or not remaining:
            subject.wait(output, (args, kwargs))
            spent_ns += clock() - begin
        if remaining and next_args is not None:
            args = next_args(output, args) or args
        if apart:
            begin = clock()
    return spent_ns


def host_call_time(subject: HostSubject, call_ns: int, *, clock: Clock, together: Together = ALONE) -> int:
    """Median time of a warm call, waited for."""
    taken = []
    (count,) = together.first("timed calls", (min(LAUNCHES, max(MIN_BURSTS, BUDGET_NS // max(call_ns, 1))),))
    for _ in range(count):
        call = subject.fresh()
        with guarded(f"timing calls of the {subject.role}"):
            begin = clock()
            subject.call(call)
            taken.append(clock() - begin)
    return round(median(taken))
