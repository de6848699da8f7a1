"""Energy of a call, where the devices have a counter."""
