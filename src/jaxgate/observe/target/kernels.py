"""Kernels that a program for a target must not hold: interpreted ones, which are other programs than the target runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jaxgate.model import InvalidCaseError, Target
from jaxgate.observe.trace import Lowered


def refuse_interpreted(lowered: Lowered, target: Target) -> None:
    """Refuse a program with a Pallas kernel in interpret mode: it was chosen for the CPU that the program was traced on.

    Raises:
        InvalidCaseError: If it has one.
    """
    for equation in _equations(lowered.traced.jaxpr.jaxpr, target.lowering):
        if equation.primitive.name == "pallas_call" and equation.params.get("interpret"):
            raise InvalidCaseError(
                f"looking at the kernels of the {lowered.role}",
                f"expected kernels for {target}, found pallas_call(interpret=True): it was chosen for the CPU that the "
                f"function is traced on; choose by jax.lax.platform_dependent(..., cpu=, {target.lowering}=)",
            )


def _equations(jaxpr: Any, platform: str) -> Iterator[Any]:
    """All equations of a program that are lowered for a platform, inner ones included."""
    for equation in jaxpr.eqns:
        yield equation
        for value in _values(equation, platform):
            inner = getattr(value, "jaxpr", value)
            if hasattr(inner, "eqns"):
                yield from _equations(inner, platform)


def _values(equation: Any, platform: str) -> Iterator[Any]:
    """The parameters of an equation, lists flattened; of ``jax.lax.platform_dependent`` the branch of the platform."""
    params = dict(equation.params)
    chosen = params.get("branches_platforms")
    if chosen is not None:
        fitting = (at for at, platforms in enumerate(chosen) if platforms is None or platform in platforms)
        branch = next(fitting, None)
        params["branches"] = () if branch is None else params["branches"][branch]
    for value in params.values():
        yield from value if isinstance(value, (list, tuple)) else (value,)
