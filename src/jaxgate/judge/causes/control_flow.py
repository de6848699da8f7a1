"""Causes in loops and conditions: a loop that is gone, new, unrolled or longer, a condition that became a select."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from jaxgate.judge.causes.growth import (
    ARITHMETIC,
    BUFFERS,
    PHASES,
    RUN,
    WORK,
    at,
    count_of,
    counted,
    elements,
    grown,
    is_plumbing,
    more_of,
    total_elements,
)
from jaxgate.model.baseline import Baseline
from jaxgate.model.measurement import BRANCHES, LOOP, MAX_NAMED, Argument, Measurement
from jaxgate.model.verdict import Cause
from jaxgate.model.words import shortlist

_PRODUCT = "stablehlo.dot_general"
_CONSTANT = re.compile(r"[-+]\s*%\S+ = stablehlo\.constant dense<(?P<value>[^>]*)> : (?P<type>\S+)")
"""A line of a difference; long constants have their hash in the place of values."""
_LONGEST = 24
"""Characters of a value that is written out."""
_GLUE = frozenset(
    {
        "stablehlo.select", "stablehlo.compare", "stablehlo.and", "stablehlo.or", "stablehlo.not", "stablehlo.convert",
        "stablehlo.dynamic_slice", "stablehlo.dynamic_update_slice",
    }
)  # fmt: skip
"""Operations that choose, index, and keep what a loop hands on: more of these alone shows no body that is written out."""
_BETWEEN = _GLUE | {LOOP}
"""Operations whose number does not follow how often a body is written out."""
_MOSTLY = 0.75
"""Share of the operations of a kind that are new, from which on their lines are those of what was written out."""
_TURNS = 8
"""Starts of a routine from which on they are those of a loop."""
_COMMON = ("copy", "dot", "fused", "convert", "broadcast")
"""Kernels that say nothing of what they are part of; products have a count of their own."""
_REPEATED = 1.5
"""Times as many operations of a kind, from which on a body stands there more than once."""


def unrolled(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    """Fewer loops and many more operations: a body is written out once for each step."""
    if baseline is None:
        return
    loops, before = (count_of(side.operations, LOOP) for side in (now, baseline))
    if loops < before and _is_written_out(now.operations, baseline.operations):
        more = grown(now.operations, baseline.operations, now.culprits.lines).partition("; gone: ")[0]
        text = f"a loop is unrolled: {LOOP} {before} → {loops}{_where(now, baseline)}; {more}"
        yield Cause(text=text, explains=WORK | PHASES | {"widened_bytes"}, root=True)


def unrolled_in_part(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    """As many products in all, and more of them as text, while loops remain: ``unroll=``, or loops within what is written out.

    Without products only a body of which nearly all stands there the same number of times more shows it: a guess.
    """
    if baseline is None or now.matmuls != baseline.matmuls:
        return
    loops, before = (count_of(side.operations, LOOP) for side in (now, baseline))
    more = more_of(now.operations, baseline.operations)
    growth = {name: count for name, count in more.items() if not is_plumbing(name) and _kind(name) not in _BETWEEN}
    there = growth.keys() & baseline.operations.keys()
    enough = _MOSTLY * sum(growth.values())
    if not before or loops < before or not there or sum(growth[name] for name in there) < enough:
        return
    folds = Counter[int]()  # how many times as many, unless that is no whole number
    for name in there:
        fold, rest = divmod(now.operations[name], baseline.operations[name])
        folds[0 if rest else fold] += growth[name]
    fold, alike = folds.most_common(1)[0]
    products = any(_kind(name) == _PRODUCT for name in there)
    if products or (fold and alike >= enough):
        name = max(there, key=lambda name: (_kind(name) == _PRODUCT, growth[name] * elements(name), name))
        text = f"a loop is unrolled in part: {counted(name, now.operations, baseline.operations, now.culprits.lines)}"
        yield Cause(text=text, explains=WORK | PHASES, sure=products, root=True)


def _kind(name: str) -> str:
    return name.partition(" ")[0]


def done_at_once(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    """Fewer loops and no more operations, some of them new: their arrays hold all steps in place of one."""
    if baseline is None:
        return
    loops, before = (count_of(side.operations, LOOP) for side in (now, baseline))
    text = grown(now.operations, baseline.operations, now.culprits.lines)
    if loops < before and text and not _is_written_out(now.operations, baseline.operations):
        changed = f"the steps of a loop are done all at once: {LOOP} {before} → {loops}{_where(now, baseline)}; {text}"
        yield Cause(text=changed, explains=BUFFERS | ARITHMETIC, sure=False)


def one_by_one(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    """More loops in a program as short, of smaller arrays: steps that were done all at once follow each other.

    As many FLOPs in more products, of which no more stand in the program, leave no doubt.
    """
    if baseline is None:
        return
    loops, before = (count_of(side.operations, LOOP) for side in (now, baseline))
    copies = sum(now.operations.values()) > _REPEATED * sum(baseline.operations.values())  # written out, loops and all
    fewer = total_elements(now.operations) < total_elements(baseline.operations) and not copies
    cut = (
        now.facts.matmul_flops == baseline.facts.matmul_flops
        and sum(now.matmuls.values()) > sum(baseline.matmuls.values())
        and count_of(now.operations, _PRODUCT) <= count_of(baseline.operations, _PRODUCT)
    )
    if loops > before and (cut or fewer):
        places = [name for name in more_of(now.operations, baseline.operations) if _kind(name) == LOOP]
        where = next((at(name, now.culprits.lines) for name in places if now.culprits.lines.get(name)), "")
        text = f"steps that were done all at once follow each other in a loop: {LOOP} {before} → {loops}{where}"
        yield Cause(text=text, explains=WORK | PHASES | BUFFERS, sure=cut, root=cut)


def repeats_routines(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    """Routines that the device started once, and starts in each turn of a loop now; not where the program is written out."""
    if baseline is None or sum(now.operations.values()) > 2 * sum(baseline.operations.values()):
        return
    once = {name for name, count in (baseline.kernels or {}).items() if count == 1 and not name.startswith(_COMMON)}
    often = [name for name in once if now.kernels.get(name, 0) >= _TURNS]
    if often:
        named = sorted(often, key=lambda name: (-now.kernels[name], name))[:MAX_NAMED]
        text = "; ".join(f"{name} 1 → {now.kernels[name]}" for name in named)
        yield Cause(text=f"a loop does in each turn what was done before it: {text}", explains=WORK, root=True)


def takes_more_turns(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    """Loops that were there turn more often, as the arguments decide; those that have other values are named."""
    if baseline is None or None in (now.facts.loop_turns, baseline.facts.loop_turns):
        return
    loops = {name for name in now.turns if name.startswith("while") and name in baseline.turns}
    before, after = ({name: side.turns[name] for name in loops} for side in (baseline, now))
    text = grown(after, before, now.culprits.lines)
    if text and (now.facts.loop_turns or 0) > (baseline.facts.loop_turns or 0):
        pairs = zip(now.signature, baseline.signature, strict=False)
        given = [
            _given(leaf, old) for leaf, old in pairs if None not in (leaf.value, old.value) and leaf.value != old.value
        ]
        by = f", given {shortlist(given, MAX_NAMED)}" if given else ""
        yield Cause(text=f"a loop takes more turns{by}: {text}", explains=RUN | {"loop_turns"}, root=True)


def _given(leaf: Argument, before: Argument) -> str:
    """An argument with its two values, where it is a number."""
    number = not leaf.aval.rstrip("]").rpartition("[")[2] and leaf.aval == before.aval
    return f"{leaf.path} {before.value} → {leaf.value}" if number else f"other values of {leaf.path}"


def other_constants(now: Measurement, changes: Iterable[str], *, alone: bool) -> Cause | None:
    """Only constants differ between two programs: steps, tolerances and bounds decide how often a loop turns.

    ``None`` if ``changes`` (lines of the difference of both programs) hold anything else. A guess where something else
    changed too, such as the environment (not ``alone``), or without a loop.
    """
    lines = [line for line in changes if not line.startswith(("@@", " "))]
    before, after = ([_CONSTANT.fullmatch(line) for line in lines if line.startswith(sign)] for sign in "-+")
    pairs = [(old, new) for old, new in zip(before, after, strict=False) if old and new and old["type"] == new["type"]]
    if not pairs or 2 * len(pairs) != len(lines) or len(before) != len(after):
        return None
    named = dict.fromkeys(f"{_number(old['value'])} → {_number(new['value'])}" for old, new in pairs)
    what = "a constant changed" if len(named) == 1 else f"{len(named)} constants changed"
    loops = count_of(now.operations, LOOP) > 0
    turns = ", loops may take other turns" if loops else ""
    text = f"{what}: {shortlist(tuple(named), MAX_NAMED)}; all operations are as before{turns}"
    return Cause(text=text, explains=RUN, sure=alone and loops, root=True)


def _number(value: str) -> str:
    try:
        return f"{float(value):.6g}"
    except ValueError:
        return value if len(value) <= _LONGEST else "other values"


def _where(now: Measurement, baseline: Baseline) -> str:
    """The place of what grew most: a loop that is written out has no place of its own any more.

    Operations of which nearly all are new come first: an optimiser has as many sums as a body.
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
    kinds = {_kind(label) for label in before if not is_plumbing(label)} - _GLUE
    return any(count_of(now, kind) >= _REPEATED * count_of(before, kind) for kind in kinds)


