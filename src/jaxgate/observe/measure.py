"""From a computation to a measurement: lower, compile, call, compare with the reference, sample."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import jax

from jaxgate.model import (
    Computation,
    Culprits,
    Facts,
    Fingerprints,
    Measurement,
)
from jaxgate.observe.agreement import check_agreement, check_batch
from jaxgate.observe.calls import Sampled, Stepped, host_time, take_samples, take_steps
from jaxgate.observe.captured import describe_constants
from jaxgate.observe.communication import Communication, read_communication
from jaxgate.observe.compiling import CLOCKS, Clock, Clocks, Program, compile_program, devices_of, lower, refuse_idle
from jaxgate.observe.donation import (
    DonatedLeaf,
    lost_bytes,
    lost_lines,
    lost_unknown,
    read_donation,
    refuse_shared_buffers,
)
from jaxgate.observe.exporting import find_feeds
from jaxgate.observe.failures import guarded
from jaxgate.observe.feeding import Feeder, on_device
from jaxgate.observe.fitting import Fitting
from jaxgate.observe.host import observe_host
from jaxgate.observe.lines import at
from jaxgate.observe.observed import Observed, Progress
from jaxgate.observe.reference import Reference, ReferenceStore, observe_reference
from jaxgate.observe.rivals import observe_rivals
from jaxgate.observe.shards import inputs_fingerprint
from jaxgate.observe.signature import read_results
from jaxgate.observe.source import source_fingerprint
from jaxgate.observe.surroundings import environment, fingerprint, hardware_key, refuse_settings
from jaxgate.observe.threading import carry_donated
from jaxgate.observe.together import ALONE, Together, processes_of
from jaxgate.observe.yardstick import read_yardstick


def observe(
    build: Callable[[], Computation],
    *,
    store: ReferenceStore,
    progress: Progress = lambda _: None,
    sampling: bool = True,
    clocks: Clocks = CLOCKS,
    together: Together = ALONE,
) -> Observed:
    """Measure one case.

    Nothing is traced, lowered or compiled twice: calls hit the executable that the phases were timed on.

    Args:
        build: Makes the computation; may allocate on devices.
        store: Remembers references between runs.
        progress: Told what is being done, before anything that may take long.
        sampling: Whether to time calls; the counters are taken either way.
        clocks: What is timed with which.
        together: The ranks that run the case, all of them with the same calls.

    Returns:
        What was seen, and the subject itself for a duel.

    Raises:
        InvalidCaseError: If the case cannot be measured, or its results are wrong.
    """
    refuse_settings()
    progress("building")
    with guarded("building the workload"):
        computation = build()
    if computation.host:
        return _observe_host(
            computation, build, progress=progress, sampling=sampling, clock=clocks.wall, together=together
        )
    with guarded("building the workload"):
        call = on_device(computation.args, computation.kwargs)
        jax.block_until_ready(call)
    yardstick_ns = read_yardstick(clocks.wall)
    progress("tracing")
    lowered = lower(computation.subject, *call, role="subject", clock=clocks.thread)
    progress("compiling")
    program = compile_program(lowered, clocks=clocks)
    refuse_idle(program)
    devices = devices_of(program.executable)
    device = devices[0]
    processes = processes_of(devices)
    hardware = hardware_key(device, len(devices), processes)
    communication = read_communication(program, devices)
    surroundings = environment(device)
    beyond = fingerprint(hardware, sorted(surroundings.items()))
    inputs = inputs_fingerprint(*call)
    donates = any(leaf.donated for leaf in lowered.signature)
    refuse_shared_buffers(lowered, call)
    feeder = Feeder(call, donates=donates)

    progress("running")
    next_args = computation.next_args or carry_donated(lowered.stage, call[0])
    stepped = take_steps(lowered, feeder, next_args, clock=clocks.wall)
    donation = read_donation(program, stepped.first_fed)
    if computation.batch is not None:
        progress("checking the batch")
        check_batch(lowered.function, call, computation.batch, donates=donates, together=together)
    reference: Reference | None = None
    if computation.reference is not None:
        reference = observe_reference(
            computation.reference,
            call,
            inputs=inputs,
            surroundings=beyond,
            store=store,
            progress=progress,
            clocks=clocks,
            together=together,
        )
        check_agreement(stepped.first_output, reference.output, rtol=computation.rtol, atol=computation.atol)
    feeds = find_feeds(lowered, call, stepped.next_args)
    if sampling:
        progress("sampling")
    sampled = take_samples(
        lowered,
        feeder,
        stepped.next_args,
        call_ns=stepped.call_ns,
        single=not sampling,
        apart=stepped.next_args is not None and feeds is None,
        clock=clocks.wall,
        contract=computation.contract,
        together=together,
    )
    host_ns = host_time(lowered, feeder, platform=hardware.platform, clock=clocks.wall) if sampling else None
    progress("reading")
    rivals = observe_rivals(
        computation.rivals,
        surroundings=beyond,
        store=store,
        progress=progress,
        clocks=clocks,
        together=together,
    )
    largest, reference = _fit(computation, reference, Fitting(store, beyond, progress, together))
    measurement = Measurement(
        hardware=hardware,
        processes=processes,
        environment=surroundings,
        fingerprints=Fingerprints(
            source=source_fingerprint(computation.subject, build),
            program=lowered.fingerprint,
            options=lowered.options_text,
            inputs=inputs,
        ),
        signature=program.lowered.signature,
        facts=replace(
            _facts(program, stepped, sampled, donation),
            collectives=communication.count,
            collective_bytes=communication.nbytes,
            largest_batch=largest,
        ),
        phases=replace(program.phases, first_call_ns=stepped.first_call_ns, host_ns=host_ns, yardstick_ns=yardstick_ns),
        results=read_results(lowered.stage, program.executable),
        operations=program.structure.operations,
        matmuls=program.work.matmuls,
        collectives=communication.counts,
        widened=program.work.widened,
        unknown=communication.unknown | lost_unknown(donation),
        samples=sampled.samples if sampling else None,
        expected_traces=computation.expected_traces,
        analytic_flops=computation.analytic_flops,
        amount=computation.amount,
        rivals=rivals,
        reference=None if reference is None else reference.known,
        culprits=replace(
            _culprits(program, communication, computation.subject, build),
            retraces=_retraces(stepped, sampled),
            lost=lost_lines(donation),
        ),
    )
    return Observed(
        measurement=measurement,
        lowered=lowered,
        call=call,
        feeds=feeds,
        rtol=computation.rtol,
        atol=computation.atol,
        contract=computation.contract,
        reference=None if reference is None else reference.lowered,
        reference_feeds=None if reference is None else find_feeds(reference.lowered, call, stepped.next_args),
        next_args=stepped.next_args,
    )


def _fit(
    computation: Computation, reference: Reference | None, fitting: Fitting
) -> tuple[int | None, Reference | None]:
    """The subject's largest batch, and the reference with its own, if the case asks for them."""
    if computation.fits is None:
        return None, reference
    largest = fitting.largest_batch(computation.subject, computation.fits, role="subject")
    if computation.reference is not None and reference is not None:
        theirs = fitting.largest_batch(computation.reference, computation.fits, role="reference")
        known = replace(reference.known, facts=replace(reference.known.facts, largest_batch=theirs))
        reference = replace(reference, known=known)
    return largest, reference


