"""Lines of the project as spans of a profile: whatever a line starts then lies within it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

import jax

from jaxgate.observe.lines import is_project_file, short_path

_LINE = "jaxgate: line "


@contextmanager
def marking_lines() -> Iterator[None]:
    """Mark the lines that this thread runs in the profile that is being taken.

    Where a debugger or a coverage tool traces the thread already nothing is marked: lines explain, they count nothing.
    """
    if sys.gettrace() is not None:
        yield
        return
    open_spans: list[tuple[FrameType, Any]] = []

    def close(frame: FrameType) -> None:
        if open_spans and open_spans[-1][0] is frame:
            open_spans.pop()[1].__exit__(None, None, None)

    def on_event(frame: FrameType, event: str, _: Any) -> Any:
        if event in ("line", "return"):
            close(frame)
        if event == "line":
            span = jax.profiler.TraceAnnotation(f"{_LINE}{short_path(frame.f_code.co_filename)}:{frame.f_lineno}")
            span.__enter__()
            open_spans.append((frame, span))
        return on_event

    def on_call(frame: FrameType, _event: str, _: Any) -> Any:
        return on_event if is_project_file(frame.f_code.co_filename) else None

    sys.settrace(on_call)
    try:
        yield
    finally:
        sys.settrace(None)
        while open_spans:
            open_spans.pop()[1].__exit__(None, None, None)


def marked_line(within: Sequence[str]) -> str:
    """``file:line`` of the innermost marked line among the spans that an event lies in; empty if there is none."""
    return next((name.removeprefix(_LINE) for name in reversed(within) if name.startswith(_LINE)), "")
