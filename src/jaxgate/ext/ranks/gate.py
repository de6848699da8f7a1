"""The gate of a run over several processes: every rank measures, rank 0 judges, the others get the verdict."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from jaxgate.engine.duels.baseline_duel import DUEL, Opponent
from jaxgate.engine.duels.duel_processes import FreshDuel, repeat_duel
from jaxgate.engine.judge_case import JudgedCase
from jaxgate.engine.repeats import DuelRepeat, Repeat, confirm
from jaxgate.engine.run.progress import CONFIRMING, PROFILING, Progress
from jaxgate.engine.run.session import GateSession
from jaxgate.ext.ranks.again import RECORDING, TOGETHER, record_over_ranks, run_fresh_rank, where_to_meet
from jaxgate.ext.ranks.barrier import BrokenRanksError, RankBarrier
from jaxgate.ext.ranks.case import RankedCase, left_by, verdict_of
from jaxgate.ext.ranks.leader import Follower, Leader
from jaxgate.ext.ranks.merge import STAGE, RankMeasurement, blame, merge, name_ranks, straggler
from jaxgate.ext.ranks.transport import Message
from jaxgate.judge.difference import Difference
from jaxgate.model.decision import Status
from jaxgate.model.duel import RepeatOutcome
from jaxgate.model.measurement import ExhaustedError, InvalidCaseError
from jaxgate.model.outcome import UsageError
from jaxgate.model.verdict import TimeVerdict, Verdict
from jaxgate.model.workload import Case
from jaxgate.observe.arguments.lockstep import ALONE
from jaxgate.observe.errors import describe
from jaxgate.observe.measure import observe
from jaxgate.observe.observation import Observation
from jaxgate.plugin.benchmark_rows import replay
from jaxgate.plugin.gate import Gate
from jaxgate.plugin.options.table import DISTRIBUTED
from jaxgate.processes.pytest_child import Selection, Side
from jaxgate.report.text import in_short

WAITS = "waits on rank 0 to be confirmed in fresh processes"


class _RankedGate(Gate):
    """What the gates of all ranks have in common."""

    _station: RankBarrier
    _together: RankedCase
    _failure: Exception | None = None

    def _measure(self, case: Case, progress: Callable[[str], None]) -> tuple[Observation | None, Message | None]:
        """Measure in lock-step.

        Returns:
            What was observed; or why it could not be, for the others, with the error itself.
        """
        station = self._station
        station.doing = f"`{case.name}` ran"
        together = self._together = RankedCase(station, case.name)
        station.meet(f"the gate of `{case.name}`")
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
            return None, left_by(error)
        except Exception as error:  # noqa: BLE001 - raised again once the others know
            self._failure = error
            return None, left_by(error)
        return observed, None

    def _repeat_rank(self, duel: FreshDuel) -> RepeatOutcome:
        """This rank's part of a duel in fresh processes."""
        return repeat_duel(duel, run_fresh=partial(run_fresh_rank, self._station, where_to_meet(self._station)))

    def _record_rank(self, side: Side, chosen: Selection, into: Path) -> dict[str, str]:
        """This rank's part of a test in fresh processes."""
        plain = self._session.again
        return record_over_ranks(self._station, side, chosen, into, plain=plain, variable=DISTRIBUTED.variable)


