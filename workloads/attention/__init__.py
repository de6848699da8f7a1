"""attention: the formula by hand against the library's, over blocks, in a window, and as a kernel."""

from jaxgate.model import Case
from workloads.attention import blocks, kernel, library

CASES: tuple[Case, ...] = (*library.CASES, *blocks.CASES, *kernel.CASES)
