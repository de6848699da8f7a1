"""The process that runs StableHLO's reference interpreter: started when it is first asked, and again where it ended."""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from jaxgate.ext.opinion.interpreter import NotInterpretedError
from jaxgate.processes.child import own_program
from jaxgate.processes.live_worker import KeptWorker, WorkerError, start_worker

START_S = 60.0
"""Seconds that it may take to start: 1.5 s on an idle machine."""
Values = np.ndarray[Any, Any]


class InterpreterProcess(KeptWorker):
    """The reference interpreter in a process that is started when it is first asked: it ends its process at what it does not know."""

    def __init__(self, environ: Mapping[str, str] = os.environ, *, module: str = "jaxgate.ext.opinion.worker") -> None:
        super().__init__(lambda complaints: start_worker(own_program(module), complaints, environ), START_S)

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
