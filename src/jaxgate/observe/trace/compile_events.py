"""What JAX traces, lowers and compiles, as it says itself through ``jax.monitoring``, in order of arrival; and why it traced.

A warm call fires no event, a cache miss fires one per phase, with the function's name. Eager helpers fire
their own events, so counting happens inside ``record`` blocks that hold nothing but calls of the subject.
Seen alike on JAX 0.10.2 and 0.12 (``tests/observe/trace/test_retraces.py`` holds them to it):

* A persistent-cache hit fires the trace, the lowering and the *compile* event too, and the hit just before
  it, nameless: real compiles are compiles less hits.
* A jitted function that is called while another is traced fires nothing: only the outermost trace is an event.
  ``record(explain=True)`` hears of the inner ones.
* Eager helpers report under their own names (``jnp.ones``: ``broadcast_in_dim``), ``lax.scan`` as ``scan``.
* ``pmap`` reports as ``_fun``, and may compile a helper (``_multi_slice``) that splits its arguments.
* ``jit(shard_map(f))`` reports as ``f``; a bare ``shard_map`` compiles every operation of its body at each
  call, as ``<unnamed function>``. ``nnx.jit(f)`` reports as ``f``.
* Another sharding or committed device lowers and compiles, and does not trace; another device alone only
  compiles.

Events of all threads are counted unless a block wants its own alone: JAX does not say for whom a thread works, and a
jitted function is traced and compiled by the thread that calls it. Explanations, the text that
``jax.explain_cache_misses`` logs, come from the thread of the block alone.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import jax

from jaxgate.observe.arguments.signature import ArgumentKey, join
from jaxgate.observe.arguments.static import static_change
from jaxgate.observe.compat import CACHE_LOGGERS, TRACING_LOGGER, traced_call
from jaxgate.observe.source_lines import calling_line, short_path

RECORDING = "jax_debug_key_reuse"
"""The setting under which ``recorded_calls`` has calls arrive."""
Kind = Literal["new", "arguments", "static", "config", "other"]

_HEADER = "TRACING CACHE MISS"
_CACHE_TEXTS = ("PERSISTENT COMPILATION CACHE MISS", "Not writing persistent cache entry", "Writing ")
"""Other texts that the same switch makes JAX print, where a persistent cache is on."""

_FUNCTION = re.compile(r"^(?:for )?(?P<name>.+?)(?: id=\d+)?(?: defined at (?P<file>.+?)(?::(?P<line>\d+))?)?$")
_TYPES = re.compile(r"^\* at (.+?), now (.+) and before (.+)$")
_TREES = re.compile(r"^\* at input path (.*?), now (.+) and before (.+?), so (.+)$")
_SETTING = re.compile(r"^\* (.+?) differs: now (.+) and before (.+)$")
_STATIC = re.compile(r"\bStatic\(val=(.*)\)$")
_CLASS = re.compile(r"<class '(?:[\w.]+\.)?(\w+)'>")
_NAMELESS = {"<unknown>": "<unnamed function>"}
"""A callable object, as JAX explains it and as its events name it."""
_DTYPES = {"f": "float", "i": "int", "u": "uint", "c": "complex", "bf": "bfloat", "s": "int"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Miss:
    """One entry that JAX's tracing cache did not hold."""

    function: str  # name of the function as its events give it, `<unnamed function>` for callable objects
    defined: str  # where it stands, `file:line`; empty if unknown
    where: str  # the project's line that called it, `file:line`; empty if no frame is the project's
    kind: Kind  # what differed from the nearest entry; `new` if this function object was never traced
    cause: str  # the difference in words; empty for `new`
    call: tuple[ArgumentKey, ...] = ()  # its arguments; empty if they cannot be known


@dataclass(frozen=True, slots=True, eq=False)
class _Listener:
    """A listener to the misses of a thread; ``wanted`` if the explanations were on before anybody listened."""

    thread: int
    report: Callable[[Miss], None]
    wanted: bool


_listeners: list[_Listener] = []
_levels: dict[str, int] = {}
_lock = threading.Lock()


@contextmanager
def listen_to_misses(report: Callable[[Miss], None]) -> Iterator[None]:
    """Report every tracing-cache miss of this thread until the block ends; nothing of it is printed.

    Whoever had switched the explanations on already still gets them. Blocks may be nested. ``report`` is called within
    the miss, before the function is traced.
    """
    thread = threading.get_ident()
    outer = [listener.wanted for listener in _listeners if listener.thread == thread]
    listener = _Listener(thread, report, outer[0] if outer else bool(jax.config.jax_explain_cache_misses))
    with _lock:
        if not _listeners:
            _install()
        _listeners.append(listener)
    try:
        with jax.explain_cache_misses(True):
            yield
    finally:
        with _lock:
            _listeners.remove(listener)
            if not _listeners:
                _remove()


