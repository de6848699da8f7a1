"""Where a difference comes from, and when two programs are identical enough to need no clock."""

from dataclasses import replace
from itertools import product

import pytest
from support.factories import (
    ENVIRONMENT,
    FINGERPRINTS,
    HARDWARE,
    OTHER_CPU,
    baseline,
    decision,
    launched_program,
    measurement,
)

from jaxgate.judge.difference import NO_SOURCE, OUTSIDE, Difference
from jaxgate.judge.time import judge_time
from jaxgate.model.decision import Status
from jaxgate.model.measurement import Culprits

SAME, CHANGED, UNKNOWN = "same", "changed", "unknown"
ANY = (SAME, CHANGED, UNKNOWN)
DRIVER, RELEASE = "driver", "release"
SCALE, REBUILT, UNREAD = ({"my_scale": library} for library in ("libscale.so 0", "libscale.so 1", ""))
NOW = {SAME: ENVIRONMENT, DRIVER: {**ENVIRONMENT, "driver": "590.1"}, RELEASE: {**ENVIRONMENT, "jax": "0.12.0"}}

# The truth table, each row by hand: source, program, environment, inputs, options -> place.
TABLE = [
    ((SAME,), (SAME,), (SAME,), (SAME,), (SAME,), "nothing changed"),
    ((SAME,), (SAME,), (SAME,), (CHANGED,), (SAME,), OUTSIDE),
    ((SAME,), (CHANGED,), (SAME,), (SAME, CHANGED), (SAME,), OUTSIDE),
    ((SAME,), (SAME,), (DRIVER, RELEASE), (SAME, CHANGED), (SAME,), "environment"),
    ((SAME,), (CHANGED,), (DRIVER,), (SAME, CHANGED), (SAME,), "environment"),
    ((SAME,), (CHANGED,), (RELEASE,), (SAME, CHANGED), (SAME,), "JAX tracing and lowering"),
    ((SAME,), (SAME, CHANGED), (SAME,), (SAME, CHANGED), (CHANGED, UNKNOWN), OUTSIDE),  # the source does not have them
    ((SAME,), (SAME, CHANGED), (DRIVER, RELEASE), (SAME, CHANGED), (CHANGED, UNKNOWN), "not separable here"),
    ((CHANGED, UNKNOWN), (SAME, CHANGED), (SAME,), (SAME, CHANGED), ANY, "code"),
    ((CHANGED, UNKNOWN), (SAME, CHANGED), (DRIVER, RELEASE), (SAME, CHANGED), ANY, "not separable here"),
]
ROWS = [(*row, where) for *columns, where in TABLE for row in product(*columns)]


def changed(source=SAME, program=SAME, environment=SAME, inputs=SAME, options=SAME):
    """Today's measurement, with what changed against the healthy baseline."""

    def value(before, what):
        return {SAME: before, CHANGED: "another", UNKNOWN: None}[what]

    prints = replace(
        FINGERPRINTS,
        source=value("s0", source),
        program=value(FINGERPRINTS.program, program),
        inputs=value("i0", inputs),
        options=value("", options),
    )
    return measurement(fingerprints=prints, environment=NOW[environment])


def test_the_table_is_whole():
    """Every combination has one row: 3 sources × 2 programs × 3 environments × 2 inputs × 3 options."""
    wanted = product(ANY, (SAME, CHANGED), (SAME, DRIVER, RELEASE), (SAME, CHANGED), ANY)
    assert sorted(row[:-1] for row in ROWS) == sorted(wanted)


@pytest.mark.parametrize(("row", "where"), [(row[:-1], row[-1]) for row in ROWS], ids=["-".join(row) for row in ROWS])
def test_every_row_of_the_table(row, where):
    """Each combination of changes is placed; a command that separates them comes only where it is needed."""
    origin = Difference(changed(*row), baseline()).origin
    assert origin.place == where
    assert bool(origin.separate) == (where == "not separable here")


