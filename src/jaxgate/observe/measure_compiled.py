"""What is known of a compiled program without a call: of arguments that are ``jax.ShapeDtypeStruct``, and of targets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from jaxgate.model.computation import Computation
from jaxgate.model.machine import compiled_for
from jaxgate.model.measurement import NOT_CALLED, Culprits, Fingerprints, InvalidCaseError, Measurement, ReferenceFacts
from jaxgate.model.numbers import ARRIVAL_FACTS, CALLED_FACTS, COUNTED_FACTS, Facts, Phases
from jaxgate.model.words import plural
from jaxgate.observe.arguments.carry import carry_donated
from jaxgate.observe.arguments.signature import read_results
from jaxgate.observe.compat import output_shardings
from jaxgate.observe.execute.correctness import Closeness
from jaxgate.observe.execute.references import observe_alternatives, observe_reference
from jaxgate.observe.largest_batch import Fitting
from jaxgate.observe.observation import CompiledSubject, Observation, compile_subject
from jaxgate.observe.program.custom_call_libraries import find_native_code
from jaxgate.observe.program.donation import lost_by_size
from jaxgate.observe.program.executable_fingerprint import executable_fingerprint
from jaxgate.observe.program.export import find_feeds
from jaxgate.observe.program.trace_calls import TraceCalls, accepted_trace_calls, count_trace_calls
from jaxgate.observe.tools import Tools
from jaxgate.observe.trace.captured_constants import describe_constants
from jaxgate.observe.trace.source import begins_at, source_fingerprint
from jaxgate.observe.trace.stablehlo import value_dependent
from jaxgate.observe.trace.stages import device_assignment


def measure_compiled(computation: Computation, build: Callable[[], Computation], tools: Tools) -> Observation:
    """Measure a case that is never called: its arguments are shapes, or it is compiled for a target.

    Of shapes no array is made, so the step of a model may need all memory that a device has, or more. The reference is compiled, too;
    the two results are not compared. Whatever only calls show is unknown, and said to be so.

    Raises:
        InvalidCaseError: If it cannot be compiled, or the case asks for what only calls show.
    """
    claims = tuple(computation.claims)
    if tools.target is not None:
        claims = tuple(claim for claim in claims if not claim.needs_calls)
    elif computation.batch is not None:
        raise InvalidCaseError("checking the batch", f"expected arrays, found a case {NOT_CALLED}; leave batch= out")
    compiled = compile_subject(computation, tools)
    reference = None
    if computation.reference is not None:
        reference = observe_reference(
            computation.reference, compiled.call, role="reference", surroundings=compiled.surroundings, tools=tools
        ).known
    found = read_compiled(computation, build, compiled, reference=reference, tools=tools)
    lost = lost_by_size(
        compiled.program, compiled.call, None if tools.target is None else compiled.program.executable.reused
    )
    next_args = computation.next_args or carry_donated(compiled.lowered.stage, compiled.call[0])
    why = NOT_CALLED if tools.target is None else compiled_for(str(tools.target.target))
    uncounted = _uncounted(found) if tools.target is not None else frozenset[str]()
    counted = tuple(claim for claim in claims if uncounted.isdisjoint({claim.quantity, claim.other}))
    everywhere = tools.target is not None  # a run says it once for all of its cases
    unseen = [
        found.unseen,
        "" if everywhere else why,
        "results are not compared with the reference's" if reference and not everywhere else "",
        _left_out(len(computation.claims) - len(claims), "calls"),
        _left_out(len(claims) - len(counted), "a count of what libraries do"),
    ]
    measurement = replace(
        found,
        compiled_only=True,
        facts=replace(found.facts, lost_bytes=lost.nbytes),
        culprits=replace(found.culprits, lost=lost.lines),
        unseen="; ".join(filter(None, unseen)),
        phases=found.phases if tools.target is None else Phases(),
        reference=found.reference if tools.target is None else untimed(found.reference),
        unknown={
            **found.unknown,
            **dict.fromkeys((*CALLED_FACTS, *ARRIVAL_FACTS), why),
            **dict.fromkeys(uncounted, f"{why}: its compiler does not count what libraries do"),
            **lost.unknown,
        },
    )
    return Observation(
        measurement=measurement,
        call=compiled.call,
        closeness=Closeness(computation.rtol, computation.atol),
        claims=counted,
        contract=computation.contract,
        lowered=compiled.lowered,
        feeds=find_feeds(compiled.lowered, compiled.call, next_args),
        target=tools.target,
        executable=compiled.program.executable,
    )


def _left_out(count: int, wanted: str) -> str:
    return f"{plural(count, 'claim')} {'needs' if count == 1 else 'need'} {wanted}" if count else ""


def _uncounted(found: Measurement) -> frozenset[str]:
    """Facts that the compiler counts of most programs, but not of one of these, which calls a library."""
    others = [one.facts for one in (found.reference, *found.alternatives.values()) if one is not None]
    return frozenset(
        name for name in COUNTED_FACTS if any(getattr(one, name) is None for one in (found.facts, *others))
    )


def untimed(reference: ReferenceFacts | None) -> ReferenceFacts | None:
    """What is known of a reference, without its times: a target is judged by no clock."""
    return None if reference is None else replace(reference, phases=Phases())


def read_compiled(
    computation: Computation,
    build: Callable[[], Computation],
    compiled: CompiledSubject,
    *,
    reference: ReferenceFacts | None,
    tools: Tools,
) -> Measurement:
    """The measurement of a case as far as no call is needed for it.

    The source of what made the case (``build``) counts as the subject's.
    """
    tools.progress("reading")
    lowered, program, surroundings = compiled.lowered, compiled.program, compiled.surroundings
    alternatives = observe_alternatives(computation.alternatives, surroundings=surroundings, tools=tools)
    largest, known = Fitting(tools, surroundings).largest_batches(computation, reference)
    fingerprints = Fingerprints(
        source=source_fingerprint(computation.subject, build, given=_given(computation)),
        program=lowered.fingerprint,
        options=lowered.options_text,
        inputs=compiled.inputs,
        executable=_executable(compiled),
        devices=device_assignment(lowered.stage),
    )
    phases = replace(program.phases, yardstick_ns=compiled.yardstick_ns)
    traced = accepted_trace_calls(
        None if tools.recording else tools.accepted(compiled.hardware),
        fingerprints=fingerprints,
        libraries=program.work.libraries,
        environment=compiled.environment,
        phases=phases,
    ) or count_trace_calls(lowered)
    return Measurement(
        hardware=compiled.hardware,
        processes=compiled.processes,
        environment=compiled.environment,
        fingerprints=fingerprints,
        signature=program.lowered.signature,
        facts=replace(_facts(compiled, largest), trace_calls=traced.count),
        phases=phases,
        results=read_results(lowered.stage, output_shardings(program.executable)),
        operations=program.structure.operations,
        libraries=program.work.libraries,
        native_code=find_native_code(program.structure.operations, compiled.hardware.platform),
        unseen=lowered.unseen,
        depends_on_values=value_dependent(lowered.stage.compiler_ir("stablehlo")),
        only_raises=program.work.only_raises(program.structure.host_callbacks),
        matmuls=program.work.matmuls,
        collectives=compiled.communication.counts,
        kernels=program.kernels.counts,
        widened=program.work.widened,
        traced=traced.functions,
        unknown={**compiled.communication.unknown, **program.kernels.unknown, **traced.unknown},
        samples=None,
        demand=compiled.demand,
        expected_traces=computation.expected_traces,
        analytic_flops=computation.analytic_flops,
        amount=computation.amount,
        alternatives=alternatives,
        reference=known,
        culprits=_culprits(compiled, traced, computation.subject, build, _given(computation)),
    )


def _given(computation: Computation) -> tuple[object, ...]:
    """Arguments of the subject and what makes the next step's: more of the subject's source may be found through them."""
    return computation.args, computation.kwargs, computation.next_args


def _executable(compiled: CompiledSubject) -> str | None:
    """The executable's fingerprint, of one process on CPU: other compilers try out on the device what they choose."""
    alone = compiled.hardware.platform == "cpu" and compiled.processes == 1
    calls_python = compiled.program.facts.host_callbacks  # whose addresses are in it
    return executable_fingerprint(compiled.program.executable) if alone and not calls_python else None


def _facts(compiled: CompiledSubject, largest_batch: int | None) -> Facts:
    return replace(
        compiled.program.facts,
        jitted=int(compiled.lowered.jitted),
        remade_jits=len(compiled.lowered.remade),
        collectives=compiled.communication.count,
        collective_bytes=compiled.communication.nbytes,
        largest_batch=largest_batch,
    )


def _culprits(compiled: CompiledSubject, traced: TraceCalls, *functions: object) -> Culprits:
    program = compiled.program
    structure, work = program.structure, program.work
    lines = {**structure.lines, **compiled.communication.lines, **work.lines, **program.kernels.lines, **traced.lines}
    return Culprits(
        begins=begins_at(*functions),
        constants=describe_constants(structure.constants, *functions),
        drawn=work.drawn,
        blocks=work.blocks,
        unmatched=work.unmatched,
        thrown_away=work.thrown_away,
        remade=compiled.lowered.remade,
        callbacks=work.callback_lines,
        lines=lines,
    )
