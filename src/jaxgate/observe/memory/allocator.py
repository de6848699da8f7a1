"""The real peak of a case: a few calls in a process that does nothing else, and what the allocator counted.

A peak never goes down within a process, so this process must be a fresh one: no reference, no duel, no clock,
and no copies of donated arguments. What the figures mean differs between backends (looked up in jaxlib's own
allocators and in figures that people published; no two agree on the keys):

- CPU keeps none: ``memory_stats()`` is ``None``. So does ``XLA_PYTHON_CLIENT_ALLOCATOR=platform``.
- GPU (BFC) gives its pool and never fills ``largest_free_block_bytes``: it is always 0, which means "not known".
- TPU has no pool. What a program needs for its temporaries is not "in use" but "reserved": a program at 29.9 GiB
  was seen with 2.6 GiB in use and 27.3 GiB reserved. The largest free block is given.
- A plugin that does not know a figure gives -1.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax

from jaxgate.model import NOT_CALLED, AllocatorFigures, AllocatorPeak, Computation, PeakRecord
from jaxgate.observe.arguments import (
    Call,
    Feeder,
    NextArgs,
    advance,
    carry_donated,
    has_shapes,
    on_device,
    with_next_args,
)
from jaxgate.observe.errors import guarded
from jaxgate.observe.execute import EagerSubject, JittedSubject
from jaxgate.observe.program import refuse_shared_buffers
from jaxgate.observe.trace import CLOCKS, compile_program, devices_of, lower, refuse_idle

CALLS = 3
"""The second shows what a loop holds besides: the state that it came from; the third whether that is all."""

FRACTION = "0.75"
"""Share of a GPU that JAX takes by default."""

_NOTHING: Call = ((), {})
"""In place of the arguments, which a subject would hold: a later call replaces them, and they must be free to go."""

Figures = dict[Any, AllocatorFigures | str]
"""By device; a text says why there are none."""


def statistics_of(device: jax.Device) -> Mapping[str, Any] | None:
    """What the device's allocator reports; a name of its own, so that a test can put another one in its place."""
    found: Mapping[str, Any] | None = device.memory_stats()
    return found


def read_figures(device: jax.Device) -> AllocatorFigures | str:
    """Read the figures of one device, or why they cannot be used: a wrong peak would be worse than none."""
    name = f"{device.platform}:{device.id}"
    try:
        found = statistics_of(device)
    except Exception as error:  # noqa: BLE001 - plugins raise what they like where they know nothing
        return f"unavailable on {name}: {type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
    if not found:
        return f"unavailable on {device.platform}: its allocator keeps no figures"

    def of(key: str) -> int | None:
        value = found.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None

    reserves = device.platform == "tpu"  # elsewhere nobody says whether it is a part of the bytes in use
    needed = ["bytes_in_use", "peak_bytes_in_use", *(["bytes_reserved", "peak_bytes_reserved"] if reserves else [])]
    missing = [key for key in needed if of(key) is None]
    if missing:
        return f"unavailable on {name}: its allocator does not report {' and '.join(missing)}"
    in_use, peak = of("bytes_in_use") or 0, of("peak_bytes_in_use") or 0
    if peak < in_use:
        return (
            f"unavailable on {name}: its allocator contradicts itself: {in_use:,} bytes in use, at most {peak:,} ever"
        )
    return AllocatorFigures(
        device=name,
        in_use_bytes=in_use,
        peak_in_use_bytes=peak,
        reserved_bytes=of("bytes_reserved") if reserves else None,
        peak_reserved_bytes=of("peak_bytes_reserved") if reserves else None,
        limit_bytes=of("bytes_limit") or None,
        pool_bytes=of("pool_bytes"),
        peak_pool_bytes=of("peak_pool_bytes"),
        largest_free_bytes=of("largest_free_block_bytes") or None,
        allocations=of("num_allocs"),
    )


def preallocation(platform: str, environ: Mapping[str, str]) -> str:
    """The settings of JAX's allocator, as jaxlib reads them; only GPUs have any."""
    if platform != "gpu":
        return f"nothing to preallocate on {platform}"
    allocator = environ.get("XLA_PYTHON_CLIENT_ALLOCATOR", "").lower() or "default"
    if allocator == "platform":
        return "allocator platform: no pool"
    fraction = environ.get("XLA_CLIENT_MEM_FRACTION") or environ.get("XLA_PYTHON_CLIENT_MEM_FRACTION")
    share = f"{fraction or FRACTION} of the device{'' if fraction else ' (JAX default)'}"
    if environ.get("XLA_PYTHON_CLIENT_PREALLOCATE", "") in ("false", "False", "0"):
        return f"allocator {allocator}, preallocates nothing, up to {share}"
    return f"allocator {allocator}, preallocates {share}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prepared:
    """A subject that is ready to be called.

    Attributes:
        call: Calls it once and waits.
        next_args: Threads the state into the next call.
        devices: Where it runs; ``None`` where only its arrays say.
        ready: Figures before the first call.
        predicted_bytes: The compiler's ``peak_bytes``.
    """

    call: Callable[[Call], Any]
    next_args: NextArgs | None
    devices: Sequence[Any] | None
    ready: Figures
    predicted_bytes: int | None


