"""The machine: its devices, environment and load."""
