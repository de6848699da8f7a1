"""Waivers that nobody needs any more, found at the end of a session."""

from __future__ import annotations

from collections.abc import Iterator

from jaxgate.engine.orphans import is_inside
from jaxgate.engine.session import GateSession
from jaxgate.judge import unneeded
from jaxgate.keep import read_all
from jaxgate.model import Collection, Waiver


def find_idle_waivers(session: GateSession, collection: Collection) -> list[tuple[Waiver, str]]:
    """Find the waivers that should be removed, each with the reason.

    Nothing is found where the stored baselines are not what was compared with.
    """
    if session.settings.elsewhere:
        return []
    found = [pair for verdict in session.result.verdicts for pair in unneeded(verdict, session.waivers)]
    return found + list(_without_case(session, collection))


def _without_case(session: GateSession, collection: Collection) -> Iterator[tuple[Waiver, str]]:
    """The waivers whose case no test has; only a run of the whole suite can tell."""
    claimed = session.result.tests
    unknown = [waiver for waiver in session.waivers if waiver.case not in claimed]
    if unknown and _is_whole(session, collection):
        yield from ((waiver, "no test has this case") for waiver in unknown)


def _is_whole(session: GateSession, collection: Collection) -> bool:
    """Whether every gate named its case, and no stored baseline belongs to a test elsewhere."""
    if not collection.certain:
        return False
    folders = [root for root in collection.roots if (session.project / root).is_dir()]
    if not folders or collection.gates != set(session.result.tests.values()):
        return False
    files = {test.partition("::")[0] for test in collection.tests}
    baselines, unreadable = read_all(session.settings.baselines)
    if unreadable:
        return False
    for test in {baseline.test for baseline in baselines.values()}:
        file = test.partition("::")[0]
        left_out = file not in files and (session.project / file).exists()
        if left_out or not any(is_inside(test, root) for root in folders):
            return False
    return True
