"""A loop that is gone, its body written out once for each step or doing all steps at once; and one that came instead."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jaxgate.judge.causes.growth import at, count_of, elements, grown, is_plumbing, more_of, total_elements
from jaxgate.judge.causes.quantities import ARITHMETIC, BUFFERS, PHASES, WORK
from jaxgate.model import Baseline, Cause, Measurement

_WHILE = "stablehlo.while"
_GLUE = frozenset(
    {
        "stablehlo.select", "stablehlo.compare", "stablehlo.and", "stablehlo.or", "stablehlo.not", "stablehlo.convert",
        "stablehlo.dynamic_slice", "stablehlo.dynamic_update_slice",
    }
)  # fmt: skip
"""Operations that choose, index, and keep what a loop hands on: a body written out has more of the others, too."""
_MOSTLY = 0.75
"""Share of the operations of a kind that are new, from which on their lines are those of what was written out."""
_REPEATED = 1.5
"""Times as many operations of a kind, from which on a body stands there more than once."""


def unrolled(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    """Fewer loops and many more operations: a body is written out once for each step."""
    if baseline is None:
        return
    loops, before = (count_of(side.operations, _WHILE) for side in (now, baseline))
    if loops < before and _is_written_out(now.operations, baseline.operations):
        more = grown(now.operations, baseline.operations, now.culprits.lines).partition("; gone: ")[0]
        text = f"a loop is unrolled: {_WHILE} {before} → {loops}{_where(now, baseline)}; {more}"
        yield Cause(text=text, explains=WORK | PHASES | {"widened_bytes"}, root=True)


def done_at_once(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    """Fewer loops and no more operations, some of them new: their arrays hold all steps in place of one."""
    if baseline is None:
        return
    loops, before = (count_of(side.operations, _WHILE) for side in (now, baseline))
    text = grown(now.operations, baseline.operations, now.culprits.lines)
    if loops < before and text and not _is_written_out(now.operations, baseline.operations):
        changed = (
            f"the steps of a loop are done all at once: {_WHILE} {before} → {loops}{_where(now, baseline)}; {text}"
        )
        yield Cause(text=changed, explains=BUFFERS | ARITHMETIC, sure=False)


def one_by_one(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    """More loops in a program as short, of smaller arrays: steps that were done all at once follow each other."""
    if baseline is None:
        return
    loops, before = (count_of(side.operations, _WHILE) for side in (now, baseline))
    copies = sum(now.operations.values()) > _REPEATED * sum(baseline.operations.values())  # written out, loops and all
    if loops > before and not copies and total_elements(now.operations) < total_elements(baseline.operations):
        places = [name for name in more_of(now.operations, baseline.operations) if name.partition(" ")[0] == _WHILE]
        where = next((at(name, now.culprits.lines) for name in places if now.culprits.lines.get(name)), "")
        text = f"steps that were done all at once follow each other in a loop: {_WHILE} {before} → {loops}{where}"
        yield Cause(text=text, explains=WORK | PHASES | BUFFERS, sure=False)


def _where(now: Measurement, baseline: Baseline) -> str:
    """The place of what there is most more of: the loop that it stood in has none any more.

    What was there often already stands elsewhere, too: an optimiser has as many sums as a body. So operations come first
    of which nearly all are new.
    """
    growth = more_of(now.operations, baseline.operations)
    known = [name for name in growth if now.culprits.lines.get(name)]
    order = sorted(known, key=lambda name: (is_plumbing(name), -growth[name] * elements(name), name))
    new = [name for name in order if growth[name] >= _MOSTLY * now.operations[name] and not is_plumbing(name)]
    first = next(iter([*new, *order]), "")
    return at(first, now.culprits.lines)


def _is_written_out(now: Mapping[str, int], before: Mapping[str, int]) -> bool:
    """Whether there are more operations, and of a kind that was there before many more."""
    if sum(now.values()) <= sum(before.values()):
        return False
    kinds = {label.partition(" ")[0] for label in before if not is_plumbing(label)} - _GLUE
    return any(count_of(now, kind) >= _REPEATED * count_of(before, kind) for kind in kinds)
