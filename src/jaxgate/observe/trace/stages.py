"""From a function to an executable: traced, lowered and compiled once each, with the time of each phase."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import jax

from jaxgate.model import Argument, Facts, InvalidCaseError, Leaf, Phases
from jaxgate.observe.arguments import argument_names, dynamic_leaves, place_signature, read_signature
from jaxgate.observe.compat import argument_leaf_names, compiler_options, input_shardings
from jaxgate.observe.errors import guarded
from jaxgate.observe.jax_extend import jax_extend
from jaxgate.observe.source_lines import without_folders
from jaxgate.observe.trace.clocks import Clock, Clocks, asleep_ns, uncollected
from jaxgate.observe.trace.compile_events import record
from jaxgate.observe.trace.enclosed_functions import Enclosed, find_enclosed
from jaxgate.observe.trace.fingerprint import program_fingerprint
from jaxgate.observe.trace.jaxpr_cost import Work, count_work
from jaxgate.observe.trace.plain_functions import as_jitted, donating, is_plain, with_own_donation
from jaxgate.observe.trace.stablehlo import Structure, read_structure


@dataclass(frozen=True, slots=True)
class Lowered:
    """A function that JAX has traced and lowered; nothing has been compiled.

    Attributes:
        function: The jitted function itself; calling it with the same arguments hits JAX's caches.
        called: What is called: the function itself, or a plain one that does nothing but hand on to it.
        unseen: What of a plain function that calls jitted ones is not seen; empty if nothing is.
        role: ``subject`` or ``reference``, for messages.
        names: Names of the positional arguments.
        trace_ns: Time of tracing, or ``None`` if JAX could not be made to trace again.
        trace_wait_ns: What it waited meanwhile, or ``None`` likewise.
        options: Its compiler options, name and value, or ``None`` if they cannot be read.
    """

    function: Callable[..., Any]
    called: Callable[..., Any]
    unseen: str
    traced: jax.stages.Traced
    stage: jax.stages.Lowered
    role: str
    name: str
    names: tuple[str, ...]
    fingerprint: str
    signature: tuple[Argument, ...]
    options: tuple[tuple[str, str], ...] | None
    trace_ns: int | None
    trace_wait_ns: int | None
    lower_ns: int

    @property
    def options_text(self) -> str | None:
        """The compiler options in one line, fit for a public file."""
        if self.options is None:
            return None
        return without_folders(";".join(f"{name}={value}" for name, value in self.options))


def lower(
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    role: str,
    clock: Clock,
    asleep: Clock = asleep_ns,
    cold: bool = True,
) -> Lowered:
    """Trace and lower a function; of a plain one that hands on to a jitted one of the project, that one.

    Args:
        function: The function.
        args: Its arguments.
        kwargs: Those that are given by name.
        role: ``subject`` or ``reference``, for messages.
        clock: Times tracing and lowering.
        asleep: Says what tracing waited.
        cold: Whether its phases shall be those of a function that was never called; else JAX may know it already.

    Raises:
        InvalidCaseError: If it cannot be traced or lowered.
    """
    jax_extend()  # before anything is traced
    jitted = with_own_donation(function, as_jitted(function), args, kwargs, role)
    clocks, imported = (clock, asleep), len(sys.modules)
    traced, trace_ns, wait_ns = _trace(jitted, args, kwargs, role, clocks)
    enclosed = find_enclosed(function, traced, args, kwargs) if is_plain(function) else Enclosed()
    own = enclosed.only or donating(function, args, kwargs, enclosed.donated)
    if own is not None:
        if role == "subject":
            jax.clear_caches()  # its trace would be that of a cache
        jitted = own
        traced, trace_ns, wait_ns = _trace(jitted, args, kwargs, role, clocks)
    stage, lower_ns = _lower(traced, role, clock)
    if cold and (trace_ns is None or len(sys.modules) > imported or _forgotten(jitted, args, kwargs, role)):
        # Somebody called the function before: its phases would be those of a cache. Or something was imported
        # meanwhile, by the first Pallas kernel of a process for example: who comes first would pay for all, and no
        # later call finds the trace where that adds to JAX's settings (0.12). Measure it cold.
        if role == "subject":
            jax.clear_caches()
        else:
            for one in (jitted, as_jitted(function)):  # a trace of what is around it holds the one of before
                cast("Any", one).clear_cache()  # the subject keeps its executable
        traced, trace_ns, wait_ns = _trace(jitted, args, kwargs, role, clocks)
        stage, lower_ns = _lower(traced, role, clock)
    names = argument_names(enclosed.only or function, len(args))
    return Lowered(
        function=jitted,
        called=function if enclosed.only else jitted,
        unseen=enclosed.unseen,
        traced=traced,
        stage=stage,
        role=role,
        name=traced.fun_name,
        names=names,
        fingerprint=program_fingerprint(stage.compiler_ir("stablehlo")),
        signature=read_signature(stage, _dynamic(names, traced), dynamic_leaves(stage, args, kwargs)),
        options=compiler_options(stage),
        trace_ns=trace_ns,
        trace_wait_ns=wait_ns,
        lower_ns=lower_ns,
    )


def _dynamic(names: tuple[str, ...], traced: Any) -> tuple[str, ...]:
    """Names of the positional arguments without the static ones, of which JAX's own names have no leaf."""
    dynamic = argument_leaf_names(traced)
    return tuple(name for name in names if name in dynamic) or names


