"""A slow-down is repeated: what confirms it, what takes it back, and what accuses the machine. None of it hides."""

import json
import subprocess
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import jax.numpy as jnp
import pytest
from support.factories import CASE, FINGERPRINTS, PROGRAM, measurement, record, reference

from jaxgate.engine.duels.duel_processes import Environments, FreshDuel, repeat_duel
from jaxgate.engine.instruments import Instruments
from jaxgate.engine.repeats import BackstopRepeat, DuelRepeat, PhaseRepeat, Provisional, confirm, in_order
from jaxgate.judge.claims import decide_claim
from jaxgate.judge.difference import Difference
from jaxgate.judge.timing.confirmation import accuses, blames_machine, settle_time, too_many
from jaxgate.judge.timing.duel import decide
from jaxgate.judge.verdict import judge
from jaxgate.keep.baselines import save_baseline
from jaxgate.keep.duel_handoff import read_job, write_duels
from jaxgate.model.claim import claim
from jaxgate.model.decision import Status
from jaxgate.model.duel import Duel, ReferenceDuel, RepeatOutcome
from jaxgate.model.numbers import Phases
from jaxgate.model.program import Match, StoredProgram
from jaxgate.model.verdict import Finding
from jaxgate.processes.child import own_program
from jaxgate.processes.live_worker import WorkerError
from jaxgate.processes.pytest_child import Side

CALL_NS = 10_000_000


def duel(count, by=1.3, *, pairs=60, traces=0):
    """A duel where ``count`` of the pairs differ by a ratio."""
    now = [round(CALL_NS * by)] * count + [CALL_NS] * (pairs - count)
    return Duel(
        now_ns=tuple((time,) for time in now),
        baseline_ns=((CALL_NS,),) * pairs,
        calls_per_burst=1,
        seed=0,
        traces=traces,
    )


SLOWER, SAME, FASTER = decide(duel(60)), decide(duel(0)), decide(duel(60, 0.7))
UNDECIDED = replace(SAME, status=Status.UNDECIDED)
AGREES, DISAGREES = RepeatOutcome(SLOWER, SAME), RepeatOutcome(SAME, SAME)
CRASHED = RepeatOutcome(None, None, "a fresh process failed: exit status -9")
FIRED = RepeatOutcome(SLOWER, SLOWER)
AGAIN = Side(Path(), {}, "measuring again")
DUEL = FreshDuel(
    matches=[
        Match(
            now=StoredProgram(record=PROGRAM, content=b"today"),
            baseline=StoredProgram(record=PROGRAM, content=b"before"),
            leaves=[jnp.arange(3, dtype=jnp.float32), 2.0],
        )
    ],
    platform="cpu",
)


@pytest.fixture
def suspect():
    """A case whose program changed, and that was slower in this process."""
    changed = measurement(fingerprints=replace(FINGERPRINTS, program="p1"))
    verdict = judge(CASE, (), changed, record(), strict=True, decision=SLOWER)
    assert verdict.status is Status.SLOWER
    return Provisional(verdict, [DuelRepeat(DUEL)])


def timed(verdict):
    """The finding about time."""
    (found,) = [finding for finding in verdict.findings if finding.kind == "time"]
    return found


# too_many


@pytest.mark.parametrize(
    ("suspects", "cases", "machine"),
    [
        (1, 1, False),
        (5, 5, False),
        (6, 6, True),
        (6, 29, True),  # 20 % are 5.8
        (6, 30, False),  # just 20 %
        (7, 30, True),
        (40, 200, False),
        (41, 200, True),
        (0, 0, False),
    ],
)
def test_many_slow_downs_accuse_the_machine(suspects, cases, machine):
    assert too_many(suspects, cases) is machine


def settled(suspect, *launches):
    """The verdict of a suspect after fresh processes."""
    return settle_time(suspect.verdict, launches, machine=False)


