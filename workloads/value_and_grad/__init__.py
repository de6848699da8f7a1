"""``value_and_grad`` with ``has_aux``: loss, gradients and all else that the forward pass knows, from one forward pass.

``grad`` with a second forward pass for the loss and the metrics costs a third more multiplications, and on many
devices the second pass's communication too. Two equal passes in one program are shared by the compiler, unless there
is a loop in them, or they are two programs.
"""

from workloads.value_and_grad import placed, several, shared

CASES = (*placed.CASES, *shared.CASES, *several.CASES)
