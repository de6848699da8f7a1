"""The pure half of a search for the first bad revision: what moved, what it is compared with, where to look next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jaxgate.ext.bisect.model import RUN_TIME, Left, Mark, Quantity
from jaxgate.judge.difference import Difference
from jaxgate.judge.policy import ARRIVAL_POLICIES, POLICIES
from jaxgate.model.baseline import Baseline
from jaxgate.model.decision import Status
from jaxgate.model.verdict import Finding

BISECTED = frozenset({RUN_TIME, *(policy.name for policy in (*POLICIES, *ARRIVAL_POLICIES))})
"""What a search can follow."""
_MOVED = (Status.REGRESSED, Status.IMPROVED)


def moved_facts(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The facts that are another on the bad side and have a figure to follow, worse ones first, else in the judge's order."""
    known = [finding for finding in findings if finding.kind == "fact" and finding.name in BISECTED]
    facts = [finding for finding in known if finding.status in _MOVED]
    return tuple(sorted(facts, key=lambda finding: _MOVED.index(finding.status)))


def quantity_of(finding: Finding) -> Quantity:
    """What a search follows where a fact moved: its figures, and by how much each may move by the policy that judged it."""
    assert finding.now is not None
    assert finding.against is not None
    assert finding.allowed is not None
    good, bad = finding.against, finding.now
    allowed = abs(finding.allowed - good)
    policy = next(one for one in (*POLICIES, *ARRIVAL_POLICIES) if one.name == finding.name)
    at_bad = abs(policy.worst_allowed(round(bad)) - bad)
    if allowed != abs(
        policy.worst_allowed(round(good)) - good
    ):  # the case has a tolerance of its own: take it as a share
        at_bad = allowed * abs(bad / good) if good else allowed
    return Quantity(
        name=finding.name,
        good=good,
        bad=bad,
        good_tolerance=allowed,
        bad_tolerance=at_bad,
        gain=finding.status is Status.IMPROVED,
    )


def is_same_program(one: Baseline, other: Baseline) -> bool:
    """Whether two revisions cannot differ in time: identical program, options, environment, arguments and Python."""
    return not Difference(one.as_measured(), other).why_not_identical


def remaining(revisions: Sequence[str], marks: Mapping[str, Mark]) -> Left:
    """What is left of a range of revisions, oldest first: the first one is good, the last one bad."""
    known = {**marks, revisions[0]: Mark.GOOD, revisions[-1]: Mark.BAD}
    bad = next(place for place, one in enumerate(revisions) if known.get(one) is Mark.BAD)
    good = max(place for place, one in enumerate(revisions[:bad]) if known.get(one) is Mark.GOOD)
    between = [place for place in range(good + 1, bad) if revisions[place] not in known]
    middle = min(between, key=lambda place: abs(2 * place - good - bad), default=None)
    return Left(first_bad=tuple(revisions[good + 1 : bad + 1]), following=None if middle is None else revisions[middle])
