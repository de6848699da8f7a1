"""A run that gates: what its kind needs, the engine's session at its first gate, and what it does at each hook.

``hooks.py`` calls it, so that its hooks keep their place among those of other plugins. Before the first gate a run of pytest
pays nothing for being able to gate.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from jaxgate.engine.run.progress import Progress
from jaxgate.ext import parts
from jaxgate.ext.history.drift import DriftStart
from jaxgate.ext.targets.model import Target
from jaxgate.judge.verdict import judge_invalid
from jaxgate.keep.git import read_provenance
from jaxgate.keep.programs import open_programs
from jaxgate.keep.waivers import WaiverError, read_drift_starts, read_waivers
from jaxgate.model.baseline import Provenance
from jaxgate.model.measurement import InvalidCaseError
from jaxgate.model.outcome import UsageError
from jaxgate.model.waiver import Waiver
from jaxgate.model.workload import namesakes
from jaxgate.plugin import reports, session_end, terminal
from jaxgate.plugin.console import Console
from jaxgate.plugin.modes.plan import recall
from jaxgate.plugin.options.table import AGAINST, TARGET
from jaxgate.plugin.stash import (
    INSTRUMENTS,
    MADE_FROM,
    OTHER_SIDE,
    SESSION,
    SETTINGS,
    STDERR,
    TESTS,
    OtherSide,
    is_worker,
)
from jaxgate.processes.pytest_child import Selection, child_environment, naming
from jaxgate.processes.worktree import record_revision, resolve_revision
from jaxgate.report.printable import printable_line
from jaxgate.settings import RunKind

if TYPE_CHECKING:
    from jaxgate.engine.instruments import Instruments
    from jaxgate.engine.run.session import GateSession
    from jaxgate.ext.upgrade.environment_runs import Comparison
    from jaxgate.plugin.gate import Gate
    from jaxgate.plugin.modes.base import InsteadOfTests


class GatingRun:
    """What the run of pytest with this ``config`` does because it gates.

    Raises:
        pytest.UsageError: If what an option names is not there.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._waivers: tuple[Waiver, ...] = ()
        self._drift_starts: tuple[DriftStart, ...] = ()
        settings = config.stash[SETTINGS]
        try:
            if items := settings.against_env or settings.upgrade:
                from jaxgate.ext.upgrade.environment import parse_environment  # noqa: PLC0415 - what few runs need

                with prefixed(settings.kind.flag):  # a typing error shows at once
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

    def prepare_workers(self) -> None:
        """Do once, before a worker starts, what each of them would do."""
        self._read_stored()
        self._record_other_side()

    def made_from(self) -> Provenance | None:
        """Where a recording comes from, before the first process of this run writes a file; ``None`` if none is recorded."""
        if not self._config.stash[SETTINGS].update:
            return None
        if MADE_FROM not in self._config.stash:
            self._config.stash[MADE_FROM] = read_provenance(self._config.rootpath)
        return self._config.stash[MADE_FROM]

    def select(self, tests: set[str]) -> None:
        """Note which gates are among the tests that run, and which of their files share a name; read what is waived."""
        stash = self._config.stash
        selected = tests & stash[TESTS].gates
        if selected and not self._config.option.collectonly:
            self._read_stored()
        stash[TESTS].selected = selected
        files = stash[SETTINGS].namesakes | namesakes(stash[TESTS].gates)
        stash[SETTINGS] = replace(stash[SETTINGS], namesakes=files)

    def _read_stored(self) -> None:
        """Read the target and the waivers before the first test, so that one set serves all cases."""
        settings = self._config.stash[SETTINGS]
        if settings.target:
            try:
                Target.parse(settings.target)
            except ValueError as error:
                raise pytest.UsageError(f"{TARGET.flag}: {error}") from error
        try:
            found = read_waivers(settings.baselines)
            self._drift_starts = read_drift_starts(settings.baselines)
        except WaiverError as error:
            raise pytest.UsageError(printable_line(str(error))) from error
        self._waivers = tuple(waiver for waiver in found if waiver.covers(version("jax")))

    def gate(self, request: pytest.FixtureRequest, benchmark: Any) -> Gate:
        """The gate of a test."""
        from jaxgate.plugin.gate import Gate  # noqa: PLC0415 - imports JAX

        own = (one.own_gate(request, benchmark) for one in self._plugins if hasattr(one, "own_gate"))
        return next(filter(None, own), None) or Gate(request.node, benchmark, self.session())

    def session(self) -> GateSession:
        """The engine's session, opened at the first gate that runs; the other side of a comparison is recorded then."""
        config, stash = self._config, self._config.stash
        if SESSION in stash:
            return stash[SESSION]
        from jaxgate.engine.run.session import GateSession  # noqa: PLC0415 - imports JAX
        from jaxgate.ext.targets.topology import NoTargetError  # noqa: PLC0415 - likewise

        cache = getattr(config, "cache", None)  # absent with -p no:cacheprovider
        folder = None if cache is None else Path(cache.mkdir("jaxgate"))
        target = Target.parse(stash[SETTINGS].target) if stash[SETTINGS].target else None
        give_devices(config, target)
        comparison = _environments(config, folder) if stash[SETTINGS].against_env else None
        self._record_other_side()
        other = stash.get(OTHER_SIDE, None)
        if other is not None:
            stash[SETTINGS] = replace(stash[SETTINGS], baselines=other.folder)
        session = GateSession(
            stash[SETTINGS],
            config.rootpath,
            cache=folder,
            terminal=progress_terminal(config),
            waits=stash.get(STDERR, None),
            instruments=stash.get(INSTRUMENTS, None),
            comparison=comparison,
            waivers=self._waivers,
            drift_starts=self._drift_starts,
            failed_there={} if other is None else other.failed,
            known_provenance=stash.get(MADE_FROM, None),
            selected=stash[TESTS].selected,
            costs=recall(config),
            target=target,
        )
        config.add_cleanup(session.opinions.close)
        config.add_cleanup(session.compilers.close)
        try:
            session.compiler  # noqa: B018 - starts its process, which ends with the run
        except NoTargetError as error:  # it is not installed
            _run_no_test(config, str(error))
        stash[SESSION] = session
        return session

    def _record_other_side(self) -> None:
        """Record the other revision if there is one and it is not recorded yet; before this process takes a device."""
        config, settings = self._config, self._config.stash[SETTINGS]
        if not settings.against or OTHER_SIDE in config.stash:
            return
        with _recording_or_no_test(config, settings.against[:10]) as (into, progress):
            progress("recording it for comparison")
            failed = record_revision(
                config.rootpath,
                settings.against,
                selection(config),
                into,
                environ=child_environment(settings) | naming(settings),
                record=given_instruments(config).record_other,
            )
        config.stash[OTHER_SIDE] = OtherSide(into, failed)

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


