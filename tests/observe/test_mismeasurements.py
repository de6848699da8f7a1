"""Classic mis-measurements planted in a user's test: the gate is not taken in by any of them."""

import jax
import jax.numpy as jnp
import pytest
from support.factories import steady

from jaxgate.judge.timing.duel import decide
from jaxgate.model.computation import Computation
from jaxgate.model.duel import RepeatOutcome
from jaxgate.model.measurement import InvalidCaseError
from jaxgate.observe.measure import observe
from jaxgate.observe.tools import Tools
from jaxgate.observe.trace.fingerprint import program_fingerprint

NO_DUEL = ("--perf-budget", "0")
HEADER = "import jax, jax.numpy as jnp\n"


def clocked(project, ratio):
    """Let every duel, here and in fresh processes, find this ratio; results are compared all the same."""
    told, even = steady(ratio), decide(steady(1.0))
    project.instruments.update(run_duel=lambda *_, **__: told, repeat_duel=lambda _: RepeatOutcome(decide(told), even))


def recorded(project, text):
    """A project with this test, and its baseline."""
    project.write("test_model.py", HEADER + text)
    project.record()
    return project


# Timing the compile

DRIFT = """
STEPS = iter(range(10 ** 6))

def later(output, args):
    return (output.astype("bfloat16") if next(STEPS) == 5 else output,)

def test_step(gate):
    gate(lambda s: s * 2, jnp.ones(4), next_args=later)
"""


def test_a_compile_while_sampling_is_red(project):
    """A retrace that comes after the threaded steps, in the sample: the claims of every case break."""
    project.write("test_model.py", HEADER + DRIFT)
    result = project.run()
    assert result.code == 1
    result.shows("REGRESSED  model/step", "claim sampled_traces = 0", "claim sampled_compiles = 0")


# Integer labels in a one-hot loss

LABELS = """
def loss(logits, labels):
    right = jnp.argmax(logits, -1) == 1
    return {"correct": right.sum(), "loss": -jnp.mean(jnp.sum(labels * jax.nn.log_softmax(logits), -1))}

def reference(logits, labels):
    return loss(logits, jax.nn.one_hot(labels, 4))

def test_loss(gate):
    gate(loss, jnp.eye(4), jnp.array([0, 2, 1, 3]), reference=reference)
"""


def test_integer_labels_in_a_one_hot_loss_are_invalid(project):
    """Shapes broadcast and nothing raises; the number is another one, and the leaf that holds it is named."""
    project.write("test_model.py", HEADER + LABELS)
    result = project.run()
    assert result.code == 1
    result.shows("INVALID  model/loss", "comparing subject and reference: result['loss']: subject gives")
    assert "result['correct']" not in result.text


# float32 against TF32


def program(precision):
    """Fingerprint of one matrix multiplication, lowered for hardware that has TF32."""
    x = jnp.ones((8, 8))
    traced = jax.jit(lambda a, b: jnp.matmul(a, b, precision=precision)).trace(x, x)
    return program_fingerprint(traced.lower(lowering_platforms=("cuda",)).compiler_ir("stablehlo"))


def test_precision_on_a_multiplication_is_part_of_the_program():
    """Default, high, highest and a named algorithm are four programs; default spelt out is no fifth."""
    algorithm = jax.lax.DotAlgorithmPreset.TF32_TF32_F32
    found = [program(precision) for precision in (None, "high", "highest", algorithm)]
    assert len(set(found)) == 4
    assert program("default") == found[0]


# NHWC against NCHW

CONV = """
def conv(x, w):
    return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

def other(x, w):
    x, w = jnp.transpose(x, (0, 3, 1, 2)), jnp.transpose(w, (3, 2, 0, 1))
    y = jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NCHW", "OIHW", "NCHW"))
    return BACK

def test_conv(gate):
    gate(conv, jnp.ones((1, 8, 8, 3)), jnp.ones((3, 3, 3, 4)))
"""


def test_transposing_there_and_back_is_left_out_by_the_compiler(project, monkeypatch):
    """The same result by way of the other layout: another program, and the same executable, which no clock can tell apart."""
    clocked(project, 1.3)
    recorded(project, CONV.replace("BACK", "jnp.transpose(y, (0, 2, 3, 1))"))
    project.edit("test_model.py", "gate(conv,", "gate(other,")
    result = project.run()
    assert result.code == 0
    assert "the same executable as the baseline's (program changed)" in result.line("SAME  model/conv")


