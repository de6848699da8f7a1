"""One contrast, from its builders to its verdict."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from jaxgate.engine.instruments import Instruments
from jaxgate.judge.claims import are_settled
from jaxgate.judge.contrast import decide_speed, disagreements, judge_contrast, needs_another, unlike
from jaxgate.judge.timing.duel import LOOKS, decide
from jaxgate.model.duel import BrokenDuelError, Duel
from jaxgate.model.measurement import InvalidCaseError
from jaxgate.model.verdict import Finding, Verdict
from jaxgate.model.workloads.contrast import Contrast, ContrastSide, Difference, SideLaunch, SpeedClaim, Traits
from jaxgate.observe.contrast.agreement import Seen, differences, look_at
from jaxgate.observe.contrast.loading import loading_of
from jaxgate.observe.contrast.runner import ContrastOpponent, Runner, runner_of
from jaxgate.observe.errors import guarded
from jaxgate.observe.machine.environment import first_device

Launching = Callable[[str], SideLaunch]
"""Runs a side of this name in a process of its own."""


@dataclass(frozen=True, slots=True)
class _Compared:
    """What the sides compute and do."""

    runners: Mapping[str, Runner]  # each side, back at its first weights
    traits: Mapping[str, Traits]  # what its framework says
    differences: tuple[Difference, ...]  # how far it is from the first side


def run_contrast(
    case: str,
    contrast: Contrast,
    *,
    instruments: Instruments,
    launch: Launching | None,
    progress: Callable[[str], None],
) -> Verdict:
    """Compare the sides, and time them where they do the same.

    Args:
        case: ``family/sentence``.
        contrast: The sides.
        instruments: The clock and the duel.
        launch: Runs a side in a process of its own; ``None`` where nothing is timed.
        progress: Told what is being done.

    Raises:
        InvalidCaseError: If a side cannot be built or run, or its times mean nothing.
    """
    compared = _compare(contrast, progress)
    invalid = [*disagreements(compared.differences, contrast.rtol), *unlike(compared.traits)]
    sides = [ContrastSide(name=name, traits=traits) for name, traits in compared.traits.items()]
    findings: Sequence[Finding] = invalid
    if launch is not None and not invalid:
        try:
            sides, findings = _time(contrast, compared, instruments, launch, progress)
        except BrokenDuelError as error:
            raise InvalidCaseError("timing the sides", str(error)) from None
    return judge_contrast(
        case,
        first_device(),
        findings,
        sides,
        compared.differences,
        amount=contrast.amount,
        steps=contrast.steps,
        notes=[] if launch is not None else ["nothing was timed (--benchmark-disable)"],
    )


def _compare(contrast: Contrast, progress: Callable[[str], None]) -> _Compared:
    runners: dict[str, Runner] = {}
    traits: dict[str, Traits] = {}
    found: list[Difference] = []
    first: Seen | None = None
    for name, build in contrast.sides.items():
        progress(f"comparing results: {name}")
        with guarded(f"running {name}"):
            training = build()
            runner = runners[name] = runner_of(training)
            traits[name] = replace(runner.traits(), loading=loading_of(training.load))
            seen = look_at(runner, contrast.steps, first)
        if first is not None:
            found += differences(name, seen, first)
        first = first or seen
    return _Compared(runners, traits, tuple(found))


def _time(
    contrast: Contrast,
    compared: _Compared,
    instruments: Instruments,
    launch: Launching,
    progress: Callable[[str], None],
) -> tuple[list[ContrastSide], list[Finding]]:
    """Launch each side, then let each pair that is asked for duel."""
    launches = {}
    for name in contrast.sides:
        progress(f"a process of its own: {name}")
        launches[name] = launch(name)
    first, *others = contrast.sides
    wanted = dict.fromkeys([*((name, first) for name in others), *((one.side, one.other) for one in contrast.claims)])

    def duel(side: str, other: str) -> Duel:
        progress(f"sampling {side} against {other}")
        claims = [one.claim for one in contrast.claims if (one.side, one.other) == (side, other)]
        return instruments.run_reference_duel(
            ContrastOpponent(compared.runners[side]),
            ContrastOpponent(compared.runners[other]),
            settled=lambda duel: are_settled(claims, duel),
            clock=instruments.clock,
            max_pairs=max(LOOKS),
            platform=first_device().platform,
        )

    duels = {pair: [duel(*pair)] for pair in wanted}
    for one in contrast.claims:
        while needs_another(one, duels[one.side, one.other]):
            duels[one.side, one.other].append(duel(one.side, one.other))
    return (
        [_side(name, first, compared.traits[name], duels, launches[name]) for name in contrast.sides],
        [_claimed(one, duels, launches) for one in contrast.claims],
    )


def _claimed(
    claim: SpeedClaim, duels: Mapping[tuple[str, str], Sequence[Duel]], launches: Mapping[str, SideLaunch]
) -> Finding:
    alone = launches[claim.side].ratio(launches[claim.other])
    return decide_speed(claim, duels[claim.side, claim.other], alone)


def _side(
    name: str, first: str, traits: Traits, duels: Mapping[tuple[str, str], Sequence[Duel]], launch: SideLaunch
) -> ContrastSide:
    if name == first:
        one = next(found[0] for pair, found in duels.items() if pair[1] == first)
        return ContrastSide(name=name, traits=traits, run_ns=one.call_ns(one.baseline_ns), launch=launch)
    decision = decide(duels[name, first][0])
    return ContrastSide(name=name, traits=traits, run_ns=decision.now_ns, ratio=decision, launch=launch)