_SELECT = "stablehlo.select"
_PARTS = re.compile(r"x(?=\w)")
"""Between the extents and the element of a type: ``8x64xcomplex<f32>`` has three."""
_ANY = "stablehlo.reduce i1"
"""The operation that asks whether one element of a batch is not done."""
_OF_BRANCHES = WORK | {"matmul_flops", "collectives", "collective_bytes", "compile_ns"}


def runs_all_branches(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    """Fewer conditions than before, and as a select of their results instead: all branches run, for all elements."""
    if baseline is None:
        return
    grew = more_of(now.operations, baseline.operations)
    selects = _of_kind(_SELECT, grew)
    loops, loops_before = (count_of(side.operations, LOOP) for side in (now, baseline))
    if 0 < loops <= loops_before and _ANY in grew:
        looped = [label for label in selects if label not in baseline.operations]
        if looped:
            label = max(looped, key=elements)
            named = counted(label, now.operations, baseline.operations, now.culprits.lines)
            text = f"a while_loop, as under vmap, goes on until all of its batch are done: {named}"
            more = (now.facts.loop_turns or 0) > (baseline.facts.loop_turns or 0)
            explains = _OF_BRANCHES | BUFFERS | {"loop_turns"}
            yield Cause(text=text, explains=explains, sure=more or loops < loops_before, root=True)
    before, after = (sum(count_of(side.operations, name) for name in BRANCHES) for side in (baseline, now))
    if after >= before:
        return
    shrank = more_of(baseline.operations, now.operations)
    gone = [label for name in BRANCHES for label in _of_kind(name, shrank)]
    chosen = [label for label in selects if any(_batches(label, one) for one in gone)]
    if chosen:
        label = max(chosen, key=lambda label: (grew[label], elements(label)))
        text = (
            f"a cond became a select, as under vmap, and all its branches run: {gone[0].partition(' ')[0]} {before} → {after}"
            f", {counted(label, now.operations, baseline.operations, now.culprits.lines)}"
        )
        yield Cause(text=text, explains=_OF_BRANCHES, root=True)


def _of_kind(name: str, labels: Iterable[str]) -> list[str]:
    return [label for label in labels if _kind(label) == name]


def _batches(select: str, branch: str) -> bool:
    """Whether a select gives what a condition gave, or a batch of it: the same type, at most more dimensions."""
    ours, theirs = (Counter(_PARTS.split(label.rpartition(" ")[2])) for label in (select, branch))
    return theirs <= ours
