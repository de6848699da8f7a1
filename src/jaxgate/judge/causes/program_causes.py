"""A loop that is gone, its body written out once for each step or doing all steps at once; and one that came instead.

A condition that no longer chooses what is run: under ``vmap`` a ``cond`` becomes a select, a loop goes on for the last.

Library routines, such as factorisations and sorts: one that is called anew, or in the place of a cheaper one.

``jax.checkpoint`` that is lost, keeps more than before, or is not held back: memory instead of recomputation.

Arrays that grew on their way into the work: padded, repeated, a longer cache, programs that are given more.

Matrix products of the same shapes and wider floats than before: slower on every accelerator, also if memory shrinks.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal

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
    shrunk,
    total_elements,
)
from jaxgate.model.baseline import Baseline
from jaxgate.model.decision import Status
from jaxgate.model.measurement import EACH_TURN, MAX_NAMED, Measurement, changed_programs
from jaxgate.model.numbers import WIDER_PRODUCTS
from jaxgate.model.verdict import Cause, Finding
from jaxgate.model.words import shortlist

_WHILE = "stablehlo.while"
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


def unrolled_in_part(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    """As many products in all, and more of them as text, while loops remain: ``unroll=``, or loops within what is written out.

    Without products only a body of which nearly all stands there the same number of times more shows it: a guess.
    """
    if baseline is None or now.matmuls != baseline.matmuls:
        return
    loops = [count_of(side.operations, _WHILE) for side in (baseline, now)]
    growth = {name: more for name, more in more_of(now.operations, baseline.operations).items() if _in_bodies(name)}
    there = {name: more for name, more in growth.items() if name in baseline.operations}
    total = sum(growth.values())
    if not all(loops) or not there or sum(there.values()) < _MOSTLY * total:
        return
    folds = Counter[int]()
    for name, more in there.items():
        folds[more // baseline.operations[name] + 1 if more % baseline.operations[name] == 0 else 0] += more
    fold, most = folds.most_common(1)[0]
    known = fold > 1 and most >= _MOSTLY * total
    products = any(name.partition(" ")[0] == _PRODUCT for name in there)
    if products or known:
        name = max(there, key=lambda name: (name.partition(" ")[0] == _PRODUCT, there[name] * elements(name), name))
        body = f"its body stands there {fold} times" if known else "its body stands there more than once"
        named = counted(name, now.operations, baseline.operations, now.culprits.lines)
        yield Cause(
            text=f"a loop is unrolled in part: {body}; {named}", explains=WORK | PHASES, sure=products, root=True
        )


def _in_bodies(name: str) -> bool:
    return not is_plumbing(name) and name.partition(" ")[0] not in {*_GLUE, _WHILE}


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


def other_constants(changes: Iterable[str]) -> Cause | None:
    """Only constants differ between two programs: steps, tolerances and bounds decide how often a loop turns.

    Args:
        changes: Lines of the difference of both programs; ``None`` is returned if anything else is in them.
    """
    lines = [line for line in changes if not line.startswith(("@@", " "))]
    before, after = ([_CONSTANT.fullmatch(line) for line in lines if line.startswith(sign)] for sign in "-+")
    pairs = [(old, new) for old, new in zip(before, after, strict=False) if old and new and old["type"] == new["type"]]
    if not pairs or 2 * len(pairs) != len(lines) or len(before) != len(after):
        return None
    named = dict.fromkeys(f"{_number(old['value'])} → {_number(new['value'])}" for old, new in pairs)
    what = "a constant changed" if len(named) == 1 else f"{len(named)} constants changed"
    text = f"{what}: {shortlist(tuple(named), MAX_NAMED)}; all operations are as before, loops may take other turns"
    return Cause(text=text, explains=RUN, root=True)


def _number(value: str) -> str:
    try:
        return f"{float(value):.6g}"
    except ValueError:
        return value if len(value) <= _LONGEST else "other values"


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


_BRANCHES = ("stablehlo.case", "stablehlo.if")
_SELECT = "stablehlo.select"
_PARTS = re.compile(r"x(?=\w)")
"""Between the extents and the element of a type: ``8x64xcomplex<f32>`` has three."""
_ANY = "stablehlo.reduce i1"
"""What asks whether one of a batch is not done."""
_OF_BRANCHES = WORK | {"matmul_flops", "collectives", "collective_bytes", "compile_ns"}


def runs_all_branches(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    """Fewer conditions than before, and as a select of their results instead: all branches run, for all elements."""
    if baseline is None:
        return
    grew = more_of(now.operations, baseline.operations)
    selects = _of_kind(_SELECT, grew)
    if count_of(now.operations, _WHILE) == count_of(baseline.operations, _WHILE) and _ANY in grew:
        looped = [label for label in selects if label not in baseline.operations]
        if looped:
            label = max(looped, key=elements)
            named = counted(label, now.operations, baseline.operations, now.culprits.lines)
            text = f"a while_loop, as under vmap, goes on until all of its batch are done: {named}"
            yield Cause(text=text, explains=_OF_BRANCHES, sure=False, root=True)
    before, after = (sum(count_of(side.operations, name) for name in _BRANCHES) for side in (baseline, now))
    if after >= before:
        return
    shrank = more_of(baseline.operations, now.operations)
    gone = [label for name in _BRANCHES for label in _of_kind(name, shrank)]
    chosen = [label for label in selects if any(_batches(label, one) for one in gone)]
    if chosen:
        label = max(chosen, key=lambda label: (grew[label], elements(label)))
        text = (
            f"a cond became a select, as under vmap, and all its branches run: {gone[0].partition(' ')[0]} {before} → {after}"
            f", {counted(label, now.operations, baseline.operations, now.culprits.lines)}"
        )
        yield Cause(text=text, explains=_OF_BRANCHES, root=True)


def _of_kind(name: str, labels: Iterable[str]) -> list[str]:
    return [label for label in labels if label.partition(" ")[0] == name]


def _batches(select: str, branch: str) -> bool:
    """Whether a select gives what a condition gave, or a batch of it: the same type, at most more dimensions."""
    ours, theirs = (Counter(_PARTS.split(label.rpartition(" ")[2])) for label in (select, branch))
    return theirs <= ours


_LINEAR = (
    ("triangular solve", r"triangular_solve|trsm", 1.0),
    ("Cholesky factorisation", r"cholesky|potrf", 0.33),
    ("LU factorisation", r"getrf|lu_?decomposition", 0.67),
    ("QR factorisation", r"geqrf|geqp3|orgqr|ungqr|ormqr|householder|\bqr\b", 1.33),
    ("tridiagonal reduction", r"sytrd|hetrd|tridiagonal", 1.33),
    ("Hessenberg reduction", r"gehrd|hessenberg", 3.3),
    ("eigh", r"syev|heev|eigh", 9.0),
    ("SVD", r"gesdd|gesvd|svd", 20.0),
    ("eig", r"geev|gees|\beig\b|schur", 25.0),
)
"""Name, what its calls are called, and operations for each ``n³`` of a matrix: Golub and Van Loan, Matrix Computations."""
_ORDERING = (
    ("approximate top_k", r"approx_?top_?k", 0.5),
    ("top_k", r"top_?k", 1.0),
    ("sort", r"stablehlo\.sort", 5.0),
)
"""The same for each element: a sort brings all of them into order."""
_SIGNIFICANT = 8
"""A routine on arrays that are smaller by more than this than what else grew explains nothing."""
_OF_ROUTINES = WORK | PHASES | {"output_bytes", "constant_bytes"}


@dataclass(frozen=True, slots=True)
class _Calls:
    """Calls of one routine on arrays of one shape, as many more or fewer than before as ``cost`` counts."""

    name: str
    label: str
    family: Literal["linear", "ordering"]
    cost: float

    @property
    def shown(self) -> str:
        """``eigh 32x32xf32``."""
        return f"{self.name} {self.label.rpartition(' ')[2]}"


def exchanges_routines(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    """A routine that does more of what another did before, or that nobody called before."""
    if baseline is None:
        return
    grew = more_of(now.operations, baseline.operations)
    gained, lost = _calls(grew), _calls(more_of(baseline.operations, now.operations))
    rest = max((elements(label) for label in grew if not is_plumbing(label)), default=0)
    for family in ("linear", "ordering"):
        come = [one for one in gained if one.family == family]
        gone = [one for one in lost if one.family == family]
        cost, less = sum(one.cost for one in come), sum(one.cost for one in gone)
        if cost <= less or cost * _SIGNIFICANT < rest:
            continue
        where = at(come[0].label, now.culprits.lines)
        if gone:
            text = f"a dearer library routine: {gone[0].shown} → {come[0].shown}{where}"
        else:
            named = "; ".join(
                f"{one.shown} {baseline.operations.get(one.label, 0)} → {now.operations[one.label]}"
                f"{at(one.label, now.culprits.lines)}"
                for one in come[:MAX_NAMED]
            )
            known = any(baseline.operations.get(one.label) for one in come)
            text = f"a library routine that {'is called more often' if known else 'was not called before'}: {named}"
        products = {"matmul_flops"} if family == "linear" and _makes_products(come[0], now, baseline) else set()
        yield Cause(text=text, explains=_OF_ROUTINES | products, root=True)


def _calls(labels: Mapping[str, int]) -> list[_Calls]:
    """Routines among operations, dearest first; the triangular solves that belong to a factorisation come after it."""
    found = [one for label, count in labels.items() if (one := _routine(label, count))]
    return sorted(found, key=lambda one: (one.name == _LINEAR[0][0], -one.cost, one.label))


def _routine(label: str, count: int) -> _Calls | None:
    called = label.rpartition(" ")[0]
    for name, pattern, each in _LINEAR:
        if re.search(pattern, called, re.IGNORECASE):
            extents = [int(extent) for extent in re.findall(r"(\d+)x", label.rpartition(" ")[2])]
            return _Calls(name, label, "linear", count * each * prod(extents) * max(extents[-2:], default=1))
    for name, pattern, each in _ORDERING:
        if re.search(pattern, called, re.IGNORECASE):
            return _Calls(name, label, "ordering", count * each * elements(label))
    return None


def _makes_products(routine: _Calls, now: Measurement, baseline: Baseline) -> bool:
    """Whether the products that there are more of can be the routine's own, or apply what it gives."""
    size = elements(routine.label)
    more = more_of(now.matmuls, baseline.matmuls)
    return all(min(map(elements, label.split(" x "))) <= size for label in more)


