"""pytest hooks. Loaded in every pytest run, so nothing heavy is imported before the first gate."""

from __future__ import annotations

import copy
import os
import sys
from collections.abc import Generator
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from jaxgate.plugin import (
    accelerators,
    benchmarks,
    deadline,
    ending,
    options,
    peaks,
    plan,
    ranks,
    recorder,
    replay,
    sizing,
    starting,
    trimming,
    workers,
)
from jaxgate.plugin.guards import at_most_bytes, no_retrace, no_transfer  # noqa: F401 - fixtures
from jaxgate.plugin.settling import ORPHANS, nothing_judged, settle
from jaxgate.plugin.starting import RUN, SETTINGS, STDERR, SUSPECT, TESTS, Tests
from jaxgate.plugin.updating import Update

if TYPE_CHECKING:
    from jaxgate.plugin.gate import Gate

_HELD = pytest.StashKey[dict[str, list[pytest.TestReport]]]()
_OUTCOME = pytest.StashKey[Any]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare ``--perf-*``."""
    options.add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Read the options, and keep a way to the terminal that capture does not close."""
    config.stash[SETTINGS] = options.read_settings(config)
    if config.stash[SETTINGS].against_env:
        from jaxgate.plugin.environments import parse  # noqa: PLC0415 - rarely needed

        parse(config.stash[SETTINGS].against_env, config.invocation_params.dir)  # a typing error shows at once
    if config.stash[SETTINGS].against:
        from jaxgate.plugin import against  # noqa: PLC0415 - rarely needed

        commit = against.resolve(config.rootpath, config.stash[SETTINGS].against)
        config.stash[SETTINGS] = replace(config.stash[SETTINGS], against=commit)
    if config.stash[SETTINGS].plan:
        config.pluginmanager.register(plan.Planner(config.stash[SETTINGS].baselines), "jaxgate-plan")
    if config.stash[SETTINGS].record_times:
        config.pluginmanager.register(recorder.Recorder(), "jaxgate-recorder")
    if config.stash[SETTINGS].peak:
        config.pluginmanager.register(peaks.Peaks(), "jaxgate-peaks")
    ranks.configure(config)
    config.stash[TESTS] = Tests()
    if config.stash[SETTINGS].update is Update.TRIM:
        config.pluginmanager.register(trimming.Trimmer(), "jaxgate-trim")
    limit = sizing.read_limit(config)
    if workers.is_worker(config):
        worker = workers.Worker(config)
        config.pluginmanager.register(worker, "jaxgate-worker")
        limit = worker.what_is_left_of(limit)
    elif workers.is_controller(config):
        config.pluginmanager.register(workers.Controller(config), "jaxgate-controller")
    if limit is not None and not config.option.collectonly:
        config.pluginmanager.register(deadline.Deadline(config, limit, _end_unfinished), deadline.NAME)
    with suppress(AttributeError, OSError, ValueError):  # no stderr: progress stays silent
        config.stash[STDERR] = os.dup(sys.__stderr__.fileno())  # type: ignore[union-attr]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int | None:
    """One worker for each accelerator, where there are any; else what pytest-xdist thinks of the processors."""
    return len(accelerators.found()) or None


