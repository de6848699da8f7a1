"""Gates for hardware that is not there: that of the whole run, or that which one call of ``gate`` names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import pytest

from jaxgate.engine.run.session import GateSession
from jaxgate.ext.targets.interface import TargetCompiler
from jaxgate.ext.targets.model import Target
from jaxgate.ext.targets.topology import NoTargetError
from jaxgate.observe.errors import NotOnTargetError
from jaxgate.plugin.options.kinds import COMPILING


def parse_targets(names: Sequence[str]) -> list[Target]:
    """Read ``targets=`` of a gate.

    Raises:
        TypeError: If it is no list of texts, or names one target twice.
        ValueError: If one of them is no target.
    """
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"expected targets=['tpu:v5e:2x4', ...], found {names!r}")
    targets = [Target.parse(name) for name in names]
    if len(set(targets)) < len(targets):
        raise TypeError(f"expected each target once in targets=, found {', '.join(map(str, targets))}")
    return targets


def compiler_of(session: GateSession, target: Target, test: str) -> TargetCompiler:
    """The compiler of a target that a gate names.

    Raises:
        pytest.skip.Exception: If this run calls its cases; or the compiler is not installed and the run is not strict.
        pytest.fail.Exception: If the compiler is not installed.
    """
    if session.settings.kind not in COMPILING or session.settings.ranks is not None:
        asked = session.settings.kind.flag or "a run over several processes"
        _skip(session, test, f"{asked} calls the cases, and this one is compiled for {target} alone")
    try:
        return session.compilers.of(target)
    except NoTargetError as error:
        if session.settings.strict:
            pytest.fail(str(error), pytrace=False)
        _skip(session, test, str(error))


def leave_out(session: GateSession, compiler: TargetCompiler, case: str, test: str, why: NotOnTargetError) -> NoReturn:
    """End the test of a case that has no program for a target.

    Raises:
        pytest.skip.Exception: If it never had one.
        pytest.fail.Exception: If it had one, as its baseline shows, or its gate names the target.
    """
    target = compiler.target
    if compiler is not session.compiler:
        pytest.fail(f"`{case}` has no program for {target}: {why}\nexpected targets= without it", pytrace=False)
    if session.store.knows(target, case):
        pytest.fail(
            f"`{case}` has a baseline for {target} and no program any more: {why}\n"
            f"expected a program, or no such baseline; remove its file under {target.slug}-* if that is meant",
            pytrace=False,
        )
    _skip(session, test, str(why), f"`{case}`: {why}")


def _skip(session: GateSession, test: str, why: str, text: str = "") -> NoReturn:
    session.result.left_out[test] = why
    pytest.skip(text or why)
