"""The naive way, and other ways: compiled once, then remembered by fingerprint and environment.

An unrolled loop can take seconds to compile and never changes; its facts, its compile time and its output
are looked up under the hash of everything they depend on. Its trace and lowering are done every time: they
are what the hash is made of. The reference is run for its output; an alternative is compiled for its facts alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import jax

from jaxgate.model.computation import Alternative
from jaxgate.model.measurement import ReferenceFacts
from jaxgate.model.numbers import Facts, Phases
from jaxgate.observe.arguments.feeder import Call, Shards, on_host
from jaxgate.observe.errors import guarded
from jaxgate.observe.execute.correctness import refuse_nan
from jaxgate.observe.execute.subjects import JittedSubject
from jaxgate.observe.machine.environment import fingerprint
from jaxgate.observe.program.communication import read_communication
from jaxgate.observe.tools import Tools
from jaxgate.observe.trace.lowering import Lowered, lower
from jaxgate.observe.trace.stages import compile_program, devices_of

MAX_STORED_BYTES = 64 * 1024 * 1024
"""Outputs larger than this are computed again each time."""


@dataclass(frozen=True, slots=True)
class Reference:
    """What is known of the reference and what it returned, on the host; lowered, so that it can be run again."""

    known: ReferenceFacts
    output: Any
    lowered: Lowered


def observe_reference(
    function: Callable[..., Any], call: Call, *, inputs: str, surroundings: str, tools: Tools
) -> Reference:
    """Lower the reference, then compile and run it unless the store knows the outcome; all ranks do, or none.

    ``inputs`` is a fingerprint of the arguments' values, ``surroundings`` one of environment and hardware.

    Raises:
        InvalidCaseError: If the reference fails at any stage or returns NaN.
    """
    tools.progress("tracing the reference")
    lowered = lower(function, *call, role="reference", clock=tools.clocks.thread, asleep=tools.clocks.asleep)
    tree = jax.tree.structure(lowered.stage.out_info)
    key = _key("reference", lowered, inputs, surroundings, tree)
    found = tools.store.load(key)
    if not tools.together.anyone("the reference is not remembered", found is None) and found is not None:
        numbers, outputs = found
        return Reference(_recalled(lowered, numbers), jax.tree.unflatten(tree, outputs), lowered)
    tools.progress("compiling the reference")
    known = _compiled(lowered, tools)
    tools.progress("running the reference")
    subject = JittedSubject.of(lowered, call)
    fresh = subject.fresh()
    with guarded("running the reference"):
        output = jax.tree.map(on_host, subject.call(fresh))
    refuse_nan(output, "the reference's result")
    outputs = jax.tree.leaves(output)
    whole = not any(isinstance(array, Shards) for array in outputs)
    if whole and sum(array.nbytes for array in outputs) <= MAX_STORED_BYTES:
        tools.store.save(key, _numbers(known), outputs)
    return Reference(known, output, lowered)


def observe_alternatives(
    alternatives: Mapping[str, Alternative], *, surroundings: str, tools: Tools
) -> dict[str, ReferenceFacts]:
    """Compile other ways of doing what the subject does, unless the store knows their facts; none is ever run.

    Raises:
        InvalidCaseError: If one cannot be traced, lowered or compiled.
    """
    return {
        name: compile_alternative(
            alternative.function,
            (alternative.args, {}),
            role=f"alternative {name}",
            surroundings=surroundings,
            tools=tools,
        )
        for name, alternative in sorted(alternatives.items())
    }


def compile_alternative(
    function: Callable[..., Any], call: Call, *, role: str, surroundings: str, tools: Tools
) -> ReferenceFacts:
    """Compile a function that is never run, unless the store knows its facts.

    All ranks compile it, or none does, as compiling may wait for the others.

    Raises:
        InvalidCaseError: If it cannot be traced, lowered or compiled.
    """
    tools.progress(f"tracing the {role}")
    lowered = lower(
        function, *call, role=role, clock=tools.clocks.thread, asleep=tools.clocks.asleep, platform=tools.platform
    )
    key = _key("alternative", lowered, surroundings)
    found = tools.store.load(key)
    if not tools.together.anyone(f"the {role} is not remembered", found is None) and found is not None:
        return _recalled(lowered, found[0])
    tools.progress(f"compiling the {role}")
    known = _compiled(lowered, tools)
    tools.store.save(key, _numbers(known), [])
    return known


def _key(kind: str, lowered: Lowered, *others: object) -> str:
    layout = [field.name for field in fields(Facts)]  # another version of this engine measured other facts
    return fingerprint(kind, layout, lowered.fingerprint, lowered.options_text, *others)


def _numbers(known: ReferenceFacts) -> dict[str, Any]:
    return {"facts": asdict(known.facts), "compile_ns": known.phases.compile_ns}


def _recalled(lowered: Lowered, numbers: Mapping[str, Any]) -> ReferenceFacts:
    phases = Phases(
        trace_ns=lowered.trace_ns,
        trace_wait_ns=lowered.trace_wait_ns,
        lower_ns=lowered.lower_ns,
        compile_ns=numbers["compile_ns"],
    )
    return ReferenceFacts(facts=Facts(**numbers["facts"]), phases=phases, cached=True)


def _compiled(lowered: Lowered, tools: Tools) -> ReferenceFacts:
    program = compile_program(lowered, clocks=tools.clocks, compiler=tools.compiler)
    communication = read_communication(program, devices_of(program.executable))
    facts = replace(program.facts, collectives=communication.count, collective_bytes=communication.nbytes)
    return ReferenceFacts(facts=facts, phases=program.phases, cached=False)