def test_another_version_of_a_package_is_named():
    """Where the program changed and nothing of the project's or of JAX's did; the same version, or an unknown one, is no reason."""
    now = replace(changed(program=CHANGED), libraries={"solver": "1.1", "new": "2"})
    assert Difference(now, baseline(libraries={"solver": "1.0", "gone": "1"})).origin.place == "solver 1.0 → 1.1"
    assert Difference(now, baseline(libraries={"solver": "1.1"})).origin.place == OUTSIDE
    assert Difference(changed(), baseline(libraries={"solver": "1.0"})).origin.place == "nothing changed"


@pytest.mark.parametrize("field", ["source", "options"])
def test_a_baseline_that_does_not_know_is_as_unknown(field):
    """A fingerprint that the baseline lacks is unknown, not changed and not the same."""
    before = baseline(fingerprints=replace(FINGERPRINTS, **{field: None}))
    label = {"source": "source", "options": "compiler options"}[field]
    assert Difference(measurement(), before).origin.differences == (f"{label} unknown",)
    both = measurement(fingerprints=before.fingerprints)
    assert Difference(both, before).origin.differences == (f"{label} unknown",)


@pytest.mark.parametrize(
    ("name", "place"),
    [
        *[(name, "JAX tracing and lowering") for name in ("jax", "jaxlib")],
        *[(name, "environment") for name in ("jax_enable_x64", "jaxlib_flags", "python")],
    ],
)
def test_only_the_packages_themselves_are_a_jax_release(name, place):
    """A new program of an unchanged source, where one has another value or is gone; not a setting whose name begins alike."""
    gone = {other: value for other, value in ENVIRONMENT.items() if other != name}
    for environment in (gone, gone | {name: "0.12.0"}) if name in ENVIRONMENT else (gone | {name: "other"},):
        now = replace(changed(program=CHANGED), environment=environment)
        assert Difference(now, baseline()).origin.place == place


@pytest.mark.parametrize(
    ("now", "place", "differences"),
    [
        (changed(), "environment", ("hardware cpu-intel-xeon-1 → cpu-amd-epyc-1",)),
        (changed(program=CHANGED), "environment", ("program changed", "hardware cpu-intel-xeon-1 → cpu-amd-epyc-1")),
        (
            replace(
                changed(CHANGED, CHANGED, SAME, CHANGED, CHANGED),
                environment={"jax": "0.12.0", "jaxlib": "0.10.2", "driver": "590.1"},
            ),
            "not separable here",
            (
                "program changed", "source changed", "compiler options changed", "input values changed",
                "hardware cpu-intel-xeon-1 → cpu-amd-epyc-1", "driver absent → 590.1", "jax 0.10.2 → 0.12.0",
                "python 3.11 → absent",
            ),
        ),
    ],
)  # fmt: skip
def test_all_differences_are_listed(now, place, differences):
    """Fingerprints first, then hardware (a borrowed baseline was recorded elsewhere), then the environment by name."""
    origin = Difference(now, baseline(hardware=OTHER_CPU)).origin
    assert (origin.place, origin.differences) == (place, differences)


def test_the_command_that_separates_installs_the_old_release():
    """Source and release changed at once: the old release, with its version, tells them apart."""
    origin = Difference(changed(source=CHANGED, environment=RELEASE), baseline()).origin
    assert origin.separate == ("run again with the baseline's environment: pip install jax==0.10.2 jaxlib==0.10.2")


@pytest.mark.parametrize(
    ("now", "hardware"),
    [(changed(source=CHANGED, environment=DRIVER), HARDWARE), (changed(source=CHANGED), OTHER_CPU)],
    ids=["driver", "hardware"],
)
def test_the_command_that_separates_is_not_a_wrong_one(now, hardware):
    """Where the release is the same, installing it again separates nothing and is not proposed."""
    origin = Difference(now, baseline(hardware=hardware)).origin
    assert (origin.place, "pip install" in origin.separate) == ("not separable here", False)


def timed(now, before, decision=None, **how):
    """The verdict on time, by default where no duel was run."""
    return judge_time(Difference(now, before), decision, "no duel was run", **how)


