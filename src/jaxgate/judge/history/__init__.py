"""Many runs of one case: what it has lost over all refreshes together, steps and creep."""
