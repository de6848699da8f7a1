"""Calls of a case: how a subject is called, its steps, samples and launches, and the reference's result."""
