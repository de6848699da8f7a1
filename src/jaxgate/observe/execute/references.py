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
    """What is known of another way to do what the subject does."""

    known: ReferenceFacts
    output: Any = None  # what it returned, on the host; `None` of what was never called
    lowered: Lowered | None = None  # to run it again; `None` of plain Python


def observe_reference(
    function: Callable[..., Any], call: Call, *, role: str, surroundings: str, tools: Tools, inputs: str | None = None
) -> Reference:
    """Lower another way, then compile it unless the store knows the outcome: all ranks do, or none, as it may wait for them.

    ``surroundings`` is a fingerprint of environment and hardware, ``inputs`` one of the arguments' values: with these it
    is also run for its output.

    Raises:
        InvalidCaseError: If it fails at any stage or returns NaN.
    """
    tools.progress(f"tracing the {role}")
    lowered = lower(
        function, *call, role=role, clock=tools.clocks.thread, asleep=tools.clocks.asleep, platform=tools.platform
    )
    tree = jax.tree.structure(lowered.stage.out_info)
    run = inputs is not None
    key = _key("reference", lowered, inputs, surroundings, tree) if run else _key("alternative", lowered, surroundings)
    found = tools.store.load(key)
    if not tools.together.anyone(f"the {role} is not remembered", found is None) and found is not None:
        numbers, outputs = found
        return Reference(_recalled(lowered, numbers), jax.tree.unflatten(tree, outputs) if run else None, lowered)
    tools.progress(f"compiling the {role}")
    known = _compiled(lowered, tools)
    output = None
    if run:
        tools.progress(f"running the {role}")
        subject = JittedSubject.of(lowered, call)
        fresh = subject.fresh()
        with guarded(f"running the {role}"):
            output = jax.tree.map(on_host, subject.call(fresh))
        refuse_nan(output, f"the {role}'s result")
    outputs = jax.tree.leaves(output)
    whole = not any(isinstance(array, Shards) for array in outputs)
    if whole and sum(array.nbytes for array in outputs) <= MAX_STORED_BYTES:
        tools.store.save(key, {"facts": asdict(known.facts), "compile_ns": known.phases.compile_ns}, outputs)
    return Reference(known, output, lowered)


def observe_alternatives(
    alternatives: Mapping[str, Alternative], *, surroundings: str, tools: Tools
) -> dict[str, ReferenceFacts]:
    """Compile other ways, of which none is ever run, unless the store knows their facts.

    Raises:
        InvalidCaseError: If one cannot be traced, lowered or compiled.
    """
    return {
        name: observe_reference(
            one.function, (one.args, {}), role=f"alternative {name}", surroundings=surroundings, tools=tools
        ).known
        for name, one in sorted(alternatives.items())
    }


def _key(kind: str, lowered: Lowered, *others: object) -> str:
    layout = [field.name for field in fields(Facts)]  # another version of this engine measured other facts
    return fingerprint(kind, layout, lowered.fingerprint, lowered.options_text, *others)


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
