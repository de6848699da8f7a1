"""What is held against the lock file: each kind of mistake is red with its function, each kind of innocent difference is not."""

from dataclasses import replace

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


def test_the_same_run_is_green():
    """Also where another test is the first to compile what both share, and where each test has a process of its own."""
    theirs = replace(SHARED, test="test_b"), replace(HELPER, test="test_b")
    assert texts(seen(SHARED, OWN, OWN, HELPER, HELPER)) == []
    assert texts(seen(OWN, *theirs, OWN, HELPER)) == []
    assert texts(seen(SHARED, HELPER, tests=["test_a"]), seen(*theirs, OWN, OWN, tests=["test_b"])) == []


def test_a_part_of_the_tests_is_green():
    """It compiles what others compile for it else; functions that it never traces are taken for JAX's own."""
    assert texts(seen(SHARED, tests=["test_a"], project=["step"])) == []
    assert texts(seen(OWN, OWN, tests=["test_b"], project=[])) == []


def test_a_function_that_is_compiled_more_often_is_red():
    """With the function, its line and why: jitted anew in each call, no test may make it twice."""
    (change,) = changes(KNOWN, [seen(SHARED, replace(SHARED, test="test_b"))])
    assert change.text == "step is compiled 2 times for f32[3], 1 before"
    assert change.cause == "step at lib.py:3 in test_b: x: float32[3] → float32[4]"
    assert texts(seen(OWN, OWN, OWN)) == ["own is compiled 3 times for f32[3], 2 before"]


def test_emptied_caches_explain_as_many_more():
    twice = [SHARED, replace(SHARED, test="test_b")]
    assert texts(seen(*twice, cleared=1)) == []
    assert texts(seen(*twice, SHARED, cleared=1)) == ["step is compiled 3 times for f32[3], 1 before"]
    assert texts(seen(*[HELPER] * 3, cleared=1)) == []


def test_other_arguments_are_red():
    other, third = made(arguments="f32[4]", program="p4"), made(arguments="f32[5]", program="p5")
    assert texts(seen(SHARED, other, third)) == [
        "step is compiled for other arguments than known: f32[4]; likewise for 1 other kind of arguments"
    ]


def test_a_function_that_nobody_compiled_is_red():
    assert texts(seen(made(function="new"))) == ["new is compiled which no test compiled before: f32[3]"]


def test_a_program_that_needs_more_is_red_by_more_than_a_hundredth():
    """On the hardware that the lock file is from; elsewhere compilers differ."""
    assert texts(seen(made(flops=101))) == []
    assert texts(seen(made(flops=102, temp_bytes=8))) == [
        "step needs more for f32[3]: flops 100 → 102, temp_bytes 0 → 8"
    ]
    assert texts(seen(made(flops=102), hardware="cpu-other-1")) == []


def test_new_tests_are_told_and_not_red():
    new = [made("test_new", "other", program="p9")] * 3 + [made("test_new", flops=900)] * 2
    run = seen(SHARED, *new, tests=["test_a", "test_new"])
    assert texts(run) == []
    assert new_tests(KNOWN, [run]) == ["test_new"]


def test_a_run_of_new_tests_alone_is_red_where_it_is_strict():
    """Under CI nothing would be held against anything: the tests were renamed, or pytest began elsewhere."""
    run = seen(tests=["renamed"])
    assert texts(run) == []
    assert texts(run, strict=True) == ["expected tests that the lock file knows, found none"]
    assert texts(seen(tests=["renamed", "test_b"]), strict=True) == []


def test_what_is_compiled_while_modules_are_imported_is_no_new_test():
    """It is held to the file as what a test compiles."""
    assert texts(seen(SHARED, made(IMPORT, "new"), tests=["test_a"])) == [
        "new is compiled which no test compiled before: f32[3]"
    ]


def test_functions_of_jax_are_held_to_what_they_compile_again():
    """Which test is the first to add two arrays is chance; that equal programs are compiled again and again is none."""
    assert texts(seen(HELPER, made(function="add", program="p6"), made(function="mul", program="p7"))) == []
    assert texts(seen(*[HELPER] * 13)) == []
    (change,) = changes(KNOWN, [seen(*[HELPER] * 14)])
    assert change.text == "add, called outside of jit, is compiled 13 times to a program that there was, 1 before"
    assert change.cause == "add at lib.py:3, 13 × in test_a"


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
