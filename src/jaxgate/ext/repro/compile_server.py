"""A process that compiles programs and runs them: of this environment, or of another one that has jax and NumPy only.

A reproduction file, run as a stranger would: by this Python, isolated, and without what the project sets.
"""

from __future__ import annotations

import base64
import importlib.util
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxgate.ext.repro.model import ArrayOf
from jaxgate.processes.child import Finished, run_child, strangers_variables
from jaxgate.processes.live_worker import LiveWorker, WorkerError, start_program, time_limit

if TYPE_CHECKING:
    import numpy as np

START_S, ANSWER_S = 120.0, 120.0
"""Seconds that it may take to start, and for one answer: 2 s each where nothing else runs."""


class NoAnswerError(Exception):
    """A program that does not compile or run there; the text says why, in one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedProgram:
    """A program as the server takes it."""

    payload: bytes
    inputs: tuple[ArrayOf, ...]
    outputs: tuple[ArrayOf, ...]
    donated: tuple[int, ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    # whether to spend little on machine code: no fact and no result speaks of it, and it halves the time
    quick: bool = True

    def packed(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {
            "module": base64.b64encode(self.payload).decode(),
            "inputs": [(one.dtype, one.shape) for one in self.inputs],
            "outputs": [(one.dtype, one.shape) for one in self.outputs],
            "donated": self.donated,
            "options": dict(self.options),
            "quick": self.quick,
        }


class CompileServer:
    """The process; started when it is first asked, and again where a program ended it.

    Args:
        python: The interpreter whose jax compiles.
        environ: Variables of the process; what sets jax or Python is left out.

    Attributes:
        jax: Its version of jax; empty before the first start.
        platform: Where its programs run, such as ``cpu``; likewise.
    """

    def __init__(self, python: Path, environ: Mapping[str, str] = os.environ) -> None:
        self._python = python
        self._environ = strangers_variables(environ)
        self._open = ExitStack()
        self._worker: LiveWorker | None = None
        self.jax = self.platform = ""

    def facts(self, programs: Sequence[ServedProgram]) -> list[dict[str, float]]:
        """What the compiler says of each.

        Raises:
            NoAnswerError: If one does not compile there.
        """
        found: list[dict[str, float]] = self._ask(programs)["facts"]
        return found

    def results(
        self, programs: Sequence[ServedProgram], inputs: Sequence[Sequence[np.ndarray[Any, Any]]]
    ) -> list[list[list[np.ndarray[Any, Any]]]]:
        """What each program gives for each list of inputs.

        Raises:
            NoAnswerError: If one does not compile or run there.
        """
        from jaxgate.ext.repro.server import pack, unpack  # noqa: PLC0415 - imports JAX

        found = self._ask(programs, inputs=[[pack(one) for one in given] for given in inputs])["results"]
        return [[[unpack(one) for one in results] for results in of] for of in found]

    def ratios(
        self, programs: Sequence[ServedProgram], inputs: Sequence[Sequence[np.ndarray[Any, Any]]], rounds: int
    ) -> list[float]:
        """Times of the second program against the first, each with its own inputs, in turn.

        Raises:
            NoAnswerError: If one does not compile or run there.
        """
        from jaxgate.ext.repro.server import pack  # noqa: PLC0415 - imports JAX

        packed = [[pack(one) for one in given] for given in inputs]
        found: list[float] = self._ask(programs, inputs=packed, rounds=rounds)["ratios"]
        return found

    def close(self) -> None:
        """End the process."""
        self._worker = None
        self._open.close()

    def start(self) -> None:
        """Start the process, if it does not run.

        Raises:
            NoAnswerError: If it does not start: no such interpreter, or no jax in it.
        """
        if self._worker is not None:
            return
        program = importlib.util.find_spec("jaxgate.ext.repro.server")
        assert program is not None
        assert program.origin is not None
        folder = Path(self._open.enter_context(tempfile.TemporaryDirectory(prefix="jaxgate-server-")))
        command = [str(self._python), "-I", "-W", "ignore", program.origin]
        try:
            worker = self._open.enter_context(start_program(command, folder / "stderr", self._environ))
            with time_limit(worker, START_S):
                about = worker.answer()
                self.jax, self.platform = about["jax"], about["platform"]
        except (OSError, WorkerError) as error:
            self.close()
            raise NoAnswerError(f"{self._python} does not start with jax: {error}") from error
        self._worker = worker

    def _ask(self, programs: Sequence[ServedProgram], **question: Any) -> dict[str, Any]:
        self.start()
        assert self._worker is not None
        try:
            with time_limit(self._worker, ANSWER_S):
                reply = self._worker.ask(programs=[one.packed() for one in programs], **question)
        except (OSError, WorkerError) as error:
            self.close()
            raise NoAnswerError(str(error)) from error
        if "refused" in reply:
            raise NoAnswerError(reply["refused"])
        return reply


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
