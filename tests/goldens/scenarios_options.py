"""Scenarios of the command line: help, values that make no sense, and options that exclude each other."""

from __future__ import annotations

from goldens.transcript import Transcript, scenario

PLAIN = "def test_wave(gate):\n    pass\n"
AGAINST_ENV = "--perf-against=A=1"
RANKS = "--perf-distributed=localhost:1234,2,0"
OTHERS = {
    "update": "--perf-update",
    "against": "--perf-against=HEAD",
    "against-env": AGAINST_ENV,
    "plan": "--perf-plan",
    "times": "--perf-update=times",
}
VALUES = (
    "--perf-update=creat", "--perf-update=", "--perf-why=because", "--perf-budget=much", "--perf-budget=-1",
    "--perf-max-undecided=2", "--perf-max-undecided=nan", "--perf-time-limit=0", "--perf-time-limit=soon",
    "--perf-size=huge", "--perf-profile=sometimes", "--perf-artifacts=.", "--perf-artifacts=baselines",
    "--perf-artifacts=baselines/inside", "--perf-distributed=localhost", "--perf-distributed=localhost:1234,2,2",
    "--perf-against=no-such-revision", "--perf-against=jax=0.1", "--perf-against=no/such/folder", "--perf-plan=1",
    "--perf-no-such-option",
)  # fmt: skip
VARIABLES = {
    "JAXGATE_STRICT": "perhaps",
    "JAXGATE_BUDGET": "much",
    "JAXGATE_MAX_UNDECIDED": "-1",
    "JAXGATE_SIZE": "huge",
    "JAXGATE_CPU_DEVICES": "none",
    "JAXGATE_PROFILE": "sometimes",
    "JAXGATE_ARTIFACTS": "baselines",
    "JAXGATE_TIME_LIMIT": "-3",
    "JAXGATE_DISTRIBUTED": "localhost",
}


@scenario
def help_of_pytest(play: Transcript) -> None:
    """The group of options, and the keys of the ini file."""
    text = play.pytest("--help").text.splitlines()
    begin = next(number for number, line in enumerate(text) if line.startswith("performance gates (jaxgate)"))
    end = next(number for number in range(begin + 1, len(text)) if text[number] and not text[number].startswith(" "))
    play.say("$ pytest --help", *text[begin:end])
    keys = [number for number, line in enumerate(text) if line.startswith("  perf_")]
    last = next(number for number in range(keys[-1] + 1, len(text)) if not text[number].startswith("    "))
    play.say("# keys of the ini file", *text[keys[0] : last])


@scenario
def values_that_make_no_sense(play: Transcript) -> None:
    """A usage error each, with what was expected."""
    play.write("test_model.py", PLAIN)
    for option in VALUES:
        play.run(option)
    play.tree(".")


@scenario
def variables_that_make_no_sense(play: Transcript) -> None:
    """The same of the environment, and of the ini file."""
    play.write("test_model.py", PLAIN)
    for name, value in VARIABLES.items():
        with play.patch.context() as patch:
            patch.setenv(name, value)
            play.say(f"{name}={value}")
            play.run()
    play.patch.delenv("JAXGATE_PROFILE")
    for key in ("perf_strict", "perf_budget", "perf_max_undecided", "perf_size", "perf_cpu_devices", "perf_profile"):
        play.write("pyproject.toml", f'[tool.pytest]\n{key} = "no such"\n')
        play.say(f"{key} = no such")
        play.run()


@scenario
def options_that_exclude_each_other(play: Transcript) -> None:
    """Every pair of runs of different kinds."""
    play.write("test_model.py", PLAIN)
    kinds = list(OTHERS.values())
    for number, one in enumerate(kinds):
        for other in kinds[number + 1 :]:
            if one.partition("=")[0] != other.partition("=")[0]:
                play.run(one, other)


@scenario
def options_that_exclude_workers_ranks_and_no_clock(play: Transcript) -> None:
    """With several processes, and with the clock switched off."""
    play.write("test_model.py", PLAIN)
    for option in (*OTHERS.values(), "--perf-update=trim", "--perf-update=review"):
        if option not in {"--perf-update", "--perf-against=HEAD"}:
            play.run(option, "-n2")
        if option != "--perf-update":
            play.run(option, RANKS)
    play.run("--perf-update=times", "--benchmark-disable")
    play.run("-n2", RANKS)
    play.write("pyproject.toml", '[tool.pytest]\naddopts = ["--perf-update=refresh"]\n')
    play.run()
    play.run("--perf-update", "test_model.py")
