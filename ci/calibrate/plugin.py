"""The plugin of pytest that calibrates: each gate duels its case with itself, and nothing is judged or recorded."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from ci.calibrate.rates import CaseRates
from ci.calibrate.tables import tables
from jaxgate.keep.cache import FloorStore
from jaxgate.model.calibration import NoiseFloor
from jaxgate.model.machine import HardwareKey
from jaxgate.plugin import gating_run
from jaxgate.plugin.stash import SESSION, SETTINGS
from jaxgate.settings import RunKind

DUELS, INTO = 20, "build/calibration"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the two options."""
    group = parser.getgroup("calibrate", "calibration of jaxgate's gate")
    group.addoption("--duels", type=_count, default=DUELS, metavar="N", help="duels of each case with itself")
    group.addoption("--into", default=INTO, metavar="DIR", help="folder of the results, relative to the root folder")


def _count(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise pytest.UsageError(f"--duels: expected a number of duels, 1 or more, found {text!r}")
    return int(text)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Let the gates of this run calibrate.

    Raises:
        pytest.UsageError: If several processes would be timed at once.
    """
    if config.getoption("numprocesses", default=None):
        raise pytest.UsageError("a calibration runs one process after the other; drop -n")
    patch = pytest.MonkeyPatch()
    config.add_cleanup(patch.undo)
    patch.setattr(gating_run, "GatingRun", CalibratingRun)


@dataclass(slots=True)
class Calibration:
    """The cases of a calibration, as they come in."""

    cases: list[CaseRates] = field(default_factory=list)  # cases that came to an end
    # the versions and settings that each hardware was measured under
    environments: dict[HardwareKey, Mapping[str, str]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)  # cases that did not, with the reason

    def write(self, folder: Path, date: str) -> None:
        """Write ``calibration.json`` and ``calibration.md``."""
        environments = {key.slug: dict(found) for key, found in self.environments.items()}
        cases = [asdict(row) for row in self.cases]
        content = {"date": date, "environments": environments, "cases": cases, "failed": self.failed}
        where = [
            f"{slug}, jax {found.get('jax', '?')}, Python {found.get('python', '?')}"
            for slug, found in environments.items()
        ]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "calibration.json").write_text(json.dumps(content, indent=1) + "\n")
        text = "\n\n".join(["# Calibration", f"On {date}.", *where, tables(self.cases, self.failed)])
        (folder / "calibration.md").write_text(f"{text}\n")

    def keep_floors(self, store: FloorStore, date: str) -> None:
        """Keep the noise of the cases for later runs of this checkout."""
        for hardware, environment in self.environments.items():
            rows = [row for row in self.cases if row.hardware == hardware]
            floors = {row.case: NoiseFloor(floor=row.floor, duels=row.duels, date=date) for row in rows}
            store.save(hardware, environment, floors)


class CalibratingRun(gating_run.GatingRun):
    """A run whose gates calibrate; at its end it writes what they found.

    Raises:
        pytest.UsageError: If another kind of run was asked for, too, or hardware that is not there.
    """

    def __init__(self, config: pytest.Config) -> None:
        super().__init__(config)
        self._found, self._notes = Calibration(), list[str]()
        settings = config.stash[SETTINGS]
        if settings.kind is not RunKind.JUDGE or settings.ranks is not None or settings.target:
            raise pytest.UsageError(
                "a calibration calls the cases here and judges nothing; drop the other --perf- option"
            )
        config.stash[SETTINGS] = replace(settings, as_measured=True)  # leaves no bundle, empties no folder of them

    def gate(self, request: pytest.FixtureRequest, benchmark: Any) -> Any:
        """The gate of a test."""
        from ci.calibrate.gate import CalibratingGate  # noqa: PLC0415 - imports JAX

        duels = self._config.option.duels
        return CalibratingGate(request.node, benchmark, self.session(), found=self._found, duels=duels)

    def finish(self, session: pytest.Session, exitstatus: int) -> None:  # noqa: ARG002 - of all runs
        """Write what was found, and keep the floors; what cannot be written is a line, the results are shown all the same."""
        gates = self._config.stash.get(SESSION, None)
        if gates is None or not self._found.cases:
            return
        into, date = self._config.option.into, dt.datetime.now(dt.UTC).date().isoformat()
        try:
            self._found.write(self._config.rootpath / into, date)
            self._notes.append(f"Written to {into}: calibration.json, calibration.md.")
            self._found.keep_floors(gates.floors, date)
        except OSError as error:
            self._notes.append(f"Not all could be written: {error.filename}: {error.strerror or error}.")
        kept = "were not kept for later runs: pytest's cache is switched off"
        if gates.floors.folder is not None:
            kept = "are in pytest's cache; later runs of this checkout use them here"
        self._notes.append(f"The noise floors {kept}.")

    def finish_unfinished(self, session: pytest.Session) -> None:
        """Write what was found when a time limit is over."""
        self.finish(session, session.exitstatus)

    def summarise(self, out: pytest.TerminalReporter) -> None:
        """Show the tables."""
        if self._found.cases or self._found.failed:
            out.ensure_newline()
            out.section("jaxgate: calibration")
            for line in (*tables(self._found.cases, self._found.failed).splitlines(), *self._notes):
                out.write_line(line)
