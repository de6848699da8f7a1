"""An exported program, compiled again: for devices of this process, or of a topology that is not attached."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxgate.observe.program.export import NotReplayableError


def compile_exported(
    exported: jax.export.Exported,
    placed: Sequence[Any],
    *,
    donated: Sequence[int],
    options: Mapping[str, str],
    extend: Callable[[Callable[..., Any]], Callable[..., Any]] = lambda call: call,
) -> jax.stages.Compiled:
    """Compile a program anew, into an executable of its own.

    Args:
        exported: The program.
        placed: Its arguments, or ``jax.ShapeDtypeStruct``, where it wants them (``spread``).
        donated: Positions of those that it may reuse.
        options: Compiler options.
        extend: Makes more of the program before it is compiled.

    Raises:
        NotReplayableError: If it does not compile for them.
    """
    jitted = jax.jit(extend(_without_unused(exported)), donate_argnums=tuple(donated))
    try:
        return jitted.lower(*placed).compile(compiler_options=dict(options) or None)
    except Exception as error:
        text = str(error).strip().splitlines()
        raise NotReplayableError(
            f"it does not compile here: {type(error).__name__}: {text[0] if text else ''}"
        ) from error


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
