"""A program compiled once more, without what the compiler takes from libraries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from jaxgate.observe.arguments import Values, on_host
from jaxgate.observe.compat import flat_executable
from jaxgate.observe.errors import describe
from jaxgate.observe.program import same_executable
from jaxgate.observe.trace import Lowered

WITHOUT_LIBRARIES: Mapping[str, Mapping[str, str]] = {"cpu": {"xla_cpu_experimental_ynn_fusion_type": ""}}
"""Compiler options of each platform that turn off fusions made by libraries: on CPU those of YNN, which jax 0.10.2 to
0.12.0.1 get wrong for a product that is summed up."""


class NotRecompiledError(Exception):
    """There is no second compile to compare with; the text says why, in one line."""


def compile_again(
    lowered: Lowered, leaves: Sequence[Any], executable: jax.stages.Compiled, platform: str
) -> Callable[[Sequence[Values]], list[Values]]:
    """Compile a lowered function without library fusions; nothing is traced or lowered again.

    Args:
        lowered: The function.
        leaves: Its dynamic arguments, where they lie.
        executable: What it was compiled to.
        platform: Where it runs.

    Returns:
        Runs it on other values of these arguments.

    Raises:
        NotRecompiledError: If it cannot be compiled without them, or has none.
    """
    if platform not in WITHOUT_LIBRARIES:
        raise NotRecompiledError(f"no option is known that leaves library fusions out on {platform}")
    try:
        other = lowered.stage.compile(compiler_options=dict(WITHOUT_LIBRARIES[platform]))
    except Exception as error:  # an XLA without these options, or one that does without its libraries badly
        raise NotRecompiledError(f"the compiler refuses to leave library fusions out: {describe(error)}") from error
    if same_executable(executable, other):
        raise NotRecompiledError("its executable has no library fusion that a second compile could leave out")
    call = flat_executable(other)
    if call is None:
        raise NotRecompiledError("a second compile cannot be called on this jax")

    def run(inputs: Sequence[Values]) -> list[Values]:
        placed = [_like(leaf, values) for leaf, values in zip(leaves, inputs, strict=True)]
        results = jax.block_until_ready(call(*placed))
        return [np.asarray(on_host(result)) for result in results]

    return run


def _like(leaf: Any, values: Values) -> Any:
    """Values where an argument lies; in a buffer of their own, as the program may take it."""
    sharding = leaf.sharding if isinstance(leaf, jax.Array) and leaf.committed else None
    if isinstance(leaf, jax.Array) and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return jax.device_put(jax.random.wrap_key_data(values, impl=jax.random.key_impl(leaf)), sharding)
    return jax.device_put(np.array(values), sharding, may_alias=False)
