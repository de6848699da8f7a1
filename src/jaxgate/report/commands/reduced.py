"""What came of a reduction, above what its file prints."""

from __future__ import annotations

from jaxgate.model import Reduced, plural


def reduced_text(found: Reduced) -> str:
    """How small it became, what it shows, and what it is in JAX."""
    ended = "; time was up: a longer --budget may make it smaller" if found.over else ""
    lines = [
        f"{found.before:,} → {plural(found.after, 'operation')} in {plural(found.tries, 'try', 'tries')} and {found.took_s:.0f} s{ended}",
        f"still shows: {found.shows}",
    ]
    if found.code:
        lines += ["", "As JAX code, which shows it, too:", "", *(f"    {line}" for line in found.code.splitlines())]
    return "\n".join([*lines, "", ""])
