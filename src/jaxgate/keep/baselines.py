"""Baselines on disk: one small JSON file per case, so that branches merge without conflicts.

Layout: ``<root>/<hardware>/<family>/<sentence>.json``. The reader is strict: a file that is truncated, has
an unknown schema, or lacks or adds a key is an error that names the file and the key.
"""

from __future__ import annotations

import json
import os
import reprlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from jaxgate.keep.atomic import write_atomic
from jaxgate.model import Baseline, HardwareKey, Record
from jaxgate.model.baseline import SCHEMA


class CorruptBaselineError(Exception):
    """A baseline file that cannot be trusted.

    Attributes:
        path: The file.
        reason: What was expected and what was found.
    """

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


@cache
def _adapter() -> TypeAdapter[Baseline]:
    return TypeAdapter(Baseline)


class BaselineStore:
    """The baselines of one project."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, hardware: HardwareKey, case: str) -> Path:
        """Where the baseline of a case lies, whether or not it exists."""
        family, _, sentence = case.partition("/")
        return self.root / hardware.slug / family / f"{sentence}.json"

    def load(self, hardware: HardwareKey, case: str) -> Record | None:
        """Read the baseline for this hardware, or borrow one recorded on hardware of the same platform.

        Of several that could be borrowed, the first by name is taken.

        Raises:
            CorruptBaselineError: If a file is there and cannot be trusted.
        """
        own = self.path(hardware, case)
        if os.path.lexists(own):  # a link to nowhere is not "none"
            return Record(baseline=self._read(own, case, hardware), path=own, borrowed=False)
        for slug in self._others(hardware, case):
            path = self.root / slug / f"{case}.json"
            baseline = self._read(path, case, None)
            if baseline.hardware.same_platform(hardware):
                return Record(baseline=baseline, path=path, borrowed=True)
        return None

    def elsewhere(self, hardware: HardwareKey, case: str) -> tuple[str, ...]:
        """Name the other hardware that has a baseline of this case."""
        return tuple(self._others(hardware, case))

    def save(self, baseline: Baseline) -> Path:
        """Write one baseline, whole or not at all; touch no other file."""
        path = self.path(baseline.hardware, baseline.case)
        content = _adapter().dump_python(baseline, mode="json")
        text = json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False)
        write_atomic(path, (text + "\n").encode())
        return path

    def read(self, path: Path) -> Baseline:
        """Read one file of the store, whatever hardware it is for.

        Raises:
            CorruptBaselineError: If it cannot be trusted.
        """
        return self._read(path, f"{path.parent.name}/{path.stem}", None)

    def _others(self, hardware: HardwareKey, case: str) -> Iterator[str]:
        if not self.root.is_dir():
            return
        for folder in sorted(self.root.iterdir()):
            if folder.name != hardware.slug and (folder / f"{case}.json").is_file():
                yield folder.name

    def _read(self, path: Path, case: str, hardware: HardwareKey | None) -> Baseline:
        content = _parse(path)
        try:
            baseline = _adapter().validate_json(json.dumps(content))
        except ValidationError as error:
            raise CorruptBaselineError(path, _first_problem(error)) from error
        lost = _missing_key(content, _adapter().dump_python(baseline, mode="json"))
        if lost:
            raise CorruptBaselineError(path, f"key `{lost}` is missing")
        if baseline.case != case:
            raise CorruptBaselineError(path, f"expected the case `{case}`, found `{baseline.case}`: was it renamed?")
        folder = path.parents[1].name
        if baseline.hardware.slug != folder and hardware is None:
            raise CorruptBaselineError(path, f"expected hardware `{folder}`, found `{baseline.hardware.slug}`")
        if hardware is not None and baseline.hardware != hardware:
            raise CorruptBaselineError(path, f"expected hardware `{hardware}`, found `{baseline.hardware}`")
        return baseline


def _parse(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_bytes(), object_pairs_hook=_once)
    except (OSError, UnicodeDecodeError) as error:
        raise CorruptBaselineError(path, f"cannot be read: {error}") from error
    except json.JSONDecodeError as error:
        raise CorruptBaselineError(path, f"is not JSON (truncated or merged badly?): {error}") from error
    except (ValueError, RecursionError) as error:
        raise CorruptBaselineError(path, str(error)) from error
    if not isinstance(content, dict):
        raise CorruptBaselineError(path, "expected a JSON object")
    if content.get("schema") != SCHEMA:
        raise CorruptBaselineError(path, f"expected schema {SCHEMA}, found {content.get('schema')!r}")
    return content


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a key that stands twice: a merge kept both sides, and JSON would silently take the later one."""
    content = dict(pairs)
    if len(content) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"key `{next(name for name in names if names.count(name) > 1)}` stands twice")
    return content


def _first_problem(error: ValidationError) -> str:
    problem = error.errors()[0]
    key = ".".join(map(str, problem["loc"]))
    if problem["type"] == "unexpected_keyword_argument":
        return f"unknown key `{key}`"
    if problem["type"] == "missing":
        return f"key `{key}` is missing"
    return f"key `{key}`: {problem['msg']}, found {reprlib.repr(problem['input'])}"


def _missing_key(found: Any, whole: Any, prefix: str = "") -> str:
    """The first key that the file lacks and reading filled in by a default."""
    if isinstance(whole, dict) and isinstance(found, dict):
        for key, value in whole.items():
            if key not in found:
                return f"{prefix}{key}"
            deeper = _missing_key(found[key], value, f"{prefix}{key}.")
            if deeper:
                return deeper
    return ""
