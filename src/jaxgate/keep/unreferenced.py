"""Programs that no baseline names: found by reading every baseline of every hardware, removed only then."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from jaxgate.keep.baselines import read_all
from jaxgate.keep.programs import ProgramStore
from jaxgate.keep.untrusted import RefusedFileError, is_linked
from jaxgate.model import Baseline

Named = set[tuple[str, str]]
"""Programs by fingerprint and digest of their content."""


def named_by(baselines: Iterable[Baseline]) -> Named:
    """The programs that baselines name."""
    return {(structure, about.digest) for b in baselines for structure, about in b.programs if about.digest}


def find_unreferenced(root: Path, named: Named, *, only: Collection[str] | None = None) -> list[Path]:
    """The stored programs that none of the baselines names.

    A damaged file of a structure that is named stays: git has it whole.

    Args:
        root: The folder of the baselines.
        named: What all of them name.
        only: Structures to look at; ``None`` for all.
    """
    structures = {fingerprint for fingerprint, _ in named}
    store = ProgramStore(root)
    found = []
    for path in store.files():
        fingerprint = store.fingerprint_of(path)
        if only is not None and fingerprint not in only:
            continue
        digest = store.digest_of(path) if fingerprint in structures else None
        needed = fingerprint in structures and (digest is None or (fingerprint, digest) in named)
        if not needed:
            found.append(path)
    return found


def collect(root: Path, only: Collection[str]) -> list[tuple[Path, int]]:
    """Remove the programs of some structures that no baseline of any hardware names.

    Args:
        root: The folder of the baselines.
        only: The structures: of baselines that were just replaced.

    Returns:
        What was removed, with its size in bytes.

    Raises:
        CorruptBaselineError: If a baseline cannot be read: its program would look unreferenced. Nothing is removed.
    """
    baselines, unreadable = read_all(root)
    if unreadable:
        raise unreadable[0]
    return [remove(path, root) for path in find_unreferenced(root, named_by(baselines.values()), only=only)]


def remove(path: Path, root: Path) -> tuple[Path, int]:
    """Remove one file below the folder of the baselines; gives its path and its size in bytes.

    Raises:
        RefusedFileError: If a link leads from that folder to it: it may be needed by somebody else.
    """
    if is_linked(path, root):
        raise RefusedFileError(f"expected {path} in {root} itself, found it behind a link; remove the link")
    nbytes = path.lstat().st_size
    path.unlink()
    return path, nbytes


def remove_empty_folders(root: Path, path: Path) -> None:
    """Remove the folders above a removed file that are empty now, below the folder of the baselines."""
    folder = path.parent
    while folder != root and folder.is_relative_to(root) and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent
