"""Workers of pytest-xdist and their controller."""
