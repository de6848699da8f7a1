"""Two programs timed in turn in one process."""
