"""What JAX traces, lowers and compiles, as it says itself through ``jax.monitoring``, in order of arrival.

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

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import jax

from jaxgate.observe.source_lines import calling_line
from jaxgate.observe.trace.misses import Miss, listen_to_misses

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
        """Count the traces of one function; of any where it has no name, as plain Python has none."""
        return self.traces.count(function) if function else len(self.traces)

    def add(self, phase: Phase, function: str, where: str, seconds: float = 0.0) -> None:
        """Append an event; a trace takes the misses that were explained since the one before it.

        A helper that runs for itself while another function is traced (``jax.ensure_compile_time_eval``) takes
        none: it was called from elsewhere.
        """
        here = threading.get_ident()
        own = here == self.thread
        if not own and not self.others:
            return
        event = Event(phase=phase, function=function, where=where, thread=here, seconds=seconds)
        called_here = bool(self.pending) and self.pending[0].where == where
        if own and phase == "trace" and (called_here or any(miss.function == function for miss in self.pending)):
            event = replace(event, misses=tuple(self.pending))
            self.pending.clear()
        if self.at_compile is not None and phase == "compile":
            event = replace(event, found=self.at_compile())
        self.log.append(replace(event, within=own and bool(self.pending)))


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
