"""A duel run again in a fresh process, from a folder that holds the job."""

from __future__ import annotations

import sys
from pathlib import Path

from jaxgate.processes.child import Finished, run_child

DUEL_TIMEOUT_S = 600


def run_fresh_duel(folder: Path) -> Finished:
    """Run the duel of a folder (``keep.write_job``); what came of it lies there afterwards (``keep.read_duels``).

    Raises:
        TimeoutError: If it took more than ``DUEL_TIMEOUT_S``.
        OSError: If no process could be started.
    """
    return run_child([sys.executable, "-m", "jaxgate.processes.duel_worker", str(folder)], timeout_s=DUEL_TIMEOUT_S)
