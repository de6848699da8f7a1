"""scan against loop: the same turn taken many times, with a body that is compiled once.

**Networks over time** (`rnn`). `lax.scan` compiles its body once; a Python loop is unrolled, and tracing,
lowering and compiling grow with its length: the program of a sequence four or eight times as long must be exactly as
large. `unroll=` lies between the two: the program grows with the factor, not with the length. Mistakes: a Python loop
comes back, `unroll=` the whole length, the states of all steps kept to return the last one, a carried type widened so
that `scan` accepts it. Source: JAX's pages on control flow and on `lax.scan`; Hochreiter and Schmidhuber (1997).

**Decoding** (`decode`). Tokens one after the other with a cache of keys and values of fixed length that is
donated and written in place (`dynamic_update_slice`); greedy, and by chance with keys split outside.
Without a cache the matrix products multiply with the length of the text; a cache that grows by concatenation retraces
with every token; one that is rewritten with `where` moves all of itself for each token. Tokens are compared exactly, so
products are in full float32. Source: Shazeer (2019) on incremental decoding, JAX's page on buffer donation.

**Loops that refine** (`loops`). A denoising chain over its schedule and keys (Ho et al., 2020), noise by Python being a
constant of the program; a fixed point by `while_loop` against a fixed number of copies of the step, and its gradient by
the implicit function theorem, which keeps no step (JAX's guide to custom derivatives; Bai et al., 2019). Work in a
`while_loop` counts as one turn, its length being unknown: work that moves into or out of it makes the case INVALID,
which has to be looked at.

**A linear recurrence** (`loops`). `associative_scan` joins steps in pairs (Blelloch, 1990; Martin and Cundy,
2018): the program is larger than the sequential scan's and grows with the logarithm of the length, temporaries stay
within a few sequences. It waits for levels instead of steps; whether that is faster depends on the room that a device
has, so no time is claimed.
"""

from jaxgate import Case
from workloads.scan import decode, loops, rnn

CASES: tuple[Case, ...] = (*rnn.CASES, *decode.CASES, *loops.CASES)