def _trace(
    jitted: Any, args: Sequence[Any], kwargs: Mapping[str, Any], role: str, clocks: tuple[Clock, Clock]
) -> tuple[jax.stages.Traced, int | None, int | None]:
    """Trace; the times are ``None`` if JAX did not trace because it had done so before."""
    clock, asleep = clocks
    with record(others=False) as events, uncollected():
        begin, slept = clock(), asleep()
        with guarded(f"tracing the {role}"):
            traced = jitted.trace(*args, **kwargs)
        took_ns, wait_ns = clock() - begin, max(0, asleep() - slept)
    if not isinstance(traced, jax.stages.Traced):
        raise InvalidCaseError(
            f"tracing the {role}",
            f"expected a function jitted by jax.jit, found {type(jitted).__module__}.{type(jitted).__name__}; gate "
            "it as it is with eager=True, or a jax.jit function of the model's state (nnx.split and nnx.merge)",
        )
    cached = events.traces_of(traced.fun_name) == 0
    return (traced, None, None) if cached else (traced, took_ns, wait_ns)


def _lower(traced: jax.stages.Traced, role: str, clock: Clock) -> tuple[jax.stages.Lowered, int]:
    with uncollected(), guarded(f"lowering the {role}"):
        begin = clock()
        stage = traced.lower()
        return stage, clock() - begin


def _forgotten(jitted: Any, args: Sequence[Any], kwargs: Mapping[str, Any], role: str) -> bool:
    """Whether JAX traces a function that it has just traced once more."""
    with record(others=False) as events, guarded(f"tracing the {role}"):
        traced = jitted.trace(*args, **kwargs)
    return events.traces_of(traced.fun_name) > 0


@dataclass(frozen=True, slots=True)
class Program:
    """A lowered function with its executable.

    Attributes:
        facts: Everything known without calling it.
        compile_ns: Time of compiling, or ``None`` if the executable came out of a cache.
    """

    lowered: Lowered
    executable: jax.stages.Compiled
    structure: Structure
    work: Work
    facts: Facts
    compile_ns: int | None

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


def compile_program(lowered: Lowered, *, clocks: Clocks, lines: bool = False) -> Program:
    """Compile a lowered function for the devices of its arguments; with ``lines``, look up where its operations come from.

    Raises:
        InvalidCaseError: If the compiler refuses it.
    """
    with record(others=False) as events, guarded(f"compiling the {lowered.role}"), uncollected():
        begin, busy = clocks.wall(), clocks.process()
        executable = lowered.stage.compile()
        took_ns, busy_ns = clocks.wall() - begin, clocks.process() - busy
    if jax.default_backend() == "cpu":  # elsewhere the compiler waits for the device: it tries programs out
        took_ns = min(took_ns, busy_ns)
    compile_ns = took_ns if events.compiles and not events.cache_hits else None
    structure = read_structure(lowered.stage.compiler_ir("stablehlo"), lines=lines)
    work = count_work(lowered.traced.jaxpr)
    # Only the compiled program knows what each device holds: donated, argument and aliased bytes then speak of one device.
    lowered = replace(lowered, signature=place_signature(lowered.signature, lowered.stage, input_shardings(executable)))
    return Program(
        lowered=lowered,
        executable=executable,
        structure=structure,
        work=work,
        facts=_facts(lowered.signature, structure, work, executable),
        compile_ns=compile_ns,
    )


def _facts(signature: Sequence[Leaf], structure: Structure, work: Work, executable: Any) -> Facts:
    return Facts(
        donated_bytes=sum(leaf.nbytes for leaf in signature if leaf.donated),
        constant_bytes=structure.constant_bytes,
        host_callbacks=structure.host_callbacks,
        matmul_flops=work.matmul_flops,
        widened_bytes=work.widened_bytes,
        stablehlo_ops=sum(structure.operations.values()),
        **compiled_facts(executable),
    )


def compiled_facts(executable: jax.stages.Compiled) -> dict[str, int | None]:
    """The facts that the backend's compiler gives, by name."""
    memory = executable.memory_analysis()
    cost = executable.cost_analysis() or {}

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
