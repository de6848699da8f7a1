"""The gate with anybody's function: donation, threading, copies, and a project of its own."""

import json

STEP = """
import jax, jax.numpy as jnp

def step(state, batch):
    grads = jax.grad(lambda w: jnp.mean((batch @ w) ** 2))(state["w"])
    return {"w": state["w"] - 0.1 * grads}, jnp.sum(grads)

STATE, BATCH = {"w": jnp.ones((16, 16))}, jnp.ones((4, 16))
"""
LOSES = """
from jaxgate import Tolerance

LOSES = Tolerance(fact="lost_bytes", absolute=1024, why="no result can take it over")
"""


def facts_of(project, case):
    """The recorded facts of a case."""
    (content,) = [json.loads(text) for path, text in project.baselines().items() if path.endswith(f"{case}.json")]
    return content["facts"], content


def test_one_line_gates_a_donated_step(project):
    """gate(step, state, batch, donate="state") jits, donates, threads and leaves the caller's arrays alone."""
    project.write(
        "test_model.py",
        STEP
        + "def test_step(gate):\n    gate(step, STATE, BATCH, donate='state')\n    assert float(STATE['w'][0, 0]) == 1.0\n",
    )
    result = project.run("--perf-update")
    result.counts(passed=1)
    facts, content = facts_of(project, "step")
    assert facts["donated_bytes"] == facts["aliased_bytes"] == 16 * 16 * 4
    assert facts["traces"] == facts["compiles"] == 1
    assert [leaf["path"] for leaf in content["signature"]] == ["state['w']", "batch"]
    assert content["case"] == "model/step"
    assert content["test"] == "test_model.py::test_step"


def test_a_jitted_function_keeps_its_own_donation(project):
    """A function that is jitted already is taken as its author made it; its arguments are copied outside the clock."""
    project.write(
        "test_model.py",
        STEP + LOSES + "jitted = jax.jit(lambda s: s['w'].sum(), donate_argnums=0)\n"
        "def test_sum(gate):\n    gate(jitted, STATE, tolerances=[LOSES])\n    assert not STATE['w'].is_deleted()\n",
    )
    result = project.run("--perf-update", "-W", "ignore:Some donated buffers")
    result.counts(passed=1)
    facts, content = facts_of(project, "sum")
    assert facts["donated_bytes"] == facts["lost_bytes"] == 1024
    assert facts["aliased_bytes"] == 0
    assert content["samples"]["calls_per_burst"] == 1


MISUSE = {
    "jax.jit(step), STATE, BATCH, donate='state'": (
        "found one that is jitted already; put donate_argnames into its own jax.jit"
    ),
    "step, STATE, BATCH, donate='nothing'": "expected one of the arguments state, batch, found 'nothing'",
    "step, STATE, BATCH, tolerance=1": (
        "gate() has no option tolerance; did you mean tolerances=?; expected one of: analytic_flops, atol, batch, carry,"
    ),
    "step, STATE, BATCH, max_tmp_bytes=1": "max_tmp_bytes= claims nothing: expected max_ and one of",
    "'step', STATE, BATCH": "gate: expected a function or a case first, found 'step'",
    "step, STATE, BATCH, kwargs=[1]": "gate: expected kwargs={...}, found [1]",
    "step, STATE, BATCH, reference=3": "gate: expected a function as reference=, found 3",
    "step, STATE, BATCH, claims=claim('temp_bytes <= reference', 'x')": "gate: expected claims=[...], found Claim(",
    "step, STATE, BATCH, tolerances=LOSES": "gate: expected tolerances=[...], found Tolerance(",
    "step, STATE, BATCH, batch='batch'": "gate: expected batch=Batch(...), found 'batch'",
    "step, STATE, BATCH, name=3": "gate: expected a text as name=, found 3",
    "step, STATE, BATCH, name=''": "gate: expected a text as name=, found ''",
}


def test_misuse_is_told(project):
    """Arguments that do not fit, or not together, fail the test before anything is made of them: in one line, without a traceback."""
    tests = [f"def test_{place}(gate):\n    gate({call})\n" for place, call in enumerate(MISUSE)]
    twice = "def test_twice(gate):\n    gate(step, STATE, BATCH)\n    gate(step, STATE, BATCH)\n"
    project.write("test_model.py", STEP + LOSES + "from jaxgate import claim\n" + "\n".join(tests) + twice)
    result = project.run()
    result.counts(failed=len(MISUSE) + 1)
    result.shows("expected one call of gate in a test, found a second", *MISUSE.values())
    assert "gate.py" not in result.text  # nor any other line of ours
    assert "During handling" not in result.text


def test_other_compiler_options_are_not_identical(project):
    """Compiler options are invisible in StableHLO; a change of them must not pass for an identical program."""
    project.write(
        "test_model.py", STEP + "jitted = jax.jit(step)\ndef test_step(gate):\n    gate(jitted, STATE, BATCH)\n"
    )
    project.run("--perf-update")
    assert project.run().line("model/step").startswith("SAME")
    project.edit("test_model.py", "jax.jit(step)", "jax.jit(step, compiler_options={'xla_cpu_enable_fast_math': True})")
    result = project.run()
    assert "identical program" not in result.line("model/step")
    assert "(compiler options changed)" in result.line("model/step")


