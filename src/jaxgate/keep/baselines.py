"""Baselines on disk: one small JSON file per case, so that branches merge without conflicts.

Layout: ``<root>/<hardware>-jax-<line>/<family>/<sentence>.json``, where the line is the release line of the jax that
recorded it. The reader is strict: a file that is truncated, has an unknown schema, or lacks or adds a key is an error that
names the file and the key.
"""

from __future__ import annotations

import os
import re
import reprlib
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from jaxgate.ext.targets.model import Target
from jaxgate.keep.files import read_json
from jaxgate.keep.strict import CorruptBaselineError, read_strict, write_strict
from jaxgate.model.baseline import BASELINE_SCHEMA, LATER_KEYS, Baseline, StoredBaseline
from jaxgate.model.machine import HardwareKey, distance, folder_name, release_line, split_folder_name


def baseline_files(root: Path, folder: str = "*") -> list[Path]:
    """The baselines of a project, without their stored times; ``folder`` is one of hardware and release line, or a pattern."""
    return sorted(root.glob(f"{folder}/*/*.json"))


def read_all(root: Path, folder: str = "*") -> tuple[dict[Path, Baseline], list[CorruptBaselineError]]:
    """Read the baselines of a project, all or those of one folder, and note the files that cannot be trusted."""
    return _read_each(baseline_files(root, folder))


def _read_each(paths: Iterable[Path]) -> tuple[dict[Path, Baseline], list[CorruptBaselineError]]:
    found: dict[Path, Baseline] = {}
    unreadable = []
    for path in paths:
        try:
            found[path] = read_baseline(path)
        except CorruptBaselineError as error:
            unreadable.append(error)
    return found, unreadable


def refuse_copy(path: Path, case: str, found: str) -> None:
    """Refuse the file of a case that holds another one, which has its own file, too; one that was moved (``git mv``) does not."""
    folder = path.parents[case.count("/")]
    parts = found.split("/")
    if ".." in parts or len(parts) != case.count("/") + 1 or os.path.lexists(folder.joinpath(f"{found}.json")):
        raise CorruptBaselineError(
            path,
            f"expected the case `{case}`, found `{found}`, which has a file of its own: was it copied? Record it: --perf-update",
        )


def files_of_case(root: Path, case: str, other: str) -> Iterator[tuple[Path, Path]]:
    """The files that a case has, of all hardware and release lines, each with its path under the name ``other``.

    A file is left out if there is one under that name already.
    """
    for pattern in (f"*/{case}.json", f"*/times/{case}.json"):
        for path in sorted(root.glob(pattern)):
            target = path.parents[1] / f"{other}.json"
            if not os.path.lexists(target):
                yield path, target


def read_baseline(path: Path) -> Baseline:
    """Read one baseline, of whatever hardware and release line. Raises CorruptBaselineError if it cannot be trusted."""
    return _read(path, f"{path.parent.name}/{path.stem}")


def save_baseline(root: Path, baseline: Baseline) -> Path:
    """Write one baseline where its hardware and release line belong, whole or not at all; touch no other file."""
    path = root / baseline.folder / f"{baseline.case}.json"
    write_strict(path, baseline)
    return path


def recorded_by(root: Path, case: str) -> frozenset[str]:
    """The tests that recorded a case, of all hardware and release lines; a file that cannot be read is skipped."""
    found = set()
    for path in root.glob(f"*/{case}.json"):
        with suppress(OSError, ValueError):  # whoever judges by it says what is wrong with it
            content = read_json(path)
            if isinstance(content, dict) and content.get("case") == case:
                found.add(str(content.get("test")))
    return frozenset(found)


