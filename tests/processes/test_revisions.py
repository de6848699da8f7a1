"""A case at one revision: recorded once, compared with the good side, and one line for what keeps it from that."""

import os
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from support.factories import CASE, baseline

from jaxgate.ext.bisect.revisions import NotMeasuredError, Revisions, Subject
from jaxgate.ext.upgrade.model import CaseNote
from jaxgate.ext.upgrade.notes import add_note
from jaxgate.keep.baselines import save_baseline
from jaxgate.keep.machine import HELD
from jaxgate.model.decision import Status
from jaxgate.model.outcome import UsageError
from jaxgate.model.workload import Tolerance
from jaxgate.processes.pytest_child import Side
from jaxgate.settings import AS_MEASURED, NOTES_INTO


class Two:
    """Two revisions."""

    unit, good, bad, revisions = "release", "jax-1", "jax-2", ["jax-1", "jax-2"]

    def __init__(self, options=()):
        self.options, self.opened_at = [*options], []

    def describe(self, revision):
        return revision.replace("-", " ")

    def against(self, recorded, *, timed):
        return [*self.options, str(recorded)] if self.options else []

    @contextmanager
    def opened(self, revision, *, copied):
        self.opened_at.append((revision, copied))
        if revision == "gone":
            raise UsageError("jaxgate bisect: jax==gone cannot be installed:\nERROR: No matching distribution found")
        yield Side(Path(), {}, "jaxgate bisect")


@pytest.fixture
def made(tmp_path):
    """Measure with a recorder that writes these baselines, and a judge that says this."""

    def make(*recorded, case=CASE, failed=(), within=None, judge=None, error=None):
        seen = []

        def record(side, chosen, into):
            seen.append((side, chosen))
            if error is not None:
                raise error
            for one in recorded:
                save_baseline(into, one)
            return dict(failed)

        subject = Subject(case=case, test="perf/test_scan.py::test_scan[rnn]", names=frozenset({CASE, "perf.scan/rnn"}))
        found = Revisions(
            subject, within or Two(), tmp_path, waits=print, record=record, judge=judge or (lambda *_: {})
        )
        return found, seen

    return make


def test_a_revision_is_recorded_once(made):
    """In a process that measures no time, records what breaks a claim, and does not wait for the machine."""
    revisions, seen = made(baseline())
    first = revisions.measure("jax-1")
    assert revisions.measure("jax-1") == first == revisions.known("jax-1") == baseline()
    ((side, chosen),) = seen
    assert chosen.paths == ("perf/test_scan.py::test_scan[rnn]",)
    assert side.arguments == ("--benchmark-disable",)
    assert side.environment[AS_MEASURED] == "1"
    assert side.environment[HELD] == str(os.getpid())


def test_todays_tests_record_apart_from_a_revisions_own(made):
    """Another question of the same range must not take the one for the other: it would skip all newer commits."""
    revisions, seen = made(baseline())
    revisions.copied = True
    revisions.measure("jax-1")
    revisions.copied = False
    assert revisions.known("jax-1") is None
    revisions.measure("jax-1")
    assert len(seen) == 2


def test_a_case_is_known_by_any_of_its_names(made):
    """If it is the only one of its test; by that of the question where there are several."""
    assert made(baseline(case="perf.scan/rnn"))[0].measure("a").case == "perf.scan/rnn"
    two = baseline(case="perf.scan/rnn"), baseline(case=CASE)
    assert made(*two)[0].measure("b").case == CASE


def test_a_test_with_several_cases_needs_a_name(made):
    with pytest.raises(UsageError, match="has several cases, name one before it: scan/lstm, scan/rnn"):
        made(baseline(), baseline(case="scan/lstm"), case="")[0].measure("a")
    assert made(baseline(), case="")[0].measure("b").case == CASE


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ({"failed": {"t": "ValueError: no"}}, "ValueError: no"),
        ({}, "the test is not there, or gates nothing"),
        ({"error": UsageError("it:\nE   SyntaxError: invalid\nERROR: found no collectors")}, "SyntaxError: invalid"),
        ({"error": UsageError("it could not be recorded:\nusage: unknown --own\n")}, "usage: unknown --own"),
        ({"error": TimeoutError("python took more than 900.0 s")}, "python took more than 900.0 s"),
        ({"error": OSError("no space")}, "no space"),
    ],
)
def test_what_records_nothing_is_one_line(made, how, reason):
    """The error that pytest quotes comes before its last word; nothing is kept."""
    revisions, _ = made(**how)
    with pytest.raises(NotMeasuredError) as error:
        revisions.measure("jax-1")
    assert str(error.value) == reason
    assert revisions.known("jax-1") is None


