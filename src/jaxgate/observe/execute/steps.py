"""A few real calls of the subject, each fed from the one before: what is traced and compiled again shows here.

Further steps go on from these for half a second, to show what comes at every so many steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import jax
import numpy as np

from jaxgate.model.computation import MAX_STEPS, STEPS
from jaxgate.model.measurement import InvalidCaseError
from jaxgate.observe.arguments.carry import NextArgs, Requests, advance, undeclared_state
from jaxgate.observe.arguments.feeder import Call, on_device, on_host
from jaxgate.observe.arguments.lockstep import ALONE, Lockstep, is_spread
from jaxgate.observe.arguments.signature import ArgumentKey, argument_keys
from jaxgate.observe.errors import guarded
from jaxgate.observe.execute.correctness import refuse_nan
from jaxgate.observe.execute.left_behind import LeftBehind
from jaxgate.observe.execute.subjects import Subject
from jaxgate.observe.trace.clocks import Clock, OwnTime, uncollected
from jaxgate.observe.trace.compile_events import Events, record
from jaxgate.observe.trace.retraces import Blame, Culprit, retrace_lines


@dataclass(slots=True)
class Misses:
    """What was traced and compiled again in some calls; all must be 0."""

    traces: int = 0  # of the subject; of plain Python those of whatever it calls
    lowerings: int = 0  # programs that were lowered on the way: by the subject, or by anything it called
    compiles: int = 0  # programs that the backend was asked to compile for them
    cache_hits: int = 0  # how many of `compiles` the persistent cache answered; the others were compiled
    # for each step that traced or compiled one line per function, the root cause first
    retraces: list[str] = field(default_factory=list)

    def add(self, subject: Subject, culprits: Sequence[Culprit], lines: Sequence[str]) -> None:
        """Count what some functions did, which these lines say."""
        self.traces += sum(one.traces for one in culprits if subject.name in ("", one.function))
        self.lowerings += sum(one.lowerings for one in culprits)
        self.compiles += sum(one.compiles for one in culprits)
        self.cache_hits += sum(one.cache_hits for one in culprits)
        self.retraces += lines


@dataclass(slots=True)
class Further(Misses):
    """What was traced and compiled in the last of the further steps."""

    unseen: str = ""  # what is not threaded though it could be, in words; empty if there is nothing
    later: dict[str, int] = field(default_factory=dict)  # what plain Python compiled for the first time, to the step
    lines: dict[str, str] = field(default_factory=dict)  # source lines of these functions
    steps: int = STEPS  # the number of the last step


@dataclass(slots=True)
class Stepped(Misses):
    """What the threaded steps showed; lowering traced the subject, or the first step of plain Python did."""

    first_output: Any = None  # output of the first step, on the host
    first_call_ns: int = 0  # time of the first call: its executable is ready, or it is cold and plain Python compiles
    call_ns: int = 0  # time of the last step, to plan the sample with
    step_ns: int = 0  # time from the beginning of the second step to that of the third
    next_args: NextArgs | None = None  # threads the state in later calls too; `None` if nothing is threaded
    declared: bool = False  # whether somebody said what is threaded, or that nothing is
    last: tuple[Any, Call] | None = None  # result and arguments of the last step, until the steps go on from there
    # what was heard of functions, for steps that follow
    blame: Blame = field(default_factory=lambda: Blame(complete=True))
    # functions that were traced or compiled in a step, each with its line
    missed: set[tuple[str, str]] = field(default_factory=set)
    # programs of each function that the first step of plain Python compiled, and the line of each
    first: dict[str, int] = field(default_factory=dict)
    first_lines: dict[str, str] = field(default_factory=dict)
    left: LeftBehind = field(default_factory=LeftBehind)  # what each step of plain Python leaves behind


@uncollected()
def take_steps(
    subject: Subject,
    next_args: NextArgs | None,
    *,
    clock: Clock,
    own: OwnTime | None = None,
    together: Lockstep = ALONE,
) -> Stepped:
    """Call the subject ``STEPS`` times, each step fed from the one before.

    ``own`` times the first call instead of ``clock``, where it traces and compiles. A rank that compiles another
    program than the others would wait for ever.

    Raises:
        InvalidCaseError: If a call fails, ranks are given other arguments, it gives nothing to wait for, or the result is not a number.
    """
    stepped = Stepped(next_args=next_args, declared=next_args is not None)
    call = subject.fresh()
    before: tuple[ArgumentKey, ...] = ()
    begin = 0
    shared = together.anyone("whether its arguments are spread", any(map(is_spread, jax.tree.leaves(call))))
    for step in range(1, STEPS + 1):
        seen, held = argument_keys(*call, subject.names, subject.static), subject.arrays(None, call)
        if shared and step > 1:
            spread = (leaf.sharding for leaf in jax.tree.leaves(call) if is_spread(leaf))
            together.same(f"the arguments of step {step}", partial("\n".join, map(str, (*seen, *spread))))
        at_step = guarded(f"step {step} of the {subject.role}")
        with record(explain=True, others=not subject.name) as events, at_step:
            if own is not None and step == 1:
                own.start()
            begin, last = clock(), begin
            output = subject.call(call)
            stepped.call_ns = clock() - begin
            first_ns = stepped.call_ns if own is None or step > 1 else own.read()
        stepped.step_ns = begin - last
        if not subject.name and step > 1:
            stepped.left.look((output, call))
        culprits = stepped.blame.culprits(events)
        stepped.missed |= {culprit.key for culprit in culprits}
        if step == 1:
            stepped.first_call_ns = first_ns
            stepped.first_output = jax.tree.map(on_host if subject.name else _copied, output)
            subject.learn(output, call, held)
            if not subject.name:
                stepped.first, stepped.first_lines = _compiled_first(events, culprits)
            # It may compile helpers that place its arguments (pmap does), plain Python all it calls; not a jitted subject.
            culprits = [culprit for culprit in culprits if culprit.function == subject.name]
            lines = [f"step 1 {culprit.word}: the first call missed the traced program" for culprit in culprits[:1]]
        else:
            lines = retrace_lines(
                f"step {step}", culprits, subject=subject.name, before=before, after=seen, names=subject.names
            )
        stepped.add(subject, culprits, lines)
        before = seen
        if subject.reads_results or step == STEPS:
            refuse_nan(output, f"the {subject.role}'s result at step {step}")
        if step < STEPS:
            going_on = following(subject, stepped.next_args, output, call)
            if going_on is None:
                stepped.next_args = None
            call = subject.again(call) if going_on is None else going_on
    stepped.last = output, call
    return stepped


def _copied(leaf: Any) -> Any:
    """A leaf on the host: on a CPU the values would hold the array, which would count as left behind."""
    values = on_host(leaf)
    return values.copy() if isinstance(values, np.ndarray) else values


def following(subject: Subject, next_args: NextArgs | None, output: Any, call: Call) -> Call | None:
    """The arguments of the step after one, fed from its result; ``None`` where nothing is threaded."""
    with guarded("threading the state into the next step"):
        threaded = advance(next_args, output, call)
    return None if threaded is None else subject.placed(threaded)


MORE_NS = 500_000_000
"""Time that the further steps may take."""
KEPT_NS = 10 * MORE_NS
"""The time where a step left arrays behind: a window of the last few is told from what adds up."""


@uncollected()
def take_further_steps(subject: Subject, stepped: Stepped, *, clock: Clock, together: Lockstep = ALONE) -> Further:
    """Go on from the steps until one traces or compiles again.

    What misses for the first time does not count, nor what that takes: a loop that looks at its state at every fifth
    step compiles that once. What a step gives is not looked at: numbers may drift as far as they would in a sample. If
    ``stepped`` retraced it is red already, and nothing more is done. Several ranks do not go on.

    Returns:
        What was seen. A step that fails, or that there are no arguments for, is the end: the first ones went well.
    """
    assert stepped.last is not None  # the steps go on once
    (output, call), stepped.last = stepped.last, None
    least = stepped.next_args.count if isinstance(stepped.next_args, Requests) else 0  # all of them must be seen
    if (stepped.retraces and not least) or together is not ALONE:  # ranks would have to agree before each of them
        return Further(unseen=f"of {least} requests {STEPS} were called" if least > STEPS else "")
    spent_ns, found = 0, Further()
    if not stepped.declared and subject.name and not subject.consumes:
        args, name, found.unseen = undeclared_state(output, call[0], subject.names)
        if args is not None:
            return _threaded(subject, stepped, name, (args, call[1]), call)
    before = argument_keys(*call, subject.names, subject.static)
    # What was left behind once is left by the process; one more step, however long, tells it from what each step leaves.
    sure = STEPS + (not subject.name and stepped.left.any)
    most_ns = KEPT_NS if stepped.left.arrays else MORE_NS
    for step in range(STEPS + 1, MAX_STEPS + 1):
        if step > max(least, sure) and spent_ns + stepped.step_ns > most_ns:
            break
        begin = clock()
        try:
            going_on = _going_on(subject, stepped.next_args, output, call)
            if going_on is None:
                break
            call = going_on  # what the step before was given is let go before this one runs
            output, seen, events = _called(subject, call, f"step {step}")
        except InvalidCaseError as error:
            return _broken_off(error, found, wanted=step <= least)
        found.steps = step
        culprits = stepped.blame.culprits(events)
        again = [culprit for culprit in culprits if culprit.key in stepped.missed or culprit.function == subject.name]
        if again:
            return _found(subject, f"step {step}", again, before, seen)
        stepped.missed |= {culprit.key for culprit in culprits}
        first = _compiled_here(events, culprits)
        found.later |= dict.fromkeys(first, step)
        found.lines |= first
        spent_ns += 0 if culprits else clock() - begin
        before = seen
    more = found.steps - STEPS
    if not subject.name and more:
        stepped.left.look((output, call), steps=more)
    return found


def _broken_off(error: InvalidCaseError, found: Further, *, wanted: bool) -> Further:
    """What was found before a step failed, unless that was wanted: its author may have meant no further step."""
    if wanted:
        raise error
    return replace(found, unseen=f"{error}: no more steps are counted")


def _going_on(subject: Subject, next_args: NextArgs | None, output: Any, call: Call) -> Call | None:
    """The arguments of one more step; ``None`` where who threads the state has no more of it."""
    return subject.again(call) if next_args is None else following(subject, next_args, output, call)


def _called(subject: Subject, call: Call, step: str) -> tuple[Any, tuple[ArgumentKey, ...], Events]:
    """Result, keys of the arguments, and events of one more step."""
    seen = argument_keys(*call, subject.names, subject.static)
    with record(explain=True, others=not subject.name) as events, guarded(step):
        return subject.call(call), seen, events


def _compiled_here(events: Events, culprits: Sequence[Culprit]) -> dict[str, str]:
    """Functions that this thread compiled, to the line that calls each; a loader's thread compiles when it likes."""
    mine = {event.function for event in events.log if event.thread == events.thread}
    return {one.shown: one.where for one in culprits if one.compiles and one.function in mine}