def given_instruments(config: pytest.Config) -> Instruments:
    """What a run looks at the world with: the real things, unless a test gave others."""
    from jaxgate.engine.instruments import Instruments  # noqa: PLC0415 - what only gates need

    return config.stash.get(INSTRUMENTS, None) or Instruments()


def _run_no_test(config: pytest.Config, why: str) -> NoReturn:
    """End the run; a worker of pytest-xdist must not end in the middle of a test, so there each test that gates fails."""
    if is_worker(config):
        raise pytest.fail.Exception(why, pytrace=False) from None
    pytest.exit(why, returncode=pytest.ExitCode.USAGE_ERROR)


def give_devices(config: pytest.Config, target: Target | None = None) -> None:
    """Divide the CPU before anything touches a device; where that is too late, no test is run.

    CPU devices stand for those of a target, and no other platform is looked for.
    """
    count = config.stash[SETTINGS].cpu_devices
    if target is not None:
        count = max(count or 1, target.devices)
    if count is None or config.pluginmanager.hasplugin("jaxgate-controller"):
        return  # a controller of workers touches no device
    from jaxgate.observe.machine.virtual_devices import DevicesChosenError, give_cpu_devices  # noqa: PLC0415 - imports JAX

    try:
        give_cpu_devices(count, alone=target is not None)
    except DevicesChosenError as error:
        _run_no_test(config, str(error))


def progress_terminal(config: pytest.Config) -> int | None:
    """A descriptor for progress; none where pytest is to be quiet."""
    return None if config.get_verbosity() < 0 else config.stash.get(STDERR, None)


def _environments(config: pytest.Config, cache: Path | None) -> Comparison:
    """Record both environments, before this process takes a device."""
    from jaxgate.ext.upgrade.environment import LAUNCHES, parse_environment  # noqa: PLC0415 - what few runs need
    from jaxgate.ext.upgrade.environment_runs import run_environments  # noqa: PLC0415 - likewise

    settings = config.stash[SETTINGS]
    with _recording_or_no_test(config, AGAINST.flag) as (into, progress), prefixed(AGAINST.flag):
        return run_environments(
            config.rootpath,
            parse_environment(settings.against_env, config.invocation_params.dir),
            selection(config),
            other=" ".join(settings.against_env),
            count=1 if config.getoption("benchmark_disable", False) else LAUNCHES,
            into=into,
            cache=(cache or into) / "environments",
            progress=progress,
            here=child_environment(settings) | naming(settings),
            record=given_instruments(config).record_other,
        )


@contextmanager
def prefixed(option: str) -> Iterator[None]:
    """Begin the text of what was asked for wrongly with the option that asked for it."""
    try:
        yield
    except UsageError as error:
        text = str(error)
        raise UsageError(text if text.startswith(option) else f"{option}: {text}") from None


@contextmanager
def recording(config: pytest.Config, what: str) -> Iterator[tuple[Path, Progress]]:
    """A folder for what other processes record, and progress."""
    folder = tempfile.TemporaryDirectory(prefix="jaxgate-")
    config.add_cleanup(folder.cleanup)
    with Progress(progress_terminal(config), what) as progress:
        yield Path(folder.name), progress


@contextmanager
def _recording_or_no_test(config: pytest.Config, what: str) -> Iterator[tuple[Path, Progress]]:
    """Give the folder and progress; an error of the processes is printed once, in one line, and no test is run."""
    try:
        with recording(config, what) as found:
            yield found
    except (UsageError, OSError) as error:
        _run_no_test(config, str(error))


def selection(config: pytest.Config) -> Selection:
    """The paths and expressions of the command line, for another process that runs the same tests."""
    paths = []
    for argument in config.args:
        file, separator, rest = argument.partition("::")
        path = (config.invocation_params.dir / file).resolve()
        if path.is_relative_to(config.rootpath):
            paths.append(path.relative_to(config.rootpath).as_posix() + separator + rest)
    return Selection(tuple(paths), config.option.keyword, config.option.markexpr)
