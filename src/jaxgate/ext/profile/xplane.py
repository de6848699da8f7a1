"""Read a profile: the steps that were annotated, and the operations that ran in each.

Reading the statistics of events can abort the process where warnings are errors, so this runs in a process of its own
(``jaxgate.ext.profile.worker``), which asks for no device.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from jax.profiler import ProfileData

from jaxgate.ext.profile.model import Operation, Span
from jaxgate.ext.profile.op_names import plain

STEP = "jaxgate step"
"""Annotation of one profiled step."""

_DEVICE = re.compile(r"/device:[A-Za-z]+:(\d+)")
_OPERATIONS_OF_DEVICE = re.compile(r"Stream|XLA Ops")
"""Lines of a device's plane that hold operations: of a GPU one for each stream, of a TPU one in all. Others sum them up."""
_GRAPH = "command_buffer"
"""What a profile takes for the operation of every kernel in a CUDA graph; only the kernel's own name tells them apart."""

Step = tuple[float, float, tuple[Span, ...]]
"""Begin and end in nanoseconds, and the operations that began in between."""


def read_steps(folder: Path, names: Mapping[str, Operation], host: int | None = None) -> list[Step]:
    """Read the one profile in a folder of TensorBoard's layout.

    ``names`` are by the compiler's name; other operations keep theirs, without its number. ``host`` is the one device that
    threads of a host work for; ``None`` where there may be several.

    Raises:
        ValueError: If there is not one profile, or no step in it.
    """
    files = sorted(folder.rglob("*.xplane.pb"))
    if len(files) != 1:
        raise ValueError(f"expected one profile, found {len(files)}")
    planes = list(ProfileData.from_file(str(files[0])).planes)
    steps = sorted(_steps(planes))
    if not steps:
        raise ValueError("expected annotated steps in the profile, found none")
    begins = [begin for begin, _ in steps]
    spans: defaultdict[int, list[Span]] = defaultdict(list)
    for span in spans_of(planes, names, host):
        place = bisect_right(begins, span.begin_ns) - 1
        if place >= 0 and span.begin_ns < steps[place][1]:
            spans[place].append(span)
    return [(begin, end, tuple(spans[place])) for place, (begin, end) in enumerate(steps)]


def _steps(planes: list[Any]) -> Iterator[tuple[float, float]]:
    for plane in planes:
        for line in plane.lines if not _DEVICE.match(plane.name) else ():
            yield from ((e.start_ns, e.start_ns + e.duration_ns) for e in line.events if e.name == STEP)


def spans_of(planes: Iterable[Any], names: Mapping[str, Operation], host: int | None = None) -> Iterator[Span]:
    """The operations of a profile: of a device's streams, of a host's threads."""
    threads = [
        (line, host if device is None else int(device[1]))
        for plane in planes
        for device in (_DEVICE.match(plane.name),)
        for line in plane.lines
        if not device or _OPERATIONS_OF_DEVICE.match(line.name)
    ]
    kernels = {re.sub(r"\W", "_", name): operation for name, operation in names.items()}
    for thread, (line, device) in enumerate(threads):
        for event in line.events:
            operation = next((str(value) for name, value in event.stats if name == "hlo_op"), None)
            if operation is None:
                continue
            if operation.startswith(_GRAPH):
                known = kernels.get(event.name) or Operation(plain(event.name), "")
            else:
                known = names.get(operation) or Operation(plain(operation), "")
            yield Span(
                thread=thread,
                name=known.name,
                begin_ns=event.start_ns,
                end_ns=event.start_ns + event.duration_ns,
                device=device,
                collective=known.collective,
            )
