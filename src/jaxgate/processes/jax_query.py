"""Questions that a process of its own puts to JAX: ``python -m jaxgate.processes.jax_query hardware`` or ``defaults``.

Asking for the hardware takes the devices, which a process that records sessions must not hold; what JAX does by default is
not known to a process that has settings. The answer is JSON, on the last line.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from jaxgate.keep.cache import remembered_defaults
from jaxgate.model.machine import HardwareKey, JaxDefaults
from jaxgate.model.outcome import UsageError
from jaxgate.processes.child import Finished, own_program, run_child

_TELLS = ("JAX_", "XLA_", "LIBTPU_", "TF_")
"""Beginnings of the variables that set JAX or its compiler."""
_HERE = "jaxgate.processes.jax_query"
TIMEOUT_S = 60.0


def ask_hardware(folder: Path | None = None, variables: Mapping[str, str] | None = None) -> HardwareKey:
    """The key of the first device, as a process in this folder finds it; by default with the variables of this process.

    Raises:
        UsageError: If JAX finds none; the text is the process's last word.
    """
    done = run_child([*own_program(_HERE), "hardware"], folder=folder, variables=variables)
    try:
        return HardwareKey(**_answer(done))
    except (ValueError, TypeError):
        raise UsageError(done.last_words) from None


def ask_defaults(variables: Mapping[str, str] = os.environ) -> JaxDefaults | None:
    """JAX's defaults, of the installation that this interpreter finds; ``None`` where that process failed."""
    clean = {name: value for name, value in variables.items() if not name.startswith(_TELLS)}
    try:
        return JaxDefaults(
            **_answer(run_child([*own_program(_HERE), "defaults"], variables=clean, timeout_s=TIMEOUT_S))
        )
    except (OSError, TimeoutError, ValueError, TypeError):
        return None


def _answer(done: Finished) -> Any:
    return json.loads((done.stdout.strip().splitlines() or [""])[-1])


@cache
def find_defaults() -> JaxDefaults | None:
    """JAX's defaults for this process, from what this user's earlier runs found of the same installation."""
    found = find_spec("jax")
    where = "" if found is None or found.origin is None else f"{found.origin} {Path(found.origin).stat().st_mtime_ns}"
    return remembered_defaults(f"{sys.executable} {version('jax')} {version('jaxlib')} {where}", ask_defaults)


def main(what: str) -> None:
    """Print the answer; those who ask import no JAX."""
    from jaxgate.observe.machine.environment import first_device  # noqa: PLC0415 - likewise
    from jaxgate.observe.machine.jax_settings import read_defaults  # noqa: PLC0415 - likewise

    answer = first_device() if what == "hardware" else read_defaults()
    sys.stdout.write(json.dumps(asdict(answer)) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