def _install() -> None:
    """Filter the loggers; the one that explains must speak, whatever the project's logging is set to."""
    for name in (TRACING_LOGGER, *CACHE_LOGGERS):
        logging.getLogger(name).addFilter(_catch)
    logger = logging.getLogger(TRACING_LOGGER)
    _levels.update(logger=logger.level, disabled=logger.disabled, manager=logger.manager.disable)
    logger.disabled = False  # logging.config disables what it does not know
    if logger.manager.disable >= logging.WARNING:
        logging.disable(logging.NOTSET)
    if not logger.isEnabledFor(logging.WARNING):
        logger.setLevel(logging.WARNING)


def _remove() -> None:
    for name in (TRACING_LOGGER, *CACHE_LOGGERS):
        logging.getLogger(name).removeFilter(_catch)
    logger = logging.getLogger(TRACING_LOGGER)
    logger.disabled = bool(_levels["disabled"])
    logger.setLevel(_levels["logger"])
    if logger.manager.disable != _levels["manager"]:
        logging.disable(_levels["manager"])


def _catch(entry: logging.LogRecord) -> bool:
    """Report a miss to this thread's listeners; keep everything from being printed that only they asked for."""
    listeners = [listener for listener in _listeners if listener.thread == threading.get_ident()]
    text = entry.getMessage()
    if not listeners or not text.startswith((_HEADER, *_CACHE_TEXTS)):
        return True
    if text.startswith(_HEADER):
        miss = read_miss(text, calling_line())
        miss = replace(miss, call=traced_call(miss.function))
        for listener in listeners:
            listener.report(miss)
    return listeners[0].wanted


def read_miss(text: str, where: str) -> Miss:
    """Read one explanation as JAX logs it, of a call at a line of the project."""
    lines = [line.strip() for line in text.splitlines()[1:] if line.strip()]
    if not lines:
        return Miss(function="?", defined="", where=where, kind="other", cause="")
    new = lines[0].startswith("never seen function")
    found = _FUNCTION.match(lines[1] if new and len(lines) > 1 else lines[0])
    name, file, number = found.group("name", "file", "line") if found else ("?", None, None)
    name = _NAMELESS.get(name, name)
    defined = "" if not file else f"{short_path(file)}:{number}" if number else short_path(file)
    if new:
        return Miss(function=name, defined=defined, where=where, kind="new", cause="")
    kind, cause = _cause([line for line in lines[1:] if not line.startswith("all previously seen cache keys")])
    return Miss(function=name, defined=defined, where=where, kind=kind, cause=cause)


def _cause(lines: list[str]) -> tuple[Kind, str]:
    """What differs from the nearest entry, in our words; JAX's first sentence where it is none we know.

    An entry that was made while calls were recorded says nothing: the setting by which that is done is ours.
    """
    lines = [line for line in lines if not ((match := _SETTING.match(line)) and match[1] == RECORDING)]
    if not lines:
        return "other", ""
    if types := [match for line in lines if (match := _TYPES.match(line)) and "input path" not in match[1]]:
        return "arguments", join(
            [f"{path}: {_aval(old)} → {_aval(new)}" for path, new, old in (t.groups() for t in types)]
        )
    if settings := [match for line in lines if (match := _SETTING.match(line))]:
        return "config", join([f"{name}: {old} → {new}" for name, new, old in (s.groups() for s in settings)])
    trees = [match for line in lines if (match := _TREES.match(line))]
    statics = [
        (match[1], old[1], new[1])
        for match in trees
        if (new := _STATIC.search(match[2])) and (old := _STATIC.search(match[3]))
    ]
    if statics:
        return "static", join([f"{_path(path)}: {static_change(old, new)}" for path, old, new in statics])
    if trees:
        return "arguments", join([f"{_path(match[1])}: {_tree_change(match)}" for match in trees])
    if lines[0] == "cache miss explanation unavailable":  # trees and types are equal, so it is what they leave out
        return "static", "a static argument changed (JAX does not say which)"
    return "other", re.split(r"(?<=[.;]) ", lines[0])[0].rstrip(".:;")


def _tree_change(difference: re.Match[str]) -> str:
    new, old = (_CLASS.fullmatch(text) for text in difference.group(2, 3))
    if new and old and new[1] != old[1]:
        return f"{old[1]} → {new[1]}"
    return f"the tree changed: {difference[4]}"


def _aval(text: str) -> str:
    """``f32[3]({}){weak_type=True}…`` as ``float32[3] (weak type)``."""
    weak = "{weak_type=True}" in text
    text = re.sub(r"\(\{\}\)|\{weak_type=\w+\}|https?://\S+", "", text)
    text = re.sub(r"^([a-z]{1,2})(\d+\w*)\[", lambda found: f"{_DTYPES.get(found[1], found[1])}{found[2]}[", text)
    return f"{text} (weak type)" if weak else text


def _path(path: str) -> str:
    """A path into ``(args, kwargs)`` as the caller wrote it."""
    if match := re.match(r"^\[1\]\['(\w+)'\](.*)$", path):
        return match[1] + match[2]
    if match := re.match(r"^\[0\]\[(\d+)\](.*)$", path):
        return f"args[{match[1]}]{match[2]}"
    return {"[0]": "the positional arguments", "[1]": "the keyword arguments"}.get(path, "the arguments")