def pytest_unconfigure(config: pytest.Config) -> None:
    """Close what was kept."""
    descriptor = config.stash.get(STDERR, None)
    if descriptor is not None:
        del config.stash[STDERR]
        os.close(descriptor)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Note all tests before any is deselected, and prepare those that gate."""
    for item in items:
        config.stash[TESTS].collected.add(item.nodeid)
        if "gate" in getattr(item, "fixturenames", ()):
            config.stash[TESTS].gates.add(item.nodeid)
            replay.install(item)


@pytest.fixture
def gate(request: pytest.FixtureRequest, benchmark: Any) -> Gate:
    """Gate a case or a function: ``gate(case)`` or ``gate(function, *args, donate="state")``."""
    why_not = workers.why_not_here(request.config)
    if why_not:
        pytest.fail(f"{request.node.nodeid} is not judged in this worker: {why_not}", pytrace=False)
    from jaxgate.plugin.gate import Gate  # noqa: PLC0415 - imports JAX

    if workers.is_worker(request.config):
        benchmarks.switch_on(benchmark, request.config)

    return ranks.own_gate(request, benchmark) or Gate(request.node, benchmark, starting.run(request.config))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test that asked for the gate and passed without calling it; hold back one that waits for confirmation."""
    report = yield
    if call.when == "setup" or item.nodeid not in item.config.stash[TESTS].gates or report.failed:
        return report
    held = item.config.stash.setdefault(_HELD, {})
    if call.when == "teardown":
        if item.nodeid in held:  # the end of a test that is not over: junit would close it, as passed
            held[item.nodeid].append(copy.copy(report))
            report.when = report.outcome = SUSPECT  # type: ignore[assignment]
        return report
    gate_object = getattr(item, "funcargs", {}).get("gate")
    if report.passed and gate_object is not None and not gate_object.used:
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} passed without calling gate(...): nothing was measured"
    run = item.config.stash.get(RUN, None)
    if run is not None and item.nodeid in run.suspects:
        held[item.nodeid] = [copy.copy(report)]
        report.outcome = SUSPECT  # type: ignore[assignment]
    elif report.passed and gate_object is not None and gate_object.verdict is not None:
        from jaxgate.plugin.expecting import tell_expected  # noqa: PLC0415 - imports what only gates need

        tell_expected(report, gate_object.verdict)
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
    run = session.config.stash.get(RUN, None)
    if run is not None and run.suspects:
        from jaxgate.plugin.waiting import repeat_suspects  # noqa: PLC0415 - imports JAX

        held = session.config.stash.setdefault(_HELD, {})
        repeat_suspects(session.config, run, held)
    return result


def pytest_collection_finish(session: pytest.Session) -> None:
    """Note which gates were selected: each must be judged, or be seen not to have been; read what is waived."""
    config = session.config
    selected = {item.nodeid for item in session.items if item.nodeid in config.stash[TESTS].gates}
    if selected and not config.option.collectonly:
        starting.read_waivers(config)
    config.stash[TESTS].selected = selected


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Settle how the run ends, then write that down for others; a worker leaves both to its controller."""
    config = session.config
    if workers.is_worker(config):
        return
    settle(session, exitstatus)
    _publish(session)


def _publish(session: pytest.Session) -> None:
    """Write down what the run came to, if it judged or recorded."""
    config = session.config
    run = config.stash.get(RUN, None)
    settings = config.stash[SETTINGS]
    if run is None or run.calibrated or settings.other_side or settings.as_measured or settings.peak_into:
        return
    from jaxgate.plugin import publishing  # noqa: PLC0415 - imports what only gates need

    try:
        config.stash[_OUTCOME] = publishing.publish(
            run,
            config.stash.get(ORPHANS, None),
            selected=config.stash[TESTS].selected,
            exit_status=int(session.exitstatus),
        )
    except Exception as error:  # noqa: BLE001 - the run was judged, and its own summary is still to come
        run.captures.problems.append(f"what the run came to could not be written down: {type(error).__name__}: {error}")


def _end_unfinished(session: pytest.Session) -> None:
    """Write down what was judged and recorded of a run that is about to be ended from outside its tests."""
    session.exitstatus = pytest.ExitCode.INTERRUPTED
    controller = session.config.pluginmanager.get_plugin("jaxgate-controller")
    run = session.config.stash.get(RUN, None)
    if controller is not None and run is not None:
        controller.settle(run)
    if workers.is_worker(session.config):
        return
    try:
        if run is not None:
            run.write_log()
            ending.tidy_baselines(run)
    finally:
        _publish(session)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Show one line for each case, then what is wrong with the baselines, then what was not judged."""
    run = config.stash.get(RUN, None)
    if run is not None:
        from jaxgate.plugin import terminal  # noqa: PLC0415 - imports what only gates need

        terminal.show(terminalreporter, run, config.stash.get(ORPHANS, None), config.invocation_params.dir)
        if run.calibrated:
            return
    if _OUTCOME in config.stash:
        from jaxgate.plugin.publishing import workflow_commands  # noqa: PLC0415

        for command in workflow_commands(config.stash[_OUTCOME]):
            terminalreporter.ensure_newline()
            terminalreporter.write_line(command)
    selected = len(config.stash[TESTS].selected)
    missing = selected - (len(run.verdicts) if run is not None else 0)
    if missing > 0 and not config.option.collectonly and config.stash[SETTINGS].runs_tests:
        strict = config.stash[SETTINGS].strict and nothing_judged(config)
        verb = "was" if missing == 1 else "were"
        why = "; no gate was judged, and that is not green here" if strict else ""
        terminalreporter.ensure_newline()
        terminalreporter.write_line(
            f"jaxgate: {missing} of {selected} gates {verb} not judged{why}", yellow=not strict, red=strict
        )
