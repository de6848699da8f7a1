"""A subject, lowered and compiled for its arguments, and the place where it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import jax

from jaxgate.model import Computation, Demand, HardwareKey
from jaxgate.observe.arguments import Call, given_leaves, inputs_fingerprint, on_device, processes_of
from jaxgate.observe.errors import guarded
from jaxgate.observe.hlo import read_hlo
from jaxgate.observe.machine import fingerprint, hardware_key, read_environment, read_yardstick
from jaxgate.observe.program import Communication, read_communication, read_demand, refuse_shared_buffers
from jaxgate.observe.tools import Tools
from jaxgate.observe.trace import Lowered, Program, compile_program, devices_of, lower, refuse_idle


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledSubject:
    """The subject, compiled for its arguments, which lie on the device, and the place where it runs.

    Attributes:
        call: The arguments, on the device.
        lowered: The subject, traced and lowered.
        program: Its executable, with what was read from it.
        hardware: Where it runs.
        processes: How many it runs over.
        environment: What else decides what is compiled, and how it runs.
        communication: What it sends between devices.
        surroundings: Hash of hardware and environment.
        inputs: Hash of the arguments' values.
        yardstick_ns: What plain Python takes on this machine now.
        demand: What a call asks of one device, where it is compiled for a target.
    """

    call: Call
    lowered: Lowered
    program: Program
    hardware: HardwareKey
    processes: int
    environment: Mapping[str, str]
    communication: Communication
    surroundings: str
    inputs: str
    yardstick_ns: int
    demand: Demand | None = None


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
    tools.progress("compiling")
    program = compile_program(lowered, clocks=tools.clocks, lines=True, target=tools.target)
    refuse_idle(program)
    devices = devices_of(program.executable)
    processes = processes_of(devices)
    if tools.target is None:
        hardware, found = hardware_key(devices[0], len(devices), processes), read_environment(devices[0])
    else:
        hardware = tools.target.target.hardware(len(devices))
        found = read_environment(devices[0], other=tools.target.versions)
    hlo = demand = None
    if tools.target is not None:
        hlo = read_hlo(program.executable.as_text())
        demand = read_demand(hlo, program.work, tools.target.target, len(devices))
    communication = read_communication(program, devices, hlo)
    compiled = CompiledSubject(
        call=call,
        lowered=lowered,
        program=program,
        hardware=hardware,
        processes=processes,
        environment=found,
        communication=communication,
        surroundings=fingerprint(hardware, sorted(found.items())),
        inputs=inputs_fingerprint(given_leaves(lowered.stage, call), {}),
        yardstick_ns=yardstick_ns,
        demand=demand,
    )
    refuse_shared_buffers(lowered, call)
    return compiled
