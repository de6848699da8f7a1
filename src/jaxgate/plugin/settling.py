"""How a run ends: baselines without a test, a gate that did not gate, the exit code."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from jaxgate.plugin import ending, plan
from jaxgate.plugin.starting import RUN, SETTINGS, TESTS
from jaxgate.plugin.worktree import NOT_FROM, ONLY_FROM, refuse_installed_copies, refuse_modules_from

ORPHANS = pytest.StashKey[Any]()


def settle(session: pytest.Session, exitstatus: int) -> None:
    """Write the log of a recording, look for orphans, and refuse to be green where nothing was judged."""
    config = session.config
    run = config.stash.get(RUN, None)
    foreign = os.environ.get(NOT_FROM)
    if foreign:
        refuse_modules_from(Path(foreign))
        refuse_installed_copies(Path(os.environ[ONLY_FROM]))
    if run is not None:
        controller = config.pluginmanager.get_plugin("jaxgate-controller")
        if controller is not None:
            controller.settle(run)
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

        orphans = find_orphans(run, config.stash[TESTS].collected, _whole_roots(config))
        config.stash[ORPHANS] = orphans
        gates, roots = config.stash[TESTS].gates, _whole_roots(config)
        ending.find_idle_waivers(config, run, collected=config.stash[TESTS].collected, gates=gates, roots=roots)
        failed = bool(orphans.unreadable or run.clashes) or (
            strict and bool(orphans) and not config.stash[SETTINGS].against
        )
    if strict and nothing_judged(config):
        failed = True
    if failed and exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    elif run is not None and not failed:
        ending.end_as_unfit(session, exitstatus, run)


def nothing_judged(config: pytest.Config) -> bool:
    """Whether gates were selected and none gave a verdict, without the user having asked for that."""
    run = config.stash.get(RUN, None)
    judged = run is not None and bool(run.verdicts or run.calibrated)
    return bool(config.stash[TESTS].selected) and not judged and not config.getoption("benchmark_skip", False)


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
