"""Another run has the machine: this one says so, and who it is, also where it is quiet."""

import os
import re
import subprocess
import sys

import pytest
from support.corpora import nightly
from support.projects import model

from jaxgate.keep.machine import HELD, Machine, lock_folder


@pytest.mark.parametrize("quiet", [pytest.param((), marks=nightly), ("-q",)], ids=["plain", "quiet"])
def test_a_lock_that_is_waited_for_is_told(project, tmp_path, monkeypatch, quiet):
    """On the terminal, after two seconds, with the process and its case; then the run goes on as ever."""
    monkeypatch.delenv(HELD)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    holder = Machine(lock_folder())
    holder.about = "other/step of /home/somebody"
    holder.alone()
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("JAXGATE", "PYTEST", "CI"))}
    project.write("test_model.py", model(step="x * 2"))
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *quiet]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=project.path, env=environ, stdout=pipe, stderr=pipe, text=True) as run:
        told = next(line for line in run.stderr if "waiting" in line)
        holder.leave()
        out, _ = run.communicate(timeout=60)
    who = f"by process {os.getpid()} (other/step of /home/somebody)"
    waits = "waiting until nothing else is measured on this machine"
    assert re.fullmatch(rf"  model/step: {waits} {re.escape(who)}, 2 s so far", told.rstrip("\n"))
    assert "1 case: 1 NO_BASELINE" in out
