"""The gate of a run over several processes: every rank measures, rank 0 judges, the others get the verdict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from jaxgate.engine.judge_case import JudgedCase
from jaxgate.engine.run.progress import Progress
from jaxgate.engine.run.session import GateSession
from jaxgate.ext.ranks.barrier import BrokenRanksError, LeftError, RankBarrier
from jaxgate.ext.ranks.leader import Follower, Leader
from jaxgate.ext.ranks.merge import STAGE, RankMeasurement, merge, name_ranks
from jaxgate.ext.ranks.transport import Message
from jaxgate.model.decision import Status
from jaxgate.model.measurement import ExhaustedError, InvalidCaseError
from jaxgate.model.verdict import TimeVerdict, Verdict
from jaxgate.model.workload import Case
from jaxgate.observe.errors import describe
from jaxgate.observe.machine.environment import fingerprint
from jaxgate.observe.measure import observe
from jaxgate.observe.observation import Observation
from jaxgate.plugin.benchmark_rows import replay
from jaxgate.plugin.gate import Gate
from jaxgate.report.text import in_short

WAITS = "waits on rank 0 to be confirmed in fresh processes"


class RankedCase:
    """One case in lock-step: the same decisions on all ranks, none enters a stage before all have left the last."""

    def __init__(self, station: RankBarrier, case: str) -> None:
        self._station = station
        self._case = case

    def first(self, what: str, numbers: tuple[int, ...]) -> tuple[int, ...]:
        """Give all ranks the numbers of rank 0."""
        return tuple(self._station.meet(f"`{self._case}`, {what}", numbers, lambda values: values[0]))

    def anyone(self, what: str, yes: bool) -> bool:  # noqa: FBT001 - it is the question
        """Whether any rank says yes."""
        return bool(self._station.meet(f"`{self._case}`, {what}", yes, any))

    def same(self, what: str, text: Callable[[], str]) -> None:
        """Compare the texts of all ranks, by a hash; where it differs line by line, by hashes, and bring the first other line."""
        where, mine = f"`{self._case}`, {what}", [line.strip() for line in text().splitlines()]
        if not self._station.meet(where, fingerprint(mine), lambda values: len(set(values)) > 1):
            return
        first = self._station.meet(f"{where}, line by line", [fingerprint(line)[:8] for line in mine], first_other)
        own = {"name": self._station.name, "line": mine[first][:200] if first < len(mine) else "no more of it"}
        zero, *others = self._station.meet(f"{where}, its first other line", own, list)
        other = next((one for one in others if one["line"] != zero["line"]), others[0])
        raise InvalidCaseError(
            "comparing the ranks before the first call",
            f"expected {what} to be the same on all ranks, found {zero['line']} on {zero['name']} and {other['line']} on "
            f"{other['name']}",
        )

    def stages(self, progress: Callable[[str], None]) -> Callable[[str], None]:
        """A teller of progress that waits for the others at the door of each stage."""

        def enter(stage: str) -> None:
            progress(stage)  # on rank 0 it takes the machine for what is timed, for all that run there
            self._station.meet(f"`{self._case}`, {stage}")

        return enter


def first_other(found: Sequence[Sequence[str]]) -> int:
    """The first place at which not all lists have the same; behind the shortest where only their lengths differ."""
    return next((at for at, items in enumerate(zip(*found, strict=False)) if len(set(items)) > 1), min(map(len, found)))


class _RankedGate(Gate):
    """What the gates of all ranks have in common."""

    _station: RankBarrier
    _failure: Exception | None = None

    def _measure(self, case: Case, progress: Callable[[str], None]) -> tuple[Observation | None, Message | None]:
        """Measure in lock-step.

        Returns:
            What was observed; or why it could not be, for the others, with the error itself.
        """
        station = self._station
        station.doing = f"`{case.name}` ran"
        station.meet(f"the gate of `{case.name}`")
        together = RankedCase(station, case.name)
        try:
            observed = observe(
                case.build,
                store=self._session.references,
                progress=together.stages(progress),
                sampling=self._benchmark.enabled,
                recording=self._session.settings.records_anew,
                together=together,
            )
        except BrokenRanksError:
            raise
        except InvalidCaseError as error:
            station.refuse_broken()  # of a collective only the other's death is the reason
            self._failure = error
            largest = list(error.largest) if isinstance(error, ExhaustedError) else None
            induced = isinstance(error, LeftError)
            return None, {"stage": error.stage, "reason": error.reason, "largest": largest, "induced": induced}
        except Exception as error:  # noqa: BLE001 - raised again once the others know
            self._failure = error
            return None, {"stage": "measuring", "reason": describe(error), "largest": None, "induced": False}
        return observed, None


class LeadingGate(_RankedGate):
    """Rank 0's: judges what all ranks measured, and sends them the verdict."""

    _station: Leader

    def __init__(self, item: pytest.Item, benchmark: Any, session: GateSession, station: Leader) -> None:
        super().__init__(item, benchmark, session)
        self._station = station
        self._worst: dict[str, str] = {}
        self._handed_in = False
        self._verdict: Verdict | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Verdict:
        """See ``Gate``; the other ranks get the outcome in any case."""
        self._failure, self._verdict, self._handed_in = None, None, False
        try:
            return super().__call__(*args, **kwargs)
        finally:
            if self._handed_in:
                self._station.answer(self._told())

    def _observe(self, case: Case, progress: Callable[[str], None]) -> Observation:
        observed, left = self._measure(case, progress)
        station = self._station
        own = None if observed is None else RankMeasurement.of(observed.measurement, station.name).to_plain()
        found = station.gather(f"the result of `{case.name}`", own, left=left, last=True)
        station.alone = self._handed_in = True
        if left is not None and not left["induced"] and self._failure is not None:
            raise self._failure
        names = [station.name, *(line.name for line in station.lines)]
        for name, message in zip(names, found, strict=True):
            if message["left"] is not None and not message["left"]["induced"]:
                raise _theirs(name, message["left"])
        if observed is None:  # pragma: no cover - somebody was the first to leave
            raise InvalidCaseError(STAGE, "expected a measurement of every rank, found none")
        try:
            others = [RankMeasurement.from_plain(message["value"]) for message in found[1:]]
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidCaseError(STAGE, f"a rank runs another version of jaxgate: {describe(error)}") from error
        merged, self._worst = merge(observed.measurement, others, station.name)
        return replace(observed, measurement=merged)

    def _judge(self, case: Case) -> tuple[JudgedCase, Observation | None]:
        judged, observed = super()._judge(case)
        self._verdict = name_ranks(judged.verdict, self._worst)
        return replace(judged, verdict=self._verdict), observed

    def _told(self) -> Message:
        verdict = self._verdict
        if verdict is not None and verdict.case in self._session.result.provisional:
            return {"status": str(Status.UNDECIDED), "fails": False, "text": WAITS}
        if verdict is not None:
            return {"status": str(verdict.status), "fails": verdict.fails, "text": in_short(verdict)}
        return {"status": str(Status.INVALID), "fails": True, "text": "rank 0 could not judge it"}


