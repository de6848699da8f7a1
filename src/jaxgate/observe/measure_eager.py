"""The measurement of plain Python around device programs: called as it is, never put under ``jax.jit``.

What stands between the programs is the subject too: eager operations, ``float(loss)``, NumPy inputs. Its steps
must not trace or compile after the first one, its warm calls are counted in a profile and timed as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

from jaxgate.ext.energy.run import Metered, measure_energy
from jaxgate.model.computation import Computation
from jaxgate.model.measurement import Argument, Culprits, Fingerprints, InvalidCaseError, Measurement, ReferenceFacts
from jaxgate.model.numbers import Facts, Phases
from jaxgate.observe.arguments.carry import Carry
from jaxgate.observe.arguments.feeder import Call, inputs_fingerprint, on_host
from jaxgate.observe.arguments.lockstep import ALONE, own_devices, processes_of
from jaxgate.observe.arguments.signature import leaves_with_paths, short
from jaxgate.observe.eager_programs import EagerPrograms, compare_launches, find_programs
from jaxgate.observe.errors import guarded
from jaxgate.observe.execute.correctness import Closeness, check_agreement, check_batch, refuse_nan
from jaxgate.observe.execute.dispatches import Launched, count_launches
from jaxgate.observe.execute.python_calls import Called, count_python
from jaxgate.observe.execute.samples import Sampled, call_time, refuse_retraces, sample
from jaxgate.observe.execute.steps import Stepped, take_further_steps, take_steps
from jaxgate.observe.execute.subjects import VALUES, EagerSubject
from jaxgate.observe.machine.environment import fingerprint, hardware_key, read_environment
from jaxgate.observe.machine.load import read_yardstick
from jaxgate.observe.machine.process import usable_cores
from jaxgate.observe.observation import Observation
from jaxgate.observe.tools import Tools
from jaxgate.observe.trace.captured_constants import describe_constants
from jaxgate.observe.trace.clocks import OwnTime
from jaxgate.observe.trace.jitted import find_jitted_functions, is_jitted
from jaxgate.observe.trace.source import begins_at, source_fingerprint


def measure_eager(computation: Computation, build: Callable[[], Computation], tools: Tools) -> Observation:
    """Measure a subject that is called as it is; what made the computation is part of its source.

    Raises:
        InvalidCaseError: If it cannot be called, its results are wrong, or it gives nothing to wait for.
    """
    call: Call = (tuple(computation.args), dict(computation.kwargs))
    subject = EagerSubject(computation.subject, call, "subject")
    if tools.together is not ALONE:
        tools.progress("comparing the ranks")
        compare_launches(subject, tools.together)
    tools.progress("running")
    jax.clear_caches()  # the first step is a cold one: what an earlier call compiled would hide a later miss
    stepped = take_steps(
        subject, computation.next_args, clock=tools.clocks.wall, own=_own_time(tools), together=tools.together
    )
    refuse_retraces(stepped, computation, tools)
    stepped.further = take_further_steps(
        subject, stepped, declared=True, clock=tools.clocks.wall, together=tools.together
    )
    processes = processes_of(subject.devices)
    if computation.batch is not None:
        tools.progress("checking the batch")
        check_batch(subject.on_copies, call, computation.batch, donates=False, together=tools.together)
    # What it multiplies is not known yet.
    closeness = Closeness.on(subject.devices[0], None, rtol=computation.rtol, atol=computation.atol)
    reference = None
    if computation.reference is not None:
        tools.progress("running the reference")
        reference, output = _observe_reference(computation.reference, call, tools)
        check_agreement(stepped.first_output, output, closeness)
    tools.progress("profiling")
    launched = _count(subject, tools)
    apart = stepped.next_args is not None and not isinstance(stepped.next_args, Carry)
    called = count_python(subject, reads=subject.devices[0].platform == "cpu", together=tools.together)
    sampled = sample(subject, stepped, tools, apart=apart, contract=computation.contract)
    run = _Run(
        subject=subject,
        call=call,
        processes=processes,
        stepped=stepped,
        reference=reference,
        launched=launched,
        called=called,
        sampled=sampled,
        metered=measure_energy(subject, stepped, sampled, tools, devices=subject.devices, apart=apart),
        call_ns=_call_ns(subject, stepped.call_ns, tools),
        programs=find_programs(subject, launched, tools),  # last: it traces and compiles
    )
    return Observation(
        measurement=_measurement(computation, build, run, tools),
        call=call,
        closeness=closeness,
        claims=tuple(computation.claims),
        contract=computation.contract,
        function=computation.subject,
        launched=run.programs.programs,
        reference_function=computation.reference,
        meter=run.metered.meter,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """What calls of the subject showed; ``call_ns`` is the median of warm ones, ``None`` if they were not timed."""

    subject: EagerSubject
    call: Call
    processes: int
    stepped: Stepped
    reference: ReferenceFacts | None
    launched: Launched
    programs: EagerPrograms
    called: Called
    sampled: Sampled
    metered: Metered
    call_ns: int | None


def _measurement(computation: Computation, build: Callable[[], Computation], run: _Run, tools: Tools) -> Measurement:
    subject, launched, programs = run.subject, run.launched, run.programs
    signature = _signature(subject, run.call)
    return Measurement(
        hardware=hardware_key(subject.devices[0], len(subject.devices), run.processes),
        processes=run.processes,
        environment=read_environment(subject.devices[0]),
        fingerprints=Fingerprints(
            source=source_fingerprint(computation.subject, build, given=(run.call, computation.next_args)),
            program=_fingerprint(launched, programs, signature),
            options=programs.options,
            inputs=_inputs(run.call),
        ),
        signature=signature,
        facts=replace(_facts(signature, run), jitted=int(is_jitted(computation.subject))),
        phases=Phases(
            first_call_ns=run.stepped.first_call_ns, host_ns=run.call_ns, yardstick_ns=read_yardstick(tools.clocks.wall)
        ),
        operations=programs.operations,
        matmuls=programs.histogram(lambda one: one.program.work.matmuls),
        collectives=programs.histogram(lambda one: one.communication.counts),
        kernels=programs.histogram(lambda one: one.program.kernels.counts),
        widened=programs.histogram(lambda one: one.program.work.widened),
        libraries=dict(sorted(pair for one in programs.programs for pair in one.program.work.libraries.items())),
        native_code=programs.native_code(subject.devices[0].platform),
        depends_on_values=programs.depends_on_values,
        only_raises=programs.only_raises,
        samples=run.sampled.samples if tools.sampling else None,
        energy=run.metered.energy,
        expected_traces=computation.expected_traces,
        analytic_flops=computation.analytic_flops,
        amount=computation.amount,
        reference=run.reference,
        culprits=_culprits(run, build),
        eager=True,
        unknown=_unknown(launched) | programs.unknown | run.called.unknown,
        launched=launched.programs or {},
        launched_programs=programs.described,
        transferred=launched.transfers or {},
        unseen=run.stepped.further.unseen,
        first=run.stepped.first,
        later=run.stepped.further.later,
        steps=run.stepped.further.steps,
        called=run.called.functions,
    )


def _observe_reference(function: Callable[..., Any], call: Call, tools: Tools) -> tuple[ReferenceFacts, Any]:
    """The facts of a reference, and its first result on the host; its first call need not be a cold one."""
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
    facts = Facts(launches=_total(launched.programs), host_transfers=_total(launched.transfers))
    return ReferenceFacts(facts=facts, phases=Phases(host_ns=_call_ns(subject, call_ns, tools)), cached=False), found


def _call_ns(subject: EagerSubject, call_ns: int, tools: Tools) -> int | None:
    return call_time(subject, call_ns, own=_own_time(tools), together=tools.together) if tools.sampling else None


def _own_time(tools: Tools) -> OwnTime:
    return OwnTime(tools.clocks, cores=usable_cores())


def _count(subject: EagerSubject, tools: Tools) -> Launched:
    """Count what a warm call of the subject, or of its reference, launches.

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


