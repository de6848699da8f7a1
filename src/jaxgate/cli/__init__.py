"""What needs no pytest: ``python -m jaxgate.cli``."""
