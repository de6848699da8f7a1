"""A test and its gates. After a red gate with a name the next gates still run; the test fails once, at its end."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from jaxgate.model.decision import Status
from jaxgate.model.verdict import TimeVerdict, Verdict

RED_BEFORE = "jaxgate: what was red before that"


@dataclass(slots=True)
class GatedTest:
    """What came of the gates of one test so far, in the order of their calls."""

    item: pytest.Item  # the test
    # why each case fails; empty where it does not, or waits to be confirmed
    texts: dict[str, str] = field(default_factory=dict)
    verdicts: list[Verdict] = field(default_factory=list)  # the verdicts that are final
    named: bool = False  # whether its gates have names, so that there may be several
    over: bool = False  # whether its function has come to its end
    calls: int = 0  # how many gates were called
    failed_at_its_end: bool = False  # whether it fails for its named gates, and for nothing else

    @property
    def used(self) -> bool:
        """Whether a gate was called."""
        return bool(self.calls)

    @property
    def text(self) -> str:
        """Why the test fails: all that is red; empty if nothing is."""
        return "\n\n".join(filter(None, self.texts.values()))

    @property
    def accuses_machine(self) -> bool:
        """Whether it fails for no other reason than that the machine is the suspect."""
        red = [verdict for verdict in self.verdicts if verdict.fails]
        return bool(red) and all(verdict.accuses_machine for verdict in red)

    def begin(self, name: str | None) -> None:
        """Count a call of the gate.

        Raises:
            TypeError: If it is not the only one, and not each of them has a name.
        """
        self.calls += 1
        if self.calls == 1:
            self.named = name is not None
            return
        several = "expected one call of gate in a test, found a second"
        if name is None:
            raise TypeError(f"{several}; give each a name of its own: gate(..., name='eval')")
        if not self.named:
            kept = next(iter(self.texts), "").rpartition("/")[2]
            raise TypeError(f"{several}; give the first a name, too: with name={kept!r} it keeps its baseline")

    def claim(self, case: str) -> None:
        """Note the case of a call.

        Raises:
            TypeError: If another call of this test has it.
        """
        if case in self.texts:
            raise TypeError(f"expected a name of its own for each gate of a test, found `{case}` twice")
        self.texts[case] = ""

    def fail(self, case: str, text: str) -> None:
        """Let a case fail the test: at its end where there may be other gates, else at once.

        Raises:
            pytest.fail.Exception: If it fails at once.
        """
        self.texts[case] = text
        if not self.named or self.over:
            pytest.fail(text, pytrace=False)

    def end(self, error: BaseException | None) -> None:
        """End the test's function, which ended in an error or did not.

        Raises:
            pytest.fail.Exception: If a named gate is red, and nothing else has made the test fail.
        """
        self.over = True
        if not self.named or not self.text:
            return
        if error is None or isinstance(error, (pytest.skip.Exception, pytest.xfail.Exception)):
            self.failed_at_its_end = True
            pytest.fail(self.text, pytrace=False)
        if isinstance(error, pytest.fail.Exception) and not error.pytrace:  # a call that somebody wrote wrongly
            pytest.fail(f"{self.text}\n\n{error.msg}", pytrace=False)
        self.item.add_report_section("call", RED_BEFORE, self.text)


def nothing_decided(case: str, why: str) -> Verdict:
    """What a gate gives its test where it does something else than to judge."""
    time = TimeVerdict(status=Status.UNDECIDED, reason=why)
    return Verdict(case=case, hardware=None, status=Status.UNDECIDED, fails=False, findings=(), time=time)
