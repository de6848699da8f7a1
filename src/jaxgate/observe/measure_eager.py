"""The measurement of plain Python around device programs: called as it is, never put under ``jax.jit``.

What stands between the programs is the subject too: eager operations, ``float(loss)``, NumPy inputs. Its steps
must not trace or compile after the first one, its warm calls are counted in a profile and timed as a whole.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from jaxgate.model.computation import Computation
from jaxgate.model.measurement import Argument, Culprits, Fingerprints, Measurement
from jaxgate.model.numbers import Facts, Phases
from jaxgate.observe.arguments.feeder import Call, inputs_fingerprint
from jaxgate.observe.arguments.lockstep import ALONE
from jaxgate.observe.arguments.signature import leaves_with_paths, short
from jaxgate.observe.eager_programs import EagerPrograms, compare_launches, find_programs
from jaxgate.observe.execute.dispatches import Launched
from jaxgate.observe.execute.subjects import VALUES, EagerSubject
from jaxgate.observe.machine.environment import fingerprint, hardware_key, read_environment
from jaxgate.observe.machine.load import read_yardstick
from jaxgate.observe.measure_calls import Calls, call_case
from jaxgate.observe.observation import Observation
from jaxgate.observe.program.custom_call_libraries import find_native_code
from jaxgate.observe.tools import Tools
from jaxgate.observe.trace.captured_constants import describe_constants
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
    jax.clear_caches()  # the first step is a cold one: what an earlier call compiled would hide a later miss
    calls = call_case(subject, computation, tools)
    programs = find_programs(subject, calls.launched, tools)  # last: it traces and compiles
    return Observation(
        measurement=_measurement(computation, build, subject, calls, programs, tools=tools),
        call=call,
        closeness=calls.closeness,
        claims=tuple(computation.claims),
        contract=computation.contract,
        function=computation.subject,
        launched=programs.programs,
        reference_function=computation.reference,
        meter=calls.metered.meter,
    )


def _measurement(
    computation: Computation,
    build: Callable[[], Computation],
    subject: EagerSubject,
    calls: Calls,
    programs: EagerPrograms,
    *,
    tools: Tools,
) -> Measurement:
    stepped, further, launched, called = calls.stepped, calls.further, calls.launched, calls.called
    device, each = subject.devices[0], [one.program for one in programs.programs]
    signature, constants = _signature(subject), [found for one in each for found in one.structure.constants]
    facts = Facts(
        jitted=int(is_jitted(computation.subject)),
        donated_bytes=sum(leaf.nbytes for leaf in signature if leaf.donated),
        launches=launched.launches,
        host_transfers=launched.host_transfers,
        host_reads=called.reads,
        host_waits=called.waits,
        kept_arrays=stepped.left.arrays,
        cyclic_objects=stepped.left.cyclic_objects,
        cyclic_arrays=stepped.left.cyclic_arrays,
        **programs.facts,
    )
    culprits = Culprits(
        begins=begins_at(subject.function),
        constants=describe_constants(constants, subject.function, build, subject.given),
        callbacks=tuple(dict.fromkeys(line for one in each for line in one.work.callback_lines)),
        retraces=(*stepped.retraces, *further.retraces),
        transfer_lines=launched.transfer_lines,
        reads=called.read_lines,
        kept=stepped.left.described,
        cycles=stepped.left.cycles,
        lines={
            **stepped.first_lines,
            **programs.lines,
            **called.lines,
            **find_jitted_functions(subject.function),
            **launched.program_lines,
            **further.lines,
        },
    )
    return Measurement(
        hardware=hardware_key(device, len(subject.devices), calls.processes),
        processes=calls.processes,
        environment=read_environment(device),
        fingerprints=Fingerprints(
            source=source_fingerprint(computation.subject, build, given=(subject.given, computation.next_args)),
            program=_fingerprint(launched, programs, signature),
            options=programs.options,
            inputs=_inputs(subject.given),
        ),
        signature=signature,
        facts=calls.facts(facts),
        phases=Phases(
            first_call_ns=stepped.first_call_ns, host_ns=calls.host_ns, yardstick_ns=read_yardstick(tools.clocks.wall)
        ),
        operations=programs.operations,
        matmuls=programs.histogram(lambda one: one.program.work.matmuls),
        collectives=programs.histogram(lambda one: one.communication.counts),
        kernels=programs.histogram(lambda one: one.program.kernels.counts),
        widened=programs.histogram(lambda one: one.program.work.widened),
        libraries=dict(sorted(pair for one in each for pair in one.work.libraries.items())),
        native_code=find_native_code(programs.operations, device.platform),
        depends_on_values=programs.depends_on_values,
        only_raises=programs.only_raises,
        samples=calls.sampled.samples if tools.sampling else None,
        energy=calls.metered.energy,
        expected_traces=computation.expected_traces,
        analytic_flops=computation.analytic_flops,
        amount=computation.amount,
        reference=calls.known,
        culprits=culprits,
        eager=True,
        unknown=launched.unknown | programs.unknown | called.unknown,
        launched=launched.programs or {},
        launched_programs=programs.described,
        transferred=launched.transfers or {},
        unseen=further.unseen,
        first=stepped.first,
        later=further.later,
        steps=further.steps,
        called=called.functions,
    )


def _signature(subject: EagerSubject) -> tuple[Argument, ...]:
    order = {id(leaf): index for index, leaf in enumerate(jax.tree.leaves(subject.given))}
    return tuple(
        Argument(
            path=path,
            aval=short(leaf) if _is_array(leaf) else f"Python {type(leaf).__name__}",
            nbytes=int(leaf.nbytes) if _is_array(leaf) else 0,
            donated=order[id(leaf)] in subject.consumed,
        )
        for path, leaf in leaves_with_paths(*subject.given, subject.names)
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
