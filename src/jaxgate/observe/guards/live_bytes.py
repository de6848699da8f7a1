"""A guard for memory: at most so many more bytes of device arrays after a block than before it."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import jax

from jaxgate.model import MAX_NAMED
from jaxgate.observe.arguments import short

Buffers = dict[tuple[Any, ...], "Buffer"]


class BytesError(AssertionError):
    """A block holds more bytes of device memory than it may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffer:
    """Memory of one array on one device; ``array`` is the whole of it in words: ``float32[8,64]``."""

    device: Any
    nbytes: int
    array: str


class at_most_bytes:  # noqa: N801 - reads like the function that it is to its user
    """Bound what a block leaves behind: ``with jaxgate.at_most_bytes(1_000_000): cache.warm_up()``.

    At the end of the block each device may hold at most so many bytes of live arrays more than at its
    beginning (``jax.live_arrays`` of the default backend, every thread's); ``BytesError`` names the largest
    new ones. Arrays that share one buffer count once, garbage is collected first.

    What it does not see by itself: temporaries within a program, arrays that came and went inside the block,
    and executables. Where the device reports its peak (GPU, TPU; not CPU) and the peak rose inside the block,
    these count as well: the bytes in use at the peak beyond those in use at the beginning must not pass the
    limit either. A peak that stays below an earlier one is not seen. Use each guard once.

    Args:
        limit: Bytes per device.
        devices: The devices whose own statistics are read; those of the default backend if omitted.

    Raises:
        ValueError: If the limit is negative.
    """

    def __init__(self, limit: int, *, devices: Callable[[], Sequence[Any]] = jax.local_devices) -> None:
        if limit < 0:
            raise ValueError(f"expected a limit of 0 bytes or more, found {limit}")
        self._limit = limit
        self._devices = devices
        self._before: Buffers = {}
        self._statistics: dict[Any, dict[str, int]] = {}

    def __enter__(self) -> None:
        """Take stock."""
        self._before = _live()
        self._statistics = {device: _statistics(device) for device in self._devices()}

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take stock again.

        Raises:
            BytesError: If a device holds too much, or held it at its peak.
        """
        __tracebackhide__ = True
        if kind is not None:
            return
        after = _live()
        new = [buffer for key, buffer in after.items() if key not in self._before]
        grown = {
            device: _held(after, device) - _held(self._before, device) for device in {buffer.device for buffer in new}
        }
        if grown and (most := max(grown, key=lambda device: grown[device])) is not None and grown[most] > self._limit:
            raise BytesError(_left_text(self._limit, grown[most], most, new))
        for device, before in self._statistics.items():
            risen = _risen(before, _statistics(device))
            if risen > self._limit:
                raise BytesError(
                    f"expected at most {self._limit:,} more bytes on {device}, found {risen:,} at the peak inside the "
                    "block; most of it is gone by now: temporaries, or arrays that came and went"
                )


def _left_text(limit: int, grown: int, device: Any, new: list[Buffer]) -> str:
    here = sorted((one for one in new if one.device == device), key=lambda one: one.nbytes, reverse=True)
    lines = [f"  {one.array}: {one.nbytes:,} bytes" for one in here[:MAX_NAMED]]
    lines += [f"  and {len(here) - MAX_NAMED} more arrays"] if len(here) > MAX_NAMED else []
    head = f"expected at most {limit:,} more bytes of live arrays on {device}, found {grown:,}; the largest new ones:"
    return "\n".join([head, *lines])


def _live() -> Buffers:
    """Every buffer of the live arrays, once."""
    gc.collect()  # arrays in a reference cycle live until somebody looks
    found: Buffers = {}
    for array in jax.live_arrays():
        if array.is_deleted():
            continue
        whole = short(array)
        for shard in array.addressable_shards:
            if shard.data.nbytes:
                key = (shard.device.id, _place(shard.data), shard.data.nbytes)
                found.setdefault(key, Buffer(device=shard.device, nbytes=shard.data.nbytes, array=whole))
    return found


def _place(array: Any) -> tuple[str, int]:
    """What identifies a buffer: its address, or the array itself where the backend gives none."""
    try:
        return "buffer", array.unsafe_buffer_pointer()
    except (NotImplementedError, RuntimeError, ValueError):
        return "array", id(array)


def _held(buffers: Buffers, device: Any) -> int:
    return sum(buffer.nbytes for buffer in buffers.values() if buffer.device == device)


def _statistics(device: Any) -> dict[str, int]:
    return device.memory_stats() or {}


def _risen(before: dict[str, int], after: dict[str, int]) -> int:
    """Bytes at the peak beyond those in use before; 0 if the peak is an older one or unknown."""
    names = ("peak_bytes_in_use", "bytes_in_use")
    if any(name not in before for name in names) or names[0] not in after:
        return 0
    return after[names[0]] - before[names[1]] if after[names[0]] > before[names[0]] else 0
