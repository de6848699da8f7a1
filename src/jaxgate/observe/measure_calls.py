"""What the calls of a case show: one series of them, for jitted functions and for plain Python.

The order is part of what is counted, as plain Python may change with each call.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax

from jaxgate.ext.energy.run import Metered, measure_energy
from jaxgate.model.computation import Computation
from jaxgate.model.measurement import InvalidCaseError, ReferenceFacts
from jaxgate.model.numbers import Facts, Phases
from jaxgate.observe.arguments.carry import Carry, carry_donated
from jaxgate.observe.arguments.feeder import Call, on_host
from jaxgate.observe.arguments.lockstep import own_devices, processes_of
from jaxgate.observe.errors import guarded
from jaxgate.observe.execute.correctness import Closeness, check_agreement, check_batch, refuse_nan
from jaxgate.observe.execute.dispatches import Launched, count_launches
from jaxgate.observe.execute.python_calls import Called, count_python
from jaxgate.observe.execute.references import Reference, observe_reference
from jaxgate.observe.execute.samples import Sampled, call_time, launch_time, refuse_retraces, sample
from jaxgate.observe.execute.steps import Further, Stepped, take_further_steps, take_steps
from jaxgate.observe.execute.subjects import EagerSubject, Subject
from jaxgate.observe.machine.process import usable_cores
from jaxgate.observe.observation import CompiledSubject
from jaxgate.observe.program.export import find_feeds
from jaxgate.observe.tools import Tools
from jaxgate.observe.trace.clocks import OwnTime


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """What calls of a subject showed, whose result is that of its reference."""

    processes: int  # how many its devices belong to
    closeness: Closeness
    stepped: Stepped
    further: Further
    reference: Reference | None
    launched: Launched  # what a call of plain Python starts on devices
    called: Called
    sampled: Sampled
    metered: Metered
    # median of warm calls: until one returns that nobody waits for; of plain Python, waited for; `None` if not timed
    host_ns: int | None
    feeds: tuple[int | None, ...] | None = None  # how the state of a jitted function is threaded

    @property
    def known(self) -> ReferenceFacts | None:
        """What is known of the reference."""
        return None if self.reference is None else self.reference.known

    def facts(self, found: Facts) -> Facts:
        """Facts of a case, with those that the calls showed."""
        return replace(
            found,
            traces=1 + self.stepped.traces,
            lowerings=1 + self.stepped.lowerings,
            compiles=1 + self.stepped.compiles,
            sampled_traces=self.further.traces + self.sampled.traces,
            sampled_compiles=self.further.compiles + self.sampled.compiles,
            python_calls=self.called.calls,
            jax_calls=self.called.jax_calls,
        )


def call_case(
    subject: Subject, computation: Computation, tools: Tools, compiled: CompiledSubject | None = None
) -> Calls:
    """Call a subject in every way that shows something; ``compiled`` is the program of a jitted one.

    Raises:
        InvalidCaseError: If it cannot be called, its results are wrong, or it gives nothing to wait for.
    """
    clock, together = tools.clocks.wall, tools.together
    next_args, own = computation.next_args, None
    if compiled is None:
        own = _own_time(tools)
    elif next_args is None:
        next_args = carry_donated(compiled.lowered.stage, compiled.call[0])
    tools.progress("running")
    stepped = take_steps(subject, next_args, clock=clock, own=own, together=together)
    refuse_retraces(stepped, computation, tools)
    further = take_further_steps(subject, stepped, clock=clock, together=together)
    processes = processes_of(subject.devices)
    if computation.batch is not None:
        tools.progress("checking the batch")
        check_batch(subject.on_copies, subject.given, computation.batch, together=together)
    products = None if compiled is None else compiled.program.work.matmuls  # of plain Python they are not known yet
    closeness = Closeness.on(subject.devices[0], products, rtol=computation.rtol, atol=computation.atol)
    reference = None
    if computation.reference is not None:
        reference = _reference(computation.reference, subject.given, tools, compiled)
        check_agreement(stepped.first_output, reference.output, closeness)
    if compiled is None:
        feeds, only_moves = None, isinstance(stepped.next_args, Carry)
    else:
        feeds = find_feeds(compiled.lowered, compiled.call, stepped.next_args)
        only_moves = feeds is not None
    apart = stepped.next_args is not None and not only_moves
    launched = Launched(None, None)
    if isinstance(subject, EagerSubject):
        tools.progress("profiling")
        launched = _count(subject, tools)
    called = count_python(subject, reads=compiled is None and subject.devices[0].platform == "cpu", together=together)
    sampled = sample(subject, stepped, tools, apart=apart, contract=computation.contract)
    metered = measure_energy(subject, stepped, sampled, tools, devices=subject.devices, apart=apart)
    return Calls(
        processes=processes,
        closeness=closeness,
        stepped=stepped,
        further=further,
        reference=reference,
        launched=launched,
        called=called,
        sampled=sampled,
        metered=metered,
        host_ns=_host_ns(subject, stepped.call_ns, tools),
        feeds=feeds,
    )


def _reference(function: Callable[..., Any], call: Call, tools: Tools, compiled: CompiledSubject | None) -> Reference:
    if compiled is None:
        return _call_reference(function, call, tools)
    inputs, surroundings = compiled.inputs, compiled.surroundings
    return observe_reference(function, call, role="reference", surroundings=surroundings, tools=tools, inputs=inputs)


def _call_reference(function: Callable[..., Any], call: Call, tools: Tools) -> Reference:
    """A reference of plain Python; its first call need not be a cold one."""
    tools.progress("running the reference")
    subject, clock = EagerSubject(function, call, "reference"), tools.clocks.wall
    with guarded("running the reference"):
        copies = subject.fresh()
        held = subject.arrays(None, copies)
        output = subject.call(copies)
    subject.learn(output, copies, held)
    refuse_nan(output, "the reference's result")
    found = jax.tree.map(on_host, output)
    with guarded("running the reference"):
        copies = subject.fresh()
        begin = clock()
        subject.call(copies)
        call_ns = clock() - begin
    launched = _count(subject, tools)
    facts = Facts(launches=launched.launches, host_transfers=launched.host_transfers)
    phases = Phases(host_ns=_host_ns(subject, call_ns, tools))
    return Reference(ReferenceFacts(facts=facts, phases=phases, cached=False), found)


def _count(subject: EagerSubject, tools: Tools) -> Launched:
    """Count what a warm call of plain Python, or of its reference, launches.

    Raises:
        InvalidCaseError: If the subject launches nothing.
    """

    def make_call() -> Callable[[], Any]:
        call = subject.fresh()
        return lambda: subject.call(call)

    stage = f"profiling a call of the {subject.role}"
    with guarded(stage):
        launched = count_launches(make_call, own_devices(subject.devices), tools.together)
    if subject.role == "subject" and launched.programs is not None and not launched.programs:
        reason = "expected device programs, found none launched; what Python alone does, such as loading, pytest-benchmark times by itself"
        raise InvalidCaseError(stage, reason)
    return launched


def _host_ns(subject: Subject, call_ns: int, tools: Tools) -> int | None:
    if not tools.sampling:
        return None
    if isinstance(subject, EagerSubject):
        return call_time(subject, call_ns, own=_own_time(tools), together=tools.together)
    return launch_time(subject, platform=subject.devices[0].platform, clock=tools.clocks.wall)


def _own_time(tools: Tools) -> OwnTime:
    """What times calls of plain Python."""
    return OwnTime(tools.clocks, cores=usable_cores())
