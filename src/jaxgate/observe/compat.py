"""The private names of JAX that jaxgate reads, all of them. ``tests/observe/test_compat.py`` fails when one breaks."""

from __future__ import annotations

import ctypes
import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import jax

from jaxgate.model.measurement import InvalidCaseError
from jaxgate.observe.arguments.signature import ArgumentKey, argument_names, short
from jaxgate.observe.arguments.static_trees import open_static

TRACING_LOGGER = "jax._src.interpreters.partial_eval"
"""Where ``jax.explain_cache_misses`` logs why JAX traced. Were it renamed, causes would be missing, counts not."""
CACHE_LOGGERS = ("jax._src.compiler", "jax._src.compilation_cache")
"""Where ``jax.explain_cache_misses`` logs what the persistent cache did."""
_ALIASING = re.compile(r", output_to_operand_aliasing=\{(?:[^{}]|\{[^{}]*\})*\}")
"""XLA prints this of an asynchronous all-reduce, and does not read it there again; it costs nothing."""


def compiler_options(lowered: jax.stages.Lowered) -> tuple[tuple[str, str], ...] | None:
    """Read the compiler options that a function was jitted with; they are invisible in StableHLO.

    Returns:
        Sorted name and value pairs, or ``None`` if this release keeps them elsewhere. ``None`` costs the
        case its identity verdict; it never passes for "no options".
    """
    try:
        options = lowered._lowering._compiler_options_kvs  # noqa: SLF001 - what this file is for
        return tuple(sorted((str(name), str(value)) for name, value in options))
    except (AttributeError, TypeError, ValueError):
        return None


def lowered_devices(lowered: jax.stages.Lowered) -> tuple[jax.Device, ...]:
    """The devices that a function was lowered for, in the order in which its replicas and partitions are given to them.

    Empty if this release keeps them elsewhere; no order is then compared.
    """
    try:
        return tuple(lowered._lowering._device_list)  # noqa: SLF001 - what this file is for
    except (AttributeError, TypeError):
        return ()


def kept_arguments(lowered: jax.stages.Lowered) -> tuple[int, ...] | None:
    """Places, among the dynamic arguments, of those that a program uses: JAX drops the others from the module.

    ``None`` if this release keeps them elsewhere, or gives the module arguments of its own.
    """
    try:
        kept = tuple(sorted(lowered._lowering.compile_args["kept_var_idx"]))  # noqa: SLF001 - what this file is for
        functions = [one for one in lowered.compiler_ir("stablehlo").body.operations if hasattr(one, "function_type")]
        (main,) = (one for one in functions if one.name.value == "main")
        return kept if len(main.type.inputs) == len(kept) else None
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def input_shardings(executable: jax.stages.Compiled) -> list[Any]:
    """The sharding of each argument in the compiled program; ``None`` for one that it does not use, and JAX dropped.

    The public name gives the user's own tree of them, and to look into that is to call the user's code with shardings
    where it expects arrays. It is what is left where this release keeps the list elsewhere.

    Raises:
        InvalidCaseError: If the user's code then does not take them.
    """
    try:
        return list(executable._input_shardings_flat())  # noqa: SLF001 - what this file is for
    except AttributeError:
        return _looked_into(executable.in_tree, executable.input_shardings)


def output_shardings(executable: jax.stages.Compiled) -> list[Any]:
    """The sharding of each result in the compiled program.

    Raises:
        InvalidCaseError: If the user's code does not take them, as with ``input_shardings``.
    """
    try:
        return list(executable._executable._out_shardings)  # noqa: SLF001 - what this file is for
    except AttributeError:
        return _looked_into(executable.out_tree, executable.output_shardings)


def _looked_into(tree: Any, shardings: Any) -> list[Any]:
    try:
        return list(tree.flatten_up_to(shardings))
    except Exception as error:
        raise InvalidCaseError(
            "reading the shardings",
            f"a class registered as a pytree does not take leaves that are no arrays: {type(error).__name__}: {error}; "
            "its flatten and unflatten must not look at them",
        ) from error


