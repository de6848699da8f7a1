"""The folders of baselines were once named for hardware alone: they are found, refused, and renamed on request."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

from jaxgate.keep.baselines import baseline_files, baseline_in
from jaxgate.keep.strict import CorruptBaselineError
from jaxgate.keep.times import times_beside
from jaxgate.keep.unreferenced import remove_empty_folders
from jaxgate.keep.untrusted import RefusedFileError, is_linked
from jaxgate.model import split_folder_name

MIGRATE = "jaxgate baselines --migrate"


def describe_old_layout(folder: str) -> str:
    """What was expected instead of a folder that names no release line, and the command that renames it."""
    name = Path(folder).name
    return (
        f"expected folders of baselines such as {name}-jax-0.12, found {folder}, which an earlier jaxgate wrote; "
        f"rename them: {MIGRATE}"
    )


def folders_without_line(root: Path) -> list[str]:
    """The folders of baselines that name no release line of jax: an earlier jaxgate wrote them.

    Args:
        root: The folder of the baselines.
    """
    if not root.is_dir():
        return []
    names = sorted(path.name for path in root.iterdir() if path.is_dir() and split_folder_name(path.name) is None)
    return [name for name in names if baseline_files(root, name)]


def migrate(root: Path) -> dict[tuple[str, str], int]:
    """Move each such baseline and its stored times to the folder of the jax that recorded it. Nothing is overwritten.

    Args:
        root: The folder of the baselines.

    Returns:
        How many baselines were moved, by folder before and now.

    Raises:
        CorruptBaselineError: If a baseline cannot be read, or one stands where it should go; nothing was moved.
        RefusedFileError: If a link leads to it: it is somebody else's; nothing was moved.
    """
    old = [path for name in folders_without_line(root) for path in baseline_files(root, name)]
    moves = [(path, _target(root, path)) for path in old]
    for path, target in moves:
        for one, other in _with_times(path, target):
            if os.path.lexists(one):
                other.parent.mkdir(parents=True, exist_ok=True)
                one.rename(other)
                remove_empty_folders(root, one)
    return dict(Counter((path.parents[1].name, target.parents[1].name) for path, target in moves))


def _target(root: Path, path: Path) -> Path:
    """Where a baseline belongs, if nothing lies there."""
    if is_linked(path, root):
        raise RefusedFileError(f"expected {path} in {root} itself, found it behind a link; remove the link")
    target = root / baseline_in(path).folder / path.parent.name / path.name
    for one, other in _with_times(path, target):
        if os.path.lexists(other):
            raise CorruptBaselineError(one, f"expected no file {other} yet, found one; remove one of them")
    return target


def _with_times(path: Path, target: Path) -> list[tuple[Path, Path]]:
    return [(path, target), (times_beside(path), times_beside(target))]
