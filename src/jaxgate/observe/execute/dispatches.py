"""What a call launches on devices, puts there and reads back, counted in a profile of it.

Only names and times of events are read: their statistics can abort the process where warnings are errors. The names are
the runtime's own. Before each call a program of this file is launched, a number put and a result read, in the same
profile: where these are not found, nothing is known of the call either. On CPU ``np.asarray`` and ``item`` share the
array's memory and leave no event: only what stops the program to fetch a value is seen there. Lines of the project are
marked as spans of the profile: whatever a line starts lies within its span.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxgate.observe.arguments.lockstep import ALONE, Lockstep
from jaxgate.observe.compat import stop_trace
from jaxgate.observe.errors import describe
from jaxgate.observe.source_lines import is_project_file, places, short_path

_LINE = "jaxgate: line "
MAX_SPANS = 20_000
"""Lines that are marked in a profile: it must have room for the events that they explain."""


@contextmanager
def marking_lines() -> Iterator[None]:
    """Mark the lines that this thread runs in the profile that is being taken.

    Nothing is marked where a debugger or a coverage tool traces the thread: lines explain, they count nothing.
    """
    if sys.gettrace() is not None:
        yield
        return
    spans = _Spans()
    sys.settrace(spans.on_call)
    try:
        yield
    finally:
        sys.settrace(None)
        spans.close_all()


class _Spans:
    """The spans that are open: one for each frame of the project on the stack."""

    def __init__(self) -> None:
        self._open: list[tuple[FrameType, Any]] = []
        self._room = MAX_SPANS

    def on_call(self, frame: FrameType, _event: str, _: Any) -> Any:
        """Look into functions of the project."""
        return self._on_event if self._room and is_project_file(frame.f_code.co_filename) else None

    def _on_event(self, frame: FrameType, event: str, _: Any) -> Any:
        if event in ("line", "return") and self._open and self._open[-1][0] is frame:
            self._open.pop()[1].__exit__(None, None, None)
        if event == "line" and self._room:
            self._room -= 1
            span = jax.profiler.TraceAnnotation(f"{_LINE}{short_path(frame.f_code.co_filename)}:{frame.f_lineno}")
            span.__enter__()
            self._open.append((frame, span))
        elif not self._room:
            self.close_all()  # from here on no line is known, rather than the wrong one
        return self._on_event

    def close_all(self) -> None:
        """Close what is open, the innermost first."""
        while self._open:
            self._open.pop()[1].__exit__(None, None, None)


def marked_line(within: Sequence[str]) -> str:
    """``file:line`` of the innermost marked line among the spans that an event lies in; empty if there is none."""
    return next((name.removeprefix(_LINE) for name in reversed(within) if name.startswith(_LINE)), "")


CAPTURES = 2
"""Profiles that must agree. Twenty of one loop body gave equal counts on both supported lines of JAX."""

_CALL, _PROBE = "jaxgate: the call", "jaxgate: the probe"
_CALLED = re.compile(r"PjitFunction\((?:jit\()?(.*?)\)*$")
_ONE_DEVICE = re.compile(r"\w+Executable::ExecuteHelperOnSingleDevice$")
_WHOLE = re.compile(r"PjRtCApiLoadedExecutable::Execute$|\w+Executable::Execute \((?:jit_)?(.*)\)$")
"""The launch as a whole, by JAX's own library where the runtime is a plug-in, and by the runtime. Its parts lie in it."""
_PUTS = frozenset({"DevicePut", "DevicePutWithSharding"})
_READ = "np.asarray(jax.Array)"
"""``float(x)``, ``bool(x)``, ``print(x)``, ``jax.device_get(x)``: the program stops until the value is there."""
ELSEWHERE = "device_put"
"""The name of a transfer that no jitted call asked for."""
BACK = "the host"
"""The name of a transfer that reads a value back."""


