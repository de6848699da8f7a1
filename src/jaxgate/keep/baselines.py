"""Baselines on disk: one small JSON file per case, so that branches merge without conflicts.

Layout: ``<root>/<hardware>/<family>/<sentence>.json``. The reader is strict: a file that is truncated, has
an unknown schema, or lacks or adds a key is an error that names the file and the key.
"""

from __future__ import annotations

import os
import re
import reprlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from jaxgate.keep.strict import CorruptBaselineError, read_strict, write_strict
from jaxgate.keep.untrusted import read_json
from jaxgate.model import BASELINE_SCHEMA, LATER_KEYS, Baseline, HardwareKey, StoredBaseline

__all__ = ["BaselineStore", "CorruptBaselineError"]

_FINGERPRINT, _DIGEST = re.compile(r"[0-9a-f]{32}"), re.compile(r"[0-9a-f]{64}")
"""What a program's file is named by, and its SHA-256: anything else could lead to another file."""


def baseline_files(root: Path, hardware: str = "*") -> list[Path]:
    """The baselines in a folder, without their stored times.

    Args:
        root: The folder.
        hardware: Slug of the hardware, or a pattern of slugs.
    """
    return sorted(root.glob(f"{hardware}/*/*.json"))


def read_all(root: Path, hardware: str = "*") -> tuple[dict[Path, Baseline], list[CorruptBaselineError]]:
    """Read the baselines in a folder, all or those of one hardware, and note the files that cannot be trusted."""
    store = BaselineStore(root)
    found: dict[Path, Baseline] = {}
    unreadable = []
    for path in baseline_files(root, hardware):
        try:
            found[path] = store.read(path)
        except CorruptBaselineError as error:
            unreadable.append(error)
    return found, unreadable


COPIED = (
    "expected the case `{case}`, found `{found}`, which has a file of its own: was it copied? Record it: --perf-update"
)


def is_copied(path: Path, case: str, found: str) -> bool:
    """Whether a file of one case speaks of another one that has its own, too; one that was moved (``git mv``) does not.

    Args:
        path: The file.
        case: Of which it is the file.
        found: Of which it speaks.
    """
    folder = path.parents[case.count("/")]
    parts = found.split("/")
    return ".." in parts or len(parts) != case.count("/") + 1 or os.path.lexists(folder.joinpath(f"{found}.json"))


def files_of_case(root: Path, case: str, other: str) -> Iterator[tuple[Path, Path]]:
    """The files that a case has on whatever hardware, each with the one that it would have under another name.

    Args:
        root: The folder of the baselines.
        case: Its name.
        other: The other one; what has a file already is left out.
    """
    for pattern in (f"*/{case}.json", f"*/times/{case}.json"):
        for path in sorted(root.glob(pattern)):
            target = path.parents[1] / f"{other}.json"
            if not os.path.lexists(target):
                yield path, target


class BaselineStore:
    """The baselines of one project."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, hardware: HardwareKey, case: str) -> Path:
        """Where the baseline of a case lies, whether or not it exists."""
        family, _, sentence = case.partition("/")
        return self.root / hardware.slug / family / f"{sentence}.json"

    def load(self, hardware: HardwareKey, case: str) -> StoredBaseline | None:
        """Read the baseline for this hardware, or borrow one recorded on hardware of the same platform.

        Of several that could be borrowed, the first by name is taken.

        Raises:
            CorruptBaselineError: If a file is there and cannot be trusted.
        """
        own = self.path(hardware, case)
        if os.path.lexists(own):  # a link to nowhere is not "none"
            return StoredBaseline(baseline=self._read(own, case, hardware), path=own, borrowed=False)
        for slug in self._others(hardware, case):
            path = self.root / slug / f"{case}.json"
            baseline = self._read(path, case, None)
            if baseline.hardware.same_platform(hardware):
                return StoredBaseline(baseline=baseline, path=path, borrowed=True)
        return None

    def elsewhere(self, hardware: HardwareKey, case: str) -> tuple[str, ...]:
        """Name the other hardware that has a baseline of this case."""
        return tuple(self._others(hardware, case))

    def recorded_by(self, case: str) -> frozenset[str]:
        """The tests that recorded a case, on whatever hardware; a file that cannot be read tells nothing."""
        found = set()
        for path in self.root.glob(f"*/{case}.json"):
            with suppress(OSError, ValueError):  # whoever judges by it says what is wrong with it
                content = read_json(path)
                if isinstance(content, dict) and content.get("case") == case:
                    found.add(str(content.get("test")))
        return frozenset(found)

    def save(self, baseline: Baseline) -> Path:
        """Write one baseline, whole or not at all; touch no other file."""
        path = self.path(baseline.hardware, baseline.case)
        write_strict(path, baseline)
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
        baseline = read_strict(path, Baseline, schema=BASELINE_SCHEMA, may_lack=LATER_KEYS)
        if baseline.case != case:
            if is_copied(path, case, baseline.case):
                raise CorruptBaselineError(path, COPIED.format(case=case, found=baseline.case))
            baseline = replace(baseline, case=case, test="")
        launched = [
            (f"launched_programs.{place}.{key}", found, form)
            for place, one in enumerate(baseline.launched_programs)
            for key, found, form in (
                ("fingerprint", one.fingerprint, _FINGERPRINT),
                ("program.digest", None if one.program is None else one.program.digest, _DIGEST),
            )
        ]
        for key, found, form in (
            ("fingerprints.program", baseline.fingerprints.program, _FINGERPRINT),
            ("program.digest", baseline.program.digest, _DIGEST),
            *launched,
        ):
            if found is not None and not form.fullmatch(found):
                digits = form.pattern.partition("{")[2].rstrip("}")
                wrong = f"key `{key}`: expected {digits} hexadecimal digits, found {reprlib.repr(found)}"
                raise CorruptBaselineError(path, wrong)
        folder = path.parents[1].name
        if baseline.hardware.slug != folder and hardware is None:
            raise CorruptBaselineError(path, f"expected hardware `{folder}`, found `{baseline.hardware.slug}`")
        if hardware is not None and baseline.hardware != hardware:
            raise CorruptBaselineError(path, f"expected hardware `{hardware}`, found `{baseline.hardware}`")
        return baseline
