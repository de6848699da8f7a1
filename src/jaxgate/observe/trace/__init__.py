"""Tracing, lowering and compiling once, with what it cost, why it happened again, and what the program says."""
