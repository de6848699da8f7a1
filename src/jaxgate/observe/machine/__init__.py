"""The machine: its devices, environment and load."""

from jaxgate.observe.machine.distributed import NotJoinedError, join
from jaxgate.observe.machine.environment import (
    environment_here,
    fingerprint,
    first_device,
    hardware_key,
    read_environment,
    settings_here,
    usable_cores,
)
from jaxgate.observe.machine.jax_settings import (
    all_settings,
    apply_settings,
    compilation_cache,
    know_defaults,
    known_defaults,
    read_defaults,
    refuse_settings,
    settings,
    settings_of,
    unfit_settings,
)
from jaxgate.observe.machine.load import MachineState, Ticks, look, most_memory_bytes, read_ticks
from jaxgate.observe.machine.nvml import load_nvml, visible_gpus
from jaxgate.observe.machine.python_speed import clock_step, python_spread, read_yardstick
from jaxgate.observe.machine.recreated_environment import NotRecreatedError, recreate, variables_of
from jaxgate.observe.machine.virtual_devices import DevicesChosenError, devices_here, give_cpu_devices, usual_size
