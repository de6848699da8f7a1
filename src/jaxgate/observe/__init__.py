"""The only room that touches JAX: it turns a computation into a measurement."""
