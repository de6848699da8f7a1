"""One measurement out of those of several ranks: what must be equal is, of the rest the worst counts. Pure.

What one process of several measured of a case, fit to be sent: numbers and texts, no arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from statistics import median
from typing import Any

from jaxgate.judge.policy import BY_NAME
from jaxgate.model.decision import Status
from jaxgate.model.machine import HardwareKey
from jaxgate.model.measurement import Fingerprints, InvalidCaseError, Measured, Measurement
from jaxgate.model.numbers import Facts, Phases, Samples
from jaxgate.model.verdict import Cause, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class RankMeasurement(Measured):
    """One rank's part in the measurement of a case."""

    name: str  # the rank, for people
    avals: tuple[str, ...]  # dtype and shape of each argument and result
    retraces: tuple[str, ...]  # who traced or compiled again there
    lost: tuple[str, ...]  # donated arrays that were not reused there
    unknown: Mapping[str, str]  # facts that could not be had there, with the reason
    processes: int  # how many processes the devices belong to

    @classmethod
    def of(cls, measurement: Measurement, name: str) -> RankMeasurement:
        """What a rank measured."""
        return cls(
            name=name,
            avals=tuple(leaf.aval for leaf in (*measurement.signature, *measurement.results)),
            retraces=measurement.culprits.retraces,
            lost=measurement.culprits.lost,
            unknown=measurement.unknown,
            processes=measurement.processes,
            **{field.name: getattr(measurement, field.name) for field in fields(Measured)},
        )

    def to_plain(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> RankMeasurement:
        """Back from JSON.

        Raises:
            TypeError: If it is something else.
            KeyError: Likewise.
            ValueError: Likewise.
        """
        samples = plain["samples"]
        return cls(
            **{
                **plain,
                "hardware": HardwareKey(**plain["hardware"]),
                "fingerprints": Fingerprints(**plain["fingerprints"]),
                "facts": Facts(**plain["facts"]),
                "phases": Phases(**plain["phases"]),
                "samples": samples and Samples(**{**samples, "bursts_ns": tuple(samples["bursts_ns"])}),
                **{name: tuple(plain[name]) for name in ("avals", "retraces", "lost")},
            }
        )


STAGE = "comparing what the ranks measured"
PROGRAM_FACTS = frozenset({
    "donated_bytes", "constant_bytes", "host_callbacks", "matmul_flops", "widened_bytes", "random_bits", "block_bytes", "unmatched_names", "trace_equations", "stablehlo_ops", "collectives",
    "collective_bytes", "largest_batch",
})  # fmt: skip
"""What follows from the program alone, and so is the same wherever that is; of all other facts the worst rank counts."""
_APART, _TIMES = 0.03, 2.0
"""A rank is the one that is slower where its own work grew by more than this, and by this many times what that of others did."""
_TIMED = ("trace_ns", "lower_ns", "compile_ns", "first_call_ns")


def merge(own: Measurement, others: Sequence[RankMeasurement], name: str) -> tuple[Measurement, dict[str, str]]:
    """Make one measurement of what all ranks saw.

    Returns:
        The measurement: the worst fact, the phases and the samples of the slowest rank; and which rank each fact comes
        from that is not equal on all of them.

    Raises:
        InvalidCaseError: If the ranks did not measure one program in one environment; names the rank.
    """
    mine = RankMeasurement.of(own, name)
    shares = [mine, *others]
    for share in others:
        _refuse_other(mine, share)
    facts, worst = _worst_facts(shares)
    slowest = max(shares, key=_once_ns)
    sampled = [share for share in shares if share.samples is not None]
    if sampled and len(sampled) < len(shares):
        raise InvalidCaseError(STAGE, "expected samples of all ranks or of none; give all of them the same options")
    latest = max(sampled, key=_run_ns, default=mine)
    merged = replace(
        own,
        facts=facts,
        phases=replace(slowest.phases, host_ns=_most(share.phases.host_ns for share in shares)),
        samples=latest.samples,
        fingerprints=_fingerprints(shares),
        unknown={key: why for share in reversed(shares) for key, why in share.unknown.items()},
        culprits=replace(
            own.culprits,
            retraces=_lines([(share.name, share.retraces) for share in shares]),
            lost=_lines([(share.name, share.lost) for share in shares]),
        ),
    )
    return merged, worst


def straggler(now: Sequence[Sequence[float]], before: Sequence[Sequence[float]], names: Sequence[str]) -> str:
    """The rank that has more to do than before, where it is not all of them.

    Args:
        now: What each rank's processor worked in a call of today's program, once for each burst.
        before: Likewise of the baseline's program.
        names: Of the ranks.

    Returns:
        Its name and by how much; empty where the ranks do not differ by more than they may by chance.
    """

    def _by_rank(rows: Sequence[Sequence[float]]) -> Iterable[Sequence[float]]:
        return zip(*rows, strict=True)

    grown = [
        median(ours) / max(1.0, median(theirs)) for ours, theirs in zip(_by_rank(now), _by_rank(before), strict=True)
    ]
    most, *others = sorted(grown, reverse=True)
    if most < 1 + _APART or most - 1 < _TIMES * (max(others, default=1.0) - 1):
        return ""
    return f"{names[grown.index(most)]}, which works {most:.2f} × as long for a call, the others {max(others):.2f} ×"


def name_ranks(verdict: Verdict, worst: Mapping[str, str]) -> Verdict:
    """Say of each finding that is not the same on all ranks which one it comes from."""
    findings = []
    for finding in verdict.findings:
        rank = worst.get(finding.name.split(" ")[0])
        if rank and finding.kind in ("fact", "claim") and finding.status is not Status.SAME:
            detail = f"{finding.detail}; on {rank}" if finding.detail else f"on {rank}"
            findings.append(replace(finding, detail=detail))
        else:
            findings.append(finding)
    return replace(verdict, findings=tuple(findings))


def blame(verdict: Verdict, rank: str) -> Verdict:
    """Say of a case that is slower which rank makes it so: the cause, unless the program shows one."""
    if not rank or verdict.time.status is not Status.SLOWER:
        return verdict
    shown = sum(cause.sure for cause in verdict.causes)
    causes = (
        *verdict.causes[:shown],
        Cause(text=rank, explains=frozenset({"run_ns"}), root=True),
        *verdict.causes[shown:],
    )
    return replace(verdict, causes=causes, time=replace(verdict.time, reason=f"{verdict.time.reason}; by {rank}"))


def _refuse_other(mine: RankMeasurement, share: RankMeasurement) -> None:
    """Refuse a rank that ran something else, or elsewhere."""
    for what, ours, theirs in (
        ("the hardware", mine.hardware.slug, share.hardware.slug),
        ("the number of processes", mine.processes, share.processes),
        ("the kind of subject", mine.eager, share.eager),
        ("the arguments and results", mine.avals, share.avals),
        ("the compiler options", mine.fingerprints.options, share.fingerprints.options),
        ("the source", mine.fingerprints.source, share.fingerprints.source),
    ):
        if ours != theirs:
            _refuse(what, mine, ours, share, theirs)
    for key in sorted({*mine.environment, *share.environment}):
        if mine.environment.get(key) != share.environment.get(key):
            _refuse(key, mine, mine.environment.get(key), share, share.environment.get(key))
    if not mine.eager and mine.fingerprints.program != share.fingerprints.program:
        _refuse("the program", mine, mine.fingerprints.program, share, share.fingerprints.program)
    for field in sorted(PROGRAM_FACTS):
        ours, theirs = getattr(mine.facts, field), getattr(share.facts, field)
        if ours != theirs and not mine.eager:
            _refuse(field, mine, ours, share, theirs)


def _refuse(what: str, mine: RankMeasurement, ours: object, share: RankMeasurement, theirs: object) -> None:
    raise InvalidCaseError(
        STAGE, f"expected {what} to be the same on all ranks, found {ours} on {mine.name} and {theirs} on {share.name}"
    )


def _worst_facts(shares: Sequence[RankMeasurement]) -> tuple[Facts, dict[str, str]]:
    """The worst of each fact, and whose it is where they differ; one that a rank does not know is not known."""
    found: dict[str, int | None] = {}
    whose: dict[str, str] = {}
    for field in fields(Facts):
        values = [(getattr(share.facts, field.name), share.name) for share in shares]
        if any(value is None for value, _ in values):
            found[field.name] = None
            continue
        choose = max if BY_NAME[field.name].better == "lower" else min
        value, name = choose(values, key=lambda item: item[0])
        found[field.name] = value
        if any(other != value for other, _ in values):
            whose[field.name] = name
    return Facts(**found), whose


def _fingerprints(shares: Sequence[RankMeasurement]) -> Fingerprints:
    """Those of rank 0 where all are equal; what differs from rank to rank is known by all of them in order."""
    own = shares[0].fingerprints
    inputs = _together([share.fingerprints.inputs for share in shares])
    return replace(own, inputs=inputs, program=_together([share.fingerprints.program for share in shares]))


def _together(hashes: Sequence[str]) -> str:
    return hashes[0] if len(set(hashes)) == 1 else "+".join(hashes)


def _lines(lines: Sequence[tuple[str, tuple[str, ...]]]) -> tuple[str, ...]:
    """Rank 0's lines, and those of other ranks that it does not have, under their names."""
    own = lines[0][1]
    return (*own, *(f"{name}: {line}" for name, found in lines[1:] for line in found if line not in own))


def _once_ns(share: RankMeasurement) -> int:
    return sum(getattr(share.phases, name) or 0 for name in _TIMED)


def _run_ns(share: RankMeasurement) -> float:
    return 0.0 if share.samples is None else share.samples.run_ns


def _most(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return max(known, default=None)