@pytest.mark.parametrize("source", [SAME, CHANGED, UNKNOWN])
@pytest.mark.parametrize("duel", [None, decision()], ids=["not asked", "called slower"])
def test_an_identical_program_is_the_same_by_identity(duel, source):
    """Nothing that a clock could see has changed: SAME without one, and a clock that says otherwise is noise.

    A rewritten source that gives the same program cannot be slower on the device.
    """
    verdict = timed(changed(source=source), baseline(), duel)
    assert (verdict.status, verdict.reason, verdict.decision) == (Status.SAME, "identical program", None)


SILENT = replace(FINGERPRINTS, options=None)


@pytest.mark.parametrize(
    ("now", "before", "reason"),
    [
        (changed(program=CHANGED), {}, f"program changed [{NO_SOURCE}] and no duel was run"),
        (changed(options=CHANGED), {}, "compiler options changed and no duel was run"),
        (changed(inputs=CHANGED), {}, "inputs changed and no duel was run"),
        (changed(environment=RELEASE), {}, "environment changed [jax 0.10.2 → 0.12.0] and no duel was run"),
        (changed(environment=DRIVER), {}, "environment changed [driver absent → 590.1] and no duel was run"),
        (measurement(), {"hardware": OTHER_CPU}, "hardware changed and no duel was run"),
        (measurement(hardware=replace(HARDWARE, devices=2)), {}, "hardware changed and no duel was run"),
        (changed(program=CHANGED, inputs=CHANGED), {}, "program and inputs changed and no duel was run"),
        (changed(program=CHANGED, options=CHANGED, inputs=CHANGED, environment=RELEASE), {"hardware": OTHER_CPU},
         "program and compiler options and inputs and environment and hardware changed [jax 0.10.2 → 0.12.0] and no duel was run"),
        (changed(options=UNKNOWN), {}, "compiler options are unknown"),
        (measurement(), {"fingerprints": SILENT}, "compiler options are unknown"),
        (changed(options=UNKNOWN), {"fingerprints": SILENT}, "compiler options are unknown"),
        (measurement(facts={"host_callbacks": 1}), {"facts": {"host_callbacks": 1}}, "calls Python"),
        (measurement(facts={"host_callbacks": 1}), {}, "calls Python"),
        (measurement(facts={"host_callbacks": None}), {}, "it is unknown whether the program calls Python"),
        (measurement(facts={"host_callbacks": None}), {"facts": {"host_callbacks": None}}, "it is unknown whether"),
        (measurement(native_code=SCALE), {}, "the program calls my_scale, native code"),
        (measurement(native_code=UNREAD), {"native_code": UNREAD}, "the program calls my_scale, native code"),
        (measurement(native_code=UNREAD), {"native_code": SCALE}, "the program calls my_scale, native code"),
        (measurement(native_code=SCALE), {"native_code": UNREAD}, "the program calls my_scale, native code"),
        (measurement(native_code=SCALE), {"native_code": REBUILT}, "native code changed [libscale.so]"),
    ],
)  # fmt: skip
def test_identity_is_refused(now, before, reason):
    """Whatever may have made it slower, or is not known, takes away the identity and is named."""
    verdict = timed(now, baseline(**before))
    assert verdict.status is Status.UNDECIDED
    assert reason in verdict.reason


def test_the_same_library_is_the_same_program():
    """Its target alone says nothing: a library is built anew under the same names."""
    verdict = timed(measurement(native_code=SCALE), baseline(native_code=SCALE))
    reason = "identical program; libscale.so as before, what it calls in others is not seen"
    assert (verdict.status, verdict.reason) == (Status.SAME, reason)
    origin = Difference(measurement(native_code=SCALE), baseline(native_code=REBUILT)).origin
    assert origin.differences == ("native code changed",)


def test_an_unknown_library_is_no_error_beside_another_executable():
    """It has no name; flags that changed are named all the same."""
    one, other = (replace(FINGERPRINTS, executable=digit * 32) for digit in "12")
    now = measurement(native_code=UNREAD, fingerprints=one)
    verdict = timed(now, baseline(fingerprints=other))
    assert verdict.reason.startswith("the program calls my_scale, native code")
    assert "native code changed" in Difference(now, baseline(fingerprints=other)).origin.differences


