"""``jax.extend``, imported when it is first used.

Pallas comes with it, and after that jax 0.12 traces every function anew: a guard around a function that was called before
must not bring it.
"""

from __future__ import annotations

from functools import cache
from typing import Any


@cache
def jax_extend() -> Any:
    """The package, with its ``backend``, ``core``, ``core.primitives`` and ``source_info_util``."""
    import jax.extend.backend  # noqa: PLC0415 - brings Pallas, see above
    import jax.extend.core.primitives  # noqa: PLC0415 - so does this
    import jax.extend.source_info_util  # noqa: PLC0415 - and this

    return jax.extend
