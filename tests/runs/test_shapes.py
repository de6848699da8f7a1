"""A case whose arguments are shapes, from its recording to a verdict."""

import pytest

MODEL = """
import jax, jax.numpy as jnp, jaxgate

def layer(x, w):
    return jnp.tanh(x @ w), None

def loss(ws, x):
    return jnp.sum(jax.lax.scan(jax.checkpoint(layer), x, ws)[0])

def step(ws, x):
    return ws - 0.1 * jax.grad(loss)(ws, x)

shape = jax.ShapeDtypeStruct

def test_step(gate):
    gate(step, shape((16, 64, 64), jnp.float32), shape((32, 64), jnp.float32), donate="ws")
"""
WITHOUT_REMAT = ("jax.checkpoint(layer)", "layer")


@pytest.fixture
def recorded(project):
    """A case that was recorded with the usual command."""
    project.write("test_model.py", MODEL).record()
    return project


def test_an_unchanged_one_is_the_same(recorded):
    """Green where nothing is left open, and the line says what was not asked."""
    result = recorded.run()
    assert result.code == 0
    result.shows("1 case: 1 SAME", "identical program; compiled for shapes (jax.ShapeDtypeStruct), never called")


def test_a_step_that_needs_more_memory_is_red_and_names_why(recorded, lab):
    """No clock is asked, no process started, nothing profiled; the bundle has both programs."""
    recorded.edit("test_model.py", *WITHOUT_REMAT)
    result = recorded.run("--perf-profile=failing")
    assert (result.code, lab.launched) == (1, [])
    result.shows("REGRESSED  model/step", "temp_bytes", "remat", "not profiled: compiled for shapes")
    files = {file.name for file in (recorded.path / "perf-artifacts/model/step").iterdir()}
    assert {"now.stablehlo.txt", "baseline.stablehlo.txt", "stablehlo.diff", "report.md"} <= files


def test_a_change_that_costs_nothing_is_undecided_on_any_machine(recorded):
    """No clock can say whether it is as fast, here or elsewhere: the machine is not unfit."""
    recorded.edit("test_model.py", "jnp.tanh(x @ w)", "jnp.tanh(x @ w) * 1")
    recorded.edit("test_model.py", "* 1, None", "- 0 * w[0], None")
    result = recorded.run()
    result.shows("1 case: 1 UNDECIDED", "program changed", "UNDECIDED on any machine")
    assert result.code == 0


@pytest.mark.parametrize(
    ("edit", "code", "said"),
    [
        pytest.param((', donate="ws"', ""), 1, "no longer donated: ws", id="donation-dropped"),
        # by what it has: the facts of calls are judged once they are recorded
        pytest.param(("shape = jax.ShapeDtypeStruct", "shape = jnp.ones"), 0, "1 case: 1 SAME", id="arrays-today"),
    ],
)
def test_a_baseline_of_shapes_judges(recorded, edit, code, said):
    """Whatever is given today, it is held against what compiling showed."""
    recorded.edit("test_model.py", *edit)
    result = recorded.run()
    assert result.code == code
    result.shows(said)


NAIVE = """
def naive(ws, x):
    for w in ws:
        x = layer(x, w)[0]
    return ws - jax.grad(loss)(ws, x)

class Staged:
    def lower(self, *args):
        return None

    def __call__(self, ws, x):
        return step(ws, x)
"""
CLAIMS = {
    "memory_held": ("step, {shapes}, max_temp_bytes=10**9", "NO_BASELINE"),
    "memory_broken": ("step, {shapes}, max_temp_bytes=10", "REGRESSED"),
    "reference_held": (
        "step, {shapes}, reference=naive, claims=[claim('stablehlo_ops <= 0.9 * reference')]",
        "NO_BASELINE",
    ),
    "reference_broken": (
        "step, {shapes}, reference=naive, claims=[claim('stablehlo_ops <= 0.1 * reference')]",
        "REGRESSED",
    ),
    "time": ("step, {shapes}, reference=step, claims=[claim('run_ns <= 2 * reference')]", "INVALID"),
    "traces": ("step, {shapes}, reference=step, claims=[claim('traces <= 2')]", "INVALID"),
    "staged": ("Staged(), {shapes}", "INVALID"),
}
"""What is gated, and its verdict: claims about calls, and a library that stages itself, are not green."""
SHAPES = "shape((4, 8, 8), jnp.float32), shape((4, 8), jnp.float32)"


def test_claims_about_programs_are_judged_and_those_about_calls_are_not_green(project):
    tests = [f"def test_{name}(gate):\n    gate({what.format(shapes=SHAPES)})\n" for name, (what, _) in CLAIMS.items()]
    model = MODEL.partition("def test_step")[0].replace("import jax,", "from jaxgate import claim\nimport jax,")
    result = project.write("test_model.py", "\n".join((model, NAIVE, *tests))).run("--no-perf-strict")
    assert {name: result.line(f"model/{name} ").split()[0] for name in CLAIMS} == {
        name: status for name, (_, status) in CLAIMS.items()
    }
    assert "1 claim holds" in result.line("model/reference_held")
    assert result.text.count("compiled for shapes (jax.ShapeDtypeStruct), never called") >= 2
    result.shows("claim temp_bytes ≤ 10", "claim stablehlo_ops ≤ 0.1 × reference")
    result.shows("expected arrays for a function that is called as it is", "what is under the decorator")


def test_a_baseline_of_arrays_is_not_met_by_shapes(project):
    """The facts that calls showed are gone: that is not green."""
    arrays = MODEL.replace("shape = jax.ShapeDtypeStruct", "shape = jnp.ones")
    project.write("test_model.py", arrays).record()
    project.write("test_model.py", MODEL)
    result = project.run()
    assert result.code == 1
    result.shows("INVALID", "the baseline has it, today's measurement does not: compiled for shapes")


def test_a_plan_lists_it(recorded):
    result = recorded.run("--perf-plan")
    result.shows("test_model.py::test_step")
    assert "Traceback" not in result.text
