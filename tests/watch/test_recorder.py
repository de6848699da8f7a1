"""What each test makes, from JAX's events: by function, arguments and program."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgate.ext.watch.model import IMPORT, repeated
from jaxgate.ext.watch.recorder import Recorder, digest_of, parameters_of


@pytest.fixture
def recorder():
    """One that listens."""
    with Recorder(str) as found:
        yield found


def of_project(recorder):
    """What the lock file would have."""
    return [(one.function, one.arguments) for one in recorder.seen.of_project()]


def test_a_shared_function_is_made_by_the_first_test(recorder):
    """For each kind of argument and each static value once."""

    @partial(jax.jit, static_argnums=1)
    def power(x, n):
        return x**n

    x = np.ones(3, np.float32)
    power(x, 2)
    recorder.test("first", 1.0)
    power(x, 2)
    power(x, 3)
    power(np.ones(4, np.float32), 2)
    recorder.test("second", 1.0)
    made = [(one.test, one.arguments) for one in recorder.seen.made if one.function == "power"]
    assert made == [("first", "f32[3]"), ("second", "f32[3]"), ("second", "f32[4]")]
    assert repeated(recorder.seen.made) == []


def test_a_function_jitted_anew_is_made_again(recorder):
    """The same program, with its cause; the compiler says what it needs."""
    x = np.ones((8, 8), np.float32)
    for _ in range(3):
        jax.jit(lambda x: x @ x)(x)
    recorder.test("test", 1.0)
    assert of_project(recorder) == [("<lambda>", "f32[8,8]")] * 3
    again = repeated(recorder.seen.made)
    assert [one.cause for one in again] == ["a new function object"] * 2
    assert again[0].where.partition(":")[0].endswith("test_recorder.py")
    assert again[0].facts["argument_bytes"] == 256
    assert again[0].facts["xla_flops"] >= 2 * 8**3 - 8**2


def test_other_values_in_a_closure_are_another_program(recorder):
    for factor in (2.0, 3.0):
        jax.jit(lambda x, factor=factor: x * factor)(np.ones(3, np.float32))
    recorder.test("test", 1.0)
    assert of_project(recorder) == [("<lambda>", "f32[3]")] * 2
    assert repeated(recorder.seen.made) == []


def test_what_was_traced_within_another_function_is_told_by_its_program(recorder):
    """It is not traced again where it is called itself, so that JAX explains nothing."""

    @jax.jit
    def inner(x):
        return x * 3

    jax.jit(lambda x: inner(x) + 1)(np.ones(3, np.float32))
    recorder.test("first", 1.0)
    inner(np.ones(3, np.float32))
    recorder.test("second", 1.0)
    assert of_project(recorder) == [("<lambda>", "f32[3]"), ("inner", "f32[3]")]


def test_a_function_under_grad_is_of_the_project(recorder):
    """JAX sends no event of its trace there, and none of the helpers, which are known already."""

    def loss(x):
        return (x**2).mean()

    jax.value_and_grad(jax.jit(lambda x: loss(x)))(np.ones(3, np.float32))
    recorder.test("before", 1.0)
    jax.value_and_grad(jax.jit(loss))(np.ones(3, np.float32))
    recorder.test("test", 1.0)
    assert {one.function for one in recorder.seen.of_project()} >= {"loss"}


def test_functions_of_jax_are_nobodys(recorder):
    """A cond that is called eagerly is made each time."""
    x = jnp.ones(7)
    recorder.test("before", 1.0)
    for _ in range(2):
        jax.lax.cond(True, lambda x: x + 1, lambda x: x * 2, x)
    recorder.test("test", 1.0)
    assert of_project(recorder) == []
    assert [one.function for one in repeated(recorder.seen.of_jax())] == ["cond"]


def test_what_is_traced_alone_has_its_time(recorder):
    jax.make_jaxpr(jax.jit(lambda x: jnp.sin(x)))(np.ones(3, np.float32))
    jax.eval_shape(jax.jit(lambda x: jnp.cos(x)), np.ones(3, np.float32))
    recorder.test("test", 1.0)
    assert recorder.seen.made
    assert all(one.program == "" and one.traced_s > 0 for one in recorder.seen.made)


def test_emptied_caches_are_counted(recorder):
    """And JAX's function is itself again afterwards."""
    jax.clear_caches()
    assert recorder.seen.cleared == 1
    recorder.__exit__(None, None, None)
    assert jax.clear_caches.__module__.startswith("jax")


def test_what_is_made_while_modules_are_imported_is_no_test(recorder):
    jax.jit(lambda x: x - 2)(np.ones(3, np.float32))
    recorder.test(IMPORT, 0.0)
    seen = recorder.end()
    assert ([one.test for one in seen.made], seen.tests) == ([IMPORT], {})
    assert (seen.jax, seen.hardware.partition("-")[0], seen.jit_is_off) == (jax.__version__, "cpu", False)


def test_programs_whose_text_is_not_whole_are_never_equal():
    """A constant that is too large to be printed may be another one."""
    assert digest_of("HloModule jit_f\n\nENTRY %main () -> f32[] {\n  ROOT %c = f32[] constant(1)\n}")
    assert digest_of("HloModule jit_f\n\nENTRY %main () -> f32[9] {\n  ROOT %c = f32[9] constant({...})\n}") == ""
    assert digest_of("") == digest_of("HloModule jit_f") == ""


def test_a_test_that_is_not_kept_leaves_nothing(recorder):
    jax.jit(lambda x: x - 1)(np.ones(3, np.float32))
    recorder.test("gate", 1.0, keep=False)
    recorder.test("next", 1.0)
    assert (recorder.seen.made, list(recorder.seen.tests)) == ([], ["next"])


def test_programs_are_equal_wherever_they_are_called(recorder):
    """Lines of Python are no part of what a program does."""
    x = np.ones(5, np.float32)
    jax.jit(lambda x: x * 7)(x)
    jax.jit(lambda x: x * 7)(x)
    jax.jit(lambda x: x * 8)(x)
    recorder.test("test", 1.0)
    first, second, third = (one.program for one in recorder.seen.of_project())
    assert first == second != third


def test_parameters_are_read_from_the_first_line_of_a_program():
    """Without layouts and the numbers that XLA puts between them."""
    text = "HloModule jit_f, entry_computation_layout={(f32[64,64]{1,0}, s32[], /*index=5*/f32[2]{0:T(128)})->f32[]{}}, x={y}"
    assert parameters_of(text) == "f32[64,64], s32[], f32[2]"
    assert parameters_of("HloModule jit_f, entry_computation_layout={()->f32[]}\n{(f32[2])->f32[]}") == ""
    assert parameters_of("") == ""


def test_of_a_test_that_is_run_again_the_attempt_that_made_more_counts(recorder):
    """A flaky one whose first attempt compiled all, and one that failed before it did."""
    shared = jax.jit(lambda x: x * 3)
    for _ in range(3):
        shared(np.ones(3, np.float32))
        jax.jit(lambda x: x + 1)(np.ones(4, np.float32))
        recorder.test("flaky", 1.0)
    assert of_project(recorder) == [("<lambda>", "f32[3]"), ("<lambda>", "f32[4]")]
    assert recorder.seen.tests == {"flaky": 1.0}
    recorder.test("late", 1.0)
    jax.jit(lambda x: x - 1)(np.ones(3, np.float32))
    recorder.test("late", 1.0)
    assert [one.test for one in recorder.seen.of_project()] == ["flaky", "flaky", "late"]
