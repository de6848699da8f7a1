"""A pytest-based performance-regression suite for JAX. Importing this imports neither JAX nor pytest."""

from jaxgate.model import Batch, Case, Claim, Computation, at_least, at_most, cases, equal

__all__ = ["Batch", "Case", "Claim", "Computation", "at_least", "at_most", "cases", "equal"]
