"""A process that compiles programs and runs them: of this environment, or of another one that has jax and NumPy only."""

from __future__ import annotations

import base64
import importlib.util
import os
import sys
import tempfile
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxgate.ext.opinion.process import Values, pack, unpack
from jaxgate.ext.repro.model import ArrayOf
from jaxgate.processes.child import Finished, run_child, strangers_variables
from jaxgate.processes.live_worker import KeptWorker, LiveWorker, WorkerError, start_worker

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
        """The program as JSON."""
        return {
            "module": base64.b64encode(self.payload).decode(),
            "inputs": [(one.dtype, one.shape) for one in self.inputs],
            "outputs": [(one.dtype, one.shape) for one in self.outputs],
            "donated": self.donated,
            "options": dict(self.options),
            "quick": self.quick,
        }


class CompileServer(KeptWorker):
    """The process; started when it is first asked, and again where a program ended it."""

    def __init__(self, python: Path) -> None:
        super().__init__(self._run, START_S)
        self._python = python
        self.jax = self.platform = ""  # empty before the first start

    def facts(self, programs: Sequence[ServedProgram]) -> list[dict[str, float]]:
        """What the compiler says of each.

        Raises:
            NoAnswerError: If one does not compile there.
        """
        found: list[dict[str, float]] = self._ask(programs)["facts"]
        return found

    def results(
        self, programs: Sequence[ServedProgram], inputs: Sequence[Sequence[Values]]
    ) -> list[list[list[Values]]]:
        """What each program gives for each list of inputs.

        Raises:
            NoAnswerError: If one does not compile or run there.
        """
        found = self._ask(programs, inputs=[[pack(one) for one in given] for given in inputs])["results"]
        return [[[unpack(one) for one in results] for results in of] for of in found]

    def ratios(self, programs: Sequence[ServedProgram], inputs: Sequence[Sequence[Values]], rounds: int) -> list[float]:
        """Times of the second program against the first, each with its own inputs, in turn.

        Raises:
            NoAnswerError: If one does not compile or run there.
        """
        packed = [[pack(one) for one in given] for given in inputs]
        found: list[float] = self._ask(programs, inputs=packed, rounds=rounds)["ratios"]
        return found

    def start(self) -> None:
        """Start the process, if it does not run.

        Raises:
            NoAnswerError: If it does not start: no such interpreter, or no jax in it.
        """
        try:
            self.started()
        except (OSError, WorkerError) as error:
            raise NoAnswerError(f"{self._python} does not start with jax: {error}") from error
        self.jax, self.platform = self.greeting["jax"], self.greeting["platform"]

    def _run(self, complaints: Path) -> AbstractContextManager[LiveWorker]:
        program = importlib.util.find_spec("jaxgate.ext.repro.server")
        assert program is not None
        assert program.origin is not None
        command = [str(self._python), "-I", "-W", "ignore", program.origin]
        return start_worker(command, complaints, strangers_variables(os.environ))

    def _ask(self, programs: Sequence[ServedProgram], **question: Any) -> dict[str, Any]:
        self.start()
        try:
            reply = self.answer_within(ANSWER_S, programs=[one.packed() for one in programs], **question)
        except (OSError, WorkerError) as error:
            raise NoAnswerError(str(error)) from error
        if "refused" in reply:
            raise NoAnswerError(reply["refused"])
        return reply


TIMEOUT_S = 600.0


def run_file(path: Path) -> Finished:
    """Run a reproduction file to its end as a stranger would: in an empty folder, without what the project sets."""
    with tempfile.TemporaryDirectory(prefix="jaxgate-") as folder:
        command = [sys.executable, "-I", str(path.absolute())]
        try:
            variables = strangers_variables(os.environ)
            return run_child(command, folder=Path(folder), variables=variables, timeout_s=TIMEOUT_S)
        except (TimeoutError, OSError) as error:
            return Finished(status=1, stdout="", stderr=str(error))
