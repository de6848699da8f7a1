"""A process that runs StableHLO's reference interpreter: ``python -m jaxgate.ext.opinion.process``.

It is started when it is first asked, and again where it ended: at an operation that it does not know, or after too long a
loop. There JAX is not imported.
"""

from __future__ import annotations

import base64
import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from jaxgate.ext.opinion.interpreter import NotInterpretedError, interpret
from jaxgate.processes.child import own_program
from jaxgate.processes.live_worker import KeptWorker, WorkerError

START_S = 60.0
"""Seconds that it may take to start: 1.5 s on an idle machine."""
Values = np.ndarray[Any, Any]


class InterpreterProcess(KeptWorker):
    """The process, for whoever asks."""

    def __init__(self, environ: Mapping[str, str] = os.environ, *, module: str = "jaxgate.ext.opinion.process") -> None:
        super().__init__(own_program(module), environ, START_S)

    def interpret(self, program: bytes, inputs: Sequence[Values], *, limit_s: float) -> list[Values]:
        """Run a program; to start the process is not among the ``limit_s`` seconds.

        Raises:
            NotInterpretedError: If it cannot be run, or takes longer.
        """
        content, packed = base64.b64encode(program).decode(), [pack(one) for one in inputs]
        try:
            found = self.answer_within(limit_s, program=content, inputs=packed)
        except (OSError, WorkerError) as error:
            raise NotInterpretedError(str(error)) from error
        if "refused" in found:
            raise NotInterpretedError(found["refused"])
        return [unpack(one) for one in found["results"]]


def pack(values: Values) -> dict[str, Any]:
    """An array as JSON can hold it: its bytes, with their type and shape."""
    content = base64.b64encode(np.ascontiguousarray(values).tobytes()).decode()
    return {"dtype": values.dtype.name, "shape": list(values.shape), "content": content}


def unpack(packed: Mapping[str, Any]) -> Values:
    """The array again."""
    name = packed["dtype"]
    dtype = np.dtype(getattr(ml_dtypes, name) if hasattr(ml_dtypes, name) else name)
    return np.frombuffer(base64.b64decode(packed["content"]), dtype).reshape(packed["shape"])


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
    """What a program gives; or ``refused``, with the reason: whoever asked goes on without it."""
    try:
        found = interpret(base64.b64decode(question["program"]), [unpack(one) for one in question["inputs"]])
        return {"results": [pack(one) for one in found]}
    except NotInterpretedError as error:
        return {"refused": str(error)}
    except Exception as error:  # noqa: BLE001 - likewise
        return {"refused": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    main()
