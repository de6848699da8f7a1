"""What is left of a calibration when the run is over: results for people, and noise floors for later runs."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from jaxgate.judge import rate_bound
from jaxgate.keep import FloorStore, write_calibration
from jaxgate.model import CALIBRATION_SCHEMA, Calibration, CaseCalibration, HardwareKey, NoiseFloor
from jaxgate.report import calibration_markdown, draw


@dataclass(slots=True)
class Calibrated:
    """The cases of a calibration, as they come in.

    Attributes:
        cases: Those that came to an end.
        environments: What each hardware was measured under.
        failed: Those that did not, with the reason.
        notes: What became of the results, a line each.
    """

    cases: list[CaseCalibration] = field(default_factory=list)
    environments: dict[HardwareKey, Mapping[str, str]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        """Whether anything was calibrated, or tried."""
        return bool(self.cases or self.failed)

    @property
    def bound(self) -> float:
        """95 % upper bound of the rate of confirmed false alarms."""
        return rate_bound(sum(row.confirmed for row in self.cases), sum(row.duels for row in self.cases))

    def add(self, row: CaseCalibration, environment: Mapping[str, str]) -> None:
        """Take in a case."""
        self.cases.append(row)
        self.environments[row.hardware] = environment

    def finish(self, folder: Path, store: FloorStore, *, shown: str, today: dt.date | None = None) -> None:
        """Write everything; what cannot be written is a note, the results are on the terminal all the same.

        Args:
            folder: Where results go.
            store: Where later runs look for noise floors.
            shown: The folder as the user knows it.
            today: The date; the UTC date of now by default.
        """
        if not self.cases:
            return
        date = (today or dt.datetime.now(dt.UTC).date()).isoformat()
        try:
            written = self._write_results(folder, date)
            self.notes.append(f"Written to {shown}: {', '.join(path.name for path in written)}.")
        except OSError as error:
            self.notes.append(f"The results could not be written to {shown}: {error.strerror or error}.")
        try:
            self._keep_floors(store, date)
        except OSError as error:
            self.notes.append(f"The noise floors could not be kept for later runs: {error.strerror or error}.")

    def _write_results(self, folder: Path, date: str) -> list[Path]:
        calibration = Calibration(
            schema=CALIBRATION_SCHEMA,
            date=date,
            jaxgate=version("jaxgate"),
            environments={key.slug: dict(found) for key, found in self.environments.items()},
            cases=tuple(self.cases),
            failed=dict(self.failed),
        )
        where = [_where(key.slug, found) for key, found in self.environments.items()]
        markdown = calibration_markdown(
            self.cases, bound=self.bound, failed=self.failed, surroundings=[f"On {date}.", *where]
        )
        plot = self._plot("; ".join([date, *where]))
        return write_calibration(folder, calibration, markdown=markdown, plot=plot)

    def _plot(self, where: str) -> bytes | None:
        try:
            return draw(self.cases, where=where)
        except ModuleNotFoundError as error:
            self.notes.append(f"No plot: {error.name} is not installed; pip install 'jaxgate[plot]' brings it.")
        except Exception as error:  # noqa: BLE001 - a library that draws must not cost an hour of measurements
            self.notes.append(f"No plot: {type(error).__name__}: {error}.")
        return None

    def _keep_floors(self, store: FloorStore, date: str) -> None:
        kept = []
        for hardware, environment in self.environments.items():
            here = {
                row.case: NoiseFloor(floor=row.floor, duels=row.duels, date=date)
                for row in self.cases
                if row.hardware == hardware
            }
            kept.append(store.save(hardware, environment, here))
        if all(kept):
            self.notes.append("The noise floors are in pytest's cache; later runs of this checkout use them here.")
        else:
            self.notes.append("The noise floors were not kept for later runs: pytest's cache is switched off.")


def _where(slug: str, environment: Mapping[str, str]) -> str:
    return f"{slug}, jax {environment.get('jax', '?')}, Python {environment.get('python', '?')}"
