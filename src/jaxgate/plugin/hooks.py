"""pytest hooks, the entry point. Every run of pytest loads this: what gates need comes with the first of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from jaxgate.observe.machine import process  # noqa: F401 - sees what there is before the first conftest runs
from jaxgate.plugin import benchmark_rows, time_limit
from jaxgate.plugin.gating import begin, gating_run
from jaxgate.plugin.options.command_line import STARTED, CommandLine
from jaxgate.plugin.options.settings import begins_at_once, pass_on, read_settings
from jaxgate.plugin.options.table import WATCH, add_options
from jaxgate.plugin.stash import GATE, SETTINGS, STDERR, SUSPECT, TESTS, Tests, is_worker
from jaxgate.plugin.xdist import devices, nodes

if TYPE_CHECKING:
    from jaxgate.ext.loop.gate import GateLoop
    from jaxgate.ext.start.gate import GateStart
    from jaxgate.observe import guards
    from jaxgate.plugin.gate import Gate


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare ``--perf-*``."""
    add_options(parser)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser
) -> Generator[None, object, object]:
    """Note how the run was started, before a conftest changes that; which options are the project's own shows after."""
    line = CommandLine(parser, early_config.invocation_params.args)
    result = yield
    early_config.stash[STARTED] = line.read()
    return result


def pytest_configure(config: pytest.Config) -> None:
    """Read the options, and keep a way to the terminal that capture does not close."""
    settings = config.stash[SETTINGS] = read_settings(config)
    pass_on(config)
    config.stash[TESTS] = Tests()
    config.addinivalue_line(
        "markers", "perf: takes the fixture `gate` of jaxgate, which marks it; leave out by -m 'not perf'"
    )
    if begins_at_once(config, settings):
        begin(config)
    limit = settings.time_limit_s
    if is_worker(config):
        worker = nodes.Worker(config)
        config.pluginmanager.register(worker, "jaxgate-worker")
        limit = worker.what_is_left_of(limit)
    elif nodes.is_controller(config):
        config.pluginmanager.register(nodes.Controller(config), "jaxgate-controller")
    if limit is not None and not config.option.collectonly:
        config.pluginmanager.register(time_limit.Deadline(config, limit, _finish_unfinished), time_limit.NAME)
    if mode := WATCH.read(config, os.environ):
        from jaxgate.ext.watch.watcher import Watcher  # noqa: PLC0415 - imports JAX

        config.pluginmanager.register(Watcher(config, mode), "jaxgate-watcher")
    with suppress(AttributeError, OSError, ValueError):  # no stderr: progress stays silent
        config.stash[STDERR] = os.dup(sys.__stderr__.fileno())  # type: ignore[union-attr]  # suppressed above where there is none


def _finish_unfinished(session: pytest.Session) -> None:
    run = gating_run(session.config)
    if run is not None:
        run.finish_unfinished(session)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int | None:
    """One worker for each accelerator, where there are any; else what pytest-xdist thinks of the processors."""
    return len(devices.found()) or None


