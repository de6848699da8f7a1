"""pytest hooks. Loaded in every pytest run: JAX, NumPy and pydantic are not imported before the first gate."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from jaxgate.engine.result_files import workflow_commands
from jaxgate.model import RunKind, UsageError
from jaxgate.plugin import benchmark_rows, reports, session_end, session_start, terminal, time_limit
from jaxgate.plugin.console import Console
from jaxgate.plugin.distributed import plugin
from jaxgate.plugin.guard_fixtures import at_most_bytes, no_retrace, no_transfer  # noqa: F401 - fixtures
from jaxgate.plugin.modes.peak import Peaks
from jaxgate.plugin.modes.plan import Plan
from jaxgate.plugin.modes.record_times import TimesRecorder
from jaxgate.plugin.modes.trim import Trimmer
from jaxgate.plugin.options.settings import pass_on_size, read_settings
from jaxgate.plugin.options.table import add_options
from jaxgate.plugin.session_start import SESSION, SETTINGS, STDERR, SUSPECT, TESTS, Tests
from jaxgate.plugin.xdist import devices, nodes
from jaxgate.processes.environment_spec import parse_environment
from jaxgate.processes.git_revision import resolve_revision

if TYPE_CHECKING:
    from jaxgate.plugin.gate import Gate

_MODES = {RunKind.PLAN: Plan, RunKind.PEAK: Peaks, RunKind.RECORD_TIMES: TimesRecorder, RunKind.TRIM: Trimmer}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare ``--perf-*``."""
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Read the options, and keep a way to the terminal that capture does not close."""
    settings = read_settings(config)
    pass_on_size(config)
    try:
        if settings.against_env:  # a typing error shows at once
            parse_environment(settings.against_env, config.invocation_params.dir)
        if settings.against:
            settings = replace(settings, against=resolve_revision(config.rootpath, settings.against))
    except UsageError as error:  # as pytest ends for a bad option: one line, exit code 4
        raise pytest.UsageError(str(error)) from error
    config.stash[SETTINGS] = settings
    config.stash[TESTS] = Tests()
    if settings.kind in _MODES:
        config.pluginmanager.register(_MODES[settings.kind](), f"jaxgate-{settings.kind}")
    plugin.configure(config)
    limit = settings.time_limit_s
    if nodes.is_worker(config):
        worker = nodes.Worker(config)
        config.pluginmanager.register(worker, "jaxgate-worker")
        limit = worker.what_is_left_of(limit)
    elif nodes.is_controller(config):
        config.pluginmanager.register(nodes.Controller(config), "jaxgate-controller")
    if limit is not None and not config.option.collectonly:
        config.pluginmanager.register(
            time_limit.Deadline(config, limit, session_end.finish_unfinished), time_limit.NAME
        )
    with suppress(AttributeError, OSError, ValueError):  # no stderr: progress stays silent
        config.stash[STDERR] = os.dup(sys.__stderr__.fileno())  # type: ignore[union-attr]  # suppressed above where there is none


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
    if "gate" in getattr(item, "fixturenames", ()):
        item.config.stash[TESTS].gates.add(item.nodeid)
        benchmark_rows.install(item)


@pytest.fixture
def gate(request: pytest.FixtureRequest, benchmark: Any) -> Gate:
    """Gate a case or a function: ``gate(case)`` or ``gate(function, *args, donate="state")``."""
    why_not = nodes.why_not_here(request.config)
    if why_not:
        pytest.fail(f"{request.node.nodeid} is not judged in this worker: {why_not}", pytrace=False)
    from jaxgate.plugin.gate import Gate  # noqa: PLC0415 - imports JAX

    if nodes.is_worker(request.config):
        benchmark_rows.switch_on(benchmark, request.config)

    return plugin.own_gate(request, benchmark) or Gate(
        request.node, benchmark, session_start.gate_session(request.config)
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Make the report of a test that gates say what came of its gate."""
    report = yield
    if call.when != "setup" and item.nodeid in item.config.stash[TESTS].gates and not report.failed:
        reports.adapt(item, call, report)
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
    gates = session.config.stash.get(SESSION, None)
    if gates is not None and gates.result.provisional:
        reports.confirm_held(session.config, gates)
    return result


def pytest_collection_finish(session: pytest.Session) -> None:
    """Note which gates were selected: each must be judged, or be seen not to have been; read what is waived."""
    config = session.config
    selected = {item.nodeid for item in session.items if item.nodeid in config.stash[TESTS].gates}
    if selected and not config.option.collectonly:
        session_start.read_waivers(config)
    config.stash[TESTS].selected = selected


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """End the run and write down what it came to; a worker leaves both to its controller."""
    if not nodes.is_worker(session.config):
        session_end.finish(session, exitstatus)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Show one line for each case, then what is wrong with the baselines, then what was not judged."""
    out = Console(terminalreporter)
    gates = config.stash.get(SESSION, None)
    if gates is not None:
        terminal.show(out, gates, config.stash.get(session_end.ENDING, None), config.invocation_params.dir)
        if gates.result.calibrated:
            return
    if session_end.OUTCOME in config.stash:
        for command in workflow_commands(config.stash[session_end.OUTCOME]):
            out.ensure_newline()
            out.write_line(command)
    selected = len(config.stash[TESTS].selected)
    missing = selected - (len(gates.result.verdicts) if gates is not None else 0)
    if missing > 0 and not config.option.collectonly and config.stash[SETTINGS].runs_tests:
        strict = config.stash[SETTINGS].strict and session_end.nothing_judged(config)
        verb = "was" if missing == 1 else "were"
        why = "; no gate was judged, and that is not green here" if strict else ""
        out.ensure_newline()
        out.write_line(f"jaxgate: {missing} of {selected} gates {verb} not judged{why}", yellow=not strict, red=strict)
