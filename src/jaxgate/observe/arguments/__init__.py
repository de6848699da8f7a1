"""The arguments of a call: how JAX's cache sees them, fresh copies, what a step carries on, and who holds which part."""