@pytest.mark.parametrize(
    ("probed", "machine"),
    [
        ([[AGREES, AGREES]], False),
        ([[FIRED]], True),
        ([[AGREES, AGREES], [FIRED]], True),
        ([[DISAGREES]] * 2, False),
        ([[DISAGREES]] * 3, True),
        ([[CRASHED]] * 3, True),
        ([[DISAGREES], [DISAGREES], [AGREES, AGREES]], False),
    ],
    ids=["came again", "control", "a later control", "two did not", "none did", "none ran", "one did"],
)
def test_the_largest_say_whether_it_was_the_machine(suspect, probed, machine):
    """A control that differs, or none that comes again: not something that the cases share."""
    assert blames_machine([settled(suspect, *launches) for launches in probed]) is machine


def test_the_largest_with_a_control_come_first_where_there_are_many(suspect):
    """Others wait for what these say of the machine; of a few none has to wait."""

    class Stored(DuelRepeat):
        has_control = False

    larger = judge(
        CASE, (), measurement(fingerprints=replace(FINGERPRINTS, program="p1")), record(), strict=True,
        decision=decide(duel(60, 2.0)),
    )  # fmt: skip
    cases = {
        "stored": Provisional(larger, [Stored(DUEL)]),
        "small": suspect,
        "large": Provisional(larger, [DuelRepeat(DUEL)]),
    }
    assert list(in_order(cases, many=True)) == ["large", "small", "stored"]
    assert list(in_order(cases, many=False)) == ["stored", "small", "large"]


@pytest.mark.parametrize(
    ("changes", "may_be"),
    [({}, True), ({"XLA_FLAGS": "--xla_slow"}, False), ({"jaxlib": "0.0.1"}, True)],
    ids=["nothing", "a flag", "a release"],
)
def test_what_a_flag_slows_is_not_the_machines_doing(suspect, changes, may_be):
    """Many calls that take far longer than recorded have that in common."""
    now = measurement(environment={**record().baseline.environment, **changes})
    repeat = BackstopRepeat(
        again=AGAIN, test="t", now=now, difference=Difference(now, record().baseline), plain=suspect.verdict.time
    )
    assert repeat.may_be_machine is may_be
    assert not repeat.has_control


# settle


SUSPECT = "the machine is the suspect"
NOT_CONFIRMED = "was not confirmed by fresh process"
CRASH = "could not be confirmed: a fresh process failed: exit status -9"
SETTLED = {
    "two that agree": ([AGREES, AGREES], Status.SLOWER, ""),
    "the first does not": ([DISAGREES], Status.UNDECIDED, NOT_CONFIRMED),
    "the second does not": ([AGREES, DISAGREES], Status.UNDECIDED, NOT_CONFIRMED),
    "undecided": ([RepeatOutcome(UNDECIDED, SAME)], Status.UNDECIDED, NOT_CONFIRMED),
    "faster": ([RepeatOutcome(FASTER, SAME)], Status.UNDECIDED, NOT_CONFIRMED),
    "a child crashed": ([CRASHED], Status.INVALID, CRASH),
    "the second child crashed": ([AGREES, CRASHED], Status.INVALID, CRASH),
    "a crash after a disagreement": ([DISAGREES, CRASHED], Status.INVALID, CRASH),
    "the control fired": ([FIRED, AGREES], Status.INVALID, SUSPECT),
    "the control fired in the second": ([AGREES, FIRED], Status.INVALID, SUSPECT),
    "the control fired and the case did not": ([RepeatOutcome(SAME, SLOWER)], Status.INVALID, SUSPECT),
    "the control was faster than itself": ([RepeatOutcome(SLOWER, FASTER), AGREES], Status.INVALID, SUSPECT),
    "no child was started": ([], Status.INVALID, ""),
    "a child found nothing and does not say why": ([RepeatOutcome(None, None)], Status.INVALID, ""),
    "children without a control": ([RepeatOutcome(SLOWER, None)] * 2, Status.INVALID, ""),
}


