"""Python in one warm call, counted without a clock.

A warm call of a jitted function runs no Python but the project's: ``tree_flatten`` of its pytrees, ``__hash__`` and
``__eq__`` of its static arguments. Its counts are the same in every process. What JAX does inside itself is counted
apart: it differs between releases.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from jaxgate.observe.arguments import ALONE, Lockstep
from jaxgate.observe.errors import guarded
from jaxgate.observe.execute.python_events import PythonEvents
from jaxgate.observe.execute.subjects import Subject
from jaxgate.observe.source_lines import at

MAX_FUNCTIONS = 20
"""Functions that are kept: those that are called most."""
MAX_COUNTED = 3
"""Calls that are counted at most until two agree."""


@dataclass(frozen=True, slots=True)
class Called:
    """The Python of one warm call.

    Attributes:
        calls: Functions that are called, and turns of loops, outside of JAX; calls into JAX are among them.
        jax_calls: The same inside of JAX.
        reads: Device arrays whose memory is read; on CPU no event shows it. ``None`` if they are seen otherwise.
        functions: What is called most, with its turns of loops, by name.
        lines: Where that is: the definition of a function of the project, the calling lines of another one.
        read_lines: How and where arrays are read, those read most often first.
        why_not: Why calls are not known; empty if they are.
    """

    calls: int | None = None
    jax_calls: int | None = None
    reads: int | None = None
    functions: Mapping[str, int] = field(default_factory=dict)
    lines: Mapping[str, str] = field(default_factory=dict)
    read_lines: tuple[str, ...] = ()
    why_not: str = ""

    @property
    def unknown(self) -> dict[str, str]:
        """The facts that are not known, each with the reason."""
        return dict.fromkeys(("python_calls", "jax_calls", "host_reads"), self.why_not) if self.why_not else {}


def count_python(subject: Subject, *, reads: bool, together: Lockstep = ALONE) -> Called:
    """Count what a warm call runs, in calls with fresh arguments, until two agree.

    Args:
        subject: Warm.
        reads: Whether to record arrays whose memory is read.
        together: The ranks that make the calls: all of them make as many.

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
    functions = dict(events.functions.most_common(MAX_FUNCTIONS))
    found = events.reads.most_common()
    return Called(
        calls=events.functions.total(),
        jax_calls=events.jax_calls,
        reads=events.reads.total() if reads else None,
        functions=functions,
        lines={name: line for name in functions if (line := events.line_of(name))},
        read_lines=tuple(f"{count} × {how}{at(events.line_of(how))}" for how, count in found) if reads else (),
    )
