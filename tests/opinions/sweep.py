"""Ask for a second opinion on each program's result, whether or not it has a reference, in two processes."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import pkgutil
import re
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax

import workloads
from jaxgate.ext.opinion.ask import Question, second_opinion
from jaxgate.ext.opinion.interpreter import NotInterpretedError
from jaxgate.ext.opinion.model import Opinion
from jaxgate.ext.opinion.process import InterpreterProcess
from jaxgate.ext.opinion.traits import read_traits
from jaxgate.keep.cache import ReferenceCache
from jaxgate.model.measurement import InvalidCaseError
from jaxgate.model.workload import Case
from jaxgate.observe.arguments.carry import with_next_args
from jaxgate.observe.arguments.feeder import has_shapes, on_host
from jaxgate.observe.execute.subjects import JittedSubject
from jaxgate.observe.observation import compile_subject
from jaxgate.observe.tools import Tools
from tests.faults import catalogue, programs
from tests.faults.model import Fault
from tests.faults.runner import DEVICES, Bench


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What came of one program."""

    name: str  # the case; of a planted program with the mistake
    opinion: Opinion | None = None  # what was said of its result; `None` where it could not be run
    why_not: str = ""  # why it could not
    failed: bool = False  # whether that is an error of the sweep's own
    steps: float = 0.0  # what the interpreter would take
    eps: float = 0.0  # distance from 1 to the next number, of its coarsest float
    compile_s: float = 0.0  # what its first compile took

    @property
    def roundings(self) -> float | None:
        """How far apart the two results are, in roundings of its coarsest float."""
        if self.opinion is None or self.opinion.apart is None:
            return None
        return self.opinion.apart / self.eps if self.eps else self.opinion.apart


class Nobody:
    """In the interpreter's place: every program is compiled a second time."""

    def interpret(self, *_: Any, **__: Any) -> list[Any]:
        """Refuse."""
        raise NotInterpretedError("not asked")

    def close(self) -> None:
        """Nothing is open."""


def catalogue_cases() -> Iterator[Case]:
    """All cases of the catalogue."""
    for found in pkgutil.iter_modules(workloads.__path__):
        module = importlib.import_module(f"workloads.{found.name}")
        yield from getattr(module, "CASES", ())


def planted() -> Iterator[Fault]:
    """All planted programs that run at all."""
    families = (programs.FAULTS, *catalogue.FAULTS.values())
    yield from (fault for family in families for fault in family if fault.status != "INVALID")


def sweep(names: Sequence[str], *, only: str, limit_s: float, interpreted: bool) -> Iterator[Asked]:
    """Ask about everything whose name fits.

    Args:
        names: Of ``catalogue`` and ``planted``.
        only: A regular expression.
        limit_s: Seconds that an opinion may take.
        interpreted: Whether the interpreter is asked.
    """
    jobs: list[tuple[str, str]] = []
    if "catalogue" in names:
        jobs += [("catalogue", case.name) for case in catalogue_cases()]
    if "planted" in names:
        jobs += [("planted", _name(fault)) for fault in planted()]
    wanted = [job for job in jobs if re.search(only, job[1])]
    context = multiprocessing.get_context("spawn")
    with (
        tempfile.TemporaryDirectory() as folder,
        ProcessPoolExecutor(2, context, initializer=_begin, initargs=(Path(folder), limit_s, interpreted)) as pool,
    ):
        yield from pool.map(_ask_about, wanted)


def _name(fault: Fault) -> str:
    return f"{fault.case}: {fault.name}"


_bench: Bench
_interpreter: InterpreterProcess | Nobody
_limit_s: float


def _begin(folder: Path, limit_s: float, interpreted: bool) -> None:  # noqa: FBT001 - an initializer's arguments have no names
    global _bench, _interpreter, _limit_s  # noqa: PLW0603 - of a worker process, there is no other place
    jax.config.update("jax_num_cpu_devices", DEVICES)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    _bench = Bench(Path(tempfile.mkdtemp(dir=folder)))
    _interpreter, _limit_s = InterpreterProcess() if interpreted else Nobody(), limit_s


def _ask_about(job: tuple[str, str]) -> Asked:
    kind, name = job
    widened = jax.config.jax_enable_x64
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return replace(_asked(_case(kind, name)), name=name)
    except (InvalidCaseError, jax.errors.JaxRuntimeError) as error:  # it cannot run, or needs more memory than there is
        return Asked(name=name, why_not=str(error).splitlines()[0])
    except Exception as error:  # noqa: BLE001 - the others go on; it makes the sweep fail
        return Asked(name=name, why_not=f"{type(error).__name__}: {error}".splitlines()[0], failed=True)
    finally:
        jax.config.update("jax_enable_x64", widened)


def _case(kind: str, name: str) -> Case:
    if kind == "catalogue":
        return next(case for case in catalogue_cases() if case.name == name)
    fault = next(fault for fault in planted() if _name(fault) == name)
    return _bench.case(fault.path, fault.case, fault.planted())


def _asked(case: Case) -> Asked:
    computation = with_next_args(case.build())
    if computation.eager or has_shapes(computation.args, computation.kwargs):
        return Asked(name="", why_not="plain Python" if computation.eager else "shapes only")
    compiled = compile_subject(computation, Tools(store=ReferenceCache(None)))
    if compiled.program.facts.host_callbacks:
        return Asked(name="", why_not="calls Python")
    lowered = compiled.lowered
    subject = JittedSubject.of(lowered, compiled.call)
    result = jax.tree.map(on_host, subject.call(subject.fresh()))
    traits = read_traits(lowered.stage.compiler_ir("stablehlo"), jax.default_backend())
    begin = time.perf_counter()
    opinion = second_opinion(
        Question(
            lowered=lowered,
            call=compiled.call,
            result=result,
            executable=compiled.program.executable,
            compile_ns=compiled.program.compile_ns,
            platform="cpu",
        ),
        _interpreter.interpret,
        limit_s=_limit_s,
    )
    return Asked(
        name="",
        opinion=replace(opinion, seconds=time.perf_counter() - begin),
        steps=traits.cost,
        eps=traits.eps,
        compile_s=(compiled.program.compile_ns or 0) / 1e9,
    )
