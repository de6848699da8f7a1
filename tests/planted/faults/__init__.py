"""All planted faults, by what they touch."""

from __future__ import annotations

from tests.planted.faults import calls, devices, memory, values, work

FAULTS = (*calls.FAULTS, *memory.FAULTS, *work.FAULTS, *values.FAULTS, *devices.FAULTS)
