"""The compiler of a target in a process of its own: ``python -m jaxgate.ext.targets.worker tpu:v5e:2x4``.

It may crash, hang, print and take memory there; whoever asks goes on.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Mapping
from typing import Any

from jaxgate.ext.targets.model import Target
from jaxgate.ext.targets.topology import NoTargetError, Topology, find_topology
from jaxgate.observe.errors import describe
from jaxgate.observe.program.export import NotReplayableError


def main(name: str) -> None:
    """Compile what is asked for, until nobody asks any more."""
    sys.stdout, answers = sys.stderr, sys.stdout  # what a library prints must not look like an answer

    def answer(reply: Mapping[str, Any]) -> None:
        answers.write(json.dumps(reply) + "\n")
        answers.flush()

    try:
        topology = find_topology(Target.parse(name))
    except (NoTargetError, ValueError) as error:
        answer({"problem": str(error)})
        return
    answer({"version": topology.version, "devices": len(topology.devices)})
    for line in sys.stdin:
        answer(_reply(topology, json.loads(line)))


def _reply(topology: Topology, question: Mapping[str, Any]) -> dict[str, Any]:
    """What is known of a program; or ``refused``, in the compiler's own words."""
    try:
        return topology.compile(
            base64.b64decode(question["content"]),
            donated=question["donated"],
            options=question["options"],
            positions=question["positions"],
            kinds=question["kinds"],
        )
    except NotReplayableError as error:
        return {"refused": str(error.__cause__ or error)}
    except Exception as error:  # noqa: BLE001 - whoever asked shows it
        return {"refused": describe(error)}


if __name__ == "__main__":
    main(sys.argv[1])
