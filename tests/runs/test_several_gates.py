"""Several gates in one test: each has a name, a case, a baseline and a line; the test fails once, for all that is red."""

import json
import xml.etree.ElementTree as ET

import pytest
from support.corpora import nightly

TWO = """
import jax, jax.numpy as jnp

def step(x):
    return jnp.exp(-x)

def evaluate(x):
    return jnp.tanh(x)

def test_model(gate):
    gate(step, jnp.ones((8, 8)), name="train")
    gate(evaluate, jnp.ones((8, 8)), name="eval")
"""
HEAD = "import pytest\n" + TWO.partition("def test_model")[0]
ONE = TWO.replace('    gate(step, jnp.ones((8, 8)), name="train")\n', "").replace(', name="eval"', "")
SLOWER_STEP, SLOWER_EVAL = ("jnp.exp(-x)", "jnp.exp(-x @ x)"), ("jnp.tanh(x)", "jnp.tanh(x @ x @ x)")


@pytest.fixture
def two(project):
    """A test with two gates, recorded."""
    return project.write("test_model.py", TWO).record()


def test_each_has_a_case_a_baseline_and_a_line(two):
    files = {path.split("/", 1)[1]: json.loads(text) for path, text in two.baselines().items()}
    assert {name: one["case"] for name, one in files.items()} == {
        "model/train.json": "model/train",
        "model/eval.json": "model/eval",
    }
    assert {one["test"] for one in files.values()} == {"test_model.py::test_model"}
    result = two.run("--perf-strict")
    result.counts(passed=1)
    assert [result.line(f"model/{name}").split()[0] for name in ("train", "eval")] == ["SAME", "SAME"]
    result.shows("2 cases: 2 SAME")


def test_the_others_are_judged_and_the_test_fails_once(two):
    """Each red text is in the one failure; a green gate between them is green."""
    two.edit("test_model.py", *SLOWER_STEP)
    result = two.run()
    result.counts(failed=1)
    result.shows("2 cases: 1 SAME, 1 REGRESSED")
    two.edit("test_model.py", *SLOWER_EVAL)
    result = two.run("--junitxml=junit.xml")
    result.counts(failed=1)
    result.shows("2 cases: 2 REGRESSED")
    (case,) = ET.parse(two.path / "junit.xml").getroot().iter("testcase")
    (failure,) = case.findall("failure")
    heads = [line.split()[:2] for line in failure.text.splitlines() if line.startswith("REGRESSED")]
    assert heads == [["REGRESSED", "model/train"], ["REGRESSED", "model/eval"]]
    assert result.text.count("REGRESSED  model/train  on") == 2  # in full, and the first line in the summary


def test_a_claim_is_that_of_its_gate(project):
    """The red one names itself; the other one has the same function and no such claim."""
    broken = TWO.replace('name="train")', 'name="train", max_output_bytes=8)')
    result = project.write("test_model.py", broken).run()
    result.counts(failed=1)
    assert result.line("claim output_bytes ≤ 8")
    assert result.line("model/eval").startswith("NO_BASELINE")


WRONG = """
import jax.numpy as jnp

def test_both_without(gate):
    gate(jnp.sin, jnp.ones(4))
    gate(jnp.cos, jnp.ones(4))

def test_second_without(gate):
    gate(jnp.sin, jnp.ones(4), name="sin")
    gate(jnp.cos, jnp.ones(4))

def test_first_without(gate):
    gate(jnp.sin, jnp.ones(4))
    gate(jnp.cos, jnp.ones(4), name="cos")

def test_one_name(gate):
    gate(jnp.sin, jnp.ones(4), name="one")
    gate(jnp.cos, jnp.ones(4), name="one")
"""


def test_gates_without_names_are_refused_in_one_line(project):
    """Each way to leave one out says what was expected, what was found and what to write; no traceback."""
    result = project.write("test_wrong.py", WRONG).run()
    result.counts(failed=4)
    told = "expected one call of gate in a test, found a second; give each a name of its own: gate(..., name='eval')"
    assert result.text.count(f"gate: {told}") == 2
    result.shows("found a second; give the first a name, too: with name='first_without' it keeps its baseline")
    result.shows("expected a name of its own for each gate of a test, found `wrong/one` twice")
    assert "gate.py" not in result.text


def test_a_first_gate_that_gets_its_name_keeps_its_baseline(project):
    """A second one can be added to a test that was recorded."""
    project.write("test_model.py", ONE).record()
    both = ONE.replace("gate(evaluate, jnp.ones((8, 8)))", "gate(evaluate, jnp.ones((8, 8)), name='model')")
    result = project.write("test_model.py", both + "    gate(step, jnp.ones(8), name='other')\n").run()
    assert [result.line(f"model/{name}").split()[0] for name in ("model", "other")] == ["SAME", "NO_BASELINE"]


ENDS = {
    "fails": "assert False",
    "is_failed": "pytest.fail('other')",
    "skips": "pytest.skip('later')",
    "has_no_name": "gate(step, jnp.ones(8))",
    "is_wrong": "gate(step, x=1, name='x')",
}


def with_ends(ends):
    """A test for each of them, which comes between its two gates."""
    return HEAD + "".join(
        f"""
def test_{name}(gate):
    gate(step, jnp.ones((8, 8)), name="{name}-step")
    {how}
    gate(evaluate, jnp.ones((8, 8)), name="{name}-eval")
"""
        for name, how in ends.items()
    )


