"""Planted faults and unchanged programs: what the engine catches, what it blames, and where it must keep quiet."""
