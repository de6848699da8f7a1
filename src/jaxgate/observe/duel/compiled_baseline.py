"""A baseline's program, compiled on this machine: for its facts here, and to see whether it is today's executable.

That costs as much as the subject's own compile and never changes, so it is remembered, like a reference, under the hash
of all that it depends on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from jaxgate.model import StoredProgram
from jaxgate.observe.duel.duel import Contender, prepare
from jaxgate.observe.machine import fingerprint
from jaxgate.observe.observation import Observation
from jaxgate.observe.program import executable_fingerprint
from jaxgate.observe.tools import ReferenceStore
from jaxgate.observe.trace import compiled_facts


@dataclass(frozen=True, slots=True)
class Recompiled:
    """What this machine's compiler made of a stored program.

    Attributes:
        facts: The facts that the compiler gives, by name.
        executable: Fingerprint of the executable; ``None`` where it has none.
        contender: The program itself, ready to be called; ``None`` where only what is known of it was read.
    """

    facts: Mapping[str, int | None]
    executable: str | None
    contender: Contender | None = field(default=None, compare=False)


class Opponents:
    """Compiles stored programs, each once in an environment.

    Args:
        store: Where earlier outcomes are kept.
    """

    def __init__(self, store: ReferenceStore) -> None:
        self._store = store

    def compiled(self, program: StoredProgram, observed: Observation) -> Recompiled:
        """Compile a program for the arguments of a case, unless it is known what comes of that here.

        Raises:
            NotReplayableError: If it cannot be read or compiled.
        """
        now = observed.measurement
        about = program.record
        options, environment = sorted((about.options or {}).items()), sorted(now.environment.items())
        key = fingerprint("recompiled", about.digest, about.donated, options, now.signature, now.hardware, environment)
        found = self._store.load(key) if about.digest is not None else None
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
