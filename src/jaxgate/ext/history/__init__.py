"""What each run said of a case, drift, steps and creep."""
