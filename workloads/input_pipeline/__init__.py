"""What comes before the step, and between steps: batches on their way to the device, and how their images lie."""

from __future__ import annotations

from jaxgate.model import Case
from workloads.input_pipeline import batches, layout

CASES: tuple[Case, ...] = (*batches.CASES, *layout.CASES)
