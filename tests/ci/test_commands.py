"""The scripts of ``ci/``: each finds what it imports when it is started as its first lines say, from any folder."""

import subprocess
import sys

from support.paths import REPOSITORY
from support.processes import outside_variables

IMPORT_EACH = """
import runpy, sys
for script in sys.argv[1:]:
    before = list(sys.path)
    sys.path[0] = script.rpartition("/")[0]  # as of a script that is started
    try:
        runpy.run_path(script, run_name="imported")
    except ImportError as error:
        print(script.rpartition("/")[2], error)
    sys.path[:] = before
"""


def test_every_script_finds_what_it_imports(tmp_path):
    """Types are looked at by mypy; what is not found only shows when somebody runs it."""
    scripts = sorted(map(str, (REPOSITORY / "ci").glob("*.py")))
    assert len(scripts) > 8
    command = [sys.executable, "-c", IMPORT_EACH, *scripts]
    done = subprocess.run(
        command, cwd=tmp_path, env=outside_variables(), capture_output=True, text=True, check=False, timeout=100
    )
    assert (done.stdout, done.returncode) == ("", 0), done.stderr
