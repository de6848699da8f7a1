"""From a computation to a measurement: lower, compile, call, compare with the reference, sample."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from jaxgate.ext.targets.interface import TargetCompiler
from jaxgate.model.computation import Computation
from jaxgate.model.measurement import Argument, InvalidCaseError
from jaxgate.observe.arguments.carry import with_next_args
from jaxgate.observe.arguments.feeder import has_shapes, read_value
from jaxgate.observe.arguments.static import given_leaves
from jaxgate.observe.errors import NotOnTargetError, guarded
from jaxgate.observe.execute.loop_turns import Turns, count_turns
from jaxgate.observe.execute.samples import describe_retraces, dispatch_time
from jaxgate.observe.execute.subjects import JittedSubject
from jaxgate.observe.jax_extend import jax_extend
from jaxgate.observe.machine.jax_settings import refuse_settings
from jaxgate.observe.measure_calls import call_case
from jaxgate.observe.measure_compiled import measure_compiled, read_compiled
from jaxgate.observe.measure_eager import measure_eager
from jaxgate.observe.observation import CompiledSubject, Observation, compile_subject
from jaxgate.observe.program.donation import lost_of, read_donation
from jaxgate.observe.program.export import find_feeds
from jaxgate.observe.tools import Tools
from jaxgate.observe.trace.stages import devices_of


def observe(build: Callable[[], Computation], tools: Tools) -> Observation:
    """Measure one case; what was seen has the subject itself, for a duel.

    Nothing is traced, lowered or compiled twice: calls hit the executable that the phases were timed on. ``build`` makes
    the computation, and may allocate on devices.

    Raises:
        InvalidCaseError: If the case cannot be measured, or its results are wrong.
        NotOnTargetError: If there is no program that a target's compiler could be given.
    """
    jax_extend()  # before anything is traced
    refuse_settings()
    tools.progress("building")
    with guarded("building the workload"):
        computation = with_next_args(build())
    observed = _grown(_way_to_measure(computation, tools.target)(computation, build, tools), computation, tools)
    return observed if observed.measurement.processes == 1 else replace(observed, together=tools.together)


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
    lowered, hardware = compiled.lowered, compiled.hardware
    subject = JittedSubject.of(lowered, compiled.call, tuple(devices_of(compiled.program.executable)))
    calls = call_case(subject, computation, tools, compiled)
    lost = lost_of(read_donation(compiled.program, subject.first_fed))
    dispatch_ns = None
    if tools.sampling and compiled.processes == 1 and not hardware.is_virtual:
        dispatch_ns = dispatch_time(subject, compiled.program, call_ns=calls.stepped.call_ns, clock=tools.clocks.wall)
    turns = count_turns(compiled, tools)
    found = read_compiled(computation, build, compiled, reference=calls.known, tools=tools)
    facts = replace(calls.facts(found.facts), lost_bytes=lost.nbytes, loop_turns=turns.total)
    phases = replace(
        found.phases, first_call_ns=calls.stepped.first_call_ns, host_ns=calls.host_ns, dispatch_ns=dispatch_ns
    )
    culprits = replace(
        found.culprits,
        lines={**found.culprits.lines, **calls.called.lines, **turns.lines},
        retraces=describe_retraces(calls.stepped, calls.further, calls.sampled),
        lost=lost.lines,
    )
    measurement = replace(
        found,
        signature=_signature(computation, compiled, subject, turns),
        facts=facts,
        phases=phases,
        unseen="; ".join(filter(None, (found.unseen, calls.further.unseen))),
        called=calls.called.functions,
        turns=turns.counts,
        unknown={**found.unknown, **lost.unknown, **calls.called.unknown, **turns.unknown},
        samples=calls.sampled.samples if tools.sampling else None,
        energy=calls.metered.energy,
        culprits=culprits,
    )
    reference = None if calls.reference is None else calls.reference.lowered
    threaded = calls.stepped.next_args
    return Observation(
        measurement=measurement,
        call=compiled.call,
        closeness=calls.closeness,
        claims=tuple(computation.claims),
        contract=computation.contract,
        lowered=lowered,
        feeds=calls.feeds,
        reference=reference,
        reference_feeds=None if reference is None else find_feeds(reference, compiled.call, threaded),
        next_args=threaded,
        meter=calls.metered.meter,
        result=calls.stepped.first_output if reference is None else None,
    )


def _signature(
    computation: Computation, compiled: CompiledSubject, subject: JittedSubject, turns: Turns
) -> tuple[Argument, ...]:
    """The arguments as they arrive; with their values where these decide how often loops turn."""
    found = subject.arguments(compiled.program, (computation.args, dict(computation.kwargs)))
    leaves = given_leaves(compiled.lowered.stage, compiled.call)
    if not turns.counts or len(leaves) != len(found):
        return found
    return tuple(replace(argument, value=read_value(leaf)) for argument, leaf in zip(found, leaves, strict=True))