@pytest.mark.parametrize("what", SETTLED)
def test_what_fresh_processes_make_of_a_slow_down(suspect, what):
    """Two that agree confirm it, one that disagrees takes it back, and what cannot be told is red.

    A control that fired accuses the machine, a crash or a silent child nobody. The ratios that were found are kept.
    """
    launches, status, reason = SETTLED[what]
    verdict = settle_time(suspect.verdict, launches, machine=False)
    assert (verdict.status, verdict.fails) == (status, status is not Status.UNDECIDED)
    assert (timed(verdict).status, timed(verdict).detail) == (status, verdict.time.reason)
    assert verdict.accuses_machine is (reason == SUSPECT)
    assert reason in verdict.time.reason
    if status is not Status.INVALID:
        assert verdict.time.confirmed == tuple(found.case.ratio for found in launches)
        assert "60 of 60 pairs were more than 3.0% slower" in verdict.time.reason
    assert "in 2 fresh processes" not in verdict.time.reason or len(launches) == 2  # what was run, not what is planned
    if status is Status.SLOWER:
        assert (verdict.time.reason, verdict.time.decision) == (suspect.verdict.time.reason, SLOWER)
        assert verdict.worst == timed(verdict)


@pytest.mark.parametrize("launches", [[], [DISAGREES]], ids=["nothing was run", "whatever was found"])
def test_too_many_at_once_accuse_the_machine(suspect, launches):
    verdict = settle_time(suspect.verdict, launches, machine=True)
    assert (verdict.status, verdict.fails, verdict.accuses_machine) == (Status.INVALID, True, True)
    assert "too many cases got slower at once: the machine is the suspect" in verdict.time.reason


def test_a_waived_fact_stays_waived_whatever_becomes_of_the_slow_down(suspect):
    """Not repeated: WAIVED and green, time left open. Confirmed: SLOWER and red."""
    waived = Finding(kind="fact", name="temp_bytes", status=Status.WAIVED)
    mixed = replace(suspect.verdict, findings=(*suspect.verdict.findings, waived))
    verdict = settle_time(mixed, [DISAGREES], machine=False)
    assert (verdict.status, verdict.fails, verdict.time.status) == (Status.WAIVED, False, Status.UNDECIDED)
    verdict = settle_time(mixed, [AGREES, AGREES], machine=False)
    assert (verdict.status, verdict.fails) == (Status.SLOWER, True)
    assert settle_time(mixed, [FIRED], machine=False).accuses_machine


def test_a_case_that_is_red_by_itself_does_not_accuse_the_machine(suspect):
    broken = Finding(kind="fact", name="temp_bytes", status=Status.REGRESSED)
    mixed = replace(suspect.verdict, findings=(*suspect.verdict.findings, broken))
    assert not settle_time(mixed, [FIRED], machine=False).accuses_machine
    assert not settle_time(mixed, [], machine=True).accuses_machine
    assert not settle_time(suspect.verdict, [AGREES, AGREES], machine=False).accuses_machine
    assert not settle_time(suspect.verdict, [DISAGREES], machine=False).accuses_machine


def test_other_findings_keep_their_say(suspect):
    """A slow-down that did not come again does not take a broken fact with it, and the worst stands first."""
    broken = Finding(kind="fact", name="temp_bytes", status=Status.REGRESSED)
    mixed = replace(suspect.verdict, findings=(*suspect.verdict.findings, broken))
    verdict = settle_time(mixed, [DISAGREES], machine=False)
    assert (verdict.status, verdict.fails) == (Status.REGRESSED, True)
    assert verdict.worst == broken
    assert settle_time(mixed, [CRASHED], machine=False).worst == timed(settle_time(mixed, [CRASHED], machine=False))


# confirm


@pytest.mark.parametrize(
    ("launches", "machine", "status"),
    [
        ([AGREES, AGREES, DISAGREES], False, Status.SLOWER),
        ([DISAGREES, AGREES], False, Status.UNDECIDED),
        ([CRASHED, AGREES], False, Status.INVALID),
        ([AGREES], True, Status.INVALID),
    ],
    ids=["two agree", "the first does not", "a crash", "the machine is the suspect"],
)
def test_no_process_is_run_that_nothing_depends_on(suspect, launches, machine, status):
    """Nobody runs again until it is green, and a process that failed is not replaced by another try."""
    left = list(launches)
    given = Instruments(repeat_duel=lambda _: left.pop(0))
    assert confirm(suspect, given, machine=machine).status is status
    assert left == launches[-1:]


