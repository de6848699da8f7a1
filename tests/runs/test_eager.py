"""gate(..., eager=True): a training loop's body, called as it is, recorded and held against its baseline."""

import json

import pytest
from support.corpora import nightly
from support.fakes import duel

LOOP = """
import jax, jax.numpy as jnp, numpy as np

@jax.jit
def forward(w, x):
    return x @ w

@jax.jit
def update(w, y):
    return w - 0.1 * jnp.mean(y)

W, X = jnp.ones((16, 16)), np.ones((4, 16), np.float32)

def body(w, x):
    w = update(w, forward(w, x))
    return w, float(w[0, 0])

def test_body(gate):
    gate(body, W, X, eager=True, carry="w")
"""

TRAIN = """
import jax.numpy as jnp, numpy as np, optax
from flax import nnx

@nnx.jit
def train_step(model, optimizer, x):
    loss, grads = nnx.value_and_grad(lambda m: jnp.mean(m(x) ** 2))(model)
    optimizer.update(model, grads)
    return loss

def test_train_step(gate):
    model = nnx.Linear(8, 8, rngs=nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)
    gate(train_step, model, optimizer, np.ones((4, 8), np.float32), eager=True)
"""


@pytest.fixture
def loop(project):
    """A project with the loop."""
    return project.write("test_loop.py", LOOP)


def stored(project):
    """The one baseline of a project."""
    (content,) = [json.loads(text) for text in project.baselines().values()]
    return content


def test_an_unchanged_loop_is_identical(loop):
    """It is recorded with the programs that it launches; the second run finds the same ones."""
    loop.run("--perf-update").counts(passed=1)
    content = stored(loop)
    assert content["eager"] is True
    assert content["launched"] == {"dynamic_slice": 1, "forward": 1, "squeeze": 1, "update": 1}
    assert (content["facts"]["launches"], content["facts"]["traces"], content["facts"]["compiles"]) == (4, 1, 1)
    assert content["facts"]["host_transfers"] == 4  # the batch, two indices, and the number brought back
    assert content["program"]["why_not"] == "plain Python around jitted calls cannot be stored"
    assert len(list((loop.path / "baselines" / "programs").iterdir())) == 4
    result = loop.run("--perf-strict")
    result.counts(passed=1)
    assert result.line("loop/body").startswith("SAME")
    result.shows("4 identical programs")


def test_an_eager_operation_is_named(loop):
    """One more operation outside of jit is one more launch, and the program is named."""
    loop.record()
    loop.edit("test_loop.py", "    return w, float", "    w = jnp.clip(w, -1.0, 1.0)\n    return w, float")
    result = loop.run()
    result.counts(failed=1)
    result.shows(
        "launches 5 against 4 = 1.25 ×, allowed 4",
        "culprit   programs started in a call: clip 0 → 1 at test_loop.py:16; comes from: code",
    )


def test_a_jitted_function_called_twice_is_named_with_its_lines(loop):
    """More launches of a function of the project show every line that calls it."""
    loop.record()
    loop.edit("test_loop.py", "    return w, float", "    w = update(w, forward(w, x))\n    return w, float")
    result = loop.run()
    result.counts(failed=1)
    result.shows(
        "forward 1 → 2 at test_loop.py:15, test_loop.py:16", "update 1 → 2 at test_loop.py:15, test_loop.py:16"
    )


def test_a_function_object_in_each_call_breaks_the_claims(loop):
    """A jax.jit within the loop traces and compiles at every step; no baseline is needed to see it."""
    loop.edit("test_loop.py", "update(w, forward(w, x))", "update(w, jax.jit(lambda w, x: x @ w)(w, x))")
    result = loop.run()
    result.counts(failed=1)
    result.shows("traces = 1", "step 2 retraced: <lambda>: a new function object per call at test_loop.py:15")
    loop.run("--perf-update").counts(failed=1)
    assert loop.baselines() == {}


def test_a_batch_that_comes_from_the_host_at_each_step_is_seen(loop):
    """State that was on the device, and is now brought there in each call, is one more transfer."""
    loop.edit("test_loop.py", "forward(w, x))", "forward(w, X_THERE))")
    loop.edit("test_loop.py", "np.ones((4, 16), np.float32)", "np.ones((4, 16), np.float32)\nX_THERE = jnp.asarray(X)")
    loop.run("--perf-update").counts(passed=1)
    loop.edit("test_loop.py", "forward(w, X_THERE))", "forward(w, x))")
    result = loop.run()
    result.counts(failed=1)
    result.shows("host_transfers 4 against 3 = 1.33 ×, allowed 3", "1 for forward at test_loop.py:16")


