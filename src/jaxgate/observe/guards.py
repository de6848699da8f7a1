"""Guards for a block of anybody's code: no retrace, no implicit transfer, at most so many bytes left behind."""

from __future__ import annotations

import gc
import re
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from types import FunctionType, TracebackType
from typing import Any

import jax

from jaxgate.model.measurement import MAX_NAMED
from jaxgate.model.words import plural
from jaxgate.observe.arguments.signature import short
from jaxgate.observe.errors import project_line_of
from jaxgate.observe.source_lines import at
from jaxgate.observe.trace.compile_events import Events, record
from jaxgate.observe.trace.retraces import PMAP, Blame, Culprit


class RetraceError(AssertionError):
    """Something was traced or compiled in a block that forbids it."""


_ACTIVE: list[tuple[str, ...]] = []
"""What each block counts that has begun and not ended, in any thread; no name for everything."""


class no_retrace:  # noqa: N801 - reads like the function that it is to its user
    """Forbid traces and backend compiles in a block: ``with jaxgate.no_retrace(step): step(state, batch)``.

    Raises ``RetraceError`` at the end of the block, with one line for each function: what differed from the
    calls before (by argument path, with both shapes and dtypes), and the line of the project that called.

    With nothing named everything counts, in every thread: also JAX's own helpers that are called eagerly
    (``jnp.ones`` of a new shape is a program of its own). With functions named only those count, wherever
    they are traced: by themselves or inside another jitted function. They are known by their names, so that
    another jitted function of the same name counts too, and every ``pmap`` is one to JAX. Three kinds are not seen
    inside another jitted function, where JAX reports nothing of them: ``pmap``, a jitted ``jax.custom_vjp`` or
    ``jax.custom_jvp``, and functions of JAX itself; name the outer function, or none.

    A program that the persistent cache answers counts: it was traced, and the cache may be empty tomorrow.
    Causes, and functions that are traced inside others, are known for the thread of the block alone. What a
    function was called with before the block is JAX's own account: of several earlier calls it may pick another
    than you would.
    What was traced before the block is no retrace. With ``allow`` a block begins with empty caches of the functions
    that it counts, so that each program in it counts, whatever ran before.
    Blocks may be nested; each counts everything inside of it. One with ``allow`` leaves the caches as they are where an
    outer block counts on them: what that had traced by then is not among the programs of the inner one.
    Use each guard once.

    Args:
        functions: Jitted functions (``jax.jit``, ``nnx.jit``, ``eqx.filter_jit``, ``pmap``); all if none is given.
        allow: How many programs each function may trace or compile: 1 where the first call is in the block.

    Raises:
        TypeError: If a function is none that JAX would name in its events: it could never be seen.
        ValueError: If ``allow`` is negative.
    """

    def __init__(self, *functions: Callable[..., Any], allow: int = 0) -> None:
        if allow < 0:
            raise ValueError(f"expected allow to be 0 or more, found {allow}")
        self._functions = functions
        self._names = tuple(_jitted_name(function) for function in functions)
        self._allow = allow
        self._stack = ExitStack()
        self._events: Events | None = None

    def __enter__(self) -> None:
        """Begin to listen, with nothing in the caches that is to be counted."""
        if self._allow:
            self._forget()
        self._events = self._stack.enter_context(record(explain=True))
        _ACTIVE.append(self._names)
        self._stack.callback(_ACTIVE.remove, self._names)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Judge what was heard.

        Raises:
            RetraceError: If a function missed more often than allowed.
        """
        __tracebackhide__ = True
        self._stack.close()
        if kind is not None or self._events is None:
            return
        culprits = Blame(complete=False, inner=self._names).culprits(self._events)
        guilty = [one for one in culprits if not self._names or one.function in self._names]
        missed = Counter[str]()
        for culprit in guilty:
            missed[culprit.function] += culprit.misses
        guilty = [culprit for culprit in guilty if missed[culprit.function] > self._allow]
        if guilty:
            raise RetraceError(_retrace_text(guilty, self._names, self._allow))

    def _forget(self) -> None:
        """Empty the caches of the functions; all of JAX's, where one cannot be emptied alone or none is named.

        Nothing is emptied that an outer block counts: the outer one would be red for what this one forgot.
        """
        clears = [clear for function in self._functions if callable(clear := getattr(function, "clear_cache", None))]
        alone = bool(clears) and len(clears) == len(self._functions)
        if all(alone and names and not {*names} & {*self._names} for names in _ACTIVE):
            for clear in clears if alone else [jax.clear_caches]:
                clear()


def _jitted_name(function: Callable[..., Any]) -> str:
    """The name of a function in JAX's events.

    Raises:
        TypeError: If it has none.
    """
    name = getattr(function, "__name__", None)
    if callable(function) and callable(getattr(function, "lower", None)):
        if isinstance(function, FunctionType):  # pmap gives a plain function with what jit has
            return PMAP
        if name:  # jax.jit, nnx.jit, eqx.filter_jit: all keep the name of what they are put around
            return str(name)
    raise TypeError(
        f"no_retrace expects functions that are jitted, found {name or type(function).__name__}: JAX would never name "
        "it; pass the function that jax.jit returned, or name none, and everything counts"
    )


def _retrace_text(guilty: list[Culprit], names: tuple[str, ...], allow: int) -> str:
    """A headline, and what it was of each function; where some were allowed, of each program beyond these."""
    traces = sum(culprit.traces for culprit in guilty)
    compiles = sum(culprit.compiles for culprit in guilty)
    hits = sum(culprit.cache_hits for culprit in guilty)
    who = ", ".join("pmap" if name == PMAP else name for name in names)
    expected = "no trace and no compile" + (f" of {who}" if who else "")
    if allow:
        expected = f"at most {plural(allow, 'program')} of {who or 'each function'}"
    found = f"{plural(traces, 'trace')} and {plural(compiles, 'compile')}"
    found += f" ({hits} of them out of the persistent cache)" if hits else ""
    lines = _beyond(guilty, allow)
    more = [f"and {len(lines) - MAX_NAMED} more"] if len(lines) > MAX_NAMED else []
    return "\n  ".join([f"expected {expected}, found {found}:", *lines[:MAX_NAMED], *more])


def _beyond(guilty: list[Culprit], allow: int) -> list[str]:
    """A line for each miss that was not allowed: the first ones of each function were."""
    left = Counter({culprit.function: allow for culprit in guilty})
    lines: list[str] = []
    for culprit in guilty:
        allowed = left[culprit.function]
        lines += culprit.beyond(allowed) if allow else [str(culprit)]
        left[culprit.function] = max(0, allowed - culprit.misses)
    return lines


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
