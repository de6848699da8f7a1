"""A process that compiles programs and runs them: of this environment, or of another one that has jax and NumPy only."""

from __future__ import annotations

import base64
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jaxgate.ext.opinion.process import Values, pack, unpack
from jaxgate.ext.repro.model import AnonymousProgram
from jaxgate.processes.child import strangers_variables
from jaxgate.processes.live_worker import KeptWorker, WorkerError

START_S, ANSWER_S = 120.0, 120.0
"""Seconds that it may take to start, and for one answer: 2 s each where nothing else runs."""


class NoAnswerError(Exception):
    """A program that does not compile or run there; the text says why, in one line."""


class CompileServer(KeptWorker):
    """The process; started when it is first asked, and again where a program ended it.

    Each question raises ``NoAnswerError`` if a program does not compile or run there.
    """

    def __init__(self, python: Path) -> None:
        program = Path(__file__).with_name("server.py")  # it is not imported: another environment runs it
        command = [str(python), "-I", "-W", "ignore", str(program)]
        super().__init__(command, strangers_variables(os.environ), START_S)
        self._python = python
        self.jax = self.platform = ""  # empty before the first start

    def facts(self, programs: Sequence[AnonymousProgram]) -> list[dict[str, float]]:
        """What the compiler says of each."""
        found: list[dict[str, float]] = self._ask(programs)["facts"]
        return found

    def results(self, program: AnonymousProgram, inputs: Sequence[Values]) -> list[Values]:
        """What a program gives for some inputs."""
        return [unpack(one) for one in self._ask([program], inputs=[[pack(one) for one in inputs]])["results"]]

    def ratios(
        self, programs: Sequence[AnonymousProgram], inputs: Sequence[Sequence[Values]], rounds: int
    ) -> list[float]:
        """Times of the second program against the first, each with its own inputs, in turn."""
        packed = [[pack(one) for one in given] for given in inputs]
        found: list[float] = self._ask(programs, quick=False, inputs=packed, rounds=rounds)["ratios"]
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

    def _ask(self, programs: Sequence[AnonymousProgram], *, quick: bool = True, **question: Any) -> dict[str, Any]:
        """Ask; ``quick`` spends little on machine code: no fact and no result speaks of it, and it halves the time."""
        self.start()
        packed = [
            {
                "module": base64.b64encode(one.payload).decode(),
                "inputs": [(array.dtype, array.shape) for array in one.inputs],
                "outputs": [(array.dtype, array.shape) for array in one.outputs],
                "donated": one.donated,
                "options": dict(one.options),
                "quick": quick,
            }
            for one in programs
        ]
        try:
            reply = self.answer_within(ANSWER_S, programs=packed, **question)
        except (OSError, WorkerError) as error:
            raise NoAnswerError(str(error)) from error
        if "refused" in reply:
            raise NoAnswerError(reply["refused"])
        return reply