@nightly
def test_an_nnx_step_is_gated(project):
    """A function under nnx.jit is a subject on the host; it is measured on copies of model and optimizer."""
    project.write("test_model.py", TRAIN)
    project.run("--perf-update").counts(passed=1)
    assert stored(project)["launched"] == {"train_step": 1}
    result = project.run("--perf-strict")
    result.counts(passed=1)
    assert result.line("model/train_step").startswith("SAME")


def test_a_baseline_of_the_other_kind_is_stale(loop):
    """Facts of a program and facts of Python around programs are not held against each other."""
    loop.edit("test_loop.py", 'gate(body, W, X, eager=True, carry="w")', "gate(forward, W, X)")
    loop.run("--perf-update").counts(passed=1)
    loop.edit("test_loop.py", "gate(forward, W, X)", "gate(forward, W, X, eager=True)")
    result = loop.run("--perf-strict")
    result.counts(failed=1)
    result.shows("it is of a function under jax.jit, today's subject is plain Python", "record it again")


@nightly
def test_launches_that_can_no_longer_be_counted_are_red(loop):
    """A fact that the baseline has and today's run cannot get fails, with the reason."""
    loop.record()
    loop.edit(
        "test_loop.py",
        'gate(body, W, X, eager=True, carry="w")',
        'import tempfile\n    jax.profiler.start_trace(tempfile.mkdtemp(dir="."))\n'
        '    try:\n        gate(body, W, X, eager=True, carry="w")\n    finally:\n        jax.profiler.stop_trace()',
    )
    result = loop.run()
    result.counts(failed=1)
    result.shows("INVALID", "launches: the baseline has it, today's measurement does not: no profile could be taken")


def test_a_changed_program_of_a_loop_is_duelled(loop, lab):
    """What no fact shows, a clock does: the program alone, as often as a call launches it, and again in fresh processes."""
    loop.record()
    loop.edit("test_loop.py", "w - 0.1 * jnp.mean(y)", "w - 0.1 * jnp.max(y)")
    lab.finds["baseline"] = duel(1.3)
    result = loop.run()
    result.counts(failed=1)
    result.shows("SLOWER  loop/body", "20 of 20 pairs were more than 3.0% slower (program changed); in fresh processes")
    (match,) = lab.launched[0].matches
    assert match.calls == (1, 1)
    lab.finds["baseline"] = duel(1.0)
    assert loop.run().line("loop/body").startswith("SAME")


@nightly
def test_a_loop_whose_program_lost_its_file_is_invalid(loop):
    """As for a jitted function: the next command stands there."""
    loop.record()
    for path in (loop.path / "baselines" / "programs").iterdir():
        path.unlink()
    loop.run().counts(passed=1)  # nothing changed: nobody needs it
    loop.edit("test_loop.py", "w - 0.1 * jnp.mean(y)", "w - 0.1 * jnp.max(y)")
    result = loop.run()
    result.counts(failed=1)
    result.shows("INVALID", "is missing or damaged; restore it with git")


def test_a_claim_on_launches(project):
    """Launches may be held against the reference's; run time may not, and says why."""
    project.write(
        "test_loop.py",
        LOOP.replace(
            "def test_body",
            "def naive(w, x):\n    w = w - 0.1 * jnp.mean(x @ w)\n    return w, float(w[0, 0])\n\ndef test_body",
        )
        .replace(
            'carry="w"',
            'carry="w", reference=naive, claims=[claim("launches <= 0.9 * reference"), claim("run_ns <= reference")]',
        )
        .replace("import jax,", "from jaxgate import claim\nimport jax,"),
    )
    result = project.run()
    result.counts(passed=1)
    result.shows("plain Python around device programs cannot be stored and duelled")
    project.edit("test_loop.py", 'claim("launches <= 0.9 * reference")', 'claim("launches <= 0.1 * reference")')
    result = project.run()
    result.counts(failed=1)
    result.shows("claim launches ≤ 0.1 × reference")


def test_donation_is_the_inner_functions_own(loop):
    """donate= says nothing of a function that is called as it is."""
    loop.edit("test_loop.py", 'carry="w"', 'donate="w"')
    result = loop.run()
    result.counts(failed=1)
    result.shows("expected no donate= with eager=True, found donate='w'", "carry= threads the state")
