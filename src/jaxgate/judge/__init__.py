"""Pure functions from measurements and baselines to verdicts. No JAX, no files, no clock."""
