"""The interface of a target's compiler; ``ext/targets/process.py`` implements it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from jaxgate.ext.targets.model import Target
from jaxgate.model.program import StoredProgram
from jaxgate.observe.trace.lowering import Lowered


class TargetCompiler(Protocol):
    """Compiles for a target; what it gives has the facts of an executable, and cannot be called."""

    @property
    def target(self) -> Target:
        """What it compiles for."""

    @property
    def versions(self) -> Mapping[str, str]:
        """Versions of the compiler, as they stand in the environment of a measurement."""

    def compile(self, lowered: Lowered) -> Any:
        """Compile a function that was lowered for the target's platform.

        Raises:
            Exception: What the compiler raises; or that it ended, with its last words.
        """

    def close(self) -> None:
        """Let go of the compiler."""

    def recompile(self, program: StoredProgram, lowered: Lowered) -> Any:
        """Compile a stored program for the arguments of a function.

        Raises:
            NotReplayableError: If it cannot be read or compiled.
        """
