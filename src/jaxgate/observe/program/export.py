"""Programs that can be compiled again: out of a subject, back from bytes, for devices here or a target's topology.

The function is flattened before it is exported, so that any tree of arguments works. Source locations are
left out: a stored program is public, and must not change with every moved line. What is read back is data:
nothing is unpickled, and a program that calls something outside an allowed list is refused.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import export
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxgate.model.program import ProgramRecord, StoredProgram
from jaxgate.observe.arguments.carry import NextArgs, advance
from jaxgate.observe.arguments.feeder import Call
from jaxgate.observe.arguments.signature import short
from jaxgate.observe.trace.lowering import Lowered

MAX_CONSTANT_BYTES = 64 * 1024
"""Captured arrays above this are weights, not tables: they stay out of a public file."""

_PATH = re.compile(rb"[/\\][^\x00-\x1f]*\.py\b")
_FORMAT = re.compile(rb"StableHLO_v[0-9.]+")
_FORMAT_WITHIN = 64
"""Bytes at the start of a serialised module that name its version."""
_CUSTOM_CALL = re.compile(r'custom_call @(?:"([^"]*)"|([\w.$-]+))')
ALLOWED_CALLS = re.compile(
    r"Sharding|SPMD\w+|annotate_device_placement|shape_assertion|tpu_custom_call|__gpu\$xla\.gpu\.triton|triton_kernel_call"
    r"|Eigh|Qr|Lu\w*|Householder\w*|ProductOf\w+|ApproxTopK|PartialReduce|mhlo\.\w+|chlo\.\w+|stablehlo\.\w+"
    r"|lapack_\w+|(cu|hip)(solver|blas|fft|sparse|_)\w+|ducc_fft|dynamic_ducc_fft|__cudnn\$\w+|__cublas\$\w+"
)
"""Targets of custom calls that a stored program may have."""
KERNELS = ("__gpu$xla.gpu.triton", "triton_kernel_call")
"""Targets of kernels for GPUs whose form may change with a release of JAX: ``jax.export`` refuses them, unless it is told not to."""
_OPTION = re.compile(r"[a-z][a-z0-9_]*")
_FILES = re.compile(r"dump|extra_options|(^|_)(files?|filename|paths?|dirs?|directory|cache|logs?)(_|$)|_(to|from)$")
_OPTION_VALUE = re.compile(r"[+-]?\d+(\.\d+)?(e[+-]?\d+)?|[A-Za-z][A-Za-z0-9_-]*")
"""Numbers and words; no path, and no list of anything."""


class NotReplayableError(Exception):
    """A program that cannot be stored, or cannot be run again here; the text says why, in one line."""


class UnreadableProgramError(NotReplayableError):
    """A stored program that this jax cannot read: its format may be too old or too new."""


def export_program(
    lowered: Lowered, call: Call, feeds: tuple[int | None, ...] | None, constant_bytes: int
) -> StoredProgram:
    """Serialise a function for its arguments; the program has no content, and a reason, if it cannot be stored.

    ``feeds`` says how its state is threaded, by flat positions.
    """
    record = ProgramRecord(digest=None, donated=lowered.donated, feeds=feeds, why_not="")
    try:
        content = _public(lowered, call, constant_bytes)
    except NotReplayableError as error:
        return StoredProgram(record=replace(record, why_not=str(error)), content=b"")
    digest, options = hashlib.sha256(content).hexdigest(), dict(lowered.options or ())
    return StoredProgram(record=replace(record, digest=digest, options=options), content=content)


def _public(lowered: Lowered, call: Call, constant_bytes: int) -> bytes:
    """The bytes that a public file may hold."""
    if constant_bytes > MAX_CONSTANT_BYTES:
        raise NotReplayableError(
            f"it captures {constant_bytes:,} bytes of constants, above the {MAX_CONSTANT_BYTES:,} that a stored program may"
        )
    if lowered.options is None:
        raise NotReplayableError("its compiler options cannot be read on this jax")
    refuse_options(dict(lowered.options))
    with _without_locations():
        content = _serialise(lowered, call)
        if _PATH.search(content):
            jax.clear_caches()  # lowered helpers keep the locations that they were first lowered with
            content = _serialise(lowered, call)
    if _PATH.search(content):
        raise NotReplayableError("its serialised form names source files, which a stored program must not")
    return content


def export_whole(lowered: Lowered) -> bytes:
    """The program of a function as it is, with its constants and source locations, for a compiler in another process.

    Raises:
        NotReplayableError: If it cannot be exported.
    """
    return _serialise(lowered, lowered.call, KERNELS)


def _serialise(lowered: Lowered, call: Call, kernels: Sequence[str] = ()) -> bytes:
    """The function with flat arguments and results. Compiler options go beside it: jax takes them at the top level only."""
    dynamic, rebuild = split_call(lowered, call)
    function: Any = lowered.function
    if lowered.options:
        function = getattr(function, "__wrapped__", function)

    def flat(*arrays: Any) -> tuple[Any, ...]:
        args, kwargs = rebuild(arrays)
        return tuple(jax.tree.leaves(function(*args, **kwargs)))

    platforms = None if lowered.platform is None else (lowered.platform,)
    allowed = [export.DisabledSafetyCheck.custom_call(name) for name in kernels]
    try:
        jitted = jax.jit(flat, donate_argnums=lowered.donated)
        return bytes(export.export(jitted, platforms=platforms, disabled_checks=allowed)(*dynamic).serialize())
    except Exception as error:
        without_paths = re.sub(r"(?:[/\\][^\s/\\:]+)+[/\\]", "", _first_line(error))  # the reason is stored too
        raise NotReplayableError(f"jax.export refuses it: {without_paths}") from error


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"


def refuse_options(options: Mapping[str, str]) -> None:
    """Refuse compiler options that could do more than change the program: some write files.

    Raises:
        NotReplayableError: Names the first one.
    """
    for name, value in options.items():
        if not _OPTION.fullmatch(name) or _FILES.search(name) or not _OPTION_VALUE.fullmatch(value):
            raise NotReplayableError(f"it is compiled with {name}, an option that a stored program must not carry")


def split_call(lowered: Lowered, call: Call) -> tuple[list[Any], Callable[[Sequence[Any]], Call]]:
    """Part a call into its dynamic leaves and a function that puts it together again.

    Raises:
        NotReplayableError: If static arguments cannot be distinguished from dynamic ones.
    """
    leaves, tree = jax.tree.flatten(call)
    places = list(range(len(leaves)))
    if len(leaves) != len(lowered.signature):
        places = [index for index, leaf in enumerate(leaves) if isinstance(leaf, (jax.Array, jax.ShapeDtypeStruct))]
    if len(places) != len(lowered.signature):
        raise NotReplayableError("static arguments and Python numbers are mixed, and cannot be distinguished")

    def rebuild(arrays: Sequence[Any]) -> Call:
        whole = list(leaves)
        for place, array in zip(places, arrays, strict=True):
            whole[place] = array
        rebuilt: Call = jax.tree.unflatten(tree, whole)
        return rebuilt

    return [leaves[place] for place in places], rebuild


def find_feeds(lowered: Lowered, call: Call, next_args: NextArgs | None) -> tuple[int | None, ...] | None:
    """Work out how the state is threaded, by flat positions: run ``next_args`` on markers instead of arrays.

    Returns:
        For each dynamic argument the output it is fed from, or ``None`` if nothing is threaded, the state
        comes back with other types, or ``next_args`` does more than moving things.
    """
    if next_args is None:
        return None
    given = [_Marker(None, index) for index in range(len(lowered.signature))]
    out_tree = jax.tree.structure(lowered.stage.out_info)
    try:  # a pytree class may look at its leaves, and arithmetic on markers fails in any way it likes
        _, rebuild = split_call(lowered, call)
        output = jax.tree.unflatten(out_tree, [_Marker(index, -1) for index in range(out_tree.num_leaves)])
        following = advance(next_args, output, rebuild(given))
        markers = [leaf for leaf in jax.tree.leaves(following) if isinstance(leaf, _Marker)]
    except Exception:  # noqa: BLE001 - user code, given what it does not expect
        return None
    results = [short(info) for info in jax.tree.leaves(lowered.stage.out_info)]
    moved = len(markers) == len(given) and all(
        marker.argument == index if marker.output is None else results[marker.output] == lowered.signature[index].aval
        for index, marker in enumerate(markers)
    )
    return tuple(marker.output for marker in markers) if following is not None and moved else None


@dataclass(frozen=True, slots=True)
class _Marker:
    """Stands for an array: an output, or the argument at a place."""

    output: int | None
    argument: int


@contextmanager
def _without_locations() -> Iterator[None]:
    name = "jax_traceback_in_locations_limit"
    before = getattr(jax.config, name)
    jax.config.update(name, 0)
    try:
        yield
    finally:
        jax.config.update(name, before)


def serves_as(stored: bytes, content: bytes) -> bool:
    """Whether a stored program may stand for a new one of the same structure.

    Platforms and unused arguments are compared, as the structure has neither. An older format does not serve: who
    records again wants the months for which jax promises to read it to start again.
    """
    names = ("platforms", "nr_devices", "in_avals", "out_avals", "module_kept_var_idx")
    try:
        old, new = (export.deserialize(bytearray(one)) for one in (stored, content))
        old.mlir_module()
        formats = [_FORMAT.search(one.mlir_module_serialized[:_FORMAT_WITHIN]) for one in (old, new)]
        if None in formats or len({found[0] for found in formats if found}) > 1:
            return False
        return all(getattr(old, name) == getattr(new, name) for name in names)
    except Exception:  # noqa: BLE001 - the reader trips over anything
        return False


def read_program(program: StoredProgram) -> export.Exported:
    """Read a stored program, for whatever it was exported.

    Raises:
        NotReplayableError: If it was not stored, is damaged, or calls what it must not.
        UnreadableProgramError: If this jax does not read its format.
    """
    if not program.record.stored:
        raise NotReplayableError(f"it was not stored: {program.record.why_not}")
    if hashlib.sha256(program.content).hexdigest() != program.record.digest:
        raise NotReplayableError("its file is damaged: the content is not what the baseline says")
    try:
        exported = export.deserialize(bytearray(program.content))
        text = exported.mlir_module()
    except Exception as error:
        raise UnreadableProgramError(
            f"jax {jax.__version__} cannot read it ({type(error).__name__}); record it again with --perf-update"
        ) from error
    refuse_options(program.record.options)
    foreign = sorted(name for name in custom_calls(text) if not ALLOWED_CALLS.fullmatch(name))
    if foreign:
        raise NotReplayableError(f"it calls {', '.join(foreign)}, which a stored program must not")
    return exported


def custom_calls(text: str) -> set[str]:
    """Targets of the custom calls in a module's text."""
    return {quoted or bare for quoted, bare in _CUSTOM_CALL.findall(text)}


