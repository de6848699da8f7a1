"""A reproduction file, run as a stranger would: by this Python, isolated, and without what the project sets."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from jaxgate.processes.child import Finished, run_child, strangers_variables

TIMEOUT_S = 600.0


def run_file(path: Path, python: Path = Path(sys.executable), timeout_s: float = TIMEOUT_S) -> Finished:
    """Run it to its end, in an empty folder."""
    with tempfile.TemporaryDirectory(prefix="jaxgate-") as folder:
        command = [str(python), "-I", str(path.absolute())]
        try:
            variables = strangers_variables(os.environ)
            return run_child(command, folder=Path(folder), variables=variables, timeout_s=timeout_s)
        except (TimeoutError, OSError) as error:
            return Finished(status=1, stdout="", stderr=str(error))