def test_another_case_of_the_test_is_not_taken_for_it(made):
    with pytest.raises(NotMeasuredError, match="it records scan/lstm, not scan/rnn"):
        made(baseline(case="scan/lstm"))[0].measure("a")


def test_a_revision_that_cannot_be_built_is_one_line(made):
    with pytest.raises(NotMeasuredError, match=r"^ERROR: No matching distribution found$"):
        made(baseline())[0].measure("gone")


def test_a_recording_that_was_interrupted_is_not_taken(made):
    def interrupted(side, chosen, into):
        save_baseline(into, baseline())
        raise KeyboardInterrupt

    again, _ = made(baseline(facts={"temp_bytes": 5}))
    again._record, whole = interrupted, again._record
    with pytest.raises(KeyboardInterrupt):
        again.measure("jax-1")
    assert again.known("jax-1") is None
    again._record = whole
    assert again.measure("jax-1").facts.temp_bytes == 5


def test_recordings_of_two_environments_are_compared_by_their_facts(made):
    """No process is started; the text says what differs between the environments."""
    here, there = baseline(facts={"temp_bytes": 90_000}), baseline()
    here = replace(here, environment={**here.environment, "jax": "0.10.3"})
    (good, _), (bad, _) = made(there), made(here)
    good.measure("jax-1")
    bad.measure("jax-2")
    found = bad.compare("jax-2", timed=False)
    (fact,) = [finding for finding in found.findings if finding.kind == "fact"]
    assert (fact.name, fact.status, fact.now, fact.against) == ("temp_bytes", Status.REGRESSED, 90_000, 20_000)
    assert "against   jax==1; jax 0.10.2 → 0.10.3" in found.text
    assert "--perf-against jax==1" in found.text


TIME = {"status": "SLOWER", "ratio": 1.2, "sees": 0.07, "reason": "20 of 20", "confirmed": [1.2, 1.19]}
FOUND = {"kind": "time", "name": "run_ns", "status": "SLOWER", "now": 2, "against": 1, "allowed": 1.1}
JUDGED = {"case": CASE, "time": TIME, "findings": [{**FOUND, "recorded": None, "detail": ""}], "text": "red"}


@pytest.fixture
def compared(made):
    """Compare by the clock what both revisions recorded, where a run judges these cases; remembers how it was asked."""

    def compare(option, *cases, revision="jax-2"):
        def judge(side, test, against, folder):
            compare.asked = against
            return {"cases": cases}

        revisions, _ = made(baseline(), within=Two([option]), judge=judge)
        for one in ("jax-1", "jax-2"):
            revisions.measure(one)
        return revisions.compare(revision, timed=True)

    return compare


def test_a_run_judges_a_revision_against_the_good_side(compared, tmp_path):
    """With the options of its range; of its cases the one that is searched for counts."""
    found = compared("--with", {**JUDGED, "case": "scan/lstm"}, JUDGED)
    assert (found.time, found.ratio, found.text) == (Status.SLOWER, 1.2, "red")
    assert compared.asked == ["--with", str(tmp_path / "recorded/jax-1")]


@pytest.mark.parametrize(
    ("option", "status"), [("--perf-baselines=a", Status.UNDECIDED), ("--perf-against=a", Status.SLOWER)]
)
def test_a_slow_down_that_nobody_confirmed_decides_nothing(compared, option, status):
    """Where a fact is red besides, a run confirms no time; launches of two environments are fresh processes themselves."""
    found = compared(option, {**JUDGED, "time": {**TIME, "confirmed": []}})
    assert found.time is status
    assert (found.sees is None) is (status is Status.UNDECIDED)


def test_a_run_that_judges_nothing_is_one_line(compared):
    with pytest.raises(NotMeasuredError, match="nothing was judged of scan/rnn"):
        compared("--with")
    with pytest.raises(NotMeasuredError, match="it was not recorded"):
        compared("--with", revision="jax-3")


def test_a_case_may_move_by_its_own_tolerance_from_release_to_release(made):
    """As everywhere: what its workload allows is no regression."""
    (good, _), (bad, _) = made(baseline()), made(baseline(facts={"temp_bytes": 90_000}))
    record, tolerance = bad._record, Tolerance(fact="temp_bytes", relative=9.0, why="measured")

    def noted(side, chosen, into):
        add_note(Path(side.environment[NOTES_INTO]), CaseNote(case=CASE, test=chosen.paths[0], tolerances=(tolerance,)))
        return record(side, chosen, into)

    bad._record = noted
    good.measure("jax-1")
    bad.measure("jax-2")
    found = bad.compare("jax-2", timed=False)
    assert Status.REGRESSED not in {finding.status for finding in found.findings}
