"""Joining the other processes of a job: ``jax.distributed``, before anything touches a device."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import jax

from jaxgate.observe.compat import Membership, membership
from jaxgate.observe.errors import describe

INITIALIZE_S = 30
"""What JAX is given beyond our own limit: where it gives up itself, it aborts the process."""
HEARTBEAT_S = 120
"""JAX ends the job where it hears nothing of a process for so long; ours must have reported by then."""


class NotJoinedError(Exception):
    """The job could not be joined; the text says what was expected and what was found."""


@dataclass(frozen=True, slots=True)
class Job:
    """This process's job, and the board of its ranks: JAX's coordination service. Nothing happens once that is gone."""

    membership: Membership

    def put(self, name: str, text: str) -> None:
        """Write something, in place of what was there."""
        with suppress(jax.errors.JaxRuntimeError):
            self.membership.client.key_value_set(f"jaxgate/{name}", text, allow_overwrite=True)

    def take(self, name: str, wait_s: float) -> str | None:
        """Read what somebody wrote, or will write within some seconds; ``None`` if nobody does."""
        end = time.monotonic() + wait_s
        try:
            return str(self.membership.client.blocking_key_value_get(f"jaxgate/{name}", round(wait_s * 1000)))
        except jax.errors.JaxRuntimeError:
            time.sleep(max(0.0, end - time.monotonic()))  # where the service itself is gone it does not wait
            return None

    def below(self, name: str) -> list[str]:
        """Read all that was written below a name."""
        try:
            return [text for _, text in self.membership.client.key_value_dir_get(f"jaxgate/{name}")]
        except jax.errors.JaxRuntimeError:
            return []

    def wipe(self, name: str) -> None:
        """Wipe out all that was written below a name."""
        with suppress(jax.errors.JaxRuntimeError):
            self.membership.client.key_value_delete(f"jaxgate/{name}")


def join(coordinator: str | None, count: int | None, process: int | None, *, limit_s: float) -> Job:
    """Join a job, and wait until every process has; the caller ends the run after ``limit_s``.

    ``coordinator`` is ``host:port`` of process 0. What is ``None`` JAX finds out from the cluster.

    Raises:
        NotJoinedError: If JAX has started already, finds no cluster, or cannot reach it.
    """
    if jax.distributed.is_initialized():
        raise NotJoinedError(
            "expected to call jax.distributed.initialize, found it called already; leave it to jaxgate"
        )
    jax.config.update("jax_enable_preemption_service", False)  # it catches SIGTERM: a rank that gets SIGTERM must end
    known: dict[str, Any] = {"coordinator_address": coordinator, "num_processes": count, "process_id": process}
    try:
        jax.distributed.initialize(
            **{name: value for name, value in known.items() if value is not None},
            initialization_timeout=round(limit_s) + INITIALIZE_S,
            heartbeat_timeout_seconds=round(limit_s) + HEARTBEAT_S,
            shutdown_timeout_seconds=round(limit_s) + HEARTBEAT_S,
        )
    except Exception as error:
        raise NotJoinedError(f"jax.distributed.initialize failed: {describe(error)}") from error
    found = membership()
    if found is None:
        raise NotJoinedError("this release of jax keeps its coordination service elsewhere than jaxgate looks for it")
    return Job(found)
