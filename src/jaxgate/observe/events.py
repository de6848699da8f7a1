"""What JAX traces, lowers and compiles, as it says itself through ``jax.monitoring``.

A warm call fires no event, a cache miss fires one per phase, with the function's name. Eager helpers fire
their own events, so counting happens inside ``record`` blocks that hold nothing but calls of the subject.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import jax

_PHASES = {
    "/jax/core/compile/jaxpr_trace_duration": "trace",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "lower",
    "/jax/core/compile/backend_compile_duration": "compile",
}


@dataclass(slots=True, eq=False)
class Events:
    """The events of one ``record`` block, as function names in order of arrival."""

    traces: list[str] = field(default_factory=list)
    compiles: list[str] = field(default_factory=list)
    cache_hits: int = 0

    def traces_of(self, function: str) -> int:
        """Count the traces of one function; nested jitted helpers report under their own names."""
        return self.traces.count(function)


_open: list[Events] = []
_listening = False


def _listen(event: str, _duration_secs: float, **kwargs: Any) -> None:
    phase = _PHASES.get(event)
    if phase not in ("trace", "compile"):
        return
    name = str(kwargs.get("fun_name", "?"))
    for events in _open:
        (events.traces if phase == "trace" else events.compiles).append(name)


def _listen_to_cache(event: str, **_kwargs: Any) -> None:
    if event == "/jax/compilation_cache/cache_hits":
        for events in _open:
            events.cache_hits += 1


@contextmanager
def record() -> Iterator[Events]:
    """Collect what JAX traces and compiles until the block ends."""
    global _listening  # noqa: PLW0603 - JAX keeps listeners for the life of the process; so do we, one
    if not _listening:
        jax.monitoring.register_event_duration_secs_listener(_listen)
        jax.monitoring.register_event_listener(_listen_to_cache)
        _listening = True
    events = Events()
    _open.append(events)
    try:
        yield events
    finally:
        _open.remove(events)