RIDDLE = "the same program compiles to another executable here, and nothing that is known explains it"
IDENTICAL = "identical program"


@pytest.mark.parametrize(
    ("now", "before", "reason", "place", "differences"),
    [
        # StableHLO does not hold the order of devices: it is asked for on its own
        ({"devices": "1 0"}, {"devices": "0 1"}, "device assignment changed", OUTSIDE, ("device assignment changed",)),
        # what the compiler made was changed by something that nobody listed: no place in the code is blamed
        ({"executable": "e1"}, {"executable": "e0"}, RIDDLE, "environment", ("executable changed",)),
        # other options compile to another one: that is no riddle
        ({"executable": "e1", "options": "x=1"}, {"executable": "e0"}, "compiler options changed", OUTSIDE, ("compiler options changed",)),
        # the order of independent lines of the source reaches the executable, and not the fingerprint of the program
        ({"executable": "e1", "source": "s1"}, {"executable": "e0"}, IDENTICAL, "code", ("source changed",)),
        ({"executable": "e1", "source": None}, {"executable": "e0"}, IDENTICAL, "code", ("source unknown",)),
        # what one side does not know is not compared: the baseline may be older than it
        *[({part: now}, {part: before}, IDENTICAL, "nothing changed", ())
          for part in ("devices", "executable") for now, before in (("0", "0"), ("0", None), (None, "0"), (None, None))],
    ],
)  # fmt: skip
def test_devices_and_the_executable_are_asked_for_on_their_own(now, before, reason, place, differences):
    ours = measurement(fingerprints=replace(FINGERPRINTS, **now))
    theirs = baseline(fingerprints=replace(FINGERPRINTS, **before))
    verdict, difference = timed(ours, theirs), Difference(ours, theirs)
    same = reason == IDENTICAL
    assert verdict.status is (Status.SAME if same else Status.UNDECIDED)
    assert verdict.reason == (reason if same else f"{reason} and no duel was run")
    assert (difference.origin.place, difference.origin.differences) == (place, differences)
    assert difference.times_as_executable is (reason in (IDENTICAL, RIDDLE))


def test_other_values_do_not_explain_another_executable():
    """Where no work depends on them the compiler was given the same."""
    one, other = (replace(FINGERPRINTS, executable=executable) for executable in ("e0", "e1"))
    now = measurement(fingerprints=replace(other, inputs="i1"), depends_on_values=())
    assert timed(now, baseline(fingerprints=one)).reason == f"{RIDDLE} and no duel was run"


@pytest.mark.parametrize(
    ("program", "operations", "reason"),
    [
        (SAME, (), "identical program (input values changed; no operation's work depends on them)"),
        (SAME, ("stablehlo.while",), "inputs changed and no duel was run"),
        (SAME, None, "inputs changed and no duel was run"),
        (CHANGED, (), "program and inputs changed and no duel was run"),
    ],
)
def test_other_values_count_where_work_may_depend_on_them(program, operations, reason):
    """Today's program is the baseline's, so that what is known of it holds for both; of another one it does not."""
    now = replace(changed(program=program, inputs=CHANGED), depends_on_values=operations)
    verdict = timed(now, baseline())
    assert verdict.reason == reason
    assert (verdict.status is Status.SAME) == reason.startswith("identical")
    assert "input values changed" in Difference(now, baseline()).origin.differences


LOOPS = ("stablehlo.while",)
BOTH = ("stablehlo.case", "stablehlo.while")
TURNS = {"while float32[3]": 41, "cond float32[3] branch 0": 1, "cond float32[3] branch 1": 0}


