"""What Python does in one warm call, seen by ``sys.setprofile`` and ``sys.settrace``, without a clock.

It counts functions, turns of loops, and reads. A turn is a line that begins again: a comprehension calls nothing,
however long it is. It counts as a call.

A warm call of a jitted function runs no Python but the project's: ``tree_flatten`` of its pytrees, ``__hash__`` and
``__eq__`` of its static arguments. Its counts are the same in every process. What JAX does inside itself is counted
apart: it differs between releases.
"""

from __future__ import annotations

import cProfile
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, wraps
from types import CodeType, FrameType
from typing import Any

import jax
import numpy as np

from jaxgate.model.measurement import MAX_FUNCTIONS, is_wait
from jaxgate.observe.arguments.lockstep import ALONE, Lockstep
from jaxgate.observe.errors import guarded
from jaxgate.observe.execute.subjects import Subject
from jaxgate.observe.source_lines import at, is_project_file, places, short_path
from jaxgate.observe.trace.clocks import uncollected

MAX_EVENTS = 1_000_000
"""Events that are counted at most, about a second of them: a longer call is counted up to there, each time alike."""

_JAX = frozenset({"jax", "jaxlib"})
_SHARED = frozenset({*sys.stdlib_module_names, "numpy", "ml_dtypes", "jaxgate"})
"""Modules whose work belongs to whoever calls them, JAX or the project."""
_INLINED = frozenset({"<listcomp>", "<dictcomp>", "<setcomp>"})
"""Functions of their own in Python 3.11, part of what they stand in since 3.12."""
_WRAPPER = "api_boundary.<locals>.reraise_with_filtered_traceback"
"""What JAX wraps its functions in, to leave its own frames out of errors."""
FROM_NUMPY = ("array", "asarray", "asanyarray", "ascontiguousarray")
"""Functions of NumPy's that read the memory of an array on the device, of which no event tells."""


@dataclass(frozen=True, slots=True)
class _Running:
    """A function that runs: whether JAX does it, and the innermost frame of the project."""

    by_jax: bool
    project: FrameType | None
    name: str = ""


_NOBODY = _Running(by_jax=False, project=None)