def test_what_ends_the_test_does_not_hide_what_was_red(project):
    """Another failure, a skip, a call that somebody wrote wrongly: the red text is told beside it."""
    project.write("test_model.py", with_ends(dict.fromkeys(ENDS, "pass"))).record()
    project.write("test_model.py", with_ends(ENDS).replace(*SLOWER_STEP))
    result = project.run("--perf-strict")
    result.counts(failed=len(ENDS))
    result.shows(f"{len(ENDS)} cases: {len(ENDS)} REGRESSED", *(f"REGRESSED  model/{name}-step  on" for name in ENDS))
    assert "ORPHAN" not in result.text  # the gates that were not reached have their baselines all the same
    assert result.text.count("E       assert False") == 1


def test_a_case_that_the_test_has_no_more_is_an_orphan(two):
    """A run to the end of the test tells; what has its program has another name now."""
    two.edit("test_model.py", 'name="eval"', 'name="evaluation"')
    two.run().shows("RENAMED? model/evaluation has no baseline, and the program of model/eval, whose test is gone.")
    two.edit("test_model.py", *SLOWER_EVAL)
    result = two.run()
    assert result.line("ORPHAN").split()[1].endswith("model/eval.json:")


def test_a_test_that_catches_everything_hides_nothing(two):
    """A named gate fails its test at the end, whatever the test does with exceptions."""
    two.edit("test_model.py", *SLOWER_STEP)
    two.edit(
        "test_model.py",
        '    gate(step, jnp.ones((8, 8)), name="train")',
        "    try:\n        gate(step, jnp.ones((8, 8)), name='train')\n    except BaseException:\n        pass",
    )
    two.run().counts(failed=1)


def test_rows_are_those_of_the_gates(two):
    """Each has its own row in pytest-benchmark, with its samples and facts."""
    two.run("--benchmark-json=out.json")
    rows = {row["name"]: row for row in json.loads((two.path / "out.json").read_text())["benchmarks"]}
    assert {name: row["extra_info"]["case"] for name, row in rows.items()} == {
        "test_model": "model/train",
        "test_model::eval": "model/eval",
    }
    assert rows["test_model"]["stats"]["data"] != rows["test_model::eval"]["stats"]["data"]
    assert [row["group"] for row in rows.values()] == ["model", "model"]


@nightly
def test_workers_send_all_of_them(two):
    """The controller knows both cases of the test, and both rows."""
    two.edit("test_model.py", *SLOWER_EVAL)
    result = two.run("-n", "1", "--benchmark-json=out.json")
    result.counts(failed=1)
    result.shows("2 cases: 1 SAME, 1 REGRESSED")
    assert len(json.loads((two.path / "out.json").read_text())["benchmarks"]) == 2


def test_a_slow_down_waits_and_both_are_told(two, lab):
    """One is slower by the clock alone, the other is red for sure: the one failure comes after the confirmation."""
    from support.fakes import duel

    lab.finds["baseline"] = duel(1.3)
    two.edit("test_model.py", "jnp.tanh(x)", "jnp.tanh(x + 1)")
    two.edit("test_model.py", *SLOWER_STEP)
    result = two.run()
    result.counts(failed=1)
    result.shows("2 cases: 1 SLOWER, 1 REGRESSED")
    text = result.text.partition("FAILURES")[2]
    assert text.index("REGRESSED  model/train") < text.index("SLOWER  model/eval")


@pytest.mark.parametrize(("again", "outcome"), [(1.3, {"failed": 1}), (1.0, {"passed": 1})], ids=["confirmed", "not"])
def test_two_that_wait_are_one_test(two, lab, again, outcome):
    """It is reported once, when the last of them is final."""
    from support.fakes import duel

    lab.finds["baseline"] = duel(1.3)
    lab.processes = [again]
    two.edit("test_model.py", "jnp.tanh(x)", "jnp.tanh(x + 1)")
    two.edit("test_model.py", "jnp.exp(-x)", "jnp.exp(-x + 1)")
    result = two.run()
    result.counts(**outcome)
    assert result.text.count("SLOWER  model/") == (2 + 1 + 2 if again > 1 else 0)


def test_review_accepts_both(two, lab):
    """One failure of two accepted cases is explained; of one accepted and one refused it is not."""
    two.edit("test_model.py", *SLOWER_STEP)
    two.edit("test_model.py", *SLOWER_EVAL)
    lab.instruments["asker"] = lambda: lambda _prompt: "n"
    assert two.run("--perf-update=review").code == 1
    answers = iter(["y", "n"])
    lab.instruments["asker"] = lambda: lambda _prompt: next(answers)
    assert two.run("--perf-update=review").code == 1
    lab.instruments["asker"] = lambda: lambda _prompt: "y"
    result = two.run("--perf-update=review")
    assert result.code == 0, result.text
    assert two.run("--perf-strict").code == 0


def test_the_plan_and_trim_know_the_test(two):
    """It is one row with what all of its gates take; nothing of it is trimmed."""
    plan = two.run("--perf-plan")
    assert plan.text.count("test_model.py::test_model") == 1
    before = two.baselines()
    two.run("--perf-update=trim")
    assert two.baselines() == before


def test_parameters_belong_into_the_names(project):
    """A name that is the same for each parameter is refused, with what to write; one with the parameter is not."""
    one = TWO.replace(
        "def test_model(gate)", "import pytest\n@pytest.mark.parametrize('n', [2, 3])\ndef test_model(gate, n)"
    )
    result = project.write("test_model.py", one).run("--perf-update")
    result.counts(passed=1, failed=1)
    result.shows("expected one test for the case `model/train`, found two", "name=f'train-{size}')")
    named = one.replace('"train"', 'f"train-{n}"').replace('"eval"', 'f"eval-{n}"')
    project.write("test_model.py", named).run("--perf-update").counts(passed=2)