def measure_peak(case: str, build: Callable[[], Computation], environ: Mapping[str, str] = os.environ) -> PeakRecord:
    """Build, compile and call a case a few times, and read what the allocators of its devices counted.

    Its figures describe; nothing gates on them. Arguments are not copied: donated ones are consumed.

    Raises:
        InvalidCaseError: If the case cannot be built, compiled or called.
    """
    with guarded("building the workload"):
        computation = with_next_args(build())
        if has_shapes(computation.args, computation.kwargs):
            return PeakRecord(case=case, why_not=NOT_CALLED)
        if computation.eager:  # called as it is
            call: Call = (tuple(computation.args), dict(computation.kwargs))
        else:
            call = on_device(computation.args, computation.kwargs)
        jax.block_until_ready(_arrays(call))
    before = _read({*jax.local_devices(), *_devices_of_arrays(call)})
    prepared = _prepare_host(computation, before) if computation.eager else _prepare(computation, call)
    pending = [call]
    del computation, call  # what a later call replaces must be free to go
    first, after, calls = _call(prepared, pending)
    stages = {"before": before, "ready": prepared.ready, "first": first, "after": after}
    peak = _fullest(stages, calls, environ)
    if isinstance(peak, str):
        return PeakRecord(case=case, predicted_bytes=prepared.predicted_bytes, why_not=peak)
    return PeakRecord(case=case, predicted_bytes=prepared.predicted_bytes, peak=peak)


def _prepare(computation: Computation, call: Call) -> _Prepared:
    """Compile for the devices of the arguments."""
    lowered = lower(computation.subject, *call, role="subject", clock=CLOCKS.thread)
    program = compile_program(lowered, clocks=CLOCKS)
    refuse_idle(program)
    refuse_shared_buffers(lowered, call)
    devices = devices_of(program.executable)
    return _Prepared(
        call=JittedSubject(lowered, Feeder(_NOTHING, donates=False)).call,
        next_args=computation.next_args or carry_donated(lowered.stage, call[0]),
        devices=devices,
        ready=_read(devices),
        predicted_bytes=program.facts.peak_bytes,
    )


def _prepare_host(computation: Computation, before: Figures) -> _Prepared:
    """Plain Python compiles while it is called."""
    return _Prepared(
        call=EagerSubject(computation.subject, _NOTHING, "subject").call,
        next_args=computation.next_args,
        devices=None,
        ready=before,
        predicted_bytes=None,
    )


def _call(prepared: _Prepared, pending: list[Call]) -> tuple[Figures, Figures, int]:
    """Call the subject, each step fed from the one before; ``pending`` gives its arguments away.

    Returns:
        Figures after the first call and after the last, and how many calls there were.
    """
    first: Figures = {}
    call = pending.pop()
    for number in range(1, CALLS + 1):
        with guarded(f"call {number} of the subject"):
            output = prepared.call(call)
        here = prepared.devices
        after = _read(_devices_of_arrays((output, call)) if here is None else here)
        first = first or after
        with guarded("threading the state into the next step"):
            following = advance(prepared.next_args, output, call)
            if following is not None:
                call = on_device(*following)
        del output, following
        if any(array.is_deleted() for array in _arrays(call)):
            break  # it consumed them and gave nothing for the next call
    return first, after, number


def _read(devices: Iterable[Any]) -> Figures:
    return {device: read_figures(device) for device in sorted(devices, key=lambda device: device.id)}


def _arrays(tree: Any) -> list[jax.Array]:
    return [leaf for leaf in jax.tree.leaves(tree) if isinstance(leaf, jax.Array)]


def _devices_of_arrays(tree: Any) -> set[Any]:
    return {device for array in _arrays(tree) if not array.is_deleted() for device in array.devices()}


def _fullest(stages: Mapping[str, Figures], calls: int, environ: Mapping[str, str]) -> AllocatorPeak | str:
    """The peak of the fullest device, or why it is unknown: one device without a figure may be the fullest."""
    found = []
    after = stages["after"]
    if not after:
        return "unavailable: no device holds a result or an argument"
    for device in after:
        figures = {}
        for stage, by_device in stages.items():
            one = by_device.get(device, f"unavailable on {device.platform}:{device.id}: it was not looked at before")
            if isinstance(one, str):
                return one
            figures[stage] = one
        if not figures["after"].peak_bytes:
            return f"unavailable on {device.platform}:{device.id}: its allocator says 0 bytes, after {calls} calls"
        start = preallocation(device.platform, environ)
        found.append(AllocatorPeak(devices=len(after), calls=calls, preallocation=start, **figures))
    return max(found, key=lambda peak: peak.peak_bytes)
