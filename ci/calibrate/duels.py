"""The gate's error rates, measured: each selected case duels with itself, and with itself plus extra work."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ci.calibrate.extra_work import NotPlantableError, Planter, Work, measure_work, prepare_planter
from ci.calibrate.rates import PLANTS, CaseRates, Planted, is_slower, rates
from jaxgate.engine.duels.duel_processes import FreshDuel
from jaxgate.engine.instruments import Instruments
from jaxgate.judge.timing.duel import LOOKS
from jaxgate.model.decision import Status
from jaxgate.model.duel import BrokenDuelError, Duel
from jaxgate.model.measurement import NOT_CALLED, InvalidCaseError
from jaxgate.model.numbers import Contract
from jaxgate.model.program import Match, StoredProgram
from jaxgate.observe.duel.duel import Contender
from jaxgate.observe.errors import describe
from jaxgate.observe.observation import Observation
from jaxgate.observe.program.export import NotReplayableError

REAL_SHARE = 5
MIN_REAL = 5
"""Duels with extra work, of each size: a fifth of the others, and five at least; never more than of the others."""

_PLAIN = (NotPlantableError, NotReplayableError, BrokenDuelError)
"""Errors whose text is a reason as it stands."""

Clock = Callable[[], float]


def real_duels(duels: int) -> int:
    """How many duels with extra work of each size go with so many of identical programs."""
    return min(duels, max(MIN_REAL, duels // REAL_SHARE))


@dataclass(frozen=True, slots=True)
class Subject:
    """A program, its arguments, where it runs, and what the time of a call means."""

    program: StoredProgram
    leaves: list[Any]
    platform: str
    contract: Contract
    instruments: Instruments

    def prepare(self) -> Contender:
        """Compile the program anew."""
        return self.instruments.prepare(self.program, self.leaves, self.contract)

    @property
    def fresh_duel(self) -> FreshDuel:
        """The duel of the program with itself, for fresh processes."""
        itself = Match(now=self.program, baseline=self.program, leaves=self.leaves)
        return FreshDuel([itself], self.platform, self.contract)

    def duel(self, now: Contender, baseline: Contender) -> Duel:
        """A whole duel, all pairs."""
        return self.instruments.run_duel(
            now, baseline, settled=lambda _: False, max_pairs=max(LOOKS), platform=self.platform
        )


class Identical:
    """Duels of a program with itself, both sides compiled anew each time.

    Two executables of one program have been seen 3 % apart for as long as they lived. Compiling both takes a
    tenth to a quarter of a duel here; where it takes longer than the duels do, a pair serves for several.
    """

    def __init__(self, subject: Subject, progress: Callable[[str], None], clock: Clock) -> None:
        self._subject, self._progress, self._clock = subject, progress, clock
        self._sides: tuple[Contender, Contender] | None = None
        self._preparing_s = 0.0
        self.duels: list[Duel] = []
        self.duel_s: list[float] = []
        self.executables = 0
        self.confirmed = 0

    def run(self, number: int) -> None:
        """Run one duel, and repeat it in fresh processes if it is a false alarm.

        Raises:
            BrokenDuelError: If its times mean nothing.
        """
        now, baseline = self._prepare(number)
        self._progress("sampling")  # ends the progress line of the last stage
        begin = self._clock()
        duel = self._subject.duel(now, baseline)
        self.duel_s.append(self._clock() - begin)
        self.duels.append(duel)
        if is_slower(duel):
            self._progress(f"repeating the false alarm of duel {number} in fresh processes")
            self.confirmed += self._comes_again()

    def _comes_again(self) -> bool:
        """Whether all fresh processes see the alarm; a failed one counts as agreeing: no rate is understated."""
        instruments = self._subject.instruments
        for _ in range(instruments.processes):
            outcome = instruments.repeat_duel(self._subject.fresh_duel)
            if outcome.case is not None and outcome.case.status is not Status.SLOWER:
                return False
        return True

    def _prepare(self, number: int) -> tuple[Contender, Contender]:
        if self._sides is None or self._preparing_s <= sum(self.duel_s):
            self._progress(f"compiling both sides of duel {number}")
            begin = self._clock()
            self._sides = self._subject.prepare(), self._subject.prepare()
            self._preparing_s += self._clock() - begin
            self.executables += 1
        return self._sides


class ExtraWork:
    """Duels with extra work of each size, both sides compiled anew each round.

    What goes wrong here costs these duels, and says so; those of identical programs are kept.
    """

    def __init__(self, subject: Subject, rounds: int, progress: Callable[[str], None]) -> None:
        self._subject, self._rounds, self._progress = subject, rounds, progress
        self._work: Work | None = None
        self._round = 0
        self.found = {share: Planted() for share in PLANTS}

    def run(self) -> None:
        """Run one duel of each size, if there is a round left and nothing is in the way."""
        if self._round >= self._rounds or all(planted.why_not for planted in self.found.values()):
            return
        self._round += 1
        try:
            self._progress(f"compiling with extra work, round {self._round} of {self._rounds}")
            subject = self._subject
            planter = prepare_planter(subject.program, subject.leaves, subject.contract)
            plain = subject.prepare()
            self._progress("sampling")
            self._work = self._work or measure_work(plain, planter, platform=subject.platform)
            for share, before in self.found.items():
                if not before.why_not:
                    self.found[share] = self._plant(before, share, planter, plain, self._work)
        except Exception as error:  # noqa: BLE001 - duels of identical programs stay; the error says why the others stopped
            why = str(error) if isinstance(error, _PLAIN) else describe(error)
            for share, before in self.found.items():
                stopped = f"stopped after {len(before.duels)} of {self._rounds}: " if before.duels else ""
                self.found[share] = replace(before, why_not=before.why_not or f"{stopped}{why}")

    def _plant(self, before: Planted, share: float, planter: Planter, plain: Contender, work: Work) -> Planted:
        try:
            steps = work.steps_for(share)
        except NotPlantableError as error:
            return replace(before, why_not=str(error))
        duel = self._subject.duel(planter.with_steps(steps), plain)
        is_slower(duel)  # refuses times that mean nothing
        return replace(before, duels=(*before.duels, duel))


def calibrate(
    case: str,
    observed: Observation,
    *,
    duels: int,
    progress: Callable[[str], None],
    instruments: Instruments,
    clock: Clock = time.perf_counter,
) -> CaseRates:
    """Run duels of a program with itself, and of it with extra work, spread among them: the machine's mood is one.

    Raises:
        InvalidCaseError: If the program cannot be run again, or the times of a duel mean nothing.
    """
    if observed.measurement.compiled_only:
        raise InvalidCaseError("calibrating", NOT_CALLED)
    begin = clock()
    hardware = observed.measurement.hardware
    rounds = real_duels(duels)
    try:
        subject = Subject(observed.export(), observed.leaves(), hardware.platform, observed.contract, instruments)
        identical = Identical(subject, progress, clock)
        extra = ExtraWork(subject, rounds, progress)
        for number in range(1, duels + 1):
            identical.run(number)
            if number % (duels // rounds) == 0:
                extra.run()
        return rates(
            case,
            hardware,
            identical.duels,
            planted=extra.found,
            executables=identical.executables,
            confirmed=identical.confirmed,
            duel_s=identical.duel_s,
            took_s=clock() - begin,
        )
    except (NotReplayableError, BrokenDuelError) as error:
        raise InvalidCaseError("calibrating", str(error)) from error