# Claims about run time


LIMIT, LEAST = claim("run_ns <= 1.1 * reference", "fused"), claim("run_ns >= 2 * reference")
BROKEN = ReferenceDuel(duel=duel(60))  # 1.3 times its reference breaks both
LIMIT_AGAIN, LEAST_AGAIN = replace(DUEL, claim=LIMIT), replace(DUEL, claim=LEAST)


def agreeing(claim, ratio=1.3):
    """A fresh process that finds a ratio of subject to reference."""
    return RepeatOutcome(decide_claim(claim, duel(60, ratio)), SAME)


@pytest.fixture
def claimed():
    """A case whose program is identical to its baseline's, and that breaks two claims about run time here."""
    return judge(CASE, (LIMIT, LEAST), measurement(reference=reference()), record(), strict=True, reference_duel=BROKEN)


def finding(verdict, claim):
    """The finding of a claim."""
    (found,) = [finding for finding in verdict.findings if finding.name == str(claim)]
    return found


@pytest.mark.parametrize("claim", [LIMIT, LEAST], ids=str)
def test_a_claim_is_confirmed_by_its_own_limit(claimed, claim):
    """REGRESSED; the ratios are those of subject to reference. The other claim keeps what it said."""
    verdict = settle_time(claimed, [agreeing(claim), agreeing(claim)], machine=False, claim=claim)
    found = finding(verdict, claim)
    assert (verdict.status, verdict.fails, found.status) == (Status.REGRESSED, True, Status.REGRESSED)
    assert found.confirmed == pytest.approx((1.3, 1.3))
    assert found.decision.reason.startswith("60 of 60 pairs were more than 3.0% ")
    assert verdict.time == claimed.time
    (other,) = {LIMIT, LEAST} - {claim}
    assert finding(verdict, other) == finding(claimed, other)


def test_a_claim_that_holds_in_a_fresh_process_is_taken_back(claimed):
    """Slower than its reference is not slower than the limit; faster than a lower limit is what breaks that one."""
    once = settle_time(claimed, [agreeing(LIMIT, 1.05)], machine=False, claim=LIMIT)
    assert finding(once, LIMIT).status is Status.UNDECIDED
    assert "was not confirmed by fresh process 1 of 2" in finding(once, LIMIT).decision.reason
    assert (once.status, once.fails) == (Status.REGRESSED, True)  # the other claim has not been heard
    both = settle_time(once, [agreeing(LEAST), agreeing(LEAST, 2.0)], machine=False, claim=LEAST)
    assert (both.status, both.fails, both.time.status) == (Status.UNDECIDED, False, Status.SAME)


@pytest.mark.parametrize(
    ("launches", "machine"),
    [([CRASHED], False), ([RepeatOutcome(agreeing(LIMIT).case, SLOWER)], False), ([], True), ([], False)],
    ids=["crash", "control", "machine", "nothing"],
)
def test_a_claim_that_cannot_be_confirmed_is_invalid(claimed, launches, machine):
    verdict = settle_time(claimed, launches, machine=machine, claim=LIMIT)
    assert (verdict.status, verdict.fails, finding(verdict, LIMIT).status) == (Status.INVALID, True, Status.INVALID)
    assert verdict.worst == finding(verdict, LIMIT)


CONTROL = RepeatOutcome(agreeing(LIMIT).case, SLOWER)
LATER = {
    "the machine again": ([RepeatOutcome(agreeing(LEAST).case, SLOWER)], True),
    "taken back": ([agreeing(LEAST, 2.0)], True),
    "confirmed": ([agreeing(LEAST)] * 2, False),
    "crashed": ([CRASHED], False),
    "nothing found": ([], False),
}


