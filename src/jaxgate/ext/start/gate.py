"""The ``gate_start`` fixture's object: start a job in two fresh processes, judge what the second one did again."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxgate.ext.start.judge import Texts, judge_start
from jaxgate.ext.start.model import Job, Started
from jaxgate.ext.start.watch import begin, cache_variables
from jaxgate.keep.files import read_text
from jaxgate.model.measurement import InvalidCaseError
from jaxgate.model.numbers import Samples
from jaxgate.model.verdict import Verdict
from jaxgate.observe.machine.environment import first_device
from jaxgate.observe.tools import Announce
from jaxgate.plugin.another_process import Said, judge_elsewhere
from jaxgate.plugin.gate_arguments import usage_errors

if TYPE_CHECKING:
    from jaxgate.plugin.gate import Gate

_SEED = "PYTHONHASHSEED"
_PATIENCE_S = 3600.0
"""Seconds after which a process that starts the job is ended."""
_WORDS = "it is started", "another job is started", "nothing is started on", "a start is that of one process"


class GateStart:
    """Call it in a test, with a function that takes a job to its first result."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    def __call__(self, start: Callable[[], Any], *, name: str | None = None, **limits: Any) -> Verdict:
        """Gate the start of a job.

        Args:
            start: Called without arguments in a fresh process; gives what the job waits for first, as arrays in any tree.
            name: Name of the case instead of the test's, as of ``gate``.
            limits: ``programs``, how many may be asked for until then; ``seconds``, how long the second process may take from
                its start; ``allow``, how many ``missed_programs`` and ``repeated_programs`` there may be.

        Returns:
            The verdict, if the test goes on.

        Raises:
            pytest.fail.Exception: If the verdict fails the test, or the arguments do not fit together; its text says why.
        """
        with usage_errors():
            job = Job(start=start, **limits)
        show, judge = partial(_show, job.start), partial(_judge, job)
        return judge_elsewhere(self._gate, name, show=show, judge=judge, words=_WORDS)


def _show(start: Callable[[], Any], folder: Path, began: float, _: Announce) -> Said:
    """Start the job in this process; gives what that shows, or what it fails of."""
    try:
        return begin(start, began, str(_cache_of(folder))), []
    except InvalidCaseError as error:
        return {"failed": [error.stage, error.reason]}, []


def _judge(
    job: Job, case: str, ask: Callable[..., Said], folder: Path, progress: Announce
) -> tuple[Verdict, Samples | None]:
    def start(number: int, into: Path) -> Started:
        progress(f"starting it in a fresh process, {number} of 2")
        variables = {_SEED: str(number), **cache_variables(str(_cache_of(into)), str(into / "programs"))}
        said, _ = ask(into, "starting the job in another process", timeout_s=_PATIENCE_S, variables=variables)
        if "failed" in said:
            stage, reason = said["failed"]
            raise InvalidCaseError(f"{stage} in another process", reason)
        return Started.of(said)

    folders = folder / "first", folder / "second"
    first, second = start(1, folders[0]), start(2, folders[1])
    if job.seconds is not None and second.total_s > job.seconds:  # somebody else may have worked meanwhile
        second = min(second, start(2, folder / "again"), key=lambda one: one.total_s)
    texts = _texts(folders[0]), _texts(folders[1])
    return judge_start(case, first_device(), job, (first, second), texts), None


def _cache_of(folder: Path) -> Path:
    return folder.parent / "cache"


def _texts(folder: Path) -> Texts:
    files = sorted((folder / "programs").glob("jax_ir*_compile.mlir"))

    def text(place: int) -> str:
        try:
            return read_text(files[place], errors="replace")
        except (IndexError, OSError):
            return ""

    return text
