"""Print what JAX does by default: ``python -m jaxgate.processes.defaults_query``.

A process of its own, without a variable that sets anything: this one may have settings already.
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

from jaxgate.keep.cache import remembered_defaults
from jaxgate.model.machine import JaxDefaults
from jaxgate.processes.child import own_program, run_child

_TELLS = ("JAX_", "XLA_", "LIBTPU_", "TF_")
"""Beginnings of the variables that set JAX or its compiler."""
TIMEOUT_S = 60.0


def ask_defaults(variables: Mapping[str, str] = os.environ) -> JaxDefaults | None:
    """JAX's defaults, of the installation that this interpreter finds; ``None`` where that process failed."""
    clean = {name: value for name, value in variables.items() if not name.startswith(_TELLS)}
    command = own_program("jaxgate.processes.defaults_query")
    try:
        done = run_child(command, variables=clean, timeout_s=TIMEOUT_S)
        return JaxDefaults(**json.loads((done.stdout.strip().splitlines() or [""])[-1]))
    except (OSError, TimeoutError, ValueError, TypeError):
        return None


@cache
def find_defaults() -> JaxDefaults | None:
    """The same for this process, from what this user's earlier runs found of the same installation."""
    found = find_spec("jax")
    where = "" if found is None or found.origin is None else f"{found.origin} {Path(found.origin).stat().st_mtime_ns}"
    return remembered_defaults(f"{sys.executable} {version('jax')} {version('jaxlib')} {where}", ask_defaults)


def main() -> None:
    """Print the defaults as JSON, on the last line."""
    from jaxgate.observe.machine.jax_settings import read_defaults  # noqa: PLC0415 - imports JAX, which those who ask do without

    sys.stdout.write(json.dumps(asdict(read_defaults())) + "\n")


if __name__ == "__main__":
    main()