@pytest.mark.parametrize("what", LATER)
def test_one_duel_that_accuses_the_machine_does_not_excuse_another(claimed, what):
    """Of two broken claims the first accuses the machine: what the second finds still decides, in either order."""
    launches, accuses_it = LATER[what]
    last = settle_time(
        settle_time(claimed, [CONTROL], machine=False, claim=LIMIT), launches, machine=False, claim=LEAST
    )
    first = settle_time(
        settle_time(claimed, launches, machine=False, claim=LEAST), [CONTROL], machine=False, claim=LIMIT
    )
    for verdict in (last, first):
        assert (verdict.status, verdict.fails, verdict.accuses_machine) == (Status.INVALID, True, accuses_it)


@pytest.mark.parametrize("strict", [True, False])
def test_a_missing_baseline_is_not_the_machines(strict):
    """Where strict the case is red without its claim: the machine is not all that is to blame, and taken back it stays red."""
    found = judge(CASE, (LIMIT,), measurement(reference=reference()), None, strict=strict, reference_duel=BROKEN)
    assert settle_time(found, [CONTROL], machine=False, claim=LIMIT, strict=strict).accuses_machine is not strict
    verdict = settle_time(found, [agreeing(LIMIT, 1.0)], machine=False, claim=LIMIT, strict=strict)
    assert (verdict.status, verdict.fails) == (Status.NO_BASELINE, strict)


def test_each_claim_is_repeated_until_one_disagrees(claimed):
    """Two processes for the one that comes again, one for the other."""
    ran = []

    def fresh(again):
        ran.append(again.claim)
        return agreeing(again.claim, 1.3 if again.claim == LIMIT else 2.0)

    waiting = Provisional(claimed, [DuelRepeat(LIMIT_AGAIN), DuelRepeat(LEAST_AGAIN)])
    verdict = confirm(waiting, Instruments(repeat_duel=fresh), machine=False)
    assert ran == [LIMIT, LIMIT, LEAST]
    assert [finding(verdict, claim).status for claim in (LIMIT, LEAST)] == [Status.REGRESSED, Status.UNDECIDED]


def test_only_what_is_red_is_repeated(claimed):
    """A duel accuses a case where its own finding is red."""
    assert (accuses(claimed, LIMIT), accuses(claimed, LEAST), accuses(claimed, None)) == (True, True, False)
    assert not accuses(claimed, claim("run_ns <= 5 * reference"))


# launch


@pytest.fixture
def child(monkeypatch):
    """What a fresh process writes, says on stderr and returns; remembers its command and its job."""
    seen = {}

    def prepare(duels=None, stderr="", code=0, error=None):
        def run(command, **options):
            folder = Path(command[-1])
            seen.update(command=command, folder=folder, job=read_job(folder), options=options)
            if isinstance(duels, bytes):
                (folder / "duels.json").write_bytes(duels)
            elif duels is not None:
                write_duels(folder, duels)
            if error is not None:
                raise error
            return subprocess.CompletedProcess(command, code, stdout="", stderr=stderr)

        monkeypatch.setattr(subprocess, "run", run)
        return seen

    return prepare


def test_a_fresh_process_is_given_the_whole_duel(child):
    """This Python, one folder that is gone afterwards; both programs, the arguments and JAX's settings in it."""
    seen = child(BOTH)
    found = repeat_duel(DUEL)
    assert seen["command"][:-1] == own_program("jaxgate.processes.duel_worker")
    assert seen["options"]["timeout"] == 600
    assert not seen["folder"].exists()
    job = seen["job"]
    (match,) = job.matches
    assert (match.now.content, match.baseline.content, match.now.record) == (b"today", b"before", PROGRAM)
    assert [leaf.tolist() for leaf in match.leaves] == [[0.0, 1.0, 2.0], 2.0]
    assert job.about["kinds"] == [["array", "weak"]]
    assert job.about["platform"] == "cpu"
    assert job.about["settings"]["jax_enable_x64"] is False
    assert (found.case.status, found.control.status, found.problem) == (Status.SLOWER, Status.SAME, "")


