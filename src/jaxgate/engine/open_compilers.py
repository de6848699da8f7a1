"""The compilers of hardware that is not there that a run has started: one for each target, shared by its gates."""

from __future__ import annotations

from collections.abc import Callable

from jaxgate.model import Target
from jaxgate.observe.trace import TargetCompiler


class OpenCompilers:
    """Starts the compiler of a target when it is first asked for.

    Args:
        open_target: Starts one.
    """

    def __init__(self, open_target: Callable[[Target], TargetCompiler]) -> None:
        self._open_target = open_target
        self._open: dict[Target, TargetCompiler] = {}

    def of(self, target: Target) -> TargetCompiler:
        """The compiler of a target.

        Raises:
            NoTargetError: If it is not installed, or does not know the target.
        """
        if target not in self._open:
            compiler = self._open_target(target)
            self._open[target] = compiler
            compiler.versions  # noqa: B018 - asks its process
        return self._open[target]

    def close(self) -> None:
        """End the processes of all of them."""
        for compiler in self._open.values():
            compiler.close()
