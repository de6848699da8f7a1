"""Facts of today against facts of the baseline, and the first suspect for each that got worse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jaxgate.judge.policy import POLICIES
from jaxgate.model import Baseline, Finding, Leaf, Measurement, Status

MAX_NAMED = 3


def compare_facts(now: Measurement, baseline: Baseline) -> Iterator[Finding]:
    """Hold every fact against its baseline.

    A fact that the baseline has and today's measurement lacks is INVALID: a metric that vanished must not
    pass. One that only today's measurement has is not judged yet, and said so.
    """
    for policy in POLICIES:
        today, before = getattr(now.facts, policy.name), getattr(baseline.facts, policy.name)
        if before is None:
            if today is not None:
                detail = "the baseline does not have it: not judged until it is recorded again"
                yield Finding(kind="fact", name=policy.name, status=Status.SAME, now=today, detail=detail)
            continue
        if today is None:
            yield Finding(
                kind="fact",
                name=policy.name,
                status=Status.INVALID,
                against=before,
                detail="the baseline has it, today's measurement does not: it cannot be compared",
                culprit=now.culprits.unknown.get(policy.name, ""),
            )
            continue
        if policy.is_worse(today, before):
            status = Status.REGRESSED
        elif policy.is_better(today, before):
            status = Status.IMPROVED
        else:
            status = Status.SAME
        yield Finding(
            kind="fact",
            name=policy.name,
            status=status,
            now=today,
            against=before,
            allowed=policy.worst_allowed(before),
            culprit=culprit_of(policy.name, now, baseline) if status is Status.REGRESSED else "",
        )


def culprit_of(fact: str, now: Measurement, baseline: Baseline | None) -> str:
    """Name what moved a fact: an argument, an operation, a constant, with its line where known."""
    if fact in ("traces", "compiles", "sampled_traces", "sampled_compiles", "launches", "host_transfers"):
        return _seen_in_calls(fact, now, baseline)
    if fact in ("donated_bytes", "aliased_bytes"):
        return _lost_donation(now, baseline)
    if fact == "constant_bytes":
        return "; ".join(now.culprits.constants[:MAX_NAMED])
    if fact == "matmul_flops":
        return _grown(now.matmuls, baseline.matmuls if baseline else {}, now.culprits.matmul_lines)
    if fact == "host_callbacks":
        name = "stablehlo.custom_call"
        return f"{name}{_place(name, now.culprits.operation_lines)}"
    if baseline is None:
        return ""
    matmuls = _grown(now.matmuls, baseline.matmuls, now.culprits.matmul_lines)
    if sum(now.matmuls.values()) > sum(baseline.matmuls.values()):
        return matmuls
    # As many as before, if in other shapes or types: what came with them (transposes, casts) says more.
    operations = _grown(now.operations, baseline.operations, now.culprits.operation_lines)
    return "; ".join(part for part in (operations, matmuls) if part)


def _seen_in_calls(fact: str, now: Measurement, baseline: Baseline | None) -> str:
    if fact in ("traces", "compiles"):
        return now.culprits.retraces[0] if now.culprits.retraces else ""
    if fact == "launches":
        return _grown(now.launched, baseline.launched if baseline else {}, now.culprits.launch_lines)
    if fact == "host_transfers":
        return "; ".join(now.culprits.transfers[:MAX_NAMED])
    return f"{now.facts.sampled_traces} traces and {now.facts.sampled_compiles} compiles while sampling"


def _lost_donation(now: Measurement, baseline: Baseline | None) -> str:
    if baseline is not None:
        pairs = zip(now.signature, baseline.signature, strict=False)
        lost = [leaf for leaf, before in pairs if before.donated and not leaf.donated]
        if lost:
            return f"no longer donated: {_leaves(lost)}"
    donated = [leaf for leaf in now.signature if leaf.donated]
    return f"donated but not all reused: {_leaves(donated)}" if donated else "nothing is donated"


def _leaves(leaves: list[Leaf]) -> str:
    named = ", ".join(leaf.path for leaf in leaves[:MAX_NAMED])
    more = f" and {len(leaves) - MAX_NAMED} more" if len(leaves) > MAX_NAMED else ""
    return f"{named}{more} ({sum(leaf.nbytes for leaf in leaves):,} bytes)"


def _grown(now: Mapping[str, int], before: Mapping[str, int], lines: Mapping[str, str]) -> str:
    """The entries that grew most, as ``name 2 -> 64 at file:line``."""
    growth = {name: count - before.get(name, 0) for name, count in now.items() if count > before.get(name, 0)}
    worst = sorted(growth, key=lambda name: (-growth[name], name))[:MAX_NAMED]
    gone = sorted(set(before) - set(now))
    parts = [f"{name} {before.get(name, 0)} → {now[name]}{_place(name, lines)}" for name in worst]
    if parts and gone:
        parts.append(f"gone: {', '.join(gone[:MAX_NAMED])}")
    return "; ".join(parts)


def _place(name: str, lines: Mapping[str, str]) -> str:
    return f" at {lines[name]}" if lines.get(name) else ""