def test_other_input_values_are_not_identical(project):
    """A loop bound among the arguments makes another time of the same program; a number in a sum does not."""
    project.write(
        "test_model.py",
        "import jax, jax.numpy as jnp\n"
        "def loop(n, x):\n    return jax.lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * 0.5), (0, x))[1]\n"
        "def test_loop(gate):\n    gate(loop, jnp.int32(3), jnp.ones(8))\n"
        "def test_wave(gate):\n    gate(jnp.sin, jnp.full(8, 7.0))\n",
    )
    project.run("--perf-update")
    assert project.run().line("model/loop").startswith("SAME")
    project.edit("test_model.py", "jnp.int32(3)", "jnp.int32(3000)")
    project.edit("test_model.py", "7.0", "9.0")
    result = project.run()
    result.counts(passed=1, failed=1)
    result.shows(
        "loop_turns 3,000 against 3", "inputs changed", "to both programs, and stablehlo.while may depend on them"
    )
    wave = result.line("model/wave")
    assert wave.startswith("SAME")
    assert "identical program (input values changed; no operation's work depends on them)" in wave


METHOD = """
import jax, jax.numpy as jnp
from functools import partial

class Trainer:
    @partial(jax.jit, static_argnums=0, donate_argnums=1)
    def step(self, state, x):
        return state * 0.5 + x

@partial(jax.jit, donate_argnums=0)
def decay(state, x, rate):
    return state * rate + x

def test_method(gate):
    gate(Trainer().step, jnp.ones(64), jnp.ones(64))

def test_partial(gate):
    gate(partial(decay, rate=0.5), jnp.ones(64), jnp.ones(64))
"""


def test_a_method_or_partial_of_a_jitted_function_keeps_its_donation(project):
    """A bound method and a partial are not jitted again, which would lose what their author asked for."""
    project.write("test_model.py", METHOD)
    project.run("--perf-update").counts(passed=2)
    for case in ("method", "partial"):
        facts, _ = facts_of(project, case)
        assert facts["donated_bytes"] == facts["aliased_bytes"] == 256, case
    project.edit("test_model.py", "static_argnums=0, donate_argnums=1", "static_argnums=0")
    result = project.run("-k", "method")
    result.counts(failed=1, deselected=1)
    result.shows("donated_bytes 0 B against 256 B")


def test_a_jitted_step_that_donates_its_state_is_threaded(project):
    """What a jitted function donates is fed from its result, so that a drift of its types is seen."""
    project.write(
        "test_model.py",
        "import jax, jax.numpy as jnp\n"
        "step = jax.jit(lambda s, x: ((s + x).astype('bfloat16'), x.sum()), donate_argnums=0)\n"
        "def test_step(gate):\n    gate(step, jnp.ones(8), jnp.ones(8))\n",
    )
    result = project.run()
    result.counts(failed=1)
    result.shows("step 2 retraced", "float32[8] → bfloat16[8]")


def test_a_donated_keyword_argument(project):
    """donate= names arguments, however they are passed."""
    project.write(
        "test_model.py",
        STEP + LOSES + "def test_step(gate):\n"
        "    gate(step, STATE, kwargs={'batch': BATCH}, donate='batch', tolerances=[LOSES])\n"
        "def test_other(gate):\n    gate(step, STATE, kwargs={'batch': BATCH}, donate='state')\n",
    )
    project.run("--perf-update", "-W", "ignore:Some donated buffers").counts(passed=2)
    assert facts_of(project, "other")[0]["donated_bytes"] == 1024
    assert facts_of(project, "step")[0]["donated_bytes"] == 4 * 16 * 4


def test_what_is_not_jitted_by_jax_is_called_as_it_is(project):
    """A function jitted by another library is gated as its author made it; as a reference of a program it says why not."""
    project.write(
        "test_model.py",
        "import jax.numpy as jnp\nfrom flax import nnx\n"
        "model = nnx.Linear(2, 2, rngs=nnx.Rngs(0))\n"
        "@nnx.jit\ndef call(model, x):\n    return model(x)\n"
        "def test_call(gate):\n    gate(call, model, jnp.ones((1, 2)))\n"
        "def test_reference(gate):\n    gate(lambda m, x: m(x), model, jnp.ones((1, 2)), reference=call)\n",
    )
    result = project.run()
    result.counts(failed=1, passed=1)
    result.shows("INVALID      model/reference", "expected a function jitted by jax.jit", "nnx.split")


PMAP = """
import jax, jax.numpy as jnp

def s(x):
    return jax.lax.psum(x * 2, "i")

total = jax.pmap(s, axis_name="i")  # its name is part of the helper's: _multi_slice

def test_total(gate):
    gate(total, jnp.ones((1, 16)))
"""


def test_pmap_places_its_arguments_without_an_alarm(project):
    """The helper that pmap compiles for the first call's arguments is no recompile of the subject."""
    project.write("test_model.py", PMAP)
    project.run("--perf-update").counts(passed=1)
    assert project.run("--perf-strict").line("model/total").startswith("SAME")


NEXT_ARGS = """
import jax, jax.numpy as jnp, numpy as np

def step(state, batch):
    return state * 0.5 + batch, state.sum()

def following(output, args):
    return output[0], np.ones(4, np.float32)  # a batch from the host, as an input pipeline makes it

def test_step(gate):
    gate(step, jnp.ones(4), np.ones(4, np.float32), next_args=following, donate="state")

def test_both(gate):
    gate(step, jnp.ones(4), np.ones(4, np.float32), next_args=following, carry="state")
"""


def test_next_args_is_an_option_of_its_own(project):
    """It goes before the threading that donation would ask for; with carry= it is a contradiction."""
    project.write("test_model.py", NEXT_ARGS)
    result = project.run()
    result.counts(passed=1, failed=1)
    assert result.line("model/step").startswith("NO_BASELINE")
    result.shows("expected carry= or next_args=, found both; either says what the next step is called with")
