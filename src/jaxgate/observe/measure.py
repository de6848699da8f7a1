"""From a computation to a measurement: lower, compile, call, compare with the reference, sample."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from jaxgate.ext.energy.counters import EnergyMeters
from jaxgate.ext.energy.run import Metered, measure_energy
from jaxgate.ext.targets.interface import TargetCompiler
from jaxgate.model.computation import Computation
from jaxgate.model.measurement import Argument, InvalidCaseError, Measurement
from jaxgate.model.numbers import Facts
from jaxgate.observe.arguments.carry import carry_donated, with_next_args
from jaxgate.observe.arguments.feeder import has_shapes, read_value
from jaxgate.observe.arguments.lockstep import ALONE, Lockstep
from jaxgate.observe.arguments.static import given_leaves
from jaxgate.observe.errors import NotOnTargetError, guarded
from jaxgate.observe.execute.correctness import Closeness, check_agreement, check_batch
from jaxgate.observe.execute.dispatches import dispatch_time
from jaxgate.observe.execute.loop_turns import Turns, count_turns
from jaxgate.observe.execute.python_calls import Called, count_python
from jaxgate.observe.execute.references import Reference, observe_reference
from jaxgate.observe.execute.samples import Sampled, describe_retraces, launch_time, refuse_retraces, sample
from jaxgate.observe.execute.steps import Stepped, take_further_steps, take_steps
from jaxgate.observe.execute.subjects import JittedSubject
from jaxgate.observe.jax_extend import jax_extend
from jaxgate.observe.machine.jax_settings import refuse_settings
from jaxgate.observe.measure_compiled import measure_compiled, read_compiled
from jaxgate.observe.measure_eager import measure_eager
from jaxgate.observe.observation import CompiledSubject, Observation, compile_subject
from jaxgate.observe.program.donation import Lost, lost_of, read_donation
from jaxgate.observe.program.export import find_feeds
from jaxgate.observe.tools import Accepted, Announce, ReferenceStore, Tools
from jaxgate.observe.trace.clocks import CLOCKS, Clocks
from jaxgate.observe.trace.stages import devices_of


def observe(
    build: Callable[[], Computation],
    *,
    store: ReferenceStore,
    progress: Announce = lambda _: None,
    sampling: bool = True,
    accepted: Accepted = lambda _: None,
    recording: bool = False,
    clocks: Clocks = CLOCKS,
    together: Lockstep = ALONE,
    target: TargetCompiler | None = None,
    meters: EnergyMeters | None = None,
) -> Observation:
    """Measure one case; what was seen has the subject itself, for a duel.

    Nothing is traced, lowered or compiled twice: calls hit the executable that the phases were timed on. ``Tools`` says
    what the others are; ``build`` makes the computation, and may allocate on devices.

    Raises:
        InvalidCaseError: If the case cannot be measured, or its results are wrong.
        NotOnTargetError: If there is no program that a target's compiler could be given.
    """
    jax_extend()  # before anything is traced
    refuse_settings()
    progress("building")
    with guarded("building the workload"):
        computation = with_next_args(build())
    tools = Tools(
        store=store,
        progress=progress,
        sampling=sampling,
        accepted=accepted,
        recording=recording,
        clocks=clocks,
        together=together,
        target=target,
        meters=meters,
    )
    observed = _grown(_way_to_measure(computation, target)(computation, build, tools), computation, tools)
    return observed if observed.measurement.processes == 1 else replace(observed, together=together)


def _grown(observed: Observation, computation: Computation, tools: Tools) -> Observation:
    """What was observed, with what the case has at other sizes, where it asks for that."""
    if computation.grow is None:
        return observed
    from jaxgate.ext.growth.probe import observe_growth  # noqa: PLC0415 - what few cases need

    now = observed.measurement
    growth, lines, unknown = observe_growth(computation, computation.grow, now, tools)
    culprits = replace(now.culprits, lines={**lines, **now.culprits.lines})
    unknown = {**now.unknown, **unknown}
    now = replace(now, growing=computation.grow, growth=growth, culprits=culprits, unknown=unknown)
    return replace(observed, measurement=now)


def _way_to_measure(
    computation: Computation, target: TargetCompiler | None
) -> Callable[[Computation, Callable[[], Computation], Tools], Observation]:
    """How a case is measured: by calls of a program, by calls of plain Python, or without any."""
    if target is not None and computation.eager:
        raise NotOnTargetError(
            f"plain Python (eager=True) is not one program, so it is not compiled for {target.target}"
        )
    with guarded("flattening the arguments"):
        shapes = has_shapes(computation.args, computation.kwargs)
    if shapes and computation.eager:
        raise InvalidCaseError(
            "looking at the arguments",
            "expected arrays for a function that is called as it is (eager=True, eqx.filter_jit, nnx.jit), found "
            "jax.ShapeDtypeStruct; give arrays, or a function that jax.jit can trace: what is under the decorator, with "
            "donate=",
        )
    if shapes or target is not None:
        return measure_compiled
    return measure_eager if computation.eager else _measure_jitted


def _measure_jitted(computation: Computation, build: Callable[[], Computation], tools: Tools) -> Observation:
    compiled = compile_subject(computation, tools)
    run = _run(computation, compiled, tools)
    reference = None if run.reference is None else run.reference.lowered
    threaded = run.stepped.next_args
    return Observation(
        measurement=_measurement(computation, build, compiled, run, tools),
        call=compiled.call,
        closeness=run.closeness,
        claims=tuple(computation.claims),
        contract=computation.contract,
        lowered=compiled.lowered,
        feeds=run.feeds,
        reference=reference,
        reference_feeds=None if reference is None else find_feeds(reference, compiled.call, threaded),
        next_args=threaded,
        meter=run.metered.meter,
        result=run.stepped.first_output if reference is None else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """What calls of the subject showed, and the reference, which agrees with them."""

    subject: JittedSubject
    closeness: Closeness
    stepped: Stepped
    lost: Lost
    reference: Reference | None
    feeds: tuple[int | None, ...] | None
    sampled: Sampled
    metered: Metered
    called: Called
    launch_ns: int | None
    dispatch_ns: int | None
    turns: Turns


def _run(computation: Computation, compiled: CompiledSubject, tools: Tools) -> _Run:
    lowered, call, wall = compiled.lowered, compiled.call, tools.clocks.wall
    subject = JittedSubject.of(lowered, call)
    tools.progress("running")
    next_args = computation.next_args or carry_donated(lowered.stage, call[0])
    stepped = take_steps(subject, next_args, clock=wall, together=tools.together)
    refuse_retraces(stepped, computation, tools)
    stepped.further = take_further_steps(
        subject, stepped, declared=next_args is not None, clock=wall, together=tools.together
    )
    lost = lost_of(read_donation(compiled.program, subject.first_fed))
    if computation.batch is not None:
        tools.progress("checking the batch")
        check_batch(lowered.function, call, computation.batch, donates=subject.consumes, together=tools.together)
    closeness = Closeness.on(
        devices_of(compiled.program.executable)[0],
        compiled.program.work.matmuls,
        rtol=computation.rtol,
        atol=computation.atol,
    )
    reference = None
    if computation.reference is not None:
        reference = observe_reference(
            computation.reference, call, inputs=compiled.inputs, surroundings=compiled.surroundings, tools=tools
        )
        check_agreement(stepped.first_output, reference.output, closeness)
    feeds = find_feeds(lowered, call, stepped.next_args)
    apart = stepped.next_args is not None and feeds is None
    sampled = sample(subject, stepped, tools, apart=apart, contract=computation.contract)
    devices = devices_of(compiled.program.executable)
    metered = measure_energy(subject, stepped, sampled, tools, devices=devices, apart=apart)
    called = count_python(subject, reads=False, together=tools.together)
    launch_ns = launch_time(subject, platform=compiled.hardware.platform, clock=wall) if tools.sampling else None
    timed = tools.sampling and compiled.processes == 1 and not compiled.hardware.is_virtual
    return _Run(
        subject=subject,
        closeness=closeness,
        stepped=stepped,
        lost=lost,
        reference=reference,
        feeds=feeds,
        sampled=sampled,
        metered=metered,
        called=called,
        launch_ns=launch_ns,
        dispatch_ns=dispatch_time(subject, compiled.program, call_ns=stepped.call_ns, clock=wall) if timed else None,
        turns=count_turns(compiled, tools),
    )


def _measurement(
    computation: Computation, build: Callable[[], Computation], compiled: CompiledSubject, run: _Run, tools: Tools
) -> Measurement:
    known = None if run.reference is None else run.reference.known
    found = read_compiled(computation, build, compiled, reference=known, tools=tools)
    return replace(
        found,
        signature=_signature(computation, compiled, run),
        facts=_facts(found.facts, run),
        phases=replace(
            found.phases, first_call_ns=run.stepped.first_call_ns, host_ns=run.launch_ns, dispatch_ns=run.dispatch_ns
        ),
        unseen="; ".join(filter(None, (found.unseen, run.stepped.further.unseen))),
        called=run.called.functions,
        turns=run.turns.counts,
        unknown={**found.unknown, **run.lost.unknown, **run.called.unknown, **run.turns.unknown},
        samples=run.sampled.samples if tools.sampling else None,
        energy=run.metered.energy,
        culprits=replace(
            found.culprits,
            lines={**found.culprits.lines, **run.called.lines, **run.turns.lines},
            retraces=describe_retraces(run.stepped, run.stepped.further, run.sampled),
            lost=run.lost.lines,
        ),
    )


def _signature(computation: Computation, compiled: CompiledSubject, run: _Run) -> tuple[Argument, ...]:
    """The arguments as they arrive; with their values where these decide how often loops turn."""
    found = run.subject.arguments(compiled.program, (computation.args, dict(computation.kwargs)))
    leaves = given_leaves(compiled.lowered.stage, compiled.call)
    if not run.turns.counts or len(leaves) != len(found):
        return found
    return tuple(replace(argument, value=read_value(leaf)) for argument, leaf in zip(found, leaves, strict=True))


def _facts(found: Facts, run: _Run) -> Facts:
    return replace(
        found,
        lost_bytes=run.lost.nbytes,
        traces=1 + run.stepped.traces,
        lowerings=1 + run.stepped.lowerings,
        compiles=1 + run.stepped.compiles,
        sampled_traces=run.stepped.further.traces + run.sampled.traces,
        sampled_compiles=run.stepped.further.compiles + run.sampled.compiles,
        python_calls=run.called.calls,
        jax_calls=run.called.jax_calls,
        loop_turns=run.turns.total,
    )