def load_program(program: StoredProgram, platform: str | None = None, devices: int | None = None) -> export.Exported:
    """Read a stored program, to be compiled for a platform with so many devices: for those of this process by default.

    Raises:
        NotReplayableError: If it cannot be read, or was exported for something else.
        UnreadableProgramError: If this jax does not read its format.
    """
    exported = read_program(program)
    platform = platform or jax.default_backend()
    if not {platform, "cuda" if platform == "gpu" else platform} & set(exported.platforms):
        raise NotReplayableError(f"it was exported for {', '.join(exported.platforms)}, this is {platform}")
    devices = devices or jax.device_count()
    if exported.nr_devices > devices:
        raise NotReplayableError(f"it needs {exported.nr_devices} devices, here are {devices}")
    return exported


def compile_exported(
    exported: jax.export.Exported,
    placed: Sequence[Any],
    *,
    donated: Sequence[int],
    options: Mapping[str, str],
    extend: Callable[[Callable[..., Any]], Callable[..., Any]] = lambda call: call,
) -> jax.stages.Compiled:
    """Compile a program anew, into an executable of its own.

    ``placed`` are arguments, or ``jax.ShapeDtypeStruct``, where it wants them (``spread``). ``donated`` are positions.

    Raises:
        NotReplayableError: If it does not compile for them.
    """
    jitted = jax.jit(extend(_without_unused(exported)), donate_argnums=tuple(donated))
    try:
        return jitted.lower(*placed).compile(compiler_options=dict(options) or None)
    except Exception as error:
        raise NotReplayableError(f"it does not compile here: {_first_line(error)}") from error


