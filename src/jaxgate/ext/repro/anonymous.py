"""A program without its author's names, numbers and paths.

What is left is checked by a list of what may be there, not of what may not: a text that nobody thought of is refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from jaxgate.ext.repro.model import AnonymousProgram, Axes, MeshOf
from jaxgate.ext.repro.modules import array_of, array_types, bindings, context, parse, portable, set_constant, text_of
from jaxgate.model.program import StoredProgram
from jaxgate.observe.program.export import custom_calls, read_program
from jaxgate.observe.trace.fingerprint import is_splat
from jaxgate.observe.trace.stablehlo import walk

Values = np.ndarray[Any, Any]
SEED = 20_260_101
_ARGUMENT_ATTRIBUTES = re.compile(
    r"mhlo\.(sharding|memory_kind|layout_mode)|sdy\.sharding|tf\.aliasing_output|jax\.buffer_donor"
)
_MODULE_ATTRIBUTES = re.compile(r"mhlo\.num_(partitions|replicas)")
_FRONTEND = "mhlo.frontend_attributes"
"""What ``jax.experimental.xla_metadata`` attaches to operations, in the author's words; some of JAX's own are among it."""
_OF_JAX = re.compile(r"_xla_.*")
_KERNELS = re.compile(r"tpu_custom_call|__gpu\$xla\.gpu\.triton|triton_kernel_call|\w*mosaic\w*")
"""Custom calls whose configuration is a program of its own, with names that are not looked into."""

_ATTRIBUTES = frozenset({
    "algorithm", "all_gather_dim", "api_version", "arg_attrs", "backend_config", "base_dilations",
    "batch_group_count", "broadcast_dimensions", "call_target_name", "called_computations", "callee",
    "channel_handle", "channel_id", "compare_type", "comparison_direction", "composite_attributes",
    "concat_dimension", "decomposition", "dimension", "dimension_numbers", "dimensions", "dot_dimension_numbers",
    "edge_padding_high", "edge_padding_low", "epsilon", "exponent_bits", "feature_group_count", "feature_index",
    "fft_length", "fft_type", "function_type", "has_side_effect", "in_shardings", "index", "indices_are_sorted",
    "interior_padding", "iota_dimension", "is_stable", "k", "known_expanding_dimensions",
    "known_nonexpanding_dimensions", "largest", "left_side", "lhs_dilation", "limit_indices", "lower", "manual_axes",
    "mantissa_bits", "mesh", "mhlo.backend_config", "mhlo.frontend_attributes", "mhlo.num_partitions",
    "mhlo.num_replicas", "mhlo.sharding", "name", "operandSegmentSizes", "operand_layouts", "out_shardings",
    "output_operand_aliases", "padding", "permutation", "precision_config", "replica_groups", "res_attrs",
    "result_accuracy", "result_layouts", "rhs_dilation", "rng_algorithm", "rng_distribution", "scatter_dimension",
    "scatter_dimension_numbers", "sdy.sharding", "sdy.sharding_rule", "sharding", "slice_sizes",
    "source_target_pairs", "split_count", "split_dimension", "stablehlo.mesh", "start_indices", "strides", "sym_name",
    "sym_visibility", "transpose_a", "unique_indices", "unit_diagonal", "use_global_device_ids", "value", "version",
    "window_dimensions", "window_dilations", "window_reversal", "window_strides",
})  # fmt: skip
"""Names of attributes that JAX writes, in what the oldest supported line reads: of operations and functions."""
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_SYMBOL = re.compile(r'@("(?:[^"\\]|\\.)*"|[\w.$-]+)')
_MESH_NAME = re.compile(r"(empty_)?mesh(_\d+)?|maximal_mesh_\d+")
_HARMLESS = re.compile(
    r"0x[0-9A-Fa-f]*"  # numbers in bits; those of constants are drawn
    r"|(stablehlo|chlo|mhlo|func|sdy|builtin|arith)\.[a-z0-9_.]+"  # operations and attributes
    r"|axis\d+|device|pinned_host|unpinned_host"
    r"|\{(devices=|replicated|maximal|manual|last_tile_dim_replicate|unknown|[\[\]<>=,T(){} \d])*\}"  # shardings
    r"|[\d,:x \[\]]*"
)
_HARMLESS_SYMBOL = re.compile(r"main|program|f\d+|" + _MESH_NAME.pattern)


class NotAnonymousError(Exception):
    """A program that holds something that cannot be left out; the text says what, in one line."""


def anonymise(stored: StoredProgram) -> AnonymousProgram:
    """Leave out of a stored program what its author named, and replace the arrays that it captured.

    Functions, axes of meshes and composites get numbers for names; names of arguments and results and all
    locations go. A captured array is replaced by numbers of a seed: of the same type and shape, and where they are whole
    numbers from the same range, rising and without repetition where those were. Constants that repeat one number stay:
    they are the program's.

    Raises:
        NotReplayableError: If it was not stored or cannot be read.
        NotAnonymousError: If it holds a text that is none of JAX's.
    """
    exported = read_program(stored)
    given, made = exported.in_shardings_jax(None), exported.out_shardings_jax(None)
    axes = _axis_names(exported.mlir_module(), (*given, *made))
    module = parse(_QUOTED.sub(lambda found: f'"{axes.get(found[1], found[1])}"', exported.mlir_module()))
    _drop_names(module)
    seeded = _draw_constants(module)
    module = parse(text_of(module))  # without locations
    module.operation.verify()
    text = text_of(module)
    _refuse_texts(module, text)
    inputs, outputs = array_types(module)
    kept = exported.module_kept_var_idx
    mesh = None
    if exported.nr_devices > 1:
        mesh = _mesh((*given, *made), axes, exported.nr_devices)
        inputs = [replace(kind, spec=_spec(given[place], axes)) for kind, place in zip(inputs, kept, strict=True)]
        outputs = [replace(kind, spec=_spec(one, axes)) for kind, one in zip(outputs, made, strict=True)]
    return AnonymousProgram(
        payload=portable(text),
        inputs=tuple(inputs),
        places=tuple(kept),
        outputs=tuple(outputs),
        donated=tuple(kept.index(place) for place in stored.record.donated if place in kept),
        options=dict(stored.record.options),
        devices=exported.nr_devices,
        mesh=mesh,
        convention=exported.calling_convention_version,
        seeded=seeded,
    )


def _axis_names(text: str, shardings: Sequence[Any]) -> dict[str, str]:
    names = [name for one in shardings if one is not None for name in one.mesh.axis_names]
    names += [name for mesh in re.findall(r"sdy\.mesh @\S+ = <\[(.*?)\]", text) for name in _QUOTED.findall(mesh)]
    return {name: f"axis{place}" for place, name in enumerate(dict.fromkeys(str(one) for one in names))}


def _drop_names(module: Any) -> None:
    """Number what has a name, and drop what only names something."""
    ir = bindings().ir
    with context(), ir.Location.unknown():
        top = module.operation
        for key in _keys(top):
            if not _MODULE_ATTRIBUTES.fullmatch(key):
                del top.attributes[key]
        top.attributes["sym_name"] = ir.StringAttr.get("program")
        functions = [op.operation for op in module.body.operations if op.operation.name == "func.func"]
        for place, function in enumerate(functions):
            name = function.attributes["sym_name"].value
            if name != "main":
                ir.SymbolTable.replace_all_symbol_uses(name, f"f{place}", top)
                function.attributes["sym_name"] = ir.StringAttr.get(f"f{place}")
            for key in ("arg_attrs", "res_attrs"):
                if key in function.attributes:
                    about = [_kept(one, _ARGUMENT_ATTRIBUTES) for one in function.attributes[key]]
                    function.attributes[key] = ir.ArrayAttr.get(about)
        for _, operation in walk(top):
            if operation.name == "stablehlo.composite" and not operation.attributes["name"].value.startswith("chlo."):
                operation.attributes["name"] = ir.StringAttr.get("stablehlo.composite")
                operation.attributes["composite_attributes"] = ir.DictAttr.get({})
            if _FRONTEND in operation.attributes:
                operation.attributes[_FRONTEND] = _kept(operation.attributes[_FRONTEND], _OF_JAX)


def _keys(operation: Any) -> list[str]:
    """The names of an operation's attributes: older bindings give pairs, newer ones names."""
    return [str(getattr(one, "name", one)) for one in operation.attributes]


