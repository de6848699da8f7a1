"""Profiles read by a process of their own: ``python -m jaxgate.ext.profile.worker``.

A question comes on stdin, its answer goes to stdout. Reading a profile can abort the process, and must not take the
tests with it; it takes no device.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from jaxgate.ext.profile.capture import side_folder
from jaxgate.ext.profile.model import Operation, OpTable, Side, StepTimes
from jaxgate.ext.profile.op_names import lines_of, operations
from jaxgate.ext.profile.operations import compare, divide, typical
from jaxgate.ext.profile.programs import Profiled
from jaxgate.ext.profile.xplane import read_steps
from jaxgate.observe.errors import describe
from jaxgate.processes.child import own_program, run_child

TIMEOUT_S = 60


def read_table(
    folder: Path, sides: Sequence[Profiled], notes: list[str], timeout_s: float = TIMEOUT_S, *, one_device: bool = False
) -> OpTable | None:
    """The operation table of today's side, which comes first, and perhaps another; ``notes`` gets why there is none.

    Each side's profile lies in the folder under its name. The process is killed after ``timeout_s``. With
    ``one_device`` the host's threads work for one device only.
    """
    profiles = [(side.side, str(folder / side_folder(side.side)), _names(side, notes)) for side in sides]
    question = {"profiles": profiles, "one_device": one_device}
    try:
        done = run_child(
            own_program("jaxgate.ext.profile.worker"),
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


def answer(question: dict[str, Any]) -> dict[str, Any]:
    """The operation table of one or two ``profiles``: whose each is, its folder, and the names of its operations."""
    host = 0 if question["one_device"] else None
    read: list[tuple[Side, StepTimes, dict[str, Operation]]] = []
    for side, folder, said in question["profiles"]:
        names = {name: Operation(*operation) for name, operation in said.items()}
        steps = read_steps(Path(folder), names, host)
        read.append((side, typical([divide(spans, begin, end) for begin, end, spans in steps]), names))
    (_, ours, names), *others = read
    other, theirs, _ = others[0] if others else (None, None, {})
    table = compare(ours, theirs, lines_of(names), side=other)
    moving = [one for one in names.values() if one.collective and one.name in ours.times_ns]
    longest = max(moving, key=lambda one: ours.times_ns[one.name], default=None)
    return {**asdict(table), "waits_in": "" if longest is None else f"{longest.name}  {longest.line}".rstrip()}


def main() -> None:
    """Answer, or say why not."""
    try:
        found: dict[str, Any] = {"table": answer(json.load(sys.stdin))}
    except Exception as error:  # noqa: BLE001 - whoever asked shows it
        found = {"why_not": f"{type(error).__name__}: {error}"}
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