def _compiled_first(events: Events, culprits: Sequence[Culprit]) -> tuple[dict[str, int], dict[str, str]]:
    """How many programs of each function there are, and its line; of several of one name (lambdas) the most.

    JAX's own functions are left out: a table that is made once may have needed them.
    """
    known = [one for one in culprits if one.defined]
    lines = _compiled_here(events, known)
    return {name: max(one.compiles for one in known if one.shown == name) for name in lines}, lines


def _threaded(subject: Subject, stepped: Stepped, name: str, threaded: Call, call: Call) -> Further:
    """Step with a result that has other types than were given: a loop that threads it traces at its second step."""
    arguments = on_device(*threaded)
    before, seen = (argument_keys(*one, subject.names, subject.static) for one in (call, arguments))
    try:
        with record(explain=True, others=False) as events, guarded("threading the state"):
            subject.call(arguments)
    except InvalidCaseError:  # nobody said that it takes that
        return Further()
    return _found(
        subject,
        f"step 2, fed with {name} of step 1 (is it no state? next_args=lambda *_: None),",
        stepped.blame.culprits(events),
        before,
        seen,
    )


def _found(
    subject: Subject, step: str, culprits: Sequence[Culprit], before: Sequence[ArgumentKey], seen: Sequence[ArgumentKey]
) -> Further:
    lines = retrace_lines(step, culprits, subject=subject.name, before=before, after=seen, names=subject.names)
    found = Further()
    found.add(subject, culprits, lines)
    return found
