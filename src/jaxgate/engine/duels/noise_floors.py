"""The margins that a calibration of this checkout, hardware and environment gave the cases."""

from __future__ import annotations

import os

from jaxgate.judge.timing.calibration import why_not_applied
from jaxgate.keep.cache import DamagedFloorsError, FloorStore
from jaxgate.model.calibration import NoiseFloor, NoiseFloors
from jaxgate.model.machine import HardwareKey
from jaxgate.model.measurement import Measurement


class Margins:
    """Looks up the noise floor of a case; a file that cannot be used costs one line, and never a run.

    Attributes:
        notes: What a person should know, one line each.
    """

    def __init__(self, store: FloorStore) -> None:
        self._store = store
        self._read: dict[HardwareKey, NoiseFloors | None] = {}
        self.notes: list[str] = []

    def floor_of(self, case: str, now: Measurement) -> NoiseFloor | None:
        """The floor that holds for a case here, if there is one."""
        floors = self._floors(now.hardware)
        if floors is None or case not in floors.cases:
            return None
        why_not = why_not_applied(floors, now.hardware, now.environment)
        if why_not:
            self._note(now.hardware, why_not)
            return None
        return floors.cases[case]

    def _floors(self, hardware: HardwareKey) -> NoiseFloors | None:
        if hardware not in self._read:
            self._read[hardware] = None
            try:
                self._read[hardware] = self._store.load(hardware)
            except DamagedFloorsError as error:
                self._note(hardware, str(error))
        return self._read[hardware]

    def _note(self, hardware: HardwareKey, reason: str) -> None:
        path = self._store.path(hardware)
        where = "" if path is None else f" in {os.path.relpath(path)}"
        note = f"The calibration{where} is not used: {reason}. Calibrate again or delete it."
        if note not in self.notes:
            self.notes.append(note)
