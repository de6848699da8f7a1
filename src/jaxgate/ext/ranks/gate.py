"""The gate of a run over several processes: every rank measures, rank 0 judges, the others get the verdict."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from pydantic import ValidationError

from jaxgate.engine.duels.baseline_duel import DUEL, Opponent
from jaxgate.engine.duels.duel_processes import FreshDuel, repeat_duel
from jaxgate.engine.judge_case import JudgedCase
from jaxgate.engine.repeats import DuelRepeat, Repeat, confirm
from jaxgate.engine.run.ending import Ending, ExitStatus
from jaxgate.engine.run.progress import CONFIRMING, PROFILING, Progress
from jaxgate.engine.run.result_files import RESULTS, outcome_of
from jaxgate.engine.run.session import GateSession
from jaxgate.ext.ranks.again import RECORDING, TOGETHER, record_over_ranks, run_fresh_rank, where_to_meet
from jaxgate.ext.ranks.barrier import BrokenRanksError, LeftError, RankBarrier, first
from jaxgate.ext.ranks.case import RankedCase, verdict_of
from jaxgate.ext.ranks.merge import STAGE, RankMeasurement, blame, merge, name_ranks, straggler
from jaxgate.ext.ranks.peers import Message
from jaxgate.judge.difference import Difference
from jaxgate.keep.strict import adapter_of
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
from jaxgate.observe.tools import Tools
from jaxgate.plugin.benchmark_rows import replay
from jaxgate.plugin.gate import Gate
from jaxgate.plugin.options.table import DISTRIBUTED
from jaxgate.plugin.stash import TESTS
from jaxgate.processes.pytest_child import Selection, Side
from jaxgate.report.results import results_json
from jaxgate.report.text import in_short

WAITS = "waits on rank 0 to be confirmed in fresh processes"


class _RankedGate(Gate):
    """What the gates of all ranks have in common."""

    _together: RankedCase
    _awaited = ""
    """The case that is measured, and whose verdict other ranks wait for."""

    def __init__(self, item: pytest.Item, benchmark: Any, session: GateSession, station: RankBarrier) -> None:
        super().__init__(item, benchmark, session)
        self._station = station

    def _measure(self, case: Case, progress: Callable[[str], None]) -> tuple[Observation, list[str]]:
        """Measure in lock-step.

        Returns:
            What was observed here, and what every rank measured, as JSON, by rank.

        Raises:
            Exception: If a rank could not, on all of them: ``LeftError`` where it was another one.
        """
        station = self._station
        station.doing = f"`{case.name}` ran"
        together = self._together = RankedCase(station, case.name)
        station.meet(f"the gate of `{case.name}`")
        failure = None
        try:
            observed = observe(
                case.build,
                Tools(
                    store=self._session.references,
                    progress=together.stages(progress),
                    sampling=self._benchmark.enabled,
                    recording=self._session.settings.records_anew,
                    together=together,
                ),
            )
            own = adapter_of(RankMeasurement).dump_json(RankMeasurement.of(observed.measurement, station.name)).decode()
            found = station.meet(f"the result of `{case.name}`", own, list)
        except Exception as error:  # noqa: BLE001 - raised once the others know
            failure = error
            together.leave(error)
        self._awaited, station.alone = case.name, station.rank == 0
        if failure is not None:
            raise failure
        return observed, found

    def _repeat_rank(self, duel: FreshDuel) -> RepeatOutcome:
        """This rank's part of a duel in fresh processes."""
        return repeat_duel(duel, run_fresh=partial(run_fresh_rank, self._station, where_to_meet(self._station)))

    def _record_rank(self, side: Side, chosen: Selection, into: Path) -> dict[str, str]:
        """This rank's part of a test in fresh processes."""
        plain = self._session.again
        return record_over_ranks(self._station, side, chosen, into, plain=plain, variable=DISTRIBUTED.variable)


class LeadingGate(_RankedGate):
    """Rank 0's gate: judges what all ranks measured, and sends them the verdict."""

    _worst: Mapping[str, str] = MappingProxyType({})
    _verdict: Verdict | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Verdict:
        """See ``Gate``; the other ranks get the outcome in any case."""
        self._verdict, self._awaited = None, ""
        try:
            return super().__call__(*args, **kwargs)
        finally:
            if self._awaited and not self._station.broken:
                self._station.meet(verdict_of(self._awaited), self._told(), first)
                self._write_down()

    def _write_down(self) -> None:
        """The results so far: JAX aborts all ranks where rank 0 is killed."""
        session, tests = self._session, self._item.config.stash[TESTS]
        if not session.settings.other_side:
            so_far = Ending(status=ExitStatus(code=1))
            session.evidence.write_page(RESULTS, results_json(outcome_of(session, so_far, tests.selected, 1)))

    def _observe(self, case: Case, progress: Callable[[str], None]) -> Observation:
        station = self._station
        try:
            observed, found = self._measure(case, progress)
            others = list(map(adapter_of(RankMeasurement).validate_json, found[1:]))
        except LeftError as error:
            if error.left["largest"] is not None:
                raise ExhaustedError(error.stage, error.reason, tuple(error.left["largest"])) from None
            raise
        except ValidationError as error:
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
        """The rank that made the case slower, where it is known what each rank worked."""
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

    _again: Repeat | None = None
    _opponent: Opponent | None = None

    def _judge(self, case: Case) -> tuple[JudgedCase, Observation | None]:
        session, hardware, failure = self._session, None, None
        self._again = self._opponent = None
        try:
            with Progress(session.terminal, case.name, patience_s=session.instruments.patience_s) as progress:
                try:  # the machine is rank 0's to take
                    observed, _ = self._measure(case, progress)
                    hardware = observed.measurement.hardware
                except BrokenRanksError:
                    raise
                except Exception as error:  # noqa: BLE001 - raised again once rank 0 has judged
                    observed, failure = None, error
                told = self._follow(case, observed, progress)
            if observed is not None:
                replay(self._item, self._benchmark, observed.measurement.samples)
        except BrokenRanksError as error:
            told = {"status": str(Status.INVALID), "fails": True, "text": error.reason}
        if failure is not None and not isinstance(failure, InvalidCaseError):
            raise failure
        verdict = Verdict(
            case=case.name,
            hardware=hardware,
            status=Status(told["status"]),
            fails=bool(told["fails"]),
            findings=(),
            time=TimeVerdict(status=Status.UNDECIDED, reason=str(told["text"])),
        )
        return JudgedCase(verdict=verdict, is_final=True), None

    def _follow(self, case: Case, observed: Observation | None, progress: Callable[[str], None]) -> Message:
        """Do what rank 0 calls for until it has a verdict."""
        while True:
            progress("waiting for the verdict of rank 0")
            told: Message = self._station.meet(verdict_of(case.name))
            if "do" not in told or observed is None:
                return told
            try:
                with self._together.calling(told["do"]):
                    self._join_in(told["do"], case, observed, progress)
            except BrokenRanksError:
                raise
            except Exception:  # noqa: BLE001, S112 - rank 0 knows why, and says it
                continue

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
