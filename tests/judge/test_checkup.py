"""What is said of a machine and a project: nothing that keeps a gate from judging is green, and each has a next step."""

from dataclasses import replace

import pytest
from support.factories import HARDWARE

from jaxgate.ext.doctor.checkup import EXTRAS, NEEDED, Level, Surroundings, remarks

HEALTHY = Surroundings(
    versions={**dict.fromkeys((*NEEDED, *EXTRAS), "1.0"), "jax": "0.10.2"},
    hardware=HARDWARE,
    devices=8,
    clock_ns=40,
    spread=1.1,
    own=12,
)


def about(subject, **changes):
    """The remarks on one subject, of a healthy place with changes."""
    return [remark for remark in remarks(replace(HEALTHY, **changes)) if remark.about == subject]


def test_a_healthy_place_has_no_notes():
    """Each thing that was looked at is named all the same."""
    found = remarks(HEALTHY)
    assert {remark.level for remark in found} == {Level.OK}
    assert [remark.about for remark in found] == [
        "packages", "devices", "settings", "clock", "load", "baselines",
        "targets",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("subject", "changes", "level", "said", "remedy"),
    [
        ("packages", {"versions": {"jax": "0.10.2"}}, Level.BAD, "not installed: jaxgate, jaxlib", "pip install"),
        ("packages", {"versions": HEALTHY.versions | {"jax": "9.1"}}, Level.NOTE, "newer than what", ""),
        ("devices", {"hardware": None, "no_hardware": "no libtpu"}, Level.BAD, "no libtpu", "JAX_PLATFORMS"),
        ("devices", {"devices": 1}, Level.OK, "need virtual ones", "perf_cpu_devices"),
        ("settings", {"unfit": {"jax_disable_jit": "nothing is compiled"}}, Level.BAD, "nothing is", "switch jax_"),
        ("settings", {"settings": {"XLA_FLAGS": "--x"}}, Level.NOTE, "XLA_FLAGS=--x", "the same wherever"),
        ("cache", {"cache": "somewhere"}, Level.NOTE, "no compile time", "unset JAX_COMPILATION_CACHE_DIR"),
        ("clock", {"clock_ns": 15_000_000}, Level.NOTE, "15,000,000 ns", "--benchmark-disable"),
        ("clock", {"spread": 2.0}, Level.NOTE, "2.00 ×", "--benchmark-disable"),
        ("load", {"objections": ("load 8.0",)}, Level.NOTE, "load 8.0", "--benchmark-disable"),
        ("git", {"in_git": False}, Level.NOTE, "no checkout", "git init"),
        ("git", {"ignored": ("a.json",)}, Level.BAD, "ignores 1 file of the baselines", "git add --force"),
        ("baselines", {"unreadable": ("a.json",)}, Level.BAD, "cannot be trusted: a.json", "--perf-update=refresh"),
        ("baselines", {"own": 0}, Level.BAD, "none in baselines", "--perf-update"),
        (
            "baselines",
            {"own": 0, "borrowed": {"cpu-b-1-jax-0.10": 3}},
            Level.NOTE,
            "borrowed are 3 of cpu-b-1-jax-0.10",
            "--perf-update",
        ),
        ("baselines", {"differences": ("jax 0.10 → 0.12",)}, Level.NOTE, "jax 0.10 → 0.12", ""),
        (
            "targets",
            {},
            Level.OK,
            "no compiler for TPUs or NVIDIA GPUs",
            "jaxgate[tpu-aot]' or pip install 'jaxgate[cuda-aot]",
        ),
        (
            "targets",
            {"versions": HEALTHY.versions | {"libtpu": "0.0.50"}},
            Level.OK,
            "libtpu 0.0.50 compiles for TPUs",
            "",
        ),
        ("extras", {"versions": HEALTHY.versions | {"pytest-xdist": None}}, Level.NOTE, "side by side", "pip install"),
    ],
)
def test_what_is_wrong_is_said_with_the_next_step(subject, changes, level, said, remedy):
    first = about(subject, **changes)[0]
    assert first.level is level
    assert said in first.found
    assert remedy in first.remedy


def test_without_a_device_nothing_else_is_called_well():
    found = remarks(Surroundings(versions=HEALTHY.versions, hardware=None, no_hardware="none"))
    assert [remark.about for remark in found] == ["packages", "devices"]


def test_without_jax_the_command_that_installs_it_is_all_there_is():
    (found,) = remarks(Surroundings(versions=HEALTHY.versions | {"jax": None}, hardware=None))
    assert (found.level, found.remedy) == (Level.BAD, "pip install jax")