def test_a_fresh_process_needs_41_of_60(child):
    """40 pairs would do in the first process, and do not here."""
    child({"case": duel(40), "control": duel(41)})
    found = repeat_duel(DUEL)
    assert found.case.status is not Status.SLOWER
    assert found.control.status is Status.SLOWER


def test_sides_with_environments_of_their_own_are_four_processes():
    """Two for the case, two for the baseline's program against itself, under its own settings."""
    opened, left = [], [duel(60), duel(0)]

    @contextmanager
    def open_sides(asked):
        opened.append(asked)
        yield object(), object()

    given = Environments(now={"jax": "1", "A": "2"}, baseline={"jax": "1"}, variables={})
    apart = replace(DUEL, environments=given)
    found = repeat_duel(apart, open_sides=open_sides, run_duel=lambda *_, **__: left.pop(0))
    assert (found.case.status, found.control.status, found.problem) == (Status.SLOWER, Status.SAME, "")
    assert opened[0] == apart
    assert [one.now for one in opened[1].matches] == [one.baseline for one in DUEL.matches]
    assert opened[1].environments.now == given.baseline


def test_a_side_that_cannot_be_had_confirms_nothing():
    @contextmanager
    def open_sides(_):
        raise WorkerError("exit status 1")
        yield

    given = Environments(now={}, baseline={}, variables={})
    found = repeat_duel(replace(DUEL, environments=given), open_sides=open_sides)
    assert (found.case, found.problem) == (None, "two fresh processes failed: exit status 1")


def test_a_claim_is_judged_by_its_limit_and_the_control_by_none(child):
    """1.3 times the reference is within ``at most 1.3``; a control that differs by as much is not."""
    child({"case": duel(60), "control": duel(60)})
    found = repeat_duel(replace(DUEL, claim=claim("run_ns <= 1.3 * reference")))
    assert (found.case.status, found.control.status) == (Status.SAME, Status.SLOWER)
    assert found.case.ratio == pytest.approx(1.3)


BOTH = {"case": duel(60), "control": duel(0)}
NOTHING = "a fresh process gave nothing usable"
PROBLEMS = {
    "its last line": (
        {"stderr": "Traceback\n  ...\nRuntimeError: out\n", "code": 1},
        "a fresh process failed: RuntimeError: out",
    ),
    "or how it ended": ({"code": -9}, "a fresh process failed: exit status -9"),
    "it hangs": (
        {"duels": BOTH, "error": subprocess.TimeoutExpired("python", 600)},
        "a fresh process took more than 600 s",
    ),
    "it cannot be started": (
        {"error": OSError(12, "Cannot allocate memory")},
        "a fresh process could not be started: [Errno 12]",
    ),
    "cut short": ({"duels": b'{"case": {"now_ns": [[1'}, NOTHING),
    "not what was asked for": ({"duels": json.dumps({"case": {"now_ns": "many"}}).encode()}, NOTHING),
    "without the control": ({"duels": {"case": duel(60)}}, NOTHING),
    "without a pair": ({"duels": {**BOTH, "case": duel(0, pairs=0)}}, NOTHING),
    "with too few pairs": ({"duels": {**BOTH, "case": duel(20, pairs=20)}}, NOTHING),
    "traced while timing": ({"duels": {**BOTH, "case": duel(60, traces=1)}}, NOTHING),
    "control traced while timing": ({"duels": {**BOTH, "control": duel(0, traces=1)}}, NOTHING),
    "the clock went back": ({"duels": {**BOTH, "case": duel(60, by=-1.0)}}, NOTHING),
}


@pytest.mark.parametrize("what", PROBLEMS)
def test_what_is_no_result_is_a_problem_and_not_a_crash(child, what):
    """The session goes on to report every test; this case says why it cannot be confirmed."""
    left, problem = PROBLEMS[what]
    child(**left)
    found = repeat_duel(DUEL)
    assert (found.case, found.control) == (None, None)
    assert found.problem.startswith(problem)