def _without_unused(exported: Any) -> Callable[..., Any]:
    """Call a program so that JAX sees which arguments it leaves out, and drops them as it did for the subject.

    ``exported.call`` uses all of them: unused ones would count as arguments, and take over donated buffers.
    """
    kept = set(exported.module_kept_var_idx)

    def zeros(leaf: Any) -> Any:
        if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            return jax.random.wrap_key_data(jnp.zeros_like(jax.random.key_data(leaf)), impl=jax.random.key_impl(leaf))
        return jnp.zeros_like(leaf)

    def call(*leaves: Any) -> Any:
        return exported.call(*(leaf if place in kept else zeros(leaf) for place, leaf in enumerate(leaves)))

    return call


def spread(exported: jax.export.Exported, devices: np.ndarray[Any, Any]) -> list[NamedSharding]:
    """How a program for several devices wants each argument to lie on these, which stand in the order of its mesh."""
    wanted: Sequence[Any] = exported.in_shardings_jax(None)  # abstract meshes: no devices
    everywhere = NamedSharding(Mesh(devices, ("devices",)), PartitionSpec())
    return [everywhere if sharding is None else _concrete(sharding, devices) for sharding in wanted]


def _concrete(sharding: Any, devices: np.ndarray[Any, Any]) -> NamedSharding:
    """The sharding on these devices."""
    abstract = sharding.mesh
    mesh = Mesh(devices.reshape(abstract.axis_sizes), abstract.axis_names, axis_types=abstract.axis_types)
    return NamedSharding(mesh, sharding.spec, memory_kind=sharding.memory_kind)
