"""The hooks of a run that gates. ``hooks.py`` calls them, so that they keep their place among the hooks of other plugins."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from jaxgate.ext import parts
from jaxgate.judge.verdict import judge_invalid
from jaxgate.keep.programs import open_programs
from jaxgate.model.baseline import Provenance
from jaxgate.model.measurement import InvalidCaseError
from jaxgate.model.outcome import UsageError
from jaxgate.model.workload import namesakes
from jaxgate.plugin import reports, session_end, session_start, terminal
from jaxgate.plugin.console import Console
from jaxgate.plugin.stash import SESSION, SETTINGS, TESTS
from jaxgate.processes.worktree import resolve_revision
from jaxgate.settings import RunKind

if TYPE_CHECKING:
    from jaxgate.engine.run.session import GateSession
    from jaxgate.plugin.gate import Gate
    from jaxgate.plugin.modes.base import InsteadOfTests


def _instead_of_tests(kind: RunKind) -> InsteadOfTests | None:
    """What runs in place of the tests in this kind of run, if anything; only that is imported."""
    if kind is RunKind.PLAN:
        from jaxgate.plugin.modes.plan import Plan  # noqa: PLC0415 - what one kind of run needs

        return Plan()
    if kind is RunKind.TRIM:
        from jaxgate.plugin.modes.trim import Trimmer  # noqa: PLC0415 - likewise

        return Trimmer()
    if kind in (RunKind.RECORD_TIMES, RunKind.UPGRADE):
        mode: InsteadOfTests = next(part.MODES[kind]() for part in parts("mode") if kind in part.MODES)
        return mode
    return None


class GatingRun:
    """Registers what the kind of run needs, and hands each hook over to one module.

    Raises:
        pytest.UsageError: If what an option names is not there.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        settings = config.stash[SETTINGS]
        try:
            if items := settings.against_env or settings.upgrade:
                from jaxgate.ext.upgrade.environment import parse_environment  # noqa: PLC0415 - what few runs need

                with session_start.prefixed(settings.kind.flag):  # a typing error shows at once
                    parse_environment(items, config.invocation_params.dir, may_make=bool(settings.upgrade))
            open_programs(settings.baselines, settings.programs)  # so does a wrong address
            if settings.against:
                settings = replace(settings, against=resolve_revision(config.rootpath, settings.against))
        except UsageError as error:  # as pytest ends for a bad option: one line, exit code 4
            raise pytest.UsageError(str(error)) from error
        config.stash[SETTINGS] = settings
        if (mode := _instead_of_tests(settings.kind)) is not None:
            config.pluginmanager.register(mode, f"jaxgate-{settings.kind}")
        self._plugins = list(parts("plugin"))
        for capability in self._plugins:
            capability.configure(config)

    def session(self) -> GateSession:
        """The engine's session, opened at the first gate that runs."""
        return session_start.gate_session(self._config)

    def prepare_workers(self) -> None:
        """Do once, before a worker starts, what each of them would do."""
        session_start.read_stored(self._config)
        session_start.record_other_side(self._config)

    def made_from(self) -> Provenance | None:
        """Where a recording comes from; ``None`` if none is recorded."""
        return session_start.made_from(self._config)

    def select(self, tests: set[str]) -> None:
        """Note which gates are among the tests that run, and which of their files share a name; read what is waived."""
        selected = tests & self._config.stash[TESTS].gates
        if selected and not self._config.option.collectonly:
            session_start.read_stored(self._config)
        self._config.stash[TESTS].selected = selected
        settings = self._config.stash[SETTINGS]
        files = settings.namesakes | namesakes(self._config.stash[TESTS].gates)
        self._config.stash[SETTINGS] = replace(settings, namesakes=files)

    def gate(self, request: pytest.FixtureRequest, benchmark: Any) -> Gate:
        """The gate of a test."""
        from jaxgate.plugin.gate import Gate  # noqa: PLC0415 - imports JAX

        own = (one.own_gate(request, benchmark) for one in self._plugins if hasattr(one, "own_gate"))
        return next(filter(None, own), None) or Gate(request.node, benchmark, self.session())

    def adapt(self, item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
        """Make the report of a test that gates say what came of its gate."""
        if call.when == "setup" or item.nodeid not in self._config.stash[TESTS].gates:
            return
        if report.failed:
            reports.shorten_summary(report)
        reports.adapt(item, call, report)

    def confirm(self) -> None:
        """Repeat slow-downs in fresh processes, and report the tests that waited."""
        gates = self._config.stash.get(SESSION, None)
        if gates is not None and gates.result.provisional:
            reports.confirm_held(self._config, gates)

    def lose(self, test: str, why: str) -> None:
        """Judge INVALID the cases of a test whose worker died, but those that were judged before."""
        session = self.session()
        result = session.result
        judged = {verdict.case for verdict in result.verdicts}
        known = [case for case, owner in result.tests.items() if owner == test]
        for case in [case for case in known if case not in judged] or ["/".join(session.names.of(test, None))]:
            result.add_name(case, test)
            result.verdicts.append(judge_invalid(case, InvalidCaseError("running it in a worker", why)))

    def finish(self, session: pytest.Session, exitstatus: int) -> None:
        """End the run and write down what it came to."""
        session_end.finish(session, exitstatus)
        gates = self._config.stash.get(SESSION, None)
        if gates is not None:
            reports.leave_to_pages(self._config, gates.result.verdicts)

    def finish_unfinished(self, session: pytest.Session) -> None:
        """Write down what was judged, from outside the tests."""
        session_end.finish_unfinished(session)

    def summarise(self, out: pytest.TerminalReporter) -> None:
        """Show what the run came to."""
        terminal.summarise(Console(out), self._config)
        for capability in parts("terminal"):
            capability.show(Console(out), self._config)
