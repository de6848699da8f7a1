"""``--perf-distributed``: the same pytest command on each process of a job, in lock-step, judged by rank 0.

A run whose ranks were lost is reported and written down first, whatever the main thread is stuck in.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from jaxgate.ext.ranks.barrier import BrokenRanksError, RankBarrier, enter, first
from jaxgate.ext.ranks.peers import AbsentRankError, first_other
from jaxgate.judge.verdict import judge_invalid
from jaxgate.plugin import time_limit
from jaxgate.plugin.console import Console
from jaxgate.plugin.gating import begin
from jaxgate.plugin.gating_run import give_devices, progress_terminal
from jaxgate.plugin.options.table import DISTRIBUTED
from jaxgate.plugin.stash import SESSION, SETTINGS, STDERR, TESTS
from jaxgate.settings import RankSettings

if TYPE_CHECKING:
    from jaxgate.engine.run.session import GateSession
    from jaxgate.plugin.gate import Gate

RANK = pytest.StashKey["Rank"]()
ENDING_S = 120.0
"""What the end of a broken run may take."""


def configure(config: pytest.Config) -> None:
    """Make this process a rank, if it was asked to be one."""
    settings = config.stash[SETTINGS].ranks
    if settings is not None and not config.option.collectonly:
        config.pluginmanager.register(Joining(config, settings), "jaxgate-joining")


def own_gate(request: pytest.FixtureRequest, benchmark: Any) -> Gate | None:
    """The gate of a rank; ``None`` in a run of one process."""
    rank = request.config.stash.get(RANK, None)
    return None if rank is None else rank.gate(request, benchmark)


class Joining:
    """Registered for a process that is to be one of several."""

    def __init__(self, config: pytest.Config, settings: RankSettings) -> None:
        self._config, self._settings = config, settings

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Join the job: before the tests are imported, which may touch devices."""
        from jaxgate.ext.ranks.again import end_with_parent  # noqa: PLC0415 - imports JAX
        from jaxgate.ext.ranks.job import NotJoinedError  # noqa: PLC0415 - imports JAX

        config, settings = self._config, self._settings
        give_devices(config)
        if config.stash[SETTINGS].other_side:
            end_with_parent()
        timer = threading.Timer(settings.timeout_s, give_up, (config, settings))
        timer.daemon = True
        timer.start()
        try:
            where = settings.coordinator, settings.count, settings.rank
            station = enter(*where, limit_s=settings.timeout_s, timeout_s=settings.timeout_s)
        except (NotJoinedError, AbsentRankError) as error:
            config.add_cleanup(lambda: end_process(config, 1))  # JAX would wait for the others at its own end
            pytest.exit(f"{DISTRIBUTED.flag}: {error}", returncode=1)
        finally:
            timer.cancel()
        rank = Rank(config, session, station)
        station.on_broken = rank.end_if_stuck
        config.add_cleanup(station.stop)
        config.add_cleanup(rank.end_if_broken)
        config.pluginmanager.register(rank, "jaxgate-ranks")
        station.start()


