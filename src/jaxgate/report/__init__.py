"""Verdicts as text and Markdown. The only room that converts units."""