class LeadingGate(_RankedGate):
    """Rank 0's: judges what all ranks measured, and sends them the verdict."""

    _station: Leader

    def __init__(self, item: pytest.Item, benchmark: Any, session: GateSession, station: Leader) -> None:
        super().__init__(item, benchmark, session)
        self._station = station
        self._worst: dict[str, str] = {}
        self._handed_in = False
        self._case = ""
        self._verdict: Verdict | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Verdict:
        """See ``Gate``; the other ranks get the outcome in any case."""
        self._failure, self._verdict, self._handed_in = None, None, False
        try:
            return super().__call__(*args, **kwargs)
        finally:
            station = self._station
            if self._handed_in and not station.broken:
                station.gather(verdict_of(self._case), left=self._together.left, last=True)
                station.answer(self._told())

    def _observe(self, case: Case, progress: Callable[[str], None]) -> Observation:
        observed, left = self._measure(case, progress)
        station = self._station
        own = None if observed is None else RankMeasurement.of(observed.measurement, station.name).to_plain()
        found = station.gather(f"the result of `{case.name}`", own, left=left, last=True)
        station.answer(None)
        self._case, station.alone, self._handed_in = case.name, True, True
        if left is not None and not left["induced"] and self._failure is not None:
            raise self._failure
        for name, message in zip(station.names, found, strict=True):
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
        provisional = judged.provisional(strict=self._session.strict)
        if provisional is not None and observed is not None and observed.together is not ALONE:
            again = replace(self._session.instruments, repeat_duel=self._repeat, record=self._record)
            with self._session.progress(case.name) as progress:
                progress(CONFIRMING)
                judged = replace(judged, verdict=confirm(provisional, again, machine=False), is_final=True)
            self._benchmark.extra_info["verdict"] = str(judged.verdict.status)
        self._verdict = blame(name_ranks(judged.verdict, self._worst), self._straggler())
        return replace(judged, verdict=self._verdict), observed

    def _repeat(self, duel: FreshDuel) -> RepeatOutcome:
        try:
            with self._together.calling(TOGETHER):
                return self._repeat_rank(duel)
        except (InvalidCaseError, OSError) as error:
            return RepeatOutcome(problem=describe(error))

    def _record(self, side: Side, chosen: Selection, into: Path) -> dict[str, str]:
        try:
            with self._together.calling(RECORDING):
                return self._record_rank(side, chosen, into)
        except InvalidCaseError as error:
            raise UsageError(error.reason) from None

    def _straggler(self) -> str:
        """Whose work made the case slower, where it is known what each rank worked."""
        worked = [own for own in self._together.worked if own]
        return straggler(worked[0], worked[1], self._station.names) if len(worked) > 1 else ""

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
        self._again: Repeat | None = None
        self._opponent: Opponent | None = None

    def _judge(self, case: Case) -> tuple[JudgedCase, Observation | None]:
        station, hardware, self._failure = self._station, None, None
        self._again = self._opponent = None
        try:
            with Progress(
                self._session.terminal, case.name, patience_s=self._session.instruments.patience_s
            ) as progress:  # the machine is rank 0's to take
                observed, left = self._measure(case, progress)
                own = None if observed is None else RankMeasurement.of(observed.measurement, station.name).to_plain()
                station.meet(f"the result of `{case.name}`", own, left=left)
                self._told = self._follow(case, observed, progress)
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

    def _follow(self, case: Case, observed: Observation | None, progress: Callable[[str], None]) -> Message:
        """Do what rank 0 calls for until it has a verdict; one that cannot goes there at once, and says why."""
        left: Message | None = None
        while True:
            if left is None:
                progress("waiting for the verdict of rank 0")
            told: Message = self._station.meet(verdict_of(case.name), left=left)
            if "do" not in told or observed is None:
                return told
            try:
                with self._together.calling(told["do"]):
                    self._join_in(told["do"], case, observed, progress)
            except BrokenRanksError:
                raise
            except Exception as error:  # noqa: BLE001 - rank 0 says it
                self._station.refuse_broken()
                left = left_by(error)
                left["reason"] += f" (on {self._station.name})"

    def _join_in(self, what: str, case: Case, observed: Observation, progress: Callable[[str], None]) -> None:
        """Do one thing with rank 0."""
        now, session = observed.measurement, self._session
        if what == TOGETHER and isinstance(self._again, DuelRepeat):
            self._repeat_rank(self._again.duel)
        elif what == RECORDING:
            with tempfile.TemporaryDirectory(prefix="jaxgate-") as name:
                self._record_rank(session.again, Selection((self._item.nodeid,), "", ""), Path(name))
        elif what == DUEL:
            stored = session.store.load(now.hardware, case.name)
            if stored is None:
                raise InvalidCaseError(
                    "reading the baseline", f"expected that of `{case.name}` on every rank, found none"
                )
            found = session.baseline_duels.run(observed, stored, Difference(now, stored.baseline), progress)
            self._again, self._opponent = found.repeat, found.opponent
        elif what == PROFILING:
            stored = session.store.load(now.hardware, case.name)
            session.evidence.follow(case.name, observed, stored, self._opponent)

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
