"""The same pytest command on each process of a `jax.distributed` job, in lock-step, judged by rank 0."""
