"""From a function to its program: traced and lowered once each, with the time of each phase."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import jax

from jaxgate.model.measurement import MAX_NAMED, Argument, InvalidCaseError
from jaxgate.model.words import shortlist
from jaxgate.observe.arguments.feeder import Call
from jaxgate.observe.arguments.signature import argument_names, read_signature
from jaxgate.observe.arguments.static import dynamic_leaves
from jaxgate.observe.compat import argument_leaf_names, compiler_options
from jaxgate.observe.errors import NotOnTargetError, guarded
from jaxgate.observe.jax_extend import jax_extend
from jaxgate.observe.source_lines import without_folders
from jaxgate.observe.trace.clocks import Clock, asleep_ns, uncollected
from jaxgate.observe.trace.compile_events import record
from jaxgate.observe.trace.fingerprint import program_fingerprint
from jaxgate.observe.trace.jaxpr_cost import count_work
from jaxgate.observe.trace.jitted import as_jitted, donating, find_enclosed, find_remade, is_jitted

_NO_GPU = "No supported GPU devices found"
"""What Pallas says from 0.12 on where it lowers a kernel for Triton, and neither a GPU nor a mesh of GPUs is there."""


@dataclass(frozen=True, slots=True)
class Lowered:
    """A function that JAX has traced and lowered; nothing has been compiled."""

    function: Callable[..., Any]  # the jitted function itself; calling it with the same arguments hits JAX's caches
    # what is called: the function itself, or a plain one that does nothing but hand on to it
    called: Callable[..., Any]
    jitted: bool  # whether the function came jitted: the gate jits what did not
    remade: tuple[str, ...]  # jitted functions that a plain one makes anew at each call
    unseen: str  # what of a plain function that calls jitted ones is not seen; empty if nothing is
    call: Call  # the arguments that it was lowered for
    platform: str | None  # what it was lowered for; `None` for that of its arguments
    traced: jax.stages.Traced
    stage: jax.stages.Lowered
    role: str  # `subject` or `reference`, for messages
    name: str
    names: tuple[str, ...]  # names of the positional arguments
    fingerprint: str
    signature: tuple[Argument, ...]
    # its compiler options, name and value, or `None` if they cannot be read
    options: tuple[tuple[str, str], ...] | None
    trace_ns: int | None  # time of tracing, or `None` if JAX could not be made to trace again
    trace_wait_ns: int | None  # what tracing waited meanwhile, or `None` if JAX could not be made to trace again
    lower_ns: int

    @property
    def donated(self) -> tuple[int, ...]:
        """Positions of the donated arrays among all that it takes."""
        return tuple(index for index, leaf in enumerate(self.signature) if leaf.donated)

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
    platform: str | None = None,
) -> Lowered:
    """Trace and lower a function; of a plain one that hands on to a jitted one of the project, that one.

    ``role`` is ``subject`` or ``reference``, for messages. ``clock`` times both phases, ``asleep`` what tracing waited.
    If it is ``cold``, phases are those of a function that was never called. ``platform`` is that of the arguments by
    default.

    Raises:
        InvalidCaseError: If it cannot be traced or lowered.
        NotOnTargetError: If JAX lowers what it does for attached devices only: calls of Python, and from 0.12 on Triton.
    """
    jax_extend()  # before anything is traced
    jitted = as_jitted(function)
    clocks, imported = (clock, asleep), len(sys.modules)
    traced, trace_ns, wait_ns = _trace(jitted, args, kwargs, role, clocks)
    enclosed = find_enclosed(function, traced, args, kwargs)
    own = enclosed.only or donating(function, args, kwargs, enclosed.donated)
    if own is not None:
        if role == "subject":
            jax.clear_caches()  # its trace would be that of a cache
        jitted = own
        traced, trace_ns, wait_ns = _trace(jitted, args, kwargs, role, clocks)
    stage, lower_ns = _lower(traced, role, clock, platform)
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
        stage, lower_ns = _lower(traced, role, clock, platform)
    names = argument_names(enclosed.only or function, len(args))
    return Lowered(
        function=jitted,
        called=function if enclosed.only else jitted,
        remade=find_remade(function, enclosed, args, kwargs) if enclosed.sources and role == "subject" else (),
        unseen=enclosed.unseen,
        jitted=is_jitted(function) or enclosed.whole,
        call=(tuple(args), dict(kwargs)),
        platform=platform,
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
        try:
            with guarded(f"tracing the {role}"):
                traced = jitted.trace(*args, **kwargs)
        except InvalidCaseError as error:
            raise _with_numbers(error, jitted, args, kwargs) from error.__cause__
        took_ns, wait_ns = clock() - begin, max(0, asleep() - slept)
    if not isinstance(traced, jax.stages.Traced):
        raise InvalidCaseError(
            f"tracing the {role}",
            f"expected a function jitted by jax.jit, found {type(jitted).__module__}.{type(jitted).__name__}; gate "
            "it as it is with eager=True, or a jax.jit function of the model's state (nnx.split and nnx.merge)",
        )
    cached = events.traces_of(traced.fun_name) == 0
    return (traced, None, None) if cached else (traced, took_ns, wait_ns)


def _with_numbers(
    error: InvalidCaseError, jitted: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> InvalidCaseError:
    """An error with the arguments that are Python's numbers: JAX traces them, and may have needed the numbers."""
    named = [*zip(argument_names(jitted, len(args)), args, strict=True), *kwargs.items()]
    numbers = [name for name, value in named if isinstance(value, int)]
    if not numbers or not isinstance(error.__cause__, TypeError):
        return error
    bind = f"unless static, {shortlist(numbers, MAX_NAMED)} is traced: bind a number that must stay one with functools.partial"
    return InvalidCaseError(error.stage, f"{error.reason}; {bind}")


def _lower(traced: jax.stages.Traced, role: str, clock: Clock, platform: str | None) -> tuple[jax.stages.Lowered, int]:
    with uncollected():
        begin = clock()
        try:
            with guarded(f"lowering the {role}"):
                stage = traced.lower() if platform is None else traced.lower(lowering_platforms=(platform,))
        except InvalidCaseError as error:
            why = "" if platform is None else _needs_device(traced, error)
            if not why:
                raise
            raise NotOnTargetError(f"the {role} {why}, and JAX lowers that for devices that are there only") from error
        return stage, clock() - begin


def _needs_device(traced: jax.stages.Traced, error: Exception) -> str:
    """What JAX lowers for attached devices only, if it refused that; empty otherwise."""
    if called := count_work(traced.jaxpr).callbacks:
        return f"calls Python ({', '.join(sorted(called))})"
    return "has a Pallas kernel for Triton" if _NO_GPU in str(error) else ""


def _forgotten(jitted: Any, args: Sequence[Any], kwargs: Mapping[str, Any], role: str) -> bool:
    """Whether JAX traces a function once more that it has just traced."""
    with record(others=False) as events, guarded(f"tracing the {role}"):
        traced = jitted.trace(*args, **kwargs)
    return events.traces_of(traced.fun_name) > 0