@dataclass(slots=True)
class PythonEvents:
    """The counts of one call; two that are equal saw the same."""

    # functions called, and turns of loops in them, by name: those of the project and its libraries, what these call in
    # the standard library and in NumPy, and their calls into JAX
    functions: Counter[str] = field(default_factory=Counter)
    jax_calls: int = 0  # what JAX calls and turns inside itself
    # device arrays that the project reads through the memory they share with it, by how it does
    reads: Counter[str] = field(default_factory=Counter)
    _lines: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter), compare=False)
    _running: list[_Running] = field(default_factory=lambda: [_NOBODY], compare=False)
    _room: int = field(default_factory=lambda: MAX_EVENTS, compare=False)
    _paused: bool = field(default=False, compare=False)
    _watching: frozenset[CodeType] = field(default=frozenset(), compare=False)

    def line_of(self, name: str) -> str:
        """Where a function of the project stands; for other functions and reads, the lines of the project that make them."""
        return places(line for line, _ in self._lines[name].most_common())

    def run(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Make the call and count.

        A profiler, a debugger or a coverage tool of this thread has its place again afterwards. Collections of garbage
        are put off: JAX has a callback in them. NumPy is watched, as no event shows which arrays it is given, and so are waits.
        """
        array = _array_type()  # not while it counts
        own = {name: getattr(np, name) for name in FROM_NUMPY}
        watchers = {name: self._watched(function) for name, function in own.items()}
        wait, watched_wait = array.block_until_ready, self._watched_wait(array.block_until_ready)
        self._watching = frozenset(watcher.__code__ for watcher in (*watchers.values(), watched_wait))
        profiler: Any = sys.getprofile()
        tracer = sys.gettrace()
        listener = profiler if callable(profiler) else None  # cProfile is no function, and takes its place by itself
        with uncollected():
            vars(np).update(watchers)
            array.block_until_ready = watched_wait
            sys.settrace(self._on_trace)
            sys.setprofile(self._on_profile)
            try:
                return function(*args, **kwargs)
            finally:
                sys.setprofile(listener)
                sys.settrace(tracer)
                vars(np).update(own)
                array.block_until_ready = wait
                if isinstance(profiler, cProfile.Profile):
                    profiler.enable()

    def _watched(self, function: Callable[..., Any]) -> Any:
        array, name = _array_type(), f"np.{function.__name__}"

        @wraps(function)
        def watcher(*args: Any, **kwargs: Any) -> Any:
            if args and type(args[0]) is array:
                self._paused = True  # what counts is not counted
                self._read(name, self._running[-1])
                self._paused = False
            return function(*args, **kwargs)

        return watcher

    def _watched_wait(self, wait: Callable[[Any], Any]) -> Any:
        """A method of arrays, written in C++ so that no event shows it, as one that is counted."""

        def watcher(array: Any) -> Any:
            self._paused = True
            self._add("jax.Array.block_until_ready", by_jax=self._running[-1].by_jax)
            self._paused = False
            return wait(array)

        return watcher

    def _read(self, how: str, reader: _Running) -> None:
        if not reader.by_jax:
            self.reads[how] += 1
            self._lines[how][_line(reader.project)] += 1

    def _on_profile(self, frame: FrameType, event: str, arg: Any) -> None:
        if self._paused:
            return
        if event == "call":
            self._enter(frame)
        elif event == "c_call":
            if frame.f_code is not _RUN:
                self._add(_name_of(arg), by_jax=self._running[-1].by_jax)
        elif event == "return" and len(self._running) > 1:
            self._running.pop()
        self._spend()

    def _spend(self) -> None:
        self._room -= 1
        if self._room == 0:
            sys.setprofile(None)
            sys.settrace(None)

    def _enter(self, frame: FrameType) -> None:
        above, code = self._running[-1], frame.f_code
        if code in self._watching:
            self._running.append(above)
            return
        module = str(frame.f_globals.get("__name__", ""))
        top = module.partition(".")[0]
        shared = top in _SHARED or top.startswith("namedtuple_")
        by_jax = top in _JAX or (shared and above.by_jax)
        mine = is_project_file(code.co_filename)
        project = frame if mine else above.project
        if code.co_name in _INLINED:
            self._running.append(_Running(by_jax, project, above.name))
            return
        name = _wrapped_name(frame) if code.co_qualname == _WRAPPER else f"{module}.{code.co_qualname}"
        self._running.append(_Running(by_jax, project, name))
        line = f"{short_path(code.co_filename)}:{code.co_firstlineno}" if mine else ""
        self._add(name, by_jax=by_jax and above.by_jax, line=line)
        if code is getattr(_array_type().item, "__code__", None):
            self._read("item()", above)

    def _add(self, name: str, *, by_jax: bool, line: str = "") -> None:
        if by_jax:
            self.jax_calls += 1
            return
        self.functions[name] += 1
        self._lines[name][line or _line(self._running[-1].project)] += 1

    def _on_trace(self, frame: FrameType, _event: str, _: Any) -> Any:
        """Look at the lines of each function that is called."""
        if self._paused:
            return None
        last = -1

        def on_line(frame: FrameType, event: str, _: Any) -> Any:
            nonlocal last
            if event == "line":
                if frame.f_lasti <= last:
                    self._turn(self._running[-1])
                last = frame.f_lasti
                self._spend()
            return on_line

        del frame
        return on_line

    def _turn(self, running: _Running) -> None:
        if running.by_jax:
            self.jax_calls += 1
        else:
            self.functions[running.name] += 1


_RUN = PythonEvents.run.__code__


@cache
def _array_type() -> Any:
    """The class of every array that lies on devices."""
    with jax.transfer_guard("allow"):
        return type(jax.device_put(np.float32(0)))


def _wrapped_name(frame: FrameType) -> str:
    """The function of JAX that a wrapper around all of them calls: ``jax._src.api.jit``."""
    function = frame.f_locals.get("fun")
    return f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', _WRAPPER)}"


def _name_of(function: Any) -> str:
    """A function written in C: ``len``, ``str.encode``, ``numpy.asarray``."""
    name = getattr(function, "__qualname__", type(function).__qualname__)
    module = getattr(function, "__module__", None)
    return name if module in (None, "builtins") else f"{module}.{name}"


def _line(project: FrameType | None) -> str:
    return "" if project is None else f"{short_path(project.f_code.co_filename)}:{project.f_lineno}"


MAX_COUNTED = 3
"""Calls that are counted at most until two agree."""


@dataclass(frozen=True, slots=True)
class Called:
    """The Python of one warm call."""

    # functions that are called, and turns of loops, outside of JAX; calls into JAX are among them
    calls: int | None = None
    jax_calls: int | None = None  # functions that are called, and turns of loops, inside of JAX
    # device arrays whose memory is read; on CPU no event shows it. `None` if they are seen otherwise.
    reads: int | None = None
    waits: int | None = None  # waits for arrays to be done, or for something else
    functions: Mapping[str, int] = field(default_factory=dict)  # what is called most, with its turns of loops, by name
    # lines of these: the definition of a function of the project, the calling lines of another one
    lines: Mapping[str, str] = field(default_factory=dict)
    read_lines: tuple[str, ...] = ()  # how and where arrays are read, those read most often first
    why_not: str = ""  # why calls are not known; empty if they are

    @property
    def unknown(self) -> dict[str, str]:
        """The facts that are not known, each with the reason."""
        return (
            dict.fromkeys(("python_calls", "jax_calls", "host_reads", "host_waits"), self.why_not)
            if self.why_not
            else {}
        )


def count_python(subject: Subject, *, reads: bool, together: Lockstep = ALONE) -> Called:
    """Count what a warm call runs, in calls with fresh arguments, until two agree.

    ``reads`` records arrays whose memory is read.

    Raises:
        InvalidCaseError: If a call fails.
    """
    counted: list[PythonEvents] = []
    for _ in range(MAX_COUNTED):
        counted.append(_count(subject))
        *before, last = counted
        if before and not together.anyone("Python's calls are counted again", last not in before):
            return _called(last, reads=reads)
    return Called(why_not=f"the Python calls of {MAX_COUNTED} warm calls differ")


def _count(subject: Subject) -> PythonEvents:
    call = subject.fresh()
    events = PythonEvents()
    with guarded(f"counting the Python calls of the {subject.role}"):
        output = events.run(subject.function, *call)
        subject.wait(output, call)
    return events


def _called(events: PythonEvents, *, reads: bool) -> Called:
    waits = {name: count for name, count in events.functions.items() if is_wait(name)}
    functions = dict(events.functions.most_common(MAX_FUNCTIONS)) | waits
    found = events.reads.most_common()
    return Called(
        calls=events.functions.total(),
        jax_calls=events.jax_calls,
        reads=events.reads.total() if reads else None,
        waits=sum(waits.values()),
        functions=functions,
        lines={name: line for name in functions if (line := events.line_of(name))},
        read_lines=tuple(f"{count} × {how}{at(events.line_of(how))}" for how, count in found) if reads else (),
    )
