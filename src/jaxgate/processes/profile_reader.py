"""Profiles read by a process of their own: reading one can abort it, and takes no device."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from jaxgate.model import Operation, OpTable
from jaxgate.observe.errors import describe
from jaxgate.observe.profile import Profiled, operations, side_folder
from jaxgate.processes.child import run_child

TIMEOUT_S = 60


def read_table(
    folder: Path, sides: Sequence[Profiled], notes: list[str], timeout_s: float = TIMEOUT_S
) -> OpTable | None:
    """The operation table of what was profiled.

    Args:
        folder: The bundle; each side's profile lies under its name.
        sides: Today's side, and perhaps the other.
        notes: Told why there is no table.
        timeout_s: Seconds after which the process is killed.
    """
    question: dict[str, Any] = {
        "now" if side.side == "now" else "other": {
            "folder": str(folder / side_folder(side.side)),
            "names": _names(side, notes),
        }
        for side in sides
    }
    question["side"] = next((side.side for side in sides if side.side != "now"), None)
    try:
        done = run_child(
            [sys.executable, "-W", "ignore", "-m", "jaxgate.processes.profile_worker"],
            question=json.dumps(question),
            timeout_s=timeout_s,
            variables={**os.environ, "JAX_PLATFORMS": "cpu"},
        )
        found = json.loads(done.stdout) if done.stdout else {}
        if "table" in found:
            return TypeAdapter(OpTable).validate_python(found["table"])
        notes.append(f"the profile could not be read: {found.get('why_not') or done.last_words}")
    except TimeoutError:
        notes.append(f"the profile could not be read within {timeout_s} s")
    except (OSError, ValueError, ValidationError) as error:
        notes.append(f"the profile could not be read: {str(error).splitlines()[0]}")
    return None


def _names(side: Profiled, notes: list[str]) -> dict[str, Operation]:
    """What to call the operations; the compiler's own names where its program cannot be read."""
    try:
        return {} if side.executable is None else operations(side.executable)
    except Exception as error:  # noqa: BLE001 - the times are there all the same
        notes.append(f"{side.side}: operations have the compiler's names: {describe(error)}")
        return {}
