"""Causes in loops and conditions: a loop that is gone, new, unrolled or longer, a condition that became a select."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from jaxgate.judge.causes.growth import (
    BUFFERS,
    PHASES,
    RUN,
    WORK,
    Change,
    count_of,
    elements,
    grown,
    heaviest_first,
    is_plumbing,
    kind_of,
    of_kind,
    total_elements,
)
from jaxgate.model.measurement import BRANCHES, LOOP, MAX_NAMED, Argument, Measurement
from jaxgate.model.verdict import Cause
from jaxgate.model.words import shortlist

_PRODUCT, _SELECT = "stablehlo.dot_general", "stablehlo.select"
_GLUE = frozenset(
    {
        _SELECT, "stablehlo.compare", "stablehlo.and", "stablehlo.or", "stablehlo.not", "stablehlo.convert",
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
_PARTS = re.compile(r"x(?=\w)")
"""Between the extents and the element of a type: ``8x64xcomplex<f32>`` has three."""
_ANY = "stablehlo.reduce i1"
"""The operation that asks whether one element of a batch is not done."""
OF_BRANCHES = WORK | {"matmul_flops", "collectives", "collective_bytes", "compile_ns"}


def unrolled(change: Change) -> str:
    """Fewer loops and many more operations: a body is written out once for each step."""
    if change.added(LOOP) >= 0 or not _is_written_out(change):
        return ""
    more = change.grown("operations").partition("; gone: ")[0]
    return f"a loop is unrolled: {_counts(change, LOOP)}{_where(change)}; {more}"


def unrolled_in_part(change: Change) -> Iterator[Cause]:
    """As many products in all, and more of them as text, while loops remain: ``unroll=``, or loops within what is written out.

    Without products only a body of which nearly all stands there the same number of times more shows it: a guess.
    """
    loops, before = change.counts(LOOP)
    growth = {
        name: count
        for name, count in change.more("operations").items()
        if not is_plumbing(name) and kind_of(name) not in _BETWEEN
    }
    there = growth.keys() & change.before.operations.keys()
    enough = _MOSTLY * sum(growth.values())
    same_work = change.compared and change.now.matmuls == change.before.matmuls
    if not same_work or not 0 < before <= loops or not there or sum(growth[name] for name in there) < enough:
        return
    folds = Counter[int]()  # how many times as many, unless that is no whole number
    for name in there:
        fold, rest = divmod(change.now.operations[name], change.before.operations[name])
        folds[0 if rest else fold] += growth[name]
    fold, alike = folds.most_common(1)[0]
    products = bool(of_kind(there, _PRODUCT))
    if products or (fold and alike >= enough):
        name = max(there, key=lambda name: (kind_of(name) == _PRODUCT, growth[name] * elements(name), name))
        text = f"a loop is unrolled in part: {change.counted(name)}"
        yield Cause(text=text, explains=WORK | PHASES, sure=products, root=True)


def done_at_once(change: Change) -> str:
    """Fewer loops and no more operations, some of them new: their arrays hold all steps in place of one."""
    text = change.grown("operations")
    if change.added(LOOP) >= 0 or not text or _is_written_out(change):
        return ""
    return f"the steps of a loop are done all at once: {_counts(change, LOOP)}{_where(change)}; {text}"


def one_by_one(change: Change) -> Iterator[Cause]:
    """More loops in a program as short, of smaller arrays: steps that were done all at once follow each other.

    As many FLOPs in more products, of which no more stand in the program, leave no doubt.
    """
    now, before = change.now, change.before
    copies = sum(now.operations.values()) > _REPEATED * sum(before.operations.values())  # written out, loops and all
    fewer = total_elements(now.operations) < total_elements(before.operations) and not copies
    cut = (
        now.facts.matmul_flops == before.facts.matmul_flops
        and sum(now.matmuls.values()) > sum(before.matmuls.values())
        and change.added(_PRODUCT) <= 0
    )
    if change.compared and change.added(LOOP) > 0 and (cut or fewer):
        where = next(filter(None, map(change.at, of_kind(change.more("operations"), LOOP))), "")
        text = f"steps that were done all at once follow each other in a loop: {_counts(change, LOOP)}{where}"
        yield Cause(text=text, explains=WORK | PHASES | BUFFERS, sure=cut, root=cut)


def repeats_routines(change: Change) -> str:
    """Routines that the device started once, and starts in each turn of a loop now; not where the program is written out."""
    if sum(change.now.operations.values()) > 2 * sum(change.before.operations.values()):
        return ""
    now, before = change.now.kernels, change.before.kernels
    once = [name for name, count in before.items() if count == 1 and not name.startswith(_COMMON)]
    often = sorted((name for name in once if now.get(name, 0) >= _TURNS), key=lambda name: (-now[name], name))
    text = "; ".join(f"{name} 1 → {now[name]}" for name in often[:MAX_NAMED])
    return text and f"a loop does in each turn what was done before it: {text}"


def takes_more_turns(change: Change) -> str:
    """Loops that were there turn more often, as the arguments decide; those that have other values are named."""
    loops = [name for name in change.now.turns if name.startswith("while") and name in change.before.turns]
    after, before = ({name: side.turns[name] for name in loops} for side in (change.now, change.before))
    text = grown(after, before, change.now.culprits.lines)
    if not text or change.growth("loop_turns") <= 0:
        return ""
    pairs = zip(change.now.signature, change.before.signature, strict=False)
    given = [
        _given(leaf, old) for leaf, old in pairs if None not in (leaf.value, old.value) and leaf.value != old.value
    ]
    by = f", given {shortlist(given, MAX_NAMED)}" if given else ""
    return f"a loop takes more turns{by}: {text}"


def _given(leaf: Argument, before: Argument) -> str:
    """An argument with its two values, where it is a number."""
    number = not leaf.aval.rstrip("]").rpartition("[")[2] and leaf.aval == before.aval
    return f"{leaf.path} {before.value} → {leaf.value}" if number else f"other values of {leaf.path}"


def goes_on_for_a_batch(change: Change) -> Iterator[Cause]:
    """A loop that asks whether any of a batch is not done, and keeps what is."""
    new = change.more("operations")
    looped = [label for label in of_kind(new, _SELECT) if label not in change.before.operations]
    if 0 < change.counts(LOOP)[0] <= change.counts(LOOP)[1] and _ANY in new and looped:
        named = change.counted(max(looped, key=elements))
        text = f"a while_loop, as under vmap, goes on until all of its batch are done: {named}"
        more = change.rose("loop_turns") or change.added(LOOP) < 0
        yield Cause(text=text, explains=OF_BRANCHES | BUFFERS | {"loop_turns"}, sure=more, root=True)


def runs_all_branches(change: Change) -> str:
    """Fewer conditions than before, and as a select of their results instead: all branches run, for all elements."""
    new = change.more("operations")
    gone = [label for kind in BRANCHES for label in of_kind(change.less("operations"), kind)]
    chosen = [label for label in of_kind(new, _SELECT) if any(_batches(label, one) for one in gone)]
    if change.added(*BRANCHES) >= 0 or not chosen:
        return ""
    now, before = change.counts(*BRANCHES)
    label = max(chosen, key=lambda label: (new[label], elements(label)))
    return (
        f"a cond became a select, as under vmap, and all its branches run: {kind_of(gone[0])} {before} → {now}"
        f", {change.counted(label)}"
    )


def _batches(select: str, branch: str) -> bool:
    """Whether a select gives what a condition gave, or a batch of it: the same type, at most more dimensions."""
    ours, theirs = (Counter(_PARTS.split(label.rpartition(" ")[2])) for label in (select, branch))
    return theirs <= ours


def _counts(change: Change, kind: str) -> str:
    now, before = change.counts(kind)
    return f"{kind} {before} → {now}"


def _where(change: Change) -> str:
    """The place of what grew most: a loop that is written out has no place of its own any more.

    Operations of which nearly all are new come first: an optimiser has as many sums as a body.
    """
    growth = change.more("operations")
    known = [name for name in heaviest_first(growth) if change.at(name)]
    new = [name for name in known if growth[name] >= _MOSTLY * change.now.operations[name] and not is_plumbing(name)]
    return change.at(next(iter([*new, *known]), ""))


def _is_written_out(change: Change) -> bool:
    """Whether there are more operations, and of a kind that was there before many more."""
    now, before = change.now.operations, change.before.operations
    kinds = {kind_of(label) for label in before if not is_plumbing(label)} - _GLUE
    repeated = any(count_of(now, kind) >= _REPEATED * count_of(before, kind) for kind in kinds)
    return repeated and sum(now.values()) > sum(before.values())


_CONSTANT = re.compile(r"[-+]\s*%\S+ = stablehlo\.constant dense<(?P<value>[^>]*)> : (?P<type>\S+)")
"""A line of a difference; long constants have their hash in the place of values."""
_LONGEST = 24
"""Characters of a value that is written out."""


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
