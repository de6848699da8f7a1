"""The folder of the baselines once a run is over: programs that were replaced go, and what to commit is known."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from jaxgate.keep.baselines import CorruptBaselineError
from jaxgate.keep.log import FOLDER
from jaxgate.keep.provenance import uncommitted
from jaxgate.keep.unreferenced import collect

if TYPE_CHECKING:
    from jaxgate.plugin.run import Run


@dataclass(frozen=True, slots=True)
class Afterwards:
    """What a run leaves in the folder of the baselines.

    Attributes:
        removed: Programs that it removed, with their bytes: the baselines that named them were refreshed.
        why_kept: Why none could be removed; empty if nothing stood in the way.
        needs_commit: Files that git does not have yet, relative to the project.
    """

    removed: tuple[tuple[Path, int], ...] = ()
    why_kept: str = ""
    needs_commit: tuple[str, ...] = ()


def tidy(run: Run) -> None:
    """Remove the programs that refreshed baselines no longer name, and find what is to be committed.

    At the end, and in the one process that knows all verdicts: while several workers record, a program that nothing
    names yet may be one whose baseline is being written.
    """
    if run.settings.other_side or run.settings.elsewhere:
        return
    removed: tuple[tuple[Path, int], ...] = ()
    why_kept = ""
    replaced = {verdict.replaced for verdict in run.verdicts if verdict.recorded and verdict.replaced}
    if replaced:
        try:
            removed = tuple(collect(run.settings.baselines, replaced))
        except CorruptBaselineError as error:
            why_kept = f"{run.short(error.path)} {error.reason}"
        except OSError as error:
            why_kept = str(error)
    run.afterwards = Afterwards(removed=removed, why_kept=why_kept, needs_commit=needs_commit(run))


def needs_commit(run: Run) -> tuple[str, ...]:
    """The files under the baselines that the last commit does not have as they are; empty if none matters here.

    A run that recorded is told in any case. Under CI one that only judged is, too: what an earlier step recorded may
    be all that makes it green.
    """
    folder = run.settings.baselines
    recorded = [verdict for verdict in run.verdicts if verdict.recorded and verdict.hardware]
    if not recorded and not run.settings.strict:
        return ()
    known = uncommitted(folder)
    if known:
        return tuple(os.path.relpath(folder / name, run.project) for name in known)
    if not recorded:
        return ()
    written = {run.short(run.store.path(v.hardware, v.case)) for v in recorded if v.hardware}
    return tuple(sorted({*written, run.short(folder / FOLDER)}))