_BARRIER = "stablehlo.optimization_barrier"
_STORE = "stablehlo.dynamic_update_slice"
_READ = "stablehlo.dynamic_slice"
_DEAR = frozenset(
    {
        "stablehlo.cosine", "stablehlo.sine", "stablehlo.tanh", "stablehlo.exponential", "stablehlo.log", "stablehlo.logistic",
        "stablehlo.exponential_minus_one", "stablehlo.log_plus_one", "stablehlo.power", "stablehlo.sqrt", "stablehlo.rsqrt",
        "stablehlo.cbrt", "stablehlo.tan", "stablehlo.atan2", "chlo.erf", "stablehlo.sort", "stablehlo.fft",
        "stablehlo.reduce_window",
    }
)  # fmt: skip
"""What remat is used to compute twice, besides products. Cheap operations come and go with what is kept."""


def keeps_more(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    """Less is computed than before: what remat recomputed is kept now.

    Fewer matrix products show it, if each product of the baseline is still made. Where they are as many, fewer dear operations
    show it, if the baseline held something back by a barrier or today's loops keep more arrays for later.

    Whether memory grew is not asked here: a cause is shown only where a quantity that it explains is red.
    """
    if baseline is None or None in (now.facts.matmul_flops, baseline.facts.matmul_flops):
        return
    turns = [any(label.endswith(EACH_TURN) for label in side.matmuls) for side in (now, baseline)]
    before, after = (count_of(side.operations, _BARRIER) for side in (baseline, now))
    fewer = ""
    if turns[0] == turns[1] and (now.facts.matmul_flops or 0) < (baseline.facts.matmul_flops or 0):
        fewer = shrunk(now.matmuls, baseline.matmuls) if _still_computes(now, baseline) else ""
    elif now.facts.matmul_flops == baseline.facts.matmul_flops and (before or _carries_more(now, baseline)):
        kinds = [{name: count_of(side.operations, name) for name in sorted(_DEAR)} for side in (now, baseline)]
        fewer = shrunk(*kinds) if all(kinds[0][name] <= kinds[1][name] for name in _DEAR) else ""
    if fewer:
        seen = f" (optimization_barrier {before} → {after})" if before > after else ""
        text = f"less is recomputed, so more is kept: remat is lost or keeps more{seen}; {fewer}"
        # the cost model counts what a loop keeps
        yield Cause(text=text, explains=BUFFERS | {"xla_flops", "output_bytes"}, root=True)


def held_back_no_more(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    """The same products and fewer barriers: nothing keeps a recomputation from being merged, or done at once."""
    if baseline is None or now.facts.matmul_flops != baseline.facts.matmul_flops:
        return
    before, after = (count_of(side.operations, _BARRIER) for side in (baseline, now))
    if before > after:
        text = f"a recomputation is not held back until it is needed: optimization_barrier {before} → {after}"
        yield Cause(text=text, explains=BUFFERS | {"largest_batch"}, root=True)


def _carries_more(now: Measurement, baseline: Baseline) -> bool:
    """Whether loops store more, and as much more is read again: by the loop that goes back."""
    stored, read = (count_of(now.operations, name) - count_of(baseline.operations, name) for name in (_STORE, _READ))
    return 0 < stored <= read


def _still_computes(now: Measurement, baseline: Baseline) -> bool:
    """Whether each product that is made less often is still made: what is gone altogether is computed in another way."""
    return all(now.matmuls.get(label) for label in baseline.matmuls)


_BROADCAST, _RESHAPE = "stablehlo.broadcast_in_dim", "stablehlo.reshape"
_FILLING = ("stablehlo.pad", "stablehlo.concatenate")
_OF_LARGER = RUN | {"matmul_flops"}
_OF_PROGRAMS = _OF_LARGER | {
    "output_bytes",
    "state_bytes",
    "collective_bytes",
    "widened_bytes",
    "aliased_bytes",
    "host_ns",
}


def takes_larger_arrays(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    """Programs of plain Python that are given more; products that are as many as before, of larger arrays."""
    if baseline is None:
        return
    for ours, theirs in changed_programs(now.launched_programs, baseline.launched_programs):
        if ours is None or theirs is None:
            continue
        pairs = _grown_alike(ours.arguments, theirs.arguments)
        if pairs:
            more = f"; and {len(pairs) - 1} more" if len(pairs) > 1 else ""
            where = at(ours.name, now.culprits.lines)
            text = f"{ours.name} is given larger arrays: {pairs[0][0]} → {pairs[0][1]}{where}{more}"
            yield Cause(text=text, explains=_OF_PROGRAMS, root=True)
            return
    products = _larger_products(now, baseline)
    if products:
        before, after = products[0]
        text = f"the same products of larger arrays: {before} → {after}{at(after, now.culprits.lines)}"
        yield Cause(text=_padded(now, baseline) + text, explains=_OF_LARGER, root=True)


def repeats_arrays(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    """An array that is written out several times, as ``tile`` and ``repeat`` do: broadcast, then given its new shape.

    Only where nothing else that is new is larger.
    """
    if baseline is None:
        return
    new = more_of(now.operations, baseline.operations)
    sizes = {(elements(label), _type(label)) for label in new if label.startswith(f"{_RESHAPE} ")}
    copies = [label for label in new if label.startswith(f"{_BROADCAST} ") and (elements(label), _type(label)) in sizes]
    if copies:
        label = max(copies, key=lambda label: (elements(label), label))
        if all(elements(label) >= elements(other) for other in new):
            text = f"an array is repeated: {counted(label, now.operations, baseline.operations, now.culprits.lines)}"
            yield Cause(text=text, explains=BUFFERS | {"run_ns"}, root=True)


def _type(label: str) -> str:
    return label.rpartition("x")[2]


def _grown_alike(now: Sequence[str], before: Sequence[str]) -> list[tuple[str, str]]:
    """Types that grew, as pairs of then and now, the largest first; none if another one changed otherwise."""
    if len(now) != len(before):
        return []
    pairs = [(old, new) for old, new in zip(before, now, strict=True) if old != new]
    if not all(_is_larger(old, new) for old, new in pairs):
        return []
    return sorted(pairs, key=lambda pair: -elements(pair[1]))


def _larger_products(now: Measurement, baseline: Baseline) -> list[tuple[str, str]]:
    """Products in pairs of then and now; none unless each that changed is one of larger arrays, as often as before."""
    come, gone = more_of(now.matmuls, baseline.matmuls), more_of(baseline.matmuls, now.matmuls)
    if sum(come.values()) != sum(gone.values()):
        return []
    pairs = []
    for label in sorted(come, key=lambda label: (-elements(label), label)):
        for old in sorted(gone, key=lambda old: (-elements(old), old)):
            moved = min(come[label], gone[old]) if _is_larger(old, label) else 0
            if moved:
                come[label] -= moved
                gone[old] -= moved
                pairs.append((old, label))
    return [] if any(come.values()) else pairs


def _padded(now: Measurement, baseline: Baseline) -> str:
    """Where arrays are filled up, if they were not before."""
    kinds = [kind for kind in _FILLING if count_of(now.operations, kind) > count_of(baseline.operations, kind)]
    if not kinds:
        return ""
    new = [label for label in more_of(now.operations, baseline.operations) if label.partition(" ")[0] in kinds]
    label = max(new, key=lambda label: (elements(label), label))
    return f"arrays are padded: {counted(label, now.operations, baseline.operations, now.culprits.lines)}; "


def _is_larger(before: str, now: str) -> bool:
    """Whether two texts differ by extents alone, of which some grew and none shrank."""
    ours, theirs = (re.findall(r"(?<=[\[,])\d+", text) for text in (now, before))
    if re.sub(r"(?<=[\[,])\d+", "", now) != re.sub(r"(?<=[\[,])\d+", "", before):
        return False
    pairs = [(int(new), int(old)) for new, old in zip(ours, theirs, strict=True)]
    return all(new >= old for new, old in pairs) and any(new > old for new, old in pairs)


_FLOAT = re.compile(r"\b(bfloat16|float\d+|complex\d+|float8_\w+)\[")
_OF_WIDER = RUN | {"widened_bytes", "output_bytes"}
_BITS = re.compile(r"float(\d+)|complex(\d+)")


@dataclass(frozen=True, slots=True)
class WiderProduct:
    """A product of the same shapes as before, of a wider type."""

    before: str  # its label then
    now: str  # its label now
    count: int  # how many there are


def wider_products(now: Mapping[str, int], before: Mapping[str, int]) -> list[WiderProduct]:
    """Find products of which there are fewer than before, and as many more of the same shapes and a wider type.

    Args:
        now: Products of one call, by their operands: ``float32[8,64] x float32[64,64]``.
        before: Those of the baseline.
    """
    fewer: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for label, less in more_of(before, now).items():
        fewer[_shapes(label)][label] = less
    found = []
    for label, count in more_of(now, before).items():
        more = count
        for old, left in fewer[_shapes(label)].items():
            moved = min(more, left)
            if moved > 0 and _bits(label) > _bits(old):
                found.append(WiderProduct(old, label, moved))
                fewer[_shapes(label)][old] -= moved
                more -= moved
    return sorted(found, key=lambda one: (-one.count, one.now))


def compare_products(now: Measurement, baseline: Baseline) -> Iterator[Finding]:
    """Red where a product became wider."""
    found = sum(one.count for one in wider_products(now.matmuls, baseline.matmuls))
    if found:
        yield Finding(
            kind="fact",
            name=WIDER_PRODUCTS,
            status=Status.REGRESSED,
            now=found,
            against=0,
            allowed=0,
            detail="matrix products of the same shapes and of wider numbers than before",
        )


def multiplies_wider(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    """Which ones, with the source line of each; the casts around them follow.

    Where one operand alone became wider, the cast that widens it is the cause, and named by itself.
    """
    found = [] if baseline is None else wider_products(now.matmuls, baseline.matmuls)
    if found:
        text = "; ".join([f"{one.before} → {one.now}{at(one.now, now.culprits.lines)}" for one in found[:MAX_NAMED]])
        whole = any(len(set(_FLOAT.findall(one.now))) == 1 for one in found)
        explains = {WIDER_PRODUCTS} | (_OF_WIDER if whole else set())
        yield Cause(text=f"products of wider floats: {text}", explains=frozenset(explains))


def _shapes(label: str) -> str:
    return _FLOAT.sub("[", label)


def _bits(label: str) -> int:
    """Those of the widest operand; of a complex number each part."""
    return max((int(real or 0) or int(both) // 2 for real, both in _BITS.findall(label)), default=0)
