"""Runs that do something else than judge."""
