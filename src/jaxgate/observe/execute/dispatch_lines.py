"""Lines of the project as spans of a profile: whatever a line starts then lies within it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

import jax

from jaxgate.observe.source_lines import is_project_file, short_path

_LINE = "jaxgate: line "
MAX_SPANS = 20_000
"""Lines that are marked in a profile: it must have room for what they are to explain."""


@contextmanager
def marking_lines() -> Iterator[None]:
    """Mark the lines that this thread runs in the profile that is being taken.

    Where a debugger or a coverage tool traces the thread already nothing is marked: lines explain, they count nothing.
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
