"""Scenarios of the command ``jaxgate`` and of what a red case leaves."""

from __future__ import annotations

from goldens.scenarios_verdicts import EXP, MORE, WAVE
from goldens.transcript import Transcript, scenario
from support.fakes import operation_table
from support.git import git

from jaxgate.ext.profile import evidence

COMMANDS = ("gate", "record", "comment", "bisect", "policy", "baselines", "tensorboard")


@scenario
def help_of_jaxgate(play: Transcript) -> None:
    """Of the command, of each of its commands, and what none of them takes."""
    play.jaxgate()
    play.jaxgate("--help")
    play.jaxgate("--version")
    for command in COMMANDS:
        play.jaxgate(command, "--help")
    for command in ("comment", "policy", "baselines", "tensorboard"):
        play.jaxgate(command, "--no-such-option")
    play.jaxgate("no-such-command")
    play.jaxgate("record")


@scenario
def policy_page(play: Transcript) -> None:
    """What gates, and by how much it may move."""
    play.jaxgate("policy")


@scenario
def stored_baselines(play: Transcript) -> None:
    """None, some, one that cannot be read, a waiver."""
    play.jaxgate("baselines")
    play.recorded(WAVE + "\n\ndef test_other(gate):\n    gate(wave, jnp.ones(4))\n")
    play.jaxgate("baselines")
    play.jaxgate("baselines", "--cases", "--baselines=baselines")
    (path,) = play.path.glob("baselines/*/model/other.json")
    path.write_text("{")
    play.write("baselines/waivers.toml", "[[waiver]]\n")
    play.jaxgate("baselines", "--cases")


@scenario
def gate_and_comment(play: Transcript) -> None:
    """What CI runs: nothing recorded, green, red; and the comment of each."""
    play.write("test_model.py", WAVE)
    play.jaxgate("comment")
    play.fix_clocks_of_processes()
    play.recorded(WAVE)
    play.edit(EXP, MORE)
    play.gate("--perf-budget=0")
    play.jaxgate("comment")
    play.gate("-k", "nothing")


@scenario
def record_as_a_patch(play: Transcript) -> None:
    """Without git; and of a checkout."""
    play.write("test_model.py", WAVE)
    play.jaxgate("record", "--why=first")
    git(play.path, "init", "--quiet", "-b", "main")
    git(play.path, "add", ".")
    git(play.path, "commit", "--quiet", "-m", "one")
    play.write("baselines/mine.txt", "")
    play.jaxgate("record", "--why=first")


@scenario
def profile_of_a_red_case(play: Transcript) -> None:
    """Both sides are captured; the files of the bundle, and what the run says of them."""
    play.patch.setenv("JAXGATE_PROFILE", "failing")
    play.lab.instruments["read_table"] = operation_table
    play.recorded(WAVE + "\n\ndef test_other(gate):\n    gate(wave, jnp.ones((16, 16)))\n")
    play.edit(EXP, MORE)
    play.patch.setattr(evidence, "MAX_PROFILED", 1)
    play.run(files=[])
    play.tree("perf-artifacts")
    play.jaxgate("tensorboard", "--links")
    play.run("--perf-profile=never", "-k", "other", files=["report.md"])
