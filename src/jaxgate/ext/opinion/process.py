"""The process that runs StableHLO's reference interpreter: started when it is first asked, and again where it ended."""

from __future__ import annotations

import base64
import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from jaxgate.ext.opinion.interpreter import NotInterpretedError
from jaxgate.processes.live_worker import LiveWorker, WorkerError, start_worker, time_limit

START_S = 60.0
"""Seconds that it may take to start: 1.5 s on an idle machine."""
Values = np.ndarray[Any, Any]


class InterpreterProcess:
    """The reference interpreter in a process that is started when it is first asked: it ends its process at what it does not know."""

    def __init__(self, environ: Mapping[str, str] = os.environ, *, module: str = "jaxgate.ext.opinion.worker") -> None:
        self._environ = environ
        self._module = module
        self._open = ExitStack()
        self._worker: LiveWorker | None = None

    def interpret(self, program: bytes, inputs: Sequence[Values], *, limit_s: float) -> list[Values]:
        """Run a program.

        Args:
            program: StableHLO, text or bytecode.
            inputs: Its arguments, without those that it does not use.
            limit_s: Seconds after which the process is ended; to start it is not among them.

        Raises:
            NotInterpretedError: If it cannot be run, or takes longer.
        """
        try:
            worker = self._started()
            with time_limit(worker, limit_s):
                found = worker.ask(program=base64.b64encode(program).decode(), inputs=[pack(one) for one in inputs])
        except (OSError, WorkerError) as error:
            self.close()
            raise NotInterpretedError(str(error)) from error
        if "refused" in found:
            raise NotInterpretedError(found["refused"])
        return [unpack(one) for one in found["results"]]

    def close(self) -> None:
        """End the process."""
        self._worker = None
        self._open.close()

    def _started(self) -> LiveWorker:
        """The process; a new one if the last one ended."""
        if self._worker is None:
            folder = Path(self._open.enter_context(tempfile.TemporaryDirectory(prefix="jaxgate-interpreter-")))
            worker = self._open.enter_context(start_worker(self._module, [], folder / "stderr", self._environ))
            with time_limit(worker, START_S):
                worker.answer()
            self._worker = worker
        return self._worker


def pack(values: Values) -> dict[str, Any]:
    """An array as JSON can hold it: its bytes, with their type and shape."""
    content = base64.b64encode(np.ascontiguousarray(values).tobytes()).decode()
    return {"dtype": values.dtype.name, "shape": list(values.shape), "content": content}


def unpack(packed: Mapping[str, Any]) -> Values:
    """The array again."""
    import ml_dtypes  # noqa: PLC0415 - only for types that NumPy does not have

    name = packed["dtype"]
    dtype = np.dtype(getattr(ml_dtypes, name) if hasattr(ml_dtypes, name) else name)
    return np.frombuffer(base64.b64decode(packed["content"]), dtype).reshape(packed["shape"])
