"""``--perf-update=times``: the times of the selected cases from fresh processes, stored on quiet hardware.

This process runs no test and takes no device: it looks at the machine, lets one process after the other record
the selection into a folder of its own, and stores what they measured of programs that are the accepted ones.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from jaxgate.ext.times.judge import stored_limit, unlike_accepted
from jaxgate.ext.times.kept import TimesStore
from jaxgate.ext.times.model import StoredTimes, TimedSession
from jaxgate.ext.times.text import RecordingOutcome, RecordingRow
from jaxgate.keep.baselines import BaselineStore, baseline_files, read_baseline
from jaxgate.keep.git import read_provenance
from jaxgate.keep.strict import CorruptBaselineError
from jaxgate.model.baseline import Baseline, Provenance
from jaxgate.model.machine import HardwareKey
from jaxgate.model.measurement import NOT_CALLED, SHARED_CORES
from jaxgate.observe.machine.load import MachineState, look, read_ticks
from jaxgate.processes.pytest_child import RecordSelection, Selection, Side, child_environment, naming, record_selection
from jaxgate.settings import AS_MEASURED, RunKind, Settings

SESSIONS = 10
"""Processes of a recording: with half as many the limit of the next one is a third wider."""
_OPTION = RunKind.RECORD_TIMES.flag
_RECORD_FIRST = "record that first: --perf-update"


class BusyMachineError(Exception):
    """The machine is not quiet; the text says what was seen."""


@dataclass(slots=True)
class TimeRecording:
    """One recording: what was looked at, and what came of each case."""

    settings: Settings  # what the user asked for
    project: Path  # root folder of the tests
    chosen: Selection  # which tests
    looks: list[MachineState] = field(default_factory=list)  # what each look at the machine saw, in order
    failed: dict[str, str] = field(default_factory=dict)  # what failed in the sessions, by test
    # the times of each case, after the last session that was stored
    kept: dict[tuple[str, str], tuple[StoredTimes, Baseline]] = field(default_factory=dict)
    refused: dict[tuple[str, str], str] = field(default_factory=dict)  # why a case was not stored
    sessions: int = 0  # how many were recorded
    wanted: int = field(default_factory=lambda: SESSIONS)  # how many are to be
    look: Callable[..., MachineState] = look  # looks whether the machine is quiet
    record: RecordSelection = record_selection  # records the tests in another process

    def run(self, hardware: HardwareKey, progress: Callable[[str], None]) -> None:
        """Record the sessions, each of them looked at.

        Raises:
            BusyMachineError: If the machine is busy or throttled; what was stored before stays.
            UsageError: If a session cannot be collected.
        """
        made_from = read_provenance(self.project)  # before the first file is written, which makes the checkout dirty
        first = self._look(hardware.platform)
        variables = child_environment(self.settings) | naming(self.settings)
        for number in range(1, self.wanted + 1):
            progress(f"session {number} of {self.wanted}")
            begin = read_ticks()
            with tempfile.TemporaryDirectory(prefix="jaxgate-") as name:
                into = Path(name)
                side = Side(self.project, {**variables, AS_MEASURED: "1"}, _OPTION)
                self.failed |= self.record(side, self.chosen, into)
                recorded = [read_baseline(path) for path in baseline_files(into)]
            seen = self._look(hardware.platform, after_work=True, since=begin)
            for baseline in recorded:
                self._keep(baseline, made_from, machine=f"before: {first}; after: {seen}")
            self.sessions += 1

    def _look(self, platform: str, **how: object) -> MachineState:
        seen = self.look(platform, **how)
        self.looks.append(seen)
        if seen.objections:
            raise BusyMachineError("; ".join(seen.objections))
        return seen

    def _keep(self, recorded: Baseline, made_from: Provenance, *, machine: str) -> None:
        """Store one session of one case, or note why not."""
        name = recorded.hardware.slug, recorded.case
        try:
            self.kept[name] = self._stored(recorded, made_from, machine)
        except CorruptBaselineError as error:
            self.refused[name] = f"{error.path.name} {error.reason}"
        except ValueError as error:
            self.refused[name] = str(error)

    def _stored(self, recorded: Baseline, made_from: Provenance, machine: str) -> tuple[StoredTimes, Baseline]:
        """The times of a case with this session, and the accepted baseline that they are of.

        Raises:
            ValueError: If it is no session of that, or has no time.
            CorruptBaselineError: If a file cannot be trusted.
        """
        if recorded.hardware.is_virtual:
            raise ValueError(SHARED_CORES)
        if recorded.samples is None:
            raise ValueError(NOT_CALLED)
        known = BaselineStore(self.settings.baselines, recorded.line).load(recorded.hardware, recorded.case)
        if known is None or not known.own:
            raise ValueError(f"it has no baseline on this hardware with this jax; {_RECORD_FIRST}")
        if why := unlike_accepted(recorded, known.baseline):
            raise ValueError(f"{why}; {_RECORD_FIRST}")
        session = TimedSession(
            provenance=made_from,
            run_ns=recorded.samples.run_ns,
            contract=recorded.samples.contract,
            fingerprints=known.baseline.fingerprints,
            environment=recorded.environment,
            machine=machine,
        )
        store = TimesStore(self.settings.baselines, recorded.line)
        return store.add(recorded.hardware, recorded.case, session), known.baseline

    @property
    def rows(self) -> list[RecordingRow]:
        """What came of each case, and of each test that failed."""
        found = [_kept_row(case, *self.kept[slug, case]) for slug, case in sorted(self.kept)]
        refused = [(case, why) for (_, case), why in sorted(self.refused.items())]
        refused += [(test, f"failed in a session: {why}") for test, why in sorted(self.failed.items())]
        found += [
            RecordingRow(outcome=RecordingOutcome.REFUSED, case=name, run_ns=None, text=why) for name, why in refused
        ]
        return found


def _kept_row(case: str, times: StoredTimes, accepted: Baseline) -> RecordingRow:
    limit = stored_limit([session for session in times.sessions if session.is_of(accepted)])
    last = times.sessions[-1].run_ns
    text = limit.why_not or f"{limit.described}, spread {limit.spread:.1%}, sees {limit.sees:.1%}"
    return RecordingRow(
        outcome=RecordingOutcome.NOISY if limit.is_noisy else RecordingOutcome.RECORDED,
        case=case,
        run_ns=last,
        text=text,
    )
