"""A search from both sides to the first bad revision: what decides, what is skipped, what is kept."""

from contextlib import nullcontext
from dataclasses import replace

import pytest
from support.factories import OTHER_CPU, SIGNATURE, argument, baseline

from jaxgate.ext.bisect.judge import remaining
from jaxgate.ext.bisect.kept import read_bisection
from jaxgate.ext.bisect.model import Mark
from jaxgate.ext.bisect.revisions import Compared, NotMeasuredError
from jaxgate.ext.bisect.search import AlikeError, Search
from jaxgate.model.decision import Status
from jaxgate.model.outcome import UsageError
from jaxgate.model.verdict import Finding

NAMES = [f"r{number}" for number in range(9)]
TEMP = Finding(kind="fact", name="temp_bytes", status=Status.REGRESSED, now=40_000, against=20_000, allowed=25_096)


class Line:
    """Revisions in a row."""

    unit = "commit"
    good, bad, revisions = NAMES[0], NAMES[-1], NAMES

    def short(self, revision):
        return revision

    title = describe = short

    def left(self, marks):
        return remaining(NAMES, dict(marks))

    def opened(self, revision, *, copied):
        return nullcontext()


class Measured:
    """What each revision is, and what was asked."""

    def __init__(self, temp=None, programs=None, broken=(), sides=(TEMP,), times=None, **changes):
        self.temp = temp or [20_000] * 9
        self.programs = programs or [0] * 9
        self.broken, self.sides, self.times, self.changes = broken, sides, times or {}, changes
        self.asked, self.duels, self.untested, self.interrupt, self.sees = [], [], 0, None, None

    copied = False

    def measure(self, revision):
        if revision == self.interrupt:
            raise KeyboardInterrupt
        number = NAMES.index(revision)
        self.asked.append(revision)
        if number in self.broken or (number < self.untested and not self.copied):
            raise NotMeasuredError("SyntaxError: invalid syntax" if number in self.broken else "it has no such test")
        return self._of(number)

    def known(self, revision):
        return self._of(NAMES.index(revision)) if revision in self.asked else None

    def compare(self, revision, *, timed):
        number = NAMES.index(revision)
        status, ratio = Status.UNDECIDED, None
        if timed:
            self.duels.append(revision)
            found = self.times[number]
            status = found.pop(0) if isinstance(found, list) else found
            ratio = {Status.SLOWER: 1.2, Status.SAME: 1.0}.get(status)
        return Compared(
            findings=self.sides, time=status, ratio=ratio, reason="why", text=f"red {revision}", sees=self.sees
        )

    def _of(self, number):
        found = baseline(facts={"temp_bytes": self.temp[number]}, **self.changes.get(f"r{number}", {}))
        program = f"{self.programs[number]:032x}"
        return replace(found, fingerprints=replace(found.fingerprints, program=program))


def start(measured, folder, said=None, **question):
    """A search of these revisions."""
    said = [] if said is None else said
    return Search(
        Line(),
        measured,
        folder / "question.json",
        begin=said.append,
        end=said.append,
        clock=lambda: 0.0,
        **{"fact": "", "asked": "good", "copied": None, **question},
    )


JUMP = [20_000] * 5 + [40_000] * 4


def test_the_figure_of_a_fact_decides(tmp_path):
    """No duel is run; the text is of the first bad revision against the good side."""
    measured, said = Measured(JUMP), []
    answer = start(measured, tmp_path, said).run()
    assert answer.first_bad == ("r5",)
    assert answer.text == "red r5"
    assert [probe.revision for probe in answer.state.probes] == ["r4", "r6", "r5"]
    assert answer.state.quantity.name == "temp_bytes"
    assert not measured.duels
    assert "temp_bytes 40 kB against 20 kB = 2.00 ×" in said
    assert "step 1, about 3 steps left for 8 commits: r4 r4" in said
    assert "good: 20 kB, like the good side, 0.0 s" in said


def test_a_revision_that_cannot_be_measured_is_skipped_and_said_so(tmp_path):
    said = []
    answer = start(Measured(JUMP, broken={4}), tmp_path, said).run()
    assert answer.first_bad == ("r4", "r5")
    assert "skipped: not measured: SyntaxError: invalid syntax, 0.0 s" in said
    assert start(Measured([20_000] * 3 + [40_000] * 6, broken={4}), tmp_path / "2").run().first_bad == ("r3",)


@pytest.mark.parametrize(
    ("temp", "changes", "why"),
    [
        (JUMP, {"signature": (*SIGNATURE[:1], argument("batch", "float32[16,64]", 4096))}, "other arguments"),
        # Where a GPU is taken JAX falls back to the CPU.
        (JUMP, {"hardware": OTHER_CPU}, "it ran on cpu-intel-xeon-1, the good side on cpu-amd-epyc-1"),
        ([20_000] * 4 + [None] + [40_000] * 4, {}, "temp_bytes is not known there"),
    ],
    ids=["other arguments", "other hardware", "the fact is not known"],
)
def test_one_that_cannot_be_compared_is_skipped(tmp_path, temp, changes, why):
    probe, *_ = start(Measured(temp, r4=changes), tmp_path).run().state.probes
    assert probe.mark is Mark.SKIPPED
    assert why in probe.why


SLOW = {8: Status.SLOWER, 4: Status.SAME, 6: Status.SLOWER, 5: Status.SLOWER}


def by_time(times=SLOW, programs=range(9), **changes):
    """Revisions of which each is another program, so that each is duelled."""
    return Measured(programs=programs, times=times, **{"sides": (), **changes})


