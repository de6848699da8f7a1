"""What one call of a compiled program asks of one device of a target: products, memory, links."""

from __future__ import annotations

import re

from jaxgate.model import GPUS, RESOURCES, Demand, Resource, Target
from jaxgate.observe.errors import describe
from jaxgate.observe.hlo import BYTES, Collective, HloText, count_products, count_traffic, read_collectives
from jaxgate.observe.trace import Work

_TYPES = re.compile(r"(\w+)\[")


def read_demand(hlo: HloText, work: Work | None, target: Target, devices: int) -> Demand:
    """Count what a program asks for; whatever it does not show is said to be unknown.

    Args:
        hlo: The optimised program.
        work: What JAX traced, on all devices together; ``None`` of a stored program, of which that is not known.
        target: What it was compiled for.
        devices: How many devices it runs on.
    """
    try:
        products, traffic = count_products(hlo), count_traffic(hlo)
        sent, why = (0, "") if devices == 1 else _sent(hlo, target)
    except Exception as error:  # noqa: BLE001 - a text that nobody promises: a verdict must not be lost over an estimate
        return Demand(unknown=dict.fromkeys(RESOURCES, f"the optimised program cannot be read: {describe(error)}"))
    reasons: dict[Resource, str] = {
        "compute": _one(products.more),
        "memory": _one(traffic.more),
        "communication": why,
    }
    return Demand(
        flops=dict(products.counts),
        memory_bytes=traffic.counts[BYTES],
        sent_bytes=sent,
        traced_flops=work.matmul_flops // devices if work else 0,
        traced_types=frozenset(name for label in work.matmuls for name in _TYPES.findall(label))
        if work
        else frozenset(),
        unknown={resource: reason for resource, reason in reasons.items() if reason},
    )


def _one(reasons: dict[str, None]) -> str:
    first = next(iter(reasons), "")
    return f"{first}, and {len(reasons) - 1} more" if len(reasons) > 1 else first


def _sent(hlo: HloText, target: Target) -> tuple[int, str]:
    """What one device sends at least in one call, and why it may be more."""
    found = read_collectives(hlo)
    if found.unread:
        return 0, f"the optimised program has what is not understood: {found.unread[0]}"
    if any(_leaves_machine(collective, target) for collective in found.found):
        return 0, "the network between machines is not known"
    sure = [one for one in found.found if not one.in_branch and one.kind != "ragged-all-to-all"]
    reasons = []
    if any(one.in_branch for one in found.found):
        reasons.append("a collective in a branch of a conditional does not count")
    if any(one.kind == "ragged-all-to-all" for one in found.found):
        reasons.append("what a ragged all-to-all sends depends on values")
    if any(collective.unknown_trips for collective in sure):
        reasons.append("a loop of unknown length counts once")
    return round(sum(_crossing(one) * one.times for one in sure)), "; ".join(reasons)


def _crossing(collective: Collective) -> float:
    """Bytes that a device sends for one execution, whatever the algorithm, where switches do not compute."""
    members = max((len(group) for group in collective.groups or ()), default=1)
    if collective.kind in ("collective-permute", "collective-broadcast"):
        return collective.nbytes
    return (2 if collective.kind == "all-reduce" else 1) * collective.nbytes * (members - 1) / members


def _leaves_machine(collective: Collective, target: Target) -> bool:
    """Whether GPUs of several machines take part together; chips of a slice are all linked."""
    each = int(target.topology.rpartition("x")[2]) if target.chip in GPUS else target.devices
    return any(len({device // each for device in group}) > 1 for group in collective.groups or ())
