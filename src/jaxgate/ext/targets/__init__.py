"""Programs compiled for hardware that is not attached."""
