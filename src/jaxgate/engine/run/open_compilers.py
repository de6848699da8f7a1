"""The compilers of hardware that is not there that a run has started: one for each target, shared by its gates."""

from __future__ import annotations

from collections.abc import Callable

from jaxgate.model import Target
from jaxgate.observe.target import NoTargetError
from jaxgate.observe.trace import TargetCompiler


class OpenCompilers:
    """Starts the compiler of a target when it is first asked for.

    Args:
        open_target: Starts one.
    """

    def __init__(self, open_target: Callable[[Target], TargetCompiler]) -> None:
        self._open_target = open_target
        self._open: dict[Target, TargetCompiler] = {}
        self._failed: dict[Target, NoTargetError] = {}

    def of(self, target: Target) -> TargetCompiler:
        """The compiler of a target.

        Raises:
            NoTargetError: If it is not installed, or does not know the target.
        """
        if target in self._failed:  # it would fail again for the next gate, after seconds
            raise self._failed[target]
        if target not in self._open:
            compiler = self._open_target(target)
            try:
                compiler.versions  # noqa: B018 - asks its process
            except NoTargetError as error:
                self._failed[target] = error
                raise
            finally:
                self._open[target] = compiler
        return self._open[target]

    def close(self) -> None:
        """End the processes of all of them."""
        for compiler in self._open.values():
            compiler.close()
