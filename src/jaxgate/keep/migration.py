"""Baselines that an earlier jaxgate wrote: found, refused, and brought up to date on request.

Two things changed. Folders were named for hardware alone, and have the release line of jax in their names since. What was
``host`` is ``eager``, and the contracts ``pipelined`` and ``blocked`` are ``throughput`` and ``latency``.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxgate.keep.atomic import write_atomic
from jaxgate.keep.baselines import baseline_files, check_baseline
from jaxgate.keep.strict import CorruptBaselineError, check_strict, parse_object
from jaxgate.keep.times import times_beside
from jaxgate.keep.unreferenced import remove_empty_folders
from jaxgate.keep.untrusted import RefusedFileError, is_linked, read_json
from jaxgate.model import BASELINE_SCHEMA, TIMES_SCHEMA, StoredTimes, split_folder_name

_CONTRACTS = {"pipelined": "throughput", "blocked": "latency"}
_OLD_BASELINE, _OLD_TIMES = 4, 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Migrated:
    """What a migration did.

    Attributes:
        moved: How many baselines went to another folder, by its name before and now.
        rewritten: How many files were written in today's form.
    """

    moved: dict[tuple[str, str], int]
    rewritten: int


@dataclass(frozen=True, slots=True)
class _Step:
    """One file: where it lies, where it belongs, and its content of today; ``None`` where that is as it was."""

    path: Path
    target: Path
    content: dict[str, Any] | None


def describe_old(root: Path) -> str:
    """What an earlier jaxgate wrote, in a line; empty where nothing is. ``MIGRATE`` is the command that helps.

    Args:
        root: The folder of the baselines. Of each folder in it one file is looked at: a migration is done whole.
    """
    for folder in sorted(root.iterdir()) if root.is_dir() else ():
        files = baseline_files(root, folder.name) if folder.is_dir() else []
        if not files:
            continue
        if split_folder_name(folder.name) is None:
            shown = os.path.relpath(folder)
            return f"expected folders of baselines such as {folder.name}-jax-0.12, found {shown}, which an earlier jaxgate wrote"
        if _schema_of(files[0]) == _OLD_BASELINE:
            shown = os.path.relpath(files[0])
            return (
                f"expected schema {BASELINE_SCHEMA}, found {_OLD_BASELINE} in {shown}, which an earlier jaxgate wrote"
            )
    return ""


def migrate(root: Path) -> Migrated:
    """Bring every baseline and its stored times into today's form and folder. Nothing is overwritten or lost.

    Args:
        root: The folder of the baselines.

    Raises:
        CorruptBaselineError: If a file cannot be read, or one stands where it should go; nothing was changed.
        RefusedFileError: If a link leads to one: it is somebody else's; nothing was changed.
    """
    steps = [step for path in baseline_files(root) for step in _steps(root, path)]
    for step in steps:
        if step.content is not None:
            text = json.dumps(step.content, indent=1, sort_keys=True, ensure_ascii=False)
            write_atomic(step.path, (text + "\n").encode())
        if step.target != step.path:
            step.target.parent.mkdir(parents=True, exist_ok=True)
            step.path.rename(step.target)
            remove_empty_folders(root, step.path)
    moved = [(step.path.parents[1].name, step.target.parents[1].name) for step in steps if step.target != step.path]
    return Migrated(
        moved=dict(Counter(pair for pair in moved if pair[0] != "times")),
        rewritten=sum(step.content is not None for step in steps),
    )


def _steps(root: Path, path: Path) -> Iterator[_Step]:
    """What becomes of a baseline and of its stored times."""
    if is_linked(path, root):
        raise RefusedFileError(f"expected {path} in {root} itself, found it behind a link; remove the link")
    content = parse_object(path)
    is_old = content.get("schema") == _OLD_BASELINE
    if is_old:
        content = {**content, "schema": BASELINE_SCHEMA, "eager": content.get("host")}
        content.pop("host", None)
        _rename_contract(content.get("samples"))
    baseline = check_baseline(path, content)
    target = root / baseline.folder / path.parent.name / path.name
    yield _step(path, target, content if is_old else None)
    times = times_beside(path)
    if os.path.lexists(times):
        content = parse_object(times)
        is_old = content.get("schema") == _OLD_TIMES
        if is_old:
            content = {**content, "schema": TIMES_SCHEMA}
            for session in content.get("sessions") or ():
                _rename_contract(session)
        check_strict(times, content, StoredTimes, schema=TIMES_SCHEMA)
        yield _step(times, times_beside(target), content if is_old else None)


def _step(path: Path, target: Path, content: dict[str, Any] | None) -> _Step:
    if target != path and os.path.lexists(target):
        raise CorruptBaselineError(path, f"expected no file {target} yet, found one; remove one of them")
    return _Step(path, target, content)


def _rename_contract(timed: object) -> None:
    if isinstance(timed, dict) and timed.get("contract") in _CONTRACTS:
        timed["contract"] = _CONTRACTS[timed["contract"]]


def _schema_of(path: Path) -> object:
    try:
        content = read_json(path)
    except (OSError, ValueError):
        return None  # whoever judges by it says what is wrong with it
    return content.get("schema") if isinstance(content, dict) else None
