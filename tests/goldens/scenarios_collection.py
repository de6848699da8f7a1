"""Scenarios about which tests there are: no baseline, another one's arguments, none judged, none collected, no time."""

from __future__ import annotations

from goldens.scenarios_verdicts import CALL, EXP, MORE, WAVE
from goldens.transcript import ALL, Transcript, scenario
from support.projects import STOPPED, time_is_over

OTHER = "\n\ndef test_other(gate):\n    gate(wave, jnp.ones(4))\n"


@scenario
def no_baseline(play: Transcript) -> None:
    """Told locally, red where strict."""
    play.write("test_model.py", WAVE)
    play.run()
    play.run("--perf-strict")
    play.run("--perf-strict", "--perf-baselines=other place", files=[])


@scenario
def stale(play: Transcript) -> None:
    """The arguments are others than the baseline's."""
    play.recorded(WAVE)
    play.edit("(8, 8)", "(8, 9)")
    play.run(files=ALL)
    play.run("--perf-strict", files=["summary.md"])


@scenario
def orphan(play: Transcript) -> None:
    """A baseline without a test: only where all were collected."""
    play.recorded(WAVE + OTHER)
    play.edit(OTHER, "")
    play.run()
    play.run("--perf-strict")
    play.run("--perf-strict", "test_model.py", files=[])


@scenario
def nothing_judged(play: Transcript) -> None:
    """Every gate is skipped, or deselected, or not collected: not green where strict."""
    play.recorded(WAVE)
    play.run("-k", "nothing")
    play.run("-k", "nothing", "--perf-strict")
    play.run("--collect-only", "-q", "--perf-strict")
    play.edit("def test_wave", "import pytest\n@pytest.mark.skip(reason='not today')\ndef test_wave")
    play.run()
    play.run("--perf-strict")
    play.write("test_model.py", "def test_plain():\n    pass\n")
    play.run("--perf-strict")


@scenario
def some_not_judged(play: Transcript) -> None:
    """The run stopped at the first failure."""
    play.recorded(WAVE + OTHER)
    play.edit(EXP, MORE)
    play.run("-x")


@scenario
def file_that_cannot_be_collected(play: Transcript) -> None:
    """The exit code of pytest locally, 1 where strict."""
    play.recorded(WAVE)
    play.write("test_broken.py", "import no_such_module\n")
    play.run(files=[])
    play.run("--perf-strict", files=[])
    play.run("--perf-strict", "--continue-on-collection-errors")


@scenario
def other_test_that_fails(play: Transcript) -> None:
    """Gates are green, the run is not."""
    play.recorded(WAVE)
    play.write("test_other.py", "def test_other():\n    assert 1 == 2\n")
    play.run()


@scenario
def fails_after_its_gate(play: Transcript) -> None:
    """What a test checks besides."""
    play.recorded(WAVE)
    play.edit(CALL, CALL + "\n    assert 1 == 2")
    play.run()


@scenario
def gate_in_class_and_parameters(play: Transcript) -> None:
    """Names of cases, in the order of the tests."""
    tests = """
import pytest

class TestShapes:
    @pytest.mark.parametrize("size", [2, 16])
    def test_size(self, gate, size):
        gate(wave, jnp.ones(size))

    def test_named(self, gate):
        gate(wave, jnp.ones(3), name="family/sentence")
"""
    play.write("test_model.py", WAVE + tests)
    play.run("--perf-update")
    play.run("-v", "--perf-strict")


@scenario
def time_limit(play: Transcript) -> None:
    """The test that runs may end, the next one does not begin."""
    play.recorded(WAVE + OTHER)
    play.edit("wave(gate):\n", f"wave(gate, request):\n    import time; {STOPPED}\n")
    play.write("conftest.py", time_is_over("wave"))
    play.run("--perf-time-limit=2", files=ALL)
    (play.path / "conftest.py").unlink()
    play.run("--perf-time-limit=500", "-k", "other", files=[])


@scenario
def githubs_runner(play: Transcript) -> None:
    """Annotations, and the job's summary after what other steps wrote; strict without being asked."""
    page = play.path / "step.md"
    page.write_text("before\n")
    play.recorded(WAVE + OTHER)
    play.edit(EXP, MORE)
    for name, value in {"GITHUB_STEP_SUMMARY": str(page), "GITHUB_ACTIONS": "true", "CI": "true"}.items():
        play.patch.setenv(name, value)
    play.run("-k", "wave", files=[])
    play.show("step.md")


@scenario
def machine_readable_rows(play: Transcript) -> None:
    """What pytest-benchmark and junit keep of a case."""
    play.recorded(WAVE)
    play.run("--benchmark-json=rows.json", "--junit-xml=junit.xml", files=[])
    play.show("junit.xml")


@scenario
def settings_in_files_and_variables(play: Transcript) -> None:
    """An ini key, a variable before it, the option before both."""
    play.recorded(WAVE)
    play.write(
        "pyproject.toml", '[tool.pytest]\nperf_strict = "true"\nperf_artifacts = "kept"\nperf_baselines = "none"\n'
    )
    play.run()
    play.tree("kept")
    play.patch.setenv("JAXGATE_STRICT", "0")
    play.run()
    play.run("--perf-strict", "--perf-baselines=baselines")