def _kept(attributes: Any, names: re.Pattern[str]) -> Any:
    return bindings().ir.DictAttr.get({one.name: one.attr for one in attributes if names.fullmatch(one.name)})


def _draw_constants(module: Any) -> int:
    """Give the arrays of a program other numbers, and count these arrays."""
    captured = [op for _, op in walk(module.operation) if op.name == "stablehlo.constant" and not is_splat(op)]
    for place, operation in enumerate(captured):
        set_constant(operation, _drawn(operation, np.random.default_rng((SEED, place))))
    return len(captured)


def _drawn(operation: Any, random: np.random.Generator) -> Values:
    """Numbers of a seed in the type and shape of a constant; whole ones in its order and range."""
    kind = array_of(operation.results[0].type)
    dtype = jax.numpy.dtype(kind.dtype)
    try:
        values = np.array(operation.attributes["value"])
    except TypeError:  # it has a type that NumPy has not, as those narrower than a byte
        values = np.empty(0)
    if values.dtype.kind in "iu" and values.size:
        return _whole_numbers(values, random)
    if not jax.numpy.issubdtype(dtype, jax.numpy.inexact):
        return random.integers(0, 2, kind.shape).astype(dtype)
    fan_in = max(kind.shape[-2] if len(kind.shape) > 1 else 1, 1)
    return np.asarray(random.standard_normal(kind.shape) * fan_in**-0.5).astype(dtype)