def _observe_host(
    computation: Computation,
    build: Callable[[], Computation],
    *,
    progress: Progress,
    sampling: bool,
    clock: Clock,
    together: Together,
) -> Observed:
    return Observed(
        measurement=observe_host(
            computation, build, progress=progress, sampling=sampling, clock=clock, together=together
        ),
        lowered=None,
        call=(computation.args, dict(computation.kwargs)),
        feeds=None,
        rtol=computation.rtol,
        atol=computation.atol,
        contract=computation.contract,
        function=computation.subject,
        reference_function=computation.reference,
    )


def _facts(program: Program, stepped: Stepped, sampled: Sampled, donation: Sequence[DonatedLeaf]) -> Facts:
    return replace(
        program.facts,
        lost_bytes=lost_bytes(donation),
        traces=1 + stepped.traces,
        lowerings=1 + stepped.lowerings,
        compiles=1 + stepped.compiles,
        sampled_traces=sampled.traces,
        sampled_compiles=sampled.compiles,
    )


def _retraces(stepped: Stepped, sampled: Sampled) -> tuple[str, ...]:
    """Who traced or compiled again, the root cause first, and what the persistent cache hid of it."""
    lines = [*stepped.retraces, *sampled.retraces]
    hits = stepped.cache_hits + sampled.cache_hits
    if lines and hits:
        lines[0] += f" ({hits} of {stepped.compiles + sampled.compiles} compiles out of the persistent cache)"
    return tuple(lines)


def _culprits(program: Program, communication: Communication, *functions: Callable[..., Any]) -> Culprits:
    structure, work = program.structure, program.work
    return Culprits(
        constants=describe_constants(structure.constants, *functions),
        callbacks=tuple(f"{name}{at(work.lines.get(name, ''))}" for name in work.callbacks),
        lines={**structure.lines, **communication.lines, **work.lines},
    )
