"""pytest-xdist: what a worker sends with the reports of its tests, and what the controller makes of it.

The controller's run then knows what one process would know, so that everything that is shown and written at the end
is shown and written once, from there.
"""

from __future__ import annotations

import base64
import pickle
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest

from jaxgate.plugin import benchmark_rows
from jaxgate.plugin.gating import begin, gating_run
from jaxgate.plugin.stash import MADE_FROM, OTHER_SIDE, SESSION, SETTINGS, SUSPECT, TESTS, OtherSide, Tests, is_worker
from jaxgate.plugin.xdist import devices

if TYPE_CHECKING:
    from jaxgate.engine.run.session import GateSession

KEY = "jaxgate"
"""The key of what the controller gives a worker, and of what it gets back at its end."""
_NEWS = "jaxgate_news"
"""The attribute of a report that holds a worker's news."""
_MIXED_UP = {"each": "runs every test several times", "loadgroup": "renames tests, and baselines with them"}


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSetup:
    """What the controller gives each worker."""

    run: str  # names the run: all its workers write into one folder
    began: float  # when it began, in seconds of the clock that all processes share
    workers: int  # how many there are
    # folder of what the other revision recorded, and what failed there; `None` without one
    other_side: OtherSide | None = None
    # the project's own options, which pytest-xdist hands on in another way than on a command line
    options: tuple[str, ...] = ()
    made_from: Any = None  # provenance of what is recorded: taken before the first worker writes a file
    # environment variables that leave a worker the one accelerator that is its own
    accelerator: dict[str, str] = field(default_factory=dict)
    why_not: str = ""  # why no gate can be judged in this worker: it has no accelerator, or tests are mixed up


_RESULT = (
    *("verdicts", "unfinished", "left_out", "costs", "new_programs", "changed_programs", "dates", "other_lines"),
    "accused",
)
_EVIDENCE = ("taken", "left", "problems", "scalars", "profiled")
"""What a ``SessionResult`` and the evidence have that each worker adds to: lists, mappings and numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionDelta:
    """What a worker found since it last reported."""

    result: Mapping[str, Any]  # `_RESULT` of its result
    evidence: Mapping[str, Any]  # `_EVIDENCE` of its evidence
    tests: Mapping[str, str]  # which test has which case
    notes: Sequence[str]  # about calibrations that cannot be used
    rows: Sequence[Any]  # pytest-benchmark's


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerMessage:
    """What a worker sends: which tests there are, once, and its news; at its end also the reports that waited."""

    tests: Tests | None = None
    delta: SessionDelta | None = None
    reports: tuple[dict[str, Any], ...] = ()


def is_controller(config: pytest.Config) -> bool:
    """Whether other processes run the tests of this one."""
    return not is_worker(config) and config.getoption("dist", "no") != "no" and not config.option.collectonly


def why_not_here(config: pytest.Config) -> str:
    """Why a gate cannot be judged in this worker; empty if it can."""
    worker = config.pluginmanager.get_plugin("jaxgate-worker")
    return "" if worker is None else worker.given.why_not


class Worker:
    """The side that runs tests.

    Attributes:
        given: What the controller gave.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._tracker: DeltaTracker | None = None
        self._late: list[dict[str, Any]] = []
        self._introduced = False
        self.given: WorkerSetup = unpack(config.workerinput[KEY])  # type: ignore[attr-defined]  # pytest-xdist adds it
        settings = config.stash[SETTINGS]
        share = None if settings.budget_s is None else settings.budget_s / self.given.workers
        shared = replace(settings.artifacts, run=self.given.run)
        config.stash[SETTINGS] = replace(settings, budget_s=share, artifacts=shared, options=self.given.options)
        config.stash[OTHER_SIDE] = self.given.other_side
        config.stash[MADE_FROM] = self.given.made_from
        devices.pin(self.given.accelerator)

    def what_is_left_of(self, limit_s: float | None) -> float | None:
        """Seconds that are left of the run's limit: a worker that replaces another one begins late."""
        return None if limit_s is None else max(1.0, limit_s - (time.time() - self.given.began))

    def pytest_sessionstart(self) -> None:
        """Leave files to the controller."""
        benchmark_rows.leave_to_controller(self._config)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep pytest-benchmark from saying that it is switched off, where each benchmark is a gate's."""
        gates = self._config.stash[TESTS].gates
        others = [getattr(item, "fixturenames", ()) for item in items if item.nodeid not in gates]
        benchmark_rows.warn_only_of(any("benchmark" in names for names in others), self._config)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Send with the last report of each test what it brought."""
        if report.when == "teardown" or report.outcome == SUSPECT:
            setattr(report, _NEWS, self._message())

    def log_late(self, report: pytest.TestReport) -> None:
        """Keep the report of a test that is over only now: pytest-xdist takes those of the running test alone."""
        serialised = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._late.append(serialised)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Send the rest."""
        self._config.workeroutput[KEY] = self._message(tuple(self._late))  # type: ignore[attr-defined]  # pytest-xdist adds it

    def _message(self, reports: tuple[dict[str, Any], ...] = ()) -> str:
        session = self._config.stash.get(SESSION, None)
        if session is not None and self._tracker is None:
            self._tracker = DeltaTracker(self._config, session)
        delta = None if self._tracker is None else self._tracker.delta()
        tests = None if self._introduced else self._config.stash[TESTS]
        self._introduced = True
        return pack(WorkerMessage(tests=tests, delta=delta, reports=reports))