def pytest_unconfigure(config: pytest.Config) -> None:
    """Close what was kept."""
    descriptor = config.stash.get(STDERR, None)
    if descriptor is not None:
        del config.stash[STDERR]
        os.close(descriptor)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Note each test before any plugin can deselect it, and prepare those that gate."""
    item.config.stash[TESTS].collected.add(item.nodeid)
    if takes_gate(item):
        item.config.stash[TESTS].gates.add(item.nodeid)
        item.add_marker("perf")
        begin(item.config)
        benchmark_rows.install(item)


def takes_gate(item: pytest.Item) -> bool:
    """Whether a test takes a fixture of ours that gates: a project may give a fixture or parameter of its own the same name.

    Which fixtures a name stands for has no public interface: ``tests/plugin/test_foreign_fixtures.py`` fails when it moves.
    """
    known = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {})
    for fixture in reversed(known.get("gate", ())):
        if fixture.func.__module__ == __name__:
            return True
        if "gate" not in fixture.argnames:  # else it stands before another of its name, and asks for that
            break
    return False


@pytest.fixture
def gate(request: pytest.FixtureRequest) -> Gate:
    """Gate a case or a function: ``gate(case)`` or ``gate(function, *args, donate="state")``."""
    item, config = request.node, request.config
    why_not = nodes.why_not_here(config) or benchmark_rows.why_not_here(config)
    if why_not:
        pytest.fail(f"{item.nodeid} is not judged: {why_not}", pytrace=False)
    config.stash[TESTS].gates.add(item.nodeid)
    benchmark_rows.install(item)
    benchmark = request.getfixturevalue("benchmark")
    if is_worker(config):
        benchmark_rows.switch_on(benchmark, config)
    if GATE not in item.stash:
        item.stash[GATE] = begin(config).gate(request, benchmark)
    own: Gate = item.stash[GATE]
    return own


@pytest.fixture
def gate_loop(gate: Gate) -> GateLoop:
    """Gate a training loop with its data, log, save and restore: ``gate_loop(make_state, batches, step, ...)``."""
    from jaxgate.ext.loop.gate import GateLoop  # noqa: PLC0415 - imports JAX

    return GateLoop(gate)


@pytest.fixture
def gate_start(gate: Gate) -> GateStart:
    """Gate the start of a job, up to its first result, with an empty compile cache and with a full one: ``gate_start(start)``."""
    from jaxgate.ext.start.gate import GateStart  # noqa: PLC0415 - imports JAX

    return GateStart(gate)


@pytest.fixture
def no_retrace() -> type[guards.no_retrace]:
    """``jaxgate.no_retrace``: a block that must neither trace nor compile."""
    from jaxgate.observe import guards  # noqa: PLC0415 - imports JAX

    return guards.no_retrace


@pytest.fixture
def no_transfer() -> type[guards.no_transfer]:
    """``jaxgate.no_transfer``: a block that must not move anything implicitly."""
    from jaxgate.observe import guards  # noqa: PLC0415 - imports JAX

    return guards.no_transfer


@pytest.fixture
def at_most_bytes() -> type[guards.at_most_bytes]:
    """``jaxgate.at_most_bytes``: a block that may leave so many bytes of arrays behind."""
    from jaxgate.observe import guards  # noqa: PLC0415 - imports JAX

    return guards.at_most_bytes


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Forget the gate of a test that runs again."""
    if GATE in item.stash:
        del item.stash[GATE]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Let a test that gates fail at its end, for whatever its gates found."""
    result, error = None, None
    try:
        result = yield
    except BaseException as raised:  # noqa: BLE001 - raised again below: what is raised in here would be chained to it
        error = raised
    if GATE in item.stash:
        item.stash[GATE].end_test(error)
    if error is not None:
        raise error
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Make the report of a test that gates say what came of its gate."""
    report = yield
    run = gating_run(item.config)
    if run is not None:
        run.adapt(item, call, report)
    return report


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    """Show a test that waits for confirmation as what it is."""
    if report.outcome != SUSPECT:
        return None
    return ("", "?", "SUSPECT") if report.when == "call" else ("", "", "")


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    """After the last test, repeat slow-downs in fresh processes, and report the tests that waited."""
    result = yield
    run = gating_run(session.config)
    if run is not None:
        run.confirm()
    return result


def pytest_collection_finish(session: pytest.Session) -> None:
    """Note which gates were selected: each must be judged, or be seen not to have been; read what is waived."""
    run = gating_run(session.config)
    if run is not None:
        run.select({item.nodeid for item in session.items})


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """End the run and write down what it came to; a worker leaves both to its controller."""
    run = gating_run(session.config)
    if run is not None and not is_worker(session.config):
        run.finish(session, exitstatus)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> Generator[None, Any, Any]:
    """Show what was judged below the tables of other plugins, which gate nothing; also where one of them raises."""
    benchmark_rows.keep_narrow(config, config.stash[TESTS].gates)
    try:
        return (yield)
    finally:
        run = gating_run(config)
        if run is not None:
            run.summarise(terminalreporter)
