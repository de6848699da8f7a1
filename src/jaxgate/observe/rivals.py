"""Rivals: other ways of doing what the subject does, compiled for their facts and never run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, fields, replace
from typing import Any

from jaxgate.model import Facts, Phases, ReferenceFacts, Rival
from jaxgate.observe.communication import read_communication
from jaxgate.observe.compiling import Clocks, Lowered, compile_program, devices_of, lower
from jaxgate.observe.reference import ReferenceStore
from jaxgate.observe.surroundings import fingerprint
from jaxgate.observe.together import ALONE, Together


def observe_rivals(
    rivals: Mapping[str, Rival],
    *,
    surroundings: str,
    store: ReferenceStore,
    progress: Callable[[str], None],
    clocks: Clocks,
    together: Together = ALONE,
) -> dict[str, ReferenceFacts]:
    """Compile each rival, unless the store knows its facts from an earlier run.

    Args:
        rivals: By name.
        surroundings: Fingerprint of environment and hardware.
        store: Where earlier outcomes are kept.
        progress: Told before anything that may take long.
        clocks: What is timed with which.
        together: The ranks that compile them: all of them, or none, as compiling may wait for the others.

    Raises:
        InvalidCaseError: If one cannot be traced, lowered or compiled.
    """
    known = {}
    for name, rival in sorted(rivals.items()):
        progress(f"tracing the rival {name}")
        lowered = lower(rival.function, rival.args, {}, role=f"rival {name}", clock=clocks.thread)
        layout = [field.name for field in fields(Facts)]  # another version of this engine measured other facts
        key = fingerprint("rival", layout, lowered.fingerprint, lowered.options_text, surroundings)
        fresh = _recalled(lowered, store.load(key))
        if together.anyone(f"the rival {name} is not remembered", fresh is None) or fresh is None:
            progress(f"compiling the rival {name}")
            fresh = _compiled(lowered, clocks)
            store.save(key, {"facts": asdict(fresh.facts), "compile_ns": fresh.phases.compile_ns}, [])
        known[name] = fresh
    return known


def _recalled(lowered: Lowered, found: Any) -> ReferenceFacts | None:
    if found is None:
        return None
    numbers, _ = found
    phases = Phases(trace_ns=lowered.trace_ns, lower_ns=lowered.lower_ns, compile_ns=numbers["compile_ns"])
    return ReferenceFacts(facts=Facts(**numbers["facts"]), phases=phases, cached=True)


def _compiled(lowered: Lowered, clocks: Clocks) -> ReferenceFacts:
    program = compile_program(lowered, clocks=clocks)
    communication = read_communication(program, devices_of(program.executable))
    facts = replace(program.facts, collectives=communication.count, collective_bytes=communication.nbytes)
    return ReferenceFacts(facts=facts, phases=program.phases, cached=False)
