"""Changes of source that must not change any verdict: each takes a program's text and gives another, or nothing."""

from __future__ import annotations

from collections.abc import Callable

from tests.faults.programs.rewrites import shape, spelling, surface

REWRITES: dict[str, Callable[[str], str | None]] = {
    rewrite.__name__.replace("_", " "): rewrite for rewrite in (*surface.REWRITES, *shape.REWRITES, *spelling.REWRITES)
}
