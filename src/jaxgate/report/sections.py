"""What stands below the text of a red case: lists too long for its rows."""

from __future__ import annotations

from jaxgate.model import Verdict

BUFFERS = "jaxgate: largest buffers"
CHANGES = "jaxgate: what changed in the program since its baseline"


def report_sections(verdict: Verdict) -> list[tuple[str, str]]:
    """Title and text of each list that a verdict brings; none if it brings none."""
    lists = ((BUFFERS, verdict.allocations), (CHANGES, verdict.changes))
    return [(title, "\n".join(lines)) for title, lines in lists if lines]