Phase = Literal["trace", "lower", "compile", "hit"]

_PHASES: dict[str, Phase] = {
    "/jax/core/compile/jaxpr_trace_duration": "trace",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "lower",
    "/jax/core/compile/backend_compile_duration": "compile",
}
_HIT = "/jax/compilation_cache/cache_hits"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One phase of one function."""

    phase: Phase  # a `compile` is a request: a `hit` before it says that the persistent cache answered
    function: str  # its name, without the `jit(…)` that lowering puts around it
    where: str = ""  # the project's line that called, `file:line`; empty if no frame is the project's
    thread: int = 0  # the thread that did it
    # what JAX explained since the event before: the function's own miss first, then those of the functions it calls
    misses: tuple[Miss, ...] = ()
    within: bool = False  # whether it happened while another function was being traced: it follows from that one
    seconds: float = 0.0  # what it took
    found: Any = None  # what the block's `at_compile` gave


@dataclass(slots=True, eq=False)
class Events:
    """The events of one ``record`` block; each list holds function names, for ``collections.Counter``."""

    log: list[Event] = field(default_factory=list)  # every event in order of arrival
    pending: list[Miss] = field(default_factory=list)  # misses whose trace has not ended yet
    thread: int = field(default_factory=threading.get_ident)  # the thread of the block, of which alone misses are heard
    others: bool = True  # whether what other threads do is heard, too
    at_compile: Callable[[], Any] | None = None  # called after each compile

    def _of(self, phase: Phase) -> list[str]:
        return [event.function for event in self.log if event.phase == phase]

    @property
    def traces(self) -> list[str]:
        """Functions that were traced, outermost ones only."""
        return self._of("trace")

    @property
    def lowerings(self) -> list[str]:
        """Functions that were lowered."""
        return self._of("lower")

    @property
    def compiles(self) -> list[str]:
        """Functions that the backend was asked to compile."""
        return self._of("compile")

    @property
    def cache_hits(self) -> list[str]:
        """Functions whose executable came out of the persistent cache instead."""
        return self._of("hit")

    def traces_of(self, function: str) -> int:
        """Count the traces of one function."""
        return self.traces.count(function)

    def add(self, phase: Phase, function: str, where: str, seconds: float = 0.0) -> None:
        """Append an event; a trace takes the misses that were explained since the one before it.

        A helper that runs for itself while another function is traced (``jax.ensure_compile_time_eval``) takes
        none: it was called from elsewhere.
        """
        misses: tuple[Miss, ...] = ()
        here = threading.get_ident()
        if here != self.thread and not self.others:
            return
        heard = self.pending and (
            self.pending[0].where == where or any(miss.function == function for miss in self.pending)
        )
        if phase == "trace" and here == self.thread and heard:
            misses = tuple(self.pending)
            self.pending.clear()
        within = here == self.thread and bool(self.pending)
        found = self.at_compile() if self.at_compile is not None and phase == "compile" else None
        self.log.append(
            Event(
                phase=phase,
                function=function,
                where=where,
                thread=here,
                misses=misses,
                within=within,
                seconds=seconds,
                found=found,
            )
        )


_open: list[Events] = []
_listening = False
_hits: set[int] = set()
"""Threads whose next compile event is a hit."""


def _listen(event: str, seconds: float, **kwargs: Any) -> None:
    phase = _PHASES.get(event)
    if phase is None or not _open:
        return
    name = str(kwargs.get("fun_name", "?"))
    if name.startswith("jit(") and name.endswith(")"):
        name = name[4:-1]
    hit = phase == "compile" and threading.get_ident() in _hits
    _hits.discard(threading.get_ident())
    where = calling_line()
    for events in _open:
        if hit:
            events.add("hit", name, where)
        events.add(phase, name, where, seconds)


def _listen_to_cache(event: str, **_kwargs: Any) -> None:
    if event == _HIT and _open:
        _hits.add(threading.get_ident())


@contextmanager
def record(
    *, explain: bool = False, others: bool = True, at_compile: Callable[[], Any] | None = None
) -> Iterator[Events]:
    """Collect what JAX traces, lowers and compiles until the block ends.

    Explanations cost nothing on a warm call; on a miss 0.07 ms, and 10 ms where the function has 500 arguments (both
    lines, two cores of a virtual machine). Others' events count (``others``) where plain Python may start threads; a
    jitted function starts none. ``at_compile`` is called after each compile, while its program is the newest one; the
    event keeps what it gives.
    """
    global _listening  # noqa: PLW0603 - JAX keeps listeners for the life of the process; so do we, one
    if not _listening:
        jax.monitoring.register_event_duration_secs_listener(_listen)
        jax.monitoring.register_event_listener(_listen_to_cache)
        _listening = True
    _hits.discard(threading.get_ident())
    events = Events(others=others, at_compile=at_compile)
    _open.append(events)
    try:
        with listen_to_misses(events.pending.append) if explain else nullcontext():
            yield events
    finally:
        _open.remove(events)
