"""The file and the bug report around it, as text."""

from dataclasses import replace

import pytest
from support.factories import baseline

from jaxgate.ext.repro.file import repro_file
from jaxgate.ext.repro.model import AnonymousProgram, ArrayOf, MeshOf, Reduced
from jaxgate.ext.repro.run import bug_report

PROGRAM = AnonymousProgram(
    payload=b"one program",
    inputs=tuple(ArrayOf(dtype="float32", shape=(8, 4)) for _ in range(30)),
    places=tuple(range(30)),
    outputs=(ArrayOf(dtype="bfloat16", shape=()),),
    donated=(1,),
    options={"xla_cpu_use_xnnpack": "False"},
    devices=1,
    mesh=None,
    convention=10,
    seeded=0,
)
MESH = MeshOf(axes={"axis0": 4, "axis1": 2}, kinds=("Auto", "Explicit"))


def written(baseline=PROGRAM, now=PROGRAM):
    """A file."""
    return repro_file(baseline, now, name="repro-step.py")


def test_one_program_stands_there_once():
    """Where only the environment differs there is one program, and one payload."""
    text = written()
    assert "NOW = BASELINE\n" in text
    assert text.count("payload=") == 1


def test_two_programs_have_what_each_is_compiled_with():
    """A row goes on in the next line between two arrays or options, never inside of one."""
    passes = ",".join(f"while-loop-invariant-code-motion-{number}" for number in range(6))
    text = written(now=replace(PROGRAM, payload=b"another", donated=(), options={"xla_disable_hlo_passes": passes}))
    compile(text, "repro.py", "exec")
    rows = text.partition("BASELINE = ")[2]
    assert rows.count("payload=") == 2
    assert rows.count("donated=(1,)") == rows.count("options={'xla_cpu_use_xnnpack': 'False'}") == 1
    assert passes in rows
    arrays = [line for line in rows.splitlines() if "'float32'" in line]
    assert len(arrays) > 5
    assert all(line.strip().removeprefix("inputs=[").startswith("(") for line in arrays)
    assert max(len(line) for line in rows.splitlines() if passes not in line) <= 120


def test_devices_are_chosen_before_jax_is_imported():
    text = written(now=replace(PROGRAM, devices=8, mesh=MESH))
    assert text.index("xla_force_host_platform_device_count=8") < text.index("import jax")
    assert "mesh=(('axis0', 'axis1'), (4, 2), ('Auto', 'Explicit')), devices=8" in text
    assert "device_count" not in written()


@pytest.mark.parametrize(
    ("dtype", "wide"), [("float64", True), ("complex64", False), ("int64", True), ("int32", False)]
)
def test_wide_types_are_switched_on_where_they_are_needed(dtype, wide):
    """And nowhere else: they change what a program's neighbours are compiled to."""
    found = written(now=replace(PROGRAM, outputs=(ArrayOf(dtype=dtype, shape=()),)))
    assert ("jax_enable_x64" in found) == wide


def test_drawn_arrays_are_told():
    """Results that depend on them differ from those of the author."""
    assert "3 captured arrays" in written(now=replace(PROGRAM, seeded=3))
    assert "captured" not in written()


ENVIRONMENT = {"jax": "0.10.2", "jaxlib": "0.10.2", "python": "3.11"}


def reported(theirs, ours, **changes):
    """A bug report."""
    before = baseline(facts=theirs, environment=ENVIRONMENT)
    now = baseline(facts=ours, environment={**ENVIRONMENT, **changes})
    return bug_report(before, now, "import jax\n", "temp bytes 1 2\n", name="repro-step.py")


def test_a_report_says_what_grew_and_how_to_see_it():
    """The fact that grew most is its title; the command, what it prints and the file follow."""
    text = reported({"temp_bytes": 100, "xla_flops": 10}, {"temp_bytes": 475, "xla_flops": 20})
    title, *_ = text.splitlines()
    assert title == "# The same program has 4.75 x the temporary memory: 100 before, 475 now"
    for part in (
        "python repro-step.py",
        "jax 0.10.2, jaxlib 0.10.2, python 3.11",
        "temp bytes 1 2",
        "```python\nimport jax",
    ):
        assert part in text


def test_a_report_names_both_versions_where_they_differ():
    """One program in two environments is run in both."""
    text = reported({"temp_bytes": 1}, {"temp_bytes": 1}, jax="0.12.0.1")
    for part in ("before with jax 0.10.2", "now with jax 0.12.0.1", "run it with both versions"):
        assert part in text
    assert text.startswith("# The same program differs in time or results\n")


def test_lost_donation_has_a_title():
    text = reported({"aliased_bytes": 1000}, {"aliased_bytes": 0})
    assert text.startswith("# The same program reuses 1,000 bytes less of its arguments\n")


def test_a_report_of_a_reduction_says_what_it_shows_and_with_which_versions():
    """Both recordings are of this environment: only the reduction knows the other one."""
    now = baseline(environment=ENVIRONMENT)
    shows = "temp_bytes 79,700 on the baseline's side, 13,600 on today's (at least 1.50 x)"
    reduced = Reduced(
        baseline=PROGRAM, now=PROGRAM, before=9, after=4, tries=3, took_s=1.0, shows=shows, over=False, code="",
        versions=("0.12.0.1", "0.10.2"),
    )  # fmt: skip
    text = bug_report(now, now, "import jax\n", "", name="r.py", reduced=reduced)
    assert text.startswith("# The same program: temp_bytes 79,700 on the baseline's side, 13,600 on today's\n")
    assert "before with jax 0.12.0.1; now with jax 0.10.2" in text
    assert "run it with both versions" in text
