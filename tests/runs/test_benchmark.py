"""pytest-benchmark's own options do what its users expect, and its table speaks of our samples."""

import json

import pytest

ONE = """
import jax, jax.numpy as jnp

def double(x):
    return x @ x

def test_plain():
    pass

def test_double(gate):
    gate(double, jnp.ones((32, 32)))
"""


@pytest.fixture
def one(project):
    """A project with a gate and a test that has nothing to do with it."""
    return project.write("test_model.py", ONE)


def test_json_has_one_bounded_row_with_facts(one):
    """--benchmark-json holds one row for the case: the baseline's samples, burst by burst, and the facts in extra_info."""
    one.run("--benchmark-json=out.json", "--perf-update").counts(passed=2)
    (row,) = json.loads((one.path / "out.json").read_text())["benchmarks"]
    assert row["name"] == "test_double"
    assert row["group"] == "model"
    assert 3 <= row["stats"]["rounds"] <= 20
    assert row["extra_info"]["case"] == "model/double"
    assert row["extra_info"]["verdict"] == "SAME"
    assert row["extra_info"]["matmul_flops"] == 2 * 32**3
    assert row["extra_info"]["traces"] == 1
    assert row["options"]["timer"] == "jaxgate.replay"
    (stored,) = [json.loads(content) for content in one.baselines().values()]
    calls = stored["samples"]["calls_per_burst"]
    expected = [burst / 1e9 / calls for burst in stored["samples"]["bursts_ns"]]
    assert row["stats"]["data"] == pytest.approx(expected, rel=1e-12)
    assert row["stats"]["iterations"] == calls


def test_skip_skips_the_gates(one):
    """--benchmark-skip skips what gates and runs the rest."""
    result = one.run("--benchmark-skip")
    result.counts(passed=1, skipped=1)
    result.shows("jaxgate: 1 of 1 gates was not judged")
    assert one.run("--perf-strict", "--benchmark-skip").code == 0


def test_only_skips_the_rest(one):
    """--benchmark-only runs what gates and skips the rest."""
    one.run("--benchmark-only").counts(passed=1, skipped=1)


def test_a_red_case_that_was_not_sampled_has_no_row(one):
    """A case that failed before it was sampled leaves no row, and no warning about an unused fixture."""
    one.edit("test_model.py", "return x @ x", "return x * jnp.nan")
    result = one.run("--benchmark-json=out.json")
    result.counts(passed=1, failed=1)
    assert "not used at all" not in result.text
    assert not (one.path / "out.json").exists()  # pytest-benchmark had no row to save


def test_a_user_marker_keeps_its_group(one):
    """What the user's own benchmark marker says stays; only the timer is ours."""
    one.edit("test_model.py", "def test_double", "import pytest\n@pytest.mark.benchmark(group='mine')\ndef test_double")
    one.run("--benchmark-json=out.json").counts(passed=2)
    (row,) = json.loads((one.path / "out.json").read_text())["benchmarks"]
    assert row["group"] == "mine"


LATENCY = """
import jax.numpy as jnp

def test_step(gate):
    gate(lambda x: x + 1, jnp.ones(4), contract="latency", name="latency/step")
"""


def test_a_latency_case_keeps_single_calls(project):
    """Contract ``latency``: the row is made of single calls, p50 and p99 stand beside it and in the summary."""
    project.write("test_latency.py", LATENCY)
    result = project.run("--perf-update", "--benchmark-json=out.json")
    result.counts(passed=1)
    (row,) = json.loads((project.path / "out.json").read_text())["benchmarks"]
    assert (row["stats"]["rounds"], row["stats"]["iterations"]) == (200, 1)
    extra = row["extra_info"]
    assert extra["contract"] == "latency"
    assert "(p99 " in result.line("latency/step")
    (content,) = project.baselines().values()
    stored = json.loads(content)
    assert (stored["samples"]["contract"], len(stored["samples"]["bursts_ns"])) == ("latency", 200)
    single = sorted(stored["samples"]["bursts_ns"])
    assert single[98] <= extra["p50_ns"] <= single[101]
    assert single[196] <= extra["p99_ns"] <= single[199]
    assert stored["phases"]["host_ns"] is None


def columns(result):
    """Of the table of pytest-benchmark."""
    head = next(line for line in result.text.splitlines() if line.startswith("Name (time in"))
    return head.partition(")")[2].split()


def test_a_table_of_gates_is_narrow(one):
    """It fits a terminal, unless somebody asks for more, or has a plain benchmark in it."""
    assert columns(one.run()) == ["Median", "IQR", "Rounds"]
    assert "Iterations" in columns(one.run("-v"))
    assert columns(one.run("--benchmark-columns=min,max")) == ["Min", "Max"]
    one.write("test_plain.py", "def test_sum(benchmark):\n    benchmark(sum, [1])\n")
    assert "Iterations" in columns(one.run())
