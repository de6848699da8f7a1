"""A loop that is gone: its body is written out once for each step, or does all steps at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jaxgate.judge.growth import count_of, grown, is_plumbing
from jaxgate.judge.quantities import ARITHMETIC, BUFFERS, PHASES, WORK
from jaxgate.model import Baseline, Cause, Measurement

_WHILE = "stablehlo.while"
_GLUE = frozenset(
    {"stablehlo.select", "stablehlo.compare", "stablehlo.and", "stablehlo.or", "stablehlo.not", "stablehlo.convert"}
)
"""Operations that choose and index: a body written out has more of the others, too."""
_REPEATED = 1.5
"""Times as many operations of a kind, from which on a body stands there more than once."""


def unrolled(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    """Fewer loops and many more operations: a body is written out once for each step."""
    if baseline is None:
        return
    loops, before = (count_of(side.operations, _WHILE) for side in (now, baseline))
    if loops < before and _is_written_out(now.operations, baseline.operations):
        more = grown(now.operations, baseline.operations, now.culprits.lines).partition("; gone: ")[0]
        text = f"a loop is unrolled: {_WHILE} {before} → {loops}{_where(more)}; {more}"
        yield Cause(text=text, explains=WORK | PHASES | {"widened_bytes"}, root=True)


def done_at_once(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    """Fewer loops and no more operations, some of them new: their arrays hold all steps in place of one."""
    if baseline is None:
        return
    loops, before = (count_of(side.operations, _WHILE) for side in (now, baseline))
    text = grown(now.operations, baseline.operations, now.culprits.lines)
    if loops < before and text and not _is_written_out(now.operations, baseline.operations):
        changed = f"the steps of a loop are done all at once: {_WHILE} {before} → {loops}{_where(text)}; {text}"
        yield Cause(text=changed, explains=BUFFERS | ARITHMETIC, sure=False)


def _where(more: str) -> str:
    """The place of what there is most more of: the loop that it stood in has none any more."""
    place = more.partition("; ")[0].rpartition(" at ")[2]
    return f" at {place}" if " at " in more.partition("; ")[0] else ""


def _is_written_out(now: Mapping[str, int], before: Mapping[str, int]) -> bool:
    """Whether there are more operations, and of a kind that was there before many more."""
    if sum(now.values()) <= sum(before.values()):
        return False
    kinds = {label.partition(" ")[0] for label in before if not is_plumbing(label)} - _GLUE
    return any(count_of(now, kind) >= _REPEATED * count_of(before, kind) for kind in kinds)
