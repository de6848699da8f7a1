"""Scenarios in which a clock decides, or somebody has said that it may not: claims, waivers, stored times."""

from __future__ import annotations

import json

from goldens.scenarios_verdicts import CALL, EXP, MORE, SIN, WAVE
from goldens.transcript import ALL, Transcript, scenario
from support.fakes import BUSY, CALL_NS, duel
from support.lines import line_here

from jaxgate.ext.times import sessions

CLAIM = CALL[:-1] + ', reference=lambda x: 1 / jnp.exp(x), claims=[claim("run_ns <= 0.8 * reference", "one pass")])'
WAIVER = """
[[waiver]]
case = "model/wave"
quantity = "{quantity}"
up_to = {up_to}
owner = "perf-team"
reason = "issue 12"
expires = {expires}
"""
PARAMETERS = (
    '\n@pytest.mark.parametrize("number", range(6))\ndef test_many(gate, number):\n    gate(wave, jnp.ones(8))\n'
)


@scenario
def run_time_claim(play: Transcript) -> None:
    """It holds; it is broken, in fresh processes, too; it does not come again."""
    play.recorded(WAVE)
    play.edit(CALL, CLAIM)
    play.lab.finds["reference"] = duel(0.7)
    play.run()
    play.lab.finds["reference"] = duel(1.2)
    play.lab.processes = [1.2]
    play.run("-v")
    play.lab.processes = [0.7]
    play.run(files=[])


@scenario
def many_slow_at_once(play: Transcript) -> None:
    """So many that the machine may be the suspect: the control says so, and nothing else is repeated."""
    play.recorded(WAVE.replace("import jax,", "import pytest, jax,") + PARAMETERS)
    play.edit(EXP, SIN)
    play.lab.finds["baseline"] = duel(1.3)
    play.lab.control = 1.3
    play.run("--perf-strict", files=["summary.md"])


def waive(play: Transcript, quantity: str, up_to: float, expires: str) -> None:
    """Write the file of waivers."""
    play.write("baselines/waivers.toml", WAIVER.format(quantity=quantity, up_to=up_to, expires=expires))


@scenario
def waivers(play: Transcript) -> None:
    """In force, exceeded, expired, not needed, not to be read; of a fact and of time."""
    play.recorded(WAVE)
    play.edit(EXP, MORE)
    waive(play, "matmul_flops", 1024, "2026-12-31")
    play.run("--perf-strict", "--perf-max-undecided=1")
    waive(play, "matmul_flops", 1023, "2026-12-31")
    play.run()
    waive(play, "matmul_flops", 1024, "2026-11-20")
    play.run(files=["summary.md"])
    play.edit(MORE, EXP)
    waive(play, "matmul_flops", 1024, "2026-12-31")
    play.run(files=[])
    play.write("baselines/waivers.toml", "[[waiver]]\n")
    play.run()
    play.edit(EXP, SIN)
    play.lab.finds["baseline"] = duel(1.15)
    play.lab.processes = [1.15]
    waive(play, "time", 1.2, "2026-12-31")
    play.run(files=ALL)


@scenario
def stored_times(play: Transcript) -> None:
    """Refused, recorded, and judged by them where no duel can be."""
    play.recorded(WAVE)
    play.patch.setattr(sessions, "SESSIONS", 5)
    play.lab.looks = [BUSY]
    play.run("--perf-update=times")
    play.lab.fresh_ns = [CALL_NS + number * 10_000 for number in range(5)]
    play.run("--perf-update=times")
    play.tree("baselines")
    play.run()
    play.edit(CALL, CALL + "\n\ndef test_new(gate):\n    gate(wave, jnp.ones(4))\n")
    play.patch.setattr(sessions, "SESSIONS", 1)
    play.run("--perf-update=times", "-k", "new")
    play.jaxgate("baselines", "--cases")


@scenario
def judged_by_stored_times(play: Transcript) -> None:
    """No duel can be run of a program that calls Python: fresh processes confirm what stored times say, or do not."""
    play.patch.setattr(sessions, "SESSIONS", 5)
    play.recorded(WAVE.replace("    return", "    jax.debug.callback(lambda value: None, x[0, 0])\n    return"))
    play.lab.fresh_ns = [CALL_NS + number * 10_000 for number in range(5)]
    play.run("--perf-update=times", files=[])
    play.lab.change_environment()
    play.lab.call_ns = round(1.3 * CALL_NS)
    play.run(files=ALL)
    play.lab.fresh_ns = [CALL_NS]
    play.run(files=[])
    play.lab.looks = [BUSY]
    play.run(files=[])
    play.edit(EXP, SIN)
    play.run(files=[])


@scenario
def plan(play: Transcript) -> None:
    """What a run will cost, from what its baselines say; nothing is run."""
    play.recorded(WAVE)
    (path,) = play.path.glob("baselines/*/model/wave.json")
    content = json.loads(path.read_text())
    content["phases"] = dict.fromkeys(content["phases"], 10_000_000)
    path.write_text(json.dumps(content))
    play.edit(CALL, CALL + "\n\ndef test_new(gate):\n    gate(wave, jnp.ones(4))\n")
    play.run("--perf-plan")
    play.run("--perf-plan", "-k", "nothing")


@scenario
def ageing(play: Transcript) -> None:
    """A stored program near the end of what JAX promises."""
    play.recorded(WAVE)
    (path,) = play.path.glob("baselines/*/model/wave.json")
    content = json.loads(path.read_text())
    content["provenance"]["date"] = "2026-01-01"
    path.write_text(json.dumps(content))
    play.run("--perf-strict")


@scenario
def borrowed(play: Transcript) -> None:
    """A baseline of other hardware."""
    play.recorded(WAVE)
    (path,) = play.path.glob("baselines/*/model/wave.json")
    content = json.loads(path.read_text())
    content["hardware"]["device_kind"] = "Another Processor"
    path.write_text(json.dumps(content))
    path.parents[1].rename(play.path / f"baselines/cpu-another-processor-1-jax-{line_here()}")
    play.run("--perf-strict", files=ALL)
    play.edit(EXP, MORE)
    play.run(files=["results.json"])
