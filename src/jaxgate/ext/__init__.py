"""Capabilities beside the gate: one folder each, with its data, its command, its judge and its words."""