@dataclass(frozen=True, slots=True)
class Launched:
    """What one warm call does on devices."""

    # how often it launches each program, by the name of its function; `None` if that is not known
    programs: Mapping[str, int] | None
    # how many arrays and numbers it puts on devices, by the program that they are for: NumPy arrays and Python numbers,
    # and arrays that have to move to other devices; and how many it reads back, for `the host`. `None` if that is not
    # known.
    transfers: Mapping[str, int] | None
    why_not: str = ""  # why it is not known
    # lines of the project that launch each program, those that launch it most often first
    program_lines: Mapping[str, str] = field(default_factory=dict)
    transfer_lines: Mapping[str, str] = field(default_factory=dict)  # lines of the project that ask for each transfer

    @property
    def launches(self) -> int | None:
        """How often it launches any program."""
        return None if self.programs is None else sum(self.programs.values())

    @property
    def host_transfers(self) -> int | None:
        """How much it puts on devices and reads back."""
        return None if self.transfers is None else sum(self.transfers.values())

    @property
    def unknown(self) -> dict[str, str]:
        """The facts that are not known, each with the reason."""
        counts = {"launches": self.programs, "host_transfers": self.transfers}
        return {name: self.why_not for name, found in counts.items() if found is None}


@dataclass(frozen=True, slots=True)
class _Event:
    """One event of a thread, with those that it lies in, outermost first; times in nanoseconds."""

    name: str
    begin: float
    end: float
    thread: int
    within: tuple[str, ...]


class _Lines(defaultdict[str, Counter[str]]):
    """How often each line of the project asks for something, by its name."""

    def __init__(self) -> None:
        super().__init__(Counter)

    @property
    def totals(self) -> dict[str, int]:
        """How often it is asked for, whatever the line."""
        return {name: lines.total() for name, lines in self.items()}

    @property
    def places(self) -> dict[str, str]:
        """The lines of each name in one text, the most frequent first."""
        named = {name: places(line for line, _ in found.most_common()) for name, found in self.items()}
        return {name: text for name, text in named.items() if text}


@dataclass(frozen=True, slots=True)
class _Counts:
    programs: _Lines = field(default_factory=_Lines)
    transfers: _Lines = field(default_factory=_Lines)


def count_launches(
    make_call: Callable[[], Callable[[], Any]], devices: Sequence[jax.Device], together: Lockstep = ALONE
) -> Launched:
    """Profile a warm call, twice, and count.

    What ``make_call`` prepares outside the profile makes the call and waits for its result. ``devices`` are those of
    this process.

    Raises:
        Exception: Whatever the call raises.
    """
    found = []
    for _ in range(CAPTURES):
        counted = _capture(make_call(), devices)
        problem = counted if isinstance(counted, str) else ""
        if together.anyone("the profile shows nothing", bool(problem)) or isinstance(counted, str):
            return Launched(None, None, problem or "another rank's profile shows nothing")
        found.append(counted)
    first = found[0]
    programs, transfers = first.programs.totals, first.transfers.totals
    same_programs = all(counts.programs.totals == programs for counts in found)
    same_transfers = all(counts.transfers.totals == transfers for counts in found)
    unsteady = [what for what, same in (("launches", same_programs), ("transfers", same_transfers)) if not same]
    return Launched(
        programs=programs if same_programs else None,
        transfers=transfers if same_transfers else None,
        why_not=f"the {' and '.join(unsteady)} of two calls differ" if unsteady else "",
        program_lines=first.programs.places,
        transfer_lines=first.transfers.places,
    )


