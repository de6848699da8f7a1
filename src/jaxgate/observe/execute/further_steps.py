"""Steps that go on from the first ones, as many as half a second holds: what comes at every so many steps shows here."""

from __future__ import annotations

from collections.abc import Sequence

from jaxgate.model import InvalidCaseError
from jaxgate.observe.arguments import (
    ALONE,
    ArgumentKey,
    Call,
    Lockstep,
    argument_keys,
    on_device,
    undeclared_state,
)
from jaxgate.observe.errors import guarded
from jaxgate.observe.execute.first_steps import STEPS, Further, Stepped, following
from jaxgate.observe.execute.subjects import Subject
from jaxgate.observe.trace import Clock, Culprit, record, retrace_lines

MAX_STEPS = 20
"""Steps in all: a trace at every tenth comes twice."""
MORE_NS = 500_000_000
"""What the further ones may take."""


def take_further_steps(
    subject: Subject, stepped: Stepped, *, declared: bool, clock: Clock, together: Lockstep = ALONE
) -> Further:
    """Go on from the steps until one traces or compiles again.

    What misses for the first time does not count, nor what that takes: a loop that looks at its state at every fifth step
    compiles that once. What a step gives is not looked at: numbers may drift as far as they would in a sample.

    Args:
        subject: The subject, after its steps.
        stepped: What they showed; it is red already where one of them retraced, and nothing more is done.
        declared: Whether somebody said what is threaded, or that nothing is.
        clock: Monotonic nanoseconds.
        together: The ranks that take the steps; where there are several, none goes on.

    Returns:
        What was seen. A step that fails, or that there are no arguments for, is the end: the first ones went well.
    """
    assert stepped.last is not None  # the steps go on once
    (output, call), stepped.last = stepped.last, None
    if stepped.retraces or together is not ALONE:  # ranks would have to agree before each of them
        return Further()
    unseen = ""
    if not declared and subject.name and not subject.consumes:
        args, name, unseen = undeclared_state(output, call[0], subject.names)
        if args is not None:
            return _threaded(subject, stepped, name, (args, call[1]), call)
    spent_ns = 0
    before = argument_keys(*call, subject.names, subject.static)
    for step in range(STEPS + 1, MAX_STEPS + 1):
        if spent_ns + stepped.step_ns > MORE_NS:
            break
        begin = clock()
        try:
            threaded = following(subject, stepped.next_args, output, call)
            if threaded is None and stepped.next_args is not None:
                break  # who threads the state has no more of it
            call = subject.again(call) if threaded is None else threaded
            seen = argument_keys(*call, subject.names, subject.static)
            with record(explain=True, others=not subject.name) as events, guarded(f"step {step}"):
                output = subject.call(call)
        except InvalidCaseError as error:  # who made it may have had no more than so many in mind
            return Further(unseen=f"{error}: no more steps are counted")
        culprits = stepped.blame.culprits(events)
        again = [culprit for culprit in culprits if culprit.key in stepped.missed or culprit.function == subject.name]
        if again:
            return _found(subject, f"step {step}", again, before, seen)
        stepped.missed |= {culprit.key for culprit in culprits}
        spent_ns += 0 if culprits else clock() - begin
        before = seen
    return Further(unseen=unseen)


def _threaded(subject: Subject, stepped: Stepped, name: str, threaded: Call, call: Call) -> Further:
    """A step fed from the result, which has other types than were given: a loop that threads it traces at its second."""
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
    subject: Subject,
    step: str,
    culprits: Sequence[Culprit],
    before: Sequence[ArgumentKey],
    seen: Sequence[ArgumentKey],
) -> Further:
    lines = retrace_lines(step, culprits, subject=subject.name, before=before, after=seen, names=subject.names)
    return Further(
        traces=sum(one.traces for one in culprits if subject.name in ("", one.function)),
        compiles=sum(one.compiles for one in culprits),
        cache_hits=sum(one.cache_hits for one in culprits),
        retraces=tuple(lines),
    )
