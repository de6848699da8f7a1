"""What observations of these tests leave: references in memory, and bytes of arrays."""

from __future__ import annotations

from typing import Any

import jax


class Store(dict[Any, Any]):
    """What was measured of references, in memory."""

    def load(self, key: Any) -> Any:
        """What is known of one."""
        return self.get(key)

    def save(self, key: Any, facts: Any, outputs: Any) -> None:
        """Keep it."""
        self[key] = facts, outputs


def alive() -> int:
    """Bytes of all arrays that are alive, and not donated."""
    return sum(array.nbytes for array in jax.live_arrays() if not array.is_deleted())
