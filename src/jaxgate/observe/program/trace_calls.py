"""Functions that Python calls while JAX traces: a count where ``trace_ns`` is a clock.

The function is traced twice more, and the second time counts: JAX's caches know then all that it calls, whatever was traced
before. This thread alone is listened to: since Python 3.12 cProfile counts what other threads call, too.

Both traces together take three to six times as long as the first one, so they are not made where nothing changed that decides
what tracing calls (``accepted_trace_calls``).
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any

import jax

from jaxgate.model.baseline import Baseline
from jaxgate.model.measurement import MAX_FUNCTIONS, Fingerprints
from jaxgate.model.numbers import Phases
from jaxgate.observe.errors import describe
from jaxgate.observe.program.export import split_call
from jaxgate.observe.source_lines import is_project_file, package_of, short_path
from jaxgate.observe.trace.clocks import uncollected
from jaxgate.observe.trace.lowering import Lowered

_NOBODY = frozenset({"", "jax", "jaxlib", "ml_dtypes", "numpy"})
"""Packages whose functions are not named; the standard library belongs to none."""
_AT_ONCE = 1_000_000
"""Events that are kept before they are counted, 8 MB of them."""
_LONGER = 1.4
"""How much longer than the baseline's an unchanged trace may take before it is counted; 60 of 60 but one took less on two cores."""


@dataclass(frozen=True, slots=True)
class TraceCalls:
    """What one more trace of a function called."""

    count: int | None = None  # all calls, of JAX's own functions and of those written in C too
    # what is called most of the project and of libraries, by name, the project's own first
    functions: Mapping[str, int] = field(default_factory=dict)
    lines: Mapping[str, str] = field(default_factory=dict)  # where the project defines these
    why_not: str = ""  # why it is not known; empty if it is

    @property
    def unknown(self) -> dict[str, str]:
        """The fact, if it is not known, with the reason."""
        return {"trace_calls": self.why_not} if self.why_not else {}


def accepted_trace_calls(
    baseline: Baseline | None,
    *,
    fingerprints: Fingerprints,
    libraries: Mapping[str, str],
    environment: Mapping[str, str],
    phases: Phases,
) -> TraceCalls | None:
    """The baseline's count, if all that decides what tracing calls is unchanged; ``None`` if it must be counted now.

    Tracing may depend on what no fingerprint sees: a file, a variable, an object that cannot be looked into. So the
    clock is asked, too: what takes longer than it did is counted.
    """
    if baseline is None or baseline.facts.trace_calls is None or not phases.trace_ns or not baseline.phases.trace_ns:
        return None
    unchanged = (
        fingerprints.source is not None
        and fingerprints.source == baseline.fingerprints.source
        and fingerprints.program == baseline.fingerprints.program
        and libraries == baseline.libraries
        and environment == baseline.environment
        and phases.trace_ns <= _LONGER * baseline.phases.trace_ns * phases.slower_than(baseline.phases)
    )
    return TraceCalls(count=baseline.facts.trace_calls, functions=baseline.traced) if unchanged else None


def traced_function(lowered: Lowered) -> Any:
    """The Python that is traced: what ``jax.jit`` was given."""
    return getattr(lowered.function, "__wrapped__", lowered.function)


def count_trace_calls(lowered: Lowered) -> TraceCalls:
    """Trace the Python of a function again and count; what JAX has traced and compiled of it stays as it is."""
    if sys.getprofile() is not None:
        return TraceCalls(why_not="another profiler is at work")
    function = traced_function(lowered)
    try:
        leaves, rebuild = split_call(lowered, lowered.call)

        def anew() -> Callable[..., Any]:
            def again(*arrays: Any) -> Any:
                args, kwargs = rebuild(arrays)
                return function(*args, **kwargs)

            return again

        with uncollected():
            jax.make_jaxpr(anew())(*leaves)
            called, in_c = _listened(jax.make_jaxpr(anew()), leaves)
    except Exception as error:  # noqa: BLE001 - it can be traced only once
        return TraceCalls(why_not=f"tracing it once more failed: {describe(error)}")
    functions, lines = Counter[str](), dict[str, str]()
    for code, count in called.items():
        mine = is_project_file(code.co_filename)
        if mine:
            lines[code.co_qualname] = f"{short_path(code.co_filename)}:{code.co_firstlineno}"
        if mine or package_of(code.co_filename) not in _NOBODY:
            functions[code.co_qualname] += count
    most = sorted(functions, key=lambda name: (name not in lines, -functions[name], name))[:MAX_FUNCTIONS]
    return TraceCalls(
        count=called.total() + in_c,
        functions={name: functions[name] for name in sorted(most)},
        lines={name: lines[name] for name in most if name in lines},
    )


def _listened(function: Callable[..., Any], args: Sequence[Any]) -> tuple[Counter[CodeType], int]:
    """How often a call of a function calls each function of Python, and all that are written in C."""
    called, events = Counter[CodeType | None](), list[CodeType | None]()
    note = events.append  # counted later: each event costs half as much again if it is counted at once

    def listen(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            note(frame.f_code)
            if len(events) > _AT_ONCE:
                called.update(events)
                events.clear()
        elif event == "c_call":
            note(None)

    sys.setprofile(listen)
    try:
        function(*args)
    finally:
        sys.setprofile(None)
    called.update(events)
    in_c = called.pop(None, 0)
    return Counter({code: count for code, count in called.items() if code is not None}), in_c
