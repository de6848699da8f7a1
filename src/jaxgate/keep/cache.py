"""What is remembered between runs: references, duels with them, noise floors of a machine, and JAX's defaults.

All of it may be deleted, which costs time; without noise floors a run knows none. Defaults belong to an installation,
so they are kept for this user; the rest lies in pytest's cache of a checkout.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxgate.keep.duel_handoff import pack, unpack
from jaxgate.keep.files import ARRAYS_BYTES, read_bytes, read_json, write_atomic
from jaxgate.keep.machine import lock_folder
from jaxgate.keep.strict import adapter_of, first_problem
from jaxgate.model.calibration import FLOORS_SCHEMA, NoiseFloor, NoiseFloors
from jaxgate.model.duel import Duel
from jaxgate.model.machine import HardwareKey, JaxDefaults

if TYPE_CHECKING:
    import numpy as np

MAX_FILES, MAX_BYTES = 4096, 1024**3
"""Entries kept, and their size together; the oldest go first. A reference that changes leaves its old entry behind, and
each jax has entries of its own: this suite alone takes some 300 for each release, 120 MB of them results."""


class ReferenceCache:
    """A folder with one ``.npz`` file per reference; without one (pytest's cache is switched off) nothing is remembered."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder

    def load(self, key: str) -> tuple[dict[str, Any], list[np.ndarray[Any, Any]]] | None:
        """Give back what was saved under a key; ``None`` if there is nothing or it cannot be read."""
        if self.folder is None:
            return None
        try:
            outputs, numbers = unpack(read_bytes(self.folder / f"{key}.npz", ARRAYS_BYTES))
        except Exception:  # noqa: BLE001 - a damaged entry raises almost anything; it costs time only
            return None
        return numbers, outputs

    def save(self, key: str, facts: dict[str, Any], outputs: list[np.ndarray[Any, Any]]) -> None:
        """Keep numbers and arrays under a key, and forget the oldest entries beyond a limit."""
        if self.folder is None:
            return
        with suppress(OSError):  # a full or read-only disk costs time only
            write_atomic(self.folder / f"{key}.npz", pack(outputs, facts))
            _forget_oldest(self.folder)


def _forget_oldest(folder: Path) -> None:
    """Keep the youngest entries, as many as both limits let; behind a link nothing is this project's to remove."""
    if folder.is_symlink() or folder.parent.is_symlink():
        return
    files = nbytes = 0
    for written, size, path in sorted(map(_entry, folder.glob("*.npz")), reverse=True):
        files, nbytes = files + 1, nbytes + size
        if written and (files > MAX_FILES or nbytes > MAX_BYTES):
            path.unlink(missing_ok=True)


def _entry(path: Path) -> tuple[float, int, Path]:
    """When an entry was written, its size, and its file."""
    try:
        found = path.stat()
    except OSError:
        return 0.0, 0, path  # another run has just forgotten it
    return found.st_mtime, found.st_size, path


class DuelCache:
    """Raw times by the hash of everything that they depend on, beside what is remembered of references."""

    def __init__(self, entries: ReferenceCache) -> None:
        self._entries = entries

    def load(self, key: str) -> Duel | None:
        """Give back what was saved under a key; ``None`` if there is nothing or it cannot be read."""
        found = self._entries.load(key)
        if found is None:
            return None
        try:
            return adapter_of(Duel).validate_json(json.dumps(found[0]))
        except ValueError:
            return None

    def save(self, key: str, duel: Duel) -> None:
        """Keep a duel under a key."""
        self._entries.save(key, adapter_of(Duel).dump_python(duel, mode="json"), [])


class DamagedFloorsError(Exception):
    """A file of noise floors that cannot be trusted; the text says why, in one line."""


class FloorStore:
    """A folder with one file for each hardware; without one (pytest's cache is switched off) nothing is kept."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder

    def path(self, hardware: HardwareKey) -> Path | None:
        """Where the floors of a machine lie, whether or not they exist."""
        return None if self.folder is None else self.folder / f"{hardware.slug}.json"

    def load(self, hardware: HardwareKey) -> NoiseFloors | None:
        """Read the floors of a machine, if there are any. Raises DamagedFloorsError if their file cannot be trusted."""
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
        """Keep the floors of some cases beside those of others that this environment gave; gives the file, if any."""
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


def remembered_defaults(installation: str, ask: Callable[[], JaxDefaults | None]) -> JaxDefaults | None:
    """The defaults of an installation of JAX: as remembered, else asked for and, if there is an answer, remembered."""
    name = f"defaults-{hashlib.sha256(installation.encode()).hexdigest()[:16]}.json"
    with suppress(OSError, ValueError, TypeError):
        return JaxDefaults(**read_json(lock_folder() / name))
    found = ask()
    if found is not None:
        with suppress(OSError):  # a read-only disk: the next run asks again
            write_atomic(lock_folder() / name, json.dumps(asdict(found)).encode())
    return found
