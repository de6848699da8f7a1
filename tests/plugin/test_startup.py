"""Starting costs nothing: options, --help and collection initialise no JAX backend."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from support.paths import REPOSITORY


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a fresh process at the root of the repository."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=REPOSITORY,
        env=kept | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_help_does_not_import_jax():
    """``pytest --help`` shows our options without importing JAX."""
    done = run("import sys, pytest; pytest.main(['--help']); sys.exit('jax' in sys.modules)")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "--perf-update" in done.stdout


def test_collecting_initialises_no_backend():
    """``pytest perf --collect-only`` works with a platform that does not exist: no backend is looked for."""
    arguments = ["perf", "--collect-only", "-q", "-p", "no:cacheprovider"]
    done = run(f"import sys, pytest; sys.exit(pytest.main({arguments}))", JAX_PLATFORMS="none_such")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "perf/test_scan.py::test_scan[rnn-forward-over-32-steps-scan-vs-loop]" in done.stdout


@pytest.mark.parametrize(
    "module", ["jaxgate", "jaxgate.model", "jaxgate.judge", "jaxgate.report.text", "jaxgate.plugin"]
)
def test_light_modules_do_not_import_jax(module):
    """What workloads, judges and reports need comes without JAX, and without what prints tables."""
    done = run(f"import sys, {module}; sys.exit(not {{'jax', 'rich'}}.isdisjoint(sys.modules))")
    assert done.returncode == 0, done.stderr
