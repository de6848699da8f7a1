"""``--perf-distributed``: the same pytest command on each process of a job, in lock-step, judged by rank 0."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from jaxgate.ext.ranks.barrier import BrokenRanksError, RankBarrier, enter, first
from jaxgate.ext.ranks.lost import RankEnding, end_process, give_up
from jaxgate.ext.ranks.peers import AbsentRankError, first_other
from jaxgate.plugin import time_limit
from jaxgate.plugin.console import Console
from jaxgate.plugin.gating import begin
from jaxgate.plugin.gating_run import give_devices, progress_terminal
from jaxgate.plugin.options.table import DISTRIBUTED
from jaxgate.plugin.stash import SETTINGS, TESTS
from jaxgate.settings import RankSettings

if TYPE_CHECKING:
    from jaxgate.engine.run.session import GateSession
    from jaxgate.plugin.gate import Gate

RANKS = pytest.StashKey["Ranks"]()


def configure(config: pytest.Config) -> None:
    """Make this process a rank, if it was asked to be one."""
    settings = config.stash[SETTINGS].ranks
    if settings is not None and not config.option.collectonly:
        config.pluginmanager.register(Ranks(config, settings), "jaxgate-ranks")


def own_gate(request: pytest.FixtureRequest, benchmark: Any) -> Gate | None:
    """The gate of a rank; ``None`` in a run of one process."""
    ranks = request.config.stash.get(RANKS, None)
    return None if ranks is None else ranks.gate(request, benchmark)


class Ranks:
    """Registered for a process that is one of several."""

    def __init__(self, config: pytest.Config, settings: RankSettings) -> None:
        self._config, self._settings = config, settings
        self._station: RankBarrier | None = None
        self._session: pytest.Session | None = None
        self._ending: RankEnding | None = None
        self._gates: GateSession | None = None
        self._notes: list[str] = []
        config.stash[RANKS] = self

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Join the job: before the tests are imported, which may touch devices."""
        from jaxgate.ext.ranks.again import end_with_parent  # noqa: PLC0415 - imports JAX
        from jaxgate.ext.ranks.job import NotJoinedError  # noqa: PLC0415 - imports JAX

        self._session = session
        settings = self._settings
        give_devices(self._config)
        if self._config.stash[SETTINGS].other_side:
            end_with_parent()
        timer = threading.Timer(settings.timeout_s, give_up, (self._config, settings))
        timer.daemon = True
        timer.start()
        try:
            where = settings.coordinator, settings.count, settings.rank
            self._station = enter(*where, limit_s=settings.timeout_s, timeout_s=settings.timeout_s)
        except (NotJoinedError, AbsentRankError) as error:
            self._config.add_cleanup(
                lambda: end_process(self._config, 1)
            )  # JAX would wait for the others at its own end
            pytest.exit(f"{DISTRIBUTED.flag}: {error}", returncode=1)
        finally:
            timer.cancel()
        limit = self._config.pluginmanager.get_plugin(time_limit.NAME)
        if limit is not None and self._station.rank:
            limit.stand_down()  # all would stop, each behind another test: rank 0 notifies the others
        self._ending = RankEnding(self._config, session, self._station)
        self._station.on_broken = self._ending.end_if_stuck
        self._config.add_cleanup(self._station.stop)
        self._config.add_cleanup(self._ending.end_if_broken)
        self._station.start()

    def pytest_report_header(self) -> str:
        """Say which rank this is."""
        station = self._station
        return "" if station is None else f"jaxgate: {station.name} of {station.count}"

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self) -> None:
        """Only rank 0 has to have judged what was selected."""
        if self._station is not None and self._station.rank:
            self._config.stash[TESTS].selected = set()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Compare the tests of all ranks before the first one runs."""
        station = self._station
        if station is None:
            return
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
        if self._ending is not None and self._station is not None:
            self._ending.item = item
            self._station.doing = f"{item.nodeid} ran"
            self._station.sign()

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self) -> None:
        """No further test once the job is broken."""
        if self._station is not None and self._session is not None and self._station.broken:
            self._session.shouldfail = self._station.broken

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """After its last test rank 0 may take its time: it confirms what was slower in fresh processes."""
        session, station = self._session, self._station
        if session is None or station is None or station.rank:
            return
        station.alone = bool(session.shouldfail or session.shouldstop or nodeid == session.items[-1].nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Wait for the others to be through with their tests; one that failed only there fails here too."""
        station = self._station
        if station is None or station.over or station.broken:
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
        if station is None or station.over or station.broken:
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
        if station is None:
            return
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
        if station is None:
            raise pytest.UsageError(f"{DISTRIBUTED.flag}: this process has not joined the others")
        if station.rank == 0:
            return LeadingGate(request.node, benchmark, begin(self._config).session(), station)
        if self._gates is None:  # writes nothing, remembers nothing
            settings = replace(self._config.stash[SETTINGS], as_measured=True)
            self._gates = GateSession(settings, self._config.rootpath, terminal=progress_terminal(self._config))
        return FollowingGate(request.node, benchmark, self._gates, station)

    def _meet(self, what: str, value: Any, decide: Any, *, ends: bool = True) -> Any:
        """Meet outside a gate; a broken job ends the session there and then, or is noted where it ends anyway."""
        if self._station is None:
            return None
        try:
            return self._station.meet(what, value, decide)
        except BrokenRanksError as error:
            if ends:
                pytest.exit(error.reason, returncode=1)
            if self._session is not None:
                self._session.exitstatus = pytest.ExitCode.TESTS_FAILED
            return None


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
