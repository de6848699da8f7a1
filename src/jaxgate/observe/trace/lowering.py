"""From a function to its program: traced and lowered once each, with the time of each phase.

A plain function is put under ``jax.jit`` with the donation of programs in it, which inlining would drop. Jitted
functions that it calls are found: its caller's loop runs them and Python, not one program.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, cast

import jax

from jaxgate.model.measurement import MAX_NAMED, Argument, InvalidCaseError
from jaxgate.model.words import shortlist
from jaxgate.observe.arguments.feeder import Call
from jaxgate.observe.arguments.signature import argument_names, read_signature
from jaxgate.observe.arguments.static import dynamic_leaves
from jaxgate.observe.compat import argument_leaf_names, compiler_options, source_of_jitted
from jaxgate.observe.errors import NotOnTargetError, guarded
from jaxgate.observe.jax_extend import jax_extend
from jaxgate.observe.source_lines import at, is_project_file, short_path, without_folders
from jaxgate.observe.trace.clocks import Clock, asleep_ns, uncollected
from jaxgate.observe.trace.compile_events import Miss, listen_to_misses, record
from jaxgate.observe.trace.fingerprint import program_fingerprint
from jaxgate.observe.trace.jaxpr_cost import count_work


def as_jitted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Put a plain function under ``jax.jit``; leave a jitted one as its author made it."""
    jitted: Callable[..., Any] = function if isinstance(function, jax.stages.Wrapped) else jax.jit(function)
    return jitted


def with_own_donation(
    function: Any, jitted: Any, args: Sequence[Any], kwargs: Mapping[str, Any], role: str
) -> Callable[..., Any]:
    """Donate under ``jax.jit`` what ``pmap`` donates: it gives a plain function, and inlining drops what it asks for."""
    if jitted is function or is_plain(function):
        return cast("Callable[..., Any]", jitted)
    with guarded(f"tracing the {role}"):
        body = jitted.trace(*args, **kwargs).jaxpr.jaxpr
    donated = {
        id(variable)
        for equation in body.eqns
        for variable, given in zip(equation.invars, equation.params.get("donated_invars", ()), strict=False)
        if given
    }
    places = frozenset(place for place, variable in enumerate(body.invars) if id(variable) in donated)
    own = donating(function, args, kwargs, places)
    if own is None:
        return cast("Callable[..., Any]", jitted)
    if role == "subject":
        jax.clear_caches()  # its trace would be that of a cache
    return own


def is_plain(function: Any) -> bool:
    """Whether a function is not staged yet: results of ``jax.jit`` and ``jax.pmap`` have a ``lower``."""
    return not callable(getattr(function, "lower", None))


def is_jitted(function: Any) -> bool:
    """Whether a function comes jitted, and not by the gate, which marks what it jits to donate."""
    return not is_plain(function) and not getattr(function, "jitted_by_gate", False)


def donating(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], places: frozenset[int]
) -> Callable[..., Any] | None:
    """A plain function under ``jax.jit``, with the donation of leaves; ``None`` if these make up no whole arguments."""
    owners: list[int | str] = [position for position, arg in enumerate(args) for _ in jax.tree.leaves(arg)]
    owners += [name for name in sorted(kwargs) for _ in jax.tree.leaves(kwargs[name])]
    kept = {owner for place, owner in enumerate(owners) if place not in places}
    donated = {owners[place] for place in places if place < len(owners)}
    if not donated or donated & kept:
        return None
    positions = tuple(sorted(owner for owner in donated if isinstance(owner, int)))
    named = tuple(sorted(owner for owner in donated if isinstance(owner, str)))
    return cast("Callable[..., Any]", jax.jit(function, donate_argnums=positions, donate_argnames=named))


_DEPTH = 4
"""Calls from function to function that are followed."""


def find_jitted_functions(function: Callable[..., Any]) -> Mapping[str, str]:
    """Find the project's jitted functions that a function can reach by name, closure or the attributes of its object.

    For messages only: what is not found is launched and counted all the same. ``jax.pmap`` gives plain functions
    whose program is called ``_fun``; those are not among them.

    Returns:
        Name of the function, as JAX names its program, to ``file:line``; the first one where two have a name.
    """
    found: dict[str, str] = {}
    for _, code in jitted_functions(function):
        found.setdefault(code.co_name, f"{short_path(code.co_filename)}:{code.co_firstlineno}")
    return found


def jitted_functions(function: Callable[..., Any]) -> Iterator[tuple[Any, CodeType]]:
    """The project's jitted functions that a function can reach, the nearest first, each with the code that it compiles."""
    seen: set[int] = set()
    pending: list[tuple[Any, int]] = [(function, _DEPTH)]
    while pending:
        value, depth = pending.pop(0)
        if id(value) in seen or depth < 0:
            continue
        seen.add(id(value))
        if isinstance(value, jax.stages.Wrapped):
            code = getattr(inspect.unwrap(value), "__code__", None)
            if code is not None and is_project_file(code.co_filename):
                yield value, code
        pending += [(inner, depth - 1) for inner in _inside(value)]


