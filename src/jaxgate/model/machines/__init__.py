"""What programs run on and are compiled for: hardware, targets, release lines of jax."""
