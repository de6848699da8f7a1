"""What a whole run came to, for machines and for the page of a pull request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jaxgate.model.verdict import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One run.

    Attributes:
        verdicts: Of the cases that were judged, in order.
        tests: pytest node id of each case.
        texts: Failure text of each case that failed.
        not_judged: Node ids of selected gates without a verdict: interrupted, skipped, or failed before.
        problems: What else is wrong: orphaned and unreadable baselines, a machine that is unfit.
        baseline_edits: Baselines that the checkout changes against its trunk, as git tells them; ``None`` if it cannot,
            as in a checkout without history.
        needs_commit: Files of the baselines that the last commit does not have as they are: recorded by this run, or,
            under CI, before it.
        elsewhere: The options that chose something else to compare with than the stored baselines.
        exit_status: pytest's.
    """

    verdicts: tuple[Verdict, ...]
    tests: Mapping[str, str]
    texts: Mapping[str, str]
    not_judged: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    baseline_edits: tuple[str, ...] | None = ()
    needs_commit: tuple[str, ...] = ()
    elsewhere: str = ""
    exit_status: int = 0

    @property
    def failed(self) -> tuple[Verdict, ...]:
        """The cases that failed."""
        return tuple(verdict for verdict in self.verdicts if verdict.fails)

    @property
    def green(self) -> bool:
        """Whether this run is: something was judged, everything selected was, nothing is wrong, and git has the baselines."""
        return not self.needs_commit and self.passed

    @property
    def passed(self) -> bool:
        """Whether all is well but for a commit that is missing, perhaps."""
        return bool(self.verdicts) and not (self.failed or self.not_judged or self.problems or self.exit_status)