def test_a_duel_that_cannot_be_handed_over_is_one_problem_not_the_end_of_the_run():
    """The test donated its own arrays after the gate: this case is INVALID, the other suspects are repeated."""
    gone = jnp.ones(3)
    gone.delete()
    found = repeat_duel(replace(DUEL, matches=[replace(DUEL.matches[0], leaves=[gone])]))
    assert found.problem.startswith("it could not be handed to a fresh process: RuntimeError")


PHASE = Finding(kind="phase", name="compile_ns", status=Status.REGRESSED, now=9.0, against=1.0, allowed=2.0)
PHASES = PhaseRepeat(again=AGAIN, test="t", now=measurement(), before=Phases(compile_ns=1))


def recording(asked=None, **changes):
    """A fresh process of pytest that records a baseline with these changes."""

    def into_folder(side, selection, into):
        if asked is not None:
            asked.append(side.environment)
        save_baseline(into, replace(record().baseline, **changes))
        return {}

    return Instruments(record=into_folder)


@pytest.mark.parametrize(
    ("compile_ns", "status", "machine"), [(1, Status.INVALID, True), (10**12, Status.REGRESSED, False)]
)
def test_a_phase_decides_with_the_others_whether_the_machine_is_accused(suspect, compile_ns, status, machine):
    """Taken back, it leaves the machine as the only suspect; confirmed, the case is red by itself."""
    others = [finding for finding in suspect.verdict.findings if finding.name != PHASE.name]
    red = replace(suspect.verdict, findings=(*others, PHASE))
    waiting = Provisional(red, [DuelRepeat(DUEL), PHASES])
    verdict = confirm(waiting, recording(phases=Phases(compile_ns=compile_ns)), machine=True)
    assert verdict.accuses_machine is machine
    (phase,) = [finding for finding in verdict.findings if finding.name == PHASE.name]
    assert (phase.status is Status.REGRESSED) is not machine
    assert verdict.fails
    assert status in {finding.status for finding in verdict.findings}


def test_stored_times_do_not_accuse_the_machine_together(suspect):
    """A slow-down against them hits many cases at once by nature, and looks at the machine itself."""

    class Stored(DuelRepeat):
        may_be_machine = False

    again = RepeatOutcome(suspect.verdict.time.decision, has_control=False)
    stored = replace(suspect, repeats=[Stored(DUEL)])
    given = Instruments(repeat_duel=lambda _: again)
    assert suspect.may_be_machine
    assert not stored.may_be_machine
    assert confirm(stored, given, machine=True).status is Status.SLOWER
    assert confirm(suspect, given, machine=True).status is Status.INVALID


@pytest.mark.parametrize(
    "changes",
    [
        {"fingerprints": replace(FINGERPRINTS, program="1" * 32)},
        {"fingerprints": replace(FINGERPRINTS, options="xla_x=1")},
        {"environment": {"jax": "0.12"}},
    ],
    ids=["program", "options", "environment"],
)
def test_a_phase_is_not_taken_back_by_another_program(suspect, changes):
    """A fresh process that compiles something else in no time says nothing: the case stays red, and says why."""
    waiting = Provisional(replace(suspect.verdict, findings=(PHASE,)), [PHASES], strict=True)
    verdict = confirm(waiting, recording(phases=Phases(compile_ns=1), **changes), machine=False)
    (phase,) = verdict.findings
    assert (phase.status, verdict.fails) == (Status.INVALID, True)
    assert phase.detail == ("it could not be confirmed: a fresh process ran another program, or in another environment")


def test_a_phase_is_measured_again_without_a_cache(suspect):
    """What this process compiled the next one would find in a persistent cache, and could confirm nothing."""
    asked = []
    confirm(Provisional(replace(suspect.verdict, findings=(PHASE,)), [PHASES]), recording(asked), machine=False)
    assert asked
    assert all(variables["JAX_ENABLE_COMPILATION_CACHE"] == "false" for variables in asked)
