"""What a counter of energy gives, whoever keeps it, and what is known of a device to find its counter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class CounterError(Exception):
    """A counter is not there, cannot be read, or says what cannot be; the text says which and why."""


class Device(Protocol):
    """Of a ``jax.Device`` what its counter is found by."""

    @property
    def platform(self) -> str:
        """``cpu``, ``gpu`` or ``tpu``."""

    @property
    def device_kind(self) -> str:
        """As its driver calls it."""

    @property
    def process_index(self) -> int:
        """The process that it belongs to."""

    @property
    def local_hardware_id(self) -> int | None:
        """Its place among the visible devices of this process's machine."""


class Counter(Protocol):
    """What some devices have drawn, each since some moment in the past."""

    @property
    def name(self) -> str:
        """Who counts, for people."""

    @property
    def ranges_uj(self) -> tuple[int | None, ...]:
        """Microjoules after which the counter of each device begins again from zero; ``None`` where it never does."""

    def read_uj(self) -> tuple[int, ...]:
        """Microjoules of each device.

        Raises:
            CounterError: If one of them cannot be read.
        """

    def watch_others(self) -> Callable[[], str]:
        """Look who uses the devices besides this process, from now on.

        Returns:
            Says at the end who did; empty if nobody.

        Raises:
            CounterError: If somebody does already, or nobody can tell.
        """
