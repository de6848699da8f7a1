"""What runs of pytest in this process need not do anew in each: it was 50 ms of the 130 that a small green run took."""

from __future__ import annotations

import gc
import importlib.metadata
import os
import sys
import threading
from collections.abc import Iterable
from functools import cache
from importlib.metadata import Distribution
from pathlib import Path
from sysconfig import get_paths
from types import ModuleType
from typing import Any

import pytest_benchmark.session
from _pytest import fixtures, pytester
from jax._src.interpreters import mlir

from jaxgate.model.machine import HardwareKey
from jaxgate.plugin import session_end
from jaxgate.processes.jax_query import ask_hardware, find_defaults

INSTALLED = tuple(get_paths()[name] for name in ("purelib", "platlib", "stdlib"))
LASTING = (*INSTALLED, str(Path(__file__).resolve().parents[2]))
"""What is there from the first run to the last: this repository, too."""
MANY = 100
"""Installed modules that a run brought, from which on they are no longer looked at for garbage."""
PROGRAMS_IN_A_CONTEXT = 10
"""As in jax 0.12: a context keeps what it has interned."""


def do_once() -> None:
    """Spare all later runs what this one has done."""
    _keep_installed_modules()
    _remember_distributions()
    _remember_fixtures()
    pytest_benchmark.session.get_machine_id = cache(pytest_benchmark.session.get_machine_id)  # it starts a process
    find_defaults()  # so does this; were the first to ask a test that replaces ``subprocess.run``, no later test would know
    session_end.ask_hardware = _ask_once  # likewise
    share_contexts()


@cache
def _hardware(_variables: tuple[tuple[str, str], ...]) -> HardwareKey:
    return ask_hardware()


def _ask_once() -> HardwareKey:
    """What a process finds that has these variables."""
    return _hardware(
        tuple(sorted((name, value) for name, value in os.environ.items() if name.startswith(("JAX", "XLA"))))
    )


def _keep_installed_modules() -> None:
    """Let pytester forget the modules of a run's project alone: what is installed is the same in each."""
    restore = pytester.SysModulesSnapshot.restore

    def restore_but_installed(snapshot: pytester.SysModulesSnapshot) -> None:
        found = dict(sys.modules)
        restore(snapshot)
        new = {name: module for name, module in found.items() if name not in sys.modules}
        sys.modules.update(new)  # a package without a file asks the one around it where it lies
        of_project = [name for name, module in new.items() if not _is_installed(module)]
        for name in of_project:
            del sys.modules[name]
        if len(new) - len(of_project) > MANY:
            gc.collect()
            gc.freeze()

    pytester.SysModulesSnapshot.restore = restore_but_installed


def _is_installed(module: Any, folders: tuple[str, ...] = INSTALLED) -> bool:
    """Whether its file lies there, or one of the folders of a package that has no file."""
    known = getattr(module, "__dict__", {})  # not its attributes: of some, the first one that is asked for imports more
    places = [known["__file__"]] if known.get("__file__") else known.get("__path__", ())
    return any(str(place).startswith(folders) for place in places)


class _Known:
    """A distribution, each of whose files is read once."""

    def __init__(self, distribution: Distribution) -> None:
        self._distribution = distribution

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._distribution, name)
        setattr(self, name, found)
        return found


def _remember_distributions() -> None:
    """Look once at what is installed: a run of pytest reads the metadata of everything, two times, for its plugins."""
    look = importlib.metadata.distributions

    named = importlib.metadata.distribution

    @cache
    def known() -> tuple[_Known, ...]:
        return tuple(map(_Known, look()))

    def distributions(**where: Any) -> Iterable[Any]:
        return look(**where) if where else known()

    importlib.metadata.distributions = distributions
    importlib.metadata.distribution = cache(lambda name: _Known(named(name)))


def _remember_fixtures() -> None:
    """Look once at what a plugin holds for its fixtures: pytest asks each name of it, in each run."""

    @cache
    def fixtures_of(kind: Any) -> list[str]:
        return [name for name in dir(kind) if isinstance(getattr(kind, name, None), fixtures.FixtureFunctionDefinition)]

    def names(holder: Any) -> list[str]:
        kind = holder if isinstance(holder, type | ModuleType) else type(holder)
        module = kind if isinstance(kind, ModuleType) else sys.modules.get(kind.__module__)
        return fixtures_of(kind) if _is_installed(module, LASTING) else dir(holder)

    fixtures.dir = names


def share_contexts() -> None:
    """Lower ten programs in a row in one context of MLIR, as jax 0.12 does: to make one takes longer than a small program."""
    if hasattr(mlir, "_create_ir_context"):
        return
    make, own = mlir.make_ir_context, threading.local()

    def make_ir_context() -> Any:
        if mlir.ir.Context.current is not None:  # something is lowered for what is being lowered
            return make()
        left, context = getattr(own, "context", (0, None))
        own.context = (left - 1, context) if left else (PROGRAMS_IN_A_CONTEXT - 1, make())
        return own.context[1]

    mlir.make_ir_context = make_ir_context
