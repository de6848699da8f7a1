"""One measurement out of those of several ranks: what must be equal is, of the rest the worst counts. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from statistics import median

from jaxgate.judge.policy import BY_NAME
from jaxgate.model.decision import Status
from jaxgate.model.measurement import Fingerprints, InvalidCaseError, Measured, Measurement
from jaxgate.model.numbers import Facts
from jaxgate.model.verdict import Cause, Finding, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class RankMeasurement(Measured):
    """One rank's part in the measurement of a case: plain data, no arrays."""

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


STAGE = "comparing what the ranks measured"
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
    slowest = max(shares, key=lambda share: sum(getattr(share.phases, name) or 0 for name in _TIMED))
    sampled = [share.samples for share in shares if share.samples is not None]
    if sampled and len(sampled) < len(shares):
        raise InvalidCaseError(STAGE, "expected samples of all ranks or of none; give all of them the same options")
    merged = replace(
        own,
        facts=facts,
        phases=replace(
            slowest.phases,
            host_ns=max((ns for share in shares if (ns := share.phases.host_ns) is not None), default=None),
        ),
        samples=max(sampled, key=lambda samples: samples.run_ns, default=None),
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

    Rows are what each rank's processor worked in a call, one row for each burst.

    Returns:
        Its name and by how much; empty where the ranks do not differ by more than they may by chance.
    """

    def typical(rows: Sequence[Sequence[float]]) -> list[float]:
        return [median(rank) for rank in zip(*rows, strict=True)]

    grown = [ours / max(1.0, theirs) for ours, theirs in zip(typical(now), typical(before), strict=True)]
    most, *others = sorted(grown, reverse=True)
    if most < 1 + _APART or most - 1 < _TIMES * (max(others, default=1.0) - 1):
        return ""
    return f"{names[grown.index(most)]}, which works {most:.2f} × as long for a call, the others {max(others):.2f} ×"


def name_ranks(verdict: Verdict, worst: Mapping[str, str]) -> Verdict:
    """Name the rank of each finding that is not the same on all ranks."""

    def located(finding: Finding) -> Finding:
        rank = worst.get(finding.name.split(" ")[0])
        if not rank or finding.kind not in ("fact", "claim") or finding.status is Status.SAME:
            return finding
        return replace(finding, detail="; ".join(filter(None, (finding.detail, f"on {rank}"))))

    return replace(verdict, findings=tuple(map(located, verdict.findings)))


def blame(verdict: Verdict, rank: str) -> Verdict:
    """Name the rank that makes a case slower: the cause, unless the program shows one."""
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
    rows: list[tuple[str, object, object]] = [
        ("the hardware", mine.hardware.slug, share.hardware.slug),
        ("the number of processes", mine.processes, share.processes),
        ("the kind of subject", mine.eager, share.eager),
        ("the arguments and results", mine.avals, share.avals),
        ("the compiler options", mine.fingerprints.options, share.fingerprints.options),
        ("the source", mine.fingerprints.source, share.fingerprints.source),
    ]
    keys = sorted({*mine.environment, *share.environment})
    rows += [(key, mine.environment.get(key), share.environment.get(key)) for key in keys]
    if not mine.eager:
        rows.append(("the program", mine.fingerprints.program, share.fingerprints.program))
    for what, ours, theirs in rows:
        if ours != theirs:
            both = f"found {ours} on {mine.name} and {theirs} on {share.name}"
            raise InvalidCaseError(STAGE, f"expected {what} to be the same on all ranks, {both}")


def _worst_facts(shares: Sequence[RankMeasurement]) -> tuple[Facts, dict[str, str]]:
    """The worst of each fact, and whose it is where ranks differ; what one rank does not know is unknown."""
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
    """Rank 0's where all are equal; what differs from rank to rank is known by all of them in order."""

    def together(hashes: Sequence[str]) -> str:
        return hashes[0] if len(set(hashes)) == 1 else "+".join(hashes)

    inputs = together([share.fingerprints.inputs for share in shares])
    program = together([share.fingerprints.program for share in shares])
    return replace(shares[0].fingerprints, inputs=inputs, program=program)


def _lines(lines: Sequence[tuple[str, tuple[str, ...]]]) -> tuple[str, ...]:
    """Rank 0's lines, and what other ranks have besides, under their names."""
    own = lines[0][1]
    return (*own, *(f"{name}: {line}" for name, found in lines[1:] for line in found if line not in own))
