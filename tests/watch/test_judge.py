"""What is held against the lock file: each kind of mistake is red with its function, each kind of innocent difference is not."""

from dataclasses import replace

import pytest

from jaxgate.ext.watch.judge import changes, new_tests
from jaxgate.ext.watch.model import IMPORT, Made, Seen, lock_of, merged

HERE = {"jax": "0.12", "hardware": "cpu-amd-epyc-1"}


def made(test="test_a", function="step", arguments="f32[3]", program="p1", **facts):
    """A program of a test."""
    return Made(
        test=test,
        function=function,
        arguments=arguments,
        program=program,
        facts={"flops": 100, "temp_bytes": 0, **facts},
        traced_s=0.1,
        compiled_s=0.2,
        where="lib.py:3",
        cause="x: float32[3] → float32[4]",
    )


def seen(*programs, tests=("test_a", "test_b"), cleared=0, project=("step", "own", "new"), **here):
    """What a process saw."""
    return Seen(
        tests=dict.fromkeys(tests, 1.0), made=list(programs), project=set(project), cleared=cleared, **{**HERE, **here}
    )


SHARED = made()
OWN = made("test_b", "own", program="p2")
HELPER = made(function="add", program="p5")
KNOWN = lock_of(seen(SHARED, OWN, OWN, HELPER, HELPER))


def texts(*processes, strict=False):
    """What is red."""
    return [change.text for change in changes(KNOWN, processes, strict=strict)]


def by(one, test="test_b"):
    """The same of another test."""
    return replace(one, test=test)


NEW = [made("test_new", "other", program="p9")] * 3 + [made("test_new", flops=900)] * 2
GREEN = {
    "the same": [seen(SHARED, OWN, OWN, HELPER, HELPER)],
    "another test is the first": [seen(OWN, by(SHARED), by(HELPER), OWN, HELPER)],
    "each test has a process": [
        seen(SHARED, HELPER, tests=["test_a"]),
        seen(by(SHARED), by(HELPER), OWN, OWN, tests=["test_b"]),
    ],
    "a part, which never traces the others": [seen(SHARED, tests=["test_a"], project=["step"])],
    "another part": [seen(OWN, OWN, tests=["test_b"], project=[])],
    "caches were emptied": [seen(SHARED, by(SHARED), cleared=1)],
    "of JAX's functions, too": [seen(*[HELPER] * 3, cleared=1)],
    "a hundredth more": [seen(made(flops=101))],
    "more, on other hardware": [seen(made(flops=102), hardware="cpu-other-1")],
    "of JAX's functions other programs": [
        seen(HELPER, made(function="add", program="p6"), made(function="mul", program="p7"))
    ],
    "and equal ones again by chance": [seen(*[HELPER] * 13)],
    "new tests": [seen(SHARED, *NEW, tests=["test_a", "test_new"])],
}


@pytest.mark.parametrize("what", GREEN)
def test_what_is_no_mistake_is_green(what):
    """Whoever is the first compiles for the others, and other hardware has another compiler."""
    assert texts(*GREEN[what]) == []


STEP, ADD = "step at lib.py:3", "add at lib.py:3, 13 × in test_a"
BECAUSE = "x: float32[3] → float32[4]"
RED = {
    "compiled anew": (seen(SHARED, by(SHARED)), "step is compiled 2 times for f32[3], 1 before", f"{STEP} in test_b: {BECAUSE}"),
    "once more": (seen(OWN, OWN, OWN), "own is compiled 3 times for f32[3], 2 before", f"own at lib.py:3 in test_b: {BECAUSE}"),
    "more than emptied caches explain": (
        seen(SHARED, by(SHARED), SHARED, cleared=1), "step is compiled 3 times for f32[3], 1 before", f"{STEP} in test_a: {BECAUSE}"
    ),
    "other arguments": (
        seen(SHARED, made(arguments="f32[4]", program="p4"), made(arguments="f32[5]", program="p5")),
        "step is compiled for other arguments than known: f32[4]; likewise for 1 other kind of arguments",
        f"{STEP} in test_a: {BECAUSE}",
    ),
    "a new function": (seen(made(function="new")), "new is compiled which no test compiled before: f32[3]", f"new at lib.py:3 in test_a: {BECAUSE}"),
    "of an imported module": (
        seen(SHARED, made(IMPORT, "new"), tests=["test_a"]),
        "new is compiled which no test compiled before: f32[3]",
        f"new at lib.py:3 in {IMPORT}: {BECAUSE}",
    ),
    "a larger program": (
        seen(made(flops=102, temp_bytes=8)), "step needs more for f32[3]: flops 100 → 102, temp_bytes 0 → 8", f"{STEP} in test_a"
    ),
    "one of JAX's again and again": (
        seen(*[HELPER] * 14), "add, called outside of jit, is compiled 13 times to a program that there was, 1 before", ADD
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", RED)
def test_a_mistake_is_red(what):
    """With the function, its line and why."""
    run, text, cause = RED[what]
    (change,) = changes(KNOWN, [run])
    assert (change.text, change.cause) == (text, cause)


def test_a_run_of_new_tests_alone_is_red_where_it_is_strict():
    """Under CI nothing would be held against anything: the tests were renamed, or pytest began elsewhere."""
    run = seen(tests=["renamed"])
    assert texts(run) == []
    assert texts(run, strict=True) == ["expected tests that the lock file knows, found none"]
    assert texts(seen(tests=["renamed", "test_b"]), strict=True) == []
    assert new_tests(KNOWN, [run]) == ["renamed"]


def test_another_jax_is_no_comparison():
    """It is red, as nothing was held against anything."""
    assert texts(seen(SHARED, jax="0.13")) == ["expected jax 0.12, as recorded, found 0.13"]


def test_a_part_that_is_recorded_leaves_the_rest():
    """What is gone goes once no other test is left that may compile it."""
    part = lock_of(seen(OWN, tests=["test_b"]))
    both = merged(KNOWN, part, [])
    assert (both.tests, both.again, both.programs.keys()) == (KNOWN.tests, KNOWN.again, KNOWN.programs.keys())
    assert [known.compiles for known in both.programs.values()] == [1, 2]
    assert merged(KNOWN, part, ["test_a"]) == part
    assert merged(replace(KNOWN, jax="0.11"), part, []) == part
