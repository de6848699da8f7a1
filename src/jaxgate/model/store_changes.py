"""What a run leaves in the folder of the baselines."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class StoreChanges:
    """What a run leaves in the folder of the baselines.

    Attributes:
        removed: Programs that it removed, with their bytes: the baselines that named them were refreshed.
        why_kept: Why none could be removed; empty if nothing stood in the way.
        needs_commit: Files that git does not have yet, relative to the project.
    """

    removed: tuple[tuple[Path, int], ...] = ()
    why_kept: str = ""
    needs_commit: tuple[str, ...] = ()
