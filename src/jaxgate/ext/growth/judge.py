"""Laws of today against those of the baseline, and against claims."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from jaxgate.ext.growth.model import COMPILED, FACTS, OVER, Grown, Growth, Law, law_of, noise_of
from jaxgate.judge.policy import POLICIES
from jaxgate.model.baseline import Baseline
from jaxgate.model.decision import Status
from jaxgate.model.measurement import Measurement
from jaxgate.model.verdict import Cause, Finding

_PARTS = {
    "collectives": {"collectives", "collective_bytes"},
    "constants": {"constant_bytes"},
    "operations": {"stablehlo_ops", "trace_equations", "matmul_flops"},
    "functions": {"trace_calls"},
    "bytes": {"temp_bytes", "output_bytes", "copied_bytes", "collective_bytes", "xla_flops", "kernels"},
    "arguments": {"argument_bytes"},
}
"""Kinds of parts, and the facts that they make up."""
_WHAT = {
    "collectives": ", bytes", "constants": ", bytes", "functions": " is called", "arguments": ", bytes", "bytes": ", bytes of results",
}  # fmt: skip


def judge_growth(
    now: Measurement, baseline: Baseline | None = None, *, same_compiler: bool = False
) -> Iterator[Finding]:
    """Say the laws of a case, check what it claims of them, and hold each against the baseline's.

    With ``same_compiler`` laws of what the compiler decides can be held against each other.
    """
    if now.growing is not None:
        yield from _claimed(now.growing, now.growth, now.unknown)
        for size, grown in now.growth.items():
            told = _laws(grown, now.growing.until.get(size))
            if baseline is not None and size not in baseline.growth:
                told += "; its baseline holds none of them: --perf-update"
            yield Finding(kind="fact", name=f"{OVER} {size}", status=Status.SAME, detail=told)
    if baseline is None:
        return
    meaning = {policy.name: policy.other_within(now.environment, baseline.environment) for policy in POLICIES}
    left_out = {fact for fact in FACTS if meaning.get(fact) or (fact in COMPILED and not same_compiler)}
    for size, theirs in baseline.growth.items():
        ours = now.growth.get(size)
        if ours is not None and ours.sizes == theirs.sizes:
            yield from _compared(
                size, ours, theirs, [fact for fact in theirs.facts if fact not in left_out], now.unknown
            )
            continue
        found = "none" if ours is None else f"{list(ours.sizes)}"
        why = f"expected the sizes {list(theirs.sizes)}, found {found}; record it again: --perf-update"
        yield Finding(kind="fact", name=f"{OVER} {size}", status=Status.INVALID, detail=why)


def _claimed(growing: Growth, growth: Mapping[str, Grown], unknown: Mapping[str, str]) -> Iterator[Finding]:
    """Check claims. A fact without a law breaks its claim; an unknown one leaves it open, if somebody says why."""
    for claim in growing.claims:
        grown = growth[claim.size]
        if claim.fact not in grown.facts:
            why = _why_not(claim.fact, claim.size, unknown)
            status, detail = (Status.UNDECIDED, f"not known: {why}") if why else (Status.REGRESSED, "not known here")
        else:
            law = grown.law(claim.fact)
            held = law is not None and law.degree <= claim.degree
            status = Status.SAME if held else Status.REGRESSED
            detail = f"{law or 'no law'}: {_points(grown.facts[claim.fact])}"
        yield Finding(kind="claim", name=str(claim), status=status, detail=detail)


def _why_not(fact: str, size: str, unknown: Mapping[str, str]) -> str:
    """Why a fact is not known at a size, or anywhere; empty if nobody says."""
    return unknown.get(f"{fact} over {size}") or unknown.get(fact, "")


def _compared(
    size: str, ours: Grown, theirs: Grown, facts: Sequence[str], unknown: Mapping[str, str]
) -> Iterator[Finding]:
    """A law that is worse is red, one that is better an improvement; where either side has none, other points are undecided."""
    for fact in facts:
        name, was = f"{fact} over {size}", theirs.law(fact)
        if fact not in ours.facts:
            why = _why_not(fact, size, unknown)
            status = Status.UNDECIDED if why else Status.INVALID
            detail = f"not known at all sizes any more: {why or 'it cannot be compared'}"
            yield Finding(kind="fact", name=name, status=status, detail=detail)
            continue
        law = ours.law(fact)
        if law is None or was is None:
            status = Status.UNDECIDED if ours.differs(theirs, fact) else Status.SAME
        elif law.degree == was.degree:
            status = Status.SAME
        else:
            status = Status.REGRESSED if law.degree > was.degree else Status.IMPROVED
        if status is Status.SAME:
            continue
        points = f"{_points(ours.facts[fact])}, was {_points(theirs.facts[fact])}"
        detail = f"{law or 'no law'}, was {was or 'no law'}: {points}"
        yield Finding(kind="fact", name=name, status=status, detail=detail)


def _laws(grown: Grown, until: int | None) -> str:
    """The law of each fact that the size moves, and what it will be at a larger one."""
    moved = [fact for fact in grown.facts if grown.law(fact) is not Law.CONSTANT]
    laws = ", ".join(f"{fact} {grown.law(fact) or 'no law'}" for fact in moved) or "all constant"
    text = f"{laws} ({', '.join(map(str, grown.sizes))})"
    if until is None:
        return text
    told = {fact: grown.at(fact, until) for fact in moved}
    said = (f"{fact} {'cannot be known' if count is None else f'{count:,}'}" for fact, count in told.items())
    return f"{text}; at {until:,}: {', '.join(said) or 'the same'}"


def _points(counts: tuple[int, ...]) -> str:
    return " → ".join(f"{count:,}" for count in counts)


def carries_growth(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    """What carries the new term of laws: the part whose own law got worse, the steepest and then the largest of them."""
    for size, ours in now.growth.items():
        theirs = None if baseline is None else baseline.growth.get(size)
        worse = [
            fact
            for fact in ours.facts
            if _is_worse(ours.law(fact), theirs.law(fact) if theirs and fact in theirs.facts else None)
        ]
        for kind, facts in _PARTS.items():
            explains = facts & set(worse)
            if explains and (carrier := _carrier(kind, ours, theirs, now.culprits.lines)):
                yield Cause(text=f"{carrier}, with {size}", explains=frozenset(explains), sure=theirs is not None)


def _is_worse(law: Law | None, was: Law | None) -> bool:
    return law is not None and law.degree > (0.0 if was is None else was.degree)


def _carrier(kind: str, ours: Grown, theirs: Grown | None, lines: Mapping[str, str]) -> str:
    before = {} if theirs is None else theirs.parts.get(kind, {})
    worse = []
    for name, counts in ours.parts.get(kind, {}).items():
        fact = "trace_calls" if kind == "functions" else kind
        law, was = (
            law_of(ours.sizes, each, noise=noise_of(fact, each)) if each else None
            for each in (counts, before.get(name))
        )
        if law is not None and _is_worse(law, was):
            worse.append((law.degree, counts[-1], name, str(law)))
    if not worse:
        return ""
    *_, name, law_name = max(worse)
    line = f" at {lines[name]}" if name in lines else ""
    return f"{law_name}: {name}{_WHAT.get(kind, '')} {_points(ours.parts[kind][name])}{line}"
