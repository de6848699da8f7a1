"""Several processes that run a case in lock-step: what a clock or a memory decides must be the same on all of them.

A rank that makes one call more than the others, or one less, waits for ever in a collective. So whatever depends on a
clock is decided once, and whatever depends on what a process remembers is done by all of them or by none.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import jax

from jaxgate.model.measurement import InvalidCaseError


class Lockstep:
    """The ranks that run one case; by itself this process, the only one. ``ext/ranks`` has that of a job."""

    name = ""
    """This rank, for people."""

    def first(self, what: str, numbers: tuple[int, ...]) -> tuple[int, ...]:  # noqa: ARG002 - one process
        """Give all ranks the numbers that rank 0 chose; a rank that decides anything but ``what`` gets an error."""
        return numbers

    def anyone(self, what: str, yes: bool) -> bool:  # noqa: ARG002, FBT001 - one process; it is the question
        """Whether any rank says yes; all of them are given the same answer."""
        return yes

    def same(self, what: str, text: Callable[[], str]) -> None:
        """Refuse to go on where a rank has another text."""

    def each(self, what: str, value: Any) -> list[Any]:  # noqa: ARG002 - one process
        """What every rank brings, plain data, by rank."""
        return [value]

    def calling(self, what: str) -> AbstractContextManager[None]:  # noqa: ARG002 - one process
        """Rank 0, which judges by itself, has all others do with it what the block does."""
        return nullcontext()

    def side(self, side: Any) -> Any:
        """A side of a duel (``observe.duel.duel.Side``) whose time is that of the slowest rank."""
        return side


ALONE = Lockstep()


def processes_of(devices: list[jax.Device] | tuple[jax.Device, ...]) -> int:
    """How many processes the devices of a program belong to.

    Raises:
        InvalidCaseError: If none of them is this one's: it would run nothing, and judge that.
    """
    owners = {device.process_index for device in devices}
    here = jax.process_index()
    if here not in owners:
        there = " and ".join(map(str, sorted(owners)))
        raise InvalidCaseError(
            "reading the devices",
            f"expected a program that runs on devices of every process, found none of process {here}, only of {there}; "
            "build its mesh of jax.devices() (all of them) or of jax.local_devices() (this process's own)",
        )
    return len(owners)


def is_spread(leaf: Any) -> bool:
    """Whether a leaf is an array of which other processes hold a part, or a copy."""
    return isinstance(leaf, jax.Array) and not leaf.is_fully_addressable


def whole(leaf: Any) -> Any:
    """An array that this process can read: one that is spread over processes is brought to each of them, by all at once."""
    if not is_spread(leaf) or leaf.is_fully_replicated:
        return leaf
    if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    from jax.experimental.multihost_utils import process_allgather  # noqa: PLC0415 - what one process never needs

    return process_allgather(leaf, tiled=True)


def own_devices(devices: list[jax.Device] | tuple[jax.Device, ...]) -> list[jax.Device]:
    """Those of a program's devices that belong to this process."""
    return [device for device in devices if device.process_index == jax.process_index()]
