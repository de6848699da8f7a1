"""Whether a case has the same program in another process."""
