"""Shapes: ragged lengths, short batches, static arguments, Python numbers; what JAX compiles a program for, and how often.

Every new shape, dtype, weak type or static value is another program. Nothing fails: a step takes seconds in place of
milliseconds, now and then.
"""

from workloads.shapes import arguments, batches, padded, ragged

CASES = (*padded.CASES, *ragged.CASES, *batches.CASES, *arguments.CASES)
