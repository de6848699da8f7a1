"""pytest hooks. Loaded in every pytest run, so nothing heavy is imported before the first gate."""

from __future__ import annotations

import copy
import os
import sys
from collections.abc import Generator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from jaxgate.plugin import ending, options, peaks, plan, ranks, recorder, replay, starting
from jaxgate.plugin.guards import at_most_bytes, no_retrace, no_transfer  # noqa: F401 - fixtures
from jaxgate.plugin.starting import RUN, SELECTED, SETTINGS, STDERR
from jaxgate.plugin.worktree import NOT_FROM, ONLY_FROM, refuse_installed_copies, refuse_modules_from

if TYPE_CHECKING:
    from jaxgate.plugin.gate import Gate

_COLLECTED = pytest.StashKey[set[str]]()
_GATES = pytest.StashKey[set[str]]()
_HELD = pytest.StashKey[dict[str, list[pytest.TestReport]]]()
_ORPHANS = pytest.StashKey[Any]()
_OUTCOME = pytest.StashKey[Any]()

SUSPECT = "suspect"
"""Outcome of a test that was slower in this process and waits for the others."""

XDIST_REFUSED = (
    "jaxgate does not measure under pytest-xdist yet: pytest-benchmark switches itself off in its workers, and "
    "cases would disturb each other.\nRun again without -n (or with -n 0)."
)


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
    config.stash[_COLLECTED] = set()
    config.stash[_GATES] = set()
    with suppress(AttributeError, OSError, ValueError):  # no stderr: progress stays silent
        config.stash[STDERR] = os.dup(sys.__stderr__.fileno())  # type: ignore[union-attr]


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
        config.stash[_COLLECTED].add(item.nodeid)
        if "gate" in getattr(item, "fixturenames", ()):
            config.stash[_GATES].add(item.nodeid)
            replay.install(item)


@pytest.fixture
def gate(request: pytest.FixtureRequest, benchmark: Any) -> Gate:
    """Gate a case or a function: ``gate(case)`` or ``gate(function, *args, donate="state")``."""
    if hasattr(request.config, "workerinput"):
        pytest.fail(XDIST_REFUSED, pytrace=False)
    from jaxgate.plugin.gate import Gate  # noqa: PLC0415 - imports JAX

    return ranks.own_gate(request, benchmark) or Gate(request.node, benchmark, starting.run(request.config))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test that asked for the gate and passed without calling it; hold back one that waits for confirmation."""
    report = yield
    if call.when == "setup" or item.nodeid not in item.config.stash[_GATES] or report.failed:
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
    if run is None or not run.suspects:
        return result
    from jaxgate.plugin.confirm import confirm, duelled, too_many  # noqa: PLC0415 - imports JAX
    from jaxgate.plugin.expecting import tell_expected  # noqa: PLC0415
    from jaxgate.plugin.progress import Progress  # noqa: PLC0415
    from jaxgate.report.text import explain  # noqa: PLC0415

    held = session.config.stash.get(_HELD, {})
    suspects = sum(duelled(suspect) for suspect in run.suspects.values())
    machine = too_many(suspects, len(run.verdicts) + len(run.suspects))
    for test in list(run.suspects):
        suspect = run.suspects.pop(test)  # with its arrays
        with Progress(run.stderr, suspect.verdict.case) as progress:
            progress("measuring it again in fresh processes")
            verdict = confirm(suspect, machine=machine)
            try:
                verdict = suspect.capture(verdict, progress)
            finally:  # Ctrl-C: the verdict is final all the same
                run.verdicts.append(verdict)
        del suspect
        if test not in held:  # it failed for another reason, and is red already
            continue
        report = held[test][0]
        if verdict.fails:
            report.outcome = "failed"
            report.longrepr = explain(verdict, test=test, elsewhere=run.settings.elsewhere)
            vars(report).pop("wasxfail", None)
            run.accused += verdict.accuses_machine
        elif report.passed:
            tell_expected(report, verdict)
        session.config.hook.pytest_runtest_logstart(nodeid=test, location=report.location)
        for report in held[test]:
            session.config.hook.pytest_runtest_logreport(report=report)
    return result


def pytest_collection_finish(session: pytest.Session) -> None:
    """Note which gates were selected: each must be judged, or be seen not to have been; read what is waived."""
    config = session.config
    selected = {item.nodeid for item in session.items if item.nodeid in config.stash[_GATES]}
    if selected and not config.option.collectonly:
        starting.read_waivers(config)
    config.stash[SELECTED] = selected


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Settle how the run ends, then write that down for others."""
    _settle(session, exitstatus)
    config = session.config
    run = config.stash.get(RUN, None)
    settings = config.stash[SETTINGS]
    if run is None or run.calibrated or settings.update or settings.as_measured or settings.peak_into:
        return
    from jaxgate.plugin import publishing  # noqa: PLC0415 - imports what only gates need

    try:
        config.stash[_OUTCOME] = publishing.publish(
            run,
            config.stash.get(_ORPHANS, None),
            selected=config.stash.get(SELECTED, set()),
            exit_status=int(session.exitstatus),
        )
    except Exception as error:  # noqa: BLE001 - the run was judged, and its own summary is still to come
        run.captures.problems.append(f"what the run came to could not be written down: {type(error).__name__}: {error}")


