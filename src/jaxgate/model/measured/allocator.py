"""The device memory that a case really takes: what the device's own allocator counted in a fresh process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from jaxgate.model.measured.numbers import STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocatorFigures:
    """What the allocator of one device says at one moment, in bytes; ``None`` is what it does not say.

    Attributes:
        device: Platform and number: ``gpu:0``.
        in_use_bytes: Bytes handed out.
        peak_in_use_bytes: The most that it ever was in this process.
        reserved_bytes: What programs reserve for their temporaries beside these bytes; on TPU only.
        peak_reserved_bytes: The most that it ever was.
        limit_bytes: The most that the allocator may take. No hard limit for every allocator.
        pool_bytes: What it has taken from the device, in use or not; where it keeps a pool (GPU).
        peak_pool_bytes: The most that it ever was.
        largest_free_bytes: The largest block that it could hand out (TPU).
        allocations: Blocks that it has handed out so far.
    """

    __pydantic_config__: ClassVar[Any] = STRICT

    device: str
    in_use_bytes: int
    peak_in_use_bytes: int
    reserved_bytes: int | None
    peak_reserved_bytes: int | None
    limit_bytes: int | None
    pool_bytes: int | None
    peak_pool_bytes: int | None
    largest_free_bytes: int | None
    allocations: int | None

    @property
    def held_bytes(self) -> int:
        """Bytes that nobody else can have now."""
        return self.in_use_bytes + (self.reserved_bytes or 0)

    @property
    def peak_bytes(self) -> int:
        """The most that was held. Where programs reserve (TPU) the sum of two peaks: no less than the real one."""
        return self.peak_in_use_bytes + (self.peak_reserved_bytes or 0)

    @property
    def fragmentation(self) -> float | None:
        """Share of the free bytes that one block cannot have: 1 − largest free block / free bytes.

        ``None`` where the allocator does not report the largest free block, where nothing is free, and where its
        figures contradict each other.
        """
        whole = self.limit_bytes if self.pool_bytes is None else self.pool_bytes
        if self.largest_free_bytes is None or whole is None:
            return None
        free = whole - self.held_bytes
        return 1 - self.largest_free_bytes / free if 0 < self.largest_free_bytes <= free else None


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocatorPeak:
    """The peak of a case on the fullest of its devices, and how it came about.

    Attributes:
        devices: How many devices the case uses.
        before: With the arguments alone, before anything was traced.
        ready: Before the first call, the program being compiled.
        first: After the first call.
        after: After the last call.
        calls: Calls of the subject.
        preallocation: Which allocator, and what it takes at its start, as the environment of the process says.
    """

    __pydantic_config__: ClassVar[Any] = STRICT

    devices: int
    before: AllocatorFigures
    ready: AllocatorFigures
    first: AllocatorFigures
    after: AllocatorFigures
    calls: int
    preallocation: str

    @property
    def peak_bytes(self) -> int:
        """The most that was held on that device in the life of the process."""
        return self.after.peak_bytes

    @property
    def own_bytes(self) -> int:
        """The peak beyond what the arguments hold: results, temporaries, and the program where it counts."""
        return self.peak_bytes - self.before.held_bytes

    @property
    def by_calls(self) -> bool:
        """Whether a call made the peak; else building or compiling did, and the calls needed no more than that."""
        return self.peak_bytes > self.ready.peak_bytes

    @property
    def allocations(self) -> int | None:
        """Blocks that the calls took."""
        if self.after.allocations is None or self.ready.allocations is None:
            return None
        return self.after.allocations - self.ready.allocations


@dataclass(frozen=True, slots=True, kw_only=True)
class PeakRecord:
    """What a fresh process found out about one case.

    Attributes:
        case: ``family/sentence``.
        predicted_bytes: The compiler's ``peak_bytes`` of one device; ``None`` where it does not report one.
        peak: ``None`` if there are no figures.
        why_not: Why there are none.
        failed: Whether the case itself is to blame: it could not be built, compiled or called.
        more: Whether its test has further gates: each is measured in a process of its own.
    """

    __pydantic_config__: ClassVar[Any] = STRICT

    case: str
    predicted_bytes: int | None = None
    peak: AllocatorPeak | None = None
    why_not: str = ""
    failed: bool = False
    more: bool = False
