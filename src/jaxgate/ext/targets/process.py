"""The process that has a target's compiler, started when it is first asked, and all such processes of a run, which its gates share."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from jaxgate.ext.targets.compiled import TargetExecutable, placement
from jaxgate.ext.targets.compilers import COMPILERS, refuse_interpreted
from jaxgate.ext.targets.interface import TargetCompiler
from jaxgate.ext.targets.model import Target
from jaxgate.ext.targets.topology import NoTargetError
from jaxgate.model.program import StoredProgram
from jaxgate.observe.errors import NotOnTargetError
from jaxgate.observe.program.export import NotReplayableError, export_whole, load_program
from jaxgate.observe.trace.lowering import Lowered
from jaxgate.processes.child import own_program
from jaxgate.processes.live_worker import KeptWorker, WorkerError

TIMEOUT_S = 3600.0
"""Seconds that one program may take. A training step of ResNet-50 took 121 s for a v5e on two busy cores, one of ViT-B/16 more
than 600 s on two cores that twenty processes shared (2026-11-24)."""
_NOTHING_TRIED = "Couldn't find output tile sizes"
"""What the compiler of GPUs says, on jax 0.10, of a few products for which it would time kernels on a GPU."""


class TargetError(Exception):
    """The compiler of a target refused a program, or ended; the text is the compiler's."""


class TargetProcess(KeptWorker):
    """The compiler of a target, in a process that is started when it is first asked.

    ``timeout_s`` is for one program. The variables that the compiler needs are added to ``environ``.
    """

    def __init__(
        self,
        target: Target,
        environ: Mapping[str, str] = os.environ,
        *,
        timeout_s: float = TIMEOUT_S,
        module: str = "jaxgate.ext.targets.topology",
    ) -> None:
        variables = {**environ, **COMPILERS[target.platform].variables}
        super().__init__([*own_program(module), str(target)], variables, timeout_s)
        self.target, self._timeout_s = target, timeout_s

    @cached_property
    def versions(self) -> Mapping[str, str]:
        """The compiler's own words on its version, and that of its package.

        Raises:
            NoTargetError: If it is not installed, or does not know the target.
        """
        self._ready()
        found = {"backend": self.greeting["version"]}
        for package in COMPILERS[self.target.platform].packages:
            with suppress(PackageNotFoundError):  # it came by another way; its own words name it
                found[package] = version(package)
        return found

    def compile(self, lowered: Lowered) -> TargetExecutable:
        """Compile a function that was lowered for the target's platform.

        Raises:
            InvalidCaseError: If it has a kernel that is interpreted.
            NotOnTargetError: If the compiler would have to time it on a device.
            NotReplayableError: If it cannot be handed to another process.
            TargetError: If the compiler refuses it, or ends.
        """
        refuse_interpreted(lowered, self.target)
        return self._compiled(export_whole(lowered), lowered, lowered.donated, dict(lowered.options or ()))

    def recompile(self, program: StoredProgram, lowered: Lowered) -> TargetExecutable:
        """Compile a stored program where a function's program lies.

        Raises:
            NotReplayableError: If it cannot be read or compiled.
        """
        about = program.record
        load_program(program, self.target.platform, self.target.devices)  # refuses what must not be compiled
        try:
            return self._compiled(program.content, lowered, about.donated, about.options)
        except TargetError as error:
            raise NotReplayableError(str(error).strip().partition("\n")[0]) from error

    def _compiled(
        self, content: bytes, lowered: Lowered, donated: tuple[int, ...], options: Mapping[str, str]
    ) -> TargetExecutable:
        placed = placement(lowered)
        found = self._ask(
            content=base64.b64encode(content).decode(),
            donated=list(donated),
            options=dict(options),
            positions=placed.positions,
            kinds=placed.kinds,
        )
        return TargetExecutable(found, placed.devices)

    def _ask(self, **question: Any) -> dict[str, Any]:
        self._ready()
        try:
            found = self.answer_within(self._timeout_s, **question)
        except WorkerError as error:
            raise TargetError(f"the compiler of {self.target} ended: {error}") from None
        if "refused" in found:
            if _NOTHING_TRIED in found["refused"]:
                raise NotOnTargetError(
                    f"the compiler of {self.target} finds no tiles for a product that it cannot try out"
                )
            raise TargetError(found["refused"])
        return found

    def _ready(self) -> None:
        try:
            self.started()
        except WorkerError as error:
            raise NoTargetError(str(error)) from None


class OpenCompilers:
    """Starts the compiler of a target when it is first asked for."""

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
