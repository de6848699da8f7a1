"""The devices of a program, and in which order it is laid out on them: StableHLO does not hold it."""

from __future__ import annotations

import jax

from jaxgate.model import InvalidCaseError
from jaxgate.observe.compat import input_shardings, lowered_devices, output_shardings


def devices_of(executable: jax.stages.Compiled) -> list[jax.Device]:
    """The devices that a program runs on, by their numbers.

    Raises:
        InvalidCaseError: If its shardings name none.
    """
    shardings = [one for one in (*input_shardings(executable), *output_shardings(executable)) if one is not None]
    if not shardings:
        raise InvalidCaseError("reading the devices", "expected an input or an output; the function has neither")
    widest = max((sharding.device_set for sharding in shardings), key=len)
    return sorted(widest, key=lambda device: device.id)


def device_assignment(stage: jax.stages.Lowered) -> str | None:
    """The positions in ``jax.devices()`` of a program's devices, in the order of its mesh: ``1 3 5 7 0 2 4 6``.

    Positions and not numbers: another job may see the same devices by other numbers.

    Returns:
        ``None`` for a program on one device, or where this release keeps them elsewhere.
    """
    devices = lowered_devices(stage)
    if len(devices) < 2:  # noqa: PLR2004 - several
        return None
    positions = {device: position for position, device in enumerate(jax.devices(devices[0].platform))}
    return " ".join(str(positions.get(device, f"#{device.id}")) for device in devices)