@pytest.mark.parametrize(
    ("operations", "turns", "before", "same"),
    [
        (LOOPS, {"while float32[3]": 41}, {"while float32[3]": 41}, True),
        (LOOPS, {"while float32[3]": 41}, {"while float32[3]": 42}, False),
        (LOOPS, {}, {}, False),  # not counted
        (LOOPS, {"while float32[3]": 41}, {}, False),  # a baseline of before
        (BOTH, TURNS, TURNS, True),
        (BOTH, {"while float32[3]": 41}, {"while float32[3]": 41}, False),  # its branches were not counted
        (BOTH, TURNS, {**TURNS, "cond float32[3] branch 0": 0, "cond float32[3] branch 1": 1}, False),
        ((*LOOPS, "stablehlo.sort"), TURNS, TURNS, False),
        (None, TURNS, TURNS, False),
    ],
)
def test_other_values_are_the_same_work_where_loops_and_branches_run_as_often(operations, turns, before, same):
    """Only where all that depends on values was counted, on both sides; of another program nothing is known."""
    now = replace(changed(inputs=CHANGED), depends_on_values=operations, turns=turns)
    verdict = timed(now, baseline(turns=before))
    assert (verdict.status is Status.SAME) == same
    if same:
        assert verdict.reason.startswith("identical program (input values changed; loops and branches")
    other = replace(changed(program=CHANGED, inputs=CHANGED), depends_on_values=operations, turns=turns)
    assert timed(other, baseline(turns=before)).status is not Status.SAME


@pytest.mark.parametrize("status", [Status.SAME, Status.FASTER, Status.SLOWER, Status.UNDECIDED])
def test_a_duel_judges_what_identity_does_not(status):
    """Where the program changed, the duel's word is the verdict on time, with its numbers and what differed."""
    duel = decision(status, reason=f"found {status}")
    verdict = timed(changed(program=CHANGED), baseline(), duel)
    assert (verdict.status, verdict.decision) == (status, duel)
    assert verdict.reason == f"found {status} (program changed [{NO_SOURCE}])"


def test_the_same_executable_needs_no_duel():
    """What compiles to the same cannot be slower; what changed before the compiler is named all the same."""
    verdict = timed(changed(program=CHANGED), baseline(), same_executable=True)
    assert verdict.status is Status.SAME
    assert verdict.reason == f"the same executable as the baseline's (program changed [{NO_SOURCE}])"


def test_the_same_executable_hides_what_a_setting_does():
    """On other hardware both sides were compiled with today's: nothing here shows it, and the command that does is named."""
    now = measurement(environment={**ENVIRONMENT, "XLA_FLAGS": "--xla_new"})
    verdict = timed(now, baseline(hardware=OTHER_CPU), same_executable=True)
    assert verdict.status is Status.UNDECIDED
    assert verdict.reason == (
        "environment and hardware changed [XLA_FLAGS absent → --xla_new] and a duel would give both sides today's "
        "settings: --perf-against NAME=VALUE times both"
    )


def test_a_stored_time_says_more_than_the_same_executable():
    """It was taken in the old environment, and so speaks of what the new one does."""
    verdict = timed(changed(environment=RELEASE), baseline(), decision(), same_executable=True)
    assert (verdict.status, verdict.decision) == (Status.SLOWER, decision())


@pytest.mark.parametrize(
    ("now", "before", "may"),
    [
        (changed(program=CHANGED), baseline(), True),
        (changed(environment=RELEASE), baseline(hardware=OTHER_CPU), True),
        (changed(inputs=CHANGED), baseline(), False),
        (changed(options=CHANGED), baseline(), False),
        (changed(options=UNKNOWN), baseline(), False),
        (changed(options=UNKNOWN), baseline(fingerprints=SILENT), False),
    ],
)
def test_executables_are_compared_where_all_else_is_equal(now, before, may):
    """Other argument values may run a loop more often; an unknown option may leave no trace in the program."""
    assert Difference(now, before).times_as_executable is may


def test_why_there_was_no_duel_is_said():
    """The reason goes on with what kept the duel from being run."""
    verdict = judge_time(Difference(changed(program=CHANGED), baseline()), None, "the budget for duels is spent")
    assert verdict.status is Status.UNDECIDED
    assert verdict.reason == f"program changed [{NO_SOURCE}] and the budget for duels is spent"


