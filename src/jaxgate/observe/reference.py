"""The naive way: compiled and run once, then remembered by fingerprint and environment.

An unrolled loop can take seconds to compile and never changes; its facts, its compile time and its output
are looked up under the hash of everything they depend on. Its trace and lowering are done every time: they
are what the hash is made of.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Protocol

import jax
import numpy as np

from jaxgate.model import Facts, Phases, ReferenceFacts
from jaxgate.observe.calls import refuse_nan
from jaxgate.observe.communication import read_communication
from jaxgate.observe.compiling import Clocks, Lowered, compile_program, devices_of, lower
from jaxgate.observe.failures import guarded
from jaxgate.observe.feeding import Call, Feeder
from jaxgate.observe.shards import Shards, on_host
from jaxgate.observe.surroundings import fingerprint
from jaxgate.observe.together import ALONE, Together

MAX_STORED_BYTES = 64 * 1024 * 1024
"""Outputs larger than this are computed again each time."""


class ReferenceStore(Protocol):
    """Where facts and outputs of references are kept between runs; losing it costs time only."""

    def load(self, key: str) -> tuple[dict[str, Any], list[np.ndarray[Any, Any]]] | None:
        """Give back what was saved under a key, or ``None``."""

    def save(self, key: str, facts: dict[str, Any], outputs: list[np.ndarray[Any, Any]]) -> None:
        """Keep numbers and arrays under a key."""


@dataclass(frozen=True, slots=True)
class Reference:
    """What is known of the reference and what it returned, on the host; lowered, so that it can be run again."""

    known: ReferenceFacts
    output: Any
    lowered: Lowered


def observe_reference(
    function: Callable[..., Any],
    call: Call,
    *,
    inputs: str,
    surroundings: str,
    store: ReferenceStore,
    progress: Callable[[str], None],
    clocks: Clocks,
    together: Together = ALONE,
) -> Reference:
    """Lower the reference, then compile and run it unless the store knows the outcome.

    Args:
        function: The reference.
        call: The subject's arguments.
        inputs: Fingerprint of their values.
        surroundings: Fingerprint of environment and hardware.
        store: Where earlier outcomes are kept.
        progress: Told before anything that may take long.
        clocks: What is timed with which.
        together: The ranks that run it: all of them, or none.

    Raises:
        InvalidCaseError: If the reference fails at any stage or returns NaN.
    """
    args, kwargs = call
    progress("tracing the reference")
    lowered = lower(function, args, kwargs, role="reference", clock=clocks.thread)
    tree = jax.tree.structure(lowered.stage.out_info)
    layout = [field.name for field in fields(Facts)]  # another version of this engine measured other facts
    key = fingerprint("reference", layout, lowered.fingerprint, lowered.options_text, inputs, surroundings, tree)
    found = store.load(key)
    if not together.anyone("the reference is not remembered", found is None) and found is not None:
        numbers, outputs = found
        known = Facts(**numbers["facts"])
        phases = _phases(lowered, numbers["compile_ns"])
        remembered = ReferenceFacts(facts=known, phases=phases, cached=True)
        return Reference(remembered, jax.tree.unflatten(tree, outputs), lowered)
    progress("compiling the reference")
    program = compile_program(lowered, clocks=clocks)
    communication = read_communication(program, devices_of(program.executable))
    measured = replace(program.facts, collectives=communication.count, collective_bytes=communication.nbytes)
    progress("running the reference")
    args, kwargs = Feeder(call, donates=any(leaf.donated for leaf in lowered.signature)).fresh()
    with guarded("running the reference"):
        output = jax.tree.map(on_host, jax.block_until_ready(lowered.function(*args, **kwargs)))
    refuse_nan(output, "the reference's result")
    outputs = jax.tree.leaves(output)
    whole = not any(isinstance(array, Shards) for array in outputs)
    if whole and sum(array.nbytes for array in outputs) <= MAX_STORED_BYTES:
        store.save(key, {"facts": asdict(measured), "compile_ns": program.compile_ns}, outputs)
    return Reference(ReferenceFacts(facts=measured, phases=program.phases, cached=False), output, lowered)


def _phases(lowered: Lowered, compile_ns: int | None) -> Phases:
    return Phases(trace_ns=lowered.trace_ns, lower_ns=lowered.lower_ns, compile_ns=compile_ns)
