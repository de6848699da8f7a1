"""What a device really held, and the largest batch that fits."""

from jaxgate.observe.memory.allocator import measure_peak, read_figures
from jaxgate.observe.memory.max_batch import Fitting
