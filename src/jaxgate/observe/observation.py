"""What one observation leaves behind: plain data, and what it takes to run the same again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from jaxgate.model import Claim, Contract, Measurement, ProgramRecord, StoredProgram
from jaxgate.observe.arguments import Call, NextArgs
from jaxgate.observe.eager_programs import EagerProgram
from jaxgate.observe.energy import EnergyMeter
from jaxgate.observe.execute import WHY_NOT
from jaxgate.observe.hlo import largest_allocations, rows_of
from jaxgate.observe.program import NotReplayableError, export_program, split_call
from jaxgate.observe.trace import Lowered, TargetCompiler


@dataclass(frozen=True, kw_only=True)
class Observation:
    """A measurement, and what it takes to run the subject and its reference again.

    Attributes:
        claims: What must hold of it.
        contract: What the time of a call means.
        lowered: The subject; ``None`` where it is called as it is, on the host.
        feeds: How its state is threaded, by flat positions.
        reference: The reference, if there is one; it takes the same arguments.
        reference_feeds: How its state is threaded.
        next_args: Threads the state as the author does.
        function: The subject, where it is called as it is.
        launched: The programs that a call of it launches, likewise.
        reference_function: Its reference, likewise.
        target: What compiled it, if that was for hardware that is not there.
        executable: What was compiled; ``None`` where JAX gives it again without compiling.
        meter: Counts the energy of its devices; ``None`` where there is no counter, or nobody asks.
        result: What its first call gave, on the host, if nothing has been compared with it: it has no reference.
    """

    measurement: Measurement
    call: Call
    rtol: float
    atol: float
    claims: tuple[Claim, ...]
    contract: Contract
    lowered: Lowered | None = None
    feeds: tuple[int | None, ...] | None = None
    reference: Lowered | None = None
    reference_feeds: tuple[int | None, ...] | None = None
    next_args: NextArgs | None = None
    function: Callable[..., Any] | None = None
    launched: tuple[EagerProgram, ...] = ()
    reference_function: Callable[..., Any] | None = None
    target: TargetCompiler | None = None
    executable: Any = None
    meter: EnergyMeter | None = None
    result: Any = None

    def export(self) -> StoredProgram:
        """The subject as a program that can be stored and compiled again; traced for that once."""
        return self._exported

    @cached_property
    def _exported(self) -> StoredProgram:
        if self.lowered is None:
            unstored = ProgramRecord(digest=None, donated=(), feeds=None, why_not=WHY_NOT)
            return StoredProgram(record=unstored, content=b"")
        return export_program(self.lowered, self.call, self.feeds, self.measurement.facts.constant_bytes or 0)

    def export_launched(self) -> tuple[StoredProgram, ...]:
        """The programs that plain Python launches, as ``export`` gives one; traced for that once."""
        return self._exported_launched

    @cached_property
    def _exported_launched(self) -> tuple[StoredProgram, ...]:
        return tuple(
            export_program(one.program.lowered, one.call, None, one.facts.get("constant_bytes", 0))
            for one in self.launched
        )

    def with_allocations(self) -> Measurement:
        """The measurement with the largest buffers of the program, or with why they are not known; nothing is compiled."""
        if self.lowered is None:
            return self.measurement
        found = largest_allocations(self.executable or self.lowered.stage.compile(), count=50)
        lines = rows_of(found.largest)
        return replace(
            self.measurement,
            culprits=replace(self.measurement.culprits, allocations=lines),
            unknown={**self.measurement.unknown, **({} if lines else {"allocations": found.why_not})},
        )

    def leaves(self) -> list[Any]:
        """Its dynamic arguments, flattened.

        Raises:
            NotReplayableError: If they cannot be distinguished from the static ones, or the subject runs on the host.
        """
        if self.lowered is None:
            raise NotReplayableError(WHY_NOT)
        return split_call(self.lowered, self.call)[0]
