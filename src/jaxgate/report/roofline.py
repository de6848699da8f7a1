"""A roofline as text: the least time of a call, what it is bound by, and what each resource would need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jaxgate.model import RESOURCES, Resource, Roofline, Side
from jaxgate.report.units import show


def roofline_line(found: Roofline) -> str:
    """One line: ``at least 1.2 ms, bound by memory (compute 0.4 ms, memory 1.2 ms, communication none)``."""
    parts = ", ".join(f"{resource} {need(found, resource)}" for resource in RESOURCES)
    if not found.least_ns:
        return f"least time unknown ({parts})" if found.unknown else f"next to nothing ({parts})"
    bound = "" if found.bound_by is None else f", bound by {found.bound_by}"
    return f"at least {show('least_ns', found.least_ns)}{bound} ({parts})"


def need(found: Roofline, resource: Resource) -> str:
    """What one resource would need: ``1.2 ms``, ``none``, ``unknown``, ``1.2 ms or more``."""
    time_ns = found.times_ns[resource]
    if resource in found.unknown:
        return f"{show('least_ns', time_ns)} or more" if time_ns else "unknown"
    return show("least_ns", time_ns) if time_ns else "none"


def roofline_rows(sides: Mapping[Side, Roofline]) -> Iterator[str]:
    """A table in Markdown with a column for each side, the first of them last; then what is not known, line by line."""
    names = list(sides)[::-1]
    yield f"| | {' | '.join(names)} |"
    yield f"|---|{'--:|' * len(names)}"
    for resource in RESOURCES:
        yield f"| {resource} | {' | '.join(need(sides[name], resource) for name in names)} |"
    bounds = [sides[name].bound_by or "not known" for name in names]
    yield f"| bound by | {' | '.join(bounds)} |"


def open_questions(sides: Mapping[Side, Roofline]) -> list[str]:
    """Why a resource may need more than is shown, one line for each reason."""
    return [
        f"{resource} of {name}: {reason}" for name, found in sides.items() for resource, reason in found.unknown.items()
    ]
