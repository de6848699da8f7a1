"""The noise floors of a machine, in pytest's cache of a checkout. They may be deleted: a run then knows no floor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from jaxgate.keep.atomic import write_atomic
from jaxgate.keep.strict import adapter_of, first_problem
from jaxgate.keep.untrusted import read_bytes
from jaxgate.model import FLOORS_SCHEMA, HardwareKey, NoiseFloor, NoiseFloors


class DamagedFloorsError(Exception):
    """A file of noise floors that cannot be trusted; the text says why, in one line."""


class FloorStore:
    """A folder with one file for each hardware.

    Without a folder (pytest's cache is switched off) nothing is kept.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder

    def path(self, hardware: HardwareKey) -> Path | None:
        """Where the floors of a machine lie, whether or not they exist."""
        return None if self.folder is None else self.folder / f"{hardware.slug}.json"

    def load(self, hardware: HardwareKey) -> NoiseFloors | None:
        """Read the floors of a machine; ``None`` if there are none.

        Raises:
            DamagedFloorsError: If a file is there and cannot be trusted.
        """
        path = self.path(hardware)
        if path is None:
            return None
        try:
            found = adapter_of(NoiseFloors).validate_json(read_bytes(path))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise DamagedFloorsError(f"cannot be read: {error.strerror or error}") from error
        except ValueError as error:
            raise DamagedFloorsError(first_problem(error)) from error
        if found.schema != FLOORS_SCHEMA:
            raise DamagedFloorsError(f"expected schema {FLOORS_SCHEMA}, found {found.schema}")
        return found

    def save(
        self, hardware: HardwareKey, environment: Mapping[str, str], floors: Mapping[str, NoiseFloor]
    ) -> Path | None:
        """Keep the floors of some cases beside those of others, if these were measured in the same environment.

        Returns:
            The file; ``None`` if nothing is kept.
        """
        path = self.path(hardware)
        if path is None:
            return None
        whole = NoiseFloors(schema=FLOORS_SCHEMA, hardware=hardware, environment=dict(environment), cases=dict(floors))
        try:
            before = self.load(hardware)
        except DamagedFloorsError:
            before = None  # what cannot be read is not worth more than what was measured now
        if before is not None and (before.hardware, before.environment) == (hardware, whole.environment):
            whole = replace(whole, cases={**before.cases, **floors})
        write_atomic(path, adapter_of(NoiseFloors).dump_json(whole, indent=1) + b"\n")
        return path
