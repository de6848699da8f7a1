"""JAX's defaults, remembered for this user: asking takes a process, and they are an installation's, not a project's."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict

from jaxgate.keep.atomic import write_atomic
from jaxgate.keep.private_folder import lock_folder
from jaxgate.keep.untrusted import read_json
from jaxgate.model import JaxDefaults


def remembered_defaults(installation: str, ask: Callable[[], JaxDefaults | None]) -> JaxDefaults | None:
    """The defaults of an installation of JAX: as remembered, else asked for and remembered.

    Args:
        installation: What identifies the installation.
        ask: Finds them out; ``None`` where it cannot, which is not remembered.
    """
    name = f"defaults-{hashlib.sha256(installation.encode()).hexdigest()[:16]}.json"
    with suppress(OSError, ValueError, TypeError):
        return JaxDefaults(**read_json(lock_folder() / name))
    found = ask()
    if found is not None:
        with suppress(OSError):  # a read-only disk: the next run asks again
            write_atomic(lock_folder() / name, json.dumps(asdict(found)).encode())
    return found
