"""Plain frozen data that the rooms of jaxgate hand to each other. No JAX, no files, no pytest."""
