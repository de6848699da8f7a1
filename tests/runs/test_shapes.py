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


@pytest.mark.parametrize(("claim", "code"), [("max_temp_bytes=10**9", 0), ("max_temp_bytes=10", 1)])
def test_claims_about_memory_are_judged(project, claim, code):
    project.write("test_model.py", MODEL.replace('donate="ws"', claim))
    assert project.run("--no-perf-strict").code == code


@pytest.mark.parametrize(("factor", "code"), [(0.9, 0), (0.1, 1)])
def test_claims_against_a_reference_are_judged(project, factor, code):
    naive = "def naive(ws, x):\n    for w in ws:\n        x = layer(x, w)[0]\n    return ws - jax.grad(loss)(ws, x)\n"
    claim = f'claims=[jaxgate.claim("stablehlo_ops <= {factor} * reference", "scan")], reference=naive'
    project.write("test_model.py", MODEL.replace('donate="ws"', claim).replace("shape =", f"{naive}\nshape ="))
    result = project.run("--no-perf-strict")
    assert result.code == code
    result.shows("1 claim holds" if code == 0 else "claim stablehlo_ops")


@pytest.mark.parametrize("claim", ["run_ns <= 2 * reference", "traces <= 2"])
def test_claims_about_calls_are_not_green(project, claim):
    text = f'claims=[jaxgate.claim("{claim}", "calls")], reference=step'
    project.write("test_model.py", MODEL.replace('donate="ws"', text))
    result = project.run("--no-perf-strict")
    assert result.code == 1
    result.shows("INVALID", "compiled for shapes (jax.ShapeDtypeStruct), never called")


def test_a_baseline_of_arrays_is_not_met_by_shapes(project):
    """The facts that calls showed are gone: that is not green."""
    arrays = MODEL.replace("shape = jax.ShapeDtypeStruct", "shape = jnp.ones")
    project.write("test_model.py", arrays).record()
    project.write("test_model.py", MODEL)
    result = project.run()
    assert result.code == 1
    result.shows("INVALID", "the baseline has it, today's measurement does not: compiled for shapes")


def test_a_library_that_stages_itself_is_refused_with_the_way_out(project):
    project.write(
        "test_model.py",
        MODEL.replace("def test_step", "class Staged:\n    def lower(self, *args):\n        return None\n\n"
        "    def __call__(self, ws, x):\n        return step(ws, x)\n\ndef test_step")
        .replace("gate(step", "gate(Staged()").replace(', donate="ws"', ""),
    )  # fmt: skip
    result = project.run("--no-perf-strict")
    assert result.code == 1
    result.shows("expected arrays for a function that is called as it is", "what is under the decorator")


def test_a_plan_lists_it(recorded):
    result = recorded.run("--perf-plan")
    result.shows("test_model.py::test_step")
    assert "Traceback" not in result.text
