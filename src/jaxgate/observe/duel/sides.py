"""The sides of a duel: a program, those that plain Python launches, a reference, or a baseline's program compiled here.

The last costs as much as the subject's own compile and never changes, so it is remembered, like a reference, under the
hash of all that it depends on. For a duel in a fresh process, arguments go to the host and back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, TypeVar

import jax
import numpy as np

from jaxgate.model.duel import Duel
from jaxgate.model.numbers import Contract
from jaxgate.model.program import Match, StoredProgram
from jaxgate.observe.arguments.feeder import Shards, parts_of
from jaxgate.observe.arguments.lockstep import ALONE, Lockstep, is_spread
from jaxgate.observe.arguments.signature import to_host
from jaxgate.observe.duel.duel import Contender, prepare
from jaxgate.observe.execute.subjects import WHY_NOT
from jaxgate.observe.machine.environment import fingerprint
from jaxgate.observe.observation import Observation
from jaxgate.observe.program.executable_fingerprint import executable_fingerprint
from jaxgate.observe.program.export import NotReplayableError, export_program
from jaxgate.observe.tools import ReferenceStore
from jaxgate.observe.trace.clocks import Clock
from jaxgate.observe.trace.lowering import Lowered
from jaxgate.observe.trace.stages import compiled_facts


@dataclass(frozen=True, slots=True)
class CallSide:
    """Some compiled programs, and how often one call calls each.

    Each program is timed in a burst of its own: what one gives to the next is Python's, which is not timed here.
    """

    parts: Sequence[tuple[Contender, int]]

    @property
    def contract(self) -> Contract:
        """What the time of a call means; the same for all programs."""
        return self.parts[0][0].contract

    @property
    def consumed(self) -> bool:
        """Whether a burst of one of them can be of one call only."""
        return any(contender.consumed for contender, _ in self.parts)

    def results(self, most_bytes: int | None = None) -> list[np.ndarray[Any, Any]] | None:
        """What one call of each gives, on the host; ``None`` if it is more than so many bytes, where there is a limit."""
        found: list[np.ndarray[Any, Any]] = []
        for contender, _ in self.parts:
            left = None if most_bytes is None else most_bytes - sum(array.nbytes for array in found)
            given = contender.results(left)
            if given is None:
                return None
            found += given
        return found

    def burst(self, calls: int, clock: Clock) -> int:
        """Nanoseconds that some calls take."""
        return sum(_burst(contender, calls * count, clock) for contender, count in self.parts)


def _burst(contender: Contender, calls: int, clock: Clock) -> int:
    if contender.consumed:
        return sum(contender.burst(1, clock) for _ in range(calls))
    return contender.burst(calls, clock)


def prepare_side(
    matches: Sequence[Match],
    side: Literal["now", "baseline"],
    contract: Contract,
    prepare: Callable[..., Contender] = prepare,
) -> CallSide:
    """Compile the programs of one side of a duel.

    Raises:
        NotReplayableError: If one cannot be read, compiled or called with its arguments.
    """
    if side == "now":
        return CallSide([(prepare(one.now, one.leaves, contract), one.calls[0]) for one in matches])
    return CallSide([(prepare(one.baseline, one.leaves, contract), one.calls[1]) for one in matches])


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


Made = TypeVar("Made")
WEAK = "weak"
ARRAY = "array"
Kind = str | Mapping[str, Any]
"""``array``, ``weak``, a random key's implementation; or shape and places of the parts of one that is spread over processes."""


def to_files(leaves: Sequence[Any]) -> tuple[list[np.ndarray[Any, Any]], list[Kind]]:
    """Bring arguments to the host, with the kind of each."""
    kinds: list[Kind] = []
    arrays = []
    for leaf in leaves:
        if is_spread(leaf):
            parts = parts_of(leaf)
            about = {"shape": parts.shape, "devices": parts.devices, "key": parts.key}
            kinds.append({**about, "places": list(parts.parts)})
            arrays.append(np.stack(list(parts.parts.values())))
            continue
        arrays.append(to_host(leaf))
        if isinstance(leaf, jax.Array) and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            kinds.append(str(jax.random.key_impl(leaf)))
        else:
            # A weak array with a shape is no Python number; compiled programs take it as an array.
            weak = not hasattr(leaf, "dtype") or bool(getattr(leaf, "weak_type", False) and leaf.ndim == 0)
            kinds.append(WEAK if weak else ARRAY)
    return arrays, kinds


def restore(arrays: Sequence[np.ndarray[Any, Any]], kinds: Sequence[Kind]) -> list[Any]:
    """Put arrays back on the device as they were; of one that is spread over processes its parts, to be placed by the caller."""
    leaves: list[Any] = []
    for array, kind in zip(arrays, kinds, strict=True):
        if not isinstance(kind, str):
            places = [tuple((begin, end) for begin, end in place) for place in kind["places"]]
            parts = dict(zip(places, array, strict=True))
            about = {"shape": tuple(kind["shape"]), "devices": tuple(kind["devices"]), "key": kind["key"]}
            leaves.append(Shards(dtype=array.dtype, parts=parts, **about))
        elif kind == ARRAY:
            leaves.append(jax.device_put(array))
        elif kind == WEAK:
            leaves.append(jax.device_put(array.item()))
        else:
            leaves.append(jax.random.wrap_key_data(jax.device_put(array), impl=kind))
    return leaves


@dataclass(frozen=True, slots=True)
class Recompiled:
    """What this machine's compiler made of a stored program."""

    facts: Mapping[str, int | None]  # the facts that the compiler gives, by name
    executable: str | None  # fingerprint of the executable; `None` where it has none
    # the program itself, ready to be called; `None` where only what is known of it was read
    contender: Contender | None = field(default=None, compare=False)


class Opponents:
    """Compiles stored programs, each once in an environment."""

    def __init__(self, store: ReferenceStore) -> None:
        self._store = store

    def compiled(self, program: StoredProgram, observed: Observation) -> Recompiled:
        """Compile a program for the arguments of a case, unless its outcome here is known.

        Raises:
            NotReplayableError: If it cannot be read or compiled.
        """
        now = observed.measurement
        about = program.record
        options, environment = sorted((about.options or {}).items()), sorted(now.environment.items())
        key = fingerprint("recompiled", about.digest, about.donated, options, now.signature, now.hardware, environment)
        shared = now.processes > 1  # all ranks compile it, or none
        found = self._store.load(key) if about.digest is not None and not shared else None
        if found is not None:
            numbers, _ = found
            return Recompiled(facts=numbers["facts"], executable=numbers["executable"])
        if observed.target is not None and observed.lowered is not None:
            fresh = Recompiled(
                facts=compiled_facts(observed.target.recompile(program, observed.lowered)), executable=None
            )
        else:
            contender = prepare(program, observed.leaves(), observed.contract)
            executable = executable_fingerprint(contender.function)
            fresh = Recompiled(facts=contender.facts, executable=executable, contender=contender)
        self._store.save(key, {"facts": dict(fresh.facts), "executable": fresh.executable}, [])
        return fresh


def prepared(together: Lockstep, prepare: Callable[[], Made]) -> Made:
    """What ``prepare`` gives a rank, if all ranks can prepare it.

    Raises:
        NotReplayableError: If one of them cannot, on all.
    """
    try:
        found, why_not = prepare(), ""
    except NotReplayableError as error:
        if together is ALONE:
            raise
        found, why_not = None, str(error)
    refused = next(filter(None, together.each("what it prepared", why_not)), "")
    if refused or found is None:
        raise NotReplayableError(refused)
    return found
