"""--perf-against, end to end: the same tests in fresh processes of two environments."""

import sys

import pytest
from support.corpora import nightly
from support.projects import model

from jaxgate.ext.upgrade import environment

MODEL = "import os\n" + model("jnp.ones((16, 16))", step="jnp.tanh(x @ x)")


@pytest.fixture
def small(project, monkeypatch):
    """A project with one gate, whose runs launch each environment once."""
    monkeypatch.setattr(environment, "LAUNCHES", 1)
    return project.write("test_model.py", MODEL)


@pytest.fixture
def here(small):
    """The same, whose other environment differs in variables alone: its processes are runs in this one."""
    small.records_here()
    return small


def test_identical_environments_differ_in_nothing(here, monkeypatch):
    """Launches of the same interpreter on both sides: no fact moved, nothing differs; so few do not judge times."""
    monkeypatch.setattr(environment, "LAUNCHES", 2)
    result = here.run(f"--perf-against={sys.executable}", "--perf-strict", "--perf-max-undecided=1")
    result.counts(passed=1)
    assert result.code == 0
    result.shows("2 launches of each", "nothing that an environment records differs")
    assert "_bytes" not in result.text.partition("launches of each")[2].partition("benchmark")[0]
    assert not (here.path / "baselines").exists()


@nightly
def test_other_flags_show_as_facts_of_the_environment(small):
    """Without XLA's optimisations the compiled facts differ: red, the environment first, and it says environment."""
    result = small.run("--perf-against", "jax_enable_x64=1")
    result.shows("this environment against jax_enable_x64=1", "jax_enable_x64 True → False")
    line = result.line("argument_bytes")
    assert "argument_bytes 1.02 kB against 2.05 kB = 0.50 ×" in line
    result.shows("1 launch of each decide nothing, 4 are needed")


def test_a_regression_names_the_environment(here):
    """More memory here than there fails the test, with the difference first and how to see it again."""
    here.write(
        "test_model.py",
        MODEL.replace(
            "jnp.ones((16, 16))",
            "jnp.ones((16, 16), jnp.zeros(()).dtype if os.environ.get('SMALL') != '1' else jnp.float16)",
        ),
    )
    result = here.run("--perf-against", "SMALL=1")
    result.counts(failed=1)
    text = result.text
    assert text.index("against   SMALL=1") < text.index("found     ") < text.index("culprit")
    result.shows("argument_bytes 1.02 kB against 512 B = 2.00 ×", "comes from: environment", "--perf-against SMALL=1")


def test_a_case_that_fails_there_is_invalid_and_says_why(here):
    """What the other environment could not record is red with its reason, as is what fails there after its gate; the rest is judged."""
    fails = "assert not os.environ.get('BROKEN'), 'no luck there'"
    here.write("test_before.py", MODEL.replace("test_step(gate):", f"test_step(gate):\n    {fails}"))
    here.write("test_after.py", MODEL + "    " + fails.replace("no luck", "wrong numbers"))
    result = here.run("--perf-against", "BROKEN=1")
    result.counts(passed=1, failed=2)
    for case, why in (("before/step", "no luck there"), ("after/step", "wrong numbers there")):
        line = next(line for line in result.text.splitlines() if line.startswith("INVALID  ") and case in line)
        assert f"there: AssertionError: {why}" in result.text.partition(line)[2]


def test_a_case_that_some_launches_lack_is_invalid(here, monkeypatch):
    """A launch that was lost is not made up for by the others: the case is red and says how many there are."""
    real = here.instruments["record_other"]

    def forgetful(side, chosen, into):
        failed = real(side, chosen, into)
        if into.name == "there-1":
            for path in into.glob("*/*/*.json"):
                path.unlink()
        return failed

    here.instruments["record_other"] = forgetful
    monkeypatch.setattr(environment, "LAUNCHES", 2)
    result = here.run("--perf-against", "OTHER=1")
    result.counts(failed=1)
    result.shows("INVALID  model/step", "2 of 2 launches here recorded it, 1 of 2 there")


@nightly
def test_flags_that_a_conftest_overwrites_are_refused(small):
    """The option does not reach jax there: an environment would be compared with itself."""
    text = "import os\n"
    text += "if 'JAXGATE_AS_MEASURED' in os.environ:  # not in this process, whose environment other tests share\n"
    text += "    os.environ['XLA_FLAGS'] = '--xla_backend_optimization_level=2'\n"
    small.write("conftest.py", text)
    result = small.run("--perf-against", "xla_backend_optimization_level=0")
    assert result.code == 4
    result.shows("--xla_backend_optimization_level=0 did not reach jax there; does a conftest set XLA_FLAGS?")


def test_a_claim_that_is_broken_there_is_recorded_all_the_same(here):
    """A broken claim of the other side hides nothing: its facts are compared."""
    claim = "from jaxgate import claim\n" + MODEL.replace(
        "jnp.ones((16, 16)))",
        "jnp.ones((16, 16)), claims=[claim('constant_bytes == ' + os.environ.get('WANTED', '0'))])",
    )
    here.write("test_model.py", claim)
    result = here.run("--perf-against", "WANTED=7")
    result.counts(passed=1)
    assert result.line("model/step").startswith("UNDECIDED")


def test_an_environment_that_records_nothing_is_a_usage_error(here):
    """If no case at all was recorded there, nothing was compared: exit code 4 with the reasons."""
    here.write(
        "test_model.py",
        MODEL.replace("test_step(gate):", "test_step(gate):\n    assert not os.environ.get('BROKEN'), 'no luck there'"),
    )
    result = here.run("--perf-against", "BROKEN=1")
    assert result.code == 4
    result.shows("the other environment recorded no case", "no luck there")


def test_without_a_clock_each_environment_is_launched_once(here, monkeypatch):
    monkeypatch.setattr(environment, "LAUNCHES", 5)
    result = here.run("--perf-against", "OTHER=1", "--benchmark-disable")
    result.counts(passed=1)
    result.shows("1 launch of each", "the clock is switched off (--benchmark-disable)")