def _whole_numbers(like: Values, random: np.random.Generator) -> Values:
    """Whole numbers of the same range, rising and without repetition where those were."""
    low, high, flat = int(like.min()), int(like.max()), like.reshape(-1)
    if np.unique(flat).size == flat.size and high - low < 2**24:
        drawn = low + random.permutation(high - low + 1)[: flat.size]
    else:
        drawn = random.integers(low, high, flat.size, dtype=like.dtype, endpoint=True)
    rising = bool(np.all(flat[1:] >= flat[:-1]))
    return np.asarray(np.sort(drawn) if rising else drawn).astype(like.dtype).reshape(like.shape)


def _refuse_texts(module: Any, text: str) -> None:
    """Refuse a module with a text, or a name of an attribute, that is not known to be one of JAX's."""
    calls = custom_calls(text)
    if kernels := sorted(name for name in calls if _KERNELS.fullmatch(name)):
        raise NotAnonymousError(f"it calls {kernels[0]}, a kernel with names in it that cannot be taken out")
    symbols = {found.strip('"') for found in _SYMBOL.findall(text)} - calls
    foreign = sorted(name for name in symbols if not _HARMLESS_SYMBOL.fullmatch(name))
    foreign += sorted({key for _, one in walk(module.operation) for key in _keys(one)} - _ATTRIBUTES)
    foreign += sorted({one for one in _QUOTED.findall(text) if not _HARMLESS.fullmatch(one)} - calls)
    if foreign:
        raise NotAnonymousError(f"it holds a text that may be its author's: {foreign[0][:60]!r}")


def _spec(sharding: Any, axes: dict[str, str]) -> tuple[Axes, ...] | None:
    """How an array is divided, in the names that axes have now; ``None`` where the compiler is free in a part of it."""
    if sharding is None:
        return None
    found: list[Axes] = []
    for one in sharding.spec:
        if one is None or isinstance(one, str):
            found.append(None if one is None else axes[one])
        elif isinstance(one, tuple):
            found.append(tuple(axes[name] for name in one))
        else:
            return None
    return tuple(found)


def _mesh(shardings: Sequence[Any], axes: dict[str, str], devices: int) -> MeshOf:
    """The mesh of a program for several devices, refused where its arguments lie on several."""
    meshes = {one.mesh for one in shardings if one is not None}
    if len(meshes) > 1:
        raise NotAnonymousError("its arguments lie on several meshes, which the file could not rebuild")
    if not meshes:
        return MeshOf(axes={"axis0": devices}, kinds=("Auto",))
    mesh = meshes.pop()
    sizes = zip(mesh.axis_names, mesh.axis_sizes, strict=True)
    return MeshOf(axes={axes[name]: size for name, size in sizes}, kinds=tuple(kind.name for kind in mesh.axis_types))
