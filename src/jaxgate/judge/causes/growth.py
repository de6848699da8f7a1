"""What there is more of than before, in words and with its line; and the sets of quantities that a cause can explain."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from jaxgate.judge.difference import Difference
from jaxgate.judge.policy import BY_NAME
from jaxgate.model.baseline import Baseline
from jaxgate.model.decision import Status
from jaxgate.model.measurement import MAX_NAMED, MeasuredProgram, Measurement
from jaxgate.model.numbers import Facts, Phases
from jaxgate.model.verdict import Finding
from jaxgate.model.words import shortlist

_PLUMBING = re.compile(r"stablehlo\.(broadcast_in_dim|reshape|bitcast_convert|iota|slice) ")
"""Operations that seldom cost anything by themselves: named only where nothing else grew."""
_FITS = 220
"""Characters of a line that a person still reads, less what is said around it: what does not fit is left out."""
_FOLDERS = re.compile(r"(?<= at )\S*/")
"""The folders of a source line: where a project lies does not decide what is said of it."""

BUFFERS = frozenset({"temp_bytes", "peak_bytes", "xla_bytes", "copied_bytes", "scattered_bytes"})
"""What a program keeps while it runs, and what it writes, reads, copies and picks."""
ARITHMETIC = frozenset({"xla_flops", "transcendentals"})
RUN = BUFFERS | ARITHMETIC | {"run_ns"}
"""What one run of a program takes."""
WORK = RUN | {"random_bits", "stablehlo_ops", "trace_equations", "trace_calls", "kernels"}
"""What one run of a program takes, and its length as a text."""
MEMORY = frozenset({"peak_bytes", "state_bytes"})
"""Sums over arguments, results and temporaries."""
COMPILED = BUFFERS | ARITHMETIC | MEMORY | {"aliased_bytes", "argument_bytes", "output_bytes", "kernels"}
"""What the compiler says of its executable."""
PHASES = frozenset({"trace_ns", "lower_ns", "compile_ns", "first_call_ns"})


@dataclass(frozen=True)
class Change:
    """A case of today beside its baseline, as those who look for causes ask for it."""

    now: Measurement  # Today's measurement
    baseline: Baseline | None  # what it is held against

    @property
    def compared(self) -> bool:
        """Whether there is a baseline."""
        return self.baseline is not None

    @cached_property
    def before(self) -> MeasuredProgram:
        """The baseline; where there is none, a program of which nothing is known."""
        now = self.now
        return self.baseline or MeasuredProgram(
            hardware=now.hardware, environment=now.environment, fingerprints=now.fingerprints, facts=Facts(),
            phases=Phases(), samples=None, eager=now.eager, signature=(), operations={}, matmuls={},
        )  # fmt: skip

    def fact(self, name: str) -> tuple[int, int]:
        """A fact now and before; 0 where it is not known."""
        return getattr(self.now.facts, name) or 0, getattr(self.before.facts, name) or 0

    def rose(self, *facts: str) -> bool:
        """Whether any of these facts is more than before."""
        return any(now > before for now, before in map(self.fact, facts))

    def growth(self, fact: str) -> int:
        """By how much a fact grew; 0 where one side does not know it."""
        unknown = None in (getattr(self.now.facts, fact), getattr(self.before.facts, fact))
        now, before = self.fact(fact)
        return 0 if unknown else now - before

    def is_worse(self, fact: str) -> bool:
        """Whether a fact is worse than it may be."""
        return BY_NAME[fact].is_worse(*self.fact(fact))

    @cached_property
    def difference(self) -> Difference:
        """What else is the same, and what is not."""
        return Difference(self.now, self.before)

    def more(self, histogram: str) -> dict[str, int]:
        """How much more there is of each entry of a histogram than before."""
        return more_of(getattr(self.now, histogram), getattr(self.before, histogram))

    def less(self, histogram: str) -> dict[str, int]:
        """How much less there is of each entry of a histogram than before."""
        return more_of(getattr(self.before, histogram), getattr(self.now, histogram))

    def counts(self, *kinds: str) -> tuple[int, int]:
        """How many operations of these kinds there are now, and were before."""
        now, before = (sum(count_of(side.operations, kind) for kind in kinds) for side in (self.now, self.before))
        return now, before

    def added(self, *kinds: str) -> int:
        """How many more operations of these kinds there are than before; negative if there are fewer."""
        now, before = self.counts(*kinds)
        return now - before

    def grown(self, histogram: str) -> str:
        """The entries of a histogram that grew most, in words; what weighs most where there is no baseline."""
        before = getattr(self.before, histogram) if self.compared else None
        return grown(getattr(self.now, histogram), before, self.now.culprits.lines)

    def counted(self, operation: str) -> str:
        """An operation with its two counts and its line."""
        return counted(operation, self.now.operations, self.before.operations, self.now.culprits.lines)

    def listed(self, names: Sequence[str], now: Mapping[str, int], before: Mapping[str, int]) -> str:
        """Some entries with their two counts and their lines, the rest by number."""
        return shortlist([counted(name, now, before, self.now.culprits.lines) for name in names], MAX_NAMED)

    def at(self, name: str) -> str:
        """`` at file:line`` where it is known."""
        return at(name, self.now.culprits.lines)


def more_of(now: Mapping[str, int], before: Mapping[str, int]) -> dict[str, int]:
    """How much more there is of each entry than before; what did not grow is left out."""
    return {name: count - before.get(name, 0) for name, count in now.items() if count > before.get(name, 0)}


def counted(name: str, now: Mapping[str, int], before: Mapping[str, int], lines: Mapping[str, str]) -> str:
    """An entry with its two counts: ``name 2 → 64 at file:line``."""
    return f"{name} {before.get(name, 0)} → {now[name]}{at(name, lines)}"


def grown(now: Mapping[str, int], before: Mapping[str, int] | None, lines: Mapping[str, str]) -> str:
    """The entries that grew most, as ``name 2 → 64 at file:line``; empty if none did.

    Entries weigh as much as the arrays that they make, where their names say it. With nothing to compare with
    (``None``) it is what weighs most, as ``64 × name at file:line``.
    """
    if before is None:
        return "; ".join([f"{now[name]} × {name}{at(name, lines)}" for name in heaviest_first(now)[:MAX_NAMED]])
    worst = heaviest_first(more_of(now, before))
    gone = sorted(set(before) - set(now), key=lambda name: (-elements(name), name))
    text = "; ".join(_fitting([counted(name, now, before, lines) for name in worst[:MAX_NAMED]], 0))
    left = _fitting(gone[:MAX_NAMED], len(_FOLDERS.sub("", text))) if text else []
    return f"{text}; gone: {', '.join(left)}" if left else text


def heaviest_first(counts: Mapping[str, int]) -> list[str]:
    """Entries by the elements of all their arrays; plumbing comes last."""
    return sorted(counts, key=lambda name: (is_plumbing(name), -counts[name] * elements(name), name))


def _fitting(parts: Sequence[str], length: int) -> list[str]:
    """The first parts of a line that has some length already, as many as a person reads; of a new line one at least."""
    return [
        part
        for place, part in enumerate(parts)
        if length + len(_FOLDERS.sub("", "; ".join(parts[: place + 1]))) < _FITS or not (length or place)
    ]


def shrunk(now: Mapping[str, int], before: Mapping[str, int]) -> str:
    """The entries of which there are fewer, as ``name 3 → 2``; empty if there are none."""
    loss = more_of(before, now)
    most = sorted(loss, key=lambda name: (-loss[name] * elements(name), name))
    return "; ".join([f"{name} {before[name]} → {now.get(name, 0)}" for name in most[:MAX_NAMED]])


def heaviest(now: Mapping[str, int], lines: Mapping[str, str]) -> str:
    """What most of a program is, where there is nothing to compare it with."""
    if not now:
        return ""
    counts = {kind: count_of(now, kind) for kind in {*map(kind_of, now)}}
    most = min(counts, key=lambda kind: (-counts[kind], kind))
    one = max((name for name in now if kind_of(name) == most), key=now.__getitem__)
    return f"most of the program: {counts[most]} × {most}{at(one, lines)}"


def kind_of(label: str) -> str:
    """The name of an operation without its type."""
    return label.partition(" ")[0]


def of_kind(labels: Iterable[str], *kinds: str) -> list[str]:
    """The operations of some kinds, whatever their types."""
    return [label for label in labels if kind_of(label) in kinds]


def count_of(operations: Mapping[str, int], kind: str) -> int:
    """How many operations there are of one kind, whatever their types."""
    return sum(operations[label] for label in of_kind(operations, kind))


def total_elements(counts: Mapping[str, int]) -> int:
    """Elements of all arrays that a histogram names, each as often as it is counted."""
    return sum(count * elements(name) for name, count in counts.items())


def at(name: str, lines: Mapping[str, str]) -> str:
    """`` at file:line`` where it is known."""
    return f" at {lines[name]}" if lines.get(name) else ""


def is_plumbing(name: str) -> bool:
    """Whether an operation seldom costs anything by itself."""
    return bool(_PLUMBING.match(name))


def elements(name: str) -> int:
    """Elements of the first array that a label names: ``8x64xf32`` or ``float32[8,64]``; 1 where there is none."""
    found = re.search(r"(?:^| )((?:\d+x)+)[a-z]", name) or re.search(r"\[(\d+(?:,\d+)*)\]", name)
    return prod(int(extent) for extent in re.findall(r"\d+", found[1])) if found else 1


def largest(labels: Iterable[str]) -> str:
    """The label of the largest array; empty if there is none."""
    return max(labels, key=lambda label: (elements(label), label), default="")


def exceeds(label: str, others: Collection[str]) -> bool:
    """Whether no other array is larger."""
    return all(elements(label) >= elements(other) for other in others)


def regressed(name: str, now: int, before: int, detail: str) -> Finding:
    """The finding of a comparison, which is no fact of one side: any more than before is red."""
    return Finding(
        kind="fact", name=name, status=Status.REGRESSED, now=now, against=before, allowed=before, detail=detail
    )


def and_more(items: Collection[object]) -> str:
    """``; and 2 more`` beside the first of several."""
    return f"; and {len(items) - 1} more" if len(items) > 1 else ""
