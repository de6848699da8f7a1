"""StableHLO's reference interpreter in a process of its own: ``python -m jaxgate.ext.opinion.worker``.

It ends its process where it does not know an operation, and runs for as long as a loop does; whoever asks goes on. JAX is
not imported.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Mapping
from typing import Any

from jaxgate.ext.opinion.interpreter import NotInterpretedError, interpret
from jaxgate.ext.opinion.process import pack, unpack


def main() -> None:
    """Run what is asked for, until nobody asks any more."""
    sys.stdout, answers = sys.stderr, sys.stdout  # what a library prints must not look like an answer

    def answer(reply: Mapping[str, Any]) -> None:
        answers.write(json.dumps(reply) + "\n")
        answers.flush()

    answer({})
    for line in sys.stdin:
        answer(_reply(json.loads(line)))


def _reply(question: Mapping[str, Any]) -> dict[str, Any]:
    """What a program gives; or ``refused``, with the reason."""
    try:
        found = interpret(base64.b64decode(question["program"]), [unpack(one) for one in question["inputs"]])
        return {"results": [pack(one) for one in found]}
    except NotInterpretedError as error:
        return {"refused": str(error)}
    except Exception as error:  # noqa: BLE001 - whoever asked goes on without it
        return {"refused": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    main()
