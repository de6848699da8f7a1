"""How a run ends beside the verdicts of its cases: its exit code where the machine is unfit, its idle waivers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from jaxgate.plugin.run import Run

UNFIT = pytest.ExitCode.INTERRUPTED
"""Exit code 2: nothing but the machine failed, or too little was decided for this to be a gate."""


def end_as_unfit(session: pytest.Session, exitstatus: int, run: Run) -> None:
    """Set the exit code where nothing is wrong but the machine: no test failed, or each one because of it."""
    from jaxgate.plugin.fitness import unfit  # noqa: PLC0415 - imports what only gates need

    if exitstatus == pytest.ExitCode.OK and unfit(run):
        run.ended_unfit = True
        session.exitstatus = UNFIT
    elif exitstatus == pytest.ExitCode.TESTS_FAILED and run.accused and run.accused == session.testsfailed:
        run.only_machine = True
        session.exitstatus = UNFIT


def find_idle_waivers(
    config: pytest.Config, run: Run, *, collected: set[str], gates: set[str], roots: list[str]
) -> None:
    """Note which waivers nobody needs any more.

    Args:
        config: pytest's.
        run: The run.
        collected: Node ids of all tests, before any was deselected.
        gates: Those of them that gate.
        roots: Files and folders that were collected whole.
    """
    if not run.waivers:
        return
    from jaxgate.plugin import waiving  # noqa: PLC0415 - rarely needed

    whole = [] if config.option.continue_on_collection_errors else roots
    run.idle_waivers = waiving.idle(run, waiving.Collection(tests=collected, gates=gates, roots=whole))


def adopt_baselines(run: Run) -> None:
    """Keep what the other revision recorded, where this hardware has no baselines yet: ready to be committed."""
    settings = run.settings
    if not settings.against:
        return
    from jaxgate.keep.adopt import adopt  # noqa: PLC0415 - rarely needed
    from jaxgate.observe.exporting import serves_as  # noqa: PLC0415

    for slug in sorted({verdict.hardware.slug for verdict in run.verdicts if verdict.hardware}):
        why = f"recorded from {settings.against[:10]}, this hardware had none"
        try:
            names = adopt(settings.baselines, settings.stored, slug, serves=serves_as, why=why)
        except OSError as error:  # the comparison was made all the same
            run.adopted[slug] = f"its baselines could not be written: {error}"
            continue
        if names:
            where = run.short(settings.stored / slug)
            run.adopted[slug] = f"it had no baselines; {len(names)} of that revision are in {where} now: commit them"