def _capture(call: Callable[[], Any], devices: Sequence[jax.Device]) -> _Counts | str:
    """Count in one profile of one call; a text if there is nothing to count in."""
    probe, expected = _make_probe(devices)
    probe()  # warm: a profile holds launches, not compiles
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0  # the default one slows Python four to eight times
    options.enable_hlo_proto = False
    with tempfile.TemporaryDirectory(prefix="jaxgate-") as folder:
        try:
            jax.profiler.start_trace(folder, profiler_options=options)
        except Exception as error:  # noqa: BLE001 - another profile is being taken, or there is no room for one
            return f"no profile could be taken: {describe(error)}"
        try:
            with jax.profiler.TraceAnnotation(_PROBE):
                probe()
            with jax.profiler.TraceAnnotation(_CALL), marking_lines():
                call()
        finally:
            stop_trace()
        try:
            events = list(_read(Path(folder)))
        except Exception as error:  # noqa: BLE001 - another release may write it otherwise
            return f"the profile could not be read: {describe(error)}"
    probed, counted = _count(events, _PROBE), _count(events, _CALL)
    if probed is None or counted is None or (probed.programs.totals, probed.transfers.totals) != expected:
        return "the profile of this backend does not show every launch"
    return counted


def _jaxgate_probe(number: Any) -> Any:
    return -number


_probe = jax.jit(_jaxgate_probe)


def _make_probe(devices: Sequence[jax.Device]) -> tuple[Callable[[], Any], tuple[dict[str, int], dict[str, int]]]:
    """A launch on one device that puts a number there, and one on all where there are several; and what they count."""
    name = _jaxgate_probe.__name__
    if len(devices) == 1:
        return lambda: _launch_probe(devices[0]), ({name: 1}, {name: 1, BACK: 1})
    with jax.transfer_guard("allow"):
        everywhere = jax.device_put(np.float32(1), NamedSharding(Mesh(np.array(devices), ("all",)), PartitionSpec()))

    def both() -> None:
        _launch_probe(devices[0])
        jax.block_until_ready(_probe(everywhere))

    return both, ({name: 2}, {name: 1, BACK: 1})


def _launch_probe(device: jax.Device) -> None:
    with jax.transfer_guard("allow"), jax.default_device(device):
        float(_probe(np.float32(1)))


def _read(folder: Path) -> Iterator[_Event]:
    (file,) = folder.rglob("*.xplane.pb")
    lines = [line for plane in jax.profiler.ProfileData.from_file(str(file)).planes for line in plane.lines]
    for thread, line in enumerate(lines):
        spans = [(event.start_ns, event.start_ns + event.duration_ns, event.name) for event in line.events]
        within: list[tuple[float, str]] = []
        for begin, end, name in sorted(spans, key=lambda span: (span[0], -span[1])):
            while within and begin >= within[-1][0]:
                within.pop()
            yield _Event(name, begin, end, thread, tuple(outer for _, outer in within))
            within.append((end, name))


def _count(events: Iterable[_Event], annotation: str) -> _Counts | None:
    """Count what happened while an annotation was open; ``None`` if it is not there once."""
    found = [event for event in events if event.name == annotation]
    if len(found) != 1:
        return None
    (span,) = found
    counts = _Counts()
    for event in events:
        if not span.begin <= event.begin < span.end:
            continue
        if _is_launch(event.name) and not _is_part(event):
            whole = _WHOLE.match(event.name)
            name = _called(event.within) or (whole and whole[1]) or "unnamed"
            counts.programs[name][marked_line(event.within)] += 1
        elif event.thread == span.thread and not any(map(_is_launch, event.within)):  # there a callback does it
            name = BACK if event.name == _READ else _called(event.within) or ELSEWHERE
            if event.name in _PUTS or (event.name == _READ and _READ not in event.within):
                counts.transfers[name][marked_line(event.within)] += 1
    return counts


def _is_launch(name: str) -> bool:
    return bool(_WHOLE.match(name) or _ONE_DEVICE.match(name))


def _is_part(event: _Event) -> bool:
    """Whether it lies in a launch, which is counted; a callback that calls something in between launches anew."""
    around = (outer for outer in reversed(event.within) if _is_launch(outer) or _CALLED.match(outer))
    return _is_launch(next(around, ""))


def _called(within: Sequence[str]) -> str:
    """Name of the jitted function that an event lies in; the innermost, as JAX calls helpers of its own."""
    names = (found[1] for outer in reversed(within) if (found := _CALLED.match(outer)))
    return next(names, "")
