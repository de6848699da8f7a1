"""Ten planted slow-downs, profiled by a real run: the first culprit is what was planted."""

from __future__ import annotations

import re

import pytest

from tests.mistakes import names
from tests.slowed.plants import PLANTS, PROGRAMS, edited

RIGHT = 9
"""Of ten, at least."""


@pytest.fixture(scope="module")
def culprits(tmp_path_factory):
    """By test the first culprit row of a run over the edited programs, in processes of their own with four devices."""
    import os
    import subprocess
    import sys

    folder = tmp_path_factory.mktemp("slowed")
    (folder / "pyproject.toml").write_text('[tool.pytest]\npythonpath = ["."]\nperf_cpu_devices = "4"\n')
    test = folder / "test_programs.py"
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "JAXGATE", "CI"))
    }

    def run(*options):
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options]
        return subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=400
        )

    test.write_text(PROGRAMS.read_text())
    recorded = run("--perf-update")
    assert recorded.returncode == 0, recorded.stdout
    test.write_text(edited())
    out = run(f"--perf-captures={len(PLANTS)}").stdout
    texts = re.split(r"^_+ test_(\w+) _+$", out, flags=re.MULTILINE)[1:]
    rows = {
        name: re.search(r"^  culprit +(.*)$", text, flags=re.MULTILINE)
        for name, text in zip(texts[::2], texts[1::2], strict=True)
    }
    return {name: "" if row is None else row[1] for name, row in rows.items()}, out


def test_the_first_culprit_is_what_was_planted(culprits):
    """In at least nine of ten kinds; the others are named."""
    rows, out = culprits
    assert set(rows) == set(PLANTS), out
    source = edited()
    wrong = {
        mistake.name: rows[test]
        for test, mistake in PLANTS.items()
        if not names(rows[test], mistake.culprit, mistake.places(source, "test_programs.py"))
    }
    assert len(PLANTS) == 10
    assert len(wrong) <= len(PLANTS) - RIGHT, wrong


def test_every_one_is_profiled(culprits):
    """None is red without a profile, and none leaves a note that it could not be read."""
    _, out = culprits
    assert out.count("/report.md\n") == len(PLANTS), out
    assert "10 bundles in perf-artifacts" in out
