"""From a program to an executable: compiled once, with its facts and the time that it took.

The order of its devices is read here, too: StableHLO does not hold it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax

from jaxgate.model.measurement import InvalidCaseError
from jaxgate.model.numbers import Facts, Phases
from jaxgate.observe.arguments.signature import place_signature, replicated_bytes
from jaxgate.observe.compat import input_shardings, lowered_devices, output_shardings
from jaxgate.observe.errors import guarded
from jaxgate.observe.hlo.kernels import Kernels, read_kernels
from jaxgate.observe.hlo.parser import HloText, read_hlo
from jaxgate.observe.trace.clocks import Clocks, uncollected
from jaxgate.observe.trace.compile_events import record
from jaxgate.observe.trace.jaxpr_cost import Work, count_work
from jaxgate.observe.trace.lowering import Lowered
from jaxgate.observe.trace.stablehlo import Structure, read_structure


@dataclass(frozen=True, slots=True)
class Program:
    """A lowered function with its executable."""

    lowered: Lowered
    executable: Any  # a `jax.stages.Compiled`, or what a target's compiler gave
    structure: Structure
    work: Work
    hlo: HloText  # its optimised program
    kernels: Kernels  # what a call of that starts
    facts: Facts  # everything known without calling it
    compile_ns: int | None  # time of compiling, or `None` if the executable came out of a cache

    @property
    def phases(self) -> Phases:
        """The phases so far; the first call is not among them."""
        traced = self.lowered
        return Phases(
            trace_ns=traced.trace_ns,
            trace_wait_ns=traced.trace_wait_ns,
            lower_ns=traced.lower_ns,
            compile_ns=self.compile_ns,
        )


def compile_here(lowered: Lowered) -> jax.stages.Compiled:
    """Compile for the devices of the arguments."""
    return lowered.stage.compile()


def compile_program(
    lowered: Lowered, *, clocks: Clocks, lines: bool = False, compiler: Callable[[Lowered], Any] = compile_here
) -> Program:
    """Compile a lowered function, and read its facts.

    A target's compiler is not timed. ``lines`` looks up where operations come from.

    Raises:
        InvalidCaseError: If the compiler refuses it.
    """
    with record(others=False) as events, guarded(f"compiling the {lowered.role}"), uncollected():
        begin, busy = clocks.wall(), clocks.process()
        executable = compiler(lowered)
        took_ns, busy_ns = clocks.wall() - begin, clocks.process() - busy
    if jax.default_backend() == "cpu":  # elsewhere the compiler waits for the device: it tries programs out
        took_ns = min(took_ns, busy_ns)
    compile_ns = took_ns if events.compiles and not events.cache_hits else None
    structure = read_structure(lowered.stage.compiler_ir("stablehlo"), lines=lines)
    work = count_work(lowered.traced.jaxpr)
    hlo = read_hlo(executable.as_text() or "")
    kernels = read_kernels(hlo)
    # Only the compiled program knows what each device holds: donated, argument and aliased bytes then speak of one device.
    shardings = input_shardings(executable)
    lowered = replace(lowered, signature=place_signature(lowered.signature, lowered.stage, shardings))
    facts = Facts(
        donated_bytes=sum(leaf.nbytes for leaf in lowered.signature if leaf.donated),
        constant_bytes=structure.constant_bytes,
        host_callbacks=structure.host_callbacks,
        matmul_flops=work.matmul_flops,
        widened_bytes=work.widened_bytes,
        random_bits=work.random_bits,
        block_bytes=work.block_bytes,
        unmatched_names=len(work.unmatched),
        trace_equations=work.equations,
        stablehlo_ops=sum(structure.operations.values()),
        replicated_bytes=replicated_bytes(lowered.stage, shardings),
        **_said_of(executable),
        **kernels.facts,
    )
    return Program(
        lowered=lowered,
        executable=executable,
        structure=structure,
        work=work,
        hlo=hlo,
        kernels=kernels,
        facts=facts,
        compile_ns=compile_ns,
    )


def compiled_facts(executable: jax.stages.Compiled) -> dict[str, int | None]:
    """The facts of what the backend's compiler made, by name."""
    return {**_said_of(executable), **read_kernels(read_hlo(executable.as_text() or "")).facts}


def peak_bytes(executable: jax.stages.Compiled) -> int | None:
    """Device memory that one call needs, as ``Facts`` has it."""
    return Facts(**_said_of(executable)).peak_bytes


def _said_of(executable: jax.stages.Compiled) -> dict[str, int | None]:
    return said_facts(executable.memory_analysis(), executable.cost_analysis() or {})


def said_facts(memory: Any, cost: Mapping[str, float]) -> dict[str, int | None]:
    """Facts that the compiler itself says of its program: of its memory, and its cost."""

    def bytes_of(name: str) -> int | None:
        value = getattr(memory, f"{name}_size_in_bytes", None)
        return None if value is None else int(value)

    def cost_of(name: str) -> int | None:
        value = cost.get(name, 0 if cost else None)  # XLA leaves out what a program has nothing of
        return None if value is None or value < 0 else round(value)

    return {
        "aliased_bytes": bytes_of("alias"),
        "argument_bytes": bytes_of("argument"),
        "output_bytes": bytes_of("output"),
        "temp_bytes": bytes_of("temp"),
        "code_bytes": bytes_of("generated_code") or None,  # zero means that the backend does not report it
        "xla_flops": cost_of("flops"),
        "xla_bytes": cost_of("bytes accessed"),
        "transcendentals": cost_of("transcendentals"),
    }


def refuse_idle(program: Program) -> None:
    """Refuse a function without a result: JAX drops all work that nothing returned depends on.

    Raises:
        InvalidCaseError: If no returned array has an element, and the program does not call Python either.
    """
    results = jax.tree.leaves(program.lowered.stage.out_info)
    if not any(math.prod(result.shape) for result in results) and not program.facts.host_callbacks:
        raise InvalidCaseError(
            f"compiling the {program.lowered.role}",
            "expected a result, found none: JAX drops all work that nothing returned depends on; return what it computes",
        )


def devices_of(executable: jax.stages.Compiled) -> list[jax.Device]:
    """The devices that a program runs on, by their numbers.

    Raises:
        InvalidCaseError: If its shardings name none.
    """
    shardings = [one for one in (*input_shardings(executable), *output_shardings(executable)) if one is not None]
    if not shardings:
        raise InvalidCaseError("reading the devices", "expected an input or an output; the function has neither")
    widest = max((sharding.device_set for sharding in shardings), key=len)
    return sorted(widest, key=lambda device: device.id)


def device_assignment(stage: jax.stages.Lowered) -> str | None:
    """The positions in ``jax.devices()`` of a program's devices, in the order of its mesh: ``1 3 5 7 0 2 4 6``.

    Positions and not numbers: another job may see the same devices by other numbers. ``None`` for a program on one
    device, or where this release keeps them elsewhere.
    """
    devices = lowered_devices(stage)
    if len(devices) < 2:  # noqa: PLR2004 - several
        return None
    positions = {device: position for position, device in enumerate(jax.devices(devices[0].platform))}
    return " ".join(str(positions.get(device, f"#{device.id}")) for device in devices)
