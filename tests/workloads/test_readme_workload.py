"""The family that the catalogue's README shows: it is run as it stands there."""

import re
import textwrap

from support.paths import REPOSITORY

README = (REPOSITORY / "workloads" / "README.md").read_text()


def blocks():
    """The indented blocks of code, in order; an empty line does not end one."""
    found = re.findall(r"(?:^(?: {4}.*)?\n)+", README, flags=re.MULTILINE)
    return [textwrap.dedent(block).strip() + "\n" for block in found if block.strip()]


def test_the_shown_family_is_recorded_and_gates(project):
    """One file of builders and a test of two lines are all that a workload takes."""
    family, test, command = blocks()[:3]
    assert family.startswith('"""softmax')
    assert command.startswith("pytest perf -k softmax --perf-update")
    project.write("workloads/__init__.py", "")
    project.write("workloads/parts.py", (REPOSITORY / "workloads" / "parts.py").read_text())
    project.write("workloads/softmax.py", family)
    project.write("perf/test_softmax.py", test)
    assert test.count("\n    gate(case)") == 1
    recorded = project.run("perf", "-k", "softmax", "--perf-update", "--perf-why", "a test")
    assert recorded.code == 0, recorded.text
    recorded.shows("CREATED  softmax/softmax-shifted-vs-plain", "rows/s")
    result = project.run("perf", "--perf-strict")
    assert result.code == 0
    result.shows("identical program")


def test_what_the_shown_family_exists_for_is_seen(project):
    """The plain way instead of the shifted one overflows on large logits: no number, no verdict."""
    family, test, _ = blocks()[:3]
    project.write("workloads/__init__.py", "")
    project.write("workloads/parts.py", (REPOSITORY / "workloads" / "parts.py").read_text())
    project.write("workloads/softmax.py", family.replace("drawing()(", "100 * drawing()("))
    project.write("perf/test_softmax.py", test)
    result = project.run("perf")
    assert result.code == 1
    result.shows("INVALID  softmax/softmax-shifted-vs-plain", "NaN")
