"""JAX's defaults, remembered for this user: asking takes a process, and they are an installation's, not a project's."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict

from jaxgate.keep.atomic import write_atomic
from jaxgate.keep.machine import lock_folder
from jaxgate.keep.untrusted import read_json
from jaxgate.model import JaxDefaults


def remembered_defaults(installation: str, ask: Callable[[], JaxDefaults | None]) -> JaxDefaults | None:
    """The defaults of an installation of JAX: as remembered, else asked for and remembered.

    Args:
        installation: What identifies the installation.
        ask: Finds them out; ``None`` where it cannot, which is not remembered.
    """
    path = lock_folder() / f"defaults-{hashlib.sha256(installation.encode()).hexdigest()[:16]}.json"
    try:
        return JaxDefaults(**read_json(path))
    except (OSError, ValueError, TypeError):
        found = ask()
    if found is not None:
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_atomic(path, json.dumps(asdict(found)).encode())
        except OSError:  # a read-only disk: the next run asks again
            pass
    return found
