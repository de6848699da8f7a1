"""Tests that were slower in this process, and whose reports wait until fresh processes have confirmed it or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from jaxgate.plugin.confirm import confirm, duelled, too_many
from jaxgate.plugin.expecting import tell_expected
from jaxgate.plugin.progress import CONFIRMING
from jaxgate.plugin.run import Run
from jaxgate.report.properties import properties
from jaxgate.report.text import explain


def repeat_suspects(config: pytest.Config, run: Run, held: Mapping[str, list[pytest.TestReport]]) -> None:
    """Repeat the slow-downs of a run, and report the tests that waited.

    Args:
        config: pytest's.
        run: The run, its last test over.
        held: The reports of each test that waits; one that is red already has none.
    """
    suspects = sum(duelled(suspect) for suspect in run.suspects.values())
    machine = too_many(suspects, len(run.verdicts) + len(run.suspects))
    for test in list(run.suspects):
        suspect = run.suspects.pop(test)  # with its arrays
        with run.progress(suspect.verdict.case) as progress:
            progress(CONFIRMING)
            verdict = confirm(suspect, machine=machine)
            try:
                verdict = suspect.capture(verdict, progress)
            finally:  # Ctrl-C: the verdict is final all the same
                run.verdicts.append(verdict)
        del suspect
        if test not in held:  # it failed for another reason, and is red already
            continue
        for report in held[test]:
            report.user_properties += properties(verdict)
        report = held[test][0]
        if verdict.fails:
            report.outcome = "failed"
            report.longrepr = explain(verdict, test=test, elsewhere=run.settings.elsewhere)
            vars(report).pop("wasxfail", None)
            run.accused += verdict.accuses_machine
        elif report.passed:
            tell_expected(report, verdict)
        _log(config, held[test])


def _log(config: pytest.Config, reports: Sequence[pytest.TestReport]) -> None:
    """Report a test that is over only now."""
    worker = config.pluginmanager.get_plugin("jaxgate-worker")
    if worker is None:
        config.hook.pytest_runtest_logstart(nodeid=reports[0].nodeid, location=reports[0].location)
    for report in reports:
        if worker is None:
            config.hook.pytest_runtest_logreport(report=report)
        else:
            worker.log_late(report)
