"""Waivers that nobody needs any more, found at the end of a run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from jaxgate.judge.waivers import unneeded
from jaxgate.keep.baselines import CorruptBaselineError
from jaxgate.model import Waiver
from jaxgate.plugin.orphans import is_inside
from jaxgate.plugin.run import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """What pytest collected.

    Attributes:
        tests: Node ids of all tests, before any was deselected.
        gates: Those of them that gate.
        roots: Files and folders that were collected whole, relative to the root folder.
    """

    tests: set[str]
    gates: set[str]
    roots: list[str]


def idle(run: Run, collection: Collection) -> list[tuple[Waiver, str]]:
    """Find the waivers that should be removed, each with the reason.

    Nothing is found where the stored baselines are not what was compared with.
    """
    if run.settings.elsewhere:
        return []
    found = [pair for verdict in run.verdicts for pair in unneeded(verdict, run.waivers)]
    return found + list(_without_case(run, collection))


def _without_case(run: Run, collection: Collection) -> Iterator[tuple[Waiver, str]]:
    """The waivers whose case no test has; only a run of the whole suite can tell."""
    claimed = run.tests_by_case
    unknown = [waiver for waiver in run.waivers if waiver.case not in claimed]
    if unknown and _is_whole(run, collection):
        yield from ((waiver, "no test has this case") for waiver in unknown)


def _is_whole(run: Run, collection: Collection) -> bool:
    """Whether every gate named its case, and no stored baseline belongs to a test elsewhere."""
    folders = [root for root in collection.roots if (run.project / root).is_dir()]
    if not folders or collection.gates != set(run.tests_by_case.values()):
        return False
    files = {test.partition("::")[0] for test in collection.tests}
    for path in run.settings.baselines.glob("*/*/*.json"):
        try:
            test = run.store.read(path).test
        except CorruptBaselineError:
            return False
        file = test.partition("::")[0]
        left_out = file not in files and (run.project / file).exists()
        if left_out or not any(is_inside(test, root) for root in folders):
            return False
    return True