def _tell_in_one_line(report: pytest.TestReport) -> None:
    """Give a red test of a worker its first line again, which pytest does not send: its summary has the whole text without it."""
    if report.failed and isinstance(report.longrepr, str):
        from jaxgate.plugin.reports import RedText  # noqa: PLC0415 - what only red runs need

        report.longrepr = RedText(report.longrepr)  # type: ignore[assignment]  # pytest asks for no more than it has


class Controller:
    """The side that shows, writes and decides."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        settings = config.stash[SETTINGS]
        self._name = uuid.uuid4().hex
        self._began = time.time()
        config.stash[SETTINGS] = replace(settings, artifacts=replace(settings.artifacts, run=self._name))
        self._accelerators: list[dict[str, str]] | None = None
        self._nodes: dict[str, int] = {}
        self._waiting: dict[str, tuple[str, pytest.TestReport]] = {}
        self._crashed: dict[str, str] = {}
        self._order: dict[str, int] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """Do once, before a worker starts, what each of them would do."""
        if self._config.stash[SETTINGS].baselines.exists():  # its tests gate, though other processes collect them
            begin(self._config)
        run = gating_run(self._config)
        if run is not None:
            run.prepare_workers()

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Give a worker what it needs; one that replaces a dead one gets its accelerator."""
        if self._accelerators is None:
            self._accelerators = devices.found()
        mode = self._config.getoption("dist")
        mixed_up = f"--dist {mode} {_MIXED_UP[mode]}; run again with --dist load" if mode in _MIXED_UP else ""
        run = gating_run(self._config)
        own = devices.share_of(self._place_of(node), self._accelerators)
        given = WorkerSetup(
            run=self._name,
            began=self._began,
            workers=node.workerinput["workercount"],
            other_side=self._config.stash.get(OTHER_SIDE, None),
            options=self._config.stash[SETTINGS].options,
            made_from=None if run is None else run.made_from(),
            accelerator=own.variables,
            why_not=mixed_up or own.why_none,
        )
        node.workerinput[KEY] = pack(given)

    def _place_of(self, node: Any) -> int:
        """Which of the workers this is, from 0: a free place, so that no two share an accelerator."""
        taken = set(self._nodes.values())
        place = next(number for number in range(len(taken) + 1) if number not in taken)
        self._nodes[node.gateway.id] = place
        return place

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take what came with a report, and know which tests wait for confirmation."""
        self._read(vars(report).pop(_NEWS, None))
        node = getattr(report, "node", None)
        if report.outcome == SUSPECT and report.when == "call" and node is not None:
            self._waiting[report.nodeid] = (node.gateway.id, report)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        """Know in which order one process would have run the tests."""
        self._order = {test: number for number, test in enumerate(ids)}

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str, report: pytest.TestReport) -> None:
        """Note the case that a worker died of; its other ones go to its successor."""
        worker = getattr(report, "node", None)
        self._crashed[crashitem] = f"worker {worker.gateway.id if worker is not None else '?'} died while it ran"

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object | None) -> None:
        """Take the rest of a worker that is over; what waited in one that died is lost, and said to be."""
        self._nodes.pop(node.gateway.id, None)
        message = self._read((getattr(node, "workeroutput", None) or {}).get(KEY))
        for data in message.reports if message is not None else ():
            report = self._config.hook.pytest_report_from_serializable(config=self._config, data=data)
            report.node = node
            if report.when == "call":
                _tell_in_one_line(report)
                self._config.hook.pytest_runtest_logstart(nodeid=report.nodeid, location=report.location)
                self._waiting.pop(report.nodeid, None)
            self._config.hook.pytest_runtest_logreport(report=report)
        for test, (worker, report) in list(self._waiting.items()):
            if worker == node.gateway.id:
                del self._waiting[test]
                self._lose(test, report, f"worker {worker} died before it could be confirmed: {error or 'no reason'}")

    def settle(self, session: GateSession) -> None:
        """Judge INVALID the cases that workers died of, now that it is known which tests gate; bring all in order."""
        result = session.result
        judged = {result.tests.get(verdict.case) for verdict in result.verdicts}
        for test, why in self._crashed.items():
            if test in self._config.stash[TESTS].gates and test not in judged:
                begin(self._config).lose(test, why)
        last = len(self._order)
        result.verdicts.sort(key=lambda verdict: self._order.get(result.tests.get(verdict.case, ""), last))

    def _lose(self, test: str, report: pytest.TestReport, why: str) -> None:
        vars(report).pop("wasxfail", None)
        report.outcome = "failed"
        report.longrepr = f"INVALID  {test}: {why}"
        begin(self._config).lose(test, why)
        self._config.hook.pytest_runtest_logreport(report=report)

    def _read(self, text: str | None) -> WorkerMessage | None:
        if text is None:
            return None
        message: WorkerMessage = unpack(text)
        if message.tests is not None:
            self._config.stash[TESTS].add(message.tests)
            if message.tests.gates:
                begin(self._config)
        if message.delta is not None:
            absorb(begin(self._config).session(), self._config, message.delta)
        return message


class DeltaTracker:
    """Gives what a worker found and did not report before."""

    def __init__(self, config: pytest.Config, session: GateSession) -> None:
        self._config = config
        self._session = session
        self._reported: dict[str, Any] = {}
        self._waiting: list[Any] = []
        self._rows = 0

    def delta(self) -> SessionDelta:
        """What was found since the last call. The row of a case that waits for confirmation waits with it."""
        result, evidence = self._session.result, self._session.evidence
        rows = [*self._waiting, *benchmark_rows.rows_since(self._config, self._rows)]
        self._rows += len(rows) - len(self._waiting)
        self._waiting = [row for row in rows if row.extra_info.get("case") in result.provisional]
        return SessionDelta(
            result={name: self._new(name, getattr(result, name)) for name in _RESULT},
            evidence={name: self._new(name, getattr(evidence, name)) for name in _EVIDENCE},
            tests=self._new("tests", result.tests),
            notes=self._new("notes", self._session.margins.notes),
            rows=[row for row in rows if row.extra_info.get("case") not in result.provisional],
        )

    def _new(self, name: str, found: Any) -> Any:
        """What is new of a list, of a mapping by its keys, or of a number."""
        before = self._reported.get(name, 0)
        if isinstance(found, dict):
            known = before or frozenset()
            self._reported[name] = frozenset(found)
            return {key: value for key, value in found.items() if key not in known}
        if isinstance(found, list):
            self._reported[name] = len(found)
            return found[before:]
        self._reported[name] = found
        return found - before


def absorb(session: GateSession, config: pytest.Config, delta: SessionDelta) -> None:
    """Add what a worker found to the controller's run."""
    result, notes = session.result, session.margins.notes
    for name, new in delta.result.items():
        known = getattr(result, name)
        if isinstance(known, dict):
            known.update(new)
        elif isinstance(known, list):
            known.extend(new)
        else:
            setattr(result, name, known + new)
    for case, test in delta.tests.items():
        result.add_name(case, test)
    session.evidence.add(**delta.evidence)
    notes += [note for note in delta.notes if note not in notes]
    benchmark_rows.add_rows(config, list(delta.rows))


def pack(value: object) -> str:
    """Anything of ours as text, for the way from a worker to its controller and nowhere else."""
    return base64.b64encode(pickle.dumps(value)).decode()


def unpack(text: str) -> Any:
    """What was packed: it comes from a process of this very run, never from a file."""
    return pickle.loads(base64.b64decode(text))  # noqa: S301 - as the docstring says
