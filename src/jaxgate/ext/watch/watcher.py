"""pytest's hooks of ``--perf-watch``: record each test, hand it on, report, judge."""

from __future__ import annotations

import time
from collections.abc import Collection, Generator
from contextlib import ExitStack
from typing import Any

import pytest
from pydantic import TypeAdapter

from jaxgate.ext.watch.gates import FILE, call_here, gates_of
from jaxgate.ext.watch.judge import UPDATE, Change, changes, new_tests
from jaxgate.ext.watch.kept import NAME, read_lock, short_arguments, write_lock
from jaxgate.ext.watch.model import IMPORT, Lock, Seen, lock_of, merged
from jaxgate.ext.watch.recorder import Recorder
from jaxgate.ext.watch.text import report
from jaxgate.keep.files import write_atomic
from jaxgate.model.outcome import UsageError
from jaxgate.model.words import plural
from jaxgate.plugin.stash import SETTINGS, TESTS, is_worker
from jaxgate.plugin.xdist import nodes
from jaxgate.settings import Watch

_FROM_WORKER = "jaxgate-watch"
_SEEN: TypeAdapter[Seen] = TypeAdapter(Seen)
_MOST = 20
"""Changes that are told one by one."""


class Watcher:
    """Watches a run.

    Raises:
        pytest.UsageError: If the lock file cannot be read, a file is to be written by several processes, or the gates are there.
    """

    def __init__(self, config: pytest.Config, mode: Watch) -> None:
        self._config, self._mode = config, mode
        self._file = config.rootpath / NAME
        self._seen: list[Seen] = []
        self._changes: list[Change] = []
        self._told: list[str] = []
        self._recorder: Recorder | None = None
        self._begun: float | None = None  # when the attempt began that runs
        self._known: Lock | None = None
        try:
            self._known = read_lock(self._file) if mode in (Watch.JUDGE, Watch.UPDATE) else None
        except UsageError as error:
            if mode is Watch.JUDGE:
                raise pytest.UsageError(str(error)) from error
        writes = mode in (Watch.UPDATE, Watch.GATES)
        if writes and config.getoption("--perf-watch") is None:
            raise pytest.UsageError(
                f"perf_watch: expected judge or report, found {mode}: a run that writes is asked for with --perf-watch={mode}"
            )
        if mode is Watch.GATES and (config.rootpath / FILE).exists():
            raise pytest.UsageError(f"expected no {FILE}, which is to be written, found one: move it away")
        if nodes.is_controller(config):
            if writes:
                raise pytest.UsageError(
                    f"expected one process with --perf-watch={mode}, found pytest-xdist's workers: leave out -n"
                )
            return
        stack = ExitStack()
        look = call_here if mode is Watch.GATES else None
        self._recorder = stack.enter_context(Recorder(short_arguments, look))
        config.add_cleanup(stack.close)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self) -> None:
        """Leave out what modules compile while they are imported: it is no test's."""
        if self._recorder is not None:
            self._recorder.test(IMPORT, 0.0)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Record a test; one that gates compiles for its gate, and is judged by that."""
        self._begun = None
        result = yield
        self._end_attempt(item)
        return result

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """A test that is run again, as a plug-in for flaky ones does, is recorded again."""
        self._end_attempt(item)
        self._begun = time.perf_counter()

    def _end_attempt(self, item: pytest.Item) -> None:
        if self._recorder is not None and self._begun is not None:
            gates = item.get_closest_marker("perf") is not None
            self._recorder.test(item.nodeid, time.perf_counter() - self._begun, keep=not gates)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take over what a worker saw."""
        said = getattr(node, "workeroutput", {}).get(_FROM_WORKER)
        if said is not None:
            self._seen.append(_SEEN.validate_json(said))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Hand on what a worker saw; else write or judge."""
        if self._recorder is not None:
            seen = self._recorder.end()
            if is_worker(self._config):
                output: dict[str, Any] = self._config.workeroutput  # type: ignore[attr-defined]  # pytest-xdist's
                output[_FROM_WORKER] = _SEEN.dump_json(seen).decode()
                return
            self._seen.append(seen)
        self._seen = [one for one in self._seen if one.tests]
        if not self._seen or self._mode is Watch.REPORT:
            return
        if self._mode is Watch.UPDATE:
            self._write(self._seen[0])
        elif self._mode is Watch.GATES:
            self._propose()
        else:
            self._judge(strict=self._config.stash[SETTINGS].strict)
        if self._changes and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _judge(self, *, strict: bool) -> None:
        if self._known is None:
            missing = f"nothing is judged: there is no {NAME}"
            if strict:
                self._changes = [Change(missing, f"write and commit it: {UPDATE}; --perf-watch=report needs none")]
            else:
                self._told.append(f"{missing}; {UPDATE} writes it")
            return
        self._changes = list(changes(self._known, self._seen, strict=strict))
        if new := new_tests(self._known, self._seen):
            self._told.append(f"{plural(len(new), 'test is', 'tests are')} new: {UPDATE} adds what they compile")
        hardware = self._seen[0].hardware
        if self._known.hardware != hardware:
            self._told.append(f"recorded on {self._known.hardware}: what programs need is not compared on {hardware}")

    def _write(self, seen: Seen) -> None:
        lock = lock_of(seen)
        if self._known is not None:
            lock = merged(self._known, lock, self._gone(self._known.tests, seen.tests))
        write_lock(self._file, lock)
        self._told.append(
            f"{NAME}: {plural(len(lock.programs), 'program')} of {plural(len(lock.tests), 'test')}; commit it"
        )

    def _propose(self) -> None:
        assert self._recorder is not None, "gates are written by one process"
        text, told = gates_of(self._recorder.calls)
        self._told.append(told)
        if text:
            (self._config.rootpath / FILE).parent.mkdir(exist_ok=True)
            write_atomic(self._config.rootpath / FILE, text.encode())
            self._told.append(f"next: pytest {FILE} --perf-update")

    def _gone(self, known: Collection[str], ran: Collection[str]) -> list[str]:
        """Known tests that are no more: of a file that is gone, or was collected whole without them."""
        collected = self._config.stash[TESTS].collected
        files = (
            set() if any("::" in arg for arg in self._config.args) else {test.partition("::")[0] for test in collected}
        )
        return [
            test
            for test in known
            if test not in ran
            and test not in collected
            and (test.partition("::")[0] in files or not (self._config.rootpath / test.partition("::")[0]).exists())
        ]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show the report, and what is worse than known."""
        out = terminalreporter
        if not self._seen:
            return
        out.section("jaxgate watched the tests")
        for line in [*report(self._seen), *self._told]:
            out.write_line(line)
        if any(one.jit_is_off for one in self._seen):
            out.write_line("jit is switched off (jax_disable_jit): nothing is compiled", yellow=True)
        for change in self._changes[:_MOST]:
            out.write_line(f"REGRESSED  {change.text}", red=True)
            if change.cause:
                out.write_line(f"           {change.cause}")
        if len(self._changes) > _MOST:
            out.write_line(f"… {len(self._changes) - _MOST} more", red=True)
        if self._changes:
            out.write_line(f"accept: {UPDATE}")
