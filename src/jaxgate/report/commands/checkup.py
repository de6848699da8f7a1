"""What ``jaxgate doctor`` prints: a line for each thing, the next command below it."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

from jaxgate.model import Level, Remark, plural

_WORDS = 17
"""Columns before the text: level and subject."""


def checkup_text(remarks: Sequence[Remark], width: int) -> str:
    """All remarks, wrapped, and a last line that sums them up.

    Args:
        remarks: In the order to print.
        width: Columns of the terminal.
    """
    lines = []
    for remark in remarks:
        first, *rest = wrap(remark.found, max(width - _WORDS, 20), break_long_words=False, break_on_hyphens=False)
        lines.append(f"{remark.level:<4}  {remark.about:<9}  {first}")
        lines += [f"{'':<{_WORDS}}{line}" for line in rest]
        if remark.remedy:
            lines.append(f"{'':<{_WORDS}}→ {remark.remedy}")
    bad = sum(remark.level is Level.BAD for remark in remarks)
    notes = sum(remark.level is Level.NOTE for remark in remarks)
    end = f"{plural(bad, 'thing keeps', 'things keep')} a gate from judging here" if bad else "A gate can judge here"
    lines.append(f"{end}; {plural(notes, 'note')}.")
    return "\n".join(lines) + "\n"
