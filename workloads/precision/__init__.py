"""precision: how many bits products, sums, parameters and activations have, and who decides it."""

from jaxgate.model import Case
from workloads.precision import chains, products, training

CASES: tuple[Case, ...] = (*products.CASES, *chains.CASES, *training.CASES)