class BaselineStore:
    """The baselines of one project, as one release line of jax, such as ``0.12``, looks for them."""

    def __init__(self, root: Path, line: str) -> None:
        self.root = root
        self.line = line

    def folder(self, hardware: HardwareKey) -> str:
        """The folder of this hardware and this release line."""
        return folder_name(hardware.slug, self.line)

    def path(self, hardware: HardwareKey, case: str) -> Path:
        """Where the baseline of a case lies, whether or not it exists."""
        return self.root / self.folder(hardware) / f"{case}.json"

    def load(self, hardware: HardwareKey, case: str) -> StoredBaseline | None:
        """Read the baseline for this hardware and release line, or the nearest one of the same platform.

        Where there is none, one of the same line is nearer than one of the same hardware: a line writes the same program
        everywhere. Of other lines the older ones come first, as they were accepted before.

        Raises CorruptBaselineError if a file is there and cannot be trusted.
        """
        own = self.path(hardware, case)
        if os.path.lexists(own):  # a link to nowhere is not "none"
            baseline = _read(own, case)
            if baseline.hardware != hardware:
                raise CorruptBaselineError(own, f"expected hardware `{hardware}`, found `{baseline.hardware}`")
            return StoredBaseline(baseline=baseline, path=own, borrowed=False)
        for _, _, line, path in self._others(hardware, case):
            baseline = _read(path, case)
            if baseline.hardware.same_platform(hardware):
                borrowed = baseline.hardware != hardware
                return StoredBaseline(baseline=baseline, path=path, borrowed=borrowed, of_other_line=line != self.line)
        return None

    def knows(self, target: Target, case: str) -> bool:
        """Whether a case has a baseline for a target, on any number of its devices, in this release line."""
        folders = self.root.glob(folder_name(f"{target.slug}-*", self.line))
        return any((folder / f"{case}.json").is_file() for folder in folders)

    def of_named_targets(self, but_not: Collection[str]) -> tuple[dict[Path, Baseline], list[CorruptBaselineError]]:
        """Read the baselines of gates that name their targets (``Case.on``), which any run judges, in this release line."""
        paths: list[Path] = []
        for folder, slug, line in self._folders():
            if line == self.line and folder.name not in but_not:
                paths += folder.glob(f"*/*.{slug.rpartition('-')[0]}.json")
        return _read_each(sorted(paths))

    def elsewhere(self, hardware: HardwareKey, case: str) -> tuple[str, ...]:
        """Name the other hardware that has a baseline of this case."""
        return tuple(sorted({slug for _, slug, _, _ in self._others(hardware, case)} - {hardware.slug}))

    def _others(self, hardware: HardwareKey, case: str) -> list[tuple[tuple[int, ...], str, str, Path]]:
        """Files of a case elsewhere: how near each is, its hardware and release line; the nearest first."""
        own = self.folder(hardware)
        found = []
        for folder, slug, line in self._folders():
            path = folder / f"{case}.json"
            if folder.name != own and path.is_file():
                found.append(((*distance(line, self.line), int(slug != hardware.slug)), slug, line, path))
        return sorted(found)

    def _folders(self) -> Iterator[tuple[Path, str, str]]:
        """The folders of all hardware, each with its slug and release line."""
        for folder in self.root.iterdir() if self.root.is_dir() else ():
            named = split_folder_name(folder.name)
            if named is not None:
                yield folder, *named


def _read(path: Path, case: str) -> Baseline:
    baseline = read_strict(path, Baseline, schema=BASELINE_SCHEMA, may_lack=LATER_KEYS)
    named = [
        ("fingerprints.program", baseline.fingerprints.program, 32),
        ("program.digest", baseline.program.digest, 64),
    ]
    for place, one in enumerate(baseline.launched_programs):
        named.append((f"launched_programs.{place}.fingerprint", one.fingerprint, 32))
        if one.program is not None:
            named.append((f"launched_programs.{place}.program.digest", one.program.digest, 64))
    for key, found, digits in named:  # they name files: anything else could lead to another one
        if found is not None and not re.fullmatch(f"[0-9a-f]{{{digits}}}", found):
            wrong = f"key `{key}`: expected {digits} hexadecimal digits, found {reprlib.repr(found)}"
            raise CorruptBaselineError(path, wrong)
    try:
        release_line(baseline.environment.get("jax", ""))
    except ValueError as error:
        raise CorruptBaselineError(path, f"key `environment.jax`: {error}") from None
    if baseline.case != case:
        refuse_copy(path, case, baseline.case)
        baseline = replace(baseline, case=case, test="")
    if baseline.folder != path.parents[1].name:
        found = path.parents[1].name
        raise CorruptBaselineError(path, f"expected it in the folder `{baseline.folder}`, found it in `{found}`")
    return baseline