# A jitted function mixed with eager steps

EAGER = """
RUNS = []

@jax.jit
def inner(x):
    return jnp.sin(x)

def step(x):
    RUNS.append(x)
    y = inner(x)
    EAGER
    return jnp.cos(y)

def test_step(gate):
    verdict = gate(step, jnp.ones(4))
    assert RUNS and all(isinstance(run, jax.core.Tracer) for run in RUNS)
"""


def test_eager_steps_around_a_jitted_function_are_jitted_with_it(project):
    """The Python around it runs with tracers alone, and is part of the one program that is timed."""
    recorded(project, EAGER.replace("EAGER", "y = y * 2"))
    project.edit("test_model.py", "y = y * 2", "y = y - 2")
    assert "program changed" in project.run(*NO_DUEL).line("UNDECIDED  model/step")
    project.edit("test_model.py", "assert RUNS and", "assert not RUNS and")
    project.run(*NO_DUEL).counts(failed=1)  # the assertion above was looked at


NEED_VALUES = {
    "y = y * float(y[0])": "ConcretizationTypeError",
    "y = y if y.sum() > 0 else -y": "TracerBoolConversionError",
    "y = y[: int(y.sum())]": "ConcretizationTypeError",
    "import numpy; y = y * numpy.asarray(y)": "TracerArrayConversionError",
}


def test_eager_steps_that_need_values_are_invalid(project):
    """They would leave the device in the middle of a step; the line that does it is named."""
    for place, line in enumerate(NEED_VALUES):
        project.write(f"test_model{place}.py", HEADER + EAGER.replace("EAGER", line))
    project.run().counts(failed=len(NEED_VALUES))
    for case, (place, error) in zip(project.results()["cases"], enumerate(NEED_VALUES.values()), strict=True):
        assert case["case"] == f"model{place}/step"
        assert f"tracing the subject: {error}" in case["text"]
        assert f"(at test_model{place}.py:12)" in case["text"]


# Flash attention on one side only

ATTENTION = """
def attention(q, k, v):
    logits = jnp.einsum("btnh,bsnh->bnts", q, k) / jnp.sqrt(q.shape[-1])
    return jnp.einsum("bnts,bsnh->btnh", jax.nn.softmax(logits, -1), v)

def test_attention(gate):
    q, k, v = jax.random.normal(jax.random.key(0), (3, 1, 8, 2, 4))
    gate(attention, q, k, v)
"""
FLASH = "gate(jax.nn.dot_product_attention, q, k, v)"


def test_another_attention_is_another_program(project, monkeypatch):
    """The library's attention in place of one's own: no identity; it is timed, and its results are compared."""
    clocked(project, 1.0)
    recorded(project, ATTENTION)
    project.edit("test_model.py", "gate(attention, q, k, v)", FLASH)
    line = project.run().line("SAME  model/attention")
    assert "program changed" in line
    assert "identical program" not in line
    assert "results differ" not in line
    project.edit("test_model.py", FLASH, "gate(lambda *qkv: jax.nn.dot_product_attention(*qkv, scale=0.9), q, k, v)")
    assert "results differ from the baseline's" in project.run().line("SAME  model/attention")


# Computing nothing


IDLE = {
    "no return": lambda: lambda x: None,
    "no return, arguments kept": lambda: jax.jit(lambda x: None, keep_unused=True),
    "nothing in the result": lambda: lambda x: {"out": (), "rest": x[:0]},
    "no arguments either": None,
}


@pytest.mark.parametrize("make", IDLE.values(), ids=IDLE)
def test_a_function_that_returns_nothing_is_refused(make):
    """JAX drops what nothing depends on: such a function is always fast, and SAME for ever."""
    computation = (
        Computation(subject=lambda: None) if make is None else Computation(subject=make(), args=(jnp.ones(4),))
    )
    with pytest.raises(InvalidCaseError, match="compiling the subject: expected a result, found none"):
        observe(lambda: computation, Tools(store=None))


def test_a_function_that_only_calls_python_is_measured():
    """A callback is work that nothing has to return."""

    def tell(x):
        jax.debug.callback(lambda value: None, x)

    assert (
        observe(
            lambda: Computation(subject=tell, args=(jnp.ones(4),)), Tools(store=None)
        ).measurement.facts.host_callbacks
        == 1
    )