def argument_leaf_names(traced: jax.stages.Traced) -> frozenset[str]:
    """Names of the arguments that JAX traced, for messages only; empty if this release keeps them elsewhere."""
    info = getattr(traced.jaxpr.jaxpr, "debug_info", None)
    leaves = [re.match(r"\w+", str(name)) for name in getattr(info, "arg_names", None) or ()]
    return frozenset(match.group() for match in leaves if match)


def source_of_jitted(equation: Any) -> tuple[str, str, int] | None:
    """The name, file and line of the jitted function that an equation calls.

    ``None`` for any other equation, and where this release keeps them elsewhere.
    """
    info = getattr(getattr(equation.params.get("jaxpr"), "jaxpr", None), "debug_info", None)
    found = re.fullmatch(r"(.+) at (.+):(\d+)", str(getattr(info, "func_src_info", "")))
    if found is None or equation.primitive.name not in ("jit", "pjit"):
        return None
    return found[1], found[2], int(found[3])


def _values_in(function: str) -> dict[str, Any]:
    """The variables of the innermost call of a function of this name; none if it is not running."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_name != function:
        frame = frame.f_back
    return {} if frame is None else frame.f_locals


def traced_call(function: str) -> tuple[ArgumentKey, ...]:
    """Read the arguments of the jitted function that is about to be traced, from JAX's own frame.

    JAX's explanation compares with the entry that it takes for the nearest, and mistakes one with other static values
    or another tree for it (0.10), or does not name static values at all (0.12). For messages only: leaves and static
    values; empty for another function, or if this release keeps them elsewhere.
    """
    values = _values_in("_trace_for_jit")
    try:
        if values["dbg"].func_name != function:
            return ()
        info, args, kwargs = values["ji"], values["args"], values["kwargs"]
        leaves = zip(values["dbg"].arg_names, values["avals"], strict=True)
        seen = [
            ArgumentKey(path, short(aval), bool(getattr(aval, "weak_type", False)), "", False) for path, aval in leaves
        ]
        names = argument_names(values["fun"], len(args))
        fixed = {names[i]: args[i] for i in info.static_argnums if -len(args) <= i < len(args)}
        fixed |= {name: kwargs[name] for name in info.static_argnames if name in kwargs}
        return open_static(seen, fixed, function)
    except (AttributeError, KeyError, TypeError, ValueError):
        return ()


def flat_executable(compiled: jax.stages.Compiled) -> Any:
    """A compiled program as a function of its flat arguments, by the fast path that jitted functions take.

    ``None`` if this release keeps its parts elsewhere, or the program cannot take that path.
    """
    try:
        executable, params = compiled._executable, compiled._params  # noqa: SLF001 - what this file is for
        given = jax.tree.structure(((0,) * params.in_tree.num_leaves, {}))
        made = jax.tree.structure([0] * params.out_tree.num_leaves)
        return executable.create_cpp_call(params._replace(in_tree=given, out_tree=made, no_kwargs=True))
    except (AttributeError, TypeError, ValueError):
        return None


@contextmanager
def under_a_named_axis() -> Iterator[None]:
    """Let no jitted call of this thread take its fast path: there is none where an axis has a name.

    Raises:
        InvalidCaseError: If this release keeps it elsewhere.
    """
    extend = getattr(getattr(getattr(jax, "_src", None), "core", None), "extend_axis_env_nd", None)
    if extend is None:
        raise InvalidCaseError("recording a call", "expected a way to see each call, found none in this release of JAX")
    with extend([("jaxgate", 1)]):
        yield


def stop_trace() -> None:
    """Stop the profile that is being taken; whatever its export raises, none is open afterwards.

    jax 0.10 forgets the profile only once it has been exported: on a full disk it would run under all that follows.

    Raises:
        Exception: What the export raises.
    """
    try:
        jax.profiler.stop_trace()
    except Exception:
        if (state := open_profile()) is not None:
            state.reset()
        raise


def open_profile() -> Any:
    """JAX's account of the profile that is being taken; ``None`` if there is none, or JAX keeps it elsewhere."""
    state = getattr(getattr(getattr(jax, "_src", None), "profiler", None), "_profile_state", None)
    session = getattr(state, "session", None) or getattr(state, "profile_session", None)  # 0.12, and 0.10
    return None if session is None else state