def test_a_duel_decides_where_no_fact_moved(tmp_path):
    measured = by_time()
    answer = start(measured, tmp_path).run()
    assert (answer.first_bad, answer.text) == (("r5",), "red r5")
    assert measured.duels == ["r8", "r4", "r6", "r5"]
    assert [probe.figure for probe in answer.state.probes] == [1.0, 1.2, 1.2]


def test_a_program_that_was_met_before_is_not_duelled(tmp_path):
    measured = by_time(programs=[0] * 5 + [1] * 4)
    answer = start(measured, tmp_path).run()
    assert (answer.first_bad, measured.duels) == (("r5",), ["r8"])
    assert [probe.why for probe in answer.state.probes] == [f"same program as {one}" for one in ("r0", "r8", "r8")]


def test_a_duel_that_does_not_decide_is_run_again_then_skipped(tmp_path):
    once = by_time({**SLOW, 4: [Status.UNDECIDED, Status.SAME]})
    assert start(once, tmp_path / "1").run().first_bad == ("r5",)
    answer = start(by_time({**SLOW, 4: Status.UNDECIDED, 3: Status.SAME}), tmp_path / "2").run()
    assert answer.state.probes[0].mark is Mark.SKIPPED
    assert answer.first_bad == ("r4", "r5")


@pytest.mark.parametrize(("sees", "mark"), [(0.09, Mark.GOOD), (0.11, Mark.SKIPPED)])
def test_a_duel_that_would_have_shown_half_of_the_slow_down_decides(tmp_path, sees, mark):
    """The bad side takes 1.2 times as long: what is searched for was not there, though less could not be told."""
    measured = by_time({**SLOW, 4: Status.UNDECIDED, 3: Status.SAME})
    measured.sees = sees
    assert start(measured, tmp_path).run().state.probes[0].mark is mark


@pytest.mark.parametrize("time", [Status.SAME, Status.UNDECIDED])
def test_sides_that_are_alike_end_the_search(tmp_path, time):
    """It says so, with what is known of time, and tries nothing between."""
    measured = by_time({8: time}, [0] * 9)
    with pytest.raises(AlikeError, match=f"no fact is worse or better on the bad side.*; time is {time}: why"):
        start(measured, tmp_path).run()
    assert measured.asked == ["r0", "r8"]


def test_the_fact_that_was_asked_for_must_have_moved(tmp_path):
    with pytest.raises(AlikeError, match=r"xla_flops is the same on both sides: 1\.1 MFLOP and 1\.1 MFLOP"):
        start(Measured(JUMP), tmp_path, fact="xla_flops").run()


def test_sides_that_take_other_arguments_cannot_be_compared(tmp_path):
    stale = Finding(
        kind="baseline", name="stale", status=Status.STALE_BASELINE, detail="batch float32[8] → float32[16]"
    )
    with pytest.raises(AlikeError, match=r"cannot be compared: stale: batch float32"):
        start(Measured(sides=(stale,), times={8: Status.STALE_BASELINE}), tmp_path).run()


def test_a_slow_down_comes_before_a_fact_that_is_better(tmp_path):
    better = replace(TEMP, status=Status.IMPROVED, now=10_000)
    answer = start(by_time(sides=(better,)), tmp_path / "1").run()
    assert answer.state.quantity.clocked
    fell = Measured([20_000] * 5 + [10_000] * 4, times={8: Status.SAME}, sides=(better,))
    answer = start(fell, tmp_path / "2").run()
    assert (answer.state.quantity.name, answer.state.quantity.gain, answer.first_bad) == ("temp_bytes", True, ("r5",))


def test_a_side_that_cannot_be_measured_is_an_error(tmp_path):
    with pytest.raises(UsageError, match="the bad side, r8, cannot be measured: SyntaxError"):
        start(Measured(JUMP, broken={8}), tmp_path).run()


def test_todays_tests_are_copied_where_the_good_side_has_none(tmp_path):
    """Over every revision then, so that all are measured alike."""
    measured = Measured(JUMP)
    measured.untested = 7
    answer = start(measured, tmp_path).run()
    assert answer.first_bad == ("r5",)
    assert answer.state.copied
    with pytest.raises(UsageError, match="it has no such test"):
        start(measured, tmp_path / "2", copied=False).run()


def test_a_search_that_was_interrupted_goes_on(tmp_path):
    first = Measured(JUMP)
    first.interrupt = "r6"
    with pytest.raises(KeyboardInterrupt):
        start(first, tmp_path).run()
    assert [probe.revision for probe in read_bisection(tmp_path / "question.json").probes] == ["r4"]
    second = Measured(JUMP)
    assert start(second, tmp_path).run().first_bad == ("r5",)
    assert second.asked == ["r0", "r8", "r6", "r5"]


def test_a_figure_that_moved_twice_has_an_answer_for_each_side(tmp_path):
    """Unlike the good side first at one revision, like the bad side first at another."""
    finding = replace(TEMP, status=Status.IMPROVED, against=79_000, now=17_000, allowed=83_000)
    temp = [79_000] * 3 + [9_000] * 3 + [17_000] * 3
    with_good = start(Measured(temp, sides=(finding,), times={8: Status.SAME}), tmp_path / "1", asked="good").run()
    with_bad = start(Measured(temp, sides=(finding,), times={8: Status.SAME}), tmp_path / "2", asked="bad").run()
    assert (with_good.first_bad, with_bad.first_bad) == (("r3",), ("r6",))
    assert "like neither side" in {probe.why for probe in with_good.state.probes}
