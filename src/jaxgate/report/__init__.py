"""Verdicts for the eye. The only room that converts units."""
