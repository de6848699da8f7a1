"""An environment of another process had again in this one: its variables and JAX's settings.

XLA reads its flags once in a process. To run a program as it was run under other flags takes a process that is started
with them, and that checks that it has the environment.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Mapping
from typing import Any

import jax

from jaxgate.model.machine import CORES
from jaxgate.observe.machine.environment import is_setting, read_environment, shown
from jaxgate.observe.machine.jax_settings import all_settings, known_defaults
from jaxgate.observe.source_lines import HASHED_PATH


class NotRecreatedError(Exception):
    """No process can have this environment; the text says why, in one line."""


def variables_of(environment: Mapping[str, str], base: Mapping[str, str], platform: str) -> dict[str, str]:
    """The variables that a process is started with, so that it has an environment.

    ``base`` are variables that have nothing to do with it. A conftest may have chosen the platform by ``jax.config``,
    in its process alone.

    Raises:
        NotRecreatedError: If a value names a path, of which the environment has the hash alone.
    """
    found = {name: value for name, value in base.items() if not is_setting(name)}
    for name, value in environment.items():
        if not is_setting(name):
            continue
        here = [held[name] for held in (os.environ, base) if name in held and shown(held[name]) == value]
        if not here and HASHED_PATH in value:
            raise NotRecreatedError(f"{name} names a path, of which a hash is stored")
        found[name] = here[0] if here else value
    chosen = "cpu" if platform == "cpu" else jax.config.jax_platforms
    if chosen:
        found["JAX_PLATFORMS"] = chosen
    else:
        found.pop("JAX_PLATFORMS", None)
    return found


def recreate(environment: Mapping[str, str], platform: str) -> None:
    """Give this process an environment, before it asks for a device, and see that it has it.

    The process was started with its ``variables_of``. Settings that it does not name are JAX's defaults
    (``know_defaults``).

    Raises:
        NotRecreatedError: If something of it is otherwise here all the same, or JAX's defaults are not known.
    """
    defaults = known_defaults()
    if defaults is None:
        raise NotRecreatedError("JAX's defaults are not known, so no process can have the settings of the baseline")
    for name, value in all_settings().items():
        wanted = environment.get(name, defaults.config.get(name, str(value)))
        if wanted != str(value):
            jax.config.update(name, _value(wanted))
    device = jax.devices()[0]
    if device.platform != platform:
        raise NotRecreatedError(f"a process of its own would run on {device.platform}")
    here = read_environment(device)
    for name in sorted((environment.keys() | here.keys()) - {CORES}):  # both sides use those of today
        if environment.get(name) != here.get(name):
            there = environment.get(name, "absent")
            raise NotRecreatedError(f"{name} was {there}, a process of its own has {here.get(name, 'absent')}")


def _value(text: str) -> Any:
    """The value of a setting, from its text."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