def _settle(session: pytest.Session, exitstatus: int) -> None:
    """Write the log of a recording, look for orphans, and refuse to be green where nothing was judged."""
    config = session.config
    run = config.stash.get(RUN, None)
    foreign = os.environ.get(NOT_FROM)
    if foreign:
        refuse_modules_from(Path(foreign))
        refuse_installed_copies(Path(os.environ[ONLY_FROM]))
    if run is not None:
        run.write_log()
        ending.adopt_baselines(run)
        run.captures.finish()
        run.calibrated.finish(run.project, run.floors)
        plan.remember(config, run.costs)
    if config.getoption("--perf-strict") and exitstatus == pytest.ExitCode.INTERRUPTED and session.testsfailed:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED  # 2 is for a machine that is unfit, not for broken imports
    over = exitstatus in (pytest.ExitCode.INTERRUPTED, pytest.ExitCode.USAGE_ERROR)
    if over or config.option.collectonly or not config.stash[SETTINGS].runs_tests:
        return
    strict = config.stash[SETTINGS].strict
    failed = False
    if run is not None:
        from jaxgate.plugin.orphans import find_orphans  # noqa: PLC0415 - imports what only gates need

        orphans = find_orphans(run, config.stash[_COLLECTED], _whole_roots(config))
        config.stash[_ORPHANS] = orphans
        gates, roots = config.stash[_GATES], _whole_roots(config)
        ending.find_idle_waivers(config, run, collected=config.stash[_COLLECTED], gates=gates, roots=roots)
        failed = bool(orphans.unreadable) or (strict and bool(orphans) and not config.stash[SETTINGS].against)
    if strict and _nothing_judged(config):
        failed = True
    if failed and exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    elif run is not None and not failed:
        ending.end_as_unfit(session, exitstatus, run)


def _nothing_judged(config: pytest.Config) -> bool:
    """Whether gates were selected and none gave a verdict, without the user having asked for that."""
    run = config.stash.get(RUN, None)
    judged = run is not None and bool(run.verdicts or run.calibrated)
    return bool(config.stash.get(SELECTED, set())) and not judged and not config.getoption("benchmark_skip", False)


def _whole_roots(config: pytest.Config) -> list[str]:
    """The files and folders that were collected whole: arguments that name no single test."""
    if config.getoption("lf", default=False):
        return []  # it leaves out, while collecting, what passed the last time
    roots = []
    for argument in config.args:
        if "::" in argument or "[" in argument:
            continue
        path = (config.invocation_params.dir / argument).resolve()
        if path.is_relative_to(config.rootpath):
            roots.append(path.relative_to(config.rootpath).as_posix())
    return roots


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Show one line for each case, then what is wrong with the baselines, then what was not judged."""
    run = config.stash.get(RUN, None)
    if run is not None:
        from jaxgate.plugin import terminal  # noqa: PLC0415 - imports what only gates need

        terminal.show(terminalreporter, run, config.stash.get(_ORPHANS, None), config.invocation_params.dir)
        if run.calibrated:
            return
    if _OUTCOME in config.stash:
        from jaxgate.plugin.publishing import workflow_commands  # noqa: PLC0415

        for command in workflow_commands(config.stash[_OUTCOME]):
            terminalreporter.ensure_newline()
            terminalreporter.write_line(command)
    selected = len(config.stash.get(SELECTED, set()))
    missing = selected - (len(run.verdicts) if run is not None else 0)
    if missing > 0 and not config.option.collectonly and config.stash[SETTINGS].runs_tests:
        strict = config.stash[SETTINGS].strict and _nothing_judged(config)
        verb = "was" if missing == 1 else "were"
        why = "; no gate was judged, and that is not green here" if strict else ""
        terminalreporter.ensure_newline()
        terminalreporter.write_line(
            f"jaxgate: {missing} of {selected} gates {verb} not judged{why}", yellow=not strict, red=strict
        )
