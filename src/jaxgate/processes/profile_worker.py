"""Read the profiles of a bundle: ``python -m jaxgate.processes.profile_worker``, a question on stdin and its answer on stdout.

A process of its own, without a device: reading a profile can abort the process, and must not take the tests with it.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from jaxgate.judge import compare, divide, typical
from jaxgate.model import Operation, OpTimes
from jaxgate.observe.profile import lines_of, read_steps


def answer(question: dict[str, Any]) -> dict[str, Any]:
    """The operation table of two profiles.

    Args:
        question: ``now`` and perhaps ``other``: the ``folder`` of a profile and the ``names`` of its operations;
            ``side`` says whose the other is.
    """
    now = question["now"]
    other, names = question.get("other"), _names(now)
    theirs = None if other is None else _times(other, _names(other))
    table = compare(_times(now, names), theirs, lines_of(names), side=question.get("side"))
    return asdict(table)


def _times(side: dict[str, Any], names: dict[str, Operation]) -> OpTimes:
    steps = read_steps(Path(side["folder"]), names)
    return typical([divide(spans, begin, end) for begin, end, spans in steps])


def _names(side: dict[str, Any]) -> dict[str, Operation]:
    return {name: Operation(*operation) for name, operation in side["names"].items()}


def main() -> None:
    """Answer, or say why not."""
    try:
        found: dict[str, Any] = {"table": answer(json.load(sys.stdin))}
    except Exception as error:  # noqa: BLE001 - whoever asked shows it
        found = {"why_not": f"{type(error).__name__}: {error}"}
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