def test_a_setting_of_jax_is_named_before_releases():
    """Of many differences two are named, JAX's own settings first; the others are counted."""
    environment = {**ENVIRONMENT, "driver": "590.1", "jax": "0.12.0", "jaxlib": "0.12.0", "jax_enable_x64": "True"}
    named = "environment changed [jax_enable_x64 absent → True, driver absent → 590.1 and 2 more]"
    assert named in timed(measurement(environment=environment), baseline()).reason


def host(*, source="s", **changes):
    """Plain Python that launches two programs."""
    programs = (launched_program(), launched_program(name="multiply", fingerprint="1" * 32))
    facts = {"python_calls": 3, "host_callbacks": 0, "launches": 2}
    whole = {"eager": True, "fingerprints": replace(FINGERPRINTS, source=source), "launched_programs": programs}
    return whole | changes | {"facts": facts | changes.get("facts", {})}


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("s", "2 identical programs"),
        ("t", "2 identical programs; source changed: the Python between them is judged by its calls and host_ns"),
    ],
)
def test_plain_python_is_identical_where_all_its_programs_are(source, reason):
    """Where its source is another one, the line says what of the Python between programs is known."""
    verdict = timed(measurement(**host(source=source)), baseline(**host()))
    assert (verdict.status, verdict.reason) == (Status.SAME, reason)


def test_error_checks_are_no_unknown_python():
    """A program that calls Python to raise, and for nothing else, is identical; changed, it cannot be duelled anywhere."""
    now = measurement(facts={"host_callbacks": 2}, only_raises=True)
    verdict = timed(now, baseline(facts={"host_callbacks": 2}))
    assert verdict.status is Status.SAME
    assert verdict.reason == "identical program; its error checks call Python (EQX_ON_ERROR=nan leaves them out)"
    other = replace(now, fingerprints=replace(FINGERPRINTS, program="1" * 32))
    verdict = timed(other, baseline(facts={"host_callbacks": 2}))
    assert (verdict.status, verdict.anywhere) == (Status.UNDECIDED, True)
    assert verdict.reason == f"program changed [{NO_SOURCE}] and no duel was run"


OPEN = "a profile is open"


@pytest.mark.parametrize(
    ("now", "before", "why"),
    [
        ({"launched_programs": ()}, {}, "the programs of the plain Python are unknown: none was recorded"),
        ({"launched_programs": (), "unknown": {"xla_flops": OPEN}}, {}, f"the programs of the plain Python are unknown: {OPEN}"),
        ({"facts": {"launches": None}, "unknown": {"launches": OPEN}}, {}, f"the launches of the plain Python are unknown: {OPEN}"),
        ({}, {"launched_programs": ()}, "the baseline does not have the programs of the plain Python: record it again"),
        ({"facts": {"python_calls": None}}, {}, "the calls of the plain Python are unknown: they were not counted"),
        ({"facts": {"host_callbacks": 1}}, {}, "the program calls Python, which no fingerprint covers"),
        ({"facts": {"host_callbacks": 1}, "culprits": Culprits(callbacks=("f at step.py:3",))}, {},
         "the program calls Python (f at step.py:3), which no fingerprint covers"),
        ({"facts": {"host_callbacks": None}}, {}, "it is unknown whether the program calls Python"),
        ({"native_code": {"f": ""}}, {}, "the program calls f, native code that no fingerprint covers"),
    ],
)  # fmt: skip
def test_plain_python_is_not_identical_where_something_of_it_is_unknown(now, before, why):
    verdict = timed(measurement(**host(**now)), baseline(**host(**before)))
    assert (verdict.status, verdict.anywhere) == (Status.UNDECIDED, True)
    assert verdict.reason == f"{why} and no duel was run"


@pytest.mark.parametrize(("source", "place"), [("s0", "the test's own source did not change"), (None, "code")])
def test_options_within_plain_python_stand_in_its_source(source, place):
    """Where its programs are unknown, their options do not move the blame; its unknown source does."""
    now = measurement(eager=True, fingerprints=replace(SILENT, source=source))
    assert Difference(now, baseline(eager=True, fingerprints=SILENT)).origin.place == place
