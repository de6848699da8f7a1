"""Scenarios of one case each: every verdict that it can get, green and red."""

from __future__ import annotations

import json

from goldens.transcript import ALL, Transcript, scenario
from support.fakes import CRASHED, KNOWN_BREAK, QUICK, SLOW, duel

WAVE = """
import jax, jax.numpy as jnp
from jaxgate import claim

def wave(x):
    return jnp.exp(-x)

def test_wave(gate):
    gate(wave, jnp.ones((8, 8)))
"""
EXP, SIN, MORE = "jnp.exp(-x)", "jnp.sin(-x)", "jnp.exp(-x) @ x"
CALL = "jnp.ones((8, 8)))"


def changed(play: Transcript, ratio: float = 1.0) -> None:
    """A recorded case whose program is another one now, with the same facts, that a duel finds slower."""
    play.recorded(WAVE)
    play.edit(EXP, SIN)
    play.lab.finds["baseline"] = duel(ratio)


@scenario
def green(play: Transcript) -> None:
    """Recorded, then the same by identity, strict too."""
    play.write("test_model.py", WAVE)
    play.run("--perf-update", "--perf-why=first recording", table=True)
    play.tree("baselines")
    play.show("baselines/log/*.md")
    play.show("baselines/*/model/wave.json")
    play.run()
    play.run("--perf-strict", "-v")


@scenario
def regressed_by_a_fact(play: Transcript) -> None:
    """Work was added: the culprit is named, with its line."""
    play.recorded(WAVE)
    play.edit(EXP, MORE)
    play.run("--perf-strict", files=ALL)
    play.show("perf-artifacts/model/wave/verdict.json")


@scenario
def regressed_by_a_claim(play: Transcript) -> None:
    """A claim is broken that no baseline can make right."""
    play.recorded(WAVE)
    play.edit(CALL, CALL[:-1] + ', claims=[claim("output_bytes <= 8", "it is small")])')
    play.run()
    play.run("--perf-update")


@scenario
def slower_confirmed(play: Transcript) -> None:
    """Fresh processes find it, too."""
    changed(play, 1.3)
    play.run("-v", files=ALL)


@scenario
def slower_not_confirmed(play: Transcript) -> None:
    """It did not come again: UNDECIDED, and green."""
    changed(play, 1.3)
    play.lab.processes = [1.0]
    play.run("--perf-strict", "--perf-max-undecided=1", "-v")


@scenario
def slower_and_a_process_that_crashed(play: Transcript) -> None:
    """It could not be confirmed."""
    changed(play, 1.3)
    play.lab.processes = [CRASHED]
    play.run(files=ALL)


@scenario
def machine_accused(play: Transcript) -> None:
    """A program was slower than itself in a fresh process; beside a test that fails for another reason."""
    changed(play, 1.3)
    play.lab.control = 1.3
    play.run()
    play.write("test_other.py", "def test_other():\n    assert 1 == 2\n")
    play.run(files=[])


@scenario
def faster(play: Transcript) -> None:
    """Better than its baseline, by the clock."""
    changed(play, 0.7)
    play.run(files=ALL)


@scenario
def improved(play: Transcript) -> None:
    """Better than its baseline, by a fact."""
    play.recorded(WAVE.replace(EXP, MORE))
    play.edit(MORE, EXP)
    play.run(files=ALL)


@scenario
def undecided_without_a_budget(play: Transcript) -> None:
    """No duel is run; too many of these are an unfit machine."""
    changed(play)
    play.run("--perf-budget=0")
    play.run("--perf-budget=0", "--perf-strict")
    play.run("--perf-budget=0", "--perf-strict", "--perf-max-undecided=1")


@scenario
def clock_switched_off(play: Transcript) -> None:
    """Facts are judged, time is not."""
    changed(play, 1.3)
    play.run("--benchmark-disable", files=ALL)


@scenario
def invalid_subjects(play: Transcript) -> None:
    """What raises, what is not a number, what disagrees with its reference."""
    play.write(
        "test_model.py",
        WAVE
        + """
def raises(x):
    raise ValueError("of no use")

def test_raises(gate):
    gate(raises, jnp.ones(8))

def test_nan(gate):
    gate(lambda x: x * jnp.nan, jnp.ones(8))

def test_disagrees(gate):
    gate(wave, jnp.ones(8), reference=lambda x: x)

def test_never_called(gate):
    pass
""",
    )
    play.run()


@scenario
def invalid_baseline(play: Transcript) -> None:
    """It cannot be read: red, and with what to do."""
    play.recorded(WAVE)
    (path,) = play.path.glob("baselines/*/model/wave.json")
    path.write_text("{")
    play.run(files=ALL)
    play.run("--perf-update=create")
    play.run("--perf-update=refresh", files=[])


@scenario
def resource_exhausted(play: Transcript) -> None:
    """The subject needs more memory than there is."""
    play.write("test_model.py", WAVE.replace(EXP, "(_ for _ in ()).throw(MemoryError())"))
    play.run(files=ALL)


@scenario
def red_phase(play: Transcript) -> None:
    """A phase takes longer than its baseline says, in fresh processes, too; or it does not come again."""
    play.recorded(WAVE)
    (path,) = play.path.glob("baselines/*/model/wave.json")
    content = json.loads(path.read_text())
    unjudged = ("trace_wait_ns", "lower_ns", "compile_ns", "first_call_ns", "yardstick_ns")
    content["phases"] |= dict.fromkeys(unjudged) | {"trace_ns": 1}
    path.write_text(json.dumps(content))
    play.lab.judge_phases()
    play.lab.phases = [SLOW, SLOW]
    play.run("--perf-budget=0", "-v")
    play.lab.phases = [QUICK]
    play.run("--perf-budget=0", files=ALL)


@scenario
def expected_to_be_broken(play: Transcript) -> None:
    """A known break is green while it is broken, and asks to be removed when it is not."""
    old = 'KnownBreak(jax="<99", platform="cpu", since="2026-01-01", why="issue 12")'
    claim = f', claims=[claim("output_bytes <= 8", known_break={old})])'
    play.recorded(WAVE)
    play.edit(CALL, CALL[:-1] + claim)
    play.edit("from jaxgate import claim", f"from jaxgate import claim\n{KNOWN_BREAK}")
    play.run("-v", files=ALL)
    play.edit("output_bytes <= 8", "output_bytes <= 8000")
    play.run()


@scenario
def duplicate_name(play: Transcript) -> None:
    """Two tests would share one baseline."""
    play.recorded(WAVE)
    play.write("test_model.py", WAVE + "\n\ndef test_again(gate):\n    gate(wave, jnp.ones(8), name='wave')\n")
    play.run()
