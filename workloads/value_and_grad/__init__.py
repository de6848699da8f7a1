"""`value_and_grad` with `has_aux`: loss, gradients and all else that the forward pass knows, from one forward pass.

Loss, gradients, metrics and new batch statistics from one forward pass (`value_and_grad(loss, has_aux=True)`) against
`grad` with a second forward pass: under `jit`, under `pmap`, on a mesh; with `argnums` over two arguments against a
`grad` for each; one program against two in a training loop. The mistake: a second forward pass, a third more
multiplications (4 against 3 passes' worth) and its collectives again. Two equal passes in one program without a loop
are shared by the compiler and cost nothing; behind a `lax.scan`, or in two programs, nothing is shared. Source: "Evaluate a function and its gradient using value_and_grad" in JAX's autodiff cookbook.
"""

from workloads.value_and_grad import placed, several, shared

CASES = (*placed.CASES, *shared.CASES, *several.CASES)