class Rank:
    """Registered for a process that has joined the others.

    It ends where its job is broken: from a thread of its own if the one of the tests does not.
    """

    def __init__(self, config: pytest.Config, session: pytest.Session, station: RankBarrier) -> None:
        self._config, self._session, self._station = config, session, station
        self._item: Any = None  # the test that runs
        self._gates: GateSession | None = None
        self._notes: list[str] = []
        config.stash[RANK] = self
        limit = config.pluginmanager.get_plugin(time_limit.NAME)
        if limit is not None and station.rank:
            limit.stand_down()  # all would stop, each behind another test: rank 0 notifies the others

    def pytest_report_header(self) -> str:
        """Say which rank this is."""
        return f"jaxgate: {self._station.name} of {self._station.count}"

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self) -> None:
        """Only rank 0 has to have judged what was selected."""
        if self._station.rank:
            self._config.stash[TESTS].selected = set()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Compare the tests of all ranks before the first one runs."""
        station = self._station
        station.doing = "the tests were compared"
        mine = {"tests": [item.nodeid for item in session.items], "failed": session.testsfailed, "name": station.name}
        problem = self._meet("its tests", mine, disagreement)
        if problem:
            station.over = True
            if not session.testsfailed:
                pytest.exit(str(problem), returncode=1)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        """Note which test runs."""
        self._item = item
        self._station.doing = f"{item.nodeid} ran"
        self._station.sign()

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self) -> None:
        """No further test once the job is broken."""
        if self._station.broken:
            self._session.shouldfail = self._station.broken

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """After its last test rank 0 may take its time: it confirms what was slower in fresh processes."""
        session = self._session
        if not self._station.rank:
            last = nodeid == session.items[-1].nodeid
            self._station.alone = bool(session.shouldfail or session.shouldstop or last)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Wait for the others to be through with their tests; one that failed only there fails here too."""
        station = self._station
        if station.over or station.broken:
            return
        if exitstatus in (pytest.ExitCode.INTERRUPTED, pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.USAGE_ERROR):
            why = session.shouldstop or f"exit code {int(exitstatus)}"
            station.leave(f"ended its session: {why}")
            return
        mine = {"name": station.name, "failed": session.testsfailed}
        found = self._meet("the end of its tests", mine, list, ends=False)
        more = [f"{one['name']}: {one['failed']} failed" for one in found or () if one["failed"] > session.testsfailed]
        if more and station.rank == 0:
            self._notes += more
            if exitstatus == pytest.ExitCode.OK:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED
        if station.rank == 0:
            station.alone = not station.broken

    @pytest.hookimpl(trylast=True, specname="pytest_sessionfinish")
    def end_with_rank_0(self, session: pytest.Session) -> None:
        """End as rank 0 does."""
        station = self._station
        if station.over or station.broken:
            return
        status = self._meet("the end of its session", int(session.exitstatus), first, ends=False)
        station.over = not station.broken
        if status and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = status
            self._notes.append(f"rank 0 ended with exit code {status}")

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say who took part; on other ranks than 0 also, in short, what rank 0 judged."""
        station = self._station
        out = Console(terminalreporter)
        out.ensure_newline()
        if station.rank:
            out.section(f"jaxgate: {station.name} of {station.count}, judged by rank 0")
            for verdict in self._gates.result.verdicts if self._gates is not None else ():
                out.write_line(f"{verdict.status}  {verdict.case}", red=verdict.fails, green=not verdict.fails)
        else:
            out.write_line(f"over {station.count} processes: {', '.join(station.names)}")
        for note in [*self._notes, *([station.broken] if station.broken else [])]:
            out.write_line(f"jaxgate: {note}", red=True)

    def gate(self, request: pytest.FixtureRequest, benchmark: Any) -> Gate:
        """The gate of this rank."""
        from jaxgate.engine.run.session import GateSession  # noqa: PLC0415 - imports JAX
        from jaxgate.ext.ranks.gate import FollowingGate, LeadingGate  # noqa: PLC0415 - imports JAX

        station = self._station
        if station.rank == 0:
            return LeadingGate(request.node, benchmark, begin(self._config).session(), station)
        if self._gates is None:  # writes nothing, remembers nothing
            settings = replace(self._config.stash[SETTINGS], as_measured=True)
            self._gates = GateSession(settings, self._config.rootpath, terminal=progress_terminal(self._config))
        return FollowingGate(request.node, benchmark, self._gates, station)

    def _meet(self, what: str, value: Any, decide: Any, *, ends: bool = True) -> Any:
        """Meet outside a gate; a broken job ends the session there and then, or is noted where it ends anyway."""
        try:
            return self._station.meet(what, value, decide)
        except BrokenRanksError as error:
            if ends:
                pytest.exit(error.reason, returncode=1)
            self._session.exitstatus = pytest.ExitCode.TESTS_FAILED
            return None

    def end_if_stuck(self, text: str) -> None:
        """End a broken run in place of a thread that waits for ever in JAX; see that it ends in any case."""
        say(self._config, text)
        station = self._station
        if not station.is_stuck():
            time.sleep(ENDING_S)
            os._exit(1)
        last = threading.Timer(ENDING_S, os._exit, (1,))
        last.daemon = True
        last.start()
        try:
            self._report(text)
        finally:
            station.wait_for_others()
            end_process(self._config, 1)

    def _report(self, text: str) -> None:
        """What the thread of the tests would have done: fail the test, judge the case, show and write what there is."""
        session, item, gates = self._session, self._item, self._config.stash.get(SESSION, None)
        capture = self._config.pluginmanager.getplugin("capturemanager")
        if capture is not None:
            capture.suspend_global_capture(in_=True)  # the test that does not end still has the terminal's descriptors
        if gates is not None and item is not None:
            result = gates.result
            judged = {verdict.case for verdict in result.verdicts}
            cases = [case for case, test in result.tests.items() if test == item.nodeid and case not in judged]
            result.verdicts += [judge_invalid(case, BrokenRanksError(text)) for case in cases]
        if item is not None:
            report = pytest.TestReport(item.nodeid, item.location, {}, "failed", text, "call")
            self._config.hook.pytest_runtest_logreport(report=report)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        self._config.hook.pytest_sessionfinish(session=session, exitstatus=session.exitstatus)

    def end_if_broken(self) -> None:
        """End the process for good: JAX would wait for the lost rank at its own end."""
        if self._station.broken:
            self._station.wait_for_others()
            end_process(self._config, int(self._session.exitstatus) or 1)


def say(config: pytest.Config, text: str) -> None:
    """Write to the terminal at once, whatever the main thread is stuck in."""
    with suppress(OSError):
        os.write(config.stash.get(STDERR, 2), f"\njaxgate: {text}\n".encode())


def end_process(config: pytest.Config, status: int) -> None:
    """End without what Python and JAX do at their end."""
    terminal = config.pluginmanager.getplugin("terminalreporter")
    if terminal is not None:
        terminal.flush()  # its file is not the captured one
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def give_up(config: pytest.Config, settings: RankSettings) -> None:
    """End a process that waits for others in JAX's own start, from where no exception comes."""
    which = "" if settings.rank is None else f"; this is rank {settings.rank} of {settings.count}"
    say(
        config,
        f"{DISTRIBUTED.flag}: the other processes have not come within {settings.timeout_s:g} s (its last number){which}",
    )
    os._exit(1)


def disagreement(found: list[dict[str, Any]]) -> str:
    """What keeps the ranks from running their tests together, by what each says of its own; empty if nothing does."""
    failed = [f"{one['name']}: {one['failed']} errors while collecting" for one in found if one["failed"]]
    if failed:
        return f"the ranks cannot run together: {'; '.join(failed)}"
    first, *others = found
    for other in others:
        ours, theirs = first["tests"], other["tests"]
        if ours == theirs:
            continue
        place = first_other([ours, theirs])
        here, there = (tests[place] if place < len(tests) else "no more tests" for tests in (ours, theirs))
        return (
            f"expected the same tests on all ranks, found {len(ours)} on {first['name']} and {len(theirs)} on "
            f"{other['name']}; the first that differ are {here} and {there}"
        )
    return ""
