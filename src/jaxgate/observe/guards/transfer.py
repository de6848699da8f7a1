"""A guard for anybody's code: no implicit transfer here; other errors of the block pass through untouched."""

from __future__ import annotations

import re
from contextlib import ExitStack
from types import TracebackType

import jax

from jaxgate.observe.errors import project_line_of
from jaxgate.observe.source_lines import at

_DISALLOWED = re.compile(r"Disallowed (\S+-to-\S+) transfer(?:: aval=\w*?ShapedArray\((.+?)\)(?=, dst|$))?")


class TransferError(AssertionError):
    """Something was moved between host and devices without being asked for."""


class no_transfer:  # noqa: N801 - reads like the function that it is to its user
    """Forbid implicit transfers in a block: ``with jaxgate.no_transfer(): step(state, batch)``.

    The first one raises ``TransferError`` on the spot, with the project's line: a NumPy array or a Python
    number in a jitted call, ``jnp.asarray`` of a NumPy array, ``jnp.ones``, a Python number in eager
    arithmetic, an index ``x[0]``, and an array that has to move to another device or sharding. Explicit ones
    (``jax.device_put``, ``jax.device_get``) are allowed, and so are arrays that are on their device already.

    Device to host (``float(x)``, ``np.asarray(x)``) is seen on accelerators alone: on CPU there is nothing to
    move, and JAX never fires. Only the thread of the block is guarded, and an error that the block itself
    swallows is not seen. Use each guard once.
    """

    def __init__(self) -> None:
        self._stack = ExitStack()

    def __enter__(self) -> None:
        """Switch JAX's own guard on."""
        self._stack.enter_context(jax.transfer_guard("disallow"))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Put the error of JAX's guard into words.

        Raises:
            TransferError: If it fired.
        """
        __tracebackhide__ = True
        self._stack.close()
        found = _DISALLOWED.search(str(error)) if isinstance(error, Exception) else None
        if error is None or found is None:
            return
        what = f" of {_short_aval(found[2])}" if found[2] else ""
        advice = "; move it with jax.device_put before the block, or where it is meant"
        raise TransferError(
            f"expected no implicit transfer, found {found[1]}{what}{at(project_line_of(error))}{advice}"
        ) from None


def _short_aval(text: str) -> str:
    """``float32[], weak_type=True`` as ``float32[] (weak type)``."""
    weak = ", weak_type=True" in text
    return text.split(", weak_type", maxsplit=1)[0] + (" (a Python number)" if weak else "")