def _inside(value: Any) -> Iterator[Any]:
    if isinstance(value, partial):
        yield value.func
    elif isinstance(value, MethodType):
        yield value.__func__
        owner = value.__self__
        attributes = [*vars(type(owner)).values(), *getattr(owner, "__dict__", {}).values()]
        yield from filter(callable, attributes)
    elif isinstance(value, FunctionType) and is_project_file(value.__code__.co_filename):
        yield from vars(value).values()  # ``__wrapped__``
        try:
            names = inspect.getclosurevars(value)
        except (TypeError, ValueError):
            return  # a cell that is not filled yet
        known = [*names.nonlocals.values(), *names.globals.values()]
        yield from known
        modules = [item for item in known if isinstance(item, ModuleType)]
        yield from (vars(module)[name] for module in modules for name in names.unbound if name in vars(module))
    elif isinstance(value, FunctionType):
        yield vars(value).get("__wrapped__")  # a decorator out of a library


@dataclass(frozen=True, slots=True)
class Enclosed:
    """What a plain function calls besides operations of JAX."""

    names: tuple[str, ...] = ()  # the project's jitted functions that it calls, each once
    whole: bool = False  # whether one of them takes all its arguments, gives all its results, and nothing else is done
    # that one itself, where it is found, takes the arguments as they are, and its results are given as they are
    only: Callable[..., Any] | None = None
    sources: tuple[tuple[str, str, int], ...] = ()  # name, file and line of each of these
    donated: frozenset[int] = frozenset()  # places, among the leaves of the arguments, of those that it donates

    @property
    def unseen(self) -> str:
        """What is not seen where the plain function is gated as one program; empty if nothing is."""
        if not self.names or self.only is not None:
            return ""
        calls = f"calls jitted {shortlist([f'{name}()' for name in self.names], MAX_NAMED)}"
        if self.whole:
            return f"{calls}: gated without the Python around it, whose time and retraces are not seen: eager=True"
        return (
            f"{calls}: gated as one program; what Python does between them, retraces and donation of the inner ones are "
            "not seen: eager=True, or jax.jit it as the loop does"
        )


def find_enclosed(
    function: Callable[..., Any], traced: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Enclosed:
    """Find the project's jitted functions at the top of a plain function that was traced with these arguments.

    Helpers of JAX and of other libraries are jitted too; nobody's loop is written around those.
    """
    body = traced.jaxpr.jaxpr
    called = ((equation, source_of_jitted(equation)) for equation in body.eqns)
    own = [(equation, source) for equation, source in called if source is not None and is_project_file(source[1])]
    names = tuple(dict.fromkeys(name for _, (name, _, _) in own))
    sources = tuple(dict.fromkeys(source for _, source in own))
    if len(own) != 1 or len(body.eqns) != 1:
        return Enclosed(names, sources=sources)
    ((equation, source),) = own
    constants = any(isinstance(result, jax_extend().core.Literal) for result in body.outvars)
    if constants or set(body.outvars) != set(equation.outvars) or not set(body.invars) <= _variables(equation):
        return Enclosed(names, sources=sources)
    given = zip(equation.invars, equation.params["donated_invars"], strict=True)
    donated = {id(variable) for variable, is_donated in given if is_donated}
    places = frozenset(place for place, variable in enumerate(body.invars) if id(variable) in donated)
    as_it_is = equation.invars == body.invars and equation.outvars == body.outvars
    found = _taking(
        function, equation.params["jaxpr"], source, args, kwargs, results=jax.tree.structure(traced.out_info)
    )
    return Enclosed(names, whole=True, only=next(found, None) if as_it_is else None, sources=sources, donated=places)


def find_remade(
    function: Callable[..., Any], enclosed: Enclosed, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[str, ...]:
    """The project's jitted functions that a plain one, traced once more, traces anew: ``jax.jit`` makes them at each call.

    Where all that it calls are found by name they are made once, and nothing is traced.
    """
    known = {(code.co_name, code.co_filename, code.co_firstlineno) for _, code in jitted_functions(function)}
    if known.issuperset(enclosed.sources):
        return ()
    heard: list[Miss] = []

    def again(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    with listen_to_misses(heard.append), guarded("tracing the subject once more"):
        jax.make_jaxpr(again)(*args, **kwargs)
    anew = (miss for miss in heard if miss.kind == "new" and miss.function in enclosed.names)
    return tuple(dict.fromkeys(f"{miss.function}{at(miss.defined)}" for miss in anew))


def _variables(equation: Any) -> set[Any]:
    return {variable for variable in equation.invars if not isinstance(variable, jax_extend().core.Literal)}


def _taking(
    function: Any,
    program: Any,
    source: tuple[str, str, int],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    results: Any,
) -> Iterator[Callable[..., Any]]:
    """The function objects that give this very program for the same arguments, and this tree of results.

    JAX has the program from the call within. A function that is made anew at each call is not found, and its loop
    traces each time.
    """
    for candidate, code in jitted_functions(function):
        if (code.co_name, code.co_filename, code.co_firstlineno) != source:
            continue
        try:
            traced = candidate.trace(*args, **kwargs)
        except Exception:  # noqa: BLE001, S112 - it takes other arguments than the function around it
            continue
        if traced.jaxpr is program and jax.tree.structure(traced.out_info) == results:
            yield candidate


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
