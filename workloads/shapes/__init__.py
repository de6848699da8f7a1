"""Shapes: ragged lengths, short batches, static arguments, Python numbers; what JAX compiles a program for, and how often.

Every new shape, dtype, weak type or static value is another program. Texts of different lengths are filled up to two
shapes (as many compiles as shapes, no more, and fewer products than the longest shape needs), or padded by the host out
of tokens that follow one another without gaps (the reference calls the network for each: a launch for each text). Calls
come in a stream whose lengths change, so that a shape that is not fixed shows as a trace; rates count real tokens, and
every token, text and sample must influence the result.

The last batch of an epoch is filled up, boxes are picked into an array of a fixed size, a rate is a Python number that
changes at every step, and a Python number scales bfloat16 without widening it. Mistakes it catches: batches in shapes
of their own, rows of a bucket or the last batch left short (step 2 retraces), the last batch dropped, texts cut, the
mean taken over the padding, everything padded to the longest, a number that changes made static, a Python number that
becomes an array, a float32 scalar that widens. Sources: JAX's pages "Just-in-time compilation" (static arguments,
caching) and "Type promotion semantics" (weak types).
"""

from workloads.shapes import texts, values

CASES = (*texts.CASES, *values.CASES)