class FollowingGate(_RankedGate):
    """The gate of any other rank: measures, hands in, and does what rank 0 answers."""

    _station: Follower

    def __init__(self, item: pytest.Item, benchmark: Any, session: GateSession, station: Follower) -> None:
        super().__init__(item, benchmark, session)
        self._station = station
        self._told: Message = {}

    def _judge(self, case: Case) -> tuple[JudgedCase, Observation | None]:
        station, hardware, self._failure = self._station, None, None
        try:
            with Progress(
                self._session.terminal, case.name, patience_s=self._session.instruments.patience_s
            ) as progress:  # the machine is rank 0's to take
                observed, left = self._measure(case, progress)
                own = None if observed is None else RankMeasurement.of(observed.measurement, station.name).to_plain()
                progress("waiting for the verdict of rank 0")
                self._told = station.meet(f"the result of `{case.name}`", own, left=left)
            if observed is not None:
                hardware = observed.measurement.hardware
                replay(self._item, self._benchmark, observed.measurement.samples)
        except BrokenRanksError as error:
            self._told = {"status": str(Status.INVALID), "fails": True, "text": error.reason}
        if isinstance(self._failure, Exception) and not isinstance(self._failure, InvalidCaseError):
            raise self._failure
        verdict = Verdict(
            case=case.name,
            hardware=hardware,
            status=Status(self._told["status"]),
            fails=bool(self._told["fails"]),
            findings=(),
            time=TimeVerdict(status=Status.UNDECIDED, reason=str(self._told["text"])),
        )
        return JudgedCase(verdict=verdict, is_final=True), None

    def _end(self, judged: JudgedCase, observed: Observation | None) -> Verdict:  # noqa: ARG002 - rank 0 has them
        verdict = judged.verdict
        self._session.result.verdicts.append(verdict)
        self.test.verdicts.append(verdict)
        if verdict.fails:
            by = "" if self._station.broken else "judged by rank 0: "
            self.test.fail(verdict.case, f"{by}{verdict.status}  {verdict.case}  {verdict.time.reason}")
        return verdict


def _theirs(name: str, left: Message) -> InvalidCaseError:
    """Why another rank could not go on, as an error of rank 0."""
    reason = f"{left['reason']} (on {name})"
    if left["largest"] is not None:
        return ExhaustedError(str(left["stage"]), reason, tuple(map(str, left["largest"])))
    return InvalidCaseError(str(left["stage"]), reason)