_STORE = ("key_value_set", "blocking_key_value_get", "key_value_dir_get", "key_value_delete")


@dataclass(frozen=True, slots=True)
class Membership:
    """What JAX's coordination service knows of this process, without touching a device."""

    process: int  # which one it is
    count: int  # how many there are
    client: Any  # its methods are those of ``_STORE``


def membership() -> Membership | None:
    """Read what ``jax.distributed.initialize`` found out; public names say it only once devices are taken.

    ``None`` if it was not called, or this release keeps it elsewhere.
    """
    state = getattr(getattr(getattr(jax, "_src", None), "distributed", None), "global_state", None)
    client = getattr(state, "client", None)
    process, count = getattr(state, "process_id", None), getattr(state, "num_processes", None)
    usable = all(hasattr(client, name) for name in _STORE)
    return (
        Membership(process, count, client) if usable and isinstance(process, int) and isinstance(count, int) else None
    )


def native_address(target: str, platform: str) -> int | None:
    """Where the code of a custom call lies in this process, by its name and the platform that it was registered for.

    ``None`` if nothing is registered by this name, or this release keeps it elsewhere.
    """
    try:
        from jaxlib.xla_client import custom_call_targets, xla_platform_names  # noqa: PLC0415 - may be gone
    except ImportError:
        return None
    names = (xla_platform_names.get(platform, platform), "any")
    registered = next((found[target] for name in names if target in (found := custom_call_targets(name))), None)
    capsule = registered.get("execute") if isinstance(registered, dict) else registered
    if capsule is None:
        return None
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.argtypes, pointer.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_void_p
    name = ctypes.pythonapi.PyCapsule_GetName
    name.argtypes, name.restype = (ctypes.py_object,), ctypes.c_char_p
    address: int | None = pointer(capsule, name(capsule))
    return address


def register_tpu_dialect(context: Any) -> None:
    """Let a context read kernels of a TPU; 0.12 reads them without."""
    with suppress(ImportError, AttributeError):
        from jax._src.lib import tpu  # noqa: PLC0415 - may be gone

        tpu.register_dialect(context)


def cost_of_text(text: str) -> dict[str, float]:
    """What XLA counts in an optimised program, by JAX's names of it: FLOPs and bytes. Of library calls it counts nothing.

    It is for a compiler that gives no such figures, as that of GPUs where none is attached. Empty if the program calls
    a library, cannot be read, or this release keeps the functions elsewhere.
    """
    try:
        from jaxlib._hlo import hlo_module_from_text  # noqa: PLC0415 - may be gone
        from jaxlib._jax import hlo_module_cost_analysis  # noqa: PLC0415 - may be gone

        module = hlo_module_from_text(_ALIASING.sub("", text))
        found = hlo_module_cost_analysis(jax.local_devices(backend="cpu")[0].client, module)
        return {name: float(value) for name, value in found.items()} if found.get("flops", 0) >= 0 else {}
    except (AttributeError, ImportError, RuntimeError, TypeError, ValueError):
        return {}


def compiled_call() -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]] | None:
    """The function whose call is compiled right now, with its arguments, from JAX's own frame.

    ``None`` if nothing is, it is compiled without a call, or this release keeps them elsewhere.
    """
    values = _values_in("cache_miss")
    try:
        return values["fun"], values["args"], values["kwargs"]
    except KeyError:
        return None


def newest_executable() -> Any:
    """The program that was compiled last and is still there; ``None`` if there is none, or a backend does not list them."""
    try:
        return next(iter(jax.local_devices()[0].client.live_executables()), None)
    except (AttributeError, RuntimeError, TypeError):
        return None
