"""What one observation leaves behind: plain data, and the compiled subject to run again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import jax

from jaxgate.ext.energy.counters import EnergyMeter
from jaxgate.ext.targets.interface import TargetCompiler
from jaxgate.model.claim import Claim
from jaxgate.model.computation import Computation
from jaxgate.model.machine import HardwareKey
from jaxgate.model.measurement import Measurement
from jaxgate.model.numbers import Contract
from jaxgate.model.program import ProgramRecord, StoredProgram
from jaxgate.model.roofline import Demand
from jaxgate.observe.arguments.carry import NextArgs
from jaxgate.observe.arguments.feeder import Call, inputs_fingerprint, on_device
from jaxgate.observe.arguments.lockstep import ALONE, Lockstep, processes_of
from jaxgate.observe.arguments.static import given_leaves
from jaxgate.observe.eager_programs import EagerProgram
from jaxgate.observe.errors import guarded
from jaxgate.observe.execute.correctness import Closeness
from jaxgate.observe.execute.subjects import WHY_NOT
from jaxgate.observe.hlo.buffers import largest_allocations, rows_of
from jaxgate.observe.hlo.demand import read_demand
from jaxgate.observe.machine.environment import fingerprint, hardware_key, read_environment
from jaxgate.observe.machine.load import read_yardstick
from jaxgate.observe.program.communication import Communication, read_communication
from jaxgate.observe.program.donation import refuse_shared_buffers
from jaxgate.observe.program.export import NotReplayableError, export_program, split_call
from jaxgate.observe.tools import Tools
from jaxgate.observe.trace.lowering import Lowered, lower
from jaxgate.observe.trace.stages import Program, compile_program, devices_of, refuse_idle


@dataclass(frozen=True, kw_only=True)
class Observation:
    """A measurement, and what it takes to run the subject and its reference again."""

    measurement: Measurement
    call: Call
    closeness: Closeness  # how far its results may lie from another's
    claims: tuple[Claim, ...]  # what must hold of it
    contract: Contract  # what the time of a call means
    lowered: Lowered | None = None  # the subject; `None` where it is called as it is, on the host
    feeds: tuple[int | None, ...] | None = None  # how its state is threaded, by flat positions
    reference: Lowered | None = None  # the reference, if there is one; it takes the same arguments
    reference_feeds: tuple[int | None, ...] | None = None  # how its state is threaded
    next_args: NextArgs | None = None  # threads the state as the author does
    function: Callable[..., Any] | None = None  # the subject, where it is called as it is
    launched: tuple[EagerProgram, ...] = ()  # the programs that its calls launch, where it is called as it is
    reference_function: Callable[..., Any] | None = None  # its reference, where it is called as it is
    target: TargetCompiler | None = None  # what compiled it, if that was for hardware that is not there
    executable: Any = None  # what was compiled; `None` where JAX gives it again without compiling
    # counts the energy of its devices; `None` where there is no counter, or nobody asks
    meter: EnergyMeter | None = None
    together: Lockstep = ALONE  # the ranks that run it with this process
    # what its first call gave, on the host, if nothing has been compared with it: it has no reference
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


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledSubject:
    """The subject, compiled for its arguments, which lie on the device, and the place where it runs."""

    call: Call  # the arguments, on the device
    lowered: Lowered  # the subject, traced and lowered
    program: Program  # its executable, with what was read from it
    hardware: HardwareKey  # where it runs
    processes: int  # how many it runs over
    environment: Mapping[str, str]  # what else decides what is compiled, and how it runs
    communication: Communication  # what it sends between devices
    surroundings: str  # hash of hardware and environment
    inputs: str  # hash of the arguments' values
    yardstick_ns: int  # what plain Python takes on this machine now
    demand: Demand | None = None  # what a call asks of one device, where it is compiled for a target


def compile_subject(computation: Computation, tools: Tools) -> CompiledSubject:
    """Put the arguments on the device, lower the subject for them, and compile it.

    Raises:
        InvalidCaseError: If one of it fails, nothing would be computed, or two arguments share a buffer that is donated.
    """
    with guarded("building the workload"):
        call = on_device(computation.args, computation.kwargs)
        jax.block_until_ready(call)
    yardstick_ns = read_yardstick(tools.clocks.wall)
    tools.progress("tracing")
    lowered = lower(
        computation.subject,
        *call,
        role="subject",
        clock=tools.clocks.thread,
        asleep=tools.clocks.asleep,
        platform=tools.platform,
    )
    # Before anybody waits in a collective for one who is in another, or in none.
    tools.together.same("the program", lowered.stage.as_text)
    tools.progress("compiling")
    program = compile_program(lowered, clocks=tools.clocks, lines=True, compiler=tools.compiler)
    refuse_idle(program)
    devices = devices_of(program.executable)
    processes = processes_of(devices)
    if tools.target is None:
        hardware, found = hardware_key(devices[0], len(devices), processes), read_environment(devices[0])
    else:
        hardware = tools.target.target.hardware(len(devices))
        found = read_environment(devices[0], other=tools.target.versions)
    demand = None
    if tools.target is not None:
        demand = read_demand(program.hlo, program.work, tools.target.target, len(devices))
    compiled = CompiledSubject(
        call=call,
        lowered=lowered,
        program=program,
        hardware=hardware,
        processes=processes,
        environment=found,
        communication=read_communication(program, devices),
        surroundings=fingerprint(hardware, sorted(found.items())),
        inputs=inputs_fingerprint(given_leaves(lowered.stage, call), {}),
        yardstick_ns=yardstick_ns,
        demand=demand,
    )
    refuse_shared_buffers(lowered, call)
    return compiled
