"""Virtual devices of a CPU, and what the devices of this machine are good for."""

from __future__ import annotations

import jax

from jaxgate.settings import Size


class DevicesChosenError(Exception):
    """JAX started before its devices could be chosen."""


def give_cpu_devices(count: int, *, alone: bool = False) -> None:
    """Divide the CPU into virtual devices; must come before anything that touches a device.

    Nothing changes where JAX has at least ``count`` already. ``alone`` lets JAX look for no other devices.

    Raises:
        DevicesChosenError: If JAX has started with fewer.
    """
    if alone:
        jax.config.update("jax_platforms", "cpu")
    try:
        jax.config.update("jax_num_cpu_devices", count)
    except RuntimeError:
        found = len(jax.devices("cpu"))
        if found < count:
            raise DevicesChosenError(
                f"expected to divide the CPU into {count} devices (perf_cpu_devices), found that JAX has started with "
                f"{found}: something that pytest imported touches a device, or XLA_FLAGS chooses another number"
            ) from None


def devices_here() -> tuple[str, int]:
    """Platform and number of the devices that JAX uses by default. Takes the devices of this process."""
    found = jax.devices()
    return found[0].platform, len(found)


def usual_size() -> Size:
    """The size of workloads that this hardware usually runs."""
    return "small" if jax.default_backend() == "cpu" else "full"