def _signature(subject: EagerSubject, call: Call) -> tuple[Argument, ...]:
    leaves = jax.tree.leaves(call)
    order = {id(leaf): index for index, leaf in enumerate(leaves)}
    return tuple(
        Argument(
            path=path,
            aval=short(leaf) if _is_array(leaf) else f"Python {type(leaf).__name__}",
            nbytes=int(leaf.nbytes) if _is_array(leaf) else 0,
            donated=order[id(leaf)] in subject.consumed,
        )
        for path, leaf in leaves_with_paths(*call, subject.names)
    )


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, (jax.Array, np.ndarray, np.generic))


def _inputs(call: Call) -> str:
    """Hash the values; of other objects the type only, as their text may hold addresses."""
    values = jax.tree.map(
        lambda leaf: leaf if isinstance(leaf, (jax.Array, *VALUES)) else f"object {type(leaf).__qualname__}", call
    )
    return inputs_fingerprint(*values)


def _fingerprint(launched: Launched, programs: EagerPrograms, signature: tuple[Argument, ...]) -> str:
    """A hash of what a call launches: by the programs where they are known, else by their names."""
    names = "unknown" if launched.programs is None else sorted(launched.programs.items())
    known = sorted((*map(str, one.identity), one.count) for one in programs.described)
    return fingerprint("host", known or names, [leaf.aval for leaf in signature])


def _facts(signature: tuple[Argument, ...], run: _Run) -> Facts:
    return Facts(
        traces=1 + run.stepped.traces,
        lowerings=1 + run.stepped.lowerings,
        compiles=1 + run.stepped.compiles,
        sampled_traces=run.stepped.further.traces + run.sampled.traces,
        sampled_compiles=run.stepped.further.compiles + run.sampled.compiles,
        donated_bytes=sum(leaf.nbytes for leaf in signature if leaf.donated),
        launches=_total(run.launched.programs),
        host_transfers=_total(run.launched.transfers),
        host_reads=run.called.reads,
        host_waits=run.called.waits,
        kept_arrays=run.stepped.left.arrays,
        cyclic_objects=run.stepped.left.cyclic_objects,
        cyclic_arrays=run.stepped.left.cyclic_arrays,
        python_calls=run.called.calls,
        jax_calls=run.called.jax_calls,
        **run.programs.facts,
    )


def _culprits(run: _Run, build: Callable[[], Computation]) -> Culprits:
    launched, function = run.launched, run.subject.function
    return Culprits(
        begins=begins_at(function),
        constants=describe_constants(run.programs.constants, function, build, run.call),
        callbacks=run.programs.callbacks,
        retraces=(*run.stepped.retraces, *run.stepped.further.retraces),
        transfer_lines=launched.transfer_lines,
        reads=run.called.read_lines,
        kept=run.stepped.left.described,
        cycles=run.stepped.left.cycles,
        lines={
            **run.stepped.first_lines,
            **run.programs.lines,
            **run.called.lines,
            **find_jitted_functions(function),
            **launched.program_lines,
            **run.stepped.further.lines,
        },
    )


def _unknown(launched: Launched) -> dict[str, str]:
    counts = {"launches": launched.programs, "host_transfers": launched.transfers}
    return {name: launched.why_not for name, found in counts.items() if found is None}


def _total(counts: Mapping[str, int] | None) -> int | None:
    return None if counts is None else sum(counts.values())
