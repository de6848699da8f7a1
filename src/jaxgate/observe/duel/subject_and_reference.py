"""Subject and reference as opponents: exported alike, fed with the same arguments, stepped alike."""

from __future__ import annotations

from dataclasses import fields, replace

from jaxgate.model import Duel, StoredProgram
from jaxgate.observe.execute import WHY_NOT
from jaxgate.observe.machine import fingerprint
from jaxgate.observe.observation import Observation
from jaxgate.observe.program import NotReplayableError, export_program
from jaxgate.observe.trace import Lowered


def export_opponents(observed: Observation) -> tuple[StoredProgram, StoredProgram]:
    """Subject and reference as programs that can be compiled again.

    State is threaded through both or through neither.

    Raises:
        NotReplayableError: If one of them cannot be exported, there is no reference, or they take different arrays.
    """
    reference, known = observed.reference, observed.measurement.reference
    if reference is None or known is None:
        raise NotReplayableError("the case has no reference")
    if observed.lowered is None:
        raise NotReplayableError(WHY_NOT)
    if _avals(observed.lowered) != _avals(reference):
        raise NotReplayableError("subject and reference take different arrays: an argument is static in one of them")
    constant_bytes = known.facts.constant_bytes or 0
    subject = observed.export()
    other = export_program(reference, observed.call, observed.reference_feeds, constant_bytes)
    for role, program in (("subject", subject), ("reference", other)):
        if not program.record.stored:
            raise NotReplayableError(f"the {role}: {program.record.why_not}")
    if subject.record.feeds != other.record.feeds:
        return _unthreaded(subject), _unthreaded(other)
    return subject, other


def opponents_fingerprint(observed: Observation) -> str:
    """Hash of what their duel depends on: programs, options, donation, threading, contract, inputs, surroundings."""
    now = observed.measurement
    sides = (observed.lowered, observed.feeds), (observed.reference, observed.reference_feeds)
    parts = [
        (side.fingerprint, side.options, [leaf.donated for leaf in side.signature], feeds)
        for side, feeds in sides
        if side is not None
    ]
    layout = [field.name for field in fields(Duel)]  # another version of this engine measured otherwise
    surroundings = (now.hardware, sorted(now.environment.items()))
    return fingerprint("duel", layout, observed.contract, parts, now.fingerprints.inputs, surroundings)


def _avals(lowered: Lowered) -> list[str]:
    return [leaf.aval for leaf in lowered.signature]


def _unthreaded(program: StoredProgram) -> StoredProgram:
    return replace(program, record=replace(program.record, feeds=None))
