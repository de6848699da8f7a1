"""What plain Python computes inside of the programs that it launches: facts, identity, and when they are unknown."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.measured import measured

from jaxgate.model.launched import CALL_FACTS
from jaxgate.observe.eager_programs import find_programs
from jaxgate.observe.execute.dispatches import Launched
from jaxgate.observe.execute.subjects import EagerSubject
from jaxgate.observe.tools import Tools

W, X = jnp.eye(8), jnp.ones((4, 8))


def training(activate, *, steps=4, wide=False, donate=False):
    """A loop of plain Python around a jitted step."""

    def step(w, x):
        for _ in range(3):
            x = activate(x @ w)
        return w - 0.1 * w, x.astype(jnp.float64 if wide else x.dtype).sum()

    jitted = jax.jit(step, donate_argnums=(0,) if donate else ())

    def train(w, x):
        losses = []
        for _ in range(steps):
            w, loss = jitted(w, x)
            losses.append(float(loss))
        return w * 2.0, sum(losses)

    return train


launched = partial(measured, eager=True)


def test_facts_are_added_up_over_calls():
    """Products of each call of each program; operations of each program once; the largest temporaries."""
    now = launched(training(jnp.tanh), W, X)
    step, multiply = now.launched_programs
    assert [(one.name, one.count, one.arguments) for one in now.launched_programs] == [
        ("step", 4, ("float32[8,8]", "float32[4,8]")),
        ("multiply", 1, ("float32[8,8]", "float32[]")),
    ]
    assert now.facts.matmul_flops == 4 * 3 * 2 * 4 * 8 * 8
    assert now.matmuls == {"float32[4,8] x float32[8,8]": 12}
    assert now.facts.xla_flops == 4 * step.facts["xla_flops"] + multiply.facts["xla_flops"]
    assert now.facts.transcendentals == 4 * 3 * 4 * 8
    assert now.facts.stablehlo_ops == step.facts["stablehlo_ops"] + multiply.facts["stablehlo_ops"]
    assert now.facts.temp_bytes == max(step.facts["temp_bytes"], multiply.facts["temp_bytes"])
    assert now.culprits.lines["float32[4,8] x float32[8,8]"].startswith("tests/observe/test_eager_programs.py:")
    assert (now.depends_on_values, now.native_code, now.fingerprints.options) == ((), {}, "")


@pytest.fixture(scope="module")
def before():
    """The loop as it was."""
    return launched(training(jnp.tanh), W, X)


@pytest.mark.parametrize(
    ("changed", "fact"),
    [
        (partial(training, lambda x: jnp.tanh(x @ W @ W)), "matmul_flops"),
        (partial(training, jnp.tanh, steps=5), "xla_flops"),
        (
            partial(training, lambda x: jax.pure_callback(np.tanh, jax.ShapeDtypeStruct(x.shape, x.dtype), x)),
            "host_callbacks",
        ),
    ],
)
def test_what_grows_inside_is_a_fact(before, changed, fact):
    """More work in a program that is launched as often, and its fingerprint is another."""
    now = launched(changed(), W, X)
    assert getattr(now.facts, fact) > getattr(before.facts, fact)
    assert now.fingerprints.program != before.fingerprints.program


def test_reused_buffers_are_added_up_over_steps():
    """Donation inside of a loop, which no argument of the subject shows."""
    assert launched(training(jnp.tanh, donate=True), W, X).facts.aliased_bytes == 4 * W.nbytes
    assert launched(training(jnp.tanh), W, X).facts.aliased_bytes == 0


def test_what_runs_while_a_function_is_traced_is_no_launch():
    """A recorded call traces anew, and computes with numbers that it knows: a warm call does not."""

    @jax.jit
    def step(x):
        with jax.ensure_compile_time_eval():
            scale = jnp.cos(jnp.ones(3)).sum()
        return x * scale

    now = launched(lambda x: step(x), X)
    assert [(one.name, one.count) for one in now.launched_programs] == [("step", 1)]


def test_a_function_that_uses_a_key_twice_is_recorded_all_the_same():
    """JAX refuses to trace it where keys are checked; so its calls are made to arrive in another way."""

    @jax.jit
    def noisy(key):
        return jax.random.normal(key, (3,)) + jax.random.uniform(key, (3,))

    now = launched(lambda key: noisy(key) * 2.0, jax.random.key(0))
    assert [(one.name, one.count) for one in now.launched_programs] == [("noisy", 1), ("multiply", 1)]


def test_an_error_check_is_no_unknown_python():
    """What does nothing but raise is named; anything else that is called beside it stays unknown."""
    check = eqx.filter_jit(lambda x: jnp.sin(eqx.error_if(x, x.sum() < 0, "negative")))
    now = launched(lambda x: check(x) * 2.0, X)
    assert (now.only_raises, now.facts.host_callbacks > 0) == (True, True)
    other = jax.jit(lambda x: jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x))
    assert not launched(lambda x: other(check(x)), X).only_raises
    assert not launched(lambda x: jnp.sin(x), X).only_raises


def test_values_that_decide_the_work_are_named():
    """A loop until a value is reached, in one of the programs."""
    halve = jax.jit(lambda x: jax.lax.while_loop(lambda x: x.sum() > 1, lambda x: x / 2, x))
    assert launched(lambda x: float(halve(x).sum()), X).depends_on_values == ("stablehlo.while",)


def test_a_program_compiled_ahead_of_time_leaves_the_programs_unknown():
    """It is launched and cannot be recorded: no fact, no identity, and the reason."""
    compiled = jax.jit(lambda x: x * 2).lower(X).compile()
    now = launched(lambda x: compiled(x) + 1, X)
    assert (now.launched_programs, now.facts.launches) == ((), 2)
    assert {getattr(now.facts, name) for name in CALL_FACTS} == {None}
    assert "1 of 2 launches could be recorded" in now.unknown["xla_flops"]
    assert now.fingerprints.options is None


def found(profile, **tools):
    """The programs of a loop whose profile says so."""
    subject = EagerSubject(training(jnp.tanh), ((W, X), {}), "subject")
    return find_programs(subject, profile, Tools(store={}, sampling=False, **tools))


def test_a_recording_that_a_profile_contradicts_is_not_believed():
    known = found(Launched({"step": 4, "multiply": 2}, {}))
    assert known.programs == ()
    assert "5 of 6 launches could be recorded" in known.why_not


def test_programs_are_known_without_a_profile():
    """Their facts gate; that the launches are unknown keeps the case from being identical."""
    assert len(found(Launched(None, None, "a profile is open")).programs) == 2


def test_what_another_rank_could_not_record_is_unknown_here():
    class Ranks:
        def anyone(self, what, yes):
            return True

    assert found(Launched({"step": 4, "multiply": 1}, {}), together=Ranks()).why_not == (
        "another rank could not record a program"
    )


def test_constants_and_callbacks_of_its_programs_are_named():
    table = jnp.asarray(np.random.default_rng(0).normal(size=(64, 8)), jnp.float32)

    @jax.jit
    def step(x):
        jax.debug.callback(lambda n: None, x.shape[0])
        return x @ table.T

    found = launched(lambda x: step(x), X).culprits
    assert [line.split(" used by")[0] for line in found.constants] == [
        "likely `table` captured in step: 64x8xf32 (2,048 bytes)"
    ]
    assert [line.split(" at ")[0] for line in found.callbacks] == ["jax.debug.callback"]
